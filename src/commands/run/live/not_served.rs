//! Stands in for the HTTP server in a program that was built without it.

use std::sync::Arc;

use super::handles::Handles;
use crate::settings::Settings;

/// Ports that were taken; there are none.
pub struct Listeners;

impl Listeners {
    /// Fails if the settings name a port.
    pub fn bind(settings: &Settings) -> anyhow::Result<Self> {
        let wanted = settings.metrics.listen().or(settings.serve.listen());
        anyhow::ensure!(
            wanted.is_none(),
            "this stereod was built without a server (Cargo's feature `serve`)"
        );
        Ok(Self)
    }

    /// Serves nothing.
    pub fn serve(self, _: &Arc<Handles>) -> anyhow::Result<()> {
        Ok(())
    }
}
