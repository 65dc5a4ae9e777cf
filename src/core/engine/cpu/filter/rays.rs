//! Rays from all holes of a map at once, at constant cost per pixel for any length of the rays.
//!
//! For each direction, the nearest known pixel is carried from row to row: the result for one row follows
//! from the previous row's. The map is divided into strips, each processed in two sweeps:
//!
//! 1. Downwards: stores the results of the three upward rays for holes. The map is only read, so that rays
//!    from the rows of other strips can be followed there, pixel by pixel.
//! 2. Upwards, with the downward rays and the rays of the row. The results of a block are given to the
//!    [`Rule`], which may change the row, because later rows only use the carried values.

mod fronts;

use std::sync::Mutex;

pub use self::fronts::{BLOCK, Block, Front, known};
use self::fronts::{Fronts, columns};
use super::Pass;
use crate::engine::cpu::memory::{self, Arena, Plane};
use crate::engine::cpu::simd::{SimdKernel, Vector};
use crate::frame::Image;
use crate::matching::filter::rays::{LEFT, RAYS};
use crate::memory::{Result, product};
use crate::thread::locked;

/// A filter that uses rays.
pub trait Rule: Sync {
    const EDGES: bool;

    /// Reports whether the block at (x, y) needs rays, alike in both sweeps; all bits set in `ends` end rays.
    fn wants(&self, at: (usize, usize), ends: &[i16]) -> bool;

    /// Returns the number to keep with each value found by the rays of the block at column `x`.
    fn measure(front: &Front, x: usize) -> Block;

    /// Processes the rays of the block at (x, y), `row` in the map; `ends` as in [`Rule::wants`].
    ///
    /// # Safety
    /// The machine has the instructions of `V`; and the rule's own conditions.
    unsafe fn take<V: Vector>(
        &self,
        at: (usize, usize),
        row: &mut [i16],
        ends: &[i16],
        around: &Around,
    );
}

/// Ends of the eight rays of each pixel of a block, in the order of [`RAYS`].
#[derive(Clone)]
pub struct Around {
    /// Values, or `INVALID`.
    pub values: [Block; 8],
    pub measures: [Block; 8],
    /// Steps to the end of the rightward ray.
    pub right: Block,
}

impl Around {
    /// Collects the block at column `x` from `fronts`, and the results of upward ray `k` from `upward`.
    #[inline(always)]
    fn new<R: Rule>(fronts: &Fronts, x: usize, upward: impl Fn(usize) -> [Block; 2]) -> Self {
        let (mut values, mut measures) = ([[0; BLOCK]; 8], [[0; BLOCK]; 8]);
        for k in 0..LEFT {
            [values[k], measures[k]] = upward(k);
        }
        for (k, front) in (LEFT..).zip(fronts.across.iter().chain(&fronts.here)) {
            (values[k], measures[k]) = (front.block(x), R::measure(front, x));
        }
        Self { values, measures, right: fronts.across[1].steps(x) }
    }
}

pub struct Sweeps {
    /// Results of the upward rays for holes: three rows of values and three of measures per row of the map.
    upward: memory::Block<i16>,
    /// Per strip.
    fronts: Vec<Mutex<Fronts>>,
}

impl Sweeps {
    pub fn new(arena: &Arena, (width, height): (usize, usize), threads: usize) -> Result<Self> {
        let upward = arena.block(product([6, columns(width), height]))?;
        Ok(Self { upward, fronts: arena.per_thread(threads, || Fronts::new(arena, width))? })
    }
    /// Follows the rays of the holes of `map`, at most `reach` steps, and applies this rule.
    ///
    /// # Safety
    /// `map` is complete and has the pass's size, and no other thread accesses it; the simd was found on this
    /// machine; and the rule's own conditions.
    pub unsafe fn run<R: Rule>(&self, pass: &mut Pass<'_>, map: *mut i16, reach: u16, rule: &R) {
        let (size @ (_, height), left, simd) = (pass.size, pass.left, pass.simd);
        let (strips, upward) = (self.fronts.len(), Plane(self.upward.ptr()));
        let border = |strip: usize| height * strip / strips;
        let map = &Plane(map);
        let share = |strip| Share {
            size,
            rows: (border(strip), border(strip + 1)),
            left,
            map,
            reach,
            rule,
        };
        // SAFETY: the caller's promise; in the first sweep no thread writes the map, in the second every
        // thread accesses only rows of its strip; `upward` has room for all strips.
        unsafe {
            pass.team.share(strips, &|_, strips| {
                for strip in strips {
                    let (share, fronts) = (&share(strip), &mut *locked(&self.fronts[strip]));
                    simd.vectorize(Down { share, upward: upward.at(0), fronts });
                }
            });
            pass.team.share(strips, &|_, strips| {
                for strip in strips {
                    let (share, fronts) = (&share(strip), &mut *locked(&self.fronts[strip]));
                    simd.vectorize(Up { share, upward: upward.at(0), fronts });
                }
            });
        }
    }
}

