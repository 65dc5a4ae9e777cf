//! Distances between two points, and the pixel under the mouse.

use super::super::options::View;
use super::super::orbit::{Point, Space, geometry_of, point};
use super::super::overlay::Ruler;
use super::super::pane::Pane;
use super::super::scene::Scene;
use super::{App, size};
use stereod_core::frame::{Matched, SUBPIXEL};
use stereod_core::matching::confidence::deviation_px;
use stereod_io::text::rounded;

/// Distance from the mouse in points within which a point in space is picked.
const REACH: f64 = 12.0;

impl App {
    /// Returns the panes of the images, without the room that is taken.
    pub(super) fn panes(&self) -> Vec<Pane> {
        let (Some(screen), Some(frame)) = (&self.shell.screen, &self.frame) else {
            return Vec::new();
        };
        self.scene().panes(size(frame), screen.size())
    }

    /// Returns the pixel at a place of the window, and its pane. In three dimensions, it is that of the
    /// nearest point.
    pub(super) fn pixel_at(&self, at: (f64, f64)) -> Option<(Pane, (u32, u32))> {
        let frame = self.frame.as_ref()?;
        let scale = self.shell.screen.as_ref().map_or(1.0, |it| it.window.scale_factor());
        self.panes().into_iter().find_map(|pane| {
            let pixel = match self.view {
                View::Points if !pane.contains(at) => None,
                View::Points => space(frame, &self.scene(), pane).pick(frame, at, REACH * scale),
                _ => pane.pixel_at(at, size(frame)),
            };
            Some((pane, pixel?))
        })
    }

    pub(super) fn toggle_measuring(&mut self) {
        self.measured = match self.measured {
            Some(_) => None,
            None => Some(Vec::new()),
        };
        self.overlay = true;
    }

    /// Takes the pixel under the mouse as an end, if two points are being measured. A third one begins anew.
    pub(super) fn measure_here(&mut self) {
        let pixel = self.cursor.and_then(|at| self.pixel_at(at)).map(|(_, pixel)| pixel);
        if let (Some(measured), Some(pixel)) = (&mut self.measured, pixel) {
            if measured.len() == 2 {
                measured.clear();
            }
            measured.push(pixel);
        }
    }

    pub(super) fn ruler(&self) -> Option<Ruler> {
        let measured = self.measured.as_ref()?;
        let frame = self.frame.as_ref()?;
        Some(ruler(frame, &self.scene(), &self.panes(), measured))
    }
}

/// Returns the ruler between two pixels of a frame on these panes; there may be fewer as yet.
pub(crate) fn ruler(
    frame: &Matched,
    scene: &Scene,
    panes: &[Pane],
    measured: &[(u32, u32)],
) -> Ruler {
    let (width, height) = size(frame);
    // The image may have become smaller.
    let measured = measured.iter().map(|&(x, y)| (x.min(width - 1), y.min(height - 1)));
    let measured: Vec<_> = measured.collect();
    let ends = panes.iter().map(|&pane| {
        [0, 1].map(|end| measured.get(end).and_then(|&it| place_on(frame, scene, pane, it)))
    });
    let ends = ends.collect();
    let text = match measured[..] {
        [] => "measure: click the first point".to_owned(),
        [_] => "measure: click the second point".to_owned(),
        [first, second, ..] => between(frame, first, second),
    };
    Ruler { ends, text }
}

fn space(frame: &Matched, scene: &Scene, pane: Pane) -> Space {
    Space::new(scene.orbit, geometry_of(frame), size(frame), pane)
}

/// Returns the place of a pixel on a pane; `None` if it is not to be seen.
pub(super) fn place_on(
    frame: &Matched,
    scene: &Scene,
    pane: Pane,
    pixel: (u32, u32),
) -> Option<(f64, f64)> {
    let at = match scene.view {
        View::Points => {
            let value = value_at(frame, pixel);
            let seen = point(&geometry_of(frame), (pixel.0 as f32, pixel.1 as f32), value)?;
            space(frame, scene, pane).place(seen)?.0
        }
        _ => pane.centre_of(pixel, size(frame)),
    };
    pane.contains(at).then_some(at)
}

