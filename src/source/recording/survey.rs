//! Overview of a recording, from one pass over all its messages.

use std::time::{Duration, Instant};

use anyhow::Result;
use serde::Serialize;

use super::choice::{self, Wanted};
use super::decoder::{self, Decoder};
use super::interface::{Message, Topic};
use super::messages::{self, Picture};
use super::open::Recording;
use super::pixels;
use super::timing::{self, Basis, Clock, Firsts};
use crate::core::control::Switch;
use crate::core::frame::{Eye, EyeFrame, Image};
use crate::source::gst::{GstOptions, Undecodable, Views};
use crate::source::pairing::unordered::Unordered;
use crate::source::pairing::{PairBy, Pairing};

/// Smallest distance of two messages with a gap between them, in usual periods.
const GAP: f64 = 1.5;

/// A recording at a glance.
#[derive(Clone, Debug, Serialize)]
pub struct Survey {
    /// Kind of recording.
    pub kind: &'static str,
    /// Reason why it ended before its end, if it did.
    pub cut: Option<String>,
    /// The first damaged part, which is left out, and the number of further ones.
    pub damaged: Option<String>,
    /// Time from the first message to the last in seconds.
    pub duration_s: f64,
    /// Every topic with messages.
    pub topics: Vec<TopicSurvey>,
    /// Pair that would be taken, or why there is none.
    #[serde(flatten)]
    pub pair: Chosen,
    /// Calibration files that belong to the recording.
    pub calibration_files: Vec<String>,
    /// Reason why the calibration cannot be used.
    pub calibration_unusable: Option<String>,
}

/// The pair that would be taken.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Chosen {
    Pair(Box<PairSurvey>),
    /// The choice to make.
    NoPair(String),
}

/// A topic at a glance.
#[derive(Clone, Debug, Serialize)]
pub struct TopicSurvey {
    pub name: String,
    /// Type of the messages.
    pub kind: String,
    /// Encoding of the messages.
    pub encoding: String,
    pub messages: u64,
    /// Messages per second: the inverse of their median distance in time.
    pub rate: Option<f64>,
    /// Number of gaps, and the longest in seconds.
    pub gaps: u64,
    /// Longest distance between two messages in seconds.
    pub longest_gap_s: f64,
    /// Size and pixel format of the first image.
    pub image: Option<ImageSurvey>,
    /// Reason why the first image cannot be read.
    pub unreadable: Option<String>,
}

/// The first image of a topic.
#[derive(Clone, Debug, Serialize)]
pub struct ImageSurvey {
    pub width: usize,
    pub height: usize,
    /// Pixel format, or file format.
    pub format: String,
}

/// Two views at a glance.
#[derive(Clone, Debug, Serialize)]
pub struct PairSurvey {
    /// Topic of the left view.
    pub left: String,
    /// Topic of the right view.
    pub right: String,
    /// Number of pairs by their stamps.
    pub pairs: u64,
    /// Images without a partner, left and right.
    pub unpaired: [u64; 2],
    /// Images that are copies of another one, left and right.
    pub copies: [u64; 2],
    /// Images with a wrong time, left and right.
    pub mistimed: [u64; 2],
    /// Images whose size cannot be read, left and right.
    pub unreadable: [u64; 2],
    /// Reason why the stamps do not pair the views, if they do not.
    pub times: Option<&'static str>,
    /// Median of the right stamp minus the left one, in milliseconds; `None` without pairs.
    pub skew_ms: Option<f64>,
    /// Largest absolute value of it.
    pub largest_skew_ms: Option<f64>,
    /// Reason why a run refuses the pair.
    pub unusable: Option<String>,
    /// Topics with the calibrations, if there are any.
    pub camera_infos: Option<[String; 2]>,
}

/// Times of one topic.
#[derive(Default)]
struct Times {
    all: Vec<u64>,
    image: Option<ImageSurvey>,
    /// Size of a view, from the first image that was decoded.
    decoded: Option<(usize, usize)>,
    unreadable: Option<String>,
    /// True if its decoder failed.
    is_refused: bool,
    /// Number of messages without an image, or with an image of unreadable size.
    without_size: u64,
}

impl Times {
    /// Notes the fate of an image.
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
        (self.decoded, self.unreadable) = (Some((width, height)), None);
        let codec = videos.codec(image.topic).map_or(String::new(), |codec| codec.to_string());
        let format = codec + layout;
        self.image.get_or_insert(ImageSurvey { width, height, format });
    }
}

