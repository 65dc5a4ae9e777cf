//! Distributes frames to parallel encoders and restores their order.

use std::collections::VecDeque;

/// Assignment of frames to encoders. Encoded frames are returned in the order of assignment; each
/// encoder keeps the order of its own frames.
#[derive(Debug)]
pub(super) struct Turns<T> {
    encoders: Vec<Encoder<T>>,
    /// Encoders of the frames that were not returned yet, in order.
    order: VecDeque<usize>,
}

#[derive(Debug)]
struct Encoder<T> {
    /// Number of frames that it has not encoded yet.
    busy: usize,
    /// Encoded frames that wait for their turn.
    encoded: VecDeque<T>,
}

impl<T> Turns<T> {
    /// Creates the assignment for this many encoders.
    pub(super) fn new(encoders: usize) -> Self {
        let encoder = || Encoder { busy: 0, encoded: VecDeque::new() };
        Self { encoders: (0..encoders).map(|_| encoder()).collect(), order: VecDeque::new() }
    }

    /// Returns the encoder of the next frame: the first one with the fewest frames. Only as many
    /// encoders work as are needed to keep up, and the others allocate no memory for frames.
    pub(super) fn give(&mut self) -> usize {
        let busy = |&encoder: &usize| self.encoders[encoder].busy;
        let chosen = (0..self.encoders.len()).min_by_key(busy).unwrap_or(0);
        self.encoders[chosen].busy += 1;
        self.order.push_back(chosen);
        chosen
    }

    /// Stores an encoder's output for the first of its frames.
    pub(super) fn take_back(&mut self, encoder: usize, encoded: T) {
        let encoder = &mut self.encoders[encoder];
        encoder.busy = encoder.busy.saturating_sub(1);
        encoder.encoded.push_back(encoded);
    }

    /// Returns the next encoded frame in order, if it is ready.
    pub(super) fn next(&mut self) -> Option<T> {
        let encoded = self.encoders[*self.order.front()?].encoded.pop_front()?;
        self.order.pop_front();
        Some(encoded)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn one_that_keeps_up_works_alone() {
        let mut turns = Turns::new(3);
        for frame in 0..5 {
            assert_eq!(turns.give(), 0);
            turns.take_back(0, frame);
            assert_eq!((turns.next(), turns.next()), (Some(frame), None));
        }
    }

    #[test]
    fn what_comes_early_waits_for_its_turn() {
        let mut turns = Turns::new(3);
        assert_eq!([(); 4].map(|()| turns.give()), [0, 1, 2, 0]);
        turns.take_back(2, 'c');
        turns.take_back(1, 'b');
        assert_eq!(turns.next(), None);
        // The one without work gets the next frame.
        assert_eq!(turns.give(), 1);
        turns.take_back(0, 'a');
        turns.take_back(1, 'e');
        let handed_on: String = std::iter::from_fn(|| turns.next()).collect();
        assert_eq!(handed_on, "abc");
        turns.take_back(0, 'd');
        let handed_on: String = std::iter::from_fn(|| turns.next()).collect();
        assert_eq!(handed_on, "de");
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn the_order_stays_whatever_is_quick(
            encoders in 1usize..6,
            steps in prop::collection::vec(0usize..6, 0..200),
        ) {
            let mut turns = Turns::new(encoders);
            let mut inside = vec![VecDeque::new(); encoders];
            let (mut given, mut handed_on) = (0, Vec::new());
            for step in steps {
                // A frame is given out, or the encoder of this number finishes one.
                match inside.get_mut(step).and_then(VecDeque::pop_front) {
                    Some(frame) => turns.take_back(step, frame),
                    None => {
                        inside[turns.give()].push_back(given);
                        given += 1;
                    }
                }
                handed_on.extend(turns.next());
            }
            for (encoder, frames) in inside.into_iter().enumerate() {
                frames.into_iter().for_each(|frame| turns.take_back(encoder, frame));
            }
            handed_on.extend(std::iter::from_fn(|| turns.next()));
            prop_assert_eq!(handed_on, (0..given).collect::<Vec<i32>>());
        }
    }
}
