//! Incompletely matching views, and stops in the middle.

use std::time::{Duration, Instant};

use stereod::Eye;
use stereod_io::source::gst::Reconnect;
use stereod_io::source::pairing::PairBy;

use super::*;
use crate::common::numbered_videos::steady;

fn pair_of(
    folder: &Path,
    left: &[(u8, Duration)],
    right: &[(u8, Duration)],
    coding: &str,
) -> SourceSpec {
    two(
        numbered_videos::eye(folder, "left", Eye::Left, left, coding),
        numbered_videos::eye(folder, "right", Eye::Right, right, coding),
    )
}

#[test]
fn the_longer_eye_is_counted_to_its_end() {
    let folder = tempfile::tempdir().unwrap();
    let (short, long) = (steady(10, 20, Duration::ZERO), steady(200, 20, Duration::ZERO));
    for coding in [numbered_videos::H264_MP4, numbered_videos::MJPEG_AVI] {
        let spec = pair_of(folder.path(), &short, &long, coding);
        let mut source = opened(&spec);
        assert_eq!(source.info().pairs, Some(10));
        let played = play(&mut *source);
        played.result.unwrap();
        assert_eq!(played.pairs, same(0..10));
        assert_eq!(played.counts, counts(10, 200, 10));
    }
    let spec = pair_of(folder.path(), &long, &short, numbered_videos::MJPEG_MKV);
    assert_eq!(played(&spec).counts, counts(200, 10, 10));
}

#[test]
fn frame_rates_may_differ() {
    let folder = tempfile::tempdir().unwrap();
    let (left, right) = (steady(20, 20, Duration::ZERO), steady(30, 30, Duration::ZERO));
    for coding in
        [numbered_videos::H264_MP4, numbered_videos::MJPEG_MKV, numbered_videos::MJPEG_AVI]
    {
        let spec = pair_of(folder.path(), &left, &right, coding);
        let mut source = opened(&spec);
        assert_eq!(source.info().rate, Some(20.0));
        let played = play(&mut *source);
        // Every second left frame is midway between two right ones.
        for (i, &(left, right)) in (0..).zip(&played.pairs) {
            let apart = (i32::from(right) * 2 - i32::from(left) * 3).abs();
            assert!(left == i && apart <= i32::from(i % 2), "{coding}: {:?}", played.pairs);
        }
        assert_eq!(played.counts, counts(20, 30, 20));
        let strict = GstOptions { tolerance: Some(Duration::from_millis(15)), ..options() };
        let played = play(&mut *open(&spec, &strict).unwrap());
        assert_eq!(played.pairs, (0..10).map(|i| (2 * i, 3 * i)).collect::<Vec<_>>(), "{coding}");
    }
}

#[test]
fn a_late_start_is_found_in_the_times() {
    let folder = tempfile::tempdir().unwrap();
    let left = steady(20, 20, Duration::ZERO);
    let right = steady(20, 20, Duration::from_millis(200));
    for coding in [numbered_videos::H264_MKV, "vp8enc deadline=1 ! webmmux"] {
        let played = played(&pair_of(folder.path(), &left, &right, coding));
        assert_eq!(played.pairs, (0..16).map(|i| (i + 4, i)).collect::<Vec<_>>(), "{coding}");
        assert_eq!(played.counts, counts(20, 20, 16));
    }
}

#[test]
fn gaps_and_jitter_are_paired_by_time() {
    let folder = tempfile::tempdir().unwrap();
    let left = steady(20, 20, Duration::ZERO);
    let mut right = left.clone();
    right.drain(7..12);
    for (number, time) in &mut right {
        *time += Duration::from_millis(u64::from(*number % 5) * 4);
    }
    let spec = pair_of(folder.path(), &left, &right, numbered_videos::MJPEG_MKV);
    let played = played(&spec);
    assert_eq!(played.pairs, same((0..7).chain(12..20)));
    assert_eq!(played.counts, counts(20, 15, 15));
    assert_eq!(played.skews[3], 12_000_000);
    // A smaller tolerance leaves the late ones unpaired.
    let strict = GstOptions { tolerance: Some(Duration::from_millis(6)), ..options() };
    let mut source = open(&spec, &strict).unwrap();
    let played = play(&mut *source);
    assert!(played.pairs.iter().all(|&(l, r)| l == r && r % 5 <= 1), "{:?}", played.pairs);
    assert_eq!(played.counts, counts(20, 15, 6));
}

#[test]
fn streams_without_times_are_paired_by_number() {
    let folder = tempfile::tempdir().unwrap();
    // A bare sequence of JPEG frames has no times.
    let (left, right) = (steady(12, 20, Duration::ZERO), steady(9, 20, Duration::ZERO));
    let played = played(&pair_of(folder.path(), &left, &right, "jpegenc"));
    assert_eq!(played.pairs, same(0..9));
    assert_eq!(played.counts, counts(12, 9, 9));
    assert!(played.times.windows(2).all(|two| two[0] < two[1]));
    // By number as well if that is requested, whatever the times.
    let late = steady(12, 20, Duration::from_secs(100));
    let spec = pair_of(folder.path(), &left, &late, numbered_videos::MJPEG_MKV);
    let by_index = GstOptions { pair_by: PairBy::Index, ..options() };
    assert_eq!(play(&mut *open(&spec, &by_index).unwrap()).pairs, same(0..12));
    assert_eq!(play(&mut *opened(&spec)).counts, counts(12, 12, 0));
}

