//! Steady maps, in two passes: the left image is compared with its mean, which gives the noise; then the map
//! is updated.

use std::sync::Mutex;

use super::pass::{MapFilter, Pass};
use crate::engine::cpu::memory::{Arena, Block, Plane};
use crate::engine::cpu::prepare::picture;
use crate::engine::cpu::residuals::{JudgeRow, Magnitudes, judge_scratch};
use crate::engine::cpu::simd::{Simd, SimdKernel, Vector};
use crate::engine::cpu::texture::NoiseRow;
use crate::frame::{DisparityRange, Image};
use crate::matching::filter::steady::{
    HEADER, Memory, Observation, SPREAD, Steady, VARIANCE_MIN, confidence, follow, residual,
    state_len, steady_pixel,
};
use crate::matching::residuals::{Limits, variance};
use crate::memory::{Refused, product};
use crate::thread::locked;

pub struct SteadyFilter {
    how: Steady,
    range: DisparityRange,
    state: Block<i32>,
    residuals: Block<i16>,
    pixels: usize,
    threads: Vec<Mutex<ThreadScratch>>,
    /// Whether the state belongs to the previous map of the stream.
    known: bool,
}

struct ThreadScratch {
    magnitudes: Magnitudes,
    responses: Vec<u16>,
    judge: Vec<i32>,
    weights: Vec<i32>,
    moving: Vec<u8>,
    /// Number of moving pixels.
    count: i32,
}

impl ThreadScratch {
    fn new(arena: &Arena, width: usize) -> Result<Self, Refused> {
        Ok(Self {
            magnitudes: Magnitudes::new(arena)?,
            responses: arena.filled(width, 0)?,
            judge: arena.filled(judge_scratch(width), 0)?,
            weights: arena.filled(width, 0)?,
            moving: arena.filled(width, 0)?,
            count: 0,
        })
    }

    /// Clears the counts of the previous image.
    fn begin(&mut self) {
        self.magnitudes.clear();
        self.count = 0;
    }
}

impl SteadyFilter {
    pub fn new(
        arena: &Arena,
        how: Steady,
        range: DisparityRange,
        (width, height): (usize, usize),
        threads: usize,
    ) -> Result<Self, Refused> {
        let pixels = product([width, height]);
        Ok(Self {
            how,
            range,
            state: arena.block(numbers(pixels))?,
            residuals: arena.block(pixels)?,
            pixels: width * height,
            threads: arena.per_thread(threads, || ThreadScratch::new(arena, width))?,
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
        own: &mut ThreadScratch,
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
        own: &mut ThreadScratch,
    ) {
        let ThreadScratch { judge, weights, moving, count, .. } = own;
        let left = planes.left;
        let size = (left.width(), left.height());
        let row = y * size.0..(y + 1) * size.0;
        // SAFETY: the caller's promise; the residuals are only read now.
        unsafe {
            simd.vectorize(JudgeRow {
                residuals: std::slice::from_raw_parts(self.residuals.ptr(), self.pixels),
                size,
                y,
                limits: judgement.limits,
                scratch: judge,
                weights,
                moving: &mut *moving,
            });
            *count += moving.iter().map(|&moving| i32::from(moving)).sum::<i32>();
            simd.vectorize(MapRow {
                values: planes.map.part(row.clone()),
                sure: planes.sure.as_ref().map(|sure| sure.part(row.clone())),
                left: left.row(y),
                moving,
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
        let len = state_len(self.pixels);
        // SAFETY: the block has this length, and is borrowed alone.
        let numbers = unsafe { std::slice::from_raw_parts_mut(self.state.ptr(), len) };
        Some((numbers, &mut self.known))
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
        let mut own = locked(&self.threads[0]);
        for thread in &self.threads[1..] {
            own.magnitudes.add(&locked(thread).magnitudes);
        }
        let Magnitudes { residuals, responses } = &own.magnitudes;
        let variance = variance(residuals, responses, SPREAD).max(VARIANCE_MIN);
        drop(own);
        // SAFETY: no other thread accesses the header.
        let moved = if self.known { unsafe { *self.state.ptr() } } else { 0 };
        let judgement = Judgement {
            limits: Limits::new(variance, SPREAD),
            rig_moves: 4 * i64::from(moved) > self.pixels as i64,
        };
        pass.rows(|thread, rows| {
            let own = &mut *locked(&self.threads[thread]);
            for y in rows {
                // SAFETY: the row is this thread's, and all were compared; the simd was found on
                // this machine.
                unsafe { self.steady_row(simd, y, &planes, &judgement, own) };
            }
        });
        let counts = self.threads.iter().map(|thread| locked(thread).count);
        // SAFETY: no other thread accesses the header.
        unsafe { *self.state.ptr() = counts.sum() };
    }
}

/// Planes with rows that the threads write.
struct Planes<'a> {
    /// The left image, which is only read.
    left: &'a Image,
    map: Plane<i16>,
    sure: Option<Plane<u8>>,
    residuals: Plane<i16>,
    disparities: Plane<i32>,
    memories: Plane<i32>,
}

/// Judgement of the whole image.
struct Judgement {
    limits: Limits,
    rig_moves: bool,
}

/// Size of the state for maps of this many pixels, saturating.
fn numbers(pixels: u64) -> u64 {
    pixels.saturating_mul(2).saturating_add(HEADER as u64)
}

/// Computes the residuals of a row of the left image.
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

/// A row of a map, with its memory.
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
