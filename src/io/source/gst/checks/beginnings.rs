//! Beginnings of two recordings: their times, time codes and numbers say how far apart they were started.

use std::collections::HashSet;
use std::time::Duration;

use anyhow::ensure;

use crate::labels::{Labels, Timing};
use crate::source::gst::inputs::input::Input;
use crate::source::gst::options::{GstOptions, Offset};
use crate::source::pairing::PairBy;
use crate::source::pictures;
use stereod_core::frame::Eye;

/// Recordings that begin further apart than this part of a frame may have been cut or started
/// separately.
const MOST_OF_A_FRAME: f64 = 0.75;

/// Returns the timings of image files, and the number of pairs if their numbers pair them. Numbers of two patterns
/// share a scale; a pattern next to a video starts at its own first number.
pub(in crate::source::gst) fn timings(
    inputs: &[Input; 2],
    options: &GstOptions,
) -> anyhow::Result<([Option<Timing>; 2], Option<u64>)> {
    let [Input::Pictures(left), Input::Pictures(right)] = inputs else {
        let own = inputs.each_ref().map(|input| input.own_timing(options.picture_rate));
        return Ok((own, None));
    };
    let numbers: HashSet<u64> = left.numbers().collect();
    let shared = right.numbers().filter(|number| numbers.contains(number)).count();
    ensure!(
        shared > 0 || options.pair_by == PairBy::Index,
        "{} and {} have no number in common ({} and {}): the views of a pair must have the same number, \
         or be paired by index (`--set source.pair_by=index`)",
        left.pattern,
        right.pattern,
        left.range(),
        right.range()
    );
    if options.pair_by != PairBy::Index && matches!(options.offset, Offset::Ns(0)) {
        tell(pictures::shifted(left, right));
    }
    let common = (options.pair_by != PairBy::Index).then_some(shared as u64);
    Ok(([Some(pictures::timing(&[left, right], options.picture_rate)); 2], common))
}

/// Returns whether the time codes of the views have moments in common (those of cameras with clocks of their own have none),
/// and the warning if the first frames lie apart by them in another way than by their times.
pub(in crate::source::gst) fn compare_codes(
    labels: [Labels; 2],
    lengths: [Option<Duration>; 2],
    period: Duration,
) -> (bool, Option<String>) {
    let [Some(left), Some(right)] = labels.map(|labels| labels.first_code()) else {
        return (false, None);
    };
    let later = right.code.seconds_after(left.code);
    let ends_before = |length: Option<Duration>, other: f64| {
        length.is_some_and(|length| length.as_secs_f64() <= other)
    };
    if ends_before(lengths[0], later) || ends_before(lengths[1], -later) {
        return (false, None);
    }
    let by_times = right.time.as_secs_f64() - left.time.as_secs_f64();
    let (apart, period) = (later - by_times, period.as_secs_f64());
    if apart.abs() < MOST_OF_A_FRAME * period {
        return (true, None);
    }
    let warning = format!(
        "by the time codes of the first frames, {} (left) and {} (right), the right view is {:.1} ms ({:.1} frames) \
         {} than by its times; if the codes are right, give `--offset {}`",
        left.code,
        right.code,
        apart.abs() * 1e3,
        apart.abs() / period,
        if apart > 0.0 { "later" } else { "earlier" },
        ms(apart)
    );
    (true, Some(warning))
}

/// Returns the warning on recordings whose first frames have these times, if they lie a frame or more apart.
pub(in crate::source::gst) fn apart(
    left: Duration,
    right: Duration,
    period: Duration,
) -> Option<String> {
    let apart = left.abs_diff(right);
    if apart.as_secs_f64() < MOST_OF_A_FRAME * period.as_secs_f64() {
        return None;
    }
    let (earlier, later) =
        if left < right { (Eye::Left, Eye::Right) } else { (Eye::Right, Eye::Left) };
    Some(format!(
        "the {later} recording's first picture is {:.1} ms ({:.1} frames) later than the {earlier} one's, by \
         their times; if both show the same moment, give `--offset {}` (`--offset auto` finds it from the \
         pictures)",
        apart.as_secs_f64() * 1e3,
        apart.as_secs_f64() / period.as_secs_f64(),
        in_ms(left, right)
    ))
}

/// Formats the offset in milliseconds that makes the first frames a pair, as the flag takes it.
pub(in crate::source::gst) fn in_ms(left: Duration, right: Duration) -> String {
    ms(left.as_secs_f64() - right.as_secs_f64())
}

fn ms(seconds: f64) -> String {
    format!("{:.1}", seconds * 1e3).trim_end_matches(".0").to_owned()
}

pub(in crate::source::gst) fn tell(warning: Option<String>) {
    if let Some(warning) = warning {
        tracing::warn!("{warning}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::labels::Timecode;
    use gstreamer as gst;
    use proptest::prelude::*;

    /// Labels of a view whose first frame has the time code 01:00:00:00 plus `frames`, at 30 frames a second.
    fn labels(time_ms: u64, frames: u8) -> Labels {
        let (seconds, frames) = (frames / 30, frames % 30);
        let code = Timecode { hours: 1, minutes: 0, seconds, frames, rate: [30, 1], drop: false };
        Labels { zero: Duration::from_millis(time_ms), timecode: Some((code, 0)), timing: None }
    }

    fn compared(views: [(u64, u8); 2], seconds: u64) -> (bool, Option<String>) {
        gst::init().unwrap();
        let labels = views.map(|(time, frames)| labels(time, frames));
        let length = Some(Duration::from_secs(seconds));
        compare_codes(labels, [length; 2], Duration::from_secs_f64(1.0 / 30.0))
    }

    #[test]
    fn codes_that_contradict_the_times_are_told_with_the_offset() {
        let (_, told) = compared([(0, 0), (0, 5)], 10);
        let told = told.unwrap();
        for part in ["01:00:00:00 (left)", "01:00:00:05 (right)", "(5.0 frames) later"] {
            assert!(told.contains(part), "{told}");
        }
        assert!(told.ends_with("`--offset 166.7`"), "{told}");
        let (_, told) = compared([(0, 45), (500, 30)], 10);
        assert!(told.unwrap().ends_with(
            "30.0 frames) earlier than by its times; if the codes are right, give \
                                         `--offset -1000`"
        ));
        // They agree; the right view began a second later.
        assert_eq!(compared([(0, 0), (1000, 30)], 10), (true, None));
        assert_eq!(compared([(0, 0), (0, 0)], 10), (true, None));
        // Two clocks.
        assert_eq!(compared([(0, 0), (0, 90)], 2), (false, None));
        let none = [labels(0, 0), Labels::default()];
        assert_eq!(compare_codes(none, [None; 2], Duration::from_millis(33)), (false, None));
    }

    proptest! {
        #[test]
        fn the_offset_of_the_codes_makes_them_agree(
            times in prop::array::uniform2(0u64..2000),
            codes in prop::array::uniform2(0u8..250),
        ) {
            let views = [(times[0] + 10_000, codes[0]), (times[1] + 10_000, codes[1])];
            let (has_codes, told) = compared(views, 60);
            prop_assert!(has_codes);
            if let Some(told) = told {
                let offset = told.rsplit(' ').next().unwrap().trim_matches('`');
                let offset = offset.parse::<f64>().unwrap().round() as i64;
                let moved = (views[1].0 as i64 + offset) as u64;
                prop_assert_eq!(compared([views[0], (moved, codes[1])], 60), (true, None));
            }
        }
    }
}
