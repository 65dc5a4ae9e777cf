//! Steps of a path between two neighbouring pixels: P2, and the slant of the expected surface
//! ([`crate::matching::prior::slant`]). For paths in bands, prepared once per pair for two to four uses.

use super::geometry::Geometry;
use super::simd::{SimdKernel, Vector};
use super::support::{PixelSupport, UNKNOWN};
use crate::frame::Image;
use crate::memory::product;

/// Bytes before the first row, for the column before it.
const MARGIN: usize = 64;

/// Steps (columns, rows) from the previous pixel; the last two are diagonal. Opposite paths share them.
const STEPS: [(isize, usize); 4] = [(1, 0), (0, 1), (1, 1), (-1, 1)];

fn steps(geometry: &Geometry) -> usize {
    if geometry.vertical == 1 { 2 } else { STEPS.len() }
}

/// Bytes of a row of steps: whole vectors, including one column after the last.
fn stride(geometry: &Geometry) -> usize {
    (geometry.width + 1).next_multiple_of(64)
}

/// Bytes of the steps of an image; 0 if no band follows paths.
pub fn len(geometry: &Geometry) -> u64 {
    // One more row, for the start of upward paths.
    let rows = product([geometry.height + 1, steps(geometry), stride(geometry)]);
    if geometry.banded { rows.saturating_add(MARGIN as u64) } else { 0 }
}

/// Scratch bytes of [`StepRows`].
pub fn scratch_len(geometry: &Geometry) -> usize {
    if geometry.banded { stride(geometry) } else { 0 }
}

/// A byte for every step of an image, [row][step][column]; arbitrary at the start of a path, where it has no
/// effect. A slant belongs to the step down or to the right; for opposite paths it has the other sign.
#[derive(Clone, Copy)]
pub struct Steps {
    first: *const u8,
    stride: usize,
    steps: usize,
}

// SAFETY: the pointers are only read, in later stages than the one that writes them.
unsafe impl Send for Steps {}
// SAFETY: as above.
unsafe impl Sync for Steps {}

impl Steps {
    /// Steps in a block of [`len`] bytes.
    pub fn of(geometry: &Geometry, block: *const u8) -> Self {
        let first = block.wrapping_add(MARGIN);
        Self { first, stride: stride(geometry), steps: steps(geometry) }
    }

    /// Those of row `y` between each pixel and the one to its left, and for the column after the last.
    pub fn across(self, y: usize) -> *const u8 {
        self.row(y, 0)
    }

    /// Those of row `y` by column, between each pixel and the previous one on a path with `across` columns per
    /// row, upwards or downwards.
    pub fn along(self, y: usize, across: isize, upward: bool) -> *const u8 {
        let number = |across| match across {
            0 => 1,
            1 => 2,
            _ => 3,
        };
        match upward {
            false => self.row(y, number(across)),
            true => self.row(y + 1, number(-across)).wrapping_offset(-across),
        }
    }

    fn row(self, y: usize, step: usize) -> *const u8 {
        self.first.wrapping_add((y * self.steps + step) * self.stride)
    }
}

pub struct StepRows<'a> {
    pub geometry: &'a Geometry,
    /// The image that steers P2.
    pub guide: &'a Image,
    /// P2 by brightness step.
    pub p2: &'a [u8; 256],
    /// First row, and the one behind the last.
    pub rows: (usize, usize),
    /// [`scratch_len`] bytes.
    pub scratch: &'a mut [u8],
    /// The block of penalties; the rows belong to the caller.
    pub penalties: *mut u8,
    /// The block of slants, with the support that has the expected candidates.
    pub slants: Option<(*mut u8, &'a [PixelSupport])>,
}

impl SimdKernel for StepRows<'_> {
    #[inline(always)]
    unsafe fn run<V: Vector>(self) {
        let Geometry { width, .. } = *self.geometry;
        let (stride, steps) = (stride(self.geometry), steps(self.geometry));
        for y in self.rows.0..self.rows.1 {
            let here = self.guide.row(y);
            for (number, &(across, down)) in STEPS[..steps].iter().enumerate() {
                // Paths begin in the first row.
                let above = y.saturating_sub(down);
                let (from, to) = match across {
                    1 => (0..width - 1, 1..width),
                    0 => (0..width, 0..width),
                    _ => (1..width, 0..width - 1),
                };
                let row = (y * steps + number) * stride;
                if let Some((slants, support)) = self.slants {
                    let before = &support[above * width..][from.clone()];
                    let here = &support[y * width..][to.clone()];
                    // SAFETY: the row is the caller's, and as long as the penalties'.
                    let slants = unsafe {
                        let first = slants.add(MARGIN + row + to.start);
                        std::slice::from_raw_parts_mut(first, to.len())
                    };
                    for (slant, (before, here)) in slants.iter_mut().zip(before.iter().zip(here)) {
                        *slant = slant_of(before.expected, here.expected) as u8;
                    }
                }
                let before = &self.guide.row(above)[from];
                let steps_here = self.scratch[to.clone()].iter_mut();
                for (step, (&a, &b)) in steps_here.zip(here[to].iter().zip(before)) {
                    *step = a.abs_diff(b);
                }
                for x in (0..width).step_by(V::N) {
                    // SAFETY: rows are whole vectors; the block has room for them, and the table 256 bytes.
                    unsafe {
                        let at = MARGIN + row + x;
                        let penalties = V::load(self.scratch[x..].as_ptr());
                        penalties.look_up(self.p2.as_ptr()).store(self.penalties.add(at));
                    }
                }
            }
        }
    }
}

