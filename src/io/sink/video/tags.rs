//! Tags that describe the content of a recording.

use std::path::Path;
use std::time::{Duration, SystemTime};

use anyhow::{Context, Result, bail};
use gstreamer as gst;

use crate::clock::CaptureClock;
use crate::ebml::read_tags;
use crate::labels::{Labels, TIMECODE};
use crate::sink::{StagesInTime, StreamInfo};
use stereod_core::frame::{DisparityRange, Eye, StereoGeometry};
use stereod_core::matching::Steady;
use stereod_core::picture::encoding::{Encoding, UNKNOWN};
use stereod_core::picture::numbers::{DepthUnit, Quantity};

/// Names and values as in the file.
pub(super) type Pairs = Vec<(&'static str, String)>;

/// Tags of a recording, sufficient to convert its numbers to disparity and depth.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RecordingTags {
    pub quantity: Quantity,
    pub encoding: Encoding,
    pub range: DisparityRange,
    pub geometry: Option<StereoGeometry>,
    pub stages: StagesInTime,
    /// Capture time of the first frame, which is at 0 in the file: CLOCK_MONOTONIC for a live
    /// source, else the source's own time.
    pub first_timestamp: Duration,
    /// Unix time less capture time in nanoseconds, the same in all files of a run; `None` unless
    /// the source was live.
    pub utc_offset_ns: Option<i64>,
}

const SCALE: &str = "DISPARITY_SCALE";
const OFFSET: &str = "DISPARITY_OFFSET";
const INVALID: &str = "DISPARITY_INVALID";
const MINIMUM: &str = "DISPARITY_MIN";
const COUNT: &str = "DISPARITY_COUNT";
/// The tags of the cameras, in the order of [`numbers`].
const GEOMETRY: [&str; 5] =
    ["FOCAL_LENGTH_PX", "BASELINE_M", "CENTRE_X_PX", "CENTRE_Y_PX", "RIGHT_CENTRE_X_PX"];
const RECTIFIED_VIEW: &str = "RECTIFIED_VIEW";
const RECTIFIED_SIZE: &str = "RECTIFIED_SIZE";
const DEPTH: &str = "DEPTH_SCALE";
pub(super) const FIRST: &str = "FIRST_TIMESTAMP_NS";
const CLOCK: &str = "CAPTURE_CLOCK";
const UTC_OFFSET: &str = "UTC_OFFSET_NS";
pub(super) const FIRST_FRAME: &str = "FIRST_FRAME";
const TEMPORAL: &str = "TEMPORAL";
const STEADY: &str = "STEADY";

impl RecordingTags {
    fn from_pairs(pairs: &[(String, String)]) -> Result<Self> {
        let find = |name: &str| find(pairs, name);
        let needed = |name: &str| {
            let lacks = || format!("it is no recording of stereod: it lacks the tag {name}");
            find(name).with_context(lacks)
        };
        let scale = number(SCALE, needed(SCALE)?)?;
        let offset = number(OFFSET, needed(OFFSET)?)?;
        let encoding = Encoding::from_parts(scale, offset)
            .with_context(|| format!("scale {scale} with offset {offset} is not supported"))?;
        let range = DisparityRange {
            min: number(MINIMUM, needed(MINIMUM)?)?,
            count: number(COUNT, needed(COUNT)?)?,
        };
        if !(1..=1024).contains(&range.count) {
            bail!("its tag {COUNT} is {}", range.count);
        }
        let geometry = geometry(pairs)?;
        let quantity = match find(DEPTH) {
            None => Quantity::Disparity,
            Some(scale) => {
                let unit = DepthUnit::of_scale(number(DEPTH, scale)?);
                Quantity::Depth(unit.with_context(|| format!("its tag {DEPTH} is {scale}"))?)
            }
        };
        Ok(Self {
            quantity,
            encoding,
            range,
            geometry,
            stages: StagesInTime {
                temporal: find(TEMPORAL).and_then(|text| text.parse().ok()),
                steady: find(STEADY).and_then(|text| Some(Steady { strength: text.parse().ok()? })),
            },
            first_timestamp: match find(FIRST) {
                Some(value) => Duration::from_nanos(number(FIRST, value)?),
                None => Duration::ZERO,
            },
            utc_offset_ns: find(UTC_OFFSET).map(|value| number(UTC_OFFSET, value)).transpose()?,
        })
    }

