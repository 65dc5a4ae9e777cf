//! The flags of `stereod calibration`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueHint};

use super::flags::{Common, Named, named};
use crate::settings::Size;
use stereod_core::calibration::format::{Format, KittiCameras};

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
}

/// A calibration, and facts that its files lack.
#[derive(Clone, Debug, Args)]
pub struct CalibrationInput {
    /// One file or two: stereod, OpenCV, ROS, Kalibr, EuRoC, DepthAI, KITTI or Middlebury, by content
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

    /// Cameras to read from KITTI's calib.txt
    #[arg(long, value_name = "CAMERAS", value_parser = named(KITTI_CAMERAS))]
    pub kitti_cameras: Option<KittiCameras>,

    /// Adapt the calibration to another mode of the same sensor: scaled, or the middle of the image
    #[arg(long, value_name = "WxH")]
    pub mode: Option<Size>,
}

/// Units of length, in metres.
const UNITS: &[Named<f64>] =
    &[("m", 1.0, "Metres"), ("cm", 0.01, "Centimetres"), ("mm", 0.001, "Millimetres")];

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
