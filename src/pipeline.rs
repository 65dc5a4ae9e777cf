//! The wiring: source ▶ link ▶ engine ▶ a link a sink ▶ sinks, each part on a thread of its own.
//!
//! A source that is no camera waits for the engine, and the engine for the slowest sink, so that no
//! pair is lost; a live source never waits, and each link drops its oldest pairs instead. A part that
//! fails stops the source; everything on the way is still matched and the files are finished.

mod desk;
mod replacements;

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow};

use crate::control::Control;
use crate::engine::Engine;
use crate::frame::{Matched, StereoPair};
use crate::pace::Pacer;
use crate::queue::{LinkReceiver, LinkSender, WhenFull, link};
use crate::sink::{Losses, Sink};
use crate::source::{Source, SourceCounts};
use crate::telemetry::progress::Progress;
use crate::text::on_one_line;
use crate::thread;
use desk::Desk;
pub use replacements::Replacements;

/// The parts of a run and how they are joined.
pub struct Plan {
    /// Where pairs come from.
    pub source: Box<dyn Source>,
    /// What matches them.
    pub engine: Box<dyn Engine>,
    /// Where others come from that take its place.
    pub replacements: Replacements,
    /// Where disparity goes; may be empty.
    pub sinks: Vec<Box<dyn Sink>>,
    /// Room of the link between source and engine, in pairs.
    pub pair_room: usize,
    /// Room of the link between the engine and each sink, in matched pairs.
    pub result_room: usize,
    /// Stop after this many pairs.
    pub limit: Option<u64>,
    /// Deliver pairs no faster than they were recorded; a live source has its own pace.
    pub realtime: bool,
}

/// A pipeline at work.
pub struct Running {
    source: JoinHandle<(SourceCounts, anyhow::Result<()>)>,
    matcher: JoinHandle<anyhow::Result<()>>,
    sinks: Vec<JoinHandle<anyhow::Result<()>>>,
    counters: Counters,
    progress: Arc<Progress>,
    started: Instant,
    /// For how long outputs may do nothing at the end; `None`: they are waited for.
    patience: Option<Duration>,
    /// When an output did something for the last time after all else had ended, and what they had
    /// done by then.
    at_the_end: Mutex<Option<(Instant, u64)>>,
}

/// An output of a live run that does nothing for so long when all else has ended is held up by its
/// disk or its receiver, and left behind. Below the minute that systemd's unit gives the whole stop.
const PATIENCE: Duration = Duration::from_secs(10);

/// Counts of a pipeline at work, which outlive it.
#[derive(Clone, Debug)]
pub struct Counters {
    /// Pairs dropped because the engine was busy.
    pub dropped_pairs: Arc<AtomicU64>,
    /// Of each sink, in the order of the plan.
    pub sinks: Vec<SinkCounters>,
}

/// Counts of a sink at work.
#[derive(Clone, Debug)]
pub struct SinkCounters {
    name: String,
    frames: Arc<AtomicU64>,
    /// By its link.
    dropped: Arc<AtomicU64>,
    losses: Arc<[AtomicU64; 2]>,
}

impl SinkCounters {
    /// The counts as they are now.
    pub fn now(&self) -> SinkCounts {
        let [busy, failed] = self.losses.each_ref().map(|count| count.load(Ordering::Relaxed));
        let frames = self.frames.load(Ordering::Relaxed).saturating_sub(busy + failed);
        let dropped = self.dropped.load(Ordering::Relaxed) + busy;
        SinkCounts { name: self.name.clone(), frames, dropped, failed }
    }
}

/// What a sink has done.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct SinkCounts {
    /// Its name.
    pub name: String,
    /// Matched pairs that it took and kept.
    pub frames: u64,
    /// Matched pairs that it was too slow for.
    pub dropped: u64,
    /// Matched pairs that it could not keep: a full disk, a receiver that is gone.
    pub failed: u64,
}

/// How a run went.
#[derive(Debug)]
pub struct Outcome {
    /// What the source delivered.
    pub source: SourceCounts,
    /// Pairs dropped because the engine was busy.
    pub dropped: u64,
    /// Pairs matched.
    pub matched: u64,
    /// What each sink took.
    pub sinks: Vec<SinkCounts>,
    /// From the start to the last file finished, in seconds.
    pub seconds: f64,
    /// The first failure, if any; the counts hold all the same.
    pub error: Option<anyhow::Error>,
}

