//! Labels of a source's own frames: the numbers in the names of images, and time codes.

use std::fmt;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;
use std::time::Duration;

use gstreamer as gst;
use gstreamer_video as gst_video;

use crate::ebml;

/// Tag of a Matroska file, as FFmpeg names it.
pub const TIMECODE: &str = "TIMECODE";

/// Times of numbered images.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Timing {
    /// Smallest number of all, at time zero.
    pub(crate) first: u64,
    /// Greatest common divisor of all distances between numbers: one frame period.
    pub(crate) step: u64,
    pub(crate) rate: f64,
}

impl Timing {
    pub(crate) fn time(&self, number: u64) -> Duration {
        let steps = number.saturating_sub(self.first) / self.step;
        // Limited to a century, because numbers that are dates would overflow GStreamer's clock.
        let nanos = (steps as f64 * 1e9 / self.rate).round().min(3e18);
        Duration::from_nanos(nanos as u64)
    }

    /// Returns the number of the image of this time.
    pub(crate) fn number(&self, time: Duration) -> u64 {
        let steps = (time.as_secs_f64() * self.rate).round() as u64;
        self.first.saturating_add(steps.saturating_mul(self.step))
    }
}

/// Labels of the frames of a source, which follow from their times.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Labels {
    /// Time to which the numbers or the time code begin.
    pub(crate) zero: Duration,
    /// Numbers in the names of images.
    pub(crate) timing: Option<Timing>,
    /// Time code of the first frame of the left view, and its number.
    pub(crate) timecode: Option<(Timecode, u64)>,
}

impl Labels {
    /// Returns the number in the name of the left image of a pair with this time.
    pub fn number(&self, time: Duration) -> Option<u64> {
        Some(self.timing?.number(time.saturating_sub(self.zero)))
    }

    /// Returns the time code that is known, and the time of its frame.
    pub(crate) fn first_code(&self) -> Option<CodeAt> {
        let (code, number) = self.timecode?;
        let own = self.timing.map_or(Duration::ZERO, |timing| timing.time(number));
        Some(CodeAt { code, time: self.zero + own })
    }

    /// Returns the time code of a pair with this time.
    pub fn timecode(&self, time: Duration) -> Option<Timecode> {
        let (first, number) = self.timecode?;
        let frames = match self.number(time) {
            Some(own) => own as i64 - number as i64,
            None => (time.saturating_sub(self.zero).as_secs_f64() * first.rate()).round() as i64,
        };
        first.plus(frames)
    }
}

/// A time code, and the time of the frame that has it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct CodeAt {
    pub(crate) code: Timecode,
    pub(crate) time: Duration,
}

/// Time code of a frame (SMPTE ST 12-1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timecode {
    pub hours: u8,
    pub minutes: u8,
    pub seconds: u8,
    pub frames: u8,
    /// Frames a second, as a fraction.
    pub rate: [i32; 2],
    /// True if some numbers are left out, so that the code keeps up with the clock at 29.97 frames a second.
    pub drop: bool,
}

impl Timecode {
    /// Reads the time code of a still image in OpenEXR, or that of the first frame of an MP4, QuickTime or Matroska
    /// video; `None` if it has none. `rate`: frames a second of the source, if the file does not state it.
    pub fn read(path: &Path, rate: Option<f64>) -> Option<Self> {
        // A pipe can be read once only.
        let mut file = path.is_file().then(|| File::open(path).ok())??;
        let mut head = [0; 8];
        file.read_exact(&mut head).ok()?;
        match head {
            [0x76, 0x2f, 0x31, 0x01, ..] => of_exr(path, rate),
            [.., b'f', b't', b'y', b'p'] => of_movie(&mut file),
            [0x1a, 0x45, 0xdf, 0xa3, ..] => of_matroska(path, rate?),
            _ => None,
        }
    }

    /// Reports whether the codes of ST 12-1 count pairs of frames: above 30 frames a second.
    pub(crate) fn is_fast(&self) -> bool {
        self.rate() > 30.0
    }

    fn rate(&self) -> f64 {
        f64::from(self.rate[0]) / f64::from(self.rate[1])
    }

