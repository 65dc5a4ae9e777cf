//! Bounded link between two threads. A full link either blocks the sender, so that nothing is lost, or drops
//! and counts the oldest item, so that the sender never waits.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crossbeam_channel::{RecvError, SendError, TryRecvError, TrySendError};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WhenFull {
    /// The sender waits: for recorded files.
    Block,
    /// The oldest item is dropped and counted: for live sources.
    DropOldest,
}

#[derive(Debug)]
pub struct LinkSender<T> {
    items: crossbeam_channel::Sender<T>,
    /// Evicts the oldest item. Present only if the link drops items, because this receiver keeps the
    /// channel from noticing that the real one is gone.
    evict: Option<crossbeam_channel::Receiver<T>>,
    receiver_gone: Arc<AtomicBool>,
    dropped: Arc<AtomicU64>,
}

#[derive(Debug)]
pub struct LinkReceiver<T> {
    items: crossbeam_channel::Receiver<T>,
    gone: Arc<AtomicBool>,
}

/// The other end of a link is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Closed;

/// Creates a link that holds up to `capacity` (at least 1) items.
pub fn link<T>(capacity: usize, when_full: WhenFull) -> (LinkSender<T>, LinkReceiver<T>) {
    let (sender, receiver) = crossbeam_channel::bounded(capacity.max(1));
    let gone = Arc::new(AtomicBool::new(false));
    let evict = (when_full == WhenFull::DropOldest).then(|| receiver.clone());
    let sender = LinkSender {
        items: sender,
        evict,
        receiver_gone: gone.clone(),
        dropped: Arc::new(AtomicU64::new(0)),
    };
    (sender, LinkReceiver { items: receiver, gone })
}

impl<T> LinkSender<T> {
    pub fn send(&self, item: T) -> Result<(), Closed> {
        let Some(oldest) = &self.evict else {
            return self.items.send(item).map_err(|SendError(_)| Closed);
        };
        let mut item = item;
        loop {
            if self.receiver_gone.load(Ordering::Acquire) {
                return Err(Closed);
            }
            match self.items.try_send(item) {
                Ok(()) => return Ok(()),
                Err(TrySendError::Disconnected(_)) => return Err(Closed),
                Err(TrySendError::Full(back)) => {
                    item = back;
                    // If the receiver was quicker, there is room now.
                    if oldest.try_recv().is_ok() {
                        self.dropped.fetch_add(1, Ordering::Relaxed);
                    }
                }
            }
        }
    }

    /// Returns the counter of dropped items, which outlives the link.
    pub fn dropped(&self) -> Arc<AtomicU64> {
        self.dropped.clone()
    }
}

impl<T> LinkReceiver<T> {
    /// Waits for the next item.
    pub fn recv(&self) -> Result<T, Closed> {
        self.items.recv().map_err(|RecvError| Closed)
    }

    /// Returns the next item, or `None` if there is none yet.
    pub fn try_recv(&self) -> Result<Option<T>, Closed> {
        match self.items.try_recv() {
            Ok(item) => Ok(Some(item)),
            Err(TryRecvError::Empty) => Ok(None),
            Err(TryRecvError::Disconnected) => Err(Closed),
        }
    }
}

impl<T> Drop for LinkReceiver<T> {
    fn drop(&mut self) {
        self.gone.store(true, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dropping_link_keeps_the_newest_and_counts_the_rest() {
        let (sender, receiver) = link(3, WhenFull::DropOldest);
        let dropped = sender.dropped();
        for i in 0..10 {
            sender.send(i).unwrap();
        }
        drop(sender);
        let kept: Vec<i32> = std::iter::from_fn(|| receiver.recv().ok()).collect();
        assert_eq!(kept, [7, 8, 9]);
        assert_eq!(dropped.load(Ordering::Relaxed), 7);
    }

    #[test]
    fn a_blocking_link_loses_nothing() {
        let (sender, receiver) = link(2, WhenFull::Block);
        let dropped = sender.dropped();
        let thread = std::thread::spawn(move || (0..1000).try_for_each(|i| sender.send(i)));
        let all: Vec<i32> = std::iter::from_fn(|| receiver.recv().ok()).collect();
        thread.join().unwrap().unwrap();
        assert_eq!(all, (0..1000).collect::<Vec<_>>());
        assert_eq!(dropped.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn a_sender_notices_that_its_receiver_is_gone() {
        for when_full in [WhenFull::Block, WhenFull::DropOldest] {
            let (sender, receiver) = link(1, when_full);
            drop(receiver);
            assert_eq!(sender.send(1), Err(Closed), "{when_full:?}");
        }
    }

    #[test]
    fn an_empty_link_is_told_from_a_closed_one() {
        let (sender, receiver) = link::<u8>(1, WhenFull::Block);
        assert_eq!(receiver.try_recv(), Ok(None));
        sender.send(5).unwrap();
        drop(sender);
        assert_eq!(receiver.try_recv(), Ok(Some(5)));
        assert_eq!(receiver.try_recv(), Err(Closed));
    }
}
