use std::time::Instant;

use proptest::prelude::*;

use super::*;
use crate::core::frame::Image;

fn frame(index: u64, timestamp: Option<Duration>) -> EyeFrame {
    let image = Image::from_vec(1, 1, vec![index as u8]);
    EyeFrame { image, timestamp, index, arrived: Instant::now() }
}

/// Milliseconds, where negative stands for "no time".
fn millis(times: &[i64]) -> Vec<Option<Duration>> {
    times.iter().map(|&t| u64::try_from(t).ok().map(Duration::from_millis)).collect()
}

/// `frames` frames at `rate` a second from `start` on.
fn steady(rate: u64, frames: u64, start: Duration) -> Vec<Option<Duration>> {
    (0..frames).map(|i| Some(start + Duration::from_nanos(i * 1_000_000_000 / rate))).collect()
}

/// The pairs, as frame numbers, and the pairer at the end. Frames are delivered as a file source
/// does: each from the view that is needed.
fn run(
    pairing: Pairing,
    left: &[Option<Duration>],
    right: &[Option<Duration>],
) -> (Vec<(u8, u8)>, Pairer) {
    let mut pairer = Pairer::new(pairing);
    let (pairs, most) = feed(&mut pairer, left, right, |pairer| pairer.needed_eye());
    assert!(most <= LOOKAHEAD + 1, "{most} frames waited");
    (pairs.iter().map(|pair| (pair.left.pixels()[0], pair.right.pixels()[0])).collect(), pairer)
}

fn feed(
    pairer: &mut Pairer,
    left: &[Option<Duration>],
    right: &[Option<Duration>],
    mut choose: impl FnMut(&Pairer) -> Option<Eye>,
) -> (Vec<StereoPair>, usize) {
    let mut next = [0usize; 2];
    let mut finished = [false; 2];
    let (mut pairs, mut most) = (Vec::new(), 0);
    while finished != [true; 2] {
        let eye = match choose(pairer) {
            Some(Eye::Left) if !finished[0] => Eye::Left,
            Some(Eye::Right) if !finished[1] => Eye::Right,
            _ if finished[0] => Eye::Right,
            _ => Eye::Left,
        };
        let (side, times) = if eye == Eye::Left { (0, left) } else { (1, right) };
        match times.get(next[side]) {
            Some(&time) => pairer.push(eye, frame(next[side] as u64, time)),
            None => {
                finished[side] = true;
                pairer.finish(eye);
            }
        }
        next[side] += 1;
        most = most.max(pairer.left.waiting.len()).max(pairer.right.waiting.len());
        while let Some(pair) = pairer.pop() {
            pairs.push(pair);
        }
    }
    (pairs, most)
}

fn counts(pairer: &Pairer) -> [u64; 3] {
    [pairer.pairs(), pairer.unpaired(Eye::Left), pairer.unpaired(Eye::Right)]
}

#[test]
fn equal_streams_pair_completely() {
    let times = steady(20, 95, Duration::ZERO);
    let (pairs, pairer) = run(Pairing::default(), &times, &times);
    assert_eq!(pairs, (0..95).map(|i| (i, i)).collect::<Vec<_>>());
    assert_eq!(counts(&pairer), [95, 0, 0]);
    assert!(matches!(pairer.rule, Some(Rule::Time { .. })));
}

#[test]
fn a_longer_eye_leaves_its_rest_unpaired() {
    let (pairs, pairer) =
        run(Pairing::default(), &steady(20, 5, Duration::ZERO), &steady(20, 9, Duration::ZERO));
    assert_eq!(pairs, [(0, 0), (1, 1), (2, 2), (3, 3), (4, 4)]);
    assert_eq!(counts(&pairer), [5, 0, 4]);
}

#[test]
fn a_later_start_pairs_by_time_not_by_number() {
    let late = steady(20, 6, Duration::from_millis(203));
    let (pairs, pairer) = run(Pairing::default(), &steady(20, 8, Duration::ZERO), &late);
    assert_eq!(pairs, [(4, 0), (5, 1), (6, 2), (7, 3)]);
    assert_eq!(counts(&pairer), [4, 4, 2]);
}

#[test]
fn twenty_and_thirty_a_second_meet_ten_times_a_second() {
    // Left at 0, 50, 100 ms; right at 0, 33.3, 66.7, 100 ms: 50 ms is midway between two.
    let (left, right) = (steady(20, 20, Duration::ZERO), steady(30, 30, Duration::ZERO));
    let (pairs, pairer) = run(Pairing::default(), &left, &right);
    assert_eq!(pairs, (0..10).map(|i| (2 * i, 3 * i)).collect::<Vec<_>>());
    assert_eq!(counts(&pairer), [10, 10, 20]);
    // A caller that wants more says how far apart is close enough.
    let wide = Pairing { tolerance: Some(Duration::from_millis(17)), ..Pairing::default() };
    let (pairs, pairer) = run(wide, &left, &right);
    assert_eq!(pairs.len(), 20);
    assert_eq!(counts(&pairer), [20, 0, 10]);
}

