//! Layout of a picture and a range of disparities over the threads of a device: the numbers that the
//! kernels are compiled with. What both sides compute, the kernels compare as they are compiled: macros
//! that begin with EXPECTED (`units.rs`) with formulas of their own.

use super::cost::{CostKernel, is_stored};
use super::device::Properties;
use crate::matching::residuals::RESIDUAL_MAX;
use crate::matching::temporal::shifts::{SUMS, SUMS_OF_REFERENCE};
use crate::matching::texture::RESPONSE_MAX;
use crate::matching::{BlockWindow, Cost, Params, Paths, Window};

/// VectorLayout of a warp.
pub(super) const WARP: u32 = 32;

/// Threads of a block of the kernels that go through a picture pixel by pixel.
pub(super) const BLOCK_THREADS: u32 = 256;

/// Width and height in pixels of the output of a median block.
pub(super) const MEDIAN_TILE: [u32; 2] = [64, 8];

/// Side in pixels of the output of a confidence block, one thread per pixel.
pub(super) const CONFIDENCE_TILE: u32 = 32;

/// Side in pixels of a tile in which the speckle filter looks for regions, the rows of it that a warp
/// labels, and the pixels of a thread where it goes through the map pixel by pixel.
pub(super) const SPECKLE_TILE: u32 = WARP;
pub(super) const SPECKLE_ROWS: u32 = 4;
pub(super) const SPECKLE_STEPS: u32 = 4;

/// Fewest columns of a strip, which all warps' pixels divide.
const STRIP_MIN: u32 = 8;

/// Most columns of a strip: their number must fit the low bits of a key (`KEY_NUMBERS`).
const STRIP_MAX: u32 = 32;

/// Strips from here on are wide enough for halos of eight columns.
const WIDE_STRIP: u32 = 24;

/// Registers that the threads of a sweep need at least to keep their vectors.
const REGISTERS_MIN: u32 = 64;

/// Registers with which the threads of a launch to the middle keep everything.
const REGISTERS_TO_MIDDLE: u32 = 80;

/// Width and height in pixels of what a block measures the texture of, the threads that find the noise
/// threshold, and the bytes of the histogram that they find it in: an even number of words.
pub(super) const TEXTURE_TILE: [u32; 2] = [64, 32];
pub(super) const THRESHOLD_THREADS: u32 = 1024;
pub(super) const HISTOGRAM_BYTES: usize = 4 * (RESPONSE_MAX + 1).next_multiple_of(2);

/// Width and height in pixels of a block's output in a half-size image.
pub(super) const SMALL_TILE: [u32; 2] = [32, 8];

/// Bytes of the histograms of residuals and of responses of the noise filter.
pub(super) const MAGNITUDE_BYTES: usize = 4 * (RESIDUAL_MAX as usize + 1 + RESPONSE_MAX + 1);

/// Bytes of the sums that the shifts of so many pictures are found by: those over the reference, and of each.
pub(super) fn shift_sum_bytes(history: usize) -> usize {
    8 * (SUMS_OF_REFERENCE + SUMS * history)
}

/// Blocks that write costs down: enough for the largest devices to have none that waits long for the last.
const COST_BLOCKS: u32 = 800;

/// Padding of a row of the cost volume for the halos of the first and the last strip, in columns.
pub(super) const VOLUME_BESIDE: u32 = 8;

/// Rows of stored path deltas that are on their way to a sweep's block, and fewer where shared memory is short; with 1
/// they take none of it.
const AHEAD: u32 = 4;
const AHEAD_FEWER: [u32; 3] = [AHEAD, 2, IN_REGISTERS];
const IN_REGISTERS: u32 = 1;

/// Rows of sums that a sweep's block has in work.
pub(super) const TILES: u32 = 4;

/// Numbers that count the tasks that are taken, one a launch.
const PROGRESS_COUNTERS: usize = 2;

/// Words in which a sweep's block keeps its tasks.
const TASK_RING: u32 = 8;

/// Columns that the horizontal paths load at most at a time, and their warps a block.
const CHUNK_MAX: u32 = 32;
pub(super) const HORIZONTAL_WARPS: u32 = 2;

/// Warps a block of the plain way, and the pixels of a row whose winners a block picks from their sums.
pub(super) const PLAIN_WARPS: u32 = 4;
pub(super) const SEGMENT: u32 = 128;

/// Padding of a prepared row for the halos of the first and the last strip, in columns.
pub(super) const BESIDE: u32 = 64;

