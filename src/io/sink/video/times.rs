//! Frame rates and times of video files.

use std::time::Duration;

use anyhow::Result;
use gstreamer as gst;

use super::matroska::TICK_NS;

/// Converts frames per second to GStreamer's fraction; 0/1 means "variable".
pub(super) fn fraction(rate: Option<f64>) -> gst::Fraction {
    let usable = rate.filter(|rate| rate.is_finite() && (0.001..=10_000.0).contains(rate));
    let Some(rate) = usable else { return gst::Fraction::new(0, 1) };
    // Whole rates and those like 30000/1001 are exact; others are rounded to a thousandth.
    let ntsc = (rate * 1.001).round();
    if (rate - rate.round()).abs() > 1e-6 && (ntsc / 1.001 - rate).abs() < 1e-3 && ntsc >= 1.0 {
        return gst::Fraction::new(ntsc as i32 * 1000, 1001);
    }
    gst::Fraction::new((rate * 1000.0).round() as i32, 1000)
}

/// Begins the caps of raw images.
pub(super) fn raw_caps(
    format: &str,
    (width, height): (usize, usize),
    rate: gst::Fraction,
) -> Result<gst::caps::Builder<gst::caps::NoFeature>> {
    Ok(gst::Caps::builder("video/x-raw")
        .field("format", format)
        .field("width", i32::try_from(width)?)
        .field("height", i32::try_from(height)?)
        .field("framerate", rate))
}

/// Returns the time between two frames; `None` for a variable rate.
pub(super) fn frame_duration(rate: gst::Fraction) -> Option<Duration> {
    let (frames, seconds) = (rate.numer(), rate.denom());
    (frames > 0).then(|| Duration::from_secs_f64(f64::from(seconds) / f64::from(frames)))
}

pub(super) fn whole_ticks(time: Duration) -> Duration {
    let nanoseconds = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
    Duration::from_nanos(nanoseconds.saturating_add(TICK_NS / 2) / TICK_NS * TICK_NS)
}

/// Converts capture times to the times of a file, which start at 0 and rise strictly.
#[derive(Debug)]
pub(super) struct Clock {
    /// Capture time of the file's time 0; by default the first frame's.
    pub(super) first: Option<Duration>,
    last: Option<Duration>,
    /// Step for a frame that is not later than its predecessor.
    step: Duration,
}

impl Clock {
    /// The smallest step between two frames of a file.
    const RESOLUTION: Duration = Duration::from_millis(1);

    pub(super) fn new(rate: Option<f64>) -> Self {
        let step = rate.and_then(|rate| Duration::try_from_secs_f64(1.0 / rate).ok());
        let step = step.unwrap_or(Self::RESOLUTION).max(Self::RESOLUTION);
        Self { first: None, last: None, step }
    }

    /// Returns the file's time of a frame captured at `timestamp`. A frame that is not later than its
    /// predecessor (a source without usable times, a clock that jumped back) follows it by one frame period.
    pub(super) fn time(&mut self, timestamp: Duration) -> Duration {
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
