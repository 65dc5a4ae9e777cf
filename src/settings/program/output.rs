//! `[output]`: outputs besides the window.

use std::path::PathBuf;
use std::time::Duration;

use serde::Deserialize;

use crate::settings::names::path_of;
use stereod_core::picture::cloud::{Axes, CloudFormat, CloudOptions};
use stereod_core::picture::numbers::{DepthUnit, Quantity};
use stereod_core::settings::row::Plain::{Real, Switch, Text, Whole};
use stereod_core::settings::row::{Conflict, InBatch, Integer, Kind, OUTPUT, QUANTITY, Row, any};
use stereod_io::sink::segments::SegmentLimits;
use stereod_io::sink::still::StillFormat;
use stereod_io::sink::video::{StreamPicture, VideoView};
use stereod_io::sink::{mcap, messages};

/// Outputs besides the window. An empty text means none.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Output {
    pub record: String,
    pub mcap: String,
    pub frame_prefix: String,
    pub on_demand: bool,
    pub segment: String,
    pub segment_size: String,
    pub keep: String,
    pub keep_free: String,
    pub confidence: String,
    pub whitened: String,
    pub verdicts: String,
    pub aligned: String,
    pub poses: String,
    pub map: String,
    pub preview: String,
    pub preview_view: VideoView,
    pub preview_quality: u32,
    pub preview_legend: bool,
    pub pictures: String,
    pub pictures_format: StillFormat,
    pub clouds: String,
    pub clouds_format: CloudFormat,
    pub stream: String,
    pub stream_view: StreamPicture,
    pub stats: String,
    pub depth: bool,
    pub depth_unit: f64,
    pub near_m: Option<f64>,
    pub far_m: Option<f64>,
    pub axes: Axes,
    pub outliers: Option<f64>,
    pub voxel_m: Option<f64>,
}

