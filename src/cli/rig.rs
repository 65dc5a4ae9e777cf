//! Flags on the two cameras, which `run` and `match` share.

use clap::Args;

use super::flags::{FlagLayer, SettingFlags};
use stereod_core::settings::row::{CALIBRATION, QUANTITY, RECTIFIED};

/// The two cameras.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Cameras")]
pub struct RigFlags {
    /// Rectification of raw images.
    #[command(flatten)]
    pub calibration: SettingFlags<CALIBRATION>,

    /// Quantity in recordings and images.
    #[command(flatten)]
    pub quantity: SettingFlags<QUANTITY>,

    /// Cameras of rectified inputs.
    #[command(flatten)]
    pub rectified: SettingFlags<RECTIFIED>,
}

impl RigFlags {
    /// Adds those that were given to the layer.
    pub fn lay(&self, layer: &mut FlagLayer) {
        layer.add(&self.calibration);
        layer.add(&self.quantity);
        layer.add(&self.rectified);
        // The numbers replace a calibration file of a lower layer.
        let none = (!self.rectified.is_empty()).then_some("");
        layer.put("calibration", "file", "--focal", none);
    }
}
