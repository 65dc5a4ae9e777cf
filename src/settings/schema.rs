//! The table of settings: its sections, keys and values.

use std::sync::LazyLock;

use serde::Deserialize;
use toml::{Table, Value};

#[cfg(feature = "cli")]
use super::program;
use super::row::{Integer, Kind, Plain, Row};
use super::suggest::{nearest, with_nearest};
use super::{Settings, engine, matching};
use crate::core::redact::redact;

/// A section of the settings: its name, its meaning as in [`Row::help`], and its keys.
type Section = (&'static str, &'static str, &'static [Row]);

/// The sections of the matcher.
const MATCHER: [Section; 2] = [
    (
        "matching",
        "Parameters of the matcher. `auto`: the value that suits the cost; `stereod config print` \
         shows it.",
        matching::ROWS,
    ),
    ("engine", "The engine that matches, and what it may use of the machine.", engine::ROWS),
];

/// All sections, in the order of `config/default.toml` and of the flags.
#[cfg(feature = "cli")]
pub(super) const SECTIONS: &[Section] = &[
    (
        "source",
        "Source of `stereod run` if the command line names none, and how frames are read and paired.",
        program::source::ROWS,
    ),
    (
        "camera",
        "Controls of both cameras. `keep` leaves a control as it is, `auto` leaves it to the camera. \
         A control that a camera lacks gives a warning.",
        program::camera::ROWS,
    ),
    ("demo", "The synthetic scene of `stereod run --demo`.", program::demo::ROWS),
    MATCHER[0],
    MATCHER[1],
    ("queue", "Links between the stages.", program::queue::ROWS),
    ("output", "Outputs of a run besides the window. \"\": none.", program::output::ROWS),
    ("calibration", "The two cameras, for rectification and depth.", program::calibration::ROWS),
    ("alignment", "Row alignment of the two views.", program::alignment::ROWS),
    ("colour", "Colours of the disparity.", program::colour::ROWS),
    ("window", "The window.", program::window::ROWS),
    ("metrics", "Metrics for Prometheus over HTTP. \"\": none.", program::metrics::ROWS),
    ("serve", "The live page over HTTP. \"\": none.", program::serve::ROWS),
    (
        "ros2",
        "Messages to a ROS 2 graph, in programs that were built with Cargo's feature `ros2`. \
         \"\": nothing is published.",
        program::ros2::ROWS,
    ),
    ("log", "Messages on standard error.", program::log::ROWS),
];
#[cfg(not(feature = "cli"))]
const SECTIONS: &[Section] = &MATCHER;

/// Returns every row with the name of its section.
pub fn rows() -> impl Iterator<Item = (&'static str, &'static Row)> {
    SECTIONS.iter().flat_map(|&(section, _, rows)| rows.iter().map(move |row| (section, row)))
}

/// Returns the row of a key.
pub fn row(section: &str, key: &str) -> Option<&'static Row> {
    rows().find(|(home, row)| *home == section && row.key == key).map(|(_, row)| row)
}

/// Returns the parameters of the library: their sections and rows.
fn shared() -> impl Iterator<Item = (&'static str, &'static Row)> {
    // Those two mean something only in a run of the program.
    let is_shared = |row: &&Row| !["fit", "in_flight"].contains(&row.key);
    MATCHER.iter().flat_map(move |(section, _, rows)| {
        rows.iter().filter(is_shared).map(move |row| (*section, row))
    })
}

/// Returns the name of a parameter: its flag's, or else its key's.
fn spelled(row: &Row) -> String {
    row.flag.map_or_else(|| row.key.to_owned(), |flag| flag.name[2..].replace('-', "_"))
}

/// Returns the names of the library's parameters.
pub fn parameters() -> Vec<String> {
    shared().map(|(_, row)| spelled(row)).collect()
}

/// Returns the section and the row of a parameter of the matcher: a key, or the name of its flag
/// with underscores.
pub fn parameter(name: &str) -> Result<(&'static str, &'static Row), ValueError> {
    let is_named = |(_, row): &(_, &Row)| row.key == name || spelled(row) == name;
    shared().find(is_named).ok_or_else(|| {
        let names = parameters();
        let names = || names.iter().map(String::as_str);
        let meant = nearest(name, names()).map(|near| format!("; did you mean `{near}`?"));
        let meant = meant.unwrap_or_else(|| ";".into());
        format!("unknown parameter `{name}`{meant} parameters: {}", join(names()))
    })
}

