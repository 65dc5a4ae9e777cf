//! Median filter: removes isolated outliers.

use crate::frame::INVALID;

/// Returns the (lower) median over valid pixels around each valid pixel; invalid ones stay invalid.
pub fn apply(width: usize, height: usize, values: &[i16], radius: usize) -> Vec<i16> {
    let mut window = Vec::with_capacity((2 * radius + 1).pow(2));
    let filtered = (0..width * height).map(|i| {
        if values[i] == INVALID {
            return INVALID;
        }
        let (x, y) = (i % width, i / width);
        window.clear();
        for wy in y.saturating_sub(radius)..=(y + radius).min(height - 1) {
            for wx in x.saturating_sub(radius)..=(x + radius).min(width - 1) {
                window.push(values[wy * width + wx]);
            }
        }
        window.retain(|&v| v != INVALID);
        window.sort_unstable();
        window[(window.len() - 1) / 2]
    });
    filtered.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_looks_at_valid_pixels_only() {
        let values = [1, INVALID, 7, 3, 9, INVALID];
        let filtered = apply(3, 2, &values, 1);
        // (0, 0): 1 3 9 -> 3; (2, 0): 7 9 -> 7; (0, 1): 1 3 9 -> 3; (1, 1): 1 7 3 9 -> 3.
        assert_eq!(filtered, [3, INVALID, 7, 3, 3, INVALID]);
    }
}
