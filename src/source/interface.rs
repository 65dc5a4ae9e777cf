//! What every source of stereo pairs is.

use std::ops::ControlFlow;
use std::sync::Arc;

use serde::Serialize;

use crate::control::Switch;
use crate::frame::StereoPair;
use crate::source::live::LiveState;

/// A live source that is not to be had just now: a camera that is not plugged in, is used by
/// somebody else or brings no frames, a server that does not answer. Trying again later may help.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct Unavailable {
    /// Message that names the source and the cure.
    pub reason: String,
}

/// Facts on a source, known before its first pair.
#[derive(Clone, Debug)]
pub struct SourceInfo {
    /// Name for people: "left.mp4 + right.mp4", "demo scene".
    pub description: String,
    /// Width of each view in pixels.
    pub width: usize,
    /// Height of each view in pixels.
    pub height: usize,
    /// Pairs a second as recorded or captured, where known.
    pub rate: Option<f64>,
    /// Number of pairs to be expected, where known (an estimate from the duration).
    pub pairs: Option<u64>,
    /// Live sources never wait for the matcher; their oldest pairs are dropped instead.
    pub live: bool,
    /// Whether pairs carry their true disparity.
    pub has_truth: bool,
    /// Whether left frames carry their colour.
    pub has_colour: bool,
    /// Grey level from which on its frames are white.
    pub white: u8,
}

/// Numbers of what a source has delivered so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SourceCounts {
    /// Frames of the left view.
    pub left: u64,
    /// Frames of the right view.
    pub right: u64,
    /// Pairs.
    pub pairs: u64,
    /// Left frames without a right one.
    pub unpaired_left: u64,
    /// Right frames without a left one.
    pub unpaired_right: u64,
    /// Damage of the left view, or of the stream that holds both.
    pub damaged_left: Damage,
    /// Damage of the right view.
    pub damaged_right: Damage,
}

/// Numbers of a view's frames that are known to be damaged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Damage {
    /// Frames that arrived although the decoder could not read all of them, and concealed the rest.
    pub concealed: u64,
    /// Frames that were left out because they could not be read.
    pub left_out: u64,
    /// Frames whose time is wrong, which have no partner by time.
    pub mistimed: u64,
}

impl Damage {
    /// Reports whether there is none.
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

/// A source that has been opened and knows its size.
pub trait Source: Send {
    /// Facts on it.
    fn info(&self) -> &SourceInfo;

    /// Delivers pairs on the calling thread, each with what has been delivered so far, until the
    /// source ends, `stop` is set, or `emit` breaks.
    /// Everything that was readable before an error has been emitted when the error is returned.
    fn run(
        &mut self,
        stop: &Switch,
        emit: &mut dyn FnMut(StereoPair, SourceCounts) -> ControlFlow<()>,
    ) -> anyhow::Result<()>;

    /// Numbers of what has been delivered so far.
    fn counts(&self) -> SourceCounts;

    /// State of the views of a live source, to be read while it runs; `None` for others.
    fn live_state(&self) -> Option<Arc<LiveState>> {
        None
    }
}
