//! Fewer points: outliers are removed, and voxels are averaged.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use super::Point;

/// Number of nearest neighbours for the mean distance, as in Open3D's examples.
const NEIGHBOURS: usize = 20;

/// Pixels to each side among which the neighbours of a point are looked for.
const REACH: usize = 3;

/// Removes statistical outliers from the points of an image with rows of `width` pixels: points without
/// neighbours, and points with a mean distance to their neighbours that exceeds the mean over all points by
/// more than `ratio` standard deviations.
///
/// This is PCL's `StatisticalOutlierRemoval` and Open3D's `remove_statistical_outlier` (Rusu et al., Towards
/// 3D point cloud based object maps, RAS 56, 2008), except for two things. The neighbours are the nearest of
/// the 7x7 pixels around a point, which needs no search in space. And distances are divided by the farther
/// point's distance from the camera: in metres, a few points at hundreds of metres would have nearly all of
/// the variance.
pub(super) fn remove_outliers(grid: &mut [Option<Point>], width: usize, ratio: f64) {
    let distances: Vec<Option<f64>> =
        (0..grid.len()).map(|pixel| mean_distance(grid, width, pixel)).collect();
    let known = || distances.iter().flatten();
    let count = known().count().max(1) as f64;
    let mean = known().sum::<f64>() / count;
    let variance = known().map(|distance| (distance - mean).powi(2)).sum::<f64>() / count;
    let most = mean + ratio * variance.sqrt();
    for (point, distance) in grid.iter_mut().zip(&distances) {
        if distance.is_none_or(|distance| distance > most) {
            *point = None;
        }
    }
}

/// Returns the mean distance of the point of a pixel to its neighbours, as shares of the distances from the camera;
/// `None` without neighbours.
fn mean_distance(grid: &[Option<Point>], width: usize, pixel: usize) -> Option<f64> {
    let here = grid[pixel].as_ref()?;
    let (x, y, height) = (pixel % width, pixel / width, grid.len() / width);
    let square =
        |[x, y, z]: [f32; 3]| [x, y, z].map(|axis| f64::from(axis).powi(2)).iter().sum::<f64>();
    let mut squares = [0.0; (2 * REACH + 1) * (2 * REACH + 1)];
    let mut count = 0;
    for row in y.saturating_sub(REACH)..height.min(y + REACH + 1) {
        for column in x.saturating_sub(REACH)..width.min(x + REACH + 1) {
            let other = row * width + column;
            let Some(there) = grid[other].as_ref().filter(|_| other != pixel) else { continue };
            let offset = [0, 1, 2].map(|axis| here.position[axis] - there.position[axis]);
            // A near point next to far ones has the same distance as a far one next to near ones.
            squares[count] = square(offset) / square(here.position).max(square(there.position));
            count += 1;
        }
    }
    let squares = &mut squares[..count];
    if count > NEIGHBOURS {
        squares.select_nth_unstable_by(NEIGHBOURS - 1, f64::total_cmp);
    }
    let nearest = &squares[..count.min(NEIGHBOURS)];
    (count > 0)
        .then(|| nearest.iter().map(|square| square.sqrt()).sum::<f64>() / nearest.len() as f64)
}

#[derive(Default)]
struct Voxel {
    count: f64,
    position: [f64; 3],
    colour: [f64; 3],
    /// Sum and number of the known standard deviations.
    deviation: (f64, f64),
}

