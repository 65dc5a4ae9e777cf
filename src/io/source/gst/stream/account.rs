//! Properties of a stream and its end: size, rate, length, damage and the reason of the end.

use std::path::Path;
use std::time::Duration;

use gstreamer as gst;
use gstreamer::prelude::*;
use image::metadata::Orientation;

use super::{CutShort, InputStream};
use crate::source::Damage;
use crate::source::gst::checks::length;
use crate::source::gst::inputs::input::Input;
use crate::source::pictures::Pictures;
use stereod_core::thread::locked;

impl InputStream {
    /// Returns why the stream ended prematurely or which images it left out, with its name.
    pub(in super::super) fn failure(&self) -> Option<String> {
        let count = self.taken + self.skipped();
        let (name, error) = (self.name(), self.shared.failure());
        let Input::Pictures(pictures) = &self.input else {
            return error.map(|reason| format!("{name}: {reason}, after {count} pictures"));
        };
        if let Some(reason) = error {
            let place = self
                .next_file(pictures)
                .map_or_else(String::new, |file| format!(", at {}", file.display()));
            return Some(format!("{name}: {reason}{place}"));
        }
        let (lost, all) = (self.shared.left_out(), pictures.files.len());
        let reason = self.shared.damage()?;
        Some(format!("{name}: {lost} of {all} pictures left out: {reason}"))
    }

    /// Returns the file after the last frame.
    fn next_file<'a>(&self, pictures: &'a Pictures) -> Option<&'a Path> {
        let timing = self.timing?;
        let is_next = |number| {
            self.last_time.is_none_or(|last| timing.time(number) > last)
                && !self.shared.is_left_out(number)
        };
        pictures.files.iter().find(|(number, _)| is_next(*number)).map(|(_, path)| path.as_path())
    }

    /// Returns the orientation in the stream's tags.
    pub(in super::super) fn orientation(&self) -> Orientation {
        self.shared.orientation()
    }

    /// Returns the numbers of damaged frames.
    pub(in super::super) fn damage(&self) -> Damage {
        let eye = self.shared.eye().summary();
        let left_out = match &self.input {
            Input::Pictures(_) => self.shared.left_out(),
            _ => eye.broken,
        };
        Damage { concealed: eye.concealed, left_out, mistimed: eye.mistimed }
    }

    /// Describes a file that ended without an error but far too early.
    pub(in super::super) fn cut_short(&self) -> Option<CutShort> {
        let count = self.taken + self.skipped();
        if let (Input::File(path), true) = (&self.input, self.ended)
            && let Ok(Some(lacking)) = length::lacking(path)
        {
            let stated = lacking.pictures.max(self.expected()).filter(|_| !self.is_moved);
            let is_whole = stated.is_some_and(|stated| count >= stated);
            let expected = lacking.pictures.or_else(|| self.expected());
            let expected = expected.filter(|&expected| expected > count && !self.is_moved);
            let bytes = Some((lacking.length, lacking.said));
            let certain = !(is_whole && lacking.is_beside_frames);
            return Some(CutShort { count, expected, certain, bytes });
        }
        if self.is_moved || self.shared.jumps.have_occurred() {
            // The length is the whole recording's, or the latest time.
            return None;
        }
        let expected = self.expected()?;
        let file = matches!(self.input, Input::File(_));
        // The stated length is approximate.
        let slack = 2 + expected / 50;
        if !(file && self.ended && count + slack < expected) {
            return None;
        }
        // Fewer frames are normal at a variable frame rate, if the last one still reaches the end. With
        // sound, the length may be the sound's.
        let length = self.pipeline.query_duration::<gst::ClockTime>()?.nseconds() as f64 * 1e-9;
        let missing = length - self.last_time?.as_secs_f64();
        let certain = missing * self.rate? > slack as f64 && !self.shared.has_other();
        Some(CutShort { count, expected: Some(expected), certain, bytes: None })
    }

    /// Returns the name for people.
    pub(in super::super) fn name(&self) -> String {
        self.input.name()
    }

    pub(in super::super) fn view_size(&self) -> (usize, usize) {
        locked(&self.format).view.unwrap_or_default()
    }

    /// Returns width and height of a pixel, as the stream states them.
    pub(in super::super) fn pixel_shape(&self) -> (i32, i32) {
        locked(&self.format).pixel_shape
    }

    /// Returns the grey level above which the views are white.
    pub(in super::super) fn white(&self) -> u8 {
        locked(&self.format).white
    }

    /// Reports whether the views have colour.
    pub(in super::super) fn has_colour(&self) -> bool {
        locked(&self.format).colour
    }

    /// Returns the frames per second, if known.
    pub(in super::super) fn rate(&self) -> Option<f64> {
        self.rate
    }

    /// Sets the rate of a stream that is known to have it.
    pub(in super::super) fn set_rate(&mut self, rate: f64) {
        self.rate = Some(rate);
    }

    /// Reports whether the stream is live.
    pub(in super::super) fn live(&self) -> bool {
        self.live
    }

    /// Returns the time of the first frame of the recording.
    pub(in super::super) fn begin_time(&self) -> Option<Duration> {
        self.begin
    }

    /// Returns the approximate number of frames, if known.
    pub(in super::super) fn expected(&self) -> Option<u64> {
        if let Input::Pictures(pictures) = &self.input {
            return Some(pictures.files.len() as u64);
        }
        if self.live {
            return None;
        }
        let end: Duration = self.pipeline.query_duration::<gst::ClockTime>()?.into();
        // Containers may count from zero, even if their first frame is later.
        let length = end.checked_sub(self.begin.unwrap_or_default()).unwrap_or(end);
        let pictures = length.as_secs_f64() * self.rate?;
        (pictures >= 0.5).then_some(pictures.round() as u64)
    }
}
