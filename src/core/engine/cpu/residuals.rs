//! Residuals of an image, row by row: their magnitudes, and the pixels with more than noise
//! ([`crate::matching::residuals`]).

use super::memory::Arena;
use super::simd::{SimdKernel, Vector};
use crate::matching::residuals::{Limits, RESIDUAL_MAX, squared};
use crate::matching::texture::RESPONSE_MAX;
use crate::memory::Refused;

/// Histograms of residuals and of the noise filter's responses, by magnitude.
#[derive(Debug)]
pub struct Magnitudes {
    /// Of residuals.
    pub residuals: Vec<u32>,
    /// Of responses.
    pub responses: Vec<u32>,
}

impl Magnitudes {
    /// Empty histograms.
    pub fn new(arena: &Arena) -> Result<Self, Refused> {
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

/// Scratch numbers of [`JudgeRow`] for rows of this width.
pub fn judge_scratch(width: usize) -> usize {
    3 * (width + 2 * REACH)
}

/// Columns to either side of a window.
const REACH: usize = 2;

/// Judges the residuals of row `y`.
pub struct JudgeRow<'a> {
    /// Residuals of the image, row by row.
    pub residuals: &'a [i16],
    /// Width and height of the image.
    pub size: (usize, usize),
    pub y: usize,
    /// Thresholds above which residuals are more than noise.
    pub limits: Limits,
    /// [`judge_scratch`] numbers.
    pub scratch: &'a mut [i32],
    /// Weights of the image itself, one per pixel.
    pub weights: &'a mut [i32],
    /// 1 for moving pixels, else 0.
    pub moving: &'a mut [u8],
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