/// The slant between two expected candidates, either of which may be [`UNKNOWN`].
#[inline(always)]
pub fn slant_of(before: i16, here: i16) -> i8 {
    const { assert!(UNKNOWN == i16::MIN, "more than a candidate from all others") };
    let step = before.wrapping_sub(here);
    if step.wrapping_abs() == 1 { step as i8 } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::cpu::simd::SimdChoice;
    use crate::frame::DisparityRange;
    use crate::matching::{Cost, P2Mode, Params, prior};

    #[test]
    fn each_path_finds_the_penalty_and_the_slant_between_its_two_pixels() {
        let mode = P2Mode::Linear { min: 3, slope_16: 40 };
        let cost = Cost::Ad { truncation: 20, window: 1 };
        let params = Params::bare(DisparityRange { min: 0, count: 8 }, cost, (5, 90));
        let p2 = mode.table(5, 90);
        for (width, height) in [(1, 3), (2, 2), (63, 4), (64, 5), (70, 3)] {
            let guide = Image::from_fn(width, height, |x, y| (x * 37 + y * 101 + x * y) as u8);
            let geometry = Geometry::new(&params, (width, height), 16, false);
            for choice in SimdChoice::available() {
                let [mut block, mut slants] = [7, 9].map(|old| vec![old; len(&geometry) as usize]);
                let (rows, penalties) = ((0, height), block.as_mut_ptr());
                // Candidates around 0, some of which are unknown.
                let number = |x: usize, y: usize| [5, 6, UNKNOWN, 4, -1, 0][(x * 5 + y * 3) % 6];
                let support: Vec<_> = (0..width * height)
                    .map(|i| number(i % width, i / width))
                    .map(|expected| PixelSupport { expected, ..PixelSupport::default() })
                    .collect();
                let of = (slants.as_mut_ptr(), &support[..]);
                let slants = Some(of);
                let scratch = &mut vec![0; scratch_len(&geometry)];
                let (geometry, guide, p2) = (&geometry, &guide, &p2);
                // SAFETY: the block has the penalties' length; the simd was found on this machine.
                unsafe {
                    let rows = StepRows { geometry, guide, p2, rows, scratch, penalties, slants };
                    choice.resolve().unwrap().vectorize(rows);
                }
                let penalties = Steps::of(geometry, penalties);
                let slants = Steps::of(geometry, of.0);
                for (x, y) in (0..width * height).map(|i| (i % width, i / width)) {
                    let inside = |(x, y): (isize, isize)| {
                        let (x, y) = (usize::try_from(x).ok()?, usize::try_from(y).ok()?);
                        (x < width && y < height).then_some((x, y))
                    };
                    let expect = |dx: isize, dy: isize, found: [*const u8; 2]| {
                        let before = inside((x as isize - dx, y as isize - dy));
                        let Some((before_x, before_y)) = before else { return };
                        let step = guide.row(y)[x].abs_diff(guide.row(before_y)[before_x]);
                        let known = |number: i16| (number != UNKNOWN).then_some(number.into());
                        let [a, b] = [number(before_x, before_y), number(x, y)].map(known);
                        // SAFETY: the two pixels lie in the image.
                        let [penalty, slant] = found.map(|found| unsafe { *found.add(x) });
                        assert_eq!(penalty, p2[usize::from(step)], "{choice:?} {x} {y} {dx} {dy}");
                        let sign = if dy < 0 || (dy == 0 && dx < 0) { -1 } else { 1 };
                        let slant = sign * slant as i8;
                        assert_eq!(i32::from(slant), prior::slant(a, b), "{x} {y} {dx} {dy}");
                    };
                    let both = [penalties, slants];
                    expect(1, 0, both.map(|of| of.across(y)));
                    expect(-1, 0, both.map(|of| of.across(y).wrapping_add(1)));
                    for across in [0, 1, -1] {
                        expect(across, 1, both.map(|of| of.along(y, across, false)));
                        expect(across, -1, both.map(|of| of.along(y, across, true)));
                    }
                }
            }
        }
    }
}