/// Reads a recording once. Stops early if `stop` is set.
pub fn survey(
    recording: &mut Recording,
    wanted: &Wanted,
    stop: &Switch,
    mut tick: impl FnMut(),
) -> Result<Survey> {
    let pair = choice::choose(recording.topics(), wanted);
    let views = pair.as_ref().ok().copied();
    let topics = recording.topics().to_vec();
    let clock = match views {
        Some(views) => clock(recording, views, stop)?,
        None => Firsts::default().clock(),
    };
    let Clock { basis, begin, periods: [left_period, right_period] } = clock;
    let by = if basis == Basis::Order { PairBy::Index } else { PairBy::Time };
    let pairing = Pairing { by, left_period, right_period, ..Pairing::default() };
    recording.begin(&(0..topics.len()).collect::<Vec<_>>())?;
    let mut times: Vec<Times> = topics.iter().map(|_| Times::default()).collect();
    let (mut pairer, mut skews) = (Unordered::new(pairing, Unordered::REACH, begin), Vec::new());
    // The size of a video is its first frame's.
    let mut videos =
        Decoder::new(&GstOptions { stop: stop.clone(), ..GstOptions::default() }, views);
    let (mut first, mut last) = (u64::MAX, 0);
    let (mut message, mut lost) = (Message::default(), Vec::new());
    while !stop.is_set() && recording.next(&mut message)? {
        tick();
        lost.extend(recording.lost());
        let (topic, seen) = (&topics[message.topic], &mut times[message.topic]);
        (first, last) = (first.min(message.log_ns), last.max(message.log_ns));
        let mut time = message.log_ns;
        // Time and content of an image of a view.
        let (mut own, index) = (None, seen.all.len() as u64);
        if topic.has_images() {
            let read = messages::picture(topic, message.log_ns, &message.data);
            match &read {
                Ok((stamp, picture)) => {
                    time = *stamp;
                    let is_frame = matches!(picture, Picture::Unit(..));
                    let size = (!is_frame).then(|| pixels::size(picture));
                    // As in a run, an image without a size has no partner.
                    if !matches!(size, Some(Err(_))) {
                        let content = timing::content(picture, index);
                        own = Some((basis.time(*stamp, message.log_ns), content));
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
                match videos.decode(recording, message.topic, read) {
                    Ok(images) => images.into_iter().for_each(|image| seen.note(image, &videos)),
                    Err(error) => {
                        (seen.unreadable, seen.is_refused) = (Some(format!("{error:#}")), true);
                    }
                }
            }
        }
        seen.all.push(time);
        let Some((own, content)) = own else {
            seen.without_size += 1;
            continue;
        };
        let eyes = views.into_iter().flatten().zip(Eye::BOTH);
        for (_, eye) in eyes.filter(|(view, _)| *view == message.topic) {
            // Only the time counts.
            let image = Image::from_vec(1, 1, vec![0]);
            let timestamp = Some(Duration::from_nanos(own));
            let arrived = Instant::now();
            pairer.push(eye, EyeFrame { image, timestamp, index, arrived }, content);
            skews.extend(std::iter::from_fn(|| pairer.pop()).map(|pair| pair.skew_ns));
        }
    }
    lost.extend(recording.lost());
    match videos.finish() {
        Ok(images) => images.into_iter().for_each(|i| times[i.topic].note(i, &videos)),
        Err(error) => tracing::debug!("{error:#}"),
    }
    for (_, times) in topics.iter().zip(&mut times).filter(|(topic, _)| topic.is_video()) {
        if times.image.is_none() && !times.all.is_empty() {
            times.unreadable.get_or_insert("no frame can be decoded".to_owned());
        }
    }
    Eye::BOTH.into_iter().for_each(|eye| pairer.finish(eye));
    skews.extend(std::iter::from_fn(|| pairer.pop()).map(|pair| pair.skew_ns));
    skews.sort_unstable();
    let ms = |ns: i64| ns as f64 * 1e-6;
    let pair = match pair {
        Ok(views) => {
            let infos = choice::camera_infos(&topics, views);
            let most = skews.iter().map(|ns| ns.saturating_abs()).max();
            Chosen::Pair(Box::new(PairSurvey {
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
                times: basis.warning(),
                skew_ms: skews.get(skews.len() / 2).copied().map(ms),
                largest_skew_ms: most.map(ms),
                unusable: unusable(views.map(|view| (topics[view].name.as_str(), &times[view]))),
                camera_infos: infos.map(|infos| infos.map(|topic| topics[topic].name.clone())),
            }))
        }
        Err(error) => Chosen::NoPair(format!("{error:#}")),
    };
    let files = recording.calibrations.iter().map(|file| file.display().to_string());
    Ok(Survey {
        kind: recording.kind,
        cut: recording.cut(),
        damaged: lost.first().map(|first| match lost.len() {
            1 => first.what.clone(),
            many => format!("{}; further damaged parts: {}", first.what, many - 1),
        }),
        duration_s: last.saturating_sub(first) as f64 * 1e-9,
        topics: topics.iter().zip(times).map(|(topic, times)| topic_survey(topic, times)).collect(),
        pair,
        calibration_files: files.collect(),
        calibration_unusable: None,
    })
}

/// Returns the basis of times for pairing these views, from their first images.
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
    recording.lost();
    Ok(firsts.clock())
}

/// Returns the reason why a run refuses a pair with these first images.
fn unusable(views: [(&str, &Times); 2]) -> Option<String> {
    let [left, right] = views.map(|(name, times)| {
        let flaw = times.unreadable.as_deref().unwrap_or("it has no readable image");
        times.decoded.ok_or_else(|| format!("{name}: {flaw}"))
    });
    match (left, right) {
        (Err(flaw), _) | (_, Err(flaw)) => Some(flaw),
        (Ok(left), Ok(right)) if left != right => Some(format!(
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
