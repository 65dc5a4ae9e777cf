//! Every engine gives the bytes of the scalar reference.

use std::time::{Duration, Instant};

use proptest::prelude::*;
use stereod::engine::Engine;
use stereod::engine::cpu::{CpuEngine, CpuOptions, SimdChoice};
use stereod::frame::{DisparityRange, Image, StereoPair};
use stereod::matching::{CensusWindow, Cost, Median, P2Mode, Params, Paths, Speckle, match_pair};

/// A pair with the given pictures.
fn pair(left: Image, right: Image) -> StereoPair {
    StereoPair {
        left,
        right,
        sequence: 0,
        timestamp: Duration::ZERO,
        skew_ns: 0,
        arrived: Instant::now(),
        truth: None,
    }
}

/// What a random picture looks like.
#[derive(Clone, Copy, Debug)]
struct Look {
    seed: u64,
    /// Number of grey levels: few make ties.
    levels: u8,
    /// Distance between grey levels.
    step: u8,
    /// By how many columns the right picture is shifted.
    shift: usize,
    /// One in how many pixels of the right picture is drawn anew; 0: none.
    noise: u64,
}

/// Two pictures that are alike but for a shift and some noise.
fn pictures(width: usize, height: usize, look: Look) -> (Image, Image) {
    let mut state = look.seed | 1;
    let mut random = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state >> 20
    };
    let mut grey = |below: u64| (random() % below.max(1)) as u8;
    let levels = u64::from(look.levels);
    let wide = width + look.shift;
    let scene: Vec<u8> = (0..wide * height).map(|_| grey(levels).wrapping_mul(look.step)).collect();
    let left = Image::from_fn(width, height, |x, y| scene[y * wide + x]);
    let mut right: Vec<u8> =
        (0..width * height).map(|i| scene[i / width * wide + i % width + look.shift]).collect();
    for pixel in &mut right {
        if look.noise > 0 && u64::from(grey(200)) % look.noise == 0 {
            *pixel = grey(levels).wrapping_mul(look.step);
        }
    }
    (left, Image::from_vec(width, height, right))
}

/// Matches the looks one after the other on one engine (what it keeps must not show) and compares
/// each with the reference.
fn compare(
    params: &Params,
    (width, height): (usize, usize),
    options: CpuOptions,
    looks: &[Look],
) -> Result<(), String> {
    let mut engine = CpuEngine::new(params, width, height, options).map_err(|e| e.to_string())?;
    for (number, &look) in looks.iter().enumerate() {
        let (left, right) = pictures(width, height, look);
        let expected = match_pair(&left, &right, params);
        engine.submit(pair(left, right)).map_err(|e| e.to_string())?;
        let matched = engine.collect().unwrap().expect("a pair was in flight");
        let got = matched.disparity;
        assert_eq!((got.width(), got.height()), (width, height));
        let first = expected.values().iter().zip(got.values()).position(|(a, b)| a != b);
        if let Some(i) = first {
            let wrong = expected.values().iter().zip(got.values()).filter(|(a, b)| a != b).count();
            return Err(format!(
                "{}: pair {number}: pixel ({}, {}) is {} and should be {}; {wrong} of {} differ\n\
                 {params:?} {width}x{height} {options:?} {look:?}",
                engine.description(),
                i % width,
                i / width,
                got.values()[i],
                expected.values()[i],
                width * height,
            ));
        }
    }
    Ok(())
}

fn p2_modes() -> impl Strategy<Value = P2Mode> {
    prop_oneof![
        Just(P2Mode::Fixed),
        Just(P2Mode::InverseGradient),
        (0u8..=255, 0u16..200).prop_map(|(min, slope_16)| P2Mode::Linear { min, slope_16 }),
    ]
}

