//! Steady maps: first every thread compares its rows of the left picture with their mean, then, when all have and the
//! noise is known, it goes through its rows of the map.

use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::pass::Pass;
use crate::engine::cpu::memory::Block;
use crate::engine::cpu::prepare::picture;
use crate::engine::cpu::residuals::{JudgeRow, MAGNITUDES, Magnitudes, judge_scratch};
use crate::engine::cpu::simd::{Kernel, Lanes};
use crate::engine::cpu::texture::NoiseRow;
use crate::frame::DisparityRange;
use crate::matching::filter::steady::{
    HEADER, Memory, Observation, SPREAD, Steady, VARIANCE_MIN, confidence, follow, residual,
    state_len, steadied,
};
use crate::matching::temporal::background::{Limits, variance};
use crate::memory::{Refused, filled, product};

/// The filter with its state.
pub struct SteadyFilter {
    how: Steady,
    range: DisparityRange,
    state: Block<i32>,
    residuals: Block<i16>,
    pixels: usize,
    threads: Vec<Mutex<OfThread>>,
    /// What the threads have counted of this picture; empty between pictures.
    totals: Mutex<Magnitudes>,
    /// Pixels that move in this picture.
    moving: AtomicI32,
    /// Whether the state is of the map before in the stream.
    known: bool,
}

/// Memory of one thread.
struct OfThread {
    magnitudes: Magnitudes,
    responses: Vec<u16>,
    judge: Vec<i32>,
    weights: Vec<i32>,
    moving: Vec<u8>,
}

impl OfThread {
    fn new(width: usize) -> Result<Self, Refused> {
        Ok(Self {
            magnitudes: Magnitudes::new()?,
            responses: filled(width, 0)?,
            judge: filled(judge_scratch(width), 0)?,
            weights: filled(width, 0)?,
            moving: filled(width, 0)?,
        })
    }

    fn bytes_of(width: usize) -> u64 {
        product([width, 2 + 3 * 4 + 4 + 1])
            .saturating_add(4 * (MAGNITUDES + judge_scratch(0)) as u64)
    }
}

impl SteadyFilter {
    pub fn new(
        how: Steady,
        range: DisparityRange,
        (width, height): (usize, usize),
        threads: usize,
    ) -> Result<Self, Refused> {
        let pixels = product([width, height]);
        let threads = (0..threads).map(|_| Ok(Mutex::new(OfThread::new(width)?)));
        Ok(Self {
            how,
            range,
            state: Block::new(numbers(pixels))?,
            residuals: Block::new(pixels)?,
            pixels: width * height,
            threads: threads.collect::<Result<_, Refused>>()?,
            totals: Mutex::new(Magnitudes::new()?),
            moving: AtomicI32::new(0),
            known: false,
        })
    }

    /// [`SteadyFilter::bytes`] before there is one.
    pub fn bytes_of((width, height): (usize, usize), threads: usize) -> u64 {
        let pixels = product([width, height]);
        Block::<i32>::bytes_of(numbers(pixels))
            .saturating_add(Block::<i16>::bytes_of(pixels))
            .saturating_add(OfThread::bytes_of(width).saturating_mul(threads as u64))
            .saturating_add(4 * MAGNITUDES as u64)
    }

    /// Size in bytes.
    pub fn bytes(&self) -> usize {
        let of_thread = |thread: &Mutex<OfThread>| {
            let OfThread { magnitudes, responses, judge, weights, moving } = &*locked(thread);
            magnitudes.bytes()
                + 2 * responses.len()
                + 4 * (judge.len() + weights.len())
                + moving.len()
        };
        let threads = self.threads.iter().map(of_thread).sum::<usize>();
        self.state.bytes() + self.residuals.bytes() + threads + self.totals().bytes()
    }

    /// The state, and whether it is known.
    pub fn state(&mut self) -> (&mut [i32], &mut bool) {
        let len = state_len(self.pixels);
        // SAFETY: the block has this length, and is borrowed alone.
        let numbers = unsafe { std::slice::from_raw_parts_mut(self.state.ptr(), len) };
        (numbers, &mut self.known)
    }

