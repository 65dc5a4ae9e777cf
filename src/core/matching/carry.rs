//! Steady maps while the rig moves: the last shown map is carried along the rig's motion to the next image: that of its
//! [`odometry`](super::odometry), or a guess ([`motion`]) where that is not sure. Where
//! both images agree, it fills unknown pixels and resists other disparities, as in
//! [`steady`](super::filter::steady), which holds the maps of a rig that stands still.
//!
//! Values are f32 without transcendental functions, so every machine computes the same ones.

use std::ops::Range;
use std::thread;
use std::time::Duration;

use crate::frame::{DisparityMap, DisparityRange, INVALID, Image, SUBPIXEL, StereoGeometry};
use crate::matching::continuity::Continuity;
use crate::matching::filter::steady::{HELD, SURE, Steady};
use crate::matching::motion::{self, Frame, Levels, Motion};
use crate::matching::odometry::median;
use crate::matching::scene::Thumbnail;
use crate::pose::Pose;

/// Smallest confidence of pixels that show a motion and that fill unknown ones: 63 %.
const CARRIED_MIN: u8 = 160;

/// Smallest median shift in pixels: below it, the rig rests.
const SHIFT_MIN: f32 = 1.0;

/// Distance in pixels between those whose shifts are looked at.
const SHIFT_STEP: usize = 8;

/// Largest difference between equal disparities, in units of the map: 1 px.
const GUARD: f32 = SUBPIXEL as f32;

/// Advantage of the pixel nearest to a carried place over its neighbours, in units of the map: 0.75 px.
const NEAREST: f32 = 0.75 * SUBPIXEL as f32;

/// No pixel was carried here.
const NONE: u32 = u32::MAX;

/// Bytes a pixel that a [`Carrier`] takes.
pub const BYTES_PER_PIXEL: usize = 2 * size_of::<Memory>() + 12 + 4 + 4 + 2 + 1 + 2;

/// A shown pixel.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Memory {
    /// Disparity in units of the map; only shown pixels have one.
    disparity: Option<f32>,
    confidence: u8,
    /// Maps that have supported it, up to 255.
    seen: u8,
    /// Maps in a row that contradict it; confident ones count twice.
    against: u8,
}

/// Carries the maps of a stream.
pub struct Carrier {
    strength: u8,
    range: DisparityRange,
    size: (usize, usize),
    threads: usize,
    continuity: Continuity,
    last: Option<Last>,
    now: Vec<Memory>,
    moved: Vec<[f32; 3]>,
    carried: Carried,
}

/// The previous pair.
struct Last {
    image: Vec<u8>,
    shown: Vec<Memory>,
    guess: Option<Motion>,
}

/// Moves pixels and their disparities as a rigid motion moves the points that they show.
#[derive(Clone, Copy, Debug)]
pub struct Warp {
    /// Homography of points at infinity.
    far: [[f32; 3]; 3],
    /// Further motion per pixel of disparity.
    near: [f32; 3],
    /// Disparity of points at infinity in pixels.
    infinity: f32,
}

impl Warp {
    /// The motion takes points of the camera before into the camera after.
    pub fn new(motion: &Pose, geometry: &StereoGeometry) -> Self {
        let StereoGeometry { focal_px: focal, baseline_m: baseline, .. } = *geometry;
        let (x, y) = (geometry.centre_x_px, geometry.centre_y_px);
        let seen = |[right, down, ahead]: [f64; 3]| {
            [right * focal + x * ahead, down * focal + y * ahead, ahead].map(|part| part as f32)
        };
        let column = |axis: usize| motion.rotation.map(|row| row[axis]);
        let [right, down, ahead] = [column(0), column(1), column(2)];
        let corner = [0, 1, 2].map(|i| ahead[i] - right[i] * x / focal - down[i] * y / focal);
        let columns =
            [right.map(|part| part / focal), down.map(|part| part / focal), corner].map(seen);
        Self {
            far: [0, 1, 2].map(|row| columns.map(|column| column[row])),
            near: seen(motion.position_m.map(|metres| metres / (focal * baseline))),
            infinity: (x - geometry.right_centre_x_px) as f32,
        }
    }

