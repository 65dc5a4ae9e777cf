//! Rows of the table of settings, one a key: its kind and default, its flag, whether it can change in a
//! run, and its knob in the window. Comments on the keys stand in `config/default.toml`.

use clap::Arg;

use crate::matching::cost::CostDefaults;

/// A key of a section. What it sets is the field of the same name in the section's struct.
#[derive(Clone, Copy)]
pub struct Row {
    /// Name within the section.
    pub key: &'static str,
    /// Kind of its value.
    pub kind: Kind,
    /// Value where nothing else is said.
    pub default: Plain,
    /// Words that stand in place of a number.
    pub words: &'static [&'static str],
    /// Word for no value at all: the field is then `None`.
    pub none: Option<&'static str>,
    /// Number that `auto` stands for, among those that suit the cost.
    pub by_cost: Option<fn(&CostDefaults) -> f64>,
    /// Whether `auto` comes to 0 where there are no paths, whatever the cost.
    pub off_without_paths: bool,
    /// Unit of the number, for messages.
    pub unit: Option<&'static str>,
    /// Flag that sets it.
    pub flag: Option<Flag>,
    /// Line of `--help` on the flag.
    pub help: &'static str,
    /// Lines of `--help` on the names that the key takes, in their order.
    pub about: &'static [&'static str],
    /// A second spelling of a name for the flag, and the name.
    pub alias: Option<[&'static str; 2]>,
    /// Names that `false` and `true` stand for.
    pub switch: Option<[&'static str; 2]>,
    /// Adds to the flag what the rest of the row does not say.
    pub arg: fn(Arg) -> Arg,
    /// Times at which it can change.
    pub live: Live,
    /// Knob in the window.
    pub panel: Option<Panel>,
    /// Sentence on what the knob does.
    pub hint: &'static str,
    /// Values that the knob offers, where they are not just those that the key takes.
    pub offers: Option<Offers>,
    /// True where the knob stands at the end of its group.
    pub last: bool,
    /// Key of the same section and its names for which this key means something; `None`: it always does.
    pub only: Option<(&'static str, &'static [&'static str])>,
}

/// A plain value.
#[derive(Clone, Copy)]
pub enum Plain {
    /// `true` or `false`.
    Switch(bool),
    /// A whole number.
    Whole(i64),
    /// A number.
    Real(f64),
    /// A text or a word.
    Text(&'static str),
}

/// Kind of value that a key takes, besides the words of its row.
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
    /// One of these names.
    Names(&'static [&'static str]),
    /// A text that passes the check, which else says what is expected.
    Text(fn(&str) -> Result<(), String>),
    /// The name of a file or folder, which need not be text.
    Path,
}

/// The type of a whole number.
#[derive(Clone, Copy, PartialEq)]
#[allow(missing_docs)] // They are Rust's.
pub enum Integer {
    U8,
    U16,
    U32,
    U64,
    I32,
}

impl Integer {
    /// The largest number of the type that a file can hold.
    pub fn largest(self) -> i64 {
        match self {
            Integer::U8 => u8::MAX.into(),
            Integer::U16 => u16::MAX.into(),
            Integer::U32 => u32::MAX.into(),
            Integer::U64 => i64::MAX,
            Integer::I32 => i32::MAX.into(),
        }
    }

    /// The smallest.
    pub fn smallest(self) -> i64 {
        if self == Integer::I32 { i32::MIN.into() } else { 0 }
    }
}

/// Times at which a value can change.
#[derive(Clone, Copy, PartialEq)]
pub enum Live {
    /// Before a run only.
    Fixed,
    /// In a run, too.
    Always,
    /// In a run, unless an output says once for all frames what the range of disparities is.
    UnlessRecorded,
}

/// Group of flags that the same commands have.
pub type Group = u8;
/// Cameras, of `run`.
pub const CAMERAS: Group = 0;
/// Pairing of frames.
pub const PAIRING: Group = 1;
/// Outputs.
pub const OUTPUT: Group = 2;
/// Rectification of raw pictures.
pub const CALIBRATION: Group = 3;
/// Quantity that a recording holds.
pub const QUANTITY: Group = 4;
/// Cameras of pictures that come rectified.
pub const RECTIFIED: Group = 5;
/// Parameters of the matcher.
pub const MATCHING: Group = 6;
/// The engine.
pub const ENGINE: Group = 7;
/// Pictures as they are read.
pub const PICTURES: Group = 8;
/// Rate that the engine is to reach.
pub const RATE: Group = 9;

/// A flag.
#[derive(Clone, Copy)]
pub struct Flag {
    /// Group that it belongs to.
    pub group: Group,
    /// Spelling, such as `--p1`.
    pub name: &'static str,
    /// Name of its value; empty for a switch, which is `true` where it is given.
    pub value: &'static str,
    /// Shorter spelling without dashes, in commands whose own flags leave it free.
    pub shorter: Option<&'static str>,
}

/// A knob in the window.
#[derive(Clone, Copy)]
pub struct Panel {
    /// Heading that it stands below.
    pub group: &'static str,
    /// Name in the panel.
    pub label: &'static str,
}

/// Values that a knob offers; others can be typed.
#[derive(Clone, Copy)]
#[allow(missing_docs)] // The names say it.
pub enum Offers {
    Slider { low: f64, high: f64, step: f64 },
    Choice(&'static [&'static str]),
}

/// The default of a key where a word stands for what the program chooses.
pub const AUTO: Plain = Plain::Text("auto");

impl Row {
    /// A key of this kind.
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
            about: &[],
            alias: None,
            switch: None,
            arg: |arg| arg,
            live: Live::Fixed,
            panel: None,
            hint: "",
            offers: None,
            last: false,
            only: None,
        }
    }

    /// A whole number from the first to the last of `range`.
    pub const fn whole(key: &'static str, default: Plain, of: Integer, range: [i64; 2]) -> Row {
        Row::new(key, default, Kind::Whole(of, range))
    }

    /// A number from the first to the last of `range`.
    pub const fn real(key: &'static str, default: Plain, range: [f64; 2]) -> Row {
        Row::new(key, default, Kind::Real(range))
    }

    /// One of some names.
    pub const fn names(
        key: &'static str,
        default: &'static str,
        names: &'static [&'static str],
    ) -> Row {
        Row::new(key, Plain::Text(default), Kind::Names(names))
    }

    /// A text that passes the check, which else says what is expected.
    pub const fn text(
        key: &'static str,
        default: &'static str,
        check: fn(&str) -> Result<(), String>,
    ) -> Row {
        Row::new(key, Plain::Text(default), Kind::Text(check))
    }

    /// The name of a file or folder; empty unless it is said.
    pub const fn path(key: &'static str) -> Row {
        Row::new(key, Plain::Text(""), Kind::Path)
    }

    /// Lets a word stand in place of the number; it means that there is none.
    pub const fn or(self, word: &'static [&'static str; 1]) -> Row {
        Row { words: word, none: Some(word[0]), ..self }
    }

    /// Lets `auto` stand for the number that suits the cost.
    pub const fn follows_cost(self, by_cost: fn(&CostDefaults) -> f64) -> Row {
        Row { words: &["auto"], by_cost: Some(by_cost), ..self }
    }

    /// Lets `auto` come to 0 where there are no paths.
    pub const fn off_without_paths(self) -> Row {
        Row { off_without_paths: true, ..self }
    }

    /// Lets `false` and `true` stand for these names.
    pub const fn or_switch(self, names: [&'static str; 2]) -> Row {
        Row { switch: Some(names), ..self }
    }

    /// Names the unit of the number.
    pub const fn unit(self, unit: &'static str) -> Row {
        Row { unit: Some(unit), ..self }
    }

    /// Adds a flag; `value` is what its value is called.
    pub const fn flag(self, group: Group, name: &'static str, value: &'static str) -> Row {
        Row { flag: Some(Flag { group, name, value, shorter: None }), ..self }
    }

    /// Lets commands whose own flags leave it free spell the flag like this, too.
    pub const fn shorter(self, shorter: &'static str) -> Row {
        let flag = match self.flag {
            Some(flag) => Some(Flag { shorter: Some(shorter), ..flag }),
            None => None,
        };
        Row { flag, ..self }
    }

    /// Says in `--help` what the flag does.
    pub const fn help(self, help: &'static str) -> Row {
        Row { help, ..self }
    }

    /// Says in `--help` what each of the names means.
    pub const fn about(self, about: &'static [&'static str]) -> Row {
        Row { about, ..self }
    }

    /// Changes the flag as clap can.
    pub const fn arg(self, arg: fn(Arg) -> Arg) -> Row {
        Row { arg, ..self }
    }

    /// Lets it change in a run.
    pub const fn live(self) -> Row {
        Row { live: Live::Always, ..self }
    }

    /// Lets it change in a run unless an output says once for all frames what the range is.
    pub const fn unless_recorded(self) -> Row {
        Row { live: Live::UnlessRecorded, ..self }
    }

    /// Lets it change in a run, by a knob below the heading `group` of the panel.
    pub const fn knob(self, group: &'static str, label: &'static str) -> Row {
        Row { live: Live::Always, panel: Some(Panel { group, label }), ..self }
    }

    /// Says what the knob does, in a sentence.
    pub const fn hint(self, hint: &'static str) -> Row {
        Row { hint, ..self }
    }

    /// Puts the knob at the end of its group.
    pub const fn last(self) -> Row {
        Row { last: true, ..self }
    }

    /// Makes the knob a slider over these numbers; others can be typed.
    pub const fn slider(self, low: f64, high: f64, step: f64) -> Row {
        Row { offers: Some(Offers::Slider { low, high, step }), ..self }
    }

    /// Makes the knob offer these.
    pub const fn offers(self, texts: &'static [&'static str]) -> Row {
        Row { offers: Some(Offers::Choice(texts)), ..self }
    }

    /// Leaves the knob out unless this other key of the section has one of these names.
    pub const fn only(self, key: &'static str, names: &'static [&'static str]) -> Row {
        Row { only: Some((key, names)), ..self }
    }
}

/// A value that does not fit the others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Conflict {
    /// Key within its section.
    pub(super) key: &'static str,
    /// Values that the key takes beside the others, to follow the word "expected".
    pub(super) expected: String,
}

impl Conflict {
    pub(super) fn new(key: &'static str, expected: impl Into<String>) -> Self {
        Conflict { key, expected: expected.into() }
    }
}

/// Takes any text.
pub fn any(_: &str) -> Result<(), String> {
    Ok(())
}
