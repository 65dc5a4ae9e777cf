//! Cells of the ground plan through which rays passed, in tiles of 32^2.

use std::collections::HashMap;

use crate::blocks::QuickHash;

/// Cells along the side of a tile.
const SIDE: i32 = 32;

const CELLS: usize = (SIDE * SIDE) as usize;

/// Rays from which a cell counts as seen through.
const ENOUGH: u8 = 2;

/// Largest magnitude of a cell's coordinates.
const REACH: f64 = (1u64 << 30) as f64;

/// Part of the path, and coordinates of a tile in tiles.
type Address = (u32, i32, i32);

#[derive(Debug)]
struct Tile {
    address: Address,
    /// Number of rays through each cell, up to 255.
    rays: Box<[u8; CELLS]>,
    /// Number of the last pair.
    seen: u32,
    /// Smallest distance of the vehicle from the tile in metres, and the height of its origin there.
    distance_m: f64,
    height_m: f64,
}

/// The rig in the vehicle's axes at the first pair: ahead, to the left, up.
#[derive(Clone, Copy, Debug)]
pub struct Viewpoint {
    /// Part of the path.
    pub part: u32,
    /// Number of the pair; none is 0.
    pub pair: u32,
    /// The vehicle's origin.
    pub vehicle_m: [f64; 3],
    /// The left camera.
    pub camera_m: [f64; 3],
    /// Lowest and highest height at which rays count.
    pub band_m: [f64; 2],
}

/// Cells that were seen through. Their axes are those of the vehicle: ahead and to the left.
#[derive(Debug)]
pub struct FreeCells {
    cell_m: f64,
    tiles: Vec<Tile>,
    index: HashMap<Address, usize, QuickHash>,
    /// The tile of the last ray, which the next cell is likely in as well.
    last: usize,
    tiles_max: usize,
}

impl Tile {
    fn new(address: Address) -> Self {
        let rays = Box::new([0; CELLS]);
        Self { address, rays, seen: 0, distance_m: f64::INFINITY, height_m: 0.0 }
    }

    /// Notes a pair that sees a point of the tile.
    fn approach(&mut self, from: &Viewpoint, at_m: [f64; 2]) {
        self.seen = from.pair;
        let distance_m = (at_m[0] - from.vehicle_m[0]).hypot(at_m[1] - from.vehicle_m[1]);
        if distance_m <= self.distance_m {
            (self.distance_m, self.height_m) = (distance_m, from.vehicle_m[2]);
        }
    }
}

/// Returns the tile of a cell, and its place in it.
fn place(part: u32, [x, y]: [i32; 2]) -> (Address, usize) {
    let place = y.rem_euclid(SIDE) * SIDE + x.rem_euclid(SIDE);
    ((part, x.div_euclid(SIDE), y.div_euclid(SIDE)), place as usize)
}

impl FreeCells {
    /// Creates a plan of at most `most` cells, rounded up to four tiles.
    pub fn new(cell_m: f64, most: usize) -> Self {
        let tiles_max = (most / CELLS).max(4);
        Self { cell_m, tiles: Vec::new(), index: HashMap::default(), last: 0, tiles_max }
    }

    /// Counts a ray in the cells that it crosses within the band of heights. The ray goes from the camera to `depth_m`
    /// times the vector `along`, in the vehicle's axes.
    pub fn sweep(&mut self, from: &Viewpoint, along: [f64; 3], depth_m: f64) {
        let Viewpoint { camera_m, band_m: [low, high], .. } = *from;
        let is_level = along[2].abs() < 1e-9;
        let is_inside = (low..=high).contains(&camera_m[2]);
        let [first, last] = match (is_level, is_inside) {
            (true, false) => return,
            (true, true) => [0.0, depth_m],
            (false, _) => {
                let [one, other] = [low, high].map(|height| (height - camera_m[2]) / along[2]);
                [one.min(other).max(0.0), one.max(other).min(depth_m)]
            }
        };
        // Half a cell at a time, so that only corners of cells are skipped.
        let step = self.cell_m / 2.0 / along[0].hypot(along[1]).max(1e-9);
        let steps = ((last - first) / step).ceil().clamp(0.0, 1e5) as usize;
        for number in 0..steps {
            let depth = first + step * number as f64;
            self.mark(from, [0, 1].map(|axis| camera_m[axis] + depth * along[axis]));
        }
    }

    /// Counts a ray in the cell of a point.
    pub fn mark(&mut self, from: &Viewpoint, at_m: [f64; 2]) {
        let Some(cell) = self.cell(at_m) else { return };
        let (address, place) = place(from.part, cell);
        if self.tiles.get(self.last).is_none_or(|tile| tile.address != address) {
            self.last = *self.index.entry(address).or_insert_with(|| {
                self.tiles.push(Tile::new(address));
                self.tiles.len() - 1
            });
        }
        let tile = &mut self.tiles[self.last];
        if tile.seen != from.pair {
            tile.approach(from, at_m);
        }
        tile.rays[place] = tile.rays[place].saturating_add(1);
    }

