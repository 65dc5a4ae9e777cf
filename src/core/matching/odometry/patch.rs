//! Patches of an image that are found again with sub-pixel accuracy in another one: inverse compositional least squares
//! (Baker and Matthews, Lucas-Kanade 20 years on, IJCV 2004, section 3.2), independent of gain and offset because both
//! are projected out of the slopes.

use crate::frame::Plane;

/// Pixels along a patch.
const SIDE: usize = 12;

const COUNT: usize = SIDE * SIDE;

/// The same with the pixels around a patch.
const WIDE: usize = SIDE + 2;

/// Pixels from a patch's first column to the place it stands for.
const CENTRE: usize = SIDE / 2;

/// Most steps.
const STEPS: usize = 10;

/// Steps below this length in pixels end the search.
const STEP_MIN: f32 = 0.01;

/// Length in pixels of the last step of a search that has not ended.
const STEP_MAX: f32 = 0.5;

/// Least correlation of a patch that is found.
const CORRELATION_MIN: f32 = 0.8;

/// Least share of the contrast that remains.
const GAIN_MIN: f32 = 0.1;

/// Changes of shape below this size are left out: they move no pixel of a patch by more than a tenth of a pixel.
const CHANGE_MIN: f32 = 0.01;

/// Units of a pixel in fixed-point places.
const UNIT: f32 = 65536.0;

/// Affine map of places around a patch's centre, row by row.
pub type Affine = [[f32; 2]; 2];

/// Grey levels of an image.
pub type Grey<'a> = Plane<&'a [u8]>;

/// Grey levels without their mean, and what of their slopes gain and offset do not explain.
#[derive(Clone, Debug)]
pub struct Patch {
    values: [f32; COUNT],
    /// Right and down.
    slopes: [[f32; COUNT]; 2],
    /// Sum of the squares of the values.
    energy: f32,
    /// Sums of the products of the slopes: right, mixed, down.
    products: [f32; 3],
}

/// A patch found again.
#[derive(Clone, Copy, Debug)]
pub struct Found {
    pub at: [f32; 2],
    /// Covariance of the place: right, mixed, down.
    pub covariance: [f32; 3],
}

impl Patch {
    /// Returns the patch around a place as another image shows it: a pixel at (x, y) from its centre there is at
    /// `shape` times (x, y) here. `None` at the border or without texture.
    pub fn of(image: &Grey, at: [f32; 2], shape: Affine) -> Option<Self> {
        let mut around = [0.0; WIDE * WIDE];
        read_shaped(image, at, shape, &mut around)?;
        let mut patch = Self {
            values: [0.0; COUNT],
            slopes: [[0.0; COUNT]; 2],
            energy: 0.0,
            products: [0.0; 3],
        };
        for y in 0..SIDE {
            let row = |y: usize| &around[y * WIDE..][..WIDE];
            let (above, middle, below) = (row(y), row(y + 1), row(y + 2));
            for x in 0..SIDE {
                let at = y * SIDE + x;
                patch.values[at] = middle[x + 1];
                patch.slopes[0][at] = (middle[x + 2] - middle[x]) / 2.0;
                patch.slopes[1][at] = (below[x + 1] - above[x + 1]) / 2.0;
            }
        }
        centre(&mut patch.values);
        patch.energy = product(&patch.values, &patch.values);
        let has_texture = patch.energy > COUNT as f32;
        if !has_texture {
            return None;
        }
        for slopes in &mut patch.slopes {
            centre(slopes);
            let share = product(slopes, &patch.values) / patch.energy;
            slopes.iter_mut().zip(&patch.values).for_each(|(slope, value)| *slope -= share * value);
        }
        let [right, down] = &patch.slopes;
        patch.products = [product(right, right), product(right, down), product(down, down)];
        Some(patch)
    }

    /// Looks for the patch in an image near a start; `None` if it is not found within `reach` pixels.
    pub fn find(&self, image: &Grey, start: [f32; 2], reach: f32) -> Option<Found> {
        let [a, b, c] = self.products;
        let determinant = a * c - b * b;
        // The smaller eigenvalue is about the determinant over the trace.
        let is_corner = determinant > 0.5 * COUNT as f32 * (a + c);
        if !is_corner {
            return None;
        }
        let inverse = [c / determinant, -b / determinant, a / determinant];
        let step = |seen: &[f32; COUNT], gain: f32| {
            let sums = [0, 1].map(|i| product(seen, &self.slopes[i]) / gain);
            let [a, b, c] = inverse;
            [-a * sums[0] - b * sums[1], -b * sums[0] - c * sums[1]]
        };
        let (at, variance) = self.search(image, start, reach, step)?;
        Some(Found { at, covariance: inverse.map(|value| value * variance) })
    }

    /// Looks for the patch in the same rows of an image. Returns its column and the variance of that.
    pub fn find_in_row(&self, image: &Grey, start: [f32; 2], reach: f32) -> Option<[f32; 2]> {
        let square = self.products[0];
        let has_texture = square > COUNT as f32;
        if !has_texture {
            return None;
        }
        let step = |seen: &[f32; COUNT], gain: f32| {
            [-product(seen, &self.slopes[0]) / (gain * square), 0.0]
        };
        let (at, variance) = self.search(image, start, reach, step)?;
        Some([at[0], variance / square])
    }

