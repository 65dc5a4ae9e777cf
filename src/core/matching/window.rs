//! Averaging of the cost over a window at ambiguous pixels.

/// Averages the cost over a square window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// Side of the window in pixels: 3 or 5.
    pub side: u8,
    /// Whether well-textured pixels are matched alone, because windows blur edges.
    pub by_texture: bool,
}

/// Denominator of the parts of a supported cost ([`Blend`]).
///
/// [`Blend`]: crate::matching::support::Blend
pub const UNIT: u32 = 512;

/// Largest sum of the cost of a pixel and the strength of a prior, so that all parts together fit 16 bits.
pub const SUPPORTED_MAX: u32 = 127;

impl Window {
    /// Pixels of the window.
    pub fn area(self) -> u32 {
        u32::from(self.side).pow(2)
    }

    /// Returns the weight of each pixel of the window, in 1/512, for a texture with this range of grey
    /// levels. The weight is full if the range is below the noise threshold, and falls to 0 at three times
    /// the threshold.
    pub fn weight(self, range: u8, threshold: u32) -> u16 {
        let most = UNIT / self.area();
        if !self.by_texture {
            return most as u16;
        }
        let weak = (3 * threshold).saturating_sub(u32::from(range)).min(2 * threshold);
        ((most * weak + threshold) / (2 * threshold)) as u16
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_counts_where_texture_is_weak() {
        let window = Window { side: 5, by_texture: true };
        // 512 / 25 = 20 below 10; (20 * 10 + 10) / 20 = 10 at 20; 1 at 28 and 29: (20 * 1 + 10) / 20.
        let weights = [0u8, 10, 20, 28, 29, 30, 255].map(|range| window.weight(range, 10));
        assert_eq!(weights, [20, 20, 10, 2, 1, 0, 0]);
        assert_eq!(Window { side: 3, by_texture: false }.weight(255, 4), 56);
    }
}
