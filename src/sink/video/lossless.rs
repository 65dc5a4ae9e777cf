//! Lossless grey video: FFV1 version 3 (RFC 9043) in Matroska, every frame decodable alone.
//!
//! A side below 4 pixels is extended to 4, right and below, by zeros; the file says how much of the
//! picture to crop. Tags stand at the beginning, and no frame waits in this process once it is
//! encoded: a file whose program was killed holds all but the last few frames.

use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use gstreamer as gst;
use gstreamer::prelude::*;
use gstreamer_app::{AppSink, AppSinkCallbacks};

use super::elements::require;
use super::feed::{Feed, Flow, Progress};
use super::matroska::Track;
use super::output::{Header, Output, Place, Tags};
use super::times::{Clock, fraction, frame_duration};
use crate::clock::CaptureClock;
use crate::pool::Pool;
use crate::sink::files;
use crate::thread::locked;

/// Shorter sides are extended to this: FFmpeg (5.1) decodes version 3 of FFV1 to zeros where all
/// slices are one pixel wide or high.
const SHORTEST_SIDE: usize = 4;

/// A grey value.
pub trait Sample: bytemuck::Pod + Default + Send {
    /// GStreamer's name of pictures of it.
    const FORMAT: &'static str;
    /// The value with its bytes in the order of the format.
    fn stored(self) -> Self;
}

impl Sample for u8 {
    const FORMAT: &'static str = "GRAY8";
    fn stored(self) -> Self {
        self
    }
}

impl Sample for u16 {
    const FORMAT: &'static str = "GRAY16_LE";
    fn stored(self) -> Self {
        self.to_le()
    }
}

/// Facts that stand in a file before its first frame.
#[derive(Clone, Copy, Debug)]
pub(super) struct Description {
    /// Width and height of the pictures in pixels.
    pub(super) size: (usize, usize),
    /// Frames a second, where known.
    pub(super) rate: Option<f64>,
    /// Content of the track, for people.
    pub(super) name: &'static str,
}

/// A video file being written, or one segment after the other.
pub(super) struct Lossless<T> {
    description: Description,
    clock: Clock,
    duration: Option<Duration>,
    pool: Pool<T>,
    feed: Feed,
    output: Arc<Mutex<Output>>,
}

impl<T: Sample> Lossless<T> {
    /// Creates the file (an earlier one is replaced) and starts the encoder; of segments, the first
    /// one is created with the first picture. `clock` is that of the capture times, if they have one.
    ///
    /// # Errors
    /// Where the name does not end in `.mkv`, the file cannot be created, or GStreamer lacks the
    /// encoder; the message says what to do.
    pub(super) fn create(
        place: Place,
        description: Description,
        clock: Option<CaptureClock>,
        tags: Tags,
    ) -> Result<Self> {
        let Description { size: (width, height), rate, name } = description;
        let path = place.path().to_path_buf();
        if files::extension(&path) != "mkv" {
            bail!(
                "cannot record to {}: recordings are Matroska files; name it .mkv",
                path.display()
            );
        }
        ensure!(width > 0 && height > 0, "a recording has at least one pixel");
        require(&["appsrc", "avenc_ffv1", "appsink"], "recording")?;

        let fraction = fraction(rate);
        let duration = frame_duration(fraction);
        let (stored_width, stored_height) = (width.max(SHORTEST_SIDE), height.max(SHORTEST_SIDE));
        let track = Track {
            width: stored_width as u64,
            height: stored_height as u64,
            crop_right: (stored_width - width) as u64,
            crop_bottom: (stored_height - height) as u64,
            codec: "V_FFV1",
            codec_private: None,
            frame_duration: duration,
            name,
        };
        let output = Arc::new(Mutex::new(Output::create(place, Header { track, tags, clock })?));
        let progress = Arc::new(Progress::default());
        let sink = AppSink::builder().sync(false).max_buffers(2).build();
        let (written, failing) = (output.clone(), progress.clone());
        sink.set_callbacks(
            AppSinkCallbacks::builder()
                .new_sample(move |sink| {
                    let sample = sink.pull_sample().map_err(|_| gst::FlowError::Eos)?;
                    let mut output = locked(&written);
                    write(&mut output, &sample).map_err(|error| {
                        failing.fail(format!("{error:#}"));
                        gst::FlowError::Error
                    })?;
                    Ok(gst::FlowSuccess::Ok)
                })
                .build(),
        );
        let caps = gst::Caps::builder("video/x-raw")
            .field("format", T::FORMAT)
            .field("width", i32::try_from(stored_width)?)
            .field("height", i32::try_from(stored_height)?)
            .field("framerate", fraction)
            .build();
        let encoder = encoder(stored_width, stored_height)?;
        let feed = Feed::start(&caps, &[&encoder, sink.upcast_ref()], progress, Flow::File(&path))?;
        Ok(Self { description, clock: Clock::new(rate), duration, pool: Pool::new(), feed, output })
    }

