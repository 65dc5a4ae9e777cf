//! The threads of the engine: made once, parked between frames.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

/// How often a waiting thread looks again before it lets others have the core.
const SPINS: u32 = 256;

/// What every thread of the team does: called once a thread, with the thread's number.
type Task = &'static (dyn Fn(usize) + Sync);

/// A fixed number of threads that work on one task at a time; the caller is one of them.
pub struct Team {
    shared: Arc<Shared>,
    workers: Vec<JoinHandle<()>>,
}

struct Shared {
    order: Mutex<Order>,
    started: Condvar,
    finished: Condvar,
    /// Workers that still run the current task.
    busy: AtomicUsize,
    /// Whether a thread panicked in the current task.
    failed: AtomicBool,
}

struct Order {
    number: u64,
    task: Option<Task>,
    stop: bool,
}

impl Team {
    /// A team of `threads` threads, at least one.
    ///
    /// # Errors
    /// Where the system refuses another thread.
    pub fn new(threads: usize) -> std::io::Result<Self> {
        let shared = Arc::new(Shared {
            order: Mutex::new(Order { number: 0, task: None, stop: false }),
            started: Condvar::new(),
            finished: Condvar::new(),
            busy: AtomicUsize::new(0),
            failed: AtomicBool::new(false),
        });
        // Built first, so that an error below stops the workers that exist already.
        let mut team = Self { shared, workers: Vec::new() };
        for number in 1..threads {
            let shared = Arc::clone(&team.shared);
            let thread = std::thread::Builder::new().name(format!("match-{number}"));
            team.workers.push(thread.spawn(move || shared.work(number))?);
        }
        Ok(team)
    }

    /// Number of threads.
    pub fn len(&self) -> usize {
        self.workers.len() + 1
    }

    /// Runs `task` once on every thread and returns when all are done.
    ///
    /// # Panics
    /// Where the task panicked on a thread.
    pub fn run(&mut self, task: &(dyn Fn(usize) + Sync)) {
        // SAFETY: only the lifetime changes; no worker uses the task after `busy` is 0 again, for
        // which this function waits, whatever the task does.
        let task: Task = unsafe { std::mem::transmute::<&(dyn Fn(usize) + Sync), Task>(task) };
        let shared = &*self.shared;
        shared.failed.store(false, Ordering::Relaxed);
        shared.busy.store(self.workers.len(), Ordering::Relaxed);
        {
            let mut order = shared.lock();
            order.number += 1;
            order.task = Some(task);
        }
        shared.started.notify_all();
        let own = catch_unwind(AssertUnwindSafe(|| task(0)));
        if own.is_err() {
            shared.failed.store(true, Ordering::Release);
        }
        let done = || shared.busy.load(Ordering::Acquire) == 0;
        if !(0..SPINS).any(|_| done() || pause()) {
            let mut order = shared.lock();
            while !done() {
                order = shared.finished.wait(order).unwrap_or_else(PoisonError::into_inner);
            }
        }
        shared.lock().task = None;
        match own {
            Err(panic) => resume_unwind(panic),
            Ok(()) => assert!(!shared.failed.load(Ordering::Acquire), "a matcher thread failed"),
        }
    }

    /// How the threads wait for each other within a task.
    pub fn watch(&self) -> Watch {
        Watch { shared: Arc::clone(&self.shared) }
    }
}

/// Waiting of the team's threads for each other, within a task.
pub struct Watch {
    shared: Arc<Shared>,
}

impl Watch {
    /// Waits until `ready`: spinning briefly, then yielding, because a spinning thread may hold the
    /// very core that the awaited one needs.
    ///
    /// # Panics
    /// Where another thread of the team panicked, which would otherwise be waited for in vain.
    pub fn until(&self, ready: impl Fn() -> bool) {
        let mut looks = 0;
        while !ready() {
            looks += 1;
            if looks < SPINS {
                std::hint::spin_loop();
            } else {
                assert!(!self.shared.failed.load(Ordering::Acquire), "another thread failed");
                std::thread::yield_now();
            }
        }
    }
}

/// A short rest; always false.
fn pause() -> bool {
    std::hint::spin_loop();
    false
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Order> {
        self.order.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The life of a worker.
    fn work(&self, thread: usize) {
        let mut last = 0;
        loop {
            let task = {
                let mut order = self.lock();
                while order.number == last && !order.stop {
                    order = self.started.wait(order).unwrap_or_else(PoisonError::into_inner);
                }
                if order.stop {
                    return;
                }
                last = order.number;
                order.task
            };
            if let Some(task) = task
                && catch_unwind(AssertUnwindSafe(|| task(thread))).is_err()
            {
                self.failed.store(true, Ordering::Release);
            }
            if self.busy.fetch_sub(1, Ordering::AcqRel) == 1 {
                // With the lock held, so that the caller is either before its check or waiting.
                let _order = self.lock();
                self.finished.notify_one();
            }
        }
    }
}

impl Drop for Team {
    fn drop(&mut self) {
        self.shared.lock().stop = true;
        self.shared.started.notify_all();
        for worker in self.workers.drain(..) {
            let _ = worker.join();
        }
    }
}

/// A point that every thread of the team reaches before any goes on; used again and again.
#[derive(Default)]
pub struct Barrier {
    arrived: AtomicUsize,
}

impl Barrier {
    /// Forgets earlier tasks; called between tasks.
    pub fn reset(&self) {
        self.arrived.store(0, Ordering::Relaxed);
    }

    /// Waits for all `threads` threads; `round` counts this thread's barriers of the task from 1.
    pub fn wait(&self, watch: &Watch, threads: usize, round: usize) {
        self.arrived.fetch_add(1, Ordering::AcqRel);
        watch.until(|| self.arrived.load(Ordering::Acquire) >= threads * round);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_thread_runs_every_task_once() {
        let mut team = Team::new(3).unwrap();
        for _ in 0..200 {
            let calls: Vec<AtomicUsize> = (0..3).map(|_| AtomicUsize::new(0)).collect();
            team.run(&|thread| {
                calls[thread].fetch_add(1, Ordering::Relaxed);
            });
            assert!(calls.iter().all(|c| c.load(Ordering::Relaxed) == 1));
        }
    }

    #[test]
    fn a_barrier_holds_everyone_back() {
        let mut team = Team::new(4).unwrap();
        let (barrier, watch) = (Barrier::default(), team.watch());
        let before = AtomicUsize::new(0);
        team.run(&|_| {
            for round in 1..50 {
                before.fetch_add(1, Ordering::Relaxed);
                barrier.wait(&watch, 4, 2 * round - 1);
                assert_eq!(before.load(Ordering::Relaxed), 4 * round);
                barrier.wait(&watch, 4, 2 * round);
            }
        });
    }

    #[test]
    fn a_failed_thread_is_reported_and_the_team_goes_on() {
        let mut team = Team::new(2).unwrap();
        let (barrier, watch) = (Barrier::default(), team.watch());
        let result = catch_unwind(AssertUnwindSafe(|| {
            team.run(&|thread| {
                assert_ne!(thread, 1, "on purpose");
                barrier.wait(&watch, 2, 1);
            })
        }));
        assert!(result.is_err());
        let calls = AtomicUsize::new(0);
        team.run(&|_| {
            calls.fetch_add(1, Ordering::Relaxed);
        });
        assert_eq!(calls.load(Ordering::Relaxed), 2);
    }
}
