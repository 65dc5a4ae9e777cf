//! The window of a run: handles messages and keys, and decides when to draw.

mod comparing;
mod content;
pub(super) mod measuring;
mod recording;
mod saving;
mod timeline;
mod tuning;

use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::Result;
use winit::event::{KeyEvent, MouseButton, MouseScrollDelta, WindowEvent};
use winit::keyboard::{Key, ModifiersState, NamedKey};
use winit::window::Fullscreen;

use super::bar;
use super::event_loop::{Content, Shell};
use super::help::Sheet;
use super::options::View;
use super::orbit::Orbit;
use super::panel::Panel;
use super::remote::{Rates, Wake};
use super::scene::{ALL_DEPTHS, Lens, Limits, Scene};
use super::screen::Drawn;
use crate::keys::{self, Action, On};
use crate::status::RunStatus;
use comparing::{Comparison, InEffect};
use recording::Question;
use stereod_core::frame::Matched;
use stereod_core::picture::cloud::CloudOptions;
use stereod_core::thread;
use stereod_io::control::Control;
use stereod_io::sink::colour::ColourScale;
use stereod_io::sink::colouring::Colouring;

/// Redraw period of the figures while no frame arrives.
const IDLE: Duration = Duration::from_millis(500);

/// Delay before a failed drawing is tried again.
const RETRY: Duration = Duration::from_millis(50);

const NOTICE: Duration = Duration::from_secs(4);

/// Largest distance in pixels by which the mouse moves during a click.
const CLICK: f64 = 4.0;

/// Thing that the mouse moves while a button of it is pressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Held {
    Timeline,
    Wipe,
    Viewpoint(MouseButton),
    /// The flat views.
    Images,
}

struct Notice {
    text: String,
    until: Instant,
    error: bool,
}

pub(crate) struct App {
    shell: Shell,
    control: Control,
    view: View,
    colouring: Colouring,
    scale: ColourScale,
    frame: Option<Arc<Matched>>,
    /// Age of the frame when it was drawn.
    age: Option<Duration>,
    status: Option<Arc<RunStatus>>,
    /// The figures on the screen, and since when.
    figures: Option<(Instant, Rates, Option<Duration>)>,
    cursor: Option<(f64, f64)>,
    lens: Lens,
    orbit: Orbit,
    /// True once the viewpoint has been chosen for the scene.
    has_viewpoint: bool,
    depth_colours: bool,
    /// Ends of the distance that is measured; `None` if none is.
    measured: Option<Vec<(u32, u32)>>,
    /// Files of the last snapshot or point cloud.
    saved: Vec<PathBuf>,
    in_effect: InEffect,
    comparison: Option<Comparison>,
    /// Thing that the pressed mouse moves, and the place where it was pressed.
    held: Option<Held>,
    pressed: Option<(f64, f64)>,
    modifiers: ModifiersState,
    overlay: bool,
    view_before: View,
    histograms: bool,
    obstacles: bool,
    path: bool,
    sheet: Option<Sheet>,
    ended: bool,
    failure: Option<String>,
    notice: Option<Notice>,
    question: Question,
    /// Last key that has to be pressed twice, and its time.
    asked: Option<(Action, Instant)>,
    panel: Panel,
    /// Width and height in pixels of the panel and the bar, as last drawn.
    taken: (u32, u32),
    writers: Vec<JoinHandle<()>>,
}

