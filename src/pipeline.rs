//! The wiring: source ▶ link ▶ match loop ▶ one link per sink ▶ sinks, each part on its own thread.
//!
//! A recorded source waits for the engine, and the engine for the slowest sink, so that no pair is
//! lost. A live source never waits; each link drops its oldest pairs instead. A part that fails
//! stops the source; pairs in transit are still matched, and files are finished.

mod deliver;
mod match_loop;
mod running;

use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Instant;

use anyhow::Context;

use crate::queue::{LinkReceiver, LinkSender, WhenFull, link};
use crate::telemetry::progress::Progress;
use deliver::Delivery;
pub use deliver::Timeline;
pub use match_loop::EngineSwap;
use match_loop::{Handed, MatchLoop};
use running::PATIENCE;
pub use running::{Counters, Outcome, Running, SinkCounters, SinkCounts};
use stereod_core::engine::Engine;
use stereod_core::frame::Matched;
use stereod_core::thread;
use stereod_io::control::Control;
use stereod_io::sink::Sink;
use stereod_io::source::Source;
use stereod_io::source::pairing::pace::Pacer;
use stereod_io::text::on_one_line;

/// Adds to a matched pair what is found in it.
pub type Find = Box<dyn FnMut(&mut Matched) + Send>;

pub struct PipelineConfig {
    pub source: Box<dyn Source>,
    pub engine: Box<dyn Engine>,
    pub swap: EngineSwap,
    /// Finds what is in each matched pair besides, before the outputs get it.
    pub find: Option<Find>,
    /// The outputs of disparity; may be empty.
    pub sinks: Vec<Box<dyn Sink>>,
    /// Capacity of the link between source and engine, in pairs.
    pub pair_room: usize,
    /// Capacity of the link between the engine and each sink, in matched pairs.
    pub result_room: usize,
    /// Number of the first pair to count and to hand out; earlier ones are only matched, for stages with a
    /// memory.
    pub first: u64,
    /// Stop after this many pairs.
    pub limit: Option<u64>,
    /// Deliver pairs no faster than they were recorded; a live source has its own pace.
    pub realtime: bool,
    /// Set if the user moves through the recording.
    pub timeline: Option<Timeline>,
}

/// Starts every part. The run ends with its source, by `control.stop`, or by a failure.
pub fn start(config: PipelineConfig, control: &Control) -> anyhow::Result<Running> {
    let PipelineConfig {
        source, engine, swap, find, sinks, first, limit, realtime, timeline, ..
    } = config;
    let is_live = source.info().live;
    let when_full = if is_live { WhenFull::DropOldest } else { WhenFull::Block };
    let (started, progress) = (Instant::now(), Arc::<Progress>::default());

    let (pairs_in, pairs) = link(config.pair_room, when_full);
    let dropped_pairs = pairs_in.dropped();
    // If a later part cannot start, it ends the earlier ones.
    let mut running = Running {
        control: control.clone(),
        source: None,
        matcher: None,
        sinks: Vec::new(),
        counters: Counters { dropped_pairs, sinks: Vec::new() },
        progress: progress.clone(),
        started,
        patience: (when_full == WhenFull::DropOldest).then_some(PATIENCE),
        at_the_end: Mutex::default(),
    };
    let mut fan_out = Vec::new();
    for sink in sinks {
        let (room, when_full) = match sink.newest_only() {
            true => (1, WhenFull::DropOldest),
            false => (config.result_room, when_full),
        };
        fan_out.push(running.start_sink(sink, room, when_full)?);
    }
    let mut match_loop = MatchLoop {
        engine,
        swap,
        find,
        pairs,
        fan_out,
        recordings: control.recordings.clone(),
        progress: progress.clone(),
        in_flight: 0,
        is_recorded: !is_live,
        last: None,
        first,
    };
    running.matcher = Some(spawn("matcher", control, move |control| {
        let result = match_loop.run();
        stop_on_error(&result, control);
        result
    })?);
    running.source = Some(spawn("source", control, move |control| {
        let pacer = (realtime && !is_live).then(Pacer::new);
        let (left, progress) = (limit.unwrap_or(u64::MAX), &*progress);
        Delivery { pairs: &pairs_in, control, progress, first, left, pacer, timeline }.run(source)
    })?);
    Ok(running)
}

impl Running {
    fn start_sink(
        &mut self,
        sink: Box<dyn Sink>,
        room: usize,
        when_full: WhenFull,
    ) -> anyhow::Result<LinkSender<Handed>> {
        let (results_in, results_out) = link(room, when_full);
        let (name, dropped) = (on_one_line(sink.name()).into_owned(), results_in.dropped());
        let (frames, losses) = Default::default();
        let (counted_as, is_check) = (sink.counted_as(), sink.is_check());
        let counters = SinkCounters { name, counted_as, frames, dropped, losses, is_check };
        self.counters.sinks.push(counters.clone());
        let body = move |control: &Control| consume(sink, &results_out, &counters, control);
        self.sinks.push(spawn("sink", &self.control, body)?);
        Ok(results_in)
    }
}

fn consume(
    mut sink: Box<dyn Sink>,
    results: &LinkReceiver<Handed>,
    counters: &SinkCounters,
    control: &Control,
) -> anyhow::Result<()> {
    let mut result = Ok(());
    let name = sink.name().to_owned();
    let mut last = None;
    while let Ok(Handed { matched, recording }) = results.recv() {
        // A panic must not keep the files from being finished.
        result = thread::guarded(&name, || {
            if last.as_ref() != Some(&recording) {
                sink.switch_to(recording.as_ref());
                last = Some(recording);
            }
            sink.consume(&matched)
        })
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
