//! Moving through a recording in the window, by keys and by mouse.

use super::window::{ends_well, quit, windowed};
use super::*;
use crate::common::screen::X;

/// Pairs of the recording, which has 30 a second.
const PAIRS: u64 = 90;

/// Size of its views.
const VIEW: (usize, usize) = (320, 240);

const BOTH: [&str; 8] =
    ["--left", "l.mkv", "--right", "r.mkv", "--window", "--stats", "-", "--disparities=24"];

fn write_recording(folder: &Path) {
    write_recording_at(30, folder);
}

/// Writes the recording with so many pairs per second.
fn write_recording_at(rate: u32, folder: &Path) {
    let (width, height) = VIEW;
    let options = DemoOptions { width, height, ..DemoOptions::default() };
    let scene = DemoSource::new(options).unwrap();
    let pairs: Vec<_> = (0..PAIRS).map(|number| scene.pair(number)).collect();
    let lefts: Vec<_> = pairs.iter().map(|pair| pair.left.pixels().to_vec()).collect();
    let rights: Vec<_> = pairs.iter().map(|pair| pair.right.pixels().to_vec()).collect();
    write_grey_at(rate, &folder.join("l.mkv"), VIEW, &lefts, LOSSLESS);
    write_grey_at(rate, &folder.join("r.mkv"), VIEW, &rights, LOSSLESS);
}

/// Waits until a pair is in the window; before that, there are only the colours of the overlay.
fn wait_for_pair(x: &X) {
    x.wait_for("a pair", |screen| {
        let colours = screen.pixels().map(|p| p.0).collect::<std::collections::HashSet<_>>();
        colours.len() > 100
    });
}

/// A run in a window whose pair is read from the names of snapshots.
struct Shown<'a> {
    x: &'a X,
    window: String,
    folder: &'a Path,
}

impl Shown<'_> {
    fn key(&self, key: &str) {
        self.x.key(&self.window, key);
    }

    /// Takes a snapshot. Returns the number of the pair, and the file of its disparity.
    fn snapshot(&self) -> (u64, std::path::PathBuf) {
        let files = || {
            let entries =
                std::fs::read_dir(self.folder).unwrap().map(|entry| entry.unwrap().path());
            let mut maps: Vec<_> =
                entries.filter(|path| path.to_string_lossy().ends_with("-disparity.png")).collect();
            maps.sort();
            maps
        };
        let before = files();
        self.key("s");
        let mut pressed = Instant::now();
        wait_until("a snapshot", || {
            // A window that has just opened may miss a key.
            if before.is_empty() && pressed.elapsed() > Duration::from_secs(5) {
                self.key("s");
                pressed = Instant::now();
            }
            files().len() > before.len()
        });
        let file = files().into_iter().find(|file| !before.contains(file)).unwrap();
        let name = file.file_name().unwrap().to_str().unwrap().to_owned();
        let number = name.strip_suffix("-disparity.png").unwrap().rsplit('-').next().unwrap();
        (number.parse().unwrap(), file)
    }

    /// Waits until a pair is shown whose number is as expected.
    fn wait_for(&self, what: &str, is_so: impl Fn(u64) -> bool) -> u64 {
        let mut number = 0;
        wait_until(what, || {
            number = self.snapshot().0;
            is_so(number)
        });
        number
    }

    /// Presses a key, and waits for a pair.
    fn moves(&self, key: &str, number: u64) {
        self.key(key);
        self.wait_for(&format!("pair {number} after {key}"), |shown| shown == number);
    }
}

