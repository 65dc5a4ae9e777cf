//! The spatio-temporal stage of [`crate::matching::temporal`], shared out by rows. Sums are whole numbers, so it does
//! not matter who adds which.

mod rows;

use std::sync::{Mutex, MutexGuard};

use self::rows::{
    Around, FinishRow, Newest, OF_REFERENCE, ReferenceRow, Remembered, ResidualRow, ShiftRow,
};
use super::memory::Block;
use super::prepare::{Rows, half, picture, share};
use super::residuals::{JudgeRow, MAGNITUDES, Magnitudes, judge_scratch};
use super::simd::Simd;
use super::team::Team;
use super::texture::{NoiseRow, Picture, SmoothedRow};
use crate::frame::{Image, TemporalReport, Whitened};
use crate::matching::filter::State;
use crate::matching::temporal::background::{Limits, variance};
use crate::matching::temporal::coefficients::Coefficients;
use crate::matching::temporal::layout::{Header, Layout};
use crate::matching::temporal::report::report;
use crate::matching::temporal::shifts::{self, OfBoth, OfReference, SUMS, Shift, inner};
use crate::matching::temporal::{Mode, Temporal};
use crate::memory::{Refused, filled, product};
use crate::pool::Pool;

pub use crate::matching::temporal::NAME;

/// The stage with what it remembers of a stream.
pub struct TemporalStage {
    how: Temporal,
    layout: Layout,
    state: Block<i32>,
    /// Whether the state is of the pair before in the stream.
    known: bool,
    /// Residuals of both eyes.
    residuals: [Block<i16>; 2],
    /// Both eyes at half the size, a quarter, and so on; then the pictures that are remembered last, from a quarter on.
    levels: Vec<[Block<u8>; 4]>,
    /// A picture of half the size, before it is smoothed.
    between: Block<u8>,
    threads: Vec<Mutex<OfThread>>,
    denoised: Pool<u8>,
    whitened: Pool<u16>,
}

/// Memory of one thread.
struct OfThread {
    magnitudes: Magnitudes,
    /// The sums of the equations, over the reference and with each slot.
    of_reference: OfReference,
    of_slots: Vec<[i64; SUMS]>,
    reference: Vec<i16>,
    background: Vec<i32>,
    judge: Vec<i32>,
    weights: Vec<i32>,
    moving: Vec<u8>,
    responses: Vec<u16>,
    /// Pixels that move.
    count: u32,
}

/// What the stage makes of a pair.
pub struct Passed {
    /// Both pictures as they are to be matched, where they are not those that came.
    pub denoised: Option<[Image; 2]>,
    /// The left picture without its background, where that is asked for.
    pub whitened: Option<Whitened>,
    /// What is known of the pair now.
    pub report: TemporalReport,
}

impl TemporalStage {
    /// For pairs of this size.
    ///
    /// # Errors
    /// Where there is no memory.
    pub fn new(how: Temporal, size: (usize, usize), threads: usize) -> Result<Self, Refused> {
        let layout = Layout::new(size, how.history);
        let pixels = product([size.0, size.1]);
        let level = |size: (usize, usize)| -> Result<[Block<u8>; 4], Refused> {
            let block = || Block::new(product([size.0, size.1]));
            Ok([block()?, block()?, block()?, block()?])
        };
        let threads = (0..threads).map(|_| Ok(Mutex::new(OfThread::new(&layout)?)));
        Ok(Self {
            how,
            state: Block::new(layout.words() as u64)?,
            known: false,
            residuals: [Block::new(pixels)?, Block::new(pixels)?],
            levels: sizes(&layout).map(level).collect::<Result<_, _>>()?,
            between: Block::new(product([layout.half_size.0, layout.half_size.1]))?,
            threads: threads.collect::<Result<_, Refused>>()?,
            denoised: Pool::new(),
            whitened: Pool::new(),
            layout,
        })
    }

    /// Bytes of it, with the pictures that it makes.
    pub fn bytes_of(how: Temporal, size: (usize, usize), threads: usize) -> u64 {
        let layout = Layout::new(size, how.history);
        let pixels = product([size.0, size.1]);
        let levels =
            sizes(&layout).map(|size| 4 * Block::<u8>::bytes_of(product([size.0, size.1])));
        let parts = [
            Block::<i32>::bytes_of(layout.words() as u64),
            Block::<i16>::bytes_of(pixels).saturating_mul(2),
            levels.fold(0, u64::saturating_add),
            Block::<u8>::bytes_of(product([layout.half_size.0, layout.half_size.1])),
            OfThread::bytes_of(&layout).saturating_mul(threads as u64),
            pixels.saturating_mul(2),
        ];
        parts.into_iter().fold(0, u64::saturating_add)
    }

