//! The parameters of the matcher and their limits.

mod values;

use std::fmt;

pub use self::values::{Guide, Median, P2Mode, Paths, SLOPE_UNIT, Speckle};
use crate::frame::{DisparityRange, SUBPIXEL};
use crate::matching::block::{BlockWindow, SIDE_MAX};
use crate::matching::cost::{COSTS, CombinedWeights, Cost, CostDefaults, CostError};
use crate::matching::filter::evidence::Evidence;
use crate::matching::filter::fill::Fill;
use crate::matching::filter::rays::REACH_MAX;
use crate::matching::filter::smoothing::{GUARD_MAX_16, Smoothing};
use crate::matching::filter::spatial::{REACH_MAX as SPATIAL_MAX, Spatial};
use crate::matching::filter::steady::{STRENGTH_MAX as STEADY_MAX, Steady};
use crate::matching::prior::{LEVELS_MAX, Prior, STRENGTH_MAX, half_range};
use crate::matching::saturation::WHITE;
use crate::matching::subpixel::Subpixel;
use crate::matching::temporal::{DEGREE_MAX, HISTORY, Mode, Temporal};
use crate::matching::window::{SUPPORTED_MAX, Window};

/// Largest path cost an engine can hold: one byte per candidate.
pub const PATH_COST_MAX: u32 = 255;

/// Matching parameters. They start from [`Params::default`], and each `with_` method changes one.
/// [`Params::with_cost`] also changes the parameters that suit the cost.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Params {
    /// Candidate disparities.
    pub range: DisparityRange,
    /// Pixel-wise cost. [`Params::with_cost`] sets it together with the parameters that suit it.
    pub cost: Cost,
    /// Window over which the cost is averaged; `None`: every pixel by itself.
    pub window: Option<Window>,
    /// Prior from coarser levels, added to the cost; `None`: none.
    pub prior: Option<Prior>,
    /// Whether pairs may come with a map that replaces that of the half-size images where it is known
    /// ([`StereoPair::prior`](crate::frame::StereoPair::prior)). Without a prior it has no effect.
    #[doc(hidden)]
    pub prior_map: bool,
    /// Whether paths follow the surface that the prior expects without a penalty. Without a prior it has no
    /// effect.
    pub surface: bool,
    /// Whether a wide range is searched only near the disparities of the half-size map ([`super::windows`]). Without a
    /// prior it has no effect.
    pub windows: bool,
    /// Directions of aggregation.
    pub paths: Paths,
    /// Window over which the costs of single pixels are summed without paths.
    pub sum_window: BlockWindow,
    /// Penalty for a disparity step of one pixel between neighbours of a path.
    pub p1: u8,
    /// Penalty for a larger step.
    pub p2: u8,
    /// Dependence of P2 on the image.
    pub p2_mode: P2Mode,
    /// The image that P2 depends on.
    pub p2_guide: Guide,
    /// Uniqueness ratio: a pixel is invalid if another disparity's sum is within this many percent
    /// of the best one's (0: no check).
    pub uniqueness: u8,
    /// Smallest confidence of a valid pixel (1 to 255); `Some(0)`: confidence is computed, but no
    /// pixel is removed; `None`: it is not computed.
    pub confidence: Option<u8>,
    /// Whether the motion of the rig is followed from pair to pair, which needs the confidence.
    pub odometry: bool,
    /// Smallest grey level of white; saturated pixels are no evidence.
    pub white: u8,
    /// Interpolation of the disparity to 1/16 px.
    pub subpixel: Subpixel,
    /// Largest difference in whole pixels between the disparities of the left and the right view;
    /// `None`: no left-right check.
    pub left_right: Option<u16>,
    /// Median filter of the result.
    pub median: Median,
    /// Removal of small regions, after the median; `None`: none.
    pub speckle: Option<Speckle>,
    /// Removal of pixels without evidence, after the speckles; `None`: none.
    pub evidence: Option<Evidence>,
    /// Smoothing of surfaces, after the removal of pixels without evidence; `None`: none.
    pub spatial: Option<Spatial>,
    /// Smoothing in time; `None`: every map by itself.
    pub smoothing: Option<Smoothing>,
    /// Flicker suppression; `None`: every map by itself.
    pub steady: Option<Steady>,
    /// Use of earlier frames before matching; `None`: none.
    pub temporal: Option<Temporal>,
    /// Hole filling, after all filters; `None`: none.
    pub fill: Option<Fill>,
    /// Parameters that stay when the cost changes.
    pub(crate) chosen: Chosen,
}

