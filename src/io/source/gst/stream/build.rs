//! Building and starting the pipeline of a stream.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use anyhow::{anyhow, bail};
use crossbeam_channel::Receiver;
use gstreamer as gst;
use gstreamer::prelude::*;

use super::super::appsink::{Format, Frame, FrameCopier, Shared, build_appsink};
use super::super::checks::{inspect, limits, origin, server, time_jumps};
use super::super::inputs::camera_pools::CameraPools;
use super::super::inputs::input::Input;
use super::super::inputs::{entry, libav, orientation, wiring};
use super::super::live::arrivals::Arrivals;
use super::super::live::live_times::LiveTimes;
use super::super::live::sender_times;
use super::super::options::GstOptions;
use super::{InputStream, StreamSetup, is_recorded};
use stereod_core::picture::orientation::Orient;
use stereod_core::thread;

/// Capacity of the channel between the streaming thread and the pairing.
const CHANNEL: usize = 4;

/// Demuxers with an index that finds the key frame before any time.
const EXACT: [&str; 2] = ["qtdemux", "matroskademux"];

impl InputStream {
    /// Builds and starts the pipeline; [`InputStream::preroll`] then waits for its first frame.
    pub(in crate::source::gst) fn start(
        recipe: &StreamSetup,
        options: &GstOptions,
    ) -> anyhow::Result<Self> {
        let name = recipe.input.name();
        Self::build(recipe.clone(), options).map_err(|error| anyhow!("{name}: {error:#}"))
    }

    fn build(recipe: StreamSetup, options: &GstOptions) -> anyhow::Result<Self> {
        let StreamSetup { input, layout, timing, zero, state, at } = recipe;
        // Frames in files of their own are looked at before they are decoded.
        let video = matches!(input, Input::File(_));
        let shared = Arc::new(Shared::of(state.clone(), input.name(), video));
        let pipeline = gst::Pipeline::new();
        libav::listen(&pipeline, &shared);
        limits::watch(&pipeline, &shared);
        entry::watch(&pipeline, &shared);
        if video {
            inspect::watch_recorded(&pipeline, &shared);
            time_jumps::watch(&pipeline, &shared.jumps);
        } else if !is_recorded(&input) {
            inspect::watch(&pipeline, &state);
            sender_times::request(&pipeline);
        }
        let format = Arc::new(Mutex::new(Format::default()));
        let copier = FrameCopier::new(input.name(), layout, options, format.clone())
            .with_statement(input.stated());
        let (target, delivered) = add_end(&pipeline, &shared, copier)?;
        let mut stream = Self {
            pipeline,
            delivered,
            shared,
            format,
            first: VecDeque::new(),
            begin: None,
            last_time: None,
            live: false,
            is_moved: false,
            by_arrival: None,
            arrivals: Arrivals::default(),
            zero: None,
            live_times: LiveTimes::default(),
            fresh_from: None,
            ended: false,
            silent_since: None,
            waited: (Duration::ZERO, 0),
            closed: false,
            taken: 0,
            rate: None,
            input,
            timing,
            pools: CameraPools::default(),
        };
        // From here on every return closes the pipeline.
        let Self { pipeline, shared, input, .. } = &stream;
        let target = match (input, options.orient) {
            (Input::Pictures(_), _) | (_, Orient::Ignore) => target,
            (_, Orient::Auto) => orientation::turn(pipeline, &target)?,
        };
        orientation::watch(&target, shared.clone());
        wiring::connect(input, timing, options, pipeline, target, shared)?;
        share_clock(&stream.pipeline, zero);
        thread::require_spare(thread::OF_SOURCE)?;
        stream.play(at, options.patience)?;
        Ok(stream)
    }

    /// Starts the pipeline, a recording at `at`.
    fn play(&mut self, at: Option<Duration>, patience: Duration) -> anyhow::Result<()> {
        // Only the change to "paused" tells whether a pipeline is live.
        for state in [gst::State::Paused, gst::State::Playing] {
            match self.pipeline.set_state(state) {
                Ok(change) => self.live |= change == gst::StateChangeSuccess::NoPreroll,
                Err(_) => {
                    let reason = self.shared.first_failure().unwrap_or_else(|| {
                        format!("it does not start{}", origin::what_to_check(&self.pipeline))
                    });
                    bail!(server::explained(&self.pipeline, reason));
                }
            }
            if let (gst::State::Paused, Some(at)) = (state, at) {
                self.is_moved = self.move_to(at, patience);
            }
        }
        Ok(())
    }

    /// Moves a paused recording to a time at or before `at`. Returns false if it still plays from its
    /// beginning, because its container has no index of times.
    fn move_to(&self, at: Duration, patience: Duration) -> bool {
        let clock_time = |time: Duration| gst::ClockTime::from_nseconds(time.as_nanos() as u64);
        // The demuxer is known once the first frame waits at the end of the pipeline.
        let (paused, ..) = self.pipeline.state(Some(clock_time(patience)));
        let is_exact = |element: gst::Element| {
            element.factory().is_some_and(|factory| EXACT.contains(&factory.name().as_str()))
        };
        let mut elements = self.pipeline.iterate_recurse();
        paused.is_ok()
            && elements.find(is_exact).is_some()
            && self
                .pipeline
                .seek_simple(gst::SeekFlags::FLUSH | gst::SeekFlags::ACCURATE, clock_time(at))
                .is_ok()
    }
}

/// Adds the end of a pipeline: a converter, and the appsink that copies the frames into a channel. Returns the pad
/// to link and the receiver.
fn add_end(
    pipeline: &gst::Pipeline,
    shared: &Arc<Shared>,
    copier: FrameCopier,
) -> anyhow::Result<(gst::Pad, Receiver<Option<Box<Frame>>>)> {
    let (sender, delivered) = crossbeam_channel::bounded(CHANNEL);
    let sink = build_appsink(sender, shared.clone(), copier);
    let convert = wiring::element("videoconvert")?;
    pipeline.add_many([&convert, sink.upcast_ref()])?;
    convert.link(&sink)?;
    let target = convert.static_pad("sink").ok_or_else(|| anyhow!("no pad to link"))?;
    if let Some(bus) = pipeline.bus() {
        let shared = shared.clone();
        bus.set_sync_handler(move |_, message| {
            shared.message(message);
            gst::BusSyncReply::Drop
        });
    }
    Ok((target, delivered))
}

/// Gives live pipelines one clock and one zero, so that their times are comparable.
fn share_clock(pipeline: &gst::Pipeline, zero: gst::ClockTime) {
    pipeline.use_clock(Some(&gst::SystemClock::obtain()));
    pipeline.set_start_time(gst::ClockTime::NONE);
    pipeline.set_base_time(zero);
}
