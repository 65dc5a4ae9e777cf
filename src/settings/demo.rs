//! `[demo]`: the synthetic scene.

use serde::{Deserialize, Serialize};

use super::values::Unfit;

/// The synthetic scene.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Demo {
    /// Width of each eye in pixels.
    pub width: usize,
    /// Height of each eye in pixels.
    pub height: usize,
    /// Number of pairs; 0 is without end.
    pub frames: u64,
    /// Pairs a second.
    pub rate: f64,
    /// What the scene is drawn from: the same seed gives the same pictures.
    pub seed: u64,
    /// Standard deviation of the noise in grey levels.
    pub noise: f64,
    /// Factor by which the right eye is brighter.
    pub gain: f64,
    /// Grey levels by which the right eye is brighter.
    pub offset: f64,
}

impl Default for Demo {
    fn default() -> Self {
        Demo {
            width: 640,
            height: 480,
            frames: 300,
            rate: 30.0,
            seed: 1,
            noise: 1.0,
            gain: 1.0,
            offset: 0.0,
        }
    }
}

impl Demo {
    /// Largest width and height in pixels.
    pub const SIZE_MAX: usize = 16_384;

    pub(super) fn check(&self) -> Result<(), Unfit> {
        Unfit::within("width", self.width, 1..=Self::SIZE_MAX)?;
        Unfit::within("height", self.height, 1..=Self::SIZE_MAX)?;
        Unfit::within("rate", self.rate, 0.01..=1000.0)?;
        Unfit::within("noise", self.noise, 0.0..=255.0)?;
        Unfit::within("gain", self.gain, 0.01..=100.0)?;
        Unfit::within("offset", self.offset, -255.0..=255.0)
    }
}
