//! `stereod calibrate` as a whole: pictures and videos of boards in, a calibration out.

mod boards;
mod opencv;
mod rendered;
mod scene;
#[path = "../test_data/mod.rs"]
mod test_data;
mod usage;
#[path = "../ingest/videos.rs"]
#[allow(dead_code, reason = "only the writer is used here")]
mod videos;
mod window;
#[path = "../window_support/mod.rs"]
#[allow(dead_code, reason = "only the screen is used here")]
mod window_support;

use std::path::Path;
use std::process::{Command, Output, Stdio};

use serde_json::Value;
use test_data::data;

/// `stereod calibrate` in a folder, without a display and blind to the machine's own configuration.
fn command(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_stereod"));
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("STEREOD_") || name == "RUST_LOG" {
            command.env_remove(name);
        }
    }
    for display in ["DISPLAY", "WAYLAND_DISPLAY", "WAYLAND_SOCKET"] {
        command.env_remove(display);
    }
    command.arg("calibrate").args(arguments).current_dir(folder);
    command.env("XDG_CONFIG_HOME", "/nonexistent").stdin(Stdio::null());
    command
}

/// Exit status, standard output and standard error.
fn run(folder: &Path, arguments: &[&str]) -> (i32, String, String) {
    let Output { status, stdout, stderr } = command(folder, arguments).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).expect("output is UTF-8");
    let (stdout, stderr) = (text(stdout), text(stderr));
    assert!(!stderr.contains("panicked"), "{arguments:?}: {stderr}");
    (status.code().expect("no signal"), stdout, stderr)
}

/// The report of a calibration that must succeed; it is written as out.toml.
fn report(folder: &Path, arguments: &[&str]) -> Value {
    let (status, stdout, stderr) =
        run(folder, &[arguments, &["-o", "out.toml", "--json", "-"]].concat());
    assert_eq!(status, 0, "{arguments:?}: {stderr}");
    serde_json::from_str(&stdout).unwrap_or_else(|error| panic!("{error}: {stdout}"))
}

/// A number of a report.
fn number(report: &Value, key: &str) -> f64 {
    report.pointer(key).and_then(Value::as_f64).unwrap_or_else(|| panic!("{key} in {report}"))
}

/// Whether two numbers differ by less than a part of the second.
fn close(found: f64, expected: f64, part: f64, what: &str) {
    let off = (found / expected - 1.0).abs();
    assert!(off < part, "{what}: {found} instead of {expected}, {:.2} % off", 100.0 * off);
}

/// Name and kind of everything that was left out.
fn left_out(report: &Value) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let pairs = report["pairs"].as_array().unwrap().iter();
    pairs
        .filter(|pair| !pair["left_out"].is_null())
        .map(|pair| (text(&pair["name"]), text(&pair["left_out"]["kind"])))
        .collect()
}