/// Makes a builder method for each field. The fields of the first list have defaults that depend on the cost.
macro_rules! builder {
    (
        $($with_suited:ident $suited:ident: $suited_kind:ty;)*
        ---
        $($with:ident $field:ident: $kind:ty;)*
    ) => {
        /// Whether each parameter that suits a cost was chosen by name. Equal parameters may be chosen
        /// in different ways, so a choice equals every other.
        #[derive(Clone, Copy, Debug)]
        pub struct Chosen {
            $(pub(crate) $suited: bool,)*
        }

        impl Chosen {
            const NONE: Self = Self { $($suited: false,)* };
            const ALL: Self = Self { $($suited: true,)* };
        }

        impl Params {
            $(
                #[doc = concat!("Returns the parameters with another `", stringify!($suited), "`.")]
                #[must_use]
                pub fn $with_suited(self, $suited: $suited_kind) -> Self {
                    let chosen = Chosen { $suited: true, ..self.chosen };
                    Self { $suited, chosen, ..self }
                }
            )*
            $(
                #[doc = concat!("Returns the parameters with another `", stringify!($field), "`.")]
                #[must_use]
                pub fn $with(self, $field: $kind) -> Self {
                    Self { $field, ..self }
                }
            )*

            /// Returns the parameters with another cost, and with the penalties, paths, window, prior and
            /// filters that suit it. Parameters that were set explicitly stay.
            #[must_use]
            pub fn with_cost(self, cost: Cost) -> Self {
                let [before, after] = [self.cost, cost].map(|cost| Self::suiting(cost, cost.defaults()));
                let stays = self.chosen;
                $(
                    let stays_with = stays.$suited || self.$suited != before.$suited;
                    let $suited = if stays_with { self.$suited } else { after.$suited };
                )*
                Self { cost, $($suited,)* ..self }
            }
        }
    };
}

impl PartialEq for Chosen {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for Chosen {}

builder! {
    with_window window: Option<Window>;
    with_prior prior: Option<Prior>;
    with_paths paths: Paths;
    with_p1 p1: u8;
    with_p2 p2: u8;
    with_p2_mode p2_mode: P2Mode;
    with_median median: Median;
    with_speckle speckle: Option<Speckle>;
    ---
    with_surface surface: bool;
    with_windows windows: bool;
    with_range range: DisparityRange;
    with_sum_window sum_window: BlockWindow;
    with_p2_guide p2_guide: Guide;
    with_uniqueness uniqueness: u8;
    with_confidence confidence: Option<u8>;
    with_odometry odometry: bool;
    with_white white: u8;
    with_subpixel subpixel: Subpixel;
    with_left_right left_right: Option<u16>;
    with_evidence evidence: Option<Evidence>;
    with_spatial spatial: Option<Spatial>;
    with_smoothing smoothing: Option<Smoothing>;
    with_steady steady: Option<Steady>;
    with_temporal temporal: Option<Temporal>;
    with_fill fill: Option<Fill>;
}

/// Smallest and largest disparity of a map in whole pixels: it holds 1/16 px in an `i16`.
pub const DISPARITY_LIMITS: (i32, i32) = (-2047, 2046);

impl Default for Params {
    fn default() -> Self {
        Self::DEFAULT
    }
}

impl Params {
    /// The default parameters of the program.
    pub(crate) const DEFAULT: Params = Self::suiting(
        Cost::Combined(CombinedWeights {
            census_weight: 22,
            gradient_weight: 19,
            intensity_weight: 7,
            gradient_truncation: 5,
            intensity_truncation: 10,
        }),
        COSTS[0].defaults,
    );

    /// Returns the default parameters for a cost with these defaults.
    const fn suiting(cost: Cost, of_cost: CostDefaults) -> Self {
        let speckle = Speckle { size: of_cost.speckle_size, range_16: 2 * SUBPIXEL as u16 };
        Params {
            range: DisparityRange { min: 0, count: 64 },
            cost,
            window: match of_cost.window {
                0 => None,
                side => Some(Window { side, by_texture: true }),
            },
            prior: match of_cost.prior {
                0 => None,
                levels => Some(Prior { levels, strength: 5 }),
            },
            prior_map: false,
            surface: true,
            windows: false,
            paths: match of_cost.paths {
                0 => Paths::None,
                4 => Paths::Four,
                _ => Paths::Eight,
            },
            sum_window: BlockWindow { width: 9, height: 9 },
            p1: of_cost.p1,
            p2: of_cost.p2,
            p2_mode: P2Mode::Linear { min: of_cost.p2_min, slope_16: of_cost.p2_slope_16 },
            p2_guide: Guide::Smoothed,
            uniqueness: 8,
            confidence: None,
            odometry: false,
            white: WHITE,
            subpixel: Subpixel::Corrected,
            left_right: Some(1),
            median: match of_cost.median {
                3 => Median::Three,
                _ => Median::Five,
            },
            speckle: if speckle.size == 0 { None } else { Some(speckle) },
            evidence: Some(Evidence { strict: false }),
            spatial: Some(Spatial { reach: 8 }),
            smoothing: None,
            steady: None,
            temporal: None,
            fill: None,
            chosen: Chosen::NONE,
        }
    }

