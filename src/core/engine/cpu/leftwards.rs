//! The leftward path, for a few rows at once; the rightward one is in the last sweep (`vertical.rs`).
//!
//! Each pixel depends on the minimum over the candidates of the previous pixel; interleaving several rows
//! hides that latency. The delta over the cost is stored ([`path_delta`]), one byte per candidate.

use super::cost::{FrameCost, PixelCost, RowCost};
use super::geometry::Geometry;
use super::path::{extend, least, path_delta};
use super::shape::ShapedKernel;
use super::simd::Vector;
use super::steps::Steps;
use super::windows::{View, enter_tile};
use crate::matching::windows::TILE;

/// Follows the paths of `ROWS` rows, starting at `y`.
pub struct Leftwards<'a, C, const ROWS: usize> {
    pub geometry: &'a Geometry,
    pub cost: C,
    pub p1: u8,
    /// P2 between neighbouring pixels.
    pub penalties: Steps,
    /// Slants of the expected surface between them, if paths follow one.
    pub slants: Option<Steps>,
    /// The candidates of each pixel, if not the whole range.
    pub windows: Option<View<'a>>,
    pub y: usize,
    /// The deltas, [row][x][depth].
    pub path_deltas: *mut u8,
}

impl<C: FrameCost, const ROWS: usize> ShapedKernel for Leftwards<'_, C, ROWS> {
    #[inline(always)]
    unsafe fn run<V: Vector, const MAX: usize, const EXACT: bool>(self) {
        let Geometry { width, chunks, depth, .. } = *self.geometry;
        let chunks = if EXACT { MAX } else { chunks };
        // SAFETY: the caller owns `ROWS` rows of `path_deltas`, and the rows lie in the image;
        // every x below stays in the row and every chunk below `chunks`.
        unsafe {
            let (zero, p1) = (V::splat(0), V::splat(self.p1));
            let mut costs = [self.cost.row::<V>(self.y); ROWS];
            let mut penalties = [std::ptr::null::<u8>(); ROWS];
            for r in 0..ROWS {
                costs[r] = self.cost.row::<V>(self.y + r);
                penalties[r] = self.penalties.across(self.y + r).add(1);
            }
            let slants = self.slants.map(|slants| {
                std::array::from_fn::<_, ROWS, _>(|r| slants.across(self.y + r).add(1))
            });
            let mut before = [[zero; MAX]; ROWS];
            let mut gaps = [zero; 2];
            for x in (0..width).rev() {
                // The rows are those of one band, so they are in the same tiles.
                let mut entry = None;
                if C::WINDOWED
                    && let Some(windows) = self.windows
                    && (x % TILE == TILE - 1 || x + 1 == width)
                {
                    gaps = windows.gaps(&windows.row(self.y)[x / TILE]);
                    let after = if x + 1 < width { x + 1 } else { x };
                    entry = windows.entry((x, self.y), (after as isize, self.y as isize));
                }
                for r in 0..ROWS {
                    let p2 = V::splat(*penalties[r].add(x));
                    if let Some(blocks) = entry {
                        enter_tile(&mut before[r], chunks, blocks);
                    }
                    let least = least(&before[r][..chunks]);
                    // The bytes are those of rightward steps.
                    let slant = slants.map_or(0, |slants| -(*slants[r].add(x) as i8));
                    if slant != 0 {
                        extend(&mut before[r][..chunks], slant, gaps);
                    }
                    let to = self.path_deltas.add((r * width + x) * depth);
                    let cost = costs[r].at(x, chunks);
                    let first = before[r][0];
                    let mut below = before[r][chunks - 1].shift_up().or(gaps[0]);
                    for c in 0..chunks {
                        let here = before[r][c];
                        let above = match c + 1 < chunks {
                            true => before[r][c + 1],
                            false => first.shift_down().or(gaps[1]),
                        };
                        let e = path_delta(below, here, above, least, p1, p2);
                        e.store(to.add(c * V::N));
                        before[r][c] = e.adds(cost.load(c));
                        below = here;
                    }
                }
            }
        }
    }
}
