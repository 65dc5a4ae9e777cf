//! Removal of pixels without supporting evidence, in two steps: first a map of the evidence alone, then the
//! rays of all other pixels (`rays.rs`), which decide on the known ones.

use std::sync::Mutex;

use super::rays::{Around, BLOCK, Block, Front, Rule, Sweeps};
use super::{MapFilter, Pass};
use crate::engine::cpu::memory::{self, Arena, Plane};
use crate::engine::cpu::simd::Vector;
use crate::engine::cpu::texture::{PixelRows, SumRangeRow, sum_range_scratch};
use crate::frame::INVALID;
use crate::matching::filter::evidence::{CONFIDENCE, Evidence, is_between, is_weak};
use crate::matching::filter::rays::REACH_MAX;
use crate::memory::{Result, product};
use crate::thread::locked;

pub struct EvidenceFilter {
    evidence: memory::Block<i16>,
    /// `None` if rays are not used.
    sweeps: Option<Sweeps>,
    /// Per thread, the ranges of a row and scratch memory for them.
    ranges: Vec<Mutex<Vec<u16>>>,
}

fn ranges_len(width: usize) -> usize {
    width + sum_range_scratch(width)
}

impl EvidenceFilter {
    pub fn new(arena: &Arena, how: Evidence, size: (usize, usize), threads: usize) -> Result<Self> {
        let sweeps = (!how.strict).then(|| Sweeps::new(arena, size, threads));
        Ok(Self {
            evidence: arena.block(product([size.0, size.1]))?,
            sweeps: sweeps.transpose()?,
            ranges: arena.per_thread(threads, || arena.filled(ranges_len(size.0), 0))?,
        })
    }
}

impl MapFilter for EvidenceFilter {
    unsafe fn run(&self, pass: &mut Pass<'_>, map: *mut i16, sure: Option<*mut u8>) {
        let (size @ (width, _), threshold, simd) = (pass.size, pass.threshold, pass.simd);
        let of = PixelRows { pixels: pass.left.pixels(), size };
        let evidence = Plane(self.evidence.ptr());
        let map = Plane(map);
        pass.rows(|thread, rows| {
            let scratch = &mut *locked(&self.ranges[thread]);
            let (to, scratch) = scratch.split_at_mut(width);
            for y in rows {
                let row = y * width..(y + 1) * width;
                // SAFETY: the caller's promise; the rows are this thread's.
                unsafe {
                    simd.vectorize(SumRangeRow { of, y, to: &mut *to, scratch: &mut *scratch });
                    keep_evidence(map.part(row.clone()), to, threshold, evidence.part(row));
                }
            }
        });
        let rule = Supported { width, map, sure: sure.map(Plane) };
        match &self.sweeps {
            // SAFETY: the caller's promise; the map of the evidence is complete.
            Some(sweeps) => unsafe { sweeps.run(pass, self.evidence.ptr(), REACH_MAX, &rule) },
            None => pass.rows(|_, rows| {
                // SAFETY: the caller's promise; the rows are this thread's.
                unsafe {
                    let pixels = rows.start * width..rows.end * width;
                    rule.keep(pixels.clone(), evidence.part(pixels), |_| false);
                }
            }),
        }
    }
}

fn keep_evidence(values: &[i16], ranges: &[u16], threshold: u32, evidence: &mut [i16]) {
    for ((to, &value), &range) in evidence.iter_mut().zip(values).zip(ranges) {
        *to = if is_weak(range, threshold) { INVALID } else { value };
    }
}

/// Keeps known pixels without evidence if their rays support them.
struct Supported {
    width: usize,
    map: Plane<i16>,
    /// Confidence of each pixel, if it is computed.
    sure: Option<Plane<u8>>,
}

impl Supported {
    /// Invalidates the unsupported ones of `pixels`; `evidence` and `is_supported` count from the first.
    ///
    /// # Safety
    /// No other thread accesses them.
    #[inline(always)]
    unsafe fn keep(
        &self,
        pixels: std::ops::Range<usize>,
        evidence: &[i16],
        is_supported: impl Fn(usize) -> bool,
    ) {
        // SAFETY: the caller's promise.
        let values = unsafe { self.map.part(pixels.clone()) };
        // SAFETY: as above.
        let mut sure = self.sure.as_ref().map(|sure| unsafe { sure.part(pixels) });
        for (x, (value, &evidence)) in values.iter_mut().zip(evidence).enumerate() {
            if evidence != INVALID || *value == INVALID {
                continue;
            }
            let stays = is_supported(x);
            *value = if stays { *value } else { INVALID };
            if let Some(sure) = &mut sure {
                sure[x] = if stays { CONFIDENCE } else { 0 };
            }
        }
    }
}

impl Rule for Supported {
    const EDGES: bool = false;

    /// Only known weak pixels need rays.
    #[inline(always)]
    fn wants(&self, (x, y): (usize, usize), ends: &[i16]) -> bool {
        let at = y * self.width + x;
        // SAFETY: no other thread writes the row.
        let values = unsafe { self.map.part(at..at + ends.len()) };
        let asks = values.iter().zip(ends);
        asks.fold(0, |any, (&value, &ends)| any | (-i16::from(value != INVALID) & !ends)) != 0
    }