impl App {
    pub(crate) fn new(shell: Shell, control: Control) -> Self {
        let options = &shell.options;
        let knobs = options.tuning.as_ref().map(|t| t.knobs.clone()).unwrap_or_default();
        Self {
            view: options.view,
            colouring: Colouring { map: options.colour_map, span: options.colour_range },
            scale: ColourScale::new(options.colour_range, options.disparities),
            in_effect: InEffect::new(&knobs),
            panel: Panel::new(knobs, options.cameras.clone()),
            taken: (0, 0),
            shell,
            control,
            frame: None,
            age: None,
            status: None,
            figures: None,
            cursor: None,
            lens: Lens::default(),
            orbit: Orbit::default(),
            has_viewpoint: false,
            depth_colours: false,
            measured: None,
            saved: Vec::new(),
            pressed: None,
            comparison: None,
            held: None,
            modifiers: ModifiersState::empty(),
            overlay: true,
            view_before: View::Disparity,
            histograms: false,
            obstacles: true,
            path: true,
            sheet: None,
            ended: false,
            failure: None,
            notice: None,
            question: Question::default(),
            asked: None,
            writers: Vec::new(),
        }
    }

    fn scene(&self) -> Scene {
        let CloudOptions { near_m, far_m, .. } = self.shell.options.clouds;
        let [nearest, farthest] = ALL_DEPTHS;
        Scene {
            lens: self.lens,
            orbit: self.orbit,
            depth_colours: self.depth_colours,
            depths: [near_m.map_or(nearest, |m| m as f32), far_m.map_or(farthest, |m| m as f32)],
            view: self.view,
            colour_map: self.colouring.map,
            limits: Limits::of(&self.scale),
            taken: self.taken,
            // Without its line, two maps would look like one.
            wipe: self.comparison.as_ref().filter(|_| self.overlay).map(|kept| kept.share),
        }
    }

    /// Returns the next time to redraw without a new frame, because figures fade and notices expire.
    fn next_redraw(&self, now: Instant, drawn: Drawn) -> Option<Instant> {
        match drawn {
            Drawn::Later => return Some(now + RETRY),
            Drawn::Hidden => return None,
            Drawn::Shown => (),
        }
        let fading = self.figures.is_some_and(|(_, rates, _)| rates.frames_per_second.is_some());
        let idle = (fading || !self.is_still()).then_some(now + IDLE);
        let notice = self.notice.as_ref().map(|notice| notice.until);
        [idle, notice].into_iter().flatten().min()
    }

    /// Reports whether no further pair comes by itself.
    fn is_still(&self) -> bool {
        self.ended || self.control.pause.is_set()
    }

    fn key(&mut self, event: &KeyEvent) -> ControlFlow<()> {
        if !event.state.is_pressed()
            || self.panel_takes(&event.logical_key)
            || self.sheet_takes(&event.logical_key)
        {
            return ControlFlow::Continue(());
        }
        let Some(action) = action_of(&event.logical_key, self.modifiers) else {
            return ControlFlow::Continue(());
        };
        // A key that is held moves on.
        let moves = [
            Action::Forwards,
            Action::Backwards,
            Action::Nearer,
            Action::Farther,
            Action::ArrowLeft,
            Action::ArrowRight,
            Action::ArrowUp,
            Action::ArrowDown,
        ];
        if event.repeat && !moves.contains(&action) {
            return ControlFlow::Continue(());
        }
        self.shell.request_redraw();
        match action {
            Action::Leave if self.is_full_screen() => self.toggle_full_screen(),
            Action::Leave | Action::Quit if self.may_quit() => return ControlFlow::Break(()),
            Action::Leave | Action::Quit => {}
            Action::Record if self.records() == Some(true) => {
                if self.is_confirmed(Action::Record, "press r again to stop the recording".into()) {
                    self.act(action);
                }
            }
            Action::WriteSettings if !self.panel.has_no_knobs() => {
                let question = "press w again to write the settings to a file".into();
                if self.is_confirmed(Action::WriteSettings, question) {
                    self.act(action);
                }
            }
            action => self.act(action),
        }
        ControlFlow::Continue(())
    }

