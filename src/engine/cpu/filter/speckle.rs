//! Removal of small regions, in three steps with a barrier after each.
//!
//! 1. Every thread finds the regions of its strip of rows, as a forest (union-find) of *runs*: the
//!    longest pieces of a row whose neighbouring values are alike. A run is named by its first pixel,
//!    where its parent and, for a root, the region's size are kept.
//! 2. One thread joins the regions that meet where two strips do.
//! 3. Every thread looks up the size of each of its runs' regions and invalidates what is too small.
//!
//! The result does not depend on which run of a region became its root, only on which are joined.

use std::sync::{Mutex, PoisonError};

use super::pass::Pass;
use crate::engine::cpu::memory::Block;
use crate::frame::INVALID;
use crate::matching::Speckle;
use crate::memory::{Refused, filled, product};

/// The speckle filter with its memory.
pub struct SpeckleFilter {
    speckle: Speckle,
    forest: Forest,
    /// Of each thread.
    labels: Vec<Mutex<Labels>>,
}

impl SpeckleFilter {
    pub fn new(
        speckle: Speckle,
        (width, height): (usize, usize),
        threads: usize,
    ) -> Result<Self, Refused> {
        let labels = (0..threads).map(|_| Ok(Mutex::new(Labels::new(width)?)));
        let forest = Forest::new(product([width, height]))?;
        Ok(Self { speckle, forest, labels: labels.collect::<Result<_, _>>()? })
    }

    /// [`SpeckleFilter::bytes`] before there is one.
    pub fn bytes_of((width, height): (usize, usize), threads: usize) -> u64 {
        let labels = Labels::bytes_of(width).saturating_mul(threads as u64);
        Forest::bytes_of(product([width, height])).saturating_add(labels)
    }

    /// Size in bytes.
    pub fn bytes(&self) -> usize {
        let labels = self.labels.iter();
        let labels = labels.map(|l| l.lock().unwrap_or_else(PoisonError::into_inner).bytes());
        self.forest.bytes() + labels.sum::<usize>()
    }

    /// This thread's share, in place.
    ///
    /// # Safety
    /// `map` is complete and has the pass's size; all threads make the same pass, and nobody else touches
    /// the map.
    pub unsafe fn run(&self, pass: &mut Pass<'_>, map: *mut i16) {
        let (width, rows) = (pass.size.0, pass.rows());
        let strips = Strips { width, speckle: self.speckle, forest: &self.forest, values: map };
        let labels = &mut *self.labels[pass.thread].lock().unwrap_or_else(PoisonError::into_inner);
        // SAFETY: the caller's promise; between two waits every thread has rows of its own, or the first
        // thread all of them.
        unsafe {
            strips.find(rows, labels);
            (pass.wait)();
            if pass.thread == 0 {
                for y in (1..pass.threads).map(|thread| pass.border(thread)).filter(|&y| y > 0) {
                    strips.join(y, labels);
                }
            }
            (pass.wait)();
            strips.remove(rows);
        }
    }
}

/// The forest of runs, for all threads.
struct Forest {
    /// The parent of the run that begins at a pixel; the run itself for a root.
    parents: Block<u32>,
    /// Pixels of the region whose root begins at a pixel.
    sizes: Block<u32>,
}

impl Forest {
    /// A forest for maps of `pixels` pixels.
    ///
    /// # Errors
    /// Where there is no memory for it.
    ///
    /// # Panics
    /// Where the pixels cannot be numbered in 32 bits: `PIXELS_MAX` of the engines.
    fn new(pixels: u64) -> Result<Self, Refused> {
        assert!(u32::try_from(pixels).is_ok(), "{pixels} pixels cannot be numbered in 32 bits");
        Ok(Self { parents: Block::new(pixels)?, sizes: Block::new(pixels)? })
    }

    /// [`Forest::bytes`] before there is one.
    fn bytes_of(pixels: u64) -> u64 {
        Block::<u32>::bytes_of(pixels).saturating_mul(2)
    }

    /// Size in bytes.
    fn bytes(&self) -> usize {
        self.parents.bytes() + self.sizes.bytes()
    }
}

/// The runs of two neighbouring rows: the run of every pixel. One thread's own.
struct Labels {
    above: Vec<u32>,
    here: Vec<u32>,
}

impl Labels {
    /// Room for rows of `width` pixels.
    ///
    /// # Errors
    /// Where there is no memory for it.
    fn new(width: usize) -> Result<Self, Refused> {
        Ok(Self { above: filled(width, 0)?, here: filled(width, 0)? })
    }

    /// [`Labels::bytes`] before there are any.
    fn bytes_of(width: usize) -> u64 {
        product([2 * size_of::<u32>(), width])
    }

    /// Size in bytes.
    fn bytes(&self) -> usize {
        size_of_val(&self.above[..]) + size_of_val(&self.here[..])
    }
}

/// Removal of speckles from one map, strip by strip.
struct Strips<'a> {
    /// Width of the map.
    width: usize,
    /// What is too small.
    speckle: Speckle,
    /// The forest.
    forest: &'a Forest,
    /// The map, row by row.
    values: *mut i16,
}