    /// As [`Warp::new`], by a guess between images of this size.
    fn of_guess(guess: &Motion, size: (usize, usize)) -> Self {
        // Places times depth are linear in pixel and disparity.
        let frame = Frame::of(size);
        let seen = |pixel: [f32; 3]| {
            let point = frame.point(pixel);
            let depth = guess.depth(point);
            let [x, y, _] = frame.pixel(guess.of(point));
            [x * depth, y * depth, depth]
        };
        let origin = seen([0.0; 3]);
        let slope = |pixel: [f32; 3]| {
            let there = seen(pixel);
            [0, 1, 2].map(|row| there[row] - origin[row])
        };
        let (x, y) = (slope([1.0, 0.0, 0.0]), slope([0.0, 1.0, 0.0]));
        let far = [0, 1, 2].map(|row| [x[row], y[row], origin[row]]);
        Self { far, near: slope([0.0, 0.0, 1.0]), infinity: 0.0 }
    }

    /// Returns the place and the disparity of a pixel after the motion; none that is a number if it is behind the camera.
    #[inline(always)]
    fn of(&self, [x, y, disparity]: [f32; 3]) -> [f32; 3] {
        let parallax = disparity - self.infinity;
        let row = |i: usize| {
            let [by_x, by_y, constant] = self.far[i];
            by_x * x + by_y * y + constant + self.near[i] * parallax
        };
        let depth = row(2);
        let depth = if depth > 0.0 { depth } else { f32::NAN };
        [row(0) / depth, row(1) / depth, parallax / depth + self.infinity]
    }
}

/// The shown map at the places of the new image.
struct Carried {
    /// Numbers of the pixels that came here.
    from: Vec<u32>,
    nearness: Vec<f32>,
    /// Differences of the grey levels.
    differences: Vec<i16>,
    gradients: Vec<u8>,
}

impl Carrier {
    /// Makes a carrier for maps of this range and size.
    pub fn new(how: Steady, range: DisparityRange, size: (usize, usize), threads: usize) -> Self {
        let pixels = size.0 * size.1;
        let nothing = Memory { disparity: None, confidence: 0, seen: 1, against: 0 };
        Self {
            strength: how.strength,
            range,
            size,
            threads: threads.clamp(1, size.1),
            continuity: Continuity::default(),
            last: None,
            now: vec![nothing; pixels],
            moved: vec![[0.0; 3]; pixels],
            carried: Carried {
                from: vec![NONE; pixels],
                nearness: vec![0.0; pixels],
                differences: vec![0; pixels],
                gradients: vec![0; pixels],
            },
        }
    }

    /// Forgets the stream.
    pub fn restart(&mut self) {
        self.continuity = Continuity::default();
        self.last = None;
    }

    /// Steadies the stream's next map, of this left image, to which `motion` leads from the one before. Pixels with a
    /// confidence of 0 are unknown, even if a filter has filled them.
    pub fn next(
        &mut self,
        left: &Image,
        map: &mut DisparityMap,
        confidence: &mut Image,
        timestamp: Duration,
        motion: Option<&Warp>,
    ) {
        let goes_on = self.continuity.goes_on(timestamp, Thumbnail::of(left));
        let last = self.last.take().filter(|_| goes_on);
        let unsure = last.as_ref().filter(|_| motion.is_none());
        let guess = unsure.and_then(|last| self.guess(last, left));
        let motion = motion.copied().or(guess.map(|guess| Warp::of_guess(&guess, self.size)));
        let moves = |(last, motion)| self.shift(last, motion) >= SHIFT_MIN;
        match last.as_ref().zip(motion.as_ref()).filter(|&pair| moves(pair)) {
            Some((last, motion)) => {
                self.carry(last, left, motion);
                self.decide(last, left, map, confidence);
            }
            None => self.begin(map, confidence),
        }
        let (mut image, shown) = match last {
            Some(last) => (last.image, last.shown),
            None => (Vec::new(), self.now.clone()),
        };
        image.clear();
        image.extend_from_slice(left.pixels());
        let shown = std::mem::replace(&mut self.now, shown);
        self.last = Some(Last { image, shown, guess });
    }

