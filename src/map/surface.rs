//! The points of the map, on the surfaces that their neighbours agree about.
//!
//! Errors of depth scatter points along their rays, so a wall is several voxels thick. Points are moved onto the plane
//! that fits their neighbourhood best (the first step of moving least squares: Alexa et al., Computing and Rendering
//! Point Set Surfaces, TVCG 2003, section 3), and those that end in one voxel are averaged.

use std::collections::HashMap;

use crate::blocks::{Blocks, QuickHash, Voxel};
use crate::fusion::Map;

/// A point of the map.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MapPoint {
    /// In metres in the map's frame: x to the right, y down, z ahead of the left camera at the first pair.
    pub position_m: [f32; 3],
    /// Red, green and blue.
    pub rgb: [u8; 3],
    /// Standard deviation of the depth of the measurements, averaged over the pairs, in metres.
    pub sigma_m: f32,
    /// Unit normal of the surface, towards the camera that saw it; zeros if the neighbours form no surface.
    pub normal: [f32; 3],
    /// Probability that something is here.
    pub probability: f32,
    /// Part of the path, from 1.
    pub part: u32,
}

/// Neighbours on each side, in voxels.
const NEIGHBOURS: i32 = 3;

/// Fewest neighbours of a plane.
const FEWEST: u32 = 8;

/// Variance across a plane as a share of the smaller one within it, at most.
const FLAT: f64 = 0.3;

/// The smaller variance within a plane as a share of the larger one, at least.
const LINE: f64 = 0.05;

/// Greatest shift of a point, in voxels.
const SHIFT: f64 = 2.5;

/// A plane through a point.
struct Plane {
    centre_m: [f64; 3],
    normal: [f64; 3],
}

/// Sums over the points that end in one voxel, weighted by their inverse variances.
#[derive(Default)]
struct Merged {
    weight: f64,
    position_m: [f64; 3],
    rgb: [f64; 3],
    normal: [f64; 3],
    sigma_m: f64,
    probability: f32,
}

impl Map {
    /// Returns the points of the map, one a voxel. This takes much longer than adding a pair.
    pub fn points(&self) -> impl Iterator<Item = MapPoint> {
        let mut order: Vec<Merged> = Vec::new();
        let mut parts = Vec::new();
        let mut index: HashMap<(u32, i32, i32, i32), usize, QuickHash> = HashMap::default();
        for (part, at, voxel) in self.blocks.iter().filter(|(_, _, voxel)| voxel.is_kept()) {
            let plane = plane(&self.blocks, self.rules.voxel_m, part, (at, voxel));
            let (at, normal) = match &plane {
                Some(plane) => moved(plane, at, voxel, SHIFT * self.rules.voxel_m),
                None => (at, [0.0; 3]),
            };
            let Some([x, y, z]) = self.blocks.cell(at) else { continue };
            let place = *index.entry((part, x, y, z)).or_insert_with(|| {
                order.push(Merged::default());
                parts.push(part);
                order.len() - 1
            });
            order[place].add(at, normal, voxel);
        }
        order.into_iter().zip(parts).map(|(merged, part)| merged.point(part))
    }
}

/// Fits a plane to the voxels around one that were seen from the same side; `None` if they form none.
fn plane(
    blocks: &Blocks,
    voxel_m: f64,
    part: u32,
    (at, voxel): ([f64; 3], &Voxel),
) -> Option<Plane> {
    let [x, y, z] = blocks.cell(at)?;
    let reach = -NEIGHBOURS..=NEIGHBOURS;
    let (mut weights, mut count) = (0.0, 0);
    let (mut sums, mut products) = ([0.0; 3], [[0.0; 3]; 3]);
    for (up, side) in reach.clone().flat_map(|up| reach.clone().map(move |side| (up, side))) {
        for along in reach.clone() {
            let neighbour = blocks.get(part, [x + along, y + side, z + up]);
            let joins = |(_, other): &([f64; 3], &Voxel)| {
                other.is_kept()
                    && dot(other.towards.map(f64::from), voxel.towards.map(f64::from)) > 0.0
            };
            let Some((other, voxel)) = neighbour.filter(joins) else { continue };
            // In voxels from the point, with weights that fall off with the distance.
            let offset = [0, 1, 2].map(|axis| (other[axis] - at[axis]) / voxel_m);
            let square: f64 = offset.iter().map(|part| part * part).sum();
            let certainty = f64::from(voxel.weight).sqrt();
            let weight = certainty * (-square / f64::from(NEIGHBOURS * NEIGHBOURS)).exp();
            count += 1;
            weights += weight;
            for row in 0..3 {
                sums[row] += weight * offset[row];
                (0..3).for_each(|column| {
                    products[row][column] += weight * offset[row] * offset[column]
                });
            }
        }
    }
    if count < FEWEST {
        return None;
    }
    let mean = sums.map(|sum| sum / weights);
    let covariance = [0, 1, 2].map(|row| {
        [0, 1, 2].map(|column| products[row][column] / weights - mean[row] * mean[column])
    });
    let centre_m = [0, 1, 2].map(|axis| at[axis] + mean[axis] * voxel_m);
    flat_side(&covariance).map(|normal| Plane { centre_m, normal })
}

