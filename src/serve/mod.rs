//! HTTP server: metrics, health, and the live page with its WebSocket.
//!
//! Every request must call this machine by one of its names ([`hosts`]) and come from its own pages
//! ([`access`]). Nothing is counted here, and no frame is encoded before a client asks for it.

mod access;
pub mod addresses;
mod answers;
mod hosts;
pub mod live;
pub mod metrics;
mod runs;
mod server;
#[cfg(test)]
mod tests;
mod wire;

use std::sync::Arc;

use crate::status::RunStatus;
use crate::telemetry::progress::Health;
pub use access::{Access, Token};
pub use answers::Site;
pub use hosts::Hosts;
pub use live::{Ending, Live, LiveSink};
pub use runs::{Run, Runs};
pub use server::{Listener, Server};

/// State of a run; asked on the server's thread.
pub trait State: Send + Sync + 'static {
    fn status(&self) -> Arc<RunStatus>;
    /// Returns the health at this moment, which does not depend on the thread that makes the status.
    fn health(&self) -> Health;
    /// Returns a configuration file with the settings in effect.
    fn settings(&self) -> String;
}
