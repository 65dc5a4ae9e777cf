//! Which sections and keys there are, and what each takes.

use serde::Deserialize;
use toml::{Table, Value};

use super::Settings;
use super::suggest::nearest;
use crate::redact::redact;

/// The sections and keys, with their defaults.
#[derive(Clone, Debug)]
pub(super) struct Schema(Table);

/// A key or value that does not fit; the message does not say where it stands.
pub(super) type Misfit = String;

impl Schema {
    pub(super) fn new() -> Schema {
        Schema(Table::try_from(Settings::default()).expect("the defaults are plain values"))
    }

    pub(super) fn defaults(&self) -> &Table {
        &self.0
    }

    pub(super) fn sections(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    /// The keys of a section, none where there is no such section.
    pub(super) fn keys(&self, section: &str) -> impl Iterator<Item = &str> {
        self.0
            .get(section)
            .and_then(Value::as_table)
            .into_iter()
            .flat_map(Table::keys)
            .map(|k| &**k)
    }

    /// Every section with every key.
    pub(super) fn all(&self) -> impl Iterator<Item = (&str, &str)> {
        self.sections().flat_map(|section| self.keys(section).map(move |key| (section, key)))
    }

    fn has_section(&self, section: &str) -> bool {
        self.0.contains_key(section)
    }

    /// Whether the section exists, and what to say where it does not.
    pub(super) fn check_section(&self, section: &str) -> Result<(), Misfit> {
        if self.has_section(section) {
            return Ok(());
        }
        let meant = nearest(section, self.sections())
            .map(|near| format!("; did you mean [{near}]?"))
            .unwrap_or_else(|| ";".into());
        Err(format!("unknown section [{section}]{meant} sections: {}", join(self.sections())))
    }

    /// Whether the section has the key, and what to say where it does not.
    pub(super) fn check_key(&self, section: &str, key: &str) -> Result<(), Misfit> {
        self.check_section(section)?;
        if self.keys(section).any(|known| known == key) {
            return Ok(());
        }
        let meant = if let Some(near) = nearest(key, self.keys(section)) {
            format!("; did you mean `{near}`?")
        } else if let Some((home, _)) = self.all().find(|(_, known)| *known == key) {
            format!("; did you mean [{home}]?")
        } else {
            ";".into()
        };
        Err(format!("unknown key `{key}` in [{section}]{meant} keys: {}", join(self.keys(section))))
    }

    /// Whether the key takes the value.
    pub(super) fn check_value(
        &self,
        section: &str,
        key: &str,
        value: &Value,
    ) -> Result<(), Misfit> {
        fits(section, key, value).map_err(|expected| {
            let value = without_secrets(value);
            format!("wrong value {value} for `{key}` in [{section}]: expected {expected}")
        })
    }

    /// The value that a text from the environment or the command line means for this key. TOML's
    /// quotation marks may be left out there, so the key decides whether `12` is a number or a text.
    pub(super) fn value_of_text(
        &self,
        section: &str,
        key: &str,
        text: &str,
    ) -> Result<Value, Misfit> {
        let literal = text.parse::<Value>().ok();
        let plain = Value::String(text.to_owned());
        let quoted = text.starts_with(['"', '\'']);
        let candidates = match literal {
            Some(literal) if quoted => [literal, plain],
            Some(literal) => [plain, literal],
            None => return self.check_value(section, key, &plain).map(|()| plain),
        };
        let mut misfit = String::new();
        for candidate in candidates {
            match self.check_value(section, key, &candidate) {
                Ok(()) => return Ok(candidate),
                Err(error) => misfit = error,
            }
        }
        Err(misfit)
    }
}

/// Whether the key takes the value; if not, what it takes, to follow the word "expected".
fn fits(section: &str, key: &str, value: &Value) -> Result<(), String> {
    match alone(section, key, value) {
        Ok(settings) => match settings.check() {
            Ok(()) => Ok(()),
            Err((_, unfit)) => Err(unfit.expected),
        },
        Err(error) => {
            let names = if value.is_str() { None } else { names_of(section, key) };
            Err(names.unwrap_or_else(|| plain_words(error.message(), value)))
        }
    }
}

/// The names that an enumeration takes, which serde lists only to a text; `None` for other keys.
fn names_of(section: &str, key: &str) -> Option<String> {
    let nameless = Value::from("");
    let error = alone(section, key, &nameless).err()?;
    error.message().starts_with("unknown variant").then(|| plain_words(error.message(), &nameless))
}

/// The defaults with one other value.
fn alone(section: &str, key: &str, value: &Value) -> Result<Settings, toml::de::Error> {
    let one = Table::from_iter([(key.to_owned(), value.clone())]);
    let alone = Table::from_iter([(section.to_owned(), Value::Table(one))]);
    Settings::deserialize(Value::Table(alone))
}

/// What serde says it expected, in words for people who do not write Rust.
fn plain_words(message: &str, value: &Value) -> String {
    let expected =
        message.rsplit_once("expected ").map_or(message, |(_, expected)| expected).trim();
    match expected {
        "u8" => "a whole number from 0 to 255".into(),
        "u16" => "a whole number from 0 to 65535".into(),
        "u32" | "u64" | "usize" => "a whole number, 0 or more".into(),
        "i32" | "i64" => "a whole number".into(),
        "f64" | "a float" | "floating point number" => "a number".into(),
        "a boolean" => "true or false".into(),
        "a string" => "a text in quotation marks".into(),
        // A list of names in backticks, from an enumeration.
        names if names.contains('`') => {
            let meant = value
                .as_str()
                .and_then(|word| nearest(word, names.split('`').skip(1).step_by(2)))
                .map(|near| format!("; did you mean `{near}`?"))
                .unwrap_or_default();
            format!("{names}{meant}")
        }
        other => other.into(),
    }
}

/// A value to show: its texts without passwords, hidden before quotation marks are put around them.
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
        Schema::new().check_value(section, key, &value.into()).unwrap_err()
    }

    #[test]
    fn unknown_names_get_the_nearest_and_all() {
        let schema = Schema::new();
        assert_eq!(
            schema.check_section("matchng").unwrap_err(),
            "unknown section [matchng]; did you mean [matching]? sections: alignment, \
             calibration, camera, colour, demo, engine, log, matching, metrics, output, queue, \
             source, window"
        );
        let key = schema.check_key("matching", "disparites").unwrap_err();
        assert!(key.starts_with(
            "unknown key `disparites` in [matching]; did you mean `disparities`? keys: ad_truncation, "
        ));
        let other = schema.check_key("engine", "median").unwrap_err();
        assert!(other.contains("in [engine]; did you mean [matching]? keys: device, "), "{other}");
        let strange = schema.check_key("log", "resolution").unwrap_err();
        assert_eq!(strange, "unknown key `resolution` in [log]; keys: filter");
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
            ("matching", "census_weight", Value::from("7"), "a whole number from 0 to 255"),
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
            ("matching", "paths", Value::from(6), "4, 5 or 8"),
            (
                "matching",
                "left_right",
                Value::from("none"),
                "`off` or a whole number from 0 to 65535",
            ),
            ("matching", "p2_slope", Value::from(f64::NAN), "a number from 0 to 255"),
            ("matching", "p2_slope", Value::from(true), "`auto` or a number"),
            ("matching", "speckle_range", Value::from(true), "a number"),
            ("matching", "subpixel", Value::from(1), "true or false"),
            ("matching", "cost", Value::from("x"), "one of `combined`, `census`, `ad`"),
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
                "one of `auto`, `avx512`, `avx2`, `portable`",
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
        let schema = Schema::new();
        let value = |section, key, text| schema.value_of_text(section, key, text).unwrap();
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
            let result = schema.value_of_text("matching", "p1", text);
            assert!(result.is_err(), "{text:?}: {result:?}");
        }
    }
}
