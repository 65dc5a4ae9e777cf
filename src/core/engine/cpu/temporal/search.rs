//! Estimation of the shifts of remembered images relative to the newest.

use std::sync::Mutex;

use super::rows::{Around, Newest, OF_REFERENCE, ReferenceRow, ShiftRow};
use crate::engine::cpu::memory::{Arena, Block};
use crate::engine::cpu::prepare::{Rows, half, picture, share};
use crate::engine::cpu::simd::Simd;
use crate::engine::cpu::team::Team;
use crate::engine::cpu::texture::{PixelRows, SmoothedRow};
use crate::frame::Image;
use crate::matching::temporal::layout::{Header, Layout};
use crate::matching::temporal::shifts::{self, OfBoth, OfReference, SUMS, Shift, inner};
use crate::memory::{Result, product};
use crate::thread::locked;

pub struct Search {
    layout: Layout,
    /// Sizes of the levels: half, a quarter, and so on.
    sizes: Vec<(usize, usize)>,
    /// Both views of each level, then the previous images; at half the size, the state has the latter.
    levels: Vec<[Block<u8>; 4]>,
    /// A half-size image before smoothing.
    between: Block<u8>,
    threads: Vec<Mutex<ThreadScratch>>,
}

struct ThreadScratch {
    /// The sums of the equations, over the reference and with each slot.
    of_reference: OfReference,
    of_slots: Vec<[i64; SUMS]>,
    reference: Vec<i16>,
    sums: Vec<u16>,
}

/// Size of an image of a level: both views, then the previous images.
fn pixels_of(level: usize, number: usize, (width, height): (usize, usize)) -> u64 {
    if level == 0 && number >= 2 { 0 } else { product([width, height]) }
}

impl Search {
    pub fn new(arena: &Arena, layout: Layout, threads: usize) -> Result<Self> {
        let sizes = layout.levels();
        let level = |(level, &size): (usize, &(usize, usize))| {
            let block = |number| arena.block(pixels_of(level, number, size));
            Ok([block(0)?, block(1)?, block(2)?, block(3)?])
        };
        let of_thread = || {
            Ok(ThreadScratch {
                of_reference: OfReference::default(),
                of_slots: arena.filled(layout.history, [0; SUMS])?,
                reference: arena.filled(OF_REFERENCE * layout.half_size.0, 0)?,
                sums: arena.filled(layout.half_size.0, 0)?,
            })
        };
        Ok(Self {
            levels: sizes.iter().enumerate().map(level).collect::<Result<_>>()?,
            between: arena.block(product([layout.half_size.0, layout.half_size.1]))?,
            threads: arena.per_thread(threads, of_thread)?,
            sizes,
            layout,
        })
    }

    /// Returns the shifts of all remembered images relative to the newest, in the order of the slots.
    pub fn run(
        &self,
        team: &mut Team,
        simd: Simd,
        eyes: [&Image; 2],
        state: &[i32],
        header: &Header,
    ) -> Vec<Shift> {
        if header.count == 0 {
            return Vec::new();
        }
        self.make_levels(team, simd, eyes, state, header);
        self.shifts_of_all(team, simd, state, header)
    }

    fn make_levels(
        &self,
        team: &mut Team,
        simd: Simd,
        eyes: [&Image; 2],
        state: &[i32],
        header: &Header,
    ) {
        let sizes = &self.sizes;
        let pixels = |level: usize, number: usize| {
            let (width, height) = sizes[level];
            // SAFETY: the block has a byte a pixel, and a level is written before it is read.
            unsafe { self.levels[level][number].all_mut(width * height) }
        };
        for (eye, image) in eyes.into_iter().enumerate() {
            self.smaller(team, simd, picture(image), pixels(0, eye));
            let remembered = self.layout.half(state, eye, header.newest);
            for level in 1..sizes.len() {
                for number in [eye, 2 + eye] {
                    let finer = match (level, number) {
                        (1, 2..) => remembered,
                        _ => pixels(level - 1, number),
                    };
                    let finer = PixelRows { pixels: finer, size: sizes[level - 1] };
                    self.smaller(team, simd, finer, pixels(level, number));
                }
            }
        }
    }

