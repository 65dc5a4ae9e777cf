//! The path of the vehicle from above, for window and page: its last part as a polyline of few points.
//!
//! Places are in metres in the frame of the vehicle at the first pair: across to the right and down the screen, so
//! that ahead is up.

use std::collections::VecDeque;

use crate::followed::in_words;
use stereod_core::pose::Odometry;

/// Length in metres of the path that is shown.
const REACH_M: f64 = 300.0;

/// Most points of the polyline, so that memory stays bounded however the path winds.
const MOST: usize = 512;

/// Smallest side in metres of the square that is shown, so that noise at rest does not fill it.
const LEAST_SIDE_M: f64 = 4.0;

/// Least distance between points as a share of the square's side.
const STEP: f64 = 0.01;

/// Free room around the path as a share of its extent.
const AROUND: f64 = 0.2;

/// A point of the polyline.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    pub at: [f64; 2],
    /// Set if no line leads here: the path was broken, or begins.
    pub begins: bool,
    /// Length of the path until here in metres.
    path_m: f64,
    breaks: u32,
}

/// The vehicle now; while it is lost, as it was found last.
#[derive(Clone, Debug, PartialEq)]
pub struct Vehicle {
    pub at: [f64; 2],
    /// Direction of its x axis in degrees, clockwise from up.
    pub direction_deg: f64,
    /// Path and drift, or why it is lost.
    pub text: String,
    pub is_lost: bool,
    path_m: f64,
}

/// The path so far.
#[derive(Clone, Debug)]
pub struct Trail {
    points: VecDeque<Point>,
    /// Number of the oldest point among all that there ever were.
    first: u64,
    /// Least distance between points in metres.
    step_m: f64,
    vehicle: Option<Vehicle>,
}

/// The square that is shown: left and upper edge, and side in metres.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Square {
    pub left: f64,
    pub top: f64,
    pub side_m: f64,
}

impl Default for Trail {
    fn default() -> Self {
        let step_m = STEP * LEAST_SIDE_M;
        Self { points: VecDeque::new(), first: 0, step_m, vehicle: None }
    }
}

impl Trail {
    /// Adds the odometry of the next pair.
    pub fn add(&mut self, odometry: &Odometry) {
        let (text, is_lost) = in_words(odometry);
        let pose = odometry.of_vehicle().pose;
        let ([ahead, left, _], [x, y, _]) = (pose.position_m, pose.rotation);
        let (path_m, breaks) = (odometry.path_m, odometry.breaks);
        let direction_deg = (-y[0]).atan2(x[0]).to_degrees();
        let at = [-left, -ahead];
        if !at.iter().all(|metres| metres.is_finite()) {
            return;
        }
        let before = self.vehicle.replace(Vehicle { at, direction_deg, text, is_lost, path_m });
        // A shorter path is another one, in another frame.
        if before.is_some_and(|before| path_m < before.path_m) {
            self.first += self.points.len() as u64;
            self.points.clear();
        }
        if is_lost {
            return;
        }
        let last = self.points.back();
        let begins = last.is_none_or(|last| last.breaks != breaks);
        if begins || last.is_none_or(|last| distance(last.at, at) >= self.step_m) {
            self.points.push_back(Point { at, begins, path_m, breaks });
            self.forget();
        }
        self.fit();
    }

    pub fn vehicle(&self) -> Option<&Vehicle> {
        self.vehicle.as_ref()
    }

    pub fn points(&self) -> impl Iterator<Item = &Point> {
        self.points.iter()
    }

    /// Returns the number after that of the newest point.
    pub fn end(&self) -> u64 {
        self.first + self.points.len() as u64
    }

    /// Returns the changes for a viewer that knows the points before the number `known`: how many of them, the last
    /// ones, it keeps, and those to add.
    pub fn since(&self, known: u64) -> (usize, impl Iterator<Item = &Point>) {
        let kept = known.clamp(self.first, self.end()) - self.first;
        (kept as usize, self.points.iter().skip(kept as usize))
    }

