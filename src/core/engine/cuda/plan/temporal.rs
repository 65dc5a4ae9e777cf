//! The spatio-temporal stage (`kernels/temporal_shift.cu`, `temporal_background.cu`), before matching.
//!
//! Its launches wait for the same stage of the previous frame, but not for its matching and filters, so that
//! the pictures of a pair are prepared while earlier pairs are still being matched.

use super::super::geometry::{
    BLOCK_THREADS, MAGNITUDE_BYTES, SMALL_TILE, TEXTURE_TILE, shift_sum_bytes,
};
use super::super::job::Job;
use super::super::launch::{Arg, BufferId, Chain, Launch, Passed, Plan, Scope, Unit};
use crate::matching::temporal::layout::{HEADER, Layout, place};
use crate::matching::temporal::{Mode, NAME, Temporal};

const LIMITS_BYTES: usize = 16;

/// Number of blocks that clear the state.
const FORGETTING: u32 = 256;

/// The units of the stage, if it is enabled.
pub fn units(job: &Job) -> Vec<Unit> {
    let Some(Temporal { mode, history, degree }) = job.params.temporal else { return Vec::new() };
    let of_state = |unit: Unit| {
        let unit = residuals(unit.pixelwise());
        unit.define("HISTORY", history)
            .define("STATE_HEADER", HEADER)
            .define("PLACE_COUNT", place::COUNT)
            .define("PLACE_NEWEST", place::NEWEST)
            .define("PLACE_MOVING", place::MOVING)
            .define("PLACE_VARIANCES", place::VARIANCES)
            .define("PLACE_SPREAD", place::SPREAD)
            .define("PLACE_FRAME_SHIFT", place::FRAME_SHIFT)
            .define("PLACE_FRAME_SHIFT_KNOWN", place::FRAME_SHIFT_KNOWN)
    };
    let [small_width, small_height] = SMALL_TILE;
    let shift = of_state(Unit::new("temporal_shift.cu"))
        .define("DEGREE", degree)
        .define("RUN_ROWS", TEXTURE_TILE[1])
        .define("SMALL_WIDTH", small_width)
        .define("SMALL_HEIGHT", small_height)
        .define("EXPECTED_SUM_BYTES", shift_sum_bytes(usize::from(history)));
    let background = of_state(Unit::new("temporal_background.cu"))
        .define("DENOISE", u8::from(mode == Mode::Denoise));
    vec![shift, background]
}

/// A unit that measures residuals.
pub fn residuals(unit: Unit) -> Unit {
    let [width, height] = TEXTURE_TILE;
    unit.define("TILE_WIDTH", width)
        .define("TILE_HEIGHT", height)
        .define("EXPECTED_MAGNITUDE_BYTES", MAGNITUDE_BYTES)
}

impl Plan {
    /// Passes both pictures, of this size, through the stage; returns the pictures for matching.
    pub(super) fn pass(
        &mut self,
        how: Temporal,
        size: (usize, usize),
        eyes: [BufferId; 2],
    ) -> [BufferId; 2] {
        let layout = Layout::new(size, how.history);
        let state = self.state(NAME, layout.words());
        let found = self.buffer("coefficients", 4 * (3 * layout.history + 1), Scope::Slot);
        let tickets = self.buffer("tickets", 4 * TICKETS, Scope::Slot);
        let mut stage = Stage { plan: self, layout, state, tickets, found, eyes };
        stage.begin();
        let levels = stage.smaller();
        stage.search(&levels);
        let matched = stage.decide(how.mode);
        stage.remember();
        matched
    }
}

/// Indices in the counter buffer: tickets that find a kernel's last block, and the moving pixels.
const TICKET_OF_SHIFTS: usize = 0;
const TICKETS_OF_RESIDUALS: usize = 1;
const MOVING: usize = 3;
const TICKET_OF_DECISIONS: usize = 4;
const TICKETS: usize = 5;

/// Smallest number of blocks for the search, if there are enough pictures: a small picture alone has too few
/// blocks to hide the latency of memory.
const SEARCH_BLOCKS: u32 = 400;

/// A level of the search for shifts: both views and, at a quarter of the size and below, the previous pair.
struct Level {
    size: (usize, usize),
    pictures: Vec<BufferId>,
}

