//! Metrics for Prometheus, in the OpenMetrics text format
//! (<https://prometheus.io/docs/specs/om/open_metrics_spec/>).
//!
//! Nothing is counted here: a scrape formats the newest status of the run.

mod exposition;
mod process;

pub use exposition::text;
pub use process::Process;