    /// Returns the square around the path.
    pub fn square(&self) -> Square {
        let places = self.points.iter().map(|point| point.at);
        let places = || places.clone().chain(self.vehicle.iter().map(|vehicle| vehicle.at));
        let [across, down] = [0, 1].map(|axis| {
            let all = places().map(|at| at[axis]);
            let ends = all.fold(None, |ends: Option<[f64; 2]>, at| {
                let [low, high] = ends.unwrap_or([at; 2]);
                Some([low.min(at), high.max(at)])
            });
            ends.unwrap_or_default()
        });
        let extent = (across[1] - across[0]).max(down[1] - down[0]);
        let side_m = (extent * (1.0 + AROUND)).max(LEAST_SIDE_M);
        let [left, top] = [across, down].map(|[low, high]| (low + high - side_m) / 2.0);
        Square { left, top, side_m }
    }

    /// Drops what is too long ago.
    fn forget(&mut self) {
        let newest = self.points.back().map_or(0.0, |point| point.path_m);
        let is_old = |point: &Point| newest - point.path_m > REACH_M;
        while self.points.len() > MOST || self.points.front().is_some_and(is_old) {
            self.points.pop_front();
            self.first += 1;
        }
        if let Some(oldest) = self.points.front_mut() {
            oldest.begins = true;
        }
    }

    /// Fits the distance between points to the square. The distance is a power of two of the least one, so that
    /// points are rarely thinned.
    fn fit(&mut self) {
        let least = STEP * self.square().side_m;
        while self.step_m > 4.0 * least {
            self.step_m /= 2.0;
        }
        if self.step_m >= least {
            return;
        }
        while self.step_m < least {
            self.step_m *= 2.0;
        }
        // All points get new numbers, so that every viewer takes the thinned path.
        self.first = self.end();
        let (step_m, mut kept) = (self.step_m, None);
        self.points.retain(|point| {
            let is_far = kept.is_none_or(|before| distance(before, point.at) >= step_m);
            if is_far || point.begins {
                kept = Some(point.at);
            }
            is_far || point.begins
        });
    }
}

impl Square {
    /// Returns a place as shares of the side, from the left and from the top.
    pub fn share_of(&self, [across, down]: [f64; 2]) -> [f64; 2] {
        [across - self.left, down - self.top].map(|metres| metres / self.side_m)
    }

    /// Returns the length of a scale bar in metres: the largest of 1, 2, 5, 10 and so on within a third of the side.
    pub fn bar_m(&self) -> f64 {
        let limit = self.side_m / 3.0;
        let power = 10f64.powf(limit.log10().floor());
        power * [5.0, 2.0].into_iter().find(|step| step * power <= limit).unwrap_or(1.0)
    }
}