pub(in crate::settings) const ROWS: &[Row] = &[
    Row::path("record")
        .flag(OUTPUT, "--record", "OUT.mkv|OUT.mcap")
        .help(
            "Record the disparity without loss (.mkv: FFV1, 16 bits, Matroska), or images, disparity \
             and depth as ROS 2 messages (.mcap).",
        ),
    Row::text("mcap", "", messages::check_topics).flag(OUTPUT, "--mcap", "TOPICS").help(
        "Content of the MCAP file of `record`, a list of left, left-jpeg, right, disparity, disparity-jpeg, depth, \
         depth-float, depth-png, points, confidence, verdicts, scan, obstacles, odometry and grid; by default left, \
         disparity, disparity-jpeg, with a calibration depth, verdicts if a network is checked, scan and obstacles if \
         they are found, and odometry if the motion is followed.",
    ),
    Row::text("frame_prefix", "", messages::check_prefix)
        .help("Prefix of the coordinate frames' names in messages (MCAP, ROS 2, Foxglove), such as `front_`.")
        .more("It tells the frames of several rigs apart: front_stereo_link, front_left_optical_frame."),
    Row::new("on_demand", Switch(false), Kind::Switch)
        .in_batch(InBatch::Reset)
        .flag(OUTPUT, "--on-demand", "")
        .help("Write frames to files only while somebody has switched it on: in the window, on the live page or by a service of ROS 2.")
        .more("The service is ~/record; it applies to recordings, images and clouds."),
    Row::text("segment", "", |text| match duration(text) {
        None if !text.is_empty() => Err("a time from 1 s on such as `10min` or `1h 30min`".into()),
        _ => Ok(()),
    })
    .in_batch(InBatch::Reset)
    .flag(OUTPUT, "--segment", "TIME")
    .help("Start a new file of the recording after this time, such as 10min.")
    .more(
        "The names of the files have their start time and a number: \
         out-20261121T101500Z-00003.mkv.",
    ),
    Row::text("segment_size", "", size)
        .in_batch(InBatch::Reset)
        .flag(OUTPUT, "--segment-size", "SIZE")
        .help("Start a new file of the recording before it exceeds this size, such as 2GB."),
    Row::text("keep", "", size).in_batch(InBatch::Reset)
        .flag(OUTPUT, "--keep", "SIZE")
        .help(
            "Delete the oldest files of the recording if all together exceed this size, such as \
             20GB.",
        )
        .more("Files of earlier runs count, too."),
    Row::text("keep_free", "", size).in_batch(InBatch::Reset).flag(OUTPUT, "--keep-free", "SIZE").help(
        "Delete the oldest files of the recording if less than this is free on the disk, such \
             as 5GB.",
    ),
    Row::path("confidence")
        .flag(OUTPUT, "--confidence", "OUT.mkv")
        .help(
            "Record the confidence of each pixel, 1 to 255, and 0 where the disparity is unknown or \
             filled (FFV1, 8 bits, Matroska).",
        )
        .more("In segments like the recording."),
    Row::path("whitened")
        .flag(OUTPUT, "--whitened", "OUT.mkv")
        .help(
            "Record the left image minus the background that earlier frames predict, with a mask of moving \
             pixels (FFV1, 16 bits, Matroska); needs `matching.temporal` whiten.",
        )
        .more(
            "128 units per grey level around 32768; the lowest bit is 1 where the pixel moves.",
        ),
    Row::path("verdicts")
        .flag(OUTPUT, "--verdicts", "OUT.mkv")
        .help(
            "Record whether a network and matching agree: 1 agree, 2 only the network, 3 only matching knows the pixel, \
             4 contradict, 0 unknown (FFV1, 8 bits, Matroska); needs `engine.check` sgm.",
        ),
    Row::path("aligned")
        .flag(OUTPUT, "--aligned", "OUT.mkv")
        .help(
            "Record the depth for each pixel of a third camera, which `calibration.align` describes (FFV1, 16 \
             bits, Matroska).",
        )
        .more("Multiples of `depth_unit`; 0: unknown."),
    Row::path("poses")
        .in_batch(InBatch::Reset)
        .flag(OUTPUT, "--poses", "OUT.tum|OUT.kitti|OUT.ndjson")
        .help("Write the path of the left camera, a line for each pair: as TUM's, KITTI's or JSON; switches `matching.odometry` on.")
        .more("TUM: time, position, quaternion, without the pairs in which the rig is lost; KITTI: three rows of a matrix, the last one again while it is lost; JSON: the vehicle, its covariance and velocity."),
    Row::path("map")
        .in_batch(InBatch::Reset)
        .flag(OUTPUT, "--map", "OUT.ply|OUT.glb")
        .help("Write at the end a map of all that was seen along the path, as points in metres; switches `matching.odometry` on.")
        .more("Its settings are those of [map]."),
    Row::path("preview")
        .flag(OUTPUT, "--preview", "OUT.mp4")
        .help("Record a coloured video for viewing (H.264, MP4)."),
    Row::names("preview_view", "side-by-side", &["disparity", "left", "side-by-side"])
        .flag(OUTPUT, "--preview-view", "VIEW")
        .help("Content of the preview.")
        .about(&[
            "The disparity in colours",
            "The left image, in colour if the source has it",
            "The left image, and the disparity in colours",
        ]),
    Row::whole("preview_quality", Whole(20), Integer::U32, [0, 51])
        .help("Quality of the preview (x264's quantizer), 0 (no loss) to 51; 18 looks like no loss."),
    Row::new("preview_legend", Switch(true), Kind::Switch)
        .help("Legend of the colours in the preview: metres if the cameras are known, else pixels."),
    Row::path("pictures")
        .flag(OUTPUT, "--pictures", "DIR")
        .help(
            "Write numbered 16-bit PNG images (disparity * 256, or * 128 or * 64 beyond 255 px) into \
             a folder, and remove those of an earlier run.",
        )
        .more("`DIR/shot.####.png` gives the names, also with `%04d` or `$F4`."),
    Row::names("pictures_format", "png", &["png", "tiff", "exr", "npy", "pfm"])
        .flag(OUTPUT, "--pictures-format", "FORMAT")
        .help("Format of `pictures`.")
        .about(&[
            "16 bits",
            "32-bit floats in pixels, or in metres with `depth`",
            "32-bit floats with channels for disparity, depth and confidence, as far as they are known",
            "32-bit floats for NumPy, in pixels or metres",
            "32-bit floats in pixels or metres, portable float map",
        ]),
    Row::path("clouds")
        .flag(OUTPUT, "--clouds", "DIR")
        .help(
            "Write numbered point clouds (metres, coloured) into a folder, and remove those of an \
             earlier run.",
        )
        .more("They need a calibration. `DIR/shot.####.ply` gives the names."),
    Row::names("clouds_format", "ply", &["ply", "pcd", "las"])
        .flag(OUTPUT, "--clouds-format", "FORMAT")
        .help("Format of `clouds`.")
        .about(&[
            "Stanford's polygon format, for MeshLab, CloudCompare, Blender and Open3D",
            "The format of the Point Cloud Library",
            "The format of laser scans, for GIS programs, without z_std",
        ]),
    Row::text("stream", "", any).in_batch(InBatch::Reset)
        .flag(OUTPUT, "--stream", "FRAGMENT")
        .help(
            "Send frames live through a fragment of a GStreamer pipeline, such as \
             'videoconvert ! x264enc tune=zerolatency ! mpegtsmux ! srtsink uri=srt://:7001'.",
        )
        .more("Written as for gst-launch-1.0."),
    Row::names("stream_view", "disparity", &["disparity", "left", "side-by-side", "numbers"])
        .in_batch(InBatch::Free)
        .flag(OUTPUT, "--stream-view", "VIEW")
        .help("Content of the stream.")
        .about(&[
            "The disparity in colours",
            "The left image, in colour if the source has it",
            "The left image, and the disparity in colours",
            "The 16-bit numbers of a recording",
        ]),
    Row::path("stats")
        .flag(OUTPUT, "--stats", "FILE|-")
        .help("Write statistics at the end, as JSON; `-` is standard output."),
    Row::new("depth", Switch(false), Kind::Switch)
        .flag(QUANTITY, "--depth", "")
        .help("Write depth instead of disparity, as 16-bit multiples of `depth_unit`.")
        .more("Into recordings and images; 0: unknown."),
    Row::real("depth_unit", Real(1.0), DepthUnit::LIMITS_MM)
        .unit("millimetres")
        .flag(QUANTITY, "--depth-unit", "MM")
        .help("Unit of 16-bit depth in millimetres, 0.1 to 10: 1 reaches 65.535 m, 10 ten times as far."),
    limit("near_m")
        .flag(QUANTITY, "--near", "METRES")
        .help("Depth of the last colour and of the nearest points of clouds, in metres; needs known cameras."),
    limit("far_m")
        .flag(QUANTITY, "--far", "METRES")
        .help("Depth of the first colour and of the farthest points of clouds, in metres; needs known cameras."),
    Row::names("axes", "opencv", &["opencv", "y-up"])
        .flag(QUANTITY, "--axes", "AXES")
        .help("Axes of point clouds.")
        .about(&["x right, y down, z forward, as in OpenCV", "x right, y up, z backward, as in OpenGL"]),
    Row::real("outliers", Text("off"), [0.1, 100.0])
        .or(&["off"])
        .unit("standard deviations")
        .flag(QUANTITY, "--outliers", "RATIO")
        .help(
            "Leave out of clouds points that are farther from their neighbours than the mean of all by more \
             than this many standard deviations, such as 2.",
        )
        .more("`off`: they stay."),
    Row::real("voxel_m", Text("off"), [0.0001, 1000.0])
        .or(&["off"])
        .unit("metres")
        .flag(QUANTITY, "--voxel", "METRES")
        .help("Write into clouds one mean point for each cube with sides of this many metres.")
        .more("`off`: every pixel."),
];

