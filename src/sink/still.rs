//! Single disparity maps as image files.

use std::path::Path;

use anyhow::{Result, bail, ensure};

use crate::core::frame::{DisparityMap, DisparityRange, INVALID, Image, SUBPIXEL, StereoGeometry};
use crate::sink::colour::{ColourMap, ColourScale, colourise};
use crate::sink::files;
use crate::sink::numbers::{DepthUnit, Numbers, Quantity};
use crate::sink::png::{self, DisparityPng};

/// The formats of [`write_still`], by extension.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StillFormat {
    /// `.png`: 16 bits, KITTI convention.
    Png,
    /// `.pfm`: floats in pixels.
    Pfm,
    /// `.pgm`: 8 bits, disparity times a factor.
    Pgm,
}

impl StillFormat {
    /// Returns the format of a path's extension. Commands call this before matching, so that a
    /// wrong name costs no time.
    pub fn of(path: &Path) -> Result<Self> {
        match files::extension(path).as_str() {
            "png" => Ok(Self::Png),
            "pfm" => Ok(Self::Pfm),
            "pgm" => Ok(Self::Pgm),
            _ => bail!(
                "cannot tell the format of {}: name it .png (16 bits, KITTI convention), .pfm \
                 (floats) or .pgm (8 bits)",
                path.display()
            ),
        }
    }
}

impl StillFormat {
    /// Returns the format for depth, which does not fit 8 bits.
    pub fn of_depth(path: &Path) -> Result<Self> {
        match Self::of(path) {
            Ok(format @ (Self::Png | Self::Pfm)) => Ok(format),
            _ => bail!(
                "cannot write depth to {}: name it .png (16 bits, --depth-unit) or .pfm (floats, \
                 metres)",
                path.display()
            ),
        }
    }
}

/// Writes a disparity map in the format of the path's extension:
///
/// - `.png`: 16 bits, [`Encoding::for_range`], scale and offset in the text chunk `Comment`;
/// - `.pfm`: 32-bit floats in pixels, unknown = +infinity, little endian, bottom row first;
/// - `.pgm`: 8 bits, [`pgm_factor`] and offset in the header's comment, 0 = unknown.
pub fn write_still(path: &Path, map: &DisparityMap, range: DisparityRange) -> Result<()> {
    let format = StillFormat::of(path)?;
    match format {
        StillFormat::Png => {
            let numbers = Numbers::new(Quantity::Disparity, range, None)?;
            files::write_whole(path, DisparityPng::default().encode(map, &numbers)?)
        }
        StillFormat::Pfm => {
            let pixels = |value| f32::from(value) / SUBPIXEL as f32;
            files::write_whole(path, &pfm(map, pixels))
        }
        StillFormat::Pgm => files::write_whole(path, &pgm(map, range)),
    }
}

/// Writes the depth of a disparity map in the format of the path's extension: `.png` holds 16 bits in
/// `unit` ([`Quantity::Depth`]), `.pfm` floats in metres, unknown = +infinity.
pub fn write_depth(
    path: &Path,
    map: &DisparityMap,
    range: DisparityRange,
    geometry: &StereoGeometry,
    unit: DepthUnit,
) -> Result<()> {
    match StillFormat::of_depth(path)? {
        StillFormat::Pfm => {
            let metres = |value| {
                let disparity = f64::from(value) / f64::from(SUBPIXEL);
                geometry.depth_m(disparity).map_or(f32::INFINITY, |metres| metres as f32)
            };
            files::write_whole(path, &pfm(map, metres))
        }
        _ => {
            let numbers = Numbers::new(Quantity::Depth(unit), range, Some(geometry))?;
            files::write_whole(path, DisparityPng::default().encode(map, &numbers)?)
        }
    }
}

/// Checks the name of an image of colours or confidence.
pub fn check_png_name(path: &Path) -> Result<()> {
    ensure!(
        files::extension(path) == "png",
        "cannot write {}: it is a PNG file; name it .png",
        path.display()
    );
    Ok(())
}

