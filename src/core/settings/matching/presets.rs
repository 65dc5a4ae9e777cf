//! Presets: named sets of values of `[matching]`. A value that a preset sets applies unless another
//! layer sets the same key.

use crate::settings::row::Plain::{self, Text, Whole};

/// A preset.
pub struct Preset {
    /// Name.
    pub name: &'static str,
    /// Description, for `--help`.
    pub about: &'static str,
    /// Keys with their values, as in a configuration file.
    pub values: &'static [(&'static str, Plain)],
}

/// All presets, from fast to careful (docs/accuracy.md, "Presets", has the measurements).
pub const PRESETS: [Preset; 4] = [
    Preset {
        name: "fast",
        about: "For slow machines and high rates: half the time, no support for weak texture",
        values: &[
            ("cost_window", Whole(0)),
            ("prior", Whole(0)),
            ("paths", Whole(5)),
            ("spatial", Text("off")),
        ],
    },
    Preset { name: "balanced", about: "The defaults", values: &[] },
    Preset {
        name: "dense",
        about: "For looking and for avoiding obstacles: holes are filled",
        values: &[("fill", Text("rays"))],
    },
    Preset {
        name: "accurate",
        about: "For measuring: only what is right within 1 px with a probability of 80 % or more",
        values: &[("min_confidence", Whole(80))],
    },
];

/// Name of the preset that holds unless another is asked for.
pub(super) const DEFAULT: &str = PRESETS[1].name;

/// Names of the presets.
pub(super) const NAMES: [&str; PRESETS.len()] = {
    let mut names = [""; PRESETS.len()];
    let mut at = 0;
    while at < names.len() {
        names[at] = PRESETS[at].name;
        at += 1;
    }
    names
};

/// Descriptions of the presets.
pub(super) const ABOUT: [&str; PRESETS.len()] = {
    let mut about = [""; PRESETS.len()];
    let mut at = 0;
    while at < about.len() {
        about[at] = PRESETS[at].about;
        at += 1;
    }
    about
};
