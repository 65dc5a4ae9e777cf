//! Strips of the picture for the blocks of a sweep (`aggregate_sweep.cu`).

use super::super::device::Properties;
use super::{Prepared, VectorLayout, WARP, sums_fit_bytes};
use crate::matching::{Params, Paths};

/// Smallest strip in columns; a multiple of all warps' pixels.
const STRIP_MIN: u32 = 8;

/// Largest strip in columns: their number must fit the low bits of a key (`KEY_NUMBERS`).
const STRIP_MAX: u32 = 32;

/// Smallest strip in columns for halos of eight columns.
const WIDE_STRIP: u32 = 24;

/// Smallest number of registers per thread of a sweep, for its vectors.
const REGISTERS_MIN: u32 = 64;

/// Registers per thread with which a launch to the middle does not spill.
const REGISTERS_TO_MIDDLE: u32 = 80;

/// Rows of path deltas prefetched by a block, fewer if memory is short; with 1 they stay in registers.
const AHEAD: u32 = 4;
const AHEAD_FEWER: [u32; 3] = [AHEAD, 2, IN_REGISTERS];
const IN_REGISTERS: u32 = 1;

/// Number of counters of taken tasks, one per launch.
const PROGRESS_COUNTERS: usize = 2;

/// Words of a sweep's block for its tasks.
const TASK_RING: u32 = 8;

/// Division of the picture into strips for the blocks of a sweep (`aggregate_sweep.cu`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Strips {
    pub strip: u32,
    pub count: u32,
    /// Columns that a strip gets from each neighbour, and rows between two exchanges of them.
    pub halo: u32,
    /// Set if two sweeps run at once and meet in the middle.
    pub two_sweeps: bool,
    /// Whether blocks take the rows of a strip as tasks, because not all strips are resident at once.
    pub tasks: bool,
    /// Prefetched rows of stored path deltas.
    pub ahead: u32,
    /// Number of blocks of a launch that must be resident on a multiprocessor.
    pub resident: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Block {
    pub threads: u32,
    pub shared_bytes: u32,
}

impl Strips {
    /// Strips that are all resident at once on this device, or else tasks; `None` if neither fits.
    pub fn of(params: &Params, width: u32, device: &Properties) -> Option<Self> {
        if params.is_local() || params.paths == Paths::Sixteen {
            return None;
        }
        Self::resident(params, width, device).or_else(|| Self::tasks(params, width, device))
    }

    /// Strips that are all resident at once.
    ///
    /// One wide strip per multiprocessor is better than two narrow ones, because there are fewer halos and
    /// neighbours to wait for, unless many multiprocessors would get none.
    fn resident(params: &Params, width: u32, device: &Properties) -> Option<Self> {
        if params.paths != Paths::Four && !device.cooperative {
            return None;
        }
        let ways: &[bool] = if params.paths == Paths::Five { &[false] } else { &[true, false] };
        let most = device.threads_per_multiprocessor / (8 * WARP);
        ways.iter().find_map(|&two_sweeps| {
            let found: Vec<Strips> = (1..=most)
                .filter_map(|resident| Self::held(params, width, device, two_sweeps, resident))
                .collect();
            let busy = |strips: &&Strips| {
                let blocks = strips.count * strips.sweeps();
                strips.strip == STRIP_MIN
                    || 4 * blocks >= 3 * strips.resident * device.multiprocessors
            };
            found.iter().find(busy).or(found.first()).copied()
        })
    }

    /// The widest strips with at least one resident block per multiprocessor, task by task.
    ///
    /// Measured with 8 multiprocessors: one block with a strip of 32 columns takes 0.93 of the time of two
    /// with 16 each, and two take 0.9 of the time of one with 16. Without diagonal paths there are no halos:
    /// tasks of as many rows as columns take 0.96 of the time of those of eight rows, and where 16 lanes or
    /// more follow a path, strips of 16 columns take 0.94 of the time of those of 24.
    fn tasks(params: &Params, width: u32, device: &Properties) -> Option<Self> {
        const WAYS: [(u32, u32); 6] = [(32, 8), (24, 8), (16, 8), (8, 8), (8, 4), (4, 4)];
        let lanes = VectorLayout::of(params);
        let straight = !has_diagonals(params);
        let widest = if straight && lanes.group >= 16 { 16 } else { STRIP_MAX };
        let fits_lanes = |strip: u32| strip.is_multiple_of(lanes.pixels()) && strip <= widest;
        let ways = WAYS.into_iter().filter(|(strip, _)| fits_lanes(*strip));
        let ways = ways.map(|(strip, halo)| (strip, if straight { strip } else { halo }));
        let one = |((strip, halo), ahead): ((u32, u32), u32)| {
            let (count, two_sweeps) = (width.div_ceil(strip), params.paths != Paths::Five);
            Strips { strip, count, halo, two_sweeps, tasks: true, ahead, resident: 1 }
        };
        let fit = |strips: &Strips| {
            [false, true].iter().all(|&select| strips.fits(params, select, device))
        };
        let most = device.threads_per_multiprocessor / WARP;
        // Wide strips gain little without halos.
        let aheads = if straight { &AHEAD_FEWER[..2] } else { &AHEAD_FEWER };
        ways.flat_map(|way| aheads.iter().map(move |&ahead| (way, ahead))).map(one).find_map(
            |one| {
                // The largest number of blocks that fits both launches; the first one may take more.
                (1..=most).map(|resident| Strips { resident, ..one }).take_while(fit).last()
            },
        )
    }