    fn guess(&self, last: &Last, left: &Image) -> Option<Motion> {
        let (width, height) = self.size;
        let before = Image::from_vec(width, height, last.image.clone());
        let levels = [&before, left].map(Levels::of);
        let sure = |x: usize, y: usize| {
            let memory = &last.shown[y * self.size.0 + x];
            let disparity = memory.disparity.filter(|_| memory.confidence >= CARRIED_MIN)?;
            Some(disparity / SUBPIXEL as f32)
        };
        motion::estimate([&levels[0], &levels[1]], self.size, sure, last.guess)
    }

    /// The median shift of the shown pixels in pixels.
    fn shift(&self, last: &Last, motion: &Warp) -> f32 {
        let (width, height) = self.size;
        let mut shifts = Vec::new();
        for y in (0..height).step_by(SHIFT_STEP) {
            for x in (0..width).step_by(SHIFT_STEP) {
                let Some(disparity) = last.shown[y * width + x].disparity else { continue };
                let [from_x, from_y] = [x as f32, y as f32];
                let [to_x, to_y, _] = motion.of([from_x, from_y, disparity / SUBPIXEL as f32]);
                shifts.push(((to_x - from_x).powi(2) + (to_y - from_y).powi(2)).sqrt());
            }
        }
        median(&mut shifts)
    }

    /// Remembers a map as it is.
    fn begin(&mut self, map: &DisparityMap, confidence: &Image) {
        let pixels = map.values().iter().zip(confidence.pixels());
        for (memory, (&value, &confidence)) in self.now.iter_mut().zip(pixels) {
            *memory = Memory::begun(value, confidence);
        }
    }

    /// Moves the shown map to the new image. The nearest surface covers the others.
    fn carry(&mut self, last: &Last, left: &Image, motion: &Warp) {
        let (width, height) = self.size;
        let reaches = in_bands(self.threads, height, self.moved.chunks_mut(width), |y, moved| {
            let mut reach = (f32::INFINITY, f32::NEG_INFINITY);
            for (x, (to, memory)) in moved.iter_mut().zip(&last.shown[y * width..]).enumerate() {
                let Some(disparity) = memory.disparity else {
                    *to = [f32::NAN; 3];
                    continue;
                };
                let pixel = [x as f32, y as f32, disparity / SUBPIXEL as f32];
                let [to_x, to_y, moved] = motion.of(pixel);
                *to = [to_x, to_y, moved * SUBPIXEL as f32];
                reach = (reach.0.min(to_y), reach.1.max(to_y));
            }
            reach
        });
        let (moved, range) = (&self.moved, self.range);
        let bounds = [range.min * SUBPIXEL, range.max() * SUBPIXEL].map(|bound| bound as f32);
        let Carried { from, nearness, differences, gradients } = &mut self.carried;
        let rows = height.div_ceil(self.threads);
        let bands = from.chunks_mut(width * rows).zip(nearness.chunks_mut(width * rows));
        in_bands(self.threads, self.threads, bands, |band, (from, nearness)| {
            from.fill(NONE);
            let top = (band * rows) as i32;
            let bottom = top + (from.len() / width) as i32;
            for (y, reach) in reaches.iter().enumerate() {
                // A row without a shown pixel reaches nowhere.
                if reach.1 < top as f32 - 1.0 || reach.0 > bottom as f32 {
                    continue;
                }
                for x in 0..width {
                    let at = y * width + x;
                    let [to_x, to_y, disparity] = moved[at];
                    if !(disparity >= bounds[0] && disparity <= bounds[1]) {
                        continue;
                    }
                    let (left, up) = (floor(to_x), floor(to_y));
                    let is_right = to_x - left as f32 >= 0.5;
                    let is_lower = to_y - up as f32 >= 0.5;
                    for (row, nearest_row) in [(up, !is_lower), (up.wrapping_add(1), is_lower)] {
                        if row < top || row >= bottom {
                            continue;
                        }
                        let start = (row - top) as usize * width;
                        let columns = [(left, !is_right), (left.wrapping_add(1), is_right)];
                        for (column, nearest_column) in columns {
                            if column < 0 || column >= width as i32 {
                                continue;
                            }
                            let is_nearest = nearest_row && nearest_column;
                            let near = if is_nearest { disparity } else { disparity - NEAREST };
                            let to = start + column as usize;
                            if from[to] == NONE || near >= nearness[to] {
                                (from[to], nearness[to]) = (at as u32, near);
                            }
                        }
                    }
                }
            }
        });
        let rows = differences.chunks_mut(width).zip(gradients.chunks_mut(width));
        let from = &*from;
        in_bands(self.threads, height, rows, |y, (differences, gradients)| {
            let three = [y.saturating_sub(1), y, (y + 1).min(height - 1)].map(|y| left.row(y));
            let from = &from[y * width..][..width];
            for ((difference, &grey), &source) in differences.iter_mut().zip(three[1]).zip(from) {
                let before = |source: u32| i16::from(last.image[source as usize]);
                *difference = if source == NONE { 0 } else { i16::from(grey) - before(source) };
            }
            let of = |of: fn(u8, u8) -> u8| -> Vec<u8> {
                let [above, row, below] = three;
                let pixels = above.iter().zip(row).zip(below);
                pixels.map(|((&above, &row), &below)| of(of(above, row), below)).collect()
            };
            let (least, most) = (of(u8::min), of(u8::max));
            for x in 0..width {
                let (left, right) = (x.saturating_sub(1), (x + 1).min(width - 1));
                let most = most[left].max(most[x]).max(most[right]);
                let least = least[left].min(least[x]).min(least[right]);
                gradients[x] = (most - three[1][x]).max(three[1][x] - least);
            }
        });
    }

