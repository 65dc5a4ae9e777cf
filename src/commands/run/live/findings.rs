//! Findings about pairs that flow past, by sinks that write nothing.

use std::sync::{Arc, Mutex, PoisonError};

use crate::alignment::{Options, State};
use crate::commands::prepare::ranging::small_matcher;
use crate::commands::prepare::rig::Rig;
use crate::engine::cpu::CpuOptions;
use crate::settings::Loaded;
use crate::sink::Sink;
use crate::sink::accuracy::{Accuracy, AccuracySink, AccuracySummary};
use crate::sink::alignment::{self, AlignmentSink, SharedLimits};
use crate::sink::exposure::{self, Exposure, ExposureSink};
use crate::sink::map_metrics::{self, MapMetrics, MapMetricsSink};
use crate::sink::range::{self, RangeSink};
use crate::source::SourceInfo;
use crate::telemetry::metrics::TIME_CLASSES_US;

/// Longest times of the classes of the eyes' difference in time, in microseconds.
const SKEW_CLASSES_US: [u64; 12] =
    [10, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 16_667, 33_333, 100_000];

/// Findings that are up to date while pairs flow.
pub struct Findings {
    accuracy: Arc<Mutex<Accuracy>>,
    /// The state of the alignment, and the limits by which it is judged.
    alignment: Option<(alignment::Shared, SharedLimits)>,
    /// The range that would do, where the candidate disparities fall short.
    pub too_few: range::Shared,
    exposure: exposure::Shared,
    map_metrics: Option<map_metrics::Shared>,
}

impl Findings {
    /// Adds the sinks that find out what the settings want to know.
    pub fn watch(
        loaded: &Loaded,
        info: &SourceInfo,
        rig: &Rig,
        sinks: &mut Vec<Box<dyn Sink>>,
    ) -> Self {
        let (settings, range) = (&loaded.settings, loaded.params.range);
        let accuracy = Arc::default();
        if info.has_truth {
            sinks.push(Box::new(AccuracySink::new(Arc::clone(&accuracy))));
        }
        let mut alignment = None;
        if settings.alignment.check {
            let shared = alignment::Shared::default();
            let options = Options { range: Some(range), ..Options::default() };
            let limits = settings.alignment.limits(rig.calibrated, rig.farthest_px());
            let sink = AlignmentSink::new(options, limits, shared.clone());
            alignment = Some((shared, sink.limits()));
            sinks.push(Box::new(sink));
        }
        let too_few = range::Shared::default();
        // Beside an engine that may be at work on all cores.
        let one = CpuOptions { threads: Some(1), ..settings.engine.options().cpu };
        let chosen = loaded.has_chosen().then_some(range);
        let small = Box::new(small_matcher(one));
        sinks.push(Box::new(RangeSink::new(small, too_few.clone(), chosen)));
        let exposure = exposure::Shared::default();
        sinks.push(Box::new(ExposureSink::new(exposure.clone(), info.white, info.live)));
        let map_metrics = settings.metrics.listen().map(|_| {
            let (sink, shared) = MapMetricsSink::new(&TIME_CLASSES_US, &SKEW_CLASSES_US);
            sinks.push(Box::new(sink));
            shared
        });
        Self { accuracy, alignment, too_few, exposure, map_metrics }
    }

    /// Errors against the truth so far; `None` where it is not known.
    pub fn accuracy(&self) -> Option<AccuracySummary> {
        self.accuracy.lock().unwrap_or_else(PoisonError::into_inner).summary()
    }

    /// The alignment of the eyes just now, where it is watched.
    pub fn alignment(&self) -> Option<State> {
        self.alignment.as_ref().map(|(shared, _)| alignment::state_of(shared))
    }

    /// Noise and exposure of the eyes just now; `None` before the first pair.
    pub fn exposure(&self) -> Option<Exposure> {
        exposure::newest(&self.exposure)
    }

    /// Warns of a row error above this many pixels from now on, where the alignment is watched.
    pub fn warn_above(&self, warn_px: f64) {
        if let Some((_, limits)) = &self.alignment {
            limits.warn_above(warn_px);
        }
    }

    /// Figures of the maps so far, where they are published.
    pub fn map_metrics(&self) -> Option<MapMetrics> {
        let shared = self.map_metrics.as_ref()?;
        Some(shared.lock().unwrap_or_else(PoisonError::into_inner).clone())
    }
}
