//! The path of the rig as a file of poses, one line a pair: in the formats of the TUM RGB-D benchmark
//! (<https://cvg.cit.tum.de/data/datasets/rgbd-dataset/file_formats>) and of KITTI's odometry benchmark
//! (<https://www.cvlibs.net/datasets/kitti/eval_odometry.php>), which programs such as evo read, or as JSON.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, bail};

use super::lines::{Line, LinesRecorder};
use super::segments::Place;
use super::{Sink, StreamInfo};
use stereod_core::files;
use stereod_core::frame::Matched;
use stereod_core::pose::{Odometry, to_json};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Format {
    /// `timestamp tx ty tz qx qy qz qw` of the left camera; no line while the rig is lost.
    Tum,
    /// The upper three rows of the left camera's matrix; the last pose again while the rig is lost.
    Kitti,
    /// The odometry of the vehicle.
    Json,
}

impl Format {
    fn of(path: &Path) -> Result<Self> {
        match files::extension(path).as_str() {
            "tum" | "txt" => Ok(Self::Tum),
            "kitti" => Ok(Self::Kitti),
            "ndjson" | "jsonl" => Ok(Self::Json),
            _ => bail!(
                "cannot tell the format of {}: name poses .tum or .txt (time, position and quaternion), .kitti \
                 (matrices) or .ndjson (JSON)",
                path.display()
            ),
        }
    }

