//! `[colour]`: colours of disparity in the window and the preview.

use serde::Deserialize;

use stereod_core::frame::DisparityRange;
use stereod_core::settings::row::{AUTO, Conflict, OUTPUT, Row};
use stereod_io::sink::colour::{ColourMap, ColourRange};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RangeMode {
    /// `min` to `max`.
    Fixed,
    /// The disparities of the scene, followed slowly.
    Adaptive,
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Colour {
    pub map: ColourMap,
    pub range: RangeMode,
    pub min: Option<f64>,
    pub max: Option<f64>,
}

pub(in crate::settings) const ROWS: &[Row] = &[
    Row {
        alias: Some(["gray", "grey"]),
        ..Row::names("map", ColourMap::NAMES[0], &ColourMap::NAMES)
            .flag(OUTPUT, "--colour-map", "MAP")
            .help("Colours of the window and the preview; unknown pixels are grey.")
            .about(&ColourMap::ABOUT)
            .knob("Colours", "colours")
    },
    Row::names("range", "adaptive", &["fixed", "adaptive"])
        .help("Disparities that the colours span.")
        .about(&["From `min` to `max`", "Follows the disparities of the scene slowly"])
        .knob("Colours", "range of colours"),
    limit("min", "first colour")
        .help("Disparity of the first colour, in pixels; `auto`: the smallest candidate."),
    limit("max", "last colour")
        .help("Disparity of the last colour, in pixels; `auto`: the largest candidate."),
];

const fn limit(key: &'static str, name: &'static str) -> Row {
    Row::real(key, AUTO, [-2048.0, 2048.0])
        .or(&["auto"])
        .unit("pixels")
        .knob("Colours", name)
        .slider(-64.0, 256.0, 1.0)
        .only("range", &["fixed"])
}

impl Colour {
    /// Returns the disparities that the colours span; unset limits are those of the candidates.
    pub fn span(&self, range: DisparityRange) -> ColourRange {
        let limit = |limit: Option<f64>, auto: i32| limit.map_or(auto as f32, |v| v as f32);
        match (self.range, self.min, self.max) {
            (RangeMode::Adaptive, ..) => ColourRange::ADAPTIVE,
            (RangeMode::Fixed, None, None) => ColourRange::Full,
            (RangeMode::Fixed, min, max) => {
                ColourRange::Fixed { low: limit(min, range.min), high: limit(max, range.max()) }
            }
        }
    }

    pub(in crate::settings) fn check(&self) -> Result<(), Conflict> {
        match (self.min, self.max) {
            (Some(min), Some(max)) if max <= min => {
                Err(Conflict::new("max", format!("more than colour.min, which is {min}")))
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::Settings;
    use crate::settings::tests::refused;

    #[test]
    fn range_must_span_something() {
        let colour =
            |min, max| Colour { min: Some(min), max: Some(max), ..Settings::default().colour };
        assert!(colour(0.0, 1.0).check().is_ok());
        assert_eq!(colour(3.0, 3.0).check().unwrap_err().key, "max");
        assert!(refused("colour", "min", f64::NAN));
    }
}
