//! The main task in a real window, on a virtual screen.

use super::recording::files;
use super::*;
use crate::common::screen::X;

const DEMO: [&str; 5] = ["--demo", "--demo-size", "320x240", "--window", "--stats"];

pub(super) fn windowed(folder: &Path, x: &X, arguments: &[&str]) -> Command {
    let mut command = stereod(folder, &[&["run"], arguments].concat());
    command.env("DISPLAY", x.display());
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

pub(super) fn ends_well(output: Output) -> Value {
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(0), "{stderr}");
    assert!(!stderr.contains("panicked"), "{stderr}");
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Ends a run that writes files.
pub(super) fn quit(x: &X, window: &str, mut child: Child) -> Output {
    x.confirm(window, "q", || child.try_wait().unwrap().is_some());
    child.wait_with_output().unwrap()
}

#[test]
fn a_run_in_a_window_ends_with_its_source_by_key_and_by_signal() {
    let Some(x) = X::start("a run in a window", (640, 480)) else { return };
    let folder = tempfile::tempdir().unwrap();

    let arguments = ["-", "--frames", "12", "--set", "window.at_end=close", "--record", "o.mkv"];
    let arguments = [&DEMO[..], &arguments].concat();
    let statistics = ends_well(ended(windowed(folder.path(), &x, &arguments).spawn().unwrap()));
    assert_eq!(statistics["matched"], 12);
    assert_eq!(statistics["outputs"].as_array().unwrap().len(), 2, "{statistics}");

    // The run has no end of its own; the user quits it.
    let child = windowed(folder.path(), &x, &[&DEMO[..], &["-"]].concat()).spawn().unwrap();
    let window = x.window("stereod: demo scene");
    x.wait_for("disparity", |screen| {
        let colours = screen.pixels().map(|p| p.0).collect::<std::collections::HashSet<_>>();
        colours.len() > 40
    });
    x.key(&window, "q");
    let statistics = ends_well(ended(child));
    assert!(statistics["matched"].as_u64().unwrap() > 0);

    let child = windowed(folder.path(), &x, &[&DEMO[..], &["-"]].concat()).spawn().unwrap();
    x.window("stereod: demo scene");
    signal(&child, libc::SIGTERM);
    ends_well(ended(child));
}

/// A key that ends a recording has to be pressed twice; Escape first leaves the full screen.
#[test]
fn a_recording_is_not_ended_by_one_key() {
    let Some(x) = X::start("a recording in a window", (640, 480)) else { return };
    let folder = tempfile::tempdir().unwrap();
    let arguments = ["-", "--frames", "0", "--record", "o.mkv"];
    let mut child = windowed(folder.path(), &x, &[&DEMO[..], &arguments].concat()).spawn().unwrap();
    let window = x.window("stereod: demo scene");
    let length = || std::fs::metadata(folder.path().join("o.mkv")).map_or(0, |file| file.len());
    let mut goes_on = || {
        let before = length();
        wait_until("the recording grows", || {
            assert!(child.try_wait().unwrap().is_none(), "the run has ended");
            length() > before + 100_000
        });
    };
    goes_on();
    for key in ["f", "Escape", "Escape"] {
        x.key(&window, key);
        goes_on();
    }
    // Another question takes the place of that one.
    x.key(&window, "w");
    x.key(&window, "q");
    goes_on();
    let statistics = ends_well(quit(&x, &window, child));
    assert_eq!(statistics["recorded"], recorded(&folder.path().join("o.mkv")).len());
}

#[test]
fn files_on_demand_begin_with_a_key() {
    let Some(x) = X::start("files on demand", (640, 480)) else { return };
    let folder = tempfile::tempdir().unwrap();
    let arguments = ["-", "--frames", "0", "--record", "o.mkv", "--on-demand"];
    let child = windowed(folder.path(), &x, &[&DEMO[..], &arguments].concat()).spawn().unwrap();
    let window = x.window("stereod: demo scene");
    x.wait_for("disparity", |screen| {
        let colours = screen.pixels().map(|p| p.0).collect::<std::collections::HashSet<_>>();
        colours.len() > 40
    });
    // A slow machine may take the second key for a letter of the name.
    let file = || files(folder.path(), ".mkv").pop();
    assert_eq!(file(), None);
    let mut patience = Patience::begin();
    while file().is_none() {
        assert!(!patience.is_over(), "no recording");
        x.key(&window, "r");
        std::thread::sleep(Duration::from_millis(300));
        x.key(&window, "Return");
        let asked = Instant::now();
        while file().is_none() && asked.elapsed() < Duration::from_secs(5) {
            std::thread::sleep(Duration::from_millis(20));
        }
    }
    let statistics = ends_well(quit(&x, &window, child));
    let written = recorded(&file().unwrap()).len();
    assert_eq!(statistics["recorded"], written);
    assert!(statistics["matched"].as_u64().unwrap() > written as u64, "{statistics}");
}

/// A setting that is changed in the panel changes the disparity, and the saved settings reproduce
/// the result.
#[test]
fn tuned_in_the_window_written_down_and_read_back() {
    let Some(x) = X::start("tuning in a window", (800, 600)) else { return };
    let folder = tempfile::tempdir().unwrap();
    write_eyes(folder.path(), 1, 1);
    let eye = |video: &str| {
        format!(
            "filesrc location={video} ! matroskademux ! avdec_ffv1 ! imagefreeze is-live=true ! \
             video/x-raw,framerate=25/1"
        )
    };
    let (left, right) = (eye("l.mkv"), eye("r.mkv"));
    let streams = ["--left", left.as_str(), "--right", right.as_str(), "--stats", "-"];
    let arguments =
        ["--window", "-d", "24", "--pictures", "out", "--window-settings", "tuned.toml"];
    // A window that is high enough for the panel.
    let view = ["--set", "window.view=disparity"];
    let arguments = [&streams[..], &arguments[..], &view].concat();
    let child = windowed(folder.path(), &x, &arguments).spawn().unwrap();
    let window = x.window("stereod: ");
    // A tooltip would cover the knobs.
    x.mouse(&window, (20, 20));
    let out = folder.path().join("out");
    let pictures = || {
        let entries = std::fs::read_dir(&out).into_iter().flatten();
        let mut paths: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
        paths.retain(|path| path.extension().is_some_and(|extension| extension == "png"));
        paths.sort();
        paths
    };
    wait_until("pictures", || pictures().len() >= 3);
    let (_, _, width, height) = x.geometry(&window);
    // The panel without the line that says whether all changes are in effect.
    let panel = |screen: &image::RgbaImage| {
        let part = |top, height| {
            image::imageops::crop_imm(screen, width - 250, top, 240, height).to_image()
        };
        (part(0, 50), part(72, height - 80))
    };
    // One key at a time, because egui moves on by one for all Tabs between two frames. The effect
    // of a key may take several frames to be painted, and must not be mistaken for the effect of
    // the next key.
    let press = |key: &str, what: &str| {
        let (before, pressed) = (panel(&x.screen()), Instant::now());
        x.key(&window, key);
        x.wait_for(what, |screen| panel(screen) != before);
        let mut last = panel(&x.screen());
        // At least as long as this machine took for the first one.
        let pause = pressed.elapsed().max(Duration::from_millis(100));
        wait_until("the panel to come to rest", || {
            std::thread::sleep(pause);
            let now = panel(&x.screen());
            let rests = now == last;
            last = now;
            rests
        });
    };
    press("t", "the panel");
    // A number can be turned, and then typed.
    let presets = ["fast", "balanced", "dense", "accurate"];
    let before = [&["close", "reset", "write"][..], &presets, &["the cost", "its numbers"]];
    before.concat().into_iter().for_each(|what| press("Tab", what));
    press("space", "they are unfolded");
    for what in ["a window", "what a bit of the census counts"] {
        press("Tab", what);
    }
    for _ in 0..4 {
        press("Left", "a smaller number");
    }
    x.save("tuning-by-key");
    // One key asks, and the second one writes.
    let written = folder.path().join("tuned.toml");
    x.confirm(&window, "w", || written.exists());
    // More than were on their way.
    let seen = pictures().len();
    wait_until("pictures of the new settings", || pictures().len() >= seen + 30);
    let statistics = ends_well(quit(&x, &window, child));
    assert!(statistics["retuned"].as_u64().unwrap() > 0, "{statistics}");
    let text = std::fs::read_to_string(&written).unwrap();
    assert!(text.contains("[matching]\ndisparities = 24\ncensus_weight = 18\n"), "{text}");

    let tuned = Matching { disparities: Some(24), census_weight: 18, ..Matching::default() };
    let pair = demo_pair(0);
    let expected = |matching: &Matching| {
        stored(&match_pair(&pair.left, &pair.right, &matching.params().unwrap()))
    };
    let read = |path: &Path| image::open(path).unwrap().into_luma16().into_raw();
    let all = pictures();
    assert_eq!(read(&all[0]), expected(&Matching { disparities: Some(24), ..Matching::default() }));
    assert_eq!(read(&all[all.len() - 1]), expected(&tuned));
    assert_ne!(read(&all[0]), read(&all[all.len() - 1]));

    let again =
        ["run", "--demo", "--frames", "1", "--demo-size", "96x64", "--headless", "--stats", "-"];
    let (status, stdout, stderr) =
        run(folder.path(), &[&again[..], &["--config", "tuned.toml"]].concat());
    assert_eq!(status, 0, "{stderr}");
    let again: Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!(again["settings"]["matching"], statistics["settings"]["matching"]);
}

/// A camera that is unplugged is reported until it is back.
#[test]
fn a_lost_camera_is_on_the_screen_until_it_is_back() {
    let Some(x) = X::start("a lost camera", (800, 600)) else { return };
    let folder = tempfile::tempdir().unwrap();
    // The right view ends after a second, and cannot be opened again for as long as its file is away.
    write_eyes(folder.path(), 1, 1);
    let steady = "filesrc location=l.mkv ! matroskademux ! avdec_ffv1 ! imagefreeze is-live=true ! \
                  video/x-raw,framerate=25/1";
    let ending = "filesrc location=r.mkv ! matroskademux ! avdec_ffv1 ! \
                  imagefreeze is-live=true num-buffers=50 ! video/x-raw,framerate=25/1";
    let arguments = ["--left", steady, "--right", ending, "--window", "-d", "24", "--stats", "-"];
    let child = windowed(folder.path(), &x, &arguments).spawn().unwrap();
    let window = x.window("stereod: ");
    let file = folder.path().join("r.mkv");
    let hidden = folder.path().join("hidden.mkv");
    // Amber and green of the banners, over any image.
    let amber = |screen: &image::RgbaImage| {
        let like = |p: &image::Rgba<u8>| {
            p.0[0].abs_diff(140) < 24 && p.0[1].abs_diff(84) < 24 && p.0[2] < 40
        };
        screen.pixels().filter(|p| like(p)).count()
    };
    x.wait_for("the picture", |screen| screen.pixels().any(|p| p.0[..3] != [0, 0, 0]));
    std::fs::rename(&file, &hidden).unwrap();
    x.wait_for("that it is lost", |screen| amber(screen) > 2000);
    x.save("lost-camera");
    std::fs::rename(&hidden, &file).unwrap();
    x.wait_for("that it is back", |screen| amber(screen) < 200);
    x.save("back-camera");
    x.key(&window, "q");
    let statistics = ends_well(ended(child));
    assert!(statistics["live"]["right"]["reconnects"].as_u64().unwrap() > 0, "{statistics}");
}

/// If its display goes away, Xlib would end the process, or crash in a later call.
#[test]
fn a_run_outlives_its_display() {
    let Some(x) = X::start("a display that goes away", (640, 480)) else { return };
    let folder = tempfile::tempdir().unwrap();
    let arguments = ["-", "--frames", "0", "--record", "o.mkv"];
    let mut child = windowed(folder.path(), &x, &[&DEMO[..], &arguments].concat()).spawn().unwrap();
    x.window("stereod: demo scene");
    let length = || std::fs::metadata(folder.path().join("o.mkv")).map_or(0, |file| file.len());
    wait_until("the recording grows", || length() > 20_000);
    drop(x);
    let before = length();
    wait_until("the recording grows on", || {
        assert!(child.try_wait().unwrap().is_none(), "the run ended with its display");
        length() > before + 200_000
    });
    signal(&child, libc::SIGTERM);
    // winit may panic at that moment, which is reported.
    let output = ended(child);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let statistics: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(statistics["recorded"], recorded(&folder.path().join("o.mkv")).len());
}