    /// Carries out the action of a key or a button.
    fn act(&mut self, action: Action) {
        let before = self.view;
        match action {
            Action::Pause if self.control.pause.is_set() => self.control.pause.set(false),
            Action::Pause => self.pause(),
            Action::Record => self.toggle_recording(),
            Action::NextColours => self.next_colours(),
            Action::DepthColours => self.depth_colours = !self.depth_colours,
            Action::NextView => {
                let frame = self.frame.as_ref();
                let there = frame.map_or([false; 2], |frame| {
                    [frame.whitened.is_some(), frame.verdicts.is_some()]
                });
                self.view = self.view.next(there);
            }
            Action::Rows => self.toggle_both_eyes(),
            Action::Snapshot => self.snapshot(),
            Action::PointCloud => self.point_cloud(),
            Action::Undo => self.undo(),
            Action::Measure => self.toggle_measuring(),
            Action::Obstacles => self.obstacles = !self.obstacles,
            Action::Path => self.path = !self.path,
            Action::Status => {
                self.histograms = !self.histograms;
                self.overlay |= self.histograms;
            }
            Action::Compare => self.toggle_comparison(),
            Action::Tune => self.toggle_panel(),
            Action::WriteSettings => self.write_settings(),
            Action::FullScreen => self.toggle_full_screen(),
            Action::Overlay => self.overlay = !self.overlay,
            Action::Devices => self.toggle_devices(),
            Action::Help => {
                self.sheet = self.sheet.take().is_none().then_some(Sheet::Help);
                self.overlay |= self.sheet.is_some();
            }
            Action::Nearer => self.approach(1.5),
            Action::Farther => self.approach(-1.5),
            Action::Whole => {
                self.lens = Lens::default();
                self.has_viewpoint = false;
            }
            Action::ArrowLeft => self.arrow(-1.0, 0.0),
            Action::ArrowRight => self.arrow(1.0, 0.0),
            Action::ArrowUp => self.arrow(0.0, -1.0),
            Action::ArrowDown => self.arrow(0.0, 1.0),
            action => match bar::view_of(action) {
                Some(view) => self.view = view,
                None => self.travel(action),
            },
        }
        if let (Action::Points, View::Points, Some(frame)) = (action, before, &self.frame) {
            self.orbit = Orbit::left_camera(frame);
        }
    }

    /// Chooses a viewpoint for the points when they are shown first, and after a reset.
    fn choose_viewpoint(&mut self) {
        if let (View::Points, false, Some(frame)) = (self.view, self.has_viewpoint, &self.frame) {
            self.orbit = Orbit::aside(frame);
            self.has_viewpoint = true;
        }
    }

    /// Comes nearer by steps of the mouse wheel: to the points, or to the pixel under the mouse.
    fn approach(&mut self, steps: f32) {
        if self.view == View::Points {
            return self.orbit.approach(steps);
        }
        let under = self.cursor.and_then(|at| self.panes().iter().find_map(|it| it.place_at(at)));
        let about = under.map_or([0.5; 2], |place| place.map(|share| share as f32));
        self.lens.magnify(1.2_f32.powf(steps), about);
    }

    /// Turns the points, or moves the probe by a pixel of the image.
    fn arrow(&mut self, across: f64, down: f64) {
        if self.view == View::Points {
            return self.orbit.turn(0.03 * across as f32, 0.03 * down as f32);
        }
        let (Some(frame), Some((x, y))) = (&self.frame, self.cursor) else { return };
        let found = self.panes().into_iter().find(|pane| pane.contains((x, y)));
        let Some(pane) = found else { return };
        let pixels = f64::from(size(frame).0) * f64::from(pane.part[2]);
        let pixel = f64::from(pane.width) / pixels;
        self.cursor = Some((x + across * pixel, y + down * pixel)).filter(|&at| pane.contains(at));
    }

    /// Reports whether the panel is on the screen: a sheet takes its place.
    fn shows_panel(&self) -> bool {
        self.panel.open && self.sheet.is_none()
    }

