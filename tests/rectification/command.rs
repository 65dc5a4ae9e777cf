//! `stereod rectify`, as a process.

use std::fs;
use std::ops::ControlFlow;
use std::path::Path;
use std::time::Duration;

use stereod::Eye;
use stereod_calibration::{StereoCalibration, format};
use stereod_core::frame::{Image, StereoPair};
use stereod_core::picture::orientation::Orient;
use stereod_core::picture::png::{encode_grey, encode_rgb};
use stereod_core::picture::still::{read_colours, read_still};
use stereod_core::picture::tone::Tone;
use stereod_core::pool::Pool;
use stereod_core::rectify::Rectifier;
use stereod_io::control::Switch;
use stereod_io::ebml::read_tags;
use stereod_io::labels::Labels;
use stereod_io::sink::video::{RectifiedVideo, RectifiedVideoOptions, read_recording_tags};
use stereod_io::source::gst::{GstOptions, Keep, open};
use stereod_io::source::spec::SourceSpec;

use crate::common::outcome::outcome;
use crate::common::program::stereod;

const SIZE: (usize, usize) = (96, 64);

/// Two small cameras with lens distortion, turned against each other.
const RIG: &str = r#"{
  "image_size": [96, 64],
  "K1": [[80, 0, 47], [0, 80, 31], [0, 0, 1]], "D1": [-0.2, 0.05, 0.001, -0.001, 0],
  "K2": [[81, 0, 48], [0, 81, 32], [0, 0, 1]], "D2": [-0.21, 0.06, 0, 0, 0],
  "R": [[0.99980001, 0, 0.01999867], [0, 1, 0], [-0.01999867, 0, 0.99980001]],
  "T": [-0.1, 0.002, 0.001]
}"#;

/// A folder with the rig, its rectifier, and raw images of both views.
struct Bench {
    folder: tempfile::TempDir,
    rig: StereoCalibration,
}

impl Bench {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("rig.json"), RIG).unwrap();
        let rig = format::read(&[folder.path().join("rig.json")]).unwrap().calibration;
        Self { folder, rig }
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.folder.path().join(name)
    }

    fn rectifier(&self, alpha: Option<f64>) -> Rectifier {
        self.rig.rectifier(alpha).unwrap()
    }

    /// Exit status, standard output and standard error of `stereod rectify ARGUMENTS`.
    fn rectify(&self, arguments: &[&str]) -> (i32, String, String) {
        let mut command = stereod(&[&["rectify"], arguments].concat());
        outcome(command.current_dir(self.folder.path()))
    }

    /// As `rectify`, for a run that must succeed.
    fn succeed(&self, arguments: &[&str]) -> String {
        let (status, stdout, stderr) = self.rectify(arguments);
        assert_eq!(status, 0, "{arguments:?}: {stderr}");
        stdout
    }

    /// As `rectify`, for a run that must fail in this way.
    fn fail(&self, arguments: &[&str], expected: i32) -> String {
        let (status, _, stderr) = self.rectify(arguments);
        assert_eq!(status, expected, "{arguments:?}: {stderr}");
        stderr
    }

    fn write_grey(&self, name: &str, picture: &Image) {
        let file = encode_grey(picture.pixels(), picture.width(), picture.height()).unwrap();
        fs::write(self.path(name), file).unwrap();
    }

    /// Raw videos of both views, without loss.
    fn write_videos(&self, pairs: &[(Duration, Duration)]) {
        for eye in [Eye::Left, Eye::Right] {
            let options = RectifiedVideoOptions {
                eye,
                size: SIZE,
                rate: Some(20.0),
                geometry: None,
                colour: false,
                labels: Labels::default(),
            };
            let mut video =
                RectifiedVideo::create(&self.path(&format!("{eye}.mkv")), &options).unwrap();
            for (number, &(left, right)) in pairs.iter().enumerate() {
                let time = if eye == Eye::Left { left } else { right };
                video.write(&[&raw(eye, number)], time, Duration::ZERO).unwrap();
            }
            video.finish().unwrap();
        }
    }
}