/// A strip of a map.
struct Share<'a, R> {
    size: (usize, usize),
    rows: (usize, usize),
    left: &'a Image,
    map: &'a Plane<i16>,
    reach: u16,
    rule: &'a R,
}

struct Down<'a, R> {
    share: &'a Share<'a, R>,
    upward: *mut i16,
    fronts: &'a mut Fronts,
}

impl<R: Rule> SimdKernel for Down<'_, R> {
    #[inline(always)]
    unsafe fn run<V: Vector>(self) {
        let Down { share, upward, fronts } = self;
        let ((width, height), left, reach) = (share.size, share.left, share.reach);
        // SAFETY: no thread writes the map; the stored rows of the strip are this thread's.
        unsafe {
            let map = std::slice::from_raw_parts(share.map.at(0).cast_const(), width * height);
            fronts.begin(map, left, share.rows.0.checked_sub(1), &RAYS[..3], reach);
            for y in share.rows.0..share.rows.1 {
                fronts.go_on(&map[y * width..][..width], left, y, reach, R::EDGES);
                for x in (0..width).step_by(BLOCK) {
                    let last = width.min(x + BLOCK);
                    if !share.rule.wants((x, y), &fronts.ends[x..last]) {
                        continue;
                    }
                    for (k, front) in fronts.here.iter().enumerate() {
                        let [values, measures] = written(upward, (x, y), width, k);
                        values.write(front.block(x));
                        measures.write(R::measure(front, x));
                    }
                }
            }
            let below = Some(share.rows.1).filter(|&y| y < height);
            fronts.begin(map, left, below, &RAYS[5..], reach);
        }
    }
}

/// Addresses of the values and of the measures of ray `k` of the block at (x, y).
///
/// # Safety
/// `upward` has [`upward_len`] numbers, and the block exists.
#[inline(always)]
unsafe fn written(
    upward: *mut i16,
    (x, y): (usize, usize),
    width: usize,
    k: usize,
) -> [*mut Block; 2] {
    // SAFETY: the caller's promise.
    [k, 3 + k].map(|row| unsafe { upward.add((6 * y + row) * columns(width) + x).cast() })
}

struct Up<'a, R> {
    share: &'a Share<'a, R>,
    upward: *mut i16,
    fronts: &'a mut Fronts,
}

impl<R: Rule> SimdKernel for Up<'_, R> {
    #[inline(always)]
    unsafe fn run<V: Vector>(self) {
        let Up { share, upward, fronts } = self;
        let (width, reach) = (share.size.0, share.reach);
        for y in (share.rows.0..share.rows.1).rev() {
            // SAFETY: the rows are this thread's, and sweep 1 has stored all requested blocks.
            unsafe {
                let row = share.map.part(y * width..(y + 1) * width);
                fronts.go_on(row, share.left, y, reach, R::EDGES);
                fronts.follow_row(row, reach);
                for x in (0..width).step_by(BLOCK) {
                    let last = width.min(x + BLOCK);
                    if !share.rule.wants((x, y), &fronts.ends[x..last]) {
                        continue;
                    }
                    let around = Around::new::<R>(fronts, x, |k| {
                        written(upward, (x, y), width, k).map(|block| block.read())
                    });
                    let ends = &fronts.ends[x..last];
                    share.rule.take::<V>((x, y), &mut row[x..last], ends, &around);
                }
            }
        }
    }
}
