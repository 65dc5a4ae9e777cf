//! A map on its way through the filters, shared by the threads.

use std::ops::Range;

use crate::engine::cpu::simd::Simd;
use crate::engine::cpu::team::Team;
use crate::frame::Image;

/// A map on its way through the filters.
pub struct Pass<'a> {
    /// Width and height of the map.
    pub size: (usize, usize),
    /// Left image, whose map it is.
    pub left: &'a Image,
    /// Its noise threshold, where a filter depends on that; else 0.
    pub threshold: u32,
    /// The machine's vectors.
    pub simd: Simd,
    /// The threads.
    pub team: &'a mut Team,
}

impl Pass<'_> {
    /// Does all rows: `task` is called with the number of a thread and with rows, which are that
    /// thread's until the end.
    pub fn rows(&mut self, task: impl Fn(usize, Range<usize>) + Sync) {
        self.team.rows(self.size.1, task);
    }
}
