//! Engines that take over while pairs flow.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::engine::Engine;
use crate::frame::DisparityRange;

/// What matches pairs.
pub struct Matcher {
    /// The engine.
    pub engine: Box<dyn Engine>,
    /// The candidate disparities of its maps, where those who take them are to know.
    pub candidates: Option<DisparityRange>,
}

/// The way of another matcher into a running pipeline: it takes the place of the one before between
/// two pairs, none of which is lost or overtakes another. Clones are the same way.
#[derive(Clone, Default)]
pub struct Replacements(Arc<Mutex<Option<Matcher>>>);

impl Replacements {
    /// Has this matcher take over with the next pair; the newest wins.
    pub fn put(&self, matcher: Matcher) {
        // One that was not begun with is freed here, after the lock.
        let _unused = self.next().replace(matcher);
    }

    /// The matcher that is to take over, if any.
    pub(super) fn take(&self) -> Option<Matcher> {
        self.next().take()
    }

    fn next(&self) -> MutexGuard<'_, Option<Matcher>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
