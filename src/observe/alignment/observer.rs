//! Observer of the alignment of the two views.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use crate::observe::Observer;
use crate::observe::alignment::refiner::Refiner;
use crate::observe::alignment::{
    Event, Limits, Measurement, Monitor, Options, State, WIDE_ROWS, measure,
};
use crate::observe::told::{Check, Warnings};
use stereod_core::frame::{Image, Matched};
use stereod_core::thread::{self, locked};

/// Shortest time in the stream between two measured pairs.
const STREAM_STEP: Duration = Duration::from_millis(250);

/// Shortest real time between them, for recordings that run faster than they were recorded.
const STEP: Duration = Duration::from_millis(100);

/// Real time after which a pair is measured even if the stream's times stand still.
const LONGEST: Duration = Duration::from_secs(1);

pub type Shared = Arc<Mutex<State>>;

/// Limits of the alarms, which may be changed at any time.
pub type SharedLimits = Arc<Mutex<Limits>>;

/// Measures the alignment of two images: [`measure`], or a substitute in tests.
type Measure = fn(&Image, &Image, &Options) -> Option<Measurement>;

/// Measures a pair a few times per second, and logs changes.
pub struct AlignmentObserver {
    options: Options,
    pub limits: SharedLimits,
    shared: Shared,
    warnings: Warnings,
    /// `None` after a panic in a measurement.
    monitor: Option<Monitor>,
    /// Set if the calibration is refined during the run.
    refiner: Option<Refiner>,
    /// Time of the last measured pair, and its time in the stream.
    taken: Option<(Instant, Duration)>,
}

impl AlignmentObserver {
    pub fn new(
        options: Options,
        limits: Limits,
        shared: Shared,
        refiner: Option<Refiner>,
        warnings: Warnings,
    ) -> Self {
        let monitor = Some(Monitor::new(limits));
        let limits = Arc::new(Mutex::new(limits));
        Self { options, limits, shared, warnings, monitor, refiner, taken: None }
    }

    fn take(&mut self, frame: &Matched, measure: Measure) {
        let (now, at) = (Instant::now(), frame.pair.timestamp);
        let due = self.taken.is_none_or(|(taken, then)| {
            let passed = now.duration_since(taken);
            passed >= LONGEST || passed >= STEP && at.abs_diff(then) >= STREAM_STEP
        });
        if !due {
            return;
        }
        self.taken = Some((now, at));
        self.options.range = Some(frame.disparity.range());
        let (limits, options) = (*locked(&self.limits), self.options);
        let pair = &frame.pair;
        self.watch(|monitor, refiner| {
            monitor.set_limits(limits);
            let mut measurement = measure(&pair.left, &pair.right, &options);
            if measurement.is_none_or(|seen| !limits.can_rely_on(&seen)) {
                let wide = Options { rows: WIDE_ROWS, ..options };
                measurement = measure(&pair.left, &pair.right, &wide).or(measurement);
            }
            let ms = now.elapsed().as_secs_f64() * 1e3;
            tracing::trace!("alignment of pair {}: {measurement:?}, {ms:.1} ms", pair.sequence);
            let event = monitor.feed(at, measurement);
            if let Some(refiner) = refiner {
                refiner.take(monitor.state().verdict, pair);
            }
            event
        });
    }

    /// Shares and logs the result of `work`. A panic in it ends the observation, not the run.
    fn watch(&mut self, work: impl FnOnce(&mut Monitor, Option<&mut Refiner>) -> Option<Event>) {
        let Some(monitor) = &mut self.monitor else { return };
        let refiner = self.refiner.as_mut();
        match thread::guarded("the alignment thread", || work(monitor, refiner)) {
            Ok(event) => {
                *locked(&self.shared) = monitor.state();
                match event {
                    Some(Event { verdict, message }) if verdict.is_alarm() => {
                        self.warnings.warn(Check::Alignment, message);
                    }
                    Some(Event { message, .. }) => tracing::info!("{message}"),
                    None => {}
                }
                self.warnings.renew(Check::Alignment, monitor.warning());
            }
            Err(broken) => {
                tracing::error!("the alignment is watched no longer: {broken}");
                *locked(&self.shared) = State::default();
                self.monitor = None;
            }
        }
    }
}

impl Observer for AlignmentObserver {
    fn observe(&mut self, frame: &Matched) {
        self.take(frame, measure);
    }

    fn finish(&mut self) {
        self.watch(|monitor, _| monitor.finish());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use stereod_core::frame::{DisparityMap, DisparityRange, StereoPair};
    use stereod_core::pool::Pooled;

    fn matched(sequence: u64) -> Matched {
        let eye = || Image::from_fn(4, 2, |_, _| 0);
        let timestamp = Duration::from_secs(sequence);
        let pair = StereoPair { sequence, timestamp, ..StereoPair::of_stills(eye(), eye()) };
        let range = DisparityRange { min: 0, count: 64 };
        Matched::new(pair, DisparityMap::new(4, 2, range, Pooled::unpooled(vec![0; 8])))
    }

    fn observer(shared: Shared) -> AlignmentObserver {
        let (options, limits) = (Options::default(), Limits::default());
        AlignmentObserver::new(options, limits, shared, None, Warnings::default())
    }

    fn aligned(_: &Image, _: &Image, options: &Options) -> Option<Measurement> {
        let textured = Image::from_fn(320, 240, |x, y| {
            let noise = (x / 3).wrapping_mul(0x9e37_79b9) ^ (y / 3).wrapping_mul(0x85eb_ca6b);
            (noise.wrapping_mul(0xc2b2_ae35) >> 11) as u8
        });
        measure(&textured, &textured, options)
    }

    #[test]
    fn a_measurement_that_breaks_down_ends_the_watch_and_nothing_else() {
        let shared = Shared::default();
        let mut observer = observer(shared.clone());
        observer.take(&matched(0), aligned);
        assert!(locked(&shared).measurement.is_some());
        observer.taken = None;
        observer.take(&matched(1), |_, _, _| panic!("a mistake"));
        assert_eq!(locked(&shared).measurement, None);
        observer.observe(&matched(2));
        observer.finish();
        assert_eq!(locked(&shared).measurement, None);
    }

    #[test]
    fn pairs_are_measured_a_few_times_a_second() {
        let mut observer = observer(Shared::default());
        let mut is_taken = |taken, sequence| {
            observer.taken = Some(taken);
            observer.take(&matched(sequence), |_, _, _| None);
            observer.taken != Some(taken)
        };
        let now = Instant::now();
        let start = Duration::ZERO;
        assert!(!is_taken((now + Duration::from_secs(60), start), 1), "too soon");
        assert!(!is_taken((now - STEP, start), 0), "too little of the stream");
        assert!(is_taken((now - STEP, start), 1));
        assert!(is_taken((now - LONGEST, start), 0), "the stream's times stand still");
    }
}
