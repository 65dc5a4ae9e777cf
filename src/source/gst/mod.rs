//! Recorded and live streams through GStreamer: files, numbered pictures, URIs and free pipeline
//! fragments, one for each eye or one that holds both views.
//!
//! Each stream has a pipeline of its own, so that trouble in one eye never holds up the other.

mod camera;
mod camera_pools;
mod halved;
mod input;
mod inspect;
mod length;
mod libav;
mod limits;
mod message;
mod plane;
mod reach;
mod reconnect;
mod stream;
mod tap;
mod two_streams;
mod wiring;

use std::time::Duration;

use anyhow::{Context, bail, ensure};
use gstreamer as gst;
use gstreamer::prelude::*;

use self::input::Input;
use self::plane::Layout;
use self::reconnect::Lasting;
use self::stream::CutShort;
use super::spec::SourceSpec;
use super::{Source, pictures, v4l2};
use crate::control::Switch;
use crate::frame::Eye;
use crate::pair::PairBy;
use crate::pool::Pool;

/// How long to wait for a picture before looking at the stop switch again.
const TICK: Duration = Duration::from_millis(20);

/// Frame period of a stream that neither states its rate nor has times to measure it by.
const UNKNOWN_PERIOD: Duration = Duration::from_nanos(1_000_000_000 / 30);

/// Which streams are opened again where they end, fail or fall silent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reconnect {
    /// Live ones.
    #[default]
    Auto,
    /// Every URI and fragment; those that do not say that they are live are taken as live, with
    /// the times of arrival.
    On,
    /// None: the source ends with the first.
    Off,
}

/// How to open and pair streams.
#[derive(Clone, Debug)]
pub struct GstOptions {
    /// What makes two pictures a pair.
    pub pair_by: PairBy,
    /// Largest difference of a pair's times; `None`: just under half the shorter frame period.
    pub tolerance: Option<Duration>,
    /// Whether the eyes are exchanged: what is called left is the right eye's.
    pub swap: bool,
    /// What is wanted of cameras; the size is that of each eye.
    pub cameras: v4l2::Wish,
    /// Exposure and the like of cameras.
    pub controls: v4l2::Controls,
    /// The eye whose camera's exposure, gain and white balance both have; `None`: each its own.
    pub exposure_from: Option<Eye>,
    /// Pictures a second of picture patterns.
    pub picture_rate: f64,
    /// How long a stream may take to deliver its first picture.
    pub patience: Duration,
    /// Which streams are opened again.
    pub reconnect: Reconnect,
    /// How long a live stream may be silent until it counts as lost; `None`: 2 s, or 10 frames where
    /// they are longer.
    pub silence: Option<Duration>,
    /// Where pictures are kept.
    pub pool: Pool<u8>,
    /// Ends the wait for the first picture.
    pub stop: Switch,
}

impl Default for GstOptions {
    fn default() -> Self {
        Self {
            pair_by: PairBy::Auto,
            tolerance: None,
            swap: false,
            cameras: v4l2::Wish::default(),
            controls: v4l2::Controls::default(),
            exposure_from: None,
            picture_rate: 30.0,
            patience: Duration::from_secs(15),
            reconnect: Reconnect::Auto,
            silence: None,
            pool: Pool::new(),
            stop: Switch::default(),
        }
    }
}

/// Opens streams and waits for the first picture of each.
///
/// # Errors
/// Where a stream cannot be opened, holds no video, or does not fit the other; they name the
/// stream and the cure. [`Unavailable`](super::Unavailable) where trying again later may help.
pub fn open(spec: &SourceSpec, options: &GstOptions) -> anyhow::Result<Box<dyn Source>> {
    initialise()?;
    ensure!(
        options.picture_rate.is_finite() && options.picture_rate > 0.0,
        "the picture rate must be above 0, not {}",
        options.picture_rate
    );
    match spec {
        SourceSpec::Demo => bail!("the synthetic scene is no stream"),
        SourceSpec::Two { left, right } if options.swap => two_streams::open(right, left, options),
        SourceSpec::Two { left, right } => two_streams::open(left, right, options),
        SourceSpec::SideBySide(stream) => halved::open(stream, Layout::SideBySide, options),
        SourceSpec::TopBottom(stream) => halved::open(stream, Layout::TopBottom, options),
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

/// The present, as the zero of the times of live streams that are opened together.
fn now() -> gst::ClockTime {
    gst::SystemClock::obtain().time()
}

fn own_timing(input: &Input, rate: f64) -> Option<pictures::Timing> {
    match input {
        Input::Pictures(pictures) => Some(pictures::timing(&[pictures], rate)),
        _ => None,
    }
}

fn period_of(rate: f64) -> Duration {
    Duration::from_secs_f64(1.0 / rate)
}

/// Says, as an error, what ended any of `streams` too early, and warns where one may have been cut.
fn verdict(streams: &[Lasting]) -> anyhow::Result<()> {
    let mut failures: Vec<String> = streams.iter().filter_map(Lasting::failure).collect();
    failures.dedup();
    if !failures.is_empty() {
        bail!(failures.join("; "));
    }
    for stream in streams {
        let damage = stream.damage();
        if !damage.is_none() {
            tracing::warn!("{}: {damage}", stream.name());
        }
    }
    for stream in streams {
        let Some(CutShort { count, expected, certain, bytes }) = stream.cut_short() else {
            continue;
        };
        let name = stream.name();
        if let Some((length, said)) = bytes {
            let read = match expected {
                Some(expected) => format!("only {count} of about {expected}"),
                None => count.to_string(),
            };
            bail!(
                "{name}: {read} pictures could be read; the file is truncated: {length} of {said} \
                 bytes are there"
            );
        }
        let expected = expected.unwrap_or(count);
        if certain {
            bail!(
                "{name}: only {count} of about {expected} pictures could be read; the file is truncated or \
                 damaged"
            );
        }
        tracing::warn!(
            "{name}: only {count} of about {expected} pictures came; that is well where its frame rate \
             varies or its sound is longer, else it is damaged"
        );
    }
    Ok(())
}