    /// Returns the height of the vehicle's origin in metres when it was nearest to a cell; `None` if no ray came near.
    pub fn height_m(&self, part: u32, cell: [i32; 2]) -> Option<f64> {
        self.index.get(&place(part, cell).0).map(|&tile| self.tiles[tile].height_m)
    }

    /// Returns the cell of a point; `None` if it is too far from the origin.
    pub fn cell(&self, at_m: [f64; 2]) -> Option<[i32; 2]> {
        let at = at_m.map(|metres| (metres / self.cell_m).floor());
        // Also false for NaN.
        at.iter().all(|cells| cells.abs() < REACH).then(|| at.map(|cells| cells as i32))
    }

    /// Gives up the tiles that have not been seen for longest if there are too many. Returns the number of their cells.
    pub fn make_room(&mut self) -> usize {
        let before = self.tiles.len();
        if before <= self.tiles_max {
            return 0;
        }
        self.tiles.sort_unstable_by_key(|tile| (std::cmp::Reverse(tile.seen), tile.address));
        self.tiles.truncate(self.tiles_max - self.tiles_max / 16);
        self.index = self.tiles.iter().enumerate().map(|(i, tile)| (tile.address, i)).collect();
        self.last = 0;
        CELLS * (before - self.tiles.len())
    }

    /// Returns the cells of a part that were seen through.
    pub fn iter(&self, part: u32) -> impl Iterator<Item = [i32; 2]> {
        self.tiles.iter().filter(move |tile| tile.address.0 == part).flat_map(|tile| {
            let (_, x, y) = tile.address;
            let seen = tile.rays.iter().enumerate().filter(|(_, rays)| **rays >= ENOUGH);
            seen.map(move |(i, _)| [x * SIDE + i as i32 % SIDE, y * SIDE + i as i32 / SIDE])
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn viewpoint(pair: u32, camera_m: [f64; 3]) -> Viewpoint {
        Viewpoint { part: 7, pair, vehicle_m: camera_m, camera_m, band_m: [0.0, 2.0] }
    }

    fn swept(from_m: [f64; 3], along: [f64; 3], depth_m: f64) -> Vec<[i32; 2]> {
        let mut cells = FreeCells::new(1.0, 0);
        (1..=2).for_each(|pair| cells.sweep(&viewpoint(pair, from_m), along, depth_m));
        assert_eq!(cells.iter(8).count(), 0, "another part");
        let mut cells: Vec<_> = cells.iter(7).collect();
        cells.sort_unstable();
        cells
    }

    #[test]
    fn a_tile_has_the_height_of_the_vehicle_at_its_nearest() {
        let mut cells = FreeCells::new(1.0, 0);
        for (pair, [ahead, height]) in [(1, [0.0, 1.0]), (2, [60.0, 3.0]), (3, [90.0, 4.0])] {
            cells.mark(&viewpoint(pair, [ahead, 0.0, height]), [50.0, 0.0]);
        }
        assert_eq!(cells.height_m(7, [50, 0]), Some(3.0));
        assert_eq!([cells.height_m(7, [0, 0]), cells.height_m(8, [50, 0])], [None; 2]);
    }

    #[test]
    fn rays_sweep_the_cells_within_the_band() {
        // From 1 m above the band, it falls 1 m in 2 m: it is in the band from 2 m to 6 m ahead.
        let cells = swept([0.1, 0.5, 3.0], [1.0, 0.0, -0.5], 9.0);
        assert_eq!(cells, [[2, 0], [3, 0], [4, 0], [5, 0]]);
        // A level one is in it all the way to its end, across the borders of tiles, or nowhere.
        let cells = swept([-0.9, -0.5, 1.0], [1.0, 0.0, 0.0], 40.0);
        let expected: Vec<_> = (-1..40).map(|x| [x, -1]).collect();
        assert_eq!(cells, expected[..40]);
        assert!(swept([0.0, 0.0, 3.0], [1.0, 0.0, 0.0], 40.0).is_empty());
        assert!(swept([0.1, 0.5, 1.0], [1.0, 0.0, 0.0], -3.0).is_empty());
        assert!(swept([f64::NAN; 3], [1.0, 0.0, 0.0], 3.0).is_empty());
    }

    #[test]
    fn the_oldest_tiles_are_given_up() {
        let mut cells = FreeCells::new(1.0, 40 * CELLS);
        let mut given_up = 0;
        for pair in 0..60u32 {
            let at = [f64::from(SIDE * pair as i32), 0.0];
            (0..2).for_each(|_| cells.mark(&viewpoint(pair + 1, [0.0; 3]), at));
            given_up += cells.make_room();
            assert!(cells.tiles.len() <= 40);
        }
        assert_eq!(given_up, (60 - cells.tiles.len()) * CELLS);
        let left: Vec<i32> = cells.iter(7).map(|[x, _]| x / SIDE).collect();
        assert!(left.contains(&59) && left.contains(&30) && !left.contains(&10), "{left:?}");
    }
}
