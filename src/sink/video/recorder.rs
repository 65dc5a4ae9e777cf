//! The lossless recording: FFV1, 16-bit grey, in Matroska.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use gstreamer as gst;
use gstreamer::prelude::*;
use gstreamer_app::{AppSink, AppSinkCallbacks};

use super::feed::{Feed, Progress};
use super::matroska::{MatroskaWriter, Track};
use super::{Clock, RecordingTags, fraction, frame_duration, require};
use crate::frame::{DisparityRange, Matched, StereoGeometry};
use crate::pool::Pool;
use crate::sink::Sink;
use crate::sink::encoding::{Encoding, UNKNOWN};
use crate::sink::files;
use crate::sink::numbers::{Numbers, Quantity};

/// What a recording needs to know before its first frame.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RecorderOptions {
    /// Width of the maps in pixels.
    pub width: usize,
    /// Height of the maps in pixels.
    pub height: usize,
    /// Pairs a second, where known; the frames keep their own times in any case.
    pub rate: Option<f64>,
    /// The candidate disparities; they choose the encoding.
    pub range: DisparityRange,
    /// What is recorded.
    pub quantity: Quantity,
    /// What depth is computed from, where known.
    pub geometry: Option<StereoGeometry>,
}

/// Shorter sides are extended to this: FFmpeg (5.1) decodes version 3 of FFV1 to zeros where all
/// slices are one pixel wide or high.
const SHORTEST_SIDE: usize = 4;

/// Records disparity bit-exactly, or depth: [`Numbers`] as 16-bit grey video, FFV1 version 3
/// (RFC 9043) in Matroska, every frame decodable alone.
///
/// A side below 4 pixels is extended to 4, right and below, by unknown disparity; the file says how
/// much of the picture to crop.
///
/// Times are the pairs' own, from 0 at the first pair, to the microsecond; a pair that is not later
/// than its predecessor follows it one frame later. Tags ([`RecordingTags`]) stand at the
/// beginning, and no frame waits in this process once it is encoded: a file whose program was killed
/// holds all but the last few frames. [`finish`](Sink::finish) adds duration and index.
pub struct Recorder {
    name: String,
    path: PathBuf,
    options: RecorderOptions,
    numbers: Numbers,
    clock: Clock,
    duration: Option<Duration>,
    pool: Pool<u16>,
    feed: Feed,
    output: Arc<Mutex<Output>>,
    /// Whether the caller has been told of the failure.
    failed: bool,
}

/// The file, written by the encoder's thread.
struct Output {
    /// The file until the first encoded frame brings what its header needs.
    file: Option<File>,
    writer: Option<MatroskaWriter<File>>,
    options: RecorderOptions,
    duration: Option<Duration>,
    first_timestamp: Duration,
}

impl Recorder {
    /// Creates the file (an earlier one is replaced) and starts the encoder.
    ///
    /// # Errors
    /// Where the name does not end in `.mkv`, the file cannot be created, or GStreamer lacks the
    /// encoder; the message says what to do.
    pub fn create(path: &Path, options: &RecorderOptions) -> Result<Self> {
        if files::extension(path) != "mkv" {
            bail!(
                "cannot record to {}: recordings are Matroska files; name it .mkv",
                path.display()
            );
        }
        ensure!(options.width > 0 && options.height > 0, "a recording has at least one pixel");
        let numbers = Numbers::new(options.quantity, options.range, options.geometry.as_ref())?;
        require(&["appsrc", "avenc_ffv1", "appsink"], "recording")?;
        let file = files::create(path)?;

        let rate = fraction(options.rate);
        let duration = frame_duration(rate);
        let output = Arc::new(Mutex::new(Output {
            file: Some(file),
            writer: None,
            options: *options,
            duration,
            first_timestamp: Duration::ZERO,
        }));
        let progress = Arc::new(Progress::default());
        let sink = AppSink::builder().sync(false).max_buffers(2).build();
        let (written, failing, shown) = (output.clone(), progress.clone(), path.to_path_buf());
        sink.set_callbacks(
            AppSinkCallbacks::builder()
                .new_sample(move |sink| {
                    let sample = sink.pull_sample().map_err(|_| gst::FlowError::Eos)?;
                    let mut output = written.lock().unwrap_or_else(PoisonError::into_inner);
                    output.write(&sample, &shown).map_err(|error| {
                        failing.fail(format!("{error:#}"));
                        gst::FlowError::Error
                    })?;
                    Ok(gst::FlowSuccess::Ok)
                })
                .build(),
        );
        let caps = gst::Caps::builder("video/x-raw")
            .field("format", "GRAY16_LE")
            .field("width", i32::try_from(options.width.max(SHORTEST_SIDE))?)
            .field("height", i32::try_from(options.height.max(SHORTEST_SIDE))?)
            .field("framerate", rate)
            .build();
        let encoder = encoder(options.width.max(SHORTEST_SIDE), options.height.max(SHORTEST_SIDE))?;
        let feed = Feed::start(&caps, &[&encoder, sink.upcast_ref()], progress, path)?;
        Ok(Self {
            name: format!("recording {}", path.display()),
            path: path.to_path_buf(),
            options: *options,
            numbers,
            clock: Clock::new(options.rate),
            duration,
            pool: Pool::new(),
            feed,
            output,
            failed: false,
        })
    }

