//! The window of a run: handles messages and keys, and decides when to draw.

mod comparing;
mod content;
mod keys;
mod saving;
mod timeline;
mod tuning;

use std::ops::ControlFlow;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::Result;
use winit::event::{KeyEvent, MouseButton, MouseScrollDelta, WindowEvent};
use winit::keyboard::{Key, ModifiersState, NamedKey};
use winit::window::Fullscreen;

use super::event_loop::{Content, Shell};
use super::options::View;
use super::orbit::Orbit;
use super::panel::Panel;
use super::remote::{Rates, Wake};
use super::scene::{ALL_DEPTHS, Limits, Scene};
use super::screen::Drawn;
use crate::status::RunStatus;
use comparing::{Comparison, InEffect};
use keys::{Action, Travel};
use stereod_core::control::Control;
use stereod_core::frame::Matched;
use stereod_core::picture::cloud::CloudOptions;
use stereod_io::sink::colour::ColourScale;
use stereod_io::sink::colouring::Colouring;

/// Redraw period of the figures while no frame arrives.
const IDLE: Duration = Duration::from_millis(500);

/// Delay before a failed drawing is tried again.
const RETRY: Duration = Duration::from_millis(50);

const NOTICE: Duration = Duration::from_secs(4);

/// Thing that the mouse moves while a button of it is pressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Held {
    Timeline,
    Wipe,
    Viewpoint(MouseButton),
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
    orbit: Orbit,
    in_effect: InEffect,
    comparison: Option<Comparison>,
    /// Thing that the pressed mouse moves.
    held: Option<Held>,
    modifiers: ModifiersState,
    overlay: bool,
    view_before: View,
    histograms: bool,
    help: bool,
    ended: bool,
    failure: Option<String>,
    notice: Option<Notice>,
    /// Time of the last key that quits.
    asked_to_quit: Option<Instant>,
    panel: Panel,
    /// Width in pixels of the panel at the right edge, as last drawn.
    taken: u32,
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
            taken: 0,
            shell,
            control,
            frame: None,
            age: None,
            status: None,
            figures: None,
            cursor: None,
            orbit: Orbit::default(),
            comparison: None,
            held: None,
            modifiers: ModifiersState::empty(),
            overlay: true,
            view_before: View::Disparity,
            histograms: false,
            help: false,
            ended: false,
            failure: None,
            notice: None,
            asked_to_quit: None,
            writers: Vec::new(),
        }
    }

    fn scene(&self) -> Scene {
        let CloudOptions { near_m, far_m, .. } = self.shell.options.clouds;
        let [nearest, farthest] = ALL_DEPTHS;
        Scene {
            orbit: self.orbit,
            depths: [near_m.map_or(nearest, |m| m as f32), far_m.map_or(farthest, |m| m as f32)],
            view: self.view,
            colour_map: self.colouring.map,
            limits: Limits::of(&self.scale),
            taken: if self.shows_panel() { self.taken } else { 0 },
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
            || self.shows_panel() && self.panel_takes(&event.logical_key)
            || self.help_takes(&event.logical_key)
        {
            return ControlFlow::Continue(());
        }
        let Some(action) = Action::of(&event.logical_key, self.modifiers) else {
            return ControlFlow::Continue(());
        };
        // A key that is held steps on from pair to pair.
        let steps = [Travel::Forwards, Travel::Backwards].map(Action::Travel);
        if event.repeat && !steps.contains(&action) {
            return ControlFlow::Continue(());
        }
        match action {
            Action::Pause if self.control.pause.is_set() => self.control.pause.set(false),
            Action::Pause => self.pause(),
            Action::NextColours => self.next_colours(),
            Action::NextView => {
                let whitens = self.frame.as_ref().is_some_and(|frame| frame.whitened.is_some());
                self.view = self.view.next(whitens);
            }
            Action::Show(view) => self.view = view,
            Action::Points => {
                // Once more: back to the left camera's viewpoint.
                self.orbit = Orbit::default();
                self.view = View::Points;
            }
            Action::Snapshot => self.snapshot(),
            Action::PointCloud => self.point_cloud(),
            Action::BothEyes => self.toggle_both_eyes(),
            Action::Histograms => {
                self.histograms = !self.histograms;
                self.overlay |= self.histograms;
            }
            Action::Compare => self.toggle_comparison(),
            Action::Tune => self.toggle_panel(),
            Action::WriteSettings => self.write_settings(),
            Action::FullScreen => self.toggle_full_screen(),
            Action::Overlay => self.overlay = !self.overlay,
            Action::Help => {
                self.help = !self.help;
                self.overlay |= self.help;
            }
            Action::Travel(travel) => self.travel(travel),
            Action::Leave if self.is_full_screen() => self.toggle_full_screen(),
            Action::Leave | Action::Quit if self.may_quit() => return ControlFlow::Break(()),
            Action::Leave | Action::Quit => {}
        }
        self.shell.request_redraw();
        ControlFlow::Continue(())
    }

    /// Reports whether the panel is on the screen: the help takes its place.
    fn shows_panel(&self) -> bool {
        self.panel.open && !self.help
    }

    /// Closes the help at the press of Escape, which otherwise quits.
    fn help_takes(&mut self, key: &Key) -> bool {
        let is_closed = self.help && *key == Key::Named(NamedKey::Escape);
        if is_closed {
            self.help = false;
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
        self.is_over_points().then_some(Held::Viewpoint(button))
    }

    /// Moves what is held with the mouse, which was at `before`.
    fn drag(&mut self, before: Option<(f64, f64)>) {
        match (self.held, before, self.cursor) {
            (Some(Held::Timeline), ..) => drop(self.drag_timeline(false)),
            (Some(Held::Wipe), _, Some((x, _))) => self.move_wipe(x),
            (Some(Held::Viewpoint(button)), Some(before), Some(now)) => {
                self.move_viewpoint(button, before, now)
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
        let is_suspended = self.control.suspend_recording.is_set();
        let now = Instant::now();
        let asked = self.asked_to_quit.replace(now);
        if !self.shell.options.records
            || is_over
            || is_suspended
            || asked.is_some_and(|asked| now - asked < NOTICE)
        {
            return true;
        }
        self.overlay = true;
        self.notify(Ok(
            "frames are being written to files: press the key again to end the run".into()
        ));
        false
    }

    fn notify(&mut self, message: Result<String, String>) {
        let error = message.is_err();
        let text = message.unwrap_or_else(|text| text);
        self.notice = Some(Notice { text, error, until: Instant::now() + NOTICE });
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
        let content = self.overlay.then(|| self.content(now));
        let scene = self.scene();
        let (drawn, again_in) = if self.shows_panel() {
            self.draw_with_panel(&scene, content.as_ref())?
        } else {
            let Some(screen) = &mut self.shell.screen else { return Ok(()) };
            (screen.draw(&scene, content.as_ref())?, None)
        };
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
            && self.shows_panel()
        {
            self.shell.request_redraw();
        }
        match event {
            WindowEvent::ModifiersChanged(modifiers) => self.modifiers = modifiers.state(),
            WindowEvent::KeyboardInput { event, .. } => return self.key(event),
            WindowEvent::MouseInput { state, .. } if self.help => {
                self.help = !state.is_pressed();
                self.shell.request_redraw();
            }
            WindowEvent::MouseInput { state, button, .. } => {
                self.held = if state.is_pressed() { self.hold(*button) } else { None };
                self.shell.request_redraw();
            }
            WindowEvent::MouseWheel { delta, .. } if self.is_over_points() => {
                self.orbit.approach(match delta {
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
                // Nothing moves during a pause and after the end, so most of its reports change nothing either.
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
    pub(super) fn is_over_points(&self) -> bool {
        let (Some(screen), Some((x, _))) = (&self.shell.screen, self.cursor) else { return false };
        self.view == View::Points && x < f64::from(self.scene().room(screen.size()).0)
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
