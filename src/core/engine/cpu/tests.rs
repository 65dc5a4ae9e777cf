//! The engine against the definition, for any parameters.

use proptest::prelude::*;

use super::*;
use crate::frame::DisparityRange;
use std::time::Duration;

use crate::matching::{
    BlockMeasure, BlockWindow, CensusWindow, Cost, Evidence, Fill, FillRule, Guide, Median, Paths,
    Prior, Smoothing, Spatial, Speckle, Steady, Temporal, TemporalMode, Window, match_pair,
};

fn params() -> impl Strategy<Value = Params> {
    let measure = prop_oneof![
        Just(BlockMeasure::Sad),
        Just(BlockMeasure::Ssd),
        Just(BlockMeasure::ZeroMeanSad),
        Just(BlockMeasure::ZeroMeanSsd),
    ];
    let cost = prop_oneof![
        Just(Cost::Ad { truncation: 20, window: 1 }),
        Just(Cost::Ad { truncation: 20, window: 5 }),
        Just(Cost::MutualInformation { truncation: 60 }),
        Just(Cost::Census { window: CensusWindow::Plain { width: 5, height: 5 } }),
        (measure, prop_oneof![Just((5, 3)), Just((11, 11))]).prop_map(|(measure, side)| {
            let window = BlockWindow { width: side.0, height: side.1 };
            Cost::Block { measure, window, truncation: 60 }
        }),
    ];
    let paths = prop_oneof![
        2 => Just(Paths::None),
        1 => Just(Paths::Four),
        1 => Just(Paths::Five),
        1 => Just(Paths::Eight),
        1 => Just(Paths::Sixteen),
    ];
    let median = prop_oneof![Just(Median::Off), Just(Median::Three), Just(Median::Five)];
    let speckle = prop::option::of(Just(Speckle { size: 50, range_16: 16 }));
    let rule = prop_oneof![Just(FillRule::Row), Just(FillRule::Rays), Just(FillRule::Gaps)];
    let fill = prop::option::of(rule.prop_map(|rule| Fill { rule, reach: 9 }));
    let p2 = prop_oneof![Just(50u8), Just(150)];
    let window = prop::option::of(Just(Window { side: 5, by_texture: true }));
    let prior = prop::option::of((1u8..=3).prop_map(|levels| Prior { levels, strength: 8 }));
    let guide = prop_oneof![Just(Guide::Picture), Just(Guide::Smoothed)];
    let supports = (window, prior, guide);
    let confidence = prop::option::of(Just(20));
    let steady = prop::option::of(Just(Steady { strength: 5 }));
    let mode = prop_oneof![Just(TemporalMode::Denoise), Just(TemporalMode::Whiten)];
    let temporal =
        (mode, 2u8..=64).prop_map(|(mode, history)| Temporal { mode, history, degree: 2 });
    let in_time = (steady, prop::option::of(temporal));
    let evidence = prop::option::of(any::<bool>().prop_map(|strict| Evidence { strict }));
    let spatial = prop::option::of(Just(Spatial { reach: 9 }));
    let filters = (confidence, median, speckle, (evidence, spatial), fill, in_time);
    (cost, supports, paths, filters, p2, 1usize..200).prop_map(
        |(cost, (window, prior, p2_guide), paths, filters, p2, count)| {
            let (confidence, median, speckle, surfaces, fill, (steady, temporal)) = filters;
            let (evidence, spatial) = surfaces;
            let local = paths == Paths::None;
            let cost = match cost {
                Cost::Ad { truncation, .. } if local => Cost::Ad { truncation, window: 1 },
                cost => cost,
            };
            let supports = !local && !matches!(cost, Cost::Block { .. });
            let (window, prior) = if supports { (window, prior) } else { (None, None) };
            Params {
                window,
                prior,
                p2_guide,
                paths,
                sum_window: BlockWindow { width: 3, height: 7 },
                confidence,
                left_right: Some(1),
                median,
                speckle,
                evidence,
                spatial,
                steady,
                temporal,
                fill,
                ..Params::bare(DisparityRange { min: -3, count }, cost, (5, p2))
            }
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_estimate_is_what_is_taken(
        params in params(),
        (width, height) in (1usize..300, 1usize..80),
        threads in 1usize..4,
        costs_anew in any::<bool>(),
    ) {
        for simd in SimdChoice::available() {
            let threads = Some(threads);
            let options = CpuOptions { threads, simd, costs_anew, ..CpuOptions::default() };
            let taken = Arena::new();
            let crew = options.simd_and_threads().unwrap();
            Parts::new(&taken, &params, (width, height), crew, options).unwrap();
            let estimate = CpuEngine::estimate(&params, width, height, options).unwrap();
            prop_assert_eq!(estimate, Estimate { host: taken.bytes(), device: 0 });
        }
    }

    #[test]
    fn no_size_is_too_large_to_be_estimated(
        params in params(),
        (width, height) in (any::<usize>(), any::<usize>()),
        (across, down) in (1u32..64, 1u32..64),
    ) {
        let simd = SimdChoice::Portable;
        let options = CpuOptions { threads: Some(1024), simd, ..CpuOptions::default() };
        let _ = CpuEngine::estimate(&params, width >> across, height >> down, options);
    }
}

#[test]
fn a_stream_of_another_size_goes_on_with_no_state() {
    let cost = Cost::Ad { truncation: 20, window: 1 };
    let smoothing = Some(Smoothing { weight_256: 10, guard_16: 1000 });
    let range = DisparityRange { min: 0, count: 16 };
    let params = Params { smoothing, ..Params::bare(range, cost, (5, 50)) };
    let pair = |(width, height), shift: usize, ms| {
        let eye =
            |shift| Image::from_fn(width, height, |x, y| (((x + shift) * 37) ^ (y * 11)) as u8);
        let timestamp = Duration::from_millis(ms);
        StereoPair { timestamp, ..StereoPair::of_stills(eye(0), eye(shift)) }
    };
    let engine = |(width, height)| {
        let options = CpuOptions { threads: Some(1), ..CpuOptions::default() };
        CpuEngine::new(&params, &PairSpec::rectified(width, height), options).unwrap()
    };
    let (size, other) = ((40, 12), (20, 10));
    let (mut mine, mut others) = (engine(size), engine(other));
    for (engine, size) in [(&mut mine, size), (&mut others, other)] {
        engine.submit(pair(size, 3, 0)).unwrap();
        engine.collect().unwrap().unwrap();
    }
    mine.resume(others.take_history().unwrap()).unwrap();
    mine.submit(pair(size, 7, 40)).unwrap();
    let got = mine.collect().unwrap().unwrap().disparity;
    let next = pair(size, 7, 40);
    assert_eq!(got.values(), match_pair(&next.left, &next.right, &params).values());
}

#[test]
fn what_the_budget_does_not_hold_is_refused_with_the_numbers() {
    let mut params = crate::settings::Matching::default().params().unwrap();
    params.range = DisparityRange { min: 0, count: 1024 };
    let simd = SimdChoice::Portable;
    let options = CpuOptions { threads: Some(64), simd, ..CpuOptions::default() };
    // A row of 2^30 pixels: each thread alone needs more than any machine has.
    let error = CpuEngine::new(&params, &PairSpec::rectified(1 << 30, 1), options)
        .err()
        .unwrap()
        .to_string();
    for part in ["matching 1073741824x1 at 1024 disparities needs", "GiB", "memory_mib"] {
        assert!(error.contains(part), "{error}");
    }
    let error = CpuEngine::new(&params, &PairSpec::rectified(1 << 17, 1 << 17), options)
        .err()
        .unwrap()
        .to_string();
    assert!(error.contains("1073741824 in all"), "{error}");
    assert!(CpuEngine::estimate(&params, usize::MAX, 1, options).is_err());
}
