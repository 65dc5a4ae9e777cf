//! Metrics for Prometheus, in the OpenMetrics text format
//! (<https://prometheus.io/docs/specs/om/open_metrics_spec/>).
//!
//! Nothing is counted here: at each scrape the pipeline's owner is asked for a [`Reading`], so that
//! metrics cost nothing in between.

mod exposition;
mod process;

pub use exposition::{Alignment, Camera, Exposure, Output, Reading, text};
pub use process::Process;
