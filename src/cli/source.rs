//! The flags of the source of pairs.

use std::ffi::OsString;

use clap::{Args, ValueHint};

use super::flags::{FlagLayer, SettingFlags};
use crate::settings::Size;
use stereod_core::settings::row::{CAMERAS, PACKING, PAIRING, PART, PICTURES};
use stereod_io::source::excerpt::Frames;
use stereod_io::source::spec::SourceSpec;

/// Message of `run` without a source.
pub const NO_SOURCE: &str = "\
`run` needs a source of stereo pairs; choose one:

  --demo                            the built-in synthetic scene, with known disparity
      stereod run --demo
  LEFT RIGHT                        one stream for each view; also --left LEFT --right RIGHT
      stereod run left.mp4 right.mp4
      stereod run --left 'left/%06d.png' --right 'right/%06d.png'
      stereod run --left 'left/*.png' --right 'right/*.png'
      stereod run --left /dev/video0 --right /dev/video2
      stereod run --left rtsp://host/left --right rtsp://host/right
  --side-by-side BOTH               one stream with the left view in its left half
      stereod run --side-by-side both.mp4
      stereod run --side-by-side /dev/video0
  --top-bottom BOTH                 one stream with the left view in its upper half
      stereod run --top-bottom both.mkv
  RECORDING                         MCAP, .svo2, ROS bags, folders of EuRoC, KITTI, ...
      stereod run drive.mcap
      stereod run drive.bag --left-topic /cam0/image_raw --right-topic /cam1/image_raw

Each of them may be a video, numbered images, a camera (`stereod devices` lists them), a URI, or a
GStreamer source (an element such as libcamerasrc, or anything with `!`).
In the configuration file they are `left`, `right`, `side_by_side`, `top_bottom` and `recording` of [source].
See `stereod run --help` for outputs and settings.";

/// The source of pairs: exactly one kind.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Source")]
pub struct SourceArgs {
    /// The built-in synthetic scene, with exactly known disparity
    #[arg(long)]
    #[arg(conflicts_with_all = ["left", "right", "side_by_side", "top_bottom", "recording"])]
    #[arg(conflicts_with_all = ["tolerance", "offset"])]
    pub demo: bool,

    /// Left view: a video, images (left/%06d.png or 'left/*.png'), a camera (/dev/video0), a URI, or
    /// GStreamer elements with `!` between them
    #[arg(long, value_name = "LEFT", requires = "right", value_hint = ValueHint::FilePath)]
    #[arg(conflicts_with_all = ["side_by_side", "top_bottom"])]
    pub left: Option<OsString>,

    /// Right view, likewise
    #[arg(long, value_name = "RIGHT", requires = "left", value_hint = ValueHint::FilePath)]
    #[arg(conflicts_with_all = ["side_by_side", "top_bottom"])]
    pub right: Option<OsString>,

    /// One stream with the left view in its left half
    #[arg(long, value_name = "BOTH", conflicts_with_all = ["top_bottom", "offset"])]
    #[arg(value_hint = ValueHint::FilePath)]
    pub side_by_side: Option<OsString>,

    /// One stream with the left view in its upper half
    #[arg(long, value_name = "BOTH", value_hint = ValueHint::FilePath)]
    #[arg(conflicts_with = "offset", hide_short_help = true)]
    pub top_bottom: Option<OsString>,

    #[command(flatten)]
    pub packing: SettingFlags<PACKING>,

    #[command(flatten)]
    pub recording: RecordingArgs,

    #[command(flatten)]
    pub cameras: SettingFlags<CAMERAS>,

    #[command(flatten)]
    pub pictures: SettingFlags<PICTURES>,

    #[command(flatten)]
    pub part: PartArgs,

    #[command(flatten)]
    pub pairing: SettingFlags<PAIRING>,

    /// Size of each view of the demo scene in pixels
    #[arg(long, value_name = "WxH", requires = "demo")]
    #[arg(conflicts_with_all = ["left", "right", "side_by_side", "top_bottom"])]
    #[arg(hide_short_help = true)]
    pub demo_size: Option<Size>,

    /// Seed of the demo scene: the same seed gives the same images
    #[arg(long, value_name = "N", requires = "demo")]
    #[arg(conflicts_with_all = ["left", "right", "side_by_side", "top_bottom"])]
    #[arg(value_parser = clap::value_parser!(u64).range(0..=i64::MAX as u64))]
    #[arg(hide_short_help = true)]
    pub seed: Option<u64>,
}

/// Part of a recording.
#[derive(Clone, Debug, Default, Args)]
pub struct PartArgs {
    /// Stop after N pairs (0: at the end), or use the pairs A to B - 1 of a recording: 20..50, 20..,
    /// ..50; the first pair is number 0
    #[arg(long, value_name = "N|A..B", help_heading = "Source")]
    pub frames: Option<Frames>,

    #[command(flatten, next_help_heading = "Source")]
    pub times: SettingFlags<PART>,
}

impl PartArgs {
    pub fn frames(&self) -> Frames {
        self.frames.unwrap_or_default()
    }
}

