//! `[source]`: streams and their pairing.

use std::time::Duration;

use serde::Deserialize;

use crate::settings::Camera;
use stereod_core::picture::orientation::Orient;
use stereod_core::picture::tone::Tone;
use stereod_core::settings::row::Plain::{Real, Switch};
use stereod_core::settings::row::{
    AUTO, CAMERAS, Conflict, InBatch, Kind, PACKING, PAIRING, PART, PICTURES, Row, any,
};
use stereod_io::control::Switch as Stop;
use stereod_io::source::excerpt::{Frames, Part};
use stereod_io::source::gst::{GstOptions, Keep, Live, Offset, Reconnect};
use stereod_io::source::pairing::PairBy;
use stereod_io::source::spec::SourceSpec;
use stereod_io::source::v4l2::{CameraRequest, Format};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Pace {
    /// The recorded pace in a window without outputs, else as fast as possible.
    Auto,
    Realtime,
    Fast,
}

/// The source, and the pairing of its streams. A source on the command line replaces the first
/// seven.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Source {
    pub left: String,
    pub right: String,
    pub side_by_side: String,
    pub top_bottom: String,
    pub recording: String,
    pub left_topic: String,
    pub right_topic: String,
    pub pair_by: PairBy,
    pub tolerance_ms: Option<f64>,
    pub offset_ms: Option<f64>,
    pub pace: Pace,
    pub start_s: f64,
    pub duration_s: Option<f64>,
    pub picture_rate: f64,
    pub swap: bool,
    pub half: bool,
    pub tone: Tone,
    pub orient: Orient,
    pub size: String,
    pub rate: Option<f64>,
    pub format: Option<Format>,
    pub live: Live,
    pub reconnect: Reconnect,
    pub silence_s: Option<f64>,
    pub wait_s: Option<f64>,
}