    /// The same of what there is.
    pub fn bytes(&self) -> usize {
        let levels = self.levels.iter().flatten().map(Block::bytes).sum::<usize>();
        let residuals = self.residuals.iter().map(Block::bytes).sum::<usize>();
        let threads = self.threads.len() as u64 * OfThread::bytes_of(&self.layout);
        let pictures = 2 * self.layout.size.0 * self.layout.size.1;
        self.state.bytes() + self.between.bytes() + residuals + levels + threads as usize + pictures
    }

    /// What it remembers; it begins anew.
    pub fn take_state(&mut self) -> Option<State> {
        let known = std::mem::take(&mut self.known);
        known.then(|| self.numbers().to_vec())
    }

    /// Takes over what another one remembers of the stream.
    pub fn resume(&mut self, state: Option<&State>) {
        let state = state.filter(|state| state.len() == self.layout.words());
        self.known = state.is_some();
        state.into_iter().for_each(|state| self.numbers_mut().copy_from_slice(state));
    }

    fn numbers(&self) -> &[i32] {
        // SAFETY: the block has this length, and is changed through `&mut self` only.
        unsafe { std::slice::from_raw_parts(self.state.ptr(), self.layout.words()) }
    }

    fn numbers_mut(&mut self) -> &mut [i32] {
        // SAFETY: the block has this length, and is borrowed alone.
        unsafe { std::slice::from_raw_parts_mut(self.state.ptr(), self.layout.words()) }
    }

    /// Passes a pair through the stage. `goes_on`: whether it follows the pair before in its stream.
    ///
    /// # Errors
    /// Where there is no memory for a picture.
    pub fn run(
        &mut self,
        team: &mut Team,
        simd: Simd,
        eyes: [&Image; 2],
        goes_on: bool,
    ) -> Result<Passed, Refused> {
        if !(goes_on && self.known) {
            self.numbers_mut().fill(0);
        }
        self.known = true;
        let mut header = Header::of(self.numbers());
        header.begin(self.layout.size);
        self.make_levels(team, simd, eyes, &header);
        let shifts = self.shifts_of_all(team, simd, &header);
        let coefficients = Coefficients::of(&shifts, self.how.degree);
        let variances = [0, 1].map(|eye| {
            self.subtract_background(team, simd, (eye, eyes[eye]), &coefficients, &header)
        });

        let (width, height) = self.layout.size;
        let slot = header.next_slot(self.how.history);
        let mut denoised = match self.how.mode {
            Mode::Denoise => {
                let picture = || self.denoised.try_take(width * height);
                Some([picture()?, picture()?])
            }
            Mode::Whiten => None,
        };
        let mut whitened = match self.how.mode {
            Mode::Denoise => None,
            Mode::Whiten => Some(self.whitened.try_take(width * height)?),
        };
        let mut moving = 0;
        for (eye, image) in eyes.into_iter().enumerate() {
            let spread = coefficients.spread();
            let limits = (header.count > 0).then(|| Limits::new(variances[eye], spread));
            let denoised = denoised.as_mut().map(|eyes| Rows(eyes[eye].as_mut_ptr(), width));
            let whitened = whitened.as_mut().filter(|_| eye == 0);
            let whitened = whitened.map(|pixels| Rows(pixels.as_mut_ptr(), width));
            let outputs = Outputs { slot, denoised, whitened };
            moving += self.finish(team, simd, (eye, image), limits, outputs);
        }
        header.end(slot, moving, variances, &shifts, &coefficients);
        header.write(self.numbers_mut(), &shifts);
        let mask = |eye: usize| eyes[eye].shared_valid_mask();
        let picture = |eye, pixels| Image::new(width, height, pixels).with_valid_mask(mask(eye));
        Ok(Passed {
            denoised: denoised.map(|[left, right]| [picture(0, left), picture(1, right)]),
            whitened: whitened.map(|pixels| Whitened::new(width, height, pixels)),
            report: report(&header, self.layout.size),
        })
    }

