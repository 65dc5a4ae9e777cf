//! Layout of a picture and a range of disparities over the threads of a device: the constants of the kernels.
//! Some are computed on both sides: macros that begin with EXPECTED (`units.rs`) are compared with the
//! kernels' own formulas at compile time.

use super::cost::{CostKernel, is_stored};
use super::device::Properties;
use crate::matching::residuals::RESIDUAL_MAX;
use crate::matching::temporal::shifts::{SUMS, SUMS_OF_REFERENCE};
use crate::matching::texture::RESPONSE_MAX;
use crate::matching::{BlockWindow, Cost, Params, Paths, Window};

pub(super) const WARP: u32 = 32;

/// Threads of a block of pixel-wise kernels.
pub(super) const BLOCK_THREADS: u32 = 256;

/// Width and height in pixels of the output of a median block.
pub(super) const MEDIAN_TILE: [u32; 2] = [64, 8];

/// Side in pixels of the output of a confidence block, one thread per pixel.
pub(super) const CONFIDENCE_TILE: u32 = 32;

/// Speckle filter: side of a tile in pixels, rows of a tile per warp, and pixels per thread in pixel-wise
/// kernels.
pub(super) const SPECKLE_TILE: u32 = WARP;
pub(super) const SPECKLE_ROWS: u32 = 4;
pub(super) const SPECKLE_STEPS: u32 = 4;

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

/// Texture kernel: tile size in pixels, threads of the noise threshold, bytes of its histogram (an even
/// number of words).
pub(super) const TEXTURE_TILE: [u32; 2] = [64, 32];
pub(super) const THRESHOLD_THREADS: u32 = 1024;
pub(super) const HISTOGRAM_BYTES: usize = 4 * (RESPONSE_MAX + 1).next_multiple_of(2);

/// Width and height in pixels of a block's output in a half-size image.
pub(super) const SMALL_TILE: [u32; 2] = [32, 8];

/// Bytes of the histograms of residuals and of responses of the noise filter.
pub(super) const MAGNITUDE_BYTES: usize = 4 * (RESIDUAL_MAX as usize + 1 + RESPONSE_MAX + 1);

/// Bytes of the sums for the shifts of `history` pictures: over the reference, and with each picture.
pub(super) fn shift_sum_bytes(history: usize) -> usize {
    8 * (SUMS_OF_REFERENCE + SUMS * history)
}

/// Number of blocks for storing costs: enough that even the largest devices do not wait long for the last
/// one.
const COST_BLOCKS: u32 = 800;

/// Padding of a row of the cost volume for the halos of the first and the last strip, in columns.
pub(super) const VOLUME_BESIDE: u32 = 8;

/// Rows of stored path deltas prefetched by a sweep's block, and fewer if shared memory is short; with 1 they
/// stay in registers.
const AHEAD: u32 = 4;
const AHEAD_FEWER: [u32; 3] = [AHEAD, 2, IN_REGISTERS];
const IN_REGISTERS: u32 = 1;

/// Rows of sums that a sweep's block processes at once.
pub(super) const TILES: u32 = 4;

/// Number of counters of taken tasks, one per launch.
const PROGRESS_COUNTERS: usize = 2;

/// Words of a sweep's block for its tasks.
const TASK_RING: u32 = 8;

/// Largest number of columns per load of the horizontal paths, and their warps per block.
const CHUNK_MAX: u32 = 32;
pub(super) const HORIZONTAL_WARPS: u32 = 2;

/// Path-by-path aggregation: warps per block, and pixels of a row per block of the winner kernel.
pub(super) const PLAIN_WARPS: u32 = 4;
pub(super) const SEGMENT: u32 = 128;

/// Padding of a prepared row for the halos of the first and the last strip, in columns.
pub(super) const BESIDE: u32 = 64;

/// Distribution of a pixel's candidates (`lanes.cuh`): `group` lanes with `registers` registers of two
/// candidates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct VectorLayout {
    pub group: u32,
    pub registers: u32,
}

