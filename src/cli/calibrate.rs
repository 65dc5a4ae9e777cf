//! The flags of `stereod calibrate`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, ValueHint};

use super::flags::{Common, FlagLayer, Named, named};
use super::source::{PartArgs, RecordingArgs};
use stereod_calibration::board::Pattern;
use stereod_calibration::board::sheet::Page;
use stereod_calibration::solve::Model;
use stereod_io::source::spec::SourceSpec;

/// Examples below the help.
pub const EXAMPLES: &str = "\
Examples:
  stereod calibrate --print-board --board chessboard:9x6 --square 0.025 -o board.pdf
  stereod calibrate --left-pictures 'left*.png' --right-pictures 'right*.png' \\
                    --board chessboard:9x6 --square 0.025 -o stereo.toml
  stereod calibrate --left left.mp4 --right right.mp4 --board charuco:11x8 --square 0.03 -o stereo.toml
  stereod calibrate --left /dev/video0 --right /dev/video2 \\
                    --board chessboard:9x6 --square 0.025 -o stereo.toml     live, with a guided window

A chessboard is named by its inner corners, where four squares meet; a ChArUco board by its squares: \
charuco:11x8[:MARKER/SQUARE[:DICTIONARY]], such as charuco:11x8:0.75:4x4_50; an AprilGrid (Kalibr's) by its \
tags: aprilgrid:6x6[:SPACING], such as aprilgrid:6x6:0.3 for tagCols, tagRows and tagSpacing. Measure the \
printed squares: --square is the side of one, or of a tag, in metres, and the scale of all depth depends on it.

Take 15 pairs or more: the board in every part of both images, near and far, tilted by 20 to 40 \
degrees to all four sides, held still, fully visible to both cameras. Pairs that do not fit are skipped \
and listed. `stereod run ... --calibration stereo.toml` uses the result.";

/// Message of `calibrate` without a source.
pub const NO_SOURCE: &str = "\
`calibrate` needs pairs of images of a board; choose one:

  --left-pictures 'left*.png' --right-pictures 'right*.png'    images, paired by their numbers
  --left LEFT --right RIGHT                                    two videos or cameras
  --side-by-side BOTH | --top-bottom BOTH                      one that holds both views
  RECORDING                                                    MCAP, ROS bags, a folder of EuRoC

or --print-board to print a board. See `stereod calibrate --help`.";

/// Arguments of `calibrate`.
#[derive(Clone, Debug, Args)]
pub struct CalibrateArgs {
    /// Images of the left camera: names, or patterns in quotes ('left*.png')
    #[arg(long, value_name = "GLOB", num_args = 1.., help_heading = "Source")]
    #[arg(requires = "right_pictures", value_hint = ValueHint::FilePath)]
    #[arg(conflicts_with_all = ["left", "right", "side_by_side", "top_bottom", "recording"])]
    pub left_pictures: Vec<String>,

    /// Images of the right camera; those with the same number belong together
    #[arg(long, value_name = "GLOB", num_args = 1.., help_heading = "Source")]
    #[arg(requires = "left_pictures", value_hint = ValueHint::FilePath)]
    pub right_pictures: Vec<String>,

    /// Left camera: a video, images (left/%06d.png or 'left/*.png'), a camera (/dev/video0), a URI, or
    /// GStreamer elements with `!` between them
    #[arg(long, value_name = "LEFT", requires = "right", value_hint = ValueHint::FilePath)]
    #[arg(conflicts_with_all = ["side_by_side", "top_bottom"], help_heading = "Source")]
    pub left: Option<OsString>,

    /// Right camera, likewise
    #[arg(long, value_name = "RIGHT", requires = "left", value_hint = ValueHint::FilePath)]
    #[arg(conflicts_with_all = ["side_by_side", "top_bottom"], help_heading = "Source")]
    pub right: Option<OsString>,

    /// One stream with the left view in its left half
    #[arg(long, value_name = "BOTH", conflicts_with = "top_bottom", help_heading = "Source")]
    #[arg(value_hint = ValueHint::FilePath)]
    pub side_by_side: Option<OsString>,

    /// One stream with the left view in its upper half
    #[arg(long, value_name = "BOTH", value_hint = ValueHint::FilePath, help_heading = "Source")]
    pub top_bottom: Option<OsString>,

    #[command(flatten)]
    pub recording: RecordingArgs,

    /// Exchange the cameras: the left input becomes the right view
    #[arg(long, help_heading = "Source", conflicts_with = "left_pictures")]
    pub swap: bool,

    #[command(flatten)]
    pub part: PartArgs,

    /// The board: chessboard:9x6 (inner corners), charuco:11x8[:MARKER/SQUARE[:DICTIONARY]] or aprilgrid:6x6[:SPACING]
    #[arg(long, value_name = "BOARD", value_parser = stereod_calibration::board::pattern)]
    pub board: Pattern,

    /// Side of a square, or of a tag of an AprilGrid, in metres, as measured on the print
    #[arg(long, value_name = "METRES", allow_negative_numbers = true)]
    pub square: f64,

    /// Side of a ChArUco marker in metres, instead of MARKER/SQUARE
    #[arg(long, value_name = "METRES")]
    pub marker: Option<f64>,

    /// The lens: five coefficients, eight for wide angles, or a fisheye
    #[arg(long, value_name = "MODEL", default_value = "plumb-bob", value_parser = named(MODELS))]
    pub model: Model,

    /// Half the side of the window in which corners are refined, in pixels (cornerSubPix's winSize);
    /// without it, as large as the squares allow
    #[arg(long, value_name = "PX", value_parser = clap::value_parser!(u8).range(2..=50))]
    pub corner_window: Option<u8>,

    /// Use every pair in which the board is found, even if it does not fit the others
    #[arg(long)]
    pub keep_all: bool,

    /// Write the calibration even if it is bad
    #[arg(long)]
    pub force: bool,

    /// The calibration (TOML; `stereod calibration convert` writes other formats), or the board to
    /// print (.pdf or .svg)
    #[arg(short, long, value_name = "OUT", value_hint = ValueHint::FilePath)]
    pub output: PathBuf,

    /// The whole report as one JSON object; `-` is standard output
    #[arg(long, value_name = "FILE|-", value_hint = ValueHint::FilePath)]
    pub json: Option<PathBuf>,

    /// Largest number of pairs of a video or camera to use; the most different ones are chosen
    #[arg(long, value_name = "N", default_value_t = 40, conflicts_with = "left_pictures")]
    #[arg(value_parser = clap::value_parser!(u16).range(3..=500))]
    pub max_pairs: u16,

    /// Do not open the guided window for cameras
    #[arg(long, conflicts_with = "window")]
    pub headless: bool,

    /// Open the guided window also for a recorded video
    #[arg(long, conflicts_with = "left_pictures")]
    pub window: bool,

    /// Print the board to scale instead
    #[arg(long, help_heading = "Printing")]
    #[arg(conflicts_with_all = ["left_pictures", "left", "right", "side_by_side", "top_bottom", "recording", "swap"])]
    #[arg(conflicts_with_all = ["model", "corner_window", "keep_all", "force", "json", "max_pairs", "headless", "window"])]
    pub print_board: bool,

    /// The paper
    #[arg(long, value_name = "PAGE", default_value = "auto", help_heading = "Printing")]
    #[arg(conflicts_with_all = ["left_pictures", "left", "right", "side_by_side", "top_bottom", "recording"])]
    #[arg(value_parser = named(PAPERS))]
    pub page: Paper,

    #[command(flatten)]
    pub common: Common,
}

/// The lens models.
const MODELS: &[Named<Model>] = &[
    ("plumb-bob", Model::PlumbBob, "Brown-Conrady with five coefficients"),
    ("rational", Model::Rational, "With eight, for wide angles"),
    ("fisheye", Model::Fisheye, "Kannala-Brandt with four"),
];

/// The paper for printed boards; `None`: the size that suits the board.
type Paper = Option<Page>;

const PAPERS: &[Named<Paper>] = &[
    ("auto", None, "The smallest of A4, A3 and the board's own size that holds the board"),
    ("a4", Some(Page::A4), "210 x 297 mm"),
    ("a3", Some(Page::A3), "297 x 420 mm"),
    ("letter", Some(Page::Letter), "8.5 x 11 inches"),
    ("board", Some(Page::Board), "As large as the board with a margin"),
];

impl CalibrateArgs {
    pub fn stream(&self) -> Option<SourceSpec> {
        let eyes = [self.left.as_ref(), self.right.as_ref()];
        SourceSpec::choose(eyes, self.side_by_side.as_ref(), self.top_bottom.as_ref())
            .or_else(|| self.recording.spec())
    }

    pub fn flags(&self) -> FlagLayer {
        let mut layer = FlagLayer::default();
        layer.add(&self.part.times);
        layer.put("source", "swap", "--swap", self.swap.then_some(true));
        layer.put("window", "mode", "--headless", self.headless.then_some("off"));
        layer.put("window", "mode", "--window", self.window.then_some("on"));
        layer
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Only {
        #[command(flatten)]
        args: CalibrateArgs,
    }

    fn parse(arguments: &str) -> Result<CalibrateArgs, clap::Error> {
        let always = "x --board chessboard:9x6 --square 0.025 -o out.toml ";
        let all = format!("{always}{arguments}");
        Only::try_parse_from(all.split_whitespace()).map(|only| only.args)
    }

    #[test]
    fn one_source_at_a_time() {
        for wrong in [
            "--left a",
            "--left-pictures a",
            "--left-pictures a --right-pictures b --left c --right d",
            "--left a --right b --side-by-side c",
            "--side-by-side a --top-bottom b",
            "--print-board --left a --right b",
            "--print-board --left-pictures a --right-pictures b",
            "--print-board --json a",
            "--print-board --force",
            "--print-board --model fisheye",
            "--page a4 --left a --right b",
            "--page a4 drive.mcap",
            "--left a --right b --headless --window",
            "--left a --right b --max-pairs 2",
            "--board cheese:9x6",
        ] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
        let stream = |arguments: &str| parse(arguments).unwrap().stream();
        assert_eq!(stream(""), None);
        assert_eq!(stream("--side-by-side a"), Some(SourceSpec::side_by_side("a")));
        assert_eq!(stream("--top-bottom a"), Some(SourceSpec::top_bottom("a")));
        assert_eq!(stream("--left a --right b"), Some(SourceSpec::two("a", "b")));
    }

    #[test]
    fn a_shell_may_expand_patterns() {
        let args = parse("--left-pictures l1.png l2.png --right-pictures r1.png r2.png").unwrap();
        assert_eq!(args.left_pictures, ["l1.png", "l2.png"]);
        assert_eq!(args.right_pictures.len(), 2);
    }
}