    /// Shows the carried or the new disparity of every pixel.
    fn decide(&mut self, last: &Last, left: &Image, map: &mut DisparityMap, sure: &mut Image) {
        let (width, height) = self.size;
        let Carried { from, differences, gradients, .. } = &self.carried;
        let (exposure, noise) = exposure_and_noise(from, differences);
        let (moved, strength) = (&self.moved, self.strength);
        let values = map.values_mut().chunks_mut(width);
        let rows = values.zip(sure.pixels_mut().chunks_mut(width)).zip(self.now.chunks_mut(width));
        in_bands(self.threads, height, rows, |y, ((values, sure), now)| {
            let rows = y.saturating_sub(2)..(y + 3).min(height);
            let mut sums = Sums::of(width, rows, from, differences, gradients);
            for x in 0..width {
                let source = from[y * width + x];
                sums.advance(x);
                let agrees = source != NONE && sums.agree(exposure, noise);
                let is_valid = left.valid_mask().is_none_or(|mask| mask.pixels()[y * width + x]);
                let carried = (agrees && is_valid).then(|| {
                    let disparity = Some(moved[source as usize][2]);
                    Memory { disparity, ..last.shown[source as usize] }
                });
                now[x] = decide(carried, &mut values[x], &mut sure[x], strength);
            }
        });
    }
}

impl Memory {
    /// A pixel of a new map.
    fn begun(value: i16, confidence: u8) -> Self {
        let disparity = (value != INVALID && confidence > 0).then_some(f32::from(value));
        Self { disparity, confidence, seen: 1, against: 0 }
    }
}

