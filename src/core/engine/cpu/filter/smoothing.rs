//! Exponential smoothing in time, with one number of state per pixel.

use super::{MapFilter, Pass};
use crate::engine::cpu::memory::{Arena, Block, Plane};
use crate::engine::cpu::simd::{SimdKernel, Vector};
use crate::frame::DisparityRange;
use crate::matching::filter::smoothing::{NEVER, Smoothing, smooth};
use crate::memory::{Result, product};

pub struct SmoothingFilter {
    how: Smoothing,
    range: DisparityRange,
    state: Block<i32>,
    pixels: usize,
    known: bool,
}

impl SmoothingFilter {
    pub fn new(
        arena: &Arena,
        how: Smoothing,
        range: DisparityRange,
        (width, height): (usize, usize),
    ) -> Result<Self> {
        let state = arena.block(product([width, height]))?;
        Ok(Self { how, range, state, pixels: width * height, known: false })
    }
}

impl MapFilter for SmoothingFilter {
    fn state(&mut self) -> Option<(&mut [i32], &mut bool)> {
        // SAFETY: the block has this length, and is borrowed alone.
        Some((unsafe { self.state.all_mut(self.pixels) }, &mut self.known))
    }

    unsafe fn run(&self, pass: &mut Pass<'_>, map: *mut i16, _: Option<*mut u8>) {
        let (width, simd) = (pass.size.0, pass.simd);
        let (map, state) = (Plane(map), Plane(self.state.ptr()));
        pass.rows(|_, rows| {
            let pixels = rows.start * width..rows.end * width;
            // SAFETY: the caller's promise; the state has a number for each pixel.
            unsafe {
                let (values, state) = (map.part(pixels.clone()), state.part(pixels));
                if !self.known {
                    state.fill(NEVER);
                }
                simd.vectorize(Rows { values, state, range: self.range, how: self.how });
            }
        });
    }
}

/// Rows of a map with their state, as a kernel for the vectors of the machine.
struct Rows<'a> {
    values: &'a mut [i16],
    state: &'a mut [i32],
    range: DisparityRange,
    how: Smoothing,
}

impl SimdKernel for Rows<'_> {
    #[inline(always)]
    unsafe fn run<V: Vector>(self) {
        for (value, state) in self.values.iter_mut().zip(self.state) {
            *value = smooth(*value, state, self.range, self.how);
        }
    }
}
