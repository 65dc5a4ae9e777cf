//! Cameras with known clocks.

use super::*;
use crate::source::pairing::{Pairer, Pairing};
use stereod_core::frame::{Eye, EyeFrame, Image};
use stereod_core::pool::Pool;

/// A camera with a known clock, in nanoseconds.
struct Camera {
    period: f64,
    phase: f64,
    /// Largest delay of a frame.
    jitter: f64,
    /// One frame in this many is missing; 0: none.
    drops: u64,
    random: u64,
    next: u64,
}

impl Camera {
    fn new(rate: f64, ppm: f64, phase_ms: f64) -> Self {
        let period = 1e9 / rate / (1.0 + ppm * 1e-6);
        Self { period, phase: phase_ms * 1e6, jitter: 0.0, drops: 0, random: 9, next: 0 }
    }

    fn random(&mut self) -> u64 {
        self.random = self.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        self.random >> 33
    }

    fn frame(&mut self) -> Duration {
        if self.drops > 0 && self.random().is_multiple_of(self.drops) {
            self.next += 1;
        }
        let late = self.jitter * (self.random() % 1001) as f64 / 1000.0;
        let time = 1e9 + self.phase + self.next as f64 * self.period + late;
        self.next += 1;
        Duration::from_nanos(time as u64)
    }
}

/// Runs two cameras for `seconds` through a pairer; returns the results and the remarks.
fn run(left: Camera, right: Camera, seconds: f64) -> (Synchronisation, Vec<Remark>) {
    run_within(None, left, right, seconds)
}

/// As [`run`], with this tolerance in milliseconds.
fn run_within(
    tolerance: impl Into<Option<u64>>,
    left: Camera,
    right: Camera,
    seconds: f64,
) -> (Synchronisation, Vec<Remark>) {
    let mut synchronisation = Synchronisation::default();
    let tolerance = tolerance.into().map(Duration::from_millis);
    let remarks = go_on(&mut synchronisation, tolerance, left, right, seconds);
    (synchronisation, remarks)
}

fn go_on(
    synchronisation: &mut Synchronisation,
    tolerance: Option<Duration>,
    mut left: Camera,
    mut right: Camera,
    seconds: f64,
) -> Vec<Remark> {
    let periods = [left.period, right.period].map(|ns| Some(Duration::from_nanos(ns as u64)));
    let [left_period, right_period] = periods;
    let is_live = true;
    let pairing = Pairing { left_period, right_period, tolerance, is_live, ..Pairing::default() };
    let mut pairer = Pairer::new(pairing);
    let pool = Pool::new();
    let arrived = std::time::Instant::now();
    let mut times = [left.frame(), right.frame()];
    let mut remarks = Vec::new();
    while times[0].max(times[1]).as_secs_f64() < seconds + 1.0 {
        let eye = usize::from(times[1] < times[0]);
        let (time, which) = (times[eye], [Eye::Left, Eye::Right][eye]);
        times[eye] = if eye == 0 { left.frame() } else { right.frame() };
        synchronisation.note_frame(which, time);
        let (timestamp, image) = (Some(time), Image::new(1, 1, pool.take(1)));
        pairer.push(which, EyeFrame { image, timestamp, index: 0, arrived });
        while let Some(pair) = pairer.pop() {
            synchronisation.note_pair(pair.skew_ns);
        }
        let tolerance = pairer.tolerance().unwrap_or_default();
        remarks.extend(synchronisation.remark(tolerance));
    }
    remarks
}

fn text(remark: &Remark) -> &str {
    let (Remark::Warning(text) | Remark::Well(text)) = remark;
    text
}

#[test]
fn clocks_are_measured_through_jitter_and_drops() {
    let left = Camera { jitter: 1e6, drops: 20, ..Camera::new(30.0, 250.0, 0.0) };
    let right = Camera { jitter: 1e6, drops: 7, random: 5, ..Camera::new(30.0, -150.0, -6.0) };
    let mut synchronisation = Synchronisation::default();
    synchronisation.claim(Some(30.0), Some(30.0));
    let remarks = go_on(&mut synchronisation, None, left, right, 30.0);
    assert_eq!(remarks, []);
    let summary = synchronisation.summary().unwrap();
    let (left, right) = (summary.left.unwrap(), summary.right.unwrap());
    // Evenly spread lateness of 1 ms has a root mean square of 1/sqrt(12) ms around its mean.
    for (clock, ppm) in [(left, 250.0), (right, -150.0)] {
        assert!((clock.error_ppm.unwrap() - ppm).abs() < 15.0, "{clock:?}");
        assert!((clock.jitter_ms - 0.289).abs() < 0.03, "{clock:?}");
        assert!((clock.rate_hz - 30.0 * (1.0 + ppm * 1e-6)).abs() < 1e-3, "{clock:?}");
    }
    assert!((summary.drift_ppm.unwrap() - 400.0).abs() < 20.0, "{summary:?}");
    // -6 ms at the start, and 400 us a second more for 30 s.
    assert!((summary.phase_ms.unwrap() - 6.0).abs() < 0.5, "{summary:?}");
}

