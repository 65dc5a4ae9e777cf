//! `stereod calibrate` as a whole: images and videos of boards in, a calibration out.

mod boards;
mod opencv;
mod rendered;
pub mod scene;
mod usage;
mod window;

use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::common::data::data;
use crate::common::numbered_videos;
use crate::common::outcome::{ended, outcome, outcome_of, wait_until};
use crate::common::program::stereod;

/// `stereod calibrate` in a folder.
fn command(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = stereod(&[&["calibrate"], arguments].concat());
    command.current_dir(folder);
    command
}

/// Exit status, standard output and standard error.
fn run(folder: &Path, arguments: &[&str]) -> (i32, String, String) {
    outcome(&mut command(folder, arguments))
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

/// Reports whether two numbers differ by less than a fraction of the second.
fn close(found: f64, expected: f64, part: f64, what: &str) {
    let off = (found / expected - 1.0).abs();
    assert!(off < part, "{what}: {found} instead of {expected}, {:.2} % off", 100.0 * off);
}

/// Name and kind of everything that was skipped.
fn left_out(report: &Value) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let pairs = report["pairs"].as_array().unwrap().iter();
    pairs
        .filter(|pair| !pair["left_out"].is_null())
        .map(|pair| (text(&pair["name"]), text(&pair["left_out"]["kind"])))
        .collect()
}
