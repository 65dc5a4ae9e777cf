//! Options of the window, and its views.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

pub use crate::viewer::Span;
use crate::viewer::{Recorder, Tuning, Zones};
use stereod_core::frame::{DisparityRange, Matched};
use stereod_core::picture::cloud::CloudOptions;
use stereod_io::camera::CameraInput;
use stereod_io::sink::colour::{ColourMap, ColourRange};

/// Cameras of a run, and the functions that adjust them, which never wait.
#[derive(Clone)]
pub struct CameraDesk {
    pub inputs: Vec<CameraInput>,
    /// Starts or ends the reports of every second.
    pub watch: Arc<dyn Fn(bool) + Send + Sync>,
    /// Sets controls of a camera, given by its place in `inputs`. The request has a number, above those of
    /// earlier ones, and a value for each control.
    pub set: SetControls,
}

pub type SetControls = Arc<dyn Fn(usize, u64, &[(u32, i32)]) + Send + Sync>;

impl fmt::Debug for CameraDesk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CameraDesk").field("inputs", &self.inputs).finish_non_exhaustive()
    }
}

#[derive(Clone, Debug)]
pub struct WindowOptions {
    pub title: String,
    /// Width and height of the frames in pixels.
    pub picture: (u32, u32),
    pub colour_map: ColourMap,
    pub disparities: DisparityRange,
    /// Disparities at both ends of the colours.
    pub colour_range: ColourRange,
    pub view: View,
    pub snapshot_dir: PathBuf,
    /// Options of the point clouds that a key saves.
    pub clouds: CloudOptions,
    /// Times of a recording that can be moved through, or why there is no timeline.
    pub timeline: Result<Span, String>,
    /// True if a change of settings during a pause has the same pair matched again.
    pub holds_pair: bool,
    pub tuning: Option<Tuning>,
    pub cameras: Option<CameraDesk>,
    /// The zones that the run watches.
    pub zones: Zones,
    /// Smaller frames (width, height in points) are enlarged at the start.
    pub smallest: (u32, u32),
    /// Largest size (width, height in points) at the start, which the monitor may reduce further.
    pub largest: (u32, u32),
    pub full_screen: bool,
    /// The files of frames that the run writes.
    pub recorder: Option<Recorder>,
    /// Lists the machine's devices, which may take seconds.
    pub devices: fn() -> String,
}

impl WindowOptions {
    /// Returns the default window for frames of this size and this disparity range.
    pub fn new(title: impl Into<String>, picture: (u32, u32), disparities: DisparityRange) -> Self {
        Self {
            title: title.into(),
            picture,
            colour_map: ColourMap::Turbo,
            disparities,
            colour_range: ColourRange::Full,
            view: View::Disparity,
            snapshot_dir: PathBuf::from("."),
            clouds: CloudOptions::default(),
            timeline: Err("only recordings have a timeline".to_owned()),
            holds_pair: false,
            tuning: None,
            cameras: None,
            zones: Zones::default(),
            smallest: (640, 360),
            largest: (1600, 1000),
            full_screen: false,
            recorder: None,
            devices: String::new,
        }
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Timing {
    /// From the arrival of a pair to its disparity.
    #[default]
    Latency,
    /// From the start of matching to the disparity: for recordings played as fast as possible, whose
    /// frames wait in queues.
    Engine,
}

impl Timing {
    pub fn name(self) -> &'static str {
        match self {
            Timing::Latency => "latency",
            Timing::Engine => "engine",
        }
    }

    pub(super) fn of(self, frame: &Matched) -> Duration {
        match self {
            Timing::Latency => frame.latency(),
            Timing::Engine => frame.engine_time(),
        }
    }
}

/// Selection of the images shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum View {
    Left,
    #[default]
    Disparity,
    /// The left image and, right of it, the disparity.
    SideBySide,
    /// The left image and, right of it, the right one.
    Pair,
    Right,
    /// The pixels as points in space, from a viewpoint that the mouse moves.
    Points,
    /// The confidence of each pixel, in grey.
    Confidence,
    /// The left view without its background, with motion in black and white.
    Whitened,
    /// Whether a network and matching agree, in colours.
    Check,
}

impl View {
    /// Returns the next view in a cycle, including whitened images and verdicts if there are any.
    pub fn next(self, [whitens, checks]: [bool; 2]) -> Self {
        match self {
            View::Left => View::Disparity,
            View::Disparity => View::SideBySide,
            View::SideBySide => View::Points,
            View::Points => View::Confidence,
            View::Confidence => View::Right,
            View::Right if whitens => View::Whitened,
            View::Right | View::Whitened if checks => View::Check,
            View::Right | View::Whitened | View::Check | View::Pair => View::Left,
        }
    }

    pub fn has_disparity(self) -> bool {
        self.contents().contains(&Content::Disparity)
    }

    pub(super) fn contents(self) -> &'static [Content] {
        match self {
            View::Left => &[Content::Left],
            View::Disparity => &[Content::Disparity],
            View::SideBySide => &[Content::Left, Content::Disparity],
            View::Pair => &[Content::Left, Content::Right],
            View::Right => &[Content::Right],
            View::Points => &[Content::Points],
            View::Confidence => &[Content::Confidence],
            View::Whitened => &[Content::Whitened],
            View::Check => &[Content::Check],
        }
    }

    /// Returns the size in pixels at which the view shows a `width` x `height` frame at 1:1.
    pub fn natural_size(self, (width, height): (u32, u32)) -> (u32, u32) {
        (width * self.contents().len() as u32, height)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Content {
    Left,
    Disparity,
    Right,
    /// The pixels as points in space.
    Points,
    Confidence,
    /// The whitened image in grey.
    Whitened,
    Check,
}