const fn limit(key: &'static str) -> Row {
    Row::real(key, Text("off"), [0.001, 1e6]).or(&["off"]).unit("metres")
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stats {
    Stdout,
    File(PathBuf),
}

impl Output {
    /// Returns the limits of the recording's segments; `None` for a single file.
    pub fn segmenting(&self) -> Option<SegmentLimits> {
        let segmenting = SegmentLimits {
            length: given(&self.segment).and_then(duration),
            size: given(&self.segment_size).and_then(bytes),
            keep: given(&self.keep).and_then(bytes),
            keep_free: given(&self.keep_free).and_then(bytes),
        };
        (segmenting != SegmentLimits::default()).then_some(segmenting)
    }

    pub fn depth_unit(&self) -> DepthUnit {
        DepthUnit::of_millimetres(self.depth_unit)
    }

    pub fn quantity(&self) -> Quantity {
        if self.depth { Quantity::Depth(self.depth_unit()) } else { Quantity::Disparity }
    }

    pub fn clouds(&self) -> CloudOptions {
        let Self { axes, near_m, far_m, outliers, voxel_m, .. } = *self;
        CloudOptions { axes, near_m, far_m, outliers, voxel_m, place: None }
    }

    /// Reports whether there are limits of depth, which need known cameras.
    pub fn has_depth_limits(&self) -> bool {
        self.near_m.is_some() || self.far_m.is_some()
    }

    pub fn stats(&self) -> Option<Stats> {
        match self.stats.as_str() {
            "-" => Some(Stats::Stdout),
            file => path_of(file).map(Stats::File),
        }
    }

    pub fn map(&self) -> Option<PathBuf> {
        path_of(&self.map)
    }

    pub fn stream(&self) -> Option<&str> {
        given(self.stream.trim())
    }

    pub fn shows_left(&self) -> bool {
        (!self.preview.is_empty() && self.preview_view.shows_left())
            || (self.stream().is_some() && self.stream_view.shows_left())
            || !self.clouds.is_empty()
            || mcap::is_name(self.record.as_ref())
    }

    pub(in crate::settings) fn shows_confidence(&self) -> bool {
        !self.confidence.is_empty()
            || (!self.pictures.is_empty() && self.pictures_format == StillFormat::Exr)
            || messages::names(&self.mcap).any(|name| name == "confidence")
    }

    pub(in crate::settings) fn shows_odometry(&self) -> bool {
        !self.poses.is_empty() || !self.map.is_empty() || messages::show_odometry(&self.mcap)
    }

    pub(in crate::settings) fn shows_obstacles(&self) -> bool {
        messages::show_obstacles(&self.mcap)
    }

    /// Checks that a unit of depth is given with depth only, and that the limits of depth leave something.
    pub(in crate::settings) fn check(&self) -> Result<(), Conflict> {
        let has_depth = self.depth || !self.aligned.is_empty();
        if !has_depth && self.depth_unit() != DepthUnit::default() {
            return Err(Conflict::new(
                "depth_unit",
                "1 unless depth is written (--depth, --aligned)",
            ));
        }
        match (self.near_m, self.far_m) {
            (Some(near), Some(far)) if far <= near => {
                Err(Conflict::new("far_m", format!("more than output.near_m, which is {near}")))
            }
            _ => Ok(()),
        }
    }

    /// Returns the reason why the disparity range cannot change in a run, if any.
    pub fn why_range_fixed(&self) -> Option<&'static str> {
        // These outputs state the meaning of their numbers once for all frames.
        if !self.record.is_empty() {
            return Some("the recording says for all its frames what the range is");
        }
        if self.stream().is_some() && self.stream_view == StreamPicture::Numbers {
            return Some("who receives the stream's numbers knows one range");
        }
        (!self.pictures.is_empty() && self.pictures_format == StillFormat::Png)
            .then_some("disparity.json says for all pictures what the range is")
    }

    /// Checks that the content of the recording and the limits of its segments are consistent. `records`
    /// is set if an output can be cut in segments.
    pub fn complete(&self, records: bool) -> Result<(), &'static str> {
        if !self.mcap.is_empty() && !mcap::is_name(self.record.as_ref()) {
            return Err(
                "output.mcap chooses the content of an MCAP file, and there is none: give \
                        --record OUT.mcap as well",
            );
        }
        let Some(SegmentLimits { length, size, keep, .. }) = self.segmenting() else {
            return Ok(());
        };
        if !records {
            return Err("output.segment, segment_size, keep and keep_free are about a recording, \
                        and there is none: give --record OUT.mkv as well");
        }
        if length.is_none() && size.is_none() {
            return Err(
                "output.keep and keep_free delete the oldest files of a recording, and this \
                        one is a single file: give --segment 10min or --segment-size 2GB as well",
            );
        }
        if size.zip(keep).is_some_and(|(size, keep)| size > keep / 2) {
            return Err(
                "output.keep must be at least twice output.segment_size, because the file \
                        being written is never deleted",
            );
        }
        Ok(())
    }
}