/// Returns the default of every key.
pub(super) fn defaults() -> &'static Table {
    static DEFAULTS: LazyLock<Table> = LazyLock::new(|| {
        let keys = |rows: &[Row]| -> Table {
            rows.iter().map(|row| (row.key.to_owned(), row.default.into())).collect()
        };
        SECTIONS.iter().map(|&(name, _, rows)| (name.to_owned(), keys(rows).into())).collect()
    });
    &DEFAULTS
}

/// Converts a table with a value for every key that passes [`check_value`], and no `auto` that
/// depends on the cost.
pub(super) fn typed(mut values: Table) -> Settings {
    for (section, row) in rows() {
        let keys = values[section].as_table_mut().expect("every section is a table");
        if row.none.is_some() && keys[row.key].as_str() == row.none {
            keys.remove(row.key);
        }
    }
    Settings::deserialize(Value::Table(values)).expect("what each row takes fits its field")
}

/// Returns the names of the sections in alphabetical order, like all below.
pub(super) fn sections() -> impl Iterator<Item = &'static str> {
    defaults().keys().map(String::as_str)
}

/// Returns the keys of a section; none for an unknown section.
pub(super) fn keys(section: &str) -> impl Iterator<Item = &'static str> {
    let keys = defaults().get(section).and_then(Value::as_table);
    keys.into_iter().flat_map(Table::keys).map(String::as_str)
}

/// Returns every section with every key.
pub(super) fn all() -> impl Iterator<Item = (&'static str, &'static str)> {
    sections().flat_map(|section| keys(section).map(move |key| (section, key)))
}

/// Message on a wrong key or value, without its place.
pub(super) type ValueError = String;

/// Checks that the section exists.
pub(super) fn check_section(section: &str) -> Result<(), ValueError> {
    if sections().any(|known| known == section) {
        return Ok(());
    }
    let meant = nearest(section, sections())
        .map(|near| format!("; did you mean [{near}]?"))
        .unwrap_or_else(|| ";".into());
    Err(format!("unknown section [{section}]{meant} sections: {}", join(sections())))
}

/// Returns the row of a key, or the message on a missing one.
pub(super) fn check_key(section: &str, key: &str) -> Result<&'static Row, ValueError> {
    check_section(section)?;
    if let Some(row) = row(section, key) {
        return Ok(row);
    }
    let meant = if let Some(near) = nearest(key, keys(section)) {
        format!("; did you mean `{near}`?")
    } else if let Some((home, _)) = all().find(|(_, known)| *known == key) {
        format!("; did you mean [{home}]?")
    } else {
        ";".into()
    };
    Err(format!("unknown key `{key}` in [{section}]{meant} keys: {}", join(keys(section))))
}

/// Returns the value as the key holds it ([`Row::named`]), or the message on a wrong one.
pub(super) fn check_value(section: &str, key: &str, value: Value) -> Result<Value, ValueError> {
    let row = check_key(section, key)?;
    row.check(&value).map_err(|expected| {
        let value = without_secrets(&value);
        format!("wrong value {value} for `{key}` in [{section}]: expected {expected}")
    })?;
    Ok(row.named(value))
}

/// Returns the value of a text from the environment or the command line. TOML's quotation marks may
/// be left out there, so the key decides whether `12` is a number or a text.
pub(super) fn value_of_text(section: &str, key: &str, text: &str) -> Result<Value, ValueError> {
    let plain = Value::String(text.to_owned());
    let candidates = match text.parse::<Value>() {
        Ok(literal) if text.starts_with(['"', '\'']) => [Some(literal), Some(plain)],
        literal => [Some(plain), literal.ok()],
    };
    let mut misfit = String::new();
    for candidate in candidates.into_iter().flatten() {
        match check_value(section, key, candidate) {
            Ok(value) => return Ok(value),
            Err(error) => misfit = error,
        }
    }
    Err(misfit)
}

impl From<Plain> for Value {
    fn from(plain: Plain) -> Self {
        match plain {
            Plain::Switch(on) => on.into(),
            Plain::Whole(number) => number.into(),
            Plain::Real(number) => number.into(),
            Plain::Text(text) => text.into(),
        }
    }
}

