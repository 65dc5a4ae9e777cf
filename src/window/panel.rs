//! The panel with the knobs, at the right edge of the window.

mod cameras;

use egui::{
    CollapsingHeader, Color32, ComboBox, Context, Label, Panel as SidePanel, RichText, ScrollArea,
    Slider, Ui, WidgetText, vec2,
};

use super::options::CameraDesk;
use super::style::{ALARM, BRIGHT};
use crate::viewer::{Ask, Knob, KnobKind, RequestId, Tuned, ViewerId};
use cameras::Cameras;

/// Width in points, limited to half of a small window.
const WIDTH: f32 = 344.0;

/// Colour of keys and remarks.
pub(super) const QUIET: Color32 = Color32::from_gray(160);

/// Panel of knobs, with the changes of the user and the answers to them.
#[derive(Default)]
pub(crate) struct Panel {
    pub(crate) open: bool,
    pub(crate) cameras: Cameras,
    knobs: Vec<Knob>,
    /// Values of the user that are not in effect.
    own: Vec<Own>,
    /// Numbers of the last request and of the last answered one.
    sent: u32,
    answered: u32,
    problem: Option<String>,
}

struct Own {
    name: (&'static str, &'static str),
    value: String,
    state: State,
}

#[derive(PartialEq)]
enum State {
    New,
    /// Asked for by the request of this number.
    Asked(u32),
    /// Refused, so that this value stayed in effect.
    Refused(String),
    InEffect,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Clicks {
    pub(crate) turned: bool,
    pub(crate) reset: bool,
    pub(crate) write: bool,
    pub(crate) close: bool,
}

impl Panel {
    pub(crate) fn new(knobs: Vec<Knob>, cameras: Option<CameraDesk>) -> Self {
        Self { knobs, cameras: Cameras::new(cameras), ..Self::default() }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.has_no_knobs() && self.cameras.is_empty()
    }

    pub(crate) fn has_no_knobs(&self) -> bool {
        self.knobs.is_empty()
    }

    /// Shows the settings in effect, and the user's own values where they are not.
    pub(crate) fn tuned(&mut self, tuned: Tuned) {
        let mut is_refusal = false;
        for (number, problem) in tuned.answers_to(ViewerId::Window) {
            is_refusal |= problem.is_some();
            self.answered = self.answered.max(number);
            self.problem = problem.cloned().or(self.problem.take());
            for own in self.own.iter_mut().filter(|own| own.state == State::Asked(number)) {
                own.state = match problem {
                    None => State::InEffect,
                    Some(_) => State::Refused(value_of(&tuned.knobs, own.name)),
                };
            }
        }
        // Refused values stay to be corrected, until another viewer changes the same knob.
        self.own.retain(|own| match &own.state {
            State::New | State::Asked(_) => true,
            State::Refused(instead_of) => value_of(&tuned.knobs, own.name) == *instead_of,
            State::InEffect => false,
        });
        let is_refused = |own: &Own| matches!(own.state, State::Refused(_));
        if !is_refusal && !self.own.iter().any(is_refused) {
            self.problem = None;
        }
        self.knobs = tuned.knobs;
        for Own { name, value, .. } in &self.own {
            if let Some(knob) = changeable(&mut self.knobs, *name) {
                knob.value.clone_from(value);
            }
        }
    }

    /// Reports whether the knob shows a value of the user that is not in effect.
    pub(crate) fn is_own(&self, name: (&str, &str)) -> bool {
        self.own.iter().any(|own| own.name == name)
    }

    /// Requests the values that the user has changed since the last request, and refused ones again.
    pub(crate) fn ask(&mut self) -> Ask {
        let id = self.next_id();
        let is_due = |own: &&mut Own| matches!(own.state, State::New | State::Refused(_));
        let ask_for = |own: &mut Own| {
            own.state = State::Asked(id.number);
            (format!("{}.{}", own.name.0, own.name.1), own.value.clone())
        };
        Ask::Values { id, values: self.own.iter_mut().filter(is_due).map(ask_for).collect() }
    }

    /// Requests the values of the configuration, in place of all that the user has changed.
    pub(crate) fn reset(&mut self) -> Ask {
        self.own.clear();
        Ask::Reset(self.next_id())
    }

    fn next_id(&mut self) -> RequestId {
        self.sent += 1;
        RequestId { viewer: ViewerId::Window, number: self.sent }
    }

    /// Sets one knob. Returns false if it does not exist or cannot be changed.
    pub(crate) fn turn(&mut self, name: (&str, &str), value: &str) -> bool {
        let Some(knob) = changeable(&mut self.knobs, name) else { return false };
        knob.value = value.to_owned();
        note(&mut self.own, knob);
        true
    }

