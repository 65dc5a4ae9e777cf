//! Tests of the panel with simulated input, without a screen.

use std::sync::{Arc, Mutex};

use egui::{Event, Modifiers, PointerButton, Pos2, RawInput, Rect, Shape, pos2, vec2};

use super::{LABEL, *};
use stereod_core::frame::Eye;
use stereod_core::thread::locked;
use stereod_io::camera::{CameraControl, CameraInput, CameraReport, ControlKind};
use stereod_io::sink::colouring::Colouring;

fn knob(key: &'static str, value: &str, kind: KnobKind) -> Knob {
    Knob {
        name: ("matching", key),
        group: "Group",
        label: key,
        is_rare: false,
        flag: None,
        hint: "",
        kind,
        is_open: false,
        value: value.to_owned(),
        means: (value == "auto").then(|| "30".to_owned()),
        locked: None,
    }
}

fn knobs() -> Vec<Knob> {
    let number = |word| KnobKind::Number {
        low: 0.0,
        high: 100.0,
        step: 1.0,
        range: [0.0, 255.0],
        whole: true,
        word,
    };
    vec![
        knob("cost", "combined", KnobKind::Choice(&["combined", "census"])),
        knob("p1", "auto", number(Some("auto"))),
        knob("uniqueness", "8", number(None)),
        knob("subpixel", "true", KnobKind::Switch),
    ]
}

/// A panel on a made-up screen of 700x480 points, and who works with it.
struct User {
    context: Context,
    panel: Panel,
    time: f64,
    texts: Vec<(String, Rect)>,
}

impl User {
    fn new() -> Self {
        Self::with(Panel::new(knobs(), None))
    }

    fn with(panel: Panel) -> Self {
        let mut user = Self { context: Context::default(), panel, time: 0.0, texts: Vec::new() };
        // Sizes are known from the second pass on.
        user.pass(vec![]);
        user.pass(vec![]);
        user
    }

    fn pass(&mut self, events: Vec<Event>) -> Clicks {
        self.time += 0.1;
        let input = RawInput {
            screen_rect: Some(Rect::from_min_size(Pos2::ZERO, vec2(700.0, 480.0))),
            time: Some(self.time),
            focused: true,
            events,
            ..Default::default()
        };
        let mut clicks = Clicks::default();
        let mut output = self.context.run_pass(input, |context| {
            let (done, edge) = self.panel.show(context, Ok(""));
            assert!((350.0..=360.0).contains(&edge), "{edge}");
            clicks = clicks.or(done);
        });
        // Nobody paints.
        output.textures_delta.clear();
        self.texts = output
            .shapes
            .iter()
            .filter_map(|clipped| match &clipped.shape {
                Shape::Text(text) => {
                    Some((text.galley.text().to_owned(), text.visual_bounding_rect()))
                }
                _ => None,
            })
            .collect();
        clicks
    }

    fn place(&self, text: &str) -> Pos2 {
        let found = self.texts.iter().find(|(written, _)| written == text);
        found.unwrap_or_else(|| panic!("no {text:?} in {:?}", self.texts)).1.center()
    }

    fn button(&mut self, at: Pos2, pressed: bool) -> Clicks {
        let (button, modifiers) = (PointerButton::Primary, Modifiers::NONE);
        let moved = Event::PointerMoved(at);
        let first = self.pass(vec![moved]);
        let click = Event::PointerButton { pos: at, button, pressed, modifiers };
        first.or(self.pass(vec![click]))
    }

    fn click(&mut self, at: Pos2) -> Clicks {
        let pressed = self.button(at, true);
        pressed.or(self.button(at, false)).or(self.pass(vec![]))
    }

    fn value(&self, key: &str) -> &str {
        &self.panel.knobs.iter().find(|knob| knob.name.1 == key).unwrap().value
    }
}

#[test]
fn dragging_a_slider_turns_its_knob_and_is_asked_for() {
    let mut user = User::new();
    let number = user.place("8");
    let on_rail = |offset| pos2(number.x - offset, number.y);
    let clicks = user.button(on_rail(70.0), true);
    assert!(clicks.turned && !clicks.reset && !clicks.write);
    let first: f64 = user.value("uniqueness").parse().unwrap();
    user.pass(vec![Event::PointerMoved(on_rail(45.0))]);
    let second: f64 = user.value("uniqueness").parse().unwrap();
    assert!(first > 10.0 && second > first + 10.0 && second.fract() == 0.0, "{first} {second}");
    assert_eq!(user.panel.ask(), request(1, &[("matching.uniqueness", &second.to_string())]));
}

