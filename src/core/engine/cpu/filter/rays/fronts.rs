//! Nearest known pixels along rays, carried from row to row and along a row.

use crate::engine::cpu::memory::Arena;
use crate::frame::{INVALID, Image};
use crate::matching::filter::fill;
use crate::matching::filter::rays::{Met, meet};
use crate::memory::{Refused, Result};

/// Columns of a block; blocks without a hole are skipped.
pub const BLOCK: usize = 32;

pub type Block = [i16; BLOCK];

/// Width of a row, rounded up to whole blocks.
pub fn columns(width: usize) -> usize {
    width.checked_next_multiple_of(BLOCK).unwrap_or(usize::MAX)
}

/// Ends of the rays of one direction, for the pixels of a row; the next row's rays see a known pixel itself.
/// There is an empty column on either side.
pub struct Front {
    /// Values, or [`INVALID`] without an end within reach.
    values: Vec<i16>,
    /// Largest edges on the way.
    edges: Vec<i16>,
    distances: Vec<i16>,
}

impl Front {
    fn new(arena: &Arena, len: usize) -> Result<Self> {
        let values = arena.filled(len, INVALID)?;
        Ok(Self { values, edges: arena.filled(len, 0)?, distances: arena.filled(len, 0)? })
    }
    fn set(&mut self, x: usize, value: i16, edge: i16, distance: i16) {
        self.values[1 + x] = value;
        self.edges[1 + x] = edge;
        self.distances[1 + x] = distance;
    }

    #[inline(always)]
    pub fn block(&self, x: usize) -> Block {
        block(&self.values, x)
    }

    /// Weights of the block at column `x`; 0 without a value.
    #[inline(always)]
    pub fn weights(&self, x: usize) -> Block {
        let (values, edges) = (block(&self.values, x), block(&self.edges, x));
        let (distances, mut weights) = (block(&self.distances, x), [0; BLOCK]);
        weigh(&values, &edges, &distances, &mut weights);
        weights
    }

    #[inline(always)]
    pub fn steps(&self, x: usize) -> Block {
        block(&self.distances, x)
    }
}

#[inline(always)]
fn block(row: &[i16], x: usize) -> Block {
    *row[1 + x..].first_chunk().expect("blocks are whole")
}

/// [`Front::weights`] on separate slices of one length, so that it is vectorised.
#[inline(always)]
fn weigh(values: &[i16], edges: &[i16], distances: &[i16], weights: &mut [i16]) {
    let len = weights.len();
    let (values, edges, distances) = (&values[..len], &edges[..len], &distances[..len]);
    for x in 0..len {
        let weight = fill::weight(edges[x] as u8, distances[x] as u16) as i16;
        weights[x] = if values[x] == INVALID { 0 } else { weight };
    }
}

pub struct Fronts {
    /// Three directions, for the previous row and for this one.
    before: [Front; 3],
    pub here: [Front; 3],
    /// To the left and to the right, for holes only.
    pub across: [Front; 2],
    /// Grey levels of the previous row and of this one, with a column on either side.
    grey_before: Vec<i16>,
    grey: Vec<i16>,
    /// All bits set for pixels that end rays: known, or outside the valid mask. 0 for holes.
    pub ends: Vec<i16>,
}

impl Fronts {
    pub fn new(arena: &Arena, width: usize) -> Result<Self> {
        let len = columns(width).checked_add(2).ok_or(Refused(u64::MAX))?;
        let front = || Front::new(arena, len);
        Ok(Self {
            before: [front()?, front()?, front()?],
            here: [front()?, front()?, front()?],
            across: [front()?, front()?],
            grey_before: arena.filled(len, 0)?,
            grey: arena.filled(len, 0)?,
            ends: arena.filled(len, -1)?,
        })
    }

    /// Begins a sweep after the row `beyond` (`None`: outside the image), with ends searched ray by ray.
    pub fn begin(
        &mut self,
        map: &[i16],
        left: &Image,
        beyond: Option<usize>,
        steps: &[(i32, i32)],
        reach: u16,
    ) {
        let Some(y) = beyond else {
            return self.here.iter_mut().for_each(|front| front.values.fill(INVALID));
        };
        let width = left.width();
        let row = &map[y * width..][..width];
        self.take_row(row, left, y);
        for (front, &step) in self.here.iter_mut().zip(steps) {
            for (x, &value) in row.iter().enumerate() {
                let met = match self.ends[x] {
                    0 => meet(map, left, (x, y), step, reach),
                    _ => None,
                };
                // A ray that ends at this pixel has its value, even an invalid one.
                let met = met.unwrap_or(Met { value, distance: 0, edge: 0 });
                front.set(x, met.value, met.edge.into(), met.distance as i16);
            }
        }
    }

