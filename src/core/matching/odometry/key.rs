//! Key frames: corners with a sure disparity, which are found again in later pairs. Corners are maxima of the smaller
//! eigenvalue of the slopes' products (Shi and Tomasi, Good features to track, CVPR 1994), one for each cell of a grid.

use super::coarse::{Greys, Halves};
use super::patch::{Affine, Grey, Patch};
use super::rigid::{Camera, Ray, Warp};
use crate::frame::{DisparityMap, INVALID, Image, Plane, SUBPIXEL};
use crate::pose::Pose;

/// Smallest confidence of a sure disparity: 63 %.
const SURE: u8 = 160;

/// Cells of the grid.
const CELLS: f32 = 500.0;

/// Least points of a key frame.
pub const POINTS_MIN: usize = 40;

/// With fewer points, cells have up to four.
const POINTS_ENOUGH: usize = 150;

/// Widest image in which corners are looked for; wider ones are halved.
const CORNER_WIDTH_MAX: usize = 800;

/// Pixels from the centre of a corner's window to its border.
const WINDOW: usize = 2;

/// Smallest eigenvalue of a corner: in 5x5 pixels, a slope of 1.4 grey levels in every direction. Slopes are differences
/// over two pixels here.
const CORNER_MIN: f32 = 25.0 * 4.0 * 2.0;

/// Levels of patches, the full image included.
const LEVELS: usize = 3;

/// Pixels that a patch may move on a level.
const REACH: [f32; LEVELS] = [3.0, 3.0, 5.0];

/// A pair and what is known of it.
#[derive(Debug)]
pub struct View<'a> {
    pub left: &'a Image,
    pub right: &'a Image,
    pub map: &'a DisparityMap,
    pub confidence: &'a Image,
    pub camera: Camera,
    pub halves: Halves,
}

impl View<'_> {
    /// Returns width and height.
    pub fn size(&self) -> (usize, usize) {
        (self.left.width(), self.left.height())
    }

    /// Returns the left image from the full one on, as far as patches are looked for.
    fn levels(&self) -> Vec<Grey<'_>> {
        let all = std::iter::once(self.left).chain(self.halves.levels());
        all.take(LEVELS).map(grey).collect()
    }

    /// Returns the disparity of a pixel if it is sure.
    fn sure(&self, x: usize, y: usize) -> Option<f32> {
        let (width, height) = self.size();
        let is_sure = x < width && y < height && self.confidence.row(y)[x] >= SURE;
        is_sure.then(|| self.map.at(x, y)).flatten()
    }

    /// Reports whether the sensor has seen the surroundings of a pixel.
    fn is_seen(&self, x: usize, y: usize) -> bool {
        const AROUND: usize = 6;
        let (width, height) = self.size();
        self.left.valid_mask().is_none_or(|mask| {
            let rows = [y.saturating_sub(AROUND), (y + AROUND).min(height - 1)];
            let columns = [x.saturating_sub(AROUND), (x + AROUND).min(width - 1)];
            rows.iter().all(|&y| columns.iter().all(|&x| mask.row(y)[x]))
        })
    }
}

/// A point of a key frame.
#[derive(Clone, Debug, PartialEq)]
struct KeyPoint {
    /// Place and disparity.
    pixel: [f32; 3],
    ray: Ray,
    /// Slopes of the disparity to the right and down.
    slopes: [f32; 2],
    /// Variance of the disparity.
    variance: f32,
}

/// A point found again.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sight {
    /// Number of the point in the key frame.
    pub number: u32,
    /// In the key frame.
    pub ray: Ray,
    /// Variance of the disparity in the key frame.
    pub before: f32,
    /// Place and disparity in the new pair.
    pub seen: [f32; 3],
    /// Covariance of the place (across, mixed, down), and variance of the disparity.
    pub covariance: [f32; 4],
}

/// The points of a pair, to be found again.
#[derive(Clone, Debug, PartialEq)]
pub struct KeyFrame {
    size: (usize, usize),
    camera: Camera,
    points: Vec<KeyPoint>,
    /// The left image, from the full one on.
    levels: Vec<Plane<Vec<u8>>>,
    greys: Greys,
}

impl KeyFrame {
    /// Chooses the points of a pair; `None` if it has too few, or fewer than `least`.
    pub fn of(view: &View, least: usize) -> Option<Self> {
        let [best, others] = corners(view);
        let point = |[x, y]: [usize; 2]| KeyPoint::of(view, x, y);
        let mut points: Vec<KeyPoint> = best.into_iter().filter_map(point).collect();
        if points.len() < POINTS_ENOUGH {
            points.extend(others.into_iter().filter_map(point));
        }
        if points.len() < POINTS_MIN.max(least) {
            return None;
        }
        let owned = |level: &Grey| Plane::new(level.width(), level.pixels().to_vec());
        let levels = view.levels().iter().map(owned).collect();
        let greys = Greys::of(&view.halves, &view.camera, |x, y| view.sure(x, y));
        Some(Self { size: view.size(), camera: view.camera, points, levels, greys })
    }

