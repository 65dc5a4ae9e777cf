//! `[demo]`: the synthetic scene.

use serde::Deserialize;

use crate::settings::Size;
use stereod_core::frame::DisparityRange;
use stereod_core::settings::row::Integer::U64;
use stereod_core::settings::row::Plain::{Real, Whole};
use stereod_core::settings::row::Row;
use stereod_io::source::demo::DemoOptions;

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Demo {
    pub width: usize,
    pub height: usize,
    pub frames: u64,
    pub rate: f64,
    pub seed: u64,
    pub noise: f64,
    pub gain: f64,
    pub offset: f64,
}

pub(in crate::settings) const ROWS: &[Row] = &[
    Row::whole("width", Whole(640), U64, [1, Size::MAX as i64])
        .help("Width of each view, in pixels."),
    Row::whole("height", Whole(480), U64, [1, Size::MAX as i64])
        .help("Height of each view, in pixels."),
    Row::whole("frames", Whole(300), U64, [0, i64::MAX]).help("Number of pairs; 0: endless."),
    Row::real("rate", Real(30.0), [0.01, 1000.0]).help("Pairs per second."),
    Row::whole("seed", Whole(1), U64, [0, i64::MAX])
        .help("Seed: the same seed gives the same images."),
    Row::real("noise", Real(1.0), [0.0, 255.0])
        .help("Standard deviation of the noise, in grey levels; 0: none."),
    Row::real("gain", Real(1.0), [0.01, 100.0])
        .help("The right view is this many times as bright as the left one ..."),
    Row::real("offset", Real(0.0), [-255.0, 255.0]).help("... and this many grey levels brighter."),
];

impl Demo {
    /// Returns the options of the scene, which spans the candidate disparities.
    pub fn options(&self, disparities: DisparityRange) -> DemoOptions {
        DemoOptions {
            width: self.width,
            height: self.height,
            frames: (self.frames > 0).then_some(self.frames),
            rate: self.rate,
            seed: self.seed,
            noise: self.noise as f32,
            right_gain: self.gain as f32,
            right_offset: self.offset as f32,
            disparities,
        }
    }
}
