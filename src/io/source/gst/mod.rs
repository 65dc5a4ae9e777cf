//! Recorded and live streams through GStreamer: files, numbered images, URIs and custom pipeline
//! fragments, one for each view or one that holds both views.
//!
//! Each stream has a pipeline of its own, so that trouble in one view never delays the other.

mod appsink;
mod checks;
mod frame_packed;
pub(super) mod inputs;
mod live;
mod message;
mod options;
mod plane;
mod stream;
mod times;
mod two_streams;
mod units;

use std::time::Duration;

use anyhow::{Context, bail, ensure};

use super::Source;
use super::spec::{SourceSpec, StreamSpec};
use crate::gst::start;
pub use inputs::found::{FoundCamera, find_cameras};
pub use options::{GstOptions, Keep, Live, Offset, Reconnect};
pub use plane::{ViewLayout, Views};
use stereod_core::reading::require_spare_files;
use stereod_core::thread;
pub use units::access_units::{Decoded, Undecodable, UnitDecoder};

/// Timeout for closing streams that are being opened when the run ends.
const LEAVING: Duration = Duration::from_secs(5);

/// Opens streams and waits for the first frame of each.
pub fn open(spec: &SourceSpec, options: &GstOptions) -> anyhow::Result<Box<dyn Source>> {
    initialise()?;
    ensure!(
        options.picture_rate.is_finite() && options.picture_rate > 0.0,
        "the picture rate must be above 0, not {}",
        options.picture_rate
    );
    // Opening may block in a driver or an element, so it has a thread of its own and a signal still
    // ends the run.
    let (stop, mut stopped) = (options.stop.clone(), None);
    let (spec, options) = (spec.clone(), options.clone());
    let is_enough =
        |waited: Duration| stop.is_set() && waited > *stopped.get_or_insert(waited) + LEAVING;
    let opened = thread::bounded("opening", move || open_streams(&spec, &options), is_enough);
    opened.context("cannot start a thread")?.context("stopped while the source was being opened")?
}

/// Warns of streams about which `live` does not decide: a camera is always live, a file never.
fn tell_of_fixed(spec: &SourceSpec, live: Live) {
    let is_fixed = |stream: &&StreamSpec| match stream {
        StreamSpec::Uri(_) | StreamSpec::Fragment(_) => false,
        StreamSpec::Camera(_) => live == Live::Off,
        StreamSpec::File(_) | StreamSpec::Pictures(_) => live == Live::On,
    };
    let fixed: Vec<_> = spec.streams().filter(is_fixed).map(StreamSpec::name).collect();
    if !fixed.is_empty() {
        tracing::warn!(
            "`--live` is for URIs and GStreamer sources and changes nothing of {}",
            fixed.join(" and ")
        );
    }
}

fn open_streams(spec: &SourceSpec, options: &GstOptions) -> anyhow::Result<Box<dyn Source>> {
    tell_of_fixed(spec, options.live);
    match spec {
        SourceSpec::Two { left, right } if options.swap => two_streams::open(right, left, options),
        SourceSpec::Two { left, right } => two_streams::open(left, right, options),
        SourceSpec::SideBySide(stream) => {
            let half = options.half.then_some(ViewLayout::HalfSideBySide);
            frame_packed::open(stream, half.unwrap_or(ViewLayout::SideBySide), options)
        }
        SourceSpec::TopBottom(stream) => {
            let half = options.half.then_some(ViewLayout::HalfTopBottom);
            frame_packed::open(stream, half.unwrap_or(ViewLayout::TopBottom), options)
        }
        _ => bail!("the source is no stream"),
    }
}

/// Initialises GStreamer, and checks that a pipeline can be started.
pub fn initialise() -> anyhow::Result<()> {
    require_spare_files()?;
    thread::require_spare(thread::OF_SOURCE)?;
    start()?;
    inputs::multipart::register();
    Ok(())
}
