//! `[queue]`: the bounded links between the stages.

use serde::{Deserialize, Serialize};

use super::values::Unfit;

/// The bounded links between the stages.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Queue {
    /// Pairs that may wait between the source and the engine.
    pub pairs: usize,
    /// Results that may wait between the engine and each sink.
    pub results: usize,
}

impl Default for Queue {
    fn default() -> Self {
        Queue { pairs: 4, results: 8 }
    }
}

impl Queue {
    pub(super) fn check(&self) -> Result<(), Unfit> {
        Unfit::within("pairs", self.pairs, 1..=1024)?;
        Unfit::within("results", self.results, 1..=1024)
    }
}
