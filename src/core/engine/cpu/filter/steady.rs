//! Steady maps, in two passes: the left image's difference from its mean gives the noise; then the map.

use std::sync::Mutex;

use super::{MapFilter, Pass};
use crate::engine::cpu::memory::{Arena, Block, Plane};
use crate::engine::cpu::prepare::picture;
use crate::engine::cpu::residuals::{JudgeScratch, variance_of};
use crate::engine::cpu::simd::{Simd, SimdKernel, Vector};
use crate::engine::cpu::texture::NoiseRow;
use crate::frame::{DisparityRange, Image};
use crate::matching::filter::steady::{
    HEADER, Memory, Observation, SPREAD, Steady, VARIANCE_MIN, confidence, follow, residual,
    state_len, steady_pixel,
};
use crate::matching::residuals::Limits;
use crate::memory::{Result, product};
use crate::thread::locked;

pub struct SteadyFilter {
    how: Steady,
    range: DisparityRange,
    state: Block<i32>,
    residuals: Block<i16>,
    pixels: usize,
    threads: Vec<Mutex<JudgeScratch>>,
    /// Whether the state belongs to the previous map of the stream.
    known: bool,
}

impl SteadyFilter {
    pub fn new(
        arena: &Arena,
        how: Steady,
        range: DisparityRange,
        (width, height): (usize, usize),
        threads: usize,
    ) -> Result<Self> {
        let pixels = product([width, height]);
        Ok(Self {
            how,
            range,
            state: arena.block(numbers(pixels))?,
            residuals: arena.block(pixels)?,
            pixels: width * height,
            threads: arena.per_thread(threads, || JudgeScratch::new(arena, width))?,
            known: false,
        })
    }

    /// The remembered disparities; the packed memories follow them.
    fn disparities(&self) -> *mut i32 {
        // SAFETY: the state begins with its header.
        unsafe { self.state.ptr().add(HEADER) }
    }

    /// Compares a row of the left image with its mean.
    ///
    /// # Safety
    /// The row is this thread's alone; the simd was found on this machine.
    unsafe fn compare_row(
        &self,
        simd: Simd,
        y: usize,
        planes: &Planes<'_>,
        own: &mut JudgeScratch,
    ) {
        let left = planes.left;
        let (width, height) = (left.width(), left.height());
        let row = y * width..(y + 1) * width;
        // SAFETY: the caller's promise.
        unsafe {
            let memories = planes.memories.part(row.clone());
            let residuals = planes.residuals.part(row.clone());
            if self.known {
                simd.vectorize(ResidualRow { row: left.row(y), memories, to: residuals });
            } else {
                planes.disparities.part(row).fill(0);
                memories.fill(0);
                residuals.fill(0);
            }
            own.magnitudes.count(residuals);
            if y > 0 && y + 1 < height {
                let (of, histogram) = (picture(left), &mut own.magnitudes.responses);
                simd.vectorize(NoiseRow { of, y, histogram, responses: &mut own.responses });
            }
        }
    }

    /// Steadies a row of the map.
    ///
    /// # Safety
    /// As [`SteadyFilter::compare_row`], which is done for all rows.
    unsafe fn steady_row(
        &self,
        simd: Simd,
        y: usize,
        planes: &Planes<'_>,
        judgement: &Judgement,
        own: &mut JudgeScratch,
    ) {
        let left = planes.left;
        let size = (left.width(), left.height());
        let row = y * size.0..(y + 1) * size.0;
        // SAFETY: the caller's promise; the residuals are only read now.
        unsafe {
            own.judge(simd, (self.residuals.all(self.pixels), size), y, judgement.limits);
            simd.vectorize(MapRow {
                values: planes.map.part(row.clone()),
                sure: planes.sure.as_ref().map(|sure| sure.part(row.clone())),
                left: left.row(y),
                moving: &own.moving,
                disparities: planes.disparities.part(row.clone()),
                memories: planes.memories.part(row),
                known: self.known,
                rig_moves: judgement.rig_moves,
                range: self.range,
                how: self.how,
            });
        }
    }
}

