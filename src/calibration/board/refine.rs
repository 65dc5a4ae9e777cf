//! Refinement of corners to a fraction of a pixel, and sharpness of images.

use nalgebra::{Matrix2, Vector2};

use stereod_core::frame::Image;

const ROUNDS: usize = 40;

/// The refinement ends with a step below this many pixels.
const SETTLED: f64 = 1e-3;

/// Returns the bilinear intensity at a position, which must lie within the outermost pixels.
pub(super) fn between(image: &Image, x: f64, y: f64) -> f64 {
    let (left, top) = (x.floor() as usize, y.floor() as usize);
    let (right, bottom) = ((left + 1).min(image.width() - 1), (top + 1).min(image.height() - 1));
    let (fx, fy) = (x - left as f64, y - top as f64);
    let (upper, lower) = (image.row(top), image.row(bottom));
    let blend = |row: &[u8]| f64::from(row[left]) * (1.0 - fx) + f64::from(row[right]) * fx;
    blend(upper) * (1.0 - fy) + blend(lower) * fy
}

pub(super) fn inside(image: &Image, x: f64, y: f64, margin: f64) -> bool {
    x >= margin
        && y >= margin
        && x <= image.width() as f64 - 1.0 - margin
        && y <= image.height() as f64 - 1.0 - margin
}

/// Returns the saddle point near `start`, from the pixels within `half` around it; `None` if the
/// window leaves the image or holds no corner.
///
/// The method is Förstner and Gülch (1987), with the window and weights of OpenCV's cornerSubPix:
/// every gradient is orthogonal to the line from the corner to its pixel, so the corner is the
/// point that minimises the weighted sum of (gradient . (pixel - corner))^2.
pub(super) fn refine(image: &Image, start: [f64; 2], half: usize) -> Option<[f64; 2]> {
    let side = 2 * half + 1;
    let weight: Vec<f64> = (0..side)
        .map(|i| {
            let at = (i as f64 - half as f64) / half as f64;
            (-at * at).exp()
        })
        .collect();
    let mut patch = vec![0.0; (side + 2) * (side + 2)];
    let start = Vector2::from(start);
    let mut corner = start;
    for _ in 0..ROUNDS {
        if !inside(image, corner.x, corner.y, half as f64 + 1.0) {
            return None;
        }
        for (i, value) in patch.iter_mut().enumerate() {
            let (x, y) = ((i % (side + 2)) as f64, (i / (side + 2)) as f64);
            let offset = half as f64 + 1.0;
            *value = between(image, corner.x + x - offset, corner.y + y - offset);
        }
        let (mut normal, mut right) = (Matrix2::zeros(), Vector2::zeros());
        for y in 0..side {
            for x in 0..side {
                let at = (y + 1) * (side + 2) + x + 1;
                let gradient = Vector2::new(
                    patch[at + 1] - patch[at - 1],
                    patch[at + side + 2] - patch[at - side - 2],
                );
                let outer = gradient * gradient.transpose() * (weight[x] * weight[y]);
                let pixel = Vector2::new(x as f64 - half as f64, y as f64 - half as f64);
                normal += outer;
                right += outer * pixel;
            }
        }
        let step = normal.try_inverse()? * right;
        corner += step;
        // A corner that leaves its window is none.
        if !step.norm().is_finite() || (corner - start).amax() > half as f64 {
            return None;
        }
        if step.norm() < SETTLED {
            break;
        }
    }
    Some([corner.x, corner.y])
}

/// Returns the width of the edge between two corners in pixels: the contrast divided by the
/// steepest slope across its middle, within `free` times its length to either side. Returns `None`
/// if it lies outside the image or shows no edge.
///
/// A sharp edge through a lens and a sensor is 1 to 2 px wide; one blurred by a Gaussian of sigma s
/// is 2.5 s wide.
pub(super) fn edge_width(image: &Image, from: [f64; 2], to: [f64; 2], free: f64) -> Option<f64> {
    let (from, to) = (Vector2::from(from), Vector2::from(to));
    let along = to - from;
    let length = along.norm();
    if length < 4.0 {
        return None;
    }
    let across = Vector2::new(-along.y, along.x) / length;
    let reach = (length * free).clamp(2.0, 20.0);
    let step = 0.25;
    let steps = (reach / step) as i32;
    let mut profile = Vec::with_capacity(2 * steps as usize + 1);
    for i in -steps..=steps {
        // The mean along the middle third of the edge reduces noise.
        let mut sum = 0.0;
        for part in [0.4, 0.45, 0.5, 0.55, 0.6] {
            let at = from + along * part + across * (f64::from(i) * step);
            if !inside(image, at.x, at.y, 0.0) {
                return None;
            }
            sum += between(image, at.x, at.y);
        }
        profile.push(sum / 5.0);
    }
    let (low, high) =
        profile.iter().fold((f64::INFINITY, 0.0f64), |(low, high), &v| (low.min(v), high.max(v)));
    let contrast = high - low;
    // Over one pixel, the scale of noise and interpolation.
    let slope = profile.windows(5).map(|part| (part[4] - part[0]).abs()).fold(0.0, f64::max);
    (contrast > 8.0 && slope > 0.0).then(|| contrast / slope)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a corner at (x, y) with axes turned by `angle`, under a Gaussian of `sigma`.
    fn corner(x: f64, y: f64, angle: f64, sigma: f64) -> Image {
        let step = |t: f64| (t / sigma).tanh();
        Image::from_fn(64, 48, |column, row| {
            let (dx, dy) = (column as f64 - x, row as f64 - y);
            let (u, v) =
                (dx * angle.cos() + dy * angle.sin(), -dx * angle.sin() + dy * angle.cos());
            (128.0 + 100.0 * step(u) * step(v)).round() as u8
        })
    }

    #[test]
    fn corners_are_found_to_a_fraction_of_a_pixel() {
        for (x, y, angle) in [(30.0, 20.0, 0.0), (30.37, 20.81, 0.3), (29.5, 22.25, 1.0)] {
            let image = corner(x, y, angle, 1.2);
            let found = refine(&image, [x + 1.4, y - 1.1], 7).unwrap();
            assert!((found[0] - x).hypot(found[1] - y) < 0.03, "{found:?} instead of {x}, {y}");
        }
    }

    #[test]
    fn no_corner_and_no_room_are_none() {
        let image = corner(30.0, 20.0, 0.0, 1.0);
        assert_eq!(refine(&image, [3.0, 20.0], 7), None);
        assert_eq!(refine(&Image::from_fn(64, 48, |_, _| 90), [30.0, 20.0], 7), None);
    }

    #[test]
    fn edges_are_as_wide_as_their_blur() {
        let width = |sigma: f64| {
            let image = Image::from_fn(64, 48, |x, _| {
                // The logistic function is the Gaussian's integral but for 2 %.
                let t = (x as f64 - 31.3) * 1.702 / sigma;
                (40.0 + 160.0 / (1.0 + (-t).exp())).round() as u8
            });
            edge_width(&image, [31.3, 4.0], [31.3, 44.0], 0.4).unwrap()
        };
        assert!((width(2.0) - 5.0).abs() < 0.5, "{}", width(2.0));
        assert!((width(3.0) - 7.5).abs() < 0.6, "{}", width(3.0));
        assert!(width(0.5) < 1.8, "{}", width(0.5));
    }
}
