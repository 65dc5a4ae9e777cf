//! Overview of a recording, from one pass over all its messages.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use serde::Serialize;

use super::choice::{self, Wanted};
use super::decoder::{self, Decoder};
use super::interface::{Message, Topic};
use super::messages::{self, Picture};
use super::open::Recording;
use super::pixels;
use super::replay;
use super::timing::{self, Basis, Clock, Firsts};
use crate::control::Switch;
use crate::source::gst::{GstOptions, Offset, Undecodable, Views};
use crate::source::pairing::unordered::Unordered;
use stereod_core::frame::{Eye, EyeFrame, Image};

/// Smallest distance of two messages with a gap between them, in usual periods.
const GAP: f64 = 1.5;

#[derive(Clone, Debug, Serialize)]
pub struct Survey {
    pub kind: &'static str,
    pub cut: Option<String>,
    /// The first damaged part, which is left out, and the number of further ones.
    pub damaged: Option<String>,
    /// Time from the first message to the last in seconds.
    pub duration_s: f64,
    pub topics: Vec<TopicSurvey>,
    /// Pair that would be taken, or why there is none.
    #[serde(flatten)]
    pub pair: Chosen,
    pub calibration_files: Vec<String>,
    pub calibration_unusable: Option<String>,
}

#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Chosen {
    Pair(Box<PairSurvey>),
    NoPair(String),
}

#[derive(Clone, Debug, Serialize)]
pub struct TopicSurvey {
    pub name: String,
    pub kind: String,
    pub encoding: String,
    pub messages: u64,
    /// Messages per second: the inverse of their median distance in time.
    pub rate: Option<f64>,
    /// Number of gaps, and the longest in seconds.
    pub gaps: u64,
    /// Longest distance between two messages in seconds.
    pub longest_gap_s: f64,
    pub image: Option<ImageSurvey>,
    pub unreadable: Option<String>,
}

#[derive(Clone, Debug, Serialize)]
pub struct ImageSurvey {
    pub width: usize,
    pub height: usize,
    pub format: String,
}

#[derive(Clone, Debug, Serialize)]
pub struct PairSurvey {
    pub left: String,
    pub right: String,
    /// Number of pairs by their stamps.
    pub pairs: u64,
    /// Images without a partner, left and right.
    pub unpaired: [u64; 2],
    /// Images that are copies of another one, left and right.
    pub copies: [u64; 2],
    /// Images with a wrong time, left and right.
    pub mistimed: [u64; 2],
    pub unreadable: [u64; 2],
    /// Reason why the stamps do not pair the views, if they do not.
    pub times: Option<&'static str>,
    /// Median of the right stamp minus the left one, in milliseconds; `None` without pairs.
    pub skew_ms: Option<f64>,
    /// Largest absolute value of it.
    pub largest_skew_ms: Option<f64>,
    pub unusable: Option<String>,
    pub camera_infos: Option<[String; 2]>,
}

#[derive(Default)]
struct Times {
    all: Vec<u64>,
    image: Option<ImageSurvey>,
    /// Size of a view, from the first image that was decoded.
    decoded: Option<(usize, usize)>,
    unreadable: Option<String>,
    is_refused: bool,
    /// Number of the first image that was decoded, and the times of a video's earlier messages, by number: a run pairs
    /// them only from that image on.
    first: Option<u64>,
    held: Vec<(u64, u64)>,
    /// Number of messages without an image, or with an image of unreadable size.
    without_size: u64,
}

impl Times {
    fn note(&mut self, image: decoder::Image, videos: &Decoder) {
        let (view, layout) = match image.views {
            Ok(Views::One(view)) => (view, ""),
            Ok(Views::Both(view, _)) => (view, ", side by side"),
            Err(error) => {
                // A video may begin long before a frame that builds on no other.
                if !error.is::<Undecodable>() {
                    self.unreadable.get_or_insert(format!("{error:#}"));
                }
                return;
            }
        };
        let (width, height) = (view.width(), view.height());
        self.first.get_or_insert(image.number);
        (self.decoded, self.unreadable) = (Some((width, height)), None);
        let codec = videos.codec(image.topic).map_or(String::new(), |codec| codec.to_string());
        let format = codec + layout;
        self.image.get_or_insert(ImageSurvey { width, height, format });
    }
}

