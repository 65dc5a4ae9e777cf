//! Watches how the two eyes are aligned while pairs flow past, on a thread of its own.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use crate::alignment::{Event, Limits, Monitor, Options, State, measure};
use crate::frame::Matched;
use crate::sink::Sink;
use crate::thread;

/// Name of the [`AlignmentSink`].
pub const NAME: &str = "check of the alignment";

/// So far apart in the stream are pairs that are measured ...
const STREAM_STEP: Duration = Duration::from_millis(250);

/// ... and so far apart in time, where a recording runs faster than it was recorded.
const STEP: Duration = Duration::from_millis(100);

/// So long after the last one a pair is measured even where the stream's times stand still.
const LONGEST: Duration = Duration::from_secs(1);

/// How things stand, for everybody who wants to show it.
pub type Shared = Arc<Mutex<State>>;

/// What is shown of a shared state.
pub fn state_of(shared: &Shared) -> State {
    *locked(shared)
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What the alignment is judged by; may be changed at any time.
#[derive(Clone, Debug)]
pub struct SharedLimits(Arc<Mutex<Limits>>);

impl SharedLimits {
    /// Warns above this row error in pixels from now on.
    pub fn warn_above(&self, warn_px: f64) {
        locked(&self.0).warn_px = warn_px;
    }
}

/// Takes a pair a few times a second, measures it and logs what changes. Never makes the pipeline
/// wait: while one pair is measured, the newest of the others waits and the rest pass.
pub struct AlignmentSink {
    desk: Arc<Desk>,
    limits: SharedLimits,
    worker: Option<JoinHandle<()>>,
    /// When the last pair was taken, and its time in the stream.
    taken: Option<(Instant, Duration)>,
}

/// Where the newest pair lies until it is measured.
#[derive(Default)]
struct Desk {
    waiting: Mutex<Waiting>,
    news: Condvar,
}

#[derive(Default)]
struct Waiting {
    pair: Option<Arc<Matched>>,
    closed: bool,
}

impl AlignmentSink {
    /// A sink that keeps `shared` up to date.
    ///
    /// # Errors
    /// Where its thread cannot be started.
    pub fn new(options: Options, limits: Limits, shared: Shared) -> Result<Self> {
        let desk = Arc::new(Desk::default());
        let limits = SharedLimits(Arc::new(Mutex::new(limits)));
        let worker = {
            let (desk, limits) = (desk.clone(), limits.clone());
            let stale = shared.clone();
            let failed = move |broken| {
                // The pictures are matched all the same.
                tracing::error!("the alignment is watched no longer: {broken}");
                *locked(&stale) = State::default();
            };
            thread::spawn("alignment", move || desk.work(options, &limits, &shared), failed)
                .context("cannot start the thread that checks the alignment")?
        };
        Ok(Self { desk, limits, worker: Some(worker), taken: None })
    }

    /// The limits that it goes by, to be changed while it works.
    pub fn limits(&self) -> SharedLimits {
        self.limits.clone()
    }

    fn close(&mut self) {
        locked(&self.desk.waiting).closed = true;
        self.desk.news.notify_one();
        // Where it has panicked that has been told.
        let _ = self.worker.take().map(JoinHandle::join);
    }
}

impl Sink for AlignmentSink {
    fn name(&self) -> &str {
        NAME
    }

    fn consume(&mut self, frame: &Arc<Matched>) -> Result<()> {
        let (now, at) = (Instant::now(), frame.pair.timestamp);
        let due = self.taken.is_none_or(|(taken, then)| {
            let passed = now.duration_since(taken);
            passed >= LONGEST || passed >= STEP && at.abs_diff(then) >= STREAM_STEP
        });
        if due {
            self.taken = Some((now, at));
            locked(&self.desk.waiting).pair = Some(frame.clone());
            self.desk.news.notify_one();
        }
        Ok(())
    }

    fn finish(&mut self) -> Result<()> {
        self.close();
        Ok(())
    }
}

impl Drop for AlignmentSink {
    fn drop(&mut self) {
        self.close();
    }
}

impl Desk {
    /// The next pair, waiting for it; `None` once there will be no more.
    fn next(&self) -> Option<Arc<Matched>> {
        let mut waiting = locked(&self.waiting);
        loop {
            if let Some(pair) = waiting.pair.take() {
                return Some(pair);
            }
            if waiting.closed {
                return None;
            }
            waiting = self.news.wait(waiting).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// The worker's thread.
    fn work(&self, mut options: Options, limits: &SharedLimits, shared: &Shared) {
        let mut monitor = Monitor::new(*locked(&limits.0));
        while let Some(matched) = self.next() {
            let pair = &matched.pair;
            options.range = Some(matched.disparity.range());
            monitor.set_limits(*locked(&limits.0));
            let started = Instant::now();
            let measurement = measure(&pair.left, &pair.right, &options);
            let ms = started.elapsed().as_secs_f64() * 1e3;
            tracing::trace!("alignment of pair {}: {measurement:?}, {ms:.1} ms", pair.sequence);
            let event = monitor.feed(pair.timestamp, measurement);
            *locked(shared) = monitor.state();
            tell(event);
        }
        let event = monitor.finish();
        *locked(shared) = monitor.state();
        tell(event);
    }
}

fn tell(event: Option<Event>) {
    match event {
        Some(Event { verdict, message }) if verdict.is_alarm() => tracing::warn!("{message}"),
        Some(Event { message, .. }) => tracing::info!("{message}"),
        None => {}
    }
}
