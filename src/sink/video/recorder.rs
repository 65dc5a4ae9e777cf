//! The lossless recordings, FFV1 in Matroska: of disparity or depth and of whitened images,
//! 16-bit grey, and of confidence, 8-bit.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result};

use super::RecordingTags;
use super::lossless::{Description, Lossless, Sample};
use super::matroska::Tags;
use super::tags;
use crate::calibration::Aligner;
use crate::core::frame::Matched;
use crate::sink::encoding::Encoding;
use crate::sink::numbers::{DepthUnit, Numbers, Quantity};
use crate::sink::output::Place;
use crate::sink::segments::Segments;
use crate::sink::{Losses, Sink, StreamInfo, check_same_size};

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
    /// Creates the file, replacing an earlier one, and starts the encoder.
    pub fn create(path: &Path, stream: &StreamInfo, quantity: Quantity) -> Result<Self> {
        Self::of_numbers(Place::File(path.to_path_buf()), stream, quantity)
    }

    /// Starts the encoder. Frames are written to one segment after the other, each a complete file.
    /// No frame is lost between two.
    pub fn segmented(segments: Segments, stream: &StreamInfo, quantity: Quantity) -> Result<Self> {
        Self::of_numbers(Place::Segments(segments), stream, quantity)
    }

    fn of_numbers(place: Place, stream: &StreamInfo, quantity: Quantity) -> Result<Self> {
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
        Self::start(place, stream, ("recording", track), numbers, Box::new(tags))
    }
}

impl Recorder<Confidence> {
    /// Creates a file of the confidence (an earlier one is replaced) and starts the encoder.
    pub fn of_confidence(path: &Path, stream: &StreamInfo) -> Result<Self> {
        Self::confidence(Place::File(path.to_path_buf()), stream)
    }

    /// Does the same in segments.
    pub fn of_confidence_segmented(segments: Segments, stream: &StreamInfo) -> Result<Self> {
        Self::confidence(Place::Segments(segments), stream)
    }

    fn confidence(place: Place, stream: &StreamInfo) -> Result<Self> {
        let clock = stream.clock;
        let tags = move |first| tags::of_confidence(first, clock);
        Self::start(place, stream, ("confidence", "confidence"), Confidence, Box::new(tags))
    }
}

impl Recorder<Whitened> {
    /// Creates a file of the whitened images (an earlier one is replaced) and starts the encoder.
    pub fn of_whitened(path: &Path, stream: &StreamInfo) -> Result<Self> {
        Self::start_whitened(Place::File(path.to_path_buf()), stream)
    }

    /// Does the same in segments.
    pub fn of_whitened_segmented(segments: Segments, stream: &StreamInfo) -> Result<Self> {
        Self::start_whitened(Place::Segments(segments), stream)
    }

    fn start_whitened(place: Place, stream: &StreamInfo) -> Result<Self> {
        let StreamInfo { clock, stages, .. } = *stream;
        let tags = move |first| tags::of_whitened(first, clock, stages);
        Self::start(place, stream, ("whitened", "whitened"), Whitened, Box::new(tags))
    }
}

impl Recorder<Aligned> {
    /// Creates a file of the depth that a third camera sees (an earlier one is replaced) and starts
    /// the encoder.
    pub fn of_aligned(
        path: &Path,
        stream: &StreamInfo,
        aligner: Arc<Aligner>,
        unit: DepthUnit,
    ) -> Result<Self> {
        Self::start_aligned(Place::File(path.to_path_buf()), stream, aligner, unit)
    }

    /// Does the same in segments.
    pub fn of_aligned_segmented(
        segments: Segments,
        stream: &StreamInfo,
        aligner: Arc<Aligner>,
        unit: DepthUnit,
    ) -> Result<Self> {
        Self::start_aligned(Place::Segments(segments), stream, aligner, unit)
    }

    fn start_aligned(
        place: Place,
        stream: &StreamInfo,
        aligner: Arc<Aligner>,
        unit: DepthUnit,
    ) -> Result<Self> {
        let clock = stream.clock;
        let tags = move |first| tags::of_aligned(first, clock, unit);
        let depth = Vec::new();
        let size = aligner.size();
        let content = Aligned { aligner, unit, depth };
        let name = ("aligned depth", "aligned depth");
        Self::start_of(size, place, stream, name, content, Box::new(tags))
    }
}

impl<C: Content> Recorder<C> {
    /// Starts the encoder for images of the map's size, as [`Self::start_of`].
    fn start(
        place: Place,
        stream: &StreamInfo,
        name: (&str, &'static str),
        content: C,
        tags: Tags,
    ) -> Result<Self> {
        Self::start_of(stream.size, place, stream, name, content, tags)
    }

    /// Starts the encoder for images of width and height `recorded`. `kind` is the name of the output in
    /// messages, `track` the name of its content.
    fn start_of(
        recorded: (usize, usize),
        place: Place,
        stream: &StreamInfo,
        (kind, track): (&str, &'static str),
        content: C,
        tags: Tags,
    ) -> Result<Self> {
        let StreamInfo { size, rate, clock, .. } = *stream;
        let path = place.path().to_path_buf();
        let description = Description { size: recorded, rate, name: track };
        Ok(Self {
            name: format!("{kind} {}", path.display()),
            path,
            size,
            content,
            video: Lossless::create(place, description, clock, tags)?,
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
