//! Depth of the rectified left view as a third camera sees it.

use std::sync::Arc;

use nalgebra::{Matrix3, Vector3};

use super::StereoCalibration;
use super::projection::Projection;
use stereod_core::floats::floats;
use stereod_core::frame::{DisparityMap, StereoGeometry};
use stereod_core::memory::{Budget, Reserved, TooMuch};

/// Turns disparity maps into depth for each pixel of a third camera's own, unrectified images.
///
/// Every pixel of the map is a square patch at its depth, parallel to the rectified image. Its projection
/// into the third camera covers at least one pixel; of overlapping patches, the nearest is visible. So pixels
/// that only the third camera sees have no depth.
#[derive(Clone, Debug)]
pub struct Aligner {
    camera: Projection,
    size: (usize, usize),
    /// Rotation from the rectified left frame to the third camera's.
    rotation: Matrix3<f64>,
    /// Place of the left camera in the third one's frame, in metres.
    translation: Vector3<f64>,
    geometry: StereoGeometry,
    /// Memory of one depth image.
    _memory: Arc<Reserved>,
}

impl Aligner {
    /// Returns the aligner of maps with this geometry. `rectification` is the rotation from the left
    /// camera's frame to the rectified one; `third` relates the left camera to the third one, in the
    /// place of the right one.
    ///
    /// # Errors
    /// Images of the third camera beyond the memory budget.
    pub fn new(
        geometry: StereoGeometry,
        rectification: &Matrix3<f64>,
        third: &StereoCalibration,
    ) -> Result<Self, TooMuch> {
        let size = (third.right.width, third.right.height);
        let bytes = (size.0 as u64).saturating_mul(size.1 as u64).saturating_mul(4);
        let what = format!("aligning depth to {}x{}", size.0, size.1);
        let memory =
            Budget::of_process().reserve(what, bytes, "a smaller size of the third camera")?;
        Ok(Self {
            camera: third.right.projection(),
            size,
            rotation: third.rotation * rectification.transpose(),
            translation: third.translation,
            geometry,
            _memory: Arc::new(memory),
        })
    }

    /// Returns width and height of the third camera's images.
    pub fn size(&self) -> (usize, usize) {
        self.size
    }

