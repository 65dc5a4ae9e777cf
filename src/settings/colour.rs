//! `[colour]`: how disparity is coloured in the window and in the preview.

use clap::ValueEnum;
use serde::{Deserialize, Serialize};

use super::values::{OrAuto, Unfit};

/// Which colours.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum ColourMap {
    /// Blue over green to red, Google's Turbo.
    #[default]
    Turbo,
    /// Violet over green to yellow, even in brightness.
    Viridis,
    /// Black to white.
    #[value(alias = "gray")]
    Grey,
}

/// Which disparities the colours span.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum RangeMode {
    /// `min` to `max`.
    #[default]
    Fixed,
    /// What is seen, followed slowly.
    Adaptive,
}

/// How disparity is coloured in the window and in the preview.
#[derive(Clone, Debug, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Colour {
    /// Which colours.
    pub map: ColourMap,
    /// Which disparities they span.
    pub range: RangeMode,
    /// Disparity of the first colour in pixels; `auto` is the smallest candidate.
    pub min: OrAuto,
    /// Disparity of the last colour in pixels; `auto` is the largest candidate.
    pub max: OrAuto,
}

impl Colour {
    pub(super) fn check(&self) -> Result<(), Unfit> {
        for (key, value) in [("min", self.min), ("max", self.max)] {
            if let OrAuto::Value(pixels) = value
                && !(-2048.0..=2048.0).contains(&pixels)
            {
                return Err(Unfit::new(key, "`auto` or pixels from -2048 to 2048"));
            }
        }
        if let (OrAuto::Value(min), OrAuto::Value(max)) = (self.min, self.max)
            && max <= min
        {
            return Err(Unfit::new("max", format!("more than colour.min, which is {min}")));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn range_must_span_something() {
        let colour = |min, max| Colour {
            min: OrAuto::Value(min),
            max: OrAuto::Value(max),
            ..Colour::default()
        };
        assert!(colour(0.0, 1.0).check().is_ok());
        assert_eq!(colour(3.0, 3.0).check().unwrap_err().key, "max");
        assert_eq!(colour(f64::NAN, 3.0).check().unwrap_err().key, "min");
    }
}
