//! The table of settings: its sections, keys and values.

use serde::de::DeserializeOwned;
use toml::{Table, Value};

use super::MATCHER;
use super::matching::Matching;
use super::row::{Conflict, Integer, Kind, Plain, Row};
use super::suggest::{nearest, with_nearest};
use crate::redact::redact;

/// A section of the settings: its name, its meaning as in [`Row::help`], and its keys.
pub type Section = (&'static str, &'static str, &'static [Row]);

/// Settings: their sections, and the struct that holds their values.
pub trait Schema: Clone + DeserializeOwned + 'static {
    /// All sections, in the order of the configuration file and of the flags.
    const SECTIONS: &'static [Section];

    /// Sections that each `[[rig]]` of a file may set for itself; none: there are no rigs.
    const OF_RIGS: &'static [&'static str] = &[];

    /// Section, key and value of texts that differ between rigs if nothing else is said.
    const RIG_DEFAULTS: &'static [(&'static str, &'static str, &'static str)] = &[];

    /// Sections and keys that do not exist, and what to give instead.
    const INSTEAD: &'static [(&'static str, &'static str, &'static str)] = &[];

    fn matching(&self) -> &Matching;

    /// Checks that the values fit together; an error names the section.
    ///
    /// # Errors
    /// The section and the conflict.
    fn check(&self) -> Result<(), (&'static str, Conflict)> {
        Ok(())
    }

    fn shows_confidence(&self) -> bool {
        false
    }

    /// Reports whether somebody wants to know where the rig is.
    fn shows_odometry(&self) -> bool {
        false
    }

    /// Returns a message of the matcher in the words of these settings.
    fn worded(message: String) -> String {
        message
    }
}

pub fn rows<S: Schema>() -> impl Iterator<Item = (&'static str, &'static Row)> {
    S::SECTIONS.iter().flat_map(|&(section, _, rows)| rows.iter().map(move |row| (section, row)))
}

pub fn row<S: Schema>(section: &str, key: &str) -> Option<&'static Row> {
    rows::<S>().find(|(home, row)| *home == section && row.key == key).map(|(_, row)| row)
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

pub fn parameters() -> Vec<String> {
    shared().map(|(_, row)| spelled(row)).collect()
}

/// Returns section and row of a parameter of the matcher: a key, or its flag's name with underscores.
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

pub fn defaults<S: Schema>() -> Table {
    let keys = |rows: &[Row]| -> Table {
        rows.iter().map(|row| (row.key.to_owned(), row.default.into())).collect()
    };
    S::SECTIONS.iter().map(|&(name, _, rows)| (name.to_owned(), keys(rows).into())).collect()
}

/// Converts a table with a value for every key that passes [`check_value`], and no `auto` that
/// depends on the cost.
pub fn typed<S: Schema>(mut values: Table) -> S {
    for (section, row) in rows::<S>() {
        let keys = values[section].as_table_mut().expect("every section is a table");
        if row.none.is_some() && keys[row.key].as_str() == row.none {
            keys.remove(row.key);
        }
    }
    S::deserialize(Value::Table(values)).expect("what each row takes fits its field")
}

/// Returns the names of the sections in alphabetical order, like all below.
pub fn sections<S: Schema>() -> impl Iterator<Item = &'static str> {
    let mut names: Vec<_> = S::SECTIONS.iter().map(|(name, ..)| *name).collect();
    names.sort_unstable();
    names.into_iter()
}

/// Returns the keys of a section; none for an unknown section.
pub fn keys<S: Schema>(section: &str) -> impl Iterator<Item = &'static str> {
    let mut keys: Vec<_> =
        rows::<S>().filter(|(home, _)| *home == section).map(|(_, row)| row.key).collect();
    keys.sort_unstable();
    keys.into_iter()
}