    /// This thread's share, in place, also of `sure`, how sure each pixel is, where that is asked for.
    ///
    /// # Safety
    /// `map` and `sure` are complete and have the pass's size, and nobody else touches this thread's rows; the simd was found on this machine.
    pub unsafe fn run<V: Lanes>(&self, pass: &mut Pass<'_>, map: *mut i16, sure: Option<*mut u8>) {
        let (width, height) = pass.size;
        let (first, end) = pass.rows();
        let (from, len) = (first * width, (end - first) * width);
        let own = &mut *locked(&self.threads[pass.thread]);
        own.magnitudes.clear();
        // SAFETY: these rows are this thread's; the blocks have a number a pixel.
        let (residuals, disparities, memories) = unsafe {
            let disparities = self.state.ptr().add(HEADER + from);
            (
                std::slice::from_raw_parts_mut(self.residuals.ptr().add(from), len),
                std::slice::from_raw_parts_mut(disparities, len),
                std::slice::from_raw_parts_mut(disparities.add(self.pixels), len),
            )
        };
        if !self.known {
            disparities.fill(0);
            memories.fill(0);
            residuals.fill(0);
        }
        for y in first..end {
            let row = (y - first) * width..(y - first + 1) * width;
            let of = picture(pass.left);
            // SAFETY: the simd was found on this machine.
            unsafe {
                if self.known {
                    V::vectorize(ResidualRow {
                        row: pass.left.row(y),
                        memories: &memories[row.clone()],
                        to: &mut residuals[row.clone()],
                    });
                }
                own.magnitudes.count(&residuals[row]);
                if y > 0 && y + 1 < height {
                    let histogram = &mut own.magnitudes.responses;
                    V::vectorize(NoiseRow { of, y, histogram, responses: &mut own.responses });
                }
            }
        }
        self.totals().add(&own.magnitudes);
        if pass.thread == 0 {
            self.moving.store(0, Ordering::Relaxed);
        }
        (pass.wait)();

        let limits = {
            let Magnitudes { residuals, responses } = &*self.totals();
            let variance = variance(residuals, responses, SPREAD).max(VARIANCE_MIN);
            Limits::new(variance, SPREAD)
        };
        // SAFETY: the residuals are complete; the header is written after all have read it.
        let (residuals, moved) = unsafe {
            let moved = if self.known { *self.state.ptr() } else { 0 };
            (std::slice::from_raw_parts(self.residuals.ptr(), self.pixels), moved)
        };
        let rig_moves = 4 * i64::from(moved) > self.pixels as i64;
        let mut count = 0;
        for y in first..end {
            let row = (y - first) * width..(y - first + 1) * width;
            let (scratch, weights, moving) = (&mut own.judge, &mut own.weights, &mut own.moving);
            // SAFETY: the simd was found on this machine; the rows are this thread's.
            let values = unsafe {
                let size = pass.size;
                V::vectorize(JudgeRow {
                    residuals,
                    size,
                    y,
                    limits,
                    scratch,
                    weights,
                    moving: &mut *moving,
                });
                std::slice::from_raw_parts_mut(map.add(y * width), width)
            };
            count += moving.iter().map(|&moving| i32::from(moving)).sum::<i32>();
            // SAFETY: as above.
            let sure = sure
                .map(|sure| unsafe { std::slice::from_raw_parts_mut(sure.add(y * width), width) });
            let rows = MapRow {
                values,
                sure,
                left: pass.left.row(y),
                moving,
                disparities: &mut disparities[row.clone()],
                memories: &mut memories[row],
                known: self.known,
                rig_moves,
                range: self.range,
                how: self.how,
            };
            // SAFETY: as above.
            unsafe { V::vectorize(rows) };
        }
        self.moving.fetch_add(count, Ordering::Relaxed);
        (pass.wait)();
        if pass.thread == 0 {
            // SAFETY: nobody else touches the header now.
            unsafe { *self.state.ptr() = self.moving.load(Ordering::Relaxed) };
            self.totals().clear();
        }
    }

    fn totals(&self) -> MutexGuard<'_, Magnitudes> {
        self.totals.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Numbers of the state for maps of so many pixels, however many.
fn numbers(pixels: u64) -> u64 {
    pixels.saturating_mul(2).saturating_add(HEADER as u64)
}

fn locked(thread: &Mutex<OfThread>) -> MutexGuard<'_, OfThread> {
    thread.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A row of the left picture beside its mean.
struct ResidualRow<'a> {
    row: &'a [u8],
    memories: &'a [i32],
    to: &'a mut [i16],
}

impl Kernel for ResidualRow<'_> {
    #[inline(always)]
    unsafe fn run<V: Lanes>(self) {
        for ((to, &pixel), &memory) in self.to.iter_mut().zip(self.row).zip(self.memories) {
            *to = residual(pixel, Memory::of(memory).grey);
        }
    }
}

/// A row of a map, with what is remembered of it.
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

impl Kernel for MapRow<'_> {
    #[inline(always)]
    unsafe fn run<V: Lanes>(mut self) {
        for x in 0..self.values.len() {
            let moves = self.moving[x] != 0;
            let anew = !self.known || self.rig_moves || moves;
            let sure = self.sure.as_ref().map(|sure| sure[x]);
            let of = Observation { value: self.values[x], sure, anew };
            let mut memory = Memory::of(self.memories[x]);
            memory.grey = follow(memory.grey, self.left[x], !self.known || moves);
            let (value, held) =
                steadied(of, &mut self.disparities[x], &mut memory, self.range, self.how);
            self.memories[x] = memory.number();
            self.values[x] = value;
            if let Some(sure) = &mut self.sure {
                sure[x] = confidence(sure[x], value, held);
            }
        }
    }
}