pub(in crate::settings) const ROWS: &[Row] = &[
    Row::path("left")
        .help("The left view: a video, images, a camera, a URI or a GStreamer source.")
        .more(
            "Images have numbers (left/%06d.png) or a pattern (left/*.png); a GStreamer source is an \
             element (libcamerasrc) or has a \"!\".",
        ),
    Row::path("right").help("The right view."),
    Row::path("side_by_side").help("Instead of both: one stream with the left view in its left half."),
    Row::path("top_bottom").help("Instead of both: one stream with the left view in its upper half."),
    Row::path("recording")
        .help(
            "Instead of both: a recording, which is MCAP, ZED's .svo2, a ROS 1 bag, rosbag2 (.db3) or \
             the folder of a data set.",
        )
        .more("\"ros2:\" stands for the topics of a ROS 2 graph."),
    Row::text("left_topic", "", any).in_batch(InBatch::Reset)
        .help("Topic of the left view in the recording, such as /left/image_rect.")
        .more("\"\": that of the only pair that fits."),
    Row::text("right_topic", "", any).in_batch(InBatch::Reset)
        .help("Topic of the right view in the recording, such as /right/image_rect.")
        .more("\"\": that of the only pair that fits."),
    Row::names("pair_by", "auto", &["auto", "time", "index"])
        .help("How left and right frames are paired.")
        .about(&["By time if both streams have capture times", "By capture time", "By number"]),
    Row::real("tolerance_ms", AUTO, [0.0, 60_000.0])
        .or(&["auto"])
        .unit("milliseconds")
        .flag(PAIRING, "--tolerance", "MS")
        .help(
            "Largest time difference between the two frames of a pair, in milliseconds; `auto`: the \
             nearest frame is the partner.",
        )
        .more("The nearest frame is within half a frame period."),
    Row::real("offset_ms", Real(0.0), [-1e9, 1e9])
        .or(&["auto"])
        .unit("milliseconds")
        .flag(PAIRING, "--offset", "MS")
        .help(
            "Milliseconds to add to the right camera's times before frames are paired, or `auto`: \
             estimated from the images of two recordings.",
        )
        .more(
            "For recordings that were started one after the other, and for cameras with a known delay.",
        ),
    Row::names("pace", "auto", &["auto", "realtime", "fast"]).in_batch(InBatch::Free)
        .help("Speed at which recordings are played; live sources set their own pace.")
        .about(&[
            "As recorded in a window without outputs, else as fast as possible",
            "As recorded",
            "As fast as matching allows",
        ]),
    Row::real("start_s", Real(0.0), [0.0, 1e9])
        .unit("seconds")
        .in_batch(InBatch::Free)
        .flag(PART, "--start", "SECONDS")
        .help("Where to begin in a recording, in seconds after the first image of the left view."),
    Row::real("duration_s", AUTO, [0.001, 1e9])
        .or(&["auto"])
        .unit("seconds")
        .in_batch(InBatch::Free)
        .flag(PART, "--duration", "SECONDS")
        .help("How many seconds of a recording to play, or `auto`: to its end."),
    Row::real("picture_rate", Real(30.0), [0.01, 1000.0])
        .help("Frame rate of numbered images (left/%06d.png), in images per second."),
    Row::new("swap", Switch(false), Kind::Switch)
        .flag(CAMERAS, "--swap", "")
        .help("Exchange the cameras: the left input becomes the right view."),
    Row::new("half", Switch(false), Kind::Switch)
        .flag(PACKING, "--half", "")
        .help(
            "The views are squeezed to half their width (in a top-bottom frame: height); they are stretched again.",
        )
        .more("So their pixels are square, and a calibration of the cameras fits."),
    Row::names("tone", "local", &["local", "upper-bits"])
        .flag(PICTURES, "--tone", "TONE")
        .help("How samples of 9 to 16 bits are reduced to the 8 bits that are matched.")
        .more("Samples of 8 bits stay as they are.")
        .about(&[
            "With a local gain, which preserves faint texture",
            "The highest 8 bits, as if the camera had no more",
        ]),
    Row::names("orient", "ignore", &["ignore", "auto"])
        .flag(PICTURES, "--orient", "USE")
        .help("Whether to apply orientation tags of images and videos (EXIF).")
        .about(&[
            "Leave them as the sensors delivered them, which is what a calibration refers to",
            "Turn them as the tags say",
        ]),
    Row::text("size", "auto", |text| match camera_size(text) {
        None if text != "auto" => Err("`auto` or a width and height such as `1280x720`".into()),
        _ => Ok(()),
    })
    .in_batch(InBatch::Free)
    .flag(CAMERAS, "--size", "WxH")
    .help("Width and height of each camera's frames in pixels, such as 1280x720.")
    .more(
        "`auto`: the largest size up to 1280x720 that both offer at 25 frames per second or more.",
    ),
    Row::real("rate", AUTO, [0.1, 1000.0])
        .or(&["auto"])
        .unit("frames a second")
        .in_batch(InBatch::Free)
        .flag(CAMERAS, "--rate", "N")
        .help("Frames a second of cameras, or `auto`: about 30."),
    Row {
        none: Some("auto"),
        ..Row::names(
            "format",
            "auto",
            &["auto", "grey", "nv12", "yuyv", "uyvy", "y16", "y8i", "y12i", "mjpg", "h264"],
        )
        .in_batch(InBatch::Free)
        .flag(CAMERAS, "--format", "FORMAT")
        .help("Pixel format of cameras.")
        .about(&[
            "Uncompressed if the cameras and their USB bus can deliver it, else compressed",
            "8-bit intensity",
            "Luma plane and chroma",
            "Luma and chroma in turn",
            "Chroma and luma in turn",
            "16-bit intensity",
            "8-bit intensity of two views, their pixels in turn",
            "10-bit intensity of two views, their pixels in turn",
            "JPEG images",
            "H.264 video",
        ])
    },
    Row::names("live", "auto", &["auto", "on", "off"]).in_batch(InBatch::Free)
        .flag(CAMERAS, "--live", "WHEN")
        .help("Whether URIs and GStreamer sources are live.")
        .more(
            "The newest pair of a live source is matched, and older ones are dropped and counted; every \
             pair of another one waits. Cameras always are live, files never.",
        )
        .about(&[
            "Those that say so, and streams over a network without a known length",
            "All",
            "None: every pair is matched, however late",
        ]),
    Row::names("reconnect", "auto", &["auto", "off"]).in_batch(InBatch::Free)
        .help("Streams that are reopened, until they are back, after they end, fail or fall silent.")
        .about(&["Live ones", "None: the run ends"]),
    Row::real("silence_s", AUTO, [0.1, 3600.0]).in_batch(InBatch::Free)
        .or(&["auto"])
        .unit("seconds")
        .help("Silence after which a live stream counts as lost, in seconds.")
        .more("`auto`: 2, or the time of 10 frames if that is longer."),
    Row::real("wait_s", AUTO, [0.0, 1e9]).in_batch(InBatch::Free)
        .or(&["auto"])
        .unit("seconds")
        .help("How long to wait for cameras and servers that are missing at the start, in seconds.")
        .more("`auto`: as long as it takes when run as a service, else not at all."),
];

