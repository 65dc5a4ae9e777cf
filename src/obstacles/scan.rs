//! Distances by direction: the nearest obstacle of each bin of the horizontal directions, and what is known to be free.
//!
//! Each pixel is a ray from the left camera. A ray whose disparity is sure ends at a point; if that lies between the two
//! heights of the band and not beyond the far limit, the ray is *blocked*, else it sees *through*: it ends on the ground, above
//! everything that matters, or far away. Other rays are *unknown*. A bin holds the rays of its directions over all rows.
//!
//! * The bin has an obstacle where enough blocked rays agree within 1 px of disparity (module `nearest`), unless half of its
//!   rays are unknown at the left edge of the image, where the right camera does not see what is near.
//! * It is clear if no group of rays that could hide an obstacle fails to see through: in no window of adjacent rows, about
//!   five times as large as the smallest obstacle, as many rays as that obstacle has are unknown or blocked.
//! * Otherwise it is unknown.

use stereod_core::frame::{INVALID, Matched, StereoGeometry};
use stereod_core::obstacles::{Bin, Mount, Scan};

use crate::nearest::{Cells, Extent, PER_PX};

/// Code of a ray that is unknown, or sees through; others are the cell of a blocked one.
const NOT_KNOWN: u32 = u32::MAX;
const THROUGH: u32 = u32::MAX - 1;

/// Rays that point less ahead than this are in no bin: their direction hardly has a horizontal part.
const AHEAD: f64 = 0.05;

/// 2^23: the last place of a number from here to twice as much is a whole one.
const MANTISSA: f32 = 8_388_608.0;

/// The window that looks for holes is this many times as large as the smallest obstacle.
const WINDOW: u32 = 5;

/// Of larger images only every second, third ... row and column is looked at, such that about this many rays remain: those
/// of 640x480. Each counts for those that it stands for.
const RAYS: usize = 640 * 480;

/// What counts as an obstacle.
#[derive(Clone, Debug, PartialEq)]
pub struct Rules {
    /// Width of a bin in degrees.
    pub bin_deg: f64,
    /// Horizontal field in degrees, symmetric about the direction of the camera; `None`: all that it sees.
    pub field_deg: Option<f64>,
    /// Lower and upper height of what counts, in metres in the vehicle's axes.
    pub band_m: [f64; 2],
    /// The lower height rises by this angle with the distance, because the ground is not even and the attitude of the
    /// camera not exact.
    pub slope_deg: f64,
    /// Whether rays that rise must see through for a bin to be clear. Without them an obstacle is only found to be absent
    /// if it stands on the ground.
    pub overhangs: bool,
    /// Distance up to which obstacles count, in metres.
    pub far_m: f64,
    /// Smallest confidence of a sure pixel, from 0 to 255.
    pub confidence: u8,
    /// Number of pixels that must agree.
    pub pixels: u32,
}

/// A camera that is mounted such that no scan can be made.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
#[error(
    "a scan needs a camera that looks ahead: `mount.pitch_deg` and `mount.roll_deg` from -60 to 60, not {0} and {1}"
)]
pub struct NotAhead(pub f64, pub f64);

/// Makes scans of one rig.
#[derive(Debug)]
pub struct Scanner {
    rules: Rules,
    cells: Vec<Cells>,
    /// Disparities of the rays of a row, `INVALID` where they are not sure, and the rays' codes.
    values: Vec<i16>,
    codes: Vec<u32>,
    /// Every such row and column is looked at.
    step: usize,
    holes: Vec<Holes>,
    /// Sine and cosine of the bins' edges, from the leftmost one on.
    turns: Vec<(f64, f64)>,
    /// Left edge of each bin in the row, in pixels, from the leftmost bin on, and the end of the last.
    edges: Vec<usize>,
}

/// The rays of a pair: how pixels become directions and distances.
#[derive(Clone, Copy, Debug)]
pub struct Rays {
    /// Rotation from the optical to the vehicle's axes, by rows.
    turn: [[f64; 3]; 3],
    geometry: StereoGeometry,
    pub origin_m: [f64; 3],
}

