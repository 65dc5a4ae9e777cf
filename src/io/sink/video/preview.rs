//! The preview: disparity in colours, or the left image, H.264 in MP4, for any player.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use anyhow::{Context, Result, bail, ensure};
use gstreamer as gst;
use gstreamer::prelude::*;

use super::feed::{Feed, FeedState, Flow, require};
use super::tags::of_labels;
use super::times::{Clock, fraction, frame_duration, raw_caps};
use super::view::{Painter, VideoView};
use crate::labels::Labels;
use crate::sink::colouring::LiveColouring;
use crate::sink::segments::Place;
use crate::sink::{Sink, StreamInfo};
use stereod_core::files;
use stereod_core::files::new_file::NewFile;
use stereod_core::frame::Matched;
use stereod_core::pool::Pool;
use stereod_core::thread::{self, locked};

/// Smallest side of the encoder ...
const SMALLEST_SIDE: usize = 16;

/// ... and largest one.
const LARGEST_SIDE: usize = 16384;

/// Writes a coloured video: H.264 High profile, 4:2:0, limited-range BT.709, in MP4.
///
/// Sides of odd length, and those below 16 pixels, are extended by repeating the last column or row. During
/// the run the file is a fragmented MP4 with fragments of one second, playable up to the last one if the
/// program is killed. [`finish`](Sink::finish) turns it into an ordinary MP4 with one index for every player
/// and editor, before the frames. The first fragment replaces an earlier file.
pub struct Preview {
    name: String,
    path: PathBuf,
    size: (usize, usize),
    view: VideoView,
    legend: bool,
    painter: Painter,
    clock: Clock,
    duration: Duration,
    pool: Pool<u8>,
    feed: Feed,
    muxer: gst::Element,
    labels: Labels,
    /// File that the pipeline writes to; closed after it has stopped.
    file: Arc<Mutex<NewFile>>,
    taken: u64,
    _taken_name: Option<TakenName>,
}

/// The name of a new file, removed if nothing was written.
struct TakenName(PathBuf);

impl Drop for TakenName {
    fn drop(&mut self) {
        if fs::metadata(&self.0).is_ok_and(|about| about.len() == 0) {
            let _ = fs::remove_file(&self.0);
        }
    }
}

pub fn check_preview_name(path: &Path) -> Result<()> {
    ensure!(
        files::extension(path) == "mp4",
        "cannot write the preview {}: previews are MP4 files; name it .mp4",
        path.display()
    );
    Ok(())
}

fn pad_side(side: usize) -> usize {
    side.next_multiple_of(2).max(SMALLEST_SIDE)
}

fn checked_size(path: &Path, stream: &StreamInfo, view: VideoView) -> Result<(usize, usize)> {
    check_preview_name(path)?;
    let (width, height) = (view.width(stream.size.0), stream.size.1);
    ensure!(width > 0 && height > 0, "a preview has at least one pixel");
    ensure!(
        width.max(height) <= LARGEST_SIDE,
        "cannot write the preview {}: it would be {width}x{height}, and the encoder takes at most \
         {LARGEST_SIDE} pixels a side; use --preview-view disparity or smaller pictures, or leave it out",
        path.display()
    );
    Ok((width, height))
}

impl Preview {
    /// Creates the file and starts the encoder with this quantizer, 0 (no loss) to 51; the colours of
    /// disparity follow `colouring`. In segments it is the next one, of any length.
    pub fn create(
        place: impl Into<Place>,
        stream: &StreamInfo,
        view: VideoView,
        colouring: LiveColouring,
        quality: u32,
    ) -> Result<Self> {
        let place = place.into();
        let size = checked_size(place.path(), stream, view)?;
        let needed = ["appsrc", "videoconvert", "x264enc|openh264enc", "mp4mux", "fdsink"];
        require(&needed, "a preview")?;
        let taken_name = match place.segments()? {
            Some(mut segments) => Some(TakenName(segments.open(SystemTime::now())?.1)),
            None => None,
        };
        let path = taken_name.as_ref().map_or(place.path(), |TakenName(path)| path).to_path_buf();
        let file = NewFile::create(&path)?;
        ensure!(
            file.seeks(),
            "cannot write the preview {}: it is a pipe, and an MP4 file is completed by going back \
             in it; name a file, or send live pictures with --stream",
            path.display()
        );

        let rate = fraction(stream.rate);
        let caps = raw_caps("RGBx", (pad_side(size.0), pad_side(size.1)), rate)?
            .field("colorimetry", "sRGB")
            .build();
        let (muxer, elements) = elements(&file, stream.rate, quality)?;
        let elements: Vec<&gst::Element> = elements.iter().collect();
        let (file, progress) = (Arc::new(Mutex::new(file)), Arc::new(FeedState::default()));
        let writer = elements.last().and_then(|element| element.static_pad("sink"));
        name_with_first_fragment(
            &writer.context("a sink has an input")?,
            file.clone(),
            progress.clone(),
        );
        let feed = Feed::start(&caps, &elements, progress, Flow::File(&path))?;
        Ok(Self {
            name: format!("preview {}", path.display()),
            path,
            size,
            view,
            legend: false,
            painter: Painter::new(stream, colouring),
            clock: Clock::new(stream.rate),
            // Without a duration, players would not show the last frame.
            duration: frame_duration(rate).unwrap_or(Duration::from_millis(40)),
            pool: Pool::new(),
            feed,
            muxer,
            labels: stream.labels,
            file,
            taken: 0,
            _taken_name: taken_name,
        })
    }

