//! `[queue]`: the bounded links between the stages.

use serde::Deserialize;

use super::row::Integer::U64;
use super::row::Plain::Whole;
use super::row::Row;

/// The bounded links between the stages.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs)] // `config/default.toml` says what each is.
pub struct Queue {
    pub pairs: usize,
    pub results: usize,
}

pub(super) const ROWS: &[Row] = &[
    Row::whole("pairs", Whole(4), U64, [1, 1024]),
    Row::whole("results", Whole(8), U64, [1, 1024]),
];