/// Parses the width and height of each camera's frames in pixels; `None` if the program chooses.
fn camera_size(text: &str) -> Option<(u32, u32)> {
    let (width, height) = text.split_once('x')?;
    let side = |text: &str| text.parse().ok().filter(|side| (1..=16_384).contains(side));
    Some((side(width)?, side(height)?))
}

impl Source {
    /// Checks that there is one kind of source. A missing right or left view is found by
    /// [`Source::complete`], because keys are checked one by one here.
    pub(in crate::settings) fn check(&self) -> Result<(), Conflict> {
        let [left, right, side_by_side, top_bottom, recording, left_topic, right_topic] = [
            &self.left,
            &self.right,
            &self.side_by_side,
            &self.top_bottom,
            &self.recording,
            &self.left_topic,
            &self.right_topic,
        ]
        .map(|text| !text.is_empty());
        if side_by_side && (left || right) {
            return Err(Conflict::new("side_by_side", "nothing (\"\") beside `left` and `right`"));
        }
        if top_bottom && (left || right || side_by_side) {
            return Err(Conflict::new(
                "top_bottom",
                "nothing (\"\") beside `left`, `right` and `side_by_side`",
            ));
        }
        if recording && (left || right || side_by_side || top_bottom) {
            return Err(Conflict::new(
                "recording",
                "nothing (\"\") beside `left`, `right`, `side_by_side` and `top_bottom`",
            ));
        }
        if (left_topic || right_topic) && !recording {
            let key = if left_topic { "left_topic" } else { "right_topic" };
            return Err(Conflict::new(key, "nothing (\"\") without `recording`"));
        }
        if self.pair_by == PairBy::Index && self.offset_ms != Some(0.0) {
            return Err(Conflict::new("offset_ms", "0 where `pair_by` is \"index\""));
        }
        Ok(())
    }

    pub fn complete(&self) -> Result<(), String> {
        let lacks = |has: &str, lacks: &str| {
            Err(format!("[source] has `{has}` but no `{lacks}`: name both views"))
        };
        match (self.left.is_empty(), self.right.is_empty()) {
            (false, true) => lacks("left", "right"),
            (true, false) => lacks("right", "left"),
            _ => Ok(()),
        }
    }

    pub fn spec(&self) -> Option<SourceSpec> {
        let [left, right, side_by_side, top_bottom] =
            [&self.left, &self.right, &self.side_by_side, &self.top_bottom]
                .map(|text| Some(text).filter(|text| !text.is_empty()));
        let topic = |name: &String| Some(name.clone()).filter(|name| !name.is_empty());
        let topics = || [topic(&self.left_topic), topic(&self.right_topic)];
        SourceSpec::choose([left, right], side_by_side, top_bottom).or_else(|| {
            (!self.recording.is_empty()).then(|| SourceSpec::recording(&self.recording, topics()))
        })
    }

    /// Returns the time to wait for missing devices at the start. By default it is unlimited under
    /// a service manager (systemd sets NOTIFY_SOCKET), else zero.
    pub fn wait(&self) -> Duration {
        let served = std::env::var_os("NOTIFY_SOCKET").is_some();
        let unsaid = if served { Duration::MAX } else { Duration::ZERO };
        self.wait_s.map_or(unsaid, Duration::from_secs_f64)
    }

    /// Returns the begin and end of the part of a recording by its times, as far as they are given.
    pub fn marks(&self) -> [Option<Duration>; 2] {
        let Part { start, duration, .. } = self.part();
        let begin = (!start.is_zero()).then_some(start);
        [begin, duration.map(|duration| start.saturating_add(duration))]
    }

    fn part(&self) -> Part {
        Part {
            start: Duration::from_secs_f64(self.start_s),
            duration: self.duration_s.map(Duration::from_secs_f64),
            frames: Frames::default(),
        }
    }

