//! Rows of the panel: a label and a widget.

use egui::{Ui, WidgetText, vec2};

/// Width of the labels, in points.
pub(super) const LABEL: f32 = 136.0;

/// Divides the width between a label, a slider, a number and a word, with the spaces between them.
pub(super) fn size_widgets(ui: &mut Ui) {
    ui.spacing_mut().slider_width = (ui.available_width() - LABEL - 108.0).max(30.0);
    ui.spacing_mut().interact_size.x = 36.0;
}

/// Lays out a label and a widget in a row.
pub(super) fn row(
    ui: &mut Ui,
    label: impl Into<WidgetText>,
    hint: &str,
    widget: impl FnOnce(&mut Ui),
) {
    let line = ui.horizontal(|ui| {
        let label = egui::Label::new(label).truncate();
        let cell = egui::Layout::left_to_right(egui::Align::Center);
        let label = ui.allocate_ui_with_layout(vec2(LABEL, 18.0), cell, |ui| {
            ui.set_min_width(LABEL);
            ui.add(label)
        });
        widget(ui);
        label.inner
    });
    line.inner.on_hover_text(hint).on_disabled_hover_text(hint);
}
