//! How a picture and a range of disparities are laid over the threads of a device: the numbers that
//! the kernels are compiled with. The formulas are those of `kernels/cost.cuh` and
//! `kernels/sweep.cuh`, which check them.

use super::device::Properties;
use crate::matching::{Cost, Params, Paths};

/// Lanes of a warp.
const WARP: u32 = 32;

/// Fewest columns of a strip, which all warps' pixels divide.
const STRIP_MIN: u32 = 8;

/// Most columns of a strip: their number must fit the low bits of a key (`winner.cuh`).
const STRIP_MAX: u32 = 32;

/// Strips from here on are wide enough for borders of eight columns.
const WIDE_STRIP: u32 = 24;

/// Registers that the threads of a sweep need at least to keep their vectors.
const REGISTERS_MIN: u32 = 64;

/// Rows of prepared windows in shared memory, rows of stored sums on their way, and rows of sums in
/// work: `WINDOWS`, `AHEAD` and `TILES` of `sweep.cuh`.
const WINDOWS: u32 = 8;
const AHEAD: u32 = 4;
const TILES: u32 = 4;

/// Columns that the horizontal paths load at a time, and their warps a block.
const CHUNK: u32 = 32;
pub(super) const HORIZONTAL_WARPS: u32 = 2;

/// Room beside a prepared row for the borders of the first and the last strip, in columns.
const BESIDE: u32 = 64;

/// How the candidates of a pixel are spread (`lanes.cuh`): `group` lanes with `registers` registers
/// of two candidates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Lanes {
    pub group: u32,
    pub registers: u32,
}

impl Lanes {
    /// The layout with the least padding for so many candidates, 1 to 1024.
    pub fn of(count: usize) -> Self {
        const LAYOUTS: [(u32, u32); 10] = [
            (4, 2),
            (4, 4),
            (4, 8),
            (4, 12),
            (8, 8),
            (8, 12),
            (16, 8),
            (16, 12),
            (32, 8),
            (32, 16),
        ];
        let layouts = LAYOUTS.map(|(group, registers)| Lanes { group, registers });
        let fits = layouts.into_iter().find(|lanes| lanes.padded() as usize >= count);
        fits.unwrap_or(layouts[LAYOUTS.len() - 1])
    }

    /// Candidates with padding.
    pub fn padded(self) -> u32 {
        2 * self.half()
    }

    /// Words of a vector: half of the candidates.
    pub fn half(self) -> u32 {
        self.group * self.registers
    }

    /// The same for the horizontal paths of a cost that takes much arithmetic: half the registers in
    /// twice the lanes, so that there are twice as many warps to do it while others wait.
    pub fn horizontal(self, cost: Cost) -> Self {
        let halved = Lanes { group: 2 * self.group, registers: self.registers / 2 };
        let cheap = matches!(cost, Cost::Ad { window: 1, .. });
        if cheap || halved.group > WARP || !halved.registers.is_multiple_of(2) {
            self
        } else {
            halved
        }
    }

    /// Pixels that a warp holds.
    pub fn pixels(self) -> u32 {
        WARP / self.group
    }
}

/// What a cost keeps of the pictures (`cost.cuh`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Prepared {
    pub base_words: u32,
    pub planes: u32,
    pub columns: u32,
    pub reach: u32,
    pub margin: u32,
}

impl Prepared {
    pub fn of(cost: Cost, lanes: Lanes) -> Self {
        let whole = |base_words, planes, margin| Prepared {
            base_words,
            planes,
            columns: 1,
            reach: lanes.padded(),
            margin,
        };
        match cost {
            Cost::Ad { window: 1, .. } => {
                Prepared { base_words: 0, planes: 2, columns: 2, reach: lanes.half(), margin: 0 }
            }
            Cost::Ad { window, .. } => {
                let words = if window <= 3 { 1 } else { 2 };
                whole(words, words, u32::from(window) / 2)
            }
            Cost::Census { window } => {
                let words = window.bits().div_ceil(32);
                whole(words, words, 0)
            }
            Cost::Combined { .. } => whole(2, 3, 0),
        }
    }