    #[inline(always)]
    fn measure(front: &Front, x: usize) -> Block {
        front.steps(x)
    }

    #[inline(always)]
    unsafe fn take<V: Vector>(
        &self,
        (x, y): (usize, usize),
        evidence: &mut [i16],
        _: &[i16],
        around: &Around,
    ) {
        let at = y * self.width + x;
        let pixels = at..at + evidence.len();
        let mut own = [0; BLOCK];
        // SAFETY: the row is this thread's.
        unsafe {
            own[..evidence.len()].copy_from_slice(self.map.part(pixels.clone()));
            let supported = supported(&own, around);
            self.keep(pixels, evidence, |x| supported[x]);
        }
    }
}

/// Reports whether each pixel of a block with these disparities is supported.
#[inline(always)]
fn supported(own: &Block, Around { values, measures: steps, .. }: &Around) -> [bool; BLOCK] {
    let mut supported = [false; BLOCK];
    for ray in 0..4 {
        let [a, b] = [ray, 7 - ray].map(|ray| (&values[ray], &steps[ray]));
        for x in 0..BLOCK {
            let (own, a, b) = (i32::from(own[x]), (a.0[x], a.1[x]), (b.0[x], b.1[x]));
            supported[x] |= is_between(own, a, b);
        }
    }
    supported
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use proptest::prelude::*;

    use super::*;
    use crate::engine::cpu::simd::Simd;
    use crate::engine::cpu::team::Team;
    use crate::frame::{Image, Mask};
    use crate::matching::filter::evidence;

    /// Filters with this many threads; the memory has processed another map before.
    fn filter(
        left: &Image,
        threshold: u32,
        map: &mut [i16],
        sure: Option<&mut [u8]>,
        how: Evidence,
        threads: usize,
    ) {
        let size = (left.width(), left.height());
        let filter = EvidenceFilter::new(&Arena::new(), how, size, threads).unwrap();
        let mut team = Team::new(threads).unwrap();
        let mut other: Vec<i16> = map.iter().rev().copied().collect();
        for (map, sure) in [(&mut other[..], None), (map, sure)] {
            let simd = Simd::Portable;
            let mut pass = Pass { size, left, threshold, prior: None, simd, team: &mut team };
            // SAFETY: map and confidence have this size.
            unsafe { filter.run(&mut pass, map.as_mut_ptr(), sure.map(<[u8]>::as_mut_ptr)) };
        }
    }

    /// Images of even and noisy patches, and maps of planes, steps and holes.
    fn scene() -> impl Strategy<Value = (Image, Vec<i16>)> {
        let size = (1usize..60, 1usize..40);
        (size, any::<u64>(), 1usize..14, 0u64..100, 0u64..40, prop::option::of(0u64..30)).prop_map(
            |((width, height), seed, patch, even, holes, unseen)| {
                let random = |x: usize, y: usize, what: u64| {
                    let mixed =
                        seed ^ what << 40 ^ ((y << 20 | x) as u64).wrapping_mul(0x9e37_79b9);
                    mixed.wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 33
                };
                let grey = |x: usize, y: usize| {
                    let is_even = random(x / patch, y / patch, 1) % 100 < even;
                    let noise = if is_even { 2 } else { 60 };
                    100 + (random(x, y, 2) % noise) as u8
                };
                let seen = |i: usize| {
                    unseen.is_none_or(|share| random(i % width, i / width, 3) % 100 >= share)
                };
                let value = |i: usize| {
                    let (x, y) = (i % width, i / width);
                    let base = [0, 100, 2000, -300][random(x / patch, y / patch, 4) as usize % 4];
                    let off = (random(x, y, 5) % 40) as i16 - 20;
                    let hole = random(x, y, 6) % 100 < holes || !seen(i);
                    if hole { INVALID } else { base + 2 * x as i16 - 3 * y as i16 + off }
                };
                let mask = unseen
                    .map(|_| Arc::new(Mask::new(width, (0..width * height).map(seen).collect())));
                let values = (0..width * height).map(value).collect();
                (Image::from_fn(width, height, grey).with_valid_mask(mask), values)
            },
        )
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 1500, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn the_sweeps_give_the_bytes_of_the_reference(
            (left, values) in scene(),
            threshold in 4u32..60,
            strict in prop_oneof![4 => Just(false), 1 => Just(true)],
            threads in 1usize..5,
            with_confidence in any::<bool>(),
        ) {
            let how = Evidence { strict };
            let sure: Vec<u8> = (0..values.len()).map(|i| i as u8).collect();
            let (mut fast, mut plain) = (values.clone(), values.clone());
            let (mut sure_fast, mut sure_plain) = (sure.clone(), sure);
            let asked = with_confidence.then_some(&mut sure_fast[..]);
            filter(&left, threshold, &mut fast, asked, how, threads);
            let asked = with_confidence.then_some(&mut sure_plain);
            evidence::apply(&mut plain, asked, &left, threshold, how);
            prop_assert_eq!(&fast, &plain);
            prop_assert_eq!(sure_fast, sure_plain);
        }
    }
}