    /// Returns the fate of pairs without a pose in words.
    fn when_lost(self) -> &'static str {
        match self {
            Self::Tum => "such pairs have no line",
            Self::Kitti => "such pairs repeat the pose before",
            Self::Json => "their lines say why",
        }
    }

    fn line(self, odometry: &Odometry, pair: u64, stamp: Duration) -> Option<String> {
        match self {
            Self::Tum if odometry.lost.is_some() => None,
            Self::Tum => {
                let numbers = [&odometry.pose.position_m[..], &odometry.pose.quaternion()[..]];
                Some(format!("{} {}", seconds(stamp), spaced(numbers.concat())))
            }
            Self::Kitti => {
                let (rotation, position) = (odometry.pose.rotation, odometry.pose.position_m);
                let rows = rotation.iter().zip(position);
                Some(spaced(rows.flat_map(|([x, y, z], shift)| [*x, *y, *z, shift])))
            }
            // Numbers of the JSON crate do not hold the digits of a time.
            Self::Json => {
                let object = to_json(odometry).to_string();
                let rest = object.strip_prefix('{')?;
                Some(format!(r#"{{"pair":{pair},"stamp":{},{rest}"#, seconds(stamp)))
            }
        }
    }
}

/// Returns a time in seconds with all its digits.
fn seconds(time: Duration) -> String {
    format!("{}.{:09}", time.as_secs(), time.subsec_nanos())
}

/// Returns numbers in a row, with all their digits. Zero has no sign.
fn spaced(numbers: impl IntoIterator<Item = f64>) -> String {
    let words = numbers.into_iter().map(|number| (number + 0.0).to_string());
    words.collect::<Vec<_>>().join(" ")
}

pub fn check_poses_name(path: &Path) -> Result<()> {
    Format::of(path).map(drop)
}

/// Writes the poses. Each is in the file as soon as its pair is matched. The format is that of the file's extension.
pub struct Poses {
    name: String,
    lines: LinesRecorder,
    format: Format,
    pairs: u64,
    lost: u64,
    /// Breaks of the path up to the last pair; `None` before the first.
    breaks: Option<u32>,
    has_told_break: bool,
}

impl Poses {
    pub fn create(place: Place, stream: &StreamInfo) -> Result<Self> {
        let (format, name) =
            (Format::of(place.path())?, format!("poses {}", place.path().display()));
        let line: Line = Arc::new(move |frame, stamp| {
            format.line(frame.odometry.as_deref()?, frame.pair.sequence, stamp)
        });
        let lines = LinesRecorder::create(place, stream, line)?;
        Ok(Self { name, lines, format, pairs: 0, lost: 0, breaks: None, has_told_break: false })
    }

    /// Counts a pair, and warns at the first one without a pose and at the first break.
    fn count(&mut self, odometry: &Odometry, pair: u64) {
        let Self { name, format, .. } = self;
        self.pairs += 1;
        if let Some(reason) = odometry.lost {
            if self.lost == 0 {
                let (reason, fate) = (reason.in_words(), format.when_lost());
                tracing::warn!("{name}: the rig is lost in pair {pair} ({reason}); {fate}");
            }
            self.lost += 1;
        }
        let before = self.breaks.replace(odometry.breaks).unwrap_or(odometry.breaks);
        if odometry.breaks != before && !self.has_told_break && *format != Format::Json {
            self.has_told_break = true;
            tracing::warn!(
                "{name}: the path breaks before pair {pair}: the motion of the rig while it was lost is not known, so \
                 later poses are off by it; this format has no mark for that, .ndjson counts the breaks"
            );
        }
    }
}

impl Sink for Poses {
    fn name(&self) -> &str {
        &self.name
    }

    fn consume(&mut self, frame: &Arc<Matched>) -> Result<()> {
        let odometry = frame.odometry.as_deref();
        let odometry = odometry.context("the motion of the rig is not followed any more")?;
        self.count(odometry, frame.pair.sequence);
        self.lines.consume(frame)
    }

    fn finish(&mut self) -> Result<()> {
        let Self { name, format, pairs, lost, .. } = self;
        if *lost > 0 {
            let fate = format.when_lost();
            tracing::warn!("{name}: the rig was lost in {lost} of {pairs} pairs; {fate}");
        }
        self.lines.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sink::StagesInTime;
    use stereod_core::frame::{DisparityMap, DisparityRange, Image, StereoPair};
    use stereod_core::obstacles::Mount;
    use stereod_core::pose::{Lost, Pose};

    const RANGE: DisparityRange = DisparityRange { min: 0, count: 16 };

    fn stream() -> StreamInfo {
        StreamInfo {
            size: (1, 1),
            rate: None,
            range: RANGE,
            geometry: None,
            has_colour: false,
            has_obstacles: false,
            has_odometry: true,
            has_verdicts: false,
            tracks_ground: false,
            clock: None,
            stages: StagesInTime::default(),
            labels: Default::default(),
        }
    }

    /// Returns a pair that is this far ahead and has turned to the right by 90 degrees.
    fn frame(pair: u64, ahead: f64, lost: Option<Lost>, breaks: u32) -> Arc<Matched> {
        let image = || Image::from_vec(1, 1, vec![0]);
        let still = StereoPair::of_stills(image(), image());
        let time = Duration::from_nanos(1_700_000_000_123_456_789 + pair);
        let stereo = StereoPair { sequence: pair, timestamp: time, ..still };
        let rotation = [[0.0, 0.0, 1.0], [0.0, 1.0, 0.0], [-1.0, 0.0, 0.0]];
        let odometry = Odometry {
            pose: Pose { rotation, position_m: [0.1 + 0.2, 0.0, ahead] },
            covariance: [[0.0; 6]; 6],
            velocity: None,
            lost,
            breaks,
            path_m: ahead,
            points: [9, 10],
            mount: Mount::default(),
        };
        let map = DisparityMap::of_values(1, RANGE, vec![0]);
        Arc::new(Matched { odometry: Some(Box::new(odometry)), ..Matched::new(stereo, map) })
    }

    /// Writes four pairs: the second is lost, and the third follows a break.
    fn written(name: &str) -> (Vec<String>, u64) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(name);
        let mut poses = Poses::create(Place::New(path.clone()), &stream()).unwrap();
        for frame in [
            frame(0, 0.0, None, 0),
            frame(1, 0.0, Some(Lost::Unseen), 0),
            frame(2, 1.5, None, 1),
            frame(3, 2.5, None, 1),
        ] {
            poses.consume(&frame).unwrap();
        }
        assert!(poses.has_told_break != name.ends_with("ndjson"));
        poses.finish().unwrap();
        let text = std::fs::read_to_string(path).unwrap();
        assert!(text.ends_with('\n'));
        (text.lines().map(str::to_owned).collect(), poses.lost)
    }

    #[test]
    fn tum_has_times_in_full_and_leaves_out_what_is_lost() {
        let half = 0.5_f64.sqrt();
        let line = |nanoseconds: u64, ahead: &str| {
            format!("1700000000.{nanoseconds} 0.30000000000000004 0 {ahead} 0 {half} 0 {half}")
        };
        let expected = [line(123_456_789, "0"), line(123_456_791, "1.5"), line(123_456_792, "2.5")];
        for name in ["path.tum", "path.txt"] {
            let (lines, lost) = written(name);
            assert_eq!(lost, 1);
            let parsed = |line: &str| {
                line.split(' ').skip(1).map(|word| word.parse::<f64>().unwrap()).collect::<Vec<_>>()
            };
            assert_eq!(lines.len(), expected.len());
            for (line, expected) in lines.iter().zip(&expected) {
                assert_eq!(line.split(' ').next(), expected.split(' ').next());
                let pairs = parsed(line).into_iter().zip(parsed(expected));
                assert!(
                    pairs.clone().count() == 7 && pairs.clone().all(|(a, b)| (a - b).abs() < 1e-15)
                );
            }
        }
    }

    #[test]
    fn kitti_has_a_line_for_every_pair() {
        let (lines, lost) = written("path.kitti");
        let line = |ahead| format!("0 0 1 0.30000000000000004 0 1 0 0 -1 0 0 {ahead}");
        assert_eq!((lines, lost), (["0", "0", "1.5", "2.5"].map(line).to_vec(), 1));
    }

    #[test]
    fn json_says_that_the_rig_is_lost_and_counts_breaks() {
        let (lines, _) = written("path.ndjson");
        assert!(lines[2].starts_with(r#"{"pair":2,"stamp":1700000000.123456791,"#), "{}", lines[2]);
        let objects: Vec<serde_json::Value> =
            lines.iter().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(objects[1]["lost"], "too few points seen again");
        assert!(objects[2]["lost"].is_null());
        assert_eq!((&objects[1]["breaks"], &objects[2]["breaks"]), (&0.into(), &1.into()));
        // Ahead of the camera, and to its right, in the axes of the vehicle.
        assert_eq!(objects[3]["position_m"], serde_json::json!([2.5, -0.30000000000000004, 0.0]));
    }

    #[test]
    fn other_names_are_refused_with_the_three_formats() {
        for name in ["path", "path.csv", "path.json"] {
            let error = check_poses_name(Path::new(name)).unwrap_err().to_string();
            assert!(error.contains(name), "{error}");
            assert!(
                [".tum", ".kitti", ".ndjson"].iter().all(|known| error.contains(known)),
                "{error}"
            );
        }
        assert!(check_poses_name(Path::new("a/PATH.TUM")).is_ok());
    }

    #[test]
    fn a_pair_without_odometry_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let place = Place::New(folder.path().join("a.tum"));
        let mut poses = Poses::create(place, &stream()).unwrap();
        let mut frame = Arc::into_inner(frame(0, 0.0, None, 0)).unwrap();
        frame.odometry = None;
        assert!(poses.consume(&Arc::new(frame)).is_err());
    }
}
