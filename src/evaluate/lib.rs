//! Benchmarks: truth, scores and reports.

pub mod compare;
pub mod described;
pub mod discontinuities;
pub mod even;
pub mod find;
pub mod item;
pub mod layouts;
pub mod measured;
pub mod noise;
pub mod npy;
pub mod opencv;
pub mod pfm;
pub mod pictures;
pub mod report;
pub mod scoring;
pub mod sparsification;
pub mod submission;
pub mod summary;
pub mod surfaces;
pub mod table;
pub mod truth;
