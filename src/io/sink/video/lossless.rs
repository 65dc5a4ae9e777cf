//! Lossless video: FFV1 version 3 (RFC 9043) in Matroska, every frame decodable alone.
//!
//! Therefore several encoders work in parallel, and their output is written in the order of the
//! frames. The file does not depend on their number.
//!
//! A side below 4 pixels is extended to 4, right and below, by zeros; the file says how much of the image to
//! crop. Tags are at the beginning, and encoded frames are written at once, so a file of a killed program
//! holds all but the last few frames.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Result, ensure};
use gstreamer as gst;
use gstreamer::prelude::*;

use super::encoders::{Encoded, Encoders};
use super::feed::{Feed, FeedState, Flow, require};
use super::matroska::{Header, Tags, Track};
use super::times::{Clock, fraction, frame_duration, raw_caps, whole_ticks};
use crate::clock::CaptureClock;
use crate::sink::output::Output;
use crate::sink::segments::Place;
use stereod_core::files;
use stereod_core::memory;
use stereod_core::pool::Pool;

/// Shortest side; shorter ones are extended, because FFmpeg (5.1) decodes version 3 of FFV1 to
/// zeros if all slices are one pixel wide or high.
const SHORTEST_SIDE: usize = 4;

pub trait Sample: bytemuck::Pod + Default + Send {
    const FORMAT: &'static str;
    /// Returns the value in the byte order of the format.
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

/// Blue, green, red and an unused byte.
pub(super) type Bgrx = [u8; 4];

impl Sample for Bgrx {
    const FORMAT: &'static str = "BGRx";
    fn stored(self) -> Self {
        self
    }
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Description {
    /// Width and height of the images in pixels.
    pub(super) size: (usize, usize),
    pub(super) rate: Option<f64>,
    pub(super) name: &'static str,
}

pub(super) struct Lossless<T> {
    description: Description,
    clock: Clock,
    /// Set if the times belong to a recording, not to a clock.
    is_recorded: bool,
    duration: Option<Duration>,
    pool: Pool<T>,
    feed: Feed,
    encoded: Arc<Encoded>,
    given: u64,
    _room: Option<memory::Reserved>,
}

impl<T: Sample> Lossless<T> {
    /// Creates the file, replacing an earlier one, and starts the encoders. The first segment is created with
    /// the first image. `clock` belongs to the capture times, if any.
    pub(super) fn create(
        place: &Place,
        description: Description,
        clock: Option<CaptureClock>,
        tags: Tags,
    ) -> Result<Self> {
        Self::create_with(Encoders::new, place, description, clock, tags)
    }

    fn create_with(
        encoders: impl FnOnce(usize, usize) -> Result<Encoders>,
        place: &Place,
        description: Description,
        clock: Option<CaptureClock>,
        tags: Tags,
    ) -> Result<Self> {
        let Description { size: (width, height), rate, name } = description;
        let path = place.path().to_path_buf();
        check_recording_name(&path)?;
        ensure!(width > 0 && height > 0, "a recording has at least one pixel");
        let purpose = "recording to .mkv, unlike to .mcap,";
        require(&["appsrc", "avenc_ffv1", "appsink"], purpose)?;

        let fraction = fraction(rate);
        let duration = frame_duration(fraction);
        let (stored_width, stored_height) = (width.max(SHORTEST_SIDE), height.max(SHORTEST_SIDE));
        let track = Track {
            width: stored_width as u64,
            height: stored_height as u64,
            crop_right: (stored_width - width) as u64,
            crop_bottom: (stored_height - height) as u64,
            codec: "V_FFV1".to_owned(),
            codec_private: None,
            frame_duration: duration,
            name: name.to_owned(),
        };
        let is_recorded = clock.is_none();
        let output = Output::create(place, Header { track, tags }, clock)?;
        let progress = Arc::new(FeedState::default());
        let caps = raw_caps(T::FORMAT, (stored_width, stored_height), fraction)?.build();
        let Encoders { elements, room } = encoders(stored_width, stored_height)?;
        let encoded = Encoded::new(elements.len(), output, progress.clone());
        let sinks: Vec<_> = (0..elements.len()).map(|encoder| encoded.sink(encoder)).collect();
        let chains: Vec<[&gst::Element; 2]> = elements
            .iter()
            .zip(&sinks)
            .map(|(encoder, sink)| [encoder, sink.upcast_ref()])
            .collect();
        let chains: Vec<&[&gst::Element]> = chains.iter().map(|chain| &chain[..]).collect();
        let feed = Feed::start_beside(&caps, &chains, progress, Flow::File(&path))?;
        Ok(Self {
            description,
            clock: Clock::new(rate),
            is_recorded,
            duration,
            pool: Pool::new(),
            feed,
            encoded,
            given: 0,
            _room: room,
        })
    }

    /// Adds an image captured at `time`, with rows written by `fill`; waits while the encoders have no room.
    /// The `origin` of the first image is at 0 in the file.
    pub(super) fn write(
        &mut self,
        time: Duration,
        origin: Duration,
        mut fill: impl FnMut(usize, &mut [T]) -> Result<()>,
    ) -> Result<()> {
        let (width, height) = self.description.size;
        if self.clock.first.is_none() {
            // So the times of a part are the whole run's minus a number of ticks.
            let origin = if self.is_recorded { whole_ticks(origin) } else { origin };
            self.clock.first = Some(origin);
            self.encoded.set_origin(origin);
        }
        // GStreamer's rows start at multiples of four bytes.
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
        // Chosen only now, because the queues have changed during the wait.
        self.feed.wait_for_room()?;
        self.feed.push(self.encoded.give(), stored, time, self.duration)?;
        self.given += 1;
        Ok(())
    }

    pub(super) fn written(&self) -> u64 {
        self.encoded.written()
    }

    /// Writes the remaining images, the duration and the index. Returns the result of the encoders, then the
    /// file's.
    pub(super) fn finish(&mut self) -> Result<()> {
        let encoded = self.feed.finish(None);
        let completed = self.encoded.finish(self.given, encoded.is_err());
        encoded.and(completed)
    }
}

pub fn check_recording_name(path: &Path) -> Result<()> {
    ensure!(
        files::extension(path) == "mkv",
        "cannot record to {}: recordings are Matroska files; name it .mkv (or .mcap for --record)",
        path.display()
    );
    Ok(())
}

#[cfg(test)]
mod tests;
