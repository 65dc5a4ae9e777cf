//! Decodes the images of a recording: each by itself, or the frames of a video in their order.

use std::collections::HashMap;

use anyhow::Result;

use super::messages::Picture;
use super::open::Recording;
use super::pixels;
use crate::source::byte_stream::Codec;
use crate::source::gst::{self, Decoded, GstOptions, Undecodable, UnitDecoder, ViewLayout, Views};
use stereod_core::matching::saturation::WHITE;

pub struct Image {
    pub topic: usize,
    pub number: u64,
    /// Stamp in nanoseconds.
    pub stamp: u64,
    pub views: Result<Views>,
}

pub struct Decoder {
    options: GstOptions,
    /// The topic that has both views side by side, as the user says.
    both: Option<usize>,
    numbers: HashMap<usize, u64>,
    videos: HashMap<usize, Video>,
}

struct Video {
    decoder: UnitDecoder,
    codec: Codec,
}

impl Decoder {
    pub fn new(options: &GstOptions, topics: Option<[usize; 2]>) -> Self {
        let both = topics.filter(|[left, right]| left == right).map(|[left, _]| left);
        Self { options: options.clone(), both, numbers: HashMap::new(), videos: HashMap::new() }
    }

    /// Decodes the next message of a topic. Returns the finished images; in a video they may belong to
    /// earlier messages. An image that cannot be decoded is no error of this function, but a failing decoder
    /// is.
    pub fn decode(
        &mut self,
        recording: &Recording,
        topic: usize,
        picture: Result<(u64, Picture<'_>)>,
    ) -> Result<Vec<Image>> {
        let number = self.skip(topic, 1);
        let image = |stamp, views| vec![Image { topic, number, stamp, views }];
        let (stamp, picture) = match picture {
            Ok(read) => read,
            Err(flaw) => {
                self.lose(topic);
                return Ok(image(0, Err(flaw)));
            }
        };
        let layout = match self.both == Some(topic) {
            true => ViewLayout::SideBySide,
            false => recording.topics()[topic].layout(),
        };
        let Picture::Unit(codec, unit) = picture else {
            let GstOptions { keep, tone, .. } = &self.options;
            return Ok(image(stamp, pixels::views(&picture, layout, keep, *tone)));
        };
        let video = match (self.videos.get_mut(&topic), codec) {
            (Some(video), _) => video,
            // Nothing can be decoded before the first parameters.
            (None, None) => return Ok(image(stamp, Err(Undecodable::Missing.into()))),
            (None, Some(codec)) => {
                let described = &recording.topics()[topic];
                let name = format!("{}: {}", recording.name, described.name);
                gst::initialise()?;
                let decoder = UnitDecoder::new(&name, codec, layout, &self.options)?;
                self.videos.entry(topic).or_insert(Video { decoder, codec })
            }
        };
        if let Some(other) = codec.filter(|codec| *codec != video.codec) {
            let codec = video.codec;
            let flaw = anyhow::anyhow!("the video changes from {codec} to {other}");
            return Ok(image(stamp, Err(flaw)));
        }
        let done = video.decoder.feed(number, stamp, unit)?;
        Ok(done.into_iter().map(|unit| of_unit(topic, unit)).collect())
    }

    /// Notes that messages of a topic are missing here. Later frames of a video may build on them.
    pub fn lose(&mut self, topic: usize) {
        if let Some(video) = self.videos.get_mut(&topic) {
            video.decoder.lose();
        }
    }

    /// Counts messages that need not or cannot be decoded, and returns the number of the first one.
    pub fn skip(&mut self, topic: usize, count: u64) -> u64 {
        let next = self.numbers.entry(topic).or_default();
        *next += count;
        *next - count
    }

    pub fn finish(&mut self) -> Result<Vec<Image>> {
        let mut all = Vec::new();
        for (topic, video) in &mut self.videos {
            let done = video.decoder.finish()?;
            all.extend(done.into_iter().map(|unit| of_unit(*topic, unit)));
        }
        Ok(all)
    }

    pub fn codec(&self, topic: usize) -> Option<Codec> {
        self.videos.get(&topic).map(|video| video.codec)
    }

    pub fn concealed(&self, topic: usize) -> u64 {
        self.videos.get(&topic).map_or(0, |video| video.decoder.concealed())
    }

    pub fn white(&self, topic: usize) -> u8 {
        self.videos.get(&topic).map_or(WHITE, |video| video.decoder.white())
    }
}

fn of_unit(topic: usize, unit: Decoded) -> Image {
    let Decoded { number, stamp, views } = unit;
    Image { topic, number, stamp, views: views.map_err(Into::into) }
}
