//! Scans of several cameras as one ring of distances about the vehicle's origin.

use stereod_core::obstacles::{Bin, Nearest, Obstacles, Scan};

/// Directions of the message OBSTACLE_DISTANCE: all that it has room for.
pub const ELEMENTS: usize = 72;
/// Width of an element in degrees. Element i is centred on `i * ELEMENT_DEG` degrees, clockwise from ahead.
pub const ELEMENT_DEG: f64 = 5.0;

/// What is known of one of the directions around the vehicle.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Reading {
    /// Horizontal distance in metres from the vehicle's origin to the nearest obstacle.
    Obstacle(f64),
    /// Nothing stands between the [`limits`].
    Clear,
    /// Neither: something may be there.
    Unknown,
}

/// Distances in metres from the vehicle's origin between which [`Reading::Clear`] holds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Limits {
    pub min_m: f64,
    pub max_m: f64,
}

/// Tolerance in degrees by which what merely touches an element is kept out of it.
const TOUCH_DEG: f64 = 1e-6;
/// Gap in metres between two bins that is due to rounding.
const TOUCH_M: f64 = 1e-6;
/// Narrowest and widest bin in degrees that is taken.
const BIN_DEG: std::ops::RangeInclusive<f64> = 0.05..=90.0;
/// Angles at which the outline of an obstacle in a bin is followed.
const OUTLINE: usize = 8;

/// Reports whether the numbers of a scan can be those of a camera. Others are not merged.
pub fn is_usable(obstacles: &Obstacles) -> bool {
    let Scan { first_deg, bin_deg, bins, near_m, far_m } = &obstacles.scan;
    let [x, y, _] = obstacles.mount.position_m;
    [*first_deg, x, y, *far_m].iter().all(|number| number.is_finite())
        && BIN_DEG.contains(bin_deg)
        && bin_deg * bins.len() as f64 <= 360.0 + TOUCH_DEG
        && *near_m >= 0.0
        && near_m < far_m
}

/// Returns the distances between which the cameras together look about the vehicle's origin; `None` without a usable
/// scan.
///
/// A camera beside the origin is blind further from it than its near limit, and sees less far into some directions. The
/// least distance is that of the worst camera, so no camera calls clear what it cannot see. The greatest is that of the
/// best, so no obstacle is out of range; directions that only others see are clear to no such distance, thus unknown.
pub fn limits(all: &[&Obstacles]) -> Option<Limits> {
    let views = views(all);
    let min_m = views.iter().map(|view| view.scan.near_m + view.offset_m()).reduce(f64::max)?;
    let max_m = views.iter().map(|view| view.scan.far_m - view.offset_m()).reduce(f64::max)?;
    Some(Limits { min_m, max_m })
}

/// Returns the distances around the vehicle's origin, clockwise from ahead, as the cameras of `all` see them together.
///
/// Obstacles are where their pixels are from the nearest 5 % to the median: the whole patch between both is marked in
/// each direction that it touches, at the distance of its point next to the vehicle. Braking for the median would be
/// too late for the nearest part.
///
/// A direction is clear if rays from the origin, dense enough to meet each bin, pass through nothing but space that
/// some camera has looked through, all the way between the [`limits`]. Obstacles come first, the nearest of them.
pub fn around_vehicle(all: &[&Obstacles]) -> [Reading; ELEMENTS] {
    let views = views(all);
    let mut readings = [Reading::Unknown; ELEMENTS];
    for view in &views {
        for (bin, state) in view.scan.bins.iter().enumerate() {
            if let Bin::Obstacle(nearest) = state {
                view.mark(bin, nearest, &mut readings);
            }
        }
    }
    let Some(limits) = limits(all) else { return readings };
    for (element, reading) in readings.iter_mut().enumerate() {
        if *reading == Reading::Unknown && is_clear(&views, element, limits) {
            *reading = Reading::Clear;
        }
    }
    readings
}

fn views<'a>(all: &[&'a Obstacles]) -> Vec<View<'a>> {
    let usable = all.iter().filter(|obstacles| is_usable(obstacles));
    let view = |obstacles: &&'a Obstacles| {
        let [x, y, _] = obstacles.mount.position_m;
        View { scan: &obstacles.scan, at: [x, y] }
    };
    usable.map(view).collect()
}

/// A scan and where its camera is, in metres ahead and to the left of the vehicle's origin.
struct View<'a> {
    scan: &'a Scan,
    at: [f64; 2],
}

