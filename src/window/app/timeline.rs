//! Moving through a recording: keys, and the mouse on the timeline.

use std::time::Duration;

use egui::{Rect, pos2};

use super::super::timeline::Timeline;
use super::{App, Held};
use crate::keys::Action;
use stereod_io::playback::{Move, SPEEDS};

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
            Action::MarkBegin => self.mark(0, position),
            // The part ends behind the pair that is shown.
            Action::MarkEnd => self.mark(1, position + span.period / 2),
            Action::Repeat => playback.change(|playing| playing.repeats = !playing.repeats),
            Action::Slower | Action::Faster if !span.is_paced => {
                self.notify(
                    Err("pairs come as fast as they are matched: there is no speed".into()),
                );
            }
            Action::Slower | Action::Faster => playback.change(|playing| {
                let factor = if travel == Action::Slower { 0.5 } else { 2.0 };
                playing.speed = (playing.speed * factor).clamp(SPEEDS[0], SPEEDS[1]);
            }),
            _ => {}
        }
    }

    /// Sets a mark, or removes it where it is already. A mark behind the other one removes that.
    fn mark(&mut self, which: usize, time: Duration) {
        let mut marks = [None; 2];
        self.control.playback.change(|playing| {
            let is_there = playing.marks[which] == Some(time);
            playing.marks[which] = (!is_there).then_some(time);
            if let [Some(begin), Some(end)] = playing.marks
                && end <= begin
            {
                playing.marks[1 - which] = None;
            }
            marks = playing.marks;
        });
        let text = match marks {
            [None, None] => "no part is marked".to_owned(),
            [begin, end] => {
                let begin = begin.unwrap_or_default();
                let part = |end: Duration| {
                    format!(" --duration {:.3}", end.saturating_sub(begin).as_secs_f64())
                };
                let duration = end.map(part).unwrap_or_default();
                format!("marked: --start {:.3}{duration}", begin.as_secs_f64())
            }
        };
        self.notify(Ok(text));
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
