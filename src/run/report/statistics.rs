//! Statistics of a finished run: one JSON object for programs, a few lines for people.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::Ordering;

use schemars::generate::SchemaSettings;
use serde::Serialize;

use crate::followed::{self, Followed};
use crate::observe::exposure::Exposure;
use crate::observe::map_metrics::Shares;
use crate::observe::range::TooFew;
use crate::observe::told::Told;
use crate::observe::{AccuracySummary, alignment};
use crate::pipeline::{Outcome, SinkCounts};
use crate::run::live::handles::Handles;
use crate::run::{Error, print, told};
use crate::settings::Loaded;
use crate::status::Counts;
use crate::telemetry::progress::TimesMs;
use crate::telemetry::temporal::TemporalSummary;
use stereod_core::redact::redact;
use stereod_core::thread::locked;
use stereod_io::source::Damage;
use stereod_io::source::live::{EyeSummary, LiveSummary};
use stereod_io::text::rounded;

/// Number of the layout of the statistics; it grows when a key changes its meaning or goes.
const SCHEMA: u32 = 1;

/// A value for each view.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
pub struct BothEyes<T = u64> {
    /// Value of the left view, or of the stream that holds both.
    pub left: T,
    /// Value of the right view.
    pub right: T,
}

/// Statistics of a run.
#[derive(Clone, Debug, Serialize, schemars::JsonSchema)]
pub struct Statistics {
    /// Number of this layout. It grows when a key changes its meaning or goes; new keys may come at any time.
    pub schema: u32,
    /// Version of stereod.
    pub version: &'static str,
    /// Start of the run, UTC (RFC 3339).
    pub started: String,
    /// The name of the rig, if the configuration has several.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rig: Option<String>,
    /// The source in words.
    pub source: String,
    /// Width of a view in pixels.
    pub width: usize,
    /// Height of a view in pixels.
    pub height: usize,
    /// Frames that arrived.
    pub frames: BothEyes,
    /// Pairs made of them.
    pub pairs: u64,
    /// Frames without a partner.
    pub unpaired: BothEyes,
    /// Damaged frames of recorded sources; of live ones see `live`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub damaged: Option<BothEyes<Damage>>,
    /// Pairs dropped and matched.
    #[serde(flatten)]
    pub counts: Counts,
    /// Mean percentage of pixels with a disparity, over the pairs, sampled in every 16th row; absent without
    /// a pair.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub known: Option<f64>,
    /// Verdicts on a network that is checked, over all pairs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verdicts: Option<Shares>,
    /// Pairs in the lossless recording, if any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recorded: Option<u64>,
    /// Pairs that each output wrote, by its flag: `recording` for `--record`, else the flag's name, such as
    /// `confidence`, `pictures` or `stream`.
    pub written: BTreeMap<&'static str, u64>,
    /// Frames that each output took.
    pub outputs: Vec<SinkCounts>,
    /// Seconds from the start to the last file finished.
    pub seconds: f64,
    /// Seconds from the start to the last pair matched, without pauses.
    pub matching_seconds: f64,
    /// Pairs matched a second, over `matching_seconds`.
    pub fps: f64,
    /// Milliseconds from a pair's capture (for recordings at their own pace: its time) to its disparity.
    /// Recordings that are matched as fast as possible have none, because their pairs wait in
    /// queues.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub latency_ms: Option<TimesMs>,
    /// Milliseconds from the submission of a pair to the engine to its disparity.
    pub engine_ms: TimesMs,
    /// Milliseconds of the GPU per pair without copies, if one was used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gpu_ms: Option<TimesMs>,
    /// The engine in words.
    pub engine: String,
    /// Number of changes of the parameters in the run.
    pub retuned: u64,
    /// The settings that the result depends on, as they were at the end.
    pub settings: serde_json::Value,
    /// Errors of the disparity, if the truth is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub accuracy: Option<AccuracySummary>,
    /// Range that would suffice, if the scene exceeds the candidate disparities.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub too_few_disparities: Option<TooFew>,
    /// Warnings of the pair check, in their order; absent without one.
    #[schemars(default)]
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<Told>,
    /// Row alignment of the two views, if it was watched.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub alignment: Option<alignment::Summary>,
    /// Noise and exposure of either view in the last second.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exposure: Option<Exposure>,
    /// Path of the rig, if the run follows the motion.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub odometry: Option<followed::Summary>,
    /// Result of the temporal stage, if it is on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub temporal: Option<TemporalSummary>,
    /// State of the cameras, if they are connected to this machine.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub live: Option<LiveSummary>,
    /// Reason why the run failed, if it did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

impl Statistics {
    /// Collects the statistics of `outcome`; `loaded` are the settings at the end.
    pub fn new(handles: &Handles, outcome: &Outcome, loaded: &Loaded) -> Self {
        let Handles { run, progress, observations, .. } = handles;
        let (source, damage) = (&run.info, outcome.source);
        let (status, maps) = (handles.status.get(), observations.map_metrics());
        let [left, right] = status.frames;
        let [unpaired_left, unpaired_right] = status.unpaired;
        let that_mattered = serde_json::json!({
            "matching": loaded.values()["matching"],
            "engine": loaded.values()["engine"],
            "source": loaded.values()["source"],
        });
        let matching = progress.matching_time().as_secs_f64();
        let mut written = BTreeMap::new();
        for sink in &outcome.sinks {
            if let Some(key) = sink.counted_as {
                *written.entry(key).or_default() += sink.frames;
            }
        }
        Self {
            schema: SCHEMA,
            version: env!("CARGO_PKG_VERSION"),
            started: humantime::format_rfc3339_millis(progress.started_at()).to_string(),
            rig: Some(handles.name.clone()).filter(|name| !name.is_empty()),
            source: source.description.clone(),
            width: source.width,
            height: source.height,
            frames: BothEyes { left, right },
            pairs: status.pairs,
            unpaired: BothEyes { left: unpaired_left, right: unpaired_right },
            damaged: (!source.live)
                .then_some(BothEyes { left: damage.damaged_left, right: damage.damaged_right })
                .filter(|eyes| !(eyes.left.is_none() && eyes.right.is_none())),
            counts: status.counts,
            known: maps.mean_valid_share().map(|share| rounded(100.0 * share, 2)),
            verdicts: maps.all_verdicts(),
            recorded: written.get("recording").copied(),
            written,
            outputs: status.outputs.clone(),
            seconds: rounded(outcome.seconds, 3),
            matching_seconds: rounded(matching, 3),
            fps: rounded(status.counts.matched as f64 / matching.max(1e-3), 2),
            latency_ms: handles.is_clocked().then(|| progress.latency()),
            engine_ms: progress.engine_time(),
            gpu_ms: progress.device_time(),
            engine: status.engine.clone(),
            retuned: progress.retuned.load(Ordering::Relaxed),
            settings: without_secrets(that_mattered),
            accuracy: observations.accuracy(),
            too_few_disparities: *locked(&observations.too_few),
            warnings: observations.warnings.all(),
            alignment: observations.alignment().map(|state| state.summary()),
            exposure: observations.exposure(),
            odometry: maps.odometry.as_ref().map(Followed::summary),
            temporal: progress.temporal(),
            live: handles.live.as_ref().map(|live| live.summary()),
            error: outcome.error.as_ref().map(told),
        }
    }
}

/// Returns a copy without passwords in its texts.
fn without_secrets(value: serde_json::Value) -> serde_json::Value {
    use serde_json::Value;
    match value {
        Value::String(text) => redact(&text).into(),
        Value::Array(items) => items.into_iter().map(without_secrets).collect(),
        Value::Object(items) => {
            items.into_iter().map(|(key, value)| (key, without_secrets(value))).collect()
        }
        other => other,
    }
}

impl fmt::Display for Statistics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{}: {} pairs of {}x{} pixels",
            self.source, self.pairs, self.width, self.height
        )?;
        if self.unpaired.left + self.unpaired.right > 0 {
            let BothEyes { left, right } = self.unpaired;
            writeln!(f, "  without a partner: {left} left, {right} right frames")?;
        }
        let damaged = self.damaged.iter().flat_map(|it| [("left", it.left), ("right", it.right)]);
        for (eye, damage) in damaged.filter(|(_, damage)| !damage.is_none()) {
            writeln!(f, "  {eye}: {damage}")?;
        }
        let Counts { dropped, matched } = self.counts;
        if dropped > 0 {
            writeln!(f, "  dropped, engine busy: {dropped}")?;
        }
        writeln!(
            f,
            "  matched {matched} in {:.2} s, {:.1} pairs/s, on {}",
            self.matching_seconds, self.fps, self.engine
        )?;
        if let Some(known) = self.known {
            writeln!(f, "  pixels with a disparity: {known:.1} %")?;
        }
        if let Some(verdicts) = self.verdicts {
            writeln!(f, "  {verdicts}")?;
        }
        let (what, TimesMs { p50, p95, p99 }) = match self.latency_ms {
            Some(latency) => ("latency", latency),
            None => ("engine", self.engine_ms),
        };
        write!(f, "  {what} p50 {p50:.1} ms, p95 {p95:.1} ms, p99 {p99:.1} ms")?;
        if let Some(TimesMs { p50, p95, p99 }) = self.gpu_ms {
            write!(f, "\n  on the GPU p50 {p50:.2} ms, p95 {p95:.2} ms, p99 {p99:.2} ms")?;
        }
        let figures = [
            ("against the truth: ", shown(&self.accuracy)),
            ("alignment of the views: ", shown(&self.alignment)),
            ("left and right picture: ", shown(&self.exposure)),
            ("odometry: ", shown(&self.odometry)),
            ("in time: ", shown(&self.temporal)),
        ];
        for (what, figures) in figures {
            figures.map_or(Ok(()), |figures| write!(f, "\n  {what}{figures}"))?;
        }
        if let Some(live) = &self.live {
            write_live(live, f)?;
        }
        for Told { text, stands, .. } in &self.warnings {
            let what = if *stands { "warning" } else { "warning that holds no longer" };
            write!(f, "\n  {what}: {text}")?;
        }
        for output in &self.outputs {
            write!(f, "\n  {}: {} frames", output.name, output.frames)?;
            if output.dropped > 0 {
                write!(f, " ({} dropped, too slow)", output.dropped)?;
            }
            if output.failed > 0 {
                write!(f, " ({} lost, could not be written)", output.failed)?;
            }
        }
        Ok(())
    }
}

