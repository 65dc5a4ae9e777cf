//! The status of a run at one moment. Window, page, Foxglove, ROS 2, metrics, service manager and
//! statistics show the same one, which is made once a second.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use serde::Serialize;

use crate::followed::{Followed, in_words};
use crate::observe::alignment::{Measurement, State};
use crate::observe::exposure::Exposure;
use crate::observe::map_metrics::{Classes, MapMetrics, Shares};
use crate::pipeline::{Counters, SinkCounts};
use crate::telemetry::progress::{Distribution, Progress, RecentMs, TIME_CLASSES_US};
use crate::telemetry::warnings::{self, Warning};
use stereod_core::frame::Eye;
use stereod_core::thread::locked;
use stereod_io::sink::messages::Diagnosis;
use stereod_io::source::SourceInfo;
use stereod_io::source::live::{EyeSummary, LiveState};

/// Status of a run. As JSON it is the message of the page, which has no metrics.
#[derive(Clone, Debug, Default, Serialize)]
pub struct RunStatus {
    /// The source in words: "demo scene", "left.mp4 + right.mp4".
    #[serde(skip)]
    pub source: String,
    pub engine: String,
    #[serde(skip)]
    pub running: f64,
    pub frames: [u64; 2],
    /// Those without a partner.
    pub unpaired: [u64; 2],
    pub pairs: u64,
    /// Counts with the same keys in the statistics.
    #[serde(flatten)]
    pub counts: Counts,
    /// Pairs by which a paced recording is behind its pace, because matching is too slow.
    pub late: u64,
    pub rate: f64,
    pub outputs: Vec<SinkCounts>,
    /// From the capture of recent pairs to their disparity; `None` before the first pair.
    pub latency_ms: Option<RecentMs>,
    /// The same of all pairs, in seconds; `None` if their wait in queues would count, too.
    #[serde(skip)]
    pub latency: Option<Distribution>,
    /// From the submission of a pair to the engine to its disparity, in seconds.
    #[serde(skip)]
    pub engine_time: Option<Distribution>,
    /// Time of a device per pair, in seconds.
    #[serde(skip)]
    pub device_time: Option<Distribution>,
    /// Time between the two frames of a pair, in seconds.
    #[serde(skip)]
    pub skew: Option<Distribution>,
    /// Share of the pixels of the last map that have a disparity.
    pub valid_share: Option<f64>,
    /// Verdicts on the last map of a network that is checked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verdicts: Option<Shares>,
    pub alignment: Option<Judged<Measurement>>,
    pub exposure: Option<Judged<Exposure>>,
    /// Path and drift, if the run follows the motion; an alarm while it is lost.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub odometry: Option<Judged<Followed>>,
    /// State of the left and the right camera; `None` for recorded sources.
    #[serde(skip)]
    pub cameras: Option<[EyeSummary; 2]>,
    pub banners: Vec<Banner>,
    pub warnings: Vec<Warning>,
    pub ended: bool,
}

/// Counts of pairs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct Counts {
    /// Pairs dropped because the engine was busy (live sources only).
    pub dropped: u64,
    /// Pairs matched.
    pub matched: u64,
}

/// A measurement in a few words.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Judged<T> {
    pub text: String,
    /// Set if it deserves a warning.
    pub alarm: bool,
    #[serde(skip)]
    pub measured: Option<T>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Banner {
    pub text: String,
    pub trouble: bool,
}

pub struct Parts<'a> {
    /// Name of the rig, if the configuration has several.
    pub rig: Option<&'a str>,
    pub info: &'a SourceInfo,
    pub engine: &'a str,
    /// Set if pairs come at their own pace, so that there is a latency.
    pub clocked: bool,
    pub progress: &'a Progress,
    pub counters: &'a Counters,
    /// Pairs of a live source that were dropped before the pipeline started.
    pub dropped_before: u64,
    pub live: Option<&'a LiveState>,
    /// The present alignment, if it is watched.
    pub alignment: Option<State>,
    pub exposure: Option<Exposure>,
    pub maps: MapMetrics,
}

