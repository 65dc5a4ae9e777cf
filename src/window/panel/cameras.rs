//! The section of the panel with the controls of the cameras.

use std::time::{Duration, Instant};

use egui::{ComboBox, RichText, Slider, Ui};

use super::super::options::CameraDesk;
use super::super::style::ALARM;
use super::{QUIET, row};
use stereod_core::frame::Eye;
use stereod_io::camera::{CameraControl, CameraInput, CameraReport, ControlKind};

/// Time without a report after which a camera counts as silent.
const SILENT: Duration = Duration::from_secs(3);

/// Order of the first controls, by their numbers in linux/v4l2-controls.h: exposure, gain, white balance
/// and focus, each after its automatic mode. The others follow in the order of the driver.
const FIRST: [u32; 9] = [
    0x009a_0901,
    0x009a_0902,
    0x009a_0903,
    0x0098_0912,
    0x0098_0913,
    0x0098_090c,
    0x0098_091a,
    0x009a_090c,
    0x009a_090a,
];

const EXPOSURE_TIME: u32 = 0x009a_0902;

#[derive(Default)]
pub(crate) struct Cameras {
    desk: Option<CameraDesk>,
    list: Vec<Camera>,
    is_apart: bool,
    selected: usize,
    sent: u64,
}

struct Camera {
    label: &'static str,
    input: CameraInput,
    card: String,
    controls: Vec<CameraControl>,
    /// Reason why it does not answer, or why a value was not set.
    problem: Option<String>,
    sent: u64,
    /// Time of the last report, or of the begin of watching.
    heard: Option<Instant>,
}

