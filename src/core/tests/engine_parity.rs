//! Every engine gives the bytes of the scalar reference. In a process of its own, because it keeps
//! all cores busy while other tests watch the clock.

mod common {
    pub mod parity;
    pub mod streams;
}

use std::sync::Arc;
use std::time::Duration;

use proptest::prelude::*;
use stereod_core::engine::cpu::{CpuEngine, CpuOptions, SimdChoice};
use stereod_core::engine::difference::compare_maps;
use stereod_core::engine::{Engine, PairSpec};
use stereod_core::frame::{Image, Mask};
use stereod_core::matching::match_pair;
use stereod_core::{
    CensusWindow, CombinedWeights, Cost, DisparityRange, Median, P2Mode, Params, Paths, Prior,
    Speckle, Window,
};

use common::parity::{
    self, COMBINED, CONSTANT, Look, NOISY, POOR, cases, compare_rectified, compare_relay,
    compare_relay_of, looks, pair, params, pictures, smoothings, usual, weak_looks, wild_rectifier,
    windowed,
};
use common::streams::{compare_stream, drifting, streams};

/// Compares on CPU engines with these options.
fn compare(
    params: &Params,
    (width, height): (usize, usize),
    options: impl IntoIterator<Item = CpuOptions>,
    looks: &[Look],
) -> Result<(), String> {
    let expected = parity::expected(params, (width, height), looks);
    options.into_iter().try_for_each(|options| {
        let make = |params: &Params, pairs: &PairSpec| -> anyhow::Result<Box<dyn Engine>> {
            Ok(Box::new(CpuEngine::new(params, pairs, options)?))
        };
        let mut engine =
            make(params, &PairSpec::rectified(width, height)).map_err(|e| e.to_string())?;
        parity::compare(&mut *engine, params, (width, height), looks, &expected, &make)
            .map_err(|difference| format!("{difference} {options:?}"))
    })
}

/// One engine for every vector width, with this number of threads.
fn with_threads(threads: usize) -> impl Iterator<Item = CpuOptions> {
    let options = move |simd| CpuOptions { threads: Some(threads), simd, ..CpuOptions::default() };
    SimdChoice::available().into_iter().map(options)
}

proptest! {
    #![proptest_config(cases(150))]

    #[test]
    fn the_cpu_engine_gives_the_bytes_of_the_reference(
        params in params(),
        size in prop_oneof![3 => (1usize..70, 1usize..30), 1 => (1usize..180, 1usize..12)],
        threads in prop_oneof![3 => 1usize..=4, 1 => 5usize..=16],
        looks in proptest::collection::vec(looks(), 1..=3),
        costs_anew in any::<bool>(),
    ) {
        prop_assert!(params.check().is_ok(), "{:?}", params.check());
        let options = with_threads(threads).map(|options| CpuOptions { costs_anew, ..options });
        compare(&params, size, options, &looks).map_err(TestCaseError::fail)?;
    }
}

proptest! {
    #![proptest_config(cases(150))]

    #[test]
    fn range_windows_give_the_bytes_of_the_reference(
        (params, size) in windowed(),
        threads in 1usize..=4,
        looks in proptest::collection::vec(looks(), 1..=2),
        costs_anew in any::<bool>(),
    ) {
        prop_assert!(params.check().is_ok(), "{:?}", params.check());
        let options = with_threads(threads).map(|options| CpuOptions { costs_anew, ..options });
        compare(&params, size, options, &looks).map_err(TestCaseError::fail)?;
    }
}

