//! The order of a pixel's candidates in its vectors: *striped* (Farrar, "Striped Smith-Waterman speeds
//! database searches six times over other SIMD implementations", Bioinformatics 23(2), 2007).
//!
//! With n vectors per pixel, vector c holds the candidates c, c + n, c + 2n, ... in its lanes. So the
//! neighbours of a vector's candidates are in the adjacent vectors, lane by lane, without a shift. Two
//! vectors are exceptions: the lower neighbours of the first are the last vector's, a lane further down, and
//! the upper ones of the last are the first vector's, a lane further up.
//!
//! All data per candidate is in this order, from the cost to the sums; a *place* is an index in it.

use super::geometry::Geometry;
use super::memory::{Arena, Block};
use super::simd::lane_of_pair;
use crate::memory::Result;

#[derive(Clone, Copy, Debug)]
pub struct StripedOrder {
    chunks: usize,
    lanes: usize,
}

impl StripedOrder {
    pub fn of(geometry: &Geometry) -> Self {
        Self { chunks: geometry.chunks, lanes: geometry.depth / geometry.chunks }
    }

    /// The place of a candidate, possibly beyond the range, among 16-bit numbers ([`lane_of_pair`]).
    pub fn place_of_wide(self, candidate: usize) -> usize {
        let (chunk, lane) = (candidate % self.chunks, candidate / self.chunks);
        chunk * self.lanes + lane_of_pair(lane, self.lanes)
    }

    /// Allocates a table of `number` for every candidate at its place, also beyond the range.
    pub fn table(self, arena: &Arena, number: impl Fn(usize) -> i16) -> Result<Block<i16>> {
        arena.block_with(self.chunks * self.lanes, |table| {
            (0..table.len()).for_each(|k| table[self.place_of_wide(k)] = number(k));
        })
    }

    pub fn candidates(self) -> impl Iterator<Item = usize> {
        (0..self.chunks).flat_map(move |c| (0..self.lanes).map(move |lane| lane * self.chunks + c))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_candidate_has_a_place_and_its_neighbours_lie_in_the_same_lane() {
        for (chunks, lanes) in [(1, 64), (2, 32), (3, 16), (4, 32)] {
            let places = StripedOrder { chunks, lanes };
            let candidates: Vec<usize> = places.candidates().collect();
            assert_eq!(candidates.len(), chunks * lanes);
            for (place, &candidate) in candidates.iter().enumerate() {
                if place >= lanes {
                    assert_eq!(candidates[place - lanes], candidate - 1);
                }
                let (vector, lane) = (place / lanes, place % lanes);
                let wide = vector * lanes + lane_of_pair(lane, lanes);
                assert_eq!(places.place_of_wide(candidate), wide);
            }
            let mut all = candidates;
            all.sort_unstable();
            assert!(all.into_iter().eq(0..chunks * lanes));
        }
    }
}
