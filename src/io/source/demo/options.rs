//! Options of the demo scene, and the cameras that follow from them.

use stereod_core::frame::{DisparityRange, StereoGeometry};

/// Options of the scene, within the ranges of its settings and of the matcher.
#[derive(Clone, Debug, PartialEq)]
pub struct DemoOptions {
    /// Width of each view in pixels.
    pub width: usize,
    /// Height of each view in pixels.
    pub height: usize,
    /// Number of pairs; `None`: without end.
    pub frames: Option<u64>,
    /// Pairs per second of scene time; the motion repeats after 8 seconds, with a walk after 16.
    pub rate: f64,
    /// Seed of the texture, the noise and the start of the motion.
    pub seed: u64,
    /// Standard deviation of the sensor noise of both views in grey levels; 0: none.
    pub noise: f32,
    /// Factor of the right view's brightness.
    pub right_gain: f32,
    /// Grey levels added to the right view's brightness after the factor.
    pub right_offset: f32,
    /// Disparities between which the scene lies: it spans about a tenth to nine tenths of them.
    pub disparities: DisparityRange,
    /// The cameras walk through the room; else they sway a little.
    pub walks: bool,
}

impl Default for DemoOptions {
    fn default() -> Self {
        Self {
            width: 640,
            height: 480,
            frames: None,
            rate: 30.0,
            seed: 1,
            noise: 1.0,
            right_gain: 1.0,
            right_offset: 0.0,
            disparities: DisparityRange { min: 0, count: 64 },
            walks: false,
        }
    }
}

/// Focal length in units of the longer side of the image: 58 degrees of view.
const FOCAL: f32 = 0.9;

impl DemoOptions {
    /// Focal length in pixels.
    pub(super) fn focal(&self) -> f32 {
        FOCAL * self.width.max(self.height) as f32
    }

    /// Half the image's width and height, in tangents.
    pub(super) fn half(&self) -> [f32; 2] {
        [self.width, self.height].map(|side| 0.5 * side as f32 / self.focal())
    }

    /// Returns the cameras, if a unit of the scene is a metre: the back is 5 to 10 m away.
    pub fn geometry(&self) -> StereoGeometry {
        let focal_px = f64::from(FOCAL) * self.width.max(self.height) as f64;
        let [centre_x_px, centre_y_px] =
            [self.width, self.height].map(|side| 0.5 * (side as f64 - 1.0));
        StereoGeometry {
            focal_px,
            // By `Scene::scale`.
            baseline_m: (self.disparities.count - 1) as f64 / focal_px,
            centre_x_px,
            centre_y_px,
            right_centre_x_px: centre_x_px - f64::from(self.disparities.min),
        }
    }
}
