//! Colours for disparity.

use crate::frame::{DisparityMap, INVALID};

/// How disparity becomes colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ColourMap {
    /// Google's turbo.
    Turbo,
    /// Matplotlib's viridis.
    Viridis,
    /// Black to white.
    Grey,
}

impl ColourMap {
    /// The 256 colours (red, green, blue), from the smallest disparity to the largest.
    pub fn table(self) -> [[u8; 3]; 256] {
        std::array::from_fn(|i| {
            let gradient = match self {
                ColourMap::Turbo => colorous::TURBO,
                ColourMap::Viridis => colorous::VIRIDIS,
                ColourMap::Grey => return [i as u8; 3],
            };
            gradient.eval_rational(i, 256).as_array()
        })
    }

    /// The next map, round and round.
    pub fn next(self) -> Self {
        match self {
            ColourMap::Turbo => ColourMap::Viridis,
            ColourMap::Viridis => ColourMap::Grey,
            ColourMap::Grey => ColourMap::Turbo,
        }
    }
}

/// Which disparities take the first and the last colour.
#[derive(Clone, Debug, PartialEq)]
pub enum ColourRange {
    /// Always these, in 1/16 px.
    Fixed(i16, i16),
    /// Slowly following the content; the present limits in 1/16 px.
    Adaptive(f32, f32),
}

impl ColourRange {
    /// Limits in 1/16 px: those of the first and the last colour.
    pub fn limits(&self) -> (i16, i16) {
        match *self {
            ColourRange::Fixed(low, high) => (low, high),
            ColourRange::Adaptive(low, high) => (low.round() as i16, high.round() as i16),
        }
    }

    /// Takes note of one map of the stream.
    pub fn update(&mut self, map: &DisparityMap) {
        if let ColourRange::Adaptive(low, high) = self {
            let valid = || map.values().iter().copied().filter(|&v| v != INVALID);
            if let (Some(least), Some(most)) = (valid().min(), valid().max()) {
                *low += 0.02 * (f32::from(least) - *low);
                *high += 0.02 * (f32::from(most) - *high);
            }
        }
    }
}
