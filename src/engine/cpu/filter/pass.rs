//! A map on its way through the filters, shared by the threads.

use std::ops::Range;

use crate::core::frame::Image;
use crate::engine::cpu::simd::Simd;
use crate::engine::cpu::team::Team;

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

/// A filter that goes over the finished map.
pub trait MapFilter: Send + Sync {
    /// Returns where the map has to lie, for a filter that cannot work in place.
    fn input(&self) -> Option<*mut i16> {
        None
    }

    /// Returns the numbers kept from map to map, if any, and whether they are of the map before in
    /// the stream.
    fn state(&mut self) -> Option<(&mut [i32], &mut bool)> {
        None
    }

    /// Filters the map and leaves it in `map`. `sure` is the confidence of each pixel, if it is
    /// asked for.
    ///
    /// # Safety
    /// `map` has room for the pass's size, and holds the map unless the filter has an input of its
    /// own, which then does; nobody else touches either, nor `sure`; the simd was found on this
    /// machine.
    unsafe fn run(&self, pass: &mut Pass<'_>, map: *mut i16, sure: Option<*mut u8>);
}
