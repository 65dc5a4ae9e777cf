//! Decodes an H.264 or H.265 stream from single access units, one per message.
//!
//! A unit goes into the decoder once the previous one has been taken. Frames are identified by the stamps of
//! their units, because a decoder may hold frames back, reorder them, and lose some. Units that build on a
//! missing frame are left out, because a decoder would deliver wrong images for them.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use anyhow::{Context, anyhow, bail};
use crossbeam_channel::{Receiver, select};
use gstreamer as gst;
use gstreamer::prelude::*;
use gstreamer_app as gst_app;

use super::references::{Fate, References, Unit};
use crate::control::Switch;
use crate::source::byte_stream::Codec;
use crate::source::gst::appsink::{Format, Frame, FrameCopier, Shared, build_appsink};
use crate::source::gst::checks::limits;
use crate::source::gst::inputs::{libav, wiring};
use crate::source::gst::options::GstOptions;
use crate::source::gst::plane::{ViewLayout, Views};
use crate::source::gst::stream::close_pipeline;
use crate::source::gst::times::TICK;
use crate::source::live::EyeState;
use stereod_core::thread::locked;

/// Capacity of the channel of the frames.
const CHANNEL: usize = 4;

/// Default of [`UnitDecoder::patience`]: many times the decoding time of any frame.
const PATIENCE: Duration = Duration::from_secs(30);

/// Largest number of units without a frame that are remembered. Decoders hold back fewer than 100.
const UNITS_MAX: usize = 1000;

/// An access unit that gave no frame.
#[derive(Debug, thiserror::Error)]
pub enum Undecodable {
    /// The decoder has delivered none for it.
    #[error("it cannot be decoded: it is damaged, or the stream is")]
    Damaged,
    /// It would build on a wrong frame.
    #[error("it builds on a missing frame, as do all frames up to the next key frame")]
    Missing,
}

/// Fate of an access unit.
#[derive(Debug)]
pub struct Decoded {
    /// Number that it was fed with.
    pub number: u64,
    pub stamp: u64,
    /// Its frame.
    pub views: Result<Views, Undecodable>,
}

/// Decoder of one stream.
pub struct UnitDecoder {
    name: String,
    pipeline: gst::Pipeline,
    source: gst_app::AppSrc,
    /// A message each time the decoder has taken everything.
    idle: Receiver<()>,
    delivered: Receiver<Option<Box<Frame>>>,
    shared: Arc<Shared>,
    format: Arc<Mutex<Format>>,
    stop: Switch,
    /// Longest time until the decoder takes a unit, or delivers its last frame.
    patience: Duration,
    references: References,
    /// Units in the decoder.
    waiting: VecDeque<Waiting>,
    done: Vec<Decoded>,
    /// True once the decoder has been given a unit.
    begun: bool,
    ended: bool,
    /// True once a frame had the stamp of no unit, so that frames that seem lost may have come.
    is_confused: bool,
}

/// A unit that was fed.
struct Waiting {
    number: u64,
    stamp: u64,
    unit: Unit,
}

impl UnitDecoder {
    /// Starts a decoder for units of `codec` with frames of this layout. `name` is for messages. GStreamer
    /// must be initialised.
    pub fn new(
        name: &str,
        codec: Codec,
        layout: ViewLayout,
        options: &GstOptions,
    ) -> anyhow::Result<Self> {
        let shared = Arc::new(Shared::of(Arc::<EyeState>::default(), name.to_owned(), false));
        let pipeline = gst::Pipeline::new();
        libav::listen(&pipeline, &shared);
        limits::watch(&pipeline, &shared);
        let (sender, delivered) = crossbeam_channel::bounded(CHANNEL);
        let format = Arc::new(Mutex::new(Format::default()));
        let copier = FrameCopier::new(name.to_owned(), layout, options, format.clone());
        let sink = build_appsink(sender, shared.clone(), copier);
        let convert = wiring::element("videoconvert")?;
        pipeline.add_many([&convert, sink.upcast_ref()])?;
        convert.link(&sink)?;
        let target = convert.static_pad("sink").context("no pad to link")?;
        let caps = gst::Caps::builder(format!("video/x-{codec}"))
            .field("stream-format", "byte-stream")
            .field("alignment", "au")
            .build();
        let source = gst_app::AppSrc::builder().format(gst::Format::Time).caps(&caps).build();
        let (is_idle, idle) = crossbeam_channel::unbounded();
        let need_data = move |_: &gst_app::AppSrc, _| {
            // It fails once the decoder is closed.
            let _ = is_idle.send(());
        };
        source.set_callbacks(gst_app::AppSrcCallbacks::builder().need_data(need_data).build());
        if let Some(bus) = pipeline.bus() {
            let shared = shared.clone();
            bus.set_sync_handler(move |_, message| {
                shared.message(message);
                gst::BusSyncReply::Drop
            });
        }
        wiring::decode(source.clone().upcast(), &pipeline, target, &shared)?;
        let decoder = Self {
            name: name.to_owned(),
            pipeline,
            source,
            idle,
            delivered,
            shared,
            format,
            stop: options.stop.clone(),
            patience: PATIENCE,
            references: References::new(codec),
            waiting: VecDeque::new(),
            done: Vec::new(),
            begun: false,
            ended: false,
            is_confused: false,
        };
        if decoder.pipeline.set_state(gst::State::Playing).is_err() {
            return Err(decoder.failure());
        }
        Ok(decoder)
    }

