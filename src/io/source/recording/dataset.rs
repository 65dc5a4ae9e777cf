//! Published data sets as folders of images, by a table of their layouts.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use super::folder::{Folder, entries};

/// Period of images without times: the default of numbered images.
const PERIOD_NS: u64 = 1_000_000_000 / 30;

struct Layout {
    name: &'static str,
    /// Files of the left and of the right view below the folder. A star stands for any text, which is the same
    /// in both views of a pair.
    views: [&'static str; 2],
    calibration: Option<&'static str>,
    /// File with the time in seconds of each image, a line each; a folder without it has another layout.
    times: Option<&'static str>,
}

impl Layout {
    const fn of(name: &'static str, views: [&'static str; 2]) -> Self {
        Self { name, views, calibration: None, times: None }
    }
}

/// The layouts; their sources are in docs/recordings.md. Of two layouts with the same folders the first one counts.
const LAYOUTS: [Layout; 14] = [
    Layout::of("TartanAir", ["image_left/*_left.png", "image_right/*_right.png"]),
    Layout::of(
        "TartanAir V2",
        ["image_lcam_front/*_lcam_front.png", "image_rcam_front/*_rcam_front.png"],
    ),
    Layout {
        calibration: Some("calib.txt"),
        times: Some("times.txt"),
        ..Layout::of("KITTI odometry", ["image_0/*.png", "image_1/*.png"])
    },
    Layout {
        calibration: Some("calib.txt"),
        times: Some("times.txt"),
        ..Layout::of("KITTI odometry", ["image_2/*.png", "image_3/*.png"])
    },
    // The first of two moments, which is the one with known disparity.
    Layout::of("KITTI 2015", ["image_2/*_10.png", "image_3/*_10.png"]),
    Layout::of("KITTI 2012", ["image_0/*_10.png", "image_1/*_10.png"]),
    Layout::of("KITTI 2012", ["colored_0/*_10.png", "colored_1/*_10.png"]),
    Layout::of("DrivingStereo", ["left-image-half-size/*.jpg", "right-image-half-size/*.jpg"]),
    Layout::of("DrivingStereo", ["left-image-full-size/*.png", "right-image-full-size/*.png"]),
    Layout::of("DrivingStereo", ["train-left-image/*/*.jpg", "train-right-image/*/*.jpg"]),
    Layout::of("Booster", ["camera_00/*.png", "camera_02/*.png"]),
    Layout::of("Booster", ["*/camera_00/*.png", "*/camera_02/*.png"]),
    Layout {
        calibration: Some("calib.txt"),
        ..Layout::of("Middlebury and ETH3D", ["im0.png", "im1.png"])
    },
    Layout::of("Middlebury and ETH3D", ["*/im0.png", "*/im1.png"]),
];

pub(super) fn names() -> String {
    let mut names: Vec<_> = LAYOUTS.iter().map(|layout| layout.name).collect();
    names.dedup();
    names.join(", ")
}

/// Returns the topic of a pattern: its first part without a star, without the ending.
fn topic(pattern: &str) -> &str {
    let part = pattern.split('/').find(|part| !part.contains('*')).unwrap_or(pattern);
    part.strip_suffix(".png").unwrap_or(part)
}

/// Returns the files of a pattern, by the texts that its stars stand for.
fn files_of(folder: &Path, pattern: &str) -> BTreeMap<Vec<String>, PathBuf> {
    let mut found = BTreeMap::from([(Vec::new(), folder.to_owned())]);
    for part in pattern.split('/') {
        let mut below = BTreeMap::new();
        for (stars, folder) in found {
            let Some((start, end)) = part.split_once('*') else {
                below.insert(stars, folder.join(part));
                continue;
            };
            for path in entries(&folder) {
                let name = path.file_name().and_then(|name| name.to_str());
                let star = name.and_then(|name| name.strip_prefix(start)?.strip_suffix(end));
                if let Some(star) = star {
                    below.insert([&stars[..], &[star.to_owned()]].concat(), path);
                }
            }
        }
        found = below;
    }
    found.retain(|_, path| path.is_file());
    found
}

fn views_of(folder: &Path, layout: &Layout) -> Option<[BTreeMap<Vec<String>, PathBuf>; 2]> {
    if layout.times.is_some_and(|times| !folder.join(times).is_file()) {
        return None;
    }
    let views = layout.views.map(|pattern| files_of(folder, pattern));
    views.iter().all(|view| !view.is_empty()).then_some(views)
}

