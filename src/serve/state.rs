//! The state of a run for the server.

use std::sync::Arc;

use crate::status::RunStatus;
use crate::telemetry::progress::Health;

/// State of a run; asked on the server's thread.
pub trait State: Send + Sync + 'static {
    /// Returns the newest status.
    fn status(&self) -> Arc<RunStatus>;
    /// Returns the health at this moment, which does not depend on the thread that makes the status.
    fn health(&self) -> Health;
}