    /// Shows the machine's devices, which another thread lists.
    fn toggle_devices(&mut self) {
        let is_shown = matches!(self.sheet, Some(Sheet::Devices(_)));
        self.sheet = (!is_shown).then(|| Sheet::Devices("looking for devices …".into()));
        self.overlay |= !is_shown;
        if !is_shown {
            let (remote, list) = (self.shell.remote.clone(), self.shell.options.devices);
            let list = move || remote.wake(Wake::Devices(list()));
            let remote = self.shell.remote.clone();
            let failed = move |broken| remote.wake(Wake::Devices(format!("no list: {broken}")));
            if let Err(error) = thread::spawn("devices", list, failed) {
                self.sheet = Some(Sheet::Devices(format!("no list: {error}")));
            }
        }
    }

    /// Closes the sheet at the press of Escape, which otherwise quits.
    fn sheet_takes(&mut self, key: &Key) -> bool {
        let is_closed = self.sheet.is_some() && *key == Key::Named(NamedKey::Escape);
        if is_closed {
            self.sheet = None;
            self.shell.request_redraw();
        }
        is_closed
    }

    fn hold(&mut self, button: MouseButton) -> Option<Held> {
        if button == MouseButton::Left && self.drag_timeline(true) {
            return Some(Held::Timeline);
        }
        if button == MouseButton::Left && self.is_over_wipe() {
            return Some(Held::Wipe);
        }
        let held = if self.view == View::Points { Held::Viewpoint(button) } else { Held::Images };
        self.is_over_images().then_some(held)
    }

    /// Moves what is held with the mouse, which was at `before`.
    fn drag(&mut self, before: Option<(f64, f64)>) {
        match (self.held, before, self.cursor) {
            (Some(Held::Timeline), ..) => drop(self.drag_timeline(false)),
            (Some(Held::Wipe), _, Some((x, _))) => self.move_wipe(x),
            (Some(Held::Viewpoint(button)), Some(before), Some(now)) => {
                self.move_viewpoint(button, before, now)
            }
            (Some(Held::Images), Some(before), Some(now)) => {
                if let Some(pane) = self.panes().first() {
                    let share = |moved: f64, extent: u32| (moved / f64::from(extent)) as f32;
                    let across = share(now.0 - before.0, pane.width);
                    self.lens.shift(across, share(now.1 - before.1, pane.height));
                }
            }
            _ => {}
        }
    }

    fn toggle_both_eyes(&mut self) {
        if self.view == View::Pair {
            self.view = self.view_before;
        } else {
            self.view_before = std::mem::replace(&mut self.view, View::Pair);
            self.overlay = true;
        }
    }

    fn is_full_screen(&self) -> bool {
        self.shell.screen.as_ref().is_some_and(|screen| screen.window.fullscreen().is_some())
    }

    fn toggle_full_screen(&self) {
        if let Some(screen) = &self.shell.screen {
            let other = (!self.is_full_screen()).then_some(Fullscreen::Borderless(None));
            screen.window.set_fullscreen(other);
        }
    }

    fn pause(&self) {
        match &self.frame {
            Some(frame) => self.control.pause.hold((frame.pair.sequence, frame.pair.timestamp)),
            None => self.control.pause.set(true),
        }
    }

    /// Reports whether a key ends the run. While frames are written to files, it has to be pressed twice.
    fn may_quit(&mut self) -> bool {
        let is_over = self.ended || self.failure.is_some();
        let question = "frames are being written to files: press the key again to end the run";
        self.records() != Some(true) || is_over || self.is_confirmed(Action::Quit, question.into())
    }

    /// Reports whether a key was pressed twice within a short time, and asks for it otherwise.
    fn is_confirmed(&mut self, action: Action, question: String) -> bool {
        let now = Instant::now();
        let asked = self.asked.take();
        if asked.is_some_and(|(what, since)| what == action && now - since < NOTICE) {
            self.notice = None;
            return true;
        }
        self.asked = Some((action, now));
        self.overlay = true;
        self.notify(Ok(question));
        false
    }

    fn notify(&mut self, message: Result<String, String>) {
        let error = message.is_err();
        let text = message.unwrap_or_else(|text| text);
        self.notice = Some(Notice { text, error, until: Instant::now() + NOTICE });
    }
}

