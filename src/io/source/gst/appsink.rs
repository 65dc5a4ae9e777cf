//! The streaming thread's side of a stream: the appsink that copies and sends each frame, and the
//! errors of the pipeline.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use anyhow::{anyhow, bail};
use crossbeam_channel::Sender;
use gstreamer as gst;
use gstreamer_app as gst_app;
use gstreamer_video as gst_video;
use image::metadata::Orientation;
use tracing::Span;
use tracing::span::Entered;

use super::checks::time_jumps::Jumps;
use super::inputs::packing;
use super::live::sender_times;
use super::message;
use super::options::{GstOptions, Keep};
use super::plane::{self, ViewLayout, Views};
use crate::container::Stated;
use crate::source::live::EyeState;
use crate::source::pairing::sender_clocks::SenderTime;
use stereod_core::picture::tone::Tone;
use stereod_core::thread::locked;

/// Flag of a frame that consists of two fields (`GST_VIDEO_BUFFER_FLAG_INTERLACED`).
const INTERLACED: gst::BufferFlags =
    gst::BufferFlags::from_bits_retain(gst_video::ffi::GST_VIDEO_BUFFER_FLAG_INTERLACED);

/// A frame of a stream.
pub(super) struct Frame {
    pub(super) views: Views,
    pub(super) times: Times,
    /// Time of capture by the sender's clock, if it states one.
    pub(super) sender: Option<SenderTime>,
    /// Time on the stream's clock. The stream's owner derives it from one of `times`.
    pub(super) timestamp: Option<Duration>,
    /// Moment of arrival, or of capture for a live frame with a plausible time.
    pub(super) arrived: Instant,
}

/// Times of a frame; which one counts depends on the stream.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Times {
    /// Time stamp of the buffer.
    pub(super) written: Option<gst::ClockTime>,
    /// Position in the recording, after edit lists.
    pub(super) stream: Option<gst::ClockTime>,
    /// Time since the pipeline's zero, by its clock.
    pub(super) running: Option<gst::ClockTime>,
}

/// State shared by GStreamer's threads and the stream's owner.
#[derive(Debug, Default)]
pub(super) struct Shared {
    /// The rig that lines of the log belong to: GStreamer's threads know none.
    rig: Option<Span>,
    /// First error; later ones are its consequences.
    error: Mutex<Option<String>>,
    /// First error that only says that data stopped flowing, as a consequence of another one.
    stopped: Mutex<Option<String>>,
    missing: Mutex<Option<String>>,
    /// Flaw of the first image file that was left out.
    damage: Mutex<Option<String>>,
    /// Numbers of the image files that were left out.
    left_out: Mutex<BTreeSet<u64>>,
    /// Name of the stream, and whether it is a video file, so that every lost frame is damage.
    name: String,
    recorded: bool,
    /// Orientation that the first tag named.
    orientation: Mutex<Option<Orientation>>,
    concealed: AtomicBool,
    dropped: AtomicBool,
    mistimed: AtomicBool,
    /// Content that is not video.
    other: Mutex<Option<String>>,
    second: AtomicBool,
    warned: AtomicBool,
    /// True if the stream is live: damaged frames are left out.
    live: AtomicBool,
    eye: Arc<EyeState>,
    /// True if frames are counted in `skipped` instead of being copied.
    count_only: AtomicBool,
    skipped: AtomicU64,
    /// Whether the written times are the recording's. (For Matroska: its demuxer otherwise starts every file
    /// at zero and so loses a later start of one view.)
    pub(super) absolute_times: AtomicBool,
    /// Shifts of times in the decoder.
    pub(super) jumps: Arc<Jumps>,
}

impl Shared {
    /// Creates the state of a view's stream.
    pub(super) fn of(eye: Arc<EyeState>, name: String, recorded: bool) -> Self {
        Self { rig: Some(Span::current()), eye, name, recorded, ..Self::default() }
    }

