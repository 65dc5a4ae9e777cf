//! Layout of the stage's state, the same on every engine.

use super::coefficients::Coefficients;
use super::shifts::{Shift, levels};

/// Numbers before the shifts.
pub const HEADER: usize = 16;

/// Places of the header's numbers, which the kernels know by the same names.
pub mod place {
    pub const COUNT: usize = 0;
    pub const NEWEST: usize = 1;
    pub const MOVING: usize = 2;
    pub const VARIANCES: usize = 3;
    pub const SPREAD: usize = 5;
    pub const FRAME_SHIFT: usize = 6;
    pub const FRAME_SHIFT_KNOWN: usize = 8;
}

/// Layout of the state for images of one size. Images are bytes, each begins with a
/// number of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// Width and height of the images in pixels.
    pub size: (usize, usize),
    /// The same at half the size.
    pub half_size: (usize, usize),
    /// Number of images that are remembered.
    pub history: usize,
}

impl Layout {
    /// For images of this size, of which this many are remembered.
    pub fn new(size: (usize, usize), history: u8) -> Self {
        let half_size = (size.0.div_ceil(2), size.1.div_ceil(2));
        Self { size, half_size, history: usize::from(history) }
    }

    /// Sizes of the images in which shifts are found: half the size, a quarter, and so on.
    pub fn levels(&self) -> Vec<(usize, usize)> {
        let next = |size: &(usize, usize)| Some((size.0.div_ceil(2), size.1.div_ceil(2)));
        let sizes = std::iter::successors(Some(self.half_size), next);
        sizes.take(levels(self.half_size)).collect()
    }

    /// Numbers of an image.
    pub fn picture_words(&self) -> usize {
        (self.size.0 * self.size.1).div_ceil(4)
    }

    /// Numbers of an image of half the size.
    pub fn half_words(&self) -> usize {
        (self.half_size.0 * self.half_size.1).div_ceil(4)
    }

    /// Place of the images of a view: one after the other, as many as are remembered.
    pub fn pictures(&self, eye: usize) -> usize {
        HEADER + 2 * self.history + eye * self.history * self.picture_words()
    }

    /// Place of the same at half the size, smoothed ([`super::smaller`]).
    pub fn halves(&self, eye: usize) -> usize {
        self.pictures(2) + eye * self.history * self.half_words()
    }

    /// Place of how long each pixel has been moving: a byte a pixel, frames in a row.
    pub fn ages_at(&self, eye: usize) -> usize {
        self.halves(2) + eye * self.picture_words()
    }

    /// Numbers in all.
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

    /// For how many frames each pixel has been moving.
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

/// Header of the state: all but the images.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Header {
    /// Number of images that are remembered by now.
    pub count: usize,
    /// Slot of the newest.
    pub newest: usize,
    /// Pixels of both views that moved in it.
    pub moving: u32,
    /// Variance of the noise of each view, in 1/256 squared grey levels; 0 before the first pair.
    pub variances: [u32; 2],
    /// Sum of the squared coefficients in 1/256: how much of an image's noise its background still
    /// has. 0 where there was none.
    pub spread: u32,
    /// Shift of the image before against the newest.
    pub frame_shift: Shift,
    /// Shift of the image in each slot against the newest.
    shifts: Vec<Shift>,
}

impl Header {
    /// The header of a state, or of the first [`HEADER`] numbers of one, which do not tell the
    /// shifts.
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

    /// Prepares for the next image: where more than half of the last pair moved, what is remembered
    /// is of another scene or exposure, and forgotten.
    pub fn begin(&mut self, (width, height): (usize, usize)) {
        if self.moving as usize > width * height {
            self.count = 0;
            self.variances = [0; 2];
        }
    }

    /// The shifts of the images that are remembered. Where all of them are lost, the stream
    /// restarts, and there are none.
    pub fn keep(&mut self, shifts: Vec<Shift>) -> Vec<Shift> {
        if shifts.iter().all(|shift| shift.lost) {
            self.count = 0;
            return Vec::new();
        }
        shifts
    }

    /// Predicts the shift of the image in a slot: its shift against the one remembered last, plus
    /// the shift of that one.
    pub fn begin_of(&self, slot: usize, newest: Shift) -> Shift {
        self.shifts[slot].further(newest)
    }

    /// Variance of the noise, the mean of both views.
    pub fn variance(&self) -> u32 {
        (self.variances[0] + self.variances[1]) / 2
    }

    /// Grey levels by which pixels of half the size may differ that show the same: little more than
    /// the noise that is left of an image's there, and small steps of the exposure.
    pub fn tolerance(&self) -> i32 {
        4 + (self.variance() / 256).isqrt() as i32
    }

    /// The slot of the next image.
    pub fn next_slot(&self, history: u8) -> usize {
        if self.count == 0 { 0 } else { (self.newest + 1) % usize::from(history) }
    }

    /// Records an image that is now remembered in `slot`.
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

    /// Writes it down, with the shifts of the remembered images against the newest.
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