    /// Returns parameters for winner takes all along eight paths: without sub-pixel interpolation, checks and
    /// filters, and with a constant P2.
    pub fn bare(range: DisparityRange, cost: Cost, (p1, p2): (u8, u8)) -> Self {
        Self {
            range,
            cost,
            window: None,
            prior: None,
            prior_map: false,
            surface: false,
            windows: false,
            paths: Paths::Eight,
            sum_window: BlockWindow::PIXEL,
            p1,
            p2,
            p2_mode: P2Mode::Fixed,
            p2_guide: Guide::Picture,
            uniqueness: 0,
            confidence: None,
            odometry: false,
            white: WHITE,
            subpixel: Subpixel::Off,
            left_right: None,
            median: Median::Off,
            speckle: None,
            evidence: None,
            spatial: None,
            smoothing: None,
            steady: None,
            temporal: None,
            fill: None,
            chosen: Chosen::ALL,
        }
    }

    /// Returns the parameters with this number of candidate disparities.
    #[must_use]
    pub fn with_disparities(self, count: usize) -> Self {
        let range = DisparityRange { count, ..self.range };
        self.with_range(range)
    }

    /// Returns the parameters for pairs with or without prior maps.
    #[doc(hidden)]
    #[must_use]
    pub fn with_prior_map(self, prior_map: bool) -> Self {
        Self { prior_map, ..self }
    }

    /// Returns the parameters for a single pair, without filters in time.
    pub fn of_still(&self) -> Params {
        Params { smoothing: None, steady: None, temporal: None, odometry: false, ..self.clone() }
    }

    /// Reports whether static parts are denoised before matching.
    pub fn denoises(&self) -> bool {
        self.temporal.is_some_and(|temporal| temporal.mode == Mode::Denoise)
    }

    /// Reports whether matching is local (without paths).
    pub fn is_local(&self) -> bool {
        self.paths == Paths::None
    }

    /// Returns the image that steers the penalties; the choice has no effect without paths.
    pub fn guide(&self) -> Guide {
        if self.is_local() { Guide::Picture } else { self.p2_guide }
    }

    /// Returns the window of the cost or, without paths, the window over which costs are summed.
    pub fn summed_window(&self) -> BlockWindow {
        match self.cost {
            Cost::Block { window, .. } => window,
            Cost::Ad { window: side @ 2.., .. } => BlockWindow { width: side, height: side },
            _ => self.sum_window,
        }
    }

    /// Reports whether a window or a prior supports the cost.
    pub fn is_supported(&self) -> bool {
        self.window.is_some() || self.prior.is_some()
    }

    /// Reports whether anything depends on the noise of the left image.
    pub fn follows_noise(&self) -> bool {
        self.is_supported() || self.evidence.is_some()
    }

    /// Returns the largest value of the cost with its prior.
    pub fn cost_max(&self) -> u32 {
        self.cost.max() + self.prior.map_or(0, |prior| u32::from(prior.strength))
    }

    /// Returns the parameters of the next coarser level; `None` without a prior. A coarse map must
    /// be right and smooth rather than dense, hence its own checks.
    pub fn coarser(&self) -> Option<Params> {
        let prior = self.prior?;
        Some(Params {
            range: half_range(self.range),
            window: self.window.map(|window| Window { side: 3, ..window }),
            prior: (prior.levels > 1).then_some(Prior { levels: prior.levels - 1, ..prior }),
            prior_map: false,
            uniqueness: 10,
            confidence: None,
            left_right: Some(1),
            median: Median::Three,
            speckle: Some(Speckle { size: 40, range_16: SUBPIXEL as u16 }),
            evidence: None,
            spatial: Some(Spatial { reach: 8 }),
            smoothing: None,
            steady: None,
            odometry: false,
            temporal: None,
            fill: None,
            ..self.clone()
        })
    }

