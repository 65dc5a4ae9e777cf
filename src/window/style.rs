//! Sizes and colours of the overlay, and lines of text on a translucent panel.

use egui::text::{LayoutJob, TextFormat};
use egui::{Align2, Color32, FontId, Painter, Rect, vec2};

/// Text size in points.
pub(super) const TEXT: f32 = 13.0;
pub(super) const MARGIN: f32 = 8.0;
pub(super) const PADDING: f32 = 6.0;
pub(super) const PANEL: Color32 = Color32::from_black_alpha(170);
pub(super) const BRIGHT: Color32 = Color32::from_gray(245);
pub(super) const DIM: Color32 = Color32::from_gray(190);
pub(super) const ALARM: Color32 = Color32::from_rgb(255, 190, 60);

pub(super) struct Line {
    text: String,
    colour: Color32,
}

impl Line {
    pub(super) fn new(text: String, colour: Color32) -> Self {
        Self { text, colour }
    }

    #[cfg(test)]
    pub(super) fn text(&self) -> &str {
        &self.text
    }
}

/// Paints text on a translucent panel at one edge of `area`. Returns its rectangle.
pub(super) fn panel(
    painter: &Painter,
    area: Rect,
    at: Align2,
    fill: Color32,
    lines: Vec<Line>,
) -> Rect {
    let mut job = LayoutJob::default();
    job.wrap.max_width = (area.width() - 2.0 * PADDING).max(1.0);
    for (i, line) in lines.iter().enumerate() {
        let lead = if i == 0 { "" } else { "\n" };
        let format = TextFormat::simple(FontId::monospace(TEXT), line.colour);
        job.append(&format!("{lead}{}", line.text), 0.0, format);
    }
    let galley = painter.layout_job(job);
    let rect = at.align_size_within_rect(galley.size() + vec2(2.0, 2.0) * PADDING, area);
    painter.rect_filled(rect, 4.0, fill);
    painter.galley(rect.min + vec2(PADDING, PADDING), galley, BRIGHT);
    rect
}
