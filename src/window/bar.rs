//! The bar below the images: buttons, figures, the legend and the timeline.

use egui::text::LayoutJob;
use egui::{
    Button, Color32, ComboBox, Context, FontId, Frame, Margin, Painter, Panel, Pos2, RawInput,
    Rect, ScrollArea, Ui, pos2, vec2,
};

use super::help::Sheet;
use super::options::View;
use super::overlay::{OverlayContent, colour_bar, describe, figures};
use super::style::{BRIGHT, DIM, MARGIN, TEXT};
use super::timeline;
use crate::keys::{Action, KEYS};

/// Height in points of a row of buttons, without the room above and below.
const BUTTONS: f32 = 26.0;
const AROUND: f32 = 4.0;

/// Height in points of the texts with the legend.
const TEXTS: f32 = 38.0;

/// Smallest share of a window's height that stays free. Lower windows have no bar, and buttons that take more
/// rows are scrolled.
const FREE: f32 = 0.5;

/// Views by their buttons' names.
const VIEWS: [(Action, View, &str); 9] = [
    (Action::Both, View::SideBySide, "Both"),
    (Action::Disparity, View::Disparity, "Disparity"),
    (Action::Points, View::Points, "3-D"),
    (Action::Left, View::Left, "Left"),
    (Action::Right, View::Right, "Right"),
    (Action::Confidence, View::Confidence, "Confidence"),
    (Action::Rows, View::Pair, "Rows"),
    (Action::NextView, View::Whitened, "Whitened"),
    (Action::NextView, View::Check, "Check"),
];

/// Returns the view that an action chooses.
pub(super) fn view_of(action: Action) -> Option<View> {
    let found = VIEWS.iter().find(|(chosen, ..)| *chosen == action && action != Action::NextView);
    found.map(|(_, view, _)| *view)
}

/// Returns the height in points of the bar in a window of this width.
pub(super) fn height(width: f32, content: &OverlayContent) -> f32 {
    const TALL: f32 = 10_000.0;
    let screen_rect = Some(Rect::from_min_size(Pos2::ZERO, vec2(width, TALL)));
    let mut top = TALL;
    let input = RawInput { screen_rect, ..RawInput::default() };
    let mut output = Context::default().run_pass(input, |context| top = show(context, content).0);
    // Nobody paints.
    output.textures_delta.clear();
    TALL - top
}

/// Lays the bar out at the lower edge, left of a panel. Returns its upper edge in points, and the action of a
/// button that was clicked.
pub(super) fn show(context: &Context, content: &OverlayContent) -> (f32, Option<Action>) {
    let whole = context.content_rect();
    let has_timeline = content.timeline.is_some();
    let below = TEXTS + if has_timeline { timeline::HEIGHT + 2.0 * MARGIN } else { 0.0 };
    let room = whole.height() * (1.0 - FREE) - below - 2.0 * AROUND;
    if room < BUTTONS {
        return (whole.max.y, None);
    }
    let mut clicked = None;
    let top = context.root_ui(|ui| {
        let fill = Color32::from_gray(24);
        let panel = Panel::bottom("bar").resizable(false).frame(Frame::NONE.fill(fill));
        let shown = panel.show_separator_line(false).show(ui, |ui| {
            let before = ui.max_rect().height();
            let spacing = std::mem::replace(&mut ui.spacing_mut().item_spacing.y, 0.0);
            let around = Margin::symmetric(MARGIN as i8, AROUND as i8);
            Frame::NONE.inner_margin(around).show(ui, |ui| {
                ui.set_min_height(BUTTONS);
                let rows = ScrollArea::vertical().max_height(room).min_scrolled_height(room);
                rows.auto_shrink([false, true]).show(ui, |ui| {
                    ui.spacing_mut().item_spacing.y = spacing;
                    ui.horizontal_wrapped(|ui| clicked = buttons(ui, content));
                });
            });
            let (_, area) = ui.allocate_space(vec2(ui.available_width(), below));
            if (ui.min_rect().height() - before).abs() > 0.5 {
                ui.request_discard("the bar has another height");
            }
            let painter = ui.painter();
            let texts = Rect::from_x_y_ranges(
                area.min.x + MARGIN..=area.max.x - MARGIN,
                area.min.y..=area.min.y + TEXTS - 2.0,
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
fn line(painter: &Painter, at: Pos2, text: String, width: f32, colour: Color32) {
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
    if let Some(shows) = bar.path {
        button(ui, Action::Path, "Path", shows);
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

#[cfg(test)]
mod tests {
    use egui::Shape;

    use super::super::overlay::Bar;
    use super::*;

    /// Returns the texts that can be seen in a window of this size, as far as they are in the bar, and its top.
    fn texts(
        context: &Context,
        (width, height): (f32, f32),
        content: &OverlayContent,
    ) -> (Vec<String>, f32) {
        let screen_rect = Some(Rect::from_min_size(Pos2::ZERO, vec2(width, height)));
        let input = RawInput { screen_rect, ..RawInput::default() };
        let mut top = 0.0;
        let mut output = context.run_pass(input, |context| top = show(context, content).0);
        output.textures_delta.clear();
        let seen = output.shapes.iter().filter_map(|clipped| match &clipped.shape {
            Shape::Text(text) => {
                let place = text.visual_bounding_rect();
                let is_seen =
                    clipped.clip_rect.expand(0.5).contains_rect(place) && place.min.y >= top;
                is_seen.then(|| text.galley.text().to_owned())
            }
            _ => None,
        });
        (seen.collect(), top)
    }

    #[test]
    fn every_button_is_to_be_seen_however_narrow_the_bar() {
        let context = Context::default();
        let bar =
            Bar { records: Some(true), obstacles: Some(true), path: Some(true), ..Bar::default() };
        let timeline = Some(timeline::Timeline::default());
        let full = OverlayContent { bar, timeline, ..OverlayContent::default() };
        let mut before = 0.0;
        // As wide as it is left of a panel, and back.
        for width in [1600.0, 936.0, 640.0, 320.0, 1600.0] {
            let (seen, top) = texts(&context, (width, 480.0), &full);
            for name in
                ["Before", "Pause", "Next", "Stop recording", "Full screen", "?", "Disparity"]
            {
                assert!(seen.iter().any(|text| text == name), "{width}: no {name} in {seen:?}");
            }
            assert!(480.0 - top >= before || width == 1600.0, "{width}: {top}");
            before = 480.0 - top;
            assert_eq!(height(width, &full), before, "{width}");
        }
        let (_, top) = texts(&context, (1600.0, 480.0), &OverlayContent::default());
        assert_eq!(480.0 - top, 72.0, "a row of buttons and the texts");
        // The images keep half of a low window, and a very low one.
        for low in [300.0, 120.0] {
            assert!(texts(&context, (320.0, low), &full).1 >= low / 2.0, "{low}");
        }
    }
}