impl Level {
    /// Grid of tiles of this size, for all pictures.
    fn grid(&self, [across, down]: [u32; 2], pictures: u32) -> [u32; 3] {
        grid(self.size, [across, down], pictures)
    }

    fn size(&self) -> [Arg; 2] {
        [self.size.0, self.size.1].map(number)
    }
}

/// The stage in the making.
struct Stage<'a> {
    plan: &'a mut Plan,
    layout: Layout,
    state: BufferId,
    tickets: BufferId,
    /// The coefficients and offsets.
    found: BufferId,
    eyes: [BufferId; 2],
}

impl Stage<'_> {
    /// Clears the state if it belongs to another stream.
    fn begin(&mut self) {
        let words = self.layout.words();
        let parts = [(words & 0x7fff_ffff) as i32, (words >> 31) as i32].map(Arg::I32);
        let mut args = vec![Arg::Known(self.state), parts[0], parts[1]];
        args.extend(self.size());
        args.push(Arg::Buffer(self.state));
        self.in_turn(SHIFT, "begin", [FORGETTING, 1, 1], args);
    }

    /// Makes the pictures of half the size and less.
    fn smaller(&mut self) -> Vec<Level> {
        const NAMES: [&str; 4] = ["left smaller", "right smaller", "left before", "right before"];
        let mut levels: Vec<Level> = Vec::new();
        for size in self.layout.levels() {
            // At half the size, the previous pictures are in the state.
            let names = if levels.is_empty() { &NAMES[..2] } else { &NAMES[..] };
            let buffer = |name: &&'static str| self.plan.buffer(name, size.0 * size.1, Scope::Slot);
            let level = Level { size, pictures: names.iter().map(buffer).collect() };
            let grid = level.grid(SMALL_TILE, level.pictures.len() as u32);
            let to = level.pictures.iter().copied().map(Arg::Buffer);
            match levels.as_slice() {
                [] => {
                    let mut args = self.eyes.map(Arg::Buffer).to_vec();
                    args.extend(self.size().into_iter().chain(to));
                    self.launch(SHIFT, "smaller_eyes", grid, args);
                }
                [half] => {
                    let mut args = self.of_state();
                    args.extend(half.pictures.iter().copied().map(Arg::Buffer).chain(to));
                    self.in_turn(SHIFT, "smaller_remembered", grid, args);
                }
                [.., finer] => {
                    let from = finer.pictures.iter().copied().map(Arg::Buffer);
                    let args = from.chain(finer.size()).chain(to).collect();
                    self.launch(SHIFT, "smaller", grid, args);
                }
            }
            levels.push(level);
        }
        levels
    }

    /// Estimates the shifts: of the previous picture from coarse to fine, then of all pictures.
    fn search(&mut self, levels: &[Level]) {
        let sums = shift_sum_bytes(self.layout.history);
        let sums = Arg::Buffer(self.plan.buffer("sums of shifts", sums, Scope::Slot));
        let looked = self.plan.buffer("shifts of levels", 8 * levels.len(), Scope::Slot);
        let shift_at = |level: usize| Arg::At(looked, 8 * level);
        let ticket = self.ticket(TICKET_OF_SHIFTS);
        let last = levels.len() - 1;
        for (number, level) in levels.iter().enumerate().skip(1).rev() {
            let mut args = vec![Arg::Buffer(self.state)];
            args.extend(level.pictures.iter().copied().map(Arg::Buffer));
            args.extend(level.size());
            let coarser = (number + 1).min(last);
            args.extend([flag(number < last), shift_at(coarser), sums, ticket, shift_at(number)]);
            self.in_turn(SHIFT, "look", level.grid(TEXTURE_TILE, 2), args);
        }
        let half = &levels[0];
        let mut args = self.of_state();
        args.extend(half.pictures.iter().copied().map(Arg::Buffer));
        args.extend([flag(last > 0), shift_at(last.min(1)), sums, ticket, Arg::Buffer(self.found)]);
        let [x, y, _] = half.grid(TEXTURE_TILE, 2);
        let groups = (SEARCH_BLOCKS / (2 * x * y)).clamp(1, self.layout.history as u32);
        self.in_turn(SHIFT, "search", [x, y, 2 * groups], args);
    }

    /// Subtracts the background and decides on every pixel; returns the pictures for matching.
    fn decide(&mut self, mode: Mode) -> [BufferId; 2] {
        let size = self.layout.size;
        let pixels = size.0 * size.1;
        let mut buffer = |name, bytes| self.plan.buffer(name, bytes, Scope::Slot);
        let residuals = Arg::Buffer(buffer("residuals", 2 * 2 * pixels));
        let magnitudes = Arg::Buffer(buffer("magnitudes", 2 * MAGNITUDE_BYTES));
        let limits = Arg::Buffer(buffer("limits", 2 * LIMITS_BYTES));
        let variances = Arg::Buffer(buffer("variances", 4 * 2));
        let report = buffer("report", 4 * HEADER);
        let (denoised, whitened) = match mode {
            Mode::Denoise => {
                let names = ["left denoised picture", "right denoised picture"];
                (Some(names.map(|name| buffer(name, pixels))), None)
            }
            Mode::Whiten => (None, Some(buffer("whitened picture", 2 * pixels))),
        };
        self.plan.passed = Some(Passed { whitened, report });

        let grid = grid(size, TEXTURE_TILE, 2);
        let [state, width, height] = [Arg::Buffer(self.state), self.size()[0], self.size()[1]];
        let [left, right] = self.eyes.map(Arg::Buffer);
        let mut args = vec![state, left, right, width, height, Arg::Buffer(self.found), residuals];
        args.extend([magnitudes, self.ticket(TICKETS_OF_RESIDUALS), limits, variances]);
        self.in_turn(BACKGROUND, "subtract", grid, args);
        let mut args = vec![state, left, right, width, height, residuals, limits, variances];
        args.extend([self.ticket(MOVING), self.ticket(TICKET_OF_DECISIONS)]);
        // The kernel ignores the outputs of the other mode.
        let matched = denoised.unwrap_or(self.eyes);
        args.extend(matched.map(Arg::Buffer));
        args.extend([whitened.unwrap_or(report), report].map(Arg::Buffer));
        self.in_turn(BACKGROUND, "decide", grid, args);
        matched
    }

    /// Stores the pair in the state at half the size.
    fn remember(&mut self) {
        let (grid, args) = (grid(self.layout.half_size, SMALL_TILE, 2), self.of_state());
        self.in_turn(SHIFT, "remember", grid, args);
    }

    /// The state, and the size of whole pictures.
    fn of_state(&self) -> Vec<Arg> {
        std::iter::once(Arg::Buffer(self.state)).chain(self.size()).collect()
    }

    fn size(&self) -> [Arg; 2] {
        [self.layout.size.0, self.layout.size.1].map(number)
    }

    fn ticket(&self, at: usize) -> Arg {
        Arg::At(self.tickets, 4 * at)
    }

    /// Adds a launch that waits for the previous frame's.
    fn in_turn(&mut self, unit: &str, symbol: &'static str, grid: [u32; 3], args: Vec<Arg>) {
        self.launch(unit, symbol, grid, args).chain = Some(Chain::Pictures);
    }

    fn launch(
        &mut self,
        unit: &str,
        symbol: &'static str,
        grid: [u32; 3],
        args: Vec<Arg>,
    ) -> &mut Launch {
        let kernel = self.plan.kernel(unit, symbol);
        let launch = self.plan.launch(NAME, kernel, [grid[0], grid[1]], [BLOCK_THREADS, 1], args);
        launch.grid = grid;
        launch
    }
}

/// The kernels' units.
const SHIFT: &str = "temporal_shift";
const BACKGROUND: &str = "temporal_background";

fn number(n: usize) -> Arg {
    Arg::I32(n as i32)
}

fn flag(set: bool) -> Arg {
    Arg::I32(i32::from(set))
}

/// Grid of tiles for this many pictures of a size.
fn grid((width, height): (usize, usize), [across, down]: [u32; 2], pictures: u32) -> [u32; 3] {
    [(width as u32).div_ceil(across), (height as u32).div_ceil(down), pictures]
}
