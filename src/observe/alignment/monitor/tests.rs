use super::*;

fn measured(row_error_px: f64) -> Measurement {
    Measurement {
        width: 752,
        matches: 200,
        consistent: 190,
        row_error_px,
        uncertainty_px: 0.03,
        shift_px: row_error_px,
        roll_deg: 0.0,
        scale: 1.0,
        curvature_px: 0.1,
        curvature_uncertainty_px: 0.05,
        median_px: row_error_px,
        spread_px: 0.2,
        disparity_px: 20.0,
        below_range: 0.0,
    }
}

/// A monitor that is fed four times a second.
struct Fed {
    monitor: Monitor,
    quarters: u32,
}

impl Fed {
    fn new() -> Self {
        Self { monitor: Monitor::new(Limits::default()), quarters: 0 }
    }

    fn feed(&mut self, count: u32, measurement: Option<Measurement>) -> Vec<Event> {
        let feed = |_| {
            self.quarters += 1;
            self.monitor.feed(Duration::from_millis(250) * self.quarters, measurement)
        };
        (0..count).filter_map(feed).collect()
    }

    fn error(&self) -> f64 {
        self.monitor.state().measurement.unwrap().row_error_px
    }
}

fn verdicts(events: &[Event]) -> Vec<Verdict> {
    events.iter().map(|event| event.verdict).collect()
}

#[test]
fn a_bump_is_told_once_and_so_is_its_end() {
    let mut fed = Fed::new();
    assert_eq!(verdicts(&fed.feed(40, Some(measured(0.2)))), [Verdict::Good]);
    let events = fed.feed(40, Some(measured(3.2)));
    assert_eq!(verdicts(&events), [Verdict::RowsOff], "{events:?}");
    assert!(events[0].message.contains("after 0.2 px earlier in this run"), "{events:?}");
    assert!((fed.error() - 3.2).abs() < 0.01, "{}", fed.error());
    assert_eq!(fed.feed(40, Some(measured(3.6))), []);
    let warning = fed.monitor.warning().unwrap();
    assert!(warning.contains("differ by 3.6 px") && warning.contains("after 0.2 px"), "{warning}");
    let events = fed.feed(40, Some(measured(0.3)));
    assert_eq!(verdicts(&events), [Verdict::Good], "{events:?}");
    assert!(events[0].message.contains("aligned again"), "{events:?}");
    assert_eq!(fed.monitor.warning(), None);
    let state = fed.monitor.state();
    assert!((state.largest_px - 3.6).abs() < 0.01, "{state:?}");
    assert_eq!((state.measured, state.at_start_px), (160, Some(0.2)));
    assert_eq!(fed.monitor.finish(), None);
}

#[test]
fn a_bump_is_told_within_two_seconds() {
    let mut fed = Fed::new();
    fed.feed(20, Some(measured(0.2)));
    assert_eq!(verdicts(&fed.feed(8, Some(measured(4.0)))), [Verdict::RowsOff]);
}

#[test]
fn single_wrong_measurements_are_never_seen() {
    let mut fed = Fed::new();
    fed.feed(10, Some(measured(0.2)));
    for _ in 0..10 {
        assert_eq!(fed.feed(2, Some(measured(9.0))), []);
        assert_eq!(fed.feed(3, Some(measured(0.2))), []);
        assert!(fed.error() < 0.21);
    }
}

#[test]
fn growing_is_told_again_but_staying_is_not() {
    let mut fed = Fed::new();
    assert_eq!(verdicts(&fed.feed(20, Some(measured(1.8)))), [Verdict::RowsOff]);
    assert_eq!(fed.feed(200, Some(measured(2.2))), []);
    assert_eq!(verdicts(&fed.feed(20, Some(measured(4.5)))), [Verdict::RowsOff]);
    assert_eq!(fed.feed(200, Some(measured(4.6))), []);
}

