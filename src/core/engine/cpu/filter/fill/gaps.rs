//! Filling of gaps, for all pixels of a block of columns at once. Ends come from the map before filling, so
//! that rows can be filled in any order.

use crate::engine::cpu::filter::rays::{BLOCK, Block};
use crate::engine::cpu::simd::{SimdKernel, Vector};
use crate::frame::{INVALID, Image};
use crate::matching::filter::fill::{GAP_MAX, GAP_STEP_MAX};

/// Pixels to either side of a block within reach of a gap.
const MARGIN: usize = GAP_MAX as usize;

pub struct GapRows<'a> {
    pub size: (usize, usize),
    pub left: &'a Image,
    pub from: &'a [i16],
    pub row: usize,
    pub to: &'a mut [i16],
    /// Length of the longest gap, if it is below [`GAP_MAX`].
    pub reach: u16,
}

impl SimdKernel for GapRows<'_> {
    #[inline(always)]
    unsafe fn run<V: Vector>(self) {
        let Self { size: size @ (width, _), left, from, row, to, reach } = self;
        let longest = usize::from(reach).min(MARGIN);
        let source = Source { size, left, from };
        for (y, to) in (row..).zip(to.chunks_exact_mut(width)) {
            to.copy_from_slice(&from[y * width..][..width]);
            for (x, to) in (0..width).step_by(BLOCK).zip(to.chunks_mut(BLOCK)) {
                // Most pixels are known.
                if to.iter().fold(0, |any, &value| any | i16::from(value == INVALID)) != 0 {
                    fill_block(&source, (x, y), longest, to);
                }
            }
        }
    }
}

#[inline(always)]
fn fill_block(source: &Source<'_>, (x, y): (usize, usize), longest: usize, block: &mut [i16]) {
    let row: Pixels<{ BLOCK + 2 * MARGIN }> = source.pixels(x, y, MARGIN);
    let [mut left, mut right, mut up, mut down] = [Ends::NONE; 4];
    // From far to near, so that the nearest end overwrites the others.
    for steps in (1..=longest).rev() {
        left.take(&row.part(MARGIN - steps), steps);
        right.take(&row.part(MARGIN + steps), steps);
        if let Some(y) = y.checked_sub(steps) {
            up.take(&source.pixels(x, y, 0), steps);
        }
        if y + steps < source.size.1 {
            down.take(&source.pixels(x, y + steps, 0), steps);
        }
    }
    let in_row = Lines::new(&left, &right, longest);
    let in_column = Lines::new(&up, &down, longest);
    let (here, mut filled) = (row.part(MARGIN), [0; BLOCK]);
    for (i, filled) in filled.iter_mut().enumerate() {
        let shorter = -i16::from(in_column.distances[i] < in_row.distances[i]);
        let line = (in_column.values[i] & shorter) | (in_row.values[i] & !shorter);
        *filled = (here.values[i] & here.ends[i]) | (line & !here.ends[i]);
    }
    block.copy_from_slice(&filled[..block.len()]);
}

/// A map before filling.
struct Source<'a> {
    size: (usize, usize),
    left: &'a Image,
    from: &'a [i16],
}

impl Source<'_> {
    /// Pixels of row `y` starting at column `x - margin`; pixels outside the map are unknown.
    #[inline(always)]
    fn pixels<const N: usize>(&self, x: usize, y: usize, margin: usize) -> Pixels<N> {
        let row = &self.from[y * self.size.0..][..self.size.0];
        let seen = self.left.valid_mask().map(|mask| mask.row(y));
        let start = x.saturating_sub(margin);
        let before = start + margin - x;
        let mut values = [INVALID; N];
        match row[start..].first_chunk() {
            Some(whole) if before == 0 => values = *whole,
            _ => copy(&row[start..], &mut values[before..]),
        }
        // A loop, because `map` of an array would be compiled without the kernel's vector instructions.
        let mut ends = [0; N];
        for (ends, &value) in ends.iter_mut().zip(&values) {
            *ends = -i16::from(value != INVALID);
        }
        if let Some(seen) = seen {
            for (ends, &seen) in ends[before..].iter_mut().zip(&seen[start..]) {
                *ends |= -i16::from(!seen);
            }
        }
        Pixels { values, ends }
    }
}

