//! How threads share a map that goes through the filters.

use crate::frame::Image;

/// A map on its way through the filters, as one thread sees it.
pub struct Pass<'a> {
    /// Width and height of the map.
    pub size: (usize, usize),
    /// Left picture, whose map it is.
    pub left: &'a Image,
    /// Number of this thread.
    pub thread: usize,
    /// Number of threads, each of which makes the same pass.
    pub threads: usize,
    /// Waits until every thread has come as far.
    pub wait: &'a mut dyn FnMut(),
}

impl Pass<'_> {
    /// This thread's rows: the first, and the one behind the last.
    pub fn rows(&self) -> (usize, usize) {
        (self.border(self.thread), self.border(self.thread + 1))
    }

    /// The first row of a thread's share.
    pub fn border(&self, thread: usize) -> usize {
        self.size.1 * thread / self.threads
    }
}
