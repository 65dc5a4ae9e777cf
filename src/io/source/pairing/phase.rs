//! Usual time difference of two views of one rate.
//!
//! Two cameras without a trigger have any phase. Near half a period, jitter makes the frame before and
//! the frame after the nearer one in turn. Frames are therefore compared with the usual difference of
//! the last pairs, so one and the same neighbour is taken until the other one is clearly nearer.

/// Number of pairs over which the usual difference is averaged.
const PAIRS: i64 = 16;

/// Usual difference of the right time minus the left one, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Phase {
    usual: i64,
    /// Mean distance of the differences from the usual one.
    spread: i64,
    pairs: i64,
}

impl Phase {
    pub(super) fn new(skew: i64, period: i64) -> Self {
        // Until the jitter is known, no other neighbour is taken.
        Self { usual: skew, spread: period / 16, pairs: 1 }
    }

    pub(super) fn distance(&self, skew: i64) -> i64 {
        skew.saturating_sub(self.usual)
    }

    /// Adds the difference of a pair. If the usual one exceeds half a period by more than the jitter, the
    /// other neighbour of each frame is nearer, and is taken from now on.
    pub(super) fn note(&mut self, skew: i64, period: i64) {
        let distance = self.distance(skew).clamp(-period, period);
        self.pairs = (self.pairs + 1).min(PAIRS);
        self.usual += distance / self.pairs;
        self.spread += (distance.abs() - self.spread) / PAIRS;
        let margin = self.spread.clamp(period / 64, period / 8);
        if self.usual.abs() > period / 2 + margin {
            self.usual -= period * self.usual.signum();
        }
    }
}
