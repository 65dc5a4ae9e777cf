//! Removal of small regions, in three steps.
//!
//! 1. The threads find the regions of strips of rows, as a forest (union-find) of *runs* (`runs.rs`). The
//!    index of a run is its first pixel; its parent is stored there and, for a root, the region's size.
//! 2. One thread joins the regions that meet at the borders of strips.
//! 3. The threads look up the size of each run's region and invalidate small regions.
//!
//! The result depends only on which runs are joined, not on the choice of the roots.

use std::sync::Mutex;

use super::runs::{Runs, marks};
use super::{MapFilter, Pass};
use crate::engine::cpu::memory::{Arena, Block};
use crate::engine::cpu::simd::{SimdKernel, Vector};
use crate::frame::INVALID;
use crate::matching::Speckle;
use crate::memory::{Result, product};
use crate::thread::locked;

pub struct SpeckleFilter {
    speckle: Speckle,
    forest: Forest,
    runs: Runs,
    /// Marks of a row's pixels, per thread.
    marks: Vec<Mutex<Vec<u8>>>,
}

impl SpeckleFilter {
    pub fn new(
        arena: &Arena,
        speckle: Speckle,
        (width, height): (usize, usize),
        threads: usize,
    ) -> Result<Self> {
        let forest = Forest::new(arena, product([width, height]))?;
        let runs = Runs::new(arena, (width, height))?;
        let marks = arena.per_thread(threads, || marks(arena, width))?;
        Ok(Self { speckle, forest, runs, marks })
    }
}

impl MapFilter for SpeckleFilter {
    unsafe fn run(&self, pass: &mut Pass<'_>, map: *mut i16, _: Option<*mut u8>) {
        let (width, height) = pass.size;
        let Self { speckle, forest, runs, .. } = self;
        let strips = &Strips { width, speckle: *speckle, forest, runs, values: map };
        let (simd, strip) = (pass.simd, pass.team.rows_of_piece(height));
        let marks = |thread: usize| locked(&self.marks[thread]);
        // SAFETY: the caller's promise; each thread has strips of its own, or the caller all of them.
        unsafe {
            pass.rows(|thread, rows| {
                let (rows, marks) = ((rows.start, rows.end), &mut *marks(thread));
                simd.vectorize(Step::Find { strips, rows, marks });
            });
            for y in (strip..height).step_by(strip) {
                simd.vectorize(Step::Join { strips, y, marks: &mut marks(0) });
            }
            pass.rows(|_, rows| strips.remove((rows.start, rows.end)));
        }
    }
}

struct Forest {
    /// The parent of the run that begins at a pixel; the run itself for a root.
    parents: Block<u32>,
    /// Size in pixels of a region, stored at its root.
    sizes: Block<u32>,
}

impl Forest {
    /// A forest for maps of `pixels` pixels.
    ///
    /// # Panics
    /// If the pixels cannot be numbered in 32 bits: `PIXELS_MAX` of the engines.
    fn new(arena: &Arena, pixels: u64) -> Result<Self> {
        assert!(u32::try_from(pixels).is_ok(), "{pixels} pixels cannot be numbered in 32 bits");
        Ok(Self { parents: arena.block(pixels)?, sizes: arena.block(pixels)? })
    }
}

// SAFETY: the threads write different rows of the map.
unsafe impl Sync for Strips<'_> {}

struct Strips<'a> {
    width: usize,
    speckle: Speckle,
    forest: &'a Forest,
    runs: &'a Runs,
    values: *mut i16,
}

