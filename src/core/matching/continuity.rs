//! Whether a pair continues the stream of the one before.

use std::time::Duration;

use crate::matching::scene::Thumbnail;

/// Longest time between two pairs of a stream that continues. After a longer gap, the scene may have changed.
pub const GAP_MAX: Duration = Duration::from_secs(2);

/// Tracks whether each pair of a stream continues the previous one, by capture time and scene.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Continuity {
    newest: Option<(Duration, Thumbnail)>,
}

impl Continuity {
    /// Records the next pair's capture time and rectified left image. Returns true if the stream continues:
    /// it is not the first pair, time has not gone back (as after a camera was plugged in again), at most
    /// [`GAP_MAX`] has passed, and the scene is the same (no cut of a film).
    pub fn goes_on(&mut self, timestamp: Duration, thumbnail: Thumbnail) -> bool {
        let Some((time, before)) = self.newest.replace((timestamp, thumbnail.clone())) else {
            return false;
        };
        let elapsed = timestamp.checked_sub(time);
        elapsed.is_some_and(|elapsed| elapsed <= GAP_MAX) && thumbnail.is_of_scene(&before)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::Image;

    fn picture(width: usize, height: usize) -> Image {
        Image::from_fn(width, height, |x, y| (x * 31 + y * 17) as u8)
    }

    #[test]
    fn a_stream_goes_on_unless_it_jumps() {
        let mut continuity = Continuity::default();
        let seconds = Duration::from_secs_f64;
        let times = [5.0, 5.04, 5.04, 7.04, 9.05, 9.1, 0.0, 0.04];
        let expected = [false, true, true, true, false, true, false, true];
        let left = Thumbnail::of(&picture(7, 5));
        assert_eq!(times.map(|time| continuity.goes_on(seconds(time), left.clone())), expected);
    }

    #[test]
    fn another_scene_begins_anew() {
        let mut continuity = Continuity::default();
        let (one, other) = (picture(40, 30), Image::from_fn(40, 30, |x, y| (y * 8 + 40 - x) as u8));
        let scenes = [&one, &one, &other, &other, &one];
        let goes_on = scenes.map(|left| continuity.goes_on(Duration::ZERO, Thumbnail::of(left)));
        assert_eq!(goes_on, [false, true, false, true, false]);
    }
}
