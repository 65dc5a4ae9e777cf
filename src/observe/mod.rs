//! Observers of a run: they measure the matched pairs that flow past, and write nothing.

pub mod alignment;
pub mod duplicate;
pub mod exposure;
pub mod known;
pub mod map_metrics;
pub mod moment;
pub mod range;
pub mod told;

use std::sync::{Arc, Mutex};

use anyhow::Result;

use stereod_core::frame::Matched;
use stereod_core::thread::locked;
use stereod_io::accuracy::Accuracy;
pub use stereod_io::accuracy::AccuracySummary;
use stereod_io::sink::Sink;

/// An observer of matched pairs, which shares its measurements.
pub trait Observer: Send {
    fn observe(&mut self, frame: &Matched);

    /// Concludes once the last pair has passed.
    fn finish(&mut self) {}
}

/// A sink that shows each pair to several observers, one after the other.
pub struct Observers {
    pub name: &'static str,
    /// Set for observers that are too slow for every pair.
    pub newest_only: bool,
    pub list: Vec<Box<dyn Observer>>,
}

impl Sink for Observers {
    fn name(&self) -> &str {
        self.name
    }

    fn newest_only(&self) -> bool {
        self.newest_only
    }

    fn is_check(&self) -> bool {
        true
    }

    fn consume(&mut self, frame: &Arc<Matched>) -> Result<()> {
        self.list.iter_mut().for_each(|observer| observer.observe(frame));
        Ok(())
    }

    fn finish(&mut self) -> Result<()> {
        self.list.iter_mut().for_each(|observer| observer.finish());
        Ok(())
    }
}

/// Errors that grow while pairs flow.
pub type SharedAccuracy = Arc<Mutex<Accuracy>>;

impl Observer for SharedAccuracy {
    fn observe(&mut self, frame: &Matched) {
        if let Some(truth) = &frame.pair.truth {
            locked(self).add(&frame.disparity, truth);
        }
    }
}
