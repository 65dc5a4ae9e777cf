//! Clock and periods that all streams share.

use std::time::Duration;

use gstreamer as gst;
use gstreamer::prelude::*;

/// Longest wait for a frame before the stop switch is checked again.
pub(super) const TICK: Duration = Duration::from_millis(20);

/// Frame period of a stream with neither a stated rate nor times.
pub(super) const UNKNOWN_PERIOD: Duration = Duration::from_nanos(1_000_000_000 / 30);

/// Returns the present, the common zero of live streams that are opened together.
pub(super) fn now() -> gst::ClockTime {
    gst::SystemClock::obtain().time()
}

/// Number of frames read before a seek position, so that pairing there equals pairing of the whole recording,
/// and no frame is missing that a decoder completes late.
const LEAD: u32 = 8;

/// Returns the start of reading for a pair at `time`.
pub(super) fn lead_to(time: Duration, rate: Option<f64>, tolerance: Option<Duration>) -> Duration {
    let period = rate.map_or(UNKNOWN_PERIOD, period_of);
    time.saturating_sub(LEAD * period).saturating_sub(tolerance.unwrap_or_default())
}

/// Returns the number of the pair at `time`, for a source with the first pair at `begin`.
pub(super) fn number_at(time: Duration, begin: Duration, rate: Option<f64>) -> u64 {
    let rate = rate.unwrap_or_else(|| UNKNOWN_PERIOD.as_secs_f64().recip());
    (time.saturating_sub(begin).as_secs_f64() * rate).round() as u64
}

pub(super) fn period_of(rate: f64) -> Duration {
    Duration::from_secs_f64(1.0 / rate)
}
