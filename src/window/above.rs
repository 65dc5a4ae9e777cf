//! Obstacles and zones: over the images, and from above, where ahead is up.

use egui::{Align2, Color32, FontId, Painter, Pos2, Rect, Shape, Stroke, pos2, vec2};

use super::options::Content;
use super::pane::Pane;
use super::style::{BRIGHT, PADDING, PANEL, TEXT};
use stereod_core::frame::Matched;
use stereod_core::obstacles::{Bin, Obstacles, Scan, Zone};
use stereod_obstacles::overlay::{self, Overlay};
use stereod_obstacles::words;
use stereod_obstacles::zones::ZoneRule;

const SIZE: [f32; 2] = [240.0, 150.0];

/// Height in points of the scan over an image.
const STRIP: f32 = 8.0;

/// What stands around the vehicle, and where it is in the images.
#[derive(Clone, Debug)]
pub struct Around {
    found: Obstacles,
    places: Overlay,
    panes: Vec<Pane>,
}

impl Around {
    /// Returns what was found in a pair, for the panes that show the left image or something in its place.
    pub fn new(frame: &Matched, zones: &[ZoneRule], mut panes: Vec<Pane>) -> Option<Self> {
        let found = frame.obstacles.clone()?;
        let size = (frame.disparity.width(), frame.disparity.height());
        let places = frame.geometry.map(|geometry| Overlay::new(&found, zones, geometry, size));
        panes.retain(|pane| !matches!(pane.content, Content::Right | Content::Points));
        Some(Self { found, places: places.unwrap_or_default(), panes })
    }

    /// Paints the scan in a strip at the upper edge of the images, and the zones.
    pub(super) fn paint_over_images(&self, painter: &Painter, scale: f32) {
        for pane in &self.panes {
            let at = |place: [f64; 2]| {
                let (x, y) = pane.position_of(place);
                pos2(x as f32, y as f32) / scale
            };
            let [left, top] = [pane.x, pane.y].map(|edge| edge as f32 / scale);
            let size = vec2(pane.width as f32, pane.height as f32) / scale;
            let rect = Rect::from_min_size(pos2(left, top), size);
            let clipped = painter.with_clip_rect(rect.intersect(painter.clip_rect()));
            let scan = &self.found.scan;
            for (bin, edges) in scan.bins.iter().zip(self.places.edges.windows(2)) {
                let [right, left] = [edges[0], edges[1]].map(|x| at([x, 0.0]).x);
                let strip = Rect::from_x_y_ranges(left..=right, top..=top + STRIP);
                clipped.rect_filled(strip, 0.0, shown(overlay::colour(*bin, scan.far_m)));
            }
            for (zone, lines) in self.found.zones.iter().zip(&self.places.zones) {
                let lines: Vec<_> = lines.iter().map(|line| line.map(at)).collect();
                paint_zone(&clipped, rect, zone, &lines);
            }
        }
    }

    /// Paints the scan and the zones in the lower left corner of an area. Returns the rectangle that they take.
    pub(super) fn paint_from_above(&self, painter: &Painter, area: Rect) -> Rect {
        let said = words::in_words(&self.found);
        let nearest = said.split(';').next().unwrap_or_default().to_owned();
        let zones = self.found.zones.iter().map(words::of_zone);
        let text = [nearest].into_iter().chain(zones).collect::<Vec<_>>().join("\n");
        let galley = painter.layout(text, FontId::monospace(TEXT - 2.0), BRIGHT, SIZE[0]);
        let size = vec2(SIZE[0], SIZE[1] + PADDING + galley.size().y) + vec2(2.0, 2.0) * PADDING;
        let rect = Align2::LEFT_BOTTOM.align_size_within_rect(size, area);
        painter.rect_filled(rect, 4.0, PANEL);
        let inner = rect.shrink(PADDING);
        let picture = Rect::from_min_size(inner.min, vec2(SIZE[0], SIZE[1]));
        let clipped = painter.with_clip_rect(picture.intersect(painter.clip_rect()));
        for (corners, colour) in wedges(&self.found.scan, picture) {
            clipped.add(Shape::convex_polygon(corners, shown(colour), Stroke::NONE));
        }
        painter.galley(pos2(inner.min.x, picture.max.y + PADDING), galley, BRIGHT);
        rect
    }
}