    /// Lays the panel out. Returns the clicks, and the left edge in points. `live` says whether pairs
    /// still flow, with a remark.
    pub(crate) fn show(&mut self, context: &Context, live: Result<&str, &str>) -> (Clicks, f32) {
        let mut clicks = Clicks::default();
        let mut edge = 0.0;
        let width = WIDTH.min(context.content_rect().width() / 2.0);
        context.root_ui(|ui| {
            let panel = SidePanel::right("tuning").resizable(false).exact_size(width);
            let shown = panel.show(ui, |ui| {
                ui.visuals_mut().override_text_color = Some(BRIGHT);
                ui.add_space(4.0);
                ui.horizontal(|ui| {
                    ui.heading("Tuning");
                    ui.with_layout(egui::Layout::right_to_left(egui::Align::Center), |ui| {
                        clicks.close = ui.button("\u{00d7}").on_hover_text("Close (t)").clicked();
                    });
                });
                self.buttons(ui, &mut clicks);
                self.status(ui, live);
                ui.separator();
                ScrollArea::vertical().auto_shrink([false, false]).show(ui, |ui| {
                    size_widgets(ui);
                    ui.add_enabled_ui(live.is_ok(), |ui| {
                        if !self.cameras.is_empty() {
                            self.cameras.show(ui);
                        }
                        clicks.turned = self.all_knobs(ui);
                    });
                });
            });
            edge = shown.response.rect.min.x;
        });
        (clicks, edge)
    }

    fn buttons(&self, ui: &mut Ui, clicks: &mut Clicks) {
        ui.horizontal_wrapped(|ui| {
            let reset = ui.button("Reset").on_hover_text("Back to the values of the configuration");
            clicks.reset = reset.clicked();
            let write = ui.button("Write (w)").on_hover_text(
                "Write a configuration file with these values, for stereod run --config FILE",
            );
            clicks.write = write.clicked();
        });
    }

    fn status(&self, ui: &mut Ui, live: Result<&str, &str>) {
        let small = |text: &str, colour| RichText::new(text).size(12.0).color(colour);
        match (&self.problem, live) {
            (_, Err(why)) => ui.label(small(why, QUIET)),
            (Some(problem), _) => ui.label(small(problem, ALARM)),
            (None, _) if self.answered < self.sent => ui.label(small("working ...", QUIET)),
            (None, Ok("")) => ui.label(small("in effect", QUIET)),
            (None, Ok(how)) => ui.label(small(how, QUIET)),
        };
    }

    fn all_knobs(&mut self, ui: &mut Ui) -> bool {
        let mut turned = false;
        for group in self.knobs.chunk_by_mut(|one, next| one.group == next.group) {
            let (heading, is_alone) = (group[0].group, group.len() == 1);
            ui.add_space(6.0);
            ui.label(RichText::new(heading).strong());
            let mut show = |ui: &mut Ui, knobs: &mut [Knob]| {
                for knob in knobs {
                    if one_knob(ui, knob, is_alone) {
                        note(&mut self.own, knob);
                        turned = true;
                    }
                }
            };
            let (usual, rare) = group.split_at_mut(group.partition_point(|knob| !knob.is_rare));
            show(ui, usual);
            if !rare.is_empty() {
                let title = RichText::new(format!("{} more", rare.len())).color(QUIET);
                let fold = CollapsingHeader::new(title).id_salt(heading);
                fold.show_unindented(ui, |ui| show(ui, rare));
            }
        }
        turned
    }
}

impl Clicks {
    pub(crate) fn or(self, other: Self) -> Self {
        Self {
            turned: self.turned | other.turned,
            reset: self.reset | other.reset,
            write: self.write | other.write,
            close: self.close | other.close,
        }
    }
}

/// Notes the value of a knob as one of the user's.
fn note(own: &mut Vec<Own>, knob: &Knob) {
    own.retain(|own| own.name != knob.name);
    own.push(Own { name: knob.name, value: knob.value.clone(), state: State::New });
}

/// Returns a knob, unless it cannot be changed.
fn changeable<'a>(knobs: &'a mut [Knob], name: (&str, &str)) -> Option<&'a mut Knob> {
    knobs.iter_mut().find(|knob| knob.name == name && knob.locked.is_none())
}

/// Returns the value of a knob; nothing if there is no such knob.
fn value_of(knobs: &[Knob], name: (&str, &str)) -> String {
    let knob = knobs.iter().find(|knob| knob.name == name);
    knob.map_or_else(String::new, |knob| knob.value.clone())
}

