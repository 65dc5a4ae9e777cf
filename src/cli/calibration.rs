//! The flags of `stereod calibration`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueHint};

use super::PairArgs;
use super::flags::{Common, FlagLayer, Named, SettingFlags, named};
use super::source::{PartArgs, TopicArgs};
use crate::settings::Size;
use stereod_calibration::format::{Format, KittiCameras};
use stereod_core::settings::row::{CALIBRATION, ENGINE, MATCHING, RECTIFIED};

const SHOW_EXAMPLES: &str = "\
Examples:
  stereod calibration show stereo.toml
  stereod calibration show left.yaml,right.yaml
  stereod calibration show intrinsics.yml,extrinsics.yml --size 640x480 --json";

const CONVERT_EXAMPLES: &str = "\
Examples:
  stereod calibration convert left.yaml,right.yaml -o stereo.toml
  stereod calibration convert stereo.toml -o stereo.yml
  stereod calibration convert stereo.toml -o left.yaml,right.yaml
  stereod calibration convert stereo.toml --format ros -o camera_info/
  stereod calibration convert --unit mm stereoCalibration.yml -o stereo.toml

The format follows the name of OUT: .toml is stereod's own, .yml or .yaml, .xml and .json are OpenCV's, \
two names or a folder are ROS camera_info. --format names it if the name does not.";

/// Arguments of `calibration`.
const REFINE_EXAMPLES: &str = "\
Examples:
  stereod calibration refine left.mp4 right.mp4 --calibration rig.toml -o refined.toml
  stereod calibration refine drive.mcap -o refined.toml        by the calibration in the recording

The right camera is turned, and its focal length scaled, until the rows of the rectified images agree. It is \
taken to have turned about its own centre; after a larger bump, or if the left camera was bumped, calibrate \
with a board.";

const MOUNT_EXAMPLES: &str = "\
Examples:
  stereod calibration mount left.png right.png --calibration rig.toml
  stereod calibration mount drive.mcap                             by the calibration in the recording
  stereod calibration mount left.mp4 right.mp4 --calibration rig.toml --set mount.pitch_deg=40

The ground is sought within 25 degrees of the attitude in [mount], so state a rough one for a camera that looks \
down. Yaw and the position ahead and to the side cannot be seen in the ground. Standard output is TOML, ready \
for the configuration file.";

#[derive(Clone, Debug, Args)]
pub struct CalibrationArgs {
    #[command(subcommand)]
    pub command: CalibrationCommand,
}

/// What to do with a calibration.
#[derive(Clone, Debug, Subcommand)]
pub enum CalibrationCommand {
    /// Check a calibration, and print what it says about the cameras
    #[command(after_help = SHOW_EXAMPLES)]
    Show {
        #[command(flatten)]
        input: CalibrationInput,
        /// Print one JSON object
        #[arg(long)]
        json: bool,
        #[command(flatten)]
        common: Common,
    },
    /// Write a calibration in another format
    #[command(after_help = CONVERT_EXAMPLES)]
    Convert {
        #[command(flatten)]
        input: CalibrationInput,
        /// File, two files with a comma between them, or folder; without it, standard output
        #[arg(short, long, value_name = "OUT[,OUT]", value_hint = ValueHint::FilePath)]
        output: Option<PathBuf>,
        /// Format, if it does not follow from the name of OUT
        #[arg(long, value_name = "FORMAT", value_parser = named(FORMATS))]
        format: Option<Format>,
        #[command(flatten)]
        common: Common,
    },
    /// Correct the calibration of a bumped rig by the rows of a recording's images
    #[command(after_help = REFINE_EXAMPLES)]
    Refine(Box<RefineArgs>),
    /// Find roll, pitch and height of the left camera from the ground that it sees
    #[command(after_help = MOUNT_EXAMPLES)]
    Mount(Box<MountArgs>),
}

const LEFT: &str = "\
Left view, raw: an image, a video, images (left/%06d.png), a camera, a URI, or a GStreamer source; alone, a \
recording of messages (MCAP, .svo2, ROS bags, the folder of a data set)";

#[derive(Clone, Debug, Args)]
#[command(mut_arg("left", |left| left.value_name("LEFT|RECORDING").help(LEFT)))]
// A changed argument becomes the last one, so the second one is "changed", too.
#[command(mut_arg("right", |right| right))]
pub struct RefineArgs {
    #[command(flatten)]
    pub pair: PairArgs,

    #[command(flatten)]
    pub topics: TopicArgs,

    /// The new calibration (.toml); an existing file is kept, and nothing is done
    #[arg(short, long, value_name = "OUT", value_hint = ValueHint::FilePath)]
    pub output: PathBuf,

    /// Pairs to measure, spread over a recording
    #[arg(long, value_name = "N", default_value_t = 20)]
    #[arg(value_parser = clap::value_parser!(u16).range(1..=200))]
    pub pairs: u16,