impl MapFilter for SteadyFilter {
    fn state(&mut self) -> Option<(&mut [i32], &mut bool)> {
        // SAFETY: the block has this length, and is borrowed alone.
        Some((unsafe { self.state.all_mut(state_len(self.pixels)) }, &mut self.known))
    }

    unsafe fn run(&self, pass: &mut Pass<'_>, map: *mut i16, sure: Option<*mut u8>) {
        let disparities = Plane(self.disparities());
        let memories = Plane(self.disparities().wrapping_add(self.pixels));
        let planes = Planes {
            left: pass.left,
            map: Plane(map),
            sure: sure.map(Plane),
            residuals: Plane(self.residuals.ptr()),
            disparities,
            memories,
        };
        self.threads.iter().for_each(|thread| locked(thread).begin());
        let simd = pass.simd;
        pass.rows(|thread, rows| {
            let own = &mut *locked(&self.threads[thread]);
            // SAFETY: the rows are this thread's; the simd was found on this machine.
            rows.for_each(|y| unsafe { self.compare_row(simd, y, &planes, own) });
        });
        let variance = variance_of(&self.threads, SPREAD).max(VARIANCE_MIN);
        // SAFETY: no other thread accesses the header.
        let moved = if self.known { unsafe { *self.state.ptr() } } else { 0 };
        let judgement = Judgement {
            limits: Limits::new(variance, SPREAD),
            rig_moves: 4 * i64::from(moved) > self.pixels as i64,
        };
        pass.rows(|thread, rows| {
            let own = &mut *locked(&self.threads[thread]);
            for y in rows {
                // SAFETY: the row is this thread's, all were compared; the simd was found here.
                unsafe { self.steady_row(simd, y, &planes, &judgement, own) };
            }
        });
        let count = self.threads.iter().map(|thread| locked(thread).count as i32).sum();
        // SAFETY: no other thread accesses the header.
        unsafe { *self.state.ptr() = count };
    }
}

struct Planes<'a> {
    left: &'a Image,
    map: Plane<i16>,
    sure: Option<Plane<u8>>,
    residuals: Plane<i16>,
    disparities: Plane<i32>,
    memories: Plane<i32>,
}

struct Judgement {
    limits: Limits,
    rig_moves: bool,
}

/// Size of the state for maps of this many pixels, saturating.
fn numbers(pixels: u64) -> u64 {
    pixels.saturating_mul(2).saturating_add(HEADER as u64)
}

struct ResidualRow<'a> {
    row: &'a [u8],
    memories: &'a [i32],
    to: &'a mut [i16],
}

impl SimdKernel for ResidualRow<'_> {
    #[inline(always)]
    unsafe fn run<V: Vector>(self) {
        for ((to, &pixel), &memory) in self.to.iter_mut().zip(self.row).zip(self.memories) {
            *to = residual(pixel, Memory::of(memory).grey);
        }
    }
}

struct MapRow<'a> {
    values: &'a mut [i16],
    sure: Option<&'a mut [u8]>,
    left: &'a [u8],
    moving: &'a [u8],
    disparities: &'a mut [i32],
    memories: &'a mut [i32],
    known: bool,
    rig_moves: bool,
    range: DisparityRange,
    how: Steady,
}

impl SimdKernel for MapRow<'_> {
    #[inline(always)]
    unsafe fn run<V: Vector>(mut self) {
        for x in 0..self.values.len() {
            let moves = self.moving[x] != 0;
            let anew = !self.known || self.rig_moves || moves;
            let sure = self.sure.as_ref().map(|sure| sure[x]);
            let of = Observation { value: self.values[x], sure, anew };
            let mut memory = Memory::of(self.memories[x]);
            memory.grey = follow(memory.grey, self.left[x], !self.known || moves);
            let (value, held) =
                steady_pixel(of, &mut self.disparities[x], &mut memory, self.range, self.how);
            self.memories[x] = memory.number();
            self.values[x] = value;
            if let Some(sure) = &mut self.sure {
                sure[x] = confidence(sure[x], value, held);
            }
        }
    }
}