/// Lays out a row with a knob, which may be alone below its heading. Returns whether it was changed.
fn one_knob(ui: &mut Ui, knob: &mut Knob, is_alone: bool) -> bool {
    let before = knob.value.clone();
    ui.push_id(knob.name, |ui| {
        ui.add_enabled_ui(knob.locked.is_none(), |ui| {
            let flag = knob.flag.map(|flag| format!(", {flag}")).unwrap_or_default();
            let mut hint = format!("{}\n\n{}{flag}", knob.hint, knob.path());
            if let Some(why) = &knob.locked {
                hint.push_str(&format!("\n\nCannot change in this run: {why}."));
            }
            // A choice below a heading of its own needs no label.
            if let (KnobKind::Choice(names), true) = (knob.kind, is_alone) {
                buttons(ui, knob, names).on_hover_text(&hint).on_disabled_hover_text(hint);
            } else {
                row(ui, knob.label, knob.key_besides(), &hint, |ui| widget(ui, knob));
            }
        });
    });
    knob.value != before
}

fn buttons(ui: &mut Ui, knob: &mut Knob, names: &[&str]) -> egui::Response {
    let buttons = ui.horizontal(|ui| {
        for name in names {
            ui.selectable_value(&mut knob.value, (*name).to_owned(), *name);
        }
    });
    buttons.response
}

fn widget(ui: &mut Ui, knob: &mut Knob) {
    match knob.kind {
        KnobKind::Switch => {
            let mut on = knob.value == "true";
            ui.checkbox(&mut on, "");
            knob.value = on.to_string();
        }
        KnobKind::Choice(names) => {
            let shown = match &knob.means {
                Some(means) => format!("{} ({means})", knob.value),
                None => knob.value.clone(),
            };
            ComboBox::from_id_salt("choice").selected_text(shown).width(110.0).show_ui(ui, |ui| {
                for name in names {
                    ui.selectable_value(&mut knob.value, (*name).to_owned(), *name);
                }
            });
        }
        KnobKind::Number { low, high, step, whole, word, .. } => {
            let typed = knob.value.parse::<f64>().ok();
            let meant = || knob.means.as_ref()?.parse().ok();
            let mut number = typed.or_else(meant).unwrap_or(low);
            let decimals = if whole { 0 } else { 2 };
            let slider = Slider::new(&mut number, low..=high)
                .step_by(step)
                .max_decimals(decimals)
                .clamping(egui::SliderClamping::Never);
            let is_word = typed.is_none();
            let response = ui.scope(|ui| {
                if is_word {
                    ui.visuals_mut().override_text_color = Some(Color32::from_gray(130));
                }
                ui.add(slider)
            });
            if response.inner.changed() {
                knob.value = number.to_string();
            }
            let Some(word) = word else { return };
            if ui.selectable_label(is_word, word).clicked() {
                knob.value = if is_word { number.to_string() } else { word.to_owned() };
            }
        }
    }
}

#[cfg(test)]
mod tests;

/// Width of the labels, in points.
pub(super) const LABEL: f32 = 140.0;

/// Divides the width between a label, a slider, a number and a word, with the spaces between them.
pub(super) fn size_widgets(ui: &mut Ui) {
    ui.spacing_mut().slider_width = (ui.available_width() - LABEL - 108.0).max(30.0);
    ui.spacing_mut().interact_size.x = 36.0;
}

/// Lays out a widget with its label, which has a key below it.
pub(super) fn row(
    ui: &mut Ui,
    label: impl Into<WidgetText>,
    key: Option<&str>,
    hint: &str,
    widget: impl FnOnce(&mut Ui),
) {
    let line = ui.horizontal(|ui| {
        let cell = match key {
            Some(_) => egui::Layout::top_down(egui::Align::Min),
            None => egui::Layout::left_to_right(egui::Align::Center),
        };
        let label = ui.allocate_ui_with_layout(vec2(LABEL, 18.0), cell, |ui| {
            ui.set_min_width(LABEL);
            ui.spacing_mut().item_spacing.y = 0.0;
            let label = ui.add(Label::new(label).truncate());
            let key = key.map(|key| RichText::new(key).monospace().size(10.0).color(QUIET));
            match key {
                Some(key) => label.union(ui.add(Label::new(key).truncate())),
                None => label,
            }
        });
        widget(ui);
        label.inner
    });
    line.inner.on_hover_text(hint).on_disabled_hover_text(hint);
}