fn shown(figures: &Option<impl fmt::Display>) -> Option<&dyn fmt::Display> {
    figures.as_ref().map(|figures| figures as &dyn fmt::Display)
}

/// Returns lines on irregularities of the cameras and on the time between the two views.
fn write_live(live: &LiveSummary, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    for (name, eye) in [("left", live.left), ("right", live.right)] {
        let EyeSummary { losses, reconnects, away_s, broken, concealed, missed, mistimed, .. } =
            eye;
        if losses > 0 {
            write!(f, "\n  {name} camera lost {losses} times, back {reconnects} times, ")?;
            write!(f, "away for {away_s:.1} s")?;
        }
        if broken + missed > 0 {
            write!(f, "\n  {name} camera: {broken} broken frames, {missed} never arrived")?;
        }
        let damage = Damage { concealed, left_out: 0, mistimed };
        if !damage.is_none() {
            write!(f, "\n  {name} camera: {damage}")?;
        }
    }
    if live.by_arrival {
        write!(f, "\n  between the views: times unknown, paired by arrival")?;
    }
    let Some(known) = live.synchronisation else { return Ok(()) };
    if let Some(difference) = known.difference_ms {
        let (p50, p95, max) = (difference.p50, difference.p95, difference.max);
        write!(f, "\n  between the views p50 {p50:.2} ms, p95 {p95:.2} ms, at most {max:.2} ms")?;
    }
    if let (Some(clock), Some(ms)) = (known.sender_clock, known.arrival_ms) {
        let when = if ms < 0.0 { "before" } else { "after" };
        write!(f, "\n  paired by the cameras' {clock} clocks; the right view arrives ")?;
        write!(f, "{:.1} ms {when} the left one", ms.abs())?;
    }
    Ok(())
}

pub fn schema() -> Result<(), Error> {
    let schema =
        SchemaSettings::draft2020_12().into_generator().into_root_schema_for::<Statistics>();
    print(format!("{:#}\n", schema.as_value()))
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    /// `stereod schema` explains every key, and the page names those at the top.
    #[test]
    fn keys_are_explained() {
        let settings = SchemaSettings::draft2020_12().with(|s| s.inline_subschemas = true);
        let schema = settings.into_generator().into_root_schema_for::<Statistics>();
        let page = include_str!("../../../docs/statistics.md");
        for key in schema.as_value()["properties"].as_object().unwrap().keys() {
            assert!(page.contains(&format!("`{key}`")), "docs/statistics.md does not name {key}");
        }
        assert_explained(schema.as_value());
    }

    /// Fails if a key below this part of the schema has no description.
    fn assert_explained(schema: &Value) {
        let properties = schema["properties"].as_object();
        for (key, value) in properties.into_iter().flatten() {
            assert!(value["description"].is_string(), "{key} has no description");
            // A value that may be absent is one of itself and null.
            let kind = value["anyOf"].as_array().map_or(value, |kinds| &kinds[0]);
            assert_explained(kind);
            assert_explained(&kind["items"]);
        }
    }
}
