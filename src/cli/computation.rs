//! What commands that match pictures of their own choice are told of the matching.

use clap::Args;

use super::flags::{FlagLayer, SettingFlags};
use crate::settings::row::{CALIBRATION, ENGINE, MATCHING};

/// Flags of commands that match pictures of their own choice.
#[derive(Clone, Debug, Args)]
pub struct Computation {
    /// Rectify the pictures first, as if they came raw.
    #[command(flatten, next_help_heading = "Cameras")]
    calibration: SettingFlags<CALIBRATION>,

    /// What is computed.
    #[command(flatten, next_help_heading = "Matching")]
    matching: SettingFlags<MATCHING>,

    /// What computes.
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