    /// Returns the seconds from `other` to this code; at most half a day, because codes count from midnight.
    pub(crate) fn seconds_after(&self, other: Self) -> f64 {
        const DAY: f64 = 86_400.0;
        let since_midnight = |code: &Self| {
            let frames = code.valid().map_or(0, |code| code.frames_since_daily_jam());
            frames as f64 / code.rate()
        };
        let seconds = since_midnight(self) - since_midnight(&other);
        seconds - (seconds / DAY).round() * DAY
    }

    /// Returns the time code this many frames later.
    fn plus(&self, frames: i64) -> Option<Self> {
        let mut code = self.valid()?;
        code.add_frames(frames);
        let part = |part: u32| u8::try_from(part).ok();
        Some(Self {
            hours: part(code.hours())?,
            minutes: part(code.minutes())?,
            seconds: part(code.seconds())?,
            frames: part(code.frames())?,
            ..*self
        })
    }

    fn valid(&self) -> Option<gst_video::ValidVideoTimeCode> {
        let [numerator, denominator] = self.rate;
        if denominator <= 0 || !(1..=1000).contains(&(numerator / denominator)) {
            return None;
        }
        let flags = match self.drop {
            true => gst_video::VideoTimeCodeFlags::DROP_FRAME,
            false => gst_video::VideoTimeCodeFlags::empty(),
        };
        let code = gst_video::ValidVideoTimeCode::new(
            gst::Fraction::new(numerator, denominator),
            None,
            flags,
            self.hours.into(),
            self.minutes.into(),
            self.seconds.into(),
            self.frames.into(),
            0,
        );
        code.ok()
    }
}

impl fmt::Display for Timecode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { hours, minutes, seconds, frames, drop, .. } = self;
        let sign = if *drop { ';' } else { ':' };
        write!(f, "{hours:02}:{minutes:02}:{seconds:02}{sign}{frames:02}")
    }
}

/// Reads the attribute `timeCode` of an OpenEXR image.
fn of_exr(path: &Path, rate: Option<f64>) -> Option<Timecode> {
    let meta = exr::meta::MetaData::read_from_file(path, false).ok()?;
    let header = meta.headers.first()?;
    let code = header.shared_attributes.time_code?;
    let rate = match header.own_attributes.frames_per_second {
        Some((numerator, denominator)) => [numerator, i32::try_from(denominator).ok()?],
        None => fraction(rate?)?,
    };
    let exr::meta::attribute::TimeCode { hours, minutes, seconds, frame, .. } = code;
    let code_of =
        |frames| Timecode { hours, minutes, seconds, frames, rate, drop: code.drop_frame };
    Some(match code_of(frame) {
        code_of_pair if code_of_pair.is_fast() => code_of(2 * frame + u8::from(code.field_phase)),
        code => code,
    })
}

fn fraction(rate: f64) -> Option<[i32; 2]> {
    let rate = gst::Fraction::approximate_f64(rate)?;
    Some([rate.numer(), rate.denom()])
}

/// Reads the tag of a Matroska video, as FFmpeg and stereod write it: hours, minutes, seconds and frames; `;` or `.`
/// before the frames if numbers are left out.
fn of_matroska(path: &Path, rate: f64) -> Option<Timecode> {
    let tags = ebml::read_tags(path, true).ok()?;
    let (_, code) = tags.iter().find(|(name, _)| name.eq_ignore_ascii_case(TIMECODE))?;
    let parts = code.split([':', ';', '.']).map(|part| part.parse().ok());
    let parts: Vec<u8> = parts.collect::<Option<_>>()?;
    let [hours, minutes, seconds, frames] = parts[..] else { return None };
    let drop = code.contains([';', '.']);
    Timecode { hours, minutes, seconds, frames, rate: fraction(rate)?, drop }.plus(0)
}

/// Largest index of a movie that is read.
const LARGEST_INDEX: u64 = 1 << 26;

