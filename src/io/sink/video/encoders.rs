//! Parallel encoders of a lossless video: their number and settings, and their packets in the order of the frames.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use gstreamer as gst;
use gstreamer::prelude::*;
use gstreamer_app::{AppSink, AppSinkCallbacks};

use super::feed::FeedState;
use super::matroska::{MatroskaWriter, Packet};
use crate::sink::output::Output;
use stereod_core::files::new_file::NewFile;
use stereod_core::memory::{self, Budget};
use stereod_core::thread::{self, locked};

/// Bytes a pixel that an encoder allocates with its first frame: FFmpeg (5.1) reserves the longest
/// possible frame, 37 bytes a pixel, four times.
const BYTES_OF_PIXEL: usize = 148;

const MOST: usize = 16;

/// Divisor of the free memory budget for further encoders of one video: a quarter.
const SHARE: u64 = 4;

/// Encoders that take frames in turn. All produce the same bytes of a frame.
#[derive(Debug)]
pub(super) struct Encoders {
    pub(super) elements: Vec<gst::Element>,
    /// Reserved memory of all encoders but the first, which is not budgeted, like decoders.
    pub(super) room: Option<memory::Reserved>,
}

impl Encoders {
    /// Creates as many encoders as keep the processors busy and fit into the memory budget.
    pub(super) fn new(width: usize, height: usize) -> Result<Self> {
        let (cores, budget) = (thread::available(), Budget::of_process());
        let one = memory::product([width, height, BYTES_OF_PIXEL]);
        let further = useful(cores, one, budget.left()) - 1;
        let bytes = one.saturating_mul(further as u64);
        let room = budget.reserve("encoding", bytes, "make memory free").ok();
        let count = 1 + room.as_ref().map_or(0, |_| further);
        Ok(Self { room, ..Self::of(count, width, height)? })
    }

    pub(super) fn of(count: usize, width: usize, height: usize) -> Result<Self> {
        let elements = (0..count).map(|_| encoder(width, height)).collect::<Result<_>>()?;
        Ok(Self { elements, room: None })
    }
}

/// Returns the number of encoders that keep the processors busy if each takes `one` of `left` bytes.
///
/// A single encoder waits for the slowest slice of each frame and leaves the other processors idle;
/// slices of further frames fill them. A single processor is never idle.
fn useful(cores: usize, one: u64, left: u64) -> usize {
    let affordable = usize::try_from(left / SHARE / one.max(1)).unwrap_or(usize::MAX);
    let busy = if cores > 1 { cores.div_ceil(2) + 1 } else { 1 };
    busy.min(MOST).min(affordable.saturating_add(1))
}

fn encoder(width: usize, height: usize) -> Result<gst::Element> {
    let encoder = gst::ElementFactory::make("avenc_ffv1").build()?;
    // For several slices FFmpeg chooses version 3 of the format, with checksums, and encodes them
    // in parallel. It supports 16 (4x4) and 4 (2x2), and requires several beyond 352x288.
    let slices = match width.min(height) {
        64.. => 16,
        16.. => 4,
        _ if width > 352 || height > 288 => 4,
        _ => 1,
    };
    encoder.set_property("slices", slices);
    encoder.set_property_from_str("threads", "auto");
    // Every frame is decodable alone: seeking is exact, damage stays within a frame, and the bytes
    // do not depend on the encoder.
    encoder.set_property("gop-size", 1);
    Ok(encoder)
}

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
    /// Creates the queue of this many encoders for this output; `progress` counts each written frame.
    pub(super) fn new(encoders: usize, output: Matroska, progress: Arc<FeedState>) -> Arc<Self> {
        let file = Destination { output, failed: false };
        Arc::new(Self { turns: Mutex::new(Turns::new(encoders)), file: Mutex::new(file), progress })
    }

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

    pub(super) fn give(&self) -> usize {
        locked(&self.turns).give()
    }

    pub(super) fn set_origin(&self, origin: Duration) {
        locked(&self.file).output.set_origin(origin);
    }

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

/// Assignment of frames to encoders. Encoded frames are returned in the order of assignment; each
/// encoder keeps the order of its own frames.
#[derive(Debug)]
pub(super) struct Turns<T> {
    encoders: Vec<Encoder<T>>,
    /// Encoders of the frames that were not returned yet, in order.
    order: VecDeque<usize>,
}

