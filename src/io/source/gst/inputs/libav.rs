//! Workarounds for FFmpeg's decoders: concealed damage, and pixel formats without a GStreamer name.
//!
//! A decoder conceals unreadable data and delivers the frame like any other. Only a line in
//! GStreamer's debug log reports it, because gst-libav 1.22 never sets `GST_BUFFER_FLAG_CORRUPTED`
//! for it: in 25 copies of an H.264 file with two flipped bits each, the log has lines for 21, and
//! the flag is set in none; in 25 copies of an H.265 file the log has lines for 10, the flag again
//! in none.
//!
//! A pixel format without a name in GStreamer (grey of 9 to 12 bits, RGB48) crashes gst-libav 1.22
//! if FFmpeg draws into GStreamer's buffers ("direct rendering"), and if a frame follows the first
//! refused one.
//!
//! A log line names no element, and it comes from threads that FFmpeg has made. Threads inherit
//! their timer slack, so the threads that feed a decoder carry their stream's number in it:
//! nanoseconds above the usual slack.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, Once, Weak};
use std::thread::{self, ThreadId};

use gstreamer as gst;
use gstreamer::prelude::*;

use crate::source::gst::appsink::Shared;
use stereod_core::thread::locked;

/// The usual timer slack in nanoseconds, and the number of marks above it.
#[cfg(target_os = "linux")]
const USUAL: u64 = 50_000;
const NUMBERS: u64 = 9_999;

/// Text in gst-libav's log line on a pixel format that GStreamer cannot name.
const NAMELESS: &str = "requires a video format unsupported by GStreamer";

/// Listeners by the number of their stream.
static LISTENERS: Mutex<Vec<(u64, Weak<Listener>)>> = Mutex::new(Vec::new());

/// Counts the complaints of one stream's decoders in the log.
#[derive(Debug)]
struct Listener {
    shared: Weak<Shared>,
    /// Frames that have gone into a decoder.
    fed: AtomicU64,
    /// Value of `fed` at the last complaint of each thread.
    complained: Mutex<HashMap<ThreadId, u64>>,
    /// True if a decoder has a pixel format that GStreamer cannot name.
    is_nameless: AtomicBool,
}

/// Counts the frames that FFmpeg's decoders in `pipeline` report as damaged, and fails the stream
/// if GStreamer cannot name their pixel format.
pub(in crate::source::gst) fn listen(pipeline: &gst::Pipeline, shared: &Arc<Shared>) {
    static LISTEN: Once = Once::new();
    static NEXT: AtomicU64 = AtomicU64::new(0);
    LISTEN.call_once(tap_log);
    let number = 1 + NEXT.fetch_add(1, Ordering::Relaxed) % NUMBERS;
    let listener = Arc::new(Listener {
        shared: Arc::downgrade(shared),
        fed: AtomicU64::new(0),
        complained: Mutex::default(),
        is_nameless: AtomicBool::new(false),
    });
    let mut listeners = locked(&LISTENERS);
    listeners.retain(|(taken, known)| *taken != number && known.strong_count() > 0);
    listeners.push((number, Arc::downgrade(&listener)));
    drop(listeners);
    pipeline.connect_deep_element_added(move |_, _, element| {
        let is_libav = element.factory().is_some_and(|factory| {
            factory.plugin_name().as_deref() == Some("libav")
                && factory.metadata("klass").is_some_and(|class| class.contains("Decoder"))
        });
        let Some(pad) = element.static_pad("sink").filter(|_| is_libav) else { return };
        // Copying the frames instead costs no time that could be measured (FFV1 at 720p, H.264 at
        // 1080p).
        if element.has_property("direct-rendering") {
            element.set_property("direct-rendering", false);
        }
        let listener = listener.clone();
        let kinds = gst::PadProbeType::BUFFER | gst::PadProbeType::EVENT_DOWNSTREAM;
        // The decoder opens, and starts its threads, when it receives the caps event.
        pad.add_probe(kinds, move |_, info| {
            mark(number);
            if listener.is_nameless.load(Ordering::SeqCst) {
                return gst::PadProbeReturn::Drop;
            }
            if info.buffer().is_some() {
                listener.fed.fetch_add(1, Ordering::Relaxed);
            }
            gst::PadProbeReturn::Ok
        });
    });
}

/// Subscribes to GStreamer's log. GST_DEBUG still decides which lines are printed.
fn tap_log() {
    if std::env::var_os("GST_DEBUG").is_none() {
        gst::log::remove_default_log_function();
    }
    gst::log::add_log_function(|category, level, _, _, _, _, message| {
        if level == gst::DebugLevel::Error
            && category.name() == "libav"
            && let Some(listener) = mark_of_thread().and_then(find_listener)
        {
            listener.note(message.get().as_deref().unwrap_or_default());
        }
    });
    gst::log::set_threshold_for_name("libav", gst::DebugLevel::Error);
    gst::log::set_active(true);
}

fn find_listener(number: u64) -> Option<Arc<Listener>> {
    locked(&LISTENERS).iter().find(|(known, _)| *known == number)?.1.upgrade()
}

impl Listener {
    /// Counts the damaged frame of a log line, once for all lines of a frame.
    fn note(&self, text: &str) {
        if text.contains(NAMELESS) {
            self.is_nameless.store(true, Ordering::SeqCst);
            if let Some(shared) = self.shared.upgrade() {
                shared.fail(nameless_message());
            }
            return;
        }
        let fed = self.fed.load(Ordering::Relaxed);
        let before = locked(&self.complained).insert(thread::current().id(), fed);
        if before != Some(fed)
            && let Some(shared) = self.shared.upgrade()
        {
            shared.note_concealed(text.trim());
        }
    }
}

/// Returns the error for a stream with a pixel format that GStreamer cannot name, with the fix.
fn nameless_message() -> String {
    format!(
        "{} has no name for its pixel format, so it cannot be decoded; convert it, which keeps up to 16 bits of \
         grey: ffmpeg -i INPUT -pix_fmt gray16le -c:v ffv1 OUTPUT.mkv (numbered pictures: -i left%04d.tif \
         -pix_fmt gray16le left%04d.png)",
        gst::version_string()
    )
}

/// Marks the calling thread and its future children.
#[cfg(target_os = "linux")]
fn mark(number: u64) {
    // SAFETY: prctl with PR_SET_TIMERSLACK takes one number and touches no memory.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, (USUAL + number) as libc::c_ulong) };
}

/// Returns the mark of the calling thread.
#[cfg(target_os = "linux")]
fn mark_of_thread() -> Option<u64> {
    // SAFETY: prctl with PR_GET_TIMERSLACK takes nothing and touches no memory.
    let slack = unsafe { libc::prctl(libc::PR_GET_TIMERSLACK) };
    let number = u64::try_from(slack).ok()?.checked_sub(USUAL)?;
    (1..=NUMBERS).contains(&number).then_some(number)
}

#[cfg(not(target_os = "linux"))]
fn mark(_number: u64) {}

/// Other systems have no such mark, so a log line counts for the stream opened last.
#[cfg(not(target_os = "linux"))]
fn mark_of_thread() -> Option<u64> {
    locked(&LISTENERS).last().map(|(number, _)| *number)
}