/// Writes a disparity map in colour as a PNG; unknown disparity is black.
pub fn write_colour_png(
    path: &Path,
    map: &DisparityMap,
    colours: ColourMap,
    scale: &ColourScale,
) -> Result<()> {
    check_png_name(path)?;
    let mut rgb = vec![0; map.width() * map.height() * 3];
    colourise::<3>(map, colours, scale, &mut rgb, map.width() * 3);
    files::write_whole(path, &png::encode_rgb(&rgb, map.width(), map.height())?)
}

/// Writes a grey image as a PNG.
pub fn write_grey_png(path: &Path, image: &Image) -> Result<()> {
    check_png_name(path)?;
    files::write_whole(path, &png::encode_grey(image.pixels(), image.width(), image.height())?)
}

/// Encodes the map as a portable float map (Middlebury's description:
/// <https://vision.middlebury.edu/stereo/>).
fn pfm(map: &DisparityMap, number: impl Fn(i16) -> f32) -> Vec<u8> {
    // The negative scale means little endian.
    let mut file = format!("Pf\n{} {}\n-1.0\n", map.width(), map.height()).into_bytes();
    file.reserve(map.values().len() * 4);
    for row in map.values().chunks_exact(map.width().max(1)).rev() {
        for &value in row {
            let number = if value == INVALID { f32::INFINITY } else { number(value) };
            file.extend(number.to_le_bytes());
        }
    }
    file
}

/// Returns the grey levels per pixel of disparity in an 8-bit file, as numerator and denominator:
/// the largest power of two up to 16 with which the whole range fits below 256. This gives the
/// factors of the Middlebury images: 16 for Tsukuba, 8 for Venus, 4 for Teddy and Cones.
pub fn pgm_factor(range: DisparityRange) -> (u32, u32) {
    let span = i64::from(range.max()) - i64::from(pgm_offset(range));
    let mut factor = (16, 1);
    while span * i64::from(factor.0) > 255 * i64::from(factor.1) {
        factor = if factor.0 > 1 { (factor.0 / 2, 1) } else { (1, factor.1 * 2) };
    }
    factor
}

/// Returns the disparity of the level 0: 0, or the smallest one of a range below 0.
fn pgm_offset(range: DisparityRange) -> i32 {
    range.min.min(0)
}

