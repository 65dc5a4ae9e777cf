//! A pair's depth from a pose: its points, and whether it sees through a place.

use stereod_core::frame::{INVALID, Image, LEAST_CONFIDENCE, Matched, SUBPIXEL, StereoGeometry};
use stereod_core::matching::confidence::deviation_px;
use stereod_core::pose::{Pose, turned};

/// Reason why a pair is not fused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Unusable {
    /// The geometry of the cameras is unknown.
    NoGeometry,
    /// The pair has no confidence of its size.
    NoConfidence,
    /// The pose is not finite.
    NoPose,
}

/// Pixels of a pair, seen from its pose.
#[derive(Clone, Copy, Debug)]
pub struct View<'a> {
    matched: &'a Matched,
    confidence: &'a Image,
    least_confidence: u8,
    geometry: StereoGeometry,
    pose: Pose,
    inverse: Pose,
}

/// End of a pixel's ray.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct End {
    pub depth_m: f64,
    /// Standard deviation of the depth.
    pub sigma_m: f64,
}

/// Standard deviations by which a ray must end behind a place to see through it.
pub const BEHIND: f64 = 3.0;

impl Unusable {
    /// Returns the reason in words.
    pub fn in_words(self) -> &'static str {
        match self {
            Self::NoGeometry => "the geometry of the cameras is unknown",
            Self::NoConfidence => "its disparity has no confidence",
            Self::NoPose => "its pose is unknown",
        }
    }
}

impl<'a> View<'a> {
    pub fn new(matched: &'a Matched, pose: &Pose, least_confidence: u8) -> Result<Self, Unusable> {
        let geometry = matched.geometry.ok_or(Unusable::NoGeometry)?;
        let size = (matched.disparity.width(), matched.disparity.height());
        let fits = |image: &&Image| (image.width(), image.height()) == size;
        let confidence = matched.confidence.as_ref().filter(fits).ok_or(Unusable::NoConfidence)?;
        let mut numbers = pose.rotation.iter().flatten().chain(&pose.position_m);
        if !numbers.all(|number| number.is_finite()) {
            return Err(Unusable::NoPose);
        }
        // Pixels without evidence of their own never count.
        let least_confidence = least_confidence.max(LEAST_CONFIDENCE + 1);
        let (pose, inverse) = (*pose, pose.inverse());
        Ok(Self { matched, confidence, least_confidence, geometry, pose, inverse })
    }

    /// Returns the pixels of a lattice with at most `most` of them. The lattice shifts from pair to pair, so that all
    /// pixels have their turn.
    pub fn lattice(&self, most: usize, pair: u32) -> impl Iterator<Item = (usize, usize)> + use<> {
        let (width, height) = (self.matched.disparity.width(), self.matched.disparity.height());
        let mut step = 1;
        while width.div_ceil(step) * height.div_ceil(step) > most.max(1) {
            step += 1;
        }
        let turn = pair as usize % (step * step);
        let rows = (turn / step..height).step_by(step);
        rows.flat_map(move |y| (turn % step..width).step_by(step).map(move |x| (x, y)))
    }

    /// Returns the end of a pixel's ray; `None` unless it is measured with enough confidence.
    pub fn end(&self, x: usize, y: usize) -> Option<End> {
        let pixel = y * self.matched.disparity.width() + x;
        let (value, confidence) =
            (self.matched.disparity.values()[pixel], self.confidence.pixels()[pixel]);
        if value == INVALID || confidence < self.least_confidence {
            return None;
        }
        let disparity = f64::from(value) / f64::from(SUBPIXEL);
        let sigma_m = self.geometry.depth_deviation_m(disparity, deviation_px(confidence)?)?;
        Some(End { depth_m: self.geometry.depth_m(disparity)?, sigma_m })
    }

    pub fn pose(&self) -> &Pose {
        &self.pose
    }

    /// Returns the camera's centre in the map's frame.
    pub fn camera_m(&self) -> [f64; 3] {
        self.pose.position_m
    }

    /// Returns the vector along a pixel's ray in the map's frame whose depth is 1 m.
    pub fn ray(&self, x: usize, y: usize) -> [f64; 3] {
        let StereoGeometry { focal_px, centre_x_px, centre_y_px, .. } = self.geometry;
        let [right, down] = [x as f64 - centre_x_px, y as f64 - centre_y_px];
        turned(&self.pose.rotation, [right / focal_px, down / focal_px, 1.0])
    }

    /// Returns red, green and blue of a pixel of the left image.
    pub fn rgb(&self, x: usize, y: usize) -> [u8; 3] {
        let left = &self.matched.pair.left;
        if x < left.width() && y < left.height() { left.rgb_at(x, y) } else { [0; 3] }
    }

    /// Reports whether a ball may be in the image, and nearer than `far_m`.
    pub fn may_show(&self, centre_m: [f64; 3], radius_m: f64, far_m: f64) -> bool {
        let [x, y, z] = self.inverse.apply(centre_m);
        if z < -radius_m || z > far_m + radius_m {
            return false;
        }
        let StereoGeometry { focal_px, centre_x_px, centre_y_px, .. } = self.geometry;
        let size = [self.matched.disparity.width(), self.matched.disparity.height()];
        // The edges of the image are planes through the camera's centre.
        let inside =
            |along: f64, edge: f64| along * focal_px + z * edge >= -radius_m * focal_px.hypot(edge);
        let centre = [centre_x_px, centre_y_px];
        let [x, y] = [(x, 0), (y, 1)].map(|(along, axis)| {
            inside(along, centre[axis] + 0.5)
                && inside(-along, size[axis] as f64 - 0.5 - centre[axis])
        });
        x && y
    }

    /// Reports whether the pixel that shows a place sees through it: its ray certainly ends more than `margin_m`
    /// behind. Places beyond `far_m` are not judged.
    pub fn sees_through(&self, place_m: [f64; 3], margin_m: f64, far_m: f64) -> bool {
        let [x, y, z] = self.inverse.apply(place_m);
        if z <= 0.0 || z > far_m {
            return false;
        }
        let StereoGeometry { focal_px, centre_x_px, centre_y_px, .. } = self.geometry;
        let [column, row] =
            [(x / z * focal_px + centre_x_px).round(), (y / z * focal_px + centre_y_px).round()];
        let map = &self.matched.disparity;
        let is_inside = (0.0..map.width() as f64).contains(&column)
            && (0.0..map.height() as f64).contains(&row);
        let end = if is_inside { self.end(column as usize, row as usize) } else { None };
        end.is_some_and(|end| end.depth_m - BEHIND * end.sigma_m - margin_m > z)
    }
}
