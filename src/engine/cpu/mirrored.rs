//! The rows of the right eye as the candidates of a pixel look at them: mirrored, so that increasing disparities of
//! one pixel lie behind each other, and cut into a stripe for each vector of a pixel, in which the
//! candidates of a vector lie behind each other (`stripes.rs`).
//!
//! Candidate k of column x looks at number i = width - 1 - x + k of the mirrored row, which of n stripes is number i / n of
//! stripe i mod n.

use super::geometry::Geometry;

/// Where the vectors of a pixel begin in a mirrored row.
#[derive(Clone, Copy)]
pub struct Starts {
    /// Of the first vector: the stripe, and the number in it.
    stripe: usize,
    number: usize,
    stripe_len: usize,
    chunks: usize,
}

impl Starts {
    /// Those of column `x` of a row of `width` pixels, whose stripes have `stripe_len` numbers; `chunks` vectors a pixel.
    #[inline(always)]
    pub fn of(width: usize, stripe_len: usize, x: usize, chunks: usize) -> Self {
        // 32 bits are divided faster, and no picture is that wide.
        let (first, count) = ((width - 1 - x) as u32, chunks as u32);
        let (stripe, number) = ((first % count) as usize, (first / count) as usize);
        Self { stripe, number, stripe_len, chunks }
    }

    /// Number in the row where vector `chunk` begins.
    #[inline(always)]
    pub fn at(self, chunk: usize) -> usize {
        let stripe = self.stripe + chunk;
        if stripe < self.chunks {
            stripe * self.stripe_len + self.number
        } else {
            (stripe - self.chunks) * self.stripe_len + self.number + 1
        }
    }
}

/// Writes a row of the right eye mirrored and in stripes; columns that lie outside are those at its ends.
/// `plain`: memory for [`Geometry::mirrored_stride`] numbers.
#[inline(always)]
pub fn write<T: Copy>(geometry: &Geometry, row: &[T], plain: &mut [T], to: &mut [T]) {
    let (chunks, stripe_len) = (geometry.chunks, geometry.stripe_len());
    if chunks == 1 {
        return mirror(row, geometry.min, to);
    }
    let plain = &mut plain[..chunks * stripe_len];
    mirror(row, geometry.min, plain);
    for (number, stripe) in to[..chunks * stripe_len].chunks_exact_mut(stripe_len).enumerate() {
        // Known numbers of stripes become vectors.
        match chunks {
            2 => every::<2, T>(plain, number, stripe),
            4 => every::<4, T>(plain, number, stripe),
            8 => every::<8, T>(plain, number, stripe),
            _ => stripe.iter_mut().enumerate().for_each(|(i, to)| *to = plain[i * chunks + number]),
        }
    }
}

/// Every `N`-th number from `first` on.
#[inline(always)]
fn every<const N: usize, T: Copy>(from: &[T], first: usize, to: &mut [T]) {
    let (groups, _) = from.as_chunks::<N>();
    to.iter_mut().zip(groups).for_each(|(to, group)| *to = group[first]);
}

/// Writes the row so that number `width - 1 - x + k` is what candidate k of column x looks at: column x - min - k,
/// clamped.
#[inline(always)]
fn mirror<T: Copy>(row: &[T], min: i32, mirrored: &mut [T]) {
    let width = row.len() as i64;
    // Number i shows column width - 1 - min - i.
    let first = width - 1 - i64::from(min);
    let len = mirrored.len() as i64;
    // Columns right of the picture, inside, and left of it.
    let right_end = (first - (width - 1)).clamp(0, len);
    let inside_end = (first + 1).clamp(right_end, len);
    mirrored[..right_end as usize].fill(row[row.len() - 1]);
    let inside = &mut mirrored[right_end as usize..inside_end as usize];
    let last = (first - right_end).max(0) as usize; // Column of the first number inside.
    if !inside.is_empty() {
        let from = &row[last + 1 - inside.len()..=last];
        inside.iter_mut().zip(from.iter().rev()).for_each(|(to, &pixel)| *to = pixel);
    }
    mirrored[inside_end as usize..].fill(row[0]);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::cpu::stripes::Stripes;
    use crate::frame::DisparityRange;
    use crate::matching::{Cost, Params};

    #[test]
    fn a_mirrored_row_shows_the_clamped_match_columns() {
        for width in 1..9usize {
            let row: Vec<u8> = (0..width as u8).map(|x| 10 + x).collect();
            for (min, count) in (-12..12i32).flat_map(|min| [(min, 13), (min, 40), (min, 70)]) {
                let cost = Cost::Ad { truncation: 20, window: 1 };
                let params = Params::bare(DisparityRange { min, count }, cost, (5, 50));
                let geometry = Geometry::new(&params, (width, 1), 16, false);
                let len = geometry.mirrored_stride();
                let (mut plain, mut mirrored) = (vec![0; len], vec![0; len]);
                write(&geometry, &row, &mut plain, &mut mirrored);
                let candidates: Vec<usize> = Stripes::of(&geometry).candidates().collect();
                for x in 0..width {
                    let starts = Starts::of(width, geometry.stripe_len(), x, geometry.chunks);
                    for (place, &k) in candidates.iter().enumerate() {
                        let column = x as i64 - i64::from(min) - k as i64;
                        let expected = row[column.clamp(0, width as i64 - 1) as usize];
                        let got = mirrored[starts.at(place / 16) + place % 16];
                        assert_eq!(got, expected, "{width} {min} {count} {x} {k}");
                    }
                }
            }
        }
    }
}