fn distance(a: [f64; 2], b: [f64; 2]) -> f64 {
    (a[0] - b[0]).hypot(a[1] - b[1])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::followed::tests::odometry;
    use stereod_core::pose::{Lost, Pose};

    /// Follows a camera that looks ahead through places in its optical axes.
    fn follow(trail: &mut Trail, places: impl IntoIterator<Item = [f64; 3]>, breaks: u32) {
        for place in places {
            let path_m = trail.vehicle().map_or(0.0, |vehicle| {
                vehicle.path_m + distance(vehicle.at, [place[0], -place[2]])
            });
            trail.add(&Odometry { path_m, breaks, ..odometry(place, None) });
        }
    }

    fn ahead(metres: usize) -> impl Iterator<Item = [f64; 3]> {
        (0..=10 * metres).map(|tenth| [0.0, 0.0, tenth as f64 / 10.0])
    }

    #[test]
    fn ahead_is_up_and_right_is_right() {
        let mut trail = Trail::default();
        follow(&mut trail, [[0.0; 3], [1.0, 0.0, 3.0]], 0);
        let square = trail.square();
        assert_eq!(square, Square { left: -1.5, top: -3.5, side_m: 4.0 });
        let shares: Vec<_> = trail.points().map(|point| square.share_of(point.at)).collect();
        assert_eq!(shares, [[0.375, 0.875], [0.625, 0.125]]);
        assert_eq!(trail.vehicle().unwrap().direction_deg, 0.0);
        // A turn to the right: about y, which points down.
        let rotation = [[0.0, 0.0, 1.0], [0.0, 1.0, 0.0], [-1.0, 0.0, 0.0]];
        let pose = Pose { rotation, position_m: [1.0, 0.0, 3.0] };
        trail.add(&Odometry { pose, ..odometry([0.0; 3], None) });
        assert!((trail.vehicle().unwrap().direction_deg - 90.0).abs() < 1e-9);
    }

    #[test]
    fn points_are_a_share_of_the_square_apart_and_old_ones_go() {
        let mut trail = Trail::default();
        follow(&mut trail, ahead(1000), 0);
        let square = trail.square();
        assert!((REACH_M..1.3 * REACH_M).contains(&square.side_m), "{square:?}");
        let places: Vec<_> = trail.points().map(|point| point.at).collect();
        assert!((40..=101).contains(&places.len()), "{}", places.len());
        let gaps = places.windows(2).map(|pair| distance(pair[0], pair[1]));
        assert!(
            gaps.clone().all(|gap| gap >= STEP * square.side_m),
            "{:?}",
            gaps.collect::<Vec<_>>()
        );
        assert_eq!(trail.points().filter(|point| point.begins).count(), 1);
    }

    #[test]
    fn memory_is_bounded_for_a_vehicle_that_circles() {
        let mut trail = Trail::default();
        let circle = (0..4000).map(|step| {
            let (sin, cos) = (step as f64 / 40.0).sin_cos();
            [2.0 * sin, 0.0, 2.0 * cos]
        });
        follow(&mut trail, circle, 0);
        assert_eq!(trail.points().count(), MOST);
        // One that is lost again and again, too.
        for breaks in 1..1000 {
            follow(&mut trail, [[0.0; 3]], breaks);
        }
        assert_eq!(trail.points().count(), MOST);
    }

    #[test]
    fn a_break_is_a_gap_and_a_lost_vehicle_stays() {
        let mut trail = Trail::default();
        follow(&mut trail, ahead(2), 0);
        let before = trail.points().count();
        let lost = odometry([0.0, 0.0, 2.0], Some(Lost::Unseen));
        trail.add(&Odometry { path_m: 2.0, breaks: 1, ..lost });
        assert_eq!(trail.points().count(), before);
        let vehicle = trail.vehicle().unwrap();
        assert_eq!((vehicle.is_lost, &*vehicle.text), (true, "lost: too few points seen again"));
        follow(&mut trail, [[0.0, 0.0, 2.01]], 1);
        let begins: Vec<_> = trail.points().map(|point| point.begins).collect();
        assert_eq!(
            (begins.len(), begins.iter().filter(|begins| **begins).count()),
            (before + 1, 2)
        );
        assert!(begins[0] && begins[before]);
    }

    #[test]
    fn a_viewer_gets_only_what_it_does_not_have() {
        let mut trail = Trail::default();
        let mut known: (u64, Vec<[f64; 2]>) = Default::default();
        let (mut whole, mut sent) = (0, 0);
        // Every third pair, over thinning, forgetting and another path.
        for (number, place) in ahead(700).chain(ahead(20)).enumerate() {
            let path_m = place[2];
            trail.add(&Odometry { path_m, ..odometry(place, None) });
            if number % 3 == 0 {
                let (kept, new) = trail.since(known.0);
                let new: Vec<_> = new.map(|point| point.at).collect();
                whole += usize::from(kept == 0);
                sent += new.len();
                let old = known.1.split_off(known.1.len() - kept);
                known = (trail.end(), [old, new].concat());
                let all: Vec<_> = trail.points().map(|point| point.at).collect();
                assert_eq!(known.1, all, "{number}");
            }
        }
        assert!(whole < 20, "{whole}");
        assert!(sent < 1200, "{sent}");
        let (kept, late) = trail.since(0);
        assert_eq!((kept, late.count()), (0, trail.points().count()));
    }

    #[test]
    fn scale_bars_have_round_lengths() {
        let bar = |side_m| Square { left: 0.0, top: 0.0, side_m }.bar_m();
        assert_eq!([4.0, 6.0, 15.0, 29.0, 30.0, 360.0].map(bar), [1.0, 2.0, 5.0, 5.0, 10.0, 100.0]);
    }

    #[test]
    fn places_without_numbers_change_nothing() {
        let mut trail = Trail::default();
        follow(&mut trail, [[0.0; 3]], 0);
        trail.add(&odometry([f64::NAN, 0.0, 0.0], None));
        assert_eq!(trail.vehicle().unwrap().at, [0.0, 0.0]);
    }
}