#[test]
fn differences_have_their_sign() {
    for (phase, later) in [(3.0, 1.0), (-3.0, 0.0)] {
        let (synchronisation, remarks) =
            run(Camera::new(30.0, 0.0, 50.0), Camera::new(30.0, 0.0, 50.0 + phase), 20.0);
        assert_eq!(remarks, []);
        let differences = synchronisation.summary().unwrap().difference_ms.unwrap();
        let Differences { p50, p95, max, mean, right_later } = differences;
        for value in [p50, p95, max, mean * phase.signum()] {
            assert!((value - 3.0).abs() < 0.01, "{differences:?}");
        }
        assert_eq!(right_later, later);
    }
}

#[test]
fn cameras_half_a_frame_apart_are_warned_of_once() {
    let cameras = || (Camera::new(30.0, 0.0, 0.0), Camera::new(30.0, 0.0, 16.667));
    let (left, right) = cameras();
    let (synchronisation, remarks) = run(left, right, 60.0);
    assert_eq!(remarks.len(), 1, "{remarks:?}");
    let said = text(&remarks[0]);
    assert!(said.contains("16.7 ms apart") && said.contains("50 % of a frame"), "{said}");
    let pairs = synchronisation.differences.len();
    assert!((1798..=1800).contains(&pairs), "{pairs} pairs");
    // With a tolerance of less than half a frame there is no pair.
    let (left, right) = cameras();
    let (synchronisation, remarks) = run_within(15, left, right, 60.0);
    assert_eq!(remarks.len(), 1, "{remarks:?}");
    let said = text(&remarks[0]);
    assert!(said.starts_with("only 0 of 1"), "{said}");
    assert!(said.contains("16.7 ms apart, 50 % of a frame"), "{said}");
    assert!(said.contains("hardware trigger") && said.contains("`--tolerance 20`"), "{said}");
    assert!((synchronisation.summary().unwrap().phase_ms.unwrap().abs() - 16.667).abs() < 0.01);
}

#[test]
fn late_pairs_are_warned_of_once() {
    let (_, remarks) = run(Camera::new(30.0, 0.0, 12.0), Camera::new(30.0, 0.0, 0.0), 60.0);
    assert_eq!(remarks.len(), 1, "{remarks:?}");
    let said = text(&remarks[0]);
    assert!(said.contains("12.0 ms apart, the left view later, 36 % of a frame"), "{said}");
}

#[test]
fn a_difference_that_wanders_is_told_with_its_pace() {
    // 500 ppm: through a whole frame of 33.3 ms in 67 s. Three rounds, and each kind of remark appears once.
    let cameras = || (Camera::new(30.0, 0.0, 0.0), Camera::new(30.0, -500.0, 0.0));
    let (left, right) = cameras();
    let (synchronisation, remarks) = run(left, right, 200.0);
    assert_eq!(remarks.len(), 1, "{remarks:?}");
    // Each round costs one frame.
    let pairs = synchronisation.differences.len();
    assert!((5990..=6000).contains(&pairs), "{pairs} pairs");
    let (left, right) = cameras();
    let (_, remarks) = run_within(15, left, right, 200.0);
    assert_eq!(remarks.len(), 2, "{remarks:?}");
    assert!(text(&remarks[0]).contains("the right view later"), "{remarks:?}");
    assert!(text(&remarks[1]).starts_with("only "), "{remarks:?}");
    for remark in &remarks {
        let said = text(remark);
        let ppm = said.split("differ by ").nth(1).unwrap().split(' ').next().unwrap();
        assert!((ppm.parse::<f64>().unwrap() - 500.0).abs() <= 5.0, "{said}");
        assert!(said.contains("every 67 s") || said.contains("every 66 s"), "{said}");
    }
}