/// Reads the track of time codes of an MP4 or QuickTime movie (QuickTime File Format, "Timecode Media").
fn of_movie(file: &mut File) -> Option<Timecode> {
    let movie = index(file)?;
    let tables = boxes(&movie).filter(|(kind, _)| *kind == b"trak").filter_map(|(_, track)| {
        [b"mdia", b"minf", b"stbl"].iter().try_fold(track, |body, kind| child(body, kind))
    });
    tables.into_iter().find_map(|table| {
        let description = child(table, b"stsd")?.get(8..)?;
        if description.get(4..8)? != b"tmcd" {
            return None;
        }
        let [flags, scale, duration] = [20, 24, 28].map(|at| number(description, at));
        let place = match child(table, b"stco") {
            Some(places) => u64::from(number(places, 8)?),
            None => u64::from_be_bytes(child(table, b"co64")?.get(8..16)?.try_into().ok()?),
        };
        let mut count = [0; 4];
        file.seek(SeekFrom::Start(place)).ok()?;
        file.read_exact(&mut count).ok()?;
        let rate = [i32::try_from(scale?).ok()?, i32::try_from(duration?).ok()?];
        let drop = flags? & 1 != 0;
        let zero = Timecode { hours: 0, minutes: 0, seconds: 0, frames: 0, rate, drop };
        zero.plus(u32::from_be_bytes(count).into())
    })
}

/// Reads the content of the box `moov`, the index of a movie.
fn index(file: &mut File) -> Option<Vec<u8>> {
    let (length, mut at) = (file.metadata().ok()?.len(), 0_u64);
    while at < length {
        let mut head = [0; 16];
        file.seek(SeekFrom::Start(at)).ok()?;
        file.read_exact(&mut head[..8]).ok()?;
        let (mut size, mut body) = (u64::from(number(&head, 0)?), 8);
        if size == 1 {
            file.read_exact(&mut head[8..]).ok()?;
            (size, body) = (u64::from_be_bytes(head[8..].try_into().ok()?), 16);
        }
        if &head[4..8] == b"moov" {
            let mut content = Vec::new();
            let size = size.checked_sub(body).filter(|&size| size <= LARGEST_INDEX)?;
            file.take(size).read_to_end(&mut content).ok()?;
            return Some(content);
        }
        at = at.checked_add(size).filter(|_| size >= body)?;
    }
    None
}

/// Returns the boxes in the content of another one, with their kinds.
fn boxes(mut content: &[u8]) -> impl Iterator<Item = (&[u8; 4], &[u8])> {
    std::iter::from_fn(move || {
        let size = number(content, 0)? as usize;
        let kind = content.get(4..8)?.try_into().ok()?;
        let body = content.get(8..size)?;
        content = &content[size..];
        Some((kind, body))
    })
}

fn child<'a>(content: &'a [u8], wanted: &[u8; 4]) -> Option<&'a [u8]> {
    boxes(content).find(|(kind, _)| *kind == wanted).map(|(_, body)| body)
}

