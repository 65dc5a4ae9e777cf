//! Named threads whose panics are reported.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};
use std::{fmt, io};

const NO_THREAD: &str = "no further thread can be started: raise the limit of processes (`ulimit -u`; TasksMax of a \
                         service, pids.max of a container)";

/// Threads that GStreamer may start for a source: for reading, demultiplexing, queues and decoding.
pub const OF_SOURCE: usize = 12;

/// Polling period of bounded work.
const POLL: Duration = Duration::from_millis(2);

/// Bytes of the stack of a thread that only waits.
const SPARE_STACK: usize = 64 << 10;

/// A panic that ended a part of the program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BrokenDown {
    /// The part that ended: "the tuner".
    pub part: String,
    /// Message of the panic.
    pub said: String,
}

/// Starts a named thread, whose log lines belong to the same rig as those of its starter. If it panics, it calls `failed`
/// at once, and joining it returns the panic as well.
pub fn spawn<T: Send + 'static>(
    name: &str,
    work: impl FnOnce() -> T + Send + 'static,
    failed: impl FnOnce(BrokenDown) + Send + 'static,
) -> io::Result<JoinHandle<T>> {
    let part = format!("the {name} thread");
    let span = tracing::Span::current();
    let work = move || match catch_unwind(AssertUnwindSafe(|| span.in_scope(work))) {
        Ok(done) => done,
        Err(panic) => {
            let broken = BrokenDown { part, said: said(&*panic) };
            // A panic of `failed` must not hide the first one.
            let _ = catch_unwind(AssertUnwindSafe(|| failed(broken)));
            resume_unwind(panic)
        }
    };
    Builder::new().name(name.to_owned()).spawn(work).map_err(explain)
}

/// Names the cure if a thread could not be started.
pub fn explain(error: io::Error) -> io::Error {
    match error.kind() {
        io::ErrorKind::WouldBlock => io::Error::new(error.kind(), NO_THREAD),
        _ => error,
    }
}

/// Checks that this process may start as many further threads. A library that cannot start one may wait for it for
/// ever: GStreamer does so for the threads of its pipelines.
pub fn require_spare(count: usize) -> io::Result<()> {
    let (release, held) = crossbeam_channel::bounded::<()>(0);
    let wait = |held: crossbeam_channel::Receiver<()>| move || _ = held.recv();
    let start = |_| Builder::new().stack_size(SPARE_STACK).spawn(wait(held.clone()));
    let started: io::Result<Vec<_>> = (0..count).map(start).collect();
    drop(release);
    // A thread that has ended but was not joined may still count.
    started.map_err(explain)?.into_iter().for_each(|thread| drop(thread.join()));
    Ok(())
}

/// Number of threads that may work at once: that of the cores that the system grants, or that Slurm has given to the
/// task, which confines it only on some clusters.
pub fn available() -> usize {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let given = std::env::var("SLURM_CPUS_PER_TASK").ok();
    at_most(cores, given.as_deref())
}

fn at_most(cores: usize, given: Option<&str>) -> usize {
    let given = given.and_then(|text| text.trim().parse().ok()).filter(|&given| given > 0);
    given.map_or(cores, |given: usize| given.min(cores))
}

impl fmt::Display for BrokenDown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { part, said } = self;
        // Libraries panic if they cannot start a thread.
        if said.contains("failed to spawn thread") {
            return write!(f, "{part}: {NO_THREAD}");
        }
        write!(f, "{part} broke down by a mistake in the program ({said}); please report it")
    }
}

impl std::error::Error for BrokenDown {}

/// Waits for the end of a thread until `is_enough` returns true for the time passed. Returns whether the
/// thread has ended.
pub fn wait_for<T>(thread: &JoinHandle<T>, mut is_enough: impl FnMut(Duration) -> bool) -> bool {
    let begun = Instant::now();
    while !thread.is_finished() {
        if is_enough(begun.elapsed()) {
            return false;
        }
        std::thread::sleep(POLL);
    }
    true
}

