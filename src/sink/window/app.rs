//! The event loop's side of the window: what arrives, what the user does, when to draw.

use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime};

use anyhow::Result;
use winit::application::ApplicationHandler;
use winit::event::{KeyEvent, StartCause, WindowEvent};
use winit::event_loop::{ActiveEventLoop, ControlFlow};
use winit::keyboard::{Key, ModifiersState, NamedKey};
use winit::window::{Fullscreen, WindowId};

use super::mailbox::Rates;
use super::overlay::{Hover, Legend, OverlayContent};
use super::scene::{Limits, Scene, View, panes};
use super::screen::{Drawn, Screen};
use super::snapshot::{self, SnapshotPaths};
use super::{Remote, Wake, WindowOptions, WindowStats};
use crate::control::Control;
use crate::frame::Matched;
use crate::sink::cloud;
use crate::sink::colour::{ColourMap, ColourScale};

/// Numbers that change faster than this cannot be read.
const READABLE: Duration = Duration::from_millis(250);

/// How often the figures are looked at while no frame comes.
const IDLE: Duration = Duration::from_millis(500);

/// How soon drawing is tried again where it did not work.
const RETRY: Duration = Duration::from_millis(50);

/// How long a notice stays.
const NOTICE: Duration = Duration::from_secs(4);

/// What a key asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Action {
    Pause,
    NextColours,
    NextView,
    Snapshot,
    PointCloud,
    FullScreen,
    Overlay,
    Help,
    Quit,
}

impl Action {
    fn of(key: &Key, modifiers: ModifiersState) -> Option<Self> {
        // Shift only makes capitals and the question mark; the others belong to the desktop.
        if !(modifiers - ModifiersState::SHIFT).is_empty() {
            return None;
        }
        match key {
            Key::Named(NamedKey::Space) => Some(Action::Pause),
            Key::Named(NamedKey::Escape) => Some(Action::Quit),
            Key::Character(character) => match character.to_lowercase().as_str() {
                " " => Some(Action::Pause),
                "c" => Some(Action::NextColours),
                "l" => Some(Action::NextView),
                "s" => Some(Action::Snapshot),
                "p" => Some(Action::PointCloud),
                "f" => Some(Action::FullScreen),
                "o" => Some(Action::Overlay),
                "h" | "?" => Some(Action::Help),
                "q" => Some(Action::Quit),
                _ => None,
            },
            _ => None,
        }
    }
}

/// A message for a few seconds.
struct Notice {
    text: String,
    until: Instant,
    error: bool,
}

/// The window and everything it shows.
pub(crate) struct App {
    options: WindowOptions,
    control: Control,
    remote: Remote,
    instance: wgpu::Instance,
    screen: Option<Screen>,
    /// Why the event loop was left early.
    error: Option<anyhow::Error>,
    view: View,
    colour_map: ColourMap,
    scale: ColourScale,
    /// The frame on the screen.
    frame: Option<Arc<Matched>>,
    /// Age of that frame when it was put there.
    age: Option<Duration>,
    stats: Option<WindowStats>,
    /// The figures as they are shown, and since when.
    figures: Option<(Instant, Rates, Option<Duration>)>,
    cursor: Option<(f64, f64)>,
    modifiers: ModifiersState,
    overlay: bool,
    help: bool,
    ended: bool,
    failure: Option<String>,
    notice: Option<Notice>,
    redraw_at: Option<Instant>,
    writers: Vec<JoinHandle<()>>,
}

impl App {
    pub(crate) fn new(
        options: WindowOptions,
        control: Control,
        remote: Remote,
        instance: wgpu::Instance,
    ) -> Self {
        Self {
            view: options.view,
            colour_map: options.colour_map,
            scale: ColourScale::new(options.colour_range, options.disparities),
            options,
            control,
            remote,
            instance,
            screen: None,
            error: None,
            frame: None,
            age: None,
            stats: None,
            figures: None,
            cursor: None,
            modifiers: ModifiersState::empty(),
            overlay: true,
            help: false,
            ended: false,
            failure: None,
            notice: None,
            redraw_at: None,
            writers: Vec::new(),
        }
    }