/// Plain windows of every number of descriptor bytes, and the symmetric one.
fn windows() -> impl Strategy<Value = CensusWindow> {
    prop_oneof![
        2 => Just(CensusWindow::Symmetric9x7),
        1 => Just(CensusWindow::Plain { width: 5, height: 5 }),
        1 => Just(CensusWindow::Plain { width: 9, height: 7 }),
        4 => (0u8..=32, 0u8..=32)
            .prop_map(|(across, down)| CensusWindow::Plain {
                width: 2 * across + 1,
                height: 2 * down + 1,
            })
            .prop_map(fitting),
    ]
}

/// The window, made smaller where it has too many pixels, larger where it has none but the centre.
fn fitting(window: CensusWindow) -> CensusWindow {
    let CensusWindow::Plain { mut width, mut height } = window else { return window };
    while u32::from(width) * u32::from(height) > 65 {
        if width > height { width -= 2 } else { height -= 2 }
    }
    if (width, height) == (1, 1) {
        width = 3;
    }
    CensusWindow::Plain { width, height }
}

fn costs() -> impl Strategy<Value = Cost> {
    let truncation = || prop_oneof![3 => 0u8..=12, 1 => any::<u8>()];
    prop_oneof![
        2 => (1u8..=255, prop_oneof![1 => Just(1u8), 1 => Just(3u8), 1 => Just(5), 1 => Just(7)])
            .prop_map(|(truncation, window)| Cost::Ad { truncation, window }),
        2 => windows().prop_map(|window| Cost::Census { window }),
        1 => Just(COMBINED),
        2 => (0u8..=127, 0u8..=127, 0u8..=127, truncation(), truncation()).prop_map(
            |(census_weight, gradient_weight, intensity_weight, gradient_truncation, intensity)| {
                Cost::Combined {
                    census_weight,
                    gradient_weight,
                    intensity_weight,
                    gradient_truncation,
                    intensity_truncation: intensity,
                }
            }
        ),
    ]
    .prop_filter("a cost from 1 to 255", |cost| (1..=255).contains(&cost.max()))
}

fn speckles() -> impl Strategy<Value = Option<Speckle>> {
    prop_oneof![
        2 => Just(None),
        3 => (prop_oneof![0u32..30, 30u32..2000], prop_oneof![0u16..50, any::<u16>()])
            .prop_map(|(size, range_16)| Some(Speckle { size, range_16 })),
    ]
}

fn params() -> impl Strategy<Value = Params> {
    let range = (
        prop_oneof![Just(0i32), -20i32..20, -200i32..200],
        prop_oneof![
            4 => 1usize..=140,
            1 => prop_oneof![Just(1usize), Just(2), Just(16), Just(32), Just(64), Just(128)],
            1 => 141usize..=300,
        ],
    );
    let paths =
        prop_oneof![1 => Just(Paths::Four), 1 => Just(Paths::Five), 2 => Just(Paths::Eight)];
    let refinement = (
        prop_oneof![Just(0u8), 1u8..=99],
        any::<bool>(),
        prop_oneof![Just(None), (0u16..4).prop_map(Some)],
        prop_oneof![Just(Median::Off), Just(Median::Three), Just(Median::Five)],
        speckles(),
    );
    (range, costs(), paths, (0u8..=255, 0u8..=255), p2_modes(), refinement).prop_map(
        |((min, count), cost, paths, (p1, p2), p2_mode, refinement)| {
            // Bring the penalties into their limits.
            let p2 = p2.min((255 - cost.max()) as u8);
            let p1 = (u16::from(p1) % (u16::from(p2) + 1)) as u8;
            let p2_mode = match p2_mode {
                P2Mode::Linear { min, slope_16 } => P2Mode::Linear { min: min.min(p2), slope_16 },
                other => other,
            };
            let (uniqueness, subpixel, left_right, median, speckle) = refinement;
            Params {
                range: DisparityRange { min, count },
                cost,
                paths,
                p1,
                p2,
                p2_mode,
                uniqueness,
                subpixel,
                left_right,
                median,
                speckle,
            }
        },
    )
}

