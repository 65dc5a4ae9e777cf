//! The command line. Flags that stand for a setting become the topmost layer of the settings.

pub mod batch;
#[cfg(feature = "boards")]
pub mod calibrate;
pub mod calibration;
#[cfg(feature = "evaluate")]
pub mod evaluate;
pub mod flags;
pub mod rectify;
pub mod source;
mod tip;

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use clap::{ArgAction, Args, Parser, Subcommand, ValueHint};
use toml::Value;

use crate::settings::Size;
use crate::settings::names::text_of;
pub use batch::BatchArgs;
#[cfg(feature = "boards")]
pub use calibrate::CalibrateArgs;
pub use calibration::CalibrationArgs;
#[cfg(feature = "evaluate")]
pub use evaluate::EvaluateArgs;
pub use flags::{CameraFlags, Common, Computation, FlagLayer, RigFlags, Strict};
use flags::{SettingFlags, parser};
pub use rectify::RectifyArgs;
use source::TopicArgs;
pub use source::{PairArgs, SourceArgs};
use stereod_core::settings::row::{ENGINE, MATCHING, OUTPUT, PAIRING, RATE};
pub use tip::with_tip;

/// Dense disparity from two cameras or recorded stereo video, live.
#[derive(Debug, Parser)]
#[command(name = "stereod", version, max_term_width = 100, arg_required_else_help = true)]
#[command(propagate_version = false, after_help = EXAMPLES, disable_help_flag = true)]
pub struct Cli {
    #[command(subcommand)]
    pub command: Command,

    /// Print help on the most used flags
    #[arg(short, long, action = ArgAction::HelpShort, global = true, help_heading = HELP)]
    help: Option<bool>,

    /// Print help on all flags
    #[arg(long, action = ArgAction::HelpLong, global = true, help_heading = HELP)]
    help_all: Option<bool>,
}

/// Returns the command line of `run` that is likely meant by these arguments without a command: a source, or `demo`.
pub fn run_instead(arguments: &[OsString]) -> Option<String> {
    let (first, rest) = arguments.split_first()?;
    let is_demo = first == "demo";
    let is_flag = first.as_encoded_bytes().starts_with(b"--");
    let first = if is_demo { OsStr::new("--demo") } else { first };
    let line = ["stereod", "run"].map(OsStr::new).into_iter().chain([first]);
    let line: Vec<&OsStr> = line.chain(rest.iter().map(|it| &**it)).collect();
    let is_meant = is_demo || is_flag || Path::new(first).exists();
    let is_right = is_meant && Cli::try_parse_from(&line).is_ok();
    is_right.then(|| line.join(OsStr::new(" ")).to_string_lossy().into_owned())
}

const HELP: &str = "Help";

const EXAMPLES: &str = "\
Examples:
  stereod run --demo
  stereod run --left left.mp4 --right right.mp4 --record disparity.mkv
  stereod match left.png right.png -o disparity.png --colour disparity-colour.png
  stereod bench --size 1280x720 --disparities 128

