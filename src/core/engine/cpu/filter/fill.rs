//! Filling of holes, at constant cost per pixel for any length of the rays (`rays.rs`). A hole is filled in
//! place as soon as all its rays are known, because later rows only use the values that the fronts carry.
//! Gaps are filled from a copy of the map (`gaps.rs`).

mod gaps;
mod medians;

use self::gaps::GapRows;
use self::medians::medians;
use super::rays::{Around, BLOCK, Block, Front, Rule, Sweeps, known};
use super::{MapFilter, Pass};
use crate::engine::cpu::memory::{self, Arena, Plane};
use crate::engine::cpu::simd::Vector;
use crate::frame::{DisparityRange, INVALID, Image};
use crate::matching::filter::fill::{self, Fill, FillRule, Network};
use crate::matching::filter::rays::Met;
use crate::memory::{Result, product};

pub struct FillFilter {
    fill: Fill,
    range: DisparityRange,
    memory: Memory,
}

enum Memory {
    /// None, because each row is filled from itself.
    Row,
    Rays(Sweeps),
    /// The map before filling.
    Gaps(memory::Block<i16>),
}

impl FillFilter {
    pub fn new(
        arena: &Arena,
        fill: Fill,
        range: DisparityRange,
        size: (usize, usize),
        threads: usize,
    ) -> Result<Self> {
        let memory = match fill.rule {
            FillRule::Row => Memory::Row,
            FillRule::Rays | FillRule::Network | FillRule::NetworkOrRays => {
                Memory::Rays(Sweeps::new(arena, size, threads)?)
            }
            FillRule::Gaps => Memory::Gaps(arena.block(product([size.0, size.1]))?),
        };
        Ok(Self { fill, range, memory })
    }
}

impl MapFilter for FillFilter {
    fn input(&self) -> Option<*mut i16> {
        match &self.memory {
            Memory::Row | Memory::Rays(_) => None,
            Memory::Gaps(unfilled) => Some(unfilled.ptr()),
        }
    }

    unsafe fn run(&self, pass: &mut Pass<'_>, map: *mut i16, _: Option<*mut u8>) {
        let (left, reach) = (pass.left, self.fill.reach);
        let (size @ (width, height), simd) = (pass.size, pass.simd);
        match &self.memory {
            Memory::Rays(sweeps) => {
                let network = pass.prior.map(|prior| Network { prior, range: self.range });
                let rule = Median { rule: self.fill.rule, network };
                // SAFETY: the caller's promise.
                unsafe { sweeps.run(pass, map, reach, &rule) }
            }
            Memory::Row => {
                let map = Plane(map);
                pass.rows(|_, rows| {
                    for y in rows {
                        // SAFETY: the caller's promise; the row is this thread's.
                        let row = unsafe { map.part(y * width..(y + 1) * width) };
                        fill_row(row, left, y, reach);
                    }
                });
            }
            Memory::Gaps(unfilled) => {
                let map = Plane(map);
                // SAFETY: the caller's promise.
                let from = unsafe { unfilled.all(width * height) };
                pass.rows(|_, rows| {
                    // SAFETY: the rows of the result are this thread's; the simd was found on this machine.
                    unsafe {
                        let to = map.part(rows.start * width..rows.end * width);
                        let row = rows.start;
                        simd.vectorize(GapRows { size, left, from, row, to, reach });
                    }
                });
            }
        }
    }
}

/// Fills the runs of holes of row `y` from their two ends.
fn fill_row(values: &mut [i16], left: &Image, y: usize, reach: u16) {
    let width = values.len();
    let seen = left.valid_mask().map(|mask| mask.row(y));
    let is_hole =
        |values: &[i16], x: usize| values[x] == INVALID && seen.is_none_or(|seen| seen[x]);
    let mut x = 0;
    while x < width {
        let start = x;
        while x < width && is_hole(values, x) {
            x += 1;
        }
        let (left, right) = (known(values, start.checked_sub(1)), known(values, Some(x)));
        let met = |value: Option<i16>, distance: usize| {
            let value = value.filter(|_| distance <= usize::from(reach))?;
            Some(Met { value, distance: distance as u16, edge: 0 })
        };
        let run = &mut values[start..x];
        let len = run.len();
        for (i, value) in run.iter_mut().enumerate() {
            *value = fill::smaller(met(left, i + 1), met(right, len - i));
        }
        x += 1;
    }
}