    /// Makes what is logged until the guard is dropped belong to the rig.
    fn of_rig(&self) -> Option<Entered<'_>> {
        self.rig.as_ref().map(Span::enter)
    }

    /// Sets whether the stream is live.
    pub(super) fn set_live(&self, live: bool) {
        self.live.store(live, Ordering::SeqCst);
    }

    /// Notes the reason of the stream's end.
    pub(super) fn fail(&self, reason: String) {
        locked(&self.error).get_or_insert(reason);
    }

    /// Notes that the image file with this number is left out.
    pub(super) fn leave_out(&self, number: u64, what: String) {
        let _rig = self.of_rig();
        let mut left_out = locked(&self.left_out);
        if !left_out.insert(number) {
            return;
        }
        if left_out.len() == 1 {
            tracing::warn!("{what}; it is left out, as every such picture will be");
        } else {
            tracing::debug!("{what}");
        }
        locked(&self.damage).get_or_insert(what);
    }

    /// Returns the number of image files that were left out.
    pub(super) fn left_out(&self) -> u64 {
        locked(&self.left_out).len() as u64
    }

    /// Reports whether the image file with this number is left out.
    pub(super) fn is_left_out(&self, number: u64) -> bool {
        locked(&self.left_out).contains(&number)
    }

    /// Notes the orientation of a tag; the first one counts.
    pub(super) fn note_orientation(&self, orientation: Orientation) {
        locked(&self.orientation).get_or_insert(orientation);
    }

    /// Returns the orientation of the tags.
    pub(super) fn orientation(&self) -> Orientation {
        locked(&self.orientation).unwrap_or(Orientation::NoTransforms)
    }

    /// Counts a frame whose damage the decoder concealed, described by `what`.
    pub(super) fn note_concealed(&self, what: &str) {
        self.eye.note_concealed();
        let consequence = "such pictures are used as far as they can be decoded, and counted";
        self.warn_once(&self.concealed, &format!("damaged ({what})"), consequence);
    }

    /// Counts a frame that is lost for the reason `what`.
    pub(super) fn note_dropped(&self, what: &str) {
        self.eye.note_broken();
        self.warn_once(&self.dropped, what, "such pictures are left out and counted");
    }

    /// Returns the reason why a stream that has ended without a failure gave no frame.
    pub(super) fn why_empty(&self) -> String {
        match self.dropped.load(Ordering::SeqCst) {
            true => "all its pictures were left out, so it holds no whole one".to_owned(),
            false => "it holds no picture".to_owned(),
        }
    }

    /// Counts a frame whose time is meaningless for the reason `what`.
    pub(super) fn note_mistimed(&self, what: &str) {
        self.eye.note_mistimed();
        let consequence = "such pictures have no partner by time, and are counted";
        self.warn_once(&self.mistimed, what, consequence);
    }

    /// Warns of `what` and its consequence for the first time, and logs further ones at level
    /// debug.
    fn warn_once(&self, is_known: &AtomicBool, what: &str, consequence: &str) {
        let _rig = self.of_rig();
        if is_known.swap(true, Ordering::SeqCst) {
            tracing::debug!("{}: {what}", self.name);
        } else {
            tracing::warn!("{}: {what}; {consequence}", self.name);
        }
    }

    /// Returns the counts of damaged frames.
    pub(super) fn eye(&self) -> &EyeState {
        &self.eye
    }

    /// Notes a part of the stream that is not video.
    pub(super) fn note_other(&self, caps: &gst::Caps) {
        if let Some(structure) = caps.structure(0) {
            locked(&self.other).get_or_insert_with(|| structure.name().to_string());
        }
    }

    /// Notes why a reader was not used; reported if there is no other.
    pub(super) fn note_missing(&self, what: String) {
        locked(&self.missing).get_or_insert(what);
    }

    /// Warns of a second video in the stream, once.
    pub(super) fn note_second_video(&self) {
        let _rig = self.of_rig();
        if !self.second.swap(true, Ordering::SeqCst) {
            tracing::warn!(
                "{0}: holds more than one video; the first one is used. The second one is had by: ffmpeg -i {0} \
                 -map 0:v:1 -c copy SECOND.mkv",
                self.name
            );
        }
    }

    /// Fails the stream because it has no video, once all of its content is known.
    pub(super) fn fail_without_video(&self) {
        let missing = locked(&self.missing).clone();
        let other = locked(&self.other).clone();
        self.fail(missing.unwrap_or_else(|| {
            match other {
                Some(other) if other == "text/html" => {
                    "it is a page for browsers, not a stream: the stream has an address \
                 of its own (docs/cameras.md has those of usual cameras)"
                        .to_owned()
                }
                Some(other) => format!("there is no video in it, only {other}"),
                None => "there is no video in it".to_owned(),
            }
        }));
    }

    /// Returns the reason of the stream's end.
    pub(super) fn failure(&self) -> Option<String> {
        locked(&self.error).clone().or_else(|| locked(&self.stopped).clone())
    }

    /// Returns why there is no first frame: a missing plug-in or a damaged file rather than the
    /// error that follows from it.
    pub(super) fn first_failure(&self) -> Option<String> {
        let (missing, damage) = (locked(&self.missing).clone(), self.damage());
        missing.or(damage).or_else(|| self.failure())
    }

    /// Reports whether the stream holds more than video.
    pub(super) fn has_other(&self) -> bool {
        locked(&self.other).is_some()
    }

    /// Returns the flaw of the first image file that was left out.
    pub(super) fn damage(&self) -> Option<String> {
        locked(&self.damage).clone()
    }

    /// Counts frames from now on instead of copying them; see [`Shared::skipped`].
    pub(super) fn count_only(&self) {
        self.count_only.store(true, Ordering::SeqCst);
    }

    /// Returns the number of frames that were counted instead of delivered.
    pub(super) fn skipped(&self) -> u64 {
        self.skipped.load(Ordering::SeqCst)
    }

    /// Handles a message of the pipeline, on any thread.
    pub(super) fn message(&self, message: &gst::Message) {
        let _rig = self.of_rig();
        match message.view() {
            gst::MessageView::Error(error) if message::is_consequence(error) => {
                locked(&self.stopped).get_or_insert_with(|| message::error_text(error));
            }
            gst::MessageView::Error(error) => self.fail(message::error_text(error)),
            gst::MessageView::Warning(warning) => {
                let text = message::readable(warning.error().message(), warning.debug().as_deref());
                if warning.error().matches(gst::StreamError::Decode) && !self.recorded {
                    self.eye.note_broken();
                }
                if self.warned.swap(true, Ordering::SeqCst) {
                    tracing::debug!("GStreamer: {text}");
                } else {
                    tracing::warn!("GStreamer: {text} (further warnings are at level debug)");
                }
            }
            // A recording's decoder is never late, so a dropped frame is one that it cannot decode.
            gst::MessageView::Qos(_)
                if self.recorded && message::is_of_decoder(message) && self.failure().is_none() =>
            {
                self.note_dropped("a picture cannot be decoded");
            }
            gst::MessageView::Element(element) => {
                if let Some(missing) = message::missing_plugin(element) {
                    locked(&self.missing).get_or_insert(missing);
                }
            }
            _ => {}
        }
    }
}