#[test]
fn a_gap_costs_its_own_frames_only() {
    let right = millis(&[0, 50, 200, 250]);
    let (pairs, pairer) = run(Pairing::default(), &steady(20, 6, Duration::ZERO), &right);
    assert_eq!(pairs, [(0, 0), (1, 1), (4, 2), (5, 3)]);
    assert_eq!(counts(&pairer), [4, 2, 0]);
}

#[test]
fn jitter_is_tolerated_and_reported_as_skew() {
    let right = millis(&[3, 47, 112, 150, 190]);
    let mut pairer = Pairer::new(Pairing::default());
    let left = steady(20, 5, Duration::ZERO);
    let (pairs, _) = feed(&mut pairer, &left, &right, |pairer| pairer.needed_eye());
    let skews: Vec<i64> = pairs.iter().map(|pair| pair.skew_ns / 1_000_000).collect();
    assert_eq!(skews, [3, -3, 12, 0, -10]);
    assert_eq!(pairs[1].timestamp, Duration::from_millis(50));
    assert_eq!(pairs.iter().map(|pair| pair.sequence).collect::<Vec<_>>(), [0, 1, 2, 3, 4]);
}

#[test]
fn a_wide_tolerance_still_takes_the_nearer_frame() {
    let wide = Pairing { tolerance: Some(Duration::from_millis(45)), ..Pairing::default() };
    // 40 lies within the tolerance of 0, but 50 is nearer to it.
    let (pairs, pairer) = run(wide, &millis(&[0, 50, 100]), &millis(&[40, 90, 140]));
    assert_eq!(pairs, [(1, 0), (2, 1)]);
    assert_eq!(counts(&pairer), [2, 1, 1]);
    let (pairs, _) = run(wide, &millis(&[40, 90, 140]), &millis(&[0, 50, 100]));
    assert_eq!(pairs, [(0, 1), (1, 2)]);
}

#[test]
fn streams_without_times_pair_by_number() {
    let none = millis(&[-1; 5]);
    // A raw MJPEG file has a time for its first frame only.
    let first_only = millis(&[0, -1, -1, -1]);
    let (pairs, pairer) = run(Pairing::default(), &none, &first_only);
    assert_eq!(pairs, [(0, 0), (1, 1), (2, 2), (3, 3)]);
    assert_eq!(counts(&pairer), [4, 1, 0]);
    assert!(matches!(pairer.rule, Some(Rule::Index { .. })));
    // All equal.
    let (pairs, _) = run(Pairing::default(), &millis(&[7; 20]), &steady(20, 20, Duration::ZERO));
    assert_eq!(pairs.len(), 20);
    // The pair's time is then the frame's number times the period.
    let period = Duration::from_millis(40);
    let pairing = Pairing { left_period: Some(period), ..Pairing::default() };
    let mut pairer = Pairer::new(pairing);
    let (pairs, _) = feed(&mut pairer, &none, &none, |pairer| pairer.needed_eye());
    assert_eq!(pairs[3].timestamp, period * 3);
}

#[test]
fn numbers_or_times_can_be_asked_for() {
    let (left, late) = (steady(20, 4, Duration::ZERO), steady(20, 4, Duration::from_secs(10)));
    let by_index = Pairing { by: PairBy::Index, ..Pairing::default() };
    assert_eq!(run(by_index, &left, &late).0.len(), 4);
    let (pairs, pairer) = run(Pairing::default(), &left, &late);
    assert_eq!((pairs.len(), counts(&pairer)), (0, [0, 4, 4]));
    let by_time = Pairing { by: PairBy::Time, ..Pairing::default() };
    let (pairs, pairer) = run(by_time, &left, &millis(&[-1, -1, -1]));
    assert_eq!((pairs.len(), counts(&pairer)), (0, [0, 4, 3]));
}

#[test]
fn a_frame_without_a_time_or_out_of_order_stays_alone() {
    let (pairs, pairer) =
        run(Pairing::default(), &millis(&[0, 50, 100, 150]), &millis(&[0, -1, 100, 60, 150]));
    assert_eq!(pairs, [(0, 0), (2, 2), (3, 4)]);
    assert_eq!(counts(&pairer), [3, 1, 2]);
}

/// Frames at 20 a second from `start` on, one part after the other.
fn parts(parts: &[(Duration, u64)]) -> Vec<Option<Duration>> {
    parts.iter().flat_map(|&(start, frames)| steady(20, frames, start)).collect()
}