    /// Waits for snapshots that are being written.
    ///
    /// # Errors
    /// Why the event loop was left early.
    pub(crate) fn finish(self) -> Result<()> {
        for writer in self.writers {
            if writer.join().is_err() {
                tracing::error!("a snapshot was not written");
            }
        }
        self.error.map_or(Ok(()), Err)
    }

    fn fail(&mut self, event_loop: &ActiveEventLoop, error: anyhow::Error) {
        self.error.get_or_insert(error);
        self.quit(event_loop);
    }

    fn quit(&mut self, event_loop: &ActiveEventLoop) {
        self.control.stop.set(true);
        event_loop.exit();
    }

    fn request_redraw(&self) {
        if let Some(screen) = &self.screen {
            screen.window.request_redraw();
        }
    }

    fn scene(&self) -> Scene {
        Scene { view: self.view, colour_map: self.colour_map, limits: Limits::of(&self.scale) }
    }

    fn redraw(&mut self) -> Result<()> {
        let now = Instant::now();
        let newest = self.remote.mailbox.take();
        if let (Some(screen), Some(frame)) = (&mut self.screen, &newest) {
            screen.upload(frame)?;
            self.scale.update(&frame.disparity, frame.pair.timestamp);
            self.frame = newest.clone();
        }
        let content = self.overlay.then(|| self.content(now));
        let scene = self.scene();
        let Some(screen) = &mut self.screen else { return Ok(()) };
        let drawn = screen.draw(&scene, content.as_ref())?;
        if let (Drawn::Shown, Some(frame)) = (drawn, newest) {
            self.age = Some(frame.pair.arrived.elapsed());
        }
        self.redraw_at = self.next_redraw(now, drawn);
        Ok(())
    }

    /// When to draw again although nothing new comes: for figures that fade and notices that go.
    fn next_redraw(&self, now: Instant, drawn: Drawn) -> Option<Instant> {
        match drawn {
            Drawn::Later => return Some(now + RETRY),
            Drawn::Hidden => return None,
            Drawn::Shown => (),
        }
        let still = self.ended || self.control.pause.is_set();
        let fading = self.figures.is_some_and(|(_, rates, _)| rates.frames_per_second.is_some());
        let idle = (fading || !still).then_some(now + IDLE);
        let notice = self.notice.as_ref().map(|notice| notice.until);
        [idle, notice].into_iter().flatten().min()
    }

    fn content(&mut self, now: Instant) -> OverlayContent {
        if self.notice.as_ref().is_some_and(|notice| notice.until <= now) {
            self.notice = None;
        }
        if self.figures.is_none_or(|(since, ..)| now.duration_since(since) >= READABLE) {
            self.figures = Some((now, self.remote.mailbox.rates(now), self.age));
        }
        let (rates, on_screen) =
            self.figures.map(|(_, rates, age)| (rates, age)).unwrap_or_default();
        let scene = self.scene();
        let legend = Legend { colour_map: scene.colour_map, limits: scene.limits };
        let message = |error| {
            let notice = self.notice.as_ref().filter(|notice| notice.error == error);
            notice.map(|notice| notice.text.clone())
        };
        OverlayContent {
            rates,
            on_screen,
            picture: self.frame.as_ref().map(|frame| size(frame)),
            engine: self.stats.as_ref().map(|stats| stats.engine.clone()).unwrap_or_default(),
            counts: self.stats.as_ref().map(|stats| stats.counts),
            alignment: self.stats.as_ref().and_then(|stats| stats.alignment.clone()),
            legend: (self.view != View::Left).then_some(legend),
            hover: self.hover(),
            paused: self.control.pause.is_set(),
            ended: self.ended,
            error: self.failure.clone().or_else(|| message(true)),
            notice: message(false),
            help: self.help,
        }
    }