impl Row {
    /// Checks that the key accepts the value.
    pub fn check(&self, value: &Value) -> Result<(), String> {
        let holds = |of: Integer, number: i64| (of.smallest()..=of.largest()).contains(&number);
        match (self.kind, value) {
            (_, Value::String(word)) if self.words.contains(&word.as_str()) => Ok(()),
            (Kind::Names(names), Value::String(name)) if names.contains(&name.as_str()) => Ok(()),
            (Kind::Names(_), Value::Boolean(_)) if self.switch.is_some() => Ok(()),
            (Kind::Switch, Value::Boolean(_)) | (Kind::Path, Value::String(_)) => Ok(()),
            (Kind::Text(check), Value::String(text)) => check(text),
            // TOML has dates, which are names and texts here.
            (Kind::Path, Value::Datetime(_)) => Ok(()),
            (Kind::Text(check), Value::Datetime(date)) => check(&date.to_string()),
            (Kind::Whole(of, [low, high]), Value::Integer(number)) if holds(of, *number) => {
                self.within((low..=high).contains(number), low, high)
            }
            (Kind::OneOf(of, numbers), Value::Integer(number)) if holds(of, *number) => {
                let (last, rest) = numbers.split_last().expect("a key has choices");
                match numbers.contains(&number.to_string().as_str()) {
                    true => Ok(()),
                    false => Err(format!("{} or {last}", rest.join(", "))),
                }
            }
            (Kind::Real([low, high]), Value::Integer(number)) => {
                self.within((low..=high).contains(&(*number as f64)), low, high)
            }
            (Kind::Real([low, high]), Value::Float(number)) => {
                self.within((low..=high).contains(number), low, high)
            }
            (_, Value::String(text)) => Err(with_nearest(&self.expected(), text)),
            _ => Err(self.expected()),
        }
    }

    /// Returns the value as the key holds it: a name in place of a switch.
    pub fn named(&self, value: Value) -> Value {
        match (self.switch, &value) {
            (Some(names), Value::Boolean(on)) => names[usize::from(*on)].into(),
            _ => value,
        }
    }

    fn within<T: std::fmt::Display>(&self, is: bool, low: T, high: T) -> Result<(), String> {
        match (is, self.unit) {
            (true, _) => Ok(()),
            (false, None) => Err(format!("a number from {low} to {high}")),
            (false, Some(unit)) => Err(format!("{}{unit} from {low} to {high}", self.or_words())),
        }
    }

    /// Describes the accepted values. The range of a wide type is only given if the number lies
    /// near it.
    pub fn expected(&self) -> String {
        let or_words = self.or_words();
        match self.kind {
            Kind::Switch => "true or false".into(),
            Kind::Whole(of, _) | Kind::OneOf(of, _) => match (of, self.kind) {
                (Integer::I32, _) => format!("{or_words}a whole number"),
                (Integer::U32, _) if self.words.is_empty() => "a whole number, 0 or more".into(),
                (Integer::U64, _) => format!("{or_words}a whole number, 0 or more"),
                (_, Kind::Whole(_, [low, high])) => {
                    format!("{or_words}a whole number from {low} to {high}")
                }
                _ => format!("{or_words}a whole number from 0 to {}", of.largest()),
            },
            Kind::Real(_) => format!("{or_words}a number"),
            Kind::Names([one, other]) => format!("`{one}` or `{other}`"),
            Kind::Names(names) => format!("one of `{}`", names.join("`, `")),
            Kind::Text(_) | Kind::Path => "a text in quotation marks".into(),
        }
    }

    /// Lists the accepted words, to stand before the other values.
    fn or_words(&self) -> String {
        match self.words {
            [] => String::new(),
            words => format!("`{}` or ", words.join("`, `")),
        }
    }
}

/// Formats a value without passwords, which are hidden before quotation marks are added.
pub(super) fn without_secrets(value: &Value) -> Value {
    match value {
        Value::String(text) => redact(text).into(),
        Value::Array(items) => Value::Array(items.iter().map(without_secrets).collect()),
        Value::Table(items) => {
            let hidden = items.iter().map(|(key, value)| (key.clone(), without_secrets(value)));
            Value::Table(hidden.collect())
        }
        other => other.clone(),
    }
}

