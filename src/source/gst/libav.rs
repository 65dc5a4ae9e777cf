//! FFmpeg's decoders: damage that they hide, and pixel formats that GStreamer cannot name.
//!
//! Decoders conceal what they cannot read and deliver the frame like any other, and all that is ever said
//! of it is a line in GStreamer's debug log (gst-libav 1.22 sets no flag). A pixel format without a name
//! in GStreamer (grey of 9 to 12 bits, RGB48) crashes gst-libav 1.22 where FFmpeg draws into GStreamer's
//! buffers ("direct rendering"), and where a frame comes after the first one was refused.
//!
//! A line of the log names no element, and it comes from threads that FFmpeg has made itself. Threads inherit
//! their timer slack, so the threads that feed a decoder carry a number in theirs: how many nanoseconds
//! it is above the usual one.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, Once, Weak};
use std::thread::{self, ThreadId};

use gstreamer as gst;
use gstreamer::prelude::*;

use super::tap::Shared;
use crate::thread::locked;

/// The usual timer slack in nanoseconds, and how many numbers there are above it.
const USUAL: u64 = 50_000;
const NUMBERS: u64 = 9_999;

/// Text in gst-libav's log line on a pixel format that GStreamer cannot name.
const NAMELESS: &str = "requires a video format unsupported by GStreamer";

/// The streams that are listened for.
static EARS: Mutex<Vec<(u64, Weak<Ear>)>> = Mutex::new(Vec::new());

/// Listener to the log of one stream's decoders.
#[derive(Debug)]
struct Ear {
    shared: Weak<Shared>,
    /// Frames that have gone into a decoder.
    fed: AtomicU64,
    /// Of each thread, where in the stream it last complained.
    complained: Mutex<HashMap<ThreadId, u64>>,
    /// True where a decoder has a pixel format that GStreamer cannot name.
    nameless: AtomicBool,
}

/// Has the frames counted that FFmpeg's decoders in `pipeline` report as damaged, and the stream fail
/// where GStreamer cannot name their pixel format.
pub(super) fn listen(pipeline: &gst::Pipeline, shared: &Arc<Shared>) {
    static LISTEN: Once = Once::new();
    static NEXT: AtomicU64 = AtomicU64::new(0);
    LISTEN.call_once(hear_the_log);
    let number = 1 + NEXT.fetch_add(1, Ordering::Relaxed) % NUMBERS;
    let ear = Arc::new(Ear {
        shared: Arc::downgrade(shared),
        fed: AtomicU64::new(0),
        complained: Mutex::default(),
        nameless: AtomicBool::new(false),
    });
    let mut ears = locked(&EARS);
    ears.retain(|(taken, ear)| *taken != number && ear.strong_count() > 0);
    ears.push((number, Arc::downgrade(&ear)));
    drop(ears);
    pipeline.connect_deep_element_added(move |_, _, element| {
        let is_libav = element.factory().is_some_and(|factory| {
            factory.plugin_name().as_deref() == Some("libav")
                && factory.metadata("klass").is_some_and(|class| class.contains("Decoder"))
        });
        let Some(pad) = element.static_pad("sink").filter(|_| is_libav) else { return };
        // Copying the frames instead costs no time that could be measured (FFV1 at 720p, H.264 at 1080p).
        if element.has_property("direct-rendering") {
            element.set_property("direct-rendering", false);
        }
        let ear = ear.clone();
        let kinds = gst::PadProbeType::BUFFER | gst::PadProbeType::EVENT_DOWNSTREAM;
        // The decoder opens, and makes its threads, when it hears of the format.
        pad.add_probe(kinds, move |_, info| {
            mark(number);
            if ear.nameless.load(Ordering::SeqCst) {
                return gst::PadProbeReturn::Drop;
            }
            if info.buffer().is_some() {
                ear.fed.fetch_add(1, Ordering::Relaxed);
            }
            gst::PadProbeReturn::Ok
        });
    });
}

/// Has GStreamer's log pass by here; it prints only what GST_DEBUG asks for.
fn hear_the_log() {
    if std::env::var_os("GST_DEBUG").is_none() {
        gst::log::remove_default_log_function();
    }
    gst::log::add_log_function(|category, level, _, _, _, _, message| {
        if level == gst::DebugLevel::Error
            && category.name() == "libav"
            && let Some(ear) = marked().and_then(ear)
        {
            ear.complaint(message.get().as_deref().unwrap_or_default());
        }
    });
    gst::log::set_threshold_for_name("libav", gst::DebugLevel::Error);
    gst::log::set_active(true);
}

fn ear(number: u64) -> Option<Arc<Ear>> {
    locked(&EARS).iter().find(|(known, _)| *known == number)?.1.upgrade()
}

impl Ear {
    /// Counts a frame, however many lines there are of it.
    fn complaint(&self, text: &str) {
        if text.contains(NAMELESS) {
            self.nameless.store(true, Ordering::SeqCst);
            if let Some(shared) = self.shared.upgrade() {
                shared.fail(nameless());
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

/// Why a stream is not read whose pixel format GStreamer cannot name, and the cure.
fn nameless() -> String {
    format!(
        "{} has no name for its pixel format, so it cannot be decoded; convert it, which keeps up to 16 bits of \
         grey: ffmpeg -i INPUT -pix_fmt gray16le -c:v ffv1 OUTPUT.mkv (numbered pictures: -i left%04d.tif \
         -pix_fmt gray16le left%04d.png)",
        gst::version_string()
    )
}

/// Marks the calling thread, and those that it will make.
#[cfg(target_os = "linux")]
fn mark(number: u64) {
    // SAFETY: prctl with PR_SET_TIMERSLACK takes one number and touches no memory.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, (USUAL + number) as libc::c_ulong) };
}

/// The number with which the calling thread is marked.
#[cfg(target_os = "linux")]
fn marked() -> Option<u64> {
    // SAFETY: prctl with PR_GET_TIMERSLACK takes nothing and touches no memory.
    let slack = unsafe { libc::prctl(libc::PR_GET_TIMERSLACK) };
    let number = u64::try_from(slack).ok()?.checked_sub(USUAL)?;
    (1..=NUMBERS).contains(&number).then_some(number)
}

#[cfg(not(target_os = "linux"))]
fn mark(_number: u64) {}

/// Elsewhere nothing is known of threads: what FFmpeg says counts for the stream that was opened last.
#[cfg(not(target_os = "linux"))]
fn marked() -> Option<u64> {
    locked(&EARS).last().map(|(number, _)| *number)
}
