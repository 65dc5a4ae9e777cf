//! A map that is kept to compare others with, and the settings of each map.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Instant;

use crate::viewer::Knob;
use stereod_core::frame::Matched;

/// The kept map, and the place of the line between it and the present one.
pub(super) struct Comparison {
    pub(super) frame: Arc<Matched>,
    pub(super) knobs: Vec<Knob>,
    /// Shares of pixels with a disparity: of the kept map and of the present one.
    pub(super) known: [f64; 2],
    /// Share of the width of a pane left of the line.
    pub(super) share: f32,
}

/// Settings with which pairs were matched, each with the time of its first pair.
pub(super) struct InEffect(VecDeque<(Instant, Vec<Knob>)>);

impl InEffect {
    /// Settings at the start.
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
                hint: "",
                kind: KnobKind::Switch,
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
