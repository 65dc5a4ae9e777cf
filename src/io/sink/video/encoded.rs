//! Encoded packets on their way from the encoders to the muxer.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use gstreamer as gst;
use gstreamer_app::{AppSink, AppSinkCallbacks};

use super::feed::FeedState;
use super::matroska::{MatroskaWriter, Packet};
use super::turns::Turns;
use crate::sink::output::Output;
use stereod_core::files::new_file::NewFile;
use stereod_core::thread::locked;

/// Matroska files.
type Matroska = Output<MatroskaWriter<NewFile>>;

/// Encoded frames, written in the order of the encoders' input. The thread of the encoder that finishes the
/// next frame writes it and the frames that wait for it.
pub(super) struct Encoded {
    turns: Mutex<Turns<gst::Sample>>,
    file: Mutex<Destination>,
    progress: Arc<FeedState>,
}

struct Destination {
    output: Matroska,
    /// True if a frame could not be written; then no other follows.
    failed: bool,
}

impl Encoded {
    /// Creates the queue of this many encoders for this output; `progress` counts each written
    /// frame.
    pub(super) fn new(encoders: usize, output: Matroska, progress: Arc<FeedState>) -> Arc<Self> {
        let file = Destination { output, failed: false };
        Arc::new(Self { turns: Mutex::new(Turns::new(encoders)), file: Mutex::new(file), progress })
    }

    /// Returns the last element of an encoder's chain.
    pub(super) fn sink(self: &Arc<Self>, encoder: usize) -> AppSink {
        // The sink does not wait for a first frame, because a spare encoder never gets one.
        let sink = AppSink::builder().sync(false).async_(false).max_buffers(2).build();
        let encoded = self.clone();
        let take = move |sink: &AppSink| {
            let sample = sink.pull_sample().map_err(|_| gst::FlowError::Eos)?;
            locked(&encoded.turns).take_back(encoder, sample);
            encoded.write_on()
        };
        sink.set_callbacks(AppSinkCallbacks::builder().new_sample(take).build());
        sink
    }

    /// Chooses the encoder of the next frame.
    pub(super) fn give(&self) -> usize {
        locked(&self.turns).give()
    }

    /// Sets the capture time at time 0 of the encoders.
    pub(super) fn set_origin(&self, origin: Duration) {
        locked(&self.file).output.set_origin(origin);
    }

    /// Returns the number of frames in all files.
    pub(super) fn written(&self) -> u64 {
        locked(&self.file).output.written()
    }

    /// Completes the file after the encoders, which were given this many frames, have ended;
    /// `after_failure` as far as possible.
    pub(super) fn finish(&self, given: u64, after_failure: bool) -> Result<()> {
        let output = &mut locked(&self.file).output;
        output.finish(after_failure)?;
        let (path, written) = (output.path().display(), output.written());
        ensure!(
            after_failure || written == given,
            "cannot write {path}: of {given} frames the encoder has given {written} back; the \
             recording ends there"
        );
        Ok(())
    }

    /// Writes the frames that are next in order.
    fn write_on(&self) -> Result<gst::FlowSuccess, gst::FlowError> {
        let mut file = locked(&self.file);
        let next = || locked(&self.turns).next();
        while !file.failed
            && let Some(sample) = next()
        {
            if let Err(error) = write(&mut file.output, &sample) {
                file.failed = true;
                self.progress.fail(format!("{error:#}"));
            }
            self.progress.leave();
        }
        if file.failed { Err(gst::FlowError::Error) } else { Ok(gst::FlowSuccess::Ok) }
    }
}

/// Writes an encoded frame to the file.
fn write(output: &mut Matroska, sample: &gst::SampleRef) -> Result<()> {
    let buffer = sample.buffer().context("an encoded frame has content")?;
    // Encoders shift their times by 1000 hours and state it in the segment.
    let segment = sample.segment().and_then(|segment| segment.downcast_ref::<gst::ClockTime>());
    let time = segment.and_then(|segment| segment.to_running_time(buffer.pts()));
    let time = time.context("an encoded frame has a time")?;
    let data = buffer.map_readable().context("cannot read an encoded frame")?;
    let structure = sample.caps().and_then(|caps| caps.structure(0));
    let private = structure.and_then(|s| s.get::<gst::Buffer>("codec_data").ok());
    let private = private.as_ref().and_then(|private| private.map_readable().ok());
    let packet = Packet { data: &data, private: private.as_deref() };
    output.write(time.into(), packet, data.len() as u64)
}