    /// Adds a picture captured at `time`, whose row y `fill` writes; waits while the encoder has
    /// enough to do. The `origin` of the first picture is at 0 in the file.
    ///
    /// # Errors
    /// Where encoder or file have failed, or `fill` does.
    pub(super) fn write(
        &mut self,
        time: Duration,
        origin: Duration,
        mut fill: impl FnMut(usize, &mut [T]) -> Result<()>,
    ) -> Result<()> {
        let (width, height) = self.description.size;
        if self.clock.first.is_none() {
            self.clock.first = Some(origin);
            self.output().set_origin(origin);
        }
        // Rows of GStreamer's pictures start at multiples of four bytes.
        let stride = width.max(SHORTEST_SIDE).next_multiple_of(4 / size_of::<T>());
        let mut stored = self.pool.take(stride * height.max(SHORTEST_SIDE));
        let (inside, outside) = stored.split_at_mut(stride * height);
        outside.fill(T::default());
        for (y, row) in inside.chunks_exact_mut(stride).enumerate() {
            let (values, rest) = row.split_at_mut(width);
            fill(y, values)?;
            values.iter_mut().for_each(|value| *value = value.stored());
            rest.fill(T::default());
        }
        let time = self.clock.time(time);
        self.feed.push(stored, time, self.duration)
    }

    /// Pictures that are in the file or files.
    pub(super) fn written(&self) -> u64 {
        self.output().written()
    }

    /// Writes what is on the way, duration and index. The outcome of the encoder, and of the file.
    pub(super) fn finish(&mut self) -> Result<()> {
        let encoded = self.feed.finish();
        let completed = self.output().finish(encoded.is_err());
        encoded.and(completed)
    }

    fn output(&self) -> MutexGuard<'_, Output> {
        locked(&self.output)
    }
}

/// Hands an encoded frame on to the file.
fn write(output: &mut Output, sample: &gst::SampleRef) -> Result<()> {
    let buffer = sample.buffer().context("an encoded frame has content")?;
    // Encoders move their times by 1000 hours and say so in the segment.
    let segment = sample.segment().and_then(|segment| segment.downcast_ref::<gst::ClockTime>());
    let time = segment.and_then(|segment| segment.to_running_time(buffer.pts()));
    let time = time.context("an encoded frame has a time")?;
    let data = buffer.map_readable().context("cannot read an encoded frame")?;
    let structure = sample.caps().and_then(|caps| caps.structure(0));
    let private = structure.and_then(|s| s.get::<gst::Buffer>("codec_data").ok());
    let private = private.as_ref().and_then(|private| private.map_readable().ok());
    output.write(time.into(), &data, private.as_deref())
}

/// The FFV1 encoder for pictures of this size.
fn encoder(width: usize, height: usize) -> Result<gst::Element> {
    let encoder = gst::ElementFactory::make("avenc_ffv1").build()?;
    // FFmpeg chooses version 3 of the format, with checksums, for several slices, and encodes them
    // in parallel. It knows 16 (4x4) and 4 (2x2), and beyond 352x288 insists on several.
    let slices = match width.min(height) {
        64.. => 16,
        16.. => 4,
        _ if width > 352 || height > 288 => 4,
        _ => 1,
    };
    encoder.set_property("slices", slices);
    encoder.set_property_from_str("threads", "auto");
    // Every frame can be decoded alone: exact seeking, and damage stays within a frame.
    encoder.set_property("gop-size", 1);
    Ok(encoder)
}
