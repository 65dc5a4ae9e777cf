//! The threads of the engine: started once, parked between frames. Each takes the next piece of work whenever
//! it has finished one. The work is done when its pieces are, without waiting for idle threads: a thread that
//! is preempted while it has no piece delays no other thread.

use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use super::watch::Watch;
use crate::thread::{explain, locked};

/// Time that an idle thread yields its core before it sleeps: longer than any idle time within a frame.
const LINGERING: Duration = Duration::from_micros(100);
/// Pieces per thread for work that can be divided anywhere: few, so that starting a piece is cheap.
const PIECES_A_THREAD: usize = 4;
/// Smallest number of rows of such a piece.
const ROWS_MIN: usize = 8;

/// A task, called once on each thread that arrives before it is closed, with the thread's number.
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
    /// Number of the current order, or 0 once it is closed; read without the lock.
    open: AtomicU64,
    /// Workers that run the current task.
    busy: AtomicUsize,
    next: AtomicUsize,
    watch: Arc<Watch>,
}

struct Order {
    number: u64,
    /// `None` once the order is closed.
    task: Option<Task>,
    /// Workers that have started it.
    begun: usize,
    /// Workers that sleep until the next one.
    idle: usize,
    stop: bool,
}

/// Iterator over pieces of a task; several threads share them.
pub struct Pieces<'a> {
    shared: &'a Shared,
    end: usize,
}

impl Iterator for Pieces<'_> {
    type Item = usize;

    fn next(&mut self) -> Option<usize> {
        // After the failure of a thread the remaining pieces are skipped.
        if self.shared.watch.has_failed() {
            return None;
        }
        let piece = self.shared.next.fetch_add(1, Ordering::Relaxed);
        (piece < self.end).then_some(piece)
    }
}

impl Team {
    pub fn new(threads: usize) -> std::io::Result<Self> {
        let shared = Arc::new(Shared {
            order: Mutex::new(Order { number: 0, task: None, begun: 0, idle: 0, stop: false }),
            started: Condvar::new(),
            finished: Condvar::new(),
            open: AtomicU64::new(0),
            busy: AtomicUsize::new(0),
            next: AtomicUsize::new(0),
            watch: Arc::new(Watch::new()),
        });
        // Made first, so that an error below stops the existing workers.
        let mut team = Self { shared, workers: Vec::new() };
        for number in 1..threads {
            let shared = Arc::clone(&team.shared);
            let thread = std::thread::Builder::new().name(format!("match-{number}"));
            let thread = thread.spawn(move || shared.work(number));
            team.workers.push(thread.map_err(explain)?);
        }
        Ok(team)
    }

    pub fn len(&self) -> usize {
        self.workers.len() + 1
    }

