//! Random maps to write.

use std::sync::Arc;
use std::time::Duration;

use stereod::{DisparityMap, DisparityRange, INVALID, SUBPIXEL};
use stereod_core::frame::{Image, Matched, StereoPair};

/// Pseudo-random numbers.
pub struct Random(pub u64);

impl Random {
    /// A number below `limit`.
    pub fn below(&mut self, limit: u64) -> u64 {
        // xorshift64 (Marsaglia, 2003).
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }
}

/// Values over the whole range in sixteenths, a tenth of them unknown.
pub fn random_values(random: &mut Random, count: usize, range: DisparityRange) -> Vec<i16> {
    let first = range.min * SUBPIXEL;
    let span = (range.max() * SUBPIXEL - first) as u64 + 1;
    (0..count)
        .map(|_| match random.below(10) {
            0 => INVALID,
            _ => (first + random.below(span) as i32) as i16,
        })
        .collect()
}

/// A map with its pair, as an engine returns it.
pub fn matched(width: usize, values: Vec<i16>, sequence: u64, timestamp: Duration) -> Arc<Matched> {
    let height = values.len() / width;
    let eye = || Image::from_fn(width, height, |_, _| 0);
    let pair = StereoPair { sequence, timestamp, ..StereoPair::of_stills(eye(), eye()) };
    let range = DisparityRange { min: 0, count: 64 };
    let disparity = DisparityMap::of_values(width, range, values);
    Arc::new(Matched::new(pair, disparity))
}
