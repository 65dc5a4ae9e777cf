//! Stopping and pausing, shared by every part of the pipeline.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A switch that any thread can set and every thread looks at. Clones are the same switch.
#[derive(Clone, Debug, Default)]
pub struct Switch(Arc<AtomicBool>);

impl Switch {
    /// Sets or clears the switch.
    pub fn set(&self, on: bool) {
        self.0.store(on, Ordering::SeqCst);
    }

    /// Whether the switch is set.
    pub fn is_set(&self) -> bool {
        self.0.load(Ordering::SeqCst)
    }

    /// Clears the switch; whether it was set.
    pub fn take(&self) -> bool {
        self.0.swap(false, Ordering::SeqCst)
    }

    /// Flips the switch.
    pub fn toggle(&self) {
        self.0.fetch_xor(true, Ordering::SeqCst);
    }
}

/// What the outside may ask of a running pipeline.
#[derive(Clone, Debug, Default)]
pub struct Control {
    /// Stop the source, match what is in the queues, finish the files.
    pub stop: Switch,
    /// Hold the source.
    pub pause: Switch,
    /// Let one pair pass while the source is held.
    pub step: Switch,
}
