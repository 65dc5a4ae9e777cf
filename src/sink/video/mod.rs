//! Video files: the lossless recording of disparity or of grey pictures, and a preview for people.
//!
//! ```text
//! Recorder:  map ─▶ 16-bit numbers ─▶ appsrc ─▶ avenc_ffv1 ─▶ appsink ─▶ matroska.rs ─▶ OUT.mkv
//! GreyVideo: picture ─▶ appsrc ─▶ avenc_ffv1 ─▶ appsink ─▶ matroska.rs ─▶ OUT.mkv
//! Preview:   map ─▶ colours ─▶ appsrc ─▶ videoconvert ─▶ x264enc ─▶ mp4mux ─▶ fdsink (OUT.mp4)
//! Stream:    map ─▶ colours or numbers ─▶ appsrc ─▶ a fragment of the user's
//! ```

mod ebml;
mod feed;
mod grey;
mod lossless;
mod matroska;
mod output;
mod preview;
mod recorder;
mod stream;
mod tags;

use std::time::Duration;

use anyhow::{Context, Result, bail};
use gstreamer as gst;

pub use grey::{GreyVideo, GreyVideoOptions};
pub use preview::{Preview, PreviewOptions};
pub use recorder::{Recorder, RecorderOptions};
pub use stream::{FragmentError, Stream, StreamOptions, StreamPicture, check_fragment};
pub use tags::{RecordingTags, read_recording_tags};

/// GStreamer elements that write video or send it, each with the Debian and Ubuntu package that holds
/// it.
const PACKAGES: [(&str, &str); 33] = [
    ("appsrc", "gstreamer1.0-plugins-base"),
    ("appsink", "gstreamer1.0-plugins-base"),
    ("videoconvert", "gstreamer1.0-plugins-base"),
    ("videoscale", "gstreamer1.0-plugins-base"),
    ("videorate", "gstreamer1.0-plugins-base"),
    ("tcpserversink", "gstreamer1.0-plugins-base"),
    ("tcpclientsink", "gstreamer1.0-plugins-base"),
    ("theoraenc", "gstreamer1.0-plugins-base"),
    ("mp4mux", "gstreamer1.0-plugins-good"),
    ("matroskamux", "gstreamer1.0-plugins-good"),
    ("udpsink", "gstreamer1.0-plugins-good"),
    ("rtpbin", "gstreamer1.0-plugins-good"),
    ("rtph264pay", "gstreamer1.0-plugins-good"),
    ("rtph265pay", "gstreamer1.0-plugins-good"),
    ("rtpvrawpay", "gstreamer1.0-plugins-good"),
    ("rtpjpegpay", "gstreamer1.0-plugins-good"),
    ("jpegenc", "gstreamer1.0-plugins-good"),
    ("vp8enc", "gstreamer1.0-plugins-good"),
    ("vp9enc", "gstreamer1.0-plugins-good"),
    ("v4l2sink", "gstreamer1.0-plugins-good"),
    ("v4l2h264enc", "gstreamer1.0-plugins-good"),
    ("h264parse", "gstreamer1.0-plugins-bad"),
    ("mpegtsmux", "gstreamer1.0-plugins-bad"),
    ("srtsink", "gstreamer1.0-plugins-bad"),
    ("shmsink", "gstreamer1.0-plugins-bad"),
    ("rtmp2sink", "gstreamer1.0-plugins-bad"),
    ("openh264enc", "gstreamer1.0-plugins-bad"),
    ("x265enc", "gstreamer1.0-plugins-bad"),
    ("nvh264enc", "gstreamer1.0-plugins-bad"),
    ("x264enc", "gstreamer1.0-plugins-ugly"),
    ("avenc_ffv1", "gstreamer1.0-libav"),
    ("vaapih264enc", "gstreamer1.0-vaapi"),
    ("rtspclientsink", "gstreamer1.0-rtsp"),
];

/// The package that holds an element, where known.
fn package_of(element: &str) -> Option<&'static str> {
    PACKAGES.iter().find(|(name, _)| *name == element).map(|(_, package)| *package)
}

