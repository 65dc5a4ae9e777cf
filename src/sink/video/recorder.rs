//! The lossless recording: FFV1, 16-bit grey, in Matroska.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Result, ensure};

use super::RecordingTags;
use super::lossless::{Description, Lossless};
use super::output::Place;
use crate::frame::Matched;
use crate::sink::encoding::Encoding;
use crate::sink::numbers::{Numbers, Quantity};
use crate::sink::segments::Segments;
use crate::sink::{Losses, Sink, StreamInfo};

/// Records disparity bit-exactly, or depth: [`Numbers`] as 16-bit grey video, FFV1 version 3
/// (RFC 9043) in Matroska, every frame decodable alone.
///
/// A side below 4 pixels is extended to 4, right and below, by unknown disparity (0); the file says
/// how much of the picture to crop.
///
/// Times are the pairs' own, from 0 at the first pair, to the microsecond; a pair that is not later
/// than its predecessor follows it one frame later. Tags ([`RecordingTags`]) stand at the
/// beginning, and no frame waits in this process once it is encoded: a file whose program was killed
/// holds all but the last few frames. [`finish`](Sink::finish) adds duration and index.
pub struct Recorder {
    name: String,
    path: PathBuf,
    size: (usize, usize),
    numbers: Numbers,
    video: Lossless<u16>,
    /// Frames that it took.
    taken: u64,
    /// True where the caller has been told of the failure.
    failed: bool,
}

impl Recorder {
    /// Creates the file (an earlier one is replaced) and starts the encoder.
    ///
    /// # Errors
    /// Where the name does not end in `.mkv`, the file cannot be created, or GStreamer lacks the
    /// encoder; the message says what to do.
    pub fn create(path: &Path, stream: &StreamInfo, quantity: Quantity) -> Result<Self> {
        Self::start(Place::File(path.to_path_buf()), stream, quantity)
    }

    /// Starts the encoder; the frames go into one segment after the other, each a whole file of its
    /// own. No frame is lost between two.
    ///
    /// # Errors
    /// As [`create`](Self::create).
    pub fn segmented(segments: Segments, stream: &StreamInfo, quantity: Quantity) -> Result<Self> {
        Self::start(Place::Segments(segments), stream, quantity)
    }

    fn start(place: Place, stream: &StreamInfo, quantity: Quantity) -> Result<Self> {
        let StreamInfo { size, rate, range, geometry, clock } = *stream;
        let path = place.path().to_path_buf();
        let numbers = Numbers::new(quantity, range, geometry.as_ref())?;
        let name = match quantity {
            Quantity::Disparity => "disparity",
            Quantity::Depth => "depth",
        };
        let tags = move |first| {
            let encoding = Encoding::for_range(range);
            let first_timestamp = clock.map_or(first, |clock| clock.monotonic(first));
            let utc_offset_ns = clock.map(|clock| clock.utc_offset_ns);
            RecordingTags { quantity, encoding, range, geometry, first_timestamp, utc_offset_ns }
                .to_pairs()
        };
        let description = Description { size, rate, name };
        Ok(Self {
            name: format!("recording {}", path.display()),
            path,
            size,
            numbers,
            video: Lossless::create(place, description, clock, Box::new(tags))?,
            taken: 0,
            failed: false,
        })
    }

    fn record(&mut self, frame: &Arc<Matched>) -> Result<()> {
        let (map, (width, height)) = (&frame.disparity, self.size);
        ensure!(
            (map.width(), map.height()) == (width, height),
            "cannot record to {}: the size changed from {width}x{height} to {}x{}",
            self.path.display(),
            map.width(),
            map.height()
        );
        let (time, numbers) = (frame.pair.timestamp, &self.numbers);
        self.video.write(time, time, |y, row| {
            numbers.encode(&map.values()[y * width..][..width], row);
        })
    }
}

impl Sink for Recorder {
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
        Losses { busy: 0, failed: self.taken.saturating_sub(self.video.written()) }
    }

    fn finish(&mut self) -> Result<()> {
        let finished = self.video.finish();
        // An error that the caller knows already is not told twice.
        let told = self.failed;
        self.failed |= finished.is_err();
        if told { Ok(()) } else { finished }
    }
}