    /// Checks that at least one candidate stays inside an image of this width.
    pub(crate) fn check_width(&self, width: usize) -> Result<(), ParamsError> {
        let (range, limit) = (self.range, i32::try_from(width).unwrap_or(i32::MAX));
        match range.min < limit && range.max() > -limit {
            true => Ok(()),
            false => Err(ParamsError::OutsideOfView { range, width }),
        }
    }

    /// Checks that an engine supports the parameters.
    pub fn check(&self) -> Result<(), ParamsError> {
        let range = self.range;
        if !(1..=1024).contains(&range.count) {
            return Err(ParamsError::Disparities(range.count));
        }
        if range.min < DISPARITY_LIMITS.0 || range.max() > DISPARITY_LIMITS.1 {
            return Err(ParamsError::Range(range));
        }
        self.cost.check()?;
        if self.p2 < self.p1 {
            return Err(ParamsError::PenaltyOrder { p1: self.p1, p2: self.p2 });
        }
        if let P2Mode::Linear { min, .. } = self.p2_mode
            && min > self.p2
        {
            return Err(ParamsError::PenaltyFloor { min, p2: self.p2 });
        }
        self.check_support()?;
        if !self.is_local() && self.cost_max() + u32::from(self.p2) > PATH_COST_MAX {
            let (cost, keys) = (self.cost_max(), self.cost.max_keys());
            return Err(ParamsError::PathCost { cost, p2: self.p2, keys });
        }
        self.check_filters()
    }

    /// Checks the window and the prior of the cost, and the window over which costs are summed.
    fn check_support(&self) -> Result<(), ParamsError> {
        match self.window {
            Some(window) if !matches!(window.side, 3 | 5) => {
                return Err(ParamsError::Window(window.side));
            }
            _ => {}
        }
        match self.prior {
            Some(Prior { levels, .. }) if !(1..=LEVELS_MAX).contains(&levels) => {
                return Err(ParamsError::PriorLevels(levels));
            }
            Some(Prior { strength, .. }) if !(1..=STRENGTH_MAX).contains(&strength) => {
                return Err(ParamsError::PriorStrength(strength));
            }
            _ => {}
        }
        if self.is_supported() && self.cost_max() > SUPPORTED_MAX {
            let (cost, keys) = (self.cost_max(), self.cost.max_keys());
            return Err(ParamsError::Supported { cost, keys });
        }
        if !self.sum_window.is_valid() {
            return Err(ParamsError::SumWindow(self.sum_window));
        }
        if self.is_local() && self.is_supported() {
            return Err(ParamsError::LocalSupport);
        }
        if self.is_local() && matches!(self.cost, Cost::Ad { window: 2.., .. }) {
            return Err(ParamsError::LocalAdWindow);
        }
        if let (Cost::Block { measure, .. }, true) = (self.cost, self.is_supported()) {
            return Err(ParamsError::BlockSupport(measure.name()));
        }
        Ok(())
    }