    /// The narrowest strips that are all resident with this number per multiprocessor.
    fn held(
        params: &Params,
        width: u32,
        device: &Properties,
        two_sweeps: bool,
        resident: u32,
    ) -> Option<Self> {
        let pixels = VectorLayout::of(params).pixels();
        let widths = (STRIP_MIN..=STRIP_MAX).step_by(pixels.max(4) as usize);
        widths.into_iter().find_map(|strip| {
            let halo = if strip >= WIDE_STRIP { 8 } else { pixels.max(4) };
            let count = width.div_ceil(strip);
            let ahead = AHEAD;
            let strips = Strips { strip, count, halo, two_sweeps, tasks: false, ahead, resident };
            let held = strips.count * strips.sweeps() <= resident * device.multiprocessors;
            let fits = || [false, true].map(|select| strips.fits(params, select, device));
            (held && fits() == [true, true]).then_some(strips)
        })
    }

    pub fn sweeps(&self) -> u32 {
        if self.two_sweeps { 2 } else { 1 }
    }

    /// Bytes that a strip uses to pass its border columns to both neighbours, for two alternating exchanges:
    /// vectors, and 16 bytes with the minimum of each.
    pub fn halo_bytes(&self, lanes: VectorLayout) -> u32 {
        2 * 2 * self.halo * (4 * lanes.half() + 16)
    }

    /// Bytes of the messages between strips: halos (`HaloExchange`) or progress (`Carrier`).
    pub fn between_bytes(&self, lanes: VectorLayout) -> usize {
        match self.tasks {
            true => 4 * (PROGRESS_COUNTERS + 2 * self.count as usize),
            false => 2 * self.count as usize * self.halo_bytes(lanes) as usize,
        }
    }

    /// Bytes of the path states in memory; with tasks, of two alternating bands.
    pub fn states_bytes(&self, lanes: VectorLayout) -> usize {
        let turns = if self.tasks { 2 } else { 1 };
        turns * 2 * (self.count * self.strip) as usize * lanes.state_bytes() as usize
    }

    /// Number of resident blocks per multiprocessor for which the kernel is compiled, which limits its
    /// registers. Tasks to the middle need little shared memory: two blocks, if that leaves their threads
    /// enough registers.
    pub fn compiled_for(&self, params: &Params, select: bool, device: &Properties) -> u32 {
        let two = Strips { resident: self.resident.max(2), ..*self };
        let threads = two.resident * self.block(params, select).threads;
        let enough = device.registers_per_multiprocessor / threads >= REGISTERS_TO_MIDDLE;
        match self.tasks && !select && enough && two.fits(params, select, device) {
            true => two.resident,
            false => self.resident,
        }
    }

    /// Whether other warps than those that follow the paths pick the winners (`PICKS_APART`).
    fn picks_apart(&self, params: &Params) -> bool {
        !self.tasks || has_diagonals(params)
    }

    /// Rows of sums that a block processes at once.
    pub fn tiles(&self, params: &Params) -> u32 {
        if self.picks_apart(params) { 4 } else { 2 }
    }

    fn fits(&self, params: &Params, select: bool, device: &Properties) -> bool {
        let block = self.block(params, select);
        let registers = device.registers_per_multiprocessor / (block.threads * self.resident);
        // A block reserves 1 KiB of shared memory for the system.
        block.threads <= 1024
            && block.shared_bytes <= device.shared_per_block
            && block.threads * self.resident <= device.threads_per_multiprocessor
            && (block.shared_bytes + 1024) * self.resident <= device.shared_per_multiprocessor
            && registers >= REGISTERS_MIN
    }