    /// Goes to the place where the patch fits best. Returns it with the variance of the differences in grey levels.
    #[inline(always)]
    fn search(
        &self,
        image: &Grey,
        start: [f32; 2],
        reach: f32,
        step: impl Fn(&[f32; COUNT], f32) -> [f32; 2],
    ) -> Option<([f32; 2], f32)> {
        let square = |[x, y]: [f32; 2]| x * x + y * y;
        let mut at = start;
        let mut seen = [0.0; COUNT];
        for number in 1..=STEPS {
            read::<SIDE>(image, at, &mut seen)?;
            let gain = product(&seen, &self.values) / self.energy;
            let shift = step(&seen, gain);
            let length = square(shift);
            at = [at[0] + shift[0], at[1] + shift[1]];
            let is_near = square([at[0] - start[0], at[1] - start[1]]) <= reach * reach;
            if !is_near || gain < GAIN_MIN {
                return None;
            }
            if number == STEPS || length < STEP_MIN * STEP_MIN {
                let (variance, correlation) = self.judge(&mut seen, gain);
                let is_found = length < STEP_MAX * STEP_MAX && correlation >= CORRELATION_MIN;
                return is_found.then_some((at, variance));
            }
        }
        None
    }

    /// The variance of the differences in the patch's grey levels, and the correlation.
    fn judge(&self, seen: &mut [f32; COUNT], gain: f32) -> (f32, f32) {
        centre(seen);
        let energy = product(seen, seen);
        let explained = gain * gain * self.energy;
        let variance = (energy - explained).max(0.0) / (COUNT as f32 - 4.0) / (gain * gain);
        (variance, (explained / energy.max(1e-6)).sqrt())
    }
}

/// Reads `N` x `N` grey levels around a place, between pixels; `None` at the border.
#[inline(always)]
fn read<const N: usize>(image: &Grey, at: [f32; 2], out: &mut [f32]) -> Option<()> {
    let (width, height) = (image.width(), image.height());
    let centre = N / 2;
    let fits = |at: f32, side: usize| at >= centre as f32 && at < side as f32 - centre as f32;
    if !fits(at[0], width) || !fits(at[1], height) {
        return None;
    }
    let (left, top) = (at[0] as usize, at[1] as usize);
    let (fx, fy) = (at[0] - left as f32, at[1] - top as f32);
    let weights = [(1.0 - fx) * (1.0 - fy), fx * (1.0 - fy), (1.0 - fx) * fy, fx * fy];
    let pixels = &image.pixels()[(top - centre) * width + left - centre..];
    // Each row is converted once.
    let row = |y: usize| {
        let mut row = [0.0; WIDE + 1];
        let from = &pixels[y * width..][..N + 1];
        row.iter_mut().zip(from).for_each(|(to, &from)| *to = f32::from(from));
        row
    };
    let mut above = row(0);
    for (y, out) in out.as_chunks_mut::<N>().0.iter_mut().enumerate() {
        let below = row(y + 1);
        for x in 0..N {
            out[x] = weights[0] * above[x]
                + weights[1] * above[x + 1]
                + weights[2] * below[x]
                + weights[3] * below[x + 1];
        }
        above = below;
    }
    Some(())
}

/// Reads the grey levels of a patch of another shape, with a pixel around it; `None` at the border.
fn read_shaped(image: &Grey, at: [f32; 2], shape: Affine, out: &mut [f32]) -> Option<()> {
    let (width, height) = (image.width(), image.height());
    let [[a, b], [c, d]] = shape;
    let reach = CENTRE as f32 + 1.0;
    let wide = [(a.abs() + b.abs()) * reach, (c.abs() + d.abs()) * reach];
    let fits = |at: f32, wide: f32, side: usize| at - wide >= 0.0 && at + wide < side as f32 - 1.01;
    let is_small = width.max(height) < i16::MAX as usize;
    if !is_small || !fits(at[0], wide[0], width) || !fits(at[1], wide[1], height) {
        return None;
    }
    if [a - 1.0, b, c, d - 1.0].iter().all(|&change| change.abs() < CHANGE_MIN) {
        return read::<WIDE>(image, at, out);
    }
    let fixed = |value: f32| (value * UNIT) as i32;
    let pixels = image.pixels();
    let mut corners = [[0.0f32; WIDE]; 4];
    let mut shares = [[0.0f32; WIDE]; 2];
    for (row, out) in out.as_chunks_mut::<WIDE>().0.iter_mut().enumerate() {
        let y = row as f32 - reach;
        let mut place = [at[0] - a * reach + b * y, at[1] - c * reach + d * y].map(fixed);
        let step = [a, c].map(fixed);
        for i in 0..WIDE {
            let [x, y] = place.map(|place| (place >> 16) as usize);
            let first = y * width + x;
            let [p, q] = *pixels.get(first..)?.first_chunk::<2>()?;
            let [r, s] = *pixels.get(first + width..)?.first_chunk::<2>()?;
            [p, q, r, s].iter().zip(&mut corners).for_each(|(&from, to)| to[i] = f32::from(from));
            (0..2).for_each(|axis| shares[axis][i] = (place[axis] & 0xffff) as f32 / UNIT);
            place = [place[0] + step[0], place[1] + step[1]];
        }
        // In a loop of its own, which the compiler vectorizes.
        let ([p, q, r, s], [fx, fy]) = (&corners, &shares);
        for i in 0..WIDE {
            let above = p[i] + fx[i] * (q[i] - p[i]);
            out[i] = above + fy[i] * (r[i] + fx[i] * (s[i] - r[i]) - above);
        }
    }
    Some(())
}

