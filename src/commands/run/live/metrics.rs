//! Read-only view of a run, for Prometheus.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::handles::Handles;
use crate::core::frame::Eye;
use crate::observe::alignment;
use crate::observe::exposure::EyeExposure;
use crate::observe::map_metrics::Classes;
use crate::pipeline::SinkCounts;
use crate::serve::metrics::{self, Hosts, Listener, Reading, Server, State};
use crate::source::live::EyeSummary;
use crate::telemetry::progress::{Distribution, Health, TIME_CLASSES_US};

/// Starts the metrics server.
pub fn serve(listener: Option<Listener>, handles: &Arc<Handles>) -> anyhow::Result<Option<Server>> {
    let Some(listener) = listener else { return Ok(None) };
    let hosts = Hosts::new(handles.loaded().settings.metrics.hosts());
    let server = Server::start(listener, hosts, handles.clone())?;
    tracing::info!("metrics on http://{}/metrics", server.address());
    Ok(Some(server))
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
            engine_time: maps.as_ref().map(|maps| distribution(&maps.engine)),
            device_time: progress.device_time_within(&TIME_CLASSES_US),
            skew: maps.as_ref().map(|maps| distribution(&maps.skew)),
            valid_share: maps.and_then(|maps| maps.valid_share),
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
