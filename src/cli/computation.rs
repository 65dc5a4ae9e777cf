//! Flags of commands that choose the pairs that they match themselves.

use clap::Args;

use super::flags::{FlagLayer, SettingFlags};
use stereod_core::settings::row::{CALIBRATION, ENGINE, MATCHING};

/// Calibration, parameters and engine.
#[derive(Clone, Debug, Args)]
pub struct Computation {
    /// Rectifies the pairs first, as if they were raw.
    #[command(flatten, next_help_heading = "Cameras")]
    calibration: SettingFlags<CALIBRATION>,

    /// Parameters of the matcher.
    #[command(flatten, next_help_heading = "Matching")]
    matching: SettingFlags<MATCHING>,

    /// The engine.
    #[command(flatten, next_help_heading = "Engine")]
    compute: SettingFlags<ENGINE>,
}

impl Computation {
    /// The flags that stand for settings.
    pub fn flags(&self) -> FlagLayer {
        let mut layer = FlagLayer::default();
        layer.add(&self.calibration);
        layer.add(&self.matching);
        layer.add(&self.compute);
        layer
    }
}