#[test]
fn a_recording_is_moved_through_by_keys_and_by_mouse() {
    let Some(x) = X::start("a timeline", (1280, 720)) else { return };
    let folder = tempfile::tempdir().unwrap();
    write_recording(folder.path());
    std::fs::write(folder.path().join("rig.toml"), "[matching]\nuniqueness = 5\n").unwrap();
    let arguments = [&BOTH[..], &["--config", "rig.toml"]].concat();
    let child = windowed(folder.path(), &x, &arguments).spawn().unwrap();
    let shown = Shown { x: &x, window: x.window("stereod: "), folder: folder.path() };
    wait_for_pair(&x);
    // Stepping pauses.
    shown.key("period");
    shown.moves("Home", 0);
    x.save("timeline-begin");
    shown.moves("period", 1);
    shown.moves("period", 2);
    shown.moves("comma", 1);
    shown.moves("comma", 0);
    shown.moves("comma", 0);
    shown.moves("End", PAIRS - 1);
    x.save("timeline-end");
    shown.moves("period", PAIRS - 1);
    shown.moves("comma", PAIRS - 2);

    // The mouse, in the middle of the track.
    let (_, _, width, height) = x.geometry(&shown.window);
    x.mouse(&shown.window, (width / 2, height - 21));
    x.click();
    let middle = shown.wait_for("the middle", |number| number.abs_diff(PAIRS / 2) <= 2);

    // Settings that change while it is paused are tried on the pair that is shown.
    let (_, before) = shown.snapshot();
    std::fs::write(folder.path().join("rig.toml"), "[matching]\nuniqueness = 40\n").unwrap();
    signal(&child, libc::SIGHUP);
    let read = |path: &Path| image::open(path).unwrap().into_luma16().into_raw();
    wait_until("the same pair with other settings", || {
        let (number, after) = shown.snapshot();
        assert_eq!(number, middle);
        read(&after) != read(&before)
    });

    // A marked part repeats.
    shown.key("bracketleft");
    shown.moves("period", middle + 1);
    shown.moves("period", middle + 2);
    shown.key("bracketright");
    shown.key("a");
    x.save("timeline-marked");
    shown.key("space");
    let part = middle..=middle + 2;
    let end = shown.wait_for("the end of the part", |number| number == middle + 2);
    shown.wait_for("its begin again", |number| {
        assert!(part.contains(&number), "{number} is not in {part:?}");
        number < end
    });
    x.resize(&shown.window, (1280, 720));
    let bright = |screen: &image::RgbaImage, [left, top, right, bottom]: [u32; 4]| {
        let places = (top..bottom).flat_map(|y| (left..right).map(move |x| (x, y)));
        places.filter(|&(x, y)| screen.get_pixel(x, y).0[..3] == [245; 3]).count()
    };
    shown.key("h");
    x.wait_for("the help", |screen| bright(screen, [284, 136, 996, 584]) > 200);
    x.save("timeline-help");
    shown.key("h");
    shown.key("t");
    x.wait_for("the panel", |screen| bright(screen, [980, 100, 1280, 700]) > 200);
    x.save("timeline-panel");
    shown.key("t");
    shown.key("q");
    ends_well(ended(child));
}

/// The map of the first settings stays left of the line while the present one is right of it.
#[test]
fn settings_are_compared_on_one_pair() {
    let Some(x) = X::start("a comparison", (1280, 720)) else { return };
    let folder = tempfile::tempdir().unwrap();
    write_recording(folder.path());
    let configure = |cost: &str| {
        let text = format!("[matching]\ncost = '{cost}'\n[window]\nview = 'disparity'\n");
        std::fs::write(folder.path().join("rig.toml"), text).unwrap();
    };
    configure("census");
    let arguments = [&BOTH[..], &["--config", "rig.toml"]].concat();
    let child = windowed(folder.path(), &x, &arguments).spawn().unwrap();
    let shown = Shown { x: &x, window: x.window("stereod: "), folder: folder.path() };
    wait_for_pair(&x);
    shown.key("period");
    shown.moves("Home", 0);
    let (left, top, width, height) = x.geometry(&shown.window);
    // The bar stands below the picture.
    assert!(width == 640 && height > 480, "{width}x{height}");
    // Rows without text, banners and the handle of the line.
    let band = |screen: &image::RgbaImage, from: u32, to: u32| {
        image::imageops::crop_imm(screen, left + from, top + 255, to - from, 40).to_image()
    };
    // The notices of snapshots are gone once the band is as in the last snapshot.
    let (_, last) = shown.snapshot();
    let view = last.to_string_lossy().replace("-disparity.png", "-view.png");
    // It is written after the disparity.
    wait_until("the view", || image::open(&view).is_ok());
    let view = image::open(view).unwrap().into_rgba8();
    let view = image::imageops::resize(&view, 640, 480, image::imageops::FilterType::Nearest);
    let first = image::imageops::crop_imm(&view, 0, 255, 640, 40).to_image();
    x.wait_for("the map without notices", |screen| band(screen, 0, 640) == first);

    shown.key("b");
    x.wait_for("the line", |screen| screen.get_pixel(left + 320, top + 150).0[..3] == [245; 3]);
    configure("ad");
    signal(&child, libc::SIGHUP);
    let part =
        |from: u32, to: u32| image::imageops::crop_imm(&first, from, 0, to - from, 40).to_image();
    x.wait_for("another map on the right", |screen| band(screen, 330, 640) != part(330, 640));
    x.save("timeline-wipe");
    assert_eq!(band(&x.screen(), 0, 310), part(0, 310), "the kept map");
    let right = band(&x.screen(), 450, 640);
    x.drag(&shown.window, (323, 240), (400, 250));
    x.wait_for("more of the kept map", |screen| band(screen, 0, 390) == part(0, 390));
    assert_eq!(band(&x.screen(), 450, 640), right);
    // A drag elsewhere leaves the line.
    x.drag(&shown.window, (200, 160), (250, 160));
    shown.key("b");
    x.wait_for("the present map alone", |screen| {
        band(screen, 450, 640) == right && band(screen, 0, 390) != part(0, 390)
    });
    shown.key("q");
    ends_well(ended(child));
}

