//! The GStreamer elements of video outputs, and a pipeline that is fed frame by frame: bounded, without drops,
//! and without waiting for a failed pipeline. It has one or several parallel chains of elements.

use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail};
use gstreamer as gst;
use gstreamer::prelude::*;
use gstreamer_app::AppSrc;

use crate::gst::start;
use crate::plugins::install;
use stereod_core::pool::Pooled;
use stereod_core::reading::require_spare_files;
use stereod_core::thread::{self, locked};

/// GStreamer elements that write or send video, by the Debian and Ubuntu package that has them.
const PACKAGES: [(&str, &str); 7] = [
    (
        "gstreamer1.0-plugins-base",
        "appsrc appsink videoconvert videoscale videorate tcpserversink tcpclientsink \
      theoraenc",
    ),
    (
        "gstreamer1.0-plugins-good",
        "mp4mux matroskamux udpsink rtpbin rtph264pay rtph265pay rtpvrawpay rtpjpegpay jpegenc \
      vp8enc vp9enc v4l2sink v4l2h264enc",
    ),
    (
        "gstreamer1.0-plugins-bad",
        "h264parse mpegtsmux srtsink shmsink rtmp2sink openh264enc x265enc nvh264enc",
    ),
    ("gstreamer1.0-plugins-ugly", "x264enc"),
    ("gstreamer1.0-libav", "avenc_ffv1"),
    ("gstreamer1.0-vaapi", "vaapih264enc"),
    ("gstreamer1.0-rtsp", "rtspclientsink"),
];

pub(super) fn package_of(element: &str) -> Option<&'static str> {
    let has = |elements: &str| elements.split(' ').any(|name| name == element);
    PACKAGES.iter().find(|(_, elements)| has(elements)).map(|(package, _)| *package)
}

/// Checks that these elements are there; of "one|other" either will do.
pub(super) fn require(elements: &[&str], purpose: &str) -> Result<()> {
    require_spare_files().with_context(|| format!("{purpose} cannot be set up"))?;
    start()?;
    for element in elements {
        if element.split('|').all(|name| gst::ElementFactory::find(name).is_none()) {
            let element = element.split('|').next().unwrap_or_default();
            let cure = install(package_of(element).unwrap_or("its plug-in"));
            bail!(
                "{purpose} needs the GStreamer element {element}, which is not installed: {cure}"
            );
        }
    }
    Ok(())
}

/// Number of frames that wait for the encoder; the next one blocks the caller.
const QUEUE: usize = 4;

/// Threads of a pipeline of one chain, in addition to its source's.
const SPARE_THREADS: usize = 4;

/// Timeout for room in a live pipeline: longer than any encoder needs, and short enough not to
/// delay the end of a run.
const LIVE_PATIENCE: Duration = Duration::from_millis(200);

/// A pooled buffer for GStreamer; its memory returns to the pool when the encoder releases it.
pub(super) struct Bytes<T>(pub(super) Pooled<T>);

impl<T: bytemuck::Pod> AsMut<[u8]> for Bytes<T> {
    fn as_mut(&mut self) -> &mut [u8] {
        bytemuck::cast_slice_mut(&mut self.0)
    }
}

/// State shared by the feeding thread and the pipeline's own threads.
#[derive(Debug, Default)]
pub(super) struct FeedState {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    /// Frames that still take room: in the source of a single chain, or without a call of
    /// [`FeedState::leave`].
    queued: usize,
    error: Option<String>,
    ended: bool,
}

impl FeedState {
    fn change(&self, change: impl FnOnce(&mut State)) {
        change(&mut locked(&self.state));
        self.changed.notify_all();
    }

    pub(super) fn fail(&self, error: String) {
        self.change(|state| {
            state.error.get_or_insert(error);
        });
    }

    /// Returns the first error, which is this one if there was none.
    fn failed(&self, error: String) -> anyhow::Error {
        self.fail(error);
        anyhow!(locked(&self.state).error.clone().unwrap_or_default())
    }

    pub(super) fn leave(&self) {
        self.change(|state| state.queued = state.queued.saturating_sub(1));
    }