impl VectorLayout {
    /// Returns the layout with the least padding for this number of candidates, 1 to 1024.
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
        let layouts = LAYOUTS.map(|(group, registers)| VectorLayout { group, registers });
        let fits = layouts.into_iter().find(|lanes| lanes.padded() as usize >= count);
        fits.unwrap_or(layouts[LAYOUTS.len() - 1])
    }

    /// Number of candidates with padding, and bytes of a pixel's path deltas.
    pub fn padded(self) -> u32 {
        2 * self.half()
    }

    /// Words of a vector: half of the candidates.
    pub fn half(self) -> u32 {
        self.group * self.registers
    }

    /// Words of a path state in memory: a vector and its minimum.
    fn state_words(self) -> u32 {
        self.half() + 4
    }

    /// Bytes of a column's path states, for the three paths of a sweep.
    pub fn state_bytes(self) -> u32 {
        3 * 4 * self.state_words()
    }

    /// Bytes of a pixel's sums of path deltas over a sweep: one byte per candidate if they fit.
    pub fn sum_bytes(self, params: &Params) -> u32 {
        if sums_fit_bytes(params) { self.padded() } else { 2 * self.padded() }
    }

    /// Layout for the horizontal paths. An arithmetically expensive cost gets half the registers in twice the
    /// lanes, so that twice as many warps hide latency.
    pub fn horizontal(self, params: &Params) -> Self {
        let halved = VectorLayout { group: 2 * self.group, registers: self.registers / 2 };
        let cheap = is_stored(params) || matches!(params.cost, Cost::Ad { window: 1, .. });
        if cheap || halved.group > WARP || !halved.registers.is_multiple_of(2) {
            self
        } else {
            halved
        }
    }

    pub fn pixels(self) -> u32 {
        WARP / self.group
    }
}

/// Sizes of the prepared features of a cost (`cost.cuh`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Prepared {
    pub base_words: u32,
    pub planes: u32,
    pub columns: u32,
    pub reach: u32,
    pub margin: u32,
}

impl Prepared {
    pub fn of(cost: &CostKernel, lanes: VectorLayout) -> Self {
        let &CostKernel { base_words, planes, columns, margin, .. } = cost;
        let reach = match (planes, columns) {
            (0, _) => 0,
            (_, 2) => lanes.half(),
            _ => lanes.padded(),
        };
        Prepared { base_words, planes, columns, reach, margin }
    }

    /// Features for the aggregation.
    pub fn for_aggregation(params: &Params, lanes: VectorLayout) -> Self {
        Self::of(&CostKernel::for_aggregation(params, lanes.half()), lanes)
    }

    /// Number of prepared windows in a sweep's shared memory. Columns of a stored cost are larger than
    /// features.
    pub fn windows(self) -> u32 {
        if self.planes == 0 { 4 } else { 8 }
    }

    /// Columns per load of the horizontal paths.
    pub fn chunk(self) -> u32 {
        if self.planes == 0 { 8 } else { CHUNK_MAX }
    }

    /// Words of a window of this many columns in shared memory: `WINDOW_WORDS`.
    fn window_words(self, columns: u32, lanes: VectorLayout) -> u32 {
        let plane = (columns + self.reach) / self.columns;
        let shift = if lanes.registers > lanes.pixels() { lanes.pixels() / 2 } else { 16 };
        let pitch = plane.next_multiple_of(32) + shift;
        columns * (1 + self.base_words) + self.planes * pitch
    }

    /// Shared memory of a block of the horizontal paths with this layout, in bytes.
    pub fn horizontal_bytes(self, lanes: VectorLayout) -> u32 {
        let words = self.window_words(self.chunk() + 2 * self.margin, lanes);
        4 * HORIZONTAL_WARPS * 2 * lanes.pixels() * words
    }
}

/// Adjacent pixels per thread when grey levels are counted (`mutual_information.cu`).
pub(super) const COUNT_RUN: u32 = 8;

/// Columns of a prepared row for a picture of `columns` columns, including its last strip.
pub(super) fn prepared_row(columns: u32, lanes: VectorLayout) -> u32 {
    let inside = columns.next_multiple_of(CHUNK_MAX);
    (lanes.padded() + BESIDE + inside + BESIDE).next_multiple_of(32)
}

/// Columns of the cost volume for prepared rows of this length.
pub(super) fn volume_columns(row: u32, lanes: VectorLayout) -> u32 {
    row - lanes.padded() - 2 * BESIDE + 2 * VOLUME_BESIDE
}