pub(super) fn join<'a>(words: impl Iterator<Item = &'a str>) -> String {
    words.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn misfit(section: &str, key: &str, value: impl Into<Value>) -> String {
        check_value(section, key, value.into()).unwrap_err()
    }

    #[test]
    fn unknown_names_get_the_nearest_and_all() {
        assert_eq!(
            check_section("matchng").unwrap_err(),
            "unknown section [matchng]; did you mean [matching]? sections: alignment, \
             calibration, camera, colour, demo, engine, log, matching, metrics, output, queue, ros2, \
             serve, source, window"
        );
        let key = check_key("matching", "disparites").err().unwrap();
        assert!(key.starts_with(
            "unknown key `disparites` in [matching]; did you mean `disparities`? keys: ad_truncation, "
        ));
        let other = check_key("engine", "median").err().unwrap();
        assert!(other.contains("in [engine]; did you mean [matching]? keys: cores, "), "{other}");
        let strange = check_key("log", "resolution").err().unwrap();
        assert_eq!(strange, "unknown key `resolution` in [log]; keys: filter, format, time");
    }

    #[test]
    fn wrong_values_get_what_is_right() {
        assert_eq!(
            misfit("matching", "p1", 300),
            "wrong value 300 for `p1` in [matching]: expected `auto` or a whole number from 0 to 255"
        );
        for (section, key, value, expected) in [
            ("matching", "p1", Value::from("7"), "`auto` or a whole number from 0 to 255"),
            ("matching", "p1", Value::from(-1), "`auto` or a whole number from 0 to 255"),
            ("matching", "p1", Value::from(7.5), "`auto` or a whole number from 0 to 255"),
            ("matching", "census_weight", Value::from("7"), "a whole number from 0 to 127"),
            ("matching", "steady", Value::from("x"), "`off` or a whole number from 1 to 60"),
            ("matching", "census_weight", Value::from(128), "a number from 0 to 127"),
            ("matching", "census_window", Value::from(5), "a text in quotation marks"),
            (
                "matching",
                "census_window",
                Value::from("9x9"),
                "`9x7-symmetric`, or an odd width and height such as `5x5` with at most 65 pixels",
            ),
            (
                "matching",
                "speckle_size",
                Value::from(-1),
                "`auto` or a whole number from 0 to 4294967295",
            ),
            ("matching", "median", Value::from(4), "0, 3 or 5"),
            ("matching", "disparities", Value::from(0), "`auto` or a number from 1 to 1024"),
            ("matching", "disparities", Value::from(-4), "`auto` or a whole number, 0 or more"),
            ("matching", "min_disparity", Value::from("x"), "a whole number"),
            ("matching", "min_disparity", Value::from(i64::MAX), "a whole number"),
            ("matching", "paths", Value::from(6), "0, 4, 5, 8 or 16"),
            (
                "matching",
                "left_right",
                Value::from("none"),
                "`off` or a whole number from 0 to 65535",
            ),
            ("matching", "p2_slope", Value::from(f64::NAN), "a number from 0 to 255"),
            ("matching", "p2_slope", Value::from(true), "`auto` or a number"),
            ("matching", "speckle_range", Value::from(true), "a number"),
            (
                "matching",
                "subpixel",
                Value::from(1),
                "one of `off`, `parabola`, `equiangular`, `corrected`",
            ),
            ("output", "depth", Value::from(1), "true or false"),
            (
                "matching",
                "cost",
                Value::from("x"),
                "one of `combined`, `census`, `ad`, `sad`, `ssd`, `zsad`, `zssd`, `mi`",
            ),
            ("source", "tolerance_ms", Value::from("half"), "`auto` or a number"),
            (
                "source",
                "tolerance_ms",
                Value::from(f64::NAN),
                "`auto` or milliseconds from 0 to 60000",
            ),
            ("output", "record", Value::from(1), "a text in quotation marks"),
            (
                "engine",
                "simd",
                Value::from(Vec::<Value>::new()),
                "one of `auto`, `avx512`, `avx2`, `neon`, `portable`",
            ),
        ] {
            let message = misfit(section, key, value.clone());
            assert!(
                message.ends_with(&format!("expected {expected}")),
                "{key} = {value}: {message}"
            );
        }
        assert_eq!(
            misfit("engine", "kind", "cude"),
            "wrong value \"cude\" for `kind` in [engine]: expected one of `auto`, `cuda`, `cpu`; \
             did you mean `cuda`?"
        );
    }

    #[test]
    fn the_key_decides_what_a_text_means() {
        let value = |section, key, text| value_of_text(section, key, text).unwrap();
        assert_eq!(value("matching", "p1", "7"), Value::from(7));
        assert_eq!(value("output", "record", "7"), Value::from("7"));
        assert_eq!(value("output", "record", "true"), Value::from("true"));
        assert_eq!(value("output", "record", "'a b'"), Value::from("a b"));
        assert_eq!(value("output", "record", "C:\\x = [1"), Value::from("C:\\x = [1"));
        assert_eq!(value("output", "record", ""), Value::from(""));
        assert_eq!(value("matching", "left_right", "off"), Value::from("off"));
        assert_eq!(value("matching", "left_right", "2"), Value::from(2));
        assert_eq!(value("matching", "p1", "auto"), Value::from("auto"));
        assert_eq!(value("matching", "census_window", "5x5"), Value::from("5x5"));
        assert_eq!(value("demo", "rate", "25"), Value::from(25));
        assert_eq!(value("log", "filter", "stereod=debug"), Value::from("stereod=debug"));
        for text in ["", "seven", "7\np2 = 3", "{ a = 1 }", "7 # seven", "300"] {
            let result = value_of_text("matching", "p1", text);
            assert!(result.is_err(), "{text:?}: {result:?}");
        }
    }
}
