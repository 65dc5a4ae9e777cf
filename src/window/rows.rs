//! Lines along the rows of both views. In rectified views a point lies on the same row of both (the
//! epipolar constraint; Hartley and Zisserman, Multiple View Geometry, 11.12).

use egui::{Align2, Color32, FontId, Painter, Rect, Stroke, pos2, vec2};

use super::pane::Pane;
use super::style::{BRIGHT, MARGIN, PANEL, TEXT};

/// Smallest distance of two lines on the screen, in points.
const APART: f32 = 26.0;

const COLOURS: [[u8; 3]; 4] = [[90, 230, 120], [255, 200, 60], [90, 200, 255], [255, 120, 190]];

#[derive(Clone, Debug, PartialEq)]
pub struct Rows {
    pub panes: Vec<Pane>,
    /// Width and height of an image.
    pub picture: (u32, u32),
    pub mouse: Option<u32>,
}

impl Rows {
    pub(super) fn paint(&self, painter: &Painter, scale: f32) {
        let (Some(first), Some(last)) = (self.panes.first(), self.panes.last()) else { return };
        let top = first.y as f32 / scale;
        let shown = painter.clip_rect();
        let shown = shown.intersect(Rect::everything_below(top));
        let painter = &painter.with_clip_rect(
            shown.intersect(Rect::everything_above((first.y + first.height) as f32 / scale)),
        );
        let left = first.x as f32 / scale;
        let right = (last.x + last.width) as f32 / scale;
        let y = |row: u32| first.centre_of((0, row), self.picture).1 as f32 / scale;
        let line = |row: u32, stroke| painter.hline(left..=right, y(row), stroke);
        let step = step(first.height as f32 / scale / self.picture.1 as f32 / first.part[3]);
        for (i, row) in (step / 2..self.picture.1).step_by(step as usize).enumerate() {
            let [r, g, b] = COLOURS[i % COLOURS.len()];
            line(row, Stroke::new(1.0, Color32::from_rgba_unmultiplied(r, g, b, 200)));
        }
        for pane in &self.panes[1..] {
            let x = pane.x as f32 / scale;
            let (top, height) = (pane.y as f32 / scale, pane.height as f32 / scale);
            let border = Rect::from_min_size(pos2(x, top), vec2(0.0, height));
            painter.vline(x, border.y_range(), Stroke::new(2.0, Color32::BLACK));
        }
        let Some(row) = self.mouse else { return };
        line(row, Stroke::new(3.0, Color32::from_black_alpha(170)));
        line(row, Stroke::new(1.0, Color32::WHITE));
        let label =
            painter.layout_no_wrap(format!("row {row}"), FontId::monospace(TEXT - 2.0), BRIGHT);
        let size = label.size() + vec2(6.0, 2.0);
        // Above the line, or below it at the top edge.
        let above = y(row) - size.y - 2.0;
        let top = if above < first.y as f32 / scale { y(row) + 2.0 } else { above };
        let at = pos2(left + MARGIN, top);
        let rect = Align2::LEFT_TOP.anchor_size(at, size);
        painter.rect_filled(rect, 2.0, PANEL);
        painter.galley(rect.min + vec2(3.0, 1.0), label, BRIGHT);
    }
}

/// Returns the number of rows from one line to the next if a row is `height` points high: a power of
/// two, so that lines keep their rows while a window grows.
fn step(height: f32) -> u32 {
    let mut step = 4;
    while (step as f32) * height < APART && step < 1 << 16 {
        step *= 2;
    }
    step
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_apart_at_any_size() {
        assert_eq!((step(1.0), step(2.0), step(0.5), step(0.1)), (32, 16, 64, 512));
        assert_eq!(step(100.0), 4);
        assert!(step(0.0) > 1 << 10, "an end is found for a pane without height");
    }
}
