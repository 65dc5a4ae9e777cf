//! The lossless recordings, FFV1 in Matroska: of disparity or depth and of whitened images,
//! 16-bit grey, and of confidence, 8-bit.

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context, Result};

use super::RecordingTags;
use super::lossless::{Description, Lossless, Sample};
use super::matroska::Tags;
use super::tags;
use crate::sink::place::Place;
use crate::sink::{Losses, Sink, StreamInfo, check_same_size};
use stereod_core::calibration::Aligner;
use stereod_core::frame::Matched;
use stereod_core::picture::encoding::Encoding;
use stereod_core::picture::numbers::{DepthUnit, Numbers, Quantity};

/// Content that a recording keeps of each frame.
pub trait Content: Send {
    type Sample: Sample;

    /// Prepares a frame; its rows are filled afterwards.
    fn prepare(&mut self, _frame: &Matched) {}

    /// Writes the numbers of row `y` of a frame.
    fn fill(&self, frame: &Matched, y: usize, row: &mut [Self::Sample]) -> Result<()>;
}

impl Content for Numbers {
    type Sample = u16;

    fn fill(&self, frame: &Matched, y: usize, row: &mut [u16]) -> Result<()> {
        let map = &frame.disparity;
        self.encode(&map.values()[y * map.width()..][..map.width()], row);
        Ok(())
    }
}

/// Confidence of each pixel: 1 to 255, and 0 if the disparity is unknown or was filled.
pub struct Confidence;

impl Content for Confidence {
    type Sample = u8;

    fn fill(&self, frame: &Matched, y: usize, row: &mut [u8]) -> Result<()> {
        let confidence = frame.confidence.as_ref().context("the frame has no confidence")?;
        row.copy_from_slice(confidence.row(y));
        Ok(())
    }
}

/// The left image without its background: 32768 plus 128 units per grey level; the lowest bit marks motion.
pub struct Whitened;

/// Value of a pixel without a whitened image.
const NO_RESIDUAL: u16 = 32768;

impl Content for Whitened {
    type Sample = u16;

    fn fill(&self, frame: &Matched, y: usize, row: &mut [u16]) -> Result<()> {
        match &frame.whitened {
            Some(whitened) => row.copy_from_slice(whitened.row(y)),
            // The stage was switched off meanwhile.
            None => row.fill(NO_RESIDUAL),
        }
        Ok(())
    }
}

/// Depth as a third camera sees it.
pub struct Aligned {
    aligner: Arc<Aligner>,
    unit: DepthUnit,
    /// The frame's depth in metres.
    depth: Vec<f32>,
}

impl Content for Aligned {
    type Sample = u16;

    fn prepare(&mut self, frame: &Matched) {
        self.aligner.align(&frame.disparity, &mut self.depth);
    }

    fn fill(&self, _frame: &Matched, y: usize, row: &mut [u16]) -> Result<()> {
        self.unit.encode(&self.depth[y * row.len()..][..row.len()], row);
        Ok(())
    }
}

/// Records its content of every frame bit-exactly: disparity or depth as [`Numbers`], depth as
/// [`Aligned`], [`Whitened`] images (all 16-bit grey), or [`Confidence`] (8-bit grey). The format is
/// FFV1 version 3 (RFC
/// 9043) in Matroska, every frame decodable alone.
///
/// A side below 4 pixels is extended to 4, right and below, by unknown disparity (0); the file says
/// how much of the image to crop.
///
/// Times are the pairs', from 0 at the first one, to the microsecond; a pair that is not later than its
/// predecessor follows it by one frame period. Tags ([`RecordingTags`]) are at the beginning, and encoded
/// frames are written at once, so a file of a killed program holds all but the last few frames.
/// [`finish`](Sink::finish) adds duration and index.
pub struct Recorder<C: Content = Numbers> {
    name: String,
    path: PathBuf,
    size: (usize, usize),
    content: C,
    video: Lossless<C::Sample>,
    /// Number of accepted frames.
    taken: u64,
    /// True if the failure was returned to the caller.
    failed: bool,
}

