//! Layout of the stage's state, the same on every engine.

use super::coefficients::Coefficients;
use super::shifts::{Shift, levels};

/// Numbers before the shifts.
pub const HEADER: usize = 16;

/// Indices of the header's numbers; the kernels use the same names.
#[allow(missing_docs)] // The kernels describe them.
pub mod place {
    pub const COUNT: usize = 0;
    pub const NEWEST: usize = 1;
    pub const MOVING: usize = 2;
    pub const VARIANCES: usize = 3;
    pub const SPREAD: usize = 5;
    pub const FRAME_SHIFT: usize = 6;
    pub const FRAME_SHIFT_KNOWN: usize = 8;
}

/// Layout of the state for images of one size. Images are stored as bytes; each begins at a word boundary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// Width and height of the images in pixels.
    pub size: (usize, usize),
    /// Half the size, rounded up.
    pub half_size: (usize, usize),
    /// Capacity of the history in images.
    pub history: usize,
}

impl Layout {
    /// Layout for images of `size` pixels and a history of `history` images.
    pub fn new(size: (usize, usize), history: u8) -> Self {
        let half_size = (size.0.div_ceil(2), size.1.div_ceil(2));
        Self { size, half_size, history: usize::from(history) }
    }

    /// Image sizes for the shift estimation, from fine to coarse: half the size, a quarter, and so on.
    pub fn levels(&self) -> Vec<(usize, usize)> {
        let next = |size: &(usize, usize)| Some((size.0.div_ceil(2), size.1.div_ceil(2)));
        let sizes = std::iter::successors(Some(self.half_size), next);
        sizes.take(levels(self.half_size)).collect()
    }

    /// Words per full-size image.
    pub fn picture_words(&self) -> usize {
        (self.size.0 * self.size.1).div_ceil(4)
    }

    /// Words per half-size image.
    pub fn half_words(&self) -> usize {
        (self.half_size.0 * self.half_size.1).div_ceil(4)
    }

    /// Offset of a view's `history` images.
    pub fn pictures(&self, eye: usize) -> usize {
        HEADER + 2 * self.history + eye * self.history * self.picture_words()
    }

    /// Offset of a view's smoothed half-size images ([`super::smaller`]).
    pub fn halves(&self, eye: usize) -> usize {
        self.pictures(2) + eye * self.history * self.half_words()
    }

    /// Offset of a view's motion ages: one byte per pixel, in consecutive frames.
    pub fn ages_at(&self, eye: usize) -> usize {
        self.halves(2) + eye * self.picture_words()
    }

    /// Size of the state in words.
    pub fn words(&self) -> usize {
        self.ages_at(2)
    }

    /// The image in a slot.
    pub fn picture<'a>(&self, state: &'a [i32], eye: usize, slot: usize) -> &'a [u8] {
        let from = self.pictures(eye) + slot * self.picture_words();
        bytes(state, from, self.size)
    }

    /// The same, to be written.
    pub fn picture_mut<'a>(&self, state: &'a mut [i32], eye: usize, slot: usize) -> &'a mut [u8] {
        let from = self.pictures(eye) + slot * self.picture_words();
        bytes_mut(state, from, self.size)
    }

    /// The image in a slot at half the size, smoothed.
    pub fn half<'a>(&self, state: &'a [i32], eye: usize, slot: usize) -> &'a [u8] {
        bytes(state, self.halves(eye) + slot * self.half_words(), self.half_size)
    }

    /// The same, to be written.
    pub fn half_mut<'a>(&self, state: &'a mut [i32], eye: usize, slot: usize) -> &'a mut [u8] {
        bytes_mut(state, self.halves(eye) + slot * self.half_words(), self.half_size)
    }

    /// Number of frames in which each pixel has been moving.
    pub fn ages<'a>(&self, state: &'a [i32], eye: usize) -> &'a [u8] {
        bytes(state, self.ages_at(eye), self.size)
    }

    /// The same, to be written.
    pub fn ages_mut<'a>(&self, state: &'a mut [i32], eye: usize) -> &'a mut [u8] {
        bytes_mut(state, self.ages_at(eye), self.size)
    }
}

fn bytes(state: &[i32], from: usize, size: (usize, usize)) -> &[u8] {
    &bytemuck::cast_slice(&state[from..])[..size.0 * size.1]
}

fn bytes_mut(state: &mut [i32], from: usize, size: (usize, usize)) -> &mut [u8] {
    &mut bytemuck::cast_slice_mut(&mut state[from..])[..size.0 * size.1]
}

