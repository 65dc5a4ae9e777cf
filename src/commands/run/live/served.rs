//! Read-only view of a run for the HTTP server, and the ports that it is served on.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::handles::Handles;
use crate::commands::{signals, told};
use crate::core::frame::Eye;
use crate::observe::alignment;
use crate::observe::exposure::EyeExposure;
use crate::observe::map_metrics::Classes;
use crate::pipeline::{Outcome, SinkCounts};
use crate::serve::metrics::{self, Reading};
use crate::serve::{Access, Ending, Hosts, Listener, Live, Server, Site, State, Token};
use crate::settings::Settings;
use crate::source::live::EyeSummary;
use crate::telemetry::progress::{Distribution, Health, TIME_CLASSES_US};
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
    fn reading(&self) -> Reading {
        let progress = &self.progress;
        let maps = self.observations.map_metrics();
        let outputs = self.counters.sinks.iter().map(|sink| sink.now());
        let outputs = outputs.filter(|sink| !sink.is_check);
        let output = |SinkCounts { name, frames, dropped, failed, .. }| metrics::Output {
            name,
            frames,
            dropped,
            failed,
        };
        Reading {
            source: self.info.description.clone(),
            engine: self.engine.clone(),
            running: progress.elapsed().as_secs_f64(),
            frames: progress.frames(),
            unpaired: progress.unpaired_frames(),
            pairs: progress.pairs.load(Ordering::Relaxed),
            dropped: self.counters.dropped_pairs.load(Ordering::Relaxed),
            matched: progress.matched.load(Ordering::Relaxed),
            outputs: outputs.map(output).collect(),
            latency: self.clocked.then(|| progress.latency_within(&TIME_CLASSES_US)),
            engine_time: Some(distribution(&maps.engine)),
            device_time: progress.device_time_within(&TIME_CLASSES_US),
            skew: Some(distribution(&maps.skew)),
            valid_share: maps.valid_share,
            exposure: self
                .observations
                .exposure()
                .map(|seen| [seen.left, seen.right].map(exposure)),
            alignment: self.observations.alignment().and_then(seen_alignment),
            cameras: self.live.as_ref().map(|live| {
                [Eye::Left, Eye::Right].map(|eye| {
                    let eye = live.eye(eye).summary();
                    let EyeSummary { lost, reconnects, broken, missed, mistimed, .. } = eye;
                    metrics::Camera { lost, reconnects, broken: broken + missed + mistimed }
                })
            }),
            ended: progress.source_ended.load(Ordering::Relaxed),
            healthy: self.health().is_ok(),
        }
    }

    fn health(&self) -> Health {
        Handles::health(self)
    }
}

fn distribution(classes: &Classes) -> Distribution {
    let classes_and_counts: Vec<_> = classes.counts().collect();
    let count = classes_and_counts.iter().map(|(_, count)| count).sum();
    Distribution { classes: classes_and_counts, sum: classes.sum().as_secs_f64(), count }
}

fn exposure(seen: EyeExposure) -> metrics::Exposure {
    let EyeExposure { noise, brightness, saturated } = seen;
    metrics::Exposure { noise, brightness, saturated }
}

fn seen_alignment(state: alignment::State) -> Option<metrics::Alignment> {
    let seen = state.measurement?;
    Some(metrics::Alignment {
        row_error_px: seen.row_error_px,
        roll_deg: seen.roll_deg,
        alarm: state.verdict.is_alarm(),
    })
}
