//! HTTP server: metrics, health, and the live page with its WebSocket.
//!
//! Every request must call this machine by one of its names ([`hosts`]) and come from its own pages
//! ([`access`]). Nothing is counted here, and no frame is encoded before a client asks for it.

mod access;
mod answers;
mod hosts;
pub mod live;
pub mod metrics;
mod peer;
mod server;
mod state;
#[cfg(test)]
mod tests;

pub use access::{Access, Token};
pub use answers::Site;
pub use hosts::Hosts;
pub use live::{Ending, Live, LiveSink};
pub use server::{Listener, Server};
pub use state::State;
