//! Read-only view of a run for the HTTP server, and the ports that it is served on.

use std::sync::Arc;

use super::handles::Handles;
use crate::commands::{signals, told};
use crate::pipeline::Outcome;
use crate::serve::{Access, Ending, Hosts, Listener, Live, Server, Site, State, Token};
use crate::settings::Settings;
use crate::status::RunStatus;
use crate::telemetry::progress::Health;
use crate::telemetry::stderr;

/// Ports that were taken before anything was opened.
pub struct Listeners {
    metrics: Option<Listener>,
    page: Option<(Listener, Token)>,
}

impl Listeners {
    /// Takes the ports that the settings name.
    pub fn bind(settings: &Settings) -> anyhow::Result<Self> {
        let metrics = settings.metrics.listen().map(Listener::bind).transpose()?;
        let page = |address| -> anyhow::Result<_> {
            let token = match settings.serve.token_file() {
                Some(file) => Token::of_file(&file)?,
                None => Token::random()?,
            };
            Ok((Listener::bind(address)?, token))
        };
        Ok(Self { metrics, page: settings.serve.listen().map(page).transpose()? })
    }

    /// Serves the run.
    pub fn serve(self, handles: &Arc<Handles>, live: Option<Live>) -> anyhow::Result<Vec<Server>> {
        let settings = handles.loaded().settings;
        let hosts = Arc::new(Hosts::new(settings.metrics.hosts()));
        let site = Site { hosts, access: Access::default(), state: handles.clone(), live: None };
        let mut servers = Vec::new();
        if let Some(listener) = self.metrics {
            let server = Server::start(listener, site.clone())?;
            tracing::info!("metrics on http://{}/metrics", server.address());
            servers.push(server);
        }
        if let Some((listener, token)) = self.page {
            let is_required = !listener.is_loopback() || settings.serve.require_token;
            let access = Access { token: Some(token.clone()), is_required };
            let server = Server::start(listener, Site { access, live, ..site })?;
            let address = server.address();
            match settings.serve.token_file() {
                // Not a log event, whose secrets are hidden.
                None => stderr::tell(&format!("page on http://{address}/?token={}", token.text())),
                Some(file) => tracing::info!(
                    "page on http://{address}/ with ?token= and the text of {}",
                    file.display()
                ),
            }
            servers.push(server);
        }
        Ok(servers)
    }
}

/// Returns the end of a run as viewers are told. They try again unless it has reached its own end, because a
/// service is started again.
pub fn ending(outcome: &Outcome) -> Ending {
    match &outcome.error {
        Some(error) => Ending::away(format!("the run has failed: {}", told(error))),
        None if signals::interrupted() => Ending::away("stereod was stopped".into()),
        None => Ending::finished(format!("the run has ended after {} pairs", outcome.matched)),
    }
}

impl State for Handles {
    fn status(&self) -> Arc<RunStatus> {
        self.status.get()
    }

    fn health(&self) -> Health {
        Handles::health(self)
    }
}