/// A recording of messages, or two views, by position.
#[derive(Clone, Debug, Default, Args)]
pub struct RecordingArgs {
    /// A recording of messages: MCAP, ZED's .svo2, ROS 1 bag, rosbag2 (.db3 or its folder), the folder
    /// of a data set such as EuRoC or KITTI (`stereod info` shows what is in it)
    #[arg(value_name = "RECORDING", value_hint = ValueHint::AnyPath)]
    #[arg(conflicts_with_all = ["left", "right", "side_by_side", "top_bottom"])]
    pub recording: Option<OsString>,

    /// Right view; then the argument before it is the left view
    #[arg(value_name = "RIGHT", value_hint = ValueHint::FilePath)]
    #[arg(conflicts_with_all = ["left_topic", "right_topic"])]
    pub second: Option<OsString>,

    #[command(flatten)]
    pub topics: TopicArgs,
}

/// Topics of a recording.
#[derive(Clone, Debug, Default, Args)]
pub struct TopicArgs {
    /// Topic of the left view in a recording [default: the only pair that fits]
    #[arg(long, value_name = "TOPIC", help_heading = "Source")]
    #[arg(hide_short_help = true)]
    pub left_topic: Option<String>,

    /// Topic of the right view
    #[arg(long, value_name = "TOPIC", help_heading = "Source")]
    #[arg(hide_short_help = true)]
    pub right_topic: Option<String>,
}

impl TopicArgs {
    pub fn wanted(&self) -> [Option<String>; 2] {
        [self.left_topic.clone(), self.right_topic.clone()]
    }
}

impl RecordingArgs {
    pub fn spec(&self) -> Option<SourceSpec> {
        let first = self.recording.as_ref()?;
        Some(match &self.second {
            Some(right) => SourceSpec::two(first, right),
            None => SourceSpec::recording(first, self.topics.wanted()),
        })
    }

    fn lay(&self, layer: &mut FlagLayer) {
        if self.recording.is_none() {
            layer.put("source", "left_topic", "--left-topic", self.topics.left_topic.clone());
            layer.put("source", "right_topic", "--right-topic", self.topics.right_topic.clone());
        }
    }
}

/// The two views by position, or one input that holds both.
#[derive(Clone, Debug, Default, Args)]
pub struct PairArgs {
    /// Left view: an image, a video, images (left/%06d.png), a URI, or a GStreamer source
    #[arg(value_name = "LEFT", value_hint = ValueHint::FilePath)]
    #[arg(required_unless_present_any = ["side_by_side", "top_bottom"])]
    #[arg(conflicts_with_all = ["side_by_side", "top_bottom"])]
    pub left: Option<OsString>,

    /// Right view, likewise
    #[arg(value_name = "RIGHT", value_hint = ValueHint::FilePath)]
    pub right: Option<OsString>,

    /// One input with the left view in its left half, instead of LEFT and RIGHT
    #[arg(long, value_name = "BOTH", conflicts_with = "top_bottom", help_heading = "Source")]
    #[arg(value_hint = ValueHint::FilePath)]
    pub side_by_side: Option<OsString>,

    /// One input with the left view in its upper half
    #[arg(long, value_name = "BOTH", value_hint = ValueHint::FilePath, help_heading = "Source")]
    pub top_bottom: Option<OsString>,

    /// Exchange the cameras: the left input becomes the right view
    #[arg(long, help_heading = "Source")]
    pub swap: bool,

    #[command(flatten, next_help_heading = "Source")]
    pub packing: SettingFlags<PACKING>,

    #[command(flatten, next_help_heading = "Source")]
    pub pictures: SettingFlags<PICTURES>,
}

impl PairArgs {
    /// The input; `None` if none is named, which the command line does not allow.
    pub fn spec(&self) -> Option<SourceSpec> {
        let eyes = [self.left.as_ref(), self.right.as_ref()];
        SourceSpec::choose(eyes, self.side_by_side.as_ref(), self.top_bottom.as_ref())
    }

    /// The input, which is a recording of messages if only a left view is named.
    pub fn spec_or_recording(&self, topics: &TopicArgs) -> Option<SourceSpec> {
        let recording = || Some(SourceSpec::recording(self.left.as_ref()?, topics.wanted()));
        self.spec().or_else(recording)
    }

    pub fn lay(&self, layer: &mut FlagLayer) {
        layer.put("source", "swap", "--swap", self.swap.then_some(true));
        layer.add(&self.packing);
        layer.add(&self.pictures);
    }
}

impl SourceArgs {
    /// The source that was chosen, or `None` for none; [`NO_SOURCE`] then explains the choices.
    pub fn spec(&self) -> Option<SourceSpec> {
        if self.demo {
            return Some(SourceSpec::Demo);
        }
        let eyes = [self.left.as_ref(), self.right.as_ref()];
        SourceSpec::choose(eyes, self.side_by_side.as_ref(), self.top_bottom.as_ref())
            .or_else(|| self.recording.spec())
    }

    /// After how many pairs to stop; `None` goes on to the end of the source.
    pub fn limit(&self) -> Option<u64> {
        self.part.frames().limit
    }

