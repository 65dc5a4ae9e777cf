use std::collections::BTreeSet;
use std::time::Instant;

use proptest::prelude::*;

use super::side::LOOKAHEAD;
use super::*;
use stereod_core::frame::Image;

fn frame(index: u64, timestamp: Option<Duration>) -> EyeFrame {
    let image = Image::from_vec(1, 1, vec![index as u8]);
    EyeFrame { image, timestamp, index, arrived: Instant::now() }
}

/// Milliseconds; negative numbers mean "no time".
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
        most = most.max(pairer.sides[0].waiting.len()).max(pairer.sides[1].waiting.len());
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
fn of_twenty_and_thirty_a_second_each_slow_frame_has_its_nearest() {
    // Left at 0, 50, 100 ms; right at 0, 33.3, 66.7, 100 ms: 50 ms is midway between two.
    let (left, right) = (steady(20, 20, Duration::ZERO), steady(30, 30, Duration::ZERO));
    let (pairs, pairer) = run(Pairing::default(), &left, &right);
    let partner = |i: u8| if i.is_multiple_of(2) { 3 * i / 2 } else { 3 * (i - 1) / 2 + 1 };
    let near = |&(l, r): &(u8, u8)| r == partner(l) || l % 2 == 1 && r == partner(l) + 1;
    assert!(pairs.iter().all(near), "{pairs:?}");
    assert_eq!(counts(&pairer), [20, 0, 10]);
    // A caller that wants less says how far apart is too far.
    let close = Pairing { tolerance: Some(Duration::from_millis(16)), ..Pairing::default() };
    let (pairs, pairer) = run(close, &left, &right);
    assert_eq!(pairs, (0..10).map(|i| (2 * i, 3 * i)).collect::<Vec<_>>());
    assert_eq!(counts(&pairer), [10, 10, 20]);
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
    let skews: Vec<i64> = pairs.iter().map(|pair| pair.skew_ns.unwrap() / 1_000_000).collect();
    assert_eq!(skews, [3, -3, 12, 0, -10]);
    assert_eq!(pairs[1].timestamp, Duration::from_millis(50));
    assert_eq!(pairs.iter().map(|pair| pair.sequence).collect::<Vec<_>>(), [0, 1, 2, 3, 4]);
}

#[test]
fn without_capture_times_no_skew_is_stated() {
    let by_arrival = Pairing { by_arrival: true, ..Pairing::default() };
    let by_number = Pairing { by: PairBy::Index, ..Pairing::default() };
    for pairing in [by_arrival, by_number] {
        let mut pairer = Pairer::new(pairing);
        let [left, right] = [0, 3].map(|ms| steady(20, 5, Duration::from_millis(ms)));
        let (pairs, _) = feed(&mut pairer, &left, &right, |pairer| pairer.needed_eye());
        assert_eq!(pairs.len(), 5);
        assert!(pairs.iter().all(|pair| pair.skew_ns.is_none()), "{pairing:?}");
    }
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

/// As [`run`], for views with frames that may wait for a jump of the other view.
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
        assert!(pairer.sides[0].waiting.len() <= MAX_WAITING);
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
    assert_eq!(pairer.pairs() + pairer.unpaired(Eye::Left), pairer.sides[0].frames);
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
    // Nor does any other, once the phase is known.
    for index in 2..40 {
        let time = Some(Duration::from_millis(50 * index));
        pairer.push(Eye::Left, frame(index, time));
        let apart = Duration::from_micros(20_000 + 250 * index);
        pairer.push(Eye::Right, frame(index, time.map(|time| time + apart)));
        let pair = pairer.pop().expect("a pair at once");
        assert_eq!(pair.skew_ns, Some(apart.as_nanos() as i64));
    }
}

/// A camera: frames at an even beat with jitter and losses.
#[derive(Debug)]
struct Camera {
    /// Start, in periods.
    phase: f64,
    /// Deviation of the period in millionths.
    ppm: f64,
    /// Largest deviation of a frame from the beat, in periods.
    jitter: f64,
    lost: Vec<u64>,
    seed: u64,
}

impl Camera {
    /// Numbers and times of its frames.
    fn frames(&self, count: u64, period: f64) -> Vec<(u64, Duration)> {
        let mut random = self.seed | 1;
        let frame = |number: u64| {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let deviation = ((random >> 33) as f64 / (1u64 << 30) as f64 - 1.0) * self.jitter;
            let beat = number as f64 * (1.0 + self.ppm * 1e-6) + self.phase;
            (number, Duration::from_secs_f64((beat + deviation + 5.0) * period))
        };
        (0..count).map(frame).filter(|(number, _)| !self.lost.contains(number)).collect()
    }
}

