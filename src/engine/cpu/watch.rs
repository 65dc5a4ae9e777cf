//! Waiting of the threads of a team, for each other within a task and for the next task.
//!
//! A waiting thread looks for a moment and then yields: that is quick where nobody else wants the
//! core, and gives it at once to the thread that is waited for. Another program keeps it for
//! milliseconds, whatever happens meanwhile. So once that was seen, threads sleep for a while when
//! they wait: who is woken comes before a program that never sleeps.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering, fence};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::core::thread::locked;

/// Time that a waiting thread spins before it yields its core.
const SPINNING: Duration = Duration::from_micros(20);
/// A core that stays away for longer than this was preempted by another program: threads of the
/// team keep it for a tile at most.
const TAKEN: Duration = Duration::from_micros(500);
/// Time for which threads sleep instead of yielding after that.
const CROWDED: Duration = Duration::from_millis(250);
/// Checks between two looks at the clock.
const LOOKS: u32 = 64;

/// Shared state of the threads that wait for each other.
pub struct Watch {
    /// Whether a thread panicked in the current task.
    failed: AtomicBool,
    /// Threads that sleep within the task until another one has come further.
    asleep: AtomicUsize,
    /// The address of the counter that each of them waits for, and what for.
    sleepers: Mutex<Vec<(usize, usize)>>,
    further: Condvar,
    /// When the team was made, and how many milliseconds later its threads yield again.
    since: Instant,
    crowded_until: AtomicU64,
}

impl Watch {
    /// That of a new team.
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

    /// Begins a task.
    pub fn begin(&self) {
        self.failed.store(false, Ordering::Release);
    }

    /// Reports that a thread panicked, and wakes those that wait for it.
    pub fn fail(&self) {
        self.failed.store(true, Ordering::Release);
        self.wake(|_| true);
    }

    /// Whether a thread panicked in the current task.
    pub fn has_failed(&self) -> bool {
        self.failed.load(Ordering::Acquire)
    }

    /// Waits until `counter` is at least `needed`, which the threads that count tell by
    /// [`Watch::reached`]. Who has to sleep for it does so until the counter is at `rather`, at
    /// most what it will come to, so that it need not sleep again at once.
    ///
    /// # Panics
    /// If another thread of the team panicked, which would otherwise be waited for in vain.
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
        // Either the other thread sees this one asleep, or this one sees how far the other has
        // come.
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

    /// Wakes the threads that sleep until `counter` is at `value` or less; to be called after it
    /// was raised to that.
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

    /// Reports whether another program kept a core lately.
    fn is_crowded(&self) -> bool {
        self.since.elapsed().as_millis() < u128::from(self.crowded_until.load(Ordering::Relaxed))
    }

    /// Another program keeps a core.
    pub fn crowded(&self) {
        let until = (self.since.elapsed() + CROWDED).as_millis() as u64;
        self.crowded_until.store(until, Ordering::Relaxed);
    }

    fn sleepers(&self) -> MutexGuard<'_, Vec<(usize, usize)>> {
        locked(&self.sleepers)
    }

    /// Wakes the sleepers if there is such a one among them.
    fn wake(&self, such: impl Fn((usize, usize)) -> bool) {
        fence(Ordering::SeqCst);
        // With the lock held, so that a sleeper is either before its check or waiting.
        if self.asleep.load(Ordering::Relaxed) > 0 && self.sleepers().iter().any(|at| such(*at)) {
            self.further.notify_all();
        }
    }
}

/// Looks for a while whether it is `ready`; what it found last.
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