    /// Makes the pictures of half the size and less.
    fn make_levels(&self, team: &mut Team, simd: Simd, eyes: [&Image; 2], header: &Header) {
        let sizes: Vec<_> = sizes(&self.layout).collect();
        let pixels = |level: usize, number: usize| {
            let (width, height) = sizes[level];
            // SAFETY: the block has a byte a pixel, and a level is written before it is read.
            unsafe {
                std::slice::from_raw_parts_mut(self.levels[level][number].ptr(), width * height)
            }
        };
        for (eye, image) in eyes.into_iter().enumerate() {
            self.smaller(team, simd, picture(image), pixels(0, eye));
            if header.count == 0 {
                continue;
            }
            let remembered = self.layout.half(self.numbers(), eye, header.newest);
            pixels(0, 2 + eye).copy_from_slice(remembered);
            for level in 1..sizes.len() {
                for number in [eye, 2 + eye] {
                    let finer =
                        Picture { pixels: pixels(level - 1, number), size: sizes[level - 1] };
                    self.smaller(team, simd, finer, pixels(level, number));
                }
            }
        }
    }

    fn level(&self, level: usize, number: usize, size: (usize, usize)) -> Picture<'_> {
        // SAFETY: the block has a byte a pixel, and nobody writes it now.
        let pixels = unsafe {
            std::slice::from_raw_parts(self.levels[level][number].ptr(), size.0 * size.1)
        };
        Picture { pixels, size }
    }

    fn thread(&self, number: usize) -> MutexGuard<'_, OfThread> {
        self.threads[number].lock().unwrap_or_else(|e| e.into_inner())
    }

    /// Where to look for the picture remembered last, from coarse to fine.
    fn look_for_newest(&self, team: &mut Team, simd: Simd, header: &Header) -> Shift {
        let mut shift = Shift::NONE;
        let sizes: Vec<_> = sizes(&self.layout).collect();
        for (number, &size) in sizes.iter().enumerate().skip(1).rev() {
            let begin = shift.twice();
            let references = [0, 1].map(|eye| self.level(number, eye, size));
            let others = |eye: usize, _| self.level(number, 2 + eye, size).pixels;
            let search = Search { references, size, begins: &[begin], ages: None, newest: None };
            shift = self.search(team, simd, &search, &others, header)[0];
        }
        shift.twice().twice()
    }

    /// How far each remembered picture is shifted against the newest.
    fn shifts_of_all(&self, team: &mut Team, simd: Simd, header: &Header) -> Vec<Shift> {
        if header.count == 0 {
            return Vec::new();
        }
        let newest = self.look_for_newest(team, simd, header);
        let size = self.layout.half_size;
        let references = [0, 1].map(|eye| self.level(0, eye, size));
        let begins: Vec<_> =
            (0..header.count).map(|slot| header.begin_of(slot, newest).halved()).collect();
        let (layout, state) = (&self.layout, self.numbers());
        let others = |eye: usize, slot: usize| layout.half(state, eye, slot);
        let ages = Some([0, 1].map(|eye| layout.ages(state, eye)));
        let newest = Some(header.newest);
        let search = Search { references, size, begins: &begins, ages, newest };
        let found = self.search(team, simd, &search, &others, header);
        found.into_iter().map(Shift::twice).collect()
    }

    /// The shifts of as many pictures as there are beginnings.
    fn search<'a>(
        &self,
        team: &mut Team,
        simd: Simd,
        search: &Search<'_>,
        others: &(dyn Fn(usize, usize) -> &'a [u8] + Sync),
        header: &Header,
    ) -> Vec<Shift> {
        let Search { references, size, begins, ages, newest } = search;
        let (width, height) = *size;
        let margin = shifts::margin(begins.iter().map(|begin| begin.whole()));
        for number in 0..self.threads.len() {
            let mut thread = self.thread(number);
            thread.of_reference = OfReference::default();
            thread.of_slots.fill([0; SUMS]);
        }
        let columns = inner(width, margin);
        let rows = if columns.is_empty() { 0..0 } else { inner(height, margin) };
        let whole = self.layout.size;
        share(team, 2 * rows.len(), |thread, i| {
            let (eye, y) = (i / rows.len(), rows.start + i % rows.len());
            let OfThread { reference, of_reference, of_slots, .. } = &mut *self.thread(thread);
            let ages = ages.map(|ages| {
                [2 * y, (2 * y + 1).min(whole.1 - 1)].map(|y| &ages[eye][y * whole.0..][..whole.0])
            });
            let newest = newest.map(|slot| {
                let [offset, down] = begins[slot].whole();
                let other = Picture { pixels: others(eye, slot), size: *size };
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
                let other = Picture { pixels: others(eye, slot), size: *size };
                let of = Around::of(other, (y as i64 - i64::from(down)) as usize);
                let row = ShiftRow { reference, of, offset, columns: columns.clone(), sums };
                // SAFETY: as above.
                unsafe { simd.vectorize(row) };
            }
        });
        let (mut of_reference, mut of_slots) =
            (OfReference::default(), vec![OfBoth::default(); begins.len()]);
        for number in 0..self.threads.len() {
            let thread = self.thread(number);
            of_reference += thread.of_reference;
            for (sum, &of_thread) in of_slots.iter_mut().zip(&thread.of_slots) {
                *sum += OfBoth::of(of_thread);
            }
        }
        let slots = begins.iter().zip(&of_slots);
        let variance = header.variance();
        slots.map(|(&begin, sums)| shifts::shift(&of_reference, sums, begin, variance)).collect()
    }

    /// Writes the smoothed picture of half the size: what shifts are found in.
    fn smaller(&self, team: &mut Team, simd: Simd, of: Picture, to: &mut [u8]) {
        let size = (of.size.0.div_ceil(2), of.size.1.div_ceil(2));
        // SAFETY: the block has a byte for every pixel of half a picture, and nobody else has it now.
        let pixels = unsafe { std::slice::from_raw_parts_mut(self.between.ptr(), size.0 * size.1) };
        half(team, simd, of, pixels);
        let of = Picture { pixels, size };
        let to = Rows(to.as_mut_ptr(), size.0);
        share(team, size.1, |thread, y| {
            let sums = &mut self.thread(thread).responses;
            // SAFETY: every row is given to one thread once; the simd was found on this machine.
            unsafe { simd.vectorize(SmoothedRow { of, y, to: to.row(y), sums }) };
        });
    }

    /// Writes the residuals of an eye's picture; the variance of their noise.
    fn subtract_background(
        &self,
        team: &mut Team,
        simd: Simd,
        (eye, image): (usize, &Image),
        coefficients: &Coefficients,
        header: &Header,
    ) -> u32 {
        let (width, height) = self.layout.size;
        let (layout, state) = (&self.layout, self.numbers());
        (0..self.threads.len()).for_each(|number| self.thread(number).magnitudes.clear());
        let residuals = Rows(self.residuals[eye].ptr(), width);
        let count = header.count;
        let remembered = |slot: usize| Remembered {
            pixels: layout.picture(state, eye, slot),
            coefficient: coefficients.values[slot],
            offset: coefficients.offsets[slot],
        };
        let of = picture(image);
        share(team, height, |thread, y| {
            let OfThread { magnitudes, background, responses, .. } = &mut *self.thread(thread);
            // SAFETY: every row is given to one thread once; the simd was found on this machine.
            unsafe {
                let to = residuals.row(y);
                if count == 0 {
                    to.fill(0);
                    return;
                }
                simd.vectorize(ResidualRow { of, y, count, remembered, background, to: &mut *to });
                magnitudes.count(to);
                if y > 0 && y + 1 < height {
                    let histogram = &mut magnitudes.responses;
                    simd.vectorize(NoiseRow { of, y, histogram, responses });
                }
            }
        });
        let mut first = self.thread(0);
        for number in 1..self.threads.len() {
            first.magnitudes.add(&self.thread(number).magnitudes);
        }
        let Magnitudes { residuals, responses } = &first.magnitudes;
        variance(residuals, responses, coefficients.spread())
    }

    /// Decides about every pixel of an eye's picture, and remembers it; how many move. `limits`: `None` where nothing
    /// is remembered yet.
    fn finish(
        &self,
        team: &mut Team,
        simd: Simd,
        (eye, image): (usize, &Image),
        limits: Option<Limits>,
        Outputs { slot, denoised, whitened }: Outputs,
    ) -> u32 {
        let layout = &self.layout;
        let (size, width) = (layout.size, layout.size.0);
        let bytes = |from: usize| self.state.ptr().wrapping_add(from).cast::<u8>();
        let picture_at = layout.pictures(eye) + slot * layout.picture_words();
        let (stored, ages) =
            (Rows(bytes(picture_at), width), Rows(bytes(layout.ages_at(eye)), width));
        // SAFETY: the block holds a number a pixel, all of which were written.
        let residuals =
            unsafe { std::slice::from_raw_parts(self.residuals[eye].ptr(), width * size.1) };
        (0..self.threads.len()).for_each(|number| self.thread(number).count = 0);
        share(team, size.1, |thread, y| {
            let OfThread { judge, weights, moving, count, .. } = &mut *self.thread(thread);
            match limits {
                Some(limits) => {
                    let (scratch, weights, moving) = (&mut *judge, &mut *weights, &mut *moving);
                    let row = JudgeRow { residuals, size, y, limits, scratch, weights, moving };
                    // SAFETY: the simd was found on this machine.
                    unsafe { simd.vectorize(row) };
                }
                None => {
                    weights.fill(256);
                    moving.fill(0);
                }
            }
            *count += moving.iter().map(|&moving| u32::from(moving)).sum::<u32>();
            // SAFETY: every row is given to one thread once; the simd was found on this machine.
            unsafe {
                simd.vectorize(FinishRow {
                    row: image.row(y),
                    residuals: &residuals[y * width..][..width],
                    weights,
                    moving,
                    ages: ages.row(y),
                    stored: stored.row(y),
                    history: self.how.history,
                    denoised: denoised.as_ref().map(|rows| rows.row(y)),
                    whitened: whitened.as_ref().map(|rows| rows.row(y)),
                });
            }
        });
        let half_at = layout.halves(eye) + slot * layout.half_words();
        let (pixels, half_pixels) = (width * size.1, layout.half_size.0 * layout.half_size.1);
        // SAFETY: both lie in the state, apart from each other, and nobody else touches them.
        let (stored, to) = unsafe {
            (
                std::slice::from_raw_parts(bytes(picture_at), pixels),
                std::slice::from_raw_parts_mut(bytes(half_at), half_pixels),
            )
        };
        self.smaller(team, simd, Picture { pixels: stored, size }, to);
        (0..self.threads.len()).map(|number| self.thread(number).count).sum()
    }
}