/// Returns every section with every key.
pub fn all<S: Schema>() -> impl Iterator<Item = (&'static str, &'static str)> {
    sections::<S>().flat_map(|section| keys::<S>(section).map(move |key| (section, key)))
}

/// Message on a wrong key or value, without its place.
pub type ValueError = String;

pub fn check_section<S: Schema>(section: &str) -> Result<(), ValueError> {
    if sections::<S>().any(|known| known == section) {
        return Ok(());
    }
    let meant = nearest(section, sections::<S>())
        .map(|near| format!("; did you mean [{near}]?"))
        .unwrap_or_else(|| ";".into());
    Err(format!("unknown section [{section}]{meant} sections: {}", join(sections::<S>())))
}

pub fn check_key<S: Schema>(section: &str, key: &str) -> Result<&'static Row, ValueError> {
    check_section::<S>(section)?;
    if let Some(row) = row::<S>(section, key) {
        return Ok(row);
    }
    let instead = S::INSTEAD.iter().find(|(home, known, _)| (*home, *known) == (section, key));
    if let Some((.., instead)) = instead {
        return Err(format!("unknown key `{key}` in [{section}]: {instead}"));
    }
    let meant = if let Some(near) = nearest(key, keys::<S>(section)) {
        format!("; did you mean `{near}`?")
    } else if let Some((home, _)) = all::<S>().find(|(_, known)| *known == key) {
        format!("; did you mean [{home}]?")
    } else {
        ";".into()
    };
    Err(format!("unknown key `{key}` in [{section}]{meant} keys: {}", join(keys::<S>(section))))
}

/// Stands for the name of a rig in its texts.
pub const RIG_NAME: &str = "{rig}";

/// Returns the value as the key holds it ([`Row::named`]), or the message on a wrong one. A text with [`RIG_NAME`] is
/// checked with a name in its place.
pub fn check_value<S: Schema>(section: &str, key: &str, value: Value) -> Result<Value, ValueError> {
    let row = check_key::<S>(section, key)?;
    let named = value.as_str().filter(|text| text.contains(RIG_NAME) && !S::OF_RIGS.is_empty());
    let is_right =
        named.is_some_and(|text| row.check(&text.replace(RIG_NAME, "rig").into()).is_ok());
    if !is_right {
        check_exactly(section, row, &value)?;
    }
    Ok(row.named(value))
}

/// Fails with a message if the value is wrong as it stands.
pub fn check_exactly(section: &str, row: &Row, value: &Value) -> Result<(), ValueError> {
    row.check(value).map_err(|expected| {
        let (key, value) = (row.key, without_secrets(value));
        format!("wrong value {value} for `{key}` in [{section}]: expected {expected}")
    })
}

/// Returns the value of a text from the environment or the command line. TOML's quotation marks may
/// be left out there, so the key decides whether `12` is a number or a text.
pub fn value_of_text<S: Schema>(section: &str, key: &str, text: &str) -> Result<Value, ValueError> {
    let plain = Value::String(text.to_owned());
    let candidates = match text.parse::<Value>() {
        Ok(literal) if text.starts_with(['"', '\'']) => [Some(literal), Some(plain)],
        literal => [Some(plain), literal.ok()],
    };
    let mut misfit = String::new();
    for candidate in candidates.into_iter().flatten() {
        match check_value::<S>(section, key, candidate) {
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

    /// Describes the accepted values. The range of a wide type is only given if the number lies near it.
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

/// Reports whether two values are equal, also a whole number and a fraction.
pub fn same(a: &Value, b: &Value) -> bool {
    let number = |value: &Value| value.as_float().or(value.as_integer().map(|n| n as f64));
    a == b || number(a).is_some_and(|a| number(b) == Some(a))
}

/// Formats a value without passwords, which are hidden before quotation marks are added.
pub fn without_secrets(value: &Value) -> Value {
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

pub fn join<'a>(words: impl Iterator<Item = &'a str>) -> String {
    words.collect::<Vec<_>>().join(", ")
}
