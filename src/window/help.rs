//! The sheets in front of the images: all keys, and the machine's devices.

use std::sync::Arc;

use egui::{Align2, Color32, FontId, Galley, Painter, pos2, vec2};

use super::style::{BRIGHT, DIM};
use crate::keys::{Group, KEYS, On, Row};

const COLUMNS: [&[Group]; 2] = [&[Group::Views], &[Group::Playback, Group::Tuning, Group::Files]];

/// Text sizes in points, the first of which that fits is taken.
const SIZES: [f32; 7] = [17.0, 15.0, 13.0, 11.0, 9.0, 7.0, 5.0];

const KEY: Color32 = Color32::from_rgb(130, 200, 255);

/// A text and its place on the sheet.
type Placed = (egui::Pos2, Arc<Galley>);

/// A sheet in front of the images.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sheet {
    Help,
    /// A list of the machine's devices.
    Devices(String),
}

impl Sheet {
    /// Paints the sheet in the middle of a dimmed view.
    pub(super) fn paint(&self, painter: &Painter) {
        let area = painter.clip_rect();
        painter.rect_filled(area, 0.0, Color32::from_black_alpha(150));
        let lay_out = |size| match self {
            Sheet::Help => lay_out(painter, size),
            Sheet::Devices(text) => lay_out_text(painter, text, size),
        };
        let fits = |size: &f32| {
            let (texts, extent) = lay_out(*size);
            (extent.x <= area.width() && extent.y <= area.height()).then_some((texts, extent))
        };
        let sheet = SIZES.iter().find_map(fits);
        let (texts, extent) = sheet.unwrap_or_else(|| lay_out(SIZES[SIZES.len() - 1]));
        let rect = Align2::CENTER_CENTER.align_size_within_rect(extent, area);
        painter.rect_filled(rect, 6.0, Color32::from_rgba_unmultiplied(16, 18, 22, 250));
        for (at, galley) in texts {
            painter.galley(rect.min + at.to_vec2(), galley, BRIGHT);
        }
    }
}

/// Lays a list out, whose long lines go on in the next one.
fn lay_out_text(painter: &Painter, text: &str, size: f32) -> (Vec<Placed>, egui::Vec2) {
    let margin = 1.5 * size;
    let width = painter.clip_rect().width() - 2.0 * margin;
    let list = painter.layout(text.to_owned(), FontId::monospace(size), BRIGHT, width);
    let hint = "v, Esc or a click closes this".to_owned();
    let close = painter.layout_no_wrap(hint, FontId::proportional(0.9 * size), DIM);
    let below = margin + list.size().y + 0.5 * size;
    let extent = vec2(list.size().x.max(close.size().x), below + close.size().y + margin);
    (
        vec![(pos2(margin, margin), list), (pos2(margin, below), close)],
        extent + vec2(2.0 * margin, 0.0),
    )
}

/// Returns the window's keys of a group.
fn rows(group: &Group) -> impl Iterator<Item = &'static Row> {
    KEYS.iter().filter(move |row| row.group == *group && row.on != On::Page)
}

/// Lays all texts out in this size. Returns them with their places, and the extent of the sheet.
fn lay_out(painter: &Painter, size: f32) -> (Vec<Placed>, egui::Vec2) {
    let text = |text: &str, font, colour| painter.layout_no_wrap(text.to_owned(), font, colour);
    let plain = || FontId::proportional(size);
    let (line, margin) = (1.4 * size, 1.5 * size);
    let widest = |texts: &mut dyn Iterator<Item = Arc<Galley>>| {
        texts.map(|galley| galley.size().x).fold(0.0, f32::max)
    };
    let (mut texts, mut x, mut bottom) = (Vec::new(), margin, 0.0_f32);
    for groups in COLUMNS {
        let lines = || groups.iter().flat_map(rows);
        let key = |row: &Row| text(&row.names().join(" "), FontId::monospace(size), KEY);
        let meaning = |row: &Row| text(row.meaning, plain(), BRIGHT);
        let keys = widest(&mut lines().map(key)) + size;
        let width = widest(&mut lines().map(meaning));
        let mut y = margin;
        for (index, group) in groups.iter().enumerate() {
            y += if index > 0 { 0.8 * line } else { 0.0 };
            let heading = text(&format!("{group:?}"), FontId::proportional(1.1 * size), DIM);
            texts.push((pos2(x, y), heading));
            y += 1.2 * line;
            for row in rows(group) {
                texts.push((pos2(x, y), key(row)));
                texts.push((pos2(x + keys, y), meaning(row)));
                y += line;
            }
        }
        x += keys + width + 2.0 * margin;
        bottom = bottom.max(y);
    }
    let close = text("h, Esc or a click closes this", FontId::proportional(0.9 * size), DIM);
    texts.push((pos2(margin, bottom + 0.5 * line), close));
    (texts, vec2(x - margin, bottom + 1.5 * line + margin))
}

#[cfg(test)]
mod tests {
    use egui::{Context, Pos2, RawInput, Rect, Shape};

    use super::*;

    /// Paints the sheet on a screen of this size in points, and returns the places of its texts.
    fn places(sheet: &Sheet, width: f32, height: f32) -> Vec<Rect> {
        let screen = Rect::from_min_size(Pos2::ZERO, vec2(width, height));
        let context = Context::default();
        let mut places = Vec::new();
        // Fonts are there from the second pass on.
        for _ in 0..2 {
            let input = RawInput { screen_rect: Some(screen), ..Default::default() };
            let mut output = context.run_pass(input, |context| {
                sheet.paint(&context.layer_painter(egui::LayerId::background()));
            });
            output.textures_delta.clear();
            let rect = |shape: &Shape| match shape {
                Shape::Text(text) => Some(text.visual_bounding_rect()),
                _ => None,
            };
            places = output.shapes.iter().filter_map(|clipped| rect(&clipped.shape)).collect();
        }
        places
    }

    #[test]
    fn the_sheet_fits_its_window_without_overlaps() {
        // The last is 1280x720 pixels at 200 %.
        for (width, height, smallest) in [
            (1920.0, 1080.0, 15.0),
            (1280.0, 720.0, 15.0),
            (640.0, 480.0, 11.0),
            (640.0, 360.0, 9.0),
        ] {
            let places = places(&Sheet::Help, width, height);
            assert!(places.len() > 40, "{}", places.len());
            let screen = Rect::from_min_size(Pos2::ZERO, vec2(width, height));
            for (index, place) in places.iter().enumerate() {
                assert!(screen.contains_rect(*place), "{place:?} at {width}x{height}");
                for other in &places[..index] {
                    let common = place.intersect(*other);
                    let overlaps = common.width() > 1.0 && common.height() > 3.0;
                    assert!(!overlaps, "{place:?} and {other:?} at {width}x{height}");
                }
            }
            let tallest = places.iter().map(|place| place.height()).fold(0.0, f32::max);
            assert!(tallest >= smallest, "{tallest} points at {width}x{height}");
        }
    }

    #[test]
    fn a_long_list_stays_on_the_screen() {
        let line = "  /dev/v4l/by-path/pci-0000:00:14.0-usb-0:2:1.0-video-index0, busy: in use by another\n";
        for (width, height, lines) in [(1280.0, 720.0, 20), (640.0, 360.0, 20)] {
            let list = Sheet::Devices(line.repeat(lines));
            let screen = Rect::from_min_size(Pos2::ZERO, vec2(width, height));
            let places = places(&list, width, height);
            assert_eq!(places.len(), 2);
            assert!(places.iter().all(|place| screen.contains_rect(*place)), "{places:?}");
        }
    }
}