/// An image that differs for every view and number.
fn raw(eye: Eye, number: usize) -> Image {
    let seed = 17 * number + if eye == Eye::Left { 0 } else { 90 };
    Image::from_fn(SIZE.0, SIZE.1, |x, y| (x * x / 7 + 3 * y + x * y / 5 + seed) as u8)
}

fn expected(rectifier: &Rectifier, eye: Eye, raw: &Image) -> Vec<u8> {
    let (width, height) = rectifier.size();
    let mut pixels = vec![0; width * height];
    rectifier.map(eye).apply(raw, &mut pixels);
    pixels
}

fn play(left: &Path, right: &Path) -> Vec<StereoPair> {
    let [left, right] = [left, right].map(|path| path.display().to_string());
    let keep = Keep { colours: Some(Pool::new()), ..Keep::default() };
    let options = GstOptions { keep, ..GstOptions::default() };
    let mut source = open(&SourceSpec::two(left, right), &options).unwrap();
    let mut pairs = Vec::new();
    source
        .run(&Switch::default(), &mut |pair, _| {
            pairs.push(pair);
            ControlFlow::Continue(())
        })
        .unwrap();
    pairs
}

#[test]
fn pictures() {
    let bench = Bench::new();
    bench.write_grey("l.png", &raw(Eye::Left, 0));
    bench.write_grey("r.png", &raw(Eye::Right, 0));
    for (arguments, alpha) in [(&[][..], None), (&["--alpha", "1"], Some(1.0))] {
        let told = bench.succeed(
            &[&["l.png", "r.png", "--calibration", "rig.json", "-o", "a/b"], arguments].concat(),
        );
        for file in ["a/b/left.png", "a/b/right.png", "a/b/rectified.toml"] {
            assert!(told.contains(file) && bench.path(file).exists(), "{told}");
        }
        let rectifier = bench.rectifier(alpha);
        for eye in [Eye::Left, Eye::Right] {
            let written =
                read_still(&bench.path(&format!("a/b/{eye}.png")), Tone::default()).unwrap();
            let expected = expected(&rectifier, eye, &raw(eye, 0));
            assert_eq!(written.pixels(), expected, "{eye} {alpha:?}");
            // Alpha 1 leaves margins, which are black.
            assert!(alpha.is_none() || rectifier.map(eye).mask().is_some());
        }
    }
}

#[test]
fn colours_stay() {
    let bench = Bench::new();
    let channels = [0, 1, 2].map(|number| raw(Eye::Left, number));
    let pixels = (0..SIZE.0 * SIZE.1).flat_map(|i| channels.each_ref().map(|c| c.pixels()[i]));
    let file = encode_rgb(&pixels.collect::<Vec<u8>>(), SIZE.0, SIZE.1).unwrap();
    fs::write(bench.path("l.png"), file).unwrap();
    bench.write_grey("r.png", &raw(Eye::Right, 0));
    bench.succeed(&["l.png", "r.png", "--calibration", "rig.json", "-o", "."]);
    let written = read_colours(&bench.path("left.png"), Orient::Ignore).unwrap();
    let rectifier = bench.rectifier(None);
    for (written, channel) in written.iter().zip(&channels) {
        assert_eq!(written.pixels(), expected(&rectifier, Eye::Left, channel));
    }
    let right = read_colours(&bench.path("right.png"), Orient::Ignore).unwrap();
    assert_eq!(right[0].pixels(), right[2].pixels());

    bench.succeed(&["l.png", "r.png", "--calibration", "rig.json", "--grey", "-o", "."]);
    let raw = read_still(&bench.path("l.png"), Tone::default()).unwrap();
    let grey = image::open(bench.path("left.png")).unwrap();
    assert_eq!(grey.color(), image::ColorType::L8);
    assert_eq!(grey.as_bytes(), expected(&rectifier, Eye::Left, &raw));
}