struct Median<'a> {
    rule: FillRule,
    network: Option<Network<'a>>,
}

/// Removes the rays that the network does not confirm; if it confirms none, `or_rays` keeps all.
#[inline(always)]
fn confirm(around: &mut Around, expected: &Block, or_rays: bool) {
    let mut keeps_all = [or_rays; BLOCK];
    for (values, weights) in around.values.iter().zip(&around.measures) {
        for x in 0..BLOCK {
            keeps_all[x] &= weights[x] == 0 || !fill::confirms(expected[x], values[x]);
        }
    }
    for (values, weights) in around.values.iter_mut().zip(&mut around.measures) {
        for x in 0..BLOCK {
            let stays = keeps_all[x] || fill::confirms(expected[x], values[x]);
            values[x] = if stays { values[x] } else { INVALID };
            weights[x] = if stays { weights[x] } else { 0 };
        }
    }
}

impl Rule for Median<'_> {
    const EDGES: bool = true;

    #[inline(always)]
    fn wants(&self, _: (usize, usize), ends: &[i16]) -> bool {
        ends.iter().fold(-1, |all, &ends| all & ends) == 0
    }

    #[inline(always)]
    fn measure(front: &Front, x: usize) -> Block {
        front.weights(x)
    }

    #[inline(always)]
    unsafe fn take<V: Vector>(
        &self,
        (x, y): (usize, usize),
        row: &mut [i16],
        ends: &[i16],
        around: &Around,
    ) {
        if !self.rule.asks_network() {
            // SAFETY: the caller's promise.
            return fill_holes(row, ends, &unsafe { medians::<V>(around) });
        }
        let mut expected = [INVALID; BLOCK];
        for (x, to) in (x..).zip(&mut expected[..row.len()]) {
            *to = fill::expected(self.network, (x, y));
        }
        let mut those = around.clone();
        confirm(&mut those, &expected, self.rule == FillRule::NetworkOrRays);
        // SAFETY: the caller's promise.
        let mut medians: Block = unsafe { medians::<V>(&those) };
        for (i, median) in medians.iter_mut().enumerate() {
            let is_alone = around.measures.iter().all(|weights| weights[i] == 0);
            *median = if is_alone { expected[i] } else { *median };
        }
        fill_holes(row, ends, &medians);
    }
}