    /// Waits until `done`, until the pipeline fails, or until the deadline.
    fn wait(
        &self,
        deadline: Option<Instant>,
        done: impl Fn(&State) -> bool,
    ) -> Result<MutexGuard<'_, State>> {
        let mut state = locked(&self.state);
        loop {
            if let Some(error) = &state.error {
                return Err(anyhow!("{error}"));
            }
            if done(&state) {
                return Ok(state);
            }
            let Some(deadline) = deadline else {
                state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
                continue;
            };
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(state);
            }
            let waited = self.changed.wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Flow<'a> {
    File(&'a Path),
    /// To a receiver. Frames without a time of their own get that of their arrival.
    Live {
        has_times: bool,
    },
}

impl Flow<'_> {
    fn is_live(self) -> bool {
        matches!(self, Flow::Live { .. })
    }

    fn lacks_times(self) -> bool {
        matches!(self, Flow::Live { has_times: false })
    }

    fn error_prefix(self) -> String {
        match self {
            Flow::File(path) => format!("cannot write {}", path.display()),
            Flow::Live { .. } => "cannot send pictures".to_owned(),
        }
    }
}

#[derive(Debug)]
pub(super) struct Feed {
    pipeline: gst::Pipeline,
    sources: Vec<AppSrc>,
    progress: Arc<FeedState>,
    room: usize,
}

impl Feed {
    /// Links a source of frames with the given caps to `elements`, one after the other, and starts them.
    pub(super) fn start(
        caps: &gst::Caps,
        elements: &[&gst::Element],
        progress: Arc<FeedState>,
        flow: Flow<'_>,
    ) -> Result<Self> {
        let feed = Self::link(caps, &[elements], progress, flow, QUEUE)?;
        let pad = feed.sources[0].static_pad("src").context("a source has an output")?;
        let leaving = feed.progress.clone();
        pad.add_probe(gst::PadProbeType::BUFFER, move |_, _| {
            leaving.leave();
            gst::PadProbeReturn::Ok
        });
        feed.play(flow)
    }

    /// Starts several parallel chains, each with a source of its own. A frame takes room until the
    /// last element of its chain calls [`FeedState::leave`].
    pub(super) fn start_beside(
        caps: &gst::Caps,
        chains: &[&[&gst::Element]],
        progress: Arc<FeedState>,
        flow: Flow<'_>,
    ) -> Result<Self> {
        // One more frame for the first encoder, and a current and a next one for each of the others.
        let room = QUEUE + 1 + 2 * chains.len().saturating_sub(1);
        Self::link(caps, chains, progress, flow, room)?.play(flow)
    }

    fn link(
        caps: &gst::Caps,
        chains: &[&[&gst::Element]],
        progress: Arc<FeedState>,
        flow: Flow<'_>,
        room: usize,
    ) -> Result<Self> {
        let (pipeline, mut sources) = (gst::Pipeline::new(), Vec::new());
        for elements in chains {
            // The source itself is unlimited, because its limit would drop frames or block despite errors.
            let source = AppSrc::builder().caps(caps).format(gst::Format::Time).max_bytes(0);
            let source = source.is_live(flow.is_live()).do_timestamp(flow.lacks_times()).build();
            let mut chain: Vec<&gst::Element> = vec![source.upcast_ref()];
            chain.extend(*elements);
            pipeline.add_many(&chain)?;
            gst::Element::link_many(&chain).with_context(|| {
                format!("{}: its encoder cannot be set up", flow.error_prefix())
            })?;
            sources.push(source);
        }

        let bus = pipeline.bus().context("a pipeline has a bus")?;
        let heard = progress.clone();
        let begin = flow.error_prefix();
        bus.set_sync_handler(move |_, message| {
            match message.view() {
                gst::MessageView::Error(error) => heard.fail(explain(&begin, error)),
                gst::MessageView::Eos(_) => heard.change(|state| state.ended = true),
                _ => {}
            }
            gst::BusSyncReply::Drop
        });

        Ok(Self { pipeline, sources, progress, room })
    }

    fn play(self, flow: Flow<'_>) -> Result<Self> {
        let threads = self.sources.len() + SPARE_THREADS;
        thread::require_spare(threads).with_context(|| flow.error_prefix())?;
        match self.pipeline.set_state(gst::State::Playing) {
            Ok(_) => Ok(self),
            Err(_) => {
                Err(self.progress.failed(format!("{}: it does not start", flow.error_prefix())))
            }
        }
    }

