//! The ground plan of the map: cells that are occupied, free or unknown.

use anyhow::{Result, bail};
use stereod_core::grid::Grid;
use stereod_core::pose::Pose;

use crate::fusion::Map;

/// Largest number of cells of a grid.
const CELLS: usize = 1 << 26;

/// State of a cell that is not known.
const UNKNOWN: i8 = -1;

impl Map {
    /// Returns the ground plan of the newest part of the path. A cell is occupied if the map has a point in it within
    /// the height band, free if rays passed low through it or ended at the ground in it, and unknown otherwise; also
    /// where something was seen but is not certain yet.
    pub fn grid(&self) -> Result<Grid> {
        let free: Vec<[i32; 2]> = self.free.iter(self.part).collect();
        let occupied: Vec<([i32; 2], i8)> = self.occupied().collect();
        let doubtful: Vec<[i32; 2]> = self.doubtful().collect();
        let all = || free.iter().chain(occupied.iter().map(|(cell, _)| cell)).chain(&doubtful);
        let mut grid = Grid { resolution_m: self.rules.voxel_m, ..Grid::default() };
        let bounds = [0, 1].map(|axis| {
            let least = all().map(|cell| cell[axis]).min();
            least.zip(all().map(|cell| cell[axis]).max())
        });
        let [Some((left, right)), Some((bottom, top))] = bounds else { return Ok(grid) };
        (grid.width, grid.height) = ((right - left) as usize + 1, (top - bottom) as usize + 1);
        if grid.width.saturating_mul(grid.height) > CELLS {
            bail!(
                "a grid of {} x {} cells is too large: the path is too long for cells of {} m, or its poses jump",
                grid.width,
                grid.height,
                grid.resolution_m
            );
        }
        grid.origin_m = [left, bottom].map(|cells| f64::from(cells) * grid.resolution_m);
        grid.cells = vec![UNKNOWN; grid.width * grid.height];
        let width = grid.width;
        let index = |[x, y]: [i32; 2]| (y - bottom) as usize * width + (x - left) as usize;
        free.into_iter().for_each(|cell| grid.cells[index(cell)] = 0);
        doubtful.into_iter().for_each(|cell| grid.cells[index(cell)] = UNKNOWN);
        for (cell, percent) in occupied {
            let known = &mut grid.cells[index(cell)];
            *known = percent.max(*known);
        }
        Ok(grid)
    }

    /// Returns the cells with points of the map in the height band, and their probabilities in percent.
    fn occupied(&self) -> impl Iterator<Item = ([i32; 2], i8)> {
        let points = self.points().filter(|point| point.part == self.part);
        points.filter_map(|point| {
            let cell = self.in_band(point.position_m.map(f64::from))?;
            Some((cell, (100.0 * point.probability).round() as i8))
        })
    }

    /// Returns the cells with voxels in the height band that are not certain enough to be part of the map.
    fn doubtful(&self) -> impl Iterator<Item = [i32; 2]> {
        let voxels = self.blocks.iter().filter(|(part, _, it)| *part == self.part && !it.is_kept());
        voxels.filter_map(|(_, at, _)| self.in_band(at))
    }

    /// Returns the cell of a point in the map's frame if it is within the height band.
    fn in_band(&self, position_m: [f64; 3]) -> Option<[i32; 2]> {
        let mount = &self.rules.mount;
        let camera = Pose { rotation: mount.rotation(), position_m: mount.position_m };
        let [ahead, left, up] = camera.apply(position_m);
        let cell = self.free.cell([ahead, left])?;
        let height_m = up - self.free.height_m(self.part, cell).unwrap_or(self.height_m);
        let [low, high] = self.rules.band_m;
        (low..=high).contains(&height_m).then_some(cell)
    }
}
