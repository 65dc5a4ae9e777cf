//! Turns of the engines of a program on its processors, in the order in which they ask. Two teams that share the
//! processors would wait for each other's threads.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex};

use crate::thread::locked;

static ARE_TAKEN: AtomicBool = AtomicBool::new(false);

static QUEUE: Queue = Queue::new();

/// From now on, one engine on the CPU works at a time, and each gets its turn.
pub fn take_turns() {
    ARE_TAKEN.store(true, Ordering::Relaxed);
}

/// Waits for the turn of an engine, which ends when the answer is dropped.
pub fn turn() -> Option<Turn<'static>> {
    ARE_TAKEN.load(Ordering::Relaxed).then(|| QUEUE.wait())
}

struct Queue {
    /// Numbers of the turn that comes next to the queue, and of the one that works.
    turns: Mutex<(u64, u64)>,
    ended: Condvar,
}

pub struct Turn<'a>(&'a Queue);

impl Queue {
    const fn new() -> Self {
        Self { turns: Mutex::new((0, 0)), ended: Condvar::new() }
    }

    fn wait(&self) -> Turn<'_> {
        let mut turns = locked(&self.turns);
        let own = turns.0;
        turns.0 += 1;
        let waited = self.ended.wait_while(turns, |turns| turns.1 != own);
        drop(waited.unwrap_or_else(std::sync::PoisonError::into_inner));
        Turn(self)
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        locked(&self.0.turns).1 += 1;
        self.0.ended.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn turns_come_in_the_order_of_asking() {
        let (queue, order) = (Queue::new(), Mutex::new(Vec::new()));
        let first = queue.wait();
        std::thread::scope(|scope| {
            for number in 1..4 {
                let (queue, order) = (&queue, &order);
                scope.spawn(move || {
                    let _turn = queue.wait();
                    locked(order).push(number);
                });
                // It has asked before the next one does.
                while locked(&queue.turns).0 <= number {
                    std::thread::yield_now();
                }
            }
            assert!(locked(&order).is_empty());
            drop(first);
        });
        assert_eq!(*locked(&order), [1, 2, 3]);
        // A turn that ends in a panic ends, too.
        let _ = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            let _turn = queue.wait();
            panic!("of the test");
        }));
        drop(queue.wait());
    }
}