/// A mask in which about `share` of 256 pixels are unseen, in blobs; `None` sees all.
fn masked(image: Image, seed: u64, share: Option<u8>) -> Image {
    let (width, height) = (image.width(), image.height());
    let seen = |i: usize| {
        let (x, y) = (i % width / 3, i / width / 2);
        let random = (seed ^ (y << 16 | x) as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56;
        share.is_none_or(|share| random >= u64::from(share))
    };
    let mask = Mask::new(width, (0..width * height).map(seen).collect());
    image.with_valid_mask(share.map(|_| Arc::new(mask)))
}

proptest! {
    #![proptest_config(cases(80))]

    #[test]
    fn unseen_pixels_are_never_matched_and_as_in_the_reference(
        params in params(),
        (width, height) in (1usize..70, 1usize..30),
        threads in 1usize..=3,
        look in looks(),
        masks in (any::<u64>(), any::<Option<u8>>(), any::<Option<u8>>()),
    ) {
        let eyes = || {
            let (left, right) = pictures(width, height, look);
            (masked(left, masks.0, masks.1), masked(right, masks.0 + 1, masks.2))
        };
        let (left, right) = eyes();
        let expected = match_pair(&left, &right, &params);
        for (i, &seen) in left.valid_mask().iter().flat_map(|mask| mask.pixels().iter().enumerate()) {
            prop_assert!(seen || expected.values()[i] == stereod_core::INVALID);
        }
        for options in with_threads(threads) {
            let mut engine = CpuEngine::new(&params, &PairSpec::rectified(width, height), options).unwrap();
            let (left, right) = eyes();
            engine.submit(pair(left, right)).unwrap();
            let matched = engine.collect().unwrap().unwrap();
            let outcome = compare_maps(&expected, &matched.disparity);
            prop_assert!(outcome.is_ok(), "{:?} {:?} {:?}", outcome, params, options);
        }
    }

    #[test]
    fn what_filters_remember_goes_from_engine_to_engine(
        params in params(),
        smoothing in smoothings(),
        size in (1usize..70, 1usize..30),
        looks in proptest::collection::vec(looks(), 2..=6),
    ) {
        let params = params.with_smoothing(Some(smoothing));
        let engine = |(threads, simd)| -> Box<dyn Engine> {
            let options = CpuOptions { threads: Some(threads), simd, ..CpuOptions::default() };
            let pairs = PairSpec::rectified(size.0, size.1);
            Box::new(CpuEngine::new(&params, &pairs, options).unwrap())
        };
        let mut engines: Vec<_> = (1..=3).zip(SimdChoice::available()).map(engine).collect();
        let outcome = compare_relay(&mut engines, &params, size, &looks);
        prop_assert!(outcome.is_ok(), "{:?}", outcome);
    }

    #[test]
    fn a_rectifying_engine_gives_the_bytes_of_the_reference(
        params in params(),
        source in (1usize..60, 1usize..30),
        size in (1usize..60, 1usize..25),
        threads in 1usize..=3,
        seed in 0u64..1000,
        looks in proptest::collection::vec(looks(), 1..=2),
    ) {
        let rectifier = Arc::new(wild_rectifier(source, size, seed));
        for options in with_threads(threads) {
            let mut engine = CpuEngine::new(&params, &PairSpec::raw(rectifier.clone()), options).unwrap();
            let outcome = compare_rectified(&mut engine, &params, &rectifier, &looks);
            prop_assert!(outcome.is_ok(), "{:?} {:?}", outcome, options);
        }
    }
}

proptest! {
    #![proptest_config(cases(40))]

    #[test]
    fn what_is_made_of_a_stream_is_that_of_the_reference(
        (params, size, drift, pairs) in streams(),
    ) {
        let engine = |(threads, simd)| -> Box<dyn Engine> {
            let options = CpuOptions { threads: Some(threads), simd, ..CpuOptions::default() };
            Box::new(CpuEngine::new(&params, &PairSpec::rectified(size.0, size.1), options).unwrap())
        };
        let mut engines: Vec<_> = (1..=3).zip(SimdChoice::available()).map(engine).collect();
        let outcome = compare_relay_of(&mut engines, &params, drifting(size, drift, pairs));
        prop_assert!(outcome.is_ok(), "{:?} {:?}", outcome, drift);
        let outcome = compare_stream(&mut *engines[0], &params, drifting(size, drift, pairs));
        prop_assert!(outcome.is_ok(), "{:?} {:?}", outcome, drift);
    }
}

proptest! {
    #![proptest_config(cases(60))]

    /// Images large enough for coarser levels, whose texture is about as strong as their noise.
    #[test]
    fn supported_costs_are_those_of_the_reference(
        params in params(),
        window in prop::option::of((prop_oneof![Just(3u8), Just(5)], any::<bool>())),
        prior in prop::option::of((1u8..=3, 1u8..=32)),
        cost in prop_oneof![
            Just(COMBINED),
            Just(Cost::Ad { truncation: 30, window: 1 }),
            Just(Cost::Ad { truncation: 40, window: 3 }),
            Just(Cost::Census { window: CensusWindow::Symmetric9x7 }),
        ],
        (min, count) in (-10i32..10, 1usize..=70),
        size in (32usize..100, 32usize..75),
        threads in 1usize..=3,
        looks in proptest::collection::vec(weak_looks(), 1..=2),
    ) {
        let params = params.clone()
            .with_range(DisparityRange { min, count })
            .with_cost(cost)
            .with_window(window.map(|(side, by_texture)| Window { side, by_texture }))
            .with_prior(prior.map(|(levels, strength)| Prior { levels, strength }))
            .with_p1(params.p1.min(30))
            .with_p2(params.p2.clamp(30, 120))
            .with_p2_mode(P2Mode::Linear { min: 20, slope_16: 60 })
            .with_paths(if params.is_local() { Paths::Sixteen } else { params.paths });
        compare(&params, size, with_threads(threads), &looks).map_err(TestCaseError::fail)?;
    }
}

/// Compares on every vector width, with one and with several threads.
fn compare_everywhere(params: &Params, size: (usize, usize)) {
    let options = with_threads(1).chain(with_threads(3));
    compare(params, size, options, &[NOISY, CONSTANT, POOR, NOISY])
        .unwrap_or_else(|difference| panic!("{difference}"));
}

#[test]
fn tiny_and_narrow_pictures() {
    for paths in [Paths::None, Paths::Four, Paths::Five, Paths::Eight, Paths::Sixteen] {
        let params = usual().with_paths(paths).with_median(Median::Five);
        for size in [(1, 1), (1, 40), (40, 1), (2, 2), (33, 9), (63, 8), (5, 17)] {
            compare_everywhere(&params, size);
        }
    }
}

#[test]
fn ranges_around_the_vectors_and_beyond_the_width() {
    for count in [1, 2, 3, 15, 16, 17, 31, 33, 63, 64, 65, 127, 128, 129, 257] {
        for min in [-70, -3, 0, 5, 90] {
            let params = usual().with_range(DisparityRange { min, count });
            compare_everywhere(&params, (50, 10));
        }
    }
    let params = usual().with_range(DisparityRange { min: -100, count: 1024 });
    compare_everywhere(&params, (70, 9));
}

#[test]
fn extreme_costs_and_penalties() {
    let cases = [(255, 0, 0), (1, 254, 254), (127, 128, 128), (128, 0, 127), (1, 0, 254)];
    for paths in [Paths::Four, Paths::Five, Paths::Eight] {
        for (truncation, p1, p2) in cases {
            for window in [1, 7] {
                let cost = Cost::Ad { truncation, window };
                let params = usual()
                    .with_cost(cost)
                    .with_p1(p1)
                    .with_p2(p2)
                    .with_p2_mode(P2Mode::Fixed)
                    .with_paths(paths);
                params.check().unwrap();
                compare_everywhere(&params, (41, 18));
            }
        }
    }
}

/// Costs whose descriptors take 3, 4 and 8 bytes, and the widest and the highest window.
fn structural_costs() -> Vec<Cost> {
    let plain = |width, height| Cost::Census { window: CensusWindow::Plain { width, height } };
    vec![
        Cost::Census { window: CensusWindow::Symmetric9x7 },
        plain(5, 5),
        plain(3, 1),
        plain(11, 3),
        plain(13, 5),
        plain(65, 1),
        plain(1, 65),
        COMBINED,
        Cost::Combined(CombinedWeights {
            census_weight: 8,
            gradient_weight: 3,
            intensity_weight: 2,
            gradient_truncation: 255,
            intensity_truncation: 255,
        }),
        Cost::Combined(CombinedWeights {
            census_weight: 0,
            gradient_weight: 0,
            intensity_weight: 127,
            gradient_truncation: 0,
            intensity_truncation: 1,
        }),
    ]
}

#[test]
fn descriptors_of_every_size_on_pictures_of_every_size() {
    for (i, cost) in structural_costs().into_iter().enumerate() {
        let p2 = 80.min((255 - cost.max()) as u8);
        let paths = [Paths::Four, Paths::Five, Paths::Eight][i % 3];
        let params = usual().with_cost(cost).with_paths(paths).with_p2(p2);
        for size in [(1, 1), (1, 30), (40, 1), (7, 3), (63, 17), (130, 9)] {
            compare_everywhere(&params, size);
        }
        for (min, count) in [(-5, 1), (-40, 130), (3, 64)] {
            let range = DisparityRange { min, count };
            compare_everywhere(&params.clone().with_range(range), (45, 13));
        }
    }
}

#[test]
fn speckles_across_the_borders_between_threads() {
    for (size, range_16) in [(2, 0), (9, 4), (40, 16), (80, 32), (5000, u16::MAX)] {
        for median in [Median::Off, Median::Five] {
            let speckle = Some(Speckle { size, range_16 });
            let params = usual().with_cost(COMBINED).with_speckle(speckle).with_median(median);
            for size in [(1, 1), (1, 23), (29, 1), (90, 31)] {
                compare_everywhere(&params, size);
            }
            let options =
                CpuOptions { threads: Some(9), simd: SimdChoice::Auto, ..CpuOptions::default() };
            compare(&params, (90, 31), [options], &[NOISY, POOR]).unwrap_or_else(|e| panic!("{e}"));
            compare(&params, (50, 5), [options], &[NOISY, POOR]).unwrap_or_else(|e| panic!("{e}"));
        }
    }
}

#[test]
fn more_threads_than_bands_and_pictures_wider_than_the_tiles() {
    let options = CpuOptions { threads: Some(7), simd: SimdChoice::Auto, ..CpuOptions::default() };
    for size in [(200, 5), (161, 40), (300, 66)] {
        compare(&usual(), size, [options], &[NOISY, POOR]).unwrap_or_else(|e| panic!("{e}"));
    }
}

#[test]
fn a_pair_of_another_size_is_refused_by_name() {
    let mut engine =
        CpuEngine::new(&usual(), &PairSpec::rectified(30, 20), CpuOptions::default()).unwrap();
    let error = engine
        .submit(pair(Image::from_fn(31, 20, |_, _| 0), Image::from_fn(31, 20, |_, _| 0)))
        .unwrap_err()
        .to_string();
    assert!(error.contains("31x20") && error.contains("30x20"), "{error}");
    assert!(engine.collect().unwrap().is_none());
    assert!(
        CpuEngine::new(&usual().with_p2(250), &PairSpec::rectified(30, 20), CpuOptions::default())
            .is_err()
    );
    let options = CpuOptions { threads: Some(0), ..CpuOptions::default() };
    assert!(CpuEngine::new(&usual(), &PairSpec::rectified(30, 20), options).is_err());
}

#[test]
fn the_engine_tells_what_it_is_and_how_long_it_took() {
    let options =
        CpuOptions { threads: Some(2), simd: SimdChoice::Portable, ..CpuOptions::default() };
    let mut engine = CpuEngine::new(&usual(), &PairSpec::rectified(64, 48), options).unwrap();
    assert_eq!(engine.description(), "CPU (portable vectors, 2 threads)");
    assert_eq!(engine.depth(), 1);
    let memory = CpuEngine::estimate(&usual(), 64, 48, options).unwrap().host;
    // The checkpoints alone: seven edges of three paths.
    assert!(memory > 7 * 3 * 64 * 64, "{memory}");
    let (left, right) = pictures(64, 48, NOISY);
    engine.submit(pair(left, right)).unwrap();
    let (left, right) = pictures(64, 48, NOISY);
    assert!(engine.submit(pair(left, right)).is_err(), "one pair at a time");
    let matched = engine.collect().unwrap().unwrap();
    let total: Duration = matched.stages.iter().map(|&(_, time)| time).sum();
    assert!(!total.is_zero());
}
