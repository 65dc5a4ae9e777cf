//! A level of a pair: its size, its division into bands, and the constants of its shaders.

use std::fmt::Write;

use anyhow::bail;

use super::device::Gpu;
use crate::engine::interface::Refusal;
use crate::frame::LEAST_CONFIDENCE;
use crate::matching::confidence::{RADIUS, REACH};
use crate::matching::filter::evidence;
use crate::matching::filter::rays::REACH_MAX;
use crate::matching::filter::spatial::{GREY_STEP_MAX, PAIR_STEP_MAX};
use crate::matching::params::P2Mode;
use crate::matching::prior::{BEND_MAX, BEND_REACH, REACH as PRIOR_REACH};
use crate::matching::saturation::ALIKE;
use crate::matching::subpixel::{LIMIT_UNIT, LIMITS};
use crate::matching::texture::{RESPONSE_MAX, UNCLIPPED};
use crate::matching::window::UNIT;
use crate::matching::{
    CensusWindow, CombinedWeights, Cost, Params, Paths, Subpixel, cost, levels, params,
};

/// Invocations of a workgroup that share lines.
const THREADS: u32 = 128;
/// Least number of pixels of a row whose winners a workgroup selects.
const SEGMENT: u32 = 64;
/// Rows that an invocation of `compute_costs` goes down.
pub const STRIP: u32 = 32;
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
    constants: String,
}

/// A value that WGSL can have as a constant.
trait Constant {
    fn text(&self) -> String;
}

impl Constant for u32 {
    fn text(&self) -> String {
        format!("{self}u")
    }
}

impl Constant for u8 {
    fn text(&self) -> String {
        u32::from(*self).text()
    }
}

impl Constant for i32 {
    fn text(&self) -> String {
        self.to_string()
    }
}

impl Constant for bool {
    fn text(&self) -> String {
        self.to_string()
    }
}