/// Encodes the map as an 8-bit portable grey map: round((d - offset) * factor), where a valid 0
/// becomes 1.
fn pgm(map: &DisparityMap, range: DisparityRange) -> Vec<u8> {
    let (times, over) = pgm_factor(range);
    let offset = pgm_offset(range);
    let factor = f64::from(times) / f64::from(over);
    let mut file = format!(
        "P5\n# disparity = value / {factor} + {offset}; 0 = unknown\n{} {}\n255\n",
        map.width(),
        map.height()
    )
    .into_bytes();
    let unit = f64::from(SUBPIXEL);
    file.extend(map.values().iter().map(|&value| match value {
        INVALID => 0,
        value => {
            let level = (f64::from(value) / unit - f64::from(offset)) * factor;
            level.round().clamp(1.0, 255.0) as u8
        }
    }));
    file
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::core::pool::Pooled;
    use crate::sink::colour::ColourRange;

    const RANGE: DisparityRange = DisparityRange { min: 0, count: 64 };

    fn map() -> DisparityMap {
        // 3 x 2: 0, unknown, 1.5 / 10, 20.0625, 63
        DisparityMap::new(3, 2, RANGE, Pooled::unpooled(vec![0, INVALID, 24, 160, 321, 1008]))
    }

    fn written(name: &str, range: DisparityRange) -> Vec<u8> {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(name);
        write_still(&path, &map(), range).unwrap();
        fs::read(path).unwrap()
    }

    #[test]
    fn png_holds_the_kitti_convention() {
        let image::DynamicImage::ImageLuma16(picture) =
            image::load_from_memory(&written("a.PNG", RANGE)).unwrap()
        else {
            panic!("not 16-bit grey");
        };
        assert_eq!(picture.into_raw(), [1, 0, 384, 2560, 5136, 63 * 256]);
    }

    #[test]
    fn pfm_holds_floats_bottom_row_first() {
        let file = written("a.pfm", RANGE);
        let header = b"Pf\n3 2\n-1.0\n";
        assert_eq!(&file[..header.len()], header);
        let (floats, rest) = file[header.len()..].as_chunks();
        assert!(rest.is_empty());
        let floats: Vec<f32> = floats.iter().map(|&bytes| f32::from_le_bytes(bytes)).collect();
        assert_eq!(floats, [10.0, 20.0625, 63.0, 0.0, f32::INFINITY, 1.5]);
    }

    #[test]
    fn pgm_holds_disparity_times_the_factor() {
        let file = written("a.pgm", RANGE);
        let header = b"P5\n# disparity = value / 4 + 0; 0 = unknown\n3 2\n255\n";
        assert_eq!(&file[..header.len()], header);
        assert_eq!(&file[header.len()..], [1, 0, 6, 40, 80, 252]);
        assert_eq!(image::load_from_memory(&file).unwrap().to_luma8().as_raw()[3], 40);

        let file = written("a.pgm", DisparityRange { min: -10, count: 400 });
        let header = b"P5\n# disparity = value / 0.5 + -10; 0 = unknown\n3 2\n255\n";
        assert_eq!(&file[..header.len()], header);
        assert_eq!(&file[header.len()..], [5, 0, 6, 10, 15, 37]);
    }

    #[test]
    fn pgm_factors() {
        let factor = |min, count| pgm_factor(DisparityRange { min, count });
        assert_eq!(factor(0, 1), (16, 1));
        assert_eq!(factor(0, 16), (16, 1));
        assert_eq!(factor(0, 32), (8, 1));
        assert_eq!(factor(0, 60), (4, 1));
        assert_eq!(factor(0, 128), (2, 1));
        assert_eq!(factor(0, 256), (1, 1));
        assert_eq!(factor(0, 1024), (1, 8));
        assert_eq!(factor(-100, 101), (2, 1));
        assert_eq!(factor(-100, 50), (4, 1));
    }

    #[test]
    fn unknown_formats_are_refused_and_the_earlier_file_stays() {
        let dir = tempfile::tempdir().unwrap();
        for name in ["a.tiff", "a", "a.jpg"] {
            let path = dir.path().join(name);
            fs::write(&path, b"earlier").unwrap();
            let error = write_still(&path, &map(), RANGE).unwrap_err().to_string();
            assert!(
                error.contains(name) && [".png", ".pfm", ".pgm"].iter().all(|e| error.contains(e)),
                "{error}"
            );
            assert_eq!(fs::read(&path).unwrap(), b"earlier");
        }
        let error =
            write_still(&dir.path().join("no/where.pfm"), &map(), RANGE).unwrap_err().to_string();
        assert!(error.contains("no/where.pfm") && error.contains("does not exist"), "{error}");
    }

    #[test]
    fn colours_come_back_and_unknown_is_black() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("colour.png");
        let scale = ColourScale::new(ColourRange::Full, RANGE);
        write_colour_png(&path, &map(), ColourMap::Turbo, &scale).unwrap();
        let picture = image::open(&path).unwrap().to_rgb8();
        let table = ColourMap::Turbo.table();
        assert_eq!(picture.get_pixel(0, 0).0, table[0]);
        assert_eq!(picture.get_pixel(1, 0).0, [0, 0, 0]);
        assert_eq!(picture.get_pixel(2, 1).0, table[255]);
        let wrong = dir.path().join("colour.jpg");
        assert!(write_colour_png(&wrong, &map(), ColourMap::Turbo, &scale).is_err());
    }
}