/// Starts every part. The run ends by itself with its source, by `control.stop`, or by a failure.
///
/// # Errors
/// Where a thread cannot be started.
pub fn start(plan: Plan, control: Control, progress: Arc<Progress>) -> anyhow::Result<Running> {
    let Plan { source, engine, replacements, sinks, .. } = plan;
    let Plan { pair_room, result_room, limit, realtime, .. } = plan;
    let when_full = if source.info().live { WhenFull::DropOldest } else { WhenFull::Block };
    let started = Instant::now();

    let (pairs_in, pairs_out) = link(pair_room, when_full);
    let dropped_pairs = pairs_in.dropped();
    let mut fan_out = Vec::new();
    let mut sink_counters = Vec::new();
    let mut sink_threads = Vec::new();
    for sink in sinks {
        let (room, when_full) = match sink.newest_only() {
            true => (1, WhenFull::DropOldest),
            false => (result_room, when_full),
        };
        let (results_in, results_out) = link(room, when_full);
        let frames = Arc::<AtomicU64>::default();
        let (name, dropped) = (on_one_line(sink.name()).into_owned(), results_in.dropped());
        let losses = Arc::<[AtomicU64; 2]>::default();
        let (counted, lost) = (frames.clone(), losses.clone());
        sink_counters.push(SinkCounters { name, frames: counted, dropped, losses });
        fan_out.push(results_in);
        let for_sink = control.clone();
        let body = move || consume(sink, &results_out, (&frames, &lost), &for_sink);
        sink_threads.push(spawn("sink", &control, body)?);
    }
    let matcher = {
        let (progress, for_matcher) = (progress.clone(), control.clone());
        spawn("matcher", &control, move || {
            let desk = Desk { fan_out: &fan_out, progress: &progress };
            let result = desk.match_pairs(engine, &replacements, &pairs_out);
            stop_on_error(&result, &for_matcher);
            result
        })?
    };
    let source = {
        let (progress, for_source) = (progress.clone(), control.clone());
        spawn("source", &control, move || {
            deliver(source, &pairs_in, &for_source, &progress, limit, realtime)
        })?
    };
    Ok(Running {
        source,
        matcher,
        sinks: sink_threads,
        counters: Counters { dropped_pairs, sinks: sink_counters },
        progress,
        started,
        patience: (when_full == WhenFull::DropOldest).then_some(PATIENCE),
        at_the_end: Mutex::default(),
    })
}

