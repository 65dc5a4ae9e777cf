//! Flags on the two cameras, which `run` and `match` share.

use clap::{Args, ValueHint};

use super::FlagLayer;

/// How raw pictures are rectified.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Cameras")]
pub struct CalibrationFlags {
    /// Rectify raw pictures with this calibration, in one file or two (OpenCV, ROS, Kalibr,
    /// stereod's own ...), or take depth from that of a data set (KITTI, Middlebury)
    #[arg(long, value_name = "FILE[,FILE]", value_hint = ValueHint::FilePath)]
    pub calibration: Option<String>,

    /// How much of the raw pictures the rectified ones show: 0 nothing but what is seen everywhere,
    /// 1 everything [default: as the file says, or 0]
    #[arg(long, value_name = "0..1", requires = "calibration")]
    pub alpha: Option<f64>,
}

/// What is known of the two cameras.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Cameras")]
pub struct RigFlags {
    /// How raw pictures are rectified.
    #[command(flatten)]
    pub calibration: CalibrationFlags,

    /// Write depth in millimetres instead of disparity
    #[arg(long)]
    pub depth: bool,

    /// Focal length of pictures that come rectified, in pixels, for depth
    #[arg(long, value_name = "PX", conflicts_with = "calibration")]
    pub focal: Option<f64>,

    /// Distance between the cameras of pictures that come rectified, in metres, for depth
    #[arg(long, value_name = "METRES", conflicts_with = "calibration")]
    pub baseline: Option<f64>,
}

impl CalibrationFlags {
    /// Adds those that were given to the layer.
    pub fn lay(&self, layer: &mut FlagLayer) {
        layer.put("calibration", "file", "--calibration", self.calibration.as_deref());
        layer.put("calibration", "alpha", "--alpha", self.alpha);
    }
}

impl RigFlags {
    /// Adds those that were given to the layer.
    pub fn lay(&self, layer: &mut FlagLayer) {
        self.calibration.lay(layer);
        layer.put("output", "depth", "--depth", self.depth.then_some(true));
        layer.put("calibration", "focal_px", "--focal", self.focal);
        layer.put("calibration", "baseline_m", "--baseline", self.baseline);
        // Two numbers for pictures that come rectified take the place of a file of a lower layer.
        if self.focal.is_some() || self.baseline.is_some() {
            layer.put("calibration", "file", "--focal", Some(""));
        }
    }
}
