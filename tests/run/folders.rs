//! Data sets as folders that are damaged, or nearly right.

use std::path::PathBuf;

use super::*;

/// Pairs of each data set.
const PAIRS: u64 = 5;

/// The name of a list, and its text for a number of pairs.
type List = (&'static str, fn(u64) -> String);

/// A data set: the left and the right image of a pair by its number, and its lists.
struct DataSet {
    views: [fn(u64) -> String; 2],
    lists: &'static [List],
    /// True if a list names the images, so that a missing one is known.
    is_listed: bool,
}

/// One data set of every layout with many pairs.
const DATA_SETS: [DataSet; 9] = [
    DataSet {
        views: [
            |n| format!("mav0/cam0/data/{}.png", euroc(n)),
            |n| format!("mav0/cam1/data/{}.png", euroc(n)),
        ],
        lists: &[
            ("mav0/cam0/data.csv", |n| format!("{0},{0}.png", euroc(n))),
            ("mav0/cam1/data.csv", |n| format!("{0},{0}.png", euroc(n))),
        ],
        is_listed: true,
    },
    DataSet {
        views: [|n| format!("image_00/data/{n:010}.png"), |n| format!("image_01/data/{n:010}.png")],
        lists: &[
            ("image_00/timestamps.txt", |n| format!("2011-09-26 13:02:25.{n}00000000")),
            ("image_01/timestamps.txt", |n| format!("2011-09-26 13:02:25.{n}00000000")),
        ],
        is_listed: true,
    },
    DataSet {
        views: [|n| format!("image_0/{n:06}.png"), |n| format!("image_1/{n:06}.png")],
        lists: &[("times.txt", |n| format!("{n}.036160e-01"))],
        is_listed: true,
    },
    DataSet {
        views: [
            |n| format!("image_left/{n:06}_left.png"),
            |n| format!("image_right/{n:06}_right.png"),
        ],
        lists: &[],
        is_listed: false,
    },
    DataSet {
        views: [
            |n| format!("image_lcam_front/{n:06}_lcam_front.png"),
            |n| format!("image_rcam_front/{n:06}_rcam_front.png"),
        ],
        lists: &[],
        is_listed: false,
    },
    DataSet {
        views: [|n| format!("image_2/{n:06}_10.png"), |n| format!("image_3/{n:06}_10.png")],
        lists: &[],
        is_listed: false,
    },
    DataSet {
        views: [
            |n| format!("left-image-full-size/{n}.png"),
            |n| format!("right-image-full-size/{n}.png"),
        ],
        lists: &[],
        is_listed: false,
    },
    DataSet {
        views: [|n| format!("scene{n}/im0.png"), |n| format!("scene{n}/im1.png")],
        lists: &[],
        is_listed: false,
    },
    DataSet {
        views: [|n| format!("camera_00/im{n}.png"), |n| format!("camera_02/im{n}.png")],
        lists: &[],
        is_listed: false,
    },
];

/// Time of an image of EuRoC in nanoseconds.
fn euroc(number: u64) -> u64 {
    1_700_000_000_000_000_000 + number * 50_000_000
}

impl DataSet {
    /// Writes the first pairs of the demo scene.
    fn write(&self, folder: &Path) {
        for number in 0..PAIRS {
            let pair = demo_pair(number);
            for (name, view) in self.views.iter().zip([pair.left, pair.right]) {
                let path = folder.join(name(number));
                std::fs::create_dir_all(path.parent().unwrap()).unwrap();
                let (width, height) = (SIZE.0 as u32, SIZE.1 as u32);
                let image = image::GrayImage::from_raw(width, height, view.pixels().to_vec());
                image.unwrap().save(path).unwrap();
            }
        }
        for (name, line) in self.lists {
            let lines: String = (0..PAIRS).map(|number| line(number) + "\n").collect();
            std::fs::write(folder.join(name), lines).unwrap();
        }
    }
}

/// `stereod run FOLDER` that must succeed: its statistics and messages.
fn played(folder: &Path) -> (Value, String) {
    let (status, stdout, stderr) = run(folder, &with_statistics(&[".", "--headless"]));
    assert_eq!(status, 0, "{folder:?}: {stderr}");
    (serde_json::from_str(&stdout).unwrap(), stderr)
}

#[test]
fn missing_and_broken_images_are_counted_in_every_data_set() {
    for set in &DATA_SETS {
        let folder = tempfile::tempdir().unwrap();
        set.write(folder.path());
        let at = |view: usize, number| folder.path().join(set.views[view](number));
        let (said, _) = played(folder.path());
        assert_eq!(said["matched"], PAIRS, "{}: {said}", set.views[0](0));
        // Of the first image the size is known, of the second one nothing is readable.
        std::fs::remove_file(at(0, 1)).unwrap();
        std::fs::write(at(1, 2), "no image").unwrap();
        let content = std::fs::read(at(0, 3)).unwrap();
        std::fs::write(at(0, 3), &content[..content.len() / 2]).unwrap();
        let (said, stderr) = played(folder.path());
        assert_eq!(said["matched"], PAIRS - 3, "{}: {said}", set.views[0](0));
        let damaged = ["left", "right"].map(|view| said["damaged"][view]["left_out"].clone());
        let missing = u64::from(set.is_listed);
        assert_eq!(damaged, [Value::from(1 + missing), Value::from(1)], "{said}");
        assert_eq!(said["unpaired"]["left"], 1, "{said}");
        assert_eq!(said["unpaired"]["right"], 2, "{said}");
        assert!(stderr.contains("left out"), "{stderr}");
        // An image that is no image may be the first one, too.
        std::fs::write(at(0, 0), "").unwrap();
        let (said, _) = played(folder.path());
        assert_eq!(said["matched"], PAIRS - 4, "{}: {said}", set.views[0](0));
    }
}

#[test]
fn files_that_an_editor_or_a_copy_adds_change_nothing() {
    for set in &DATA_SETS {
        let folder = tempfile::tempdir().unwrap();
        set.write(folder.path());
        // macOS writes such a file beside each copied one.
        for name in (0..PAIRS).flat_map(|number| set.views.map(|view| view(number))) {
            let path = folder.path().join(name);
            let hidden = format!("._{}", path.file_name().unwrap().to_str().unwrap());
            std::fs::write(path.with_file_name(hidden), "Mac OS X").unwrap();
        }
        for (name, _) in set.lists {
            let list = folder.path().join(name);
            let text = std::fs::read_to_string(&list).unwrap().replace('\n', "\r\n");
            std::fs::write(&list, format!("\u{feff}{text}\r\n")).unwrap();
        }
        let (said, stderr) = played(folder.path());
        assert_eq!(said["matched"], PAIRS, "{said}");
        assert_eq!(said.get("damaged"), None, "{said}");
        assert!(!stderr.contains("left out"), "{stderr}");
    }
}

/// Returns the arguments of the streams that an error names.
fn streams_of(error: &str) -> Vec<String> {
    let mut parts = error.split('\'');
    let mut next = |flag: &str| {
        assert!(
            parts.next().is_some_and(|before| before.ends_with(&format!("{flag} "))),
            "{error}"
        );
        [flag.to_owned(), parts.next().unwrap().to_owned()]
    };
    [next("--left"), next("--right")].concat()
}

#[test]
fn a_folder_that_is_nearly_a_data_set_is_told_with_a_cure_that_works() {
    let [of_euroc, of_kitti, of_odometry, of_tartanair, ..] = &DATA_SETS;
    let without = |set: &DataSet, lists: &[&str]| {
        let folder = tempfile::tempdir().unwrap();
        set.write(folder.path());
        lists.iter().for_each(|list| std::fs::remove_file(folder.path().join(list)).unwrap());
        folder
    };
    // Without its lists EuRoC has the times in the names.
    let folder = without(of_euroc, &["mav0/cam0/data.csv", "mav0/cam1/data.csv"]);
    let (said, _) = played(folder.path());
    assert_eq!(said["matched"], PAIRS, "{said}");
    let refused = |folder: &Path, given: &str, what: &str| {
        let (status, _, stderr) = run(folder, &["run", given, "--headless"]);
        assert_eq!(status, 1, "{given}: {stderr}");
        let error = stderr.lines().find(|line| line.starts_with("error: ")).unwrap().to_owned();
        assert!(error.contains(what), "{what}: {error}");
        error
    };
    let play = |folder: &Path, error: &str| {
        let streams = streams_of(error);
        let streams: Vec<_> = streams.iter().map(String::as_str).collect();
        let said = statistics(folder, &[&streams[..], &["--headless"]].concat());
        assert_eq!(said["matched"], PAIRS, "{said}");
    };
    for camera in ["cam0", "cam1"] {
        for number in 0..PAIRS {
            let data = folder.path().join("mav0").join(camera).join("data");
            let old = data.join(format!("{}.png", euroc(number)));
            std::fs::rename(old, data.join(format!("{number}.png"))).unwrap();
        }
    }
    let error = refused(folder.path(), ".", "cam0/data.csv, the list of times, is missing");
    play(folder.path(), &error);
    let folder = without(of_odometry, &["times.txt"]);
    let error = refused(folder.path(), ".", "KITTI odometry, but not times.txt");
    play(folder.path(), &error);
    let folder = without(of_kitti, &["image_00/timestamps.txt", "image_01/timestamps.txt"]);
    play(folder.path(), &refused(folder.path(), ".", "image_00/data/%010d.png"));

    let folder = without(of_tartanair, &[]);
    let above = tempfile::tempdir().unwrap();
    std::fs::rename(folder.path(), above.path().join("P000")).unwrap();
    refused(above.path(), ".", "recordings in it are ./P000");
    refused(above.path(), "P000/image_left", "it is a part of one, which is given as ");
    let (said, _) = played(&above.path().join("P000"));
    assert_eq!(said["matched"], PAIRS, "{said}");
    std::fs::remove_dir_all(above.path().join("P000/image_right")).unwrap();
    refused(above.path(), "P000", "of TartanAir, but not image_right/*_right.png");
    // A view is no folder.
    let (status, _, stderr) = run(above.path(), &["run", "--left", "P000", "--right", "P000"]);
    assert!(status == 1 && stderr.contains("is a folder without pictures"), "{stderr}");
    let folder = without(of_euroc, &[]);
    let mav0 = PathBuf::from("mav0");
    std::fs::remove_dir_all(folder.path().join(mav0.join("cam1"))).unwrap();
    refused(folder.path(), ".", "only cam0 has images");
}
