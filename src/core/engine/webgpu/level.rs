//! A level of a pair: its size, its division into bands, and the constants of its shaders.

use std::fmt::Write;

use anyhow::bail;

use super::device::Gpu;
use crate::engine::constants::constants;
use crate::engine::interface::Refusal;
use crate::matching::cost::Constant;
use crate::matching::params::P2Mode;
use crate::matching::subpixel::LIMITS;
use crate::matching::windows::{BLOCK, CANDIDATES, TILE};
use crate::matching::{Cost, Params, Paths, Subpixel, levels, params};

// Numbers of the costs.
const COST_AD: i64 = 0;
const COST_CENSUS: i64 = 1;
const COST_COMBINED: i64 = 2;

/// Invocations of a workgroup that share lines.
const THREADS: u32 = 128;
/// Least number of pixels of a row whose winners a workgroup selects.
const SEGMENT: u32 = 64;
/// Lanes a line without subgroups.
const LANES_SHARED: u32 = 32;

pub(super) struct Level {
    /// 0 is the finest.
    pub number: usize,
    pub params: Params,
    pub width: u32,
    pub height: u32,
    pub has_coarser: bool,
    /// Words of four candidates a pixel.
    pub words: u32,
    /// Lines of a workgroup.
    pub lines: u32,
    /// Rows of a band; the last one may have fewer.
    pub band_rows: u32,
    /// Steps of the downward paths, and of all others.
    pub steps: [Vec<(i32, i32)>; 2],
    /// The constants before the sources of a stage.
    pub constants: String,
}

impl Level {
    /// The levels of pairs of this size, the finest first.
    pub fn all(gpu: &Gpu, params: &Params, size: (usize, usize)) -> anyhow::Result<Vec<Self>> {
        let levels = levels::levels(params, size);
        let coarsest = levels.len() - 1;
        let level =
            |(number, (params, size))| Self::new(gpu, number, params, size, number < coarsest);
        levels.into_iter().enumerate().map(level).collect()
    }

    fn new(
        gpu: &Gpu,
        number: usize,
        params: Params,
        (width, height): (usize, usize),
        has_coarser: bool,
    ) -> anyhow::Result<Self> {
        let (width, height) = (width as u32, height as u32);
        let candidates = if params.windows { CANDIDATES } else { params.range.count };
        let needed = (candidates as u32).div_ceil(4);
        let lanes_max = gpu.subgroup().unwrap_or(LANES_SHARED);
        let group = needed.next_power_of_two().min(lanes_max).min(THREADS);
        let per_lane = needed.div_ceil(group);
        let words = group * per_lane;
        let (down, others) = steps(params.paths)?;
        let most = down.len().max(others.len()) as u64;
        let of_row = u64::from(width) * u64::from(words) * 4;
        // Bands have whole tiles of range windows.
        let unit = if params.windows { TILE as u32 } else { 1 };
        let most = (gpu.buffer_max() / (of_row * most)).min(height.next_multiple_of(unit).into());
        let rows = most as u32 / unit * unit;
        if rows == 0 {
            bail!(Refusal::Memory(format!(
                "a band of {unit} x {width} pixels with {} disparities does not fit {}, whose buffers hold {} MiB at most; \
                 use fewer `disparities`, or `engine=cpu`",
                params.range.count,
                gpu.info.name,
                gpu.buffer_max() >> 20
            )));
        }
        // Bands of nearly equal height.
        let band_rows = height.div_ceil(height.div_ceil(rows)).next_multiple_of(unit);
        let mut level = Self {
            number,
            params,
            width,
            height,
            has_coarser,
            words,
            lines: THREADS / group,
            band_rows,
            steps: [down, others],
            constants: String::new(),
        };
        let mut all = constants(&level.params, has_coarser);
        all.extend([
            ("THREADS", THREADS.into()),
            ("GROUP", group.into()),
            ("LINES", level.lines.into()),
            ("PER_LANE", per_lane.into()),
        ]);
        all.extend(level.constants_of_shaders()?);
        for (name, value) in all {
            let _ = writeln!(level.constants, "const {name} = {value};");
        }
        let limits =
            level.params.subpixel.limits().unwrap_or_default().map(|limit| limit.to_string());
        let _ = writeln!(
            level.constants,
            "const SUBPIXEL_LIMITS = array<u32, {LIMITS}>({});",
            limits.join(", ")
        );
        Ok(level)
    }