/// Decides between a carried pixel and that of the new map, which is replaced if the carried one resists. A sure new
/// disparity always replaces another one, so moving objects that are matched surely do not lag.
fn decide(carried: Option<Memory>, value: &mut i16, sure: &mut u8, strength: u8) -> Memory {
    let mut new = Memory::begun(*value, *sure);
    let Some((carried, before)) = carried.and_then(|c| Some((c, c.disparity?))) else { return new };
    let is_sure = new.disparity.is_some() && new.confidence >= SURE;
    if let Some(disparity) = new.disparity
        && (disparity - before).abs() <= GUARD
    {
        let certainty = f32::from(new.confidence) + 1.0;
        let later = 2.0 * certainty / (256.0 * (f32::from(strength) + 1.0));
        let weight = later.max(1.0 / (f32::from(carried.seen) + 1.0));
        let mean = before + weight * (disparity - before);
        *value = floor(mean + 0.5) as i16;
        new.disparity = Some(mean);
        new.confidence = new.confidence.max(carried.confidence.saturating_sub(8));
        new.seen = carried.seen.saturating_add(1);
        return new;
    }
    let against = carried.against.saturating_add(if is_sure { 2 } else { 1 });
    let fills = new.disparity.is_some() || carried.confidence >= CARRIED_MIN;
    if is_sure || !fills || against > carried.seen.min(strength) {
        return new;
    }
    *value = floor(before + 0.5) as i16;
    *sure = HELD;
    Memory { against, ..carried }
}

/// The median difference of the carried grey levels, and the standard deviation by the median of absolute ones.
fn exposure_and_noise(from: &[u32], differences: &[i16]) -> (f32, f32) {
    let mut counts = [0u32; 511];
    let carried = from.iter().zip(differences).filter(|(from, _)| **from != NONE);
    carried.for_each(|(_, &difference)| counts[(difference + 255) as usize] += 1);
    let half = counts.iter().sum::<u32>() / 2;
    let mut seen = 0;
    let middle = counts.iter().position(|count| {
        seen += count;
        seen > half
    });
    let middle = middle.unwrap_or(255);
    let count = |at: Option<usize>| at.and_then(|at| counts.get(at)).copied().unwrap_or(0);
    let mut seen = count(Some(middle));
    let spread = (1..511).find(|&away| {
        let enough = seen > half;
        seen += count(middle.checked_sub(away)) + count(Some(middle + away));
        enough
    });
    (middle as f32 - 255.0, 1.4826 * spread.map_or(0.0, |away| away as f32 - 1.0))
}

/// Sums over 5x5 pixels: carried ones, their differences, gradients, and all pixels.
struct Sums {
    columns: Vec<[i32; 4]>,
    around: [i32; 4],
}

impl Sums {
    fn of(
        width: usize,
        rows: Range<usize>,
        from: &[u32],
        differences: &[i16],
        gradients: &[u8],
    ) -> Self {
        let mut columns = vec![[0; 4]; width];
        for y in rows {
            let row = y * width..(y + 1) * width;
            let pixels = from[row.clone()].iter().zip(&differences[row.clone()]);
            for ((sum, (&from, &difference)), &gradient) in
                columns.iter_mut().zip(pixels).zip(&gradients[row])
            {
                sum[0] += i32::from(from != NONE);
                sum[1] += i32::from(difference);
                sum[2] += i32::from(gradient);
                sum[3] += 1;
            }
        }
        let around = std::array::from_fn(|i| columns.iter().take(2).map(|sums| sums[i]).sum());
        Self { columns, around }
    }

    /// Advances to the pixels around the next column.
    #[inline(always)]
    fn advance(&mut self, x: usize) {
        if let Some(column) = self.columns.get(x + 2) {
            (0..4).for_each(|i| self.around[i] += column[i]);
        }
        if x > 2 {
            (0..4).for_each(|i| self.around[i] -= self.columns[x - 3][i]);
        }
    }

    /// Whether the mean difference is within noise and gradient.
    #[inline(always)]
    fn agree(&self, exposure: f32, noise: f32) -> bool {
        let [carried, difference, gradient, pixels] = self.around.map(|sum| sum as f32);
        let limit = 1.0 + 0.8 * noise + 0.35 * gradient / pixels;
        (difference - exposure * carried).abs() <= limit * carried
    }
}

/// The largest whole number up to a value. `f32::floor` is a call on older processors.
#[inline(always)]
fn floor(value: f32) -> i32 {
    let whole = value as i32;
    whole.wrapping_sub(i32::from(value < whole as f32))
}

