//! Options for opening and pairing streams.

use std::time::Duration;

use crate::control::Switch;
use crate::source::excerpt::Part;
use crate::source::pairing::PairBy;
use crate::source::v4l2;
use stereod_core::chroma::Differences;
use stereod_core::frame::Eye;
use stereod_core::picture::orientation::Orient;
use stereod_core::picture::tone::Tone;
use stereod_core::pool::Pool;

/// URIs and fragments that are live: their frames do not wait for the matcher.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Live {
    /// Those that say so, and those that come over a network without a length.
    #[default]
    Auto,
    /// All of them.
    On,
    /// None of them: every frame is matched, however late.
    Off,
}

/// Streams that are reopened after they end, fail or fall silent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reconnect {
    /// Live ones.
    #[default]
    Auto,
    /// None: the source ends with the first lost stream.
    Off,
}

/// Shift in time of the right view's frames relative to the left one's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Offset {
    /// This many nanoseconds are added to the right times.
    Ns(i64),
    /// Estimated from the frames of two recordings.
    Auto,
}

impl Default for Offset {
    fn default() -> Self {
        Offset::Ns(0)
    }
}

/// Pools for the frames of streams.
#[derive(Clone, Debug, Default)]
pub struct Keep {
    /// Pool of the intensities.
    pub pixels: Pool<u8>,
    /// Pool of intensities of more than 8 bits, before they are reduced.
    pub samples: Pool<u16>,
    /// Pool of the colours; `None` if no output needs them.
    pub colours: Option<Pool<Differences>>,
}

/// Options for opening and pairing streams.
#[derive(Clone, Debug)]
pub struct GstOptions {
    /// Criterion that makes two frames a pair.
    pub pair_by: PairBy,
    /// Largest difference of a pair's times; `None`: the nearest frame is the partner.
    pub tolerance: Option<Duration>,
    /// Offset added to the times of the right view's frames.
    pub offset: Offset,
    /// True if the views are exchanged: the left input is the right view.
    pub swap: bool,
    /// True if views in one frame are squeezed to half their width or height.
    pub half: bool,
    /// Request to cameras; the size is per view.
    pub cameras: v4l2::CameraRequest,
    /// Exposure and the like of cameras.
    pub controls: v4l2::Controls,
    /// The view that sets exposure, gain and white balance of both cameras; `None`: each its own.
    pub exposure_from: Option<Eye>,
    /// Frame rate of numbered images, per second.
    pub picture_rate: f64,
    /// Longest time until a stream's first frame.
    pub patience: Duration,
    /// URIs and fragments that are live.
    pub live: Live,
    /// Kinds of streams that are reopened after a loss.
    pub reconnect: Reconnect,
    /// Longest silence of a live stream until it counts as lost; `None`: 2 s or 10 frames,
    /// whichever is longer.
    pub silence: Option<Duration>,
    /// Reduction of samples of more than 8 bits to 8.
    pub tone: Tone,
    /// Use of orientation tags.
    pub orient: Orient,
    /// Part of a recording to play.
    pub part: Part,
    /// Memory that holds the frames.
    pub keep: Keep,
    /// Ends the wait for the first frame.
    pub stop: Switch,
}

impl Default for GstOptions {
    fn default() -> Self {
        Self {
            pair_by: PairBy::Auto,
            tolerance: None,
            offset: Offset::default(),
            swap: false,
            half: false,
            cameras: v4l2::CameraRequest::default(),
            controls: v4l2::Controls::default(),
            exposure_from: None,
            picture_rate: 30.0,
            patience: Duration::from_secs(15),
            live: Live::Auto,
            reconnect: Reconnect::Auto,
            silence: None,
            tone: Tone::default(),
            orient: Orient::default(),
            part: Part::default(),
            keep: Keep::default(),
            stop: Switch::default(),
        }
    }
}
