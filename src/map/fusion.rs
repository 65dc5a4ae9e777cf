//! Fusion of pairs: their points enter voxels, and their rays carve the voxels that they see through.

use stereod_core::frame::Matched;
use stereod_core::obstacles::Mount;
use stereod_core::pose::{Pose, turned};

use crate::blocks::{Blocks, Measured};
use crate::free::{FreeCells, Viewpoint};
use crate::view::{BEHIND, Unusable, View};

/// Largest number of pixels of a pair that become points. A lattice of the pixels is taken from larger images, shifted
/// from pair to pair.
const POINTS: usize = 100_000;

/// Largest number of pixels of a pair whose rays sweep the grid, in the same way.
const RAYS: usize = 10_000;

/// Fewest pixels of a lattice that say how certain a pair's depths are.
const LEAST_MEASURED: usize = 100;

/// Largest standard deviation of a point's depth, in voxels. In a rendered room with voxels of 0.1 m, the points of
/// the map are then within 0.41 voxels of the surfaces (RMS); 1.0 gives 0.60, 0.5 gives 0.29 but a tenth less surface.
const LEAST_CERTAIN: f64 = 0.7;

/// Returns a side of voxels in metres with which half of the measured pixels of a pair are certain enough for the map: 1,
/// 2 or 5 times a power of ten. `None` without enough of them.
pub fn usual_voxel_m(matched: &Matched, least_confidence: u8) -> Option<f64> {
    let view = View::new(matched, &Pose::IDENTITY, least_confidence).ok()?;
    let ends = view.lattice(RAYS, 0).filter_map(|(x, y)| view.end(x, y));
    let mut sigmas_m: Vec<f64> = ends.map(|end| end.sigma_m).collect();
    if sigmas_m.len() < LEAST_MEASURED {
        return None;
    }
    let middle = sigmas_m.len() / 2;
    let least = *sigmas_m.select_nth_unstable_by(middle, f64::total_cmp).1 / LEAST_CERTAIN;
    let power = 10f64.powf(least.log10().floor());
    [1.0, 2.0, 5.0, 10.0].into_iter().map(|factor| factor * power).find(|side| *side >= least)
}

/// Choice of the points, and size of the map.
#[derive(Clone, Debug, PartialEq)]
pub struct Rules {
    /// Side of the voxels and of the grid's cells in metres.
    pub voxel_m: f64,
    /// Depth in metres up to which points are fused and voxels are carved.
    pub far_m: f64,
    /// Smallest confidence of the pixels that are used, from 2 to 255.
    pub least_confidence: u8,
    /// Greatest number of voxels, of about 100 bytes each, and of cells of the grid.
    pub voxels_max: usize,
    /// Lowest and highest height in metres at which things are obstacles in the grid: above the vehicle's origin at the
    /// nearest place of its path.
    pub band_m: [f64; 2],
    /// Place of the left camera on the vehicle.
    pub mount: Mount,
}

/// Result of fusing a pair.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Added {
    /// Points that were fused.
    pub points: u32,
    /// Points that were not: they are beyond `far_m`, or too uncertain for the voxels.
    pub far: u32,
    /// Voxels with points of this pair.
    pub voxels: u32,
    /// Voxels that were removed, because pairs see through them.
    pub carved: u32,
    /// Voxels and cells of the grid that were given up, because the map is full.
    pub given_up: [u32; 2],
}

/// Places that a rig has seen.
#[derive(Debug)]
pub struct Map {
    pub(crate) rules: Rules,
    pub(crate) blocks: Blocks,
    pub(crate) free: FreeCells,
    /// Part of the path, from 1.
    pub(crate) part: u32,
    /// Height of the vehicle's origin at the last pair, in metres.
    pub(crate) height_m: f64,
    /// Number of pairs.
    pair: u32,
}

impl Default for Rules {
    fn default() -> Self {
        Self {
            voxel_m: 0.1,
            far_m: 10.0,
            least_confidence: 128,
            voxels_max: 2_000_000,
            band_m: [0.2, 2.0],
            mount: Mount::default(),
        }
    }
}

impl Map {
    /// Creates an empty map.
    pub fn new(rules: Rules) -> Self {
        let blocks = Blocks::new(rules.voxel_m);
        let free = FreeCells::new(rules.voxel_m, rules.voxels_max);
        Self { rules, blocks, free, part: 1, height_m: 0.0, pair: 0 }
    }