impl Recorder {
    /// Starts a recording of disparity or depth.
    pub fn create(
        place: impl Into<Place>,
        stream: &StreamInfo,
        quantity: Quantity,
    ) -> Result<Self> {
        let StreamInfo { range, geometry, clock, stages, .. } = *stream;
        let numbers = Numbers::new(quantity, range, geometry.as_ref())?;
        let track = match quantity {
            Quantity::Disparity => "disparity",
            Quantity::Depth(_) => "depth",
        };
        let tags = move |first| {
            let encoding = Encoding::for_range(range);
            let first_timestamp = clock.map_or(first, |clock| clock.monotonic(first));
            let utc_offset_ns = clock.map(|clock| clock.utc_offset_ns);
            RecordingTags {
                quantity,
                encoding,
                range,
                geometry,
                stages,
                first_timestamp,
                utc_offset_ns,
            }
            .to_pairs()
        };
        Self::start(place, stream, stream.size, ("recording", track), numbers, Box::new(tags))
    }
}

impl Recorder<Confidence> {
    /// Starts a recording of the confidence.
    pub fn of_confidence(place: impl Into<Place>, stream: &StreamInfo) -> Result<Self> {
        let clock = stream.clock;
        let tags = Box::new(move |first| tags::of_confidence(first, clock));
        Self::start(place, stream, stream.size, ("confidence", "confidence"), Confidence, tags)
    }
}

impl Recorder<Whitened> {
    /// Starts a recording of the whitened images.
    pub fn of_whitened(place: impl Into<Place>, stream: &StreamInfo) -> Result<Self> {
        let StreamInfo { clock, stages, .. } = *stream;
        let tags = Box::new(move |first| tags::of_whitened(first, clock, stages));
        Self::start(place, stream, stream.size, ("whitened", "whitened"), Whitened, tags)
    }
}

impl Recorder<Aligned> {
    /// Starts a recording of the depth that a third camera sees.
    pub fn of_aligned(
        place: impl Into<Place>,
        stream: &StreamInfo,
        aligner: Arc<Aligner>,
        unit: DepthUnit,
    ) -> Result<Self> {
        let clock = stream.clock;
        let tags = Box::new(move |first| tags::of_aligned(first, clock, unit));
        let (size, depth) = (aligner.size(), Vec::new());
        let content = Aligned { aligner, unit, depth };
        Self::start(place, stream, size, ("aligned depth", "aligned depth"), content, tags)
    }
}

impl<C: Content> Recorder<C> {
    /// Creates the file, replacing an earlier one, and starts the encoder; segments are created one
    /// after the other, with no frame lost between two. `recorded` is the width and height of the
    /// images, `kind` the name of the output in messages, and `track` that of its content.
    fn start(
        place: impl Into<Place>,
        stream: &StreamInfo,
        recorded: (usize, usize),
        (kind, track): (&str, &'static str),
        content: C,
        tags: Tags,
    ) -> Result<Self> {
        let StreamInfo { size, rate, clock, .. } = *stream;
        let place = place.into();
        let path = place.path().to_path_buf();
        let description = Description { size: recorded, rate, name: track };
        Ok(Self {
            name: format!("{kind} {}", path.display()),
            path,
            size,
            content,
            video: Lossless::create(&place, description, clock, tags)?,
            taken: 0,
            failed: false,
        })
    }

    fn record(&mut self, frame: &Arc<Matched>) -> Result<()> {
        let map = &frame.disparity;
        check_same_size(self.size, (map.width(), map.height()))
            .with_context(|| format!("cannot record to {}", self.path.display()))?;
        self.content.prepare(frame);
        let (time, content) = (frame.pair.timestamp, &self.content);
        self.video.write(time, time, |y, row| content.fill(frame, y, row))
    }
}

impl<C: Content> Sink for Recorder<C> {
    fn name(&self) -> &str {
        &self.name
    }

    fn consume(&mut self, frame: &Arc<Matched>) -> Result<()> {
        self.record(frame).inspect_err(|_| self.failed = true)?;
        self.taken += 1;
        Ok(())
    }

    fn losses(&self) -> Losses {
        if !self.failed {
            return Losses::default();
        }
        let failed = self.taken.saturating_sub(self.video.written());
        Losses { failed, ..Losses::default() }
    }

    fn finish(&mut self) -> Result<()> {
        let finished = self.video.finish();
        // The caller knows this error already.
        let told = self.failed;
        self.failed |= finished.is_err();
        if told { Ok(()) } else { finished }
    }
}
