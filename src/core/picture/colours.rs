//! Colours of disparities: one definition for videos, pictures, the window and Python.

use std::fmt;
use std::sync::OnceLock;

use serde::Deserialize;

/// Red, green and blue of each of the 256 steps, far (small disparity) first.
pub type ColourTable = [[u8; 3]; 256];

/// A colour for each of 256 steps from far (small disparity) to near.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ColourMap {
    /// Google's rainbow with even lightness steps: far is blue, near is red (Mikhailov, 2019).
    #[default]
    Turbo,
    /// Matplotlib's default: far is violet, near is yellow; fit for colour-blind readers.
    Viridis,
    Grey,
}

impl ColourMap {
    pub const ALL: [ColourMap; 3] = [ColourMap::Turbo, ColourMap::Viridis, ColourMap::Grey];

    pub const NAMES: [&str; 3] = ["turbo", "viridis", "grey"];
    /// Descriptions of the maps for the help.
    pub const ABOUT: [&str; 3] = [
        "Blue over green to red, Google's Turbo",
        "Violet over green to yellow, with even steps of brightness",
        "Black to white; unknown pixels are blue",
    ];

    pub fn name(self) -> &'static str {
        Self::NAMES[self as usize]
    }

    pub fn next(self) -> Self {
        let at = Self::ALL.iter().position(|&map| map == self).unwrap_or(0);
        Self::ALL[(at + 1) % Self::ALL.len()]
    }

    pub fn table(self) -> &'static ColourTable {
        static TABLES: OnceLock<[ColourTable; 3]> = OnceLock::new();
        let tables = TABLES.get_or_init(|| {
            let sampled = |gradient: colorous::Gradient| {
                std::array::from_fn(|step| gradient.eval_rational(step, 256).as_array())
            };
            [
                sampled(colorous::TURBO),
                sampled(colorous::VIRIDIS),
                std::array::from_fn(|step| [step as u8; 3]),
            ]
        });
        &tables[self as usize]
    }

    /// Returns the colour of pixels without a disparity. Unlike black, it has a contrast of at least 3:1 with the
    /// first colour (WCAG 2.2, 1.4.11), so that unknown and far pixels differ, and it is no colour of the map.
    pub fn unknown(self) -> [u8; 3] {
        match self {
            ColourMap::Turbo | ColourMap::Viridis => [112; 3],
            ColourMap::Grey => [50, 90, 155],
        }
    }
}

impl fmt::Display for ColourMap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
