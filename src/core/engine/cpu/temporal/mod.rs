//! The spatio-temporal stage of [`crate::matching::temporal`], distributed by rows. Sums are integers, so the
//! distribution does not affect the result.

mod rows;
mod search;

use std::sync::Mutex;

use self::rows::{FinishRow, Remembered, ResidualRow};
use self::search::Search;
use super::memory::{Arena, Block};
use super::prepare::{Rows, picture, share};
use super::residuals::{JudgeScratch, variance_of};
use super::simd::Simd;
use super::team::Team;
use super::texture::{NoiseRow, PixelRows};
use crate::frame::{Image, TemporalReport, Whitened};
use crate::matching::history::State;
use crate::matching::residuals::Limits;
use crate::matching::temporal::coefficients::Coefficients;
use crate::matching::temporal::layout::{Header, Layout};
use crate::matching::temporal::report;
use crate::matching::temporal::{Mode, Temporal};
use crate::memory::{Result, product};
use crate::pool::Pool;
use crate::thread::locked;

pub use crate::matching::temporal::NAME;

pub struct TemporalStage {
    how: Temporal,
    layout: Layout,
    state: Block<i32>,
    /// Whether the state belongs to the previous pair of the stream.
    known: bool,
    /// Residuals of both views.
    residuals: [Block<i16>; 2],
    search: Search,
    threads: Vec<Mutex<JudgeScratch>>,
    /// Per thread, the background of a row.
    backgrounds: Vec<Mutex<Vec<i32>>>,
    denoised: Pool<u8>,
    whitened: Pool<u16>,
}

/// Output of the stage for one pair.
pub struct Passed {
    pub denoised: Option<[Image; 2]>,
    pub whitened: Option<Whitened>,
    pub report: TemporalReport,
}

impl TemporalStage {
    pub fn new(arena: &Arena, how: Temporal, size: (usize, usize), threads: usize) -> Result<Self> {
        let layout = Layout::new(size, how.history);
        let pixels = product([size.0, size.1]);
        // The output images.
        arena.count(pixels.saturating_mul(2));
        Ok(Self {
            how,
            state: arena.block(layout.words() as u64)?,
            known: false,
            residuals: [arena.block(pixels)?, arena.block(pixels)?],
            search: Search::new(arena, layout, threads)?,
            threads: arena.per_thread(threads, || JudgeScratch::new(arena, size.0))?,
            backgrounds: arena.per_thread(threads, || arena.filled(size.0, 0))?,
            denoised: Pool::new(),
            whitened: Pool::new(),
            layout,
        })
    }

    pub fn take_state(&mut self) -> Option<State> {
        let known = std::mem::take(&mut self.known);
        known.then(|| self.numbers().to_vec())
    }

    pub fn resume(&mut self, state: Option<&State>) {
        let state = state.filter(|state| state.len() == self.layout.words());
        self.known = state.is_some();
        state.into_iter().for_each(|state| self.numbers_mut().copy_from_slice(state));
    }

    fn numbers(&self) -> &[i32] {
        // SAFETY: the block has this length, and is changed through `&mut self` only.
        unsafe { self.state.all(self.layout.words()) }
    }

    fn numbers_mut(&mut self) -> &mut [i32] {
        // SAFETY: the block has this length, and is borrowed alone.
        unsafe { self.state.all_mut(self.layout.words()) }
    }

    /// Passes a pair through the stage. `goes_on`: whether it continues the previous pair of its stream.
    pub fn run(
        &mut self,
        team: &mut Team,
        simd: Simd,
        eyes: [&Image; 2],
        goes_on: bool,
    ) -> Result<Passed> {
        if !(goes_on && self.known) {
            self.numbers_mut().fill(0);
        }
        self.known = true;
        let mut header = Header::of(self.numbers());
        header.begin(self.layout.size);
        let shifts = self.search.run(team, simd, eyes, self.numbers(), &header);
        let shifts = header.keep(shifts);
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
            whitened: whitened.map(|pixels| Whitened::new(width, pixels)),
            report: report(&header, self.layout.size),
        })
    }

    /// Writes the residuals of a view's image, and returns their noise variance.
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
        self.threads.iter().for_each(|thread| locked(thread).begin());
        let residuals = Rows(self.residuals[eye].ptr(), width);
        let count = header.count;
        let remembered = |slot: usize| Remembered {
            pixels: layout.picture(state, eye, slot),
            coefficient: coefficients.values[slot],
            offset: coefficients.offsets[slot],
        };
        let of = picture(image);
        share(team, height, |thread, y| {
            let JudgeScratch { magnitudes, responses, .. } = &mut *locked(&self.threads[thread]);
            let background = &mut *locked(&self.backgrounds[thread]);
            // SAFETY: every row is given to one thread once; the simd was found on this machine.
            unsafe {
                let to = residuals.row(y);
                if count == 0 {
                    to.fill(0);
                } else {
                    let to = &mut *to;
                    simd.vectorize(ResidualRow { of, y, count, remembered, background, to });
                    magnitudes.count(to);
                }
                if y > 0 && y + 1 < height {
                    let histogram = &mut magnitudes.responses;
                    simd.vectorize(NoiseRow { of, y, histogram, responses });
                }
            }
        });
        variance_of(&self.threads, coefficients.spread())
    }

    /// Decides on every pixel of a view's image, and stores the image in the history; returns the number of
    /// moving pixels. `limits`: `None` without history.
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
        // SAFETY: the block holds a number per pixel, and all were written.
        let residuals = unsafe { self.residuals[eye].all(width * size.1) };
        self.threads.iter().for_each(|thread| locked(thread).begin());
        share(team, size.1, |thread, y| {
            let own = &mut *locked(&self.threads[thread]);
            match limits {
                // SAFETY: the simd was found on this machine.
                Some(limits) => unsafe { own.judge(simd, (residuals, size), y, limits) },
                None => {
                    own.weights.fill(256);
                    own.moving.fill(0);
                }
            }
            // SAFETY: every row is given to one thread once; the simd was found on this machine.
            unsafe {
                simd.vectorize(FinishRow {
                    row: image.row(y),
                    residuals: &residuals[y * width..][..width],
                    weights: &own.weights,
                    moving: &own.moving,
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
        // SAFETY: both are separate parts of the state, and no other thread accesses them.
        let (stored, to) = unsafe {
            (
                std::slice::from_raw_parts(bytes(picture_at), pixels),
                std::slice::from_raw_parts_mut(bytes(half_at), half_pixels),
            )
        };
        self.search.smaller(team, simd, PixelRows { pixels: stored, size }, to);
        self.threads.iter().map(|thread| locked(thread).count).sum()
    }
}

struct Outputs {
    slot: usize,
    denoised: Option<Rows<u8>>,
    whitened: Option<Rows<u16>>,
}
