//! Invalidates small isolated regions of disparity (Hirschmüller, PAMI 2008, section 2.6: peak filtering).

use crate::frame::INVALID;
use crate::matching::params::Speckle;

/// Invalidates every region of fewer than `speckle.size` pixels. Two valid neighbours (left, right, up or
/// down) belong to one region if their values differ by at most `speckle.range_16`.
pub fn apply(width: usize, height: usize, values: &mut [i16], speckle: Speckle) {
    let mut seen = vec![false; values.len()];
    let mut region = Vec::new();
    for start in 0..values.len() {
        if seen[start] || values[start] == INVALID {
            continue;
        }
        // Grow the region; the list of its pixels is also the queue of pixels to visit.
        region.clear();
        region.push(start);
        seen[start] = true;
        let mut looked = 0;
        while let Some(&i) = region.get(looked) {
            looked += 1;
            let (x, y) = (i % width, i / width);
            let neighbours = [
                (x > 0).then(|| i - 1),
                (x + 1 < width).then(|| i + 1),
                (y > 0).then(|| i - width),
                (y + 1 < height).then(|| i + width),
            ];
            for neighbour in neighbours.into_iter().flatten() {
                let alike = values[neighbour] != INVALID
                    && values[neighbour].abs_diff(values[i]) <= speckle.range_16;
                if alike && !seen[neighbour] {
                    seen[neighbour] = true;
                    region.push(neighbour);
                }
            }
        }
        if region.len() < speckle.size as usize {
            // These pixels stay marked as seen, so no later region includes them.
            region.iter().for_each(|&i| values[i] = INVALID);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const X: i16 = INVALID;

    #[test]
    fn regions_by_hand() {
        // Four pixels with neighbours that differ by at most 2 (10, 12, 14, 13), a pair of 30, a lone 50, and
        // a 17 beyond the range.
        let values = [
            10, 12, X, 30, //
            X, 14, 17, 30, //
            50, 13, X, X,
        ];
        let filtered = |size, range_16| {
            let mut values = values;
            apply(4, 3, &mut values, Speckle { size, range_16 });
            values
        };
        assert_eq!(filtered(1, 2), values);
        assert_eq!(filtered(2, 2), [10, 12, X, 30, X, 14, X, 30, X, 13, X, X]);
        assert_eq!(filtered(3, 2), [10, 12, X, X, X, 14, X, X, X, 13, X, X]);
        assert_eq!(filtered(4, 2), filtered(3, 2));
        assert_eq!(filtered(5, 2), [X; 12]);
        // A range of 3 lets 17 in.
        assert_eq!(filtered(5, 3), [10, 12, X, X, X, 14, 17, X, X, 13, X, X]);
        // A range of 0 leaves the pair alone.
        assert_eq!(filtered(2, 0), [X, X, X, 30, X, X, X, 30, X, X, X, X]);
    }

    #[test]
    fn the_ends_of_the_range_of_values_do_not_wrap() {
        let mut values = [i16::MAX, i16::MIN + 1, i16::MIN + 1];
        apply(3, 1, &mut values, Speckle { size: 2, range_16: u16::MAX - 2 });
        assert_eq!(values, [INVALID, i16::MIN + 1, i16::MIN + 1]);
        let mut values = [i16::MAX, i16::MIN + 1, i16::MIN + 1];
        apply(3, 1, &mut values, Speckle { size: 3, range_16: u16::MAX - 1 });
        assert_eq!(values, [i16::MAX, i16::MIN + 1, i16::MIN + 1]);
    }
}