impl View<'_> {
    fn offset_m(&self) -> f64 {
        length(self.at)
    }

    /// Marks the directions into which the obstacle of a bin reaches.
    fn mark(&self, bin: usize, nearest: &Nearest, readings: &mut [Reading; ELEMENTS]) {
        let (near, far) = extent(nearest, self.scan.near_m);
        let right = self.scan.first_deg + self.scan.bin_deg * bin as f64;
        let clockwise = |ray, range| -azimuth_deg(self.point(ray, range));
        // The point of a ray that is next to the vehicle's origin. From there, the rest of the ray turns by less than
        // 90 degrees to each side.
        let next = |ray| (-dot(self.at, ray)).clamp(near, far);
        let first = direction(right);
        let start = clockwise(first, next(first));
        let mut closest = f64::INFINITY;
        let [mut turn, mut from, mut to] = [0.0_f64; 3];
        for step in 0..=OUTLINE {
            let ray = direction(right + self.scan.bin_deg * step as f64 / OUTLINE as f64);
            closest = closest.min(length(self.point(ray, next(ray))));
            turn += half_turn(clockwise(ray, next(ray)) - start - turn);
            for range in [near, next(ray), far] {
                let end = turn + half_turn(clockwise(ray, range) - start - turn);
                from = from.min(end);
                to = to.max(end);
            }
        }
        // Straight behind the camera, seen from the origin, an arc may come nearer than at these rays.
        let [x, y] = self.at;
        if (azimuth_deg([-x, -y]) - right).rem_euclid(360.0) <= self.scan.bin_deg {
            let offset = self.offset_m();
            closest = closest.min((near - offset).max(offset - far).max(0.0));
        }
        // An obstacle at the vehicle's origin is in all directions.
        let span = if closest > 0.0 { [start + from, start + to] } else { [0.0, 360.0] };
        for element in spanned(span) {
            let reading = &mut readings[element];
            let others = if let Reading::Obstacle(other) = reading { *other } else { closest };
            *reading = Reading::Obstacle(closest.min(others));
        }
    }

    fn point(&self, ray: [f64; 2], range: f64) -> [f64; 2] {
        [self.at[0] + ray[0] * range, self.at[1] + ray[1] * range]
    }

    /// Returns how far a bin is looked through, in metres from the camera.
    fn seen_m(&self, bin: usize) -> Option<f64> {
        match self.scan.bins.get(bin)? {
            Bin::Clear => Some(self.scan.far_m),
            Bin::Obstacle(nearest) => {
                Some(extent(nearest, self.scan.near_m).0.min(self.scan.far_m))
            }
            Bin::Unknown => None,
        }
    }

    /// Appends the parts of a ray from the vehicle's origin that this camera has looked through, as distances.
    ///
    /// Seen from the camera, a point that moves along the ray crosses the bins in order, and the part of the ray within
    /// a bin and a distance is an interval: both are convex.
    fn look_along(&self, ray: [f64; 2], limits: Limits, parts: &mut Vec<[f64; 2]>) {
        let seen = |distance: f64| {
            azimuth_deg([ray[0] * distance - self.at[0], ray[1] * distance - self.at[1]])
        };
        let (width, count) = (self.scan.bin_deg, self.scan.bins.len());
        let middle = self.scan.first_deg + width * count as f64 / 2.0;
        // In bins, from the right edge of the first. Behind the scan, where the count would jump, nothing is seen.
        let start = count as f64 / 2.0 + half_turn(seen(limits.min_m) - middle) / width;
        let turn = half_turn(seen(limits.max_m) - seen(limits.min_m)) / width;
        let end = start + turn;
        let is_round = (width * count as f64 - 360.0).abs() <= TOUCH_DEG;
        for bin in start.min(end).floor() as i64..=start.max(end).floor() as i64 {
            let index = if is_round { bin.rem_euclid(count as i64) } else { bin };
            let Some(range) = usize::try_from(index).ok().and_then(|index| self.seen_m(index))
            else {
                continue;
            };
            let crossing = |edge: i64, otherwise: f64| {
                let inside = (edge as f64 - start) * (edge as f64 - end) < 0.0;
                if inside { self.crossing_m(ray, edge, limits) } else { otherwise }
            };
            let (entered, left) = if turn >= 0.0 { (bin, bin + 1) } else { (bin + 1, bin) };
            let ends = [crossing(entered, limits.min_m), crossing(left, limits.max_m)];
            if let Some([from, to]) = self.within(ray, range) {
                parts.push([ends[0].max(from), ends[1].min(to)]);
            }
        }
    }

    /// Returns the distance from the vehicle's origin at which a ray crosses an edge between two bins.
    fn crossing_m(&self, ray: [f64; 2], edge: i64, limits: Limits) -> f64 {
        let edge = direction(self.scan.first_deg + self.scan.bin_deg * edge as f64);
        let distance = cross(self.at, edge) / cross(ray, edge);
        if distance.is_nan() { limits.max_m } else { distance.clamp(limits.min_m, limits.max_m) }
    }

    /// Returns the part of a ray from the vehicle's origin that is within a distance of the camera.
    fn within(&self, ray: [f64; 2], range: f64) -> Option<[f64; 2]> {
        let foot = dot(self.at, ray);
        let half = (foot * foot + range * range - dot(self.at, self.at)).sqrt();
        (!half.is_nan()).then_some([foot - half, foot + half])
    }
}

