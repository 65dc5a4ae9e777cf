//! `[source]`: how streams become pairs.

use std::time::Duration;

use clap::ValueEnum;
use serde::{Deserialize, Serialize};

use super::values::{OrAuto, Unfit};
use crate::source::spec::SourceSpec;

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

/// Pixel format of cameras.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum CameraFormat {
    /// What suits the size, the rate and the bus.
    #[default]
    Auto,
    /// 8-bit intensity.
    Grey,
    /// Luma plane and chroma.
    Nv12,
    /// Luma and chroma in turn.
    Yuyv,
    /// Chroma and luma in turn.
    Uyvy,
    /// JPEG pictures.
    Mjpg,
    /// H.264 video.
    H264,
}

/// Which streams are opened again where they end, fail or fall silent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Reconnect {
    /// Live ones.
    #[default]
    Auto,
    /// URIs and fragments that do not say that they are live, too.
    On,
    /// None.
    Off,
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
    /// Whether left and right are exchanged.
    pub swap: bool,
    /// Width and height of each eye of cameras in pixels, such as `1280x720`, or `auto`.
    pub size: String,
    /// Frames a second of cameras.
    pub rate: OrAuto,
    /// Pixel format of cameras.
    pub format: CameraFormat,
    /// Which streams are opened again.
    pub reconnect: Reconnect,
    /// How long a live stream may be silent until it counts as lost, in seconds.
    pub silence_s: OrAuto,
    /// How long to wait for cameras and servers that are not there at the start, in seconds.
    pub wait_s: OrAuto,
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
            swap: false,
            size: "auto".into(),
            rate: OrAuto::Auto,
            format: CameraFormat::Auto,
            reconnect: Reconnect::Auto,
            silence_s: OrAuto::Auto,
            wait_s: OrAuto::Auto,
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

    /// The source that is named here, if any.
    pub fn spec(&self) -> Option<SourceSpec> {
        let [left, right, side_by_side, top_bottom] =
            [&self.left, &self.right, &self.side_by_side, &self.top_bottom]
                .map(|text| Some(text).filter(|text| !text.is_empty()));
        SourceSpec::choose([left, right], side_by_side, top_bottom)
    }

    /// Width and height of each eye of cameras in pixels; `None` where it is chosen.
    pub fn size(&self) -> Option<(u32, u32)> {
        let (width, height) = self.size.split_once('x')?;
        let side = |text: &str| text.parse().ok().filter(|side| (1..=16_384).contains(side));
        Some((side(width)?, side(height)?))
    }

    /// How long a live stream may be silent; `None` where the source chooses it.
    pub fn silence(&self) -> Option<Duration> {
        self.silence_s.value().map(Duration::from_secs_f64)
    }

    /// How long to wait for what is not there at the start: as long as it takes under a service
    /// manager (systemd sets NOTIFY_SOCKET), else not at all, where it is not said.
    pub fn wait(&self) -> Duration {
        let served = std::env::var_os("NOTIFY_SOCKET").is_some();
        let unsaid = if served { Duration::MAX } else { Duration::ZERO };
        self.wait_s.value().map_or(unsaid, Duration::from_secs_f64)
    }

    pub(super) fn check(&self) -> Result<(), Unfit> {
        self.check_kind()?;
        if let OrAuto::Value(ms) = self.tolerance_ms
            && !(0.0..=60_000.0).contains(&ms)
        {
            return Err(Unfit::new("tolerance_ms", "`auto` or milliseconds from 0 to 60000"));
        }
        if self.size != "auto" && self.size().is_none() {
            return Err(Unfit::new("size", "`auto` or a width and height such as `1280x720`"));
        }
        if let OrAuto::Value(rate) = self.rate
            && !(0.1..=1000.0).contains(&rate)
        {
            return Err(Unfit::new("rate", "`auto` or frames a second from 0.1 to 1000"));
        }
        if let OrAuto::Value(seconds) = self.silence_s
            && !(0.1..=3600.0).contains(&seconds)
        {
            return Err(Unfit::new("silence_s", "`auto` or seconds from 0.1 to 3600"));
        }
        if let OrAuto::Value(seconds) = self.wait_s
            && !(0.0..=1e9).contains(&seconds)
        {
            return Err(Unfit::new("wait_s", "`auto` or seconds from 0 to 1000000000"));
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
    fn sizes_and_rates_of_cameras() {
        let of = |size: &str| Source { size: size.into(), ..Source::default() };
        assert_eq!(of("1280x720").size(), Some((1280, 720)));
        assert_eq!(of("auto").size(), None);
        assert_eq!(of("auto").check(), Ok(()));
        for wrong in ["1280", "0x720", "1280x", "x", "axb", "1280x720x3", ""] {
            assert_eq!(of(wrong).check().unwrap_err().key, "size", "{wrong}");
        }
        for rate in [0.0, -1.0, f64::NAN] {
            let source = Source { rate: OrAuto::Value(rate), ..Source::default() };
            assert_eq!(source.check().unwrap_err().key, "rate");
        }
    }

    #[test]
    fn silence_is_a_time_within_reason() {
        let source = |seconds| Source { silence_s: OrAuto::Value(seconds), ..Source::default() };
        assert_eq!(source(0.5).silence(), Some(Duration::from_millis(500)));
        assert_eq!(source(0.5).check(), Ok(()));
        for seconds in [0.0, -1.0, 1e9, f64::NAN] {
            assert_eq!(source(seconds).check().unwrap_err().key, "silence_s");
        }
    }

    #[test]
    fn no_negative_or_unending_tolerance() {
        for ms in [-1.0, f64::NAN, f64::INFINITY] {
            let source = Source { tolerance_ms: OrAuto::Value(ms), ..Source::default() };
            assert_eq!(source.check().unwrap_err().key, "tolerance_ms");
        }
    }
}
