//! The flags of `stereod rectify`.

use std::path::PathBuf;

use clap::{Args, ValueHint};
use toml::Value;

use super::PairArgs;
use super::flags::{Common, FlagLayer, SettingFlags, parser};
use super::source::{PartArgs, TopicArgs};
use stereod_core::settings::row::CALIBRATION;

pub(super) const EXAMPLES: &str = "\
Examples:
  stereod rectify left.png right.png --calibration rig.toml -o rectified/
  stereod rectify left.mp4 right.mp4 --calibration left.yaml,right.yaml -o rectified/
  stereod rectify 'left/%06d.png' 'right/%06d.png' --calibration rig.toml --alpha 1 -o rectified/
  stereod rectify --side-by-side both.mp4 --calibration rig.toml -o rectified/
  stereod rectify drive.mcap -o rectified/                     by the calibrations in the recording

Two images become DIR/left.png and DIR/right.png; videos, numbered images and cameras become \
DIR/left.mkv and DIR/right.mkv (FFV1, lossless, 8-bit grey or RGB), which keep their capture times and describe the cameras in their tags. Pixels outside a camera's \
view are black. DIR/rectified.toml is the calibration of the rectified images.";

const LEFT: &str = "\
Left view: an image, a video, images (left/%06d.png), a URI, or a GStreamer source; alone, a recording of \
messages (MCAP, .svo2, ROS bags, the folder of a data set)";

/// Arguments of `rectify`.
#[derive(Clone, Debug, Args)]
#[command(mut_arg("left", |left| left.value_name("LEFT|RECORDING").help(LEFT)))]
// A changed argument becomes the last one, so the second one is "changed", too.
#[command(mut_arg("right", |right| right))]
pub struct RectifyArgs {
    #[command(flatten)]
    pub pair: PairArgs,

    #[command(flatten)]
    pub topics: TopicArgs,

    /// Folder for the rectified images or videos; it is created if missing
    #[arg(short, long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub output: PathBuf,

    /// Write 8-bit grey also if the source has colour
    #[arg(long)]
    pub grey: bool,

    #[command(flatten)]
    pub part: PartArgs,

    /// Largest time difference between the two frames of a pair, in milliseconds, or `auto`
    #[arg(long, value_name = "MS", value_parser = parser("source", "tolerance_ms"))]
    pub tolerance: Option<Value>,

    /// Threads; 0 means one per core
    #[arg(long, value_name = "N", value_parser = parser("engine", "threads"))]
    pub threads: Option<Value>,

    #[command(flatten, next_help_heading = "Cameras")]
    pub calibration: SettingFlags<CALIBRATION>,

    #[command(flatten)]
    pub common: Common,
}

impl RectifyArgs {
    pub fn flags(&self) -> FlagLayer {
        let mut layer = FlagLayer::default();
        self.pair.lay(&mut layer);
        layer.add(&self.part.times);
        layer.put("source", "tolerance_ms", "--tolerance", self.tolerance.clone());
        layer.put("engine", "threads", "--threads", self.threads.clone());
        layer.add(&self.calibration);
        layer
    }
}