pub(super) fn is_dataset(folder: &Path) -> bool {
    LAYOUTS.iter().any(|layout| views_of(folder, layout).is_some())
}

/// Opens a folder. Returns also the name of the data set.
pub(super) fn open(folder: &Path) -> Result<(Folder, &'static str)> {
    let (mut found, mut calibration) = (Folder::default(), None);
    let mut name: Option<&'static str> = None;
    for layout in &LAYOUTS {
        // Booster's images have names of Middlebury's.
        let is_other = name.is_some_and(|name| name != layout.name);
        if is_other || layout.views.iter().any(|pattern| found.has_topic(topic(pattern))) {
            continue;
        }
        let Some(views) = views_of(folder, layout) else { continue };
        let list = layout.times.map(|list| folder.join(list));
        let times = list.as_ref().map(|list| times_of(&mut found, list)).transpose()?;
        // An image without a partner takes its place in time, too.
        let mut pairs: Vec<_> = views.iter().flat_map(BTreeMap::keys).cloned().collect();
        pairs.sort();
        pairs.dedup();
        for (pattern, view) in layout.views.into_iter().zip(views) {
            let topic = found.add_topic(topic(pattern));
            let (Some(list), Some(times)) = (&list, &times) else {
                for (stars, file) in view {
                    let number = pairs.binary_search(&stars).unwrap_or_default();
                    found.add_image(number as u64 * PERIOD_NS, topic, file);
                }
                continue;
            };
            let mut is_there = vec![false; times.len()];
            for (stars, file) in view {
                let number = stars.last().and_then(|star| star.parse::<usize>().ok());
                let number = number.filter(|&number| number < times.len());
                match number.and_then(|number| times[number]) {
                    Some(time) => found.add_image(time, topic, file),
                    None => found.add_without_time(topic, file, list),
                }
                number.into_iter().for_each(|number| is_there[number] = true);
            }
            let missing = times.iter().enumerate().filter(|(number, _)| !is_there[*number]);
            for (number, time) in missing {
                let file = folder.join(pattern.replace('*', &format!("{number:06}")));
                time.iter().for_each(|time| found.add_image(*time, topic, file.clone()));
            }
        }
        name.get_or_insert(layout.name);
        calibration = calibration.or(layout.calibration.map(|file| folder.join(file)));
    }
    let Some(name) = name else { bail!("the folder has the layout of no data set that is known") };
    found.check_sizes()?;
    let calibration = calibration.filter(|file| file.is_file());
    Ok((found.finish(calibration)?, name))
}

/// Reads times in seconds, a line each, in nanoseconds. A blank line has none.
fn times_of(found: &mut Folder, list: &Path) -> Result<Vec<Option<u64>>> {
    let text = found.read_list(list)?;
    let time = |(number, line): (usize, &str)| {
        if line.trim().is_empty() {
            return Ok(None);
        }
        let seconds: Option<f64> = line.trim().parse().ok();
        let ns = seconds.map(|seconds| seconds * 1e9).filter(|ns| (0.0..1e18).contains(ns));
        let wrong = || format!("{}, line {number}: {line:?} is no time", list.display());
        Ok(Some(ns.with_context(wrong)? as u64))
    };
    (1..).zip(text.lines()).map(time).collect()
}

