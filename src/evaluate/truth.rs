//! Reading of true disparities.
//!
//! Unknown values and scales are treated as in the scoring script of the test data and in the KITTI
//! development kit: a stored value divided by its scale in double precision.

use std::path::Path;
use std::rc::Rc;

use anyhow::{Context, ensure};

use super::item::{Areas, Item, Truth};
use super::{npy, pfm};
use stereod_core::files;
use stereod_core::picture::still::read_levels;

/// Stored value of one pixel of disparity in images of 16 bits (KITTI).
const KITTI_SCALE: f64 = 256.0;

/// Value of the pixels of a mask that count.
const COUNTED: u16 = 255;

/// The true disparities of an area.
#[derive(Clone, Debug)]
pub struct Region {
    map: Rc<Map>,
    /// Mask of the pixels that count; `None`: all with truth.
    mask: Option<Rc<[bool]>>,
}

/// A file of disparities.
#[derive(Debug)]
struct Map {
    width: usize,
    height: usize,
    /// Stored values, row by row; NaN if unknown. Singles hold floats and 16 bits alike.
    stored: Vec<f32>,
    scale: f64,
}

impl Region {
    /// Makes a region of these disparities.
    #[cfg(test)]
    pub fn of_values(width: usize, values: &[Option<f64>]) -> Self {
        let stored = values.iter().map(|value| value.map_or(f32::NAN, |value| value as f32));
        let height = values.len() / width;
        let map = Map { width, height, stored: stored.collect(), scale: 1.0 };
        Self { map: Rc::new(map), mask: None }
    }

    /// Returns the width and height in pixels.
    pub fn size(&self) -> (usize, usize) {
        (self.map.width, self.map.height)
    }

    /// Returns the pixels of the region that this mask, row by row, has as well.
    pub fn within(&self, mask: &[bool]) -> Self {
        let mask = mask
            .iter()
            .enumerate()
            .map(|(pixel, &counts)| counts && self.mask.as_ref().is_none_or(|mask| mask[pixel]));
        Self { map: Rc::clone(&self.map), mask: Some(mask.collect()) }
    }

    /// Returns the true disparity of pixel number `pixel` (row by row) in pixels, if it counts.
    pub fn at(&self, pixel: usize) -> Option<f64> {
        let stored = self.map.stored[pixel];
        let counts = !stored.is_nan() && self.mask.as_ref().is_none_or(|mask| mask[pixel]);
        counts.then(|| f64::from(stored) / self.map.scale)
    }
}

pub fn read(item: &Item) -> anyhow::Result<Areas<Region>> {
    let Areas { non_occluded, all, discontinuities } = &item.truth;
    let all = all.as_ref().map(|truth| Ok::<_, anyhow::Error>((truth, map_of(truth)?)));
    let all = all.transpose()?;
    // Both areas mostly use the same file.
    let shared = |truth: &Truth| {
        let (other, map) = all.as_ref()?;
        let unmasked = |truth: &Truth| Truth { mask: None, ..truth.clone() };
        (unmasked(truth) == unmasked(other)).then(|| Rc::clone(map))
    };
    let of = |truth: &Truth| region(truth, shared(truth).map_or_else(|| map_of(truth), Ok)?);
    let non_occluded = non_occluded.as_ref().map(of).transpose()?;
    let discontinuities = discontinuities.as_ref().map(of).transpose()?;
    let all = all.as_ref().map(|(truth, map)| region(truth, Rc::clone(map))).transpose()?;
    Ok(Areas { non_occluded, all, discontinuities })
}

fn region(truth: &Truth, map: Rc<Map>) -> anyhow::Result<Region> {
    let Some(path) = &truth.mask else { return Ok(Region { map, mask: None }) };
    let mask = read_levels(path)?;
    ensure!(
        (mask.width, mask.height) == (map.width, map.height),
        "{} is {}x{}, but the truth that it is a mask of {}x{}",
        path.display(),
        mask.width,
        mask.height,
        map.width,
        map.height
    );
    let mask = mask.values.iter().map(|&value| value == COUNTED).collect();
    Ok(Region { map, mask: Some(mask) })
}

/// Reads the disparities of a file, without masks.
fn map_of(truth: &Truth) -> anyhow::Result<Rc<Map>> {
    let (width, height, scale, mut stored) = match files::extension(&truth.file).as_str() {
        ending @ ("pfm" | "npy") => {
            let read = if ending == "pfm" { pfm::read } else { npy::read };
            let pfm::Floats { width, height, mut values } = read(&truth.file)?;
            if let Some(of_depth) = truth.of_depth {
                values.iter_mut().for_each(|value| *value = (of_depth / f64::from(*value)) as f32);
            }
            let scale = truth.scale.unwrap_or(1.0);
            let known = |value: f32| {
                value.is_finite() && value >= 0.0 && truth.unknown != Some(f64::from(value) / scale)
            };
            values.iter_mut().filter(|value| !known(**value)).for_each(|value| *value = f32::NAN);
            (width, height, scale, values)
        }
        _ => picture(&truth.file, truth.scale, truth.unknown.unwrap_or(0.0))?,
    };
    if let Some(largest) = truth.largest {
        let beyond = stored.iter_mut().filter(|value| f64::from(**value) / scale > largest);
        beyond.for_each(|value| *value = f32::NAN);
    }
    Ok(Rc::new(Map { width, height, stored, scale }))
}