/// Pairs frames in the order of their times, as live streams do. Returns the numbers of the pairs.
fn pair_cameras(
    pairing: Pairing,
    left: &[(u64, Duration)],
    right: &[(u64, Duration)],
) -> Vec<(u64, u64)> {
    let mut pairer = Pairer::new(pairing);
    let mut all: Vec<_> = left.iter().map(|frame| (frame, Eye::Left)).collect();
    all.extend(right.iter().map(|frame| (frame, Eye::Right)));
    all.sort_by_key(|((_, time), _)| *time);
    let (mut pairs, mut numbers) = (Vec::new(), std::collections::HashMap::new());
    for ((number, time), eye) in all {
        numbers.insert((eye.index(), *time), *number);
        pairer.push(eye, frame(*number, Some(*time)));
        pairs.extend(std::iter::from_fn(|| pairer.pop()));
    }
    Eye::BOTH.into_iter().for_each(|eye| pairer.finish(eye));
    pairs.extend(std::iter::from_fn(|| pairer.pop()));
    assert_eq!(pairer.pairs() + pairer.unpaired(Eye::Left), left.len() as u64);
    assert_eq!(pairer.pairs() + pairer.unpaired(Eye::Right), right.len() as u64);
    let number = |pair: &StereoPair| {
        let skew_ns = pair.skew_ns.unwrap();
        let right = Duration::from_nanos((pair.timestamp.as_nanos() as i64 + skew_ns) as u64);
        (numbers[&(0, pair.timestamp)], numbers[&(1, right)])
    };
    pairs.iter().map(number).collect()
}

fn of_rate(rate: f64) -> Pairing {
    let period = Some(Duration::from_secs_f64(1.0 / rate));
    Pairing { left_period: period, right_period: period, is_live: true, ..Pairing::default() }
}

#[test]
fn cameras_pair_at_the_full_rate_at_every_phase() {
    const FRAMES: u64 = 400;
    for percent in 0..=200 {
        for jitter in [0.0, 0.02, 0.1] {
            let camera = |phase, seed| Camera { phase, ppm: 0.0, jitter, lost: vec![], seed };
            let (left, right) = (camera(0.0, 3), camera(f64::from(percent) / 100.0 - 1.0, 77));
            let [left, right] = [left, right].map(|camera| camera.frames(FRAMES, 1.0 / 120.0));
            let pairs = pair_cameras(of_rate(120.0), &left, &right);
            let least = FRAMES as usize - if jitter < 0.1 { 1 } else { 2 };
            assert!(pairs.len() >= least, "{} pairs at {percent} %, jitter {jitter}", pairs.len());
            let beyond = |&&(l, r): &&(u64, u64)| {
                (r as f64 - l as f64 + f64::from(percent) / 100.0 - 1.0).abs() > 0.55
            };
            let far = pairs.iter().filter(beyond).count();
            assert!(far <= 8, "{far} pairs are not the nearest at {percent} %, jitter {jitter}");
        }
    }
}

#[test]
fn a_burst_at_the_start_is_not_taken_for_the_rate() {
    // A stream over a network whose first frames waited while the program was busy.
    let right = steady(40, 200, Duration::from_millis(12));
    let burst = (0..LOOKAHEAD as u64).map(|i| Some(Duration::from_millis(190 + i)));
    let left = burst.chain(steady(40, 192, Duration::from_millis(200))).collect::<Vec<_>>();
    for (left, right) in [(&left, &right), (&right, &left)] {
        let pairing = Pairing { is_live: true, by_arrival: true, ..Pairing::default() };
        let mut pairer = Pairer::new(pairing);
        let (pairs, _) = feed(&mut pairer, left, right, |pairer| pairer.needed_eye());
        assert!(pairs.len() > 170, "{} pairs", pairs.len());
    }
}

