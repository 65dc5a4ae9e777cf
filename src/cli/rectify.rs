//! The flags of `stereod rectify`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, ValueHint};

use toml::Value;

use super::BothArgs;
use super::flags::{Common, FlagLayer, SettingFlags, parser};
use crate::settings::row::CALIBRATION;
use crate::source::spec::SourceSpec;

pub(super) const EXAMPLES: &str = "\
Examples:
  stereod rectify left.png right.png --calibration rig.toml -o rectified/
  stereod rectify left.mp4 right.mp4 --calibration left.yaml,right.yaml -o rectified/
  stereod rectify 'left/%06d.png' 'right/%06d.png' --calibration rig.toml --alpha 1 -o rectified/
  stereod rectify --side-by-side both.mp4 --calibration rig.toml -o rectified/

Two pictures become DIR/left.png and DIR/right.png, in colour where they are coloured; videos, \
numbered pictures and cameras become DIR/left.mkv and DIR/right.mkv (FFV1, lossless, 8-bit grey), \
which keep their capture times and name their cameras in their tags. Pixels that a camera does not \
see are black. DIR/rectified.toml is the calibration of the rectified pictures.";

/// What `rectify` is told.
#[derive(Clone, Debug, Args)]
pub struct RectifyArgs {
    /// Left eye: a picture, a video, pictures (left/%06d.png), a URI, or a GStreamer source
    #[arg(value_name = "LEFT", value_hint = ValueHint::FilePath, requires = "right")]
    #[arg(required_unless_present_any = ["side_by_side", "top_bottom"])]
    #[arg(conflicts_with_all = ["side_by_side", "top_bottom"])]
    pub left: Option<OsString>,

    /// Right eye, likewise
    #[arg(value_name = "RIGHT", value_hint = ValueHint::FilePath)]
    #[arg(required_unless_present_any = ["side_by_side", "top_bottom"])]
    pub right: Option<OsString>,

    /// One input that holds both.
    #[command(flatten)]
    pub both: BothArgs,

    /// Folder for the rectified pictures or videos; it is made where it is missing
    #[arg(short, long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub output: PathBuf,

    /// Stop after this many pairs of a video
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub frames: Option<u64>,

    /// Largest difference in time between the eyes of a pair, in milliseconds, or `auto`
    #[arg(long, value_name = "MS", value_parser = parser("source", "tolerance_ms"))]
    pub tolerance: Option<Value>,

    /// Threads; 0 is one a core
    #[arg(long, value_name = "N", value_parser = parser("engine", "threads"))]
    pub threads: Option<Value>,

    /// How the pictures are rectified.
    #[command(flatten, next_help_heading = "Cameras")]
    pub calibration: SettingFlags<CALIBRATION>,

    /// Configuration and logs.
    #[command(flatten)]
    pub common: Common,
}

impl RectifyArgs {
    /// What is rectified; `None` where nothing is named, which the command line does not allow.
    pub fn spec(&self) -> Option<SourceSpec> {
        self.both.spec([&self.left, &self.right])
    }

    /// The flags that stand for settings.
    pub fn flags(&self) -> FlagLayer {
        let mut layer = FlagLayer::default();
        self.both.lay(&mut layer);
        layer.put("source", "tolerance_ms", "--tolerance", self.tolerance.clone());
        layer.put("engine", "threads", "--threads", self.threads.clone());
        layer.add(&self.calibration);
        layer
    }
}
