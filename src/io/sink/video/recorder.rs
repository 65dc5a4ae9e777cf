//! The lossless recordings, FFV1 in Matroska: of disparity or depth and of whitened images,
//! 16-bit grey; of confidence, 8-bit grey; and of a rectified view, 8-bit grey or RGB.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};

use super::lossless::{Bgrx, Description, Lossless, Sample};
use super::matroska::Tags;
use super::tags;
use crate::labels::Labels;
use crate::sink::segments::Place;
use crate::sink::{Losses, Sink, StreamInfo, check_same_size};
use stereod_calibration::Aligner;
use stereod_core::frame::{Eye, Image, Matched, StereoGeometry};
use stereod_core::picture::numbers::{DepthUnit, Numbers, Quantity};

/// Writes the numbers of row `y` of a frame; rows come in order.
type Fill<T> = Box<dyn FnMut(&Matched, usize, &mut [T]) -> Result<()> + Send>;

/// Value of a pixel without a whitened image.
const NO_RESIDUAL: u16 = 32768;

/// Records one content of every frame bit-exactly. The format is FFV1 version 3 (RFC 9043) in Matroska, every frame
/// decodable alone.
///
/// Times are the pairs', from 0 at the first one, to the microsecond; a pair that is not later than its
/// predecessor follows it by one frame period.
pub struct Recorder<T: Sample> {
    name: String,
    path: PathBuf,
    size: (usize, usize),
    fill: Fill<T>,
    video: Lossless<T>,
    taken: u64,
    failed: bool,
}

impl Recorder<u16> {
    pub fn create(
        place: impl Into<Place>,
        stream: &StreamInfo,
        quantity: Quantity,
    ) -> Result<Self> {
        let run = *stream;
        let numbers = Numbers::new(quantity, run.range, run.geometry.as_ref())?;
        let track = match quantity {
            Quantity::Disparity => "disparity",
            Quantity::Depth(_) => "depth",
        };
        let fill: Fill<u16> = Box::new(move |frame, y, row| {
            numbers.encode(&frame.disparity.values()[y * row.len()..][..row.len()], row);
            Ok(())
        });
        let tags = Box::new(move |first| tags::of_recording(&run, quantity, first));
        Self::start(place, stream, stream.size, ("recording", track), fill, tags)
    }

    /// Starts a recording of the left image without its background: 32768 plus 128 units per grey level; the lowest
    /// bit marks motion.
    pub fn of_whitened(place: impl Into<Place>, stream: &StreamInfo) -> Result<Self> {
        let run = *stream;
        let fill: Fill<u16> = Box::new(|frame, y, row| {
            match &frame.whitened {
                Some(whitened) => row.copy_from_slice(whitened.row(y)),
                // The stage was switched off meanwhile.
                None => row.fill(NO_RESIDUAL),
            }
            Ok(())
        });
        let meaning = "grey levels beside the background = (value - 32768) / 128; odd values: the pixel moves";
        let tags = Box::new(move |first| {
            let pairs = [tags::of_capture(&run, first), tags::of_stages(run.stages)].concat();
            tags::with_title("stereod whitened", meaning, pairs)
        });
        Self::start(place, stream, stream.size, ("whitened", "whitened"), fill, tags)
    }

    pub fn of_aligned(
        place: impl Into<Place>,
        stream: &StreamInfo,
        aligner: Arc<Aligner>,
        unit: DepthUnit,
    ) -> Result<Self> {
        let (run, size, mut depth_m) = (*stream, aligner.size(), Vec::new());
        let fill: Fill<u16> = Box::new(move |frame, y, row| {
            if y == 0 {
                aligner.align(&frame.disparity, &mut depth_m);
            }
            unit.encode(&depth_m[y * row.len()..][..row.len()], row);
            Ok(())
        });
        let tags = Box::new(move |first| {
            tags::of_depth("stereod aligned depth", unit, tags::of_capture(&run, first))
        });
        Self::start(place, stream, size, ("aligned depth", "aligned depth"), fill, tags)
    }
}

impl Recorder<u8> {
    /// Starts a recording of the verdicts on a network ([`stereod_core::matching::verdict`]).
    pub fn of_verdicts(place: impl Into<Place>, stream: &StreamInfo) -> Result<Self> {
        let run = *stream;
        let fill: Fill<u8> = Box::new(|frame, y, row| {
            let verdicts = frame.verdicts.as_ref().context("nothing checks the frame")?;
            row.copy_from_slice(verdicts.row(y));
            Ok(())
        });
        let meaning = "0 unknown, 1 network and matching agree, 2 only the network, 3 only matching, 4 they contradict";
        let tags = Box::new(move |first| {
            tags::with_title("stereod verdicts", meaning, tags::of_capture(&run, first))
        });
        Self::start(place, stream, stream.size, ("verdicts", "verdicts"), fill, tags)
    }