#[test]
fn a_part_is_marked_and_can_be_left() {
    let Some(x) = X::start("the timeline of a part", (1280, 720)) else { return };
    let folder = tempfile::tempdir().unwrap();
    write_recording(folder.path());
    let part = ["--start", "1", "--duration", "0.5"];
    let child = windowed(folder.path(), &x, &[&BOTH[..], &part].concat()).spawn().unwrap();
    let shown = Shown { x: &x, window: x.window("stereod: "), folder: folder.path() };
    wait_for_pair(&x);
    // It waits at the end of the part.
    shown.wait_for("its last pair", |number| {
        assert!((30..45).contains(&number), "{number}");
        number == 44
    });
    x.save("timeline-part");
    shown.moves("Home", 0);
    shown.key("q");
    ends_well(ended(child));
}

#[test]
fn messages_and_images_are_moved_through_too() {
    let Some(x) = X::start("the timeline of messages", (1280, 720)) else { return };
    for source in [&["a.mcap"][..], &["--left", "l%02d.pgm", "--right", "r%02d.pgm"]] {
        let folder = tempfile::tempdir().unwrap();
        recordings::write_demo(&folder.path().join("a.mcap"), 40);
        for number in 0..40 {
            let pair = demo_pair(number);
            for (eye, image) in [("l", &pair.left), ("r", &pair.right)] {
                let header = format!("P5\n{} {}\n255\n", SIZE.0, SIZE.1);
                let path = folder.path().join(format!("{eye}{number:02}.pgm"));
                std::fs::write(path, [header.as_bytes(), image.pixels()].concat()).unwrap();
            }
        }
        let arguments = [source, &BOTH[4..]].concat();
        let child = windowed(folder.path(), &x, &arguments).spawn().unwrap();
        let shown = Shown { x: &x, window: x.window("stereod: "), folder: folder.path() };
        wait_for_pair(&x);
        shown.key("period");
        shown.moves("Home", 0);
        // Forwards, which reads on, and backwards.
        let (_, _, width, height) = x.geometry(&shown.window);
        x.mouse(&shown.window, (width / 2, height - 21));
        x.click();
        let middle = shown.wait_for("the middle", |number| number.abs_diff(20) <= 2);
        shown.moves("comma", middle - 1);
        shown.moves("period", middle);
        shown.moves("End", 39);
        shown.moves("comma", 38);
        shown.key("q");
        ends_well(ended(child));
    }
}

#[test]
fn without_its_display_a_recording_plays_to_its_end() {
    let Some(x) = X::start("a timeline without its display", (640, 480)) else { return };
    let folder = tempfile::tempdir().unwrap();
    write_recording(folder.path());
    let child = windowed(folder.path(), &x, &BOTH).spawn().unwrap();
    x.window("stereod: ");
    wait_for_pair(&x);
    drop(x);
    // winit may panic at that moment, which is reported.
    let output = ended(child);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let statistics: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(statistics["matched"], PAIRS, "{statistics}");
}

#[test]
fn nothing_moves_while_something_is_written() {
    let Some(x) = X::start("a timeline and a recording", (1280, 720)) else { return };
    let folder = tempfile::tempdir().unwrap();
    // It lasts for longer than the test.
    write_recording_at(2, folder.path());
    let grey = ["--set", "window.view=left", "--set", "source.pace=realtime"];
    let output = [&grey[..], &["--record", "o.mkv"]].concat();
    let child = windowed(folder.path(), &x, &[&BOTH[..], &output].concat()).spawn().unwrap();
    let window = x.window("stereod: ");
    wait_for_pair(&x);
    x.key(&window, "Home");
    // The banner with the reason is red.
    x.wait_for("the reason", |screen| {
        let red = |p: &image::Rgba<u8>| p.0[0] > 120 && p.0[1] < 60 && p.0[2] < 60;
        screen.pixels().filter(|p| red(p)).count() > 2000
    });
    x.save("timeline-while-writing");
    let path = folder.path().join("o.mkv");
    // A jump to the beginning would repeat pairs.
    let size = || path.metadata().map_or(0, |file| file.len());
    let before = size();
    wait_until("the recording grows", || size() > before);
    // A job that is ended in its window says so, as after Ctrl-C.
    let output = quit(&x, &window, child);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(130), "{stderr}");
    assert!(stderr.contains("stopped in the window after "), "{stderr}");
    let statistics: Value = serde_json::from_slice(&output.stdout).unwrap();
    let matched = statistics["matched"].as_u64().unwrap();
    let written = recorded(&path);
    assert_eq!(written.len() as u64, matched, "{statistics}");
    let whole = ["--left", "l.mkv", "--right", "r.mkv", "--headless", "--record", "whole.mkv"];
    self::statistics(folder.path(), &whole);
    let whole = recorded(&folder.path().join("whole.mkv"));
    assert!(written == whole[..written.len()], "the recording jumps");
}
