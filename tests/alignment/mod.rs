//! Alignment of the views, measured on real pairs: unchanged, with injected errors, exchanged and
//! never rectified; and the messages of the program.

mod injected;
mod more;
mod program;
mod real;

use std::path::Path;

use stereod::DisparityRange;
use stereod::observe::alignment::{Limits, Measurement, Options, Verdict, measure};
use stereod_core::frame::Image;
use stereod_core::picture::still::read_still;
use stereod_core::picture::tone::Tone;

use crate::common::data::data;

/// Every sixteenth pair of EuRoC's V1_01, the names of the lossless frames.
const EUROC: [&str; 6] = ["000000", "000016", "000032", "000048", "000064", "000080"];

/// A pair of still frames.
struct Pair {
    name: String,
    left: Image,
    right: Image,
    disparities: usize,
}

impl Pair {
    fn read(folder: &Path, left: &str, right: &str, disparities: usize) -> Self {
        Self {
            name: folder.join(left).display().to_string(),
            left: read_still(&folder.join(left), Tone::default()).unwrap(),
            right: read_still(&folder.join(right), Tone::default()).unwrap(),
            disparities,
        }
    }

    fn options(&self) -> Options {
        let range = DisparityRange { min: 0, count: self.disparities };
        Options { range: Some(range), ..Options::default() }
    }

    fn measured(&self) -> (Option<Measurement>, Verdict) {
        judged(&self.left, &self.right, &self.options())
    }

    fn exchanged(&self) -> (Option<Measurement>, Verdict) {
        judged(&self.right, &self.left, &self.options())
    }
}

fn judged(left: &Image, right: &Image, options: &Options) -> (Option<Measurement>, Verdict) {
    let measurement = measure(left, right, options);
    (measurement, Limits::default().assess(measurement.as_ref(), Verdict::Unsure))
}

/// A pair of EuRoC, rectified or not.
fn euroc(folder: &Path, number: &str) -> Pair {
    Pair::read(folder, &format!("cam0/{number}.png"), &format!("cam1/{number}.png"), 64)
}

/// Rectified still pairs of every kind that is at hand.
fn rectified_pairs() -> Vec<Pair> {
    let mut pairs = Vec::new();
    if let Some(folder) = data("euroc_v1_01/rectified/png") {
        pairs.extend(EUROC.map(|number| euroc(&folder, number)));
    }
    if let Some(folder) = data("middlebury_v2") {
        for (name, disparities) in [("tsukuba", 16), ("venus", 32), ("cones", 64), ("teddy", 64)] {
            pairs.push(Pair::read(&folder.join(name), "imL.png", "imR.png", disparities));
        }
    }
    if let Some(folder) = data("middlebury_2006/aloe") {
        pairs.push(Pair::read(&folder, "aloeL.jpg", "aloeR.jpg", 224));
    }
    if let Some(folder) = data("kitti2015") {
        for name in ["000002_10", "000003_10", "000008_10", "000013_10", "000020_10"] {
            pairs.push(Pair::read(&folder.join(name), "image_2.png", "image_3.png", 128));
        }
    }
    pairs
}