/// A step that looks at every pixel.
enum Step<'a> {
    /// Step 1, for the rows `rows.0..rows.1`.
    Find { strips: &'a Strips<'a>, rows: (usize, usize), marks: &'a mut [u8] },
    /// Step 2, for a row that begins a strip and the one above it.
    Join { strips: &'a Strips<'a>, y: usize, marks: &'a mut [u8] },
}

impl SimdKernel for Step<'_> {
    /// # Safety
    /// As of [`Vector::splat`]. The rows lie in the map, which no thread changes; their part of the
    /// forest and of the runs is this thread's, or in step 2 all of them, after step 1.
    #[inline(always)]
    unsafe fn run<V: Vector>(self) {
        // SAFETY: the caller's promise; the row above lies in the strip as well.
        unsafe {
            match self {
                Step::Find { strips, rows, marks } => {
                    for y in rows.0..rows.1 {
                        let alike = |a, b| strips.alike(a, b);
                        strips.runs.find::<V>(y, strips.row(y), marks, alike);
                        strips.plant(y);
                        if y > rows.0 {
                            strips.join_rows::<V>(y, marks);
                        }
                    }
                }
                Step::Join { strips, y, marks } => strips.join_rows::<V>(y, marks),
            }
        }
    }
}

impl Strips<'_> {
    /// Makes each run of row `y` a region of its own.
    #[inline(always)]
    unsafe fn plant(&self, y: usize) {
        // SAFETY: the caller's promise.
        unsafe {
            self.runs.for_each(y, |first, end| {
                let run = y * self.width + first;
                *self.forest.parents.ptr().add(run) = run as u32;
                *self.forest.sizes.ptr().add(run) = (end - first) as u32;
            });
        }
    }

    #[inline(always)]
    unsafe fn join_rows<V: Vector>(&self, y: usize, marks: &mut [u8]) {
        let run = |y: usize, first: usize| (y * self.width + first) as u32;
        // SAFETY: the caller's promise.
        unsafe {
            let (rows, alike) = ([self.row(y - 1), self.row(y)], |a, b| self.alike(a, b));
            self.runs.for_each_meeting::<V>(y, rows, marks, alike, |above, here| {
                self.unite(run(y - 1, above), run(y, here));
            });
        }
    }

    /// Step 3, for the rows `rows.0..rows.1`.
    ///
    /// # Safety
    /// The rows are this thread's, and no thread changes the forest and the runs.
    unsafe fn remove(&self, rows: (usize, usize)) {
        for y in rows.0..rows.1 {
            // SAFETY: the caller's promise.
            unsafe {
                let row = self.values.add(y * self.width);
                let row = std::slice::from_raw_parts_mut(row, self.width);
                self.runs.for_each(y, |first, end| {
                    let root = self.root((y * self.width + first) as u32);
                    if *self.forest.sizes.ptr().add(root as usize) < self.speckle.size {
                        row[first..end].fill(INVALID);
                    }
                });
            }
        }
    }

    unsafe fn row(&self, y: usize) -> &[i16] {
        // SAFETY: the row lies in the map.
        unsafe { std::slice::from_raw_parts(self.values.add(y * self.width), self.width) }
    }

    /// Reports whether two neighbouring values are in one region.
    #[inline(always)]
    fn alike(&self, a: i16, b: i16) -> bool {
        (a != INVALID) & (b != INVALID) & (a.abs_diff(b) <= self.speckle.range_16)
    }

    /// Joins two regions.
    unsafe fn unite(&self, a: u32, b: u32) {
        // SAFETY: the caller's promise.
        unsafe {
            let (a, b) = (self.halve_path(a), self.halve_path(b));
            if a == b {
                return;
            }
            let (parents, sizes) = (self.forest.parents.ptr(), self.forest.sizes.ptr());
            let (size_a, size_b) = (*sizes.add(a as usize), *sizes.add(b as usize));
            // The smaller under the larger keeps the paths short.
            let (root, other) = if size_a >= size_b { (a, b) } else { (b, a) };
            *parents.add(other as usize) = root;
            *sizes.add(root as usize) = size_a + size_b;
        }
    }

    /// Returns the root of a run, halving the path for later lookups.
    unsafe fn halve_path(&self, mut run: u32) -> u32 {
        let parents = self.forest.parents.ptr();
        // SAFETY: a run's parent is a run of the same part of the forest.
        unsafe {
            loop {
                let parent = *parents.add(run as usize);
                if parent == run {
                    return run;
                }
                let grandparent = *parents.add(parent as usize);
                *parents.add(run as usize) = grandparent;
                run = grandparent;
            }
        }
    }

    unsafe fn root(&self, mut run: u32) -> u32 {
        // SAFETY: a run's parent is a run.
        unsafe {
            loop {
                let parent = *self.forest.parents.ptr().add(run as usize);
                if parent == run {
                    return run;
                }
                run = parent;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::engine::cpu::SimdChoice;
    use crate::engine::cpu::simd::Simd;
    use crate::matching::filter::speckle::apply as speckles;

    /// Runs the three steps, strip after strip, on one thread, with each of the machine's vectors.
    fn filter(width: usize, values: &mut [i16], speckle: Speckle, count: usize) {
        let before = values.to_vec();
        let mut after = None;
        for choice in SimdChoice::available() {
            values.copy_from_slice(&before);
            filter_with(choice.resolve().unwrap(), width, values, speckle, count);
            let after = after.get_or_insert_with(|| values.to_vec());
            assert_eq!(values, after, "{choice:?}");
        }
    }

    fn filter_with(simd: Simd, width: usize, values: &mut [i16], speckle: Speckle, count: usize) {
        let height = values.len() / width;
        // Data of an earlier map must not matter.
        let forest = Forest::new(&Arena::new(), values.len() as u64).unwrap();
        for i in 0..values.len() {
            // SAFETY: the forest has as many places as the map.
            unsafe { *forest.parents.ptr().add(i) = 0 };
        }
        let runs = Runs::new(&Arena::new(), (width, height)).unwrap();
        runs.fill();
        let mut marks = marks(&Arena::new(), width).unwrap();
        let values = values.as_mut_ptr();
        let strips = Strips { width, speckle, forest: &forest, runs: &runs, values };
        let border = |strip: usize| height * strip / count;
        // SAFETY: there is only one thread; the simd was found on this machine.
        unsafe {
            for strip in 0..count {
                let rows = (border(strip), border(strip + 1));
                simd.vectorize(Step::Find { strips: &strips, rows, marks: &mut marks });
            }
            for y in (1..count).map(border).filter(|&y| y > 0) {
                simd.vectorize(Step::Join { strips: &strips, y, marks: &mut marks });
            }
            for strip in 0..count {
                strips.remove((border(strip), border(strip + 1)));
            }
        }
    }

    fn map() -> impl Strategy<Value = (usize, Vec<i16>)> {
        // Few and close values make large and winding regions.
        let value = prop_oneof![
            1 => Just(INVALID),
            4 => 0i16..4,
            1 => prop_oneof![Just(i16::MAX), Just(i16::MIN + 1), -40i16..40],
        ];
        // Some wider than one and two words.
        let width = prop_oneof![3 => 1usize..24, 1 => 60usize..140];
        (width, 1usize..24).prop_flat_map(move |(width, height)| {
            (Just(width), proptest::collection::vec(value.clone(), width * height))
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn the_forest_gives_the_bytes_of_the_reference(
            (width, values) in map(),
            size in prop_oneof![0u32..9, 9u32..600, Just(u32::MAX)],
            range_16 in prop_oneof![0u16..4, any::<u16>()],
            strips in 1usize..9,
        ) {
            let speckle = Speckle { size, range_16 };
            let (mut fast, mut plain) = (values.clone(), values.clone());
            filter(width, &mut fast, speckle, strips);
            speckles(width, values.len() / width, &mut plain, speckle);
            prop_assert_eq!(fast, plain);
        }
    }

    #[test]
    fn a_comb_is_one_region() {
        // Teeth that meet only in the last row, and each other nowhere else.
        let (width, height) = (41, 40);
        let comb: Vec<i16> = (0..width * height)
            .map(|i| if i % width % 2 == 0 || i / width == height - 1 { 5 } else { INVALID })
            .collect();
        let pixels = comb.iter().filter(|&&value| value != INVALID).count() as u32;
        for strips in [1, 3, 40, 64] {
            let mut kept = comb.clone();
            filter(width, &mut kept, Speckle { size: pixels, range_16: 0 }, strips);
            assert_eq!(kept, comb);
            filter(width, &mut kept, Speckle { size: pixels + 1, range_16: 0 }, strips);
            assert!(kept.iter().all(|&value| value == INVALID));
        }
    }
}
