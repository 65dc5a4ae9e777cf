//! Paths along knight's moves, and winners from sums that are kept: 16 paths reach two rows up and down, which
//! no band follows. So the costs and the sums of the whole picture are kept (3 bytes a pixel and candidate), and
//! one direction after the other is added to the sums.

use super::geometry::{Geometry, TILE};
use super::path::path_delta;
use super::simd::{Kernel, Lanes};
use super::winner::WinnerTakesAll;
use crate::frame::Image;

/// Adds the paths of one direction to the sums: a share of them, those whose number divided by the number of shares leaves
/// the share's.
pub struct Direction<'a, const MAX: usize, const EXACT: bool> {
    /// How the picture is cut up.
    pub geometry: &'a Geometry,
    /// Costs, [pixel][depth].
    pub costs: *const u8,
    /// Sums, [pixel][depth].
    pub sums: *mut i16,
    /// The picture that steers P2.
    pub guide: &'a Image,
    /// P1.
    pub p1: u8,
    /// P2 by step of brightness.
    pub p2: &'a [u8; 256],
    /// The step (dx, dy) from one pixel of a path to the next.
    pub step: (i32, i32),
    /// Number of the share, and of all shares.
    pub share: (usize, usize),
}

impl<const MAX: usize, const EXACT: bool> Kernel for Direction<'_, MAX, EXACT> {
    #[inline(always)]
    unsafe fn run<V: Lanes>(self) {
        let Geometry { width, height, .. } = *self.geometry;
        let (dx, dy) = self.step;
        let (across, down) = (dx.unsigned_abs() as usize, dy.unsigned_abs() as usize);
        // Where the pixel before lies outside, a path begins: in the first rows in sight, and below them in the
        // first columns.
        let rows = down.min(height);
        let columns = across.min(width);
        let starts = rows * width + columns * (height - rows);
        for start in (self.share.0..starts).step_by(self.share.1) {
            let (x, y) = match start.checked_sub(rows * width) {
                None => (start % width, start / width),
                Some(beside) => (beside % columns, rows + beside / columns),
            };
            let x = if dx < 0 { width - 1 - x } else { x };
            let y = if dy < 0 { height - 1 - y } else { y };
            // SAFETY: the path stays in the picture; no other thread follows paths with these pixels.
            unsafe { self.follow::<V>(x, y) };
        }
    }
}

impl<const MAX: usize, const EXACT: bool> Direction<'_, MAX, EXACT> {
    /// The path that begins at (x, y).
    #[inline(always)]
    unsafe fn follow<V: Lanes>(&self, mut x: usize, mut y: usize) {
        let Geometry { width, height, depth, .. } = *self.geometry;
        let chunks = if EXACT { MAX } else { self.geometry.chunks };
        // SAFETY: every pixel lies in the picture, every chunk in the range.
        unsafe {
            let (zero, p1) = (V::splat(0), V::splat(self.p1));
            let mut before = [zero; MAX];
            let mut brightness = self.guide.row(y)[x];
            loop {
                let here = self.guide.row(y)[x];
                let p2 = V::splat(self.p2[usize::from(here.abs_diff(brightness))]);
                brightness = here;
                let mut least = before[0];
                for &vector in &before[1..chunks] {
                    least = least.min(vector);
                }
                let least = least.least();
                let pixel = (y * width + x) * depth;
                let first = before[0];
                let mut below = before[chunks - 1].shift_up();
                for c in 0..chunks {
                    let here = before[c];
                    let above = if c + 1 < chunks { before[c + 1] } else { first.shift_down() };
                    let delta = path_delta(below, here, above, least, p1, p2);
                    let path = delta.adds(V::load(self.costs.add(pixel + c * V::N)));
                    before[c] = path;
                    below = here;
                    let to = self.sums.add(pixel + c * V::N);
                    let [first, second] = path.widen();
                    V::store_wide(V::add_wide(V::load_wide(to), first), to);
                    let to = to.add(V::N / 2);
                    V::store_wide(V::add_wide(V::load_wide(to), second), to);
                }
                let next = (
                    x.checked_add_signed(self.step.0 as isize).filter(|x| *x < width),
                    y.checked_add_signed(self.step.1 as isize).filter(|y| *y < height),
                );
                let (Some(next_x), Some(next_y)) = next else { return };
                (x, y) = (next_x, next_y);
            }
        }
    }
}

/// The winners of a row, from its sums; at most `MAX` vectors a pixel, exactly `MAX` where `EXACT`.
pub struct PickRow<'a, const MAX: usize, const EXACT: bool> {
    /// How the picture is cut up.
    pub geometry: &'a Geometry,
    /// Sums of the row, [x][depth].
    pub sums: *const i16,
    /// Whether they are in pairs, and not in the order of the bytes.
    pub in_pairs: bool,
    /// Picks the winners; the row is its first.
    pub winner: &'a mut WinnerTakesAll,
}

impl<const MAX: usize, const EXACT: bool> Kernel for PickRow<'_, MAX, EXACT> {
    #[inline(always)]
    unsafe fn run<V: Lanes>(self) {
        let Geometry { width, depth, .. } = *self.geometry;
        let chunks = if EXACT { MAX } else { self.geometry.chunks };
        self.winner.begin_row(0);
        let piece = self.winner.piece();
        for first in (0..width).step_by(TILE) {
            let columns = TILE.min(width - first);
            // SAFETY: the pixels lie in the row, every chunk in the range.
            unsafe {
                for i in 0..columns {
                    for c in 0..chunks {
                        let sums = self.sums.add((first + i) * depth + c * V::N);
                        let sums = [V::load_wide(sums), V::load_wide(sums.add(V::N / 2))];
                        let sums = if self.in_pairs { sums } else { V::in_pair(sums) };
                        piece.put::<V>(i, c, sums);
                    }
                }
                self.winner.choose::<V, MAX, EXACT>(first, columns);
            }
        }
    }
}