    /// Starts a recording of the confidence: 1 to 255, and 0 if the disparity is unknown or was filled.
    pub fn of_confidence(place: impl Into<Place>, stream: &StreamInfo) -> Result<Self> {
        let run = *stream;
        let fill: Fill<u8> = Box::new(|frame, y, row| {
            let confidence = frame.confidence.as_ref().context("the frame has no confidence")?;
            row.copy_from_slice(confidence.row(y));
            Ok(())
        });
        let meaning = "255 times the probability that the disparity is right within 1 px; 1 without \
                       evidence of its own, 0 where it is unknown or was filled";
        let tags = Box::new(move |first| {
            tags::with_title("stereod confidence", meaning, tags::of_capture(&run, first))
        });
        Self::start(place, stream, stream.size, ("confidence", "confidence"), fill, tags)
    }
}

impl<T: Sample> Recorder<T> {
    /// Creates the file, replacing an earlier one, and starts the encoder; segments are created one
    /// after the other, with no frame lost between two. `recorded` is the width and height of the
    /// images, `kind` the name of the output in messages, and `track` that of its content.
    fn start(
        place: impl Into<Place>,
        stream: &StreamInfo,
        recorded: (usize, usize),
        (kind, track): (&str, &'static str),
        fill: Fill<T>,
        tags: Tags,
    ) -> Result<Self> {
        let StreamInfo { size, rate, clock, .. } = *stream;
        let place = place.into();
        let path = place.path().to_path_buf();
        let name = format!("{kind} {}", path.display());
        let description = Description { size: recorded, rate, name: track };
        let video = Lossless::create(&place, description, clock, tags)?;
        Ok(Self { name, path, size, fill, video, taken: 0, failed: false })
    }

    fn record(&mut self, frame: &Arc<Matched>) -> Result<()> {
        let map = &frame.disparity;
        check_same_size(self.size, (map.width(), map.height()))
            .with_context(|| format!("cannot record to {}", self.path.display()))?;
        let time = frame.pair.timestamp;
        self.video.write(time, time, |y, row| (self.fill)(frame, y, row))
    }
}

impl<T: Sample> Sink for Recorder<T> {
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
        self.video.finish().inspect_err(|_| self.failed = true)
    }
}

/// Properties of a video, needed before its first image.
#[derive(Clone, Copy, Debug)]
pub struct RectifiedVideoOptions {
    pub eye: Eye,
    pub size: (usize, usize),
    /// Images a second, if known. Images keep their own times in any case.
    pub rate: Option<f64>,
    pub geometry: Option<StereoGeometry>,
    pub colour: bool,
    pub labels: Labels,
}

/// Writes the rectified images of one view bit-exactly. Times are kept to the microsecond; an
/// image that is not later than its predecessor follows it one frame later.
pub struct RectifiedVideo {
    path: PathBuf,
    size: (usize, usize),
    frames: Frames,
}

enum Frames {
    Grey(Lossless<u8>),
    Colour(Lossless<Bgrx>),
}

impl RectifiedVideo {
    pub fn create(path: &Path, options: &RectifiedVideoOptions) -> Result<Self> {
        let RectifiedVideoOptions { eye, size, rate, geometry, colour, labels } = *options;
        let name = match eye {
            Eye::Left => "left",
            Eye::Right => "right",
        };
        let tags = Box::new(move |origin| {
            tags::of_rectified(eye, size, geometry.as_ref(), &labels, origin)
        });
        let description = Description { size, rate, name };
        let place = &Place::from(path);
        let frames = match colour {
            true => Frames::Colour(Lossless::create(place, description, None, tags)?),
            false => Frames::Grey(Lossless::create(place, description, None, tags)?),
        };
        Ok(Self { path: path.to_path_buf(), size, frames })
    }

    /// Adds an image captured at `time`: red, green and blue of a video in colour, of a grey one its
    /// intensity alone. The `origin` of the first image is at 0 in the file: both views' files have
    /// the same, so that the distance of their capture times is kept, too.
    ///
    /// # Panics
    /// If there are not as many channels as the video has.
    pub fn write(&mut self, channels: &[&Image], time: Duration, origin: Duration) -> Result<()> {
        for channel in channels {
            check_same_size(self.size, (channel.width(), channel.height()))
                .with_context(|| format!("cannot write {}", self.path.display()))?;
        }
        match &mut self.frames {
            Frames::Grey(video) => {
                let [grey] = channels else { panic!("a grey video has one channel") };
                video.write(time, origin, |y, row| {
                    row.copy_from_slice(grey.row(y));
                    Ok(())
                })
            }
            Frames::Colour(video) => {
                let [red, green, blue] = channels else { panic!("colours have three channels") };
                video.write(time, origin, |y, row| {
                    let colours = blue.row(y).iter().zip(green.row(y)).zip(red.row(y));
                    for (pixel, ((&b, &g), &r)) in row.iter_mut().zip(colours) {
                        *pixel = [b, g, r, 0];
                    }
                    Ok(())
                })
            }
        }
    }

    pub fn finish(&mut self) -> Result<()> {
        match &mut self.frames {
            Frames::Grey(video) => video.finish(),
            Frames::Colour(video) => video.finish(),
        }
    }
}