#[test]
fn what_was_rectified_has_been_bumped_however_far() {
    let mut fed = Fed::new();
    fed.feed(10, Some(measured(0.2)));
    let events = fed.feed(40, Some(measured(15.0)));
    assert!(events.iter().all(|event| event.verdict == Verdict::RowsOff), "{events:?}");
    assert_eq!(fed.monitor.state().verdict, Verdict::RowsOff);
    let mut fed = Fed::new();
    assert_eq!(verdicts(&fed.feed(40, Some(measured(15.0)))), [Verdict::NotRectified]);
}

#[test]
fn nothing_to_see_is_no_alarm_and_ends_none() {
    let mut fed = Fed::new();
    assert_eq!(verdicts(&fed.feed(100, None)), [Verdict::Unsure]);
    assert_eq!(fed.monitor.state().line(), None);
    assert_eq!(verdicts(&fed.feed(10, Some(measured(3.0)))), [Verdict::RowsOff]);
    // A short interruption changes nothing; a long one ends the verdict, but the warning holds.
    assert_eq!(fed.feed(30, None), []);
    assert_eq!(fed.monitor.state().verdict, Verdict::RowsOff);
    assert_eq!(verdicts(&fed.feed(30, None)), [Verdict::Unsure]);
    assert_eq!(fed.monitor.state().verdict, Verdict::Unsure);
    assert_eq!(fed.feed(20, Some(measured(3.0))), []);
    assert_eq!(fed.monitor.state().verdict, Verdict::RowsOff);
    assert_eq!(verdicts(&fed.feed(20, Some(measured(0.2)))), [Verdict::Good]);
}

#[test]
fn short_runs_come_to_a_verdict_at_their_end() {
    let mut monitor = Monitor::new(Limits::default());
    assert_eq!(monitor.finish(), None);
    assert_eq!(monitor.feed(Duration::ZERO, Some(measured(3.0))), None);
    assert_eq!(monitor.state().verdict, Verdict::Unsure);
    assert_eq!(monitor.finish().unwrap().verdict, Verdict::RowsOff);
    assert_eq!(monitor.finish(), None);
    assert_eq!(monitor.state().summary().verdict, Verdict::RowsOff);
}

#[test]
fn the_summary_is_rounded_and_empty_without_measurements() {
    let mut fed = Fed::new();
    let json = |monitor: &Monitor| serde_json::to_value(monitor.state().summary()).unwrap();
    let before = json(&fed.monitor);
    assert_eq!(before["verdict"], "unsure");
    assert!(before["row_error_px"].is_null() && before["scale"].is_null());
    fed.feed(5, Some(Measurement { roll_deg: 0.123_456, ..measured(0.123_456) }));
    let after = json(&fed.monitor);
    assert_eq!(after["verdict"], "good");
    assert_eq!(after["measurements"], 5);
    assert_eq!(after["row_error_px"], 0.123);
    assert_eq!(after["roll_deg"], 0.1235);
    let line = fed.monitor.state().line().unwrap();
    assert_eq!(line, ("rows 0.1 px  roll 0.12 deg".to_owned(), false));
    let mut fed = Fed::new();
    fed.feed(5, Some(Measurement { roll_deg: -0.004, ..measured(0.1) }));
    assert!(fed.monitor.state().line().unwrap().0.contains("roll 0.00 deg"));
    let summary = fed.monitor.state().summary().to_string();
    assert!(summary.contains("(roll 0.00 deg, "), "{summary}");
}

/// The first seconds of an OAK-D's recording, over-exposed: a handful of points, then more.
#[test]
fn what_cannot_be_relied_on_yet_is_no_alarm() {
    let mut fed = Fed::new();
    let few = |row_error_px, uncertainty_px, curvature_px| Measurement {
        matches: 25,
        consistent: 22,
        uncertainty_px,
        curvature_px,
        curvature_uncertainty_px: 1.0,
        ..measured(row_error_px)
    };
    for (error, uncertainty, curvature) in
        [(4.2, 1.03, 9.0), (1.4, 0.93, 4.1), (1.0, 0.59, 2.4), (1.8, 0.6, 1.9)]
    {
        assert_eq!(fed.feed(1, Some(few(error, uncertainty, curvature))), []);
        assert_eq!(fed.monitor.state().verdict, Verdict::Unsure);
    }
    for (error, uncertainty) in [(1.04, 0.46), (1.39, 0.25), (1.15, 0.17), (1.36, 0.19)] {
        let events = fed.feed(1, Some(few(error, uncertainty, 0.5)));
        assert!(events.iter().all(|event| !event.verdict.is_alarm()), "{events:?}");
    }
    fed.feed(40, Some(measured(1.3)));
    assert_eq!(fed.monitor.state().verdict, Verdict::Good);
    assert!(fed.monitor.state().largest_px < 1.5, "{:?}", fed.monitor.state());
    // A single bad measurement changes nothing either.
    assert_eq!(fed.feed(1, Some(few(4.2, 1.03, 9.0))), []);
    assert!((fed.error() - 1.3).abs() < 0.05, "{}", fed.error());
}