/// Copies as many values as both slices hold.
fn copy(from: &[i16], to: &mut [i16]) {
    to.iter_mut().zip(from).for_each(|(to, &value)| *to = value);
}

/// Neighbouring pixels of a row.
struct Pixels<const N: usize> {
    values: [i16; N],
    /// All bits set for pixels that end runs: known, or outside the valid mask. 0 for holes.
    ends: [i16; N],
}

impl<const N: usize> Pixels<N> {
    #[inline(always)]
    fn part(&self, at: usize) -> Pixels<BLOCK> {
        Pixels { values: part(&self.values, at), ends: part(&self.ends, at) }
    }
}

#[inline(always)]
fn part(row: &[i16], at: usize) -> Block {
    *row[at..].first_chunk().expect("a block lies inside")
}

/// Ends of runs in one direction, for the pixels of a block.
#[derive(Clone, Copy)]
struct Ends {
    /// Values, or [`INVALID`].
    values: Block,
    /// Steps to them.
    steps: Block,
}

impl Ends {
    const NONE: Self = Self { values: [INVALID; BLOCK], steps: [0; BLOCK] };

    /// Replaces the ends of pixels with an end `steps` pixels away.
    #[inline(always)]
    fn take(&mut self, there: &Pixels<BLOCK>, steps: usize) {
        for i in 0..BLOCK {
            // Masks, because a branch would not be vectorised.
            let ends = there.ends[i];
            self.values[i] = (there.values[i] & ends) | (self.values[i] & !ends);
            self.steps[i] = (steps as i16 & ends) | (self.steps[i] & !ends);
        }
    }
}

struct Lines {
    /// Values, or [`INVALID`] without a gap.
    values: Block,
    /// Steps from one end of the gap to the other; the largest number without a gap.
    distances: Block,
}

impl Lines {
    #[inline(always)]
    fn new(a: &Ends, b: &Ends, longest: usize) -> Self {
        let (mut values, mut distances) = ([0; BLOCK], [0; BLOCK]);
        for i in 0..BLOCK {
            let (from, to) = (a.values[i], b.values[i]);
            let rise = to.saturating_sub(from);
            let distance = a.steps[i] + b.steps[i];
            let no_gap = -i16::from(
                (from == INVALID)
                    | (to == INVALID)
                    | (rise.saturating_abs() > GAP_STEP_MAX)
                    | (distance > longest as i16 + 1),
            );
            // Without a gap, the result is not used.
            let value = from.wrapping_add(risen(rise & !no_gap, a.steps[i], distance));
            values[i] = (value & !no_gap) | (INVALID & no_gap);
            distances[i] = (distance & !no_gap) | (i16::MAX & no_gap);
        }
        Self { values, distances }
    }
}

/// Part of a line's rise after `steps` of `distance` (2 to [`GAP_MAX`] + 1), to nearest, halves up.
#[inline(always)]
fn risen(rise: i16, steps: i16, distance: i16) -> i16 {
    // Adding 1 px times the distance makes the numerator positive. It is at most 146, so that multiplying by
    // 512 / distance, rounded up, divides it exactly.
    let numerator = rise * steps + distance / 2 + GAP_STEP_MAX * distance;
    let at = |length| -i16::from(distance == length);
    let factor = (256 & at(2)) | (171 & at(3)) | (128 & at(4)) | (103 & at(5));
    ((numerator * factor) >> 9) - GAP_STEP_MAX
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_multiplication_divides_exactly() {
        for distance in 2..=GAP_MAX as i16 + 1 {
            for steps in 1..distance {
                for rise in -GAP_STEP_MAX..=GAP_STEP_MAX {
                    let rounded = (rise * steps + distance / 2).div_euclid(distance);
                    assert_eq!(risen(rise, steps, distance), rounded);
                }
            }
        }
    }
}