impl RunStatus {
    /// Reads the status. `rate`: pairs matched a second; `banners`: the problems.
    pub fn read(parts: Parts<'_>, rate: f64, banners: Vec<Banner>) -> Self {
        let Parts { info, progress, counters, maps, .. } = parts;
        let count = |count: &AtomicU64| count.load(Ordering::Relaxed);
        let alignment = parts.alignment.and_then(|state| {
            let (text, alarm) = state.line()?;
            Some(Judged { text, alarm, measured: state.measurement })
        });
        let exposure = parts.exposure.map(|seen| {
            let (text, alarm) = seen.line();
            Judged { text, alarm, measured: Some(seen) }
        });
        let odometry = maps.odometry.map(|followed| {
            let (text, alarm) = in_words(&followed.newest);
            Judged { text, alarm, measured: Some(followed) }
        });
        let outputs = counters.sinks.iter().map(|sink| sink.now());
        Self {
            source: info.description.clone(),
            engine: parts.engine.to_owned(),
            running: progress.elapsed().as_secs_f64(),
            frames: progress.frames(),
            unpaired: progress.unpaired_frames(),
            pairs: count(&progress.pairs) + parts.dropped_before,
            counts: Counts {
                dropped: count(&counters.dropped_pairs) + parts.dropped_before,
                matched: count(&progress.matched),
            },
            late: (progress.paced()[1].as_secs_f64() * info.rate.unwrap_or(0.0)) as u64,
            rate,
            outputs: outputs.filter(|sink| !sink.is_check).collect(),
            latency_ms: progress.recent_latency(),
            latency: parts.clocked.then(|| progress.latency_within(&TIME_CLASSES_US)),
            engine_time: Some(distribution(&maps.engine)),
            device_time: progress.device_time_within(&TIME_CLASSES_US),
            skew: Some(distribution(&maps.skew)),
            valid_share: maps.valid_share,
            verdicts: maps.verdicts,
            alignment,
            exposure,
            odometry,
            cameras: parts.live.map(|live| Eye::BOTH.map(|eye| live.eye(eye).summary())),
            banners,
            warnings: warnings::newest(parts.rig),
            ended: progress.source_ended.load(Ordering::Relaxed),
        }
    }

    /// Returns the figures in words for diagnostics of robots, and all present problems.
    pub fn diagnosis(&self) -> Diagnosis {
        let mut values = vec![
            ("engine", self.engine.clone()),
            ("pairs per second", format!("{:.1}", self.rate)),
            ("matched pairs", self.counts.matched.to_string()),
            ("dropped pairs", self.counts.dropped.to_string()),
            ("unpaired frames", self.unpaired.iter().sum::<u64>().to_string()),
        ];
        if let Some(RecentMs { p50, p95, .. }) = self.latency_ms {
            values.push(("latency", format!("{p50:.1} ms, 95 %: {p95:.1} ms")));
        }
        if let Some(share) = self.valid_share {
            values.push(("pixels with disparity", format!("{:.1} %", 100.0 * share)));
        }
        let present = self.banners.iter().filter(|banner| banner.trouble);
        let mut troubles: Vec<String> = present.map(|banner| banner.text.clone()).collect();
        for (label, text, alarm) in self.judged() {
            troubles.extend(alarm.then(|| format!("{label}: {text}")));
            values.push((label, text.to_owned()));
        }
        let (present, earlier): (Vec<_>, Vec<_>) =
            self.warnings.iter().partition(|warning| warning.is_present());
        troubles.extend(present.into_iter().map(|warning| warning.text.clone()));
        if !earlier.is_empty() {
            let times = |it: &Warning| format!("{} ({} times)", it.text, it.count);
            let earlier: Vec<String> = earlier.into_iter().map(times).collect();
            values.push(("earlier warnings", earlier.join("; ")));
        }
        Diagnosis { values, troubles }
    }

    /// Returns the counts with what they count, the pairs first, then those that a run in order lacks.
    pub fn counted(&self) -> [(u64, &'static str); 4] {
        [
            (self.pairs, "pairs"),
            (self.counts.dropped, "pairs dropped"),
            (self.unpaired.iter().sum(), "frames without a partner"),
            (self.late, "pairs behind the pace"),
        ]
    }

    /// Returns the measurements in words: label, text, and whether it deserves a warning.
    pub fn judged(&self) -> impl Iterator<Item = (&'static str, &str, bool)> {
        let alignment = self.alignment.iter().map(|it| ("alignment", &*it.text, it.alarm));
        let exposure = self.exposure.iter().map(|it| ("exposure", &*it.text, it.alarm));
        let odometry = self.odometry.iter().map(|it| ("odometry", &*it.text, it.alarm));
        alignment.chain(exposure).chain(odometry)
    }
}

fn distribution(classes: &Classes) -> Distribution {
    let classes_and_counts: Vec<_> = classes.counts().collect();
    let count = classes_and_counts.iter().map(|(_, count)| count).sum();
    Distribution { classes: classes_and_counts, sum: classes.sum().as_secs_f64(), count }
}

/// The newest status. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct Newest(Arc<Mutex<Arc<RunStatus>>>);

impl Newest {
    pub fn get(&self) -> Arc<RunStatus> {
        locked(&self.0).clone()
    }

    pub fn set(&self, status: Arc<RunStatus>) {
        *locked(&self.0) = status;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::followed::tests::odometry;
    use stereod_core::pose::Lost;

    #[test]
    fn a_lost_rig_is_a_trouble_and_a_found_one_a_figure() {
        let diagnosis = |lost| {
            let newest = odometry([0.0; 3], lost);
            let (text, alarm) = in_words(&newest);
            let measured = Some(Followed::with(None, newest));
            let odometry = Some(Judged { text, alarm, measured });
            RunStatus { odometry, ..RunStatus::default() }.diagnosis()
        };
        let found = diagnosis(None);
        assert!(found.values.contains(&("odometry", "20.0 m, drift 1.00 %".into())));
        assert!(found.troubles.is_empty(), "{:?}", found.troubles);
        let lost = diagnosis(Some(Lost::Unseen));
        assert_eq!(lost.troubles, ["odometry: lost: too few points seen again"]);
    }
}
