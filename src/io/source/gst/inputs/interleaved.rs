//! Delivers the interleaved views of a V4L2 camera side by side.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use gstreamer as gst;
use gstreamer::prelude::*;
use gstreamer_app as gst_app;

use super::camera;
use super::input::Camera;
use crate::source::gst::appsink::Shared;
use crate::source::v4l2::{Capture, Captured, Pick, separate};

/// Time after which a wait for a frame looks whether the pipeline is being closed.
const TICK: Duration = Duration::from_millis(100);

/// Opens the camera. Its frames have the kernel's times of capture.
pub(in crate::source::gst) fn source(
    camera: &Camera,
    shared: Arc<Shared>,
) -> anyhow::Result<gst_app::AppSrc> {
    let pick = camera.pick;
    let view = (pick.width / 2, pick.height);
    let mut capture = Capture::open(&camera.name, &pick, view)?;
    let source = gst_app::AppSrc::builder()
        .format(gst::Format::Time)
        .is_live(true)
        .max_buffers(2)
        .caps(&camera::caps(&pick))
        .build();
    let pad = source.static_pad("src").context("no pad to link")?;
    let mut next = None;
    let need_data = move |source: &gst_app::AppSrc, _| {
        while !pad.pad_flags().contains(gst::PadFlags::FLUSHING) {
            let read = |captured: &Captured| (captured.number, frame(captured, &pick, source));
            let (number, frame) = match capture.next(TICK, read) {
                Ok(None) => continue,
                Ok(Some(frame)) => frame,
                Err(error) => {
                    shared.fail(crate::source::v4l2::reason(&error));
                    let _ = source.end_of_stream();
                    return;
                }
            };
            // The driver counts from 0 at each start.
            let missed =
                number.saturating_sub(next.replace(number.wrapping_add(1)).unwrap_or(number));
            shared.eye().note_missed(u64::from(missed));
            match frame {
                Some(frame) => {
                    // The push fails if the stream is shutting down.
                    let _ = source.push_buffer(frame);
                    return;
                }
                None => shared.eye().note_broken(),
            }
        }
    };
    source.set_callbacks(gst_app::AppSrcCallbacks::builder().need_data(need_data).build());
    Ok(source)
}

/// Copies a frame; `None` if it is damaged.
fn frame(captured: &Captured, pick: &Pick, source: &gst_app::AppSrc) -> Option<gst::Buffer> {
    let size = (pick.width as usize / 2, pick.height as usize);
    let intact = Some(captured).filter(|captured| !captured.is_damaged)?;
    let joined = separate(pick.format, intact.bytes, intact.stride, size)?;
    let mut buffer = gst::Buffer::from_mut_slice(joined);
    // GStreamer's clock is the kernel's monotonic one.
    let time = captured.time.and_then(|time| gst::ClockTime::try_from(time).ok());
    buffer
        .get_mut()?
        .set_pts(time.zip(source.base_time()).map(|(time, base)| time.saturating_sub(base)));
    Some(buffer)
}