    /// Waits until there is room for a frame, or until the deadline. Returns false if there is none then.
    fn has_room(&self, deadline: Option<Instant>) -> Result<bool> {
        let has_room = |state: &State| state.queued < self.room;
        Ok(has_room(&*self.progress.wait(deadline, has_room)?))
    }

    pub(super) fn wait_for_room(&self) -> Result<()> {
        self.has_room(None).map(drop)
    }

    /// Gives one frame with the presentation time `time` to the encoder of a chain; waits while there is no
    /// room.
    pub(super) fn push<T: bytemuck::Pod + Send>(
        &self,
        chain: usize,
        frame: Pooled<T>,
        time: Duration,
        duration: Option<Duration>,
    ) -> Result<()> {
        self.push_buffer(chain, buffer(frame, Some(time), duration)?)
    }

    /// Gives one frame to a live pipeline, with its time if it has times. Returns false if there was no room within a
    /// short time.
    pub(super) fn push_now<T: bytemuck::Pod + Send>(
        &self,
        frame: Pooled<T>,
        time: Option<Duration>,
    ) -> Result<bool> {
        if !self.has_room(Some(Instant::now() + LIVE_PATIENCE))? {
            return Ok(false);
        }
        self.push_buffer(0, buffer(frame, time, None)?).map(|()| true)
    }

    /// Sends an event before the next frame.
    pub(super) fn tell(&self, event: gst::Event) -> Result<()> {
        let is_taken = self.sources[0].send_event(event);
        is_taken.then_some(()).ok_or_else(|| self.progress.failed("the encoder stopped".to_owned()))
    }

    fn push_buffer(&self, chain: usize, buffer: gst::Buffer) -> Result<()> {
        self.progress.wait(None, |state| state.queued < self.room)?.queued += 1;
        let pushed = self.sources[chain].push_buffer(buffer);
        pushed
            .map(drop)
            .map_err(|error| self.progress.failed(format!("the encoder stopped: {error}")))
    }

    /// Ends the stream, waits until everything is written, and stops the pipeline. Abandons frames that are still
    /// on the way after the timeout, if there is one.
    pub(super) fn finish(&self, timeout: Option<Duration>) -> Result<()> {
        let deadline = timeout.map(|timeout| Instant::now() + timeout);
        let ended = self.progress.wait(None, |_| true).and_then(|state| {
            drop(state);
            // A source that refuses the end has failed; the wait returns the reason.
            for source in &self.sources {
                if let Err(error) = source.end_of_stream() {
                    self.progress.fail(format!("the encoder stopped: {error}"));
                }
            }
            self.progress.wait(deadline, |state| state.ended).map(drop)
        });
        self.stop();
        ended
    }

    fn stop(&self) {
        // An error of stopping a pipeline has no remedy.
        let _ = self.pipeline.set_state(gst::State::Null);
    }
}

impl Drop for Feed {
    fn drop(&mut self) {
        self.stop();
    }
}

fn buffer<T: bytemuck::Pod + Send>(
    frame: Pooled<T>,
    time: Option<Duration>,
    duration: Option<Duration>,
) -> Result<gst::Buffer> {
    let clock = |time: Duration| gst::ClockTime::try_from(time).ok();
    let mut buffer = gst::Buffer::from_mut_slice(Bytes(frame));
    let fresh = buffer.get_mut().context("a new buffer has one owner")?;
    fresh.set_pts(time.and_then(clock));
    fresh.set_duration(duration.and_then(clock));
    Ok(buffer)
}

fn explain(begin: &str, message: &gst::message::Error) -> String {
    let error = message.error();
    if error.matches(gst::ResourceError::NoSpaceLeft) {
        return format!("{begin}: the disk is full; make room or write to another disk");
    }
    // The last line of the details holds the system's error.
    let details = message.debug().unwrap_or_default();
    let details = details.lines().last().unwrap_or_default();
    format!("{begin}: {} ({details})", error.message())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_element_is_named_with_its_package() {
        require(&["appsrc", "avenc_ffv1"], "recording").unwrap();
        let error = require(&["no_such_encoder"], "recording").unwrap_err().to_string();
        assert!(error.contains("recording needs") && error.contains("no_such_encoder"), "{error}");
    }
}
