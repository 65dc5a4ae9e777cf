//! `[matching]`: parameters of the matcher.

pub mod presets;
mod rows;

use serde::{Deserialize, Deserializer, de};

pub(super) use self::rows::ROWS;
use super::row::Row;
use crate::frame::{DisparityRange, SUBPIXEL};
use crate::matching::confidence::of_percent;
use crate::matching::filter::smoothing::Smoothing;
use crate::matching::filter::spatial::Spatial;
use crate::matching::filter::steady::Steady;
use crate::matching::params::SLOPE_UNIT;
use crate::matching::saturation::WHITE;
use crate::matching::{
    BlockMeasure, BlockWindow, CensusWindow, CombinedWeights, Cost, Evidence, Fill, FillRule,
    Guide, Median, P2Mode, Params, ParamsError, Paths, Prior, Speckle, Subpixel, Temporal,
    TemporalMode, Window,
};

/// Name of the matching cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[allow(missing_docs)] // `COSTS` describes them.
pub enum CostKind {
    Combined,
    Census,
    Ad,
    Sad,
    Ssd,
    Zsad,
    Zssd,
    Mi,
}

/// Dependence of the penalty of a large step on the image.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum P2Kind {
    /// P2 everywhere.
    Fixed,
    /// P2 divided by the step in brightness, at least P1.
    InverseGradient,
    /// P2 minus `p2_slope` for every grey level of the step, at least `p2_min`.
    Linear,
}

/// Name of a preset.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[allow(missing_docs)] // `PRESETS` describes them.
pub enum PresetKind {
    Fast,
    Balanced,
    Dense,
    Accurate,
}

/// Pixels at which the cost is averaged over a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WindowWhere {
    /// The less texture above the noise, the more.
    WeakTexture,
    /// At every pixel alike.
    Everywhere,
}

/// Whether a wide range is searched only where the half-size map suggests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Windows {
    Off,
    Auto,
}

/// The surface that paths follow without a penalty.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Surface {
    /// None.
    Off,
    /// That of the prior's map.
    Coarse,
}

/// Removal of pixels without evidence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EvidenceKind {
    /// Off.
    Off,
    /// Pixels stay only if evidence around them supports them.
    On,
}

/// Rule of hole filling.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FillKind {
    /// Holes stay.
    Off,
    /// The smaller of the two neighbours in the row.
    Row,
    /// The weighted median along eight rays.
    Rays,
    /// The straight line across short gaps.
    Gaps,
    /// The rays that the network confirms.
    Network,
    /// The same or, if it confirms none, all rays.
    #[serde(rename = "network+rays")]
    NetworkOrRays,
}

/// Use of earlier frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TemporalKind {
    /// None.
    Off,
    /// Static parts lose their noise before matching.
    Denoise,
    /// Frames are matched as they are, and differences from their background are found.
    Whiten,
}

/// Settings of the matcher, with every `auto` that depends on the cost resolved.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(missing_docs)] // `ROWS` says what each is.
pub struct Matching {
    pub preset: PresetKind,
    pub disparities: Option<usize>,
    pub min_disparity: i32,
    pub cost: CostKind,
    pub ad_truncation: u8,
    pub ad_window: u8,
    #[serde(deserialize_with = "window_of_text")]
    pub census_window: CensusWindow,
    #[serde(deserialize_with = "block_window_of_text")]
    pub block_window: BlockWindow,
    pub block_truncation: u8,
    pub mi_truncation: u8,
    pub census_weight: u8,
    pub gradient_weight: u8,
    pub intensity_weight: u8,
    pub gradient_truncation: u8,
    pub intensity_truncation: u8,
    pub cost_window: u8,
    pub cost_window_where: WindowWhere,
    pub prior: u8,
    pub prior_strength: u8,
    pub surface: Surface,
    pub windows: Windows,
    pub paths: u32,
    pub p1: u8,
    pub p2: u8,
    pub p2_mode: P2Kind,
    pub p2_guide: Guide,
    pub p2_min: u8,
    pub p2_slope: f64,
    pub uniqueness: u8,
    pub subpixel: Subpixel,
    pub min_confidence: u8,
    pub left_right: Option<u16>,
    pub median: u8,
    pub speckle_size: u32,
    pub speckle_range: f64,
    pub evidence: EvidenceKind,
    pub spatial: Option<u8>,
    pub smoothing: Option<f64>,
    pub smoothing_guard: f64,
    pub steady: Option<u8>,
    pub odometry: bool,
    pub temporal: TemporalKind,
    pub history: u8,
    pub degree: u8,
    pub fill: FillKind,
    pub fill_max: u16,
}

/// Returns the keys that an error names, so that the message can say where they were set, and the
/// cost if it decides one of their defaults.
pub(super) fn keys_of(error: &ParamsError) -> Vec<&'static str> {
    let message = error.to_string();
    let quoted = message.split('`').skip(1).step_by(2);
    let is_named = |row: &&Row| quoted.clone().any(|name| name == row.key);
    let named: Vec<&Row> = ROWS.iter().filter(is_named).collect();
    let cost = named.iter().any(|row| row.by_cost.is_some()).then_some("cost");
    cost.into_iter().chain(named.iter().map(|row| row.key)).collect()
}

