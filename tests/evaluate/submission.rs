//! Files for the benchmarks' uploads.

use std::fs;
use std::path::PathBuf;

use super::{Data, SHIFT};

const SIZE: (u32, u32) = (96, 48);

impl Data {
    /// Every file below a folder, sorted.
    fn files(&self, folder: &str) -> Vec<String> {
        let (mut files, mut folders) = (Vec::new(), vec![self.at(folder)]);
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).unwrap() {
                let path: PathBuf = entry.unwrap().path();
                match path.is_dir() {
                    true => folders.push(path),
                    false => {
                        files.push(path.strip_prefix(self.0.path()).unwrap().display().to_string())
                    }
                }
            }
        }
        files.sort();
        files
    }

    /// Submits these data sets to a benchmark into `up`; returns standard output.
    fn submit(&self, datasets: &[&str], benchmark: &str, more: &[&str]) -> String {
        let usual = ["--submission", benchmark, "-o", "up", "-d", "16", "--repeat", "1"];
        let (status, stdout, stderr) = self.evaluate(&[datasets, &usual, more].concat());
        assert_eq!((status, stderr.as_str()), (0, ""), "{benchmark}");
        stdout
    }
}

#[test]
fn kitti() {
    let data = Data::new();
    for name in ["000000_10", "000000_11", "000001_10"] {
        data.wall(
            &format!("testing/image_2/{name}.png"),
            &format!("testing/image_3/{name}.png"),
            SIZE,
        );
        data.wall(&format!("2012/image_0/{name}.png"), &format!("2012/image_1/{name}.png"), SIZE);
        data.wall(
            &format!("2012/colored_0/{name}.png"),
            &format!("2012/colored_1/{name}.png"),
            SIZE,
        );
    }
    let stdout = data.submit(&["testing"], "kitti", &["--subpixel", "off", "--fill", "row"]);
    assert!(stdout.starts_with("Whole maps, without the truth\n"), "{stdout}");
    assert_eq!(data.files("up"), ["up/disp_0/000000_10.png", "up/disp_0/000001_10.png"]);
    let map = image::open(data.at("up/disp_0/000001_10.png")).unwrap();
    assert_eq!((map.color(), map.width(), map.height()), (image::ColorType::L16, SIZE.0, SIZE.1));
    let wall = SHIFT as u16 * 256;
    assert!(map.to_luma16().pixels().all(|pixel| pixel[0] == wall));
    data.submit(&["testing"], "kitti", &["--subpixel", "off", "--min-confidence", "90"]);
    let map = image::open(data.at("up/disp_0/000001_10.png")).unwrap().to_luma16();
    let of = |value: u16| map.pixels().filter(|pixel| pixel[0] == value).count();
    // The rest is unknown.
    assert!(of(0) > 0 && of(wall) > 4000 && of(0) + of(wall) == 96 * 48);

    fs::remove_dir_all(data.at("up")).unwrap();
    data.submit(&["2012"], "kitti", &[]);
    assert_eq!(data.files("up"), ["up/000000_10.png", "up/000001_10.png"]);
}

#[test]
fn middlebury_and_eth3d() {
    let data = Data::new();
    for scene in
        ["MiddEval3/trainingQ/Adirondack", "MiddEval3/testQ/Crusade", "two_view_test/lakeside_1l"]
    {
        data.wall(&format!("{scene}/im0.png"), &format!("{scene}/im1.png"), SIZE);
    }
    data.submit(&["MiddEval3"], "middlebury", &["--fill", "rays", "--fill-max", "1023"]);
    assert_eq!(
        data.files("up"),
        [
            "up/testQ/Crusade/disp0stereod.pfm",
            "up/testQ/Crusade/timestereod.txt",
            "up/trainingQ/Adirondack/disp0stereod.pfm",
            "up/trainingQ/Adirondack/timestereod.txt"
        ]
    );
    let time = fs::read_to_string(data.at("up/testQ/Crusade/timestereod.txt")).unwrap();
    assert!(time.trim_end().parse::<f64>().is_ok_and(|seconds| seconds > 0.0), "{time}");
    let map = fs::read(data.at("up/testQ/Crusade/disp0stereod.pfm")).unwrap();
    assert!(map.starts_with(b"Pf\n96 48\n-1.0\n") && map.len() == 14 + 96 * 48 * 4);

    fs::remove_dir_all(data.at("up")).unwrap();
    data.submit(&["MiddEval3/testQ"], "middlebury", &[]);
    assert_eq!(data.files("up")[0], "up/testQ/Crusade/disp0stereod_s.pfm");

    fs::remove_dir_all(data.at("up")).unwrap();
    data.submit(&["two_view_test"], "eth3d", &[]);
    let names =
        ["lakeside_1l.pfm", "lakeside_1l.txt"].map(|name| format!("up/low_res_two_view/{name}"));
    assert_eq!(data.files("up"), names);
    let text = fs::read_to_string(data.at(&names[1])).unwrap();
    assert!(
        text.strip_prefix("runtime ").is_some_and(|time| time.trim_end().parse::<f64>().is_ok()),
        "{text}"
    );
}

#[test]
fn wrong_usage() {
    let data = Data::new();
    data.wall("two_view_test/a/im0.png", "two_view_test/a/im1.png", SIZE);
    data.described("wall");
    let fail = |arguments: &[&str]| {
        let (status, _, stderr) = data.evaluate(arguments);
        assert_eq!(status, 2, "{arguments:?}: {stderr}");
        assert!(!data.at("up").exists());
        stderr
    };
    let usual = ["two_view_test", "--submission", "kitti", "-o", "up"];
    assert!(fail(&usual).contains("is not an image of KITTI"));
    let usual = ["wall", "--submission", "eth3d", "-o", "up"];
    assert!(fail(&usual).contains("is not an image of ETH3D"));
    assert!(fail(&["two_view_test", "--submission", "eth3d"]).contains("--output"));
    assert!(fail(&["two_view_test", "-o", "up"]).contains("--submission"));
    // Without a submission, pairs need a truth.
    assert!(fail(&["two_view_test"]).contains("1 folders hold pictures, but no truth"));
    let report = ["--json", "up/low_res_two_view/a.txt"];
    let same = ["two_view_test", "--submission", "eth3d", "-o", "up", report[0], report[1]];
    fs::create_dir_all(data.at("up/low_res_two_view")).unwrap();
    let (status, _, stderr) = data.evaluate(&same);
    assert!(status == 2 && stderr.contains("are the same file"), "{stderr}");
}