/// The scalar product, by eight sums at once, always in the same order.
#[inline(always)]
fn product(one: &[f32; COUNT], other: &[f32; COUNT]) -> f32 {
    let mut sums = [0.0f32; 8];
    for (a, b) in one.as_chunks::<8>().0.iter().zip(other.as_chunks::<8>().0) {
        for i in 0..8 {
            sums[i] += a[i] * b[i];
        }
    }
    sums.iter().sum::<f32>()
}

/// Subtracts the mean.
fn centre(values: &mut [f32; COUNT]) {
    let mut sums = [0.0f32; 8];
    for chunk in values.as_chunks::<8>().0 {
        (0..8).for_each(|i| sums[i] += chunk[i]);
    }
    let mean = sums.iter().sum::<f32>() / COUNT as f32;
    values.iter_mut().for_each(|value| *value -= mean);
}

#[cfg(test)]
mod tests {
    use super::*;

    const WIDTH: usize = 60;

    fn image(grey: impl Fn(f32, f32) -> f32) -> Vec<u8> {
        (0..WIDTH * 50).map(|i| grey((i % WIDTH) as f32, (i / WIDTH) as f32) as u8).collect()
    }

    fn texture(x: f32, y: f32) -> f32 {
        128.0 + 45.0 * (0.5 * x + 0.2 * y).sin() + 45.0 * (0.45 * y - 0.15 * x).sin()
    }

    #[test]
    fn a_patch_is_found_in_spite_of_exposure_and_shape() {
        let old = image(texture);
        // A pixel at (x, y) from the patch's place was at `shape` times (x, y) from it.
        let shape = [[0.9, 0.1], [-0.05, 1.1]];
        let new = image(|x, y| {
            let (x, y) = (x - 32.3, y - 23.6);
            let from = [0, 1].map(|i| shape[i][0] * x + shape[i][1] * y);
            0.6 * texture(30.0 + from[0], 25.0 + from[1]) + 20.0
        });
        let [old, new] = [&old, &new].map(|pixels| Grey::new(WIDTH, &pixels[..]));
        let patch = Patch::of(&old, [30.0, 25.0], shape).unwrap();
        let found = patch.find(&new, [31.0, 25.0], 4.0).unwrap();
        assert!(
            (found.at[0] - 32.3).abs() < 0.03 && (found.at[1] - 23.6).abs() < 0.03,
            "{found:?}"
        );
        assert!(found.covariance[0] > 0.0 && found.covariance[2] < 0.01, "{found:?}");
        let column = patch.find_in_row(&new, [31.0, 23.6], 4.0).unwrap();
        assert!((column[0] - 32.3).abs() < 0.03, "{column:?}");
        // Too far, beyond the border, and another texture.
        assert!(patch.find(&new, [29.0, 23.6], 1.0).is_none());
        assert!(patch.find(&new, [57.0, 23.6], 4.0).is_none());
        let other = image(|x, y| 100.0 + 60.0 * (0.9 * y).sin() * (0.8 * x).cos());
        assert!(patch.find(&Grey::new(WIDTH, &other[..]), [31.0, 25.0], 4.0).is_none());
    }

    #[test]
    fn patches_without_texture_or_at_the_border_are_none() {
        let flat = image(|x, _| 100.0 + x / 60.0);
        let (same, flat) = ([[1.0, 0.0], [0.0, 1.0]], Grey::new(WIDTH, &flat[..]));
        assert!(Patch::of(&flat, [30.0, 25.0], same).is_none());
        let textured = image(texture);
        let textured = Grey::new(WIDTH, &textured[..]);
        for at in [[3.0, 25.0], [30.0, 46.0], [f32::NAN, 20.0], [-1e9, 1e9]] {
            assert!(Patch::of(&textured, at, same).is_none(), "{at:?}");
        }
        assert!(Patch::of(&textured, [30.0, 25.0], [[f32::NAN; 2]; 2]).is_none());
        // Stripes tell the row only.
        let stripes = image(|_, y| 128.0 + 90.0 * (0.5 * y).sin());
        let stripes = Grey::new(WIDTH, &stripes[..]);
        let patch = Patch::of(&stripes, [30.0, 25.0], same).unwrap();
        assert!(patch.find(&stripes, [30.0, 25.0], 3.0).is_none());
        assert!(patch.find_in_row(&stripes, [30.0, 25.0], 3.0).is_none());
    }
}