#[test]
fn frames_that_share_a_time_are_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let left = steady(12, 20, Duration::ZERO);
    let mut right = left.clone();
    // A demuxer's reading of an AVI without an index: which of the three is at 250 ms?
    right[3].1 = right[5].1;
    right[4].1 = right[5].1;
    let played = played(&pair_of(folder.path(), &left, &right, numbered_videos::MJPEG_MKV));
    assert_eq!(played.pairs, same((0..3).chain(6..12)));
    assert_eq!(played.counts, counts(12, 12, 9));
}

fn endless(live: bool) -> SourceSpec {
    let one = format!(
        "videotestsrc is-live={live} pattern=black ! video/x-raw,width=64,height=48,framerate=60/1"
    );
    SourceSpec::two(one.clone(), one)
}

#[test]
fn stop_ends_a_run_at_once() {
    for live in [false, true] {
        let mut source = open(&endless(live), &endlessly_patient()).unwrap();
        assert_eq!(source.info().live, live);
        let (stop, mut seen, mut late) = (Switch::default(), 0, 0);
        let (fifth, reached) = channel();
        std::thread::scope(|scope| {
            let (stop, fifth) = (&stop, fifth);
            scope.spawn(move || {
                // An error: the run has failed.
                if reached.recv().is_ok() {
                    stop.set(true);
                }
            });
            source
                .run(stop, &mut |pair, _| {
                    assert_eq!(pair.sequence, seen);
                    seen += 1;
                    late += u32::from(stop.is_set());
                    assert!(late < 5, "it goes on");
                    if seen == 5 {
                        fifth.send(()).unwrap();
                    }
                    std::thread::sleep(Duration::from_millis(30));
                    ControlFlow::Continue(())
                })
                .unwrap();
        });
        assert!(seen >= 5, "{seen} pairs");
        let counts = source.counts();
        assert_eq!(counts.pairs, seen);
        assert_eq!(counts.left, counts.pairs + counts.unpaired_left);
        assert_eq!(counts.right, counts.pairs + counts.unpaired_right);
        let started = Instant::now();
        drop(source);
        assert!(started.elapsed() < LIMIT);
    }
}

#[test]
fn a_break_ends_a_run_and_a_second_run_gives_nothing() {
    let mut source = opened(&endless(false));
    let mut seen = 0;
    let mut run = |source: &mut dyn Source| {
        source.run(&Switch::default(), &mut |_, _| {
            seen += 1;
            if seen == 7 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })
    };
    run(&mut *source).unwrap();
    run(&mut *source).unwrap();
    assert_eq!(seen, 7);
    assert_eq!(source.counts(), counts(7, 7, 7));
}

#[test]
fn a_source_that_is_never_run_closes_at_once() {
    for _ in 0..5 {
        let source = open(&endless(false), &endlessly_patient()).unwrap();
        let started = Instant::now();
        drop(source);
        assert!(started.elapsed() < LIMIT);
    }
}

#[test]
fn live_eyes_share_a_clock() {
    let begun = Instant::now();
    let mut source = opened(&endless(true));
    let (mut skews, mut times) = (Vec::new(), Vec::new());
    source
        .run(&Switch::default(), &mut |pair, _| {
            skews.push(pair.skew_ns.unwrap().unsigned_abs());
            times.push(pair.timestamp);
            if skews.len() == 60 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })
        .unwrap();
    // The eyes begin at times of their own, so they may be half a frame apart, and a little more before the other
    // neighbour is taken.
    let half = 1_000_000_000 / 60 / 2;
    assert!(skews.iter().all(|&skew| skew <= half + half / 4), "{skews:?}");
    // A busy machine loses some frames, so that 60 pairs take longer, but not longer than the test.
    let seconds = (times[59] - times[0]).as_secs_f64();
    assert!((0.9..=begun.elapsed().as_secs_f64() + 0.1).contains(&seconds), "{seconds}");
}

#[test]
fn a_live_source_that_is_not_reopened_ends_with_its_first_eye() {
    let camera = |frames: i32| {
        format!(
            "videotestsrc is-live=true num-buffers={frames} ! \
             video/x-raw,width=64,height=48,framerate=60/1"
        )
    };
    let spec = SourceSpec::two(camera(-1), camera(20));
    let once = GstOptions { reconnect: Reconnect::Off, ..options() };
    let mut source = open(&spec, &once).unwrap();
    let mut pairs = 0;
    run_to_its_end(&mut *source, &mut |_, _| {
        pairs += 1;
        ControlFlow::Continue(())
    });
    // Those from before the run are left out.
    assert!(pairs <= 20, "{pairs}");
}

#[test]
fn live_pictures_that_waited_for_the_run_to_begin_are_left_out() {
    let mut source = opened(&endless(true));
    // As long as the start of an engine may take.
    std::thread::sleep(Duration::from_millis(700));
    let began = Instant::now();
    let mut first = None;
    source
        .run(&Switch::default(), &mut |pair, _| {
            first = Some((pair.arrived, pair.sequence));
            ControlFlow::Break(())
        })
        .unwrap();
    let (captured, sequence) = first.expect("a pair");
    assert_eq!(sequence, 0);
    let early = began.saturating_duration_since(captured);
    assert!(early <= Duration::from_millis(60), "captured {early:?} before the run");
}