fn value_at(frame: &Matched, (x, y): (u32, u32)) -> i16 {
    frame.disparity.values()[y as usize * frame.disparity.width() + x as usize]
}

/// Describes the distance between the points of two pixels.
fn between(frame: &Matched, first: (u32, u32), second: (u32, u32)) -> String {
    let geometry = geometry_of(frame);
    let of = |(x, y): (u32, u32)| point(&geometry, (x as f32, y as f32), value_at(frame, (x, y)));
    let (Some(from), Some(to)) = (of(first), of(second)) else {
        return "measure: a point has no disparity; click again".to_owned();
    };
    let [x, y, z]: [f32; 3] = std::array::from_fn(|axis| to[axis] - from[axis]);
    let distance = (x * x + y * y + z * z).sqrt();
    if frame.geometry.is_none() {
        return "measure: distances need a calibration (--calibration)".to_owned();
    }
    // A point moves along its ray as its disparity does.
    let deviation = |pixel: (u32, u32), point: Point| {
        let confidence = frame.confidence.as_ref()?.row(pixel.1 as usize)[pixel.0 as usize];
        let disparity = f64::from(value_at(frame, pixel)) / f64::from(SUBPIXEL);
        let depth = geometry.depth_deviation_m(disparity, deviation_px(confidence)?)?;
        let along = (point[0] * x + point[1] * y + point[2] * z) / (point[2] * distance);
        Some(depth * f64::from(along))
    };
    let error = deviation(first, from).zip(deviation(second, to));
    let error = error.map_or(String::new(), |(from, to)| {
        let error = from.hypot(to);
        // Two digits that count.
        let digits = (1.0 - error.log10().floor()).clamp(0.0, 9.0) as usize;
        format!(" ± {error:.digits$}")
    });
    let [x, y, z] = [x, y, z].map(|part| rounded(part.into(), 3));
    format!("distance {distance:.3}{error} m (right {x:+.3}, down {y:+.3}, forward {z:+.3})")
}

#[cfg(test)]
mod tests {
    use super::*;
    use stereod_core::frame::{
        DisparityMap, DisparityRange, INVALID, Image, StereoGeometry, StereoPair,
    };

    #[test]
    fn a_distance_is_that_of_the_points() {
        let range = DisparityRange { min: 0, count: 64 };
        let map = DisparityMap::of_values(3, range, vec![160, INVALID, 320]);
        let grey = || Image::from_fn(3, 1, |_, _| 0);
        let mut frame = Matched::new(StereoPair::of_stills(grey(), grey()), map);
        assert!(between(&frame, (0, 0), (2, 0)).contains("--calibration"));
        frame.geometry = Some(StereoGeometry {
            focal_px: 2.0,
            baseline_m: 10.0,
            centre_x_px: 0.0,
            centre_y_px: 0.0,
            right_centre_x_px: 0.0,
        });
        // Depths of 2 m and 1 m; the second point is 1 m to the right.
        let text = between(&frame, (0, 0), (2, 0));
        assert_eq!(text, "distance 1.414 m (right +1.000, down +0.000, forward -1.000)");
        assert!(between(&frame, (0, 0), (1, 0)).contains("no disparity"));
        // The depth of the first point may be 2^2 / 20 * 0.27 m off, at 45 degrees to the distance. The second
        // one moves at right angles to it.
        frame.confidence = Some(Image::from_fn(3, 1, |_, _| 255));
        let text = between(&frame, (0, 0), (2, 0));
        assert!(text.starts_with("distance 1.414 ± 0.038 m"), "{text}");
        frame.confidence = Some(Image::from_fn(3, 1, |x, _| u8::from(x > 0)));
        assert!(between(&frame, (0, 0), (2, 0)).starts_with("distance 1.414 m"));
    }
}
