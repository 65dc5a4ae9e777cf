//! Images of many kinds: no alarm as they are, and one for an injected error.

use std::time::Duration;

use stereod::observe::alignment::Monitor;

use super::injected::{Bump, NONE, bumped};
use super::*;

/// Rectified pairs of many kinds, beside those that other tests look at more closely.
fn pairs() -> Vec<Pair> {
    let mut pairs = rectified_pairs();
    for (group, left, right, disparities) in [
        ("eth3d_two_view_no_truth", "im0.png", "im1.png", 64),
        ("middlebury_v3_quarter_no_truth", "im0.png", "im1.png", 96),
        ("middlebury_2005_2006_half", "view1.png", "view5.png", 160),
        ("middlebury_2005_2006_third", "view1.png", "view5.png", 96),
        ("sceneflow_flyingthings", "left.png", "right.png", 192),
        ("tartanair_clip", "left.png", "right.png", 128),
    ] {
        let Some(folder) = data(&format!("more/{group}")) else { continue };
        let mut items: Vec<_> = std::fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .filter(|item| item.is_dir())
            .collect();
        items.sort();
        for item in items {
            let names =
                if item.join(left).exists() { (left, right) } else { ("im0.png", "im1.png") };
            pairs.push(Pair::read(&item, names.0, names.1, disparities));
        }
    }
    if let Some(folder) = data("more/karlsruhe_clip") {
        for number in 100..109 {
            let (left, right) = (format!("I1_{number:06}.png"), format!("I2_{number:06}.png"));
            pairs.push(Pair::read(&folder, &left, &right, 128));
        }
    }
    pairs
}

#[test]
fn alarms_are_right() {
    let mut table = String::new();
    let (mut asked, mut silent) = (0, 0);
    for pair in pairs() {
        let (seen, verdict) = pair.measured();
        let error = |seen: Option<Measurement>| seen.map_or(f64::NAN, |seen| seen.row_error_px);
        table += &format!("{}: {verdict} {:.2}", pair.name, error(seen));
        assert!(!verdict.is_alarm(), "{}: {seen:?}", pair.name);
        let (width, height) = (pair.left.width() as f64, pair.left.height() as f64);
        let unsure = verdict == Verdict::Unsure;
        for (name, bump, error_px) in [
            ("2.5 px", Bump { shift: 2.5, ..NONE }, 2.5),
            ("1 degree", Bump { roll: 1.0, ..NONE }, width / 12f64.sqrt() * 0.01745),
            ("3 %", Bump { scale: 1.03, ..NONE }, height / 12f64.sqrt() * 0.03),
        ] {
            let (seen, verdict) = judged(&pair.left, &bumped(&pair.right, bump), &pair.options());
            table += &format!("; {name} ({error_px:.1} px): {verdict} {:.2}", error(seen));
            if error_px >= 2.4 && !unsure {
                asked += 1;
                silent += usize::from(!verdict.is_alarm());
            }
        }
        let (seen, verdict) = pair.exchanged();
        table += &format!("; exchanged: {verdict}\n");
        assert!(unsure || verdict == Verdict::Swapped, "{}: {seen:?}", pair.name);
    }
    println!("{table}{silent} of {asked} without an alarm");
    assert!(silent * 20 <= asked, "{table}{silent} of {asked}");
}

/// A moving rig whose cameras do not see the same moment.
#[test]
fn eyes_that_do_not_run_together_are_no_matter_of_calibration() {
    let Some(folder) = data("more/karlsruhe_clip") else { return };
    let read = |eye: u32, number: u32| {
        read_still(&folder.join(format!("I{eye}_{number:06}.png")), Tone::default()).unwrap()
    };
    let options =
        Options { range: Some(DisparityRange { min: 0, count: 128 }), ..Options::default() };
    // Nine frames are too few to tell that the rows wander, but they are no reason to calibrate.
    for (late, expected) in [(0, &[Verdict::Good][..]), (1, &[Verdict::Unsure, Verdict::Wandering])]
    {
        let mut monitor = Monitor::new(Limits::default());
        let mut events = Vec::new();
        for (i, number) in (100..109 - late).enumerate() {
            let measurement = measure(&read(1, number), &read(2, number + late), &options);
            let at = Duration::from_millis(250 * i as u64);
            events.extend(monitor.feed(at, measurement));
        }
        events.extend(monitor.finish());
        assert!(events.iter().all(|event| expected.contains(&event.verdict)), "{late}: {events:?}");
        let verdict = monitor.state().verdict;
        assert!(expected.contains(&verdict), "{late}: {verdict}");
    }
}
