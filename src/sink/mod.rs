//! Where disparity goes.

pub mod board;
pub mod claim;
pub mod cloud;
pub mod clouds;
pub mod colour;
pub mod colouring;
pub mod encoding;
pub mod files;
pub mod flush;
pub mod inputs;
pub mod new_file;
pub mod numbered;
pub mod numbers;
pub mod observers;
pub mod pictures;
pub mod png;
pub mod restarting;
pub mod segments;
pub mod still;
mod target;
pub mod video;
pub mod window;

use std::sync::Arc;

use crate::clock::CaptureClock;
use crate::frame::{DisparityRange, Matched, StereoGeometry};
use crate::matching::{Steady, Temporal};

/// The stream of maps that sinks are given, as it is known before the first one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StreamInfo {
    /// Width and height of the maps in pixels.
    pub size: (usize, usize),
    /// Pairs a second, where known; the frames keep their own times in any case.
    pub rate: Option<f64>,
    /// The candidate disparities; they choose the encoding of numbers.
    pub range: DisparityRange,
    /// The cameras that depth is computed from, where known.
    pub geometry: Option<StereoGeometry>,
    /// True where left pictures have their colour.
    pub has_colour: bool,
    /// The clock of the capture times, where they have one.
    pub clock: Option<CaptureClock>,
    /// The stages in time that are on.
    pub stages: StagesInTime,
}

/// The stages of the matcher that go by pairs before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StagesInTime {
    /// What is made of the pictures.
    pub temporal: Option<Temporal>,
    /// How steady maps are.
    pub steady: Option<Steady>,
}

/// Frames that an output took and did not keep.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Losses {
    /// Those for which whoever is behind it had no time.
    pub busy: u64,
    /// Those that could not be written; known once it has failed.
    pub failed: u64,
}

impl std::ops::AddAssign for Losses {
    fn add_assign(&mut self, other: Self) {
        self.busy += other.busy;
        self.failed += other.failed;
    }
}

/// A consumer of matched pairs. Each runs on a thread of its own behind a bounded link.
pub trait Sink: Send {
    /// Name of the output, for people: "recording out.mkv".
    fn name(&self) -> &str;

    /// True where only the newest pair is of interest: the pipeline then never waits for the sink, and
    /// pairs that it is busy for pass it by.
    fn newest_only(&self) -> bool {
        false
    }

    /// True for one that only looks at what passes and writes nothing: nothing is lost where it does not
    /// come to its end.
    fn is_check(&self) -> bool {
        false
    }

    /// Takes one matched pair; frames come in order.
    fn consume(&mut self, frame: &Arc<Matched>) -> anyhow::Result<()>;

    /// Numbers of frames that it took and did not keep.
    fn losses(&self) -> Losses {
        Losses::default()
    }

    /// Completes what was written; called once, also after a failure elsewhere or of its own.
    fn finish(&mut self) -> anyhow::Result<()>;
}
