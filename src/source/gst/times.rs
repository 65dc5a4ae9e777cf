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

pub(super) fn period_of(rate: f64) -> Duration {
    Duration::from_secs_f64(1.0 / rate)
}
