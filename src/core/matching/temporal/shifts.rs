//! The shift between two images, estimated by gradient equations.
//!
//! The textbook form, with gradients g down and h across of the reference A, another image B, and r as the
//! mean of a pixel and its four neighbours:
//!
//! ```text
//! p = sum g (B - r), q = sum h (B - r), u = sum h h, v = sum g h, w = sum g g,
//! dx = (q w - p v) / (u w - v v), dy = (p u - q v) / (u w - v v)
//! ```
//!
//! This form is 0.05 px off on real images, and noise of A shrinks its result. Therefore both images are at
//! half the size and smoothed by 1 2 1 both ways, and the sums combine both images, whose noise is
//! independent:
//!
//! - q = sum (h B' - h' A') / 2 and p likewise. h and h' are the gradients of A and B; A' and B' are the
//!   images minus their means. A zero shift gives 0 at any exposure.
//! - u = sum of the products of both images' steps to the next pixel across, w the same down, v = sum (h g' +
//!   g h') / 2. Noise adds nothing on average, and a factor of exposure cancels.
//! - The remainder of the Taylor series follows from the ratio of gradients over two pixels to gradients over
//!   one: with c = (1 - sum h h' / u) / 3, at most 0.08, the solution of the equations is divided by 1 - c +
//!   4 c min(dx dx, 1/2).
//!
//! Over 17 real images with known fractional shifts, the error is 0.007 px (root mean square; 0.014 on the
//! worst), with or without noise of 5 grey levels and a factor of exposure of 1.2 (docs/accuracy.md).
//!
//! No shift is found for one of two reasons. Either the reference has too little texture, such as a dark
//! room; averaging its noise is right all the same. Or it has enough texture, but the other image does not
//! show it at this place. That image is *lost*, because it would be averaged at a wrong position. To tell the
//! two apart, u, v and w of the reference with itself are compared with the contribution of noise and
//! rounding.
//!
//! All sums are integers. The quotients follow IEEE 754 double precision, operation by operation, so that
//! every engine gets the same result.

use std::ops::{AddAssign, Range};
use std::slice;

use bytemuck::{Pod, Zeroable};

use crate::matching::pyramid::SIDE_MIN;

/// Units of a shift per pixel.
pub const UNIT: i32 = 256;

/// Largest number of half-size levels: 1.5 px at the coarsest are 24 px of the image.
pub const LEVELS_MAX: usize = 4;

/// Largest plausible deviation from the initial whole-pixel shift, in pixels of the level.
const REST_MAX: f64 = 2.0;

/// Lower bound of the noise variance, in squared grey levels.
const VARIANCE_MIN: f64 = 0.25;

/// Variance of a step between neighbouring pixels of a smoothed half-size image, for noise of variance 1 in
/// the full-size image. White noise gives 3/128.
const STEP_NOISE: f64 = 0.03;

/// Smallest gradient variance, in squared grey levels, that allows an estimate. Rounding alone gives 0.3 on
/// flat areas, where a wrong shift is harmless.
const STEP_VARIANCE_MIN: f64 = 1.0;

/// Largest shift, in [`UNIT`]s: 127 px.
const SHIFT_MAX: i32 = 127 * UNIT;

/// A shift in pixels of its image: the point at x in the newest image is at x - shift in the other one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Shift {
    /// To the right and down, in [`UNIT`]s.
    pub by: [i32; 2],
    /// Whether the shift was found; otherwise `by` is the initial value of the search.
    pub known: bool,
    /// Whether the reference has enough texture, so that the other image must show another place.
    pub lost: bool,
}

impl Shift {
    /// No shift, and none estimated.
    pub const NONE: Shift = Shift { by: [0; 2], known: false, lost: false };

    /// The nearest whole pixels.
    pub fn whole(self) -> [i32; 2] {
        self.by.map(|by| (by + UNIT / 2) >> 8)
    }