/// Direction of the rays of a row as linear functions of the column: value at column 0, and change a column.
#[derive(Clone, Copy, Debug)]
struct RowRays {
    ahead: [f32; 2],
    left: [f32; 2],
    up: [f32; 2],
}

impl Rays {
    pub fn new(mount: &Mount, geometry: StereoGeometry) -> Self {
        Self { turn: mount.rotation(), geometry, origin_m: mount.position_m }
    }

    /// Returns the direction of a pixel's ray in the vehicle's axes, with 1 along the optical axis.
    pub fn direction(&self, x: f64, y: f64) -> [f64; 3] {
        let StereoGeometry { focal_px, centre_x_px, centre_y_px, .. } = self.geometry;
        let optical = [(x - centre_x_px) / focal_px, (y - centre_y_px) / focal_px, 1.0];
        self.turn.map(|row| row.iter().zip(optical).map(|(a, b)| a * b).sum())
    }

    fn row(&self, y: usize) -> RowRays {
        let start = self.direction(0.0, y as f64);
        let [ahead, left, up] = std::array::from_fn(|axis| {
            [start[axis] as f32, (self.turn[axis][0] / self.geometry.focal_px) as f32]
        });
        RowRays { ahead, left, up }
    }

    /// Returns the product of focal length and baseline, in pixels times metres.
    pub fn scale(&self) -> f64 {
        self.geometry.focal_px * self.geometry.baseline_m
    }

    /// Returns the disparity of points at infinity in pixels.
    pub fn at_infinity_px(&self) -> f64 {
        self.geometry.centre_x_px - self.geometry.right_centre_x_px
    }
}

/// Number of rays that do not see through in the last rows of a bin.
#[derive(Clone, Debug, Default)]
struct Holes {
    rows: std::collections::VecDeque<[u32; 2]>,
    /// Rays and those that do not see through, in `rows`.
    sums: [u32; 2],
    found: bool,
    /// Rays of all rows, and those that are unknown where the right camera does not see what is near.
    blind: [u32; 2],
    /// Rays that see through at the far limit's height.
    far: u32,
}

impl Holes {
    fn clear(&mut self) {
        self.rows.clear();
        *self = Self { rows: std::mem::take(&mut self.rows), ..Self::default() };
    }

    /// Adds a row's rays and those among them that do not see through.
    fn add(&mut self, row: [u32; 2], smallest: u32) {
        self.rows.push_back(row);
        (0..2).for_each(|i| self.sums[i] += row[i]);
        // The window shrinks from above, so it is never smaller than it should be.
        while let Some(first) = self.rows.front()
            && self.sums[0] - first[0] >= WINDOW * smallest
        {
            (0..2).for_each(|i| self.sums[i] -= first[i]);
            self.rows.pop_front();
        }
        self.found |= self.sums[1] >= smallest;
    }
}

impl Scanner {
    /// # Errors
    ///
    /// If the camera looks up or down.
    pub fn new(rules: Rules, mount: &Mount) -> Result<Self, NotAhead> {
        let [roll, pitch, _] = mount.attitude_deg;
        if roll.abs() > 60.0 || pitch.abs() > 60.0 {
            return Err(NotAhead(pitch, roll));
        }
        Ok(Self {
            rules,
            cells: Vec::new(),
            values: Vec::new(),
            codes: Vec::new(),
            step: 1,
            holes: Vec::new(),
            turns: Vec::new(),
            edges: Vec::new(),
        })
    }

