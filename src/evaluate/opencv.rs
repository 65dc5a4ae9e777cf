//! OpenCV's StereoSGBM for comparison, through Python's module `cv2`.

use std::io::Write;
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};

use stereod_core::frame::{DisparityMap, DisparityRange, Image, Matched, StereoPair};
use stereod_core::pool::Pooled;

/// The program that imports it.
const PYTHON: &str = "python3";

/// Program that tells OpenCV's version, or matches a pair.
const SCRIPT: &str = include_str!("opencv.py");

#[derive(Clone, Debug)]
pub struct OpenCv {
    /// Name with its version.
    pub name: String,
}

impl OpenCv {
    pub fn find() -> Result<Self> {
        let version = run(&[], &[])?;
        let version = String::from_utf8_lossy(&version);
        Ok(Self { name: format!("OpenCV {} StereoSGBM", version.trim()) })
    }

    /// Matches a rectified pair `repeat` times. Returns the map and the median of the times.
    pub fn matched(
        &self,
        [left, right]: [Image; 2],
        range: DisparityRange,
        repeat: u32,
    ) -> Result<(Matched, Duration)> {
        let (width, height) = (left.width(), left.height());
        let numbers = [width.to_string(), height.to_string(), range.min.to_string()];
        let numbers = [&numbers[..], &[range.count.to_string(), repeat.to_string()]].concat();
        let answer = run(&numbers, &[left.pixels(), right.pixels()])?;
        let (seconds, map) = answer.split_first_chunk().context("OpenCV's answer is too short")?;
        let seconds = f64::from_le_bytes(*seconds);
        let (values, rest) = map.as_chunks();
        ensure!(
            rest.is_empty() && values.len() == width * height && seconds >= 0.0,
            "OpenCV's answer is no map of {width}x{height}"
        );
        let values = values.iter().map(|&value| i16::from_le_bytes(value)).collect();
        let time = Duration::try_from_secs_f64(seconds)?;
        let map = DisparityMap::new(width, height, range, Pooled::unpooled(values));
        Ok((Matched::new(StereoPair::of_stills(left, right), map), time))
    }
}

fn run(arguments: &[String], input: &[&[u8]]) -> Result<Vec<u8>> {
    let mut command = Command::new(PYTHON);
    command.args(["-c", SCRIPT]).args(arguments);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().with_context(|| format!("cannot start {PYTHON}"))?;
    if let Some(mut stdin) = child.stdin.take() {
        // It answers only after it has read everything. If it has ended early, its messages say why.
        let _ = input.iter().try_for_each(|part| stdin.write_all(part));
    }
    let answer = child.wait_with_output()?;
    if !answer.status.success() {
        let messages = String::from_utf8_lossy(&answer.stderr);
        let last = messages.lines().rfind(|line| !line.trim().is_empty()).unwrap_or("no message");
        bail!("{PYTHON} failed: {last}");
    }
    Ok(answer.stdout)
}