    /// Decodes the next unit, the image of message `number`. Returns the finished units, in order of their
    /// frames. Does nothing once the run ends.
    pub fn feed(&mut self, number: u64, stamp: u64, unit: &[u8]) -> anyhow::Result<Vec<Decoded>> {
        let bytes = unit;
        let unit = self.references.next(bytes);
        if unit.fate == Fate::Missing {
            return Ok(vec![Decoded { number, stamp, views: Err(Undecodable::Missing) }]);
        }
        self.wait(false)?;
        if self.stop.is_set() {
            return Ok(Vec::new());
        }
        let mut buffer = gst::Buffer::from_slice(bytes.to_vec());
        if let Some(buffer) = buffer.get_mut() {
            buffer.set_pts(clock_time(stamp));
        }
        self.waiting.push_back(Waiting { number, stamp, unit });
        if self.waiting.len() > UNITS_MAX {
            self.give_up(0);
        }
        self.begun = true;
        if self.source.push_buffer(buffer).is_err() {
            return Err(self.failure());
        }
        Ok(std::mem::take(&mut self.done))
    }

    /// Notes that units are missing here.
    pub fn lose(&mut self) {
        self.references.lose();
    }

    /// Ends the stream. Returns every unit that is left, or none once the run ends.
    pub fn finish(&mut self) -> anyhow::Result<Vec<Decoded>> {
        if !self.begun {
            return Ok(Vec::new());
        }
        if self.source.end_of_stream().is_err() {
            return Err(self.failure());
        }
        self.wait(true)?;
        if self.stop.is_set() {
            return Ok(Vec::new());
        }
        while !self.waiting.is_empty() {
            self.give_up(0);
        }
        Ok(std::mem::take(&mut self.done))
    }

    /// Returns the number of frames with damage that the decoder concealed.
    pub fn concealed(&self) -> u64 {
        self.shared.eye().summary().concealed
    }

    /// Returns the smallest grey level of white.
    pub fn white(&self) -> u8 {
        locked(&self.format).white
    }

    /// Waits until the decoder has taken every unit, has ended, or the run ends.
    fn wait(&mut self, until_end: bool) -> anyhow::Result<()> {
        // Waits are added up because the clock also runs while the process is suspended.
        let mut waited = Duration::ZERO;
        while !self.ended {
            select! {
                recv(self.delivered) -> frame => self.take(frame.ok().flatten()),
                recv(self.idle) -> _ => {
                    while let Ok(frame) = self.delivered.try_recv() {
                        self.take(frame);
                    }
                    if !until_end {
                        return Ok(());
                    }
                }
                default(TICK) => {
                    if self.shared.failure().is_some() {
                        return Err(self.failure());
                    }
                    if self.stop.is_set() {
                        return Ok(());
                    }
                    waited += TICK;
                    if waited > self.patience {
                        let seconds = self.patience.as_secs_f64();
                        bail!("{}: the decoder has taken no frame for {seconds:.1} s", self.name);
                    }
                }
            }
        }
        if self.shared.failure().is_some() || !until_end {
            return Err(self.failure());
        }
        Ok(())
    }

