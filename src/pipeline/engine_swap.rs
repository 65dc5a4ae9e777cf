//! Engines that take over while pairs flow.

use std::sync::{Arc, Mutex, MutexGuard};

use stereod_core::engine::Engine;
use stereod_core::thread::locked;

/// Slot for an engine that takes over between two pairs. No pair is lost or overtakes another.
/// Clones are the same slot.
#[derive(Clone, Default)]
pub struct EngineSwap(Arc<Mutex<Option<Box<dyn Engine>>>>);

impl EngineSwap {
    /// Lets this engine take over with the next pair; the newest wins.
    pub fn put(&self, engine: Box<dyn Engine>) {
        // An unused earlier engine is freed here, after the lock.
        let _unused = self.next().replace(engine);
    }

    /// Takes the waiting engine, if any.
    pub(super) fn take(&self) -> Option<Box<dyn Engine>> {
        self.next().take()
    }

    fn next(&self) -> MutexGuard<'_, Option<Box<dyn Engine>>> {
        locked(&self.0)
    }
}