    /// Reports whether a pair can be compared: it has the same size.
    pub fn fits(&self, view: &View) -> bool {
        self.size == view.size()
    }

    /// Returns the number of points.
    pub fn len(&self) -> usize {
        self.points.len()
    }

    /// Returns the motion that the grey levels of the coarse images show, from the best of several starts.
    pub fn align(&self, view: &View, starts: &[Pose]) -> Option<Pose> {
        self.greys.align(&view.halves, &view.camera, starts)
    }

    /// Looks for one of `every` points near the places to which a motion brings them. Returns those found, and how many
    /// of them are in view.
    pub fn find(&self, view: &View, motion: &Pose, every: usize) -> (Vec<Sight>, usize) {
        let warp = Warp::of_motion(motion);
        let levels = self.levels.iter().zip(view.levels());
        let levels: Vec<[Grey; 2]> =
            levels.map(|(old, new)| [Plane::new(old.width(), old.pixels()), new]).collect();
        let mut in_view = 0;
        let mut sights = Vec::with_capacity(self.points.len().div_ceil(every));
        for (number, point) in self.points.iter().enumerate().step_by(every) {
            let at = view.camera.pixel(warp.of(point.ray));
            if contains(self.size, at) {
                in_view += 1;
                let beside = |right: f32, down: f32| {
                    let to = view.camera.pixel(warp.of(self.camera.ray(point.beside(right, down))));
                    [0, 1, 2].map(|i| to[i] - at[i])
                };
                let shape = [beside(1.0, 0.0), beside(0.0, 1.0)];
                let sight = point.find(&levels, view, shape, at);
                sights.extend(sight.map(|sight| Sight { number: number as u32, ..sight }));
            }
        }
        (sights, in_view)
    }

    /// Returns the share of the points that remain in view with about the same size.
    pub fn overlap(&self, motion: &Pose) -> f32 {
        let warp = Warp::of_motion(motion);
        let remains = |point: &&KeyPoint| {
            let ray = warp.of(point.ray);
            // Not a number at infinity.
            let scale = ray[2] / point.ray[2];
            let is_alike = scale.is_nan() || (0.6..=1.6).contains(&scale);
            contains(self.size, self.camera.pixel(ray)) && is_alike
        };
        self.points.iter().filter(remains).count() as f32 / self.points.len() as f32
    }
}

/// Reports whether a place is in an image.
fn contains((width, height): (usize, usize), at: [f32; 3]) -> bool {
    let inside = |at: f32, side: usize| at >= 0.0 && at <= side as f32 - 1.0;
    inside(at[0], width) && inside(at[1], height)
}

fn grey(image: &Image) -> Grey<'_> {
    Plane::new(image.width(), image.pixels())
}

/// The place of a full pixel on a level.
fn on_level(at: [f32; 2], level: usize) -> [f32; 2] {
    let scale = (1usize << level) as f32;
    at.map(|full| (full - (scale - 1.0) / 2.0) / scale)
}

/// Looks for the disparity of a place in the right image near a start, at most a reach away. `slopes` are those of the
/// disparity to the right and down. Returns it with its variance.
fn find_disparity(
    view: &View,
    at: [f32; 2],
    start: f32,
    slopes: [f32; 2],
    reach: f32,
) -> Option<[f32; 2]> {
    let wider = 1.0 / (1.0 - slopes[0]);
    let patch = Patch::of(&grey(view.left), at, [[wider, slopes[1] * wider], [0.0, 1.0]])?;
    let [column, variance] = patch.find_in_row(&grey(view.right), [at[0] - start, at[1]], reach)?;
    Some([at[0] - column, variance])
}

impl KeyPoint {
    fn of(view: &View, x: usize, y: usize) -> Option<Self> {
        let sure = view.sure(x, y).filter(|_| view.is_seen(x, y))?;
        let slopes = slopes(view.map, view.confidence, x, y, sure)?;
        let place = [x as f32, y as f32];
        let [disparity, variance] = find_disparity(view, place, sure, slopes, 1.0)?;
        let pixel = [place[0], place[1], disparity];
        Some(Self { pixel, ray: view.camera.ray(pixel), slopes, variance })
    }

    /// The pixel and disparity of the surface beside the point.
    fn beside(&self, right: f32, down: f32) -> [f32; 3] {
        let [x, y, disparity] = self.pixel;
        let along = right * self.slopes[0] + down * self.slopes[1];
        [x + right, y + down, disparity + along]
    }

