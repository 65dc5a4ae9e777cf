//! What stands around a vehicle, as the crate stereod-obstacles finds it in disparity and outputs tell it: a scan of
//! distances by direction, zones, and distances of things in boxes.

/// What stands around the vehicle, as one pair shows it.
#[derive(Clone, Debug, PartialEq)]
pub struct Obstacles {
    pub scan: Scan,
    /// In the order of the settings.
    pub zones: Vec<Zone>,
    /// Answers to the boxes of a detector.
    pub things: Vec<Thing>,
    /// Where the camera was.
    pub mount: Mount,
}

/// Distances by direction, in the horizontal plane, seen from the left camera.
#[derive(Clone, Debug, PartialEq)]
pub struct Scan {
    /// Direction in degrees of the first bin's right edge: 0 is ahead, positive to the left (REP 103).
    pub first_deg: f64,
    /// Width of a bin in degrees. Bin i reaches from `first_deg + i * bin_deg` to the left.
    pub bin_deg: f64,
    pub bins: Vec<Bin>,
    /// Nothing nearer than this can be seen, in metres: the cameras would need a larger disparity.
    pub near_m: f64,
    /// Distance in metres up to which a bin is looked through.
    pub far_m: f64,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Bin {
    /// The nearest thing of which enough pixels agree.
    Obstacle(Nearest),
    /// Enough rays see through to the scan's end, and none of them ends before.
    Clear,
    /// Neither: something may be there.
    Unknown,
}

/// The nearest part of a bin, a zone or a box: pixels that agree about their distance.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Nearest {
    /// Median of the horizontal distances from the left camera, in metres.
    pub distance_m: f64,
    /// Distance of which 5 % of the pixels are nearer.
    pub nearest_m: f64,
    /// Standard deviation of a pixel's distance in metres.
    pub sigma_m: f64,
    /// Centre in metres in the vehicle's axes: ahead, to the left, up (FLU, REP 103).
    pub position_m: [f64; 3],
    pub pixels: u32,
}

/// State of a zone.
#[derive(Clone, Debug, PartialEq)]
pub struct Zone {
    pub name: String,
    /// Whether something is in it; `None` if that is not known.
    pub occupied: Option<bool>,
    pub nearest: Option<Nearest>,
    /// Share of its pixels whose distance is known, from 0 to 1.
    pub known: f64,
}

/// A box of a detector, with the distance of what it frames.
#[derive(Clone, Debug, PartialEq)]
pub struct Thing {
    /// What the detector calls it, such as "person", and its number or name in a track.
    pub label: String,
    pub id: Option<String>,
    pub score: Option<f64>,
    /// Left, top, right and bottom edge in pixels of the left image.
    pub edges_px: [f64; 4],
    pub nearest: Option<Nearest>,
    /// Share of the pixels of the box whose distance is known, from 0 to 1.
    pub known: f64,
}

/// Position and attitude of the left camera, as its images are rectified, in the vehicle's axes: x ahead, y to the left,
/// z up (FLU, REP 103). The vehicle's origin is on the ground or wherever its makers say.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Mount {
    /// In metres.
    pub position_m: [f64; 3],
    /// Roll, pitch and yaw in degrees: rotations about x, y and z, applied in this order about fixed axes. Pitch is
    /// positive for a camera that looks down, yaw for one that looks to the left.
    pub attitude_deg: [f64; 3],
}

impl Scan {
    /// Returns the direction of a bin's middle in degrees, positive to the left.
    pub fn direction_deg(&self, bin: usize) -> f64 {
        self.first_deg + self.bin_deg * (bin as f64 + 0.5)
    }

    /// Returns the nearest obstacle and the direction of its bin's middle in degrees.
    pub fn nearest(&self) -> Option<(f64, Nearest)> {
        let found = self.bins.iter().enumerate().filter_map(|(bin, state)| match state {
            Bin::Obstacle(nearest) => Some((self.direction_deg(bin), *nearest)),
            Bin::Clear | Bin::Unknown => None,
        });
        found.min_by(|(_, a), (_, b)| a.distance_m.total_cmp(&b.distance_m))
    }
}

impl Default for Mount {
    fn default() -> Self {
        Self { position_m: [0.0; 3], attitude_deg: [0.0; 3] }
    }
}

impl Mount {
    /// Returns the matrix that turns a vector of the camera's optical axes (x to the right, y down, z ahead) into the
    /// vehicle's, by rows.
    pub fn rotation(&self) -> [[f64; 3]; 3] {
        let [(sin_r, cos_r), (sin_p, cos_p), (sin_y, cos_y)] =
            self.attitude_deg.map(|angle| angle.to_radians().sin_cos());
        let body = [
            [
                cos_y * cos_p,
                cos_y * sin_p * sin_r - sin_y * cos_r,
                cos_y * sin_p * cos_r + sin_y * sin_r,
            ],
            [
                sin_y * cos_p,
                sin_y * sin_p * sin_r + cos_y * cos_r,
                sin_y * sin_p * cos_r - cos_y * sin_r,
            ],
            [-sin_p, cos_p * sin_r, cos_p * cos_r],
        ];
        // Ahead, left and up are the optical z, -x and -y.
        body.map(|[ahead, left, up]| [-left, -up, ahead])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn turned(attitude_deg: [f64; 3], optical: [f64; 3]) -> [f64; 3] {
        let rows = Mount { attitude_deg, ..Mount::default() }.rotation();
        rows.map(|row| row.iter().zip(optical).map(|(a, b)| a * b).sum())
    }

    fn close(a: [f64; 3], b: [f64; 3]) -> bool {
        a.iter().zip(b).all(|(a, b)| (a - b).abs() < 1e-12)
    }

    #[test]
    fn the_optical_axes_are_turned_into_the_vehicles() {
        let (right, down, ahead) = ([1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]);
        assert!(close(turned([0.0; 3], ahead), [1.0, 0.0, 0.0]));
        assert!(close(turned([0.0; 3], right), [0.0, -1.0, 0.0]));
        assert!(close(turned([0.0; 3], down), [0.0, 0.0, -1.0]));
        // A camera that looks down sees the ground ahead; one that looks left, the left; one that is rolled to the
        // right has its right side lower.
        assert!(close(turned([0.0, 90.0, 0.0], ahead), [0.0, 0.0, -1.0]));
        assert!(close(turned([0.0, 0.0, 90.0], ahead), [0.0, 1.0, 0.0]));
        assert!(close(turned([90.0, 0.0, 0.0], right), [0.0, 0.0, -1.0]));
    }
}
