//! Obstacles from above: ahead is up.

use egui::{Align2, Color32, FontId, Painter, Pos2, Rect, Shape, Stroke, pos2, vec2};

use super::style::{BRIGHT, PADDING, PANEL, TEXT};
use stereod_core::obstacles::{Bin, Obstacles, Scan};
use stereod_obstacles::words;

const SIZE: [f32; 2] = [240.0, 150.0];
const CLEAR: Color32 = Color32::from_rgb(30, 122, 60);
const UNKNOWN: Color32 = Color32::from_gray(105);

/// Paints the scan and the zones in the lower left corner of an area.
pub(super) fn paint(painter: &Painter, area: Rect, obstacles: &Obstacles) {
    let said = words::in_words(obstacles);
    let nearest = said.split(';').next().unwrap_or_default().to_owned();
    let zones = obstacles.zones.iter().map(words::of_zone);
    let text = [nearest].into_iter().chain(zones).collect::<Vec<_>>().join("\n");
    let galley = painter.layout(text, FontId::monospace(TEXT - 2.0), BRIGHT, SIZE[0]);
    let size = vec2(SIZE[0], SIZE[1] + PADDING + galley.size().y) + vec2(2.0, 2.0) * PADDING;
    let rect = Align2::LEFT_BOTTOM.align_size_within_rect(size, area);
    painter.rect_filled(rect, 4.0, PANEL);
    let inner = rect.shrink(PADDING);
    let picture = Rect::from_min_size(inner.min, vec2(SIZE[0], SIZE[1]));
    let clipped = painter.with_clip_rect(picture.intersect(painter.clip_rect()));
    for (corners, colour) in wedges(&obstacles.scan, picture) {
        clipped.add(Shape::convex_polygon(corners, colour, Stroke::NONE));
    }
    painter.galley(pos2(inner.min.x, picture.max.y + PADDING), galley, BRIGHT);
}

/// Returns corners and colours: to the end of what is seen through, and the obstacles there.
fn wedges(scan: &Scan, picture: Rect) -> Vec<(Vec<Pos2>, Color32)> {
    let apex = picture.center_bottom();
    let middle = scan.first_deg + scan.bin_deg * scan.bins.len() as f64 / 2.0;
    let at = |edge: usize, away: f32| {
        let angle = (scan.first_deg + scan.bin_deg * edge as f64 - middle).to_radians() as f32;
        apex - away * picture.height() * vec2(angle.sin(), angle.cos())
    };
    let mut wedges = Vec::with_capacity(2 * scan.bins.len());
    for (bin, state) in scan.bins.iter().enumerate() {
        let (reach, colour) = match state {
            Bin::Obstacle(nearest) => ((nearest.distance_m / scan.far_m).min(1.0) as f32, CLEAR),
            Bin::Clear => (1.0, CLEAR),
            Bin::Unknown => (1.0, UNKNOWN),
        };
        wedges.push((vec![apex, at(bin, reach), at(bin + 1, reach)], colour));
        if let Bin::Obstacle(_) = state {
            let near = (reach - 0.03).max(0.0);
            let corners =
                vec![at(bin, near), at(bin, reach), at(bin + 1, reach), at(bin + 1, near)];
            wedges.push((corners, Color32::from_rgb(235, (220.0 * reach) as u8, 40)));
        }
    }
    wedges
}

#[cfg(test)]
mod tests {
    use super::*;
    use stereod_core::obstacles::Nearest;

    #[test]
    fn left_is_left_and_near_is_below() {
        let nearest = Nearest {
            distance_m: 5.0,
            nearest_m: 5.0,
            sigma_m: 0.1,
            position_m: [5.0, 1.0, 0.0],
            pixels: 99,
        };
        let bins = vec![Bin::Clear, Bin::Unknown, Bin::Obstacle(nearest)];
        let scan = Scan { first_deg: -30.0, bin_deg: 20.0, bins, near_m: 0.5, far_m: 10.0 };
        let picture = Rect::from_min_size(pos2(0.0, 0.0), vec2(240.0, 150.0));
        let wedges = wedges(&scan, picture);
        let colours: Vec<_> = wedges.iter().map(|(_, colour)| *colour).collect();
        assert_eq!(colours, [CLEAR, UNKNOWN, CLEAR, Color32::from_rgb(235, 110, 40)]);
        // The first bin is the rightmost one.
        assert!(wedges[0].0[1].x > 120.0 && wedges[3].0[1].x < 120.0, "{wedges:?}");
        let farthest = |corners: &[Pos2]| corners.iter().map(|at| at.y).fold(150.0, f32::min);
        assert!(farthest(&wedges[1].0) < 3.0, "{wedges:?}");
        assert!((farthest(&wedges[3].0) - 77.0).abs() < 6.0, "{wedges:?}");
    }
}