fn shown([red, green, blue]: overlay::Colour) -> Color32 {
    Color32::from_rgb(red, green, blue)
}

/// Paints the lines of a zone in the colour of its state, and its name with the distance of what is in it.
fn paint_zone(painter: &Painter, rect: Rect, zone: &Zone, lines: &[[Pos2; 2]]) {
    let colour = shown(overlay::zone_colour(zone.occupied));
    for (width, colour) in [(4.0, Color32::from_black_alpha(180)), (2.0, colour)] {
        for &line in lines {
            painter.line_segment(line, Stroke::new(width, colour));
        }
    }
    let ends = lines.iter().flatten().filter(|end| rect.expand(1.0).contains(**end));
    let Some(top) = ends.min_by(|a, b| a.y.total_cmp(&b.y)) else { return };
    let galley = painter.layout_no_wrap(name_of(zone), FontId::monospace(TEXT), colour);
    // Below the strip, and not cut off at the right.
    let inner = rect.shrink2(vec2(2.0, STRIP + 2.0));
    let at = top.min(inner.max - galley.size()).max(inner.min);
    painter.rect_filled(Rect::from_min_size(at, galley.size()).expand(2.0), 2.0, PANEL);
    painter.galley(at, galley, colour);
}

/// Returns the name, and the distance of the nearest thing in the zone.
fn name_of(zone: &Zone) -> String {
    let away = zone.nearest.map(|it| format!(" {:.2} m", it.distance_m)).unwrap_or_default();
    format!("{}{away}", zone.name)
}

/// Returns corners and colours: to the end of what is seen through, and the obstacles there.
fn wedges(scan: &Scan, picture: Rect) -> Vec<(Vec<Pos2>, overlay::Colour)> {
    let apex = picture.center_bottom();
    let middle = scan.first_deg + scan.bin_deg * scan.bins.len() as f64 / 2.0;
    let at = |edge: usize, away: f32| {
        let angle = (scan.first_deg + scan.bin_deg * edge as f64 - middle).to_radians() as f32;
        apex - away * picture.height() * vec2(angle.sin(), angle.cos())
    };
    let mut wedges = Vec::with_capacity(2 * scan.bins.len());
    for (bin, state) in scan.bins.iter().enumerate() {
        let (reach, behind) = match state {
            Bin::Obstacle(nearest) => {
                ((nearest.distance_m / scan.far_m).min(1.0) as f32, Bin::Clear)
            }
            Bin::Clear | Bin::Unknown => (1.0, *state),
        };
        wedges.push((
            vec![apex, at(bin, reach), at(bin + 1, reach)],
            overlay::colour(behind, scan.far_m),
        ));
        if let Bin::Obstacle(_) = state {
            let near = (reach - 0.03).max(0.0);
            let corners =
                vec![at(bin, near), at(bin, reach), at(bin + 1, reach), at(bin + 1, near)];
            wedges.push((corners, overlay::colour(*state, scan.far_m)));
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
        assert_eq!(colours, [overlay::CLEAR, overlay::UNKNOWN, overlay::CLEAR, [235, 110, 40]]);
        // The first bin is the rightmost one.
        assert!(wedges[0].0[1].x > 120.0 && wedges[3].0[1].x < 120.0, "{wedges:?}");
        let farthest = |corners: &[Pos2]| corners.iter().map(|at| at.y).fold(150.0, f32::min);
        assert!(farthest(&wedges[1].0) < 3.0, "{wedges:?}");
        assert!((farthest(&wedges[3].0) - 77.0).abs() < 6.0, "{wedges:?}");
    }
}