    /// Takes a frame, or the end.
    fn take(&mut self, frame: Option<Box<Frame>>) {
        let Some(frame) = frame else {
            self.ended = true;
            return;
        };
        let pts = frame.times.written;
        let is_own = |waiting: &Waiting| Some(clock_time(waiting.stamp)) == pts;
        let Some(mut own) = self.waiting.iter().position(is_own) else {
            tracing::debug!("{}: a frame has the stamp of no message ({pts:?})", self.name);
            self.is_confused = true;
            return;
        };
        // Frames come in the order of their stamps, so earlier ones that have not come are lost.
        let is_lost = |waiting: &Waiting| Some(clock_time(waiting.stamp)) < pts;
        while let Some(earlier) = self.waiting.iter().take(own).position(is_lost) {
            self.give_up(earlier);
            own -= 1;
        }
        if let Some(Waiting { number, stamp, unit }) = self.waiting.remove(own) {
            let views = match unit.fate {
                Fate::Whole => Ok(frame.views),
                Fate::Recovering | Fate::Missing => Err(Undecodable::Missing),
            };
            self.done.push(Decoded { number, stamp, views });
        }
    }

    /// Gives up the waiting unit at this index, and the frames that build on it.
    fn give_up(&mut self, at: usize) {
        let Some(Waiting { number, stamp, unit }) = self.waiting.remove(at) else { return };
        let why = match unit.fate {
            Fate::Whole => Undecodable::Damaged,
            Fate::Recovering | Fate::Missing => Undecodable::Missing,
        };
        self.done.push(Decoded { number, stamp, views: Err(why) });
        // Recorders that count times in the order of the units make reordered frames look lost.
        if unit.is_reference && !self.is_confused && !self.references.may_reorder() {
            self.references.lose_of(unit.key);
            let builds_on =
                |other: &&mut Waiting| other.number > number && other.unit.key == unit.key;
            self.waiting.iter_mut().filter(builds_on).for_each(|w| w.unit.fate = Fate::Missing);
        }
    }

    /// Returns why no more frames come.
    fn failure(&self) -> anyhow::Error {
        let reason = self.shared.first_failure();
        let reason = reason.unwrap_or_else(|| "the decoder ended without saying why".to_owned());
        anyhow!("{}: {reason}", self.name)
    }
}

impl Drop for UnitDecoder {
    fn drop(&mut self) {
        // Wakes a thread that waits for room in the channel.
        self.delivered = crossbeam_channel::never();
        close_pipeline(&self.pipeline, &self.name);
    }
}

/// Returns a stamp as a time of GStreamer, which calculates with signed numbers.
fn clock_time(stamp: u64) -> gst::ClockTime {
    gst::ClockTime::from_nseconds(stamp.min(i64::MAX as u64))
}

#[cfg(test)]
pub(in crate::source::gst) mod tests {
    use super::*;
    use stereod_core::frame::Image;
    use stereod_core::matching::saturation::WHITE_OF_LIMITED_RANGE;

    /// Encodes `count` frames of GStreamer's ball with this encoder, each unit by itself.
    fn units(encoder: &str, count: u64) -> Vec<Vec<u8>> {
        stamped_units(encoder, count).into_iter().map(|(_, unit)| unit).collect()
    }

    /// Returns the time of each unit's frame as well.
    pub fn stamped_units(encoder: &str, count: u64) -> Vec<(u64, Vec<u8>)> {
        gst::init().unwrap();
        let text = format!(
            "videotestsrc num-buffers={count} pattern=ball ! video/x-raw,width=96,height=64,framerate=25/1 ! \
             {encoder},stream-format=byte-stream,alignment=au ! appsink name=end sync=false"
        );
        let pipeline = gst::parse::launch(&text).unwrap().downcast::<gst::Pipeline>().unwrap();
        let end = pipeline.by_name("end").unwrap().downcast::<gst_app::AppSink>().unwrap();
        pipeline.set_state(gst::State::Playing).unwrap();
        let mut units = Vec::new();
        while let Ok(sample) = end.pull_sample() {
            let buffer = sample.buffer().unwrap();
            let unit = buffer.map_readable().unwrap().to_vec();
            units.push((buffer.pts().unwrap().nseconds(), unit));
        }
        pipeline.set_state(gst::State::Null).unwrap();
        units
    }