#[test]
fn different_rates_are_named() {
    let (synchronisation, remarks) =
        run(Camera::new(30.0, 0.0, 0.0), Camera::new(15.0, 0.0, 0.0), 30.0);
    assert_eq!(remarks.len(), 1, "{remarks:?}");
    let said = text(&remarks[0]);
    assert!(
        said.contains("left camera sends 30.0 frames a second and the right one 15.0"),
        "{said}"
    );
    assert_eq!(synchronisation.summary().unwrap().phase_ms, None);
}

#[test]
fn a_camera_that_changes_its_rate_is_followed() {
    let mut cadence = Cadence::default();
    let mut time = 0.0;
    for frame in 0..400 {
        time += if frame < 100 { 1.0 / 30.0 } else { 1.0 / 15.0 };
        cadence.push(Duration::from_secs_f64(time));
    }
    assert!((cadence.fit().unwrap().period * 15.0 - 1.0).abs() < 1e-6, "{:?}", cadence.fit());
    // And when it is quick again.
    for _ in 0..100 {
        time += 1.0 / 30.0;
        cadence.push(Duration::from_secs_f64(time));
    }
    assert!((cadence.fit().unwrap().period * 30.0 - 1.0).abs() < 1e-6, "{:?}", cadence.fit());
}

#[test]
fn a_camera_without_a_beat_is_not_said_to_have_a_rate() {
    // Late by up to a period and a half, as a camera on an overloaded machine.
    let uneven = Camera { jitter: 50e6, ..Camera::new(30.0, 0.0, 0.0) };
    let (synchronisation, remarks) = run(Camera::new(30.0, 0.0, 0.0), uneven, 60.0);
    assert!(remarks.iter().all(|remark| !text(remark).contains("frames a second")), "{remarks:?}");
    let summary = synchronisation.summary().unwrap();
    assert_eq!((summary.phase_ms, summary.drift_ppm), (None, None));
}

#[test]
fn a_loss_lets_a_warning_be_said_again() {
    let mut synchronisation = Synchronisation::default();
    let cameras = || (Camera::new(30.0, 0.0, 0.0), Camera::new(30.0, 0.0, 16.667));
    let (left, right) = cameras();
    assert_eq!(go_on(&mut synchronisation, None, left, right, 20.0).len(), 1);
    synchronisation.note_lost(Eye::Right);
    synchronisation.note_lost(Eye::Left);
    let clocks = synchronisation.summary().map(|summary| (summary.left, summary.right));
    assert_eq!(clocks, Some((None, None)));
    let (left, right) = cameras();
    assert_eq!(go_on(&mut synchronisation, None, left, right, 20.0).len(), 1);
}

#[test]
fn nothing_is_known_of_nothing() {
    let mut synchronisation = Synchronisation::default();
    assert_eq!(synchronisation.summary(), None);
    assert_eq!(synchronisation.remark(Duration::from_millis(15)), None);
}

#[test]
fn frames_paired_by_arrival_are_judged_too() {
    /// Notes 5 s of frames at these times, and this many pairs; returns the warning and the trouble.
    fn told(times: [Vec<u64>; 2], pairs: u64) -> (Option<Remark>, Option<String>) {
        let mut synchronisation = Synchronisation::default();
        synchronisation.note_by_arrival();
        for (eye, times) in Eye::BOTH.into_iter().zip(times) {
            for ms in times {
                synchronisation.note_frame(eye, Duration::from_millis(ms));
            }
        }
        (0..pairs).for_each(|_| synchronisation.note_pair(None));
        let remark = synchronisation.remark(Duration::from_millis(30));
        assert_eq!(synchronisation.summary(), None);
        (remark, synchronisation.trouble().map(str::to_owned))
    }
    let steady = |rate: u64| (0..=5 * rate).map(|n| 1000 + n * 1000 / rate).collect::<Vec<_>>();
    // Three frames at once every 0.2 s.
    let bursts = |rate: u64| (0..=5 * rate).map(|n| 1000 + n / 3 * 3000 / rate + n % 3).collect();
    assert_eq!(told([steady(12), steady(12)], 60), (None, None));
    let warned = |(remark, trouble): (Option<Remark>, Option<String>), words: &str| {
        assert!(
            matches!(&remark, Some(Remark::Warning(text)) if text.contains(words)),
            "{remark:?}"
        );
        assert!(trouble.is_some());
    };
    warned(told([steady(12), steady(6)], 30), "sends 12.0 frames a second and the right one 6.0");
    warned(told([bursts(15), bursts(30)], 75), "sends 15.2 frames a second and the right one 30.2");
    warned(
        told([bursts(15), bursts(15)], 30),
        "only 30 of 76 frames found a partner by their arrival",
    );
}