    /// Returns the scan of a pair whose cameras are known.
    pub fn scan(&mut self, matched: &Matched, mount: &Mount, geometry: StereoGeometry) -> Scan {
        let map = &matched.disparity;
        let (width, height) = (map.width(), map.height());
        let rays = Rays::new(mount, geometry);
        let most = (f64::from(map.range().max()) - rays.at_infinity_px()).max(1.0);
        let far_m = self.rules.far_m;
        let mut scan = self.directions(&rays, mount.attitude_deg[2], (width, height));
        (scan.near_m, scan.far_m) = (rays.scale() / most, far_m);
        let bins = scan.bins.len();
        let cells = (most * PER_PX as f64).ceil() as usize + 1;
        // Inclined rays are nearer in the horizontal plane than along the axis, so their cells reach further.
        self.cells.resize_with(bins, Cells::default);
        self.cells.iter_mut().for_each(|bin| bin.clear(2 * cells));
        self.holes.resize_with(bins, Holes::default);
        self.holes.iter_mut().for_each(Holes::clear);
        self.step = ((width * height) as f64 / RAYS as f64).sqrt().round().max(1.0) as usize;
        self.codes.resize(width.div_ceil(self.step), 0);
        let blind = (map.range().max().max(0) as usize).div_ceil(self.step);
        let edge = |edge: usize| scan.first_deg + scan.bin_deg * edge as f64;
        self.turns.clear();
        self.turns.extend((0..=bins).rev().map(|bin| edge(bin).to_radians().sin_cos()));
        for y in (self.step / 2..height).step_by(self.step) {
            let row = rays.row(y);
            self.find_edges(&rays, y, width);
            let values = &map.values()[y * width..][..width];
            let sure = matched.confidence.as_ref().map(|it| &it.pixels()[y * width..][..width]);
            self.sample(values, sure);
            self.classify(&row, &rays);
            self.collect(&rays, &scan, y, blind);
        }
        let extent = Extent { scale: rays.scale(), pixels: self.rules.pixels, grows: false };
        for bin in 0..bins {
            let angle = scan.direction_deg(bin).to_radians();
            let nearest = self.cells[bin].nearest(&extent, |distance, rise| {
                let [x, y, z] = rays.origin_m;
                [x + distance * angle.cos(), y + distance * angle.sin(), z + distance * rise]
            });
            let holes = &self.holes[bin];
            scan.bins[bin] = match nearest {
                Some(nearest) if 2 * holes.blind[1] < holes.blind[0].max(1) => {
                    Bin::Obstacle(nearest)
                }
                None if !holes.found && holes.far >= self.rules.pixels => Bin::Clear,
                Some(_) | None => Bin::Unknown,
            };
        }
        scan
    }

    /// Returns a scan without distances: the bins that the camera sees, with edges at multiples of their width.
    fn directions(&self, rays: &Rays, yaw_deg: f64, (width, height): (usize, usize)) -> Scan {
        let Rules { bin_deg, field_deg, .. } = self.rules;
        let [right, left] = [0, 2].map(|side| {
            let x = (2 - side) as f64 / 2.0 * width as f64 - 0.5;
            let rows = [0.0, height as f64 / 2.0, height as f64 - 1.0];
            let angle = rows.map(|y| {
                let [ahead, left, _] = rays.direction(x, y);
                let angle = left.atan2(ahead).to_degrees() - yaw_deg;
                (angle + 540.0).rem_euclid(360.0) - 180.0
            });
            let widest = if side == 0 { f64::min } else { f64::max };
            angle.into_iter().reduce(widest).unwrap_or_default()
        });
        let half = field_deg.map_or(f64::INFINITY, |field| field / 2.0);
        let first = ((yaw_deg + right.max(-half)) / bin_deg).round();
        let last = ((yaw_deg + left.min(half)) / bin_deg).round();
        let bins = vec![Bin::Unknown; (last - first).max(1.0) as usize];
        Scan { first_deg: first * bin_deg, bin_deg, bins, near_m: 0.0, far_m: 0.0 }
    }

    /// Finds the columns between which a row's rays are in each bin.
    fn find_edges(&mut self, rays: &Rays, y: usize, width: usize) {
        let [start, step] = [0.0, 1.0].map(|x| rays.direction(x, y as f64));
        let change = [step[0] - start[0], step[1] - start[1]];
        self.edges.clear();
        let mut least = 0;
        for &(sin, cos) in &self.turns {
            // Where the ray is parallel to the edge's direction, and ahead of it.
            let slope = change[1] * cos - change[0] * sin;
            let x = (start[0] * sin - start[1] * cos) / slope;
            let is_ahead =
                (start[0] + x * change[0]) * cos + (start[1] + x * change[1]) * sin > AHEAD;
            let x = if is_ahead && x.is_finite() { x } else { width as f64 };
            least = (x.ceil().clamp(0.0, width as f64) as usize).max(least);
            self.edges.push(least);
        }
    }