/// Returns the action of a key. Shift only makes other characters; keys with others belong to the desktop.
fn action_of(key: &Key, modifiers: ModifiersState) -> Option<Action> {
    if !(modifiers - ModifiersState::SHIFT).is_empty() {
        return None;
    }
    match key {
        Key::Character(character) => keys::action(character, On::Window),
        Key::Named(NamedKey::Space) => keys::action(" ", On::Window),
        Key::Named(named) => keys::action(&format!("{named:?}"), On::Window),
        _ => None,
    }
}

fn size(frame: &Matched) -> (u32, u32) {
    (frame.disparity.width() as u32, frame.disparity.height() as u32)
}

impl Content for App {
    fn shell(&mut self) -> &mut Shell {
        &mut self.shell
    }

    fn redraw(&mut self) -> Result<()> {
        let now = Instant::now();
        let newest = self.shell.remote.mailbox.take();
        let newest = newest.filter(|frame| self.control.pause.window_shows(frame.pair.arrived));
        if let (Some(screen), Some(frame)) = (&mut self.shell.screen, &newest) {
            screen.upload(frame)?;
            self.scale.update(&frame.disparity, frame.pair.timestamp);
            self.frame = newest.clone();
            self.check_comparison();
        }
        self.choose_viewpoint();
        let content = self.overlay.then(|| self.content(now));
        let scene = self.scene();
        let before = self.taken;
        let (drawn, again_in) = self.draw(&scene, content.as_ref())?;
        // Marks were placed for the room as it was.
        let again_in = if self.taken == before { again_in } else { Some(Duration::ZERO) };
        if let (Drawn::Shown, Some(frame)) = (drawn, newest) {
            self.age = Some(frame.pair.arrived.elapsed());
        }
        let again = again_in.and_then(|wait| now.checked_add(wait));
        self.shell.redraw_at = [self.next_redraw(now, drawn), again].into_iter().flatten().min();
        Ok(())
    }

    fn event(&mut self, event: &WindowEvent) -> ControlFlow<()> {
        if let Some(screen) = &mut self.shell.screen
            && *event != WindowEvent::RedrawRequested
            && screen.feed_panel(event)
            && (self.shows_panel() || self.overlay)
        {
            self.shell.request_redraw();
        }
        match event {
            WindowEvent::ModifiersChanged(modifiers) => self.modifiers = modifiers.state(),
            WindowEvent::KeyboardInput { event, .. } => return self.key(event),
            WindowEvent::MouseInput { .. } | WindowEvent::MouseWheel { .. }
                if self.question.is_open =>
            {
                self.shell.request_redraw();
            }
            WindowEvent::MouseInput { state, .. }
                if self.sheet.is_some() && !self.is_over_bar() =>
            {
                self.sheet.take_if(|_| state.is_pressed());
                self.shell.request_redraw();
            }
            WindowEvent::MouseInput { state, button, .. } if state.is_pressed() => {
                self.held = self.hold(*button);
                self.pressed = self.cursor;
                self.shell.request_redraw();
            }
            WindowEvent::MouseInput { button, .. } => {
                let is_click = self.pressed.zip(self.cursor).is_some_and(|(from, to)| {
                    (from.0 - to.0).hypot(from.1 - to.1) < CLICK && *button == MouseButton::Left
                });
                let on_images = matches!(self.held, Some(Held::Images | Held::Viewpoint(_)));
                if is_click && on_images {
                    self.measure_here();
                }
                self.held = None;
                self.shell.request_redraw();
            }
            WindowEvent::MouseWheel { delta, .. } if self.is_over_images() => {
                self.approach(match delta {
                    MouseScrollDelta::LineDelta(_, lines) => *lines,
                    MouseScrollDelta::PixelDelta(pixels) => pixels.y as f32 / 40.0,
                });
                self.shell.request_redraw();
            }
            WindowEvent::CursorMoved { position, .. } => {
                let before = self.cursor.replace((position.x, position.y));
                self.drag(before);
                self.shell.request_redraw();
            }
            WindowEvent::CursorLeft { .. } => {
                self.cursor = None;
                self.shell.request_redraw();
            }
            _ => (),
        }
        ControlFlow::Continue(())
    }

