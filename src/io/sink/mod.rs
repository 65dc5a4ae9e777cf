//! Outputs of disparity.

pub mod colour;
pub mod colouring;
pub mod lines;
pub mod mcap;
pub mod messages;
pub mod numbered;
mod output;
pub mod pictures;
pub mod poses;
pub mod restarting;
pub mod segments;
pub mod still;
pub mod video;

use std::sync::Arc;

use crate::clock::CaptureClock;
use crate::control::Recording;
use crate::labels::Labels;
use stereod_core::frame::{DisparityRange, Matched, StereoGeometry};
use stereod_core::matching::{Steady, Temporal};

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StreamInfo {
    /// Width and height of the maps in pixels.
    pub size: (usize, usize),
    /// Pairs per second, if known; frames keep their own times in any case.
    pub rate: Option<f64>,
    /// The candidate disparities, which determine the encoding of numbers.
    pub range: DisparityRange,
    pub geometry: Option<StereoGeometry>,
    /// Set if left images have their colour.
    pub has_colour: bool,
    /// Set if obstacles are found in every pair.
    pub has_obstacles: bool,
    /// Set if the motion of the rig is followed.
    pub has_odometry: bool,
    /// Set if matching checks a network.
    pub has_verdicts: bool,
    /// Whether the place of the camera on the vehicle is that of each pair, because it follows the ground.
    pub tracks_ground: bool,
    pub clock: Option<CaptureClock>,
    pub stages: StagesInTime,
    /// Numbers and time codes of the source's frames.
    pub labels: Labels,
}

/// The stages of the matcher that depend on earlier pairs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StagesInTime {
    pub temporal: Option<Temporal>,
    pub steady: Option<Steady>,
}

/// Frames that an output took and did not write.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Losses {
    pub busy: u64,
    /// Lost because writing failed; known after the failure.
    pub failed: u64,
    pub suspended: u64,
}

impl std::ops::AddAssign for Losses {
    fn add_assign(&mut self, other: Self) {
        self.busy += other.busy;
        self.failed += other.failed;
        self.suspended += other.suspended;
    }
}

/// A consumer of matched pairs. Each runs on its own thread behind a bounded link.
pub trait Sink: Send {
    /// Returns the name of the output, for people: "recording out.mkv".
    fn name(&self) -> &str;

    /// Returns the key of its pairs in the statistics, if it writes them.
    fn counted_as(&self) -> Option<&'static str> {
        None
    }

    /// Reports whether only the newest pair matters: the pipeline then never waits for the sink,
    /// which misses pairs while it is busy.
    fn newest_only(&self) -> bool {
        false
    }

    /// Reports whether it only observes and writes nothing, so that nothing is lost if it does not finish.
    fn is_check(&self) -> bool {
        false
    }

    /// Tells the recording that the following frames belong to; `None` while nothing is written to files.
    fn switch_to(&mut self, _recording: Option<&Recording>) {}

    fn consume(&mut self, frame: &Arc<Matched>) -> anyhow::Result<()>;

    fn losses(&self) -> Losses {
        Losses::default()
    }

    /// Completes the written data; called once, also after a failure, which the caller reports then instead of this
    /// one.
    fn finish(&mut self) -> anyhow::Result<()> {
        Ok(())
    }
}

fn check_same_size(known: (usize, usize), now: (usize, usize)) -> anyhow::Result<()> {
    let ((width, height), (new_width, new_height)) = (known, now);
    anyhow::ensure!(
        now == known,
        "the size changed from {width}x{height} to {new_width}x{new_height}"
    );
    Ok(())
}
