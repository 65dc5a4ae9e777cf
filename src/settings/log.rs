//! `[log]`: what is logged to standard error.

use serde::{Deserialize, Serialize};

use super::values::Unfit;
use crate::telemetry::logs;

/// What is logged to standard error.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Log {
    /// A level, or levels of modules, as in the variable RUST_LOG.
    pub filter: String,
}

impl Default for Log {
    fn default() -> Self {
        Log { filter: "info".into() }
    }
}

impl Log {
    pub(super) fn check(&self) -> Result<(), Unfit> {
        logs::check_filter(&self.filter).map_err(|_| {
            Unfit::new(
                "filter",
                "`off`, `error`, `warn`, `info`, `debug` or `trace`, \
                 or levels of modules such as `info,stereod::engine=debug`",
            )
        })
    }
}
