//! The flags of `stereod info`.

use std::path::PathBuf;

use clap::{Args, ValueHint};

use super::flags::Common;
use super::source::TopicArgs;

pub(super) const EXAMPLES: &str = "\
Examples:
  stereod info drive.mcap
  stereod info drive.bag --json
  stereod info MH_01_easy/

Gaps are distances of more than 1.5 usual periods between two messages of a topic. Images count by their \
own stamps, other messages by the time of their recording. The whole recording is read once.";

/// Arguments of `info`.
#[derive(Clone, Debug, Args)]
pub struct InfoArgs {
    /// MCAP, ZED's .svo2, ROS 1 bag, rosbag2 (.db3 or its folder), or the folder of a data set (EuRoC, KITTI, ...)
    #[arg(value_name = "RECORDING", value_hint = ValueHint::AnyPath)]
    pub recording: PathBuf,

    /// Topics of the views.
    #[command(flatten)]
    pub topics: TopicArgs,

    /// Print one JSON object
    #[arg(long)]
    pub json: bool,

    /// Configuration and logs.
    #[command(flatten)]
    pub common: Common,
}