`stereod COMMAND --help` explains each command, `stereod COMMAND --help-all` each of its flags. Exit status: 0 done, 1 failed, 2 wrong usage or \
configuration, 5 a warning about the two views with --strict.";

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Match stereo video: show it, record it, or both
    #[command(after_help = RUN_EXAMPLES, override_usage = "stereod run <SOURCE> [OPTIONS]")]
    Run(Box<RunArgs>),
    /// Match many recordings, in shards on one machine or many
    #[command(after_help = batch::EXAMPLES)]
    Batch(Box<BatchArgs>),
    /// Match one pair of still images
    #[command(name = "match", after_help = MATCH_EXAMPLES)]
    Match(Box<MatchArgs>),
    /// Say in words what stands in front of the cameras, and where
    #[command(after_help = OBSTACLES_EXAMPLES)]
    Obstacles(Box<ObstaclesArgs>),
    /// Measure the engine, stage by stage
    #[command(after_help = BENCH_EXAMPLES)]
    Bench(Box<BenchArgs>),
    /// Measure how accurate the disparity is, on pairs of known disparity
    #[command(after_help = evaluate::EXAMPLES)]
    #[cfg(feature = "evaluate")]
    Evaluate(Box<EvaluateArgs>),
    /// Calibrate two cameras from images of a board, or print a board
    #[command(after_help = calibrate::EXAMPLES)]
    #[command(
        override_usage = "stereod calibrate <SOURCE> --board BOARD --square METRES -o OUT.toml [OPTIONS]\n       \
                                stereod calibrate --print-board --board BOARD --square METRES -o BOARD.pdf"
    )]
    #[cfg(feature = "boards")]
    Calibrate(Box<CalibrateArgs>),
    /// Rectify the raw images or videos of two cameras, without matching them
    #[command(after_help = rectify::EXAMPLES)]
    Rectify(Box<RectifyArgs>),
    /// Show a calibration, or write it in another format
    Calibration(CalibrationArgs),
    /// Show what is in a recording of messages, and which pair would be taken
    #[command(after_help = INFO_EXAMPLES)]
    Info(InfoArgs),
    /// List the processors and cameras of this machine
    #[command(after_help = DEVICES_EXAMPLES)]
    Devices(DevicesArgs),
    /// List stereo networks of others for `--engine onnx:FILE`
    Models(ModelsArgs),
    /// Print or check the settings
    Config(ConfigArgs),
    /// Print the JSON Schema of the statistics that `run --stats` writes
    Schema,
    /// Print the completions for a shell
    #[command(after_help = COMPLETIONS_EXAMPLES)]
    Completions(CompletionsArgs),
    /// Print a manual page
    #[command(after_help = MAN_EXAMPLES)]
    Man(ManArgs),
}

const RUN_EXAMPLES: &str = "\
Examples:
  stereod run --demo                                      the synthetic scene, in a window
  stereod run --left left.mp4 --right right.mp4           two videos, in a window
  stereod run --side-by-side both.mkv --headless --record disparity.mkv --preview preview.mp4
  stereod run --left 'left/%06d.png' --right 'right/%06d.png' --pictures out/
  stereod run --left /dev/video0 --right /dev/video2 --record out.mkv --segment 10min --keep 20GB
  stereod run --left /dev/video0 --right /dev/video2      two cameras (`stereod devices` lists them)
  stereod run drive.mcap --record disparity.mkv           a recording of messages
  stereod run --left raw0.mp4 --right raw1.mp4 --calibration rig.toml --depth --record depth.mkv

Recorded files are matched completely: a slow output slows the job down and loses nothing. \
Without a display, `run` is headless; without any output, it still prints the statistics. \
`stereod config print` shows the values of all settings in effect.";

const OBSTACLES_EXAMPLES: &str = "\
Examples:
  stereod obstacles left.png right.png --calibration rig.toml --set mount.z_m=0.8
                                                          what is seen from 0.8 m above the ground
  stereod obstacles left.png right.png --calibration rig.toml --picture scan.png --json";

const MATCH_EXAMPLES: &str = "\
Examples:
  stereod match left.png right.png -o disparity.png
  stereod match left.jpg right.jpg -d 128 -o disparity.pfm --colour disparity-colour.png
  stereod match --side-by-side both.png -o disparity.png
  stereod match raw-left.png raw-right.png --calibration rig.toml --depth -o depth.png --cloud cloud.ply

The format follows the name: .png holds 16 bits (disparity * 256, or millimetres of depth; 0 is \
invalid), .pfm, .tiff and .npy floats (pixels, or metres of depth; invalid is +inf, in the last two NaN), \
.exr floats with the channels disparity, confidence and, with a calibration, Z in metres, .pgm 8 bits \
(disparity * 4 with 33 to 64 candidates, * 2 with up to 128, * 1 with up to 256; 0 is invalid; the scale \
stands in its header).";

const STILL: &str =
    "Left picture: PNG, JPEG, PGM, PPM, BMP, TIFF, grey or colour, or EXR in colour";

const BENCH_EXAMPLES: &str = "\
Examples:
  stereod bench
  stereod bench --size 1280x720 --disparities 128 --paths 4 --threads 4 --json
  stereod bench --engine cuda --verify
  stereod bench --size 1280x720 -d 128 --multiprocessors 8,16,24,auto   what smaller GPUs reach";

const DEVICES_EXAMPLES: &str = "\
Examples:
  stereod devices
  stereod devices --json
  stereod run --demo --engine cuda --device 1

