//! Rows of the right view in the order of a pixel's candidates: mirrored, so that increasing disparities of
//! one pixel are consecutive, and divided into one stripe per vector of a pixel, so that the candidates of a
//! vector are consecutive (`striping.rs`).
//!
//! Candidate k of column x is number i = width - 1 - x + k of the mirrored row; with n stripes, that is
//! number i / n of stripe i mod n.

use super::geometry::Geometry;
use super::simd::Vector;
use crate::matching::windows::BLOCKS;

#[derive(Clone, Copy)]
pub struct Stripes {
    width: usize,
    /// Offsets of all stripes, then again, each one number further on.
    starts: *const u32,
    blocks: Blocks,
}

/// The candidates of a pixel, in blocks.
#[derive(Clone, Copy)]
enum Blocks {
    /// From this block of the range on.
    From(u16),
    /// Those of a tile (`windows.rs`), which do not all follow each other.
    Of([u16; BLOCKS]),
}

// SAFETY: the table is only read, and outlives its users.
unsafe impl Send for Stripes {}
// SAFETY: as above.
unsafe impl Sync for Stripes {}

impl Stripes {
    /// The table of offsets, with two entries per vector of a pixel.
    pub fn starts(geometry: &Geometry) -> impl Iterator<Item = u32> {
        let (chunks, len) = (geometry.chunks, geometry.stripe_len());
        (0..2 * chunks).map(move |stripe| (stripe % chunks * len + stripe / chunks) as u32)
    }

    pub fn of(geometry: &Geometry, starts: *const u32) -> Self {
        Self { width: geometry.width, starts, blocks: Blocks::From(0) }
    }

    /// The candidates of these blocks instead of the whole range.
    pub fn of_blocks(self, blocks: [u16; BLOCKS]) -> Self {
        let follow = blocks.windows(2).all(|pair| pair[1] == pair[0] + 1);
        Self { blocks: if follow { Blocks::From(blocks[0]) } else { Blocks::Of(blocks) }, ..self }
    }

    /// Returns the offsets of the `chunks` vectors of column `x`.
    ///
    /// # Safety
    /// The geometry has this many vectors a pixel, and the column lies in the image.
    #[inline(always)]
    pub unsafe fn at(self, x: usize, chunks: usize) -> Starts {
        // 32-bit division is faster, and no image is that wide.
        let (first, count) = ((self.width - 1 - x) as u32, chunks as u32);
        // SAFETY: the stripe is one of the row's.
        let starts = unsafe { self.starts.add((first % count) as usize) };
        let (number, alone) = ((first / count) as usize, chunks == 1);
        Starts { starts, number, alone, blocks: self.blocks }
    }
}

#[derive(Clone, Copy)]
pub struct Starts {
    starts: *const u32,
    number: usize,
    /// Whether there is only one vector, so that the row is one stripe.
    alone: bool,
    blocks: Blocks,
}

impl Starts {
    /// Vector `chunk` of the mirrored row of bytes.
    ///
    /// # Safety
    /// The pixel has the vector, and the row is one of the geometry's.
    #[inline(always)]
    pub unsafe fn load<V: Vector>(self, row: *const u8, chunk: usize) -> V {
        // SAFETY: the caller's promise; a quarter of a vector holds a block.
        unsafe {
            let from = row.add(self.at(chunk));
            match self.blocks {
                Blocks::From(block) => V::load(from.add(usize::from(block) * (V::N / BLOCKS))),
                Blocks::Of(blocks) => V::load_quarters(
                    blocks.map(|block| from.add(usize::from(block) * (V::N / BLOCKS))),
                ),
            }
        }
    }

    /// Offset of vector `chunk` in the row.
    ///
    /// # Safety
    /// The pixel has the vector.
    #[inline(always)]
    pub unsafe fn at(self, chunk: usize) -> usize {
        if self.alone {
            return self.number;
        }
        // Looked up, because selecting between this number and the next one compiled to branches.
        // SAFETY: there is a start for every stripe and vector.
        unsafe { self.number + *self.starts.add(chunk) as usize }
    }
}

/// Writes a mirrored row in stripes, clamped; `plain` has [`Geometry::mirrored_stride`] numbers.
#[inline(always)]
pub fn write<T: Copy>(geometry: &Geometry, row: &[T], plain: &mut [T], to: &mut [T]) {
    let (chunks, stripe_len) = (geometry.chunks, geometry.stripe_len());
    if chunks == 1 {
        return mirror(row, geometry.min, to);
    }
    let plain = &mut plain[..chunks * stripe_len];
    mirror(row, geometry.min, plain);
    // With a constant number of stripes the loop is vectorised.
    match chunks {
        2 => deal::<2, T>(plain, stripe_len, to),
        4 => deal::<4, T>(plain, stripe_len, to),
        8 => deal::<8, T>(plain, stripe_len, to),
        _ => {
            for (number, stripe) in to.chunks_exact_mut(stripe_len).take(chunks).enumerate() {
                stripe.iter_mut().enumerate().for_each(|(i, to)| *to = plain[i * chunks + number]);
            }
        }
    }
}

/// Distributes the numbers to `N` stripes in turn.
#[inline(always)]
fn deal<const N: usize, T: Copy>(plain: &[T], stripe_len: usize, to: &mut [T]) {
    let (groups, _) = plain.as_chunks::<N>();
    for number in 0..N {
        let stripe = &mut to[number * stripe_len..][..stripe_len];
        stripe.iter_mut().zip(groups).for_each(|(to, group)| *to = group[number]);
    }
}

/// Writes the row so that number `width - 1 - x + k` is candidate k of column x: column x - min - k, clamped.
#[inline(always)]
fn mirror<T: Copy>(row: &[T], min: i32, mirrored: &mut [T]) {
    let width = row.len() as i64;
    // Number i is column width - 1 - min - i.
    let first = width - 1 - i64::from(min);
    let len = mirrored.len() as i64;
    // Columns right of the image, inside, and left of it.
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
    use crate::engine::cpu::striping::StripedOrder;
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
                let candidates: Vec<usize> = StripedOrder::of(&geometry).candidates().collect();
                let starts: Vec<u32> = Stripes::starts(&geometry).collect();
                let stripes = Stripes::of(&geometry, starts.as_ptr());
                for x in 0..width {
                    // SAFETY: the column lies in the image.
                    let starts = unsafe { stripes.at(x, geometry.chunks) };
                    for (place, &k) in candidates.iter().enumerate() {
                        let column = x as i64 - i64::from(min) - k as i64;
                        let expected = row[column.clamp(0, width as i64 - 1) as usize];
                        // SAFETY: the place lies in a vector of the pixel.
                        let start = unsafe { starts.at(place / 16) };
                        let got = mirrored[start + place % 16];
                        assert_eq!(got, expected, "{width} {min} {count} {x} {k}");
                    }
                }
            }
        }
    }
}