/// Where pictures are looked for.
struct Search<'a> {
    references: [Picture<'a>; 2],
    size: (usize, usize),
    begins: &'a [Shift],
    /// For how long pixels of both eyes have been moving; `None`: that does not matter.
    ages: Option<[&'a [u8]; 2]>,
    /// The picture that pixels have to agree with; `None`: none.
    newest: Option<usize>,
}

/// What is written of a picture.
struct Outputs {
    slot: usize,
    denoised: Option<Rows<u8>>,
    whitened: Option<Rows<u16>>,
}

/// Sizes of the levels, the largest first.
fn sizes(layout: &Layout) -> impl Iterator<Item = (usize, usize)> + use<> {
    let first = layout.half_size;
    let next = |size: &(usize, usize)| Some((size.0.div_ceil(2), size.1.div_ceil(2)));
    std::iter::successors(Some(first), next).take(shifts::levels(first))
}

impl OfThread {
    fn new(layout: &Layout) -> Result<Self, Refused> {
        let width = layout.size.0;
        Ok(Self {
            magnitudes: Magnitudes::new()?,
            of_reference: OfReference::default(),
            of_slots: filled(layout.history, [0; SUMS])?,
            reference: filled(OF_REFERENCE * layout.half_size.0, 0)?,
            background: filled(width, 0)?,
            judge: filled(judge_scratch(width), 0)?,
            weights: filled(width, 0)?,
            moving: filled(width, 0)?,
            responses: filled(width, 0)?,
            count: 0,
        })
    }

    fn bytes_of(layout: &Layout) -> u64 {
        let numbers = MAGNITUDES as u64 + judge_scratch(0) as u64;
        // Background, judge, weights; moving; responses.
        let of_pixels = product([layout.size.0, 4 * 5 + 1 + 2]);
        of_pixels
            .saturating_add(product([layout.half_size.0, OF_REFERENCE, 2]))
            .saturating_add(4 * numbers + (8 * SUMS * layout.history) as u64)
    }
}
