//! Figures of a run, for the server's clients.

use super::metrics::Reading;
use crate::telemetry::progress::Health;

/// Source of the published figures; asked on the server's thread.
pub trait State: Send + Sync + 'static {
    /// Returns all figures.
    fn reading(&self) -> Reading;
    /// Returns the health of the run.
    fn health(&self) -> Health;
}