    /// Looks for the point near an expected place and disparity. `beside` are their differences for the surface a pixel
    /// to the right of the point and a pixel below it.
    fn find(
        &self,
        levels: &[[Grey; 2]],
        view: &View,
        beside: [[f32; 3]; 2],
        expected: [f32; 3],
    ) -> Option<Sight> {
        let [[a, c, right], [b, d, down]] = beside;
        let area = a * d - b * c;
        let is_alike = area > 0.3 && area < 3.0;
        if !is_alike {
            return None;
        }
        let shape: Affine = [[d / area, -b / area], [-c / area, a / area]];
        // Of the disparity in the new image.
        let slopes = [0, 1].map(|i| right * shape[0][i] + down * shape[1][i]);
        let (from, mut at) = ([self.pixel[0], self.pixel[1]], [expected[0], expected[1]]);
        let mut last = None;
        for (number, [old, new]) in levels.iter().enumerate().rev() {
            let scale = (1usize << number) as f32;
            let patch = Patch::of(old, on_level(from, number), shape);
            last = patch.and_then(|patch| patch.find(new, on_level(at, number), REACH[number]));
            if let Some(found) = last {
                at = found.at.map(|at| at * scale + (scale - 1.0) / 2.0);
            }
        }
        let [across, mixed, down] = last?.covariance;
        let (column, row) = ((at[0] + 0.5) as usize, (at[1] + 0.5) as usize);
        if !view.is_seen(column, row) {
            return None;
        }
        let start = view.sure(column, row).unwrap_or(expected[2]);
        let [disparity, variance] = find_disparity(view, at, start, slopes, 1.5)?;
        Some(Sight {
            number: 0,
            ray: self.ray,
            before: self.variance,
            seen: [at[0], at[1], disparity],
            covariance: [across, mixed, down, variance],
        })
    }
}

/// Slopes of the disparity around a pixel, to the right and down, as of a plane; `None` at an edge of a surface.
fn slopes(
    map: &DisparityMap,
    confidence: &Image,
    x: usize,
    y: usize,
    disparity: f32,
) -> Option<[f32; 2]> {
    const AWAY: [isize; 5] = [-4, -2, 0, 2, 4];
    let mut around = Vec::with_capacity(AWAY.len() * AWAY.len());
    for down in AWAY {
        let row = y.checked_add_signed(down).filter(|&row| row < map.height())?;
        for right in AWAY {
            let column = x.checked_add_signed(right).filter(|&column| column < map.width())?;
            let value = map.values()[row * map.width() + column];
            if value != INVALID && confidence.row(row)[column] > 1 {
                let away = f32::from(value) / SUBPIXEL as f32 - disparity;
                around.push([right as f32, down as f32, away]);
            }
        }
    }
    let count = around.len();
    around.retain(|[_, _, away]| away.abs() <= 2.0);
    if around.len() < 15 || 5 * around.len() < 4 * count {
        return None;
    }
    let means = [0, 1, 2].map(|i| around.iter().map(|of| of[i]).sum::<f32>() / around.len() as f32);
    let moment = |i: usize, j: usize| {
        around.iter().map(|of| (of[i] - means[i]) * (of[j] - means[j])).sum::<f32>()
    };
    let (a, b, c) = (moment(0, 0), moment(0, 1), moment(1, 1));
    let (right, down) = (moment(0, 2), moment(1, 2));
    let determinant = a * c - b * b;
    let found = [(c * right - b * down) / determinant, (a * down - b * right) / determinant];
    found.iter().all(|slope| slope.abs() < 0.6).then_some(found)
}

/// The corners of a view with a sure disparity: the best one of each cell, then those of its other quarters.
fn corners(view: &View) -> [Vec<[usize; 2]>; 2] {
    let is_wide = view.left.width() > CORNER_WIDTH_MAX;
    let halved = view.halves.levels().first().filter(|_| is_wide);
    let (image, step) = halved.map_or((view.left, 1), |image| (image, 2));
    let (width, height) = (image.width(), image.height());
    let side = ((width * height) as f32 / (4.0 * CELLS)).sqrt().max(5.0) as usize;
    // Two columns and rows of quarters are a cell.
    let columns = width.div_ceil(side).next_multiple_of(2);
    let rows = height.div_ceil(side).next_multiple_of(2);
    let mut quarters = vec![(CORNER_MIN, [0; 2]); columns * rows];
    smaller_eigenvalues(image, |y, values| {
        let quarters = &mut quarters[y / side * columns..][..columns];
        for (best, (x, values)) in
            quarters.iter_mut().zip((0..).step_by(side).zip(values.chunks(side)))
        {
            for (x, &value) in (x..).zip(values) {
                if value > best.0 && view.sure(step * x, step * y).is_some() {
                    *best = (value, [step * x, step * y]);
                }
            }
        }
    });
    let mut found = [Vec::new(), Vec::new()];
    for (above, below) in quarters.chunks(2 * columns).map(|rows| rows.split_at(columns)) {
        for (above, below) in above.as_chunks::<2>().0.iter().zip(below.as_chunks::<2>().0) {
            let mut cell = [above[0], above[1], below[0], below[1]];
            cell.sort_by(|a, b| b.0.total_cmp(&a.0));
            let mut corners =
                cell.iter().filter(|corner| corner.0 > CORNER_MIN).map(|corner| corner.1);
            found[0].extend(corners.next());
            found[1].extend(corners);
        }
    }
    found
}

