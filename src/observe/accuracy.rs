//! Observer of the accuracy where the truth is known.

use std::sync::{Arc, Mutex};

use stereod_core::frame::Matched;
use stereod_core::thread::locked;
use stereod_io::accuracy::Accuracy;
pub use stereod_io::accuracy::AccuracySummary;

use super::Observer;

/// Errors that grow while pairs flow.
pub type Shared = Arc<Mutex<Accuracy>>;

impl Observer for Shared {
    fn observe(&mut self, frame: &Matched) {
        if let Some(truth) = &frame.pair.truth {
            locked(self).add(&frame.disparity, truth);
        }
    }
}