    fn record(&mut self, frame: &Arc<Matched>) -> Result<()> {
        let map = &frame.disparity;
        let (width, height) = (self.options.width, self.options.height);
        ensure!(
            (map.width(), map.height()) == (width, height),
            "cannot record to {}: the size changed from {width}x{height} to {}x{}",
            self.path.display(),
            map.width(),
            map.height()
        );
        if self.clock.first.is_none() {
            let mut output = self.output.lock().unwrap_or_else(PoisonError::into_inner);
            output.first_timestamp = frame.pair.timestamp;
        }
        // Rows of GStreamer's 16-bit pictures start at multiples of four bytes.
        let stride = width.max(SHORTEST_SIDE).next_multiple_of(2);
        let mut stored = self.pool.take(stride * height.max(SHORTEST_SIDE));
        let (inside, outside) = stored.split_at_mut(stride * height);
        outside.fill(UNKNOWN);
        for (values, row) in map.values().chunks_exact(width).zip(inside.chunks_exact_mut(stride)) {
            self.numbers.encode(values, &mut row[..width]);
            row[width..].fill(UNKNOWN);
            // A no-op but on big-endian machines.
            row.iter_mut().for_each(|number| *number = number.to_le());
        }
        let time = self.clock.time(frame.pair.timestamp);
        self.feed.push(stored, time, self.duration)
    }
}

impl Sink for Recorder {
    fn name(&self) -> &str {
        &self.name
    }

    fn consume(&mut self, frame: &Arc<Matched>) -> Result<()> {
        self.record(frame).inspect_err(|_| self.failed = true)
    }

    fn finish(&mut self) -> Result<()> {
        let encoded = self.feed.finish();
        let mut output = self.output.lock().unwrap_or_else(PoisonError::into_inner);
        let completed = output.finish(encoded.is_err(), &self.path);
        // An error that the caller knows already is not told twice.
        if self.failed { Ok(()) } else { encoded.and(completed) }
    }
}

impl Output {
    /// Writes an encoded frame, and before the first one the header.
    fn write(&mut self, sample: &gst::SampleRef, path: &Path) -> Result<()> {
        let buffer = sample.buffer().context("an encoded frame has content")?;
        // Encoders move their times by 1000 hours and say so in the segment.
        let segment = sample.segment().and_then(|segment| segment.downcast_ref::<gst::ClockTime>());
        let time = segment.and_then(|segment| segment.to_running_time(buffer.pts()));
        let time = time.context("an encoded frame has a time")?;
        let data = buffer.map_readable().context("cannot read an encoded frame")?;
        if self.writer.is_none() {
            let structure = sample.caps().and_then(|caps| caps.structure(0));
            let private = structure.and_then(|s| s.get::<gst::Buffer>("codec_data").ok());
            let private = private.as_ref().and_then(|private| private.map_readable().ok());
            self.start(private.as_deref(), path)?;
        }
        let Some(writer) = &mut self.writer else { return Ok(()) };
        writer.frame(time.into(), &data).map_err(|error| {
            let frames = writer.frames();
            let kept = format!("the recording is readable up to there ({frames} frames)");
            anyhow::anyhow!("{}; {kept}", files::explain(path, &error))
        })
    }

    fn start(&mut self, codec_private: Option<&[u8]>, path: &Path) -> Result<()> {
        let file = self.file.take().context("the file is written by one writer")?;
        let tags = RecordingTags {
            quantity: self.options.quantity,
            encoding: Encoding::for_range(self.options.range),
            range: self.options.range,
            geometry: self.options.geometry,
            first_timestamp: self.first_timestamp,
        };
        let track = Track {
            width: self.options.width.max(SHORTEST_SIDE) as u64,
            height: self.options.height.max(SHORTEST_SIDE) as u64,
            crop_right: SHORTEST_SIDE.saturating_sub(self.options.width) as u64,
            crop_bottom: SHORTEST_SIDE.saturating_sub(self.options.height) as u64,
            codec: "V_FFV1",
            codec_private,
            frame_duration: self.duration,
            name: match self.options.quantity {
                Quantity::Disparity => "disparity",
                Quantity::Depth => "depth",
            },
        };
        let writer = MatroskaWriter::create(file, &track, &tags.to_pairs());
        self.writer = Some(writer.map_err(|error| files::explain(path, &error))?);
        Ok(())
    }

    fn finish(&mut self, after_failure: bool, path: &Path) -> Result<()> {
        if self.writer.is_none() && !after_failure {
            // No frame ever came: a file that says so is better than an empty one.
            self.start(None, path)?;
        }
        let Some(mut writer) = self.writer.take() else { return Ok(()) };
        if after_failure {
            // The rest of a frame that did not fit makes room for the index. Best effort: the error
            // that matters is known, and the frames are readable without this.
            let length = writer.length();
            let _ = writer.get_mut().set_len(length);
            let _ = writer.finish();
            return Ok(());
        }
        writer.finish().map_err(|error| files::explain(path, &error))
    }
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
