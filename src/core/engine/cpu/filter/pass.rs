//! A map during filtering, shared by the threads.

use std::ops::Range;

use crate::engine::cpu::simd::Simd;
use crate::engine::cpu::team::Team;
use crate::frame::Image;

/// A map during filtering.
pub struct Pass<'a> {
    pub size: (usize, usize),
    pub left: &'a Image,
    /// Noise threshold of the left image if a filter uses it, else 0.
    pub threshold: u32,
    pub simd: Simd,
    pub team: &'a mut Team,
}

impl Pass<'_> {
    /// Processes all rows. `task` gets the number of a thread and its rows.
    pub fn rows(&mut self, task: impl Fn(usize, Range<usize>) + Sync) {
        self.team.rows(self.size.1, task);
    }
}

pub trait MapFilter: Send + Sync {
    /// Returns the address for the input map, for a filter that cannot work in place.
    fn input(&self) -> Option<*mut i16> {
        None
    }

    /// Returns the state, if any, and whether it belongs to the previous map of the stream.
    fn state(&mut self) -> Option<(&mut [i32], &mut bool)> {
        None
    }

    /// Filters the map and leaves it in `map`. `sure` is the confidence of each pixel, if requested.
    ///
    /// # Safety
    /// `map` has room for the pass's size, and holds the map unless the filter has its own input, which then
    /// does; no other thread accesses either, nor `sure`; the simd was found on this machine.
    unsafe fn run(&self, pass: &mut Pass<'_>, map: *mut i16, sure: Option<*mut u8>);
}