A CUDA device needs compute capability 7.5 or newer, a driver for CUDA 12 or newer, and CUDA's \
run-time compiler (libnvrtc). If one is missing, the reason is printed. \
Cameras are named by the port that they are plugged into. Use that name in a configuration, so that \
left and right do not change places.";

const COMPLETIONS_EXAMPLES: &str = "\
Examples:
  stereod completions bash > ~/.local/share/bash-completion/completions/stereod
  stereod completions fish > ~/.config/fish/completions/stereod.fish";

const MAN_EXAMPLES: &str = "\
Examples:
  stereod man | man -l -
  stereod man run | man -l -
  stereod man --dir /usr/local/share/man/man1";

/// Arguments of `run`.
#[derive(Clone, Debug, Args)]
pub struct RunArgs {
    #[command(flatten)]
    pub source: SourceArgs,

    /// Do not open a window
    #[arg(long, conflicts_with = "window", help_heading = "Output")]
    pub headless: bool,

    /// Open a window, or fail if there is no display
    #[arg(long, help_heading = "Output", hide_short_help = true)]
    pub window: bool,

    /// Match N pairs before the first of --frames A..B as well, without writing them, so that stages that
    /// remember earlier pairs begin nearly as in a run of the whole recording
    #[arg(long, value_name = "N", requires = "frames", conflicts_with = "window")]
    #[arg(help_heading = "Source", hide_short_help = true)]
    pub run_in: Option<u64>,

    /// Exit with the statuses of a batch's pieces
    #[arg(long, hide = true)]
    pub piece: bool,

    #[command(flatten, next_help_heading = "Output")]
    pub outputs: SettingFlags<OUTPUT>,

    #[command(flatten, next_help_heading = "Output")]
    pub strict: Strict,

    #[command(flatten)]
    pub rig: RigFlags,

    #[command(flatten, next_help_heading = "Matching")]
    pub matching: SettingFlags<MATCHING>,

    #[command(flatten, next_help_heading = "Engine")]
    pub compute: SettingFlags<ENGINE>,

    #[command(flatten, next_help_heading = "Engine")]
    pub rate: SettingFlags<RATE>,

    #[command(flatten)]
    pub common: Common,
}

impl RunArgs {
    pub fn flags(&self) -> FlagLayer {
        let mut layer = FlagLayer::default();
        self.source.lay(&mut layer);
        layer.put("window", "mode", "--headless", self.headless.then_some("off"));
        layer.put("window", "mode", "--window", self.window.then_some("on"));
        layer.add(&self.outputs);
        self.rig.lay(&mut layer);
        layer.add(&self.matching);
        layer.add(&self.compute);
        layer.add(&self.rate);
        layer
    }
}

/// Arguments of `match`.
#[derive(Clone, Debug, Args)]
#[command(mut_args(|arg| match arg.get_id().as_str() {
    "align" => arg.requires("aligned"),
    "axes" | "outliers" | "voxel" => arg.requires("cloud"),
    _ => arg,
}))]
#[command(mut_arg("left", |left| left.help(STILL).requires("right")))]
#[command(mut_arg("right", |right| {
    right.help("Right picture, of the same size").required_unless_present_any(["side_by_side", "top_bottom"])
}))]
pub struct MatchArgs {
    #[command(flatten)]
    pub pair: PairArgs,

    /// Disparity map: .png (16 bits, disparity * 256, or * 128 or * 64 if the range exceeds 255 px;
    /// the file says which), .pfm, .tiff, .npy or .exr (float, pixels), or .pgm (8 bits, disparity
    /// times the largest of 16, 8, 4, 2, 1, 1/2 ... at which all candidates fit: 4 for 64 of them)
    #[arg(short, long, value_name = "OUT", value_hint = ValueHint::FilePath)]
    pub output: PathBuf,

    /// Coloured image of the disparity as well; the colours span the disparities found, unless
    /// `--set colour.range=fixed` is given
    #[arg(long, alias = "color", value_name = "OUT.png", value_hint = ValueHint::FilePath)]
    pub colour: Option<PathBuf>,

    /// Colours of that image
    #[arg(long, alias = "color-map", value_name = "MAP", value_parser = parser("colour", "map"))]
    #[arg(requires = "colour")]
    pub colour_map: Option<Value>,