/// Parses a duration of at least a second.
fn duration(text: &str) -> Option<Duration> {
    humantime::parse_duration(text.trim()).ok().filter(|time| *time >= Duration::from_secs(1))
}

/// Parses a size of at least 1000 bytes.
fn bytes(text: &str) -> Option<u64> {
    let bytes = text.trim().parse::<bytesize::ByteSize>().ok()?.as_u64();
    (1000..=i64::MAX as u64).contains(&bytes).then_some(bytes)
}

fn size(text: &str) -> Result<(), String> {
    match bytes(text) {
        None if !text.is_empty() => Err("a size of 1 kB or more such as `2GB` or `500 MiB`".into()),
        _ => Ok(()),
    }
}

fn given(text: &str) -> Option<&str> {
    (!text.is_empty()).then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::Settings;
    use crate::settings::tests::refused;

    fn none() -> Output {
        Settings::default().output
    }

    #[test]
    fn statistics_go_nowhere_to_standard_output_or_into_a_file() {
        let to = |stats: &str| Output { stats: stats.into(), ..none() }.stats();
        assert_eq!((to(""), to("-")), (None, Some(Stats::Stdout)));
        assert_eq!(to("s.json"), Some(Stats::File("s.json".into())));
    }

    #[test]
    fn times_and_sizes_are_texts_with_units() {
        assert_eq!(none().segmenting(), None);
        let output = Output {
            record: "a.mkv".into(),
            segment: "1h 30min".into(),
            segment_size: "2GB".into(),
            keep: "1.5 TB".into(),
            keep_free: "500MiB".into(),
            ..none()
        };
        assert!(!refused("output", "segment", "1h 30min") && !refused("output", "keep", "1.5 TB"));
        output.complete(true).unwrap();
        let expected = SegmentLimits {
            length: Some(Duration::from_secs(5400)),
            size: Some(2_000_000_000),
            keep: Some(1_500_000_000_000),
            keep_free: Some(500 << 20),
        };
        assert_eq!(output.segmenting(), Some(expected));

        for wrong in ["10", "min", "-1min", "0s", "10ms", "1.5 fortnights", "ten"] {
            assert!(refused("output", "segment", wrong), "{wrong}");
        }
        for wrong in ["2", "GB", "-1GB", "0", "two GB", "99999999999TB", "nan", "infGB"] {
            assert!(refused("output", "keep", wrong), "{wrong}");
        }
    }

    #[test]
    fn what_contradicts_itself_is_refused_with_the_cure() {
        let told = |record: &str, size: &str, keep: &str| Output {
            record: record.into(),
            segment_size: size.into(),
            keep: keep.into(),
            ..none()
        };
        told("a.mkv", "1GB", "2GB").complete(true).unwrap();
        for (wrong, cure) in [
            (told("", "1GB", ""), "--record"),
            (told("a.mkv", "", "2GB"), "--segment 10min"),
            (told("a.mkv", "1.1GB", "2GB"), "at least twice"),
        ] {
            let records = !wrong.record.is_empty();
            assert!(wrong.complete(records).unwrap_err().contains(cure), "{cure}");
        }
    }
}
