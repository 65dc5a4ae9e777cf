//! The main job in a real window, on a virtual screen.

use super::window_support::X;
use super::*;

const DEMO: [&str; 5] = ["--demo", "--demo-size", "320x240", "--window", "--stats"];

fn windowed(folder: &Path, x: &X, arguments: &[&str]) -> Command {
    let mut command = stereod(folder, &[&["run"], arguments].concat());
    command.env("DISPLAY", x.display());
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn ends_well(output: Output) -> Value {
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(0), "{stderr}");
    assert!(!stderr.contains("panicked"), "{stderr}");
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn a_run_in_a_window_ends_with_its_source_by_key_and_by_signal() {
    let Some(x) = X::start("a run in a window", (640, 480)) else { return };
    let folder = tempfile::tempdir().unwrap();

    let arguments = ["-", "--frames", "12", "--set", "window.at_end=close", "--record", "o.mkv"];
    let arguments = [&DEMO[..], &arguments].concat();
    let statistics = ends_well(windowed(folder.path(), &x, &arguments).output().unwrap());
    assert_eq!(statistics["matched"], 12);
    assert_eq!(statistics["outputs"].as_array().unwrap().len(), 2, "{statistics}");

    // Without an end of its own, until the user quits.
    let child = windowed(folder.path(), &x, &[&DEMO[..], &["-"]].concat()).spawn().unwrap();
    let window = x.window("stereod: demo scene");
    x.wait_for("disparity", |screen| {
        let colours = screen.pixels().map(|p| p.0).collect::<std::collections::HashSet<_>>();
        colours.len() > 40
    });
    x.key(&window, "q");
    let statistics = ends_well(child.wait_with_output().unwrap());
    assert!(statistics["matched"].as_u64().unwrap() > 0);

    let child = windowed(folder.path(), &x, &[&DEMO[..], &["-"]].concat()).spawn().unwrap();
    x.window("stereod: demo scene");
    // SAFETY: the process is our child and not yet waited for.
    assert_eq!(unsafe { libc::kill(child.id() as i32, libc::SIGTERM) }, 0);
    ends_well(child.wait_with_output().unwrap());
}