    /// Processes `count` pieces of work. `task` is called once on the caller and on each other thread that
    /// arrives before all pieces are taken, with the thread's number and its pieces. Pieces are taken in
    /// order. Returns when all are done.
    ///
    /// # Panics
    /// If the task panicked on a thread.
    pub fn share(&mut self, count: usize, task: &(dyn Fn(usize, Pieces<'_>) + Sync)) {
        let shared = Arc::clone(&self.shared);
        shared.next.store(0, Ordering::Relaxed);
        let task = |thread| task(thread, Pieces { shared: &shared, end: count });
        match count {
            // One piece does not justify waking a thread.
            0 | 1 => {
                shared.watch.begin();
                task(0);
            }
            _ => self.engage(false, &task),
        }
    }

    /// Processes `height` rows: `task` gets the number of a thread and the rows of a piece.
    ///
    /// # Panics
    /// As [`Team::share`].
    pub fn rows(&mut self, height: usize, task: impl Fn(usize, Range<usize>) + Sync) {
        let rows = self.rows_of_piece(height);
        self.share(height.div_ceil(rows), &|thread, pieces| {
            for piece in pieces {
                task(thread, piece * rows..height.min((piece + 1) * rows));
            }
        });
    }

    pub fn pieces(&self) -> usize {
        match self.len() {
            1 => 1,
            threads => PIECES_A_THREAD * threads,
        }
    }

    /// Rows per piece of [`Team::rows`]; the last may have fewer.
    pub fn rows_of_piece(&self, height: usize) -> usize {
        height.div_ceil(self.pieces()).max(ROWS_MIN)
    }

    /// Runs `task` once on every thread, waiting for all of them, and returns when all are done.
    ///
    /// # Panics
    /// If the task panicked on a thread.
    pub fn run(&mut self, task: &(dyn Fn(usize) + Sync)) {
        self.engage(true, task);
    }

    /// Starts a task; `everyone`: every thread runs it, else it is closed when the caller returns from it.
    fn engage(&mut self, everyone: bool, task: &(dyn Fn(usize) + Sync)) {
        // SAFETY: only the lifetime changes; no worker starts the task after it is closed below, nor uses it
        // once `busy` is 0 then. This function waits for that even if the task panics.
        let task: Task = unsafe { std::mem::transmute::<&(dyn Fn(usize) + Sync), Task>(task) };
        let shared = &*self.shared;
        shared.watch.begin();
        let idle = {
            let mut order = shared.lock();
            order.number += 1;
            order.task = Some(task);
            order.begun = 0;
            shared.open.store(order.number, Ordering::Release);
            order.idle
        };
        if idle > 0 {
            shared.started.notify_all();
        }
        let own = catch_unwind(AssertUnwindSafe(|| task(0)));
        if own.is_err() {
            shared.watch.fail();
        }
        {
            let mut order = shared.lock();
            while everyone && order.begun < self.workers.len() {
                order = shared.finished.wait(order).unwrap_or_else(PoisonError::into_inner);
            }
            order.task = None;
            shared.open.store(0, Ordering::Relaxed);
        }
        let done = || shared.busy.load(Ordering::Acquire) == 0;
        if !shared.watch.linger(done, None) {
            let mut order = shared.lock();
            while !done() {
                order = shared.finished.wait(order).unwrap_or_else(PoisonError::into_inner);
            }
        }
        match own {
            Err(panic) => resume_unwind(panic),
            Ok(()) => assert!(!shared.watch.has_failed(), "a matcher thread failed"),
        }
    }

    /// Returns the synchronisation of the threads within a task.
    pub fn watch(&self) -> Arc<Watch> {
        Arc::clone(&self.shared.watch)
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Order> {
        locked(&self.order)
    }

    fn work(&self, thread: usize) {
        let mut last = 0;
        loop {
            let is_next = |open| open != 0 && open != last;
            self.watch.linger(|| is_next(self.open.load(Ordering::Acquire)), Some(LINGERING));
            let task = {
                let mut order = self.lock();
                let task = loop {
                    match order.task {
                        _ if order.stop => return,
                        Some(task) if order.number != last => break task,
                        _ => {}
                    }
                    order.idle += 1;
                    order = self.started.wait(order).unwrap_or_else(PoisonError::into_inner);
                    order.idle -= 1;
                };
                last = order.number;
                order.begun += 1;
                self.busy.fetch_add(1, Ordering::Relaxed);
                task
            };
            if catch_unwind(AssertUnwindSafe(|| task(thread))).is_err() {
                self.watch.fail();
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
    fn every_piece_is_done_once_and_before_the_end() {
        let mut team = Team::new(3).unwrap();
        for count in (0..40).chain([1000]).cycle().take(400) {
            let calls: Vec<AtomicUsize> = (0..count).map(|_| AtomicUsize::new(0)).collect();
            let threads: Vec<AtomicUsize> = (0..3).map(|_| AtomicUsize::new(0)).collect();
            team.share(count, &|thread, pieces| {
                threads[thread].fetch_add(1, Ordering::Relaxed);
                pieces.for_each(|piece| {
                    calls[piece].fetch_add(1, Ordering::Relaxed);
                });
            });
            assert!(calls.iter().all(|c| c.load(Ordering::Relaxed) == 1));
            let came = |thread: usize| threads[thread].load(Ordering::Relaxed);
            assert_eq!(came(0), 1, "the caller takes part");
            assert!(came(1) <= 1 && came(2) <= 1);
        }
    }

    #[test]
    fn all_threads_take_pieces_and_the_rest_take_those_of_one_that_does_not_come_back() {
        let mut team = Team::new(3).unwrap();
        let (watch, others) = (team.watch(), AtomicUsize::new(0));
        let first = AtomicUsize::new(0);
        team.share(100, &|_, mut pieces| {
            // The first thread keeps its piece until the others have done all the rest.
            let is_first = first.fetch_add(1, Ordering::Relaxed) == 0;
            if is_first && pieces.next().is_some() {
                watch.until(&others, 99, 99);
            }
            for _ in pieces {
                watch.reached(&others, others.fetch_add(1, Ordering::AcqRel) + 1);
            }
        });
        assert_eq!(others.into_inner(), 99);
    }

    #[test]
    fn who_comes_too_late_is_not_waited_for_and_comes_the_next_time() {
        let mut team = Team::new(1).unwrap();
        let calls = AtomicUsize::new(0);
        let count = |pieces: Pieces<'_>| calls.fetch_add(pieces.count(), Ordering::Relaxed);
        team.share(5, &|_, pieces| {
            count(pieces);
        });
        assert_eq!(calls.load(Ordering::Relaxed), 5);
        let shared = Arc::clone(&team.shared);
        team.workers.push(std::thread::spawn(move || shared.work(1)));
        // The order is closed; the thread must ignore the task.
        std::thread::sleep(Duration::from_millis(20));
        assert_eq!(team.shared.busy.load(Ordering::Relaxed), 0);
        let came = AtomicUsize::new(0);
        team.run(&|_| {
            came.fetch_add(1, Ordering::Relaxed);
        });
        assert_eq!(came.into_inner(), 2);
    }

    #[test]
    fn pieces_of_rows_cover_every_row_once() {
        for threads in [1, 2, 5] {
            let mut team = Team::new(threads).unwrap();
            for height in [0, 1, 7, 8, 9, 100, 1081] {
                let rows: Vec<AtomicUsize> = (0..height).map(|_| AtomicUsize::new(0)).collect();
                team.rows(height, |_, piece| {
                    assert!(!piece.is_empty());
                    piece.for_each(|y| {
                        rows[y].fetch_add(1, Ordering::Relaxed);
                    });
                });
                assert!(rows.iter().all(|row| row.load(Ordering::Relaxed) == 1), "{height}");
            }
        }
    }

    #[test]
    fn who_sleeps_is_woken_when_the_counter_is_far_enough() {
        let mut team = Team::new(3).unwrap();
        let (watch, counter) = (team.watch(), AtomicUsize::new(0));
        team.shared.watch.crowded();
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
        team.shared.watch.crowded();
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
        let (watch, never) = (team.watch(), AtomicUsize::new(0));
        let result = catch_unwind(AssertUnwindSafe(|| {
            team.run(&|thread| {
                assert_ne!(thread, 1, "on purpose");
                watch.until(&never, 1, 1);
            })
        }));
        assert!(result.is_err());
        let calls = AtomicUsize::new(0);
        team.share(7, &|_, pieces| {
            calls.fetch_add(pieces.count(), Ordering::Relaxed);
        });
        assert_eq!(calls.load(Ordering::Relaxed), 7);
    }
}