/// Works on `count` items, a band of them on each thread; returns the results in order.
fn in_bands<T: Send, R: Send>(
    threads: usize,
    count: usize,
    items: impl Iterator<Item = T>,
    work: impl Fn(usize, T) -> R + Sync,
) -> Vec<R> {
    let per_band = count.div_ceil(threads).max(1);
    let mut items: Vec<(usize, T)> = items.enumerate().collect();
    let mut bands = Vec::new();
    while items.len() > per_band {
        bands.push(items.split_off((items.len() - 1) / per_band * per_band));
    }
    let run = |items: Vec<(usize, T)>| -> Vec<R> {
        items.into_iter().map(|(number, item)| work(number, item)).collect()
    };
    let run = &run;
    thread::scope(|scope| {
        let others: Vec<_> = bands.into_iter().map(|band| scope.spawn(move || run(band))).collect();
        let mut results = run(items);
        for other in others.into_iter().rev() {
            results.extend(other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        }
        results
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZE: (usize, usize) = (256, 192);
    const RANGE: DisparityRange = DisparityRange { min: 0, count: 64 };

    /// A wall at 12 px, moved to the right by `shift`.
    fn view(shift: f32) -> Image {
        Image::from_fn(SIZE.0, SIZE.1, |x, y| {
            let (x, y) = (x as f32 - shift, y as f32);
            let wave = |a: f32, b: f32| (a * x + b * y).sin();
            (128.0 + 40.0 * (wave(0.11, 0.05) + wave(-0.06, 0.13) + wave(0.3, 0.2))) as u8
        })
    }

    /// Moves the wall to the right by `shift`.
    fn motion(shift: f32) -> Warp {
        let geometry = StereoGeometry::assumed(SIZE);
        let position_m = [f64::from(shift) / 12.0, 0.0, 0.0];
        Warp::new(&Pose { position_m, ..Pose::IDENTITY }, &geometry)
    }

    #[test]
    fn pixels_move_as_their_points_do() {
        let mut geometry = StereoGeometry::assumed(SIZE);
        geometry.right_centre_x_px -= 3.0;
        let (sin, cos) = 0.1f64.sin_cos();
        let rotation = [[cos, 0.0, sin], [0.0, 1.0, 0.0], [-sin, 0.0, cos]];
        let motion = Pose { rotation, position_m: [0.3, -0.2, 1.5] };
        let point = [2.0, -1.0, 9.0];
        let pixel = |[x, y, z]: [f64; 3]| {
            let along = geometry.focal_px / z;
            [
                x * along + geometry.centre_x_px,
                y * along + geometry.centre_y_px,
                geometry.disparity_px(z),
            ]
        };
        let moved = Warp::new(&motion, &geometry).of(pixel(point).map(|value| value as f32));
        for (is, expected) in moved.into_iter().zip(pixel(motion.apply(point))) {
            assert!((f64::from(is) - expected).abs() < 1e-3, "{is} instead of {expected}");
        }
        let behind = Pose { position_m: [0.0, 0.0, -10.0], ..Pose::IDENTITY };
        assert!(
            Warp::new(&behind, &geometry).of(pixel(point).map(|value| value as f32))[0].is_nan()
        );
    }

    #[test]
    fn a_guess_moves_pixels_as_its_points() {
        let guess = Motion([0.02, -0.01, 0.015, 0.3, -0.1, 0.8]);
        let (warp, frame) = (Warp::of_guess(&guess, SIZE), Frame::of(SIZE));
        for pixel in [[0.0, 0.0, 3.0], [250.0, 10.0, 20.0], [100.0, 190.0, 0.0]] {
            let expected = frame.pixel(guess.of(frame.point(pixel)));
            for (is, expected) in warp.of(pixel).into_iter().zip(expected) {
                assert!((is - expected).abs() < 0.01, "{is} instead of {expected}");
            }
        }
    }

    fn map(value: impl Fn(usize, usize) -> i16) -> DisparityMap {
        let values = (0..SIZE.0 * SIZE.1).map(|i| value(i % SIZE.0, i / SIZE.0)).collect();
        DisparityMap::of_values(SIZE.0, RANGE, values)
    }

    fn is_hole(x: usize, y: usize) -> bool {
        (100..120).contains(&x) && (80..100).contains(&y)
    }

    /// Shows the wall, then, `shift` pixels further, a map with a hole, which `other` fills if it is known.
    fn second(shift: f32, other: i16, sure: u8, threads: usize) -> (DisparityMap, Image) {
        let mut carrier = Carrier::new(Steady { strength: 8 }, RANGE, SIZE, threads);
        let confidence = |inside: u8| {
            Image::from_fn(SIZE.0, SIZE.1, move |x, y| if is_hole(x, y) { inside } else { 220 })
        };
        let mut first = map(|_, _| 192);
        carrier.next(&view(0.0), &mut first, &mut confidence(220), Duration::ZERO, None);
        let mut second = map(|x, y| if is_hole(x, y) { other } else { 192 });
        let mut confidence = confidence(sure);
        let time = Duration::from_millis(40);
        carrier.next(&view(shift), &mut second, &mut confidence, time, Some(&motion(shift)));
        (second, confidence)
    }

    fn in_hole(of: &(DisparityMap, Image)) -> (i16, u8) {
        let at = 90 * SIZE.0 + 110;
        (of.0.values()[at], of.1.pixels()[at])
    }

    #[test]
    fn the_last_map_fills_and_resists_while_the_rig_moves() {
        assert_eq!(in_hole(&second(6.0, INVALID, 0, 1)), (192, HELD));
        // Filled values are unknown, too.
        assert_eq!(in_hole(&second(6.0, 500, 0, 1)), (192, HELD));
        assert_eq!(in_hole(&second(6.0, 500, 90, 1)), (192, HELD));
        // A sure disparity is followed at once.
        assert_eq!(in_hole(&second(6.0, 500, 220, 1)), (500, 220));
        // While the rig rests, `steady` decides.
        assert_eq!(in_hole(&second(0.0, INVALID, 0, 1)), (INVALID, 0));
    }

    #[test]
    fn bands_of_threads_give_the_same_map() {
        let one = second(6.0, INVALID, 0, 1);
        for threads in [2, 3, 7, 192] {
            let more = second(6.0, INVALID, 0, threads);
            assert_eq!(more.0.values(), one.0.values());
            assert_eq!(more.1.pixels(), one.1.pixels());
        }
        let numbers = in_bands(3, 10, 0..10, |number, item| (number, item));
        assert_eq!(numbers, (0..10).map(|i| (i, i)).collect::<Vec<_>>());
    }

    #[test]
    fn an_image_that_changes_carries_nothing() {
        let mut carrier = Carrier::new(Steady { strength: 8 }, RANGE, SIZE, 2);
        let sure = || Image::from_fn(SIZE.0, SIZE.1, |_, _| 220);
        carrier.next(&view(0.0), &mut map(|_, _| 192), &mut sure(), Duration::ZERO, None);
        // Something else moves into the hole.
        let view = view(6.0);
        let changed = |x: usize, y: usize| if is_hole(x, y) { 250 } else { view.row(y)[x] };
        let changed = Image::from_fn(SIZE.0, SIZE.1, changed);
        let mut second = map(|x, y| if is_hole(x, y) { INVALID } else { 192 });
        let seen = |x, y| if is_hole(x, y) { 0 } else { 220 };
        let mut confidence = Image::from_fn(SIZE.0, SIZE.1, seen);
        let time = Duration::from_millis(40);
        carrier.next(&changed, &mut second, &mut confidence, time, Some(&motion(6.0)));
        assert_eq!(in_hole(&(second, confidence)), (INVALID, 0));
    }

    #[test]
    fn exposure_and_noise_are_medians() {
        let differences = [3, 3, 3, 5, 1, 200, 3, 4, 2];
        assert_eq!(exposure_and_noise(&[0; 9], &differences), (3.0, 1.4826));
        assert_eq!(exposure_and_noise(&[NONE; 3], &[0; 3]).1, 0.0);
    }
}