impl Running {
    /// Waits until the source has ended, everything is matched and every file is finished.
    pub fn join(self) -> Outcome {
        // The order in which failures are looked at goes against the flow: a part never fails because
        // of one before it, so the last part that failed holds the cause.
        let mut errors = Vec::new();
        let mut sinks = Vec::new();
        let given_up = self.is_held_up();
        let (source, source_result) = thread::joined("the source", self.source.join())
            .unwrap_or_else(|error| (SourceCounts::default(), Err(error.into())));
        let matcher_result = thread::joined("the engine", self.matcher.join());
        let matcher_result = matcher_result.map_err(anyhow::Error::from).flatten();
        for (thread, counters) in self.sinks.into_iter().zip(&self.counters.sinks) {
            if given_up && !thread.is_finished() {
                let counts = counters.now();
                errors.push(anyhow!(
                    "{}: it is held up, by its disk or by who receives it, and was left unfinished \
                     after {} frames",
                    counts.name,
                    counts.frames
                ));
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
        errors.extend(source_result.err());
        for other in errors.iter().skip(1) {
            tracing::warn!("also: {other:#}");
        }
        Outcome {
            source,
            dropped: self.counters.dropped_pairs.load(Ordering::Relaxed),
            matched: self.progress.matched.load(Ordering::Relaxed),
            sinks,
            seconds: self.started.elapsed().as_secs_f64(),
            error: errors.into_iter().next(),
        }
    }

    /// Pairs dropped so far because the engine was busy.
    pub fn dropped(&self) -> u64 {
        self.counters.dropped_pairs.load(Ordering::Relaxed)
    }

    /// The counts, for whoever looks at them while the pipeline runs.
    pub fn counters(&self) -> Counters {
        self.counters.clone()
    }

    /// Whether every part has ended, so that [`Running::join`] does not wait. Outputs of a live run
    /// that are held up count as ended after a while.
    pub fn is_finished(&self) -> bool {
        self.source.is_finished()
            && self.matcher.is_finished()
            && (self.sinks.iter().all(JoinHandle::is_finished) || self.is_held_up())
    }

    /// Whether all but outputs has ended, and none of them has done anything for too long.
    fn is_held_up(&self) -> bool {
        let Some(patience) = self.patience else { return false };
        if !self.matcher.is_finished() {
            return false;
        }
        let done = self.counters.sinks.iter().map(|sink| sink.frames.load(Ordering::Relaxed));
        let ended = self.sinks.iter().filter(|sink| sink.is_finished()).count() as u64;
        let done = done.sum::<u64>() + ended;
        let mut last = self.at_the_end.lock().unwrap_or_else(PoisonError::into_inner);
        match *last {
            Some((since, before)) if before == done => since.elapsed() >= patience,
            _ => {
                *last = Some((Instant::now(), done));
                false
            }
        }
    }
}

/// The source's thread: pairs go into the link until the source ends or something asks to stop.
fn deliver(
    mut source: Box<dyn Source>,
    pairs: &LinkSender<StereoPair>,
    control: &Control,
    progress: &Progress,
    limit: Option<u64>,
    realtime: bool,
) -> (SourceCounts, anyhow::Result<()>) {
    let mut pacer = (realtime && !source.info().live).then(Pacer::new);
    let mut left = limit.unwrap_or(u64::MAX);
    let mut emit = |mut pair: StereoPair, counts: SourceCounts| {
        let unpaired = [counts.unpaired_left, counts.unpaired_right];
        progress.note_source([counts.left, counts.right], unpaired);
        if left == 0 || wait_while_paused(control, pacer.as_mut()).is_break() {
            return ControlFlow::Break(());
        }
        if let Some(pacer) = &mut pacer {
            pacer.wait(pair.timestamp, &control.stop);
            // Held back on purpose: for the latency the pair arrives now, as it would from a camera.
            pair.arrived = Instant::now();
        }
        if pairs.send(pair).is_err() {
            return ControlFlow::Break(());
        }
        progress.pairs.fetch_add(1, Ordering::Relaxed);
        left -= 1;
        if left == 0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    let result = source.run(&control.stop, &mut emit);
    progress.source_ended.store(true, Ordering::SeqCst);
    (source.counts(), result)
}

/// Holds the source while the pipeline is paused, a step aside; breaks where it is stopped meanwhile.
fn wait_while_paused(control: &Control, pacer: Option<&mut Pacer>) -> ControlFlow<()> {
    let since = Instant::now();
    let mut paused = false;
    while control.pause.is_set() && !control.stop.is_set() && !control.step.take() {
        paused = true;
        std::thread::sleep(Duration::from_millis(5));
    }
    if let (true, Some(pacer)) = (paused, pacer) {
        pacer.shift(since.elapsed());
    }
    if control.stop.is_set() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
}

/// A sink's thread.
fn consume(
    mut sink: Box<dyn Sink>,
    results: &LinkReceiver<Arc<Matched>>,
    (frames, lost): (&AtomicU64, &[AtomicU64; 2]),
    control: &Control,
) -> anyhow::Result<()> {
    let note_losses = |sink: &dyn Sink| {
        let Losses { busy, failed } = sink.losses();
        lost[0].store(busy, Ordering::Relaxed);
        lost[1].store(failed, Ordering::Relaxed);
    };
    let mut result = Ok(());
    let name = sink.name().to_owned();
    while let Ok(matched) = results.recv() {
        // What stands in the files is worth finishing even where a mistake in the program ended it.
        result = thread::guarded(&name, || sink.consume(&matched))
            .unwrap_or_else(|broken| Err(broken.into()));
        if result.is_err() {
            break;
        }
        frames.fetch_add(1, Ordering::Relaxed);
        note_losses(&*sink);
    }
    // What was written before a failure is completed all the same; the first failure is the cause.
    let finished = thread::guarded(&name, || sink.finish());
    result = result.and(finished.unwrap_or_else(|broken| Err(broken.into()))).context(name);
    note_losses(&*sink);
    stop_on_error(&result, control);
    result
}

/// A failure anywhere stops the source, so that the rest ends in order.
fn stop_on_error(result: &anyhow::Result<()>, control: &Control) {
    if result.is_err() {
        control.stop.set(true);
    }
}

/// A named thread; a panic in it stops the source like any other failure.
fn spawn<T: Send + 'static>(
    name: &str,
    control: &Control,
    body: impl FnOnce() -> T + Send + 'static,
) -> anyhow::Result<JoinHandle<T>> {
    let stop = control.stop.clone();
    thread::spawn(name, body, move |_| stop.set(true))
        .with_context(|| format!("cannot start the {name} thread"))
}

#[cfg(test)]
mod tests;