    /// Confidence of each pixel as well, as a grey image: 1 to 255, and 0 where the disparity is unknown
    #[arg(long, value_name = "OUT.png", value_hint = ValueHint::FilePath)]
    pub confidence: Option<PathBuf>,

    /// Whether a network and matching agree as well, as a coloured image; needs --engine onnx:FILE and --check sgm
    #[arg(long, value_name = "OUT.png", value_hint = ValueHint::FilePath)]
    pub verdicts: Option<PathBuf>,

    /// Point cloud in metres as well, coloured by the left image: .ply, .pcd or .las
    #[arg(long, value_name = "OUT.ply", value_hint = ValueHint::FilePath)]
    pub cloud: Option<PathBuf>,

    /// Depth for each pixel of a third camera as well, which --align describes: .png (16 bits, --depth-unit),
    /// .pfm, .tiff, .npy or .exr (float, metres)
    #[arg(long, value_name = "OUT", value_hint = ValueHint::FilePath)]
    pub aligned: Option<PathBuf>,

    /// Match with the plain reference as well (slow), and fail if the two differ
    #[arg(long)]
    pub verify: bool,

    /// Print one JSON object: share of known pixels, warnings, alignment, time and settings
    #[arg(long)]
    pub json: bool,

    #[command(flatten)]
    pub strict: Strict,

    #[command(flatten)]
    pub rig: RigFlags,

    #[command(flatten, next_help_heading = "Matching")]
    pub matching: SettingFlags<MATCHING>,

    #[command(flatten, next_help_heading = "Engine")]
    pub compute: SettingFlags<ENGINE>,

    #[command(flatten)]
    pub common: Common,
}

impl MatchArgs {
    pub fn flags(&self) -> FlagLayer {
        let mut layer = FlagLayer::default();
        self.pair.lay(&mut layer);
        layer.put("colour", "map", "--colour-map", self.colour_map.clone());
        // A unit of depth is refused without an output that has depth.
        let aligned = self.aligned.as_deref().map(|path| text_of(path.as_os_str()));
        layer.put("output", "aligned", "--aligned", aligned);
        self.rig.lay(&mut layer);
        layer.add(&self.matching);
        layer.add(&self.compute);
        layer
    }
}

/// Arguments of `obstacles`.
#[derive(Clone, Debug, Args)]
#[command(mut_arg("left", |left| left.help(STILL).requires("right")))]
#[command(mut_arg("right", |right| {
    right.help("Right picture, of the same size").required_unless_present_any(["side_by_side", "top_bottom"])
}))]
pub struct ObstaclesArgs {
    #[command(flatten)]
    pub pair: PairArgs,

    /// Print one JSON object
    #[arg(long)]
    pub json: bool,

    /// Image of the scan as well: over the left picture, and from above
    #[arg(long, value_name = "OUT.png", value_hint = ValueHint::FilePath)]
    pub picture: Option<PathBuf>,

    /// File of the zones to watch, `[[zone]]` each (docs/obstacles.md)
    #[arg(long, value_name = "FILE.toml", value_hint = ValueHint::FilePath)]
    pub zones: Option<PathBuf>,

    #[command(flatten)]
    pub cameras: CameraFlags,

    #[command(flatten, next_help_heading = "Matching")]
    pub matching: SettingFlags<MATCHING>,

    #[command(flatten, next_help_heading = "Engine")]
    pub compute: SettingFlags<ENGINE>,

    #[command(flatten)]
    pub common: Common,
}

impl ObstaclesArgs {
    pub fn flags(&self) -> FlagLayer {
        let mut layer = FlagLayer::default();
        self.pair.lay(&mut layer);
        let zones = self.zones.as_deref().map(|path| text_of(path.as_os_str()));
        layer.put("obstacles", "zones", "--zones", zones);
        self.cameras.lay(&mut layer);
        layer.add(&self.matching);
        layer.add(&self.compute);
        layer
    }
}

/// Arguments of `bench`.
#[derive(Clone, Debug, Args)]
pub struct BenchArgs {
    /// Size of the images in pixels
    #[arg(long, value_name = "WxH", default_value = "640x480")]
    pub size: Size,

    /// How often each measurement is repeated; the median counts
    #[arg(long, value_name = "N", default_value_t = 30)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub repeat: u32,

