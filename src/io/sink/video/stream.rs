//! The live stream: raw images into a user's fragment of a GStreamer pipeline.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use gstreamer as gst;
use gstreamer::prelude::*;

use super::feed::{Feed, FeedState, Flow, package_of, require};
use super::tags;
use super::times::{Clock, fraction, raw_caps};
use super::view::{Painter, VideoView};
use crate::gst::start;
use crate::plugins::install;
use crate::sink::colouring::LiveColouring;
use crate::sink::{Losses, Sink, StreamInfo};
use stereod_core::frame::Matched;
use stereod_core::picture::numbers::{Numbers, Quantity};
use stereod_core::pool::Pool;

/// Timeout of the receiver for the remaining frames at the end.
const CLOSING: Duration = Duration::from_secs(2);

#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StreamPicture {
    /// The disparity in colours: RGBx.
    #[default]
    Disparity,
    /// The rectified left image: RGBx if the source has colour, else GRAY8.
    Left,
    /// The left image, and right of it the disparity in colours: RGBx of twice the width.
    SideBySide,
    /// The 16-bit numbers of a recording: GRAY16_LE.
    Numbers,
}

impl StreamPicture {
    /// Returns the painted view; `None` for numbers.
    fn view(self) -> Option<VideoView> {
        match self {
            Self::Disparity => Some(VideoView::Disparity),
            Self::Left => Some(VideoView::Left),
            Self::SideBySide => Some(VideoView::SideBySide),
            Self::Numbers => None,
        }
    }

    pub fn shows_left(self) -> bool {
        self.view().is_some_and(VideoView::shows_left)
    }
}

#[derive(Clone, Debug)]
pub struct StreamOptions {
    /// Elements for the raw images, in the syntax of gst-launch-1.0.
    pub fragment: String,
    pub picture: StreamPicture,
    pub quantity: Quantity,
    pub colouring: LiveColouring,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FragmentError {
    #[error("{0}")]
    Wrong(String),
    /// This machine lacks an element.
    #[error("{0}")]
    Missing(String),
}

/// Sends images to the receiver of the fragment. They carry the time of matching, not of capture,
/// because a downstream element that syncs to the clock would otherwise be late.
///
/// Numbers are for programs. They carry the time of capture, from 0 at the first frame, and tags as a recording has
/// them, which tell the first frame's capture time, the unit and the cameras. Sinks send them as they come.
///
/// A slow or absent receiver costs only frames of this sink, which are counted. A receiver that
/// disconnects with an error fails the sink.
pub struct StreamSink {
    name: String,
    stream: StreamInfo,
    picture: StreamPicture,
    painter: Painter,
    numbers: Numbers,
    quantity: Quantity,
    /// Times of numbers.
    times: Clock,
    bytes: Pool<u8>,
    words: Pool<u16>,
    feed: Feed,
    /// Number of frames dropped because the fragment had no room.
    busy: u64,
}

impl StreamSink {
    pub fn start(stream: &StreamInfo, options: &StreamOptions) -> Result<Self> {
        require(&["appsrc"], "a stream")?;
        let fragment = parse(&options.fragment)?;
        let numbers = Numbers::new(options.quantity, stream.range, stream.geometry.as_ref())?;
        let (width, height) = stream.size;
        let name = name_of(&fragment);
        let (format, width) = match (options.picture, options.picture.view()) {
            (StreamPicture::Left, _) if !stream.has_colour => ("GRAY8", width),
            (_, Some(view)) => ("RGBx", view.width(width)),
            (_, None) => ("GRAY16_LE", width),
        };
        let caps = raw_caps(format, (width, height), fraction(stream.rate))?
            .field("pixel-aspect-ratio", gst::Fraction::new(1, 1))
            .build();
        let progress = Arc::new(FeedState::default());
        let has_times = options.picture == StreamPicture::Numbers;
        if has_times {
            do_not_sync(&fragment);
        }
        let flow = Flow::Live { has_times };
        let feed = Feed::start(&caps, &[fragment.upcast_ref()], progress, flow)?;
        Ok(Self {
            name,
            stream: *stream,
            picture: options.picture,
            painter: Painter::new(stream, options.colouring.clone()),
            numbers,
            quantity: options.quantity,
            times: Clock::new(stream.rate),
            bytes: Pool::new(),
            words: Pool::new(),
            feed,
            busy: 0,
        })
    }

    /// Sends a frame. Returns false if there was no room.
    fn show(&mut self, frame: &Arc<Matched>) -> Result<bool> {
        self.painter.follow(frame)?;
        let (width, height) = self.stream.size;
        match (self.picture, self.picture.view()) {
            (StreamPicture::Left, _) if !self.stream.has_colour => {
                let stride = width.next_multiple_of(4);
                let mut picture = self.bytes.take(stride * height);
                for (y, row) in picture.chunks_exact_mut(stride).enumerate() {
                    row[..width].copy_from_slice(frame.pair.left.row(y));
                    row[width..].fill(0);
                }
                self.feed.push_now(picture, None)
            }
            (_, Some(view)) => {
                let stride = view.width(width) * 4;
                let mut picture = self.bytes.take(stride * height);
                self.painter.paint(view, frame, &mut picture, stride);
                self.feed.push_now(picture, None)
            }
            (_, None) => self.show_numbers(frame),
        }
    }