    #[command(flatten)]
    pub part: PartArgs,

    #[command(flatten, next_help_heading = "Cameras")]
    pub calibration: SettingFlags<CALIBRATION>,

    #[command(flatten)]
    pub common: Common,
}

impl RefineArgs {
    pub fn flags(&self) -> FlagLayer {
        let mut layer = FlagLayer::default();
        self.pair.lay(&mut layer);
        layer.add(&self.part.times);
        layer.add(&self.calibration);
        layer
    }
}

#[derive(Clone, Debug, Args)]
#[command(mut_arg("left", |left| left.value_name("LEFT|RECORDING").help(LEFT.replace(", raw", ""))))]
// A changed argument becomes the last one, so the second one is "changed", too.
#[command(mut_arg("right", |right| right))]
pub struct MountArgs {
    #[command(flatten)]
    pub pair: PairArgs,

    #[command(flatten)]
    pub topics: TopicArgs,

    /// Pairs to match, spread over a recording
    #[arg(long, value_name = "N", default_value_t = 50)]
    #[arg(value_parser = clap::value_parser!(u16).range(1..=1000))]
    pub pairs: u16,

    /// Print one JSON object
    #[arg(long)]
    pub json: bool,

    #[command(flatten)]
    pub part: PartArgs,

    #[command(flatten, next_help_heading = "Cameras")]
    pub calibration: SettingFlags<CALIBRATION>,

    #[command(flatten, next_help_heading = "Cameras")]
    pub rectified: SettingFlags<RECTIFIED>,

    #[command(flatten, next_help_heading = "Matching")]
    pub matching: SettingFlags<MATCHING>,

    #[command(flatten, next_help_heading = "Engine")]
    pub compute: SettingFlags<ENGINE>,

    #[command(flatten)]
    pub common: Common,
}

impl MountArgs {
    pub fn flags(&self) -> FlagLayer {
        let mut layer = FlagLayer::default();
        self.pair.lay(&mut layer);
        layer.add(&self.part.times);
        layer.add(&self.calibration);
        layer.add(&self.rectified);
        // The numbers replace a calibration file of a lower layer.
        let none = (!self.rectified.is_empty()).then_some("");
        layer.put("calibration", "file", "--focal", none);
        layer.add(&self.matching);
        layer.add(&self.compute);
        layer
    }
}

/// A calibration, and facts that its files lack.
#[derive(Clone, Debug, Args)]
pub struct CalibrationInput {
    /// One file or two, by content: stereod, OpenCV, ROS, Kalibr, EuRoC, DepthAI, KITTI, Middlebury, ORB-SLAM
    #[arg(value_name = "FILE[,FILE]", value_hint = ValueHint::FilePath)]
    pub files: String,

    /// Size of the calibrated images, if the files do not say it
    #[arg(long, value_name = "WxH")]
    pub size: Option<Size>,

    /// Unit of the files' lengths
    #[arg(long, value_name = "UNIT", value_parser = named(UNITS))]
    pub unit: Option<f64>,

    /// Exchange the cameras: what the files call left is the right camera
    #[arg(long)]
    pub swap: bool,

    /// Invert the pose: the files' rotation and translation lead from the right camera to the left one
    #[arg(long)]
    pub inverse_pose: bool,

    /// Cameras to read from KITTI's calib.txt
    #[arg(long, value_name = "CAMERAS", value_parser = named(KITTI_CAMERAS))]
    pub kitti_cameras: Option<KittiCameras>,

    /// Adapt the calibration to another mode of the same sensor: scaled, or the middle of the image
    #[arg(long, value_name = "WxH")]
    pub mode: Option<Size>,
}

/// Units of length, in metres.
const UNITS: &[Named<f64>] = &[
    ("m", 1.0, "Metres"),
    ("cm", 0.01, "Centimetres"),
    ("mm", 0.001, "Millimetres"),
    ("inch", 0.0254, "Inches"),
];

/// The pairs of cameras on KITTI's car.
const KITTI_CAMERAS: &[Named<KittiCameras>] =
    &[("grey", KittiCameras::Grey, "P0 and P1"), ("colour", KittiCameras::Colour, "P2 and P3")];

/// The formats that are written.
const FORMATS: &[Named<Format>] = &[
    ("stereod", Format::Own, "stereod's own TOML"),
    ("opencv-yaml", Format::OpenCvYaml, "OpenCV's FileStorage, YAML"),
    ("opencv-xml", Format::OpenCvXml, "OpenCV's FileStorage, XML"),
    ("opencv-json", Format::OpenCvJson, "OpenCV's FileStorage, JSON"),
    ("ros", Format::Ros, "camera_info of ROS, a file for each camera"),
];