    /// The block of the launch that sweeps to the middle, or of the one that continues from there and selects
    /// the winners (`select`): `SWEEP_THREADS` and `SHARED_WORDS`.
    pub fn block(&self, params: &Params, select: bool) -> Block {
        let lanes = VectorLayout::of(params);
        let prepared = Prepared::for_aggregation(params, lanes);
        let (half, pixels, strip, halo) = (lanes.half(), lanes.pixels(), self.strip, self.halo);
        let diagonals = u32::from(has_diagonals(params));

        let main = strip / pixels;
        let groups = if self.tasks { halo / 2 } else { halo - 1 };
        let beside = diagonals * groups.div_ceil(pixels);
        let diagonals_of_right = match lanes.is_windowed() {
            true => lanes.group * (pixels + lanes.registers),
            false => half + strip - 1,
        };
        let right = params.left_right.map_or(0, |_| diagonals_of_right.div_ceil(WARP));
        let picks = if self.picks_apart(params) { main } else { 0 };
        let support = if select { picks + right + 2 } else { 1 };
        let threads = WARP * (main + 2 * beside + support + u32::from(self.tasks));

        let slots = strip + halo;
        let paths = diagonals * 4 * slots * half;
        let leasts = diagonals * 4 * slots.next_multiple_of(4);
        let columns = strip + 2 * diagonals * halo + 2 * prepared.margin;
        let window = prepared.window_words(columns, lanes).next_multiple_of(4);
        let windows = prepared.windows() * window;
        let nothing = if lanes.is_windowed() { half + 4 } else { 0 };
        let mut words = paths + leasts + windows + nothing;
        if select {
            let byte_words = lanes.registers / 2;
            let sum_words = if sums_fit_bytes(params) { byte_words } else { lanes.registers };
            let others = u32::from(params.paths != Paths::Five);
            let rows = if self.ahead == IN_REGISTERS { 0 } else { self.ahead };
            words += rows * (sum_words * others + 2 * byte_words) * main * WARP;
            let beside = if lanes.is_windowed() { 4 } else { strip };
            words += self.tiles(params) * (strip + strip * (half + beside)) + 4 * strip;
        }
        if self.tasks {
            words += (strip + diagonals * 2 * slots) * lanes.state_words() + TASK_RING;
        }
        Block { threads, shared_bytes: 4 * words }
    }
}

fn has_diagonals(params: &Params) -> bool {
    params.paths != Paths::Four
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::matching::Cost;

    fn usual(count: usize, paths: Paths) -> Params {
        let params = crate::settings::Matching::default().params().unwrap();
        let cost = Cost::Ad { truncation: 32, window: 1 };
        let range = crate::frame::DisparityRange { min: 0, count };
        Params { range, paths, cost, ..params }
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
                        assert!(strips.halo <= strips.strip && strips.strip <= STRIP_MAX);
                        let held = strips.resident * device.multiprocessors;
                        let together = strips.count * strips.sweeps() <= held;
                        assert!(strips.tasks || paths == Paths::Four || together);
                    }
                }
            }
        }
        // Strips that are not all resident on few multiprocessors become tasks, on any chip.
        for sm in [75, 80, 86, 87, 89, 90, 120] {
            let device = Properties { multiprocessors: 8, ..Properties::typical(sm) };
            for (paths, count) in [(Paths::Four, 128), (Paths::Eight, 128), (Paths::Eight, 256)] {
                let strips = Strips::of(&usual(count, paths), 1920, &device);
                assert!(strips.is_some_and(|strips| strips.tasks), "{sm} {paths:?} {count}");
            }
        }
        // Tasks along 4 paths are squares, narrower where 16 lanes follow a path. Their blocks are small.
        for (count, side) in [(64, 32), (128, 32), (192, 32), (256, 16)] {
            let device = Properties { multiprocessors: 8, ..Properties::typical(90) };
            let defaults = crate::settings::Matching::default().params().unwrap();
            let range = crate::frame::DisparityRange { min: 0, count };
            let strips = Strips::of(&Params { range, ..defaults }, 1920, &device);
            let found = strips.map(|strips| (strips.strip, strips.halo));
            assert_eq!(found, Some((side, side)), "{count}");
            let blocks = strips.map(|strips| strips.resident >= 2);
            assert_eq!(blocks, Some(count != 192), "{count}: two blocks share a multiprocessor");
        }
        // 100 KiB hold a strip of 24 columns if stored deltas stay in registers.
        let device = Properties { multiprocessors: 24, ..Properties::typical(89) };
        let bare = Params { window: None, prior: None, ..usual(128, Paths::Eight) };
        let strips = Strips::of(&bare, 1280, &device);
        assert!(strips.is_some_and(|s| (s.strip, s.ahead) == (24, IN_REGISTERS)), "{strips:?}");
        // The sizes of docs/performance.md use sweeps, on every chip of its class.
        for width in [640, 1280, 1920] {
            let strips = Strips::of(&usual(128, Paths::Eight), width, &Properties::typical(90));
            assert!(strips.is_some_and(|strips| strips.two_sweeps), "{width}");
        }
    }
}