    fn show_numbers(&mut self, frame: &Matched) -> Result<bool> {
        let (width, height) = self.stream.size;
        let captured = frame.pair.timestamp;
        if self.times.first.is_none() {
            let tags = tags::of_recording(&self.stream, self.quantity, captured);
            self.feed.tell(gst::event::Tag::new(tags::for_muxers(&tags)))?;
        }
        let time = self.times.time(captured);
        let stride = width.next_multiple_of(2);
        let mut picture = self.words.take(stride * height);
        let values = frame.disparity.values().chunks_exact(width);
        for (row, values) in picture.chunks_exact_mut(stride).zip(values) {
            self.numbers.encode(values, &mut row[..width]);
            row[..width].iter_mut().for_each(|number| *number = number.to_le());
            row[width..].fill(0);
        }
        self.feed.push_now(picture, Some(time))
    }
}

impl Sink for StreamSink {
    fn name(&self) -> &str {
        &self.name
    }

    fn consume(&mut self, frame: &Arc<Matched>) -> Result<()> {
        let taken = self.show(frame)?;
        self.busy += u64::from(!taken);
        Ok(())
    }

    fn losses(&self) -> Losses {
        Losses { busy: self.busy, ..Losses::default() }
    }

    fn finish(&mut self) -> Result<()> {
        self.feed.finish(Some(CLOSING))
    }
}

pub fn check_fragment(text: &str) -> Result<String, FragmentError> {
    start().map_err(|error| FragmentError::Missing(format!("{error:#}")))?;
    parse(text).map(|fragment| name_of(&fragment))
}

fn parse(text: &str) -> Result<gst::Bin, FragmentError> {
    // A leading "!" is the link to the source of the images.
    let text = text.trim().trim_start_matches(['!', ' ']);
    let wrong = |why: &str| FragmentError::Wrong(format!("\"{text}\" {why}"));
    let built = gst::parse::bin_from_description_full(
        // The syntax allows caps only between two elements.
        &format!("identity name=stereod-pictures ! {text}"),
        false,
        None,
        gst::ParseFlags::FATAL_ERRORS,
    );
    let bin = built.map_err(|error| match error.kind::<gst::ParseError>() {
        Some(gst::ParseError::NoSuchElement) => {
            let message = error.message();
            // GStreamer says: no element "srtsink".
            let element = message.split('"').nth(1).unwrap_or_default();
            let cure = match package_of(element) {
                Some(package) => install(package),
                None => format!(
                    "check its name, or install its plug-in (`gst-inspect-1.0 {element}` shows \
                     whether it is there)"
                ),
            };
            FragmentError::Missing(format!("\"{text}\" cannot be built: {message}; {cure}"))
        }
        _ => wrong(&format!(
            "cannot be built: {}; it is what `gst-launch-1.0 videotestsrc ! ...` \
             takes after the first \"!\"",
            error.message()
        )),
    })?;
    let bin = bin.downcast::<gst::Bin>().map_err(|_| wrong("is not a chain of elements"))?;
    let entrance = bin.by_name("stereod-pictures").ok_or_else(|| wrong("has no beginning"))?;
    let pad = entrance.static_pad("sink").ok_or_else(|| wrong("has no beginning"))?;
    let open = |child: &gst::Element| child.src_pads().iter().any(|pad| !pad.is_linked());
    if bin.children().iter().any(open) {
        return Err(wrong(
            "has an open end: end it with a sink, such as udpsink, srtsink, shmsink or \
             rtspclientsink",
        ));
    }
    let ghost = gst::GhostPad::with_target(&pad).map_err(|error| wrong(&error.to_string()))?;
    bin.add_pad(&ghost).map_err(|error| wrong(&error.to_string()))?;
    Ok(bin)
}

/// Lets the sinks send frames as they come. Capture times are late for a sink that syncs to the clock.
fn do_not_sync(fragment: &gst::Bin) {
    for sink in fragment.iterate_sinks().into_iter().flatten() {
        if sink.find_property("sync").is_some_and(|sync| sync.value_type() == bool::static_type()) {
            sink.set_property("sync", false);
        }
    }
}

/// Returns "stream to" and the kind of the element at the end, without properties: those may hold passwords.
fn name_of(fragment: &gst::Bin) -> String {
    let sinks = fragment.iterate_sinks().into_iter().flatten();
    let names: Vec<_> = sinks.filter_map(|sink| Some(sink.factory()?.name().to_string())).collect();
    format!("stream to {}", names.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wrong_with_a_fragment_is_told_with_the_cure() {
        for good in [
            "fakesink",
            "! videoconvert ! fakesink",
            "video/x-raw,width=8 ! fakesink",
            "tee name=t ! queue ! fakesink t. ! queue ! fakesink",
        ] {
            check_fragment(good).unwrap_or_else(|error| panic!("{good}: {error}"));
        }
        for (wrong, words) in [
            ("videoconvert", "end it with a sink"),
            ("videoconvert ! ! fakesink", "cannot be built"),
            ("fakesink no-such-property=1", "no-such-property"),
            ("videotestsrc ! fakesink", "cannot be built"),
            ("", "cannot be built"),
        ] {
            match check_fragment(wrong) {
                Err(FragmentError::Wrong(message)) => {
                    assert!(message.contains(words), "{wrong}: {message}");
                }
                other => panic!("{wrong}: {other:?}"),
            }
        }
        match check_fragment("videoconvert ! no_such_sink host=here") {
            Err(FragmentError::Missing(message)) => {
                assert!(message.contains("gst-inspect-1.0 no_such_sink"), "{message}");
            }
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn names_hold_no_secrets() {
        let name = check_fragment("videoconvert ! filesink location=/secret").unwrap();
        assert_eq!(name, "stream to filesink");
    }
}
