//! Runs a window in the event loop to its end.

use std::mem::ManuallyDrop;
use std::time::Instant;

use anyhow::{Result, anyhow};
use winit::application::ApplicationHandler;
use winit::event::{StartCause, WindowEvent};
use winit::event_loop::{ActiveEventLoop, ControlFlow, EventLoop};
use winit::platform::run_on_demand::EventLoopExtRunOnDemand;
use winit::window::WindowId;

use super::options::WindowOptions;
use super::remote::{Remote, Wake};
use super::screen::Screen;
use super::xlib;

/// Reason why a window is no longer shown.
pub(super) enum End {
    Closed(Result<()>),
    DisplayLost,
}

pub(super) struct Shell {
    pub options: WindowOptions,
    pub remote: Remote,
    instance: wgpu::Instance,
    /// `None` until the event loop has begun.
    pub screen: Option<Screen>,
    /// The error that ended the event loop, of which the loss of the display may be the cause.
    error: Option<anyhow::Error>,
    /// Time of the next redraw without an event.
    pub redraw_at: Option<Instant>,
}

impl Shell {
    pub(super) fn new(options: WindowOptions, remote: Remote, instance: wgpu::Instance) -> Self {
        Self { options, remote, instance, screen: None, error: None, redraw_at: None }
    }

    pub(super) fn request_redraw(&self) {
        if let Some(screen) = &self.screen {
            screen.window.request_redraw();
        }
    }

    fn open(&mut self, event_loop: &ActiveEventLoop) -> Result<()> {
        if self.screen.is_none() {
            let remote = self.remote.clone();
            self.screen = Some(Screen::open(event_loop, &self.instance, &self.options, remote)?);
        }
        Ok(())
    }
}

/// Content of a window, and its answers to keys and messages.
pub(super) trait Content {
    fn shell(&mut self) -> &mut Shell;

    fn redraw(&mut self) -> Result<()>;

    /// Handles an event, before the window does. Breaks if the user quits.
    fn event(&mut self, event: &WindowEvent) -> std::ops::ControlFlow<()>;

    /// Handles a message that only this content knows. Returns whether the window has to be drawn again.
    fn message(&mut self, _: Wake) -> bool {
        true
    }

    /// Prepares for the end, because the user quits or the window is to be closed.
    fn quit(&mut self) {}

    fn finish(&mut self) {}
}

/// Shows a window until its event loop ends. If the display is lost, the window is not dropped,
/// because it is freed by asking the display.
pub(super) fn show_window(event_loop: &mut EventLoop<Wake>, content: impl Content) -> End {
    let mut app = ManuallyDrop::new(App(content));
    let ran = event_loop.run_app_on_demand(&mut *app);
    if ran.is_err() || app.0.shell().error.is_some() && xlib::is_lost(event_loop) {
        return End::DisplayLost;
    }
    let App(mut content) = ManuallyDrop::into_inner(app);
    content.finish();
    End::Closed(content.shell().error.take().map_or(Ok(()), Err))
}

struct App<C>(C);

impl<C: Content> App<C> {
    fn check(&mut self, event_loop: &ActiveEventLoop, result: Result<()>) {
        if let Err(error) = result {
            self.0.shell().error.get_or_insert(error);
            event_loop.exit();
        }
    }

    fn quit(&mut self, event_loop: &ActiveEventLoop) {
        self.0.quit();
        event_loop.exit();
    }
}

impl<C: Content> ApplicationHandler<Wake> for App<C> {
    fn new_events(&mut self, _: &ActiveEventLoop, cause: StartCause) {
        if matches!(cause, StartCause::ResumeTimeReached { .. }) {
            self.0.shell().redraw_at = None;
            self.0.shell().request_redraw();
        }
    }

    fn resumed(&mut self, event_loop: &ActiveEventLoop) {
        let opened = self.0.shell().open(event_loop);
        self.check(event_loop, opened);
        self.0.shell().request_redraw();
    }

    fn user_event(&mut self, event_loop: &ActiveEventLoop, message: Wake) {
        match message {
            Wake::Close => self.quit(event_loop),
            Wake::Graphics => {
                let checked = self.0.shell().screen.as_ref().map_or(Ok(()), Screen::check);
                self.check(event_loop, checked);
            }
            other => {
                if !self.0.message(other) {
                    return;
                }
            }
        }
        self.0.shell().request_redraw();
    }

    fn window_event(&mut self, event_loop: &ActiveEventLoop, _: WindowId, event: WindowEvent) {
        if self.0.event(&event).is_break() {
            self.quit(event_loop);
        }
        match event {
            WindowEvent::RedrawRequested => {
                let drawn = self.0.redraw();
                self.check(event_loop, drawn);
            }
            WindowEvent::CloseRequested => self.quit(event_loop),
            WindowEvent::Destroyed => {
                let error = anyhow!("the window was destroyed by another program");
                self.check(event_loop, Err(error));
            }
            WindowEvent::Resized(size) => {
                if let Some(screen) = &mut self.0.shell().screen {
                    screen.resized(size);
                }
                self.0.shell().request_redraw();
            }
            WindowEvent::ScaleFactorChanged { .. } | WindowEvent::Occluded(false) => {
                self.0.shell().request_redraw()
            }
            _ => (),
        }
    }

    fn about_to_wait(&mut self, event_loop: &ActiveEventLoop) {
        let redraw_at = self.0.shell().redraw_at;
        event_loop.set_control_flow(redraw_at.map_or(ControlFlow::Wait, ControlFlow::WaitUntil));
    }
}
