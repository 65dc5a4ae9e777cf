//! Rays from all holes of a map at once, with the same few steps for every pixel however long they
//! are.
//!
//! The pixel that a ray of a direction has met is carried from row to row: whoever knows it of the
//! row before knows it of this one. The map is cut into strips, each of which is gone through
//! twice, in two steps:
//!
//! 1. Downwards, and writes down for holes what the three rays upwards have met. The map is only
//!    read, so that the rays which come in from the rows of other strips can be followed there,
//!    pixel by pixel.
//! 2. Upwards, with the rays downwards and those of the row. What the rays of a block have met is
//!    given to the [`Rule`], which may change the row: what later rows need of this one is carried.

mod fronts;

use std::sync::Mutex;

pub use self::fronts::{BLOCK, Block, Front, known};
use self::fronts::{Fronts, columns};
use super::pass::Pass;
use crate::core::frame::Image;
use crate::core::memory::{Refused, product};
use crate::core::thread::locked;
use crate::engine::cpu::memory::{self, Arena, Plane};
use crate::engine::cpu::simd::{SimdKernel, Vector};
use crate::matching::filter::rays::{LEFT, RAYS};

/// A filter that goes by rays.
pub trait Rule: Sync {
    /// Whether the edges on the way are asked for.
    const EDGES: bool;

    /// Reports whether anything is asked of the block at (x, y), where rays end at the pixels all
    /// of whose bits `ends` has. The answer is the same in both steps.
    fn wants(&self, at: (usize, usize), ends: &[i16]) -> bool;

    /// The number that is kept with the values that rays have met, of the block at column `x`.
    fn measure(front: &Front, x: usize) -> Block;

    /// Takes what the rays of the block at (x, y) have met. `row` is the part of the map, `ends` as
    /// of [`Rule::wants`].
    ///
    /// # Safety
    /// The machine has the instructions of `V`; and what the rule asks for.
    unsafe fn take<V: Vector>(
        &self,
        at: (usize, usize),
        row: &mut [i16],
        ends: &[i16],
        around: &Around,
    );
}

/// Pixels that the eight rays of each pixel of a block have met, in the order of [`RAYS`].
pub struct Around {
    /// Values, or none.
    pub values: [Block; 8],
    /// Numbers of [`Rule::measure`].
    pub measures: [Block; 8],
    /// Steps to what the ray to the right has met.
    pub right: Block,
}

impl Around {
    /// Collects from `fronts` the block at column `x`, and of ray `k` upwards the values and
    /// measures that were written down.
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

/// Memory of the sweeps.
pub struct Sweeps {
    /// Of each row what the rays upwards have met, where there are holes: three rows of values, and
    /// three of their measures.
    upward: memory::Block<i16>,
    /// Of each strip.
    fronts: Vec<Mutex<Fronts>>,
}

impl Sweeps {
    pub fn new(
        arena: &Arena,
        (width, height): (usize, usize),
        threads: usize,
    ) -> Result<Self, Refused> {
        let upward = arena.block(product([6, columns(width), height]))?;
        Ok(Self { upward, fronts: arena.per_thread(threads, || Fronts::new(arena, width))? })
    }

    /// Follows the rays of the holes of `map`, at most `reach` steps, by this rule.
    ///
    /// # Safety
    /// `map` is complete and has the pass's size, and nobody else touches it; the simd was found on
    /// this machine; and what the rule asks for.
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
        // SAFETY: the caller's promise; in the first step nobody writes the map, in the second
        // every thread writes rows of its strip and reads no others; what is written down of the
        // strips there is room for.
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
    /// Width and height of the map.
    size: (usize, usize),
    /// First row, and the row behind the last.
    rows: (usize, usize),
    /// Image that the map belongs to.
    left: &'a Image,
    map: &'a Plane<i16>,
    reach: u16,
    rule: &'a R,
}

/// Step 1.
struct Down<'a, R> {
    share: &'a Share<'a, R>,
    /// [`upward_len`] numbers.
    upward: *mut i16,
    fronts: &'a mut Fronts,
}

impl<R: Rule> SimdKernel for Down<'_, R> {
    #[inline(always)]
    unsafe fn run<V: Vector>(self) {
        let Down { share, upward, fronts } = self;
        let ((width, height), left, reach) = (share.size, share.left, share.reach);
        // SAFETY: nobody writes the map; what is written down of the strip's rows is this thread's.
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

/// Places of the values of ray `k` of the block at (x, y), and of their measures.
///
/// # Safety
/// `upward` has [`upward_len`] numbers, and there is such a block.
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

/// Step 2.
struct Up<'a, R> {
    share: &'a Share<'a, R>,
    /// Values and measures from step 1.
    upward: *mut i16,
    fronts: &'a mut Fronts,
}

impl<R: Rule> SimdKernel for Up<'_, R> {
    #[inline(always)]
    unsafe fn run<V: Vector>(self) {
        let Up { share, upward, fronts } = self;
        let (width, reach) = (share.size.0, share.reach);
        for y in (share.rows.0..share.rows.1).rev() {
            // SAFETY: the rows are this thread's, and step 1 has gone over all blocks that are
            // wanted.
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
