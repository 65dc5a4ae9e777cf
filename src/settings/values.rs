//! Values that are a number or a word, and the errors that all sections share.

use std::fmt;
use std::marker::PhantomData;
use std::str::FromStr;

use serde::de::{self, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A number, or `auto` to let the program choose.
#[derive(Clone, Copy, Debug, PartialEq, Default)]
pub enum OrAuto<T = f64> {
    /// The program chooses.
    #[default]
    Auto,
    /// This value.
    Value(T),
}

impl<T> OrAuto<T> {
    /// The number, or `None` for `auto`.
    pub fn value(self) -> Option<T> {
        match self {
            OrAuto::Auto => None,
            OrAuto::Value(value) => Some(value),
        }
    }
}

impl<T: Copy> OrAuto<T> {
    /// The number, which `choice` takes the place of where it is `auto`.
    pub fn or(self, choice: T) -> Self {
        OrAuto::Value(self.value().unwrap_or(choice))
    }
}

/// A number that may stand beside `auto`.
pub trait Number: Sized {
    /// What a key takes, to follow the word "expected".
    const EXPECTED: &'static str;
    /// The number for a text, where it is one and finite.
    fn of_text(text: &str) -> Option<Self>;
    /// The number for a whole one in a file, where it fits.
    fn of_whole(value: i64) -> Option<Self>;
    /// The number for one with a fraction, where it fits.
    fn of_real(value: f64) -> Option<Self>;
}

impl Number for f64 {
    const EXPECTED: &'static str = "`auto` or a number";
    fn of_text(text: &str) -> Option<Self> {
        text.parse().ok().filter(|value: &f64| value.is_finite())
    }
    fn of_whole(value: i64) -> Option<Self> {
        Some(value as f64)
    }
    fn of_real(value: f64) -> Option<Self> {
        Some(value)
    }
}

/// Whole numbers, with what a key that takes them expects.
macro_rules! whole_numbers {
    ($($number:ty: $expected:literal),* $(,)?) => {$(
        impl Number for $number {
            const EXPECTED: &'static str = $expected;
            fn of_text(text: &str) -> Option<Self> {
                text.parse().ok()
            }
            fn of_whole(value: i64) -> Option<Self> {
                value.try_into().ok()
            }
            fn of_real(_: f64) -> Option<Self> {
                None
            }
        }
    )*};
}

whole_numbers! {
    u8: "`auto` or a whole number from 0 to 255",
    u16: "`auto` or a whole number from 0 to 65535",
    u32: "`auto` or a whole number from 0 to 4294967295",
    usize: "`auto` or a whole number, 0 or more",
}

/// A whole number, or `off`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OrOff {
    /// Switched off.
    Off,
    /// This value.
    Value(u16),
}

impl OrOff {
    /// The number, or `None` for `off`.
    pub fn value(self) -> Option<u16> {
        match self {
            OrOff::Off => None,
            OrOff::Value(value) => Some(value),
        }
    }
}

const OFF_EXPECTED: &str = "`off` or a whole number from 0 to 65535";

impl<T: Number> FromStr for OrAuto<T> {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        if text == "auto" {
            return Ok(OrAuto::Auto);
        }
        T::of_text(text).map(OrAuto::Value).ok_or_else(|| format!("expected {}", T::EXPECTED))
    }
}

impl FromStr for OrOff {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "off" => Ok(OrOff::Off),
            _ => text.parse().map(OrOff::Value).map_err(|_| format!("expected {OFF_EXPECTED}")),
        }
    }
}

impl<T: fmt::Display> fmt::Display for OrAuto<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OrAuto::Auto => f.write_str("auto"),
            OrAuto::Value(value) => value.fmt(f),
        }
    }
}

impl fmt::Display for OrOff {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OrOff::Off => f.write_str("off"),
            OrOff::Value(value) => value.fmt(f),
        }
    }
}

impl<T: Serialize> Serialize for OrAuto<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            OrAuto::Auto => serializer.serialize_str("auto"),
            OrAuto::Value(value) => value.serialize(serializer),
        }
    }
}

impl Serialize for OrOff {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            OrOff::Off => serializer.serialize_str("off"),
            OrOff::Value(value) => serializer.serialize_u16(*value),
        }
    }
}

impl<'de, T: Number> Deserialize<'de> for OrAuto<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Seen<T>(PhantomData<T>);
        impl<T: Number> Visitor<'_> for Seen<T> {
            type Value = OrAuto<T>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(T::EXPECTED)
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<OrAuto<T>, E> {
                // Only the word: a number in quotation marks is a mistake in a file.
                match text {
                    "auto" => Ok(OrAuto::Auto),
                    _ => Err(E::invalid_value(de::Unexpected::Str(text), &self)),
                }
            }
            fn visit_i64<E: de::Error>(self, value: i64) -> Result<OrAuto<T>, E> {
                T::of_whole(value)
                    .map(OrAuto::Value)
                    .ok_or_else(|| E::invalid_value(de::Unexpected::Signed(value), &self))
            }
            fn visit_u64<E: de::Error>(self, value: u64) -> Result<OrAuto<T>, E> {
                i64::try_from(value)
                    .ok()
                    .and_then(T::of_whole)
                    .map(OrAuto::Value)
                    .ok_or_else(|| E::invalid_value(de::Unexpected::Unsigned(value), &self))
            }
            fn visit_f64<E: de::Error>(self, value: f64) -> Result<OrAuto<T>, E> {
                T::of_real(value)
                    .map(OrAuto::Value)
                    .ok_or_else(|| E::invalid_value(de::Unexpected::Float(value), &self))
            }
        }
        deserializer.deserialize_any(Seen(PhantomData))
    }
}

