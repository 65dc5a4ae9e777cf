//! Window of a guided calibration: both views, the detected boards and the poses still missing.
//!
//! It shares the display, the device and the painter with the window of a run. Everything in it is
//! painted with egui.

use std::sync::{Arc, Mutex};

use anyhow::{Result, anyhow};
use winit::application::ApplicationHandler;
use winit::event::{KeyEvent, WindowEvent};
use winit::event_loop::{ActiveEventLoop, ControlFlow};
use winit::keyboard::{Key, NamedKey};
use winit::window::WindowId;

use super::event_loop::DESTROYED;
use super::guided_paint::{GuidedView, Textures, paint};
use super::options::WindowOptions;
use super::remote::{Remote, Wake};
use super::scene::{Limits, Scene};
use super::screen::{Drawn, Screen};
use super::view::View;
use crate::core::control::Switch;
use crate::core::thread::locked;
use crate::sink::colour::ColourMap;

/// Switches set by the keys of the window.
#[derive(Clone, Debug, Default)]
pub struct GuidedKeys {
    /// Take this pair (space).
    pub take: Switch,
    /// Calibrate now (enter).
    pub solve: Switch,
    /// End (q).
    pub quit: Switch,
}

/// The newest view, until the window takes it.
pub(crate) type Views = Arc<Mutex<Option<GuidedView>>>;

/// Handle of the window for other threads. Never waits for it.
#[derive(Clone)]
pub struct GuidedRemote {
    remote: Remote,
    views: Views,
}

impl GuidedRemote {
    pub(super) fn new(remote: Remote, views: Views) -> Self {
        Self { remote, views }
    }

    /// Shows this view; one that was not drawn yet is skipped.
    pub fn show(&self, view: GuidedView) {
        let mut newest = locked(&self.views);
        let mut view = view;
        // The mark of a taken pair moves on to the view that replaces its own.
        view.taken |= newest.as_ref().is_some_and(|skipped| skipped.taken);
        let waking = newest.replace(view).is_none();
        drop(newest);
        if waking {
            self.remote.wake(Wake::Frame);
        }
    }

    /// Closes the window.
    pub fn close(&self) {
        self.remote.close();
    }
}

/// Application of the event loop.
pub(super) struct App {
    options: WindowOptions,
    keys: GuidedKeys,
    remote: Remote,
    views: Views,
    instance: wgpu::Instance,
    screen: Option<Screen>,
    view: Option<GuidedView>,
    textures: Textures,
    error: Option<anyhow::Error>,
}

impl App {
    pub(super) fn new(
        options: WindowOptions,
        keys: GuidedKeys,
        remote: Remote,
        views: Views,
        instance: wgpu::Instance,
    ) -> Self {
        let (screen, view, error) = (None, None, None);
        let textures = Textures::default();
        Self { options, keys, remote, views, instance, screen, view, textures, error }
    }

    fn fail(&mut self, event_loop: &ActiveEventLoop, error: anyhow::Error) {
        self.error.get_or_insert(error);
        self.quit(event_loop);
    }

    fn quit(&self, event_loop: &ActiveEventLoop) {
        self.keys.quit.set(true);
        event_loop.exit();
    }

    fn request_redraw(&self) {
        if let Some(screen) = &self.screen {
            screen.window.request_redraw();
        }
    }

    fn redraw(&mut self) -> Result<()> {
        let newest = locked(&self.views).take();
        let fresh = newest.is_some();
        self.view = newest.or(self.view.take());
        let Some(screen) = &mut self.screen else { return Ok(()) };
        // The renderer holds no frame, so it draws nothing beneath the painted content.
        let limits = Limits { low: 0, high: 1 };
        let scene = Scene { view: View::Left, colour_map: ColourMap::Grey, limits, taken: 0 };
        let (view, textures) = (self.view.as_ref(), &mut self.textures);
        let drawn = screen.draw_painted(&scene, &mut |painter| {
            if let Some(view) = view {
                textures.update(painter.ctx(), view, fresh);
                paint(painter, view, textures);
            }
        })?;
        if drawn == Drawn::Later {
            screen.window.request_redraw();
        }
        Ok(())
    }

    fn key(&self, event_loop: &ActiveEventLoop, event: &KeyEvent) {
        if !event.state.is_pressed() || event.repeat {
            return;
        }
        match &event.logical_key {
            Key::Named(NamedKey::Space) => self.keys.take.set(true),
            Key::Named(NamedKey::Enter) => self.keys.solve.set(true),
            Key::Named(NamedKey::Escape) => self.quit(event_loop),
            Key::Character(character) => match character.to_lowercase().as_str() {
                " " => self.keys.take.set(true),
                "q" => self.quit(event_loop),
                _ => {}
            },
            _ => {}
        }
    }
}

impl super::event_loop::App for App {
    fn has_failed(&self) -> bool {
        self.error.is_some()
    }

    fn finish(self) -> Result<()> {
        self.error.map_or(Ok(()), Err)
    }
}

impl ApplicationHandler<Wake> for App {
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
            Wake::Close => self.quit(event_loop),
            Wake::Graphics => {
                if let Some(Err(error)) = self.screen.as_ref().map(Screen::check) {
                    self.fail(event_loop, error);
                }
            }
            _ => {}
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
            WindowEvent::CloseRequested => self.quit(event_loop),
            WindowEvent::Destroyed => self.fail(event_loop, anyhow!(DESTROYED)),
            WindowEvent::KeyboardInput { event, .. } => self.key(event_loop, &event),
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
        event_loop.set_control_flow(ControlFlow::Wait);
    }
}