#[test]
fn pairing_restarts_where_the_times_of_both_eyes_jump_back() {
    // Two files joined, one view's first part three frames longer.
    let seconds = Duration::from_secs;
    let left = parts(&[(seconds(0), 60), (seconds(0), 80)]);
    let right = parts(&[(seconds(0), 63), (Duration::from_millis(100), 70)]);
    let mut pairer = Pairer::new(Pairing::default());
    let (pairs, most) = feed(&mut pairer, &left, &right, |pairer| pairer.needed_eye());
    assert!(most <= JUMP_REACH, "{most} frames waited");
    let numbers: Vec<_> =
        pairs.iter().map(|pair| (pair.left.pixels()[0], pair.right.pixels()[0])).collect();
    let expected: Vec<_> =
        (0..60).map(|i| (i, i)).chain((0..70).map(|i| (62 + i, 63 + i))).collect();
    assert_eq!(numbers, expected);
    assert_eq!((pairer.restarts(), counts(&pairer)), (1, [130, 10, 3]));
    // The times of the pairs go on.
    assert!(pairs.windows(2).all(|two| two[0].timestamp < two[1].timestamp));
    assert!(pairs[60].timestamp - pairs[59].timestamp < Duration::from_millis(150));
    // Whichever view is longer, and however often.
    let (left, right) = (parts(&[(seconds(9), 25); 3]), parts(&[(seconds(9), 30); 3]));
    for (left, right) in [(&left, &right), (&right, &left)] {
        let (pairs, pairer) = run_joined(left, right);
        assert_eq!((pairs.len(), pairer.restarts()), (75, 2));
    }
}

/// As [`run`], of views whose frames may wait for a jump of the other one.
fn run_joined(left: &[Option<Duration>], right: &[Option<Duration>]) -> (Vec<StereoPair>, Pairer) {
    let mut pairer = Pairer::new(Pairing::default());
    let (pairs, most) = feed(&mut pairer, left, right, |pairer| pairer.needed_eye());
    assert!(most <= JUMP_REACH, "{most} frames waited");
    (pairs, pairer)
}

#[test]
fn a_jump_of_one_eye_costs_the_frames_until_it_has_caught_up() {
    let seconds = Duration::from_secs;
    let steady_eye = steady(20, 140, seconds(0));
    // Back by two seconds after five, for good: 40 frames come again.
    let jumps = parts(&[(seconds(0), 100), (seconds(3), 80)]);
    for swap in [false, true] {
        let (left, right) = if swap { (&jumps, &steady_eye) } else { (&steady_eye, &jumps) };
        let (pairs, pairer) = run_joined(left, right);
        assert_eq!((pairs.len(), pairer.restarts()), (140, 0));
        let lost = Eye::BOTH.map(|eye| pairer.unpaired_since_first(eye));
        assert_eq!(lost, if swap { [40, 0] } else { [0, 40] });
    }
}

#[test]
fn single_pictures_and_empty_eyes() {
    assert_eq!(run(Pairing::default(), &millis(&[0]), &millis(&[0])).0, [(0, 0)]);
    assert_eq!(run(Pairing::default(), &millis(&[-1]), &millis(&[0])).0, [(0, 0)]);
    let (_, pairer) = run(Pairing::default(), &[], &steady(20, 30, Duration::ZERO));
    assert_eq!(counts(&pairer), [0, 0, 30]);
    let (_, pairer) = run(Pairing::default(), &[], &[]);
    assert_eq!(counts(&pairer), [0, 0, 0]);
    assert_eq!(pairer.needed_eye(), None);
}

#[test]
fn an_eye_that_stands_still_does_not_fill_the_memory() {
    let mut pairer = Pairer::new(Pairing::default());
    for (index, time) in steady(30, 1000, Duration::ZERO).into_iter().enumerate() {
        pairer.push(Eye::Left, frame(index as u64, time));
        assert!(pairer.pop().is_none());
        assert!(pairer.left.waiting.len() <= MAX_WAITING);
    }
    assert_eq!(pairer.needed_eye(), Some(Eye::Right));
    assert_eq!(pairer.unpaired(Eye::Left), 1000 - MAX_WAITING as u64);
    // It comes back and pairs at once.
    pairer.push(Eye::Right, frame(0, Some(Duration::from_secs(990) / 30)));
    pairer.push(Eye::Right, frame(1, Some(Duration::from_secs(991) / 30)));
    pairer.finish(Eye::Right);
    assert_eq!(std::iter::from_fn(|| pairer.pop()).count(), 2);
    assert!(pairer.is_hopeless(Eye::Left));
    pairer.skip(Eye::Left, 5);
    pairer.finish(Eye::Left);
    assert!(pairer.pop().is_none());
    assert_eq!(pairer.pairs() + pairer.unpaired(Eye::Left), pairer.left.frames);
}