    pub fn lay(&self, layer: &mut FlagLayer) {
        self.recording.lay(layer);
        layer.add(&self.part.times);
        layer.add(&self.pairing);
        layer.add(&self.cameras);
        layer.add(&self.packing);
        layer.add(&self.pictures);
        let side = |side: fn(Size) -> usize| self.demo_size.map(|size| side(size) as i64);
        layer.put("demo", "width", "--demo-size", side(|size| size.width));
        layer.put("demo", "height", "--demo-size", side(|size| size.height));
        layer.put("demo", "seed", "--seed", self.seed.map(|seed| seed as i64));
        let frames = self.part.frames.filter(|_| self.demo);
        // Without an end, `--frames 0` makes the scene endless.
        let frames = frames.map(|frames| frames.limit.or(frames.end).unwrap_or_default() as i64);
        layer.put("demo", "frames", "--frames", frames);
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::settings::Layers;
    use stereod_core::picture::tone::Tone;
    use stereod_io::source::v4l2::Format;

    #[derive(Debug, Parser)]
    struct Only {
        #[command(flatten)]
        source: SourceArgs,
    }

    fn parse(arguments: &str) -> Result<SourceArgs, clap::Error> {
        Only::try_parse_from(["x"].into_iter().chain(arguments.split_whitespace()))
            .map(|only| only.source)
    }

    #[test]
    fn each_kind_of_source() {
        let spec = |arguments| parse(arguments).unwrap().spec();
        assert_eq!(spec(""), None);
        assert_eq!(spec("--demo"), Some(SourceSpec::Demo));
        assert_eq!(spec("--left a --right b"), Some(SourceSpec::two("a", "b")));
        assert_eq!(spec("a.mp4 b.mp4"), Some(SourceSpec::two("a.mp4", "b.mp4")));
        assert_eq!(spec("--side-by-side a"), Some(SourceSpec::side_by_side("a")));
        assert_eq!(spec("--top-bottom a"), Some(SourceSpec::top_bottom("a")));
        let topics = [Some("/l".to_owned()), None];
        let recording = Some(SourceSpec::recording("a.mcap", topics));
        assert_eq!(spec("a.mcap --left-topic /l"), recording);
        assert_eq!(spec("--left-topic /l"), None);
    }

    #[test]
    fn one_kind_at_a_time() {
        for wrong in [
            "--left a",
            "--right a",
            "--demo --left a --right b",
            "--demo --side-by-side a",
            "--left a --right b --top-bottom c",
            "--left a --side-by-side c",
            "--side-by-side a --top-bottom b",
            "--demo --demo",
            "a.mcap --demo",
            "a.mcap --left a --right b",
            "a.mcap --side-by-side b",
            "a.mp4 b.mp4 c.mp4",
            "a.mp4 b.mp4 --right c.mp4",
            "a.mp4 b.mp4 --left-topic /l",
            "--side-by-side a --seed 3",
            "--demo --swap",
            "--side-by-side a --size 640",
            "--side-by-side a --rate soon",
            "--side-by-side a --format rgb",
            "--demo --demo-size 640",
            "--demo --demo-size 0x480",
            "--demo --seed -1",
            "--side-by-side a --tolerance soon",
        ] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn demo_flags_become_settings() {
        let args = parse("--demo --demo-size 320x200 --seed 9 --frames 12").unwrap();
        let mut layer = FlagLayer::default();
        args.lay(&mut layer);
        let demo = layer.over(Layers::new()).finish().unwrap().settings.demo;
        assert_eq!((demo.width, demo.height, demo.seed, demo.frames), (320, 200, 9, 12));
        assert_eq!(args.limit(), Some(12));
    }

    #[test]
    fn camera_flags_become_settings() {
        let args = parse(
            "--left a --right b --swap --size 640x480 --rate 15 --format MJPG --tone upper-bits",
        );
        let mut layer = FlagLayer::default();
        args.unwrap().lay(&mut layer);
        let source = layer.over(Layers::new()).finish().unwrap().settings.source;
        assert!(source.swap);
        assert_eq!(source.size, "640x480");
        assert_eq!((source.rate, source.format), (Some(15.0), Some(Format::Mjpg)));
        assert_eq!(source.tone, Tone::UpperBits);
    }

    #[test]
    fn frames_of_a_recording_are_no_setting() {
        let args = parse("--side-by-side a --frames 12 --tolerance 4.5").unwrap();
        let mut layer = FlagLayer::default();
        args.lay(&mut layer);
        let settings = layer.over(Layers::new()).finish().unwrap().settings;
        assert_eq!(settings.demo.frames, 300);
        assert_eq!(settings.source.tolerance_ms, Some(4.5));
        assert_eq!(args.limit(), Some(12));
        assert_eq!(parse("--demo --frames 0").unwrap().limit(), None);
    }

    #[test]
    fn auto_overrides_a_tolerance() {
        let mut layers = Layers::new();
        layers.assignment("source.tolerance_ms=3");
        let mut layer = FlagLayer::default();
        parse("--side-by-side a --tolerance auto").unwrap().lay(&mut layer);
        assert_eq!(layer.over(layers).finish().unwrap().settings.source.tolerance_ms, None);
    }
}