    /// Loads the grey levels of a row and the pixels that end rays.
    #[inline(always)]
    fn take_row(&mut self, values: &[i16], left: &Image, y: usize) {
        let width = values.len();
        for (to, &grey) in self.grey[1..][..width].iter_mut().zip(left.row(y)) {
            *to = grey.into();
        }
        for (ends, &value) in self.ends[..width].iter_mut().zip(values) {
            *ends = -i16::from(value != INVALID);
        }
        if let Some(mask) = left.valid_mask() {
            for (ends, &seen) in self.ends[..width].iter_mut().zip(mask.row(y)) {
                *ends |= -i16::from(!seen);
            }
        }
    }

    /// Advances the sweep to row `y` of the map: updates the ends of the rays, and their edges if `edges` is
    /// set. Both rows are separate slices of one length, so that it is vectorised.
    #[inline(always)]
    pub fn go_on(&mut self, values: &[i16], left: &Image, y: usize, reach: u16, edges: bool) {
        std::mem::swap(&mut self.before, &mut self.here);
        std::mem::swap(&mut self.grey_before, &mut self.grey);
        self.take_row(values, left, y);
        let width = values.len();
        for (offset, (before, here)) in self.before.iter().zip(&mut self.here).enumerate() {
            let there = offset..offset + width;
            if edges {
                carry_edges(
                    &self.ends[..width],
                    &self.grey[1..=width],
                    &self.grey_before[there.clone()],
                    &before.edges[there.clone()],
                    &mut here.edges[1..=width],
                );
            }
            let (ends, old) = (&self.ends[..width], &before.distances[there.clone()]);
            let distances = &mut here.distances[1..=width];
            carry_distances(ends, old, distances);
            let (old, new) = (&before.values[there], &mut here.values[1..=width]);
            carry_values(values, ends, old, distances, reach as i16, new);
        }
    }

    #[inline(always)]
    pub fn follow_row(&mut self, values: &[i16], reach: u16) {
        let Self { across: [to_left, to_right], grey, ends, .. } = self;
        let reach = usize::from(reach);
        let mut from = 0;
        while let Some((start, end)) = next_run(&ends[..values.len()], from) {
            let (left, right) = (known(values, start.checked_sub(1)), known(values, Some(end)));
            let follow = |front: &mut Front, x, end: Option<i16>, edge, distance: usize| {
                let value = end.filter(|_| distance <= reach).unwrap_or(INVALID);
                front.set(x, value, edge, distance.min(reach) as i16);
            };
            let mut edge = 0;
            for x in start..end {
                edge = (grey[1 + x] - grey[x]).abs().max(edge);
                follow(to_left, x, left, edge, x + 1 - start);
            }
            let mut edge = 0;
            for x in (start..end).rev() {
                edge = (grey[1 + x] - grey[2 + x]).abs().max(edge);
                follow(to_right, x, right, edge, end - x);
            }
            from = end;
        }
    }
}

#[inline(always)]
fn carry_edges(ends: &[i16], grey: &[i16], grey_before: &[i16], old: &[i16], new: &mut [i16]) {
    let len = new.len();
    let (ends, grey) = (&ends[..len], &grey[..len]);
    let (grey_before, old) = (&grey_before[..len], &old[..len]);
    for x in 0..len {
        new[x] = old[x].max((grey[x] - grey_before[x]).abs()) & !ends[x];
    }
}

#[inline(always)]
fn carry_distances(ends: &[i16], old: &[i16], new: &mut [i16]) {
    for ((new, &old), &ends) in new.iter_mut().zip(old).zip(ends) {
        *new = old.saturating_add(1) & !ends;
    }
}

#[inline(always)]
fn carry_values(
    values: &[i16],
    ends: &[i16],
    old: &[i16],
    distances: &[i16],
    reach: i16,
    new: &mut [i16],
) {
    let len = new.len();
    let (values, ends) = (&values[..len], &ends[..len]);
    let (old, distances) = (&old[..len], &distances[..len]);
    for x in 0..len {
        // Masks, because a branch would load only one of two values and not be vectorised.
        let far = -i16::from(distances[x] > reach);
        let carried = (old[x] & !far) | (INVALID & far);
        new[x] = (carried & !ends[x]) | (values[x] & ends[x]);
    }
}

/// The known value at the end of a run, if there is one.
#[inline(always)]
pub fn known(values: &[i16], at: Option<usize>) -> Option<i16> {
    values.get(at?).copied().filter(|&value| value != INVALID)
}

#[inline(always)]
fn all_known(ends: &[i16]) -> bool {
    ends.iter().fold(-1, |all, &ends| all & ends) == -1
}

/// The first run of holes at or after `from`: its first column, and the one behind its last.
#[inline(always)]
fn next_run(ends: &[i16], from: usize) -> Option<(usize, usize)> {
    let mut start = from;
    // Most pixels are known.
    while let Some(next) = ends.get(start..start + BLOCK)
        && all_known(next)
    {
        start += BLOCK;
    }
    start += ends[start..].iter().position(|&ends| ends == 0)?;
    let len = ends[start..].iter().position(|&ends| ends != 0).unwrap_or(ends.len() - start);
    Some((start, start + len))
}
