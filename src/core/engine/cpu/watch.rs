//! Synchronisation of a team's threads, within a task and between tasks.
//!
//! A waiting thread spins for a moment and then yields its core. This is fast on an idle machine, and gives
//! the core at once to the awaited thread. Another program, however, keeps a yielded core for milliseconds.
//! So after that was observed, waiting threads sleep for a while, because a woken thread is scheduled before
//! a program that never sleeps.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering, fence};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::thread::locked;

/// Time that a waiting thread spins before it yields its core.
const SPINNING: Duration = Duration::from_micros(20);
/// A core away for longer was preempted by another program: the team keeps it for a tile at most.
const TAKEN: Duration = Duration::from_micros(500);
/// Time for which threads then sleep instead of yielding.
const CROWDED: Duration = Duration::from_millis(250);
/// Checks between two readings of the clock.
const LOOKS: u32 = 64;

/// Shared state of the threads that wait for each other.
pub struct Watch {
    /// Whether a thread panicked in the current task.
    failed: AtomicBool,
    /// Number of threads that sleep in [`Watch::until`].
    asleep: AtomicUsize,
    /// For each of them, the address of its counter and the awaited value.
    sleepers: Mutex<Vec<(usize, usize)>>,
    further: Condvar,
    /// Creation time, and the end of the sleeping phase in milliseconds from then.
    since: Instant,
    crowded_until: AtomicU64,
}

impl Watch {
    pub fn new() -> Self {
        Self {
            failed: AtomicBool::new(false),
            asleep: AtomicUsize::new(0),
            sleepers: Mutex::default(),
            further: Condvar::new(),
            since: Instant::now(),
            crowded_until: AtomicU64::new(0),
        }
    }

    pub fn begin(&self) {
        self.failed.store(false, Ordering::Release);
    }

    /// Records that a thread panicked, and wakes all sleepers.
    pub fn fail(&self) {
        self.failed.store(true, Ordering::Release);
        self.wake(|_| true);
    }

    /// Whether a thread panicked in the current task.
    pub fn has_failed(&self) -> bool {
        self.failed.load(Ordering::Acquire)
    }

    /// Waits until `counter` is at least `needed`. The counting threads must call [`Watch::reached`]. A
    /// thread that has to sleep does so until the counter is at `rather`, so that it need not sleep again at
    /// once; the counter must eventually reach that.
    ///
    /// # Panics
    /// If another thread of the team panicked, because the wait might never end.
    pub fn until(&self, counter: &AtomicUsize, needed: usize, rather: usize) {
        let is_at = |least| counter.load(Ordering::Acquire) >= least;
        if self.linger(|| is_at(needed) || self.has_failed(), None) {
            assert!(is_at(needed), "another thread failed");
            return;
        }
        let sleeper = (std::ptr::from_ref(counter) as usize, rather);
        let mut sleepers = self.sleepers();
        sleepers.push(sleeper);
        self.asleep.fetch_add(1, Ordering::SeqCst);
        // Either the other thread sees this one asleep, or this one sees the other's new count.
        fence(Ordering::SeqCst);
        while !is_at(rather) && !self.has_failed() {
            sleepers = self.further.wait(sleepers).unwrap_or_else(PoisonError::into_inner);
        }
        self.asleep.fetch_sub(1, Ordering::SeqCst);
        if let Some(at) = sleepers.iter().position(|other| *other == sleeper) {
            sleepers.swap_remove(at);
        }
        drop(sleepers);
        assert!(is_at(needed), "another thread failed");
    }

    /// Wakes the threads that wait for at most `value`; to be called after `counter` was raised to it.
    pub fn reached(&self, counter: &AtomicUsize, value: usize) {
        self.wake(|(address, rather)| {
            address == std::ptr::from_ref(counter) as usize && rather <= value
        });
    }

    /// Waits until `ready`: spins at first, then yields the core to other programs. Returns false if
    /// the thread should sleep instead: after the `limit`, or if yielded cores return late.
    pub fn linger(&self, ready: impl Fn() -> bool, limit: Option<Duration>) -> bool {
        if spin_until(&ready) {
            return true;
        }
        let began = Instant::now();
        while !self.is_crowded() && limit.is_none_or(|limit| began.elapsed() < limit) {
            let lent = Instant::now();
            std::thread::yield_now();
            if ready() {
                return true;
            }
            if lent.elapsed() > TAKEN {
                self.crowded();
            }
        }
        false
    }

    /// Reports whether another program recently kept a core.
    fn is_crowded(&self) -> bool {
        self.since.elapsed().as_millis() < u128::from(self.crowded_until.load(Ordering::Relaxed))
    }

    /// Records that another program kept a core.
    pub fn crowded(&self) {
        let until = (self.since.elapsed() + CROWDED).as_millis() as u64;
        self.crowded_until.store(until, Ordering::Relaxed);
    }

    fn sleepers(&self) -> MutexGuard<'_, Vec<(usize, usize)>> {
        locked(&self.sleepers)
    }

    /// Wakes the sleepers if `such` holds for one of them.
    fn wake(&self, such: impl Fn((usize, usize)) -> bool) {
        fence(Ordering::SeqCst);
        // With the lock held, so that a sleeper is either before its check or waiting.
        if self.asleep.load(Ordering::Relaxed) > 0 && self.sleepers().iter().any(|at| such(*at)) {
            self.further.notify_all();
        }
    }
}

/// Checks `ready` for a while; returns its last result.
fn spin_until(ready: impl Fn() -> bool) -> bool {
    let mut began = None;
    loop {
        for _ in 0..LOOKS {
            if ready() {
                return true;
            }
            std::hint::spin_loop();
        }
        if began.get_or_insert_with(Instant::now).elapsed() > SPINNING {
            return false;
        }
    }
}
