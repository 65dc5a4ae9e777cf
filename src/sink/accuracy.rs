//! Comparison with the truth, where the source knows it.

use std::sync::{Arc, Mutex, PoisonError};

use crate::frame::Matched;
use crate::sink::Sink;
use crate::telemetry::accuracy::Accuracy;

/// Name of the [`AccuracySink`].
pub const NAME: &str = "comparison with the truth";

/// Adds every pair that carries its truth to an account that others can read.
pub struct AccuracySink {
    account: Arc<Mutex<Accuracy>>,
}

impl AccuracySink {
    /// A sink that adds to `account`.
    pub fn new(account: Arc<Mutex<Accuracy>>) -> Self {
        Self { account }
    }
}

impl Sink for AccuracySink {
    fn name(&self) -> &str {
        NAME
    }

    fn consume(&mut self, frame: &Arc<Matched>) -> anyhow::Result<()> {
        if let Some(truth) = &frame.pair.truth {
            let mut account = self.account.lock().unwrap_or_else(PoisonError::into_inner);
            account.add(&frame.disparity, truth);
        }
        Ok(())
    }

    fn finish(&mut self) -> anyhow::Result<()> {
        Ok(())
    }
}