    /// Fraction of a pixel, in [`UNIT`]s: -128 to 127.
    pub fn rest(self) -> [i32; 2] {
        let whole = self.whole();
        [0, 1].map(|axis| self.by[axis] - whole[axis] * UNIT)
    }

    /// In pixels of an image of twice the size.
    pub fn twice(self) -> Shift {
        Shift { by: self.by.map(|by| 2 * by), ..self }
    }

    /// In pixels of an image of half the size.
    pub fn halved(self) -> Shift {
        Shift { by: self.by.map(|by| by >> 1), ..self }
    }

    /// Sum of both shifts.
    pub fn further(self, other: Shift) -> Shift {
        let by = [0, 1].map(|axis| (self.by[axis] + other.by[axis]).clamp(-SHIFT_MAX, SHIFT_MAX));
        Shift { by, ..self }
    }
}

/// Number of levels for half-size images of this size.
pub fn levels((width, height): (usize, usize)) -> usize {
    let side = width.min(height);
    (1..LEVELS_MAX).take_while(|level| side >> level >= SIDE_MIN / 2).count() + 1
}

/// Rows or columns to sum over: without `margin` and one more at each side.
pub fn inner(len: usize, margin: usize) -> Range<usize> {
    let first = (1 + margin).min(len);
    first..len.saturating_sub(1 + margin).max(first)
}

/// Margin for images with these whole-pixel shifts.
pub fn margin(offsets: impl Iterator<Item = [i32; 2]>) -> usize {
    offsets.flatten().map(i32::unsigned_abs).max().unwrap_or(0) as usize
}

/// Sums over the reference alone, in the order of the kernels.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct OfReference {
    /// Number of pixels.
    pub count: i64,
    /// Their grey levels.
    pub grey: i64,
    /// Their doubled gradients, across and down.
    pub gradients: [i64; 2],
    /// Squares of the steps to the next pixel, across and down.
    pub steps: [i64; 2],
    /// 2 H G of doubled gradients.
    pub crossed: i64,
}

/// Number of sums of [`OfReference`].
pub const SUMS_OF_REFERENCE: usize = 7;

/// Sums over both images, in the order of the kernels.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct OfBoth {
    /// H B - H' A across and down, of doubled gradients.
    pub against: [i64; 2],
    /// Products of the steps to the next pixel, across and down.
    pub steps: [i64; 2],
    /// H G' + G H'.
    pub crossed: i64,
    /// H H' and G G'.
    pub gradients: [i64; 2],
    /// Grey levels of the other image.
    pub grey: i64,
    /// Doubled gradients of the other image, across and down.
    pub others: [i64; 2],
}

/// Number of sums of [`OfBoth`].
pub const SUMS: usize = 10;

impl AddAssign for OfReference {
    fn add_assign(&mut self, other: Self) {
        add(self, &other);
    }
}

impl AddAssign for OfBoth {
    fn add_assign(&mut self, other: Self) {
        add(self, &other);
    }
}

/// Adds to a struct of sums those of another, sum by sum.
fn add<T: Pod>(to: &mut T, other: &T) {
    let to: &mut [i64] = bytemuck::cast_slice_mut(slice::from_mut(to));
    let other: &[i64] = bytemuck::cast_slice(slice::from_ref(other));
    to.iter_mut().zip(other).for_each(|(to, other)| *to += other);
}

/// Adds the sums over the pixels that `counts` selects, without the outermost pixels and `margin` more at
/// each side. The other image is shifted by `offset` whole pixels, at most the margin.
pub fn add_sums(
    [reference, other]: [&[u8]; 2],
    (width, height): (usize, usize),
    (offset, margin): ([i32; 2], usize),
    counts: impl Fn(usize, usize) -> bool,
    (of_reference, of_both): (&mut OfReference, &mut OfBoth),
) {
    for y in inner(height, margin) {
        let row = (y as i64 - i64::from(offset[1])) as usize;
        for x in inner(width, margin).filter(|&x| counts(x, y)) {
            let column = (x as i64 - i64::from(offset[0])) as usize;
            let (a, [ha, ga], [xa, ya]) = around(reference, width, x, y);
            let (b, [hb, gb], [xb, yb]) = around(other, width, column, row);
            *of_reference += OfReference {
                count: 1,
                grey: a,
                gradients: [ha, ga],
                steps: [xa * xa, ya * ya],
                crossed: 2 * ha * ga,
            };
            *of_both += OfBoth {
                against: [ha * b - hb * a, ga * b - gb * a],
                steps: [xa * xb, ya * yb],
                crossed: ha * gb + ga * hb,
                gradients: [ha * hb, ga * gb],
                grey: b,
                others: [hb, gb],
            };
        }
    }
}