#[test]
fn videos_keep_their_colours() {
    let bench = Bench::new();
    for eye in [Eye::Left, Eye::Right] {
        for number in 0..2 {
            let channels = [0, 1, 2].map(|channel| raw(eye, 3 * number + channel));
            let pixels =
                (0..SIZE.0 * SIZE.1).flat_map(|i| channels.each_ref().map(|c| c.pixels()[i]));
            let file = encode_rgb(&pixels.collect::<Vec<u8>>(), SIZE.0, SIZE.1).unwrap();
            fs::write(bench.path(&format!("{eye}{number}.png")), file).unwrap();
        }
    }
    let usual = ["left%d.png", "right%d.png", "--calibration", "rig.json", "-o", "out"];
    bench.succeed(&usual);
    let rectifier = bench.rectifier(None);
    let pairs = play(&bench.path("out/left.mkv"), &bench.path("out/right.mkv"));
    assert_eq!(pairs.len(), 2);
    for (number, pair) in pairs.iter().enumerate() {
        for (eye, image) in [(Eye::Left, &pair.left), (Eye::Right, &pair.right)] {
            for channel in 0..3 {
                let expected = expected(&rectifier, eye, &raw(eye, 3 * number + channel));
                for (i, expected) in expected.into_iter().enumerate() {
                    let got = image.rgb_at(i % image.width(), i / image.width())[channel];
                    // Colours become luma and differences when they are read, once here and once there.
                    assert!(
                        got.abs_diff(expected) <= 5,
                        "{eye} {number} {channel} {i}: {got}, not {expected}"
                    );
                }
            }
        }
    }
    bench.succeed(&[&usual[..], &["--grey"]].concat());
    let pairs = play(&bench.path("out/left.mkv"), &bench.path("out/right.mkv"));
    assert!(pairs.len() == 2 && pairs[0].left.chroma().is_none());
    let raw = read_still(&bench.path("left0.png"), Tone::default()).unwrap();
    assert_eq!(pairs[0].left.pixels(), expected(&rectifier, Eye::Left, &raw));
}