    /// The pixel under the mouse.
    fn hover(&self) -> Option<Hover> {
        let frame = self.frame.as_ref()?;
        let picture = size(frame);
        let panes = panes(self.view, picture, self.screen.as_ref()?.size());
        let cursor = self.cursor?;
        let (under, pixel) =
            panes.iter().find_map(|pane| Some((pane, pane.pixel_at(cursor, picture)?)))?;
        let disparity = frame.disparity.at(pixel.0 as usize, pixel.1 as usize);
        // The mouse marks its own pane; a cross marks the same pixel in the other one.
        let others = panes.iter().filter(|pane| pane.content != under.content);
        Some(Hover {
            pixel,
            disparity,
            depth: disparity.and_then(|d| frame.geometry?.depth_m(f64::from(d))),
            marks: others.map(|pane| pane.centre_of(pixel, picture)).collect(),
        })
    }

    fn key(&mut self, event_loop: &ActiveEventLoop, event: &KeyEvent) {
        if !event.state.is_pressed() || event.repeat {
            return;
        }
        let Some(action) = Action::of(&event.logical_key, self.modifiers) else { return };
        match action {
            Action::Pause => self.control.pause.toggle(),
            Action::NextColours => self.colour_map = self.colour_map.next(),
            Action::NextView => self.view = self.view.next(),
            Action::Snapshot => self.snapshot(),
            Action::PointCloud => self.point_cloud(),
            Action::FullScreen => self.toggle_full_screen(),
            Action::Overlay => self.overlay = !self.overlay,
            Action::Help => {
                self.help = !self.help;
                self.overlay |= self.help;
            }
            Action::Quit => self.quit(event_loop),
        }
        self.request_redraw();
    }

    fn toggle_full_screen(&self) {
        if let Some(screen) = &self.screen {
            let other = match screen.window.fullscreen() {
                Some(_) => None,
                None => Some(Fullscreen::Borderless(None)),
            };
            screen.window.set_fullscreen(other);
        }
    }

    /// Draws the picture at once; a thread waits for it and writes the files.
    fn snapshot(&mut self) {
        let scene = self.scene();
        let (Some(screen), Some(frame)) = (&mut self.screen, &self.frame) else {
            self.notify(Err("there is no picture yet".into()));
            return;
        };
        let (readback, device) = match screen.picture(&scene) {
            Ok(picture) => picture,
            Err(error) => return self.notify(Err(format!("no snapshot: {error:#}"))),
        };
        let folder = &self.options.snapshot_dir;
        let paths = SnapshotPaths::new(folder, SystemTime::now(), frame.pair.sequence);
        let frame = frame.clone();
        let range = self.options.disparities;
        self.save("snapshot", move || {
            let view = readback.wait(&device)?;
            snapshot::write(&paths, &frame.disparity, range, &view)?;
            Ok(format!("saved {paths}"))
        });
    }

    /// Writes the frame on the screen as points in space.
    fn point_cloud(&mut self) {
        let Some(frame) = &self.frame else {
            return self.notify(Err("there is no picture yet".into()));
        };
        let Some(geometry) = frame.geometry else {
            let cure = "start with --calibration, or with --focal and --baseline";
            return self.notify(Err(format!("no point cloud without a calibration: {cure}")));
        };
        let folder = &self.options.snapshot_dir;
        let path = snapshot::cloud_path(folder, SystemTime::now(), frame.pair.sequence);
        let frame = frame.clone();
        self.save("point cloud", move || {
            let colours = cloud::grey(&frame.pair.left);
            let points = cloud::write_cloud(&path, &frame.disparity, &geometry, colours)?;
            Ok(format!("saved {} ({points} points)", path.display()))
        });
    }

