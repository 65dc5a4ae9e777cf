//! Rows of the table of settings, one per key: kind and default, flag, meaning, changes during a
//! run, and knob in the window and on the live page. `config/default.toml`, `--help` and the knobs are made from them.

use std::fmt;

use crate::matching::cost::CostDefaults;

/// A key of a section. It sets the field of the same name in the section's struct.
#[derive(Clone, Copy)]
pub struct Row {
    /// Name within the section.
    pub key: &'static str,
    pub kind: Kind,
    pub default: Plain,
    /// Words accepted in place of a number.
    pub words: &'static [&'static str],
    /// Word for no value: the field is then `None`.
    pub none: Option<&'static str>,
    /// Number that `auto` stands for, from the defaults of the cost.
    pub by_cost: Option<fn(&CostDefaults) -> f64>,
    /// Set if `auto` means 0 without paths for every cost.
    pub off_without_paths: bool,
    pub unit: Option<&'static str>,
    pub flag: Option<Flag>,
    /// Its meaning in a sentence, for `--help`, the knob and `config/default.toml`. Other settings
    /// and words in place of numbers stand in backticks.
    pub help: &'static str,
    /// Further sentences for `config/default.toml`.
    pub more: &'static str,
    /// Meanings of the names that the key takes, in their order.
    pub about: &'static [&'static str],
    /// A second spelling of a name on the command line, and the name.
    pub alias: Option<[&'static str; 2]>,
    /// Names for `false` and `true`.
    pub switch: Option<[&'static str; 2]>,
    /// Changes during a run.
    pub live: Live,
    pub in_batch: InBatch,
    pub panel: Option<Panel>,
    /// Values of the knob, if they differ from those of the key.
    pub offers: Option<Offers>,
    /// Another key of the section and the names with which this key has an effect; `None`: it always has.
    pub only: Option<(&'static str, &'static [&'static str])>,
}

#[derive(Clone, Copy)]
pub enum Plain {
    /// `true` or `false`.
    Switch(bool),
    Whole(i64),
    Real(f64),
    Text(&'static str),
}

impl fmt::Display for Plain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Plain::Switch(on) => on.fmt(f),
            Plain::Whole(number) => number.fmt(f),
            Plain::Real(number) => number.fmt(f),
            Plain::Text(text) => text.fmt(f),
        }
    }
}

/// Kind of a key's value, besides the words of its row.
#[derive(Clone, Copy)]
pub enum Kind {
    /// `true` or `false`.
    Switch,
    /// A whole number of a type, from the first to the last.
    Whole(Integer, [i64; 2]),
    /// One of these whole numbers.
    OneOf(Integer, &'static [&'static str]),
    /// A number from the first to the last.
    Real([f64; 2]),
    Names(&'static [&'static str]),
    /// A text that passes the check; its error describes a correct text.
    Text(fn(&str) -> Result<(), String>),
    /// The name of a file or folder, which need not be UTF-8.
    Path,
}

/// The type of a whole number.
#[derive(Clone, Copy, PartialEq)]
pub enum Integer {
    U8,
    U16,
    U32,
    U64,
    I32,
}

impl Integer {
    /// Returns the largest number of the type that a file can hold.
    pub fn largest(self) -> i64 {
        match self {
            Integer::U8 => u8::MAX.into(),
            Integer::U16 => u16::MAX.into(),
            Integer::U32 => u32::MAX.into(),
            Integer::U64 => i64::MAX,
            Integer::I32 => i32::MAX.into(),
        }
    }

    pub fn smallest(self) -> i64 {
        if self == Integer::I32 { i32::MIN.into() } else { 0 }
    }
}

/// Changes of a value during a run.
#[derive(Clone, Copy, PartialEq)]
pub enum Live {
    /// Never.
    Fixed,
    /// Possible.
    Always,
    /// Possible, unless an output states the disparity range once for all frames.
    UnlessRecorded,
}

#[derive(Clone, Copy, PartialEq)]
pub enum InBatch {
    /// That of the settings, which the results depend on.
    Kept,
    /// That of the settings; the results do not depend on it.
    Free,
    /// The default, unless the batch itself chooses another.
    Reset,
}

/// Group of flags that the same commands have.
pub type Group = u8;
pub const CAMERAS: Group = 0;
pub const PAIRING: Group = 1;
pub const OUTPUT: Group = 2;
/// Rectification of raw images.
pub const CALIBRATION: Group = 3;
/// Quantity that a recording holds.
pub const QUANTITY: Group = 4;
/// Cameras of rectified inputs.
pub const RECTIFIED: Group = 5;
pub const MATCHING: Group = 6;
pub const ENGINE: Group = 7;
pub const PICTURES: Group = 8;
pub const RATE: Group = 9;

pub const PART: Group = 10;
/// Views in one frame.
pub const PACKING: Group = 11;

#[derive(Clone, Copy)]
pub struct Flag {
    pub group: Group,
    /// Spelling, such as `--p1`.
    pub name: &'static str,
    /// Name of its value; empty for a switch, whose presence means `true`.
    pub value: &'static str,
    /// Shorter spelling without dashes, for commands without such a flag of their own.
    pub shorter: Option<&'static str>,
}

/// A knob in the window and on the live page.
#[derive(Clone, Copy)]
pub struct Panel {
    /// Its heading.
    pub group: &'static str,
    /// Its name in plain words, besides the key.
    pub name: &'static str,
    /// Set if it is folded away.
    pub is_rare: bool,
}

