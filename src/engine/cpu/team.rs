//! The threads of the engine: made once, parked between frames.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering, fence};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// How long a waiting thread keeps looking before it lets others have the core.
const SPINNING: Duration = Duration::from_micros(20);
/// A core that was lent for so long was taken by another program: threads of the team lend it for a tile at most.
const TAKEN: Duration = Duration::from_micros(500);
/// How long threads sleep instead of lending, after that.
const CROWDED: Duration = Duration::from_millis(250);
/// Looks between two looks at the clock.
const LOOKS: u32 = 64;

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
    /// Threads that sleep within the task until another one has come further.
    asleep: AtomicUsize,
    /// The address of the counter that each of them waits for, and what for.
    sleepers: Mutex<Vec<(usize, usize)>>,
    further: Condvar,
    /// When the team was made, and how many milliseconds later its threads yield again.
    since: Instant,
    crowded_until: AtomicU64,
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
            asleep: AtomicUsize::new(0),
            sleepers: Mutex::default(),
            further: Condvar::new(),
            since: Instant::now(),
            crowded_until: AtomicU64::new(0),
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
            shared.fail();
        }
        let done = || shared.busy.load(Ordering::Acquire) == 0;
        if !spin_until(done) {
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
    /// Waits until `counter` is at least `needed`, which the threads that count tell by [`Watch::reached`]. Who has to
    /// sleep for it does so until the counter is at `rather`, at most what it will come to, so that it need not sleep
    /// again at once.
    ///
    /// A waiting thread yields: that is quick where nobody else wants the core, and gives it at once to the thread that is
    /// waited for. Another program keeps it for milliseconds, whatever happens meanwhile. So once that was seen, threads sleep
    /// for a while when they wait: who is woken comes before a program that never sleeps.
    ///
    /// # Panics
    /// Where another thread of the team panicked, which would otherwise be waited for in vain.
    pub fn until(&self, counter: &AtomicUsize, needed: usize, rather: usize) {
        let is_at = |least| counter.load(Ordering::Acquire) >= least;
        if spin_until(|| is_at(needed)) {
            return;
        }
        let shared = &*self.shared;
        while !shared.is_crowded() {
            let lent = Instant::now();
            std::thread::yield_now();
            if is_at(needed) {
                return;
            }
            assert!(!shared.failed.load(Ordering::Acquire), "another thread failed");
            if lent.elapsed() > TAKEN {
                shared.crowded();
            }
        }
        let sleeper = (std::ptr::from_ref(counter) as usize, rather);
        let mut sleepers = shared.sleepers();
        sleepers.push(sleeper);
        shared.asleep.fetch_add(1, Ordering::SeqCst);
        // Either the other thread sees this one asleep, or this one sees how far the other has come.
        fence(Ordering::SeqCst);
        while !is_at(rather) && !shared.failed.load(Ordering::Acquire) {
            sleepers = shared.further.wait(sleepers).unwrap_or_else(PoisonError::into_inner);
        }
        shared.asleep.fetch_sub(1, Ordering::SeqCst);
        if let Some(at) = sleepers.iter().position(|other| *other == sleeper) {
            sleepers.swap_remove(at);
        }
        drop(sleepers);
        assert!(is_at(needed), "another thread failed");
    }

    /// Wakes the threads that sleep until `counter` is at `value` or less; to be called after it was raised to that.
    pub fn reached(&self, counter: &AtomicUsize, value: usize) {
        self.shared.wake(|(address, rather)| {
            address == std::ptr::from_ref(counter) as usize && rather <= value
        });
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

impl Shared {
    /// Whether another program kept a core lately.
    fn is_crowded(&self) -> bool {
        self.since.elapsed().as_millis() < u128::from(self.crowded_until.load(Ordering::Relaxed))
    }

    fn crowded(&self) {
        let until = (self.since.elapsed() + CROWDED).as_millis() as u64;
        self.crowded_until.store(until, Ordering::Relaxed);
    }

    fn sleepers(&self) -> MutexGuard<'_, Vec<(usize, usize)>> {
        self.sleepers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Wakes the sleepers if there is such a one among them.
    fn wake(&self, such: impl Fn((usize, usize)) -> bool) {
        fence(Ordering::SeqCst);
        // With the lock held, so that a sleeper is either before its check or waiting.
        if self.asleep.load(Ordering::Relaxed) > 0 && self.sleepers().iter().any(|at| such(*at)) {
            self.further.notify_all();
        }
    }

    /// Says that a thread panicked, to those as well that wait for it.
    fn fail(&self) {
        self.failed.store(true, Ordering::Release);
        self.wake(|_| true);
    }

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
                self.fail();
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
        let all = threads * round;
        watch.reached(&self.arrived, self.arrived.fetch_add(1, Ordering::AcqRel) + 1);
        watch.until(&self.arrived, all, all);
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
    fn who_sleeps_is_woken_when_the_counter_is_far_enough() {
        let mut team = Team::new(3).unwrap();
        let (watch, counter) = (team.watch(), AtomicUsize::new(0));
        team.shared.crowded();
        team.run(&|thread| {
            if thread > 0 {
                watch.until(&counter, thread, 4);
                assert!(counter.load(Ordering::Relaxed) >= thread);
                return;
            }
            for value in 1..=4 {
                // Long enough for the others to fall asleep.
                std::thread::sleep(Duration::from_millis(10));
                counter.store(value, Ordering::Release);
                watch.reached(&counter, value);
            }
        });
    }

    #[test]
    fn who_sleeps_hears_of_a_failed_thread() {
        let mut team = Team::new(2).unwrap();
        let (watch, never) = (team.watch(), AtomicUsize::new(0));
        team.shared.crowded();
        let result = catch_unwind(AssertUnwindSafe(|| {
            team.run(&|thread| {
                if thread == 0 {
                    watch.until(&never, 1, 1);
                }
                std::thread::sleep(Duration::from_millis(20));
                panic!("on purpose");
            })
        }));
        assert!(result.is_err());
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