/// Calls `row` for each row away from the border with the smaller eigenvalue of the sums of the slopes' products in the
/// window around each pixel; 0 at the border.
fn smaller_eigenvalues(image: &Image, mut row: impl FnMut(usize, &[f32])) {
    const TALL: usize = 2 * WINDOW + 1;
    let (width, height) = (image.width(), image.height());
    if width < 2 * TALL || height < 2 * TALL {
        return;
    }
    // Products of the slopes across, mixed and down: those of the newest rows, and their sums. All are whole numbers, so
    // nothing is rounded.
    let planes = || [(); 3].map(|()| vec![0.0f32; width]);
    let mut rows: [[Vec<f32>; 3]; TALL] = std::array::from_fn(|_| planes());
    let mut sums = planes();
    let mut slopes = planes();
    let mut values = vec![0.0f32; width];
    for y in 1..height - 1 {
        let [above, middle, below] = [y - 1, y, y + 1].map(|y| image.row(y));
        let [across, down, product] = &mut slopes;
        subtract(&mut across[1..], &middle[2..], &middle[..width - 2]);
        subtract(&mut down[1..width - 1], &below[1..], &above[1..]);
        let newest = &mut rows[y % TALL];
        let factors = [[&*across, &*across], [&*across, &*down], [&*down, &*down]];
        for ((sums, newest), [one, other]) in sums.iter_mut().zip(newest).zip(factors) {
            product.iter_mut().zip(one.iter().zip(other)).for_each(|(to, (a, b))| *to = a * b);
            let both = sums.iter_mut().zip(newest.iter());
            both.zip(product.iter()).for_each(|((sum, old), new)| *sum += new - old);
            newest.copy_from_slice(product);
        }
        if y < TALL + 1 {
            continue;
        }
        let [a, b, c] = sums.each_ref().map(|sums| sums.windows(TALL));
        for (value, ((a, b), c)) in values[WINDOW..].iter_mut().zip(a.zip(b).zip(c)) {
            let [a, b, c] = [a, b, c].map(|around| around.iter().sum::<f32>());
            *value = (a + c - ((a - c) * (a - c) + 4.0 * b * b).sqrt()) / 2.0;
        }
        row(y - WINDOW, &values);
    }
}

/// Stores the differences of grey levels.
fn subtract(to: &mut [f32], from: &[u8], less: &[u8]) {
    let both = from.iter().zip(less);
    to.iter_mut().zip(both).for_each(|(to, (&a, &b))| *to = f32::from(a) - f32::from(b));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn eigenvalues_are_those_of_the_sums_around_each_pixel() {
        let image = Image::from_fn(23, 19, |x, y| (x * x * 7 + y * y * 13 + x * y * 29) as u8);
        let grey = |x: usize, y: usize| f32::from(image.row(y)[x]);
        let expected = |x: usize, y: usize| {
            let (mut a, mut b, mut c) = (0.0, 0.0, 0.0);
            for (x, y) in (y - 2..=y + 2).flat_map(|y| (x - 2..=x + 2).map(move |x| (x, y))) {
                let inside = x > 0 && x < 22;
                let across = if inside { grey(x + 1, y) - grey(x - 1, y) } else { 0.0 };
                let down = if inside { grey(x, y + 1) - grey(x, y - 1) } else { 0.0 };
                (a, b, c) = (a + across * across, b + across * down, c + down * down);
            }
            (a + c - ((a - c) * (a - c) + 4.0 * b * b).sqrt()) / 2.0
        };
        let mut rows = Vec::new();
        smaller_eigenvalues(&image, |y, values| {
            rows.push(y);
            let all: Vec<f32> = (2..21).map(|x| expected(x, y)).collect();
            assert_eq!(values[2..21], all, "row {y}");
            assert!(values[..2].iter().chain(&values[21..]).all(|&value| value == 0.0));
        });
        assert_eq!(rows, (4..16).collect::<Vec<_>>());
    }
}
