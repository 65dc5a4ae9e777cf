//! What filters remember of a stream from one pair to the next.

use std::collections::BTreeMap;
use std::time::Duration;

/// Longest time between two pairs of a stream that goes on. After a longer one, the scene may be
/// another.
pub const GAP_MAX: Duration = Duration::from_secs(2);

/// Whether the pairs of a stream go on where the last one ended, by their capture times.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Continuity {
    newest: Option<Duration>,
}

impl Continuity {
    /// Takes note of the next pair's capture time; true where it goes on: not the first one, not back
    /// in time, as where a camera was plugged in again, and not after more than [`GAP_MAX`].
    pub fn goes_on(&mut self, timestamp: Duration) -> bool {
        let before = self.newest.replace(timestamp);
        let elapsed = before.and_then(|before| timestamp.checked_sub(before));
        elapsed.is_some_and(|elapsed| elapsed <= GAP_MAX)
    }
}

/// Numbers that a filter keeps from map to map. What they are is the filter's business, but all engines
/// keep the same.
pub type State = Vec<i32>;

/// The states of all filters that have one, as one engine hands them over to another.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct History {
    /// Where the stream is.
    pub continuity: Continuity,
    /// Width and height of the maps in pixels; states of maps of another size mean nothing.
    pub size: (usize, usize),
    /// States by the names of their filters.
    pub states: BTreeMap<&'static str, State>,
}

impl History {
    /// The history for the next pair of such a size and time, without what does not go on with it.
    pub fn advance(&mut self, size: (usize, usize), timestamp: Duration) {
        if !self.continuity.goes_on(timestamp) || self.size != size {
            self.states.clear();
        }
        self.size = size;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_goes_on_unless_it_jumps() {
        let mut continuity = Continuity::default();
        let seconds = Duration::from_secs_f64;
        let times = [5.0, 5.04, 5.04, 7.04, 9.05, 9.1, 0.0, 0.04];
        let expected = [false, true, true, true, false, true, false, true];
        assert_eq!(times.map(|time| continuity.goes_on(seconds(time))), expected);
    }

    #[test]
    fn states_of_another_size_or_time_are_forgotten() {
        let mut history = History::default();
        let seconds = Duration::from_secs;
        let remember = |history: &mut History| {
            history.states.insert("a filter", vec![1, 2]);
        };
        history.advance((2, 1), seconds(1));
        remember(&mut history);
        history.advance((2, 1), seconds(2));
        assert_eq!(history.states["a filter"], [1, 2]);
        history.advance((1, 2), seconds(3));
        assert!(history.states.is_empty());
        remember(&mut history);
        history.advance((1, 2), seconds(9));
        assert!(history.states.is_empty());
    }
}