/// Values that a knob offers; others can be typed.
#[derive(Clone, Copy)]
pub enum Offers {
    Slider { low: f64, high: f64, step: f64 },
    Choice(&'static [&'static str]),
}

/// The default of a key that the program chooses.
pub const AUTO: Plain = Plain::Text("auto");

impl Row {
    pub const fn new(key: &'static str, default: Plain, kind: Kind) -> Row {
        Row {
            key,
            kind,
            default,
            words: &[],
            none: None,
            by_cost: None,
            off_without_paths: false,
            unit: None,
            flag: None,
            help: "",
            more: "",
            about: &[],
            alias: None,
            switch: None,
            live: Live::Fixed,
            in_batch: InBatch::Kept,
            panel: None,
            offers: None,
            only: None,
        }
    }

    pub const fn whole(key: &'static str, default: Plain, of: Integer, range: [i64; 2]) -> Row {
        Row::new(key, default, Kind::Whole(of, range))
    }

    /// Makes a number from the first to the last of `range`.
    pub const fn real(key: &'static str, default: Plain, range: [f64; 2]) -> Row {
        Row::new(key, default, Kind::Real(range))
    }

    /// Makes a choice of names.
    pub const fn names(
        key: &'static str,
        default: &'static str,
        names: &'static [&'static str],
    ) -> Row {
        Row::new(key, Plain::Text(default), Kind::Names(names))
    }

    pub const fn text(
        key: &'static str,
        default: &'static str,
        check: fn(&str) -> Result<(), String>,
    ) -> Row {
        Row::new(key, Plain::Text(default), Kind::Text(check))
    }

    /// Makes the name of a file or folder, which a batch chooses itself; empty by default.
    pub const fn path(key: &'static str) -> Row {
        Row::new(key, Plain::Text(""), Kind::Path).in_batch(InBatch::Reset)
    }

    pub const fn in_batch(self, in_batch: InBatch) -> Row {
        Row { in_batch, ..self }
    }

    /// Accepts a word in place of the number; it means that there is none.
    pub const fn or(self, word: &'static [&'static str; 1]) -> Row {
        Row { words: word, none: Some(word[0]), ..self }
    }

    /// Makes `auto` the number that suits the cost.
    pub const fn follows_cost(self, by_cost: fn(&CostDefaults) -> f64) -> Row {
        Row { words: &["auto"], by_cost: Some(by_cost), ..self }
    }

    pub const fn off_without_paths(self) -> Row {
        Row { off_without_paths: true, ..self }
    }

    /// Accepts `false` and `true` for these names.
    pub const fn or_switch(self, names: [&'static str; 2]) -> Row {
        Row { switch: Some(names), ..self }
    }

    pub const fn unit(self, unit: &'static str) -> Row {
        Row { unit: Some(unit), ..self }
    }

    pub const fn flag(self, group: Group, name: &'static str, value: &'static str) -> Row {
        Row { flag: Some(Flag { group, name, value, shorter: None }), ..self }
    }

    /// Adds a shorter spelling of the flag, for commands without such a flag of their own.
    pub const fn shorter(self, shorter: &'static str) -> Row {
        let flag = match self.flag {
            Some(flag) => Some(Flag { shorter: Some(shorter), ..flag }),
            None => None,
        };
        Row { flag, ..self }
    }

    /// Describes the key in a sentence.
    pub const fn help(self, help: &'static str) -> Row {
        Row { help, ..self }
    }

    /// Adds further sentences for `config/default.toml`.
    pub const fn more(self, more: &'static str) -> Row {
        Row { more, ..self }
    }

    /// Describes each of the names.
    pub const fn about(self, about: &'static [&'static str]) -> Row {
        Row { about, ..self }
    }

    /// Allows changes during a run.
    pub const fn live(self) -> Row {
        Row { live: Live::Always, ..self }
    }

    /// Allows changes during a run unless an output states the disparity range once for all frames.
    pub const fn unless_recorded(self) -> Row {
        Row { live: Live::UnlessRecorded, ..self }
    }

    /// Allows changes during a run, by a knob of this name below the heading `group`.
    pub const fn knob(self, group: &'static str, name: &'static str) -> Row {
        let panel = Some(Panel { group, name, is_rare: false });
        Row { live: Live::Always, panel, ..self }
    }

    /// Folds the knob away, because few users need it.
    pub const fn rare(self) -> Row {
        let panel = match self.panel {
            Some(panel) => Some(Panel { is_rare: true, ..panel }),
            None => None,
        };
        Row { panel, ..self }
    }

    /// Makes the knob a slider over these numbers; others can be typed.
    pub const fn slider(self, low: f64, high: f64, step: f64) -> Row {
        Row { offers: Some(Offers::Slider { low, high, step }), ..self }
    }

    pub const fn offers(self, texts: &'static [&'static str]) -> Row {
        Row { offers: Some(Offers::Choice(texts)), ..self }
    }

    /// Hides the knob unless another key of the section has one of these names.
    pub const fn only(self, key: &'static str, names: &'static [&'static str]) -> Row {
        Row { only: Some((key, names)), ..self }
    }
}

/// A value that contradicts others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conflict {
    pub key: &'static str,
    /// Description of correct values, to follow the word "expected".
    pub expected: String,
}

impl Conflict {
    pub fn new(key: &'static str, expected: impl Into<String>) -> Self {
        Conflict { key, expected: expected.into() }
    }
}

pub fn any(_: &str) -> Result<(), String> {
    Ok(())
}