/// Spread of a pixel's candidates (`lanes.cuh`): `group` lanes with `registers` registers of two
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

    /// Candidates with padding, which is also the bytes of a pixel's path deltas.
    pub fn padded(self) -> u32 {
        2 * self.half()
    }

    /// Words of a vector: half of the candidates.
    pub fn half(self) -> u32 {
        self.group * self.registers
    }

    /// Words of a path state in memory: a vector, and its least value.
    fn state_words(self) -> u32 {
        self.half() + 4
    }

    /// Bytes of a column's path states, of the three paths of a sweep.
    pub fn state_bytes(self) -> u32 {
        3 * 4 * self.state_words()
    }

    /// Bytes of a pixel's sums of path deltas over a sweep: one byte per candidate if they fit.
    pub fn sum_bytes(self, params: &Params) -> u32 {
        if sums_fit_bytes(params) { self.padded() } else { 2 * self.padded() }
    }

    /// Layout for the horizontal paths, of a cost that takes much arithmetic: half the registers in
    /// twice the lanes, so that there are twice as many warps to do it while others wait.
    pub fn horizontal(self, params: &Params) -> Self {
        let halved = VectorLayout { group: 2 * self.group, registers: self.registers / 2 };
        let cheap = is_stored(params) || matches!(params.cost, Cost::Ad { window: 1, .. });
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

    /// What the aggregation keeps.
    pub fn for_aggregation(params: &Params, lanes: VectorLayout) -> Self {
        Self::of(&CostKernel::for_aggregation(params, lanes.half()), lanes)
    }

    /// Prepared windows in a sweep's shared memory. Columns of a stored cost take more room than what a cost
    /// is computed from.
    pub fn windows(self) -> u32 {
        if self.planes == 0 { 4 } else { 8 }
    }

    /// Columns that the horizontal paths load at a time.
    pub fn chunk(self) -> u32 {
        if self.planes == 0 { 8 } else { CHUNK_MAX }
    }

    /// Words of a window of so many columns in shared memory: `WINDOW_WORDS`.
    fn window_words(self, columns: u32, lanes: VectorLayout) -> u32 {
        let plane = (columns + self.reach) / self.columns;
        let shift = if lanes.registers > lanes.pixels() { lanes.pixels() / 2 } else { 16 };
        let pitch = plane.next_multiple_of(32) + shift;
        columns * (1 + self.base_words) + self.planes * pitch
    }

    /// Shared memory of a block of the horizontal paths with such lanes, in bytes.
    pub fn horizontal_bytes(self, lanes: VectorLayout) -> u32 {
        let words = self.window_words(self.chunk() + 2 * self.margin, lanes);
        4 * HORIZONTAL_WARPS * 2 * lanes.pixels() * words
    }
}

/// Adjacent pixels whose grey levels one thread counts (`mutual_information.cu`).
pub(super) const COUNT_RUN: u32 = 8;

/// Columns of a prepared row for a picture that is `columns` wide with its last strip.
pub(super) fn prepared_row(columns: u32, lanes: VectorLayout) -> u32 {
    let inside = columns.next_multiple_of(CHUNK_MAX);
    (lanes.padded() + BESIDE + inside + BESIDE).next_multiple_of(32)
}

/// Columns of the volume of costs that belongs to prepared rows of so many.
pub(super) fn volume_columns(row: u32, lanes: VectorLayout) -> u32 {
    row - lanes.padded() - 2 * BESIDE + 2 * VOLUME_BESIDE
}

/// Part of the picture whose costs a block writes down (`compute_costs.cu`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct CostTile {
    /// Columns of a thread's pixels: they share most of what they look at in the right picture.
    pub pixels: u32,
    /// Columns with those that are only summed, of which there are `edge` on either side.
    pub columns: u32,
    pub edge: u32,
    pub rows: u32,
    pub threads: u32,
    pub shared_bytes: u32,
}

impl CostTile {
    /// The tile where the cost of so many candidates is averaged over this window, in a picture of this size.
    /// The fewer rows it has the more blocks there are, but each begins with those above its first row.
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

    /// Blocks for a picture of this size.
    pub fn grid(&self, (width, height): (usize, usize)) -> [u32; 2] {
        let across = (width as u32).div_ceil(self.columns - 2 * self.edge);
        [across, (height as u32).div_ceil(self.rows)]
    }
}

/// Part of the picture over whose windows a block sums (`aggregate_windows.cu`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct WindowTile {
    /// VectorLayout of a pixel's candidates that a block looks after.
    pub share: u32,
    /// Columns of a thread's pixels.
    pub pixels: u32,
    /// Columns with those that are only summed, of which there are `edge` on either side.
    pub columns: u32,
    pub edge: u32,
    pub rows: u32,
    pub threads: u32,
    pub shared_bytes: u32,
}

impl WindowTile {
    /// The tile for sums over this window of words of so many parts a register, in a picture of this size. The
    /// fewer rows it has the more blocks there are, but each begins with those above its first row.
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

    /// Blocks for a picture of this size.
    pub fn grid(&self, lanes: VectorLayout, (width, height): (usize, usize)) -> [u32; 3] {
        let across = (width as u32).div_ceil(self.columns - 2 * self.edge);
        [across, (height as u32).div_ceil(self.rows), lanes.group / self.share]
    }
}

