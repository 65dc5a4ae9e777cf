//! Times that all streams go by.

use std::time::Duration;

use gstreamer as gst;
use gstreamer::prelude::*;

/// Longest wait for a picture before the stop switch is looked at again.
pub(super) const TICK: Duration = Duration::from_millis(20);

/// Frame period of a stream that neither states its rate nor has times to measure it by.
pub(super) const UNKNOWN_PERIOD: Duration = Duration::from_nanos(1_000_000_000 / 30);

/// The present, as the zero of the times of live streams that are opened together.
pub(super) fn now() -> gst::ClockTime {
    gst::SystemClock::obtain().time()
}

pub(super) fn period_of(rate: f64) -> Duration {
    Duration::from_secs_f64(1.0 / rate)
}
