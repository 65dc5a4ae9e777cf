//! Moving through a recording: requests of viewers, which the source carries out between two pairs.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use stereod_core::thread::locked;

/// Slowest and fastest speed of a paced recording.
pub const SPEEDS: [f64; 2] = [0.25, 4.0];

/// Request to move in a recording. Times count from its first image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Move {
    /// To the first pair at this time or later.
    To(Duration),
    /// To the next pair.
    Forwards,
    /// To the pair before the one shown.
    Backwards,
    /// Match the shown pair again, because settings have changed.
    Again,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Playing {
    /// Begin and end of the marked part.
    pub marks: [Option<Duration>; 2],
    /// True to start over at the end of the part, or of the recording.
    pub repeats: bool,
    /// Speed relative to that of the recording, if it is paced.
    pub speed: f64,
    /// True while the recording waits at its end.
    pub is_at_end: bool,
    /// True once no viewer is left that could move it.
    pub is_unattended: bool,
}

impl Default for Playing {
    fn default() -> Self {
        let marks = [None; 2];
        Self { marks, repeats: false, speed: 1.0, is_at_end: false, is_unattended: false }
    }
}

/// Requests and state that viewers and the source's thread share. Clones are the same.
#[derive(Clone, Debug, Default)]
pub struct Playback(Arc<Mutex<(Option<Move>, Playing)>>);

impl Playback {
    /// Requests a move. A place takes the place of an earlier request that was not begun; matching
    /// again does not.
    pub fn ask(&self, wanted: Move) {
        let request = &mut locked(&self.0).0;
        if wanted != Move::Again || request.is_none() {
            *request = Some(wanted);
        }
    }

    /// Takes the latest request.
    pub fn take(&self) -> Option<Move> {
        locked(&self.0).0.take()
    }

    /// Reports whether there is a request.
    pub fn is_asked(&self) -> bool {
        locked(&self.0).0.is_some()
    }

    /// Returns how the recording is played.
    pub fn playing(&self) -> Playing {
        locked(&self.0).1
    }

    pub fn change(&self, change: impl FnOnce(&mut Playing)) {
        change(&mut locked(&self.0).1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_latest_place_wins_and_matching_again_waits_for_none() {
        let playback = Playback::default();
        playback.ask(Move::Forwards);
        playback.ask(Move::Again);
        assert_eq!(playback.clone().take(), Some(Move::Forwards));
        playback.ask(Move::Again);
        playback.ask(Move::To(Duration::ZERO));
        assert!(playback.is_asked());
        assert_eq!(playback.take(), Some(Move::To(Duration::ZERO)));
        assert_eq!(playback.take(), None);
    }
}
