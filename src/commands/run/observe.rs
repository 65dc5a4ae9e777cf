//! A run as those see it who only look: Prometheus, a health check, the service manager.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use super::statistics::INTERNAL_SINKS;
use crate::control::Control;
use crate::frame::Eye;
use crate::pipeline::Counters;
use crate::settings::Metrics;
use crate::sink::map_metrics::{self, Classes};
use crate::sink::{Sink, alignment};
use crate::source::SourceInfo;
use crate::source::live::{EyeSummary, LiveState};
use crate::telemetry::metrics::{
    self, Health, Hosts, Listener, Reading, Server, State, TIME_CLASSES_US,
};
use crate::telemetry::progress::{Distribution, Progress};

/// Longest times of the classes of the eyes' difference in time, in microseconds.
const SKEW_CLASSES_US: [u64; 12] =
    [10, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 16_667, 33_333, 100_000];

/// Everything that there is to see.
pub struct Observer {
    /// What is read.
    pub info: SourceInfo,
    /// Whether pairs come at a pace of their own, so that there is a latency.
    pub clocked: bool,
    /// What matches.
    pub engine: String,
    /// The pipeline's counters.
    pub progress: Arc<Progress>,
    /// Whether somebody has asked for a pause or the end.
    pub control: Control,
    /// How the eyes are aligned, where that is watched.
    pub alignment: Option<alignment::Shared>,
    /// Figures of the maps, where they are kept.
    pub map_metrics: Option<map_metrics::Shared>,
    /// How the cameras fare, where the source is live.
    pub live: Option<Arc<LiveState>>,
    /// What links and outputs count.
    pub counters: Counters,
    /// So many microseconds after the last pair a live run is not well.
    pub patience_us: AtomicU64,
}

/// Has the figures of the maps kept where they are to be published.
pub fn watch_map_metrics(
    metrics: &Metrics,
    sinks: &mut Vec<Box<dyn Sink>>,
) -> Option<map_metrics::Shared> {
    metrics.listen()?;
    let (sink, shared) = map_metrics::MapMetricsSink::new(&TIME_CLASSES_US, &SKEW_CLASSES_US);
    sinks.push(Box::new(sink));
    Some(shared)
}

/// Takes the address that the settings name, if any.
///
/// # Errors
/// Where it cannot be had.
pub fn listen(metrics: &Metrics) -> anyhow::Result<Option<Listener>> {
    metrics.listen().map(Listener::bind).transpose()
}

/// Publishes what is seen.
///
/// # Errors
/// Where the thread cannot be started.
pub fn serve(
    listener: Option<Listener>,
    metrics: &Metrics,
    observer: &Arc<Observer>,
) -> anyhow::Result<Option<Server>> {
    let Some(listener) = listener else { return Ok(None) };
    let server = Server::start(listener, Hosts::new(metrics.hosts()), observer.clone())?;
    tracing::info!("metrics on http://{}/metrics", server.address());
    Ok(Some(server))
}

impl State for Observer {
    fn reading(&self) -> Reading {
        let progress = &self.progress;
        let maps = self.map_metrics.as_ref();
        let maps = maps.map(|v| v.lock().unwrap_or_else(PoisonError::into_inner).clone());
        let outputs = self.counters.sinks.iter().map(|sink| sink.now());
        let outputs = outputs.filter(|sink| !INTERNAL_SINKS.contains(&&*sink.name));
        let output = |sink: crate::pipeline::SinkCounts| metrics::Output {
            name: sink.name,
            frames: sink.frames,
            dropped: sink.dropped,
            failed: sink.failed,
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
            alignment: self.alignment.as_ref().and_then(seen_alignment),
            cameras: self.live.as_ref().map(|live| {
                [Eye::Left, Eye::Right].map(|eye| {
                    let eye = live.eye(eye).summary();
                    let EyeSummary { lost, reconnects, broken, missed, .. } = eye;
                    metrics::Camera { lost, reconnects, broken: broken + missed }
                })
            }),
            healthy: self.health().is_ok(),
        }
    }

    /// A recorded source is as fast as its outputs; only a live one that brings nothing is ill.
    fn health(&self) -> Health {
        let matched = self.progress.matched.load(Ordering::Relaxed);
        let since = self.progress.since_matched();
        if self.control.pause.is_set() {
            return Ok(format!("paused after {matched} pairs"));
        }
        if self.progress.source_ended.load(Ordering::Relaxed) {
            return Ok(format!("the source has ended after {matched} pairs"));
        }
        if !self.info.live || since < self.patience() {
            return Ok(format!("{matched} pairs, the last one {:.1} s ago", since.as_secs_f64()));
        }
        let pairs = self.progress.pairs.load(Ordering::Relaxed);
        let [left, right] = self.progress.frames();
        let lost = |eye| self.live.as_ref().is_some_and(|live| live.eye(eye).summary().lost);
        let cameras = match (lost(Eye::Left), lost(Eye::Right)) {
            (true, true) => "both cameras are lost: ",
            (true, false) => "the left camera is lost: ",
            (false, true) => "the right camera is lost: ",
            (false, false) => "",
        };
        Err(format!(
            "{cameras}no pair was matched for {:.1} s (so far {left} left and {right} right frames came, \
             {pairs} pairs were made of them and {matched} matched)",
            since.as_secs_f64()
        ))
    }
}

impl Observer {
    /// From now on a live run is not well so long after the last pair.
    pub fn set_patience(&self, patience: Duration) {
        self.patience_us.store(patience.as_micros() as u64, Ordering::Relaxed);
    }

    fn patience(&self) -> Duration {
        Duration::from_micros(self.patience_us.load(Ordering::Relaxed))
    }
}

fn distribution(classes: &Classes) -> Distribution {
    let classes_and_counts: Vec<_> = classes.counts().collect();
    let count = classes_and_counts.iter().map(|(_, count)| count).sum();
    Distribution { classes: classes_and_counts, sum: classes.sum().as_secs_f64(), count }
}

fn seen_alignment(shared: &alignment::Shared) -> Option<metrics::Alignment> {
    let state = alignment::state_of(shared);
    let seen = state.measurement?;
    Some(metrics::Alignment {
        row_error_px: seen.row_error_px,
        roll_deg: seen.roll_deg,
        alarm: state.verdict.is_alarm(),
    })
}
