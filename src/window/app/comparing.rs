//! Comparison of the map on the screen with an earlier one of other settings.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Instant;

use super::{App, size};
use crate::viewer::Knob;
use crate::window::pane::Pane;
use crate::window::wipe::{self, NAMES, REACH, Side, Wipe};
use stereod_core::frame::Matched;

impl App {
    /// Keeps the map on the screen to compare later ones with, or ends the comparison.
    pub(super) fn toggle_comparison(&mut self) {
        let Some(screen) = &mut self.shell.screen else { return };
        if let Some(ended) = self.comparison.take() {
            // Freeing textures cannot fail.
            let _ = screen.keep(None);
            if ended.has_paused {
                self.control.pause.set(false);
            }
            return;
        }
        let Some(frame) = &self.frame else {
            return self.notify(Err("there is no image yet".into()));
        };
        if let Err(error) = screen.keep(Some(frame)) {
            return self.notify(Err(format!("no comparison: {error:#}")));
        }
        let knobs = self.in_effect.at(frame.submitted).to_vec();
        let known = [wipe::known(&frame.disparity); 2];
        let frame = frame.clone();
        // B is to be of the same pair.
        let has_paused = self.shell.options.holds_pair && !self.control.pause.is_set();
        if has_paused {
            self.pause();
        }
        self.comparison = Some(Comparison { frame, knobs, known, share: 0.5, has_paused });
        self.overlay = true;
        if self.wiped_pane().is_none() {
            self.notify(Ok("the map is kept as A; l shows it".into()));
        }
    }

    /// Updates the comparison for a new frame. One of another size ends it.
    pub(super) fn check_comparison(&mut self) {
        let (Some(comparison), Some(frame)) = (&mut self.comparison, &self.frame) else { return };
        if size(&comparison.frame) == size(frame) {
            comparison.known[1] = wipe::known(&frame.disparity);
        } else {
            self.toggle_comparison();
            self.notify(Err("the images have another size: the comparison has ended".into()));
        }
    }

    /// Returns the pane with both maps, and the column at which the present one begins.
    fn wiped_pane(&self) -> Option<(Pane, u32)> {
        let share = self.comparison.as_ref()?.share;
        let pane = self.panes().into_iter().find(|pane| wipe::is_matched(pane.content))?;
        Some((pane, pane.column_at(share)))
    }

    pub(super) fn wipe(&mut self) -> Option<Wipe> {
        let (pane, line) = self.wiped_pane()?;
        let (comparison, frame) = (self.comparison.as_ref()?, self.frame.as_ref()?);
        let present = self.in_effect.at(frame.submitted);
        let [kept, present] = wipe::differences(&comparison.knobs, present);
        let side =
            |frame: &Matched, known, settings| Side { pair: frame.pair.sequence, known, settings };
        let [known, now] = comparison.known;
        let sides = [side(&comparison.frame, known, kept), side(frame, now, present)];
        Some(Wipe { pane, line, sides })
    }

    /// Returns the frame that a column of a pane shows, and its name if two are compared.
    pub(super) fn side_at<'a>(
        &'a self,
        under: &Pane,
        x: f64,
        present: &'a Arc<Matched>,
    ) -> (&'a Arc<Matched>, Option<&'static str>) {
        let Some(comparison) = self.comparison.as_ref().filter(|_| wipe::is_matched(under.content))
        else {
            return (present, None);
        };
        match x < f64::from(under.column_at(comparison.share)) {
            true => (&comparison.frame, Some(NAMES[0])),
            false => (present, Some(NAMES[1])),
        }
    }

    pub(super) fn is_over_wipe(&self) -> bool {
        let (Some((pane, line)), Some((x, y))) = (self.wiped_pane(), self.cursor) else {
            return false;
        };
        let scale = self.shell.screen.as_ref().map_or(1.0, |screen| screen.window.scale_factor());
        let (top, bottom) = (f64::from(pane.y), f64::from(pane.y + pane.height));
        let reach = f64::from(REACH) * scale;
        self.overlay && (top..bottom).contains(&y) && (x - f64::from(line)).abs() <= reach
    }

    /// Moves the line to a column of the target.
    pub(super) fn move_wipe(&mut self, x: f64) {
        let Some((pane, _)) = self.wiped_pane() else { return };
        if let Some(comparison) = &mut self.comparison {
            let share = (x - f64::from(pane.x)) / f64::from(pane.width);
            comparison.share = share.clamp(0.0, 1.0) as f32;
        }
    }
}

/// The kept map, and the place of the line between it and the present one.
pub(super) struct Comparison {
    pub(super) frame: Arc<Matched>,
    pub(super) knobs: Vec<Knob>,
    /// Shares of pixels with a disparity: of the kept map and of the present one.
    pub(super) known: [f64; 2],
    /// Share of the width of a pane left of the line.
    pub(super) share: f32,
    /// Set if the comparison has paused the source, which then goes on after it.
    has_paused: bool,
}

/// Settings with which pairs were matched, each with the time of its first pair.
pub(super) struct InEffect(VecDeque<(Instant, Vec<Knob>)>);

impl InEffect {
    pub(super) fn new(knobs: &[Knob]) -> Self {
        Self(VecDeque::from([(Instant::now(), knobs.to_vec())]))
    }

    /// Adds settings with which pairs are matched since this time.
    pub(super) fn change(&mut self, since: Instant, knobs: &[Knob]) {
        match self.0.back_mut() {
            Some((begin, last)) if *begin >= since => *last = knobs.to_vec(),
            _ => self.0.push_back((since, knobs.to_vec())),
        }
    }

    /// Returns the settings of a pair that was submitted at this time, and forgets earlier ones.
    pub(super) fn at(&mut self, submitted: Instant) -> &[Knob] {
        while self.0.get(1).is_some_and(|(since, _)| *since <= submitted) {
            self.0.pop_front();
        }
        self.0.front().map_or(&[], |(_, knobs)| knobs)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::viewer::KnobKind;

    #[test]
    fn a_frame_belongs_to_the_settings_of_its_submission() {
        let knobs = |value: &str| {
            vec![Knob {
                name: ("matching", "p1"),
                group: "",
                label: "",
                is_rare: false,
                flag: None,
                hint: "",
                kind: KnobKind::Switch,
                is_open: false,
                value: value.into(),
                means: None,
                locked: None,
            }]
        };
        let mut in_effect = InEffect::new(&knobs("1"));
        let start = Instant::now();
        let at = |ms| start + Duration::from_millis(ms);
        in_effect.change(at(10), &knobs("2"));
        // Colours change without another engine.
        in_effect.change(at(10), &knobs("3"));
        in_effect.change(at(20), &knobs("4"));
        let mut value = |submitted| in_effect.at(submitted)[0].value.clone();
        // The answer to a change may come before the last frames of the settings before.
        assert_eq!(value(start.checked_sub(Duration::from_secs(1)).unwrap()), "1");
        assert_eq!(value(at(9)), "1");
        assert_eq!(value(at(10)), "3");
        assert_eq!(value(at(25)), "4");
    }
}
