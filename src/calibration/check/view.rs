//! Share of the cameras' images that a rectification keeps.

use crate::{Camera, Rectification, RectifiedView, StereoCalibration};

/// Points along each side of the grid that samples an image.
const GRID: usize = 24;

/// Part of the usual share below which the projection is one for other images.
const LITTLE: f64 = 0.5;

/// Shares of the left camera's image and of the rectified one, 0 to 1.
struct Shares {
    /// Part of the camera's image that lies within the rectified one.
    kept: f64,
    /// Part of the rectified image that shows the camera's.
    filled: f64,
}

/// Returns the part of an image's points for which this holds.
fn share((width, height): (usize, usize), holds: impl Fn([f64; 2]) -> bool) -> f64 {
    let at = |i: usize, side: usize| (i as f64 + 0.5) * side as f64 / GRID as f64 - 0.5;
    let points = (0..GRID * GRID).map(|i| [at(i % GRID, width), at(i / GRID, height)]);
    points.filter(|point| holds(*point)).count() as f64 / (GRID * GRID) as f64
}

impl Shares {
    fn of(camera: &Camera, view: &RectifiedView, size: (usize, usize)) -> Self {
        let projection = camera.projection();
        let [fx, cx, fy, cy] = [(0, 0), (0, 2), (1, 1), (1, 2)].map(|entry| view.projection[entry]);
        let own = (camera.width, camera.height);
        let is_in = |[x, y]: [f64; 2], (width, height): (usize, usize)| {
            (-0.5..width as f64 - 0.5).contains(&x) && (-0.5..height as f64 - 0.5).contains(&y)
        };
        let kept = share(own, |pixel| {
            projection.direction(pixel).map(|ray| view.rotation * ray).is_some_and(|ray| {
                ray.z > 0.0 && is_in([fx * ray.x / ray.z + cx, fy * ray.y / ray.z + cy], size)
            })
        });
        let filled = share(size, |[x, y]| {
            let ray = view.rotation.transpose()
                * nalgebra::Vector3::new((x - cx) / fx, (y - cy) / fy, 1.0);
            projection.pixel(ray).is_some_and(|pixel| is_in(pixel, own))
        });
        Self { kept, filled }
    }
}

/// Returns a note if the rectification shows much less of the left view than one computed anew, or shows it in
/// a corner, as a projection for images of another size does.
pub(super) fn note(
    calibration: &StereoCalibration,
    rectification: &Rectification,
    source: &str,
) -> Option<String> {
    let size = (rectification.width, rectification.height);
    let camera = &calibration.left;
    let own = Shares::of(camera, &rectification.left, size);
    let bare = StereoCalibration { rectification: None, ..calibration.clone() };
    let anew = bare.rectified(None).ok()?;
    let usual = Shares::of(camera, &anew.left, (anew.width, anew.height));
    let (of, to) = if own.kept < LITTLE * usual.kept {
        (format!("keeps {:.0} % of the left view", own.kept * 100.0), usual.kept)
    } else {
        let p = &rectification.left.projection;
        let is_corner = p[(0, 2)] < 0.35 * size.0 as f64 && p[(1, 2)] < 0.35 * size.1 as f64;
        if own.filled >= LITTLE * usual.filled || !is_corner {
            return None;
        }
        (format!("shows the left view in {:.0} % of its picture", own.filled * 100.0), usual.filled)
    };
    Some(format!(
        "{source}: the rectification {of}, one computed anew {:.0} %: its projections are of pictures of \
         another size than {}x{}; --alpha 0 computes it anew",
        to * 100.0,
        size.0,
        size.1
    ))
}