    pub fn with_legend(self, legend: bool) -> Self {
        Self { legend, ..self }
    }

    /// Names also a video without a complete fragment, and flushes it to the disk.
    fn complete(&self) -> Result<()> {
        let mut file = locked(&self.file);
        if self.taken == 0 {
            tracing::warn!("no frame came: {} was not written", self.path.display());
            return Ok(());
        }
        let on_disk = file.file().metadata().is_ok_and(|about| about.is_file());
        let kept = file.put_in_place();
        let kept = kept.and_then(|()| if on_disk { file.file().sync_data() } else { Ok(()) });
        kept.map_err(|error| files::explain(&self.path, &error))?;
        if on_disk && let Err(error) = move_index(&self.path) {
            // The video is whole all the same.
            tracing::info!("{}: its index stays at the end: {error:#}", self.path.display());
        }
        Ok(())
    }

    /// Notes the number and time code of the first frame, as far as the source has them.
    fn tag(&self, first: Duration) {
        let labels = of_labels(&self.labels, first).map(|(name, value)| format!("{name}={value}"));
        let comment = labels.collect::<Vec<_>>().join(";");
        if let Some(tags) =
            self.muxer.dynamic_cast_ref::<gst::TagSetter>().filter(|_| !comment.is_empty())
        {
            tags.add_tag::<gst::tags::Comment>(&comment.as_str(), gst::TagMergeMode::Replace);
        }
    }

    fn show(&mut self, frame: &Arc<Matched>) -> Result<()> {
        let (width, height) = self.size;
        let followed = self.painter.follow(frame);
        followed.with_context(|| format!("cannot write the preview {}", self.path.display()))?;
        let stride = pad_side(width) * 4;
        let mut picture = self.pool.take(stride * pad_side(height));
        self.painter.paint(self.view, frame, &mut picture, stride);
        if self.legend {
            self.painter.paint_legend(self.view, &mut picture, stride);
        }
        repeat_edges(&mut picture, width, height, stride);
        if self.taken == 0 {
            self.tag(frame.pair.timestamp);
        }
        let time = self.clock.time(frame.pair.timestamp);
        self.feed.push(0, picture, time, Some(self.duration))
    }
}

/// Fills the area right of `width` and below `height` with the last column and row.
fn repeat_edges(picture: &mut [u8], width: usize, height: usize, stride: usize) {
    for row in picture.chunks_exact_mut(stride).take(height) {
        let (inside, outside) = row.split_at_mut(width * 4);
        for pixel in outside.chunks_exact_mut(4) {
            pixel.copy_from_slice(&inside[inside.len() - 4..]);
        }
    }
    let (inside, outside) = picture.split_at_mut(height * stride);
    for row in outside.chunks_exact_mut(stride) {
        row.copy_from_slice(&inside[inside.len() - stride..]);
    }
}

impl Sink for Preview {
    fn name(&self) -> &str {
        &self.name
    }

    fn consume(&mut self, frame: &Arc<Matched>) -> Result<()> {
        self.show(frame)?;
        self.taken += 1;
        Ok(())
    }

    fn finish(&mut self) -> Result<()> {
        self.feed.finish(None).and_then(|()| self.complete())
    }
}

/// Names the file once it is playable: when data follows the header of the first fragment. `writer`
/// is the input pad of the file's sink.
fn name_with_first_fragment(
    writer: &gst::Pad,
    file: Arc<Mutex<NewFile>>,
    progress: Arc<FeedState>,
) {
    let has_fragment = AtomicBool::new(false);
    writer.add_probe(gst::PadProbeType::BUFFER, move |_, info| {
        // All data before this was written.
        if has_fragment.load(Ordering::Relaxed) {
            let mut file = locked(&file);
            if let Err(error) = file.put_in_place() {
                progress.fail(format!("{:#}", files::explain(file.path(), &error)));
            }
            return gst::PadProbeReturn::Remove;
        }
        let data = info.buffer().and_then(|buffer| buffer.map_readable().ok());
        let is_fragment = data.is_some_and(|data| data.get(4..8) == Some(b"moof"));
        has_fragment.store(is_fragment, Ordering::Relaxed);
        gst::PadProbeReturn::Ok
    });
}