    /// Words of a window of so many columns in shared memory: `WINDOW_WORDS`.
    fn window_words(self, columns: u32, lanes: Lanes) -> u32 {
        let plane = (columns + self.reach) / self.columns;
        let shift = if lanes.registers > lanes.pixels() { lanes.pixels() / 2 } else { 16 };
        let pitch = plane.next_multiple_of(32) + shift;
        columns * (1 + self.base_words) + self.planes * pitch
    }

    /// Columns of a prepared row for a picture that is `columns` wide with its last strip, and the
    /// number of words of the row of a plane.
    pub fn row(self, columns: u32) -> u32 {
        (self.reach + BESIDE + columns.next_multiple_of(CHUNK) + BESIDE).next_multiple_of(32)
    }

    /// Shared memory of a block of the horizontal paths with such lanes, in bytes.
    pub fn horizontal_bytes(self, lanes: Lanes) -> u32 {
        let words = self.window_words(CHUNK + 2 * self.margin, lanes);
        4 * HORIZONTAL_WARPS * 2 * lanes.pixels() * words
    }
}

/// How the sweeps cut the picture up (`sweep.cu`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Strips {
    /// Columns of a strip.
    pub strip: u32,
    /// Number of strips.
    pub count: u32,
    /// Rows from one exchange of border columns to the next.
    pub trade: u32,
    /// Whether two sweeps run at once and meet in the middle.
    pub halves: bool,
    /// Blocks of a launch that a multiprocessor must hold at once.
    pub resident: u32,
}

/// A block of a sweep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Block {
    pub threads: u32,
    pub shared_bytes: u32,
}

impl Strips {
    /// Strips that all fit the device at once, as they must where diagonal paths cross them; `None`
    /// where there are none.
    ///
    /// One wide strip a multiprocessor is better than two narrow ones, because there are fewer borders
    /// and neighbours to wait for, but not where that leaves many multiprocessors without any.
    pub fn of(params: &Params, width: u32, device: &Properties) -> Option<Self> {
        if params.paths != Paths::Four && !device.cooperative {
            return None;
        }
        let halves: &[bool] = if params.paths == Paths::Five { &[false] } else { &[true, false] };
        let most = device.threads_per_multiprocessor / (8 * WARP);
        halves.iter().find_map(|&halves| {
            let found: Vec<Strips> = (1..=most)
                .filter_map(|resident| Self::held(params, width, device, halves, resident))
                .collect();
            let busy = |strips: &&Strips| {
                let blocks = strips.count * strips.sweeps();
                strips.strip == STRIP_MIN
                    || 4 * blocks >= 3 * strips.resident * device.multiprocessors
            };
            found.iter().find(busy).or(found.first()).copied()
        })
    }

    /// The narrowest strips of which all are held with so many a multiprocessor.
    fn held(
        params: &Params,
        width: u32,
        device: &Properties,
        halves: bool,
        resident: u32,
    ) -> Option<Self> {
        let pixels = Lanes::of(params.range.count).pixels();
        let widths = (STRIP_MIN..=STRIP_MAX).step_by(pixels.max(4) as usize);
        widths.into_iter().find_map(|strip| {
            let trade = if strip >= WIDE_STRIP { 8 } else { pixels.max(4) };
            let strips = Strips { strip, count: width.div_ceil(strip), trade, halves, resident };
            let held = strips.count * strips.sweeps() <= resident * device.multiprocessors;
            let fits = || [false, true].map(|finish| strips.fits(params, finish, device));
            (held && fits() == [true, true]).then_some(strips)
        })
    }

    /// Sweeps that run at once.
    pub fn sweeps(&self) -> u32 {
        if self.halves { 2 } else { 1 }
    }

    fn fits(&self, params: &Params, finish: bool, device: &Properties) -> bool {
        let block = self.block(params, finish);
        let registers = device.registers_per_multiprocessor / (block.threads * self.resident);
        // A block takes 1 KiB of shared memory for itself.
        block.threads <= 1024
            && block.shared_bytes <= device.shared_per_block
            && block.threads * self.resident <= device.threads_per_multiprocessor
            && (block.shared_bytes + 1024) * self.resident <= device.shared_per_multiprocessor
            && registers >= REGISTERS_MIN
    }