/// Part of the picture per block of the cost volume (`compute_costs.cu`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct CostTile {
    /// Columns of a thread's pixels, which share most of their right columns.
    pub pixels: u32,
    /// Columns including `edge` columns on either side that are only summed.
    pub columns: u32,
    pub edge: u32,
    pub rows: u32,
    pub threads: u32,
    pub shared_bytes: u32,
}

impl CostTile {
    /// The tile for averaging the cost over this window, in a picture of this size. Fewer rows give more
    /// blocks, but each first processes the rows above it.
    pub fn of(window: Option<Window>, lanes: VectorLayout, size: (usize, usize)) -> Self {
        let side = window.map_or(1, |window| u32::from(window.side));
        let threads = BLOCK_THREADS;
        let pixels = if lanes.registers <= 8 { 2 } else { 1 };
        let words = pixels * (side * lanes.registers / 2 + lanes.registers);
        let tile = |rows| CostTile {
            pixels,
            columns: threads / lanes.group * pixels,
            edge: (side / 2).next_multiple_of(pixels),
            rows,
            threads,
            shared_bytes: if side > 1 { 4 * threads * words } else { 0 },
        };
        let enough = |tile: &CostTile| tile.grid(size).iter().product::<u32>() >= COST_BLOCKS;
        [32, 16].map(tile).into_iter().find(enough).unwrap_or(tile(8))
    }

    /// Number of blocks for a picture of this size.
    pub fn grid(&self, (width, height): (usize, usize)) -> [u32; 2] {
        let across = (width as u32).div_ceil(self.columns - 2 * self.edge);
        [across, (height as u32).div_ceil(self.rows)]
    }
}

/// Part of the picture per block of the window sums (`aggregate_windows.cu`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct WindowTile {
    /// Lanes of a pixel's candidates per block.
    pub share: u32,
    /// Columns of a thread's pixels.
    pub pixels: u32,
    /// Columns including `edge` columns on either side that are only summed.
    pub columns: u32,
    pub edge: u32,
    pub rows: u32,
    pub threads: u32,
    pub shared_bytes: u32,
}

impl WindowTile {
    /// The tile for sums over this window of words with `parts` parts per register, in a picture of this
    /// size. Fewer rows give more blocks, but each first processes the rows above it.
    pub fn of(window: BlockWindow, parts: u32, lanes: VectorLayout, size: (usize, usize)) -> Self {
        let threads = BLOCK_THREADS;
        let share = lanes.group.min(8);
        let pixels = if lanes.registers <= 8 { 2 } else { 1 };
        let tile = |rows| WindowTile {
            share,
            pixels,
            columns: threads / share * pixels,
            edge: (u32::from(window.width) / 2).next_multiple_of(pixels),
            rows,
            threads,
            shared_bytes: 4 * threads * pixels * lanes.registers * parts,
        };
        let enough =
            |tile: &WindowTile| tile.grid(lanes, size).iter().product::<u32>() >= COST_BLOCKS;
        [64, 32].map(tile).into_iter().find(enough).unwrap_or(tile(16))
    }

    /// Number of blocks for a picture of this size.
    pub fn grid(&self, lanes: VectorLayout, (width, height): (usize, usize)) -> [u32; 3] {
        let across = (width as u32).div_ceil(self.columns - 2 * self.edge);
        [across, (height as u32).div_ceil(self.rows), lanes.group / self.share]
    }
}

/// Division of the picture into strips for the blocks of a sweep (`aggregate_sweep.cu`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Strips {
    pub strip: u32,
    pub count: u32,
    /// Columns that a strip gets from each neighbour, and rows between two exchanges of them.
    pub halo: u32,
    /// Set if two sweeps run at once and meet in the middle.
    pub two_sweeps: bool,
    /// Whether blocks take the rows of a strip between two exchanges as tasks, because not all strips are
    /// resident at once.
    pub tasks: bool,
    /// Prefetched rows of stored path deltas.
    pub ahead: u32,
    /// Number of blocks of a launch that must be resident on a multiprocessor.
    pub resident: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Block {
    pub threads: u32,
    pub shared_bytes: u32,
}