    /// Returns the time of day of the capture of time `time` in the file; `None` unless the source was live.
    pub fn time_of_day(&self, time: Duration) -> Option<SystemTime> {
        let clock = CaptureClock { zero: self.first_timestamp, utc_offset_ns: self.utc_offset_ns? };
        Some(clock.time_of_day(time))
    }
}

fn find<'a>(pairs: &'a [(String, String)], name: &str) -> Option<&'a String> {
    pairs.iter().find(|(found, _)| found.eq_ignore_ascii_case(name)).map(|(_, value)| value)
}

fn number<T: std::str::FromStr>(name: &str, value: &str) -> Result<T> {
    value.parse().ok().with_context(|| format!("its tag {name} is \"{value}\""))
}

/// Returns the cameras; `None` if the tags are incomplete.
fn geometry(pairs: &[(String, String)]) -> Result<Option<StereoGeometry>> {
    let mut numbers = [0.0; 5];
    for (value, name) in numbers.iter_mut().zip(GEOMETRY) {
        let Some(text) = find(pairs, name) else { return Ok(None) };
        *value = number(name, text)?;
    }
    let [focal_px, baseline_m, centre_x_px, centre_y_px, right_centre_x_px] = numbers;
    Ok(Some(StereoGeometry { focal_px, baseline_m, centre_x_px, centre_y_px, right_centre_x_px }))
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RectifiedTags {
    pub eye: Eye,
    pub size: (usize, usize),
    pub geometry: StereoGeometry,
}

/// Reads the tags of a video that `stereod rectify` wrote; `None` for other videos and unreadable files.
pub fn read_rectified_tags(path: &Path) -> Option<RectifiedTags> {
    // Only the head is read, because a video of another program may be long.
    let pairs = read_tags(path, true).ok()?;
    let view = find(&pairs, RECTIFIED_VIEW)?;
    let eye = Eye::BOTH.into_iter().find(|eye| *view == eye.to_string())?;
    let (width, height) = find(&pairs, RECTIFIED_SIZE)?.split_once('x')?;
    let size = (width.parse().ok()?, height.parse().ok()?);
    let geometry = geometry(&pairs).ok()??;
    let usable = numbers(&geometry).iter().all(|number| number.is_finite())
        && geometry.focal_px > 0.0
        && geometry.baseline_m > 0.0
        && size.0 > 0
        && size.1 > 0;
    usable.then_some(RectifiedTags { eye, size, geometry })
}

/// Returns the tags of a rectified video: the geometry that turns its disparity into depth, and
/// the capture time of time 0 in the file.
pub(super) fn of_rectified(
    eye: Eye,
    (width, height): (usize, usize),
    geometry: Option<&StereoGeometry>,
    labels: &Labels,
    first_timestamp: Duration,
) -> Pairs {
    let mut pairs = vec![(FIRST, first_timestamp.as_nanos().to_string())];
    pairs.extend(of_labels(labels, first_timestamp));
    // Programs that scale a video keep its tags.
    pairs.push((RECTIFIED_VIEW, eye.to_string()));
    pairs.push((RECTIFIED_SIZE, format!("{width}x{height}")));
    pairs.extend(geometry.into_iter().flat_map(of_geometry));
    with_title(&format!("stereod rectified {eye}"), "the rectified pictures of a view", pairs)
}

/// Returns the tags of a recording of disparity or depth, with the first frame captured at `first` of the source.
pub(super) fn of_recording(stream: &StreamInfo, quantity: Quantity, first: Duration) -> Pairs {
    let encoding = Encoding::for_range(stream.range);
    let mut pairs = vec![
        (SCALE, encoding.scale().to_string()),
        (OFFSET, encoding.offset().to_string()),
        (INVALID, UNKNOWN.to_string()),
    ];
    pairs.extend(run_tags(stream, first));
    match quantity {
        Quantity::Disparity => {
            with_title("stereod disparity", "disparity in pixels = value / scale + offset", pairs)
        }
        Quantity::Depth(unit) => of_depth("stereod depth", unit, pairs),
    }
}

pub(super) fn of_depth(title: &str, unit: DepthUnit, mut pairs: Pairs) -> Pairs {
    let scale = unit.per_metre();
    pairs.push((DEPTH, scale.to_string()));
    with_title(title, &format!("depth in metres = value / {scale}, 0 is unknown"), pairs)
}

/// Returns the common tags of a run's recordings, with the first frame captured at `first` of the source.
pub fn run_tags(stream: &StreamInfo, first: Duration) -> Pairs {
    let StreamInfo { range, stages, geometry, .. } = stream;
    let mut pairs = vec![(MINIMUM, range.min.to_string()), (COUNT, range.count.to_string())];
    pairs.extend(of_capture(stream, first));
    pairs.extend(of_stages(*stages));
    pairs.extend(geometry.iter().flat_map(of_geometry));
    pairs
}

pub(super) fn of_stages(stages: StagesInTime) -> Pairs {
    let temporal = stages.temporal.map(|temporal| (TEMPORAL, temporal.to_string()));
    let steady = stages.steady.map(|steady| (STEADY, steady.strength.to_string()));
    temporal.into_iter().chain(steady).collect()
}

/// Returns the time of the first frame, captured at `first` of the source, its clock, and its number and time code
/// in the source.
pub(super) fn of_capture(stream: &StreamInfo, first: Duration) -> Pairs {
    let mut pairs = match stream.clock {
        None => vec![(FIRST, first.as_nanos().to_string()), (CLOCK, "SOURCE".to_owned())],
        Some(clock) => vec![
            (FIRST, clock.monotonic(first).as_nanos().to_string()),
            (CLOCK, "CLOCK_MONOTONIC".to_owned()),
            (UTC_OFFSET, clock.utc_offset_ns.to_string()),
        ],
    };
    pairs.extend(of_labels(&stream.labels, first));
    pairs
}

/// Returns the number and time code of the frame of this time, as far as the source has them.
pub(super) fn of_labels(
    labels: &Labels,
    time: Duration,
) -> impl Iterator<Item = (&'static str, String)> {
    let number = labels.number(time).map(|number| (FIRST_FRAME, number.to_string()));
    let timecode = labels.timecode(time).map(|code| (TIMECODE, code.to_string()));
    number.into_iter().chain(timecode)
}

fn numbers(geometry: &StereoGeometry) -> [f64; 5] {
    let StereoGeometry { focal_px, baseline_m, centre_x_px, centre_y_px, right_centre_x_px } =
        *geometry;
    [focal_px, baseline_m, centre_x_px, centre_y_px, right_centre_x_px]
}

fn of_geometry(geometry: &StereoGeometry) -> impl Iterator<Item = (&'static str, String)> {
    GEOMETRY.into_iter().zip(numbers(geometry).map(|number| number.to_string()))
}

/// Adds a title, and a comment that repeats all pairs: GStreamer knows only these two standard names.
pub(super) fn with_title(title: &str, meaning: &str, mut pairs: Pairs) -> Pairs {
    let all: Vec<String> = pairs.iter().map(|(name, value)| format!("{name}={value}")).collect();
    pairs.insert(0, ("TITLE", title.to_owned()));
    pairs.push(("COMMENT", format!("{meaning}; {}", all.join(";"))));
    pairs
}

/// Returns the title and the comment as tags for GStreamer's muxers.
pub(super) fn for_muxers(pairs: &Pairs) -> gst::TagList {
    let text = |name: &str| pairs.iter().find(|(known, _)| *known == name).map(|(_, text)| &**text);
    let mut tags = gst::TagList::new();
    let fresh = tags.make_mut();
    fresh.set_scope(gst::TagScope::Global);
    if let (Some(title), Some(comment)) = (text("TITLE"), text("COMMENT")) {
        fresh.add::<gst::tags::Title>(&title, gst::TagMergeMode::Replace);
        fresh.add::<gst::tags::Comment>(&comment, gst::TagMergeMode::Replace);
    }
    tags
}

/// Reads the tags of a recording, complete or cut short, also after another program (ffmpeg,
/// mkvmerge) has copied it into a new Matroska file.
pub fn read_recording_tags(path: &Path) -> Result<RecordingTags> {
    let pairs = read_tags(path, false);
    pairs
        .and_then(|pairs| RecordingTags::from_pairs(&pairs))
        .with_context(|| format!("cannot read the tags of {}", path.display()))
}
