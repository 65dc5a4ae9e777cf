//! Real recordings, where they are at hand.

use std::time::Instant;

use super::*;
use crate::common::data::data;

/// Plays a source; the pairs are real, so only their number and times are checked.
fn count(spec: &SourceSpec) -> (u64, SourceCounts, Box<dyn Source>) {
    let mut source = opened(spec);
    let started = Instant::now();
    let (mut pairs, mut last) = (0, None);
    source
        .run(&Switch::default(), &mut |pair, _| {
            assert_eq!(pair.skew_ns, Some(0));
            assert!(last.is_none_or(|last| last < pair.timestamp));
            last = Some(pair.timestamp);
            pairs += 1;
            ControlFlow::Continue(())
        })
        .unwrap();
    let rate = pairs as f64 / started.elapsed().as_secs_f64();
    eprintln!("{}: {pairs} pairs, {rate:.0} a second", source.info().description);
    let counts = source.counts();
    (pairs, counts, source)
}

#[test]
fn euroc_in_two_files_side_by_side_and_as_pictures() {
    let Some(folder) = data("euroc_v1_01/rectified") else { return };
    let (pairs, seen, source) = count(&two(folder.join("left.mp4"), folder.join("right.mp4")));
    assert_eq!((pairs, seen), (95, counts(95, 95, 95)));
    let info = source.info();
    assert_eq!((info.width, info.height), (752, 480));
    assert_eq!((info.rate, info.pairs), (Some(20.0), Some(95)));

    let both = folder.join("side_by_side.mp4").display().to_string();
    let (pairs, seen, source) = count(&SourceSpec::side_by_side(both));
    assert_eq!((pairs, seen), (95, counts(95, 95, 95)));
    assert_eq!((source.info().width, source.info().height), (752, 480));

    // Every sixteenth frame, as lossless images.
    let png = folder.join("png");
    let spec = two(png.join("cam0/%06d.png"), png.join("cam1/%06d.png"));
    let (pairs, seen, _) = count(&spec);
    assert_eq!((pairs, seen), (6, counts(6, 6, 6)));
}

#[test]
fn decoded_video_is_the_recorded_picture() {
    let Some(folder) = data("euroc_v1_01/rectified") else { return };
    let frames = |spec: &SourceSpec| {
        let mut all = Vec::new();
        opened(spec)
            .run(&Switch::default(), &mut |pair, _| {
                all.push((pair.left.pixels().to_vec(), pair.right.pixels().to_vec()));
                ControlFlow::Continue(())
            })
            .unwrap();
        all
    };
    let video = frames(&two(folder.join("left.mp4"), folder.join("right.mp4")));
    let halves =
        frames(&SourceSpec::side_by_side(folder.join("side_by_side.mp4").display().to_string()));
    let png = folder.join("png");
    let pictures = frames(&two(png.join("cam0/%06d.png"), png.join("cam1/%06d.png")));
    let difference = |a: &[u8], b: &[u8]| {
        let squares = a.iter().zip(b).map(|(a, b)| f64::from(a.abs_diff(*b)).powi(2));
        squares.sum::<f64>() / a.len() as f64
    };
    // 40 dB correspond to a mean square error of 6.5: the luma plane is the grey value without
    // rescaling, and frame k is frame 16 k.
    for (k, (left, right)) in pictures.iter().enumerate() {
        for other in [&video[16 * k], &halves[16 * k]] {
            assert!(difference(left, &other.0) < 6.5, "left {k}: {}", difference(left, &other.0));
            assert!(difference(right, &other.1) < 6.5, "right {k}");
        }
        // The neighbours differ more: no frame is off by one.
        assert!(difference(left, &video[16 * k].0) < difference(left, &video[16 * k + 1].0));
    }
}

#[test]
fn oakd_with_and_without_sound() {
    let Some(folder) = data("oakd_patio") else { return };
    let rectified = folder.join("rectified");
    let (pairs, seen, source) =
        count(&two(rectified.join("left.mp4"), rectified.join("right.mp4")));
    assert_eq!((pairs, seen), (300, counts(300, 300, 300)));
    assert_eq!((source.info().width, source.info().height), (1280, 800));
    assert_eq!(source.info().pairs, Some(300));
    // These carry an AAC track.
    let (pairs, seen, _) = count(&two(folder.join("left.mp4"), folder.join("right.mp4")));
    assert_eq!((pairs, seen), (627, counts(627, 627, 627)));
}
