//! `[log]`: messages on standard error.

use serde::Deserialize;

use crate::telemetry::logs;
use stereod_core::settings::row::Row;

/// Messages on standard error.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Log {
    /// A level, or levels of modules, as in the variable RUST_LOG.
    pub filter: String,
    pub format: logs::Format,
    pub time: logs::Time,
}

pub(in crate::settings) const ROWS: &[Row] = &[
    Row::text("filter", "info", |text| {
        logs::check_filter(text).map_err(|_| {
            "`off`, `error`, `warn`, `info`, `debug` or `trace`, \
             or levels of modules such as `info,stereod::engine=debug`"
                .into()
        })
    })
    .help("Level of the log: off, error, warn, info, debug or trace.")
    .more(
        "Also for single modules: \"info,stereod::engine=debug\". The variable RUST_LOG overrides it.",
    )
    .live(),
    Row::names("format", "text", &["text", "json"])
        .help("Form of a line.")
        .about(&["Plain text", "An object with timestamp, level, message and target"]),
    Row::names("time", "uptime", &["uptime", "clock"])
        .help("Time in lines of text.")
        .about(&["Seconds since the start", "Date and time, UTC"]),
];
