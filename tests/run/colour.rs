//! Colour from the source to all outputs that show the left image: streams, previews and point
//! clouds.

use std::path::Path;

use image::{Rgb, RgbImage};
use serde_json::json;

use super::*;

/// Greatest difference of two colours in any channel.
fn off(a: &[u8], b: &[u8]) -> u8 {
    a.iter().zip(b).map(|(a, b)| a.abs_diff(*b)).max().unwrap()
}

/// Raw images of a left view that shows `pattern` in this format.
fn streamed(folder: &Path, pattern: &str, format: &str, view: &str) -> Vec<u8> {
    let eye = |pattern| {
        format!(
            "videotestsrc num-buffers=3 pattern={pattern} \
             ! video/x-raw,format={format},width=64,height=48,framerate=25/1"
        )
    };
    let (left, right) = (eye(pattern), eye("white"));
    let arguments = ["--left", &left, "--right", &right, "--headless", "--set", "source.pace=fast"];
    let stream = ["--stream", "filesink location=o.raw", "--stream-view", view];
    let statistics = statistics(folder, &[&arguments[..], &stream].concat());
    assert_eq!(statistics["matched"], json!(3), "{statistics}");
    assert_eq!(statistics["written"], json!({ "stream": 3 }), "{statistics}");
    std::fs::read(folder.join("o.raw")).unwrap()
}

#[test]
fn the_left_picture_is_streamed_in_its_colours() {
    let folder = tempfile::tempdir().unwrap();
    for (pattern, colour) in
        [("red", [255, 0, 0]), ("green", [0, 255, 0]), ("blue", [0, 0, 255]), ("white", [255; 3])]
    {
        for format in ["I420", "YUY2", "NV12", "RGB"] {
            let pixels = streamed(folder.path(), pattern, format, "left");
            assert_eq!(pixels.len(), 3 * 64 * 48 * 4, "{pattern} {format}");
            for pixel in pixels.as_chunks::<4>().0 {
                assert!(off(&pixel[..3], &colour) <= 3, "{pattern} {format}: {pixel:?}");
            }
        }
    }
    // Next to the disparity, which is unknown and therefore grey.
    let both = streamed(folder.path(), "red", "I420", "side-by-side");
    for row in both.chunks_exact(128 * 4) {
        assert!(off(&row[63 * 4..][..3], &[255, 0, 0]) <= 3, "{row:?}");
        assert_eq!(row[64 * 4..][..3], [112; 3]);
    }
    // Grey sources have only one byte a pixel.
    assert_eq!(streamed(folder.path(), "red", "GRAY8", "left").len(), 3 * 64 * 48);
}

#[test]
fn a_preview_shows_both_in_colour() {
    let folder = tempfile::tempdir().unwrap();
    let eye = "videotestsrc num-buffers=5 pattern=green \
               ! video/x-raw,format=I420,width=64,height=48,framerate=25/1";
    let arguments = ["--left", eye, "--right", eye, "--headless", "--preview", "p.mp4"];
    statistics(folder.path(), &[&arguments[..], &["--preview-view", "side-by-side"]].concat());
    let decode = "qtdemux ! h264parse ! avdec_h264 ! videoconvert ! video/x-raw,format=RGB";
    let frames = player::Player::open(&folder.path().join("p.mp4"), decode).unwrap().play();
    assert_eq!(frames.len(), 5);
    for frame in frames {
        assert_eq!(frame.bytes.len(), 128 * 48 * 3);
        let at = |x: usize, y: usize| &frame.bytes[(y * 128 + x) * 3..][..3];
        assert!(off(at(20, 20), &[0, 255, 0]) <= 12, "{:?}", at(20, 20));
    }
}

/// The left image of pair `number`, in orange.
fn orange(number: u64) -> RgbImage {
    let left = demo_pair(number).left;
    RgbImage::from_fn(left.width() as u32, left.height() as u32, |x, y| {
        let grey = left.row(y as usize)[x as usize];
        Rgb([grey, grey / 2 + 20, 40])
    })
}