#[test]
fn a_pair_within_half_a_period_does_not_wait_for_the_next_frame() {
    let period = Some(Duration::from_millis(50));
    let pairing = Pairing { left_period: period, right_period: period, ..Pairing::default() };
    let mut pairer = Pairer::new(pairing);
    for index in 0..2 {
        let time = Some(Duration::from_millis(50 * index));
        pairer.push(Eye::Left, frame(index, time));
        pairer.push(Eye::Right, frame(index, time.map(|t| t + Duration::from_millis(20))));
    }
    assert_eq!(std::iter::from_fn(|| pairer.pop()).count(), 2);
    assert_eq!(pairer.tolerance(), Some(Duration::from_micros(23_437) + Duration::from_nanos(500)));
}

/// A stream: mostly forward steps of milliseconds, some frames without a time, any start.
fn stream() -> impl Strategy<Value = Vec<Option<Duration>>> {
    let step = prop_oneof![8 => 10i64..60, 1 => 0i64..400, 1 => -100i64..1];
    let known = prop_oneof![9 => Just(true), 1 => Just(false)];
    (0i64..500, prop::collection::vec((step, known), 0..60)).prop_map(|(start, steps)| {
        let mut now = start;
        let times = steps.into_iter().map(|(step, known)| {
            now = (now + step).max(0);
            known.then(|| Duration::from_millis(now as u64))
        });
        times.collect()
    })
}

proptest! {
    #[test]
    fn pairs_are_in_order_near_and_complete(
        left in stream(),
        right in stream(),
        tolerance in prop::option::of(0u64..120),
        by in prop::sample::select(vec![PairBy::Auto, PairBy::Time, PairBy::Index]),
        period in prop::option::of(20u64..60),
        picks in prop::collection::vec(any::<bool>(), 1..40),
    ) {
        let period = period.map(Duration::from_millis);
        let tolerance = tolerance.map(Duration::from_millis);
        let pairing = Pairing { by, tolerance, left_period: period, right_period: period };
        let (pairs, pairer) = run(pairing, &left, &right);

        prop_assert!(pairs.windows(2).all(|two| two[0].0 < two[1].0 && two[0].1 < two[1].1));
        let [paired, alone_left, alone_right] = counts(&pairer);
        prop_assert_eq!(paired, pairs.len() as u64);
        prop_assert_eq!(paired + alone_left, left.len() as u64);
        prop_assert_eq!(paired + alone_right, right.len() as u64);
        prop_assert_eq!(pairer.left.frames, left.len() as u64);

        for &(l, r) in &pairs {
            let (l, r) = (usize::from(l), usize::from(r));
            let Some(tolerance) = pairer.tolerance() else {
                prop_assert_eq!(l, r);
                continue;
            };
            let (lt, rt) = (left[l].unwrap(), right[r].unwrap());
            let skew = lt.abs_diff(rt);
            prop_assert!(skew <= tolerance);
            // Beyond half a period the next frame of the earlier view is not nearer.
            let Some(Rule::Time { sure, .. }) = pairer.rule else { unreachable!() };
            let (earlier, times, at, other) =
                if lt <= rt { (lt, &left, l, rt) } else { (rt, &right, r, lt) };
            let next = times[at + 1..].iter().flatten().find(|&&time| time > earlier);
            if let (true, Some(next)) = (skew > sure, next) {
                prop_assert!(next.abs_diff(other) >= skew);
            }
        }

        // Whichever order the views deliver in, the pairs are the same.
        let mut picks = picks.into_iter().cycle();
        let mut again = Pairer::new(pairing);
        let any_order = |_: &Pairer| picks.next().map(|l| if l { Eye::Left } else { Eye::Right });
        let (other, most) = feed(&mut again, &left, &right, any_order);
        prop_assert!(most <= MAX_WAITING);
        let other: Vec<_> =
            other.iter().map(|p| (p.left.pixels()[0], p.right.pixels()[0])).collect();
        prop_assert_eq!(other, pairs);
        prop_assert_eq!(counts(&again), counts(&pairer));
    }

    #[test]
    fn the_same_times_twice_leave_nothing_alone(
        steps in prop::collection::vec(1u64..200, 0..60),
        tolerance in prop::option::of(0u64..300),
    ) {
        let mut now = 0;
        let times: Vec<_> = steps.iter().map(|step| {
            now += step;
            Some(Duration::from_millis(now))
        }).collect();
        let tolerance = tolerance.map(Duration::from_millis);
        let (pairs, _) = run(Pairing { tolerance, ..Pairing::default() }, &times, &times);
        prop_assert_eq!(pairs, (0..times.len() as u8).map(|i| (i, i)).collect::<Vec<_>>());
    }
}