/// Division of the picture between the blocks of a sweep (`aggregate_sweep.cu`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Strips {
    /// Columns of a strip.
    pub strip: u32,
    /// Number of strips.
    pub count: u32,
    /// Columns beside a strip that it gets from its neighbour, and rows from one exchange of them to the
    /// next.
    pub halo: u32,
    /// Set if two sweeps run at once and meet in the middle.
    pub two_sweeps: bool,
    /// Set where blocks take the rows between two exchanges of a strip as tasks, because not all strips are
    /// resident at once.
    pub tasks: bool,
    /// Rows of stored path deltas on their way.
    pub ahead: u32,
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
    /// The division for this device: strips that are all resident at once, or else tasks; `None` where there
    /// are none.
    pub fn of(params: &Params, width: u32, device: &Properties) -> Option<Self> {
        if params.is_local() || params.paths == Paths::Sixteen {
            return None;
        }
        Self::resident(params, width, device).or_else(|| Self::tasks(params, width, device))
    }

    /// Strips that all fit the device at once.
    ///
    /// One wide strip a multiprocessor is better than two narrow ones, because there are fewer halos and
    /// neighbours to wait for, but not where that leaves many multiprocessors without any.
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

    /// The widest strips of which a multiprocessor can go through at least one, task by task.
    ///
    /// Measured with 8 multiprocessors: one block with a strip of 32 columns takes 0.93 of the time of two with 16
    /// each, and those 0.9 of that of one with 16.
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
        // Without diagonal paths there are no halos, and little is won by wide strips.
        let aheads = if params.paths == Paths::Four { &AHEAD_FEWER[..2] } else { &AHEAD_FEWER };
        ways.flat_map(|way| aheads.iter().map(move |&ahead| (way, ahead))).map(one).find_map(
            |one| {
                // As many blocks as both launches hold; the first one may hold more, and gets them.
                (1..=most).map(|resident| Strips { resident, ..one }).take_while(fit).last()
            },
        )
    }

    /// The narrowest strips of which all are held with so many a multiprocessor.
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

    /// Sweeps that run at once.
    pub fn sweeps(&self) -> u32 {
        if self.two_sweeps { 2 } else { 1 }
    }

    /// Bytes through which a strip hands its border columns to both neighbours, two exchanges in turn:
    /// vectors, and 16 bytes with the least value of each.
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

    /// Bytes of the path states in memory, those of two bands in turn with tasks.
    pub fn states_bytes(&self, lanes: VectorLayout) -> usize {
        let turns = if self.tasks { 2 } else { 1 };
        turns * 2 * (self.count * self.strip) as usize * lanes.state_bytes() as usize
    }

    /// Blocks of a launch that a multiprocessor holds, for which its registers are given out. Tasks that go to the
    /// middle take little shared memory: two blocks, where that leaves their threads enough registers.
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
        // A block takes 1 KiB of shared memory for itself.
        block.threads <= 1024
            && block.shared_bytes <= device.shared_per_block
            && block.threads * self.resident <= device.threads_per_multiprocessor
            && (block.shared_bytes + 1024) * self.resident <= device.shared_per_multiprocessor
            && registers >= REGISTERS_MIN
    }

    /// The block of the launch that sweeps to the middle, or of the one that goes on from there and
    /// selects the winners (`select`): `SWEEP_THREADS` and `SHARED_WORDS`.
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

/// Tells whether the sum of a sweep's path deltas fits a byte: `SUM_BYTES`.
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
        // What few multiprocessors do not hold goes through tasks, whatever the chip.
        for sm in [75, 80, 86, 87, 89, 90, 120] {
            let device = Properties { multiprocessors: 8, ..Properties::typical(sm) };
            for (paths, count) in [(Paths::Four, 128), (Paths::Eight, 128), (Paths::Eight, 256)] {
                let strips = Strips::of(&usual(count, paths), 1920, &device);
                assert!(strips.is_some_and(|strips| strips.tasks), "{sm} {paths:?} {count}");
            }
        }
        // 100 KiB hold a strip of 24 columns where what is stored waits in registers.
        let device = Properties { multiprocessors: 24, ..Properties::typical(89) };
        let bare = Params { window: None, prior: None, ..usual(128, Paths::Eight) };
        let strips = Strips::of(&bare, 1280, &device);
        assert!(strips.is_some_and(|s| (s.strip, s.ahead) == (24, IN_REGISTERS)), "{strips:?}");
        // The sizes of docs/performance.md are taken by the sweeps, on every chip of its class.
        for width in [640, 1280, 1920] {
            let strips = Strips::of(&usual(128, Paths::Eight), width, &Properties::typical(90));
            assert!(strips.is_some_and(|strips| strips.two_sweeps), "{width}");
        }
    }
}
