//! Filling of holes, with the same few steps for every pixel however long the rays are.
//!
//! What the rays of a direction have met is carried from pixel to pixel: whoever knows it of the row before
//! knows it of this one. The map is cut into strips, each of which is gone through twice, in two steps:
//!
//! 1. Downwards, and writes down for holes what the three rays upwards have met. The map is only read, so
//!    that the rays which come in from the rows of other strips can be followed there, pixel by pixel.
//! 2. Upwards, with the rays downwards and those of the row. A hole is filled where it lies: what later
//!    rows need of this one is carried.
//!
//! All pixels of a block of columns that has a hole are computed, as vectors.

mod fronts;
mod gathered;

use std::sync::{Mutex, MutexGuard, PoisonError};

use self::fronts::{BLOCK, Fronts, columns, known};
use self::gathered::Gathered;
use super::pass::Pass;
use crate::engine::cpu::memory::{Block, Plane};
use crate::engine::cpu::simd::{Kernel, Lanes};
use crate::frame::{INVALID, Image};
use crate::matching::filter::fill::{self, Fill, FillRule, Met, RAYS};
use crate::memory::{Refused, product};

/// The filter with its memory.
pub struct FillFilter {
    fill: Fill,
    /// None where only the row is looked at.
    rays: Option<Rays>,
}

/// Memory of the sweeps.
struct Rays {
    /// Of each row what the rays upwards have met, where there are holes: three rows of values, and three of
    /// their weights.
    upward: Block<i16>,
    /// Of each strip.
    fronts: Vec<Mutex<Fronts>>,
}

/// Numbers that are written down for a map.
fn upward_len(width: usize, height: usize) -> u64 {
    product([6, columns(width), height])
}

impl FillFilter {
    pub fn new(
        fill: Fill,
        (width, height): (usize, usize),
        threads: usize,
    ) -> Result<Self, Refused> {
        let rays = || {
            let fronts = (0..threads).map(|_| Ok(Mutex::new(Fronts::new(width)?)));
            let upward = Block::new(upward_len(width, height))?;
            Ok(Rays { upward, fronts: fronts.collect::<Result<_, _>>()? })
        };
        Ok(Self { fill, rays: (fill.rule == FillRule::Rays).then(rays).transpose()? })
    }

    /// [`FillFilter::bytes`] before there is one.
    pub fn bytes_of(fill: Fill, (width, height): (usize, usize), threads: usize) -> u64 {
        match fill.rule {
            FillRule::Row => 0,
            FillRule::Rays => {
                let fronts = Fronts::bytes_of(width).saturating_mul(threads as u64);
                Block::<i16>::bytes_of(upward_len(width, height)).saturating_add(fronts)
            }
        }
    }

    /// Size in bytes.
    pub fn bytes(&self) -> usize {
        let bytes = |rays: &Rays| {
            rays.upward.bytes()
                + rays.fronts.iter().map(|fronts| locked(fronts).bytes()).sum::<usize>()
        };
        self.rays.as_ref().map_or(0, bytes)
    }

    /// Fills the map in place.
    ///
    /// # Safety
    /// `map` is complete and has the pass's size, and nobody else touches it; the simd was found on this machine.
    pub unsafe fn run(&self, pass: &mut Pass<'_>, map: *mut i16) {
        let (size @ (_, height), left, simd) = (pass.size, pass.left, pass.simd);
        let (map, reach) = (&Plane(map), self.fill.reach);
        let share = move |rows| Share { size, rows, left, map };
        let Some(rays) = &self.rays else {
            // SAFETY: the caller's promise; the rows are a thread's own.
            pass.rows(|_, rows| unsafe { share((rows.start, rows.end)).along_rows(reach) });
            return;
        };
        let (strips, upward) = (rays.fronts.len(), Plane(rays.upward.ptr()));
        let border = |strip: usize| height * strip / strips;
        let share = |strip| share((border(strip), border(strip + 1)));
        // SAFETY: the caller's promise; in the first step nobody writes the map, in the second every thread writes rows of
        // its strip and reads no others; what is written down of the strips there is room for.
        unsafe {
            pass.team.share(strips, &|_, strips| {
                for strip in strips {
                    let (share, fronts) = (&share(strip), &mut *locked(&rays.fronts[strip]));
                    simd.vectorize(Down { share, reach, upward: upward.at(0), fronts });
                }
            });
            pass.team.share(strips, &|_, strips| {
                for strip in strips {
                    let (share, fronts) = (&share(strip), &mut *locked(&rays.fronts[strip]));
                    simd.vectorize(Up { share, reach, upward: upward.at(0), fronts });
                }
            });
        }
    }
}

fn locked(fronts: &Mutex<Fronts>) -> MutexGuard<'_, Fronts> {
    fronts.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A strip of a map.
struct Share<'a> {
    /// Width and height of the map.
    size: (usize, usize),
    /// First row, and the row behind the last.
    rows: (usize, usize),
    /// Picture that the map belongs to.
    left: &'a Image,
    map: &'a Plane<i16>,
}

