//! HTTP server: metrics and health.

pub mod metrics;
