//! Metrics for Prometheus, in the OpenMetrics text format
//! (<https://prometheus.io/docs/specs/om/open_metrics_spec/>), and the server that hands them out.
//!
//! Nothing is counted here: at each scrape the pipeline's owner is asked for a [`Reading`], so that
//! metrics cost nothing in between.

mod answers;
mod exposition;
mod hosts;
mod process;
mod server;

pub use answers::State;
pub use exposition::{Alignment, Camera, Exposure, Output, Reading};
pub use hosts::Hosts;
pub use server::{Listener, Server};

#[cfg(test)]
mod tests;