    /// The block of a launch that stores (`finish` = false) or finishes: `THREADS` and
    /// `SHARED_WORDS`.
    pub fn block(&self, params: &Params, finish: bool) -> Block {
        let lanes = Lanes::of(params.range.count);
        let prepared = Prepared::of(params.cost, lanes);
        let (half, pixels, strip, trade) = (lanes.half(), lanes.pixels(), self.strip, self.trade);
        let diagonals = u32::from(params.paths != Paths::Four);

        let main = strip / pixels;
        let border = diagonals * (trade - 1).div_ceil(pixels);
        let right = if params.left_right.is_some() { (half + strip - 1).div_ceil(WARP) } else { 0 };
        let support = if finish { main + right + 2 } else { 1 };
        let threads = WARP * (main + 2 * border + support);

        let slots = strip + trade;
        let paths = diagonals * 4 * slots * half;
        let leasts = diagonals * 4 * slots.next_multiple_of(4);
        let columns = strip + 2 * trade + 2 * prepared.margin;
        let windows = WINDOWS * prepared.window_words(columns, lanes).next_multiple_of(4);
        let mut words = paths + leasts + windows;
        if finish {
            let byte_words = lanes.registers / 2;
            let sum_words = if sums_fit_bytes(params) { byte_words } else { lanes.registers };
            let others = u32::from(params.paths != Paths::Five);
            words += AHEAD * (sum_words * others + 2 * byte_words) * main * WARP;
            words += TILES * (strip + strip * (half + strip)) + 4 * strip;
        }
        Block { threads, shared_bytes: 4 * words }
    }
}

/// Whether the sum of a sweep's paths, less their costs, fits a byte: `SUM_BYTES`.
pub(super) fn sums_fit_bytes(params: &Params) -> bool {
    let paths = if params.paths == Paths::Four { 1 } else { 3 };
    paths * u32::from(params.p2) <= 255
}

#[cfg(test)]
mod tests {
    use super::*;

    fn usual(count: usize, paths: Paths) -> Params {
        let params = crate::settings::Matching::default().params().unwrap();
        let cost = Cost::Ad { truncation: 32, window: 1 };
        let range = crate::frame::DisparityRange { min: 0, count };
        Params { range, paths, cost, ..params }
    }

    #[test]
    fn every_number_of_candidates_has_a_layout() {
        let mut last = 0;
        for count in 1..=1024 {
            let lanes = Lanes::of(count);
            assert!(lanes.padded() as usize >= count);
            assert!(lanes.registers.is_multiple_of(2) && lanes.group.is_power_of_two());
            assert!(lanes.padded() >= last);
            last = lanes.padded();
        }
        assert_eq!(Lanes::of(128), Lanes { group: 8, registers: 8 });
        assert_eq!(Lanes::of(129).padded(), 192);
    }

    #[test]
    fn strips_cover_the_picture_and_fit_the_device() {
        for sm in [75, 80, 86, 89, 90, 100, 120] {
            let device = Properties::typical(sm);
            for paths in [Paths::Four, Paths::Five, Paths::Eight] {
                for count in [1, 16, 64, 100, 128, 256, 512, 1024] {
                    for width in [1, 8, 640, 1280, 1920, 4096, 8192] {
                        let params = usual(count, paths);
                        let Some(strips) = Strips::of(&params, width, &device) else { continue };
                        assert!(strips.strip * strips.count >= width);
                        assert!(strips.trade <= strips.strip && strips.strip <= STRIP_MAX);
                        let sweeps = if strips.halves { 2 } else { 1 };
                        let held = strips.resident * device.multiprocessors;
                        assert!(paths == Paths::Four || strips.count * sweeps <= held);
                    }
                }
            }
        }
        // What cuda.md's table is about is taken by the sweeps, on every chip of its class.
        for width in [640, 1280, 1920] {
            let strips = Strips::of(&usual(128, Paths::Eight), width, &Properties::typical(90));
            assert!(strips.is_some_and(|strips| strips.halves), "{width}");
        }
    }
}