/// Describes the missing files of a folder that resembles one of the layouts; `None` if it resembles none.
pub(super) fn near_miss(folder: &Path) -> Option<String> {
    let lacking = |layout: &Layout| {
        let [left, right] = layout.views;
        let has = layout.views.map(|pattern| !files_of(folder, pattern).is_empty());
        let list = layout.times.filter(|list| !folder.join(list).is_file());
        let (present, absent) = match (has, list) {
            ([true, true], Some(list)) => (left, format!("{list}, the list of times")),
            ([true, false], None) => (left, right.to_owned()),
            ([false, true], None) => (right, left.to_owned()),
            _ => return None,
        };
        Some(format!("it has {present} of {}, but not {absent}", layout.name))
    };
    LAYOUTS.iter().find_map(lacking)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use image::{ImageBuffer, Luma};
    use proptest::prelude::*;

    use super::*;
    use crate::source::recording::choice;
    use crate::source::recording::interface::{Message, Reader};

    /// A folder with these files: images of 2x3 pixels, or texts.
    fn folder(files: &[&str]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for file in files {
            let path = folder.path().join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            match file.rsplit_once('.').unwrap().1 {
                "txt" => fs::write(path, "0.0\n1.036160e-01\n2.5e-1\n").unwrap(),
                _ => ImageBuffer::from_pixel(2, 3, Luma([9_u8])).save(path).unwrap(),
            }
        }
        folder
    }

    /// Returns the data set, the topics that are chosen, and time and file of their images.
    fn opened(files: &[&str]) -> (&'static str, [String; 2], Vec<(u64, String)>) {
        let folder = folder(files);
        assert!(is_dataset(folder.path()));
        let (mut found, name) = open(folder.path()).unwrap();
        let views = choice::choose(found.topics(), &[None, None]).unwrap();
        let topics = views.map(|view| found.topics()[view].name.clone());
        let images = found.images_of(&views);
        found.begin(&views).unwrap();
        let mut message = Message::default();
        for _ in &images {
            assert!(found.next(&mut message).unwrap());
        }
        assert!(!found.next(&mut message).unwrap());
        let below =
            |file: &PathBuf| file.strip_prefix(folder.path()).unwrap().display().to_string();
        (name, topics, images.iter().map(|(time, file)| (*time, below(file))).collect())
    }

    #[test]
    fn every_layout_is_found_by_its_files() {
        for (name, files, others) in [
            ("TartanAir", ["image_left/000000_left.png", "image_right/000000_right.png"], &[][..]),
            (
                "TartanAir V2",
                [
                    "image_lcam_front/000000_lcam_front.png",
                    "image_rcam_front/000000_rcam_front.png",
                ],
                &["image_lcam_back/000000_lcam_back.png"],
            ),
            (
                "KITTI 2015",
                ["image_2/000007_10.png", "image_3/000007_10.png"],
                &["image_2/000007_11.png", "image_3/000007_11.png"],
            ),
            (
                "KITTI 2012",
                ["image_0/000007_10.png", "image_1/000007_10.png"],
                &["colored_0/000007_10.png", "colored_1/000007_10.png"],
            ),
            ("KITTI 2012", ["colored_0/000007_10.png", "colored_1/000007_10.png"], &[]),
            (
                "KITTI odometry",
                ["image_0/000000.png", "image_1/000000.png"],
                &["times.txt", "image_2/000000.png", "image_3/000000.png"],
            ),
            ("KITTI odometry", ["image_2/000000.png", "image_3/000000.png"], &["times.txt"]),
            ("DrivingStereo", ["left-image-half-size/a.jpg", "right-image-half-size/a.jpg"], &[]),
            ("DrivingStereo", ["left-image-full-size/a.png", "right-image-full-size/a.png"], &[]),
            ("DrivingStereo", ["train-left-image/b/a.jpg", "train-right-image/b/a.jpg"], &[]),
            ("Middlebury and ETH3D", ["im0.png", "im1.png"], &["im1E.png"]),
            ("Middlebury and ETH3D", ["Piano/im0.png", "Piano/im1.png"], &["Piano/im1E.png"]),
            ("Booster", ["camera_00/im0.png", "camera_02/im0.png"], &["mask_00.png"]),
            ("Booster", ["Bottle/camera_00/im0.png", "Bottle/camera_02/im0.png"], &[]),
        ] {
            let all = [&files[..], others].concat();
            let due = files.map(|file| (0, file.to_owned())).to_vec();
            let (found, _, images) = opened(&all);
            assert_eq!((found, images), (name, due), "{all:?}");
        }
        assert_eq!(LAYOUTS.len(), 14, "a layout is not tested");
    }

    #[test]
    fn images_have_the_times_of_the_list_or_their_number() {
        let files = ["image_0/000001.png", "image_1/000001.png", "image_1/000002.png"];
        let (_, topics, images) = opened(&[&files[..], &["times.txt"]].concat());
        assert_eq!(topics, ["image_0", "image_1"]);
        let times: Vec<_> = images.iter().map(|(time, _)| *time).collect();
        assert_eq!(times, [103_616_000, 103_616_000, 250_000_000]);
        // Without a line, and with wrong ones.
        let more = folder(&["image_0/000003.png", "image_1/000003.png", "times.txt"]);
        let error = open(more.path()).unwrap_err().to_string();
        assert!(
            error.contains("none of the images") && error.contains("000000.png: no such"),
            "{error}"
        );
        fs::write(more.path().join("times.txt"), "0\n-1\n").unwrap();
        let error = open(more.path()).unwrap_err().to_string();
        assert!(error.contains("line 2: \"-1\" is no time"), "{error}");
        // An image without a partner counts, too.
        let (_, _, images) =
            opened(&["a/im0.png", "a/im1.png", "b/im1.png", "c/im0.png", "c/im1.png"]);
        let last = (2 * PERIOD_NS, "c/im1.png".to_owned());
        assert_eq!((images.len(), images.last()), (5, Some(&last)));
    }

    #[test]
    fn images_of_two_sizes_are_refused_with_the_cure() {
        let folder = folder(&["a/im0.png", "a/im1.png", "b/im0.png", "b/im1.png"]);
        let wide = ImageBuffer::from_pixel(4, 3, Luma([9_u8]));
        wide.save(folder.path().join("b/im0.png")).unwrap();
        let error = open(folder.path()).unwrap_err().to_string();
        assert!(error.contains("is 2x3") && error.contains("b/im0.png is 4x3"), "{error}");
        assert!(error.contains("`stereod match`"), "{error}");
    }

    #[test]
    fn images_without_a_time_or_a_file_are_left_out_where_they_were() {
        let numbers = ["000000", "000001", "000003"];
        let files = ["image_0", "image_1"].map(|at| numbers.map(|n| format!("{at}/{n}.png")));
        let files: Vec<_> = files.iter().flatten().map(|file| &file[..]).collect();
        let folder = folder(&[&files[..], &["times.txt"]].concat());
        fs::write(folder.path().join("times.txt"), "\u{feff}0.0\n\n0.2\n0.3\n\n").unwrap();
        // A hidden file that macOS adds, and a file that is no image.
        fs::write(folder.path().join("image_0/._000000.png"), "x").unwrap();
        fs::write(folder.path().join("image_1/000003.png"), "x").unwrap();
        let (mut found, _) = open(folder.path()).unwrap();
        found.begin(&[0, 1]).unwrap();
        let (mut times, mut message) = (Vec::new(), Message::default());
        while found.next(&mut message).unwrap() {
            times.push((message.topic, message.log_ns / 1_000_000));
        }
        assert_eq!(times, [(0, 0), (1, 0), (0, 300)]);
        let lost: Vec<_> = found.lost().into_iter().map(|lost| lost.what).collect();
        let due =
            ["image_0/000001.png: ", "image_1/000001.png: ", "image_0/000002.png: no such file"];
        assert_eq!(lost.len(), 5, "{lost:?}");
        due.iter().zip(&lost).for_each(|(due, lost)| assert!(lost.contains(due), "{lost}"));
        assert!(lost[0].contains("times.txt has no time for it"), "{lost:?}");
        assert!(lost[4].contains("image_1/000003.png: it is no image"), "{lost:?}");
    }

    #[test]
    fn a_folder_that_lacks_a_part_of_a_layout_is_told_which() {
        for (files, lacking) in [
            (
                &["image_2/000000.png", "image_3/000000.png"][..],
                "it has image_2/*.png of KITTI odometry, but not times.txt, the list of times",
            ),
            (
                &["image_left/000000_left.png"],
                "it has image_left/*_left.png of TartanAir, but not image_right/*_right.png",
            ),
            (&["A/im1.png"], "it has */im1.png of Middlebury and ETH3D, but not */im0.png"),
            (&["left/0.png", "right/0.png"], ""),
            (&["a/im2.png"], ""),
            (&[], ""),
        ] {
            let folder = folder(files);
            assert!(!is_dataset(folder.path()), "{files:?}");
            assert_eq!(near_miss(folder.path()).unwrap_or_default(), lacking, "{files:?}");
        }
    }

    #[test]
    fn other_folders_are_none() {
        for files in [
            &["image_0/000000.png", "image_1/000000.png"][..],
            &["left/000000.png", "right/000000.png"],
            &["im0.png", "im2.png"],
            &["image_left/000000_left.png"],
            &[],
        ] {
            assert!(!is_dataset(folder(files).path()), "{files:?}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]
        #[test]
        fn any_list_of_times_is_read_or_refused(text in "([-0-9.eE+ainf]{0,12}\n){0,4}") {
            let folder = folder(&["image_0/000000.png", "image_1/000000.png"]);
            fs::write(folder.path().join("times.txt"), text).unwrap();
            if let Ok((found, _)) = open(folder.path()) {
                prop_assert_eq!(found.topics().len(), 2);
            }
        }
    }
}