/// A pixel inside an image, its doubled gradients, and the steps to the next, across and down.
fn around(pixels: &[u8], width: usize, x: usize, y: usize) -> (i64, [i64; 2], [i64; 2]) {
    let at = |x: usize, y: usize| i64::from(pixels[y * width + x]);
    let own = at(x, y);
    let [left, right] = [at(x - 1, y), at(x + 1, y)];
    let [up, down] = [at(x, y - 1), at(x, y + 1)];
    (own, [right - left, down - up], [right - own, down - own])
}

/// Reports whether both pixels may show one point, shifted by at most two pixels: they differ by at most
/// `tolerance` plus the smaller of both doubled gradients. Independently moving objects and their edges fail.
pub fn agree(
    [reference, other]: [&[u8]; 2],
    width: usize,
    (x, y): (usize, usize),
    offset: [i32; 2],
    tolerance: i32,
) -> bool {
    let (a, [ha, ga], _) = around(reference, width, x, y);
    let column = (x as i64 - i64::from(offset[0])) as usize;
    let row = (y as i64 - i64::from(offset[1])) as usize;
    let (b, [hb, gb], _) = around(other, width, column, row);
    let slope = (ha.abs() + ga.abs()).min(hb.abs() + gb.abs());
    (a - b).abs() <= i64::from(tolerance) + slope
}

/// Smaller eigenvalue of the equations' matrix: the gradient energy in the direction with the least texture.
fn eigenvalue([u, w]: [f64; 2], v: f64) -> f64 {
    let (difference, twice) = (u - w, 2.0 * v);
    let root = (difference * difference + twice * twice).sqrt();
    0.5 * (u + w - root)
}