/// Averages the points of each cube with sides of `size` metres, as PCL's `VoxelGrid` and Open3D's
/// `voxel_down_sample` do. The voxels are in the order of their first points.
pub(super) fn average_voxels(points: Vec<Point>, size: f64) -> Vec<Point> {
    let mut voxels: Vec<Voxel> = Vec::new();
    let mut numbers: HashMap<[i64; 3], usize> = HashMap::new();
    for point in points {
        let cube = point.position.map(|metres| (f64::from(metres) / size).floor() as i64);
        let number = match numbers.entry(cube) {
            Entry::Occupied(found) => *found.get(),
            Entry::Vacant(free) => {
                voxels.push(Voxel::default());
                *free.insert(voxels.len() - 1)
            }
        };
        let voxel = &mut voxels[number];
        voxel.count += 1.0;
        for axis in 0..3 {
            voxel.position[axis] += f64::from(point.position[axis]);
            voxel.colour[axis] += f64::from(point.colour[axis]);
        }
        if !point.deviation.is_nan() {
            voxel.deviation.0 += f64::from(point.deviation);
            voxel.deviation.1 += 1.0;
        }
    }
    let mean = |Voxel { count, position, colour, deviation: (sum, known) }: Voxel| Point {
        position: position.map(|sum| (sum / count) as f32),
        colour: colour.map(|sum| (sum / count).round() as u8),
        // 0 / 0 is NaN: unknown.
        deviation: (sum / known) as f32,
    };
    voxels.into_iter().map(mean).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(position: [f32; 3], grey: u8, deviation: f32) -> Point {
        Point { position, colour: [grey; 3], deviation }
    }

    #[test]
    fn points_off_a_wall_are_outliers() {
        // A wall at 2 m, pixels 1 cm apart, with a hole.
        let at = |pixel: usize, z| {
            Some(point([(pixel % 20) as f32 / 100.0, (pixel / 20) as f32 / 100.0, z], 0, 0.0))
        };
        let mut grid: Vec<_> = (0..400).map(|pixel| at(pixel, 2.0)).collect();
        let wall = grid.clone();
        remove_outliers(&mut grid, 20, 5.0);
        assert!(grid == wall);
        for y in 0..9 {
            grid[y * 20 + 11..y * 20 + 20].fill(None);
        }
        let mut expected = grid.clone();
        // One floats before the wall, one has nothing around it.
        grid[12 * 20 + 5] = at(12 * 20 + 5, 1.6);
        grid[4 * 20 + 15] = at(4 * 20 + 15, 2.0);
        expected[12 * 20 + 5] = None;
        remove_outliers(&mut grid, 20, 5.0);
        let wrong = grid.iter().zip(&expected).position(|(found, expected)| found != expected);
        assert_eq!(wrong, None, "the number of a pixel");
    }

    #[test]
    fn noise_far_away_hides_no_outlier() {
        // A wall at 1 m next to one at 200 m with noise of 40 m, and a point 0.3 m before the near one.
        let at = |pixel: usize, z: f32| {
            let [x, y] = [pixel % 40, pixel / 40].map(|at| at as f32 / 500.0 * z);
            Some(point([x, y, z], 0, 0.0))
        };
        let depth = |pixel: usize| match pixel % 40 {
            0..30 => 1.0,
            _ => 180.0 + (pixel * 7 % 11) as f32 * 4.0,
        };
        let mut grid: Vec<_> = (0..800).map(|pixel| at(pixel, depth(pixel))).collect();
        grid[10 * 40 + 12] = at(10 * 40 + 12, 0.7);
        remove_outliers(&mut grid, 40, 2.0);
        assert!(grid[10 * 40 + 12].is_none());
        assert!(grid.iter().flatten().count() > 760);
    }

    #[test]
    fn a_voxel_has_the_mean_of_its_points() {
        let points = vec![
            point([0.1, 0.1, 1.1], 10, 0.5),
            point([-0.1, 0.1, 1.1], 7, f32::NAN),
            point([0.3, 0.1, 1.3], 21, f32::NAN),
        ];
        let found = average_voxels(points, 0.5);
        assert_eq!(found.len(), 2);
        assert_eq!((found[0].colour, found[0].deviation), ([16; 3], 0.5));
        let [x, y, z] = found[0].position;
        assert!((x - 0.2).abs() < 1e-6 && (y - 0.1).abs() < 1e-6 && (z - 1.2).abs() < 1e-6);
        assert_eq!((found[1].position, found[1].colour), ([-0.1, 0.1, 1.1], [7; 3]));
        assert!(found[1].deviation.is_nan());
    }
}