    fn check_filters(&self) -> Result<(), ParamsError> {
        if self.uniqueness > 99 {
            return Err(ParamsError::Uniqueness(self.uniqueness));
        }
        if let Some(spatial) = self.spatial
            && !(1..=SPATIAL_MAX).contains(&spatial.reach)
        {
            return Err(ParamsError::Spatial(spatial.reach));
        }
        if let Some(smoothing) = self.smoothing
            && (smoothing.weight_256 == 0 || smoothing.guard_16 > GUARD_MAX_16)
        {
            return Err(ParamsError::Smoothing(smoothing));
        }
        if let Some(steady) = self.steady
            && !(1..=STEADY_MAX).contains(&steady.strength)
        {
            return Err(ParamsError::Steady(steady.strength));
        }
        if let Some(Temporal { history, degree, .. }) = self.temporal
            && (!(HISTORY.0..=HISTORY.1).contains(&history) || degree > DEGREE_MAX)
        {
            return Err(ParamsError::Temporal { history, degree });
        }
        if let Some(fill) = self.fill
            && !(1..=REACH_MAX).contains(&fill.reach)
        {
            return Err(ParamsError::FillReach(fill.reach));
        }
        Ok(())
    }
}

/// A parameter that no engine supports.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs)] // The messages say it all.
#[non_exhaustive]
pub enum ParamsError {
    #[error("the number of disparities is {0}; it must be 1 to 1024 (`disparities`)")]
    Disparities(usize),
    #[error("disparities {} to {} do not fit a disparity map; they must lie within {} to {} (`min_disparity`, `disparities`)",
        .0.min, .0.max(), DISPARITY_LIMITS.0, DISPARITY_LIMITS.1)]
    Range(DisparityRange),
    #[error("no pixel can have a disparity of {} to {} in images {width} pixels wide; the smallest must be below {width} and the largest above -{width} (`min_disparity`, `disparities`)",
        .range.min, .range.max())]
    OutsideOfView { range: DisparityRange, width: usize },
    #[error("the number of paths is {0}; it must be 0, 4, 5, 8 or 16 (`paths`)")]
    Paths(u32),
    #[error(transparent)]
    Cost(#[from] CostError),
    #[error("P2 is {p2} and P1 is {p1}; P2 must be at least P1 (`p1`, `p2`)")]
    PenaltyOrder { p1: u8, p2: u8 },
    #[error("the smallest P2 is {min} and P2 is {p2}; it must be at most P2 (`p2_min`, `p2`)")]
    PenaltyFloor { min: u8, p2: u8 },
    #[error("the largest cost ({cost}) and P2 ({p2}) add up to {}; together they must be at most {PATH_COST_MAX}, so lower `p2` or {keys}", .cost + u32::from(*.p2))]
    PathCost { cost: u32, p2: u8, keys: &'static str },
    #[error("the window of the cost is {0} pixels; it must be 3 or 5, or off (`cost_window`)")]
    Window(u8),
    #[error("the prior has {0} levels; it must have 1 to {LEVELS_MAX}, or be off (`prior`)")]
    PriorLevels(u8),
    #[error("the strength of the prior is {0}; it must be 1 to {STRENGTH_MAX} (`prior_strength`)")]
    PriorStrength(u8),
    #[error(
        "the largest cost and the strength of the prior add up to {cost}; with a window or a prior they must be at most {SUPPORTED_MAX}, so lower `prior_strength` or {keys}, or turn `cost_window` and `prior` off"
    )]
    Supported { cost: u32, keys: &'static str },
    #[error(
        "the costs cannot be added up over {0} pixels; width and height must be odd, 1 to {SIDE_MAX} (`block_window`)"
    )]
    SumWindow(BlockWindow),
    #[error(
        "without paths nothing supports the cost: set `paths` to 4 to 16, or turn `cost_window` and `prior` off (0)"
    )]
    LocalSupport,
    #[error(
        "without paths the window of the cost `ad` is that of `block_window`; `ad_window` must be 1"
    )]
    LocalAdWindow,
    #[error(
        "the cost `{0}` compares windows by itself, so nothing else supports it; turn `cost_window` and `prior` off (0)"
    )]
    BlockSupport(&'static str),
    #[error("uniqueness is {0} %; it must be 0 (off) to 99 (`uniqueness`)")]
    Uniqueness(u8),
    #[error(
        "surfaces cannot be smoothed over {0} px; it must be 1 to {SPATIAL_MAX}, or off (`spatial`)"
    )]
    Spatial(u8),
    #[error(
        "smoothing by {}/256 up to {}/16 px cannot be computed; the weight must be above 0 and the guard at most {GUARD_MAX_16}/16 px (`smoothing`, `smoothing_guard`)",
        .0.weight_256, .0.guard_16
    )]
    Smoothing(Smoothing),
    #[error("maps cannot be steady by {0}; it must be 1 to {STEADY_MAX} maps, or off (`steady`)")]
    Steady(u8),
    #[error(
        "pictures cannot be predicted from {history} pictures by polynomials of degree {degree}; it must be {} to {} pictures and a degree of 0 to {DEGREE_MAX} (`history`, `degree`)",
        HISTORY.0, HISTORY.1
    )]
    Temporal { history: u8, degree: u8 },
    #[error("holes cannot be filled from {0} px away; it must be 1 to {REACH_MAX} (`fill_max`)")]
    FillReach(u16),
}

impl TryFrom<u32> for Paths {
    type Error = ParamsError;
    fn try_from(count: u32) -> Result<Self, ParamsError> {
        match count {
            0 => Ok(Paths::None),
            4 => Ok(Paths::Four),
            5 => Ok(Paths::Five),
            8 => Ok(Paths::Eight),
            16 => Ok(Paths::Sixteen),
            _ => Err(ParamsError::Paths(count)),
        }
    }
}

impl fmt::Display for DisparityRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}..={}", self.min, self.max())
    }
}

#[cfg(test)]
mod tests;
