//! The line between two maps of one view, with the settings in which they differ.

use egui::{Align2, Painter, Pos2, Rect, Shape, Stroke, pos2, vec2};

use super::options::Content;
use super::pane::Pane;
use super::style::{ALARM, BRIGHT, DIM, Line, MARGIN, PANEL, panel};
use crate::viewer::Knob;
use stereod_core::frame::{DisparityMap, INVALID};

pub(super) const NAMES: [&str; 2] = ["A", "B"];

/// Distance from the line in points within which the mouse holds it.
pub(super) const REACH: f32 = 10.0;

/// Narrowest place of a label, in points.
const NARROW: f32 = 72.0;

/// Largest number of settings in a label.
const LONGEST: usize = 10;

/// Two maps in one pane: the kept one left of a line, the present one right of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Wipe {
    pub pane: Pane,
    /// Column of the target at which the present map begins.
    pub line: u32,
    pub sides: [Side; 2],
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Side {
    pub pair: u64,
    /// Share of pixels with a disparity.
    pub known: f64,
    /// Settings that differ from those of the other map.
    pub settings: Vec<String>,
}

impl Wipe {
    /// Returns the pane's rectangle and the line's place in it, in points.
    fn place(&self, scale: f32) -> (Rect, f32) {
        let Pane { x, y, width, height, .. } = self.pane;
        let points = |pixels: u32| pixels as f32 / scale;
        let corner = pos2(points(x), points(y));
        (Rect::from_min_size(corner, vec2(points(width), points(height))), points(self.line))
    }

    pub(super) fn paint_line(&self, painter: &Painter, scale: f32) {
        let (rect, line) = self.place(scale);
        for (width, colour) in [(3.0, PANEL), (1.0, BRIGHT)] {
            painter.vline(line, rect.y_range(), Stroke::new(width, colour));
        }
        grip(painter, pos2(line, rect.center().y));
    }

    /// Paints both labels, which end above `floor`.
    pub(super) fn paint_labels(&self, painter: &Painter, scale: f32, floor: f32) {
        let (rect, line) = self.place(scale);
        let bottom = floor.min(rect.max.y - MARGIN);
        let parts = [
            (rect.min.x + MARGIN..=line - MARGIN, Align2::RIGHT_BOTTOM),
            (line + MARGIN..=rect.max.x - MARGIN, Align2::LEFT_BOTTOM),
        ];
        for (side, (across, at)) in parts.into_iter().enumerate() {
            if across.end() - across.start() >= NARROW {
                let area = Rect::from_x_y_ranges(across, rect.min.y..=bottom);
                panel(painter, area, at, PANEL, self.label(side));
            }
        }
    }

    fn label(&self, side: usize) -> Vec<Line> {
        let [kept, present] = &self.sides;
        let Side { pair, known, settings } = &self.sides[side];
        let (name, known) = (NAMES[side], 100.0 * known);
        let head = if kept.pair == present.pair {
            Line::new(format!("{name}  known {known:.1} %"), BRIGHT)
        } else {
            Line::new(format!("{name}  pair {pair}  known {known:.1} %"), ALARM)
        };
        let mut lines = vec![head];
        let listed = settings.len().min(LONGEST);
        lines.extend(settings[..listed].iter().map(|text| Line::new(text.clone(), BRIGHT)));
        if listed < settings.len() {
            lines.push(Line::new(format!("{} more", settings.len() - listed), DIM));
        }
        if kept.settings.is_empty() && present.settings.is_empty() {
            lines.push(Line::new("same settings".into(), DIM));
        }
        lines
    }
}

/// Paints a round handle with an arrow to each side.
fn grip(painter: &Painter, centre: Pos2) {
    painter.circle(centre, REACH, PANEL, Stroke::new(1.0, BRIGHT));
    for way in [-1.0, 1.0] {
        let corner = |across: f32, down: f32| centre + vec2(way * across, down);
        let arrow = vec![corner(7.0, 0.0), corner(3.0, -4.0), corner(3.0, 4.0)];
        painter.add(Shape::convex_polygon(arrow, BRIGHT, Stroke::NONE));
    }
}

pub(super) fn is_matched(content: Content) -> bool {
    matches!(content, Content::Disparity | Content::Points | Content::Confidence)
}

pub(crate) fn known(map: &DisparityMap) -> f64 {
    let count = map.values().iter().filter(|&&value| value != INVALID).count();
    count as f64 / map.values().len().max(1) as f64
}

/// Returns the settings of matching that differ between two states of the knobs, as text for each. A
/// setting without effect on one side is listed only on the other.
pub(crate) fn differences(kept: &[Knob], present: &[Knob]) -> [Vec<String>; 2] {
    let of = |knobs: &[Knob], others: &[Knob]| {
        let differs = |knob: &&Knob| {
            let other = others.iter().find(|other| other.name == knob.name);
            // Both maps are shown in the present colours.
            knob.name.0 != "colour" && other.is_none_or(|other| other.value != knob.value)
        };
        let text = |knob: &Knob| format!("{} = {}", knob.name.1, knob.value);
        knobs.iter().filter(differs).map(text).collect()
    };
    [of(kept, present), of(present, kept)]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::viewer::KnobKind;

    fn knob(section: &'static str, key: &'static str, value: &str) -> Knob {
        Knob {
            name: (section, key),
            group: "",
            label: "",
            is_rare: false,
            flag: None,
            hint: "",
            kind: KnobKind::Switch,
            is_open: false,
            value: value.into(),
            means: None,
            locked: None,
        }
    }

    #[test]
    fn labels_name_the_settings_that_differ() {
        let common = || vec![knob("matching", "p1", "auto"), knob("matching", "uniqueness", "8")];
        let mut kept = common();
        kept.push(knob("matching", "census_weight", "22"));
        kept.push(knob("colour", "map", "turbo"));
        let mut present = common();
        present[1].value = "30".into();
        present.push(knob("colour", "map", "grey"));
        let expected = [vec!["uniqueness = 8", "census_weight = 22"], vec!["uniqueness = 30"]];
        assert_eq!(differences(&kept, &present), expected);
        assert_eq!(differences(&kept, &kept), [vec![""; 0], vec![]]);
    }

    #[test]
    fn labels_number_the_pairs_only_where_they_differ() {
        let part = [0.0, 0.0, 1.0, 1.0];
        let pane = Pane { content: Content::Disparity, part, x: 0, y: 0, width: 9, height: 9 };
        let side = |pair, count| Side {
            pair,
            known: 0.875,
            settings: (0..count).map(|i| format!("key{i} = 1")).collect(),
        };
        let texts = |wipe: &Wipe, side: usize| -> Vec<String> {
            wipe.label(side).into_iter().map(|line| line.text().to_owned()).collect()
        };
        let same = Wipe { pane, line: 4, sides: [side(7, 0), side(7, 0)] };
        assert_eq!(texts(&same, 0), ["A  known 87.5 %", "same settings"]);
        let other = Wipe { pane, line: 4, sides: [side(7, 1), side(8, 12)] };
        assert_eq!(texts(&other, 0), ["A  pair 7  known 87.5 %", "key0 = 1"]);
        let long = texts(&other, 1);
        assert_eq!((&*long[0], &*long[11]), ("B  pair 8  known 87.5 %", "2 more"));
    }
}
