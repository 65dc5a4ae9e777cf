//! Application of the event loop: handles messages and keys, and decides when to draw.

mod content;
mod keys;
mod saving;
mod tuning;

use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow};
use winit::application::ApplicationHandler;
use winit::event::{KeyEvent, StartCause, WindowEvent};
use winit::event_loop::{ActiveEventLoop, ControlFlow};
use winit::keyboard::ModifiersState;
use winit::window::{Fullscreen, WindowId};

use super::event_loop::DESTROYED;
use super::mailbox::Rates;
use super::options::WindowOptions;
use super::panel::Panel;
use super::remote::{Remote, Wake};
use super::scene::{Limits, Scene};
use super::screen::{Drawn, Screen};
use super::view::View;
use crate::core::control::Control;
use crate::core::frame::Matched;
use crate::sink::colour::ColourScale;
use crate::sink::colouring::Colouring;
use crate::sink::viewer::Figures;
use keys::Action;

/// Redraw period of the figures while no frame arrives.
const IDLE: Duration = Duration::from_millis(500);

/// Delay before a failed drawing is tried again.
const RETRY: Duration = Duration::from_millis(50);

/// Time for which a notice is shown.
const NOTICE: Duration = Duration::from_secs(4);

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
    /// The error that ended the event loop.
    error: Option<anyhow::Error>,
    view: View,
    colouring: Colouring,
    scale: ColourScale,
    frame: Option<Arc<Matched>>,
    /// Age of the frame when it was drawn.
    age: Option<Duration>,
    stats: Option<Figures>,
    /// The figures on the screen, and since when.
    figures: Option<(Instant, Rates, Option<Duration>)>,
    cursor: Option<(f64, f64)>,
    modifiers: ModifiersState,
    overlay: bool,
    /// The view to return to from the stereo pair.
    view_before: View,
    histograms: bool,
    help: bool,
    ended: bool,
    failure: Option<String>,
    notice: Option<Notice>,
    panel: Panel,
    /// Width in pixels of the panel at the right edge, as last drawn.
    taken: u32,
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
            colouring: Colouring { map: options.colour_map, span: options.colour_range },
            scale: ColourScale::new(options.colour_range, options.disparities),
            panel: Panel::new(options.tuning.as_ref().map(|t| t.knobs.clone()).unwrap_or_default()),
            taken: 0,
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
            view_before: View::Disparity,
            histograms: false,
            help: false,
            ended: false,
            failure: None,
            notice: None,
            redraw_at: None,
            writers: Vec::new(),
        }
    }

    /// Ends the event loop because of an error, of which the loss of the display may be the cause.
    fn fail(&mut self, event_loop: &ActiveEventLoop, error: anyhow::Error) {
        self.error.get_or_insert(error);
        event_loop.exit();
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
        Scene {
            view: self.view,
            colour_map: self.colouring.map,
            limits: Limits::of(&self.scale),
            taken: if self.panel.open { self.taken } else { 0 },
        }
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
        let (drawn, again_in) = if self.panel.open {
            self.draw_with_panel(&scene, content.as_ref())?
        } else {
            let Some(screen) = &mut self.screen else { return Ok(()) };
            (screen.draw(&scene, content.as_ref())?, None)
        };
        if let (Drawn::Shown, Some(frame)) = (drawn, newest) {
            self.age = Some(frame.pair.arrived.elapsed());
        }
        let again = again_in.and_then(|wait| now.checked_add(wait));
        self.redraw_at = [self.next_redraw(now, drawn), again].into_iter().flatten().min();
        Ok(())
    }

    /// Returns the next time to redraw without a new frame, because figures fade and notices expire.
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

    fn key(&mut self, event_loop: &ActiveEventLoop, event: &KeyEvent) {
        if !event.state.is_pressed() || event.repeat {
            return;
        }
        if self.panel.open && self.panel_takes(&event.logical_key) {
            return;
        }
        let Some(action) = Action::of(&event.logical_key, self.modifiers) else { return };
        match action {
            Action::Pause => self.control.pause.toggle(),
            Action::NextColours => self.next_colours(),
            Action::NextView => {
                let whitens = self.frame.as_ref().is_some_and(|frame| frame.whitened.is_some());
                self.view = self.view.next(whitens);
            }
            Action::Snapshot => self.snapshot(),
            Action::PointCloud => self.point_cloud(),
            Action::BothEyes => self.toggle_both_eyes(),
            Action::Histograms => {
                self.histograms = !self.histograms;
                self.overlay |= self.histograms;
            }
            Action::Tune => self.toggle_panel(),
            Action::WriteSettings => self.write_settings(),
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

    fn toggle_both_eyes(&mut self) {
        if self.view == View::Pair {
            self.view = self.view_before;
        } else {
            self.view_before = std::mem::replace(&mut self.view, View::Pair);
            self.overlay = true;
        }
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

    fn notify(&mut self, message: Result<String, String>) {
        let error = message.is_err();
        let text = message.unwrap_or_else(|text| text);
        self.notice = Some(Notice { text, error, until: Instant::now() + NOTICE });
    }
}

fn size(frame: &Matched) -> (u32, u32) {
    (frame.disparity.width() as u32, frame.disparity.height() as u32)
}

impl super::event_loop::App for App {
    fn has_failed(&self) -> bool {
        self.error.is_some()
    }

    fn finish(self) -> Result<()> {
        for writer in self.writers {
            if writer.join().is_err() {
                tracing::error!("a snapshot was not written");
            }
        }
        self.error.map_or(Ok(()), Err)
    }
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
            Wake::Tuned(tuned) => self.tuned(*tuned),
            Wake::Graphics => {
                if let Some(Err(error)) = self.screen.as_ref().map(Screen::check) {
                    self.fail(event_loop, error);
                }
            }
        }
        self.request_redraw();
    }

    fn window_event(&mut self, event_loop: &ActiveEventLoop, _: WindowId, event: WindowEvent) {
        if let Some(screen) = &mut self.screen
            && event != WindowEvent::RedrawRequested
            && screen.feed_panel(&event)
            && self.panel.open
        {
            self.request_redraw();
        }
        match event {
            WindowEvent::RedrawRequested => {
                if let Err(error) = self.redraw() {
                    self.fail(event_loop, error);
                }
            }
            WindowEvent::CloseRequested => self.quit(event_loop),
            WindowEvent::Destroyed => self.fail(event_loop, anyhow!(DESTROYED)),
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
