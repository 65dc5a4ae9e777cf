//! `[camera]`: how the cameras of both eyes are set.

use std::fmt;

use clap::ValueEnum;
use serde::de::{self, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::values::Unfit;

/// A control of a camera.
#[derive(Clone, Copy, Debug, PartialEq, Default)]
pub enum Control {
    /// Left as it is.
    #[default]
    Keep,
    /// The camera chooses.
    Auto,
    /// This value.
    Value(f64),
}

impl Serialize for Control {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Control::Keep => serializer.serialize_str("keep"),
            Control::Auto => serializer.serialize_str("auto"),
            Control::Value(value) => serializer.serialize_f64(*value),
        }
    }
}

impl<'de> Deserialize<'de> for Control {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Seen;
        impl Visitor<'_> for Seen {
            type Value = Control;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("`keep`, `auto` or a number")
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<Control, E> {
                match text {
                    "keep" => Ok(Control::Keep),
                    "auto" => Ok(Control::Auto),
                    _ => Err(E::invalid_value(de::Unexpected::Str(text), &self)),
                }
            }
            fn visit_i64<E: de::Error>(self, value: i64) -> Result<Control, E> {
                Ok(Control::Value(value as f64))
            }
            fn visit_u64<E: de::Error>(self, value: u64) -> Result<Control, E> {
                Ok(Control::Value(value as f64))
            }
            fn visit_f64<E: de::Error>(self, value: f64) -> Result<Control, E> {
                Ok(Control::Value(value))
            }
        }
        deserializer.deserialize_any(Seen)
    }
}

/// What cameras do about lamps that flicker with the mains.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum PowerLine {
    /// As it is.
    #[default]
    Keep,
    /// Nothing.
    Off,
    /// Mains of 50 Hz.
    #[serde(rename = "50")]
    Hz50,
    /// Mains of 60 Hz.
    #[serde(rename = "60")]
    Hz60,
    /// They find out.
    Auto,
}

/// Whose exposure, gain and white balance a camera has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum ExposureFrom {
    /// Each its own.
    #[default]
    Each,
    /// The left one's.
    Left,
    /// The right one's.
    Right,
}

/// How the cameras of both eyes are set.
#[derive(Clone, Debug, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Camera {
    /// Exposure time in milliseconds.
    pub exposure_ms: Control,
    /// Gain, in the camera's own numbers.
    pub gain: Control,
    /// White balance in kelvin.
    pub white_balance: Control,
    /// Focus, in the camera's own numbers.
    pub focus: Control,
    /// Against flicker.
    pub power_line: PowerLine,
    /// Whose exposure, gain and white balance both have.
    pub exposure_from: ExposureFrom,
}

impl Camera {
    pub(super) fn check(&self) -> Result<(), Unfit> {
        for (key, control, largest) in [
            ("exposure_ms", self.exposure_ms, 100_000.0),
            ("gain", self.gain, 1e9),
            ("white_balance", self.white_balance, 100_000.0),
            ("focus", self.focus, 1e9),
        ] {
            if let Control::Value(value) = control
                && !(0.0..=largest).contains(&value)
            {
                let expected = format!("`keep`, `auto` or a number from 0 to {largest}");
                return Err(Unfit::new(key, expected));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn controls_are_words_or_numbers() {
        let text = "exposure_ms = 8\ngain = \"auto\"\nfocus = 1.5\npower_line = \"50\"";
        let camera: Camera = toml::from_str(text).unwrap();
        let expected = Camera {
            exposure_ms: Control::Value(8.0),
            gain: Control::Auto,
            white_balance: Control::Keep,
            focus: Control::Value(1.5),
            power_line: PowerLine::Hz50,
            exposure_from: ExposureFrom::Each,
        };
        assert_eq!(camera, expected);
        assert_eq!(camera.check(), Ok(()));
        assert_eq!(toml::from_str::<Camera>(&toml::to_string(&camera).unwrap()), Ok(camera));
        for wrong in ["gain = \"much\"", "gain = true", "power_line = \"55\""] {
            assert!(toml::from_str::<Camera>(wrong).is_err(), "{wrong}");
        }
        for wrong in [-1.0, f64::NAN, 1e10] {
            let camera = Camera { gain: Control::Value(wrong), ..Camera::default() };
            assert_eq!(camera.check().unwrap_err().key, "gain", "{wrong}");
        }
    }
}