/// Solves for the shift, with the other image shifted by the whole pixels of `begin`. `variance` is the noise
/// variance of a full-size image, in 1/256 squared grey levels; 0 if unknown, so that no image can be lost.
/// The error in the weakest direction is about sqrt(2 variance / e), with e the smaller eigenvalue of the
/// matrix; the shift is unknown if it exceeds 0.05 px.
pub fn shift(a: &OfReference, b: &OfBoth, begin: Shift, variance: u32) -> Shift {
    let mut unknown = Shift { known: false, lost: false, ..begin };
    if a.count == 0 {
        return unknown;
    }
    let count = a.count as f64;
    let noise = (f64::from(variance) / 256.0).max(VARIANCE_MIN);
    let least = noise * (2.0 * count.sqrt()).max(800.0);
    // The reference itself must have twice the texture that an estimate needs.
    let nothing = (STEP_NOISE * noise + STEP_VARIANCE_MIN) * count;
    let own = eigenvalue(a.steps.map(|sum| sum as f64 - nothing), 0.125 * a.crossed as f64);
    unknown.lost = variance > 0 && own >= 2.0 * least;

    let means = [a.grey as f64 / count, b.grey as f64 / count];
    // A quarter, because the gradients are doubled.
    let against = |axis: usize| {
        let of_means = means[1] * a.gradients[axis] as f64 - means[0] * b.others[axis] as f64;
        0.25 * (b.against[axis] as f64 - of_means)
    };
    let [q, p] = [against(0), against(1)];
    let [u, w] = b.steps.map(|sum| sum as f64);
    let v = 0.125 * b.crossed as f64;
    let determinant = u * w - v * v;
    if !(eigenvalue([u, w], v) >= least && u > 0.0 && w > 0.0 && determinant > 0.0) {
        return unknown;
    }
    let mut rest = [(q * w - p * v) / determinant, (p * u - q * v) / determinant];
    for (axis, step) in [u, w].into_iter().enumerate() {
        let weaker = 0.25 * b.gradients[axis] as f64 / step;
        let c = ((1.0 - weaker) / 3.0).clamp(0.0, 0.08);
        let square = (rest[axis] * rest[axis]).min(0.5);
        rest[axis] /= 1.0 - c + 4.0 * c * square;
    }
    if rest.iter().any(|rest| rest.abs() > REST_MAX) {
        return unknown;
    }
    let whole = begin.whole();
    let by = [0, 1].map(|axis| {
        let rounded = (rest[axis] * f64::from(UNIT) + 0.5).floor() as i32;
        (whole[axis] * UNIT + rounded).clamp(-SHIFT_MAX, SHIFT_MAX)
    });
    Shift { by, known: true, lost: false }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::Image;

    const SIZE: (usize, usize) = (90, 70);

    /// An image of waves, seen from `at`, with noise of about this standard deviation.
    fn picture(at: [f64; 2], contrast: f64, sigma: f64, seed: u64) -> Vec<u8> {
        let mut state = seed;
        let mut uniform = move || {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (state >> 33) as f64 / f64::from(1u32 << 31)
        };
        let pixel = |i: usize| {
            let (u, v) = ((i % SIZE.0) as f64 + at[0], (i / SIZE.0) as f64 + at[1]);
            let waves = 40.0 * (0.3 * u + 0.2 * v).sin() + 30.0 * (0.25 * u - 0.35 * v).sin();
            let gaussian: f64 = (0..12).map(|_| uniform()).sum::<f64>() - 6.0;
            (128.0 + contrast * waves + sigma * gaussian).round().clamp(0.0, 255.0) as u8
        };
        (0..SIZE.0 * SIZE.1).map(pixel).collect()
    }

    fn found(reference: &[u8], other: &[u8], begin: Shift, variance: u32) -> Shift {
        let (mut of_reference, mut of_both) = Default::default();
        let moved = (begin.whole(), margin([begin.whole()].into_iter()));
        add_sums([reference, other], SIZE, moved, |_, _| true, (&mut of_reference, &mut of_both));
        shift(&of_reference, &of_both, begin, variance)
    }

    #[test]
    fn known_shifts_are_found_to_a_fiftieth_of_a_pixel_in_noise() {
        for sigma in [0.0, 3.0] {
            let reference = picture([0.0, 0.0], 1.0, sigma, 1);
            for by in [[0.25, -0.4], [0.0, 0.0], [-0.6, 0.6], [2.3, -1.7]] {
                // The point at x in the newest image is at x - shift in the other one.
                let other = picture(by, 1.0, sigma, 2);
                let by_whole = by.map(|by| (by.round() * 256.0) as i32);
                let begin = Shift { by: by_whole, ..Shift::NONE };
                let found = found(&reference, &other, begin, (256.0 * sigma * sigma) as u32);
                assert!(found.known, "{by:?}");
                for axis in 0..2 {
                    let error = f64::from(found.by[axis]) / 256.0 - by[axis];
                    assert!(error.abs() < 0.02 + 0.01 * sigma, "{by:?} {sigma}: {found:?}");
                }
            }
        }
    }

    #[test]
    fn exposure_does_not_matter() {
        let reference = picture([0.0, 0.0], 1.0, 0.0, 1);
        let other: Vec<u8> =
            picture([0.3, -0.2], 1.0, 0.0, 1).iter().map(|&grey| grey / 2 + 30).collect();
        let found = found(&reference, &other, Shift::NONE, 0);
        assert!(found.known);
        let expected = [0.3 * 256.0, -0.2 * 256.0];
        (0..2).for_each(|axis| assert!((f64::from(found.by[axis]) - expected[axis]).abs() < 8.0));
    }

    #[test]
    fn pictures_that_say_nothing_are_unknown() {
        let begin = Shift { by: [300, -20], known: true, lost: true };
        let unknown = Shift { known: false, lost: false, ..begin };
        let flat = vec![77; SIZE.0 * SIZE.1];
        assert_eq!(found(&flat, &flat, begin, 0), unknown);
        let noise = picture([0.0, 0.0], 0.0, 5.0, 1);
        let other = picture([0.0, 0.0], 0.0, 5.0, 2);
        assert!(!found(&noise, &other, begin, 25 * 256).known);
        let stripes: Vec<u8> = (0..SIZE.0 * SIZE.1)
            .map(|i| if (i % SIZE.0 / 3).is_multiple_of(2) { 40 } else { 200 })
            .collect();
        assert_eq!(found(&stripes, &stripes, begin, 0), unknown);
        // Shifted too far for any overlap.
        let far = Shift { by: [90 * 256, 0], ..Shift::NONE };
        let reference = picture([0.0, 0.0], 1.0, 0.0, 1);
        assert_eq!(found(&reference, &reference, far, 256), far);
    }

    /// A half-size image of a random texture, seen from `at` pixels further right; flat if `contrast` is 0.
    fn halved(at: usize, contrast: f64, sigma: f64, seed: u64) -> Vec<u8> {
        let grain = |x: usize, y: usize| {
            let mixed = (x * 1000 + y + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            ((mixed ^ mixed >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 56) as f64 / 256.0 - 0.5
        };
        let mut state = seed;
        let mut uniform = move || {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (state >> 33) as f64 / f64::from(1u32 << 31)
        };
        let size = (2 * SIZE.0, 2 * SIZE.1);
        let pixel = |i: usize| {
            let (x, y) = (i % size.0, i / size.0);
            let gaussian: f64 = (0..12).map(|_| uniform()).sum::<f64>() - 6.0;
            let grey = 100.0 + contrast * grain((x + at) / 6, y / 6) + sigma * gaussian;
            grey.round().clamp(0.0, 255.0) as u8
        };
        let whole = Image::from_vec(size.0, size.1, (0..size.0 * size.1).map(pixel).collect());
        crate::matching::temporal::smaller(&whole).pixels().to_vec()
    }

    #[test]
    fn what_is_not_where_it_is_looked_for_is_lost_and_noise_is_not() {
        let lost = Shift { lost: true, ..Shift::NONE };
        for sigma in [0.4, 1.0, 5.0, 10.0] {
            let variance = (256.0 * sigma * sigma) as u32;
            let reference = halved(0, 100.0, sigma, 1);
            let still = found(&reference, &halved(0, 100.0, sigma, 2), Shift::NONE, variance);
            assert!(still.known && !still.lost, "{sigma}: {still:?}");
            let other = halved(40, 100.0, sigma, 2);
            assert_eq!(found(&reference, &other, Shift::NONE, variance), lost, "{sigma}");
            // Unknown noise: nothing is lost.
            assert_eq!(found(&reference, &other, Shift::NONE, 0), Shift::NONE, "{sigma}");
            let dark = [1, 2].map(|seed| halved(0, 0.0, sigma, seed));
            assert_eq!(found(&dark[0], &dark[1], Shift::NONE, variance), Shift::NONE, "{sigma}");
        }
    }

    #[test]
    fn whole_pixels_and_rests_make_up_the_shift() {
        for by in [-700, -129, -128, -1, 0, 127, 128, 1000] {
            let shift = Shift { by: [by, -by], ..Shift::NONE };
            let (whole, rest) = (shift.whole(), shift.rest());
            (0..2).for_each(|axis| assert_eq!(256 * whole[axis] + rest[axis], shift.by[axis]));
            assert!(rest.iter().all(|rest| (-128..128).contains(rest)), "{rest:?}");
        }
        assert_eq!((levels((320, 240)), levels((40, 33)), levels((10, 9))), (4, 2, 1));
    }
}