#[test]
fn cameras_that_slow_down_in_the_dark_still_pair() {
    // 30 a second are stated, 15 come, half a period of theirs apart.
    for phase in [0.4, 0.5, 0.6] {
        let camera = |phase| Camera { phase, ppm: 0.0, jitter: 0.01, lost: vec![], seed: 5 };
        let [left, right] = [camera(0.0), camera(phase)].map(|it| it.frames(300, 1.0 / 15.0));
        let pairs = pair_cameras(of_rate(30.0), &left, &right);
        assert!(pairs.len() > 280, "{} pairs at {phase}", pairs.len());
    }
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
    fn drift_jitter_and_loss_cost_no_more_than_they_must(
        phase in -0.99f64..0.99,
        ppm in -3000f64..3000.0,
        jitter in 0f64..0.1,
        lost in prop::array::uniform2(prop::collection::btree_set(0u64..300, 0..30)),
        seeds in any::<[u64; 2]>(),
        is_live in any::<bool>(),
    ) {
        const FRAMES: u64 = 300;
        let [lost_left, lost_right] = lost.map(Vec::from_iter);
        let lost = lost_left.len() + lost_right.len();
        let left = Camera { phase: 0.0, ppm: 0.0, jitter, lost: lost_left, seed: seeds[0] };
        let right = Camera { phase, ppm, jitter, lost: lost_right, seed: seeds[1] };
        let [left, right] = [left, right].map(|camera| camera.frames(FRAMES, 0.02));
        let pairs = pair_cameras(Pairing { is_live, ..of_rate(50.0) }, &left, &right);
        // 3000 ppm are 0.9 periods.
        prop_assert!(pairs.len() + lost + 4 >= FRAMES as usize, "{} pairs, {lost} lost", pairs.len());
        // Changes of the neighbour that is taken: one at the start, one for the drift.
        let shifts = pairs.iter().map(|&(l, r)| r as i64 - l as i64);
        let changes = shifts.clone().zip(shifts.skip(1)).filter(|(a, b)| a != b).count();
        prop_assert!(changes <= 3, "{changes} changes");
    }

    /// The frames of a video that are lost cost their partners, and move no other pair.
    #[test]
    fn a_lost_frame_moves_no_pair(
        phase in -0.35f64..0.35,
        jitter in 0f64..0.06,
        lost in prop::array::uniform2(prop::collection::btree_set(0u64..200, 0..60)),
        seed in any::<u64>(),
        is_stated in any::<bool>(),
    ) {
        // Period and phase are measured from the first frames.
        let is_later = |number: &u64| *number >= LOOKAHEAD as u64;
        let lost = lost.map(|all| all.into_iter().filter(is_later).collect::<BTreeSet<_>>());
        let [lost_left, lost_right] = lost.clone().map(Vec::from_iter);
        let left = Camera { phase: 0.0, ppm: 0.0, jitter, lost: lost_left, seed };
        let right = Camera { phase, ppm: 0.0, jitter, lost: lost_right, seed: seed ^ 0x55 };
        let [left, right] = [left, right].map(|camera| camera.frames(200, 0.04));
        let pairing = if is_stated { of_rate(25.0) } else { Pairing::default() };
        let pairs = pair_cameras(Pairing { is_live: false, ..pairing }, &left, &right);
        let [a, b] = &lost;
        let whole = (0..200).filter(|number| !a.contains(number) && !b.contains(number));
        prop_assert_eq!(pairs, whole.map(|number| (number, number)).collect::<Vec<_>>());
    }

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
        let (left_period, right_period) = (period, period);
        let pairing = Pairing { by, tolerance, left_period, right_period, ..Pairing::default() };
        let (pairs, pairer) = run(pairing, &left, &right);

        prop_assert!(pairs.windows(2).all(|two| two[0].0 < two[1].0 && two[0].1 < two[1].1));
        let [paired, alone_left, alone_right] = counts(&pairer);
        prop_assert_eq!(paired, pairs.len() as u64);
        prop_assert_eq!(paired + alone_left, left.len() as u64);
        prop_assert_eq!(paired + alone_right, right.len() as u64);
        prop_assert_eq!(pairer.sides[0].frames, left.len() as u64);

        for &(l, r) in &pairs {
            let (l, r) = (usize::from(l), usize::from(r));
            let Some(tolerance) = pairer.tolerance() else {
                prop_assert_eq!(l, r);
                continue;
            };
            let (lt, rt) = (left[l].unwrap(), right[r].unwrap());
            let skew = lt.abs_diff(rt);
            // Beyond half a period the next frame of the earlier view is not nearer.
            let Some(Rule::Time { sure, period, .. }) = pairer.rule else { unreachable!() };
            if let Some(period) = period {
                prop_assert!(skew <= period * 9 / 8);
                continue;
            }
            prop_assert!(skew <= tolerance);
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
