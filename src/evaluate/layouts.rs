//! Published data sets: their folders, file names and units.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};

use super::item::{Areas, Item, Truth};
use stereod_calibration::format;
use stereod_core::picture::header;

/// The data sets, for messages.
pub const KNOWN: &str = "Middlebury, KITTI, ETH3D, DrivingStereo, Booster or TartanAir";

/// Data sets with a folder for each view and for the truth. A star stands for the name of a pair, which may be in
/// a folder of its own.
struct Folders {
    /// Left and right images.
    eyes: [&'static str; 2],
    /// Truth of the pixels that both cameras see.
    non_occluded: Option<&'static str>,
    /// Truth of all pixels.
    all: Option<&'static str>,
    /// See [`Truth::unknown`].
    unknown: Option<f64>,
    /// See [`Truth::of_depth`].
    of_depth: Option<f64>,
    /// Number of candidates; the data sets name no range.
    disparities: Option<usize>,
}

impl Folders {
    /// Returns a layout whose truth is in images of 16 bits.
    const fn of(eyes: [&'static str; 2], all: &'static str) -> Self {
        let (non_occluded, all, disparities) = (None, Some(all), None);
        Self { eyes, non_occluded, all, unknown: None, of_depth: None, disparities }
    }

    const fn of_kitti(
        eyes: [&'static str; 2],
        non_occluded: &'static str,
        all: &'static str,
    ) -> Self {
        let (non_occluded, disparities) = (Some(non_occluded), Some(KITTI_DISPARITIES));
        Self { non_occluded, disparities, ..Self::of(eyes, all) }
    }

    fn is_of_kitti(&self) -> bool {
        self.non_occluded.is_some()
    }
}

/// End of the names of KITTI's images of which the disparity is asked for; others follow them in time.
const KITTI_FIRST: &str = "_10";

/// Usual number of candidates for KITTI.
const KITTI_DISPARITIES: usize = 128;

/// The layouts; docs/accuracy.md has their sources.
const FOLDERS: [Folders; 7] = [
    Folders::of_kitti(["image_2/*.png", "image_3/*.png"], "disp_noc_0/*.png", "disp_occ_0/*.png"),
    Folders::of_kitti(["image_0/*.png", "image_1/*.png"], "disp_noc/*.png", "disp_occ/*.png"),
    Folders::of_kitti(["colored_0/*.png", "colored_1/*.png"], "disp_noc/*.png", "disp_occ/*.png"),
    // DrivingStereo in half size and the drives for training, which store 256 times the disparity.
    Folders::of(
        ["left-image-half-size/*.jpg", "right-image-half-size/*.jpg"],
        "disparity-map-half-size/*.png",
    ),
    Folders::of(["train-left-image/*.jpg", "train-right-image/*.jpg"], "train-disparity-map/*.png"),
    // Booster: all images of a scene have one truth.
    Folders {
        unknown: Some(0.0),
        ..Folders::of(["camera_00/*.png", "camera_02/*.png"], "disp_00.npy")
    },
    // TartanAir: 320 px times 0.25 m.
    Folders {
        of_depth: Some(80.0),
        ..Folders::of(
            ["image_left/*_left.png", "image_right/*_right.png"],
            "depth_left/*_left_depth.npy",
        )
    },
];

/// Middlebury 2001 to 2006: names of the images and of the truth without extensions, and the stored
/// value of a pixel of disparity by the height of the image.
struct Middlebury {
    eyes: [&'static str; 2],
    truth: &'static str,
    scales: &'static [(usize, f64)],
}

const MIDDLEBURY: [Middlebury; 2] = [
    // 2001, with images of 380 to 383 rows, and 2003 at a quarter, half and full size.
    Middlebury {
        eyes: ["im2", "im6"],
        truth: "disp2",
        scales: &[(380, 8.0), (381, 8.0), (383, 8.0), (375, 4.0), (750, 2.0), (1500, 1.0)],
    },
    // 2005 and 2006 at a third, half and full size.
    Middlebury {
        eyes: ["view1", "view5"],
        truth: "disp1",
        scales: &[(370, 3.0), (555, 2.0), (1110, 1.0)],
    },
];

/// Names of the images of Middlebury 2014, its version 3, and ETH3D, without extensions.
const TWO_VIEW: [&str; 2] = ["im0", "im1"];

const TWO_VIEW_TRUTHS: [&str; 2] = ["disp0GT.pfm", "disp0.pfm"];

#[derive(Debug, Default)]
pub struct Contents {
    /// Pairs; each with the file name that distinguishes it, if the folder can hold several.
    pub items: Vec<(Option<OsString>, anyhow::Result<Item>)>,
    /// Set if there is a pair of images, but no truth.
    pub lacks_truth: bool,
}

/// Returns the pairs of a folder with these files and folders; unless `needs_truth`, also those of KITTI,
/// Middlebury 2014 and ETH3D without truth.
pub fn contents(folder: &Path, names: &BTreeSet<OsString>, needs_truth: bool) -> Contents {
    let has = |name: &str| names.contains(&OsString::from(name)).then(|| folder.join(name));
    for layout in &FOLDERS {
        // The first part of a path is there or not.
        let first = |path: &'static str| has(path.split('/').next().unwrap_or(path));
        let truths = [layout.non_occluded, layout.all];
        let has_truth = truths.into_iter().flatten().any(|truth| first(truth).is_some());
        let is_wanted = has_truth || (!needs_truth && layout.is_of_kitti());
        if is_wanted && layout.eyes.iter().all(|eye| first(eye).is_some()) {
            let items = of_folders(folder, layout, needs_truth);
            return Contents { items, lacks_truth: false };
        }
    }
    let any_of = |stem: &str, endings: &[&str]| {
        endings.iter().find_map(|ending| has(&format!("{stem}.{ending}")))
    };
    let eyes = |stems: [&str; 2]| {
        let [left, right] = stems.map(|stem| any_of(stem, &["png", "ppm", "pgm", "jpg"]));
        Some([left?, right?])
    };
    let one = |item| Contents { items: vec![(None, item)], lacks_truth: false };
    let mut lacks_truth = false;
    for layout in &MIDDLEBURY {
        let Some(eyes) = eyes(layout.eyes) else { continue };
        match any_of(layout.truth, &["png", "pgm"]) {
            Some(truth) => {
                let masks = Areas {
                    non_occluded: has("nonocc.png"),
                    all: has("all.png"),
                    discontinuities: has("disc.png"),
                };
                return one(of_middlebury(layout, eyes, truth, masks));
            }
            None => lacks_truth = true,
        }
    }
    if let Some(eyes) = eyes(TWO_VIEW) {
        let beside = truth_beside(folder);
        let of_truth = |name: &str| {
            let beside = || beside.as_ref().map(|beside| beside.join(name));
            has(name).or_else(|| beside().filter(|file| file.exists()))
        };
        match TWO_VIEW_TRUTHS.iter().find_map(|name| of_truth(name)) {
            None if needs_truth => lacks_truth = true,
            truth => {
                return one(of_two_view(eyes, truth, of_truth("mask0nocc.png"), has("calib.txt")));
            }
        }
    }
    Contents { items: Vec::new(), lacks_truth }
}

/// Returns the folder of a scene's truth as ETH3D's archives are unpacked: the truth of `two_view_training/SCENE`
/// is in `two_view_training_gt/SCENE`.
fn truth_beside(scene: &Path) -> Option<PathBuf> {
    let scene = fs::canonicalize(scene).ok()?;
    let set = scene.parent()?;
    let name = format!("{}_gt", set.file_name()?.to_str()?);
    Some(set.with_file_name(name).join(scene.file_name()?))
}

/// Returns the pairs of a layout, by the files of their truth, or without `needs_truth` by their left images.
fn of_folders(
    root: &Path,
    layout: &Folders,
    needs_truth: bool,
) -> Vec<(Option<OsString>, anyhow::Result<Item>)> {
    let mut names = BTreeSet::new();
    let patterns = match needs_truth {
        true => [layout.non_occluded, layout.all],
        false => [Some(layout.eyes[0]), None],
    };
    for pattern in patterns.into_iter().flatten() {
        // A truth of all images of a scene.
        let pattern = if pattern.contains('*') { pattern } else { layout.eyes[0] };
        // Often only one of the two truths is there.
        if !root.join(pattern.split('/').next().unwrap_or(pattern)).exists() {
            continue;
        }
        match names_of(root, pattern) {
            Ok(found) => names.extend(found),
            Err(error) => return vec![(None, Err(error))],
        }
    }
    if !needs_truth {
        names.retain(|name: &String| name.ends_with(KITTI_FIRST));
    }
    let item = |name: &str| {
        let file = |pattern: &str| root.join(pattern.replace('*', name));
        let truth = |pattern: Option<&str>| {
            Some(file(pattern?)).filter(|file| file.exists()).map(|file| Truth {
                file,
                scale: None,
                unknown: layout.unknown,
                of_depth: layout.of_depth,
                largest: None,
                mask: None,
            })
        };
        Item {
            eyes: layout.eyes.map(file),
            truth: Areas {
                non_occluded: truth(layout.non_occluded),
                all: truth(layout.all),
                ..Areas::default()
            },
            disparities: layout.disparities,
            described_by: Vec::new(),
        }
    };
    // The ending keeps a name with a dot whole.
    names.iter().map(|name| (Some(format!("{name}.png").into()), Ok(item(name)))).collect()
}

/// Returns the texts that the star of a pattern stands for: names in its folder, and in those below.
fn names_of(root: &Path, pattern: &str) -> anyhow::Result<Vec<String>> {
    let Some((folder, (start, end))) =
        pattern.split_once('/').and_then(|(folder, name)| Some((folder, name.split_once('*')?)))
    else {
        bail!("no pattern of files: {pattern}");
    };
    let folder = root.join(folder);
    let failed = || format!("cannot read {}", folder.display());
    let (mut names, mut folders) = (Vec::new(), vec![String::new()]);
    while let Some(below) = folders.pop() {
        for entry in fs::read_dir(folder.join(&below)).with_context(failed)? {
            let entry = entry.with_context(failed)?;
            let Ok(name) = entry.file_name().into_string() else { continue };
            // macOS writes a file `._NAME` beside each NAME.
            if name.starts_with('.') {
                continue;
            }
            if below.is_empty() && entry.path().is_dir() {
                folders.push(format!("{name}/"));
            } else if let Some(star) = name.strip_prefix(start).and_then(|n| n.strip_suffix(end)) {
                names.push(format!("{below}{star}"));
            }
        }
    }
    Ok(names)
}

fn of_middlebury(
    layout: &Middlebury,
    eyes: [PathBuf; 2],
    file: PathBuf,
    masks: Areas<PathBuf>,
) -> anyhow::Result<Item> {
    let shown = file.display();
    let (_, height) = header::dimensions(&file).with_context(|| format!("cannot read {shown}"))?;
    let Some((_, scale)) = layout.scales.iter().find(|(rows, _)| *rows == height) else {
        let known: Vec<String> = layout.scales.iter().map(|(rows, _)| rows.to_string()).collect();
        bail!(
            "{shown} has {height} rows, and what its values mean is known with {}: write an item.json \
             with gt_scale",
            known.join(", ")
        );
    };
    let truth = |mask: Option<PathBuf>| Truth {
        file: file.clone(),
        scale: Some(*scale),
        unknown: None,
        of_depth: None,
        largest: None,
        mask,
    };
    Ok(Item {
        eyes,
        truth: Areas {
            non_occluded: masks.non_occluded.map(|mask| truth(Some(mask))),
            all: Some(truth(masks.all)),
            discontinuities: masks.discontinuities.map(|mask| truth(Some(mask))),
        },
        // As many as 8 bits can hold.
        disparities: Some((255.0 / scale) as usize + 1),
        described_by: Vec::new(),
    })
}

fn of_two_view(
    eyes: [PathBuf; 2],
    file: Option<PathBuf>,
    mask: Option<PathBuf>,
    calibration: Option<PathBuf>,
) -> anyhow::Result<Item> {
    let described_by = Vec::from_iter(calibration);
    let disparities = match &described_by[..] {
        [] => None,
        files => match format::read(files) {
            Ok(calibration) => calibration.disparities,
            Err(error) if error.lacks_size() => None,
            Err(error) => return Err(error.into()),
        },
    };
    let truth = file.map(|file| Truth {
        file,
        scale: None,
        unknown: None,
        of_depth: None,
        largest: None,
        mask: None,
    });
    let non_occluded = truth.clone().filter(|_| mask.is_some());
    let non_occluded = non_occluded.map(|truth| Truth { mask, ..truth });
    let truth = Areas { non_occluded, all: truth, ..Areas::default() };
    Ok(Item { eyes, truth, disparities, described_by })
}

#[cfg(test)]
mod tests;