#[test]
fn auto_becomes_its_number_and_back() {
    let mut user = User::new();
    let auto = user.place("auto");
    assert!(user.click(auto).turned);
    assert_eq!(user.value("p1"), "30");
    assert!(user.click(auto).turned);
    assert_eq!(user.value("p1"), "auto");
}

#[test]
fn choices_and_switches() {
    let mut user = User::new();
    user.click(user.place("combined"));
    user.pass(vec![]);
    let clicks = user.click(user.place("census"));
    assert!(clicks.turned);
    assert_eq!(user.value("cost"), "census");
    let label = user.place("subpixel");
    user.click(pos2(user.place("cost").x.max(352.0) + LABEL, label.y));
    assert_eq!(user.value("subpixel"), "false");
}

#[test]
fn rare_knobs_are_folded_away_and_a_name_has_its_key_below() {
    let mut all = knobs();
    all.push(Knob { label: "sub-pixel curve", is_rare: true, ..all[3].clone() });
    all.remove(3);
    let mut user = User::with(Panel::new(all, None));
    let shows = |user: &User, text: &str| user.texts.iter().any(|(written, _)| written == text);
    let title = user.place("1 more");
    assert!(shows(&user, "uniqueness") && !shows(&user, "sub-pixel curve"));
    user.click(title);
    // It opens slowly.
    (0..10).for_each(|_| _ = user.pass(vec![]));
    let (name, key) = (user.place("sub-pixel curve"), user.place("subpixel"));
    assert!(name.y < key.y && key.y < name.y + 20.0, "{name} {key}");
    let written = user.texts.iter().filter(|(written, _)| written == "uniqueness");
    assert_eq!(written.count(), 1, "no key below its own name");
    user.click(pos2(user.place("cost").x.max(352.0) + LABEL, f32::midpoint(name.y, key.y)));
    assert_eq!(user.value("subpixel"), "false");
    user.click(title);
    (0..10).for_each(|_| _ = user.pass(vec![]));
    assert!(!shows(&user, "subpixel"));
}

#[test]
fn buttons_say_what_they_are() {
    let mut user = User::new();
    assert!(user.click(user.place("Reset")).reset);
    assert!(user.click(user.place("Write (w)")).write);
    assert!(user.click(user.place("\u{00d7}")).close);
    assert!(!user.click(user.place("Tuning")).or(user.pass(vec![])).turned);
}

fn id(number: u32) -> RequestId {
    RequestId { viewer: ViewerId::Window, number }
}

fn request(number: u32, values: &[(&str, &str)]) -> Ask {
    let wish = |(path, value): &(&str, &str)| (String::from(*path), String::from(*value));
    Ask::Values { id: id(number), values: values.iter().map(wish).collect() }
}

/// The settings in effect after these requests: P1 and uniqueness.
fn answer(answered: &[RequestId], [p1, uniqueness]: [&str; 2], problem: Option<&str>) -> Tuned {
    let mut knobs = knobs();
    knobs[1].value = p1.to_owned();
    knobs[2].value = uniqueness.to_owned();
    Tuned {
        answers: answered.iter().map(|id| (*id, problem.map(str::to_owned))).collect(),
        knobs,
        since: std::time::Instant::now(),
        colouring: Colouring::default(),
    }
}

fn values(panel: &Panel) -> [&str; 2] {
    [&panel.knobs[1].value, &panel.knobs[2].value]
}