#[derive(Debug)]
struct Encoder<T> {
    busy: usize,
    encoded: VecDeque<T>,
}

impl<T> Turns<T> {
    pub(super) fn new(encoders: usize) -> Self {
        let encoder = || Encoder { busy: 0, encoded: VecDeque::new() };
        Self { encoders: (0..encoders).map(|_| encoder()).collect(), order: VecDeque::new() }
    }

    /// Returns the encoder of the next frame: the first one with the fewest frames. Only as many
    /// encoders work as are needed to keep up, and the others allocate no memory for frames.
    pub(super) fn give(&mut self) -> usize {
        let busy = |&encoder: &usize| self.encoders[encoder].busy;
        let chosen = (0..self.encoders.len()).min_by_key(busy).unwrap_or(0);
        self.encoders[chosen].busy += 1;
        self.order.push_back(chosen);
        chosen
    }

    pub(super) fn take_back(&mut self, encoder: usize, encoded: T) {
        let encoder = &mut self.encoders[encoder];
        encoder.busy = encoder.busy.saturating_sub(1);
        encoder.encoded.push_back(encoded);
    }

    pub(super) fn next(&mut self) -> Option<T> {
        let encoded = self.encoders[*self.order.front()?].encoded.pop_front()?;
        self.order.pop_front();
        Some(encoded)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn their_number_follows_processors_and_memory() {
        let one = memory::product([1280, 720, BYTES_OF_PIXEL]);
        let count = |cores, left| useful(cores, one, left);
        let plenty = u64::MAX;
        let with_plenty = [1, 2, 3, 4, 8, 16, 32, 256].map(|cores| count(cores, plenty));
        assert_eq!(with_plenty, [1, 2, 3, 3, 5, 9, 16, 16]);
        // The first one is there in any case.
        assert_eq!((count(16, 0), count(16, SHARE * one - 1)), (1, 1));
        assert_eq!((count(16, SHARE * one), count(16, SHARE * 3 * one)), (2, 4));
        assert_eq!(useful(0, 0, 0), 1);
    }

    #[test]
    fn one_that_keeps_up_works_alone() {
        let mut turns = Turns::new(3);
        for frame in 0..5 {
            assert_eq!(turns.give(), 0);
            turns.take_back(0, frame);
            assert_eq!((turns.next(), turns.next()), (Some(frame), None));
        }
    }

    #[test]
    fn what_comes_early_waits_for_its_turn() {
        let mut turns = Turns::new(3);
        assert_eq!([(); 4].map(|()| turns.give()), [0, 1, 2, 0]);
        turns.take_back(2, 'c');
        turns.take_back(1, 'b');
        assert_eq!(turns.next(), None);
        // The one without work gets the next frame.
        assert_eq!(turns.give(), 1);
        turns.take_back(0, 'a');
        turns.take_back(1, 'e');
        let handed_on: String = std::iter::from_fn(|| turns.next()).collect();
        assert_eq!(handed_on, "abc");
        turns.take_back(0, 'd');
        let handed_on: String = std::iter::from_fn(|| turns.next()).collect();
        assert_eq!(handed_on, "de");
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn the_order_stays_whatever_is_quick(
            encoders in 1usize..6,
            steps in prop::collection::vec(0usize..6, 0..200),
        ) {
            let mut turns = Turns::new(encoders);
            let mut inside = vec![VecDeque::new(); encoders];
            let (mut given, mut handed_on) = (0, Vec::new());
            for step in steps {
                // A frame is given out, or the encoder of this number finishes one.
                match inside.get_mut(step).and_then(VecDeque::pop_front) {
                    Some(frame) => turns.take_back(step, frame),
                    None => {
                        inside[turns.give()].push_back(given);
                        given += 1;
                    }
                }
                handed_on.extend(turns.next());
            }
            for (encoder, frames) in inside.into_iter().enumerate() {
                frames.into_iter().for_each(|frame| turns.take_back(encoder, frame));
            }
            handed_on.extend(std::iter::from_fn(|| turns.next()));
            prop_assert_eq!(handed_on, (0..given).collect::<Vec<i32>>());
        }
    }
}