/// Header of the state: everything except the images.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Header {
    /// Number of images in the history.
    pub count: usize,
    /// Slot of the newest image.
    pub newest: usize,
    /// Moving pixels of the newest pair, both views together.
    pub moving: u32,
    /// Variance of the noise of each view, in 1/256 squared grey levels; 0 before the first pair.
    pub variances: [u32; 2],
    /// [`Coefficients::spread`]: the share of an image's noise in its background; 0 without one.
    pub spread: u32,
    /// Shift of the previous image relative to the newest.
    pub frame_shift: Shift,
    /// Shift of the image in each slot relative to the newest.
    shifts: Vec<Shift>,
}

impl Header {
    /// Reads the header of a state. A slice of the first [`HEADER`] numbers gives a header without shifts.
    pub fn of(state: &[i32]) -> Self {
        let count = state[place::COUNT] as usize;
        let shift = |at: usize, known| Shift { by: [state[at], state[at + 1]], known, lost: false };
        Self {
            count,
            newest: state[place::NEWEST] as usize,
            moving: state[place::MOVING] as u32,
            variances: [0, 1].map(|eye| state[place::VARIANCES + eye] as u32),
            spread: state[place::SPREAD] as u32,
            frame_shift: shift(place::FRAME_SHIFT, state[place::FRAME_SHIFT_KNOWN] != 0),
            shifts: (0..count)
                .map(|slot| HEADER + 2 * slot)
                .take_while(|at| at + 1 < state.len())
                .map(|at| shift(at, true))
                .collect(),
        }
    }

    /// Prepares for the next image. If more than half of the last pair moved, the scene or exposure has
    /// changed, and the history is cleared.
    pub fn begin(&mut self, (width, height): (usize, usize)) {
        if self.moving as usize > width * height {
            self.count = 0;
            self.variances = [0; 2];
        }
    }

    /// Returns the shifts of the remembered images; if all are lost, clears the history and returns none.
    pub fn keep(&mut self, shifts: Vec<Shift>) -> Vec<Shift> {
        if shifts.iter().all(|shift| shift.lost) {
            self.count = 0;
            return Vec::new();
        }
        shifts
    }

    /// Predicts the shift of the image in a slot: that relative to the previous image, plus its `newest`.
    pub fn begin_of(&self, slot: usize, newest: Shift) -> Shift {
        self.shifts[slot].further(newest)
    }

    /// Mean noise variance of both views, in 1/256 squared grey levels.
    pub fn variance(&self) -> u32 {
        (self.variances[0] + self.variances[1]) / 2
    }

    /// Largest difference in grey levels between half-size pixels of the same point: a little more than their
    /// remaining noise and small changes of exposure.
    pub fn tolerance(&self) -> i32 {
        4 + (self.variance() / 256).isqrt() as i32
    }

    /// The slot of the next image.
    pub fn next_slot(&self, history: u8) -> usize {
        if self.count == 0 { 0 } else { (self.newest + 1) % usize::from(history) }
    }

    /// Updates the header after the newest image was stored in `slot`.
    pub fn end(
        &mut self,
        slot: usize,
        moving: u32,
        variances: [u32; 2],
        shifts: &[Shift],
        coefficients: &Coefficients,
    ) {
        self.frame_shift = shifts.get(self.newest).copied().unwrap_or(Shift::NONE);
        self.newest = slot;
        self.moving = moving;
        self.spread = coefficients.spread();
        let scale = 256 + self.spread;
        self.variances = variances.map(|variance| variance * 256 / scale);
        self.count = self.count.max(slot + 1);
    }

    /// Writes the header and the shifts of the remembered images relative to the newest.
    pub fn write(&self, state: &mut [i32], shifts: &[Shift]) {
        state[place::COUNT] = self.count as i32;
        state[place::NEWEST] = self.newest as i32;
        state[place::MOVING] = self.moving as i32;
        for eye in 0..2 {
            state[place::VARIANCES + eye] = self.variances[eye] as i32;
        }
        state[place::SPREAD] = self.spread as i32;
        state[place::FRAME_SHIFT..][..2].copy_from_slice(&self.frame_shift.by);
        state[place::FRAME_SHIFT_KNOWN] = i32::from(self.frame_shift.known);
        for (slot, shift) in shifts.iter().enumerate() {
            state[HEADER + 2 * slot..][..2].copy_from_slice(&shift.by);
        }
        state[HEADER + 2 * self.newest..][..2].fill(0);
    }
}