impl Constant for [u16; LIMITS] {
    fn text(&self) -> String {
        let limits = self.map(|limit| u32::from(limit).text());
        format!("array<u32, {LIMITS}>({})", limits.join(", "))
    }
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
        let needed = (params.range.count as u32).div_ceil(4);
        let (lanes_max, is_whole) = match gpu.subgroup() {
            Some((least, largest)) => (least, least == largest),
            None => (LANES_SHARED, false),
        };
        let group = needed.next_power_of_two().min(lanes_max).min(THREADS);
        let per_lane = needed.div_ceil(group);
        let words = group * per_lane;
        let (down, others) = steps(params.paths)?;
        let most = down.len().max(others.len()) as u64;
        let of_row = u64::from(width) * u64::from(words) * 4;
        let rows = (gpu.buffer_max() / (of_row * most)).min(u64::from(height)) as u32;
        if rows == 0 {
            bail!(Refusal::Memory(format!(
                "a row of {width} pixels with {} disparities does not fit {}, whose buffers hold {} MiB at most; \
                 use fewer `disparities`, or `engine=cpu`",
                params.range.count,
                gpu.info.name,
                gpu.buffer_max() >> 20
            )));
        }
        // Bands of nearly equal height.
        let band_rows = height.div_ceil(height.div_ceil(rows));
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
        level.define("THREADS", THREADS);
        level.define("GROUP", group);
        level.define("LINES", THREADS / group);
        level.define("PER_LANE", per_lane);
        level.define("WHOLE_SUBGROUP", is_whole && group == lanes_max);
        level.define_all()?;
        Ok(level)
    }

    fn define(&mut self, name: &str, value: impl Constant) {
        let _ = writeln!(self.constants, "const {name} = {};", value.text());
    }

    /// The constants of all stages. Fails if the shaders cannot match with the parameters.
    fn define_all(&mut self) -> anyhow::Result<()> {
        let params = self.params.clone();
        let is_set = |on| if on { 1u32 } else { 0 };
        self.define("WIDTH", self.width);
        self.define("HEIGHT", self.height);
        self.define("LEVEL", self.number as u32);
        self.define("MIN_DISPARITY", params.range.min);
        self.define("DISPARITIES", params.range.count as u32);
        self.define("WORDS", self.words);
        self.define("STRIP", STRIP);
        self.define("SEGMENT", self.segment());
        self.define_cost(params.cost)?;
        // Noise and support.
        self.define("RESPONSE_MAX", RESPONSE_MAX as u32);
        self.define("UNCLIPPED_LEAST", i32::from(UNCLIPPED.0));
        self.define("UNCLIPPED_MOST", i32::from(UNCLIPPED.1));
        self.define("SUPPORT", self.is_supported());
        self.define("PRIOR", self.has_coarser);
        self.define("RADIUS", self.radius());
        let window = params.window;
        self.define("WINDOW_AREA", window.map_or(1, |window| window.area()));
        self.define("WINDOW_MOST", window.map_or(0, |window| UNIT / window.area()));
        self.define("WINDOW_BY_TEXTURE", window.is_some_and(|window| window.by_texture));
        let strength = params.prior.filter(|_| self.has_coarser).map_or(0, |prior| prior.strength);
        self.define("PRIOR_MOST", UNIT / PRIOR_REACH * u32::from(strength));
        self.define("PRIOR_REACH", PRIOR_REACH as i32);
        self.define("BEND_MAX", i32::from(BEND_MAX));
        self.define("BEND_REACH", BEND_REACH as i32);
        // Paths.
        self.define("SURFACE", params.surface && self.has_coarser);
        self.define("PATHS_DOWN", self.steps[0].len() as u32);
        self.define("PATHS_OTHERS", self.steps[1].len() as u32);
        self.define("P1", params.p1);
        self.define("P2", params.p2);
        let (mode, least, slope) = match params.p2_mode {
            P2Mode::Fixed => (0u32, 0, 0),
            P2Mode::InverseGradient => (1, 0, 0),
            P2Mode::Linear { min, slope_16 } => (2, u32::from(min), u32::from(slope_16)),
        };
        self.define("P2_FIXED", 0u32);
        self.define("P2_INVERSE_GRADIENT", 1u32);
        self.define("P2_MODE", mode);
        self.define("P2_MIN", least);
        self.define("P2_SLOPE", slope);
        self.define("P2_SLOPE_UNIT", params::SLOPE_UNIT);
        // Selection and checks.
        self.define("HAS_RIGHT", params.left_right.is_some());
        self.define("LEFT_RIGHT", i32::from(params.left_right.unwrap_or(0)));
        self.define("HAS_CONFIDENCE", params.confidence.is_some());
        self.define("UNIQUENESS", params.uniqueness);
        self.define("SUBPIXEL_OFF", 0u32);
        self.define("SUBPIXEL_PARABOLA", 1u32);
        self.define(
            "SUBPIXEL_MODE",
            match params.subpixel {
                Subpixel::Off => 0u32,
                Subpixel::Parabola => 1,
                Subpixel::Equiangular | Subpixel::Corrected => 2,
            },
        );
        self.define("SUBPIXEL_UNIT", LIMIT_UNIT);
        self.define("SUBPIXEL_LIMITS", params.subpixel.limits().unwrap_or_default());
        self.define("WHITE", params.white);
        self.define("WHITE_ALIKE", ALIKE);
        // Filters.
        self.define("MEDIAN_RADIUS", params.median.radius().unwrap_or(0) as i32);
        self.define("SPECKLE_SIZE", params.speckle.map_or(0, |speckle| speckle.size));
        self.define(
            "SPECKLE_RANGE",
            params.speckle.map_or(0, |speckle| i32::from(speckle.range_16)),
        );
        self.define("SPATIAL_REACH", params.spatial.map_or(is_set(false), |how| how.reach.into()));
        self.define("SPATIAL_GREY_MAX", i32::from(GREY_STEP_MAX));
        self.define("SPATIAL_STEP_MAX", i32::from(PAIR_STEP_MAX));
        self.define("EVIDENCE_STRICT", params.evidence.is_some_and(|how| how.strict));
        self.define("EVIDENCE_RADIUS", evidence::SIDE as i32 / 2);
        self.define("EVIDENCE_THRESHOLD_MIN", evidence::THRESHOLD_MIN);
        self.define("EVIDENCE_THRESHOLD_MAX", evidence::THRESHOLD_MAX);
        self.define("EVIDENCE_DEVIATION_SHIFT", evidence::DEVIATION_SHIFT);
        self.define("RAY_REACH", i32::from(REACH_MAX));
        self.define("NEAR_RADIUS", RADIUS as i32);
        self.define("FAR_RADIUS", REACH as i32);
        self.define("LEAST_CONFIDENCE", LEAST_CONFIDENCE);
        self.define("CONFIDENCE_LEAST", params.confidence.unwrap_or(0));
        Ok(())
    }

    fn define_cost(&mut self, cost: Cost) -> Result<(), Refusal> {
        for (name, number) in [("COST_AD", 0u32), ("COST_CENSUS", 1), ("COST_COMBINED", 2)] {
            self.define(name, number);
        }
        let (mut kind, mut truncation, mut window) = (0u32, 0, cost::COMBINED_CENSUS);
        let mut combined = CombinedWeights::default();
        match cost {
            Cost::Ad { truncation: most, window: 1 } => truncation = most,
            Cost::Ad { .. } => return Err(missing("`ad_window` above 1")),
            Cost::Census { window: of_cost } => (kind, window) = (1, of_cost),
            Cost::Combined(of) => (kind, combined) = (2, of),
            Cost::Block { .. } | Cost::MutualInformation { .. } => {
                return Err(missing(&format!("`cost={}`", cost.name())));
            }
        }
        self.define("COST", kind);
        self.define("AD_TRUNCATION", truncation);
        combined.constants().into_iter().for_each(|(name, value)| self.define(name, value));
        let (width, height) = window.size();
        self.define("CENSUS_ACROSS", width as i32 / 2);
        self.define("CENSUS_DOWN", height as i32 / 2);
        self.define("CENSUS_BITS", window.bits());
        self.define("CENSUS_SYMMETRIC", window == CensusWindow::Symmetric9x7);
        Ok(())
    }

    /// Pixels of a row whose winners a workgroup selects.
    pub fn segment(&self) -> u32 {
        SEGMENT.max(self.lines)
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

    /// The constants before the sources of a stage, which is about images halved from this size.
    pub fn constants(&self, finer: Option<&Level>) -> String {
        let finer = finer.map_or((0, 0), |finer| (finer.width, finer.height));
        format!(
            "{}const FINER_WIDTH = {}u;\nconst FINER_HEIGHT = {}u;\n",
            self.constants, finer.0, finer.1
        )
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