impl Strips {
    /// The division for this device: strips that are all resident at once, or else tasks; `None` if neither
    /// fits.
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
    /// with 16 each, and two take 0.9 of the time of one with 16.
    fn tasks(params: &Params, width: u32, device: &Properties) -> Option<Self> {
        const WAYS: [(u32, u32); 6] = [(32, 8), (24, 8), (16, 8), (8, 8), (8, 4), (4, 4)];
        let pixels = VectorLayout::of(params.range.count).pixels();
        let ways = WAYS.into_iter().filter(|(strip, _)| strip.is_multiple_of(pixels));
        let one = |((strip, halo), ahead): ((u32, u32), u32)| {
            let (count, two_sweeps) = (width.div_ceil(strip), params.paths != Paths::Five);
            Strips { strip, count, halo, two_sweeps, tasks: true, ahead, resident: 1 }
        };
        let fit = |strips: &Strips| {
            [false, true].iter().all(|&select| strips.fits(params, select, device))
        };
        let most = device.threads_per_multiprocessor / WARP;
        // Without diagonal paths there are no halos, and wide strips gain little.
        let aheads = if params.paths == Paths::Four { &AHEAD_FEWER[..2] } else { &AHEAD_FEWER };
        ways.flat_map(|way| aheads.iter().map(move |&ahead| (way, ahead))).map(one).find_map(
            |one| {
                // As many blocks as fit for both launches; the first one may fit more, and gets them.
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
        let pixels = VectorLayout::of(params.range.count).pixels();
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
        let lanes = VectorLayout::of(params.range.count);
        let prepared = Prepared::for_aggregation(params, lanes);
        let (half, pixels, strip, halo) = (lanes.half(), lanes.pixels(), self.strip, self.halo);
        let diagonals = u32::from(params.paths != Paths::Four);

        let main = strip / pixels;
        let groups = if self.tasks { halo / 2 } else { halo - 1 };
        let beside = diagonals * groups.div_ceil(pixels);
        let right = if params.left_right.is_some() { (half + strip - 1).div_ceil(WARP) } else { 0 };
        let support = if select { main + right + 2 } else { 1 };
        let threads = WARP * (main + 2 * beside + support + u32::from(self.tasks));

        let slots = strip + halo;
        let paths = diagonals * 4 * slots * half;
        let leasts = diagonals * 4 * slots.next_multiple_of(4);
        let columns = strip + 2 * diagonals * halo + 2 * prepared.margin;
        let window = prepared.window_words(columns, lanes).next_multiple_of(4);
        let windows = prepared.windows() * window;
        let mut words = paths + leasts + windows;
        if select {
            let byte_words = lanes.registers / 2;
            let sum_words = if sums_fit_bytes(params) { byte_words } else { lanes.registers };
            let others = u32::from(params.paths != Paths::Five);
            let rows = if self.ahead == IN_REGISTERS { 0 } else { self.ahead };
            words += rows * (sum_words * others + 2 * byte_words) * main * WARP;
            words += TILES * (strip + strip * (half + strip)) + 4 * strip;
        }
        if self.tasks {
            words += (strip + diagonals * 2 * slots) * lanes.state_words() + TASK_RING;
        }
        Block { threads, shared_bytes: 4 * words }
    }
}

/// Reports whether the sum of a sweep's path deltas fits a byte: `SUM_BYTES`.
fn sums_fit_bytes(params: &Params) -> bool {
    let paths = if params.paths == Paths::Four { 1 } else { 3 };
    paths * u32::from(params.p2) <= 255
}

#[cfg(test)]
mod tests {
    use super::*;

    fn usual(count: usize, paths: Paths) -> Params {
        let params = crate::settings::Matching::default().params().unwrap();
        let cost = Cost::Ad { truncation: 32, window: 1 };
        let range = crate::core::frame::DisparityRange { min: 0, count };
        Params { range, paths, cost, ..params }
    }

    #[test]
    fn every_number_of_candidates_has_a_layout() {
        let mut last = 0;
        for count in 1..=1024 {
            let lanes = VectorLayout::of(count);
            assert!(lanes.padded() as usize >= count);
            assert!(lanes.registers.is_multiple_of(2) && lanes.group.is_power_of_two());
            assert!(lanes.padded() >= last);
            last = lanes.padded();
        }
        assert_eq!(VectorLayout::of(128), VectorLayout { group: 8, registers: 8 });
        assert_eq!(VectorLayout::of(129).padded(), 192);
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
