//! The bar below the images: buttons, figures, the legend and the timeline.

use egui::text::LayoutJob;
use egui::{
    Button, ComboBox, Context, FontId, Frame, Painter, Panel, Pos2, Rect, ScrollArea, Ui, pos2,
    vec2,
};

use super::help::Sheet;
use super::options::View;
use super::overlay::{OverlayContent, colour_bar, describe, figures};
use super::style::{BRIGHT, DIM, MARGIN, TEXT};
use super::timeline;
use crate::keys::{Action, KEYS};

/// Heights in points of the buttons, and of the texts with the legend.
const BUTTONS: f32 = 34.0;
const TEXTS: f32 = 38.0;

/// Smallest share of a window's height that stays free. Lower windows have no bar.
const FREE: f32 = 0.5;

/// Views by their buttons' names.
const VIEWS: [(Action, View, &str); 8] = [
    (Action::Both, View::SideBySide, "Both"),
    (Action::Disparity, View::Disparity, "Disparity"),
    (Action::Points, View::Points, "3-D"),
    (Action::Left, View::Left, "Left"),
    (Action::Right, View::Right, "Right"),
    (Action::Confidence, View::Confidence, "Confidence"),
    (Action::Rows, View::Pair, "Rows"),
    (Action::NextView, View::Whitened, "Whitened"),
];

/// Returns the view that an action chooses.
pub(super) fn view_of(action: Action) -> Option<View> {
    let found = VIEWS.iter().find(|(chosen, view, _)| *chosen == action && *view != View::Whitened);
    found.map(|(_, view, _)| *view)
}

pub(super) fn height(has_timeline: bool) -> f32 {
    BUTTONS + TEXTS + if has_timeline { timeline::HEIGHT + 2.0 * MARGIN } else { 0.0 }
}

/// Lays the bar out at the lower edge, left of a panel. Returns its upper edge in points, and the action of a
/// button that was clicked.
pub(super) fn show(context: &Context, content: &OverlayContent) -> (f32, Option<Action>) {
    let whole = context.content_rect();
    let height = height(content.timeline.is_some());
    if whole.height() * (1.0 - FREE) < height {
        return (whole.max.y, None);
    }
    let mut clicked = None;
    let top = context.root_ui(|ui| {
        let fill = egui::Color32::from_gray(24);
        let panel = Panel::bottom("bar").resizable(false).exact_size(height);
        let shown = panel.frame(Frame::NONE.fill(fill)).show_separator_line(false).show(ui, |ui| {
            let area = ui.max_rect();
            let row = Rect::from_min_size(area.min, vec2(area.width(), BUTTONS));
            ui.scope_builder(
                egui::UiBuilder::new().max_rect(row.shrink2(vec2(MARGIN, 4.0))),
                |ui| {
                    ScrollArea::horizontal().show(ui, |ui| {
                        ui.horizontal(|ui| clicked = buttons(ui, content));
                    });
                },
            );
            let painter = ui.painter();
            let below = row.max.y;
            let texts = Rect::from_x_y_ranges(
                area.min.x + MARGIN..=area.max.x - MARGIN,
                below..=below + TEXTS - 2.0,
            );
            let legend = content.legend.as_ref().and_then(|it| colour_bar(painter, texts, it));
            let end = legend.map_or(texts.max.x, |legend| legend.min.x - MARGIN);
            let width = end - texts.min.x;
            line(painter, texts.min, figures(content), width, DIM);
            let second = content.ruler.as_ref().map(|ruler| ruler.text.clone());
            let second = second.or_else(|| content.hover.as_ref().map(describe));
            let second = second.or_else(|| content.scale.clone()).unwrap_or_default();
            line(painter, texts.min + vec2(0.0, TEXT + 5.0), second, width, BRIGHT);
            if let Some(timeline) = &content.timeline {
                timeline.paint(painter, area);
            }
        });
        shown.response.rect.min.y
    });
    (top, clicked)
}

/// Paints a line of text, which ends with dots if it is wider.
fn line(painter: &Painter, at: Pos2, text: String, width: f32, colour: egui::Color32) {
    let mut job = LayoutJob::simple_singleline(text, FontId::proportional(TEXT), colour);
    job.wrap = egui::text::TextWrapping::truncate_at_width(width.max(1.0));
    let galley = painter.layout_job(job);
    painter.galley(pos2(at.x, at.y), galley, colour);
}

fn buttons(ui: &mut Ui, content: &OverlayContent) -> Option<Action> {
    let bar = &content.bar;
    let mut clicked = None;
    let mut button = |ui: &mut Ui, action: Action, label: &str, is_on: bool| {
        if ui.add(Button::new(label).selected(is_on)).on_hover_text(hint(action)).clicked() {
            clicked = Some(action);
        }
    };
    if content.timeline.is_some() {
        button(ui, Action::Backwards, "Before", false);
    }
    button(ui, Action::Pause, if content.paused { "Play" } else { "Pause" }, content.paused);
    if content.timeline.is_some() {
        button(ui, Action::Forwards, "Next", false);
    }
    if let Some(records) = bar.records {
        button(ui, Action::Record, if records { "Stop recording" } else { "Record" }, false);
    }
    button(ui, Action::Snapshot, "Snapshot", false);
    button(ui, Action::Measure, "Measure", bar.is_measuring);
    if let Some(shows) = bar.obstacles {
        button(ui, Action::Obstacles, "Obstacles", shows);
    }
    if bar.view == View::Points {
        button(ui, Action::DepthColours, "Depth colours", bar.depth_colours);
    }
    button(
        ui,
        Action::Whole,
        if bar.view == View::Points { "Reset view" } else { "Whole image" },
        false,
    );
    button(ui, Action::Tune, "Tuning", false);
    button(ui, Action::Status, "Status", content.histograms.is_some());
    let devices = matches!(content.sheet, Some(Sheet::Devices(_)));
    button(ui, Action::Devices, "Devices", devices);
    button(ui, Action::FullScreen, "Full screen", false);
    button(ui, Action::Help, "?", content.sheet == Some(Sheet::Help));
    let name =
        VIEWS.iter().find(|(_, view, _)| *view == bar.view).map_or("View", |(.., name)| name);
    ComboBox::from_id_salt("view").selected_text(name).width(92.0).show_ui(ui, |ui| {
        for (action, view, name) in VIEWS.iter().filter(|(action, ..)| *action != Action::NextView)
        {
            if ui.selectable_label(*view == bar.view, *name).clicked() {
                clicked = Some(*action);
            }
        }
    });
    clicked
}

/// Describes a button by the meaning of its key.
fn hint(action: Action) -> String {
    let is_own = |(_, other): &&(&str, Action)| *other == action;
    let found = KEYS.iter().find_map(|row| row.keys.iter().find(is_own).map(|(key, _)| (row, key)));
    let Some((row, key)) = found else { return String::new() };
    let key = if *key == " " { "Space" } else { key };
    format!("{} ({key})", row.meaning)
}