    /// Writes files on a thread of its own, which says at the end what it has saved.
    fn save(
        &mut self,
        what: &'static str,
        write: impl FnOnce() -> Result<String> + Send + 'static,
    ) {
        let remote = self.remote.clone();
        let write = move || {
            let saved = write().map_err(|error| format!("no {what}: {error:#}"));
            match &saved {
                Ok(text) => tracing::info!("{text}"),
                Err(text) => tracing::error!("{text}"),
            }
            remote.wake(Wake::Saved(saved));
        };
        match std::thread::Builder::new().name("snapshot".into()).spawn(write) {
            Ok(writer) => self.writers.push(writer),
            Err(error) => self.notify(Err(format!("no {what}: {error}"))),
        }
        self.writers.retain(|writer| !writer.is_finished());
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

impl ApplicationHandler<Wake> for App {
    fn new_events(&mut self, _: &ActiveEventLoop, cause: StartCause) {
        if matches!(cause, StartCause::ResumeTimeReached { .. }) {
            self.redraw_at = None;
            self.request_redraw();
        }
    }

    fn resumed(&mut self, event_loop: &ActiveEventLoop) {
        if self.screen.is_none() {
            match Screen::open(event_loop, &self.instance, &self.options, self.remote.clone()) {
                Ok(screen) => self.screen = Some(screen),
                Err(error) => self.fail(event_loop, error),
            }
        }
        self.request_redraw();
    }

    fn user_event(&mut self, event_loop: &ActiveEventLoop, event: Wake) {
        match event {
            Wake::Frame => (),
            Wake::Stats(stats) => self.stats = Some(stats),
            Wake::Ended => self.ended = true,
            Wake::Failed(message) => self.failure = Some(message),
            Wake::Close => self.quit(event_loop),
            Wake::Saved(message) => self.notify(message),
            Wake::Graphics => {
                if let Some(Err(error)) = self.screen.as_ref().map(Screen::check) {
                    self.fail(event_loop, error);
                }
            }
        }
        self.request_redraw();
    }

    fn window_event(&mut self, event_loop: &ActiveEventLoop, _: WindowId, event: WindowEvent) {
        match event {
            WindowEvent::RedrawRequested => {
                if let Err(error) = self.redraw() {
                    self.fail(event_loop, error);
                }
            }
            WindowEvent::CloseRequested | WindowEvent::Destroyed => self.quit(event_loop),
            WindowEvent::ModifiersChanged(modifiers) => self.modifiers = modifiers.state(),
            WindowEvent::KeyboardInput { event, .. } => self.key(event_loop, &event),
            WindowEvent::CursorMoved { position, .. } => {
                self.cursor = Some((position.x, position.y));
                self.request_redraw();
            }
            WindowEvent::CursorLeft { .. } => {
                self.cursor = None;
                self.request_redraw();
            }
            WindowEvent::Resized(size) => {
                if let Some(screen) = &mut self.screen {
                    screen.resized(size);
                }
                self.request_redraw();
            }
            WindowEvent::ScaleFactorChanged { .. } | WindowEvent::Occluded(false) => {
                self.request_redraw()
            }
            _ => (),
        }
    }

    fn about_to_wait(&mut self, event_loop: &ActiveEventLoop) {
        event_loop.set_control_flow(match self.redraw_at {
            Some(at) => ControlFlow::WaitUntil(at),
            None => ControlFlow::Wait,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_mean_what_the_help_says() {
        let plain = ModifiersState::empty();
        let of = |text: &str| Action::of(&Key::Character(text.into()), plain);
        assert_eq!(Action::of(&Key::Named(NamedKey::Space), plain), Some(Action::Pause));
        assert_eq!(Action::of(&Key::Named(NamedKey::Escape), plain), Some(Action::Quit));
        assert_eq!(of("c"), Some(Action::NextColours));
        assert_eq!(of("L"), Some(Action::NextView));
        assert_eq!(of("s"), Some(Action::Snapshot));
        assert_eq!(of("p"), Some(Action::PointCloud));
        assert_eq!(of("f"), Some(Action::FullScreen));
        assert_eq!(of("o"), Some(Action::Overlay));
        assert_eq!(of("?"), Some(Action::Help));
        assert_eq!(of("q"), Some(Action::Quit));
        assert_eq!(of("x"), None);
        let shifted = Action::of(&Key::Character("Q".into()), ModifiersState::SHIFT);
        assert_eq!(shifted, Some(Action::Quit));
        assert_eq!(Action::of(&Key::Character("f".into()), ModifiersState::ALT), None);
    }
}
