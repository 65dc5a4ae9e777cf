//! Flags on the two cameras, which `run` and `match` share.

use clap::Args;

use super::flags::{FlagLayer, SettingFlags};
use crate::settings::row::{CALIBRATION, QUANTITY, RECTIFIED};

/// What is known of the two cameras.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Cameras")]
pub struct RigFlags {
    /// How raw pictures are rectified.
    #[command(flatten)]
    pub calibration: SettingFlags<CALIBRATION>,

    /// What recordings and pictures hold.
    #[command(flatten)]
    pub quantity: SettingFlags<QUANTITY>,

    /// What is known of pictures that come rectified.
    #[command(flatten)]
    pub rectified: SettingFlags<RECTIFIED>,
}

impl RigFlags {
    /// Adds those that were given to the layer.
    pub fn lay(&self, layer: &mut FlagLayer) {
        layer.add(&self.calibration);
        layer.add(&self.quantity);
        layer.add(&self.rectified);
        // Two numbers for pictures that come rectified take the place of a file of a lower layer.
        let none = (!self.rectified.is_empty()).then_some("");
        layer.put("calibration", "file", "--focal", none);
    }
}