/// Returns the muxer, and all elements in their order.
fn elements(
    file: &NewFile,
    rate: Option<f64>,
    quality: u32,
) -> Result<(gst::Element, Vec<gst::Element>)> {
    let make = gst::ElementFactory::make;
    let filter = |caps: gst::Caps| make("capsfilter").property("caps", caps).build();
    // Players support only 4:2:0; BT.709 is stated in the stream, so that they need not guess.
    let planar = gst::Caps::builder("video/x-raw")
        .field("format", "I420")
        .field("colorimetry", "bt709")
        .build();
    let profile = gst::Caps::builder("video/x-h264").field("profile", "high").build();
    // Constant quality; a preset that is cheap compared with matching; a key frame every two
    // seconds. Without B-frames the first frame is at 0 without an edit list, which some players
    // ignore, and irregular times survive.
    let interval = rate.filter(|rate| (1.0..=1000.0).contains(rate)).unwrap_or(30.0) * 2.0;
    let encoders = if gst::ElementFactory::find("x264enc").is_some() {
        let encoder = make("x264enc")
            .property_from_str("pass", "qual")
            .property("quantizer", quality)
            .property_from_str("speed-preset", "veryfast")
            .property("key-int-max", interval as u32)
            .property("bframes", 0u32);
        vec![encoder.build()?, filter(profile)?]
    } else {
        // It is not under the GPL, and takes 0 for "any".
        let quantizer = quality.max(1);
        let encoder = make("openh264enc").property("qp-min", quantizer);
        let encoder = encoder.property("qp-max", quantizer).property("gop-size", interval as u32);
        // Its byte stream becomes packets.
        vec![encoder.build()?, filter(profile)?, make("h264parse").build()?]
    };
    let muxer = make("mp4mux")
        .property("fragment-duration", 1000u32)
        .property_from_str("fragment-mode", "first-moov-then-finalise")
        // Represents the usual rates exactly, and any time to 11 microseconds.
        .property("trak-timescale", 90_000u32)
        .build()?;
    let file =
        make("fdsink").property("fd", number(file.file())?).property("async", false).build()?;
    // At 1920x1080 one thread converts 60 frames a second and has no time left for the encoder's own part.
    let converter = make("videoconvert").property("n-threads", 4u32).build()?;
    let queue = make("queue").property("max-size-buffers", 2u32).property("max-size-bytes", 0u32);
    let queue = queue.property("max-size-time", 0u64).build()?;
    let mut elements = vec![converter, filter(planar)?, queue];
    elements.extend(encoders);
    elements.extend([muxer.clone(), file]);
    Ok((muxer, elements))
}

/// Returns the number by which GStreamer writes into a file that is open already.
#[cfg(unix)]
fn number(file: &File) -> Result<i32> {
    Ok(std::os::fd::AsRawFd::as_raw_fd(file))
}

#[cfg(not(unix))]
fn number(_: &File) -> Result<i32> {
    bail!("previews are not written on Windows; record with --record, or use WSL 2")
}

/// Largest file in bytes that is copied for it.
const LARGEST: u64 = 1 << 30;

const PATIENCE: gst::ClockTime = gst::ClockTime::from_seconds(20);

/// Threads that the copy may start.
const SPARE_THREADS: usize = 6;

/// The copy; the muxer first writes the frames into a file of their own.
const PIPELINE: &str = "filesrc name=from ! qtdemux ! mp4mux name=mux faststart=true \
                        trak-timescale=90000 ! fdsink name=to sync=false async=false";

/// Moves the index of a finished video before its frames, so that a browser can start before it has the whole file.
/// The video is copied without re-encoding, and replaced. Files larger than 1 GiB stay unchanged.
fn move_index(path: &Path) -> Result<()> {
    let file = File::open(path)?;
    if file.metadata()?.len() > LARGEST {
        return Ok(());
    }
    require(&["filesrc", "qtdemux", "mp4mux", "fdsink"], "a preview's index")?;
    // The second one is never named, and goes with its owner.
    let (mut moved, frames) = (NewFile::create(path)?, NewFile::create(path)?);
    let pipeline = gst::parse::launch(PIPELINE)?;
    let pipeline = pipeline.downcast::<gst::Pipeline>().ok().context("no pipeline")?;
    let set = |element: &str, property: &str, value: gst::glib::Value| -> Result<()> {
        let element = pipeline.by_name(element).context("an element is missing")?;
        element.set_property_from_value(property, &value);
        Ok(())
    };
    // Names need not be UTF-8; open files have one that is.
    let name = |file: &File| anyhow::Ok(format!("/proc/self/fd/{}", number(file)?).to_value());
    set("from", "location", name(&file)?)?;
    set("mux", "faststart-file", name(frames.file())?)?;
    set("to", "fd", number(moved.file())?.to_value())?;
    let bus = pipeline.bus().context("a pipeline has a bus")?;
    let ends = [gst::MessageType::Eos, gst::MessageType::Error];
    thread::require_spare(SPARE_THREADS)?;
    let end = match pipeline.set_state(gst::State::Playing) {
        Ok(_) => bus.timed_pop_filtered(PATIENCE, &ends),
        Err(error) => bail!("the copy cannot start: {error}"),
    };
    let stopped = pipeline.set_state(gst::State::Null);
    let end = end.context("the copy took too long")?;
    if let gst::MessageView::Error(error) = end.view() {
        bail!("the copy failed: {}", error.error());
    }
    ensure!(stopped.is_ok(), "the copy cannot end");
    Ok(moved.put_in_place()?)
}