/// Format of the frames, taken from the first one.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Format {
    /// Size of each view.
    pub(super) view: Option<(usize, usize)>,
    /// True if views have colour.
    pub(super) colour: bool,
    /// Smallest grey level of white.
    pub(super) white: u8,
    /// Frames per second, if stated.
    pub(super) rate: Option<f64>,
    /// Width and height of a pixel.
    pub(super) pixel_shape: (i32, i32),
}

/// Returns the end of a pipeline, which sends its frames and then `None`.
pub(super) fn build_appsink(
    sender: Sender<Option<Box<Frame>>>,
    shared: Arc<Shared>,
    mut copier: FrameCopier,
) -> gst_app::AppSink {
    let end = sender.clone();
    let new_sample = move |sink: &gst_app::AppSink| {
        let _rig = shared.of_rig();
        let sample = sink.pull_sample().map_err(|_| gst::FlowError::Eos)?;
        if shared.count_only.load(Ordering::SeqCst) {
            shared.skipped.fetch_add(1, Ordering::SeqCst);
            return Ok(gst::FlowSuccess::Ok);
        }
        match copier.copy(&sample, &shared) {
            Ok(None) => {
                shared.eye.note_broken();
                Ok(gst::FlowSuccess::Ok)
            }
            Ok(Some(picture)) => {
                sender.send(Some(picture)).map_err(|_| gst::FlowError::Flushing)?;
                Ok(gst::FlowSuccess::Ok)
            }
            Err(error) => {
                shared.fail(format!("{error:#}"));
                let _ = sender.send(None);
                Err(gst::FlowError::Error)
            }
        }
    };
    let callbacks = gst_app::AppSinkCallbacks::builder().new_sample(new_sample).eos(move |_| {
        // The send fails if the stream was closed first.
        let _ = end.send(None);
    });
    let sink = gst_app::AppSink::builder()
        .sync(false)
        .max_buffers(2)
        .drop(false)
        .enable_last_sample(false)
        .caps(&plane::readable_caps())
        .build();
    sink.set_callbacks(callbacks.build());
    sink
}

