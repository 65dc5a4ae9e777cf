//! `[queue]`: the bounded links between the stages.

use serde::Deserialize;

use stereod_core::settings::row::Integer::U64;
use stereod_core::settings::row::Plain::Whole;
use stereod_core::settings::row::Row;

/// The bounded links between the stages.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Queue {
    pub pairs: usize,
    pub results: usize,
}

pub(in crate::settings) const ROWS: &[Row] = &[
    Row::whole("pairs", Whole(4), U64, [1, 1024])
        .help("Pairs that may wait between the source and the engine."),
    Row::whole("results", Whole(8), U64, [1, 1024])
        .help("Results that may wait between the engine and each output."),
];
