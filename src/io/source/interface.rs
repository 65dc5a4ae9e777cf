//! Interface of all sources of stereo pairs.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;

use crate::camera::CameraInput;
use crate::control::Switch;
use crate::labels::Labels;
use crate::source::live::LiveState;
use stereod_core::frame::StereoPair;

/// A live source that is temporarily unavailable: a camera that is unplugged, busy or silent, or a
/// server that does not answer. A later attempt may succeed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct Unavailable {
    /// Message that names the source and the fix.
    pub reason: String,
}

#[derive(Clone, Debug, Default)]
pub struct SourceInfo {
    /// Name for people: "left.mp4 + right.mp4", "demo scene".
    pub description: String,
    /// Size of the left view in pixels.
    pub width: usize,
    pub height: usize,
    /// Width and height of the right view, if they differ from the left one's.
    pub right: Option<(usize, usize)>,
    /// Recorded or captured pairs per second, if known.
    pub rate: Option<f64>,
    /// Expected number of pairs, if known (estimated from the duration).
    pub pairs: Option<u64>,
    /// Time of the first image of the left view.
    pub begin: Duration,
    /// Time from there to the end, if known.
    pub length: Option<Duration>,
    /// True if the source can be moved by [`Source::seek`] at any time.
    pub seekable: bool,
    /// True if the source is live. Live sources never wait for the matcher; their oldest pairs are
    /// dropped instead.
    pub live: bool,
    pub has_truth: bool,
    pub has_colour: bool,
    /// Smallest grey level of white.
    pub white: u8,
    pub cameras: Vec<CameraInput>,
    /// Numbers and time codes of the left view's frames.
    pub labels: Labels,
}

impl SourceInfo {
    /// Returns width and height of the left and the right view.
    pub fn sizes(&self) -> [(usize, usize); 2] {
        let left = (self.width, self.height);
        [left, self.right.unwrap_or(left)]
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SourceCounts {
    pub left: u64,
    pub right: u64,
    pub pairs: u64,
    pub unpaired_left: u64,
    pub unpaired_right: u64,
    /// Damage of the left view, or of the stream that holds both.
    pub damaged_left: Damage,
    pub damaged_right: Damage,
}

/// Counts of a view's damaged frames.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct Damage {
    /// Frames with damage that the decoder concealed.
    pub concealed: u64,
    /// Unreadable frames, which were left out.
    pub left_out: u64,
    /// Frames with a wrong time, which have no partner by time.
    pub mistimed: u64,
}

impl Damage {
    pub fn is_none(&self) -> bool {
        *self == Self::default()
    }
}

impl std::fmt::Display for Damage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let frames =
            |count: u64| format!("{count} {}", if count == 1 { "frame" } else { "frames" });
        let damaged = |count: u64| frames(count).replacen(' ', " damaged ", 1);
        let parts = [
            (self.concealed, format!("{}, concealed by the decoder", damaged(self.concealed))),
            (self.left_out, format!("{} left out", damaged(self.left_out))),
            (self.mistimed, format!("{} with a wrong time", frames(self.mistimed))),
        ];
        let parts: Vec<_> =
            parts.into_iter().filter(|(count, _)| *count > 0).map(|(_, part)| part).collect();
        f.write_str(&parts.join(", "))
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// The first pair of this time or a later one.
    Time(Duration),
    Pair(u64),
}

/// A source that has been opened and knows its size.
pub trait Source: Send {
    fn info(&self) -> &SourceInfo;

    /// Delivers pairs on the calling thread, each with the counts so far, until the source ends, `stop` is
    /// set, or `emit` breaks. An error is returned after all pairs that were readable before it.
    fn run(
        &mut self,
        stop: &Switch,
        emit: &mut dyn FnMut(StereoPair, SourceCounts) -> ControlFlow<()>,
    ) -> anyhow::Result<()>;

    /// Moves a recorded source before or after [`Source::run`], which then delivers the pairs from
    /// that place on. Earlier pairs may come before them, because streams begin at a key frame or at
    /// their first frame; [`Excerpt`](crate::source::excerpt::Excerpt) leaves them out. Pairs keep the
    /// numbers that they have in the whole source.
    fn seek(&mut self, _place: Place) -> anyhow::Result<()> {
        anyhow::bail!("{} plays once only, from its beginning", self.info().description)
    }

    fn counts(&self) -> SourceCounts;

    /// Returns the state of a live source, readable while it runs; `None` for others.
    fn live_state(&self) -> Option<Arc<LiveState>> {
        None
    }
}
