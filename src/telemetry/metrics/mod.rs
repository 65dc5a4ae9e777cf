//! Metrics for Prometheus, in the OpenMetrics text format
//! (<https://prometheus.io/docs/specs/om/open_metrics_spec/>), and the server that hands them out.
//!
//! Nothing is counted here: whoever runs the pipeline says how things stand ([`Reading`]) when a
//! scrape asks, so that metrics cost nothing in between.

mod answers;
mod connections;
mod exposition;
mod hosts;
mod process;
mod server;

pub use answers::{Health, State};
pub use exposition::{Alignment, Camera, Exposure, Output, Reading, TIME_CLASSES_US};
pub use hosts::Hosts;
pub use server::{Listener, Server};

#[cfg(test)]
mod tests;