    /// The constants of shaders alone. Fails if they cannot match with the cost.
    fn constants_of_shaders(&self) -> Result<Vec<Constant>, Refusal> {
        let cost = match self.params.cost {
            Cost::Ad { window: 1, .. } => COST_AD,
            Cost::Ad { .. } => return Err(missing("`ad_window` above 1")),
            Cost::Census { .. } => COST_CENSUS,
            Cost::Combined(_) => COST_COMBINED,
            cost @ (Cost::Block { .. } | Cost::MutualInformation { .. }) => {
                return Err(missing(&format!("`cost={}`", cost.name())));
            }
        };
        let (mode, least, slope) = match self.params.p2_mode {
            P2Mode::Fixed => (0, 0, 0),
            P2Mode::InverseGradient => (1, 0, 0),
            P2Mode::Linear { min, slope_16 } => (2, min.into(), slope_16.into()),
        };
        let [words, columns, rows] = self.cost_group();
        // Candidates with padding.
        let places = match self.params.windows {
            true => self.params.range.count.next_multiple_of(BLOCK) as i64,
            false => i64::from(4 * self.words),
        };
        Ok(vec![
            ("WIDTH", self.width.into()),
            ("HEIGHT", self.height.into()),
            ("LEVEL", self.number as i64),
            ("WORDS", self.words.into()),
            ("COST_WORDS", words.into()),
            ("COST_COLUMNS", (columns + 2 * self.radius()).into()),
            ("STRIP", rows.into()),
            ("WINDOWED", self.params.windows.into()),
            ("WINDOW_TILE", TILE as i64),
            ("BLOCK_CANDIDATES", BLOCK as i64),
            ("WINDOWS_ACROSS", self.tiles_across().into()),
            ("SEGMENT", self.segment().into()),
            ("PLACES", places),
            ("COST_AD", COST_AD),
            ("COST_CENSUS", COST_CENSUS),
            ("COST", cost),
            ("SUPPORT", self.is_supported().into()),
            ("PATHS_DOWN", self.steps[0].len() as i64),
            ("PATHS_OTHERS", self.steps[1].len() as i64),
            ("P2_FIXED", 0),
            ("P2_INVERSE_GRADIENT", 1),
            ("P2_MODE", mode),
            ("P2_MIN", least),
            ("P2_SLOPE", slope),
            ("P2_SLOPE_UNIT", params::SLOPE_UNIT.into()),
            ("SUBPIXEL_PARABOLA", (self.params.subpixel == Subpixel::Parabola).into()),
        ])
    }

    /// Pixels of a row whose winners a workgroup selects.
    pub fn segment(&self) -> u32 {
        SEGMENT.max(self.lines)
    }

    /// Words of candidates, columns and rows whose costs a workgroup of `compute_costs` writes.
    pub fn cost_group(&self) -> [u32; 3] {
        if self.params.windows {
            // Half of a tile's words: with the columns around it, a workgroup may have 256 invocations.
            [CANDIDATES as u32 / 8, TILE as u32, TILE as u32]
        } else {
            [16, 16 - 2 * self.radius(), 32]
        }
    }

    fn tiles_across(&self) -> u32 {
        self.width.div_ceil(TILE as u32)
    }

    /// Tiles of range windows.
    pub fn tiles(&self) -> u32 {
        self.tiles_across() * self.height.div_ceil(TILE as u32)
    }

    pub fn pixels(&self) -> u32 {
        self.width * self.height
    }

    /// Pixels from the centre of the window over which costs are averaged to its edge.
    pub fn radius(&self) -> u32 {
        self.params.window.map_or(0, |window| u32::from(window.side / 2))
    }

    pub fn is_supported(&self) -> bool {
        self.params.window.is_some() || self.has_coarser
    }

    /// Whether a stage compares texture with noise.
    pub fn follows_noise(&self) -> bool {
        self.is_supported() || self.params.evidence.is_some()
    }
}

fn missing(what: &str) -> Refusal {
    Refusal::Parameter(format!(
        "the wgpu engine cannot match with {what}; use `engine=cpu`, or `cuda` on an NVIDIA GPU"
    ))
}

/// Steps of the downward paths, and of all others.
type Steps = (Vec<(i32, i32)>, Vec<(i32, i32)>);

fn steps(paths: Paths) -> Result<Steps, Refusal> {
    match paths {
        Paths::Four | Paths::Five | Paths::Eight => {
            Ok(paths.steps().iter().partition(|step| step.1 > 0))
        }
        Paths::None | Paths::Sixteen => Err(missing(&format!("`paths={}`", paths.count()))),
    }
}