    const H264: &str =
        "x264enc key-int-max=5 bframes=0 ! h264parse config-interval=-1 ! video/x-h264";
    const H265: &str = "x265enc key-int-max=5 option-string=bframes=0 ! h265parse config-interval=-1 ! video/x-h265";

    fn stamp(number: u64) -> u64 {
        1_700_000_000_000_000_000 + number * 40_000_000
    }

    /// Decodes these units; unit n has the stamp of frame n.
    fn decode(codec: Codec, units: &[Vec<u8>]) -> anyhow::Result<(Vec<Decoded>, UnitDecoder)> {
        let options = GstOptions::default();
        let mut decoder = UnitDecoder::new("/left", codec, ViewLayout::SideBySide, &options)?;
        let mut all = Vec::new();
        for (number, unit) in (0..).zip(units) {
            all.extend(decoder.feed(number, stamp(number), unit)?);
        }
        all.extend(decoder.finish()?);
        Ok((all, decoder))
    }

    fn sides(decoded: &Decoded) -> [&Image; 2] {
        match decoded.views.as_ref().unwrap() {
            Views::Both(left, right) => [left, right],
            Views::One(_) => panic!("one view"),
        }
    }

    #[test]
    fn every_unit_gives_its_frame_with_its_stamp() {
        for (codec, encoder) in [(Codec::H264, H264), (Codec::H265, H265)] {
            let units = units(encoder, 40);
            assert_eq!((units.len(), Codec::of_stream(&units[0])), (40, Some(codec)));
            let (all, decoder) = decode(codec, &units).unwrap();
            let order: Vec<_> = all.iter().map(|one| (one.number, one.stamp)).collect();
            assert_eq!(order, (0..40).map(|n| (n, stamp(n))).collect::<Vec<_>>());
            assert_eq!(sides(&all[0])[1].width(), 48);
            assert_eq!((decoder.concealed(), decoder.white()), (0, WHITE_OF_LIMITED_RANGE));
            // The ball moves: no frame is another one's.
            let first = sides(&all[0]).map(|side| side.pixels().to_vec());
            assert!(
                all[1..].iter().all(|one| sides(one).map(|side| side.pixels().to_vec()) != first)
            );
        }
    }

    /// Streams with many kinds of references between frames, with a key frame in 10 or an intra refresh of
    /// 10.
    const STREAMS: [(Codec, &str); 9] = [
        (Codec::H264, "x264enc key-int-max=10 bframes=0"),
        (Codec::H264, "x264enc key-int-max=10 bframes=3 b-adapt=false b-pyramid=true ref=4"),
        (Codec::H264, "x264enc key-int-max=10 bframes=2 b-adapt=false option-string=open-gop=1"),
        (Codec::H264, "x264enc key-int-max=10 bframes=0 intra-refresh=true"),
        (Codec::H264, "x264enc key-int-max=3 bframes=0 sliced-threads=true"),
        (Codec::H265, "x265enc key-int-max=10 option-string=bframes=0:ref=4"),
        (Codec::H265, "x265enc key-int-max=10 option-string=open-gop=1:bframes=4:b-adapt=0"),
        (
            Codec::H265,
            "x265enc key-int-max=10 option-string=open-gop=0:bframes=3:temporal-layers=1",
        ),
        (Codec::H265, "x265enc key-int-max=3 option-string=bframes=0"),
    ];