impl<'a> Share<'a> {
    /// A row of the strip.
    ///
    /// # Safety
    /// The row lies in the map, and nobody else has it.
    #[inline(always)]
    unsafe fn row(&self, y: usize) -> &'a mut [i16] {
        // SAFETY: the caller's promise.
        unsafe { self.map.part(y * self.size.0..(y + 1) * self.size.0) }
    }

    /// Fills runs of holes from their two ends.
    ///
    /// # Safety
    /// As [`Share::row`] of all its rows.
    unsafe fn along_rows(&self, reach: u16) {
        let width = self.size.0;
        for y in self.rows.0..self.rows.1 {
            // SAFETY: the caller's promise.
            let values = unsafe { self.row(y) };
            let seen = self.left.valid_mask().map(|mask| mask.row(y));
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
    }
}

/// Step 1.
struct Down<'a> {
    share: &'a Share<'a>,
    reach: u16,
    /// [`upward_len`] numbers.
    upward: *mut i16,
    fronts: &'a mut Fronts,
}

impl Kernel for Down<'_> {
    #[inline(always)]
    unsafe fn run<V: Lanes>(self) {
        let Down { share, reach, upward, fronts } = self;
        let (width, height) = share.size;
        // SAFETY: nobody writes the map; what is written down of the strip's rows is this thread's.
        unsafe {
            let map = std::slice::from_raw_parts(share.map.at(0).cast_const(), width * height);
            fronts.begin(map, share.left, share.rows.0.checked_sub(1), &RAYS[..3], reach);
            for y in share.rows.0..share.rows.1 {
                let row = &map[y * width..][..width];
                fronts.go_on(row, share.left, y, reach);
                for x in (0..width).step_by(BLOCK) {
                    if !fronts.has_hole(x) {
                        continue;
                    }
                    for (k, front) in fronts.here.iter().enumerate() {
                        let [values, weights] = written(upward, (x, y), width, k);
                        values.write(front.block(x));
                        weights.write(front.weights(x));
                    }
                }
            }
            let below = Some(share.rows.1).filter(|&y| y < height);
            fronts.begin(map, share.left, below, &RAYS[5..], reach);
        }
    }
}

/// Where the values of ray `k` of the block at (x, y), and their weights, are written down.
///
/// # Safety
/// `upward` has [`upward_len`] numbers, and there is such a block.
#[inline(always)]
unsafe fn written(
    upward: *mut i16,
    (x, y): (usize, usize),
    width: usize,
    k: usize,
) -> [*mut [i16; BLOCK]; 2] {
    // SAFETY: the caller's promise.
    [k, 3 + k].map(|row| unsafe { upward.add((6 * y + row) * columns(width) + x).cast() })
}

/// Step 2.
struct Up<'a> {
    share: &'a Share<'a>,
    reach: u16,
    /// What step 1 has written down.
    upward: *mut i16,
    fronts: &'a mut Fronts,
}

impl Kernel for Up<'_> {
    #[inline(always)]
    unsafe fn run<V: Lanes>(self) {
        let Up { share, reach, upward, fronts } = self;
        let width = share.size.0;
        for y in (share.rows.0..share.rows.1).rev() {
            // SAFETY: the rows are this thread's, and step 1 has gone over all blocks that have a hole.
            unsafe {
                let row = share.row(y);
                fronts.go_on(row, share.left, y, reach);
                fronts.follow_row(row, reach);
                for x in (0..width).step_by(BLOCK) {
                    if !fronts.has_hole(x) {
                        continue;
                    }
                    let gathered = Gathered::new(fronts, x, |k| {
                        written(upward, (x, y), width, k).map(|block| block.read())
                    });
                    let medians = gathered.medians::<V>();
                    let last = width.min(x + BLOCK);
                    take_holes(&mut row[x..last], &fronts.ends[x..last], &medians);
                }
            }
        }
    }
}

/// Takes the values of holes only, none of whose bits `ends` has.
#[inline(always)]
fn take_holes(row: &mut [i16], ends: &[i16], values: &[i16]) {
    for ((to, &ends), &value) in row.iter_mut().zip(ends).zip(values) {
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
    use crate::frame::Mask;

    /// Filters on so many threads; the memory has seen another map before.
    fn filter(left: &Image, values: &mut [i16], fill: Fill, threads: usize) {
        let size = (left.width(), left.height());
        let filter = FillFilter::new(fill, size, threads).unwrap();
        let mut team = Team::new(threads).unwrap();
        let mut other: Vec<i16> = values.iter().rev().copied().collect();
        for map in [&mut other[..], values] {
            let mut pass = Pass { size, left, simd: Simd::Portable, team: &mut team };
            // SAFETY: the map has this size.
            unsafe { filter.run(&mut pass, map.as_mut_ptr()) };
        }
    }

    /// Maps with holes of many sizes: a value or a hole for each patch, and single ones of either.
    fn scene() -> impl Strategy<Value = (Image, Vec<i16>)> {
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
                (Image::from_fn(width, height, grey).with_valid_mask(mask), values)
            },
        )
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn the_sweeps_give_the_bytes_of_the_reference(
            (left, values) in scene(),
            rule in prop_oneof![1 => Just(FillRule::Row), 4 => Just(FillRule::Rays)],
            reach in prop_oneof![1u16..6, 6u16..40, Just(fill::REACH_MAX)],
            threads in 1usize..5,
        ) {
            let fill = Fill { rule, reach };
            let (mut fast, mut plain) = (values.clone(), values.clone());
            filter(&left, &mut fast, fill, threads);
            fill::apply(&mut plain, &left, fill);
            prop_assert_eq!(&fast, &plain);
            for (&before, &after) in values.iter().zip(&fast) {
                prop_assert!(before == INVALID || before == after, "a known pixel changed");
            }
        }
    }
}
