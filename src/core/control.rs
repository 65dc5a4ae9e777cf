//! Stopping and pausing, shared by every part of the pipeline.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::core::playback::Playback;

/// A flag shared by threads. Clones are the same flag.
#[derive(Clone, Debug, Default)]
pub struct Switch(Arc<AtomicBool>);

impl Switch {
    /// Sets or clears the switch.
    pub fn set(&self, on: bool) {
        self.0.store(on, Ordering::SeqCst);
    }

    /// Reports whether the switch is set.
    pub fn is_set(&self) -> bool {
        self.0.load(Ordering::SeqCst)
    }

    /// Clears the switch and returns whether it was set.
    pub fn take(&self) -> bool {
        self.0.swap(false, Ordering::SeqCst)
    }

    /// Flips the switch.
    pub fn toggle(&self) {
        self.0.fetch_xor(true, Ordering::SeqCst);
    }
}

/// Requests to a running pipeline.
#[derive(Clone, Debug, Default)]
pub struct Control {
    /// Stops the source, matches the queued pairs and finishes the files.
    pub stop: Switch,
    /// Pauses the source.
    pub pause: Switch,
    /// Lets one pair pass while the source is paused.
    pub step: Switch,
    /// Suspends the writing of frames to files.
    pub suspend_recording: Switch,
    /// Moves through a recording.
    pub playback: Playback,
}
