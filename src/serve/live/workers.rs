//! Work on threads of its own, bounded for each kind of work.

use std::sync::Arc;

use tokio::sync::{AcquireError, OwnedSemaphorePermit, Semaphore};
use tokio::task::spawn_blocking;

/// Places for one kind of work, so that no other kind can keep it waiting.
pub struct Workers(Arc<Semaphore>);

/// A place, until its work is done. Whoever waits for it may leave before.
pub struct Place(#[expect(dead_code, reason = "released on drop")] OwnedSemaphorePermit);

impl Workers {
    /// Makes so many places.
    pub fn new(places: usize) -> Self {
        Self(Arc::new(Semaphore::new(places)))
    }

    /// Waits for a place.
    pub async fn enter(&self) -> Result<Place, AcquireError> {
        self.0.clone().acquire_owned().await.map(Place)
    }

    /// Does the work in the next free place; the error is a panic.
    pub async fn work<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, String> {
        self.enter().await.map_err(|closed| closed.to_string())?.work(work).await
    }
}

impl Place {
    /// Does the work; the error is a panic.
    pub async fn work<T: Send + 'static>(
        self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, String> {
        let work = move || {
            let done = work();
            drop(self);
            done
        };
        spawn_blocking(work).await.map_err(|broken| broken.to_string())
    }
}
