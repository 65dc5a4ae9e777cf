//! Writes test videos.

use std::path::Path;
use std::time::Duration;

use gstreamer as gst;
use gstreamer::prelude::*;
use gstreamer_app as gst_app;

/// Writes raw images of a format and size through `coding` ("x264enc ! mp4mux") to `path`, each
/// with its time; with `rate` 0, no rate is stated.
pub fn write_video(
    path: &Path,
    (format, width, height): (&str, usize, usize),
    buffers: Vec<(Vec<u8>, Duration)>,
    rate: i32,
    coding: &str,
) {
    gst::init().unwrap();
    let description = format!("appsrc name=in ! {coding} ! filesink name=out");
    let pipeline = gst::parse::launch(&description).unwrap_or_else(|e| panic!("{coding}: {e}"));
    let pipeline = pipeline.downcast::<gst::Pipeline>().unwrap();
    pipeline.by_name("out").unwrap().set_property("location", path);
    let source = pipeline.by_name("in").unwrap().downcast::<gst_app::AppSrc>().unwrap();
    let caps = gst::Caps::builder("video/x-raw")
        .field("format", format)
        .field("width", width as i32)
        .field("height", height as i32)
        .field("framerate", gst::Fraction::new(rate, 1));
    source.set_caps(Some(&caps.build()));
    source.set_format(gst::Format::Time);
    source.set_max_bytes(0);
    pipeline.set_state(gst::State::Playing).unwrap();
    for (bytes, time) in buffers {
        let mut buffer = gst::Buffer::from_mut_slice(bytes);
        let buffer_mut = buffer.get_mut().unwrap();
        buffer_mut.set_pts(gst::ClockTime::from_nseconds(time.as_nanos() as u64));
        if rate > 0 {
            buffer_mut.set_duration(gst::ClockTime::SECOND / rate as u64);
        }
        source.push_buffer(buffer).unwrap();
    }
    source.end_of_stream().unwrap();
    play_to_end(&pipeline);
}

/// Waits for the end of a finite pipeline and stops it.
pub fn play_to_end(pipeline: &gst::Pipeline) {
    let types = [gst::MessageType::Eos, gst::MessageType::Error];
    let message =
        pipeline.bus().unwrap().timed_pop_filtered(gst::ClockTime::from_seconds(60), &types);
    pipeline.set_state(gst::State::Null).unwrap();
    match message.as_ref().map(|message| message.view()) {
        Some(gst::MessageView::Eos(_)) => {}
        other => panic!("test video: {other:?}"),
    }
}