fn number(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_be_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    const NTSC: [i32; 2] = [30_000, 1001];

    fn code(text: &str, rate: [i32; 2], drop: bool) -> Timecode {
        let parts: Vec<u8> = text.split(':').map(|part| part.parse().unwrap()).collect();
        let [hours, minutes, seconds, frames] = parts[..] else { panic!("{text}") };
        Timecode { hours, minutes, seconds, frames, rate, drop }
    }

    #[test]
    fn numbers_and_codes_follow_from_times() {
        gst::init().unwrap();
        let timing = Timing { first: 1001, step: 1, rate: 24.0 };
        let first = code("01:00:00:23", [24, 1], false);
        let zero = Duration::from_millis(40);
        let labels = Labels { zero, timing: Some(timing), timecode: Some((first, 1002)) };
        let at = |number| timing.time(number) + zero;
        for number in [1001, 1002, 1049, 987_654] {
            assert_eq!(labels.number(at(number)), Some(number));
        }
        let told = |number| labels.timecode(at(number)).unwrap().to_string();
        assert_eq!([1002, 1003, 1050].map(told), ["01:00:00:23", "01:00:01:00", "01:00:02:23"]);

        let first = code("00:00:59:29", NTSC, true);
        let labels = Labels { zero, timing: None, timecode: Some((first, 0)) };
        assert_eq!(labels.number(zero), None);
        let told = |frames: f64| {
            let time = zero + Duration::from_secs_f64(frames * 1001.0 / 30_000.0);
            labels.timecode(time).unwrap().to_string()
        };
        // Codes 00 and 01 of a minute are left out.
        assert_eq!([0.0, 1.0].map(told), ["00:00:59;29", "00:01:00;02"]);
        assert_eq!(Labels::default().timecode(zero), None);
    }

    #[test]
    fn the_seconds_between_two_codes_are_counted_across_midnight() {
        gst::init().unwrap();
        let after = |code_: &str, other: &str, rate, drop| {
            code(code_, rate, drop).seconds_after(code(other, rate, drop))
        };
        let close = |seconds: f64, right: f64| assert!((seconds - right).abs() < 1e-6, "{seconds}");
        close(after("1:0:0:5", "1:0:0:0", [30, 1], false), 5.0 / 30.0);
        close(after("1:0:0:0", "1:0:0:5", NTSC, false), -5.0 * 1001.0 / 30_000.0);
        close(after("0:1:0:2", "0:0:59:29", NTSC, true), 1001.0 / 30_000.0);
        close(after("0:0:0:10", "23:59:59:20", [25, 1], false), 15.0 / 25.0);
    }

    /// A box of this kind around a content.
    fn boxed(kind: &[u8; 4], content: &[u8]) -> Vec<u8> {
        let size = u32::try_from(content.len() + 8).unwrap();
        [&size.to_be_bytes()[..], kind, content].concat()
    }

    #[test]
    fn codes_of_matroska_are_read() {
        gst::init().unwrap();
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.mkv");
        let read = |text: &str, rate| {
            let mut file = Vec::new();
            ebml::push(&mut file, ebml::id::EBML, b"matroska");
            ebml::push_master(&mut file, ebml::id::SEGMENT, |segment| {
                ebml::push_master(segment, ebml::id::TAGS, |tags| {
                    ebml::push_master(tags, ebml::id::TAG, |tag| {
                        ebml::push_master(tag, ebml::id::SIMPLE_TAG, |simple| {
                            ebml::push(simple, ebml::id::TAG_NAME, b"timecode");
                            ebml::push(simple, ebml::id::TAG_STRING, text.as_bytes());
                        });
                    });
                });
            });
            std::fs::write(&path, file).unwrap();
            Timecode::read(&path, rate)
        };
        let ntsc = Some(30_000.0 / 1001.0);
        assert_eq!(read("01:00:00:23", Some(24.0)), Some(code("1:0:0:23", [24, 1], false)));
        assert_eq!(read("01:00:00;10", ntsc), Some(code("1:0:0:10", NTSC, true)));
        assert_eq!(read("01:00:00.10", ntsc), Some(code("1:0:0:10", NTSC, true)));
        for wrong in ["01:00:00:24", "1:0:0", "01:00:00:2x", "", "01:00:00;10", "01:60:00:00"] {
            assert_eq!(read(wrong, Some(24.0)), None, "{wrong}");
        }
        assert_eq!(read("01:00:00:23", None), None);
    }

    #[test]
    fn codes_of_movies_are_read_and_damage_is_none() {
        gst::init().unwrap();
        let head = boxed(b"ftyp", b"qt  ");
        let count = boxed(b"mdat", &108_000_u32.to_be_bytes());
        let place = u32::try_from(head.len() + 8).unwrap();
        let mut entry = [0; 33 + 1];
        entry[4..8].copy_from_slice(b"tmcd");
        entry[24..28].copy_from_slice(&30_000_u32.to_be_bytes());
        entry[28..32].copy_from_slice(&1001_u32.to_be_bytes());
        let stsd = boxed(b"stsd", &[&[0; 8][..], &entry].concat());
        let stco = boxed(b"stco", &[&[0; 8][..], &place.to_be_bytes()].concat());
        let track = [b"stbl", b"minf", b"mdia", b"trak"]
            .iter()
            .fold([stsd, stco].concat(), |content, kind| boxed(kind, &content));
        let other = boxed(b"trak", &boxed(b"mdia", b"video"));
        let movie = [head, count, boxed(b"moov", &[other, track].concat())].concat();
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.mov");
        let read = |content: &[u8]| {
            std::fs::write(&path, content).unwrap();
            Timecode::read(&path, None)
        };
        assert_eq!(read(&movie), Some(code("01:00:00:00", NTSC, false)));
        for cut in 0..movie.len() {
            assert_eq!(read(&movie[..cut]), None, "cut at {cut}");
            let mut damaged = movie.clone();
            damaged[cut] = 0xff;
            let _ = read(&damaged);
        }
    }
}
