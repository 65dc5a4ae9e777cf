//! A running pipeline, its counts and its outcome.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::anyhow;

use crate::telemetry::progress::Progress;
use stereod_core::thread;
use stereod_io::control::Control;
use stereod_io::sink::Losses;
use stereod_io::source::SourceCounts;

/// A running pipeline. If it is dropped, it stops, and its files are finished.
pub struct Running {
    pub(super) control: Control,
    pub(super) source: Option<JoinHandle<(SourceCounts, anyhow::Result<()>)>>,
    pub(super) matcher: Option<JoinHandle<anyhow::Result<()>>>,
    pub(super) sinks: Vec<JoinHandle<anyhow::Result<()>>>,
    pub counters: Counters,
    pub progress: Arc<Progress>,
    pub(super) started: Instant,
    /// Time without progress after which outputs are left behind at the end; `None`: they are
    /// waited for.
    pub(super) patience: Option<Duration>,
    /// Time of the last progress of an output after all else had ended, and the count by then.
    pub(super) at_the_end: Mutex<Option<(Instant, u64)>>,
}

/// Time after which an output of a live run that makes no progress at the end counts as held up by
/// its disk or receiver. It lies below the minute that systemd's unit gives the whole stop.
pub(super) const PATIENCE: Duration = Duration::from_secs(10);

#[derive(Clone, Debug)]
pub struct Counters {
    /// Pairs dropped because the engine was busy.
    pub dropped_pairs: Arc<AtomicU64>,
    pub sinks: Vec<SinkCounters>,
}

#[derive(Clone, Debug)]
pub struct SinkCounters {
    pub(super) name: String,
    /// Key of its pairs in the statistics.
    pub(super) counted_as: Option<&'static str>,
    pub(super) frames: Arc<AtomicU64>,
    pub(super) dropped: Arc<AtomicU64>,
    /// Lost because the sink was busy, because it failed, and because it was suspended.
    pub(super) losses: Arc<[AtomicU64; 3]>,
    pub(super) is_check: bool,
}

impl SinkCounters {
    /// Adds to the frames taken, and sets those lost so far.
    pub(super) fn note(&self, frames: u64, Losses { busy, failed, suspended }: Losses) {
        self.frames.fetch_add(frames, Ordering::Relaxed);
        for (count, now) in self.losses.iter().zip([busy, failed, suspended]) {
            count.store(now, Ordering::Relaxed);
        }
    }

    pub fn now(&self) -> SinkCounts {
        let losses = self.losses.each_ref().map(|count| count.load(Ordering::Relaxed));
        let [busy, failed, suspended] = losses;
        let lost = busy + failed + suspended;
        let frames = self.frames.load(Ordering::Relaxed).saturating_sub(lost);
        let dropped = self.dropped.load(Ordering::Relaxed) + busy;
        let Self { counted_as, is_check, .. } = *self;
        SinkCounts { name: self.name.clone(), counted_as, frames, dropped, failed, is_check }
    }
}

/// Counts of a sink at one moment.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, schemars::JsonSchema)]
pub struct SinkCounts {
    /// Its name.
    pub name: String,
    /// Key of its pairs in the statistics, if it writes them.
    #[serde(skip)]
    pub counted_as: Option<&'static str>,
    /// Matched pairs that it wrote.
    pub frames: u64,
    /// Matched pairs that it was too slow for.
    pub dropped: u64,
    /// Matched pairs that it could not write: a full disk, a lost receiver.
    pub failed: u64,
    /// Set for a check, which writes nothing and does not appear as an output.
    #[serde(skip)]
    pub is_check: bool,
}

#[derive(Debug)]
pub struct Outcome {
    /// Frames and pairs that the source delivered.
    pub source: SourceCounts,
    /// Pairs matched; the live page tells them at the end.
    #[cfg_attr(not(feature = "serve"), allow(dead_code))]
    pub matched: u64,
    pub sinks: Vec<SinkCounts>,
    /// From the start to the last file finished, in seconds.
    pub seconds: f64,
    /// The first failure, if any; the counts are valid all the same.
    pub error: Option<anyhow::Error>,
    /// Set if it is a failure of the source.
    pub is_of_source: bool,
}

