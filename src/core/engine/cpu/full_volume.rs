//! Matching with all costs and sums in memory (3 bytes per pixel and candidate), for 16 paths: knight's moves
//! reach two rows up and down, so that bands cannot follow them.

use super::band_costs::FillBand;
use super::cost_source::CostSource;
use super::frame::Frame;
use super::geometry::{Geometry, TILE};
use super::memory::Plane;
use super::path::{extend, least, path_delta};
use super::shape::{Shape, ShapedKernel};
use super::simd::Vector;
use super::stage_timer::StageTimer;
use super::steps::slant_of;
use super::support::PixelSupport;
use super::team::Team;
use super::winner::WinnerTakesAll;
use crate::frame::Image;

impl Frame<'_> {
    /// Matches with all costs and sums in memory, one direction of paths after the other.
    pub(super) fn match_full_volume<S: Shape, F: CostSource>(
        &self,
        team: &mut Team,
        timer: &mut StageTimer,
        source: &F,
    ) {
        let geometry = self.geometry;
        let row_cells = geometry.width * geometry.depth;
        let costs = Plane(self.shared.whole_costs.ptr());
        let sums = Plane(self.shared.whole_sums.ptr());
        team.share(geometry.bands, &|thread, bands| {
            let scratch = &mut *self.scratch(thread);
            for (first, rows) in bands.map(|band| geometry.band(band)) {
                let cost = source.compute_costs::<S>(scratch, (first, rows), false);
                // SAFETY: the band's rows are this thread's; the simd was found on this machine.
                unsafe {
                    sums.at(first * row_cells).write_bytes(0, rows * row_cells);
                    let (rows, band_costs) = ((first, rows), costs.at(first * row_cells));
                    S::run(FillBand { geometry, cost, rows, band_costs });
                }
            }
        });
        timer.end("cost volume");
        // Neighbouring paths go to different threads, so that long and short ones are distributed evenly.
        let count = team.pieces();
        for &step in self.params.paths.steps() {
            team.share(count, &|_, shares| {
                for share in shares {
                    // SAFETY: paths of one direction have no pixel in common, and one direction is
                    // over before the next begins; the simd was found on this machine.
                    unsafe {
                        S::run(Direction {
                            geometry,
                            costs: costs.at(0),
                            sums: sums.at(0),
                            guide: self.guide,
                            surface: self.support.filter(|_| geometry.follows_surface),
                            p1: self.params.p1,
                            p2: self.p2,
                            step,
                            share: (share, count),
                        });
                    }
                }
            });
        }
        timer.end("aggregation");
        team.rows(geometry.height, |thread, rows| {
            let scratch = &mut *self.scratch(thread);
            for y in rows {
                // SAFETY: the row lies in the image.
                self.select_disparities::<S>(scratch, y, unsafe { sums.at(y * row_cells) }, true);
            }
        });
        timer.end("winner");
    }
}

/// One share of the paths of one direction: those with its number modulo the number of shares.
pub struct Direction<'a> {
    pub geometry: &'a Geometry,
    /// Costs, [pixel][depth].
    pub costs: *const u8,
    /// Sums, [pixel][depth].
    pub sums: *mut i16,
    /// The image that steers P2.
    pub guide: &'a Image,
    /// Support with the expected candidates, if paths follow their surface.
    pub surface: Option<&'a [PixelSupport]>,
    pub p1: u8,
    /// P2 by brightness step.
    pub p2: &'a [u8; 256],
    /// The step (dx, dy) from one pixel of a path to the next.
    pub step: (i32, i32),
    pub share: (usize, usize),
}

impl ShapedKernel for Direction<'_> {
    #[inline(always)]
    unsafe fn run<V: Vector, const MAX: usize, const EXACT: bool>(self) {
        let Geometry { width, height, .. } = *self.geometry;
        let (dx, dy) = self.step;
        let (across, down) = (dx.unsigned_abs() as usize, dy.unsigned_abs() as usize);
        // A path begins if the previous pixel is outside: in the first rows, below in the first columns.
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
            // SAFETY: the path stays in the image; no other thread follows paths with these pixels.
            unsafe { self.follow::<V, MAX, EXACT>(x, y) };
        }
    }
}

impl Direction<'_> {
    #[inline(always)]
    unsafe fn follow<V: Vector, const MAX: usize, const EXACT: bool>(
        &self,
        mut x: usize,
        mut y: usize,
    ) {
        let Geometry { width, height, depth, .. } = *self.geometry;
        let chunks = if EXACT { MAX } else { self.geometry.chunks };
        // SAFETY: every pixel lies in the image, every chunk in the range.
        unsafe {
            let (zero, p1) = (V::splat(0), V::splat(self.p1));
            let mut before = [zero; MAX];
            let expected =
                |x: usize, y: usize| self.surface.map(|surface| surface[y * width + x].expected);
            let mut brightness = self.guide.row(y)[x];
            let mut expected_before = expected(x, y);
            loop {
                let here = self.guide.row(y)[x];
                let p2 = V::splat(self.p2[usize::from(here.abs_diff(brightness))]);
                brightness = here;
                let least = least(&before[..chunks]);
                let expected_here = expected(x, y);
                let slant = expected_before.zip(expected_here).map_or(0, |(a, b)| slant_of(a, b));
                expected_before = expected_here;
                if slant != 0 {
                    extend(&mut before[..chunks], slant, [zero; 2]);
                }
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

pub struct SelectRow<'a> {
    pub geometry: &'a Geometry,
    /// Sums of the row, [x][depth].
    pub sums: *const i16,
    /// Whether they are in the order of pairs instead of the order of bytes.
    pub in_pairs: bool,
    pub winner: &'a mut WinnerTakesAll,
}

impl ShapedKernel for SelectRow<'_> {
    #[inline(always)]
    unsafe fn run<V: Vector, const MAX: usize, const EXACT: bool>(self) {
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
                self.winner.select_disparities::<V, MAX, EXACT>(first, columns, None);
            }
        }
    }
}