    /// Fuses the disparity of a pair seen from `pose`: of the left camera, as its images are rectified, in the map's
    /// frame, which has the same optical axes (x to the right, y down, z ahead).
    pub fn add(&mut self, matched: &Matched, pose: &Pose) -> Result<Added, Unusable> {
        let view = View::new(matched, pose, self.rules.least_confidence)?;
        self.pair += 1;
        let mut added = Added::default();
        self.fuse(&view, &mut added);
        added.carved = self.carve(&view);
        self.sweep(&view);
        let most = self.rules.voxels_max;
        added.given_up = [self.blocks.make_room(most), self.free.make_room()].map(|it| it as u32);
        Ok(added)
    }

    /// Begins another part of the path, whose poses have an unknown relation to those before. Its points are fused
    /// with each other only.
    pub fn begin_part(&mut self) {
        self.part += 1;
    }

    /// Returns the number of voxels, including those that are not certain enough to be part of the map yet.
    pub fn len(&self) -> usize {
        self.blocks.len()
    }

    fn fuse(&mut self, view: &View, added: &mut Added) {
        let camera_m = view.camera_m();
        for (x, y) in view.lattice(POINTS, self.pair) {
            let Some(end) = view.end(x, y) else { continue };
            if end.depth_m > self.rules.far_m || end.sigma_m > LEAST_CERTAIN * self.rules.voxel_m {
                added.far += 1;
                continue;
            }
            let ray = view.ray(x, y);
            let length = ray.iter().map(|part| part * part).sum::<f64>().sqrt();
            let point = Measured {
                position_m: [0, 1, 2].map(|axis| camera_m[axis] + end.depth_m * ray[axis]),
                sigma_m: end.sigma_m,
                rgb: view.rgb(x, y),
                towards: ray.map(|part| -part / length),
                pair: self.pair,
            };
            match self.blocks.add(self.part, &point) {
                Some(is_first) => {
                    added.points += 1;
                    added.voxels += u32::from(is_first);
                }
                None => added.far += 1,
            }
        }
    }

    fn carve(&mut self, view: &View) -> u32 {
        let Rules { voxel_m, far_m, .. } = self.rules;
        let pair = self.pair;
        self.blocks.carve(
            self.part,
            |centre_m, radius_m| view.may_show(centre_m, radius_m, far_m),
            |at, voxel| voxel.seen != pair && view.sees_through(at, voxel_m, far_m),
        )
    }

