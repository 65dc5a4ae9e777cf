//! The panel with the knobs, and its requests.

use std::time::Duration;

use anyhow::Result;
use winit::keyboard::{Key, NamedKey};

use super::super::overlay::OverlayContent;
use super::super::panel::Clicks;
use super::super::scene::Scene;
use super::super::screen::Drawn;
use super::App;
use crate::viewer::{Ask, Tuned};
use stereod_io::sink::colour::ColourScale;
use stereod_io::sink::colouring::Colouring;

impl App {
    pub(super) fn toggle_panel(&mut self) {
        if self.panel.is_empty() {
            return self.notify(Err("there is nothing to tune here".into()));
        }
        match self.panel.open {
            true => self.close_panel(),
            false => {
                self.panel.open = true;
                self.panel.cameras.watch(true);
            }
        }
    }

    fn close_panel(&mut self) {
        self.panel.open = false;
        self.panel.cameras.watch(false);
        if let Some(screen) = &mut self.shell.screen {
            screen.leave_panel();
        }
    }

    /// Reports whether a key belongs to the panel or the bar alone, because a field, a knob or a button has
    /// the focus. Escape closes the panel.
    pub(super) fn panel_takes(&mut self, key: &Key) -> bool {
        let Some(screen) = &self.shell.screen else { return false };
        let (writes, focused) = screen.panel_focus();
        let space = Key::Character(" ".into());
        match key {
            Key::Named(NamedKey::Escape) if self.question.is_open => {
                self.question.is_open = false;
                self.shell.request_redraw();
                true
            }
            _ if writes => true,
            Key::Named(NamedKey::Escape) if self.shows_panel() => {
                self.close_panel();
                self.shell.request_redraw();
                true
            }
            Key::Named(
                NamedKey::Space
                | NamedKey::ArrowLeft
                | NamedKey::ArrowRight
                | NamedKey::ArrowUp
                | NamedKey::ArrowDown
                | NamedKey::Home
                | NamedKey::End,
            ) => focused,
            key => focused && *key == space,
        }
    }

    /// Draws with the overlay and the panel, and carries out their clicks. Also returns the time until they
    /// need to be drawn again.
    pub(super) fn draw(
        &mut self,
        scene: &Scene,
        content: Option<&OverlayContent>,
    ) -> Result<(Drawn, Option<Duration>)> {
        let shows_panel = self.shows_panel();
        let is_asking = self.question.is_open;
        let Some(screen) = &mut self.shell.screen else { return Ok((Drawn::Hidden, None)) };
        let live = match self.ended || self.failure.is_some() {
            true => Err("the stream has ended: changes have no effect"),
            false if self.control.pause.is_set() => Ok(match self.shell.options.holds_pair {
                true => "paused: each change matches this pair again",
                false => "paused: each change shows the next pair",
            }),
            false => Ok(""),
        };
        let mut clicks = Clicks::default();
        let mut starts = false;
        let (panel, question) = (&mut self.panel, &mut self.question);
        let mut lay_out = |context: &egui::Context| {
            starts |= question.show(context);
            if !shows_panel {
                return context.content_rect().max.x;
            }
            let (done, edge) = panel.show(context, live);
            clicks = clicks.or(done);
            edge
        };
        let is_beside = shows_panel || is_asking;
        let (drawn, beside) =
            screen.draw(scene, content, if is_beside { Some(&mut lay_out) } else { None })?;
        if starts {
            self.start_recording();
        }
        self.taken = beside.taken;
        if let Some(action) = beside.clicked {
            self.act(action);
        }
        if clicks.turned {
            self.ask_for_values();
        }
        if clicks.reset {
            let ask = self.panel.reset();
            self.ask(ask);
        }
        if clicks.write {
            self.write_settings();
        }
        if clicks.close {
            self.close_panel();
        }
        let done = clicks != Clicks::default() || beside.clicked.is_some() || starts;
        Ok((drawn, if done { Some(Duration::ZERO) } else { beside.again_in }))
    }

    /// Selects the next colour map, for the window and all other outputs in colour.
    pub(super) fn next_colours(&mut self) {
        self.colouring.map = self.colouring.map.next();
        if self.panel.turn(("colour", "map"), self.colouring.map.name()) {
            self.ask_for_values();
        }
    }

    /// Writes the values in effect to a configuration file.
    pub(super) fn write_settings(&mut self) {
        if self.panel.has_no_knobs() {
            return self.notify(Err("there are no settings to write here".into()));
        }
        self.ask(Ask::Write);
    }

    fn ask_for_values(&mut self) {
        let ask = self.panel.ask();
        self.ask(ask);
    }

    fn ask(&self, ask: Ask) {
        if let Some(tuning) = &self.shell.options.tuning {
            (tuning.ask)(ask);
        }
    }

    pub(super) fn tuned(&mut self, tuned: Tuned) {
        let Colouring { map, span } = tuned.colouring;
        if self.colouring.span != span {
            let newest = self.frame.as_ref().map(|frame| frame.disparity.range());
            let range = newest.unwrap_or(self.shell.options.disparities);
            self.scale = ColourScale::new(span, range);
            self.colouring.span = span;
        }
        self.in_effect.change(tuned.since, &tuned.knobs);
        self.panel.tuned(tuned);
        if !self.panel.is_own(("colour", "map")) {
            self.colouring.map = map;
        }
    }
}