    #[test]
    fn a_missing_unit_costs_the_frames_that_build_on_it_and_no_other() {
        const COUNT: usize = 32;
        for (codec, encoder) in STREAMS {
            let encoder = format!("{encoder} ! {codec}parse config-interval=-1 ! video/x-{codec}");
            let units = stamped_units(&encoder, COUNT as u64);
            // Results by unit number, without the missing ones.
            let decode = |missing: usize, is_known: bool| -> Vec<Option<Vec<u8>>> {
                let options = GstOptions::default();
                let mut decoder =
                    UnitDecoder::new("/a", codec, ViewLayout::Whole, &options).unwrap();
                let mut all = Vec::new();
                for (number, (stamp, unit)) in units.iter().enumerate() {
                    if number == missing {
                        if is_known {
                            decoder.lose();
                        }
                        continue;
                    }
                    all.extend(decoder.feed(number as u64, *stamp, unit).unwrap());
                }
                all.extend(decoder.finish().unwrap());
                assert_eq!(all.len(), COUNT - usize::from(missing < COUNT), "{encoder}, {missing}");
                let mut images = vec![None; COUNT];
                for Decoded { number, views, .. } in all {
                    images[number as usize] = views.ok().map(|views| match views {
                        Views::One(image) => image.pixels().to_vec(),
                        Views::Both(..) => panic!("two views"),
                    });
                }
                images
            };
            let whole = decode(COUNT, false);
            assert!(whole.iter().all(Option::is_some), "{encoder}: a whole stream loses frames");
            let mut lost = 0;
            for missing in 0..COUNT {
                for is_known in [false, true] {
                    let images = decode(missing, is_known);
                    for (number, image) in images.iter().enumerate() {
                        let is_right = image.is_none() || *image == whole[number];
                        assert!(is_right, "{encoder}: without {missing}, {number} is wrong");
                        // The frame after the next one without others, or after a whole refresh.
                        let is_late = number > missing + 21;
                        assert!(!is_late || image.is_some(), "{encoder}: {missing} costs {number}");
                    }
                    lost += images.iter().filter(|image| image.is_none()).count();
                }
            }
            assert!(lost > 2 * COUNT, "{encoder}: {lost}");
        }
    }

    #[test]
    fn stamps_in_the_order_of_the_units_cost_few_frames() {
        for (codec, encoder) in STREAMS {
            let encoder = format!("{encoder} ! {codec}parse config-interval=-1 ! video/x-{codec}");
            let (all, _) = decode(codec, &units(&encoder, 32)).unwrap();
            let lost = all.iter().filter(|one| one.views.is_err()).count();
            assert!(all.len() == 32 && lost <= 3, "{encoder}: {lost} lost");
        }
    }

    #[test]
    fn a_decoder_that_hangs_is_an_error_and_a_stopped_run_is_none() {
        let units = units(H264, 20);
        for is_stopped in [false, true] {
            let options = GstOptions::default();
            let layout = ViewLayout::Whole;
            let mut decoder = UnitDecoder::new("/left", Codec::H264, layout, &options).unwrap();
            decoder.patience = Duration::from_millis(200);
            // In this state its end holds up the second frame.
            decoder.pipeline.set_state(gst::State::Paused).unwrap();
            if is_stopped {
                options.stop.set(true);
            }
            let fed = (0..).zip(&units).find_map(|(n, unit)| decoder.feed(n, stamp(n), unit).err());
            match is_stopped {
                false => assert_eq!(
                    fed.unwrap().to_string(),
                    "/left: the decoder has taken no frame for 0.2 s"
                ),
                true => assert!(fed.is_none() && decoder.finish().unwrap().is_empty()),
            }
        }
    }

    #[test]
    fn a_stream_that_begins_between_key_frames_loses_the_first_units() {
        let units = units(H264, 20);
        let (all, _) = decode(Codec::H264, &units[2..]).unwrap();
        assert!(all.iter().map(|one| one.number).eq(0..18));
        let lost: Vec<_> = all.iter().map(|one| one.views.is_err()).collect();
        assert_eq!((lost.len(), &lost[..4]), (18, &[true, true, true, false][..]));
        assert!(lost[3..].iter().all(|is_lost| !is_lost), "{lost:?}");
    }

    #[test]
    fn units_without_a_picture_are_lost_and_counted() {
        let mut units = units(H264, 20);
        // No frame builds on the last one of a group.
        units[4] = vec![0, 0, 1, 0x41, 0xff, 0xff];
        units[9].clear();
        let (all, _) = decode(Codec::H264, &units).unwrap();
        assert_eq!(all.len(), 20);
        let lost: Vec<_> = all.iter().filter(|one| one.views.is_err()).map(|o| o.number).collect();
        assert_eq!(lost, [4, 9]);
        // GStreamer refuses a stream that has none.
        let error = decode(Codec::H264, &vec![vec![7; 50]; 3]).err().unwrap();
        assert!(error.to_string().starts_with("/left: "), "{error}");
    }
}