impl Cameras {
    pub(crate) fn new(desk: Option<CameraDesk>) -> Self {
        let inputs = desk.as_ref().map(|desk| desk.inputs.clone()).unwrap_or_default();
        let one = inputs.len() == 1;
        let camera = |input: CameraInput| Camera {
            label: match (one, input.eye) {
                (true, _) => "Camera",
                (false, Eye::Left) => "Left",
                (false, Eye::Right) => "Right",
            },
            input,
            card: String::new(),
            controls: Vec::new(),
            problem: None,
            sent: 0,
            heard: None,
        };
        let list = inputs.into_iter().map(camera).collect();
        Self { desk, list, ..Self::default() }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    pub(crate) fn watch(&mut self, is_watched: bool) {
        let now = Instant::now();
        self.list.iter_mut().for_each(|camera| camera.heard = Some(now));
        if let Some(desk) = &self.desk {
            (desk.watch)(is_watched);
        }
    }

    pub(crate) fn report(&mut self, which: usize, report: CameraReport) {
        let Some(camera) = self.list.get_mut(which) else { return };
        camera.heard = Some(Instant::now());
        if report.number < camera.sent {
            // The user has changed more since.
            return;
        }
        match report.seen {
            Ok((card, mut controls)) => {
                let place = |control: &CameraControl| {
                    FIRST.iter().position(|id| *id == control.id).unwrap_or(FIRST.len())
                };
                controls.sort_by_key(place);
                (camera.card, camera.controls) = (card, controls);
                camera.problem = report.problem;
            }
            Err(why) => camera.problem = Some(why),
        }
    }

    /// Returns the cameras that a change is for, the first of which shows its values.
    fn targets(&self) -> std::ops::Range<usize> {
        match self.is_apart {
            true => self.selected..self.selected + 1,
            false => 0..self.list.len(),
        }
    }

    pub(super) fn show(&mut self, ui: &mut Ui) {
        ui.label(RichText::new("Cameras").strong());
        for camera in &self.list {
            let name = if camera.card.is_empty() { &camera.input.name } else { &camera.card };
            let text = format!("{}: {name}, {}", camera.label, camera.input.mode);
            let label = egui::Label::new(RichText::new(text).size(12.0).color(QUIET)).truncate();
            ui.add(label).on_hover_text(&camera.input.name);
            let silent = camera.heard.filter(|heard| heard.elapsed() > SILENT);
            let silent = silent.map(|heard| {
                format!("{} has not answered for {} s", camera.label, heard.elapsed().as_secs())
            });
            if let Some(problem) = silent.as_ref().or(camera.problem.as_ref()) {
                ui.label(RichText::new(problem).size(12.0).color(ALARM));
            }
        }
        if self.list.len() > 1 {
            ui.horizontal(|ui| {
                ui.selectable_value(&mut self.is_apart, false, "Both")
                    .on_hover_text("Sets both cameras: a stereo pair needs equal exposure");
                for (which, camera) in self.list.iter().enumerate() {
                    let is_it = self.is_apart && self.selected == which;
                    if ui.selectable_label(is_it, camera.label).clicked() {
                        (self.is_apart, self.selected) = (true, which);
                    }
                }
            });
        }
        let targets = self.targets();
        let Some((first, others)) = self.list[targets.clone()].split_first() else { return };
        let mut wanted: Vec<(u32, i32)> = Vec::new();
        for control in &first.controls {
            let like = |camera: &Camera| {
                let mut controls = camera.controls.iter();
                controls
                    .find(|other| other.id == control.id)
                    .map(|other| (camera.label, other.value))
            };
            let same: Vec<_> = others.iter().filter_map(like).collect();
            if same.len() == others.len()
                && let Some(value) = one_control(ui, control, &same)
            {
                wanted.push((control.id, value));
            }
        }
        if !first.controls.is_empty()
            && ui.button("Defaults").on_hover_text("The default values of the drivers").clicked()
        {
            let settable = first.controls.iter().filter(|control| control.is_settable());
            wanted = settable.map(|control| (control.id, control.default)).collect();
        }
        if !wanted.is_empty() {
            self.set(targets, &wanted);
        }
    }

    fn set(&mut self, targets: std::ops::Range<usize>, wanted: &[(u32, i32)]) {
        self.sent += 1;
        for which in targets {
            let camera = &mut self.list[which];
            camera.sent = self.sent;
            for control in &mut camera.controls {
                let value = wanted.iter().find(|(id, _)| *id == control.id);
                control.value = value.map_or(control.value, |&(_, value)| value);
            }
            if let Some(desk) = &self.desk {
                (desk.set)(which, self.sent, wanted);
            }
        }
    }
}

/// Lays out a control. Returns the value that the user gives it. `others` are the other cameras that are set
/// with this one, and their values.
fn one_control(ui: &mut Ui, control: &CameraControl, others: &[(&str, i32)]) -> Option<i32> {
    let mut value = control.value;
    let differ: Vec<String> = others
        .iter()
        .filter(|(_, other)| *other != control.value)
        .map(|(label, other)| format!("{label} has {}", control.text_of(*other)))
        .collect();
    let mut hint = format!("{}\n\nDefault {}", control.name, control.text_of(control.default));
    if control.kind == ControlKind::Number {
        let CameraControl { least, largest, step, .. } = control;
        hint.push_str(&format!(", {least} to {largest} in steps of {step}"));
    }
    if control.id == EXPOSURE_TIME {
        hint.push_str(&format!("\n{:.1} ms (100 \u{b5}s a step)", f64::from(value) / 10.0));
    }
    if control.is_read_only {
        hint.push_str("\nThe camera does not let it be set now");
    } else if control.is_inactive {
        hint.push_str("\nWithout effect while its automatic mode is on");
    }
    differ.iter().for_each(|text| hint.push_str(&format!("\n{text}")));
    let mut label = RichText::new(&control.name);
    if !differ.is_empty() {
        label = label.color(ALARM);
    }
    ui.push_id(control.id, |ui| {
        ui.add_enabled_ui(control.is_settable(), |ui| {
            row(ui, label, None, &hint, |ui| widget(ui, control, &mut value));
        });
    });
    (value != control.value).then_some(value)
}

fn widget(ui: &mut Ui, control: &CameraControl, value: &mut i32) {
    match &control.kind {
        ControlKind::Switch => {
            let mut on = *value != 0;
            ui.checkbox(&mut on, "");
            if on != (*value != 0) {
                *value = i32::from(on);
            }
        }
        ControlKind::Menu(names) => {
            let shown = control.text_of(*value);
            ComboBox::from_id_salt("menu").selected_text(shown).width(110.0).truncate().show_ui(
                ui,
                |ui| {
                    for (number, name) in names {
                        ui.selectable_value(value, *number, name);
                    }
                },
            );
        }
        ControlKind::Number => {
            let CameraControl { least, largest, step, .. } = *control;
            // Values over several decades, such as exposure times.
            let is_wide = least > 0 && f64::from(largest) / f64::from(least) > 1000.0;
            ui.add(
                Slider::new(value, least..=largest).step_by(f64::from(step)).logarithmic(is_wide),
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;
    use stereod_core::thread::locked;

    type Sent = Arc<Mutex<Vec<(usize, u64, Vec<(u32, i32)>)>>>;

    fn control(id: u32, value: i32) -> CameraControl {
        CameraControl {
            id,
            name: format!("control {id:x}"),
            kind: ControlKind::Number,
            least: 1,
            largest: 500,
            step: 1,
            default: 157,
            value,
            is_read_only: false,
            is_inactive: false,
        }
    }

    fn report(number: u64, controls: Vec<CameraControl>) -> CameraReport {
        CameraReport { number, seen: Ok(("Cam".into(), controls)), problem: None }
    }

    fn two() -> (Cameras, Sent) {
        let sent = Sent::default();
        let taken = sent.clone();
        let input = |eye, name: &str| CameraInput { eye, name: name.into(), mode: "GREY".into() };
        let desk = CameraDesk {
            inputs: vec![input(Eye::Left, "/dev/video0"), input(Eye::Right, "/dev/video2")],
            watch: Arc::new(|_| ()),
            set: Arc::new(move |which, number, values| {
                locked(&taken).push((which, number, values.to_vec()));
            }),
        };
        (Cameras::new(Some(desk)), sent)
    }

    #[test]
    fn both_cameras_are_set_together_and_one_alone_on_request() {
        let (mut cameras, sent) = two();
        cameras.set(cameras.targets(), &[(1, 30)]);
        (cameras.is_apart, cameras.selected) = (true, 1);
        cameras.set(cameras.targets(), &[(1, 31)]);
        let expected = [(0, 1, vec![(1, 30)]), (1, 1, vec![(1, 30)]), (1, 2, vec![(1, 31)])];
        assert_eq!(*locked(&sent), expected);
    }

    #[test]
    fn a_late_report_does_not_turn_values_back() {
        let (mut cameras, _) = two();
        cameras.report(0, report(0, vec![control(7, 10)]));
        cameras.set(0..2, &[(7, 20)]);
        cameras.set(0..2, &[(7, 30)]);
        cameras.report(0, report(1, vec![control(7, 20)]));
        assert_eq!(cameras.list[0].controls[0].value, 30);
        // The camera has the last word.
        cameras.report(0, report(2, vec![control(7, 29)]));
        assert_eq!(cameras.list[0].controls[0].value, 29);
        let gone = CameraReport { number: 2, seen: Err("unplugged".into()), problem: None };
        cameras.report(0, gone);
        assert_eq!(cameras.list[0].problem.as_deref(), Some("unplugged"));
        cameras.report(5, report(2, vec![]));
    }

    #[test]
    fn exposure_comes_first() {
        let (mut cameras, _) = two();
        let ids = [0x0098_0900, 0x0098_0913, 0x009a_0902, 0x009a_0901];
        cameras.report(1, report(0, ids.map(|id| control(id, 1)).to_vec()));
        let sorted: Vec<u32> = cameras.list[1].controls.iter().map(|control| control.id).collect();
        assert_eq!(sorted, [0x009a_0901, 0x009a_0902, 0x0098_0913, 0x0098_0900]);
    }
}
