//! The state that a stream carries from one pair to the next.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::frame::Image;
use crate::matching::continuity::Continuity;
use crate::matching::odometry::Odometer;
use crate::matching::scene::Thumbnail;

/// State of a filter from map to map. Each filter defines its numbers; all engines keep the same ones.
pub type State = Vec<i32>;

/// States of all filters, as one engine hands them over to another.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct History {
    /// Capture time and scene of the newest pair.
    pub continuity: Continuity,
    /// Width and height of the maps in pixels; states of another size are invalid.
    pub size: (usize, usize),
    /// States by the names of their filters.
    pub states: BTreeMap<&'static str, State>,
    /// The motion of the rig, if it is followed.
    pub odometer: Option<Box<Odometer>>,
}

impl History {
    /// Advances to the next pair; clears the states if the stream does not continue with it.
    pub fn advance(&mut self, left: &Image, timestamp: Duration) {
        let size = (left.width(), left.height());
        if !self.continuity.goes_on(timestamp, Thumbnail::of(left)) || self.size != size {
            self.states.clear();
        }
        self.size = size;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn picture(width: usize, height: usize) -> Image {
        Image::from_fn(width, height, |x, y| (x * 31 + y * 17) as u8)
    }

    #[test]
    fn states_of_another_size_or_time_are_forgotten() {
        let mut history = History::default();
        let seconds = Duration::from_secs;
        let remember = |history: &mut History| {
            history.states.insert("a filter", vec![1, 2]);
        };
        history.advance(&picture(2, 1), seconds(1));
        remember(&mut history);
        history.advance(&picture(2, 1), seconds(2));
        assert_eq!(history.states["a filter"], [1, 2]);
        history.advance(&picture(1, 2), seconds(3));
        assert!(history.states.is_empty());
        remember(&mut history);
        history.advance(&picture(1, 2), seconds(9));
        assert!(history.states.is_empty());
    }
}