/// Sets the pixels of a block that are holes: no bit is set in `ends`.
#[inline(always)]
fn fill_holes(row: &mut [i16], ends: &[i16], filled: &Block) {
    for ((to, &ends), &value) in row.iter_mut().zip(ends).zip(filled) {
        *to = (*to & ends) | (value & !ends);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use proptest::prelude::*;

    use super::*;
    use crate::engine::cpu::simd::Simd;
    use crate::engine::cpu::team::Team;
    use crate::frame::{DisparityMap, Mask};
    use crate::matching::filter::rays::REACH_MAX;

    /// Filters with this many threads; the memory has processed another map before.
    fn filter(
        left: &Image,
        range: DisparityRange,
        prior: Option<&DisparityMap>,
        values: &mut [i16],
        (fill, threads): (Fill, usize),
    ) {
        let size = (left.width(), left.height());
        let filter = FillFilter::new(&Arena::new(), fill, range, size, threads).unwrap();
        let mut team = Team::new(threads).unwrap();
        let mut other: Vec<i16> = values.iter().rev().copied().collect();
        for map in [&mut other[..], values] {
            let mut pass =
                Pass { size, left, threshold: 0, prior, simd: Simd::Portable, team: &mut team };
            // SAFETY: the map and the filter's input have this size.
            unsafe {
                if let Some(input) = filter.input() {
                    input.copy_from_nonoverlapping(map.as_ptr(), map.len());
                }
                filter.run(&mut pass, map.as_mut_ptr(), None);
            }
        }
    }

    /// Maps with holes of many sizes: a value or a hole per patch, and isolated ones of either.
    fn scene() -> impl Strategy<Value = (Image, Vec<i16>, DisparityMap)> {
        let size = (1usize..48, 1usize..24);
        (size, any::<u64>(), 1usize..9, 0u64..100, 0u64..30, prop::option::of(0u64..40)).prop_map(
            |((width, height), seed, patch, holes, noise, unseen)| {
                let random = |x: usize, y: usize, what: u64| {
                    let mixed =
                        seed ^ what << 40 ^ ((y << 20 | x) as u64).wrapping_mul(0x9e37_79b9);
                    mixed.wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 33
                };
                let at = |i: usize| (i % width, i / width);
                let value = |i| {
                    let (x, y) = at(i);
                    let single = random(x, y, 1) % 100 < noise;
                    let (x, y) = if single { (x, y) } else { (x / patch, y / patch) };
                    let value =
                        [3, 16, 17, 30, 48, 200, -40, i16::MAX][random(x, y, 2) as usize % 8];
                    if random(x, y, 3) % 100 < holes { INVALID } else { value }
                };
                let grey = |x: usize, y: usize| {
                    let patch = random(x / patch, y / patch, 4) % 256;
                    (patch as u8).wrapping_add((random(x, y, 5) % 7) as u8)
                };
                let mask = unseen.map(|unseen| {
                    let seen = |i| random(at(i).0, at(i).1, 6) % 100 >= unseen;
                    Arc::new(Mask::new(width, (0..width * height).map(seen).collect()))
                });
                let mut values: Vec<i16> = (0..width * height).map(value).collect();
                for (value, &seen) in values.iter_mut().zip(mask.iter().flat_map(|m| m.pixels())) {
                    *value = if seen { *value } else { INVALID };
                }
                let (columns, rows) = (width.div_ceil(2), height.div_ceil(2));
                let expected = |i: usize| {
                    let (x, y) = (i % columns / patch, i / columns / patch);
                    let least = -16 * 1023 - 8;
                    [2, 8, 50, 100, -20, -60, least, INVALID][random(x, y, 7) as usize % 8]
                };
                let prior = (0..columns * rows).map(expected).collect();
                let prior =
                    DisparityMap::of_values(columns, DisparityRange { min: 0, count: 1 }, prior);
                (Image::from_fn(width, height, grey).with_valid_mask(mask), values, prior)
            },
        )
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn the_sweeps_give_the_bytes_of_the_reference(
            (left, values, prior) in scene(),
            rule in prop_oneof![
                1 => Just(FillRule::Row),
                4 => Just(FillRule::Rays),
                4 => Just(FillRule::Gaps),
                4 => Just(FillRule::Network),
                4 => Just(FillRule::NetworkOrRays),
            ],
            (min, count) in prop_oneof![Just((-2047, 2050)), Just((-5, 12))],
            has_prior in prop::bool::weighted(0.8),
            reach in prop_oneof![1u16..6, 6u16..40, Just(REACH_MAX)],
            threads in 1usize..5,
        ) {
            let fill = Fill { rule, reach };
            let (mut fast, mut plain) = (values.clone(), values.clone());
            let (range, prior) = (DisparityRange { min, count }, has_prior.then_some(&prior));
            filter(&left, range, prior, &mut fast, (fill, threads));
            let network = prior.map(|prior| Network { prior, range });
            fill::apply(&mut plain, &left, network, fill);
            prop_assert_eq!(&fast, &plain);
            for (&before, &after) in values.iter().zip(&fast) {
                prop_assert!(before == INVALID || before == after, "a known pixel changed");
            }
        }
    }
}