#[test]
fn a_late_answer_does_not_turn_knobs_back() {
    let mut panel = Panel::new(knobs(), None);
    assert!(panel.turn(("matching", "uniqueness"), "20"));
    assert_eq!(panel.ask(), request(1, &[("matching.uniqueness", "20")]));
    assert!(panel.turn(("matching", "uniqueness"), "30"));
    assert_eq!(panel.ask(), request(2, &[("matching.uniqueness", "30")]));
    panel.tuned(answer(&[id(1)], ["auto", "20"], None));
    assert_eq!(values(&panel), ["auto", "30"]);
    assert!(panel.answered < panel.sent && panel.is_own(("matching", "uniqueness")));
    panel.tuned(answer(&[id(2)], ["auto", "30"], None));
    assert!(panel.answered == panel.sent && panel.own.is_empty());
    // Another configuration.
    panel.tuned(answer(&[], ["auto", "9"], None));
    assert_eq!(values(&panel), ["auto", "9"]);
    assert!(!panel.turn(("matching", "nothing"), "1"));
    panel.knobs[2].locked = Some("a recording".into());
    assert!(!panel.turn(("matching", "uniqueness"), "1"));
    assert_eq!(panel.ask(), request(3, &[]));
}

#[test]
fn a_refused_value_stays_to_be_corrected_whatever_others_change_besides() {
    let mut panel = Panel::new(knobs(), None);
    panel.turn(("matching", "p1"), "300");
    panel.ask();
    panel.tuned(answer(&[id(1)], ["auto", "8"], Some("too large")));
    assert_eq!((values(&panel), panel.problem.as_deref()), (["300", "8"], Some("too large")));
    // Another viewer has changed the other knob, and one more was refused a value.
    let other = RequestId { viewer: ViewerId::Ros2, number: 1 };
    panel.tuned(answer(&[other], ["auto", "23"], None));
    panel.tuned(answer(&[other], ["auto", "23"], Some("no memory")));
    assert_eq!((values(&panel), panel.problem.as_deref()), (["300", "23"], Some("too large")));
    // Together with another value it may be right.
    panel.turn(("matching", "uniqueness"), "24");
    let both = [("matching.p1", "300"), ("matching.uniqueness", "24")];
    assert_eq!(panel.ask(), request(2, &both));
    panel.tuned(answer(&[id(2)], ["auto", "23"], Some("too large")));
    // Another viewer has changed the same knob.
    panel.tuned(answer(&[other], ["7", "23"], None));
    assert_eq!((values(&panel), panel.problem.as_deref()), (["7", "24"], Some("too large")));
    assert_eq!(panel.reset(), Ask::Reset(id(3)));
    panel.tuned(answer(&[id(3)], ["auto", "8"], None));
    assert_eq!((values(&panel), panel.problem.as_deref()), (["auto", "8"], None));
}

/// A click sets both cameras; after a click on the name of one, that one.
#[test]
fn controls_of_cameras_are_set_by_click() {
    let sent = Arc::new(Mutex::new(Vec::new()));
    let taken = sent.clone();
    let input = |eye| CameraInput { eye, name: "/dev/video0".into(), mode: "GREY".into() };
    let desk = CameraDesk {
        inputs: vec![input(Eye::Left), input(Eye::Right)],
        watch: Arc::new(|_| ()),
        set: Arc::new(move |place, number, values: &[(u32, i32)]| {
            locked(&taken).push((place, number, values.to_vec()));
        }),
    };
    let mut panel = Panel::new(Vec::new(), Some(desk));
    assert!(!panel.is_empty() && panel.has_no_knobs());
    let control = |id, name: &str, is_inactive| CameraControl {
        id,
        name: name.into(),
        kind: ControlKind::Switch,
        least: 0,
        largest: 1,
        step: 1,
        default: 0,
        value: 0,
        is_read_only: false,
        is_inactive,
    };
    for place in 0..2 {
        let controls = vec![control(7, "Flash", false), control(8, "Lamp", true)];
        let seen = Ok(("Cam".to_owned(), controls));
        panel.cameras.report(place, CameraReport { number: 0, seen, problem: None });
    }
    let mut user = User::with(panel);
    let switch = |user: &User, name: &str| pos2(512.0, user.place(name).y);
    user.click(switch(&user, "Flash"));
    let both = [(0, 1, vec![(7, 1)]), (1, 1, vec![(7, 1)])];
    assert_eq!(*locked(&sent), both);
    user.click(switch(&user, "Lamp"));
    assert_eq!(*locked(&sent), both, "a control without effect");
    user.click(user.place("Right"));
    user.click(switch(&user, "Flash"));
    assert_eq!(locked(&sent)[2..], [(1, 2, vec![(7, 0)])]);
}
