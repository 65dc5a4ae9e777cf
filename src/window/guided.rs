//! Window of a guided calibration: both views, the detected boards and the poses still missing.
//!
//! It shares the display, the device and the painter with the window of a run. Everything in it is
//! painted with egui.

use std::ops::ControlFlow;
use std::sync::{Arc, Mutex};

use anyhow::Result;
use winit::event::{KeyEvent, WindowEvent};
use winit::keyboard::{Key, NamedKey};

use super::event_loop::{Content, Shell};
use super::guided_paint::{GuidedView, Textures, paint};
use super::orbit::Orbit;
use super::remote::{Remote, Wake};
use super::scene::{ALL_DEPTHS, Limits, Scene};
use super::screen::Drawn;
use super::view::View;
use stereod_core::control::Switch;
use stereod_core::thread::locked;
use stereod_io::sink::colour::ColourMap;

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

/// Content of the window.
pub(super) struct App {
    shell: Shell,
    keys: GuidedKeys,
    views: Views,
    view: Option<GuidedView>,
    textures: Textures,
}

impl App {
    pub(super) fn new(shell: Shell, keys: GuidedKeys, views: Views) -> Self {
        Self { shell, keys, views, view: None, textures: Textures::default() }
    }

    fn key(&self, event: &KeyEvent) -> ControlFlow<()> {
        if !event.state.is_pressed() || event.repeat {
            return ControlFlow::Continue(());
        }
        match &event.logical_key {
            Key::Named(NamedKey::Space) => self.keys.take.set(true),
            Key::Named(NamedKey::Enter) => self.keys.solve.set(true),
            Key::Named(NamedKey::Escape) => return ControlFlow::Break(()),
            Key::Character(character) => match character.to_lowercase().as_str() {
                " " => self.keys.take.set(true),
                "q" => return ControlFlow::Break(()),
                _ => {}
            },
            _ => {}
        }
        ControlFlow::Continue(())
    }
}

impl Content for App {
    fn shell(&mut self) -> &mut Shell {
        &mut self.shell
    }

    fn redraw(&mut self) -> Result<()> {
        let newest = locked(&self.views).take();
        let fresh = newest.is_some();
        self.view = newest.or(self.view.take());
        let Some(screen) = &mut self.shell.screen else { return Ok(()) };
        // The renderer holds no frame, so it draws nothing beneath the painted content.
        let limits = Limits { low: 0, high: 1 };
        let scene = Scene {
            view: View::Left,
            colour_map: ColourMap::Grey,
            limits,
            taken: 0,
            orbit: Orbit::default(),
            depths: ALL_DEPTHS,
            wipe: None,
        };
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

    fn event(&mut self, event: &WindowEvent) -> ControlFlow<()> {
        match event {
            WindowEvent::KeyboardInput { event, .. } => self.key(event),
            _ => ControlFlow::Continue(()),
        }
    }
}
