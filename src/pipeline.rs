//! The wiring: source ▶ link ▶ match loop ▶ one link per sink ▶ sinks, each part on its own thread.
//!
//! A recorded source waits for the engine, and the engine for the slowest sink, so that no pair is
//! lost. A live source never waits; each link drops its oldest pairs instead. A part that fails
//! stops the source; pairs in transit are still matched, and files are finished.

mod engine_swap;
mod match_loop;
mod running;

use std::ops::ControlFlow;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::Context;

use crate::core::control::Control;
use crate::core::frame::{Matched, StereoPair};
use crate::core::queue::{LinkReceiver, LinkSender, WhenFull, link};
use crate::core::text::on_one_line;
use crate::core::thread;
use crate::engine::Engine;
use crate::sink::Sink;
use crate::source::pairing::pace::Pacer;
use crate::source::{Source, SourceCounts};
use crate::telemetry::progress::Progress;
pub use engine_swap::EngineSwap;
use match_loop::MatchLoop;
use running::PATIENCE;
pub use running::{Counters, Outcome, Running, SinkCounters, SinkCounts};

/// The parts of a run.
pub struct PipelineConfig {
    /// The source of pairs.
    pub source: Box<dyn Source>,
    /// The engine that matches them.
    pub engine: Box<dyn Engine>,
    /// The slot for engines that take over.
    pub swap: EngineSwap,
    /// The outputs of disparity; may be empty.
    pub sinks: Vec<Box<dyn Sink>>,
    /// Capacity of the link between source and engine, in pairs.
    pub pair_room: usize,
    /// Capacity of the link between the engine and each sink, in matched pairs.
    pub result_room: usize,
    /// Stop after this many pairs.
    pub limit: Option<u64>,
    /// Deliver pairs no faster than they were recorded; a live source has its own pace.
    pub realtime: bool,
}

/// Starts every part. The run ends with its source, by `control.stop`, or by a failure.
pub fn start(config: PipelineConfig, control: &Control) -> anyhow::Result<Running> {
    let PipelineConfig { source, engine, swap, sinks, limit, realtime, .. } = config;
    let when_full = if source.info().live { WhenFull::DropOldest } else { WhenFull::Block };
    let (started, progress) = (Instant::now(), Arc::new(Progress::new()));

    let (pairs_in, pairs) = link(config.pair_room, when_full);
    let dropped_pairs = pairs_in.dropped();
    let mut fan_out = Vec::new();
    let mut sink_counters = Vec::new();
    let mut sink_threads = Vec::new();
    for sink in sinks {
        let (room, when_full) = match sink.newest_only() {
            true => (1, WhenFull::DropOldest),
            false => (config.result_room, when_full),
        };
        let (results_in, results_out) = link(room, when_full);
        let (name, dropped) = (on_one_line(sink.name()).into_owned(), results_in.dropped());
        let (frames, losses) = Default::default();
        let is_check = sink.is_check();
        let counters = SinkCounters { name, frames, dropped, losses, is_check };
        sink_counters.push(counters.clone());
        fan_out.push(results_in);
        let body = move |control: &Control| consume(sink, &results_out, &counters, control);
        sink_threads.push(spawn("sink", control, body)?);
    }
    let mut match_loop = {
        let progress = progress.clone();
        MatchLoop { engine, swap, pairs, fan_out, progress, in_flight: 0 }
    };
    let matcher = spawn("matcher", control, move |control| {
        let result = match_loop.run();
        stop_on_error(&result, control);
        result
    })?;
    let for_source = progress.clone();
    let source = spawn("source", control, move |control| {
        deliver(source, &pairs_in, control, &for_source, limit, realtime)
    })?;
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

/// Runs the source's thread: pairs go into the link until the source ends or a stop is requested.
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
    // Time that the previous pair waited for room in the link.
    let mut held = Duration::ZERO;
    let mut emit = |mut pair: StereoPair, counts: SourceCounts| {
        let unpaired = [counts.unpaired_left, counts.unpaired_right];
        progress.note_source([counts.left, counts.right], unpaired);
        if left == 0 || wait_while_paused(control, progress, pacer.as_mut()).is_break() {
            return ControlFlow::Break(());
        }
        let mut delay = Duration::ZERO;
        if let Some(pacer) = &mut pacer {
            // A source that decodes too slowly is late, too, but cheaper matching would not help
            // it.
            delay = pacer.wait(pair.timestamp, &control.stop).min(held);
            // The pair was held back on purpose, so its latency starts now, as with a camera.
            pair.arrived = Instant::now();
        }
        let (ready, position) = (Instant::now(), pair.timestamp);
        if pairs.send(pair).is_err() {
            return ControlFlow::Break(());
        }
        held = ready.elapsed();
        if pacer.is_some() {
            progress.note_paced(position, delay);
        }
        progress.pairs.fetch_add(1, Ordering::Relaxed);
        left -= 1;
        if left == 0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    let result = source.run(&control.stop, &mut emit);
    let cut_short = left > 0 && control.stop.is_set();
    progress.cut_short.store(cut_short, Ordering::SeqCst);
    progress.source_ended.store(true, Ordering::SeqCst);
    // The source also counts a pair that was refused because the run ended.
    let pairs = progress.pairs.load(Ordering::Relaxed);
    (SourceCounts { pairs, ..source.counts() }, result)
}

/// Holds the source while the pipeline is paused, except for single steps. Breaks if it is stopped
/// meanwhile.
fn wait_while_paused(
    control: &Control,
    progress: &Progress,
    pacer: Option<&mut Pacer>,
) -> ControlFlow<()> {
    let since = Instant::now();
    let mut paused = false;
    while control.pause.is_set() && !control.stop.is_set() && !control.step.take() {
        paused = true;
        std::thread::sleep(Duration::from_millis(5));
    }
    if paused {
        let pause = since.elapsed();
        progress.note_pause(pause);
        pacer.into_iter().for_each(|pacer| pacer.shift(pause));
    }
    if control.stop.is_set() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
}

/// Runs a sink's thread.
fn consume(
    mut sink: Box<dyn Sink>,
    results: &LinkReceiver<Arc<Matched>>,
    counters: &SinkCounters,
    control: &Control,
) -> anyhow::Result<()> {
    let mut result = Ok(());
    let name = sink.name().to_owned();
    while let Ok(matched) = results.recv() {
        // A panic must not keep the files from being finished.
        result = thread::guarded(&name, || sink.consume(&matched))
            .unwrap_or_else(|broken| Err(broken.into()));
        if result.is_err() {
            break;
        }
        counters.note(1, sink.losses());
    }
    // Written frames are completed after a failure, too; the first failure is the cause.
    let finished = thread::guarded(&name, || sink.finish());
    result = result.and(finished.unwrap_or_else(|broken| Err(broken.into()))).context(name);
    counters.note(0, sink.losses());
    stop_on_error(&result, control);
    result
}

/// Stops the source after a failure anywhere, so that the rest ends in order.
fn stop_on_error(result: &anyhow::Result<()>, control: &Control) {
    if result.is_err() {
        control.stop.set(true);
    }
}

/// Starts a named thread; a panic in it stops the source like any other failure.
fn spawn<T: Send + 'static>(
    name: &str,
    control: &Control,
    body: impl FnOnce(&Control) -> T + Send + 'static,
) -> anyhow::Result<JoinHandle<T>> {
    let (control, stop) = (control.clone(), control.stop.clone());
    thread::spawn(name, move || body(&control), move |_| stop.set(true))
        .with_context(|| format!("cannot start the {name} thread"))
}

#[cfg(test)]
mod tests;