/// Reads a recording once, and pairs its images as a run with these options does.
pub fn survey(
    recording: &mut Recording,
    wanted: &Wanted,
    options: &GstOptions,
    mut tick: impl FnMut(),
) -> Result<Survey> {
    let stop = &options.stop;
    let pair = choice::choose(recording.topics(), wanted);
    let views = pair.as_ref().ok().copied();
    let clock = match views {
        Some(views) => clock(recording, views, stop)?,
        None => Firsts::default().clock(),
    };
    let offset = match options.offset {
        Offset::Ns(ns) => ns,
        Offset::Auto => bail!(replay::NO_AUTO),
    };
    let mut pass = Pass::new(recording.topics(), views, clock, options, offset);
    recording.begin(&(0..pass.topics.len()).collect::<Vec<_>>())?;
    let (mut message, mut lost) = (Message::default(), Vec::new());
    while !stop.is_set() && recording.next(&mut message)? {
        tick();
        lost.extend(recording.reader.lost());
        pass.note(recording, &message);
    }
    lost.extend(recording.reader.lost());
    pass.finish();
    let pair = match pair {
        Ok(views) => Chosen::Pair(Box::new(pass.pair(views, &recording.calibrations))),
        Err(error) => Chosen::NoPair(format!("{error:#}")),
    };
    let files = recording.calibrations.iter().map(|file| file.display().to_string());
    Ok(Survey {
        kind: recording.kind,
        cut: recording.reader.cut(),
        damaged: lost.first().map(|first| match lost.len() {
            1 => first.what.clone(),
            many => format!("{}; further damaged parts: {}", first.what, many - 1),
        }),
        duration_s: pass.last_ns.saturating_sub(pass.first_ns) as f64 * 1e-9,
        topics: pass
            .topics
            .iter()
            .zip(pass.times)
            .map(|(t, times)| topic_survey(t, times))
            .collect(),
        pair,
        calibration_files: files.collect(),
        calibration_unusable: None,
    })
}

struct Pass {
    topics: Vec<Topic>,
    views: Option<[usize; 2]>,
    basis: Basis,
    times: Vec<Times>,
    videos: Decoder,
    /// Nanoseconds added to the stamps of each view before pairing.
    delays: [u64; 2],
    pairer: Unordered,
    /// Right stamp minus left one of every pair in nanoseconds.
    skews: Vec<i64>,
    first_ns: u64,
    last_ns: u64,
}

impl Pass {
    fn new(
        topics: &[Topic],
        views: Option<[usize; 2]>,
        clock: Clock,
        options: &GstOptions,
        offset: i64,
    ) -> Self {
        let Clock { basis, begin, .. } = clock;
        let (pairing, delays) =
            (replay::pairing(options, &clock, offset, false), replay::delays(offset));
        let begin = begin.saturating_add(Duration::from_nanos(delays[0]));
        Self {
            topics: topics.to_vec(),
            views,
            basis,
            times: topics.iter().map(|_| Times::default()).collect(),
            videos: Decoder::new(
                &GstOptions { stop: options.stop.clone(), ..GstOptions::default() },
                views,
            ),
            delays,
            pairer: Unordered::new(pairing, Unordered::REACH, begin),
            skews: Vec::new(),
            first_ns: u64::MAX,
            last_ns: 0,
        }
    }

