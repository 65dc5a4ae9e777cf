//! The connections that are open: a bounded number, of which a new one always becomes one, so that
//! nobody can keep others out by holding some.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use tokio::task::AbortHandle;

/// When a connection was last of use: opened, or asked something. Clones are the same.
#[derive(Clone, Debug)]
pub(super) struct LastUse {
    opened: Instant,
    after_ms: Arc<AtomicU64>,
}

impl LastUse {
    pub(super) fn now() -> Self {
        Self { opened: Instant::now(), after_ms: Arc::default() }
    }

    /// Notes that it is used just now.
    pub(super) fn renew(&self) {
        self.after_ms.store(self.opened.elapsed().as_millis() as u64, Ordering::Relaxed);
    }

    fn at(&self) -> Instant {
        self.opened + Duration::from_millis(self.after_ms.load(Ordering::Relaxed))
    }

    /// Waits until it has been of no use for so long.
    pub(super) async fn idle_for(&self, longest: Duration) {
        while self.at().elapsed() < longest {
            tokio::time::sleep_until((self.at() + longest).into()).await;
        }
    }
}

/// The connections that are open, up to a number.
#[derive(Debug)]
pub(super) struct Connections {
    most: usize,
    open: Vec<(LastUse, AbortHandle)>,
}

impl Connections {
    pub(super) fn new(most: usize) -> Self {
        Self { most, open: Vec::with_capacity(most) }
    }

    /// Notes another one, in the place of the one that has been idle for longest where all are taken.
    pub(super) fn add(&mut self, last_use: LastUse, task: AbortHandle) {
        self.open.retain(|(_, task)| !task.is_finished());
        if self.open.len() >= self.most {
            self.close_idlest();
        }
        self.open.push((last_use, task));
    }

    /// Closes the one that has been idle for longest, if there is any.
    pub(super) fn close_idlest(&mut self) {
        let open = self.open.iter().enumerate();
        let idlest = open.min_by_key(|(_, (last_use, _))| last_use.at()).map(|(at, _)| at);
        if let Some(at) = idlest {
            self.open.swap_remove(at).1.abort();
        }
    }
}