fn looks() -> impl Strategy<Value = Look> {
    (any::<u64>(), prop_oneof![1u8..=4, 5u8..=255], 1u8..=60, 0usize..40, 0u64..8)
        .prop_map(|(seed, levels, step, shift, noise)| Look { seed, levels, step, shift, noise })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_cpu_engine_gives_the_bytes_of_the_reference(
        params in params(),
        size in prop_oneof![3 => (1usize..70, 1usize..30), 1 => (1usize..180, 1usize..12)],
        threads in 1usize..=4,
        looks in proptest::collection::vec(looks(), 1..=3),
    ) {
        prop_assert!(params.check().is_ok(), "{:?}", params.check());
        for simd in SimdChoice::available() {
            let options = CpuOptions { threads: Some(threads), simd };
            if let Err(difference) = compare(&params, size, options, &looks) {
                prop_assert!(false, "{}", difference);
            }
        }
    }
}

/// The combined cost as the settings have it.
const COMBINED: Cost = Cost::Combined {
    census_weight: 14,
    gradient_weight: 11,
    intensity_weight: 8,
    gradient_truncation: 5,
    intensity_truncation: 6,
};

/// The parameters that the cases below vary.
fn usual() -> Params {
    Params {
        range: DisparityRange { min: 0, count: 64 },
        cost: Cost::Ad { truncation: 40, window: 1 },
        paths: Paths::Eight,
        p1: 7,
        p2: 86,
        p2_mode: P2Mode::Linear { min: 3, slope_16: 40 },
        uniqueness: 5,
        subpixel: true,
        left_right: Some(1),
        median: Median::Three,
        speckle: None,
    }
}

const NOISY: Look = Look { seed: 5, levels: 200, step: 1, shift: 9, noise: 5 };
const CONSTANT: Look = Look { seed: 5, levels: 1, step: 1, shift: 0, noise: 0 };
const POOR: Look = Look { seed: 77, levels: 2, step: 3, shift: 3, noise: 3 };

/// Compares on every vector width, with one and with several threads.
fn compare_everywhere(params: &Params, size: (usize, usize)) {
    for simd in SimdChoice::available() {
        for threads in [1, 3] {
            let options = CpuOptions { threads: Some(threads), simd };
            compare(params, size, options, &[NOISY, CONSTANT, POOR, NOISY])
                .unwrap_or_else(|difference| panic!("{difference}"));
        }
    }
}

#[test]
fn tiny_and_narrow_pictures() {
    for paths in [Paths::Four, Paths::Five, Paths::Eight] {
        let params = Params { paths, median: Median::Five, ..usual() };
        for size in [(1, 1), (1, 40), (40, 1), (2, 2), (33, 9), (63, 8), (5, 17)] {
            compare_everywhere(&params, size);
        }
    }
}

#[test]
fn ranges_around_the_vectors_and_beyond_the_width() {
    for count in [1, 2, 3, 15, 16, 17, 31, 33, 63, 64, 65, 127, 128, 129, 257] {
        for min in [-70, -3, 0, 5, 90] {
            let params = Params { range: DisparityRange { min, count }, ..usual() };
            compare_everywhere(&params, (50, 10));
        }
    }
    let params = Params { range: DisparityRange { min: -100, count: 1024 }, ..usual() };
    compare_everywhere(&params, (70, 9));
}