/// Does `work` on a thread of its own and waits until `is_enough` returns true for the time passed.
/// Returns `None` then, and the thread drops a late result.
///
/// # Panics
/// If `work` panics.
pub fn bounded<T: Send + 'static>(
    name: &str,
    work: impl FnOnce() -> T + Send + 'static,
    is_enough: impl FnMut(Duration) -> bool,
) -> io::Result<Option<T>> {
    let thread = spawn(name, work, |broken| tracing::debug!("{broken}"))?;
    if !wait_for(&thread, is_enough) {
        return Ok(None);
    }
    thread.join().map_or_else(|panic| resume_unwind(panic), |done| Ok(Some(done)))
}

/// Returns the result of `work`, or its panic as an error. Its changes until then remain.
pub fn guarded<T>(part: &str, work: impl FnOnce() -> T) -> Result<T, BrokenDown> {
    catch_unwind(AssertUnwindSafe(work))
        .map_err(|panic| BrokenDown { part: part.to_owned(), said: said(&*panic) })
}

pub fn joined<T>(part: &str, thread: std::thread::Result<T>) -> Result<T, BrokenDown> {
    thread.map_err(|panic| BrokenDown { part: part.to_owned(), said: said(&*panic) })
}

/// Locks a mutex even after a panic of its holder, because no holder leaves inconsistent data.
pub fn locked<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn said(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "it said nothing".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_heard_of_and_goes_on() {
        let (tell, told) = crossbeam_channel::bounded(1);
        let thread = spawn(
            "tester",
            || panic!("of {}", "this"),
            move |broken| {
                tell.send(broken).unwrap();
                panic!("of the one who hears of it");
            },
        );
        let joined: Result<(), _> = joined("the tester", thread.unwrap().join());
        assert_eq!(joined.unwrap_err().said, "of this");
        let told: BrokenDown = told.recv().unwrap();
        assert_eq!((&*told.part, &*told.said), ("the tester thread", "of this"));
    }

    #[test]
    fn bounded_work_is_waited_for_and_left_behind_where_it_takes_too_long() {
        let longest = |bound| move |waited| waited > bound;
        let bound = Duration::from_secs(60);
        assert_eq!(bounded("tester", || 5, longest(bound)).unwrap(), Some(5));
        let (release, held) = crossbeam_channel::bounded::<()>(0);
        let work = move || held.recv();
        let begun = Instant::now();
        assert!(bounded("tester", work, longest(Duration::from_millis(20))).unwrap().is_none());
        assert!(begun.elapsed() < bound);
        release.send(()).unwrap();
        let panicking = || bounded("tester", || -> u8 { panic!("so") }, longest(bound)).is_ok();
        assert!(guarded("it", panicking).is_err());
    }

    #[test]
    fn slurm_narrows_the_cores_down() {
        let of = |given| at_most(8, given);
        assert_eq!([None, Some("3"), Some("64"), Some("0"), Some("x")].map(of), [8, 3, 8, 8, 8]);
    }

    #[test]
    fn a_thread_that_cannot_be_started_is_no_mistake_of_the_program() {
        require_spare(3).unwrap();
        let error = explain(io::ErrorKind::WouldBlock.into()).to_string();
        assert!(error.contains("ulimit -u"), "{error}");
        let panic = || panic!("failed to spawn thread: Os {{ code: 11 }}");
        let broken = guarded("the source", panic).map(|()| 5).unwrap_err().to_string();
        assert!(broken.contains("the source: no further thread"), "{broken}");
    }

    #[test]
    fn work_that_panics_is_an_error() {
        assert_eq!(guarded("it", || 5).unwrap(), 5);
        let error = guarded("the test", || panic!("so")).map(|()| 5).unwrap_err();
        assert!(error.to_string().starts_with("the test broke down"), "{error}");
        let error = guarded("it", || std::panic::panic_any(5)).map(|()| 5).unwrap_err();
        assert_eq!(error.said, "it said nothing");
    }
}