    /// Notes a message, and pairs its image if it is one of a view.
    fn note(&mut self, recording: &Recording, message: &Message) {
        self.first_ns = self.first_ns.min(message.log_ns);
        self.last_ns = self.last_ns.max(message.log_ns);
        let index = self.times[message.topic].all.len() as u64;
        let (time, image) = match self.topics[message.topic].has_images() {
            true => self.note_image(recording, message, index),
            false => (message.log_ns, None),
        };
        let seen = &mut self.times[message.topic];
        seen.all.push(time);
        let Some((time, content)) = image else {
            seen.without_size += 1;
            return;
        };
        if !self.topics[message.topic].is_video() {
            return self.push(message.topic, index, time, content);
        }
        seen.held.push((index, time));
        self.release(message.topic);
    }

    /// Hands the messages of a video to the pairing, once its first image is known.
    fn release(&mut self, topic: usize) {
        let seen = &mut self.times[topic];
        let Some(first) = seen.first else { return };
        for (index, time) in std::mem::take(&mut seen.held) {
            match index < first {
                true => self.times[topic].without_size += 1,
                // No two frames of a video are copies.
                false => self.push(topic, index, time, index),
            }
        }
    }

    /// Hands an image to the pairing, if its topic is a view.
    fn push(&mut self, topic: usize, index: u64, time: u64, content: u64) {
        let eyes = self.views.into_iter().flatten().zip(Eye::BOTH);
        for (_, eye) in eyes.filter(|(view, _)| *view == topic) {
            // Only the time counts.
            let image = Image::from_vec(1, 1, vec![0]);
            let time = time.saturating_add(self.delays[eye.index()]);
            let timestamp = Some(Duration::from_nanos(time));
            let arrived = Instant::now();
            self.pairer.push(eye, EyeFrame { image, timestamp, index, arrived }, content);
            self.pop_pairs();
        }
    }

    /// Notes size and format of an image. Returns the time of its message, and time and content for pairing.
    fn note_image(
        &mut self,
        recording: &Recording,
        message: &Message,
        index: u64,
    ) -> (u64, Option<(u64, u64)>) {
        let (mut time, mut image) = (message.log_ns, None);
        let seen = &mut self.times[message.topic];
        let read = messages::picture(&self.topics[message.topic], message.log_ns, &message.data);
        match &read {
            Ok((stamp, picture)) => {
                time = *stamp;
                let is_frame = matches!(picture, Picture::Unit(..));
                // The size of a video is its first frame's.
                let size = (!is_frame).then(|| pixels::size(picture));
                // As in a run, an image without a size has no partner.
                if !matches!(size, Some(Err(_))) {
                    let content = timing::content(picture, index);
                    image = Some((self.basis.time(*stamp, message.log_ns), content));
                }
                // An image that is not read has a size and a format as well.
                if seen.image.is_none()
                    && let Some(Ok((width, height))) = size
                {
                    let format = pixels::format(picture);
                    seen.image = Some(ImageSurvey { width, height, format });
                }
            }
            Err(error) => {
                seen.unreadable.get_or_insert(format!("{error:#}"));
            }
        }
        // As a run decodes them.
        if seen.decoded.is_none() && !seen.is_refused {
            match self.videos.decode(recording, message.topic, read) {
                Ok(images) => images.into_iter().for_each(|image| seen.note(image, &self.videos)),
                Err(error) => {
                    (seen.unreadable, seen.is_refused) = (Some(format!("{error:#}")), true);
                }
            }
        }
        (time, image)
    }

    fn pop_pairs(&mut self) {
        let pairs = std::iter::from_fn(|| self.pairer.pop());
        self.skews.extend(pairs.filter_map(|pair| pair.skew_ns));
    }

    fn finish(&mut self) {
        match self.videos.finish() {
            Ok(images) => {
                images.into_iter().for_each(|i| self.times[i.topic].note(i, &self.videos));
            }
            Err(error) => tracing::debug!("{error:#}"),
        }
        let videos = self.topics.iter().zip(&mut self.times).filter(|(topic, _)| topic.is_video());
        for (_, times) in videos {
            if times.image.is_none() && !times.all.is_empty() {
                times.unreadable.get_or_insert("no frame can be decoded".to_owned());
            }
        }
        (0..self.topics.len()).for_each(|topic| self.release(topic));
        Eye::BOTH.into_iter().for_each(|eye| self.pairer.finish(eye));
        self.pop_pairs();
        self.skews.sort_unstable();
    }

