//! Moves the index of a finished MP4 file before its frames, so that a browser can start before it has the
//! whole file.

use std::fs::File;
use std::os::fd::AsRawFd;
use std::path::Path;

use anyhow::{Context, Result, bail, ensure};
use gstreamer as gst;
use gstreamer::prelude::*;

use super::elements::require;
use stereod_core::files::new_file::NewFile;
use stereod_core::thread;

/// Largest file in bytes that is copied for it.
const LARGEST: u64 = 1 << 30;

/// Longest time for the copy.
const PATIENCE: gst::ClockTime = gst::ClockTime::from_seconds(20);

/// Threads that the copy may start.
const SPARE_THREADS: usize = 6;

/// The copy; the muxer first writes the frames into a file of their own.
const PIPELINE: &str = "filesrc name=from ! qtdemux ! mp4mux name=mux faststart=true \
                        trak-timescale=90000 ! fdsink name=to sync=false async=false";

/// Copies the video without re-encoding, and replaces it. Files larger than 1 GiB stay unchanged.
pub(super) fn move_index(path: &Path) -> Result<()> {
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
    let name = |file: &File| format!("/proc/self/fd/{}", file.as_raw_fd()).to_value();
    set("from", "location", name(&file))?;
    set("mux", "faststart-file", name(frames.file()))?;
    set("to", "fd", moved.file().as_raw_fd().to_value())?;
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
