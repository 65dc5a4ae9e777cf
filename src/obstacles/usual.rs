//! Rules of a scan that suit a camera, where nobody says otherwise.

use stereod_core::frame::StereoGeometry;
use stereod_core::obstacles::Mount;

use crate::scan::Rules;

/// Disparity in pixels of the farthest obstacles: a quarter of a pixel is then 6 % of the distance.
const LEAST_PX: f64 = 4.0;

/// Rules for a camera at this place, which is on the ground or, at a height of 0, flies.
pub fn rules(mount: &Mount, geometry: &StereoGeometry) -> Rules {
    let flies = mount.position_m[2] == 0.0;
    Rules {
        bin_deg: 1.0,
        field_deg: None,
        band_m: if flies { [-0.3, 0.3] } else { [0.1, 2.0] },
        // At the height of a flying vehicle there is no ground.
        slope_deg: if flies { 0.0 } else { 1.0 },
        overhangs: true,
        far_m: (geometry.focal_px * geometry.baseline_m / LEAST_PX).min(20.0),
        confidence: 128,
        pixels: 20,
    }
}