impl Running {
    /// Waits until the source has ended, everything is matched and every file is finished.
    pub fn join(mut self) -> Outcome {
        // Failures are collected against the flow. A part never fails because of an earlier one, so
        // the last failed part holds the cause.
        let mut errors = Vec::new();
        let mut sinks = Vec::new();
        let given_up = self.is_held_up();
        let (source, source_result) = match self.source.take() {
            None => (SourceCounts::default(), Ok(())),
            Some(source) => thread::joined("the source", source.join())
                .unwrap_or_else(|error| (SourceCounts::default(), Err(error.into()))),
        };
        let matcher_result = self.matcher.take().map_or(Ok(()), |matcher| {
            let joined = thread::joined("the engine", matcher.join());
            joined.map_err(anyhow::Error::from).flatten()
        });
        let threads = std::mem::take(&mut self.sinks);
        for (thread, counters) in threads.into_iter().zip(&self.counters.sinks) {
            if given_up && !thread.is_finished() {
                let counts = counters.now();
                if counts.is_check {
                    tracing::warn!("{}: this machine is too slow for it to end", counts.name);
                } else {
                    errors.push(anyhow!(
                        "{}: it is held up, by its disk or by who receives it, and was left unfinished \
                         after {} frames",
                        counts.name,
                        counts.frames
                    ));
                }
                sinks.push(counts);
                continue;
            }
            let joined = thread::joined(&counters.name, thread.join());
            sinks.push(counters.now());
            match joined {
                Ok(result) => errors.extend(result.err()),
                Err(broken) => errors.push(broken.into()),
            }
        }
        errors.extend(matcher_result.err());
        let is_of_source = errors.is_empty();
        errors.extend(source_result.err());
        for other in errors.iter().skip(1) {
            tracing::warn!("also: {other:#}");
        }
        Outcome {
            source,
            matched: self.progress.matched.load(Ordering::Relaxed),
            sinks,
            seconds: self.started.elapsed().as_secs_f64(),
            error: errors.into_iter().next(),
            is_of_source,
        }
    }

    /// Reports whether every part has ended, so that [`Running::join`] does not wait. Outputs of a
    /// live run that are held up count as ended after a while.
    pub fn is_finished(&self) -> bool {
        self.source.as_ref().is_none_or(JoinHandle::is_finished)
            && self.matcher.as_ref().is_none_or(JoinHandle::is_finished)
            && (self.sinks.iter().all(JoinHandle::is_finished) || self.is_held_up())
    }

    /// Reports whether only outputs are left, and none has made progress for too long.
    fn is_held_up(&self) -> bool {
        let Some(patience) = self.patience else { return false };
        if self.matcher.as_ref().is_some_and(|matcher| !matcher.is_finished()) {
            return false;
        }
        let done = self.counters.sinks.iter().map(|sink| sink.frames.load(Ordering::Relaxed));
        let ended = self.sinks.iter().filter(|sink| sink.is_finished()).count() as u64;
        let done = done.sum::<u64>() + ended;
        let mut last = thread::locked(&self.at_the_end);
        match *last {
            Some((since, before)) if before == done => since.elapsed() >= patience,
            _ => {
                *last = Some((Instant::now(), done));
                false
            }
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let Self { control, source, matcher, sinks, .. } = self;
        if source.is_some() || matcher.is_some() || !sinks.is_empty() {
            control.stop.set(true);
        }
        // Its failures are none of the one for which it was given up.
        let _ = source.take().map(JoinHandle::join);
        let _ = matcher.take().map(JoinHandle::join);
        sinks.drain(..).for_each(|sink| drop(sink.join()));
    }
}
