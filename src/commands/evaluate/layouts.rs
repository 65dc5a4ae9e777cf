//! Published data sets: their folders, file names and units.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};

use super::item::{Areas, Item, Truth};
use crate::calibration::format;
use crate::source::header;

/// The data sets, for messages.
pub(super) const KNOWN: &str = "Middlebury, KITTI, ETH3D, DrivingStereo, Booster or TartanAir";

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

    /// Returns a layout of KITTI.
    const fn of_kitti(
        eyes: [&'static str; 2],
        non_occluded: &'static str,
        all: &'static str,
    ) -> Self {
        let (non_occluded, disparities) = (Some(non_occluded), Some(KITTI_DISPARITIES));
        Self { non_occluded, disparities, ..Self::of(eyes, all) }
    }

    /// Reports whether it is a layout of KITTI, which has images without truth.
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

/// Names of their truth.
const TWO_VIEW_TRUTHS: [&str; 2] = ["disp0GT.pfm", "disp0.pfm"];

/// Content of a folder in one of the layouts.
#[derive(Debug, Default)]
pub(super) struct Contents {
    /// Pairs; each with the file name that distinguishes it, if the folder can hold several.
    pub(super) items: Vec<(Option<OsString>, anyhow::Result<Item>)>,
    /// Set if there is a pair of images, but no truth.
    pub(super) lacks_truth: bool,
}

/// Returns the pairs of a folder with these files and folders; unless `needs_truth`, also those of KITTI,
/// Middlebury 2014 and ETH3D without truth.
pub(super) fn contents(folder: &Path, names: &BTreeSet<OsString>, needs_truth: bool) -> Contents {
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
mod tests {
    use image::{ImageBuffer, Luma};

    use super::*;

    /// A folder with these files, each an image of one column and this many rows.
    struct Folder(tempfile::TempDir);

    impl Folder {
        fn new(rows: u32, files: &[&str]) -> Self {
            let folder = Self(tempfile::tempdir().unwrap());
            let picture = ImageBuffer::from_pixel(1, rows, Luma([9u8]));
            for file in files {
                let path = folder.at(file);
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                match ["pfm", "txt", "npy"].iter().any(|end| file.ends_with(end)) {
                    true => fs::write(path, "").unwrap(),
                    false => picture.save(path).unwrap(),
                }
            }
            folder
        }

        fn at(&self, name: &str) -> PathBuf {
            self.0.path().join(name)
        }

        fn contents(&self) -> Contents {
            self.contents_of(true)
        }

        fn contents_of(&self, needs_truth: bool) -> Contents {
            let names = fs::read_dir(self.0.path()).unwrap();
            let names = names.map(|entry| entry.unwrap().file_name()).collect();
            contents(self.0.path(), &names, needs_truth)
        }

        /// Returns the only pair.
        fn item(&self) -> Item {
            let Contents { mut items, lacks_truth } = self.contents();
            assert!(items.len() == 1 && !lacks_truth);
            items.remove(0).1.unwrap()
        }

        /// Returns the names of files of the folder.
        fn names<'a>(&self, paths: impl IntoIterator<Item = &'a PathBuf>) -> Vec<String> {
            let name =
                |path: &PathBuf| path.strip_prefix(self.0.path()).unwrap().display().to_string();
            paths.into_iter().map(name).collect()
        }
    }

    #[test]
    fn middlebury_2001_to_2006_by_the_height_of_their_pictures() {
        for (rows, files, scale, disparities) in [
            (383, ["im2.ppm", "im6.ppm", "disp2.pgm"], 8.0, 32),
            (375, ["im2.png", "im6.png", "disp2.png"], 4.0, 64),
            (750, ["im2.png", "im6.png", "disp2.pgm"], 2.0, 128),
            (1500, ["im2.png", "im6.png", "disp2.png"], 1.0, 256),
            (370, ["view1.png", "view5.png", "disp1.png"], 3.0, 86),
            (555, ["view1.png", "view5.png", "disp1.png"], 2.0, 128),
            (1110, ["view1.png", "view5.png", "disp1.png"], 1.0, 256),
        ] {
            let folder = Folder::new(rows, &files);
            let item = folder.item();
            assert_eq!(folder.names(item.files()), files, "{rows}");
            let all = item.truth.all.unwrap();
            assert_eq!((all.scale, all.mask, all.unknown), (Some(scale), None, None), "{rows}");
            assert_eq!(
                (item.disparities, item.truth.non_occluded),
                (Some(disparities), None),
                "{rows}"
            );
        }
        let files = ["im2.png", "im6.png", "disp2.png", "nonocc.png", "all.png"];
        let folder = Folder::new(375, &files);
        let Areas { non_occluded, all, .. } = folder.item().truth;
        let masks = [non_occluded, all].map(|truth| truth.unwrap().mask.unwrap());
        assert_eq!(folder.names(&masks), ["nonocc.png", "all.png"]);

        let odd = Folder::new(100, &files).contents().items.remove(0).1.unwrap_err().to_string();
        assert!(odd.contains("disp2.png has 100 rows") && odd.contains("gt_scale"), "{odd}");
    }

    #[test]
    fn kitti_with_both_truths_and_either() {
        let files = [
            "image_2/000000_10.png",
            "image_3/000000_10.png",
            "image_2/000000_11.png",
            "disp_noc_0/000000_10.png",
            "disp_occ_0/000000_10.png",
            "disp_occ_0/000001_10.png",
            "disp_occ_0/readme.txt",
        ];
        let folder = Folder::new(5, &files);
        let items = folder.contents().items;
        let names: Vec<_> = items.iter().map(|(name, _)| name.clone().unwrap()).collect();
        assert_eq!(names, ["000000_10.png", "000001_10.png"]);
        let [first, second] = [0, 1].map(|i| items[i].1.as_ref().unwrap());
        assert_eq!(folder.names(first.files()), [files[0], files[1], files[3], files[4]]);
        assert_eq!((first.disparities, &second.truth.non_occluded), (Some(128), &None));

        let folder = Folder::new(
            5,
            &[
                "image_0/a.png",
                "image_1/a.png",
                "colored_0/a.png",
                "colored_1/a.png",
                "disp_noc/a.png",
            ],
        );
        let item = folder.item();
        assert_eq!(
            folder.names(item.files()),
            ["image_0/a.png", "image_1/a.png", "disp_noc/a.png"]
        );
        assert_eq!(item.truth.all, None);
    }

    #[test]
    fn driving_stereo_booster_and_tartanair() {
        for (files, names, unknown, of_depth) in [
            (
                [
                    "left-image-half-size/a.1.jpg",
                    "right-image-half-size/a.1.jpg",
                    "disparity-map-half-size/a.1.png",
                ],
                "a.1.png",
                None,
                None,
            ),
            (
                [
                    "train-left-image/2018/a.jpg",
                    "train-right-image/2018/a.jpg",
                    "train-disparity-map/2018/a.png",
                ],
                "2018/a.png",
                None,
                None,
            ),
            (["camera_00/im3.png", "camera_02/im3.png", "disp_00.npy"], "im3.png", Some(0.0), None),
            (
                [
                    "image_left/000003_left.png",
                    "image_right/000003_right.png",
                    "depth_left/000003_left_depth.npy",
                ],
                "000003.png",
                None,
                Some(80.0),
            ),
        ] {
            let folder = Folder::new(5, &files);
            let mut items = folder.contents().items;
            assert_eq!(items.len(), 1, "{files:?}");
            let (name, item) = items.remove(0);
            let item = item.unwrap();
            assert_eq!(name.unwrap(), names);
            assert_eq!(folder.names(item.files()), files);
            let all = item.truth.all.unwrap();
            assert_eq!((all.unknown, all.of_depth, all.scale), (unknown, of_depth, None));
            assert_eq!((item.disparities, item.truth.non_occluded), (None, None));
        }
    }

    #[test]
    fn middlebury_2014_and_eth3d() {
        let folder =
            Folder::new(5, &["im0.png", "im1.png", "disp0GT.pfm", "mask0nocc.png", "calib.txt"]);
        let calibration = "cam0=[400 0 50; 0 400 40; 0 0 1]\ncam1=[400 0 50; 0 400 40; 0 0 1]\n\
                           doffs=0\nbaseline=100\nwidth=100\nheight=80\nndisp=70\n";
        fs::write(folder.at("calib.txt"), calibration).unwrap();
        let item = folder.item();
        assert_eq!(item.disparities, Some(70));
        assert_eq!(
            folder.names(item.files()),
            ["im0.png", "im1.png", "disp0GT.pfm", "mask0nocc.png", "disp0GT.pfm", "calib.txt"]
        );
        fs::write(folder.at("calib.txt"), "ndisp=70\n").unwrap();
        assert!(folder.contents().items.remove(0).1.is_err());

        let folder = Folder::new(5, &["im0.png", "im1.png", "disp0.pfm"]);
        let item = folder.item();
        assert_eq!((item.disparities, item.truth.non_occluded), (None, None));
    }

    #[test]
    fn eth3d_as_it_is_downloaded() {
        let files = [
            "two_view_training/delivery_area_1l/im0.png",
            "two_view_training/delivery_area_1l/im1.png",
            "two_view_training_gt/delivery_area_1l/disp0GT.pfm",
            "two_view_training_gt/delivery_area_1l/mask0nocc.png",
        ];
        let folder = Folder::new(5, &files);
        let scene = folder.at("two_view_training/delivery_area_1l");
        let names = ["im0.png", "im1.png"].map(OsString::from).into();
        let mut found = contents(&scene, &names, true);
        let item = found.items.remove(0).1.unwrap();
        let root = fs::canonicalize(folder.0.path()).unwrap();
        let truth = item.truth.non_occluded.unwrap();
        assert_eq!(truth.file, root.join(files[2]));
        assert_eq!(truth.mask, Some(root.join(files[3])));
        assert!(item.truth.all.is_some_and(|all| all.mask.is_none() && all.file == truth.file));
    }

    #[test]
    fn pairs_to_be_submitted_need_no_truth() {
        let kitti =
            ["image_2/a_10.png", "image_3/a_10.png", "image_2/a_11.png", "image_3/a_11.png"];
        for (files, found) in [
            (&["im0.png", "im1.png"][..], 1),
            (&kitti, 1),
            (&["view1.png", "view5.png"], 0),
            (&["camera_00/a.png", "camera_02/a.png"], 0),
        ] {
            let folder = Folder::new(5, files);
            let items = folder.contents_of(false).items;
            assert_eq!(items.len(), found, "{files:?}");
            for (_, item) in items {
                let item = item.unwrap();
                assert_eq!(folder.names(&item.eyes), files[..2]);
                assert_eq!((item.truth.non_occluded, item.truth.all), (None, None));
            }
        }
    }

    #[test]
    fn pictures_without_truth_are_told_apart_from_nothing() {
        for (files, lacks_truth) in [
            (&["im0.png", "im1.png"][..], true),
            (&["view1.png", "view5.png", "disp5.png"], true),
            (&["im0.png", "disp0.pfm"], false),
            (&["image_2/a.png", "image_3/a.png"], false),
            (&[], false),
        ] {
            let contents = Folder::new(5, files).contents();
            assert_eq!((contents.items.len(), contents.lacks_truth), (0, lacks_truth), "{files:?}");
        }
    }
}
