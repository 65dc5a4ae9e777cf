//! `stereod batch`: pieces and shards of many recordings, and what becomes of them.

#[cfg(target_os = "linux")]
mod failures;
mod pieces;
mod stages;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use crate::common::outcome::{ended, outcome, wait_until};
use crate::common::program;
use crate::common::video_file::write_video;
use stereod_core::frame::StereoPair;
use stereod_io::source::demo::{DemoOptions, DemoSource};

/// Size of the images in these tests.
const SIZE: (usize, usize) = (96, 64);

/// Pairs of the demo scene from a seed.
fn scene(seed: u64, count: u64) -> Vec<StereoPair> {
    let (width, height) = SIZE;
    let options = DemoOptions { width, height, seed, ..DemoOptions::default() };
    let source = DemoSource::new(options).unwrap();
    (0..count).map(|number| source.pair(number)).collect()
}

/// Writes pairs as `NAME_left.mkv` and `NAME_right.mkv`, without loss, at 30 a second.
fn write_videos(folder: &Path, name: &str, pairs: &[StereoPair]) {
    let views: [fn(&StereoPair) -> &[u8]; 2] =
        [|pair| pair.left.pixels(), |pair| pair.right.pixels()];
    for (view, pixels) in ["left", "right"].into_iter().zip(views) {
        let time = |i: u64| std::time::Duration::from_nanos(i * 1_000_000_000 / 30);
        let buffers = (0..).zip(pairs).map(|(i, pair)| (pixels(pair).to_vec(), time(i))).collect();
        let path = folder.join(format!("{name}_{view}.mkv"));
        write_video(&path, ("GRAY8", SIZE.0, SIZE.1), buffers, 30, "avenc_ffv1 ! matroskamux");
    }
}

/// `stereod` with these arguments in `folder`.
fn stereod(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = program::stereod(arguments);
    command.current_dir(folder);
    command
}

/// `stereod batch ARGUMENTS` for small disparities.
fn batch(folder: &Path, arguments: &[&str]) -> Command {
    let small = ["-d", "24", "--preset", "fast", "--engine", "cpu"];
    stereod(folder, &[&["batch"], arguments, &small].concat())
}

/// Runs a command that must end with this status, and returns its outputs.
fn ends(command: &mut Command, expected: i32) -> (String, String) {
    let (status, stdout, stderr) = outcome(command);
    assert_eq!(status, expected, "{command:?}: {stdout}{stderr}");
    (stdout, stderr)
}

/// Runs a shard with `--json` that must end with this status, and returns its last line.
fn summary(command: &mut Command, expected: i32) -> Value {
    let (stdout, _) = ends(command.arg("--json"), expected);
    assert_eq!(stdout.lines().count(), 1, "{stdout}");
    let summary: Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!(summary["status"], expected, "{summary}");
    summary
}

/// Every file below `folder` that does not hold times, by its name.
fn files(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let pattern = folder.join("**/*");
    let found =
        glob::glob(pattern.to_str().unwrap()).unwrap().flatten().filter(|path| path.is_file());
    let name = |path: &Path| path.strip_prefix(folder).unwrap().to_str().unwrap().to_owned();
    let is_timeless = |path: &PathBuf| {
        let name = path.file_name().unwrap().to_str().unwrap();
        let with_times = [
            "stats.json",
            "manifest.json",
            "B3SUMS",
            "settings.toml",
            "run.json",
            ".stereod-files",
        ];
        !with_times.contains(&name)
    };
    found.filter(is_timeless).map(|path| (name(&path), fs::read(&path).unwrap())).collect()
}

/// Names in `folder`, also hidden ones.
fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name());
    let mut names: Vec<String> = entries.map(|name| name.into_string().unwrap()).collect();
    names.sort();
    names
}
