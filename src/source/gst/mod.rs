//! Recorded and live streams through GStreamer: files, numbered pictures, URIs and free pipeline
//! fragments, one for each eye or one that holds both views.
//!
//! Each stream has a pipeline of its own, so that trouble in one eye never holds up the other.

mod camera;
mod camera_pools;
mod frame_packed;
mod input;
mod inspect;
mod jumps;
mod length;
mod libav;
mod limits;
mod live_times;
mod message;
mod offset;
mod options;
mod plane;
mod reach;
mod reconnect;
mod stream;
mod tap;
mod times;
mod two_streams;
mod verdict;
mod wiring;

use anyhow::{Context, bail, ensure};
use gstreamer as gst;

use self::plane::Layout;
use super::Source;
use super::spec::SourceSpec;
pub use options::{GstOptions, Keep, Offset, Reconnect};

/// Opens streams and waits for the first picture of each.
///
/// # Errors
/// Where a stream cannot be opened, holds no video, or does not fit the other; they name the
/// stream and the cure. `Unavailable` where trying again later may help.
pub fn open(spec: &SourceSpec, options: &GstOptions) -> anyhow::Result<Box<dyn Source>> {
    initialise()?;
    ensure!(
        options.picture_rate.is_finite() && options.picture_rate > 0.0,
        "the picture rate must be above 0, not {}",
        options.picture_rate
    );
    match spec {
        SourceSpec::Two { left, right } if options.swap => two_streams::open(right, left, options),
        SourceSpec::Two { left, right } => two_streams::open(left, right, options),
        SourceSpec::SideBySide(stream) => frame_packed::open(stream, Layout::SideBySide, options),
        SourceSpec::TopBottom(stream) => frame_packed::open(stream, Layout::TopBottom, options),
        _ => bail!("the source is no stream"),
    }
}

/// Makes GStreamer ready; more than one call does no harm.
///
/// # Errors
/// Where GStreamer's core cannot be set up.
pub fn initialise() -> anyhow::Result<()> {
    gst::init().context(
        "GStreamer does not start; is it installed? (libgstreamer1.0-0, gstreamer1.0-plugins-base)",
    )
}