    fn message(&mut self, message: Wake) -> bool {
        match message {
            Wake::Status(status) => {
                // Nothing moves during a pause and after the end, so most of its reports change nothing
                // either.
                let shown = |status: &RunStatus| {
                    let judged = status.judged().map(|(_, text, alarm)| (text.to_owned(), alarm));
                    (judged.collect::<Vec<_>>(), status.counted(), status.banners.clone())
                };
                let before = self.status.replace(status.clone());
                return !self.is_still() || before.is_none_or(|it| shown(&it) != shown(&status));
            }
            // Pairs that the pause holds back change nothing on the screen.
            Wake::Frame => {
                let pause = &self.control.pause;
                let is_held = |frame: &Matched| !pause.window_shows(frame.pair.arrived);
                return !self.shell.remote.mailbox.discard(is_held);
            }
            Wake::Ended => self.ended = true,
            Wake::Failed(message) => self.failure = Some(message),
            Wake::Saved(message) => self.notify(message),
            Wake::Devices(text) => {
                if let Some(Sheet::Devices(shown)) = &mut self.sheet {
                    *shown = text;
                }
            }
            Wake::Room(text) => self.question.room = text,
            Wake::Tuned(tuned) => self.tuned(*tuned),
            Wake::Camera(place, report) => self.panel.cameras.report(place, *report),
            Wake::Close | Wake::Graphics => (),
        }
        true
    }

    fn quit(&mut self) {
        self.control.stop.set(true);
    }

    fn finish(&mut self) {
        for writer in self.writers.drain(..) {
            if writer.join().is_err() {
                tracing::error!("a snapshot was not written");
            }
        }
    }
}

impl App {
    fn is_over_bar(&self) -> bool {
        let (Some(screen), Some((_, y))) = (&self.shell.screen, self.cursor) else { return false };
        y >= f64::from(self.scene().room(screen.size()).1)
    }

    fn is_over_images(&self) -> bool {
        self.cursor.is_some_and(|at| self.panes().iter().any(|pane| pane.contains(at)))
    }

    /// Moves the viewpoint with the mouse: the left button turns, the others shift.
    pub(super) fn move_viewpoint(
        &mut self,
        button: MouseButton,
        before: (f64, f64),
        now: (f64, f64),
    ) {
        let Some(screen) = &self.shell.screen else { return };
        let height = f64::from(screen.size().1.max(1));
        let [across, down] =
            [now.0 - before.0, now.1 - before.1].map(|pixels| (pixels / height) as f32);
        match button {
            MouseButton::Left => self.orbit.turn(across, down),
            _ => self.orbit.shift(across, down),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_of_the_keyboard_have_their_actions() {
        let plain = ModifiersState::empty();
        let of = |text: &str| action_of(&Key::Character(text.into()), plain);
        let named = |key| action_of(&Key::Named(key), plain);
        assert_eq!(of("L"), Some(Action::NextView));
        assert_eq!((of("="), of("x")), (Some(Action::Nearer), None));
        assert_eq!(named(NamedKey::Space), Some(Action::Pause));
        assert_eq!(named(NamedKey::Escape), Some(Action::Leave));
        assert_eq!(named(NamedKey::ArrowUp), Some(Action::ArrowUp));
        assert_eq!(named(NamedKey::Home), Some(Action::Begin));
        let shifted = action_of(&Key::Character("Q".into()), ModifiersState::SHIFT);
        assert_eq!(shifted, Some(Action::Quit));
        assert_eq!(action_of(&Key::Character("f".into()), ModifiersState::ALT), None);
    }
}