/// Makes sure that GStreamer runs and has the elements.
///
/// # Errors
/// Where an element is missing; the message names it, its package and what it is needed for.
fn require(elements: &[&str], purpose: &str) -> Result<()> {
    gst::init().context("GStreamer does not start")?;
    for &element in elements {
        if gst::ElementFactory::find(element).is_none() {
            let package = package_of(element).unwrap_or("its plug-in");
            bail!(
                "{purpose} needs the GStreamer element {element}, which is not installed: install \
                 {package} (`gst-inspect-1.0 {element}` shows whether it is there)"
            );
        }
    }
    Ok(())
}

/// Frames a second as the fraction that GStreamer wants; 0/1 says "variable".
fn fraction(rate: Option<f64>) -> gst::Fraction {
    let usable = rate.filter(|rate| rate.is_finite() && (0.001..=10_000.0).contains(rate));
    let Some(rate) = usable else { return gst::Fraction::new(0, 1) };
    // 30000/1001 and its kind, and whole rates, are met exactly; others to a thousandth.
    let ntsc = (rate * 1.001).round();
    if (rate - rate.round()).abs() > 1e-6 && (ntsc / 1.001 - rate).abs() < 1e-3 && ntsc >= 1.0 {
        return gst::Fraction::new(ntsc as i32 * 1000, 1001);
    }
    gst::Fraction::new((rate * 1000.0).round() as i32, 1000)
}

/// The time between two frames; `None` where the rate is variable.
fn frame_duration(rate: gst::Fraction) -> Option<Duration> {
    let (frames, seconds) = (rate.numer(), rate.denom());
    (frames > 0).then(|| Duration::from_secs_f64(f64::from(seconds) / f64::from(frames)))
}

/// Turns capture times into the times of a file: from 0, strictly rising.
#[derive(Debug)]
struct Clock {
    /// What is at 0 in the file; the first frame's time unless said otherwise.
    first: Option<Duration>,
    last: Option<Duration>,
    /// The step for a frame that is not later than the one before.
    step: Duration,
}

impl Clock {
    /// The smallest step between two frames of a file.
    const RESOLUTION: Duration = Duration::from_millis(1);

    /// A clock for frames that come at this rate, where known.
    fn new(rate: Option<f64>) -> Self {
        let step = rate.and_then(|rate| Duration::try_from_secs_f64(1.0 / rate).ok());
        let step = step.unwrap_or(Self::RESOLUTION).max(Self::RESOLUTION);
        Self { first: None, last: None, step }
    }

    /// The file's time for a frame captured at `timestamp`. A frame that is not later than the one
    /// before it (a source without usable times, a clock that jumped back) follows it one frame
    /// later.
    fn time(&mut self, timestamp: Duration) -> Duration {
        let time = timestamp.saturating_sub(*self.first.get_or_insert(timestamp));
        let time = match self.last {
            Some(last) if time <= last => last + self.step,
            _ => time,
        };
        self.last = Some(time);
        time
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_element_is_named_with_its_package() {
        require(&["appsrc", "avenc_ffv1"], "recording").unwrap();
        let error = require(&["no_such_encoder"], "recording").unwrap_err().to_string();
        assert!(error.contains("recording needs") && error.contains("no_such_encoder"), "{error}");
    }

    #[test]
    fn rates_become_fractions() {
        let parts = |rate| {
            let fraction = fraction(rate);
            (fraction.numer(), fraction.denom())
        };
        assert_eq!(parts(Some(20.0)), (20, 1));
        assert_eq!(parts(Some(30000.0 / 1001.0)), (30000, 1001));
        assert_eq!(parts(Some(12.5)), (25, 2));
        assert_eq!(parts(None), (0, 1));
        for odd in [0.0, -3.0, f64::NAN, f64::INFINITY, 1e9] {
            assert_eq!(parts(Some(odd)), (0, 1));
        }
    }

    #[test]
    fn times_start_at_zero_and_always_rise() {
        let ms = Duration::from_millis;
        let mut clock = Clock::new(Some(20.0));
        let times: Vec<Duration> =
            [1000, 1050, 1051, 1051, 900, 1200].map(|t| clock.time(ms(t))).to_vec();
        assert_eq!(times, [0, 50, 51, 101, 151, 200].map(ms));
        let mut clock = Clock::new(None);
        assert_eq!([7, 7, 7].map(|t| clock.time(ms(t))), [0, 1, 2].map(ms));
        let mut clock = Clock { first: Some(ms(5)), ..Clock::new(None) };
        assert_eq!([8, 3, 20].map(|t| clock.time(ms(t))), [3, 4, 15].map(ms));
    }
}
