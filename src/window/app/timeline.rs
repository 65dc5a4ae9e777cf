//! Moving through a recording: keys, and the mouse on the timeline.

use std::time::Duration;

use egui::{Rect, pos2};

use super::super::timeline::Timeline;
use super::{App, Held};
use crate::keys::Action;
use stereod_io::playback::Move;

impl App {
    /// Returns the timeline as it is now; `None` if there is none, or no pair yet.
    pub(super) fn timeline(&self) -> Option<Timeline> {
        let span = self.shell.options.timeline.as_ref().ok()?;
        let pair = &self.frame.as_ref()?.pair;
        let playing = self.control.playback.playing();
        Some(Timeline {
            position: pair.timestamp.saturating_sub(span.begin),
            number: pair.sequence,
            length: span.length,
            marks: playing.marks,
            repeats: playing.repeats,
            speed: span.is_paced.then_some(playing.speed),
            is_at_end: playing.is_at_end,
        })
    }

    /// Moves through the recording. Says why if the source cannot be moved through.
    pub(super) fn travel(&mut self, travel: Action) {
        let span = match &self.shell.options.timeline {
            Ok(span) => *span,
            Err(why) => return self.notify(Err(why.clone())),
        };
        let Some(Timeline { position, .. }) = self.timeline() else { return };
        let playback = &self.control.playback;
        match travel {
            Action::Forwards | Action::Backwards => {
                self.pause();
                let forwards = travel == Action::Forwards;
                playback.ask(if forwards { Move::Forwards } else { Move::Backwards });
            }
            Action::Begin => playback.ask(Move::To(Duration::ZERO)),
            Action::End => playback.ask(Move::To(span.length.max(position))),
            Action::MarkBegin | Action::MarkEnd => {
                let text = span.mark(playback, travel == Action::MarkEnd, position);
                self.notify(Ok(text));
            }
            Action::Repeat => playback.change(|playing| playing.repeats = !playing.repeats),
            Action::Slower | Action::Faster => {
                let factor = if travel == Action::Slower { 0.5 } else { 2.0 };
                if let Err(why) = span.set_speed(playback, |speed| speed * factor) {
                    self.notify(Err(why));
                }
            }
            _ => {}
        }
    }

    /// Moves to the time below the mouse: at the press of its button in the bar, and while it is held.
    /// Returns true if the mouse is on the timeline.
    pub(super) fn drag_timeline(&mut self, is_pressed: bool) -> bool {
        if !self.overlay || !(is_pressed || self.held == Some(Held::Timeline)) {
            return false;
        }
        let time = self.time_below_mouse();
        if let Some(time) = time {
            self.control.playback.ask(Move::To(time));
        }
        time.is_some()
    }

    fn time_below_mouse(&self) -> Option<Duration> {
        let span = self.shell.options.timeline.as_ref().ok()?;
        let screen = self.shell.screen.as_ref()?;
        let scale = screen.window.scale_factor() as f32;
        let (width, height) = (self.scene().room(screen.size()).0, screen.size().1);
        let area =
            Rect::from_min_max(pos2(0.0, 0.0), pos2(width as f32 / scale, height as f32 / scale));
        let (x, y) = self.cursor?;
        span.time_at(area, (x as f32 / scale, y as f32 / scale), self.held == Some(Held::Timeline))
    }
}
