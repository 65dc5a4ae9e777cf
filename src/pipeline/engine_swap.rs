//! Engines that take over while pairs flow.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::engine::Engine;

/// The slot through which another engine comes into a running pipeline: it takes the place of the one
/// before between two pairs, none of which is lost or overtakes another. Clones are the same slot.
#[derive(Clone, Default)]
pub struct EngineSwap(Arc<Mutex<Option<Box<dyn Engine>>>>);

impl EngineSwap {
    /// Has this engine take over with the next pair; the newest wins.
    pub fn put(&self, engine: Box<dyn Engine>) {
        // One that was not begun with is freed here, after the lock.
        let _unused = self.next().replace(engine);
    }

    /// The engine that is to take over, if any.
    pub(super) fn take(&self) -> Option<Box<dyn Engine>> {
        self.next().take()
    }

    fn next(&self) -> MutexGuard<'_, Option<Box<dyn Engine>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