/// Returns width, height, scale and values of an image of disparities.
fn picture(
    path: &Path,
    scale: Option<f64>,
    unknown: f64,
) -> anyhow::Result<(usize, usize, f64, Vec<f32>)> {
    let levels = read_levels(path)?;
    let scale = scale.or(levels.deep.then_some(KITTI_SCALE)).with_context(|| {
        format!("{} has 8 bits, whose scale gt_scale of an item.json must tell", path.display())
    })?;
    let stored = |&value: &u16| match f64::from(value) == unknown {
        true => f32::NAN,
        false => f32::from(value),
    };
    Ok((levels.width, levels.height, scale, levels.values.iter().map(stored).collect()))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::PathBuf;

    use image::{DynamicImage, ImageBuffer, Luma};

    use super::*;

    struct Folder(tempfile::TempDir);

    impl Folder {
        fn grey(&self, name: &str, values: [u8; 4]) -> PathBuf {
            let path = self.0.path().join(name);
            let picture = ImageBuffer::<Luma<u8>, _>::from_raw(2, 2, values.to_vec()).unwrap();
            picture.save(&path).unwrap();
            path
        }

        fn deep(&self, name: &str, values: [u16; 4]) -> PathBuf {
            let path = self.0.path().join(name);
            let picture = ImageBuffer::<Luma<u16>, _>::from_raw(2, 2, values.to_vec()).unwrap();
            DynamicImage::ImageLuma16(picture).save(&path).unwrap();
            path
        }

        fn floats(&self, name: &str, values: [f32; 4]) -> PathBuf {
            let path = self.0.path().join(name);
            let rows = [values[2], values[3], values[0], values[1]];
            let bytes = rows.iter().flat_map(|value| value.to_le_bytes());
            fs::write(&path, b"Pf\n2 2\n-1\n".iter().copied().chain(bytes).collect::<Vec<_>>())
                .unwrap();
            path
        }
    }

    fn folder() -> Folder {
        Folder(tempfile::tempdir().unwrap())
    }

    fn truth(file: PathBuf, scale: Option<f64>) -> Truth {
        Truth { file, scale, unknown: None, of_depth: None, largest: None, mask: None }
    }

    fn values(truth: Truth) -> anyhow::Result<[Option<f64>; 4]> {
        let map = map_of(&truth)?;
        let region = region(&truth, map)?;
        assert_eq!(region.size(), (2, 2));
        Ok([0, 1, 2, 3].map(|pixel| region.at(pixel)))
    }

    #[test]
    fn stored_values_become_disparities() {
        let folder = folder();
        let eight = folder.grey("8.png", [0, 1, 2, 255]);
        let thirds = [None, Some(1.0 / 3.0), Some(2.0 / 3.0), Some(85.0)];
        assert_eq!(values(truth(eight.clone(), Some(3.0))).unwrap(), thirds);
        let zero_counts = Truth { unknown: Some(2.0), ..truth(eight.clone(), Some(1.0)) };
        assert_eq!(values(zero_counts).unwrap(), [Some(0.0), Some(1.0), None, Some(255.0)]);
        let limited = Truth { largest: Some(2.0), ..truth(eight.clone(), Some(1.0)) };
        assert_eq!(values(limited).unwrap(), [None, Some(1.0), Some(2.0), None]);
        let error = values(truth(eight, None)).unwrap_err().to_string();
        assert!(error.contains("8.png has 8 bits"), "{error}");

        let deep = folder.deep("16.png", [0, 1, 384, 65535]);
        let kitti = [None, Some(1.0 / 256.0), Some(1.5), Some(65535.0 / 256.0)];
        assert_eq!(values(truth(deep, None)).unwrap(), kitti);

        let floats = folder.floats("f.PFM", [f32::INFINITY, -1.0, 0.0, 7.25]);
        assert_eq!(
            values(truth(floats.clone(), None)).unwrap(),
            [None, None, Some(0.0), Some(7.25)]
        );
        let unknown = Truth { unknown: Some(0.0), ..truth(floats, Some(2.0)) };
        assert_eq!(values(unknown).unwrap(), [None, None, None, Some(3.625)]);
    }

    #[test]
    fn masks_say_what_counts() {
        let folder = folder();
        let map = folder.grey("8.png", [4, 8, 12, 16]);
        let mask = Some(folder.grey("mask.png", [255, 128, 0, 255]));
        let all = truth(map, Some(4.0));
        let non_occluded = Some(Truth { mask, ..all.clone() });
        let item = Item {
            eyes: [PathBuf::new(), PathBuf::new()],
            truth: Areas { non_occluded, all: Some(all), ..Areas::default() },
            disparities: None,
            described_by: Vec::new(),
        };
        let read = read(&item).unwrap();
        let at = |region: &Option<Region>| [0, 1, 2, 3].map(|i| region.as_ref().unwrap().at(i));
        assert_eq!(at(&read.non_occluded), [Some(1.0), None, None, Some(4.0)]);
        assert_eq!(at(&read.all), [1.0, 2.0, 3.0, 4.0].map(Some));
        let [non_occluded, all] = [read.non_occluded.unwrap(), read.all.unwrap()];
        assert!(Rc::ptr_eq(&non_occluded.map, &all.map), "the file is read once");
    }

    #[test]
    fn a_mask_of_another_size_is_named() {
        let folder = folder();
        let mask = folder.0.path().join("wide.png");
        ImageBuffer::from_pixel(3, 2, Luma([255u8])).save(&mask).unwrap();
        let map = folder.grey("8.png", [1; 4]);
        let error = values(Truth { mask: Some(mask), ..truth(map, Some(1.0)) }).unwrap_err();
        assert!(error.to_string().contains("wide.png is 3x2, but the truth"), "{error}");
    }
}
