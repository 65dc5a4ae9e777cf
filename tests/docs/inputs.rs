//! Small files under the names that the documents use.

use std::fs;
use std::path::Path;
use std::time::Duration;

use stereod_calibration::board::Board;
use stereod_core::frame::Image;

use crate::calibrate::scene::{Painter, copy, save, small_eyes, stands};
use crate::common::numbered_videos::write;
use crate::common::outcome::outcome;
use crate::common::program::stereod;

/// The board that the documents calibrate with.
const BOARD: &str = "chessboard:9x6";

/// Frames for which the board is held still.
const HELD: usize = 6;

/// Writes the inputs into a folder: a chessboard in many poses before two cameras, as videos, images and a
/// calibration.
pub fn write_inputs(folder: &Path) {
    let board = Board::new(stereod_calibration::board::pattern(BOARD).unwrap(), 0.036).unwrap();
    let [left, right] = small_eyes().map(|eye| Painter::new(&eye, &board));
    let pairs: Vec<[Image; 2]> =
        stands().iter().map(|stand| [left.paint(stand), right.paint(stand)]).collect();
    let video = |names: [&str; 2], coding: &str, picture: &dyn Fn(&[Image; 2]) -> Image| {
        let frames = pairs.iter().flat_map(|pair| (0..HELD).map(|_| picture(pair)));
        let frames: Vec<(Image, Duration)> =
            frames.zip(0u32..).map(|(image, i)| (image, Duration::from_secs(1) * i / 30)).collect();
        write(&folder.join(names[0]), &frames, 30, coding);
        fs::copy(folder.join(names[0]), folder.join(names[1])).unwrap();
    };
    let mp4 = "x264enc speed-preset=ultrafast ! h264parse ! mp4mux";
    video(["left.mp4", "LEFT"], mp4, &|[left, _]| copy(left));
    video(["right.mp4", "RIGHT"], mp4, &|[_, right]| copy(right));
    let coding = "avenc_ffv1 ! matroskamux";
    video(["both.mkv", "BOTH"], coding, &|[left, right]| side_by_side(left, right));
    for (eye, name) in ["left", "right"].into_iter().enumerate() {
        fs::create_dir(folder.join(name)).unwrap();
        for (number, pair) in pairs.iter().take(3).enumerate() {
            save(&pair[eye], &folder.join(name).join(format!("{number:06}.png")));
        }
        save(&pairs[4][eye], &folder.join(name).with_extension("png"));
    }
    save(&side_by_side(&pairs[4][0], &pairs[4][1]), &folder.join("both.png"));
    let arguments = ["--left", "left.mp4", "--right", "right.mp4", "--board", BOARD];
    let more = ["--square", "0.025", "-o", "rig.toml"];
    let mut calibrate = stereod(&[&["calibrate"], &arguments[..], &more].concat());
    let (status, _, stderr) = outcome(calibrate.current_dir(folder));
    assert_eq!(status, 0, "{stderr}");
}

/// Supplies an input of another name or kind than [`write_inputs`] wrote, if `name` is one and does not exist.
pub fn supply(folder: &Path, name: &str) {
    let path = folder.join(name);
    let kind = path.extension().and_then(|kind| kind.to_str()).unwrap_or_default();
    if path.exists() || name.contains(['%', '*', ',', '!', ':']) {
        return;
    }
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    let views = ["right", "both", "left"];
    let view = views.into_iter().find(|view| name.to_lowercase().contains(view)).unwrap_or("left");
    match kind {
        "png" | "jpg" | "jpeg" | "pgm" | "ppm" | "tif" | "tiff" => {
            let picture = image::open(folder.join(view).with_extension("png")).unwrap();
            picture.into_luma8().save(path).unwrap();
        }
        "toml" | "yml" | "yaml" | "json" | "xml" | "conf" => {
            fs::copy(folder.join("rig.toml"), path).unwrap();
        }
        "mp4" | "mkv" | "avi" | "mov" | "nut" | "ts" => {
            let kind = if view == "both" { "mkv" } else { "mp4" };
            fs::copy(folder.join(view).with_extension(kind), path).unwrap();
        }
        "mcap" => {
            let source = ["run", "--left", "left.mp4", "--right", "right.mp4"];
            let outputs = ["-d", "16", "--headless", "--mcap", "left,right", "--record", name];
            let cameras = ["--focal", "400", "--baseline", "0.1"];
            let mut record = stereod(&[&source[..], &outputs, &cameras].concat());
            let (status, _, stderr) = outcome(record.current_dir(folder));
            assert_eq!(status, 0, "{stderr}");
        }
        "txt" => fs::write(path, "left.mp4 right.mp4\n").unwrap(),
        // The content decides, not the name.
        "svo2" => {
            supply(folder, "plain.mcap");
            fs::copy(folder.join("plain.mcap"), path).unwrap();
        }
        _ => {}
    }
}

fn side_by_side(left: &Image, right: &Image) -> Image {
    let width = left.width();
    Image::from_fn(2 * width, left.height(), |x, y| {
        if x < width { left.row(y)[x] } else { right.row(y)[x - width] }
    })
}

/// Writes a data set with one pair of known disparity: a textured wall at 5 pixels.
pub fn write_dataset(folder: &Path) {
    // Pairs without truth, in the layouts of the benchmarks.
    let name = folder.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let (folder, left, right) = match name {
        "testing" => (folder.into(), "image_2/000000_10.png", "image_3/000000_10.png"),
        "trainingF" | "testF" | "two_view_training" | "two_view_test" => {
            (folder.join("scene"), "im0.png", "im1.png")
        }
        _ => (folder.to_path_buf(), "left.png", "right.png"),
    };
    for picture in [left, right] {
        fs::create_dir_all(folder.join(picture).parent().unwrap()).unwrap();
    }
    let texture = |x: usize, y: usize| {
        let blot = (x / 2).wrapping_mul(0x9e37_79b9) ^ (y / 2).wrapping_mul(0x85eb_ca6b);
        (blot.wrapping_mul(0xc2b2_ae35) >> 13) as u8
    };
    let picture = |shift: usize| Image::from_fn(128, 64, |x, y| texture(x + shift, y));
    save(&picture(0), &folder.join(left));
    save(&picture(5), &folder.join(right));
    if left != "left.png" {
        return;
    }
    save(&Image::from_fn(128, 64, |_, _| 5), &folder.join("truth.png"));
    let item = r#"{"left": "left.png", "right": "right.png", "gt": "truth.png", "gt_scale": 1, "ndisp": 16}"#;
    fs::write(folder.join("item.json"), item).unwrap();
}