    /// Takes the rays of a row that are looked at.
    fn sample(&mut self, values: &[i16], sure: Option<&[u8]>) {
        let (step, least) = (self.step, self.rules.confidence);
        self.values.clear();
        let values = values.iter().step_by(step);
        match sure {
            Some(sure) => self.values.extend(
                values
                    .zip(sure.iter().step_by(step))
                    .map(|(&value, &sure)| if sure >= least { value } else { INVALID }),
            ),
            None => self.values.extend(values),
        }
    }

    /// Writes the code of each ray of a row. Its loop has no branches and no integers but of 32 bits, so it is compiled to
    /// vectors.
    fn classify(&mut self, row: &RowRays, rays: &Rays) {
        let Rules { band_m, slope_deg, far_m, .. } = self.rules;
        let [low, high] = band_m.map(|height| (height - rays.origin_m[2]) as f32);
        let (slope, far) = (slope_deg.to_radians().tan() as f32, far_m as f32);
        let (scale, infinity) = (rays.scale() as f32, rays.at_infinity_px() as f32);
        let last = self.cells.first().map_or(0, |cells| cells.len().saturating_sub(1)) as f32;
        let step = self.step as f32;
        for (place, (code, &value)) in self.codes.iter_mut().zip(&self.values).enumerate() {
            let x = place as i32 as f32 * step;
            let [ahead, left, up] =
                [row.ahead, row.left, row.up].map(|[start, step]| start + step * x);
            let flat = (ahead * ahead + left * left).sqrt();
            let parallax = f32::from(value) * (1.0 / PER_PX as f32) - infinity;
            // Heights and distances times the parallax, which needs no division: a ray at infinity is not blocked.
            let is_blocked = (parallax > 0.0)
                & (scale * up >= low * parallax + slope * scale * flat)
                & (scale * up <= high * parallax)
                & (scale * flat <= far * parallax);
            // A number from 0 to `last`, rounded as it becomes the mantissa.
            let cell = (parallax * PER_PX as f32 / flat).max(0.0).min(last) + MANTISSA;
            let known = if is_blocked { cell.to_bits() - MANTISSA.to_bits() } else { THROUGH };
            *code = if value == INVALID { NOT_KNOWN } else { known };
        }
    }

    /// Adds the rays of a row to their bins. Left of the place `blind` the right camera does not see what is near.
    fn collect(&mut self, rays: &Rays, scan: &Scan, y: usize, blind: usize) {
        let Rules { band_m, slope_deg, overhangs, pixels, .. } = self.rules;
        let slope = slope_deg.to_radians().tan();
        let bins = scan.bins.len();
        for (place, edges) in self.edges.windows(2).enumerate() {
            let [begin, end] = [edges[0], edges[1]].map(|edge| edge.div_ceil(self.step));
            if begin == end {
                continue;
            }
            let bin = bins - 1 - place;
            let middle = ((begin + end - 1) * self.step) as f64 / 2.0;
            let [ahead, left, up] = rays.direction(middle, y as f64);
            let flat = (ahead * ahead + left * left).sqrt();
            let (weight, rise) = ((self.step * self.step) as u32, up / flat);
            let cells = &mut self.cells[bin];
            let mut through = 0;
            for &code in &self.codes[begin..end] {
                if code < THROUGH {
                    cells.add(code as usize, weight, rise as f32);
                }
                through += u32::from(code == THROUGH);
            }
            through *= weight;
            if rise > 0.0 && !overhangs {
                continue;
            }
            let height = |distance: f64| rays.origin_m[2] + rise * distance;
            let (near, far) = (height(scan.near_m), height(scan.far_m));
            let [low_near, low_far] =
                [scan.near_m, scan.far_m].map(|distance| band_m[0] + slope * distance);
            // Rays that are outside the band all the way say nothing of it.
            if near.min(far) <= band_m[1] && (near >= low_near || far >= low_far) {
                let at_edge = &self.codes[begin.min(blind)..end.min(blind)];
                let blind_here = at_edge.iter().filter(|&&code| code == NOT_KNOWN).count() as u32;
                let all = (end - begin) as u32 * weight;
                let holes = &mut self.holes[bin];
                holes.add([all, all - through], pixels);
                holes.blind[0] += all;
                holes.blind[1] += blind_here * weight;
            }
            if (low_far..=band_m[1]).contains(&far) {
                self.holes[bin].far += through;
            }
        }
    }
}