impl<'de> Deserialize<'de> for OrOff {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Seen;
        impl Visitor<'_> for Seen {
            type Value = OrOff;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(OFF_EXPECTED)
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<OrOff, E> {
                match text {
                    "off" => Ok(OrOff::Off),
                    _ => Err(E::invalid_value(de::Unexpected::Str(text), &self)),
                }
            }
            fn visit_i64<E: de::Error>(self, value: i64) -> Result<OrOff, E> {
                u16::try_from(value)
                    .map(OrOff::Value)
                    .map_err(|_| E::invalid_value(de::Unexpected::Signed(value), &self))
            }
            fn visit_u64<E: de::Error>(self, value: u64) -> Result<OrOff, E> {
                u16::try_from(value)
                    .map(OrOff::Value)
                    .map_err(|_| E::invalid_value(de::Unexpected::Unsigned(value), &self))
            }
        }
        deserializer.deserialize_any(Seen)
    }
}

/// A value of the right type that its key cannot take.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unfit {
    /// The key within its section.
    pub key: &'static str,
    /// What the key takes, to follow the word "expected".
    pub expected: String,
}

impl Unfit {
    /// `key` takes `expected`.
    pub fn new(key: &'static str, expected: impl Into<String>) -> Self {
        Unfit { key, expected: expected.into() }
    }

    /// Fails unless `value` lies within the range, ends included; a NaN lies nowhere.
    pub(super) fn within<T: PartialOrd + fmt::Display>(
        key: &'static str,
        value: T,
        range: std::ops::RangeInclusive<T>,
    ) -> Result<(), Unfit> {
        if range.contains(&value) {
            return Ok(());
        }
        Err(Unfit::new(key, format!("a number from {} to {}", range.start(), range.end())))
    }

    /// Fails unless `value` is one of `choices`.
    pub(super) fn one_of<T: PartialEq + fmt::Display>(
        key: &'static str,
        value: T,
        choices: &[T],
    ) -> Result<(), Unfit> {
        if choices.contains(&value) {
            return Ok(());
        }
        let (last, rest) = choices.split_last().expect("a key has choices");
        let rest = rest.iter().map(T::to_string).collect::<Vec<_>>().join(", ");
        Err(Unfit::new(key, format!("{rest} or {last}")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_and_numbers_are_told_apart() {
        assert_eq!("auto".parse(), Ok(OrAuto::<f64>::Auto));
        assert_eq!("-1.5".parse(), Ok(OrAuto::Value(-1.5)));
        for wrong in ["nan", "inf", "1e999", "aut", "", "1e", "3 4"] {
            assert!(wrong.parse::<OrAuto>().is_err(), "{wrong}");
        }
        assert_eq!("255".parse(), Ok(OrAuto::Value(255u8)));
        for wrong in ["256", "-1", "7.5"] {
            let error = wrong.parse::<OrAuto<u8>>().unwrap_err();
            assert_eq!(error, "expected `auto` or a whole number from 0 to 255");
        }
        assert_eq!(OrAuto::Auto.or(3u8), OrAuto::Value(3));
        assert_eq!(OrAuto::Value(2u8).or(3), OrAuto::Value(2));
        assert_eq!("off".parse(), Ok(OrOff::Off));
        assert_eq!("2".parse(), Ok(OrOff::Value(2)));
        assert!("-1".parse::<OrOff>().unwrap_err().contains("0 to 65535"));
        assert!("70000".parse::<OrOff>().is_err());
    }

    #[test]
    fn device_numbers() {
        #[derive(Debug, PartialEq, Serialize, Deserialize)]
        struct Only {
            device: OrAuto<u16>,
        }
        let read = |text: &str| toml::from_str::<Only>(text).map(|only| only.device);
        assert_eq!(read("device = \"auto\""), Ok(OrAuto::Auto));
        assert_eq!(read("device = 2"), Ok(OrAuto::Value(2)));
        assert_eq!(OrAuto::Value(2).value(), Some(2));
        for wrong in ["-1", "70000", "1.5", "\"2\"", "\"first\""] {
            let error = read(&format!("device = {wrong}")).unwrap_err().to_string();
            assert!(error.contains("0 to 65535"), "{wrong}: {error}");
        }
    }

    #[test]
    fn ranges_name_their_ends_and_refuse_nan() {
        assert_eq!(Unfit::within("k", 3, 1..=5), Ok(()));
        assert_eq!(Unfit::within("k", 6, 1..=5), Err(Unfit::new("k", "a number from 1 to 5")));
        assert!(Unfit::within("k", f64::NAN, 0.0..=1.0).is_err());
        assert_eq!(Unfit::one_of("k", 2, &[1, 3, 5]), Err(Unfit::new("k", "1, 3 or 5")));
    }
}