/// Parses a window of block matching.
fn block_window_of_text<'de, D: Deserializer<'de>>(from: D) -> Result<BlockWindow, D::Error> {
    String::deserialize(from)?.parse().map_err(de::Error::custom)
}

/// Parses a census window.
fn window_of_text<'de, D: Deserializer<'de>>(from: D) -> Result<CensusWindow, D::Error> {
    String::deserialize(from)?.parse().map_err(de::Error::custom)
}

impl Matching {
    /// Returns the parameters of an engine. The default stands in for a number of disparities that
    /// is not chosen yet.
    pub fn params(&self) -> Result<Params, ParamsError> {
        let cost = match self.cost {
            CostKind::Combined => Cost::Combined(CombinedWeights {
                census_weight: self.census_weight,
                gradient_weight: self.gradient_weight,
                intensity_weight: self.intensity_weight,
                gradient_truncation: self.gradient_truncation,
                intensity_truncation: self.intensity_truncation,
            }),
            CostKind::Census => Cost::Census { window: self.census_window },
            // Without paths, the summation window replaces it.
            CostKind::Ad if self.paths == 0 => {
                Cost::Ad { truncation: self.ad_truncation, window: 1 }
            }
            CostKind::Ad => Cost::Ad { truncation: self.ad_truncation, window: self.ad_window },
            CostKind::Sad => self.block(BlockMeasure::Sad),
            CostKind::Ssd => self.block(BlockMeasure::Ssd),
            CostKind::Zsad => self.block(BlockMeasure::ZeroMeanSad),
            CostKind::Zssd => self.block(BlockMeasure::ZeroMeanSsd),
            CostKind::Mi => Cost::MutualInformation { truncation: self.mi_truncation },
        };
        let p2_mode = match self.p2_mode {
            P2Kind::Fixed => P2Mode::Fixed,
            P2Kind::InverseGradient => P2Mode::InverseGradient,
            // The conversion saturates, so that even an unchecked slope cannot wrap.
            P2Kind::Linear => P2Mode::Linear {
                min: self.p2_min,
                slope_16: (self.p2_slope * f64::from(SLOPE_UNIT)).round() as u16,
            },
        };
        let params = Params {
            range: DisparityRange {
                min: self.min_disparity,
                count: self.disparities.unwrap_or(Params::DEFAULT.range.count),
            },
            cost,
            window: (self.cost_window > 0).then_some(Window {
                side: self.cost_window,
                by_texture: self.cost_window_where == WindowWhere::WeakTexture,
            }),
            prior: (self.prior > 0)
                .then_some(Prior { levels: self.prior, strength: self.prior_strength }),
            surface: self.surface == Surface::Coarse,
            windows: self.windows == Windows::Auto,
            paths: Paths::try_from(self.paths)?,
            sum_window: self.block_window,
            p1: self.p1,
            p2: self.p2,
            p2_mode,
            p2_guide: self.p2_guide,
            uniqueness: self.uniqueness,
            subpixel: self.subpixel,
            left_right: self.left_right,
            // Steady maps weigh disparities by confidence, and odometry chooses its points by it.
            confidence: (self.min_confidence > 0 || self.steady.is_some() || self.odometry)
                .then(|| of_percent(self.min_confidence)),
            odometry: self.odometry,
            white: WHITE,
            median: match self.median {
                3 => Median::Three,
                5 => Median::Five,
                _ => Median::Off,
            },
            speckle: match self.speckle_size {
                0 => None,
                size => Some(Speckle {
                    size,
                    range_16: (self.speckle_range * f64::from(SUBPIXEL)).round() as u16,
                }),
            },
            // Pixels supported only by their surroundings have the lowest confidence.
            evidence: (self.evidence == EvidenceKind::On)
                .then_some(Evidence { strict: self.min_confidence > 0 }),
            spatial: self.spatial.map(|reach| Spatial { reach }),
            smoothing: self.smoothing.map(|weight| Smoothing {
                weight_256: (256.0 * weight).round() as u8,
                guard_16: (self.smoothing_guard * f64::from(SUBPIXEL)).round() as u16,
            }),
            steady: self.steady.map(|strength| Steady { strength }),
            temporal: match self.temporal {
                TemporalKind::Off => None,
                TemporalKind::Denoise => Some(TemporalMode::Denoise),
                TemporalKind::Whiten => Some(TemporalMode::Whiten),
            }
            .map(|mode| Temporal { mode, history: self.history, degree: self.degree }),
            fill: match self.fill {
                FillKind::Off => None,
                FillKind::Row => Some(FillRule::Row),
                FillKind::Rays => Some(FillRule::Rays),
                FillKind::Gaps => Some(FillRule::Gaps),
                FillKind::Network => Some(FillRule::Network),
                FillKind::NetworkOrRays => Some(FillRule::NetworkOrRays),
            }
            .map(|rule| Fill { rule, reach: self.fill_max }),
            ..Params::DEFAULT
        };
        params.check()?;
        Ok(params)
    }

    fn block(&self, measure: BlockMeasure) -> Cost {
        Cost::Block { measure, window: self.block_window, truncation: self.block_truncation }
    }
}

#[cfg(test)]
mod tests;