    fn level(&self, level: usize, number: usize, size: (usize, usize)) -> PixelRows<'_> {
        // SAFETY: the block has a byte per pixel, and no thread writes it now.
        let pixels = unsafe { self.levels[level][number].all(size.0 * size.1) };
        PixelRows { pixels, size }
    }

    /// Estimates the shift of the previous image, from coarse to fine.
    fn look_for_newest(&self, team: &mut Team, simd: Simd, header: &Header) -> Shift {
        let mut shift = Shift::NONE;
        for (number, &size) in self.sizes.iter().enumerate().skip(1).rev() {
            let begin = shift.twice();
            let references = [0, 1].map(|eye| self.level(number, eye, size));
            let others = |eye: usize, _| self.level(number, 2 + eye, size).pixels;
            let search = Wanted { references, size, begins: &[begin], ages: None, newest: None };
            shift = self.search(team, simd, &search, &others, header)[0];
        }
        shift.twice().twice()
    }

    /// Estimates the shift of each remembered image relative to the newest.
    fn shifts_of_all(
        &self,
        team: &mut Team,
        simd: Simd,
        state: &[i32],
        header: &Header,
    ) -> Vec<Shift> {
        let newest = self.look_for_newest(team, simd, header);
        let size = self.layout.half_size;
        let references = [0, 1].map(|eye| self.level(0, eye, size));
        let begins: Vec<_> =
            (0..header.count).map(|slot| header.begin_of(slot, newest).halved()).collect();
        let layout = &self.layout;
        let others = |eye: usize, slot: usize| layout.half(state, eye, slot);
        let ages = Some([0, 1].map(|eye| layout.ages(state, eye)));
        let newest = Some(header.newest);
        let search = Wanted { references, size, begins: &begins, ages, newest };
        let found = self.search(team, simd, &search, &others, header);
        found.into_iter().map(Shift::twice).collect()
    }

    /// Estimates one shift per initial value.
    fn search<'a>(
        &self,
        team: &mut Team,
        simd: Simd,
        search: &Wanted<'_>,
        others: &(dyn Fn(usize, usize) -> &'a [u8] + Sync),
        header: &Header,
    ) -> Vec<Shift> {
        let Wanted { references, size, begins, ages, newest } = search;
        let (width, height) = *size;
        let margin = shifts::margin(begins.iter().map(|begin| begin.whole()));
        for thread in &self.threads {
            let mut thread = locked(thread);
            thread.of_reference = OfReference::default();
            thread.of_slots.fill([0; SUMS]);
        }
        let columns = inner(width, margin);
        let rows = if columns.is_empty() { 0..0 } else { inner(height, margin) };
        let whole = self.layout.size;
        share(team, 2 * rows.len(), |thread, i| {
            let (eye, y) = (i / rows.len(), rows.start + i % rows.len());
            let ThreadScratch { reference, of_reference, of_slots, .. } =
                &mut *locked(&self.threads[thread]);
            let ages = ages.map(|ages| {
                [2 * y, (2 * y + 1).min(whole.1 - 1)].map(|y| &ages[eye][y * whole.0..][..whole.0])
            });
            let newest = newest.map(|slot| {
                let [offset, down] = begins[slot].whole();
                let other = PixelRows { pixels: others(eye, slot), size: *size };
                let of = Around::of(other, (y as i64 - i64::from(down)) as usize);
                Newest { of, offset, tolerance: header.tolerance() }
            });
            let row = ReferenceRow {
                of: Around::of(references[eye], y),
                columns: columns.clone(),
                ages,
                newest,
                to: &mut *reference,
                sums: of_reference,
            };
            // SAFETY: the simd was found on this machine.
            unsafe { simd.vectorize(row) };
            for (slot, (begin, sums)) in begins.iter().zip(of_slots).enumerate() {
                let [offset, down] = begin.whole();
                let other = PixelRows { pixels: others(eye, slot), size: *size };
                let of = Around::of(other, (y as i64 - i64::from(down)) as usize);
                let row = ShiftRow { reference, of, offset, columns: columns.clone(), sums };
                // SAFETY: as above.
                unsafe { simd.vectorize(row) };
            }
        });
        let (of_reference, of_slots) = self.sums(begins.len());
        let slots = begins.iter().zip(&of_slots);
        let variance = header.variance();
        slots.map(|(&begin, sums)| shifts::shift(&of_reference, sums, begin, variance)).collect()
    }

    /// Adds up the sums of all threads, for this number of initial values.
    fn sums(&self, count: usize) -> (OfReference, Vec<OfBoth>) {
        let (mut of_reference, mut of_slots) =
            (OfReference::default(), vec![OfBoth::default(); count]);
        for thread in &self.threads {
            let thread = locked(thread);
            of_reference += thread.of_reference;
            for (sum, &of_thread) in of_slots.iter_mut().zip(&thread.of_slots) {
                *sum += bytemuck::cast::<_, OfBoth>(of_thread);
            }
        }
        (of_reference, of_slots)
    }

    /// Writes the smoothed half-size image for the shift estimation.
    pub fn smaller(&self, team: &mut Team, simd: Simd, of: PixelRows, to: &mut [u8]) {
        let size = (of.size.0.div_ceil(2), of.size.1.div_ceil(2));
        // SAFETY: the block has a byte for every pixel of a half-size image, and no other thread uses it now.
        let pixels = unsafe { self.between.all_mut(size.0 * size.1) };
        half(team, simd, of, pixels);
        let of = PixelRows { pixels, size };
        let to = Rows(to.as_mut_ptr(), size.0);
        share(team, size.1, |thread, y| {
            let sums = &mut locked(&self.threads[thread]).sums;
            // SAFETY: every row is given to one thread once; the simd was found on this machine.
            unsafe { simd.vectorize(SmoothedRow { of, y, to: to.row(y), sums }) };
        });
    }
}

struct Wanted<'a> {
    references: [PixelRows<'a>; 2],
    size: (usize, usize),
    begins: &'a [Shift],
    /// Motion ages of both views' pixels; `None`: ignored.
    ages: Option<[&'a [u8]; 2]>,
    /// Slot of the image that pixels must agree with, if any.
    newest: Option<usize>,
}
