//! Path of the vehicle from above, where ahead at the first pair is up.

use egui::{Align2, Color32, FontId, Painter, Pos2, Rect, Shape, Stroke, pos2, vec2};

use super::style::{ALARM, BRIGHT, DIM, PADDING, PANEL, TEXT};
use crate::trail::Trail;

/// Side in points of the square with the path.
const SIDE: f32 = 160.0;

/// Width in points of all.
pub(super) const WIDTH: f32 = SIDE + 2.0 * PADDING;

const LINE: Color32 = Color32::from_rgb(86, 180, 233);

/// Corners of the vehicle in points, if it drives up the screen.
const VEHICLE: [[f32; 2]; 4] = [[0.0, -7.0], [5.0, 7.0], [0.0, 4.0], [-5.0, 7.0]];

/// The path, in shares of the side from the left and from the top.
#[derive(Clone, Debug, PartialEq)]
pub struct Path {
    /// Polylines, which end at breaks.
    lines: Vec<Vec<[f32; 2]>>,
    vehicle: [f32; 2],
    /// Clockwise from up.
    direction_rad: f32,
    /// Length of the scale bar, and its name.
    bar: (f32, String),
    text: String,
    is_lost: bool,
}

impl Path {
    /// Returns the path as it is shown; `None` before its first point.
    pub(super) fn of(trail: &Trail) -> Option<Self> {
        let vehicle = trail.vehicle()?;
        let square = trail.square();
        let share_of = |at| square.share_of(at).map(|share| share as f32);
        let mut lines: Vec<Vec<_>> = Vec::new();
        for point in trail.points() {
            match lines.last_mut() {
                Some(line) if !point.begins => line.push(share_of(point.at)),
                _ => lines.push(vec![share_of(point.at)]),
            }
        }
        let now = share_of(vehicle.at);
        lines.last_mut().into_iter().for_each(|line| line.push(now));
        let bar_m = square.bar_m();
        Some(Self {
            lines,
            vehicle: now,
            direction_rad: vehicle.direction_deg.to_radians() as f32,
            bar: ((bar_m / square.side_m) as f32, format!("{bar_m} m")),
            text: vehicle.text.clone(),
            is_lost: vehicle.is_lost,
        })
    }

    /// Paints the path in the lower right corner of an area.
    pub(super) fn paint(&self, painter: &Painter, area: Rect) {
        let (font, colour) =
            (FontId::monospace(TEXT - 2.0), if self.is_lost { ALARM } else { BRIGHT });
        let galley = painter.layout(self.text.clone(), font.clone(), colour, SIDE);
        let size = vec2(SIDE, SIDE + PADDING + galley.size().y) + vec2(2.0, 2.0) * PADDING;
        let rect = Align2::RIGHT_BOTTOM.align_size_within_rect(size, area);
        painter.rect_filled(rect, 4.0, PANEL);
        let corner = rect.min + vec2(PADDING, PADDING);
        let at = |[across, down]: [f32; 2]| corner + SIDE * vec2(across, down);
        for line in &self.lines {
            let line = line.iter().map(|&place| at(place)).collect();
            painter.add(Shape::line(line, Stroke::new(2.0, LINE)));
        }
        let corners = vehicle_at(at(self.vehicle), self.direction_rad);
        // An arrow is not convex, but each of its halves is.
        for half in [[0, 1, 2], [0, 2, 3]] {
            let half = half.map(|corner| corners[corner]).to_vec();
            painter.add(Shape::convex_polygon(half, colour, Stroke::NONE));
        }
        let (length, name) = &self.bar;
        let [from, to] = [0.0, *length].map(|across| at([across, 1.0]) - vec2(0.0, 1.0));
        painter.line_segment([from, to], Stroke::new(2.0, DIM));
        painter.text(from - vec2(0.0, 2.0), Align2::LEFT_BOTTOM, name, font, DIM);
        painter.galley(pos2(corner.x, corner.y + SIDE + PADDING), galley, colour);
    }
}

/// Returns the corners of the vehicle at a place of the screen.
fn vehicle_at(place: Pos2, direction_rad: f32) -> [Pos2; 4] {
    let (sin, cos) = direction_rad.sin_cos();
    VEHICLE.map(|[x, y]| place + vec2(x * cos - y * sin, x * sin + y * cos))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::followed::tests::odometry;
    use stereod_core::pose::Odometry;

    #[test]
    fn breaks_part_the_lines_and_the_last_one_ends_at_the_vehicle() {
        let mut trail = Trail::default();
        assert_eq!(Path::of(&trail), None);
        for (ahead, breaks) in [(0.0, 0), (1.0, 0), (2.0, 1), (2.01, 1)] {
            trail.add(&Odometry { breaks, ..odometry([0.0, 0.0, ahead], None) });
        }
        let path = Path::of(&trail).unwrap();
        // 4 m with the vehicle 1.005 m above the middle.
        let lines = path.lines.iter().map(|line| line.iter().map(|place| place[1]));
        let lines: Vec<Vec<_>> = lines.map(Iterator::collect).collect();
        assert_eq!(lines, [vec![0.75125, 0.50125], vec![0.25125, 0.24875]]);
        assert_eq!(path.vehicle, [0.5, 0.24875]);
        assert_eq!(path.bar, (0.25, "1 m".into()));
    }

    #[test]
    fn a_vehicle_that_turned_right_points_to_the_right() {
        let [tip, ..] = vehicle_at(pos2(10.0, 10.0), std::f32::consts::FRAC_PI_2);
        assert!((tip - pos2(17.0, 10.0)).length() < 1e-5, "{tip}");
    }
}