    /// Print one JSON object
    #[arg(long)]
    pub json: bool,

    /// Match some pairs with the plain reference as well (slow), and fail if the two differ
    #[arg(long)]
    pub verify: bool,

    /// Write a JSON file with the speeds of this machine for the usual sizes, to be sent to stereod's authors
    #[arg(long, value_name = "FILE", conflicts_with_all = ["size", "json", "multiprocessors", "verify"])]
    pub report: Option<PathBuf>,

    /// Number of the GPU's multiprocessors to use: one number, or several (8,16,auto) for a table of the
    /// speeds of GPUs of these sizes
    #[arg(long, value_name = "N,N,...", value_delimiter = ',', help_heading = "Engine")]
    #[arg(value_parser = parser("engine", "multiprocessors"))]
    pub multiprocessors: Vec<toml::Value>,

    #[command(flatten)]
    pub computation: Computation,

    #[command(flatten, next_help_heading = "Engine")]
    pub rate: SettingFlags<RATE>,

    #[command(flatten)]
    pub common: Common,
}

impl BenchArgs {
    pub fn flags(&self) -> FlagLayer {
        let mut layer = self.computation.flags();
        layer.add(&self.rate);
        layer
    }
}

/// Arguments of `devices`.
#[derive(Clone, Debug, Args)]
pub struct DevicesArgs {
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,

    /// List the cameras' controls, too: exposure, gain, focus, ... (always in JSON)
    #[arg(long)]
    pub controls: bool,

    /// Print only what --left and --right take, a camera a line
    #[arg(long, conflicts_with_all = ["json", "controls"])]
    pub sources: bool,

    #[command(flatten)]
    pub common: Common,
}

/// Arguments of `models`.
#[derive(Clone, Debug, Args)]
pub struct ModelsArgs {
    /// Describe this ONNX file instead: its inputs, how it is fed, and its error on a built-in scene
    #[arg(value_name = "FILE.onnx", value_hint = ValueHint::FilePath)]
    pub file: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `config`.
#[derive(Clone, Debug, Args)]
pub struct ConfigArgs {
    #[command(subcommand)]
    pub command: ConfigCommand,
}

/// What to do with the settings.
#[derive(Clone, Debug, Subcommand)]
pub enum ConfigCommand {
    /// Print all settings in effect, as a commented configuration file
    #[command(after_help = "\
Examples:
  stereod config print > ~/.config/stereod/config.toml
  STEREOD_MATCHING_P1=9 stereod config print --origin")]
    Print {
        /// Print the origin of each value after it
        #[arg(long)]
        origin: bool,
        #[command(flatten)]
        common: Common,
    },
    /// Look for mistakes in a configuration file and the environment
    #[command(after_help = "\
Examples:
  stereod config check
  stereod config check ./stereod.toml")]
    Check {
        /// The file; without it, the one that would be read
        #[arg(value_hint = ValueHint::FilePath)]
        file: Option<PathBuf>,
        #[command(flatten)]
        common: Common,
    },
}

/// Arguments of `completions`.
#[derive(Clone, Debug, Args)]
pub struct CompletionsArgs {
    /// The shell
    pub shell: clap_complete::Shell,
}

/// Arguments of `man`.
#[derive(Clone, Debug, Args)]
pub struct ManArgs {
    /// The command that the page is about; without it, stereod as a whole
    #[arg(conflicts_with = "dir")]
    pub command: Option<String>,

    /// Write the pages of all commands into this folder instead
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub dir: Option<PathBuf>,
}

const INFO_EXAMPLES: &str = "\
Examples:
  stereod info drive.mcap
  stereod info drive.bag --json
  stereod info MH_01_easy/

Gaps are distances of more than 1.5 usual periods between two messages of a topic. Images count by their \
own stamps, other messages by the time of their recording. The whole recording is read once. Pairs are counted \
as `run` makes them with the same settings.";

/// Arguments of `info`.
#[derive(Clone, Debug, Args)]
pub struct InfoArgs {
    /// MCAP, ZED's .svo2, ROS 1 bag, rosbag2 (.db3 or its folder), or the folder of a data set (EuRoC, KITTI, ...)
    #[arg(value_name = "RECORDING", value_hint = ValueHint::AnyPath)]
    pub recording: PathBuf,