/// Returns the direction of the smallest variance of a covariance; `None` unless it is much smaller than the others.
///
/// The eigenvalues of a symmetric matrix are found by Smith, Eigenvalues of a symmetric 3 x 3 matrix, CACM 1961.
fn flat_side(covariance: &[[f64; 3]; 3]) -> Option<[f64; 3]> {
    let mean = (covariance[0][0] + covariance[1][1] + covariance[2][2]) / 3.0;
    let mut rest = *covariance;
    (0..3).for_each(|axis| rest[axis][axis] -= mean);
    let size = (rest.iter().flatten().map(|part| part * part).sum::<f64>() / 6.0).sqrt();
    let half = dot(rest[0], cross(rest[1], rest[2])) / (2.0 * size.powi(3));
    let angle = half.clamp(-1.0, 1.0).acos() / 3.0;
    let third = 2.0 * std::f64::consts::FRAC_PI_3;
    let [largest, smallest] = [0.0, third].map(|turn| mean + 2.0 * size * (angle + turn).cos());
    let middle = 3.0 * mean - largest - smallest;
    // Also false for NaN, i.e. if all are the same. Points along a line have no middle one.
    let is_flat = smallest < FLAT * middle && middle > LINE * largest;
    (0..3).for_each(|axis| rest[axis][axis] += mean - smallest);
    // The rows span the plane; two of them whose product is longest.
    let products = [[0, 1], [1, 2], [2, 0]].map(|[a, b]| cross(rest[a], rest[b]));
    let longest = products.into_iter().max_by(|a, b| dot(*a, *a).total_cmp(&dot(*b, *b)))?;
    let length = dot(longest, longest).sqrt();
    (is_flat && length > 0.0).then(|| longest.map(|part| part / length))
}

/// Moves a point onto a plane, at most by `most_m`, and returns it with the normal towards the camera.
fn moved(plane: &Plane, at: [f64; 3], voxel: &Voxel, most_m: f64) -> ([f64; 3], [f64; 3]) {
    let Plane { centre_m, normal } = plane;
    let offset = [0, 1, 2].map(|axis| at[axis] - centre_m[axis]);
    let height = dot(offset, *normal).clamp(-most_m, most_m);
    let towards = voxel.towards.map(f64::from);
    let sign = if dot(towards, *normal) < 0.0 { -1.0 } else { 1.0 };
    ([0, 1, 2].map(|axis| at[axis] - height * normal[axis]), normal.map(|part| sign * part))
}

impl Merged {
    fn add(&mut self, at: [f64; 3], normal: [f64; 3], voxel: &Voxel) {
        let weight = f64::from(voxel.weight);
        self.weight += weight;
        for axis in 0..3 {
            self.position_m[axis] += weight * at[axis];
            self.rgb[axis] += weight * f64::from(voxel.rgb[axis]);
            self.normal[axis] += weight * normal[axis];
        }
        self.sigma_m += weight * f64::from(voxel.sigma_m());
        self.probability = self.probability.max(voxel.probability());
    }

    fn point(self, part: u32) -> MapPoint {
        let mean = |sum: f64| sum / self.weight;
        let length = dot(self.normal, self.normal).sqrt();
        let unit = |part: f64| if length > 0.0 { (part / length) as f32 } else { 0.0 };
        MapPoint {
            position_m: self.position_m.map(|sum| mean(sum) as f32),
            rgb: self.rgb.map(|sum| mean(sum).round() as u8),
            sigma_m: mean(self.sigma_m) as f32,
            normal: self.normal.map(unit),
            probability: self.probability,
            part,
        }
    }
}

fn dot(a: [f64; 3], b: [f64; 3]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

fn cross(a: [f64; 3], b: [f64; 3]) -> [f64; 3] {
    stereod_core::pose::cross(a, b)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::blocks::Measured;
    use crate::fusion::Rules;

    #[test]
    fn the_flat_side_of_any_plane_is_found() {
        for normal in [[0.0, 0.0, 1.0], [0.6, 0.0, -0.8], [0.48, 0.6, 0.64]] {
            // The identity without the normal, plus a little of it.
            let covariance: [[f64; 3]; 3] = std::array::from_fn(|row| {
                std::array::from_fn(|column| {
                    f64::from(u8::from(row == column)) - 0.9 * normal[row] * normal[column]
                })
            });
            let found = flat_side(&covariance).unwrap();
            assert!((dot(found, normal).abs() - 1.0).abs() < 1e-9, "{normal:?}: {found:?}");
        }
        assert!(flat_side(&[[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]).is_none());
        assert!(flat_side(&[[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 0.5]]).is_none());
        // Points along a line.
        assert!(flat_side(&[[1.0, 0.0, 0.0], [0.0, 0.0, 0.0], [0.0, 0.0, 0.0]]).is_none());
    }

    #[test]
    fn the_two_sides_of_a_thin_wall_stay_apart() {
        let mut map = Map::new(Rules { voxel_m: 0.1, ..Rules::default() });
        for step in 0..400 {
            let [x, y] = [step % 20, step / 20].map(|steps| 0.05 + 0.1 * f64::from(steps));
            for (z, side) in [(1.05, -1.0), (1.25, 1.0)] {
                let towards = [0.0, 0.0, side];
                let position_m = [x, y, z];
                let of = |pair| Measured { position_m, sigma_m: 0.01, rgb: [9; 3], towards, pair };
                (1..=2).for_each(|pair| assert!(map.blocks.add(1, &of(pair)).is_some()));
            }
        }
        let points: Vec<MapPoint> = map.points().collect();
        assert_eq!(points.len(), 800);
        for MapPoint { position_m, normal, .. } in points {
            let (z, side) = if position_m[2] < 1.15 { (1.05, -1.0) } else { (1.25, 1.0) };
            assert!(
                (position_m[2] - z).abs() < 1e-5 && normal[2] * side > 0.999,
                "{position_m:?} {normal:?}"
            );
        }
    }
}