#[test]
fn extreme_costs_and_penalties() {
    let cases = [(255, 0, 0), (1, 254, 254), (127, 128, 128), (128, 0, 127), (1, 0, 254)];
    for paths in [Paths::Four, Paths::Five, Paths::Eight] {
        for (truncation, p1, p2) in cases {
            for window in [1, 7] {
                let cost = Cost::Ad { truncation, window };
                let params = Params { cost, p1, p2, p2_mode: P2Mode::Fixed, paths, ..usual() };
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
        Cost::Combined {
            census_weight: 8,
            gradient_weight: 3,
            intensity_weight: 2,
            gradient_truncation: 255,
            intensity_truncation: 255,
        },
        Cost::Combined {
            census_weight: 0,
            gradient_weight: 0,
            intensity_weight: 127,
            gradient_truncation: 0,
            intensity_truncation: 1,
        },
    ]
}

#[test]
fn descriptors_of_every_size_on_pictures_of_every_size() {
    for (i, cost) in structural_costs().into_iter().enumerate() {
        let p2 = 80.min((255 - cost.max()) as u8);
        let paths = [Paths::Four, Paths::Five, Paths::Eight][i % 3];
        let params = Params { cost, paths, p2, ..usual() };
        for size in [(1, 1), (1, 30), (40, 1), (7, 3), (63, 17), (130, 9)] {
            compare_everywhere(&params, size);
        }
        for (min, count) in [(-5, 1), (-40, 130), (3, 64)] {
            let range = DisparityRange { min, count };
            compare_everywhere(&Params { range, ..params.clone() }, (45, 13));
        }
    }
}

#[test]
fn speckles_across_the_borders_between_threads() {
    for (size, range_16) in [(2, 0), (9, 4), (40, 16), (80, 32), (5000, u16::MAX)] {
        for median in [Median::Off, Median::Five] {
            let speckle = Some(Speckle { size, range_16 });
            let params = Params { cost: COMBINED, speckle, median, ..usual() };
            for size in [(1, 1), (1, 23), (29, 1), (90, 31)] {
                compare_everywhere(&params, size);
            }
            let options = CpuOptions { threads: Some(9), simd: SimdChoice::Auto };
            compare(&params, (90, 31), options, &[NOISY, POOR]).unwrap_or_else(|e| panic!("{e}"));
            compare(&params, (50, 5), options, &[NOISY, POOR]).unwrap_or_else(|e| panic!("{e}"));
        }
    }
}

#[test]
fn more_threads_than_bands_and_pictures_wider_than_the_tiles() {
    let options = CpuOptions { threads: Some(7), simd: SimdChoice::Auto };
    for size in [(200, 5), (161, 40), (300, 66)] {
        compare(&usual(), size, options, &[NOISY, POOR]).unwrap_or_else(|e| panic!("{e}"));
    }
}

#[test]
fn a_pair_of_another_size_is_refused_by_name() {
    let mut engine = CpuEngine::new(&usual(), 30, 20, CpuOptions::default()).unwrap();
    let error = engine
        .submit(pair(Image::from_fn(31, 20, |_, _| 0), Image::from_fn(31, 20, |_, _| 0)))
        .unwrap_err()
        .to_string();
    assert!(error.contains("31x20") && error.contains("30x20"), "{error}");
    assert!(engine.collect().unwrap().is_none());
    assert!(CpuEngine::new(&Params { p2: 250, ..usual() }, 30, 20, CpuOptions::default()).is_err());
    let options = CpuOptions { threads: Some(0), ..CpuOptions::default() };
    assert!(CpuEngine::new(&usual(), 30, 20, options).is_err());
}

#[test]
fn the_engine_tells_what_it_is_and_how_long_it_took() {
    let options = CpuOptions { threads: Some(2), simd: SimdChoice::Portable };
    let mut engine = CpuEngine::new(&usual(), 64, 48, options).unwrap();
    assert_eq!(engine.description(), "CPU (portable vectors, 2 threads)");
    assert_eq!(engine.depth(), 1);
    let memory = engine.memory_bytes();
    // The checkpoints alone: seven edges of three paths.
    assert!(memory > 7 * 3 * 64 * 64, "{memory}");
    let (left, right) = pictures(64, 48, NOISY);
    engine.submit(pair(left, right)).unwrap();
    let (left, right) = pictures(64, 48, NOISY);
    assert!(engine.submit(pair(left, right)).is_err(), "one pair at a time");
    engine.collect().unwrap().unwrap();
    assert_eq!(engine.memory_bytes(), memory);
    let total: Duration = engine.stage_times().iter().map(|&(_, time)| time).sum();
    assert!(!total.is_zero());
}