impl Strips<'_> {
    /// Step 1, for the rows from `rows.0` up to but not including `rows.1`.
    ///
    /// # Safety
    /// The rows lie in the map, which no thread changes, and their part of the forest is this
    /// thread's.
    unsafe fn find(&self, rows: (usize, usize), labels: &mut Labels) {
        for y in rows.0..rows.1 {
            std::mem::swap(&mut labels.above, &mut labels.here);
            // SAFETY: the caller's promise; the row above lies in the strip as well.
            unsafe {
                let row = self.row(y);
                self.for_each_run(row, |first, end| {
                    let run = y * self.width + first;
                    *self.forest.parents.ptr().add(run) = run as u32;
                    *self.forest.sizes.ptr().add(run) = (end - first) as u32;
                    labels.here[first..end].fill(run as u32);
                });
                if y > rows.0 {
                    self.join_rows(self.row(y - 1), row, labels);
                }
            }
        }
    }

    /// Step 2, for a row that begins a strip and the one above it.
    ///
    /// # Safety
    /// Both rows lie in the map, which no thread changes; step 1 is done, and the whole forest is
    /// this thread's.
    unsafe fn join(&self, y: usize, labels: &mut Labels) {
        // SAFETY: the caller's promise.
        unsafe {
            let (above, here) = (self.row(y - 1), self.row(y));
            self.for_each_run(above, |first, end| {
                labels.above[first..end].fill(((y - 1) * self.width + first) as u32);
            });
            self.for_each_run(here, |first, end| {
                labels.here[first..end].fill((y * self.width + first) as u32);
            });
            self.join_rows(above, here, labels);
        }
    }

    /// Step 3, for the rows from `rows.0` up to but not including `rows.1`.
    ///
    /// # Safety
    /// The rows are this thread's, and no thread changes the forest.
    unsafe fn remove(&self, rows: (usize, usize)) {
        for y in rows.0..rows.1 {
            // SAFETY: the caller's promise; a run is changed after the next one's beginning was found,
            // and nothing before it is read again.
            unsafe {
                let row =
                    std::slice::from_raw_parts_mut(self.values.add(y * self.width), self.width);
                let mut first = 0;
                while let Some((start, end)) = self.next_run(row, first) {
                    let root = self.root((y * self.width + start) as u32);
                    if *self.forest.sizes.ptr().add(root as usize) < self.speckle.size {
                        row[start..end].fill(INVALID);
                    }
                    first = end;
                }
            }
        }
    }

    /// A row of the map.
    unsafe fn row(&self, y: usize) -> &[i16] {
        // SAFETY: the row lies in the map.
        unsafe { std::slice::from_raw_parts(self.values.add(y * self.width), self.width) }
    }

    /// Whether two valid values belong to one region where they are neighbours.
    #[inline(always)]
    fn alike(&self, a: i16, b: i16) -> bool {
        a.abs_diff(b) <= self.speckle.range_16
    }

    /// The first run at or after `from`: its first column and the one behind its last.
    #[inline(always)]
    fn next_run(&self, row: &[i16], from: usize) -> Option<(usize, usize)> {
        let start = from + row[from..].iter().position(|&value| value != INVALID)?;
        let mut end = start + 1;
        while end < row.len() && row[end] != INVALID && self.alike(row[end - 1], row[end]) {
            end += 1;
        }
        Some((start, end))
    }

    #[inline(always)]
    fn for_each_run(&self, row: &[i16], mut use_run: impl FnMut(usize, usize)) {
        let mut from = 0;
        while let Some((start, end)) = self.next_run(row, from) {
            use_run(start, end);
            from = end;
        }
    }

    /// Joins the regions that meet between two rows.
    unsafe fn join_rows(&self, above: &[i16], here: &[i16], labels: &Labels) {
        let values = above.iter().zip(here);
        let runs = labels.above.iter().zip(&labels.here);
        // Two runs lie side by side for many columns, and need to be joined once.
        let mut joined = (u32::MAX, u32::MAX);
        for ((&up, &value), (&run_above, &run)) in values.zip(runs) {
            // The labels of invalid pixels are left over from earlier rows.
            let meet = up != INVALID && value != INVALID && self.alike(up, value);
            if meet && joined != (run_above, run) {
                joined = (run_above, run);
                // SAFETY: both runs lie in the caller's part of the forest.
                unsafe { self.unite(run_above, run) }
            }
        }
    }

    /// Makes one region of two.
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

    /// The root of a run, shortening the way for the next time.
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

    /// The root of a run.
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
    use crate::matching::filter::speckle::apply as speckles;

    /// The three steps, strip after strip, on one thread.
    fn filter(width: usize, values: &mut [i16], speckle: Speckle, strips: usize) {
        let height = values.len() / width;
        // What an earlier map left behind must not show.
        let forest = Forest::new(values.len() as u64).unwrap();
        for i in 0..values.len() {
            // SAFETY: the forest has as many places as the map.
            unsafe { *forest.parents.ptr().add(i) = 0 };
        }
        let mut labels = Labels::new(width).unwrap();
        labels.above.fill(7);
        let filter = Strips { width, speckle, forest: &forest, values: values.as_mut_ptr() };
        let border = |strip: usize| height * strip / strips;
        // SAFETY: one thread has everything to itself.
        unsafe {
            for strip in 0..strips {
                filter.find((border(strip), border(strip + 1)), &mut labels);
            }
            for y in (1..strips).map(border).filter(|&y| y > 0) {
                filter.join(y, &mut labels);
            }
            for strip in 0..strips {
                filter.remove((border(strip), border(strip + 1)));
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
        (1usize..24, 1usize..24).prop_flat_map(move |(width, height)| {
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