/// Place and colour of every point of a binary PLY file.
fn points(path: &Path) -> Vec<([f32; 3], [u8; 3])> {
    let file = std::fs::read(path).unwrap();
    let header = b"end_header\n";
    let end = file.windows(header.len()).position(|w| w == header).unwrap() + header.len();
    let float = |bytes: &[u8]| f32::from_le_bytes(bytes.try_into().unwrap());
    let point = |point: &[u8; 15]| {
        let place = [0, 4, 8].map(|at| float(&point[at..at + 4]));
        (place, [point[12], point[13], point[14]])
    };
    file[end..].as_chunks::<15>().0.iter().map(point).collect()
}

#[test]
fn point_clouds_of_a_video_have_the_colours_of_its_left_pictures() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    for eye in ["l", "r", "c"] {
        std::fs::create_dir(at(eye)).unwrap();
    }
    for number in 0..3 {
        let name = format!("{number:03}.png");
        orange(number).save(at("l").join(&name)).unwrap();
        let right = demo_pair(number).right;
        let (width, height) = (right.width() as u32, right.height() as u32);
        let right = image::GrayImage::from_raw(width, height, right.pixels().to_vec()).unwrap();
        right.save(at("r").join(&name)).unwrap();
    }
    let (width, height) = SIZE;
    let run_into = |folder_of_clouds: &str| {
        let arguments = ["run", "--left", "l/%03d.png", "--right", "r/%03d.png", "-d", "24"];
        let cameras = ["--focal", "80", "--baseline", "0.1", "--headless"];
        let clouds = ["--clouds", folder_of_clouds];
        run(folder.path(), &[&arguments[..], &cameras, &clouds].concat())
    };
    let (status, _, stderr) = run_into("c");
    assert_eq!(status, 0, "{stderr}");
    for number in 0..3 {
        let points = points(&at("c").join(format!("{number:06}.ply")));
        assert!(points.len() > 500, "{} points", points.len());
        let picture = orange(number);
        for ([x, y, z], colour) in points {
            // The principal point is the centre of the picture.
            let column = (80.0 * x / z + (width - 1) as f32 / 2.0).round() as u32;
            let row = (80.0 * y / z + (height - 1) as f32 / 2.0).round() as u32;
            let expected = picture.get_pixel(column, row).0;
            assert!(off(&colour, &expected) <= 2, "({column}, {row}): {colour:?}, {expected:?}");
        }
    }
    let described = std::fs::read_to_string(at("c/clouds.json")).unwrap();
    assert!(
        described.contains("metres") && described.contains("\"focal_px\": 80.0"),
        "{described}"
    );

    // Clouds of an earlier run are replaced; files of others and copies stay, and everything stays if
    // the cameras are unknown.
    std::fs::copy(at("c/000000.ply"), at("c/000007.ply")).unwrap();
    let (status, _, stderr) = run_into("c");
    assert!(status == 1 && stderr.contains("000007.ply"), "{status}: {stderr}");
    std::fs::rename(at("c/000007.ply"), at("copy.ply")).unwrap();
    std::fs::remove_file(at("c/000002.ply")).unwrap();
    assert_eq!(run_into("c").0, 0);
    assert!(at("c/000002.ply").exists());
    std::fs::create_dir(at("other")).unwrap();
    std::fs::write(at("other/000001.ply"), "ply\nformat ascii 1.0\n").unwrap();
    let (status, _, stderr) = run_into("other");
    assert!(status == 1 && stderr.contains("000001.ply"), "{status}: {stderr}");
    assert_eq!(std::fs::read(at("other/000001.ply")).unwrap(), b"ply\nformat ascii 1.0\n");
    let both = ["--pictures", "c", "--clouds", "./c", "--focal", "80", "--baseline", "0.1"];
    let (status, _, stderr) = run(folder.path(), &[&["run", "--demo"][..], &both].concat());
    assert!(
        status == 2 && stderr.contains("--pictures and --clouds are the same folder"),
        "{stderr}"
    );
    assert!(at("c/000002.ply").exists());
    let (status, _, stderr) =
        run(folder.path(), &["run", "--left", "l.mkv", "--right", "r.mkv", "--clouds", "new"]);
    assert!(status == 2 && stderr.contains("--clouds needs to know the cameras"), "{stderr}");
    assert!(!at("new").exists());
}