    fn pair(&self, views: [usize; 2], calibrations: &[PathBuf]) -> PairSurvey {
        let Self { topics, times, pairer, skews, .. } = self;
        let infos = choice::camera_infos(topics, views);
        let most = skews.iter().map(|ns| ns.saturating_abs()).max();
        let ms = |ns: i64| ns as f64 * 1e-6;
        PairSurvey {
            left: topics[views[0]].name.clone(),
            right: topics[views[1]].name.clone(),
            pairs: pairer.pairer().pairs(),
            unpaired: Eye::BOTH.map(|eye| {
                let left_out = pairer.copies(eye) + pairer.mistimed(eye);
                pairer.pairer().unpaired(eye) - left_out
            }),
            copies: Eye::BOTH.map(|eye| pairer.copies(eye)),
            mistimed: Eye::BOTH.map(|eye| pairer.mistimed(eye)),
            unreadable: views.map(|view| times[view].without_size),
            times: self.basis.warning(),
            skew_ms: skews.get(skews.len() / 2).copied().map(ms),
            largest_skew_ms: most.map(ms),
            unusable: unusable(
                views.map(|view| (topics[view].name.as_str(), &times[view])),
                infos.is_some() || !calibrations.is_empty(),
            ),
            camera_infos: infos.map(|infos| infos.map(|topic| topics[topic].name.clone())),
        }
    }
}

fn clock(recording: &mut Recording, views: [usize; 2], stop: &Switch) -> Result<Clock> {
    let (mut message, mut firsts) = (Message::default(), Firsts::default());
    recording.begin(&views)?;
    while !firsts.are_enough(false) && !stop.is_set() && recording.next(&mut message)? {
        let topic = &recording.topics()[message.topic];
        if let Ok((stamp, picture)) = messages::picture(topic, message.log_ns, &message.data) {
            firsts.note_message(views, &message, stamp, &picture);
        }
    }
    // It is read again.
    recording.reader.lost();
    Ok(firsts.clock())
}

/// Returns why the views are no pair. A calibration brings views of unlike cameras to one size.
fn unusable(views: [(&str, &Times); 2], are_calibrated: bool) -> Option<String> {
    let [left, right] = views.map(|(name, times)| {
        let flaw = times.unreadable.as_deref().unwrap_or("it has no readable image");
        times.decoded.ok_or_else(|| format!("{name}: {flaw}"))
    });
    match (left, right) {
        (Err(flaw), _) | (_, Err(flaw)) => Some(flaw),
        (Ok(left), Ok(right)) if left != right && !are_calibrated => Some(format!(
            "the views differ in size: {}x{} and {}x{}",
            left.0, left.1, right.0, right.1
        )),
        _ => None,
    }
}

fn topic_survey(topic: &Topic, times: Times) -> TopicSurvey {
    let Times { mut all, image, unreadable, .. } = times;
    all.sort_unstable();
    let mut steps: Vec<u64> = all.windows(2).map(|two| two[1] - two[0]).collect();
    steps.sort_unstable();
    let period = steps.get(steps.len() / 2).copied().filter(|&step| step > 0);
    let is_gap = |step: &&u64| period.is_some_and(|period| **step as f64 > GAP * period as f64);
    TopicSurvey {
        name: topic.name.clone(),
        kind: topic.kind.clone(),
        encoding: topic.encoding.to_string(),
        messages: all.len() as u64,
        rate: period.map(|period| 1e9 / period as f64),
        gaps: steps.iter().filter(is_gap).count() as u64,
        longest_gap_s: steps.last().map_or(0.0, |&step| step as f64 * 1e-9),
        image,
        unreadable,
    }
}
