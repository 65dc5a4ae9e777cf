//! `[map]`: the map of places along the path of the rig.

use serde::Deserialize;

use super::obstacles::Obstacles;
use stereod_core::frame::StereoGeometry;
use stereod_core::obstacles::Mount;
use stereod_core::settings::row::Integer::U64;
use stereod_core::settings::row::Plain::{Text, Whole};
use stereod_core::settings::row::Row;
use stereod_map::Rules;

/// Settings of the map.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Mapping {
    pub voxel_m: Option<f64>,
    pub far_m: Option<f64>,
    pub confidence: u8,
    pub voxels: usize,
}

pub(in crate::settings) const ROWS: &[Row] = &[
    Row::real("voxel_m", Text("auto"), [0.001, 10.0])
        .or(&["auto"])
        .unit("metres")
        .help("Side of a voxel of the map, and of a cell of the occupancy grid, in metres.")
        .more("`auto`: as fine as half of the first pair's depths are certain. Depths that are less certain than a voxel do not enter the map."),
    Row::real("far_m", Text("auto"), [0.1, 1000.0])
        .or(&["auto"])
        .unit("metres")
        .help("Depth in metres up to which points enter the map.")
        .more("`auto`: that at which an error of a tenth of a pixel is as long as a voxel, or 1000 voxels."),
    Row::whole("confidence", Whole(160), U64, [2, 255])
        .help("Smallest confidence of the pixels that enter the map, 2 to 255."),
    Row::whole("voxels", Whole(4_000_000), U64, [1000, 1_000_000_000])
        .help("Largest number of voxels; then the least certain ones are given up, which is told.")
        .more("A million takes about 64 MB. The heights of obstacles in the grid are those of [obstacles]."),
];

impl Mapping {
    /// Returns how pairs of these cameras are fused, into voxels of this side.
    pub fn rules(
        &self,
        voxel_m: f64,
        mount: Mount,
        obstacles: &Obstacles,
        geometry: &StereoGeometry,
    ) -> Rules {
        // The error of a depth grows with its square (`StereoGeometry::depth_deviation_m`).
        let steady = (10.0 * voxel_m * geometry.focal_px * geometry.baseline_m).sqrt();
        Rules {
            voxel_m,
            far_m: self.far_m.unwrap_or(steady.min(1000.0 * voxel_m)),
            least_confidence: self.confidence,
            voxels_max: self.voxels,
            band_m: obstacles.rules(&mount, geometry).band_m,
            mount,
        }
    }
}
