//! Residuals of an image, row by row ([`crate::matching::residuals`]).

use std::sync::Mutex;

use super::memory::Arena;
use super::simd::{Simd, SimdKernel, Vector};
use crate::matching::residuals::{Limits, RESIDUAL_MAX, squared, variance};
use crate::matching::texture::RESPONSE_MAX;
use crate::memory::Result;
use crate::thread::locked;

pub struct JudgeScratch {
    pub magnitudes: Magnitudes,
    pub responses: Vec<u16>,
    judge: Vec<i32>,
    pub weights: Vec<i32>,
    /// 1 for moving pixels of the row, else 0.
    pub moving: Vec<u8>,
    /// Number of moving pixels.
    pub count: u32,
}

impl JudgeScratch {
    pub fn new(arena: &Arena, width: usize) -> Result<Self> {
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
    pub fn begin(&mut self) {
        self.magnitudes.clear();
        self.count = 0;
    }

    /// Judges row `y` of an image with these residuals, and counts its moving pixels.
    ///
    /// # Safety
    /// The simd was found on this machine.
    pub unsafe fn judge(
        &mut self,
        simd: Simd,
        (residuals, size): (&[i16], (usize, usize)),
        y: usize,
        limits: Limits,
    ) {
        let Self { judge: scratch, weights, moving, count, .. } = self;
        let (weights, to) = (&mut weights[..], &mut moving[..]);
        let row = JudgeRow { residuals, size, y, limits, scratch, weights, moving: to };
        // SAFETY: the caller's promise.
        unsafe { simd.vectorize(row) };
        *count += moving.iter().map(|&moving| u32::from(moving)).sum::<u32>();
    }
}

/// Returns the noise variance of an image whose parts these threads counted.
pub fn variance_of(threads: &[Mutex<JudgeScratch>], spread: u32) -> u32 {
    let mut first = locked(&threads[0]);
    for thread in &threads[1..] {
        first.magnitudes.add(&locked(thread).magnitudes);
    }
    variance(&first.magnitudes.residuals, &first.magnitudes.responses, spread)
}

/// Histograms of residuals and of the noise filter's responses, by magnitude.
#[derive(Debug)]
pub struct Magnitudes {
    pub residuals: Vec<u32>,
    pub responses: Vec<u32>,
}

impl Magnitudes {
    pub fn new(arena: &Arena) -> Result<Self> {
        let residuals = arena.filled(RESIDUAL_MAX as usize + 1, 0)?;
        Ok(Self { residuals, responses: arena.filled(RESPONSE_MAX + 1, 0)? })
    }

    pub fn clear(&mut self) {
        self.residuals.fill(0);
        self.responses.fill(0);
    }

    /// Adds the counts of another part of the image.
    pub fn add(&mut self, other: &Self) {
        let pairs =
            [(&mut self.residuals, &other.residuals), (&mut self.responses, &other.responses)];
        for (mine, others) in pairs {
            mine.iter_mut().zip(others).for_each(|(sum, &other)| *sum += other);
        }
    }

    #[inline(always)]
    pub fn count(&mut self, residuals: &[i16]) {
        for &residual in residuals {
            self.residuals[i32::from(residual).abs().min(RESIDUAL_MAX) as usize] += 1;
        }
    }
}

fn judge_scratch(width: usize) -> usize {
    3 * (width + 2 * REACH)
}

/// Columns to either side of a window.
const REACH: usize = 2;

struct JudgeRow<'a> {
    residuals: &'a [i16],
    size: (usize, usize),
    y: usize,
    /// Thresholds above which residuals are more than noise.
    limits: Limits,
    /// [`judge_scratch`] numbers.
    scratch: &'a mut [i32],
    /// Weights of the image itself, one per pixel.
    weights: &'a mut [i32],
    /// 1 for moving pixels, else 0.
    moving: &'a mut [u8],
}

impl SimdKernel for JudgeRow<'_> {
    #[inline(always)]
    unsafe fn run<V: Vector>(self) {
        let (width, height) = self.size;
        let row = |y: usize| &self.residuals[y * width..][..width];
        let padded = width + 2 * REACH;
        let (sums, rest) = self.scratch[..judge_scratch(width)].split_at_mut(padded);
        let (wide_sums, squares) = rest.split_at_mut(padded);
        sums.fill(0);
        wide_sums.fill(0);
        squares.fill(0);
        for y in self.y.saturating_sub(REACH)..(self.y + REACH + 1).min(height) {
            if y.abs_diff(self.y) <= 1 {
                for (sum, &e) in sums[REACH..].iter_mut().zip(row(y)) {
                    *sum += i32::from(e);
                }
            }
            let columns = wide_sums[REACH..].iter_mut().zip(&mut squares[REACH..]);
            for ((sum, square), &e) in columns.zip(row(y)) {
                *sum += i32::from(e);
                *square += squared(i32::from(e));
            }
        }
        let limits = self.limits;
        let [a, b, c] = [1, 2, 3].map(|from| &sums[from..][..width]);
        let t: [&[i32]; 5] = std::array::from_fn(|from| &wide_sums[from..][..width]);
        let q: [&[i32]; 5] = std::array::from_fn(|from| &squares[from..][..width]);
        let (weights, moving) = (&mut self.weights[..width], &mut self.moving[..width]);
        for x in 0..width {
            let wide_sum = t[0][x] + t[1][x] + t[2][x] + t[3][x] + t[4][x];
            let square = q[0][x] + q[1][x] + q[2][x] + q[3][x] + q[4][x];
            let (weight, moves) = limits.assess(a[x] + b[x] + c[x], wide_sum, square);
            weights[x] = weight;
            moving[x] = u8::from(moves);
        }
    }
}