    /// Sweeps the cells of the grid that rays cross within the height band.
    ///
    /// Only heights below the camera count, and only the lower half of the band: rays above would sweep cells of
    /// things that they pass over. The top of a thing that is lower is seen.
    fn sweep(&mut self, view: &View) {
        let Rules { voxel_m, far_m, mount, band_m: [low, high], .. } = &self.rules;
        let camera = Pose { rotation: mount.rotation(), position_m: mount.position_m };
        let camera_m = camera.apply(view.camera_m());
        let vehicle_m = view.pose().of_vehicle(mount).position_m;
        let ground_m = vehicle_m[2] + low;
        let band_m = [ground_m, camera_m[2].min(vehicle_m[2] + (low + high) / 2.0)];
        self.height_m = vehicle_m[2];
        let from = Viewpoint { part: self.part, pair: self.pair, vehicle_m, camera_m, band_m };
        for (x, y) in view.lattice(RAYS, self.pair) {
            let Some(end) = view.end(x, y) else { continue };
            let depth_m = (end.depth_m - BEHIND * end.sigma_m - voxel_m).min(*far_m);
            let along = turned(&camera.rotation, view.ray(x, y));
            self.free.sweep(&from, along, depth_m);
            // A surface below the band is ground: its own cell is free, too.
            let is_ground = camera_m[2] + end.depth_m * along[2] < ground_m;
            if is_ground && end.depth_m <= *far_m && end.sigma_m <= LEAST_CERTAIN * voxel_m {
                let at = [0, 1].map(|axis| camera_m[axis] + end.depth_m * along[axis]);
                self.free.mark(&from, at);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use stereod_core::frame::Image;

    use super::*;
    use crate::world::{World, looking};

    /// A room of 5 x 2.4 x 6 m with a box and a pillar in it; the camera is 1.2 m above the floor.
    fn world() -> World {
        let room = [[-2.5, -1.2, -2.0], [2.5, 1.2, 4.0]];
        let boxes = vec![[[0.6, 0.2, 2.4], [1.2, 1.2, 3.0]], [[-1.8, -1.2, 2.4], [-1.2, 1.2, 3.0]]];
        World { room, boxes, noise_px: 0.3 }
    }

    fn rules() -> Rules {
        let mount = Mount { position_m: [0.0, 0.0, 1.2], ..Mount::default() };
        Rules { voxel_m: 0.1, far_m: 6.0, mount, ..Rules::default() }
    }

    /// A walk that looks around.
    fn walk(step: u32) -> Pose {
        let share = f64::from(step) / 20.0;
        looking(1.2 * (share - 0.5), [0.8 * (share - 0.5), 0.1 * share, 0.5 * share])
    }

    fn walked(world: &World) -> Map {
        let mut map = Map::new(rules());
        for step in 0..20 {
            map.add(&world.seen(&walk(step), 255, step.into()), &walk(step)).unwrap();
        }
        map
    }

    #[test]
    fn a_room_is_reconstructed_within_half_a_voxel() {
        let world = world();
        let map = walked(&world);
        let points: Vec<_> = map.points().collect();
        let distance = |point: &crate::MapPoint| world.distance(point.position_m.map(f64::from));
        let square: f64 = points.iter().map(|point| distance(point).powi(2)).sum();
        let rms = (square / points.len() as f64).sqrt();
        assert!(points.len() > 2500, "{} points", points.len());
        assert!(rms < 0.05, "{rms} m");
        // The wall ahead is seen from in front of it.
        let ahead =
            points.iter().filter(|point| point.position_m[2] > 3.9 && point.normal[2] < -0.9);
        assert!(ahead.count() > 500);
        let mean = points.iter().map(|point| f64::from(point.rgb[1])).sum::<f64>();
        assert!((mean / points.len() as f64 - 100.0).abs() < 0.5);
    }

    #[test]
    fn voxels_are_as_fine_as_half_of_the_depths_are_certain() {
        let matched = world().seen(&walk(0), 255, 0);
        let voxel_m = usual_voxel_m(&matched, 128).unwrap();
        assert!([0.02, 0.05, 0.1].contains(&voxel_m), "{voxel_m}");
        let mut map = Map::new(Rules { voxel_m, far_m: 100.0, ..rules() });
        let added = map.add(&matched, &walk(0)).unwrap();
        assert!(added.points >= added.far, "{added:?}");
        let mut finer = Map::new(Rules { voxel_m: voxel_m / 2.5, far_m: 100.0, ..rules() });
        let fewer = finer.add(&matched, &walk(0)).unwrap();
        assert!(fewer.points < fewer.far, "{fewer:?}");
        assert_eq!(usual_voxel_m(&world().seen(&walk(0), 1, 0), 128), None);
    }

    #[test]
    fn the_grid_has_occupied_walls_free_floor_and_unknown_places() {
        let grid = walked(&world()).grid().unwrap();
        assert_eq!(grid.cells.len(), grid.width * grid.height);
        let at = |x: f64, y: f64| {
            let [column, row] = [(x, 0), (y, 1)]
                .map(|(metres, axis)| ((metres - grid.origin_m[axis]) / 0.1).floor() as usize);
            grid.cells[row * grid.width + column]
        };
        // Ahead and to the left in metres: the wall ahead (in either of the cells at it), the one to the left, the box.
        for (x, y) in [(3.95, 0.0), (3.95, 1.0), (2.5, 2.45), (2.45, -0.85)] {
            let near = [at(x, y), at(x + 0.1, y), at(x, y + 0.1)];
            assert!(near.into_iter().max() >= Some(80), "{x} {y}: {near:?}");
        }
        for (x, y) in [(1.0, 0.0), (2.0, 0.5), (3.0, 0.0), (3.3, 1.0)] {
            assert_eq!(at(x, y), 0, "{x} {y}");
        }
        // The top of the box is seen, the inside of the pillar is not.
        assert!(at(2.75, -0.95) > 80);
        assert_eq!(at(2.75, 1.55), -1);
    }

    #[test]
    fn a_box_that_moves_leaves_no_trail() {
        let mut world = world();
        let mut map = Map::new(rules());
        let mut carved = 0;
        for step in 0..30u32 {
            let left = -2.0 + 0.1 * f64::from(step);
            world.boxes = vec![[[left, -0.2, 1.8], [left + 0.5, 1.2, 2.2]]];
            let pose = looking(0.0, [0.0; 3]);
            carved += map.add(&world.seen(&pose, 255, step.into()), &pose).unwrap().carved;
        }
        assert!(carved > 500, "{carved} voxels");
        let last = world.boxes[0];
        let trail = map.points().filter(|point| {
            let [x, y, z] = point.position_m.map(f64::from);
            (1.5..2.5).contains(&z) && y.abs() < 1.0 && x < last[0][0] - 0.9
        });
        assert_eq!(trail.count(), 0);
        let there = map.points().filter(|point| (1.7..2.3).contains(&point.position_m[2]));
        assert!(there.count() > 40);
    }

    #[test]
    fn only_clear_pixels_carve() {
        let empty = World { boxes: Vec::new(), ..world() };
        let pose = looking(0.0, [0.0; 3]);
        let left = |confidence: u8| {
            let mut map = Map::new(rules());
            for seed in 0..5 {
                map.add(&world().seen(&pose, 255, seed), &pose).unwrap();
            }
            let before = map.points().count();
            for seed in 0..12 {
                map.add(&empty.seen(&pose, confidence, seed), &pose).unwrap();
            }
            let is_box = |at: [f32; 3]| {
                (0.5..1.3).contains(&at[0])
                    && (0.1..1.0).contains(&at[1])
                    && (2.2..2.6).contains(&at[2])
            };
            (before, map.points().filter(|point| is_box(point.position_m)).count())
        };
        let (before, after) = left(255);
        assert!(before > 1000 && after == 0, "{before} {after}");
        // Pixels below the limit, filled ones and unknown ones leave the box alone.
        let kept = left(127).1;
        assert!(kept > 30, "{kept}");
        assert_eq!([left(1).1, left(0).1], [kept; 2]);
    }

    #[test]
    fn the_bound_holds_and_is_counted() {
        let world = world();
        let unbounded = walked(&world).len();
        let mut map = Map::new(Rules { voxels_max: 1000, ..rules() });
        let mut given_up = [0; 2];
        for step in 0..20 {
            let added = map.add(&world.seen(&walk(step), 255, step.into()), &walk(step)).unwrap();
            (0..2).for_each(|of| given_up[of] += added.given_up[of]);
            assert!(map.len() <= 1000);
        }
        assert!(unbounded > 3000 && given_up[0] > 1000, "{unbounded} {given_up:?}");
        assert!(map.points().count() > 100);
        let mut none = Map::new(Rules { voxels_max: 0, ..rules() });
        none.add(&world.seen(&walk(0), 255, 0), &walk(0)).unwrap();
        assert_eq!(none.points().count(), 0);
    }

    #[test]
    fn parts_of_the_path_are_not_fused() {
        let world = world();
        let pose = walk(0);
        let mut map = Map::new(rules());
        let add = |map: &mut Map, of: &World| {
            for seed in 0..2 {
                map.add(&of.seen(&pose, 255, seed), &pose).unwrap();
            }
        };
        add(&mut map, &world);
        let first = map.points().count();
        map.begin_part();
        assert!(map.grid().unwrap().cells.is_empty());
        // A larger room, through whose points the first one's walls would be seen.
        let room = [[-4.0, -1.2, -2.0], [4.0, 1.2, 5.5]];
        add(&mut map, &World { room, boxes: Vec::new(), ..world });
        assert_eq!(map.points().filter(|point| point.part == 1).count(), first);
        assert!(map.points().filter(|point| point.part == 2).count() > 500);
    }

    #[test]
    fn far_points_and_unusable_pairs_are_told() {
        let (world, pose) = (world(), walk(10));
        let mut map = Map::new(Rules { far_m: 3.0, ..rules() });
        let added = map.add(&world.seen(&pose, 255, 0), &pose).unwrap();
        assert!(added.points > 1000 && added.far > 1000, "{added:?}");
        assert!(map.points().all(|point| point.position_m[2] < 3.5));
        let mut matched = world.seen(&pose, 255, 0);
        let nowhere = Pose { position_m: [f64::NAN; 3], ..pose };
        assert_eq!(map.add(&matched, &nowhere), Err(Unusable::NoPose));
        matched.geometry = None;
        assert_eq!(map.add(&matched, &pose), Err(Unusable::NoGeometry));
        let mut matched = world.seen(&pose, 255, 0);
        matched.confidence = Some(Image::from_vec(2, 2, vec![255; 4]));
        assert_eq!(map.add(&matched, &pose), Err(Unusable::NoConfidence));
        // Rules that make no sense fuse nothing.
        let mut none = Map::new(Rules { voxel_m: 0.0, ..rules() });
        assert_eq!(none.add(&world.seen(&pose, 255, 0), &pose).unwrap().points, 0);
        assert!(none.grid().unwrap().cells.is_empty());
    }

    #[test]
    fn large_images_are_thinned_out_and_every_pixel_has_its_turn() {
        let matched = world().seen(&walk(0), 255, 0);
        let view = View::new(&matched, &walk(0), 128).unwrap();
        let mut seen = vec![0; 160 * 120];
        for pair in 0..9 {
            let pixels: Vec<_> = view.lattice(2500, pair).collect();
            assert!(pixels.len() <= 2500 && pixels.len() > 2000);
            pixels.iter().for_each(|(x, y)| seen[y * 160 + x] += 1);
        }
        assert!(seen.iter().all(|times| *times == 1));
    }
}
