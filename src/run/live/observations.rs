//! Observations of the pairs that flow past.

use std::sync::{Arc, Mutex};

use super::opened::Opened;
use super::requests::Requests;
use crate::observe::alignment::observer::{self as alignment, AlignmentObserver, SharedLimits};
use crate::observe::alignment::refiner::Refiner;
use crate::observe::alignment::{Options, State, Verdict};
use crate::observe::exposure::{self, Exposure, ExposureObserver};
use crate::observe::known::KnownObserver;
use crate::observe::map_metrics::{self, MapMetrics};
use crate::observe::moment::{self, MomentObserver};
use crate::observe::range::observer::{self as range, RangeObserver};
use crate::observe::told::Warnings;
use crate::observe::{AccuracySummary, Observer, Observers, SharedAccuracy};
use crate::run::prepare::ranging::small_matcher;
use crate::run::prepare::rig::Rig;
use crate::settings::Loaded;
use crate::telemetry::progress::TIME_CLASSES_US;
use stereod_core::engine::cpu::CpuOptions;
use stereod_core::thread::locked;
use stereod_io::sink::Sink;
use stereod_io::source::SourceInfo;

/// Longest times of the classes of the time between the two frames of a pair, in microseconds.
const SKEW_CLASSES_US: [u64; 12] =
    [10, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 16_667, 33_333, 100_000];

/// Observations that are up to date while pairs flow.
pub struct Observations {
    accuracy: SharedAccuracy,
    alignment: Option<(alignment::Shared, SharedLimits)>,
    /// Rotation by which the calibration was refined, in degrees about x, y and z.
    refined_deg: Mutex<Option<[f64; 3]>>,
    /// The range that would suffice, if the candidate disparities do not.
    pub too_few: range::Shared,
    exposure: exposure::Shared,
    map_metrics: map_metrics::Shared,
    moment: moment::Shared,
    pub warnings: Warnings,
}

impl Observations {
    pub fn start(
        run: &Opened,
        loaded: &Loaded,
        warnings: Warnings,
        sinks: &mut Vec<Box<dyn Sink>>,
    ) -> Self {
        let Opened { info, rig, requests, .. } = run;
        let (settings, range) = (&loaded.settings, loaded.params.range);
        // Figures count every pair; the checks take longer and look at the newest.
        let mut figures: Vec<Box<dyn Observer>> = Vec::new();
        let mut checks: Vec<Box<dyn Observer>> = Vec::new();
        let accuracy = SharedAccuracy::default();
        if info.has_truth {
            figures.push(Box::new(accuracy.clone()));
        }
        let map_metrics = MapMetrics::new(&TIME_CLASSES_US, &SKEW_CLASSES_US);
        let map_metrics = Arc::new(Mutex::new(map_metrics));
        figures.push(Box::new(map_metrics.clone()));
        let moment = moment::Shared::default();
        let refiner = refiner(loaded, info, rig, requests);
        let alignment = settings.alignment.check.then(|| {
            figures.push(Box::new(KnownObserver::new(warnings.clone())));
            let offset_ms = settings.source.offset_ms;
            let observer = MomentObserver::new(moment.clone(), offset_ms, warnings.clone());
            figures.push(Box::new(observer));
            let shared = alignment::Shared::default();
            let options = Options { range: Some(range), ..Options::default() };
            let limits = settings.alignment.limits(
                rig.calibrated,
                rig.farthest_px(),
                rig.rows_if_exchanged(),
            );
            let (shown, told) = (shared.clone(), warnings.clone());
            let observer = AlignmentObserver::new(options, limits, shown, refiner, told);
            let limits = observer.limits.clone();
            checks.push(Box::new(observer));
            (shared, limits)
        });
        let too_few = range::Shared::default();
        // The engine may be busy on all cores.
        let one = CpuOptions { threads: Some(1), ..settings.engine.options().cpu };
        let chosen = loaded.has_chosen().then_some(range);
        let small = Box::new(small_matcher(one));
        let observer = RangeObserver::new(small, too_few.clone(), chosen, warnings.clone());
        checks.push(Box::new(observer));
        let exposure = exposure::Shared::default();
        let (white, live) = (info.white, info.live);
        let observer = ExposureObserver::new(exposure.clone(), white, live, warnings.clone());
        checks.push(Box::new(observer));
        for (name, newest_only, list) in [("figures", false, figures), ("checks", true, checks)] {
            if !list.is_empty() {
                sinks.push(Box::new(Observers { name, newest_only, list }));
            }
        }
        let refined_deg = Mutex::default();
        Self { accuracy, alignment, refined_deg, too_few, exposure, map_metrics, moment, warnings }
    }

    /// Errors so far; `None` if the truth is not known.
    pub fn accuracy(&self) -> Option<AccuracySummary> {
        locked(&self.accuracy).summary()
    }

    /// Returns the present alignment, if it is watched.
    pub fn alignment(&self) -> Option<State> {
        let mut state = *locked(&self.alignment.as_ref()?.0);
        if locked(&self.moment).is_some() {
            state.verdict = Verdict::OtherMoment;
        }
        state.refined_deg = *locked(&self.refined_deg);
        Some(state)
    }

    /// Returns the present noise and exposure; `None` before the first pair.
    pub fn exposure(&self) -> Option<Exposure> {
        *locked(&self.exposure)
    }

    /// Warns of a row error above this many pixels from now on, if the alignment is watched.
    pub fn warn_above(&self, warn_px: f64) {
        if let Some((_, limits)) = &self.alignment {
            locked(limits).warn_px = warn_px;
        }
    }

    /// Notes the rotation by which the calibration was refined since the start, in degrees.
    pub fn refined_by(&self, degrees: [f64; 3]) {
        *locked(&self.refined_deg) = Some(degrees);
    }

    pub fn map_metrics(&self) -> MapMetrics {
        locked(&self.map_metrics).clone()
    }
}

/// Returns the refiner of the calibration if the settings ask for it. Recordings are not refined, so that their
/// maps do not depend on the speed of the machine.
fn refiner(loaded: &Loaded, info: &SourceInfo, rig: &Rig, requests: &Requests) -> Option<Refiner> {
    let settings = &loaded.settings.alignment;
    settings.refine_deg?;
    if !settings.check {
        tracing::warn!("alignment.refine_deg has no effect without alignment.check");
        return None;
    }
    let (Some(_), Some(geometry)) = (&rig.calibration, rig.pairs.geometry) else {
        tracing::warn!(
            "alignment.refine_deg has no effect: there is no calibration of raw pictures (--calibration)"
        );
        return None;
    };
    if !info.live {
        tracing::warn!(
            "alignment.refine_deg has no effect on recordings: `stereod calibration refine` refines their \
             calibration"
        );
        return None;
    }
    let requests = requests.clone();
    Some(Refiner::new(geometry, move |turn| requests.refine(turn)))
}