    /// Writes the depth along the third camera's axis in metres, row by row; infinite if unknown.
    pub fn align(&self, map: &DisparityMap, depth: &mut Vec<f32>) {
        let (width, height) = self.size;
        depth.clear();
        depth.resize(width * height, f32::INFINITY);
        let StereoGeometry { focal_px, centre_x_px, centre_y_px, .. } = self.geometry;
        let side = 0.5 / focal_px;
        let [right, down] = [0, 1].map(|axis| self.rotation.column(axis) * side);
        for (i, disparity) in floats(map).into_iter().enumerate() {
            // NaN, which is unknown, has no depth.
            let Some(z) = self.geometry.depth_m(f64::from(disparity)) else { continue };
            let [x, y] = [i % map.width(), i / map.width()].map(|at| at as f64);
            let ray = Vector3::new((x - centre_x_px) / focal_px, (y - centre_y_px) / focal_px, 1.0);
            let point = self.rotation * ray * z + self.translation;
            let pixel = |point: Vector3<f64>| self.camera.pixel(point);
            let Some(at) = pixel(point) else { continue };
            // Beyond the last angle that the lens model covers, a side has no end.
            let half = |side: Vector3<f64>| {
                pixel(point + side).map_or([0.0; 2], |end| [0, 1].map(|i| (end[i] - at[i]).abs()))
            };
            let (beside, below) = (half(right * z), half(down * z));
            let range = |axis: usize, length: usize| {
                // A patch narrower than a pixel is still seen by the nearest one.
                let reach = (beside[axis] + below[axis]).max(0.5);
                let first = (at[axis] - reach).ceil().max(0.0) as usize;
                // The conversion to integers clamps.
                let end = ((at[axis] + reach).floor() + 1.0) as usize;
                first..end.min(length)
            };
            let columns = range(0, width);
            for row in range(1, height) {
                let row = depth[row * width..][..width].get_mut(columns.clone());
                for seen in row.into_iter().flatten() {
                    *seen = seen.min(point.z as f32);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::{Camera, Lens};
    use stereod_core::frame::{DisparityRange, INVALID};
    use stereod_core::pool::Pooled;

    const RANGE: DisparityRange = DisparityRange { min: 0, count: 64 };

    fn camera(width: usize, height: usize, focal: f64) -> Camera {
        let centre = [width, height].map(|side| 0.5 * (side as f64 - 1.0));
        let lens = Lens::Brown([0.0; 14]);
        Camera { width, height, focal: [focal; 2], centre, skew: 0.0, lens }
    }

    fn geometry() -> StereoGeometry {
        StereoGeometry {
            focal_px: 40.0,
            baseline_m: 0.1,
            centre_x_px: 15.5,
            centre_y_px: 11.5,
            right_centre_x_px: 15.5,
        }
    }

    fn third(
        right: Camera,
        rotation: Matrix3<f64>,
        translation: Vector3<f64>,
    ) -> StereoCalibration {
        let left = camera(32, 24, 40.0);
        StereoCalibration { left, right, rotation, translation, rectification: None }
    }

    /// A wall at 2 m (2 px) with a board at 0.5 m (8 px) on the columns from 12 to 17.
    fn scene() -> DisparityMap {
        let value = |i: usize| if (12..18).contains(&(i % 32)) { 8 * 16 } else { 2 * 16 };
        DisparityMap::new(32, 24, RANGE, Pooled::unpooled((0..32 * 24).map(value).collect()))
    }

    fn aligned(aligner: &Aligner, map: &DisparityMap) -> Vec<f32> {
        let mut depth = vec![7.0; 3];
        aligner.align(map, &mut depth);
        depth
    }

    #[test]
    fn the_left_camera_itself_sees_its_own_depth() {
        let same = third(camera(32, 24, 40.0), Matrix3::identity(), Vector3::zeros());
        let depth =
            aligned(&Aligner::new(geometry(), &Matrix3::identity(), &same).unwrap(), &scene());
        for (i, seen) in depth.into_iter().enumerate() {
            let board = (12..18).contains(&(i % 32));
            // Patches end between pixels, so rounding may give an edge to either side.
            let edge = [11, 12, 17, 18].contains(&(i % 32));
            assert!(edge || seen == if board { 0.5 } else { 2.0 }, "{i}: {seen}");
        }
    }

    #[test]
    fn a_camera_beside_it_sees_the_board_shifted_with_a_shadow() {
        // 0.05 m to the right: the board moves by 4 px to the left, the wall by 1 px.
        let beside =
            third(camera(32, 24, 40.0), Matrix3::identity(), Vector3::new(-0.05, 0.0, 0.0));
        let depth =
            aligned(&Aligner::new(geometry(), &Matrix3::identity(), &beside).unwrap(), &scene());
        let row = &depth[10 * 32..][..32];
        assert!(row[9..13].iter().all(|&z| z == 0.5), "{row:?}");
        assert!(row[1..7].iter().chain(&row[18..30]).all(|&z| z == 2.0), "{row:?}");
        // Behind the board, hidden from the left camera.
        assert!(row[15..16].iter().all(|z| z.is_infinite()), "{row:?}");
        assert!(row[31].is_infinite());
    }

    #[test]
    fn a_camera_with_more_pixels_gets_a_depth_without_gaps() {
        // Three times as many, turned by 30 degrees about its axis, 0.1 m behind.
        let (sine, cosine) = 30f64.to_radians().sin_cos();
        let turned = Matrix3::new(cosine, -sine, 0.0, sine, cosine, 0.0, 0.0, 0.0, 1.0);
        let larger = third(camera(96, 72, 120.0), turned, Vector3::new(0.0, 0.0, 0.1));
        let wall = DisparityMap::new(32, 24, RANGE, Pooled::unpooled(vec![32; 32 * 24]));
        let depth =
            aligned(&Aligner::new(geometry(), &Matrix3::identity(), &larger).unwrap(), &wall);
        for y in 24..48 {
            for x in 32..64 {
                assert_eq!(depth[y * 96 + x], 2.1, "{x} {y}");
            }
        }
    }

    #[test]
    fn images_beyond_the_memory_are_refused() {
        let mut large = camera(96, 72, 120.0);
        (large.width, large.height) = (usize::MAX, usize::MAX);
        let third = third(large, Matrix3::identity(), Vector3::zeros());
        let error = Aligner::new(geometry(), &Matrix3::identity(), &third).unwrap_err().to_string();
        assert!(error.contains("third camera"), "{error}");
    }

    #[test]
    fn the_rotation_of_the_rectification_is_undone() {
        // The rectified frame looks a little to the side; the third camera is the left one itself.
        let (sine, cosine) = 0.1f64.sin_cos();
        let rectification = Matrix3::new(cosine, 0.0, sine, 0.0, 1.0, 0.0, -sine, 0.0, cosine);
        let same = third(camera(32, 24, 40.0), Matrix3::identity(), Vector3::zeros());
        let mut values = vec![INVALID; 32 * 24];
        values[12 * 32 + 20] = 4 * 16;
        let map = DisparityMap::new(32, 24, RANGE, Pooled::unpooled(values));
        let depth = aligned(&Aligner::new(geometry(), &rectification, &same).unwrap(), &map);
        let point = rectification.transpose() * Vector3::new(4.5 / 40.0, 0.5 / 40.0, 1.0);
        let x = (40.0 * point.x / point.z + 15.5).round() as usize;
        assert!((depth[12 * 32 + x] - point.z as f32).abs() < 1e-6);
        assert_eq!(depth.iter().filter(|z| z.is_finite()).count(), 1);
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        /// Every point of the map is seen, at its own place, by itself or by something nearer.
        #[test]
        fn no_point_is_lost(
            values in prop::collection::vec(prop_oneof![Just(INVALID), 1i16..1024], 32 * 24),
            angles in prop::array::uniform3(-0.4f64..0.4),
            place in prop::array::uniform3(-0.1f64..0.1),
            k1 in -0.2f64..0.2,
            focal in 20.0f64..120.0,
        ) {
            let mut right = camera(60, 40, focal);
            let mut lens = [0.0; 14];
            lens[0] = k1;
            right.lens = Lens::Brown(lens);
            let rotation = nalgebra::Rotation3::from_euler_angles(angles[0], angles[1], angles[2]);
            let third = third(right, rotation.into_inner(), place.into());
            let map = DisparityMap::new(32, 24, RANGE, Pooled::unpooled(values));
            let depth = aligned(&Aligner::new(geometry(), &Matrix3::identity(), &third).unwrap(), &map);
            for (i, disparity) in floats(&map).into_iter().enumerate() {
                let [x, y] = [i % 32, i / 32].map(|at| at as f64);
                let Some(own) = geometry().point_m(x, y, f64::from(disparity)) else { continue };
                let point = third.rotation * Vector3::from(own) + third.translation;
                let Some([u, v]) = third.right.projection().pixel(point) else { continue };
                if u > 0.0 && v > 0.0 && u < 59.0 && v < 39.0 {
                    let seen = depth[v.round() as usize * 60 + u.round() as usize];
                    let rounding = 1.0 + f32::EPSILON;
                    prop_assert!(seen <= point.z as f32 * rounding, "{i}: {seen} at {u}, {v}");
                }
            }
            prop_assert!(depth.iter().all(|z| *z > 0.0));
        }
    }
}