#[cfg(test)]
mod scenes;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::world::{HEIGHT, World, forget, geometry, mount};

    pub(super) fn rules() -> Rules {
        Rules {
            bin_deg: 2.0,
            field_deg: None,
            band_m: [0.1, 2.0],
            slope_deg: 0.0,
            overhangs: true,
            far_m: 15.0,
            confidence: 0,
            pixels: 20,
        }
    }

    fn scan_of(matched: &Matched, mount: &Mount) -> Scan {
        Scanner::new(rules(), mount).unwrap().scan(matched, mount, geometry())
    }

    /// The bin that holds this direction.
    pub(super) fn toward(scan: &Scan, degrees: f64) -> Bin {
        scan.bins[((degrees - scan.first_deg) / scan.bin_deg).floor() as usize]
    }

    pub(super) fn distance(bin: Bin) -> f64 {
        match bin {
            Bin::Obstacle(nearest) => nearest.distance_m,
            Bin::Clear | Bin::Unknown => panic!("{bin:?}"),
        }
    }

    const WALL: [[f64; 3]; 2] = [[5.0, -50.0, 0.0], [6.0, 50.0, 3.0]];

    #[test]
    fn a_wall_is_farther_at_its_sides() {
        let world = World { boxes: vec![WALL], has_ground: true, noise_px: 0.0 };
        let scan = scan_of(&world.seen(&mount()), &mount());
        assert_eq!(scan.bins.len(), 32);
        for bin in 1..31 {
            let true_m = 5.0 / scan.direction_deg(bin).to_radians().cos();
            let found = distance(scan.bins[bin]);
            assert!((found - true_m).abs() < 0.02 * true_m, "{bin}: {found}, not {true_m}");
        }
    }

    #[test]
    fn what_is_left_in_the_image_is_on_the_left() {
        let post = [[4.0, 1.0, 0.0], [4.3, 1.3, 2.0]];
        let world = World { boxes: vec![post], has_ground: true, noise_px: 0.0 };
        let scan = scan_of(&world.seen(&mount()), &mount());
        let (direction, nearest) = scan.nearest().unwrap();
        assert!((14.0..19.0).contains(&direction), "{direction}");
        assert!((nearest.position_m[1] - 1.15).abs() < 0.15, "{nearest:?}");
        assert!((nearest.position_m[2] - 0.9).abs() < 0.3, "{nearest:?}");
        assert_eq!(toward(&scan, -15.0), Bin::Clear);
        assert_eq!(toward(&scan, 0.5), Bin::Clear);
    }

    #[test]
    fn empty_ground_is_clear_and_a_hole_is_not() {
        let world = World { has_ground: true, ..World::default() };
        let mut matched = world.seen(&mount());
        let scan = scan_of(&matched, &mount());
        assert!(scan.bins.iter().all(|bin| *bin == Bin::Clear), "{:?}", scan.bins);
        // A hole as large as the smallest obstacle.
        forget(&mut matched, 160..165, 130..135);
        let scan = scan_of(&matched, &mount());
        assert_eq!(toward(&scan, -0.5), Bin::Unknown);
        assert_eq!(toward(&scan, 5.0), Bin::Clear);
        // Holes that can hide nothing are none.
        let mut matched = world.seen(&mount());
        (0..HEIGHT).step_by(11).for_each(|y| forget(&mut matched, 100..102, y..y + 1));
        assert!(scan_of(&matched, &mount()).bins.iter().all(|bin| *bin == Bin::Clear));
    }

    #[test]
    fn an_obstacle_beside_a_hole_is_still_there() {
        let world = World { boxes: vec![WALL], has_ground: true, noise_px: 0.0 };
        let mut matched = world.seen(&mount());
        forget(&mut matched, 0..320, 0..110);
        let found = distance(toward(&scan_of(&matched, &mount()), 0.5));
        assert!((found - 5.0).abs() < 0.1, "{found}");
    }

    #[test]
    fn what_the_right_camera_cannot_see_is_not_taken_for_what_is_behind() {
        let world = World { boxes: vec![WALL], has_ground: true, noise_px: 0.0 };
        let mut matched = world.seen(&mount());
        // The first 40 columns: a thing that is nearer than 1.25 m would be out of the right camera's view.
        forget(&mut matched, 0..40, 0..150);
        let scan = scan_of(&matched, &mount());
        assert_eq!(toward(&scan, 30.0), Bin::Unknown);
        assert!((distance(toward(&scan, 20.0)) - 5.3).abs() < 0.1);
        // At the right edge it sees more than the left one.
        let mut matched = world.seen(&mount());
        forget(&mut matched, 280..320, 0..150);
        assert!(distance(toward(&scan_of(&matched, &mount()), -30.0)) < 6.0);
    }

    #[test]
    fn without_the_horizon_nothing_is_clear() {
        let down = Mount { attitude_deg: [0.0, 40.0, 0.0], ..mount() };
        let world = World { has_ground: true, ..World::default() };
        let scan = scan_of(&world.seen(&down), &down);
        assert!(scan.bins.iter().all(|bin| *bin == Bin::Unknown), "{:?}", scan.bins);
    }

    #[test]
    fn specks_are_no_obstacles_and_what_is_above_the_band_is_none() {
        let world = World {
            boxes: vec![[[3.0, -9.0, 2.2], [4.0, 9.0, 3.0]]],
            has_ground: true,
            noise_px: 0.0,
        };
        let mut matched = world.seen(&mount());
        let values = matched.disparity.values_mut();
        (0..19).for_each(|i| values[(100 + i) * 320 + 160] = 16 * 25);
        let scan = scan_of(&matched, &mount());
        assert!(!scan.bins.iter().any(|bin| matches!(bin, Bin::Obstacle(_))), "{:?}", scan.bins);
    }

    #[test]
    fn cameras_that_look_down_are_refused() {
        let down = Mount { attitude_deg: [0.0, 61.0, 0.0], ..mount() };
        assert!(Scanner::new(rules(), &down).unwrap_err().to_string().contains("mount.pitch_deg"));
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

        /// However the camera is mounted, a pillar has its distance, and nothing nearer is found.
        #[test]
        fn the_mount_does_not_change_the_world(
            roll in -15.0..15.0f64,
            pitch in -10.0..15.0f64,
            yaw in -180.0..180.0f64,
            height in 0.5..1.5f64,
            away in 2.0..8.0f64,
        ) {
            let mount = Mount { position_m: [0.3, -0.2, height], attitude_deg: [roll, pitch, yaw] };
            let (sin, cos) = yaw.to_radians().sin_cos();
            let centre = [0.3 + away * cos, -0.2 + away * sin];
            let pillar = [[centre[0] - 0.2, centre[1] - 0.2, 0.0], [centre[0] + 0.2, centre[1] + 0.2, 2.0]];
            let world = World { boxes: vec![pillar], has_ground: true, noise_px: 0.1 };
            let scan = scan_of(&world.seen(&mount), &mount);
            let (direction, nearest) = scan.nearest().expect("a pillar");
            let off = (direction - yaw + 540.0).rem_euclid(360.0) - 180.0;
            prop_assert!(off.abs() < 9.0, "{direction} for {yaw}");
            // Its faces are 0.2 to 0.28 m before its axis.
            let true_m = away - 0.24;
            prop_assert!((nearest.distance_m - true_m).abs() < 0.08 + 0.03 * true_m, "{nearest:?} for {true_m}");
            let to_axis = (nearest.position_m[0] - centre[0]).hypot(nearest.position_m[1] - centre[1]);
            prop_assert!(to_axis < 0.5 + 0.03 * away, "{nearest:?} for {centre:?}");
        }
    }
}
