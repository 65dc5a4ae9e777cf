//! The paths to the right and to the left, for a few rows at once.
//!
//! A pixel waits for the minimum over the candidates of the pixel before; with several rows
//! interleaved the machine has other work meanwhile. What is kept is the delta over the cost
//! ([`path_delta`]): both paths together in one byte where P2 allows it, else a byte each.

use super::cost::{Cost, PixelCost, RowCost};
use super::geometry::Geometry;
use super::path::path_delta;
use super::penalties::Penalties;
use super::simd::{Kernel, Lanes};

/// `ROWS` rows from `y` on; at most `MAX` vectors a pixel, exactly `MAX` where `EXACT`.
pub struct Horizontal<'a, C, const MAX: usize, const EXACT: bool, const ROWS: usize> {
    /// How the picture is cut up.
    pub geometry: &'a Geometry,
    /// The matching cost.
    pub cost: C,
    /// P1.
    pub p1: u8,
    /// P2 between neighbouring pixels.
    pub penalties: Penalties,
    /// First row.
    pub y: usize,
    /// The deltas of both paths, [row][x][planes][depth].
    pub path_deltas: *mut u8,
}

impl<C: Cost, const MAX: usize, const EXACT: bool, const ROWS: usize> Kernel
    for Horizontal<'_, C, MAX, EXACT, ROWS>
{
    #[inline(always)]
    unsafe fn run<V: Lanes>(self) {
        // SAFETY: the caller owns `ROWS` rows of `path_deltas`, and the rows lie in the picture; every
        // x below stays in the row and every chunk below `chunks`.
        unsafe {
            self.walk::<V, false>();
            self.walk::<V, true>();
        }
    }
}

impl<C: Cost, const MAX: usize, const EXACT: bool, const ROWS: usize>
    Horizontal<'_, C, MAX, EXACT, ROWS>
{
    /// One of the two paths; the one to the left adds to what the one to the right has left.
    #[inline(always)]
    unsafe fn walk<V: Lanes, const LEFTWARDS: bool>(&self) {
        let Geometry { width, chunks, depth, planes, .. } = *self.geometry;
        let chunks = if EXACT { MAX } else { chunks };
        let pixel = planes * depth;
        // SAFETY: see `run`.
        unsafe {
            let (zero, ones, p1) = (V::splat(0), V::splat(255), V::splat(self.p1));
            let mut costs = [self.cost.row::<V>(self.y); ROWS];
            let mut penalties = [std::ptr::null::<u8>(); ROWS];
            for r in 0..ROWS {
                costs[r] = self.cost.row::<V>(self.y + r);
                penalties[r] = self.penalties.across(self.y + r).add(usize::from(LEFTWARDS));
            }
            let mut before = [[zero; MAX]; ROWS];
            for step in 0..width {
                let x = if LEFTWARDS { width - 1 - step } else { step };
                for r in 0..ROWS {
                    let p2 = V::splat(*penalties[r].add(x));
                    let mut least = before[r][0];
                    for &vector in &before[r][1..chunks] {
                        least = least.min(vector);
                    }
                    let least = least.least();
                    let to = self.path_deltas.add((r * width + x) * pixel);
                    let cost = costs[r].at(x, chunks);
                    let first = before[r][0];
                    let mut below = before[r][chunks - 1].shift_from_below(ones);
                    for c in 0..chunks {
                        let here = before[r][c];
                        let above = if c + 1 < chunks {
                            before[r][c + 1]
                        } else {
                            first.shift_from_above(ones)
                        };
                        let e = path_delta(below, here, above, least, p1, p2);
                        before[r][c] = e.adds(cost.load(c));
                        below = here;
                        let to = to.add(c * V::N);
                        if !LEFTWARDS {
                            e.store(to);
                        } else if planes == 1 {
                            e.adds(V::load(to)).store(to);
                        } else {
                            e.store(to.add(depth));
                        }
                    }
                }
            }
        }
    }
}