#[test]
fn no_bump_is_told_of_what_never_agreed() {
    let mut fed = Fed::new();
    let events = fed.feed(20, Some(measured(2.0)));
    assert_eq!(verdicts(&events), [Verdict::RowsOff]);
    assert!(!events[0].message.contains("bumped"), "{events:?}");
    let events = fed.feed(20, Some(measured(5.0)));
    assert!(!events[0].message.contains("bumped"), "{events:?}");
    // Nor after a bare agreement that ends.
    let mut fed = Fed::new();
    assert_eq!(verdicts(&fed.feed(20, Some(measured(1.35)))), [Verdict::Good]);
    let events = fed.feed(20, Some(measured(1.7)));
    assert_eq!(verdicts(&events), [Verdict::RowsOff]);
    assert!(!events[0].message.contains("bumped"), "{events:?}");
}

/// Rows from -20 to 15 px within ten seconds, up and down, slowly one way, or to and fro.
#[test]
fn rows_that_wander_are_told_with_their_range() {
    let wave = |i: u32| -2.5 + 17.5 * (f64::from(i) * 0.35).sin();
    let ramp = |i: u32| -20.0 + 0.9 * f64::from(i.min(39));
    let jumps = |i: u32| -2.5 + f64::from((i * 13) % 36) - 17.5;
    for (name, row) in [("wave", &wave as &dyn Fn(u32) -> f64), ("ramp", &ramp), ("jumps", &jumps)]
    {
        let mut fed = Fed::new();
        let mut events = Vec::new();
        for i in 0..40 {
            let shift_px = row(i);
            let seen = Measurement { shift_px, ..measured(shift_px.abs()) };
            events.extend(fed.feed(1, Some(seen)));
        }
        assert!(events.iter().all(|e| e.verdict == Verdict::Wandering), "{name}: {events:?}");
        // Once, however far they go; the account of the run has the whole way.
        assert_eq!(events.len(), 1, "{name}: {events:?}");
        let state = fed.monitor.state();
        let [low, high] = state.wandered_px.unwrap();
        assert!(low < -12.0 && high > 9.0, "{name}: {low} {high}");
        assert_eq!(state.summary().wandered_px.unwrap()[0], (low * 1e3).round() / 1e3);
        assert!(state.summary().to_string().contains("rows wander"), "{name}");
        // It ends once they stay.
        let events = fed.feed(60, Some(Measurement { shift_px: 0.2, ..measured(0.2) }));
        assert_eq!(verdicts(&events), [Verdict::Good], "{name}: {events:?}");
    }
}

/// Neither noise nor a bump nor two are wandering.
#[test]
fn steps_and_noise_do_not_wander() {
    let mut fed = Fed::new();
    let mut told = Vec::new();
    for i in 0..120u32 {
        let noise = f64::from((i * 7919) % 101) * 0.006 - 0.3;
        let place = [0.2, 6.0, 6.0, -4.0, -4.0, 0.2][i as usize / 20];
        let shift_px = place + noise;
        let seen = Measurement { shift_px, uncertainty_px: 0.2, ..measured(shift_px.abs()) };
        told.extend(verdicts(&fed.feed(1, Some(seen))));
    }
    assert!(!told.contains(&Verdict::Wandering), "{told:?}");
    assert!(told.contains(&Verdict::RowsOff), "{told:?}");
    assert_eq!(fed.monitor.state().wandered_px, None);
}
