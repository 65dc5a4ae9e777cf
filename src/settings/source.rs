//! `[source]`: how streams become pairs.

use std::time::Duration;

use clap::ValueEnum;
use serde::{Deserialize, Serialize};

use super::values::{OrAuto, Unfit};

/// What makes two frames a pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum PairBy {
    /// Capture times where both eyes have them, else frame numbers.
    #[default]
    Auto,
    /// Capture times.
    Time,
    /// Frame numbers.
    Index,
}

/// How fast a recorded source is played.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Pace {
    /// As recorded in a window without outputs, else as fast as possible.
    #[default]
    Auto,
    /// As recorded.
    Realtime,
    /// As fast as possible.
    Fast,
}

/// How streams become pairs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Source {
    /// Left eye: a video, a picture pattern, a URI, a GStreamer source. A source that is named on
    /// the command line takes the place of all four.
    pub left: String,
    /// Right eye, likewise.
    pub right: String,
    /// One stream with the left eye in its left half.
    pub side_by_side: String,
    /// One stream with the left eye in its upper half.
    pub top_bottom: String,
    /// What makes two frames a pair.
    pub pair_by: PairBy,
    /// Largest difference in time between the eyes of a pair, in milliseconds.
    pub tolerance_ms: OrAuto,
    /// How fast a recorded source is played.
    pub pace: Pace,
    /// Frame rate of numbered pictures, in pictures a second.
    pub picture_rate: f64,
}

impl Default for Source {
    fn default() -> Self {
        Source {
            left: String::new(),
            right: String::new(),
            side_by_side: String::new(),
            top_bottom: String::new(),
            pair_by: PairBy::Auto,
            tolerance_ms: OrAuto::Auto,
            pace: Pace::Auto,
            picture_rate: 30.0,
        }
    }
}

impl Source {
    /// Largest difference in time between the eyes of a pair; `None` where the source chooses it.
    pub fn tolerance(&self) -> Option<Duration> {
        self.tolerance_ms.value().map(|ms| Duration::from_secs_f64(ms / 1000.0))
    }

    /// A source is one kind. That one eye lacks the other cannot be said here, where each key is
    /// looked at alone; [`Source::complete`] does.
    fn check_kind(&self) -> Result<(), Unfit> {
        let [left, right, side_by_side, top_bottom] =
            [&self.left, &self.right, &self.side_by_side, &self.top_bottom]
                .map(|text| !text.is_empty());
        if side_by_side && (left || right) {
            return Err(Unfit::new("side_by_side", "nothing (\"\") beside `left` and `right`"));
        }
        if top_bottom && (left || right || side_by_side) {
            return Err(Unfit::new(
                "top_bottom",
                "nothing (\"\") beside `left`, `right` and `side_by_side`",
            ));
        }
        Ok(())
    }

    /// Whether no eye lacks the other.
    ///
    /// # Errors
    /// The key that is missing, in words.
    pub fn complete(&self) -> Result<(), String> {
        let lacks = |has: &str, lacks: &str| {
            Err(format!("[source] has `{has}` but no `{lacks}`: name both eyes"))
        };
        match (self.left.is_empty(), self.right.is_empty()) {
            (false, true) => lacks("left", "right"),
            (true, false) => lacks("right", "left"),
            _ => Ok(()),
        }
    }

    pub(super) fn check(&self) -> Result<(), Unfit> {
        self.check_kind()?;
        if let OrAuto::Value(ms) = self.tolerance_ms
            && !(0.0..=60_000.0).contains(&ms)
        {
            return Err(Unfit::new("tolerance_ms", "`auto` or milliseconds from 0 to 60000"));
        }
        Unfit::within("picture_rate", self.picture_rate, 0.01..=1000.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tolerance_is_a_time() {
        let source = Source { tolerance_ms: OrAuto::Value(2.5), ..Source::default() };
        assert_eq!(source.tolerance(), Some(Duration::from_micros(2500)));
        assert_eq!(Source::default().tolerance(), None);
    }

    #[test]
    fn a_source_is_one_kind_and_has_both_eyes() {
        let source = |left: &str, right: &str, both: &str, stacked: &str| Source {
            left: left.into(),
            right: right.into(),
            side_by_side: both.into(),
            top_bottom: stacked.into(),
            ..Source::default()
        };
        for good in [source("", "", "", ""), source("a", "b", "", ""), source("", "", "c", "")] {
            assert!(good.check().is_ok() && good.complete().is_ok());
        }
        assert_eq!(source("a", "b", "c", "").check().unwrap_err().key, "side_by_side");
        assert_eq!(source("", "", "c", "d").check().unwrap_err().key, "top_bottom");
        assert!(source("a", "", "", "").complete().unwrap_err().contains("no `right`"));
        assert!(source("", "b", "", "").complete().unwrap_err().contains("no `left`"));
    }

    #[test]
    fn no_negative_or_unending_tolerance() {
        for ms in [-1.0, f64::NAN, f64::INFINITY] {
            let source = Source { tolerance_ms: OrAuto::Value(ms), ..Source::default() };
            assert_eq!(source.check().unwrap_err().key, "tolerance_ms");
        }
    }
}