    pub fn stream_options(&self, camera: &Camera, stop: &Stop, keep: &Keep) -> GstOptions {
        let Source {
            pair_by,
            picture_rate,
            swap,
            half,
            tone,
            orient,
            rate,
            format,
            live,
            reconnect,
            ..
        } = *self;
        GstOptions {
            pair_by,
            tolerance: self.tolerance_ms.map(|ms| Duration::from_secs_f64(ms / 1000.0)),
            offset: self.offset_ms.map_or(Offset::Auto, |ms| Offset::Ns((ms * 1e6).round() as i64)),
            picture_rate,
            swap,
            half,
            cameras: CameraRequest { size: camera_size(&self.size), rate, format },
            controls: camera.controls,
            exposure_from: camera.exposure_from,
            live,
            reconnect,
            silence: self.silence_s.map(Duration::from_secs_f64),
            tone,
            orient,
            part: self.part(),
            stop: stop.clone(),
            keep: keep.clone(),
            ..GstOptions::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::Settings;
    use crate::settings::tests::{refused, settings};

    fn options(assignments: &[&str]) -> GstOptions {
        let settings = settings(assignments);
        settings.source.stream_options(&settings.camera, &Stop::default(), &Keep::default())
    }

    #[test]
    fn tolerance_is_a_time() {
        let options = options(&["source.tolerance_ms=2.5"]);
        assert_eq!(options.tolerance, Some(Duration::from_micros(2500)));
        assert_eq!(self::options(&[]).tolerance, None);
    }

    #[test]
    fn an_offset_is_a_signed_time_or_found() {
        assert_eq!(options(&[]).offset, Offset::Ns(0));
        assert_eq!(options(&["source.offset_ms=-66.5"]).offset, Offset::Ns(-66_500_000));
        assert_eq!(options(&["source.offset_ms=auto"]).offset, Offset::Auto);
        for wrong in [f64::NAN, 2e9] {
            assert!(refused("source", "offset_ms", wrong));
        }
        let by_number = Source { pair_by: PairBy::Index, ..Settings::default().source };
        assert!(by_number.check().is_ok());
        let both = Source { offset_ms: Some(33.0), ..by_number };
        assert_eq!(both.check().unwrap_err().key, "offset_ms");
    }

    #[test]
    fn a_source_is_one_kind_and_has_both_eyes() {
        let source = |left: &str, right: &str, both: &str, stacked: &str| Source {
            left: left.into(),
            right: right.into(),
            side_by_side: both.into(),
            top_bottom: stacked.into(),
            ..Settings::default().source
        };
        for good in [source("", "", "", ""), source("a", "b", "", ""), source("", "", "c", "")] {
            assert!(good.check().is_ok() && good.complete().is_ok());
        }
        assert_eq!(source("a", "b", "c", "").check().unwrap_err().key, "side_by_side");
        assert_eq!(source("", "", "c", "d").check().unwrap_err().key, "top_bottom");
        let recording = |source: Source| Source { recording: "r".into(), ..source };
        let alone = recording(source("", "", "", ""));
        let topic = Source { right_topic: "/r".into(), ..alone.clone() };
        let topics = [None, Some("/r".to_owned())];
        assert!(topic.check().is_ok() && topic.spec() == Some(SourceSpec::recording("r", topics)));
        assert_eq!(recording(source("", "", "c", "")).check().unwrap_err().key, "recording");
        let no_recording = Source { recording: String::new(), ..topic };
        assert_eq!(no_recording.check().unwrap_err().key, "right_topic");
        assert!(source("a", "", "", "").complete().unwrap_err().contains("no `right`"));
        assert!(source("", "b", "", "").complete().unwrap_err().contains("no `left`"));
    }

    #[test]
    fn sizes_and_rates_of_cameras() {
        assert_eq!(options(&["source.size=1280x720"]).cameras.size, Some((1280, 720)));
        assert_eq!(options(&[]).cameras.size, None);
        assert!(!refused("source", "size", "auto"));
        for wrong in ["1280", "0x720", "1280x", "x", "axb", "1280x720x3", ""] {
            assert!(refused("source", "size", wrong), "{wrong}");
        }
        for rate in [0.0, -1.0, f64::NAN] {
            assert!(refused("source", "rate", rate));
        }
    }

    #[test]
    fn silence_is_a_time_within_reason() {
        let options = options(&["source.silence_s=0.5"]);
        assert_eq!(options.silence, Some(Duration::from_millis(500)));
        for seconds in [0.0, -1.0, 1e9, f64::NAN] {
            assert!(refused("source", "silence_s", seconds));
        }
    }

    #[test]
    fn no_negative_or_unending_tolerance() {
        for ms in [-1.0, f64::NAN, f64::INFINITY] {
            assert!(refused("source", "tolerance_ms", ms));
        }
    }
}