    #[command(flatten)]
    pub topics: TopicArgs,

    /// Print one JSON object
    #[arg(long)]
    pub json: bool,

    #[command(flatten, next_help_heading = "Source")]
    pub pairing: SettingFlags<PAIRING>,

    #[command(flatten)]
    pub common: Common,
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn a_line_without_its_command_is_one_of_run() {
        let instead = |line: &str| {
            let arguments: Vec<OsString> = line.split_whitespace().map(OsString::from).collect();
            run_instead(&arguments)
        };
        let demo = instead("demo --frames 5 --headless").unwrap();
        assert_eq!(demo, "stereod run --demo --frames 5 --headless");
        assert_eq!(instead("--demo").unwrap(), "stereod run --demo");
        assert!(instead("--left a.mp4 --right b.mp4").is_some());
        // A file that exists.
        assert_eq!(instead("Cargo.toml b.mp4").unwrap(), "stereod run Cargo.toml b.mp4");
        for other in ["", "demo --nonsense", "runn --demo", "window", "run --nonsense", "a.mp4"] {
            assert_eq!(instead(other), None, "{other}");
        }
    }

    fn run(arguments: &str) -> Result<RunArgs, clap::Error> {
        let arguments = ["stereod", "run"].into_iter().chain(arguments.split_whitespace());
        match Cli::try_parse_from(arguments)?.command {
            Command::Run(args) => Ok(*args),
            _ => unreachable!("the command line says run"),
        }
    }

    #[test]
    fn output_flags_become_settings() {
        let args =
            run("--demo --headless --record a.mkv --stats - --colour-map gray --focal 435.2 --baseline 0.1")
                .unwrap();
        let loaded = args.flags().over(crate::settings::Layers::new()).finish().unwrap();
        let settings = &loaded.settings;
        assert_eq!(settings.window.mode, crate::settings::WindowMode::Off);
        assert_eq!(settings.output.record, "a.mkv");
        assert_eq!(settings.output.stats, "-");
        assert_eq!(settings.output.preview, "");
        assert_eq!(settings.colour.map, stereod_io::sink::colour::ColourMap::Grey);
        assert_eq!(settings.calibration.focal_and_baseline(), Some((435.2, 0.1)));
        assert_eq!(loaded.origin("output", "record").to_string(), "--record");
        assert_eq!(loaded.origin("output", "preview").to_string(), "default");
        assert!(run("--demo --headless --window").is_err());
        assert!(run("--demo --calibration rig.toml --focal 435.2").is_err());
    }

    #[test]
    fn flags_without_the_output_that_they_are_about_are_refused() {
        for (line, missing) in [
            ("match l.png r.png -o o.png --colour-map grey", "--colour <OUT.png>"),
            ("match l.png r.png -o o.png --voxel 0.1", "--cloud <OUT.ply>"),
            ("match l.png r.png -o o.png --align a.toml", "--aligned <OUT>"),
            ("batch list.txt --out o --shard-base 0", "--shard <I/N"),
        ] {
            let told = Cli::try_parse_from(format!("stereod {line}").split(' ')).unwrap_err();
            assert!(told.to_string().contains(missing), "{told}");
        }
        Cli::try_parse_from(
            "stereod match l.png r.png -o o.png --cloud c.ply --voxel 1".split(' '),
        )
        .unwrap();
    }

    #[test]
    fn match_and_bench_share_the_matching_flags() {
        for arguments in [
            "stereod match l.png r.png -o o.png -d 32 --p1 9 --engine cpu --threads 2 --device 1",
            "stereod bench --size 64x48 -d 32 --p1 9 --engine cpu --threads 2 --device 1",
        ] {
            let layer = match Cli::try_parse_from(arguments.split(' ')).unwrap().command {
                Command::Match(args) => args.flags(),
                Command::Bench(args) => args.computation.flags(),
                _ => unreachable!(),
            };
            let loaded = layer.over(crate::settings::Layers::new()).finish().unwrap();
            let settings = &loaded.settings;
            assert_eq!((loaded.params.range.count, loaded.params.p1), (32, 9));
            assert_eq!(settings.engine.threads, 2);
            assert_eq!(settings.engine.device, Some(1));
        }
    }
}