/// Copies frames on the streaming thread.
pub(super) struct FrameCopier {
    /// The stream's name.
    name: String,
    layout: ViewLayout,
    /// Views and projection that the file itself states.
    stated: Stated,
    /// True if the views are exchanged.
    swap: bool,
    keep: Keep,
    tone: Tone,
    caps: Option<(gst::Caps, gst_video::VideoInfo)>,
    format: Arc<Mutex<Format>>,
    taken: u64,
}

impl FrameCopier {
    /// Copies into buffers of the options' `keep` and stores the format of the first frame in
    /// `format`.
    pub(super) fn new(
        name: String,
        layout: ViewLayout,
        options: &GstOptions,
        format: Arc<Mutex<Format>>,
    ) -> Self {
        let (swap, keep, tone) = (options.swap, options.keep.clone(), options.tone);
        let stated = Stated::default();
        Self { name, layout, stated, swap, keep, tone, caps: None, format, taken: 0 }
    }

    /// Compares the layout with the statement of the stream's file.
    pub(super) fn with_statement(self, stated: Stated) -> Self {
        Self { stated, ..self }
    }

    /// Copies a frame; `None` if it is damaged and the stream is live.
    fn copy(
        &mut self,
        sample: &gst::Sample,
        shared: &Shared,
    ) -> anyhow::Result<Option<Box<Frame>>> {
        let live = shared.live.load(Ordering::SeqCst);
        let arrived = Instant::now();
        let buffer = sample.buffer().ok_or_else(|| anyhow!("delivers empty samples"))?;
        let caps = sample.caps().ok_or_else(|| anyhow!("delivers pictures without a format"))?;
        let info = match &self.caps {
            Some((known, info)) if known.as_ptr() == caps.as_ptr() => info.clone(),
            _ => {
                let info = plane::format(caps)?;
                self.caps = Some((caps.to_owned(), info.clone()));
                info
            }
        };
        if live && buffer.flags().contains(gst::BufferFlags::CORRUPTED) {
            return Ok(None);
        }
        let views = match plane::copy_views(buffer, &info, self.layout, &self.keep, self.tone) {
            // The first frame was read, so the format is readable.
            Err(_) if live => return Ok(None),
            views => views?,
        };
        let (Views::One(view) | Views::Both(view, _)) = &views;
        let size = (view.width(), view.height());
        let mut format = locked(&self.format);
        let first = *format.view.get_or_insert(size);
        if self.taken == 0 {
            format.rate = rate(info.fps());
            format.colour = view.chroma().is_some();
            format.white = plane::white(&info);
            format.pixel_shape = (info.par().numer(), info.par().denom());
            // Sources and capture cards may mark the caps alone.
            let is_progressive =
                info.interlace_mode() == gst_video::VideoInterlaceMode::Progressive;
            if buffer.flags().contains(INTERLACED) || !is_progressive {
                tracing::warn!(
                    "{}: its pictures are interlaced: every second row is of another moment, which moves edges \
                     sideways. Take a progressive mode of the camera, or give a pipeline that ends with \
                     \"... ! deinterlace\"",
                    self.name
                );
            }
            for remark in packing::remarks(&info, self.stated, self.layout, self.swap) {
                tracing::warn!("{}: {remark}", self.name);
            }
        }
        if first != size {
            bail!(
                "its pictures change from {}x{} to {}x{}; split it there",
                first.0,
                first.1,
                size.0,
                size.1
            );
        }
        self.taken += 1;
        let pts = buffer.pts();
        let segment = sample.segment().and_then(|s| s.downcast_ref::<gst::ClockTime>());
        let shift = pts.map_or(gst::ClockTime::ZERO, |pts| shared.jumps.shift_at(pts));
        let own = |time: Option<gst::ClockTime>| time.map(|time| time.saturating_sub(shift));
        let times = Times {
            written: own(pts),
            stream: own(segment.and_then(|segment| segment.to_stream_time(pts))),
            running: own(segment.and_then(|segment| segment.to_running_time(pts))),
        };
        let sender = sender_times::stated(buffer);
        Ok(Some(Box::new(Frame { views, times, sender, timestamp: None, arrived })))
    }
}

/// Converts a frame rate. Containers without one state 0, some transport streams 90000.
fn rate(fraction: gst::Fraction) -> Option<f64> {
    let rate = f64::from(fraction.numer()) / f64::from(fraction.denom().max(1));
    (rate > 0.0 && rate <= 1000.0).then_some(rate)
}
