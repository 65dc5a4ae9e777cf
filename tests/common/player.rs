//! Reads videos back.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result};
use gstreamer as gst;
use gstreamer::prelude::*;
use gstreamer_app::AppSink;
use gstreamer_video::VideoFrameExt;

/// A decoded frame: its time and its samples, rows tightly packed.
pub struct Decoded {
    pub time: Duration,
    pub bytes: Vec<u8>,
}

impl Decoded {
    /// The samples of a 16-bit picture.
    pub fn numbers(&self) -> Vec<u16> {
        self.bytes.as_chunks().0.iter().map(|&pair| u16::from_le_bytes(pair)).collect()
    }
}

/// A file being decoded by a pipeline that ends in an appsink named `out`.
pub struct Player {
    pub pipeline: gst::Pipeline,
    pub sink: AppSink,
}

impl Player {
    /// `filesrc ! CHAIN ! appsink`, ready to play.
    pub fn open(path: &Path, chain: &str) -> Result<Self> {
        gst::init()?;
        let text = format!("filesrc name=in ! {chain} ! appsink name=out sync=false");
        let pipeline = gst::parse::launch(&text)?.downcast::<gst::Pipeline>().unwrap();
        pipeline.by_name("in").unwrap().set_property("location", path);
        let sink = pipeline.by_name("out").unwrap().downcast::<AppSink>().unwrap();
        pipeline.set_state(gst::State::Paused)?;
        pipeline.state(gst::ClockTime::from_seconds(20)).0.context("the file does not open")?;
        Ok(Self { pipeline, sink })
    }

    /// The next frame; `None` at the end.
    pub fn next(&self) -> Option<Decoded> {
        let sample = self.sink.pull_sample().ok()?;
        let info = gstreamer_video::VideoInfo::from_caps(sample.caps()?).unwrap();
        let buffer = sample.buffer()?;
        // The frame describes the row layout that a decoder has chosen.
        let frame =
            gstreamer_video::VideoFrameRef::from_buffer_ref_readable(buffer, &info).unwrap();
        let row = info.width() as usize * info.comp_pstride(0) as usize;
        let stride = frame.comp_stride(0) as usize;
        let rows = frame.plane_data(0).unwrap().chunks(stride).take(info.height() as usize);
        let bytes = rows.flat_map(|r| &r[..row]).copied();
        Some(Decoded { time: buffer.pts()?.into(), bytes: bytes.collect() })
    }

    /// Every frame to the end.
    pub fn play(&self) -> Vec<Decoded> {
        self.pipeline.set_state(gst::State::Playing).unwrap();
        std::iter::from_fn(|| self.next()).collect()
    }

    /// Duration, if the file states it.
    pub fn duration(&self) -> Option<Duration> {
        self.pipeline.query_duration::<gst::ClockTime>().map(Into::into)
    }

    /// The first errors and the tags that the pipeline has posted.
    pub fn messages(&self) -> (Option<String>, gst::TagList) {
        let bus = self.pipeline.bus().unwrap();
        let mut tags = gst::TagList::new();
        let mut error = None;
        while let Some(message) = bus.pop() {
            match message.view() {
                gst::MessageView::Tag(tag) => {
                    tags = tags.merge(&tag.tags(), gst::TagMergeMode::Append)
                }
                gst::MessageView::Error(e) => error = error.or(Some(e.error().to_string())),
                _ => {}
            }
        }
        (error, tags)
    }
}

impl Drop for Player {
    fn drop(&mut self) {
        let _ = self.pipeline.set_state(gst::State::Null);
    }
}

/// Chain of elements that decodes a recording.
pub const RECORDING: &str = "matroskademux ! avdec_ffv1";