#[test]
fn videos_keep_every_pixel_and_time() {
    let bench = Bench::new();
    let ms = Duration::from_millis;
    // Irregular intervals, with the right view a little late and then a little early.
    let times = [(0, 3), (50, 53), (100, 98), (170, 170), (200, 201)].map(|(l, r)| (ms(l), ms(r)));
    bench.write_videos(&times);
    let calibrated = ["--calibration", "rig.json", "--alpha", "1", "-o", "out"];
    let told = bench.succeed(&[&["left.mkv", "right.mkv"], &calibrated[..]].concat());
    assert!(told.contains("5 pairs"), "{told}");
    let rectifier = bench.rectifier(Some(1.0));
    let pairs = play(&bench.path("out/left.mkv"), &bench.path("out/right.mkv"));
    assert_eq!(pairs.len(), 5);
    for (number, (pair, (left, right))) in pairs.iter().zip(times).enumerate() {
        for (eye, image) in [(Eye::Left, &pair.left), (Eye::Right, &pair.right)] {
            let expected = expected(&rectifier, eye, &raw(eye, number));
            assert_eq!(image.pixels(), expected, "pair {number}, {eye}");
        }
        assert_eq!(pair.timestamp, left);
        assert_eq!(pair.skew_ns, Some(right.as_nanos() as i64 - left.as_nanos() as i64));
    }
    // The videos name their cameras in tags, and so does the file next to them.
    let toml = bench.path("out/rectified.toml");
    let cameras = format::read(std::slice::from_ref(&toml)).unwrap();
    assert!(cameras.calibration.comes_rectified() && cameras.notes.is_empty(), "{cameras:?}");
    let rectification = cameras.calibration.rectification.unwrap();
    assert_eq!(rectification.geometry(), rectifier.geometry());
    let depth = |eyes: [&str; 2], more: &[&str]| {
        let [left, right] = eyes.map(|eye| format!("out/{eye}.mkv"));
        let usual =
            ["run", "--left", &left, "--right", &right, "--headless", "-d", "16", "--depth"];
        let outputs = ["--record", "depth.mkv"];
        let mut command = stereod(&[&usual[..], &outputs, more].concat());
        outcome(command.current_dir(bench.folder.path()))
    };
    for more in [&[][..], &["--calibration", "out/rectified.toml"]] {
        let (status, _, stderr) = depth(["left", "right"], more);
        assert_eq!(status, 0, "{stderr}");
        let tags = read_recording_tags(&bench.path("depth.mkv")).unwrap();
        assert_eq!(tags.geometry, Some(rectifier.geometry()), "{more:?}");
    }
    let (status, _, stderr) = depth(["right", "left"], &[]);
    assert!(status == 2 && stderr.contains("exchange the two inputs"), "{stderr}");
    assert_eq!(depth(["right", "left"], &["--swap"]).0, 0);
    let (status, _, stderr) = depth(["left", "right"], &["--calibration", "rig.json"]);
    assert!(status == 2 && stderr.contains("has rectified"), "{stderr}");
    // A part, by the times of the left view.
    let part = ["left.mkv", "right.mkv", "--start", "0.09", "--duration", "0.1"];
    let told = bench.succeed(&[&part[..], &calibrated[..]].concat());
    assert!(told.contains("2 pairs"), "{told}");
    let pairs = play(&bench.path("out/left.mkv"), &bench.path("out/right.mkv"));
    for (number, pair) in (2..4).zip(&pairs) {
        let expected = expected(&rectifier, Eye::Right, &raw(Eye::Right, number));
        assert_eq!(pair.right.pixels(), expected, "pair {number}");
    }
    // Fewer if fewer are requested.
    let told =
        bench.succeed(&[&["left.mkv", "right.mkv", "--frames", "2"], &calibrated[..]].concat());
    assert!(told.contains("2 pairs"), "{told}");
    assert_eq!(play(&bench.path("out/left.mkv"), &bench.path("out/right.mkv")).len(), 2);
}

#[test]
fn videos_keep_the_number_of_their_first_frame() {
    let bench = Bench::new();
    for number in 1001..1004 {
        for eye in [Eye::Left, Eye::Right] {
            bench.write_grey(&format!("{eye}.{number}.png"), &raw(eye, number));
        }
    }
    let shot = ["left.####.png", "right.$F4.png", "--frames", "1..3"];
    let told = bench.succeed(&[&shot[..], &["--calibration", "rig.json", "-o", "out"]].concat());
    assert!(told.contains("2 pairs"), "{told}");
    for eye in ["left", "right"] {
        let tags = read_tags(&bench.path(&format!("out/{eye}.mkv")), true).unwrap();
        let number = tags.iter().find(|(name, _)| name == "FIRST_FRAME");
        assert_eq!(number.map(|(_, value)| &**value), Some("1002"), "{tags:?}");
    }
}