/// Returns the least and greatest distance in metres from the camera at which the obstacle of a bin is marked.
fn extent(nearest: &Nearest, near_m: f64) -> (f64, f64) {
    let sorted = |a: f64, b: f64| (a.min(b).max(0.0), a.max(b).max(0.0));
    match (nearest.nearest_m.is_finite(), nearest.distance_m.is_finite()) {
        (true, true) => sorted(nearest.nearest_m, nearest.distance_m),
        (true, false) => sorted(nearest.nearest_m, nearest.nearest_m),
        (false, true) => sorted(nearest.distance_m, nearest.distance_m),
        // Something is there, but nobody knows where: as near as can be seen.
        (false, false) => (near_m, near_m),
    }
}

fn is_clear(views: &[View<'_>], element: usize, limits: Limits) -> bool {
    if limits.min_m >= limits.max_m {
        return false;
    }
    // An unseen bin widens from its camera outwards and leaves an element through one of its sides, which are rays,
    // or at its far end, where the bin looks as wide as below. Between bins of several cameras, smaller islands may
    // remain.
    let narrowest = views
        .iter()
        .map(|view| view.scan.bin_deg * (1.0 - view.offset_m() / limits.max_m))
        .fold(ELEMENT_DEG, f64::min);
    let spacing = narrowest / if views.len() > 1 { 4.0 } else { 2.0 };
    // A camera as far off as it sees has no such width; rays could miss its bins.
    let rays = if spacing > 0.01 { (ELEMENT_DEG / spacing).ceil() as usize } else { return false };
    let first = -(element as f64 * ELEMENT_DEG) - ELEMENT_DEG / 2.0 + TOUCH_DEG;
    let step = (ELEMENT_DEG - 2.0 * TOUCH_DEG) / rays as f64;
    let mut parts = Vec::new();
    (0..=rays).all(|ray| {
        parts.clear();
        let ray = direction(first + step * ray as f64);
        views.iter().for_each(|view| view.look_along(ray, limits, &mut parts));
        is_covered(&mut parts, limits)
    })
}

/// Reports whether the parts of a ray leave no gap between the limits.
fn is_covered(parts: &mut [[f64; 2]], limits: Limits) -> bool {
    parts.sort_by(|a, b| a[0].total_cmp(&b[0]));
    let reached = parts.iter().fold(limits.min_m, |reached, [from, to]| {
        if *from <= reached + TOUCH_M { reached.max(*to) } else { reached }
    });
    reached + TOUCH_M >= limits.max_m
}

/// Returns the elements between two directions in degrees, clockwise from ahead.
fn spanned([from, to]: [f64; 2]) -> impl Iterator<Item = usize> {
    let nearest = |degrees: f64| (degrees / ELEMENT_DEG).round() as i64;
    let first = nearest(from + TOUCH_DEG);
    let last = nearest(to - TOUCH_DEG).clamp(first, first + ELEMENTS as i64 - 1);
    (first..=last).map(|element| element.rem_euclid(ELEMENTS as i64) as usize)
}

/// Returns the unit vector of a direction in degrees, positive to the left: ahead, left.
fn direction(degrees: f64) -> [f64; 2] {
    let (sin, cos) = degrees.to_radians().sin_cos();
    [cos, sin]
}

fn azimuth_deg([ahead, left]: [f64; 2]) -> f64 {
    left.atan2(ahead).to_degrees()
}

/// Returns the same angle from -180 up to, but not including, 180 degrees.
fn half_turn(degrees: f64) -> f64 {
    (degrees + 180.0).rem_euclid(360.0) - 180.0
}

fn length(a: [f64; 2]) -> f64 {
    a[0].hypot(a[1])
}

fn dot(a: [f64; 2], b: [f64; 2]) -> f64 {
    a[0] * b[0] + a[1] * b[1]
}

fn cross(a: [f64; 2], b: [f64; 2]) -> f64 {
    a[0] * b[1] - a[1] * b[0]
}
