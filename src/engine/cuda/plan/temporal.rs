//! The spatio-temporal stage (`kernels/temporal_shift.cu`, `temporal_background.cu`), before anything is matched.
//!
//! Its launches follow those of the frame before, but not what matches and filters that frame: so the pictures of a
//! pair are prepared while those before are still being matched.

use super::super::geometry::{
    BLOCK_THREADS, MAGNITUDE_BYTES, SMALL_TILE, TEXTURE_TILE, shift_sum_bytes,
};
use super::super::job::Job;
use super::super::launch::{Arg, BufferId, Chain, Passed, Plan, Scope, Unit};
use crate::matching::temporal::layout::{HEADER, Layout, place};
use crate::matching::temporal::{Mode, NAME, Temporal, shifts};

/// Bytes of the limits of one eye.
const LIMITS_BYTES: usize = 16;

/// Blocks that forget a stream.
const FORGETTING: u32 = 256;

/// The units of the stage, where there is one.
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
            .define("PLACE_SHIFTS_KNOWN", place::SHIFTS_KNOWN)
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
    /// Passes both pictures, of this size, through the stage: those that are to be matched.
    pub(super) fn pass(
        &mut self,
        how: Temporal,
        size: (usize, usize),
        eyes: [BufferId; 2],
    ) -> [BufferId; 2] {
        let layout = Layout::new(size, how.history);
        let (width, height) = size;
        let pixels = width * height;
        let state = self.state(NAME, layout.words());
        let mut buffer = |name, bytes| self.buffer(name, bytes, Scope::Slot);
        let sums = buffer("sums of shifts", shift_sum_bytes(layout.history));
        let tickets = buffer("tickets", 4 * 8);
        let found = buffer("coefficients", 4 * (3 * layout.history + 1));
        let residuals = buffer("residuals", 2 * 2 * pixels);
        let magnitudes = buffer("magnitudes", 2 * MAGNITUDE_BYTES);
        let limits = buffer("limits", 2 * LIMITS_BYTES);
        let variances = buffer("variances", 4 * 2);
        let report = buffer("report", 4 * HEADER);
        let (mut denoised, mut whitened) = (None, None);
        match how.mode {
            Mode::Denoise => {
                denoised = Some(
                    ["left denoised picture", "right denoised picture"]
                        .map(|name| buffer(name, pixels)),
                );
            }
            Mode::Whiten => whitened = Some(buffer("whitened picture", 2 * pixels)),
        }
        self.passed = Some(Passed { whitened, report });
        let [left, right] = eyes.map(Arg::Buffer);
        let [state_arg, sums, found, residuals] = [state, sums, found, residuals].map(Arg::Buffer);
        let [magnitudes, limits, variances] = [magnitudes, limits, variances].map(Arg::Buffer);
        let number = |n: usize| Arg::I32(n as i32);
        let whole = [number(width), number(height)];
        let ticket = |at: usize| Arg::At(tickets, 4 * at);

        let words = layout.words();
        let parts = [(words & 0x7fff_ffff) as i32, (words >> 31) as i32].map(Arg::I32);
        let args = vec![Arg::Known(state), parts[0], parts[1], whole[0], whole[1], state_arg];
        self.in_turn("begin", [FORGETTING, 1, 1], args);

        // Pictures of half the size, and so on.
        let sizes: Vec<(usize, usize)> = std::iter::successors(Some(layout.half_size), |size| {
            Some((size.0.div_ceil(2), size.1.div_ceil(2)))
        })
        .take(shifts::levels(layout.half_size))
        .collect();
        let levels: Vec<[BufferId; 4]> = sizes
            .iter()
            .map(|size| {
                let names = [
                    "left smaller",
                    "right smaller",
                    "left smaller, before",
                    "right smaller, before",
                ];
                names.map(|name| self.buffer(name, size.0 * size.1, Scope::Slot))
            })
            .collect();
        let small = |size: (usize, usize), pictures: u32| {
            let [across, down] = SMALL_TILE;
            [(size.0 as u32).div_ceil(across), (size.1 as u32).div_ceil(down), pictures]
        };
        let [to_left, to_right, ..] = levels[0].map(Arg::Buffer);
        let args = vec![left, right, whole[0], whole[1], to_left, to_right];
        self.stage_of_time("temporal_shift", "smaller_eyes", small(sizes[0], 2), args);
        for level in 1..sizes.len() {
            let (from, to) = (levels[level - 1].map(Arg::Buffer), levels[level].map(Arg::Buffer));
            let grid = small(sizes[level], 4);
            let (size, kernel) =
                (sizes[level - 1], if level == 1 { "smaller_remembered" } else { "smaller" });
            let mut args = match level {
                1 => vec![state_arg, whole[0], whole[1], from[0], from[1]],
                _ => from.iter().copied().chain([number(size.0), number(size.1)]).collect(),
            };
            args.extend(to);
            match level {
                1 => self.in_turn(kernel, grid, args),
                _ => self.stage_of_time("temporal_shift", kernel, grid, args),
            }
        }
        let looked = self.buffer("shifts of levels", 8 * sizes.len(), Scope::Slot);
        let tile = |size: (usize, usize)| {
            let [across, down] = TEXTURE_TILE;
            [(size.0 as u32).div_ceil(across), (size.1 as u32).div_ceil(down), 2]
        };
        for level in (1..sizes.len()).rev() {
            let has_coarser = level + 1 < sizes.len();
            let coarser = if has_coarser { level + 1 } else { level };
            let mut args = vec![state_arg];
            args.extend(levels[level].map(Arg::Buffer));
            args.extend([
                number(sizes[level].0),
                number(sizes[level].1),
                number(usize::from(has_coarser)),
            ]);
            args.extend([
                Arg::At(looked, 8 * coarser),
                sums,
                ticket(0),
                Arg::At(looked, 8 * level),
            ]);
            self.in_turn("look", tile(sizes[level]), args);
        }
        let has_newest = sizes.len() > 1;
        let newest = Arg::At(looked, if has_newest { 8 } else { 0 });
        let mut args = vec![state_arg, whole[0], whole[1], to_left, to_right];
        args.extend([number(usize::from(has_newest)), newest, sums, ticket(0), found]);
        self.in_turn("search", tile(sizes[0]), args);

        let mut args =
            vec![state_arg, left, right, whole[0], whole[1], found, residuals, magnitudes];
        args.extend([ticket(1), limits, variances]);
        self.ordered("temporal_background", "subtract", tile(size), args);
        let none = limits;
        let [denoised_left, denoised_right] =
            denoised.map_or([none; 2], |eyes| eyes.map(Arg::Buffer));
        let mut args =
            vec![state_arg, left, right, whole[0], whole[1], residuals, limits, variances];
        args.extend([ticket(3), ticket(4), denoised_left, denoised_right]);
        args.extend([whitened.map_or(none, Arg::Buffer), Arg::Buffer(report)]);
        self.ordered("temporal_background", "decide", tile(size), args);
        self.in_turn("remember", small(sizes[0], 2), vec![state_arg, whole[0], whole[1]]);
        denoised.unwrap_or(eyes)
    }

    /// A launch of the kernels of shifts that follows those of the frame before.
    fn in_turn(&mut self, symbol: &'static str, grid: [u32; 3], args: Vec<Arg>) {
        self.ordered("temporal_shift", symbol, grid, args);
    }

    fn ordered(&mut self, unit: &str, symbol: &'static str, grid: [u32; 3], args: Vec<Arg>) {
        let kernel = self.kernel(unit, symbol);
        let launch = self.launch(NAME, kernel, [grid[0], grid[1]], [BLOCK_THREADS, 1], args);
        launch.grid = grid;
        launch.chain = Some(Chain::Pictures);
    }

    /// A launch that touches nothing of other frames.
    fn stage_of_time(&mut self, unit: &str, symbol: &'static str, grid: [u32; 3], args: Vec<Arg>) {
        let kernel = self.kernel(unit, symbol);
        let launch = self.launch(NAME, kernel, [grid[0], grid[1]], [BLOCK_THREADS, 1], args);
        launch.grid = grid;
    }
}