#[test]
fn wrong_usage_is_told_and_nothing_is_written() {
    let bench = Bench::new();
    bench.write_grey("l.png", &raw(Eye::Left, 0));
    bench.write_grey("r.png", &raw(Eye::Right, 0));
    bench.write_grey("small.png", &Image::from_fn(50, 40, |x, y| (x + y) as u8));
    bench.write_videos(&[(Duration::ZERO, Duration::ZERO)]);
    fs::write(bench.path("broken.json"), &RIG[..RIG.len() / 2]).unwrap();
    let usual = ["l.png", "r.png", "-o", "out"];
    let with = |arguments: &[&'static str]| [&usual[..], arguments].concat();

    let message = bench.fail(&usual, 2);
    assert!(message.contains("--calibration FILE"), "{message}");
    let message = bench.fail(&with(&["--calibration", "nowhere.json"]), 2);
    assert!(message.contains("nowhere.json"), "{message}");
    let message = bench.fail(&with(&["--calibration", "broken.json"]), 2);
    assert!(message.contains("broken.json"), "{message}");
    let message = bench.fail(&with(&["--calibration", "rig.json", "--alpha", "1.5"]), 2);
    assert!(message.contains("alpha"), "{message}");
    let mixed = ["l.png", "right.mkv", "--calibration", "rig.json", "-o", "out"];
    let message = bench.fail(&mixed, 2);
    assert!(message.contains("l.png is a picture, but right.mkv is none"), "{message}");
    let small = ["small.png", "small.png", "--calibration", "rig.json", "-o", "out"];
    let message = bench.fail(&small, 2);
    assert!(message.contains("96x64") && message.contains("50x40"), "{message}");
    let unlike = ["l.png", "small.png", "--calibration", "rig.json", "-o", "out"];
    let message = bench.fail(&unlike, 2);
    assert!(message.contains("96x64") && message.contains("50x40"), "{message}");
    let missing = ["l.png", "missing.png", "--calibration", "rig.json", "-o", "out"];
    let message = bench.fail(&missing, 1);
    assert!(message.contains("missing.png"), "{message}");
    // The output would replace its own input.
    let onto = ["left.mkv", "right.mkv", "--calibration", "rig.json", "-o", "."];
    let message = bench.fail(&onto, 2);
    assert!(message.contains("left.mkv"), "{message}");
    assert!(!bench.path("out").exists());
}

/// [`RIG`] with a right camera of its own size and lens.
fn unlike_rig() -> String {
    RIG.replace("image_size\": [96, 64]", "image_size_1\": [96, 64], \"image_size_2\": [72, 50]")
        .replace("[[81, 0, 48], [0, 81, 32], [0, 0, 1]]", "[[60, 0, 36], [0, 60.5, 24], [0, 0, 1]]")
}

#[test]
fn unlike_cameras_are_brought_to_one_size() {
    let bench = Bench::new();
    fs::write(bench.path("unlike.json"), unlike_rig()).unwrap();
    let rig = format::read(&[bench.path("unlike.json")]).unwrap().calibration;
    assert_eq!((rig.right.width, rig.right.height), (72, 50));
    let rectifier = rig.rectifier(None).unwrap();
    let left = raw(Eye::Left, 0);
    let right = Image::from_fn(72, 50, |x, y| (2 * x + 5 * y + x * y / 9) as u8);
    bench.write_grey("l.png", &left);
    bench.write_grey("r.png", &right);
    bench.succeed(&["l.png", "r.png", "--calibration", "unlike.json", "-o", "out"]);
    for (eye, raw) in [(Eye::Left, &left), (Eye::Right, &right)] {
        let rectified = read_still(&bench.path(&format!("out/{eye}.png")), Tone::default());
        assert_eq!(rectified.unwrap().pixels(), expected(&rectifier, eye, raw), "{eye}");
    }
    // The same through files of other formats, and in a run of two streams.
    let run = |arguments: &[&str]| outcome(stereod(arguments).current_dir(bench.folder.path()));
    let (status, _, stderr) = run(&["calibration", "convert", "unlike.json", "-o", "unlike.yml"]);
    assert_eq!(status, 0, "{stderr}");
    let streams = ["run", "--headless", "--left", "l.png", "--right", "r.png", "-d", "16"];
    let with = |more: &[&'static str]| run(&[&streams[..], more].concat());
    let outputs = ["--calibration", "unlike.yml", "--record", "o.mkv"];
    let (status, _, stderr) = with(&outputs);
    assert!(status == 0 && stderr.contains("96x64 and 72x50"), "{stderr}");
    let (status, _, stderr) = with(&["--record", "p.mkv"]);
    assert!(status == 1 && stderr.contains("--calibration FILE with cameras"), "{stderr}");
    assert!(!bench.path("p.mkv").exists());
}
