//! Random pairs and parameters, the same for every engine.

use std::time::{Duration, Instant};

use proptest::prelude::*;
use stereod_core::chroma::{Chroma, ChromaPlane, ColourCoding};
use stereod_core::engine::Engine;
use stereod_core::engine::difference::{self, Make, first_stage};
use stereod_core::frame::{DisparityMap, INVALID, Image, Matched, StereoPair};
use stereod_core::matching::{History, PairResult, levels, match_next};
use stereod_core::pool::{Pool, Pooled};
use stereod_core::rectify::Rectifier;
use stereod_core::rectify::RectifyMap;
use stereod_core::{
    BlockMeasure, BlockWindow, CensusWindow, CombinedWeights, Cost, DisparityRange, Evidence, Eye,
    Fill, FillRule, Guide, Median, P2Mode, Params, Paths, Prior, Smoothing, Spatial, Speckle,
    StereoGeometry, Subpixel, Window,
};

/// A test with as many random cases as are usual, or STEREOD_TEST_CASES times as many.
pub fn cases(usual: u32) -> ProptestConfig {
    let times = std::env::var("STEREOD_TEST_CASES").map_or(1, |times| times.parse().unwrap());
    ProptestConfig { cases: usual * times, failure_persistence: None, ..ProptestConfig::default() }
}

/// A pair with the given images.
pub fn pair(left: Image, right: Image) -> StereoPair {
    StereoPair {
        left,
        right,
        sequence: 0,
        timestamp: Duration::ZERO,
        skew_ns: Some(0),
        arrived: Instant::now(),
        truth: None,
        prior: None,
    }
}

/// Properties of a random image.
#[derive(Clone, Copy, Debug)]
pub struct Look {
    pub seed: u64,
    /// Number of grey levels; few levels cause ties.
    pub levels: u8,
    /// Distance between grey levels.
    pub step: u8,
    /// Columns by which the right image is shifted, at the upper left corner. Two of three seeds make the scene
    /// slanted.
    pub shift: usize,
    /// One in this many pixels of the right image is replaced; 0 replaces none.
    pub noise: u64,
    /// Whether half of it is white, in blocks that are saturated or nearly so.
    pub white: bool,
}

/// Two images that differ by a shift, which may change along the rows or the columns, and some noise.
pub fn pictures(width: usize, height: usize, look: Look) -> (Image, Image) {
    let mut state = look.seed | 1;
    let mut random = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state >> 20
    };
    let mut grey = |below: u64| (random() % below.max(1)) as u8;
    let levels = u64::from(look.levels);
    let slanted = look.seed / 2 % 3;
    let shift = |x: usize, y: usize| look.shift + [0, y / 3, x / 8][slanted as usize];
    let wide = width + shift(width, height);
    let mut scene: Vec<u8> =
        (0..wide * height).map(|_| grey(levels).wrapping_mul(look.step)).collect();
    // Smaller than the area examined for evidence, or larger.
    let (across, down) = if look.seed.is_multiple_of(2) { (6, 4) } else { (24, 16) };
    let blocks = |i: usize| (i % wide / across + i / wide / down) % 2 == 1;
    for (_, pixel) in scene.iter_mut().enumerate().filter(|&(i, _)| look.white && blocks(i)) {
        // Differs by as much as saturated pixels may, and by more.
        *pixel = 250 + *pixel % 5;
    }
    let left = Image::from_fn(width, height, |x, y| scene[y * wide + x]);
    let mut right: Vec<u8> = (0..width * height)
        .map(|i| (i % width, i / width))
        .map(|(x, y)| scene[y * wide + x + shift(x, y)])
        .collect();
    for pixel in &mut right {
        if look.noise > 0 && u64::from(grey(200)) % look.noise == 0 {
            *pixel = grey(levels).wrapping_mul(look.step);
        }
    }
    (left, Image::from_vec(width, height, right))
}

/// Gives most pairs a prior map: planes with steps and holes.
fn with_prior(pair: StereoPair, seed: u64) -> StereoPair {
    let (width, height) = (pair.left.width().div_ceil(2), pair.left.height().div_ceil(2));
    let piece = |x: usize, y: usize| {
        ((x / 9 + 31 * (y / 7)) as u64 ^ seed).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56
    };
    let value = |i: usize| match (i % width, piece(i % width, i / width)) {
        (_, 0..80) => INVALID,
        // Whole px, at the ends of many ranges.
        (_, piece @ 80..160) => 16 * (piece as i16 - 90),
        (x, piece) => (piece as i16 - 200) * 3 + (x as i16 / 2) * (piece % 3) as i16,
    };
    let map = || {
        let range = DisparityRange { min: -64, count: 256 };
        DisparityMap::of_values(width, range, (0..width * height).map(value).collect())
    };
    let prior = (!seed.is_multiple_of(5)).then(|| Box::new(map()));
    StereoPair { prior, ..pair }
}

/// Compares a result with the reference; an error names the first difference.
pub fn same_result(expected: &PairResult, got: &Matched) -> Result<(), String> {
    difference::compare(expected, got).map_err(|e| format!("{e:#}"))
}

/// The pairs of a stream whose numbers jump now and then, forwards or backwards.
pub fn stream(
    (width, height): (usize, usize),
    looks: &[Look],
) -> impl Iterator<Item = StereoPair> + use<'_> {
    let mut timestamp = Duration::ZERO;
    looks.iter().map(move |&look| {
        let (left, right) = pictures(width, height, look);
        timestamp = match look.seed % 7 {
            0 => Duration::ZERO,
            1 => timestamp + Duration::from_secs(5),
            _ => timestamp + Duration::from_millis(40),
        };
        with_prior(StereoPair { timestamp, ..pair(left, right) }, look.seed)
    })
}

/// Matches the images on several engines in turn, each of which continues from the state of the one
/// before, and compares each with the reference.
pub fn compare_relay(
    engines: &mut [Box<dyn Engine>],
    params: &Params,
    size: (usize, usize),
    looks: &[Look],
) -> Result<(), String> {
    compare_relay_of(engines, params, stream(size, looks))
        .map_err(|e| format!("{e} {size:?} {looks:?}"))
}

/// As [`compare_relay`], for any stream.
pub fn compare_relay_of(
    engines: &mut [Box<dyn Engine>],
    params: &Params,
    pairs: impl Iterator<Item = StereoPair>,
) -> Result<(), String> {
    let (mut history, mut handed_over) = (History::default(), History::default());
    for (number, pair) in pairs.enumerate() {
        let turn = number % engines.len();
        let engine = &mut engines[turn];
        let expected = match_next(&pair, params, &mut history);
        let failed = |e: anyhow::Error| format!("{e:#}");
        engine.resume(std::mem::take(&mut handed_over)).map_err(failed)?;
        engine.submit(pair).map_err(failed)?;
        let matched = engine.collect().map_err(failed)?.expect("a pair was in flight");
        same_result(&expected, &matched).map_err(|e| format!("pair {number}: {e}\n{params:?}"))?;
        handed_over = engine.take_history().map_err(failed)?;
        if let Some(difference) = difference(&history, &handed_over) {
            return Err(format!("pair {number}: another history: {difference}\n{params:?}"));
        }
    }
    Ok(())
}

/// The first difference of two histories.
fn difference(expected: &History, got: &History) -> Option<String> {
    for (name, state) in &expected.states {
        let Some(other) = got.states.get(name) else { return Some(format!("{name} is missing")) };
        let differs = |&i: &usize| state.get(i) != other.get(i);
        if let Some(i) = (0..state.len().max(other.len())).find(differs) {
            let count = (0..state.len()).filter(differs).count();
            return Some(format!(
                "{name}: number {i} of {} is {:?}, not {:?}; {count} differ",
                state.len(),
                other.get(i),
                state.get(i)
            ));
        }
    }
    (expected != got).then(|| "another stream".into())
}

/// The reference's results for the images.
pub fn expected(params: &Params, size: (usize, usize), looks: &[Look]) -> Vec<PairResult> {
    let mut history = History::default();
    stream(size, looks).map(|pair| match_next(&pair, params, &mut history)).collect()
}

/// Matches the images on one engine, with as many in flight as it takes (its retained state must
/// not affect results), and compares each with the reference's result. An error names the first stage that differs on
/// engines that `make` makes.
pub fn compare(
    engine: &mut dyn Engine,
    params: &Params,
    size: (usize, usize),
    looks: &[Look],
    expected: &[PairResult],
    make: Make<'_>,
) -> Result<(), String> {
    let mut in_flight = std::collections::VecDeque::new();
    let mut pairs = stream(size, looks);
    // State of an earlier stream must not be used.
    engine.resume(History::default()).map_err(|e| format!("{e:#}"))?;
    for number in 0..looks.len() + engine.depth() {
        if let Some(pair) = pairs.next() {
            in_flight.push_back(number);
            engine.submit(pair).map_err(|e| format!("{e:#}"))?;
        }
        if in_flight.len() < engine.depth() && number + 1 < looks.len() {
            continue;
        }
        let Some(number) = in_flight.pop_front() else { break };
        let matched =
            engine.collect().map_err(|e| format!("{e:#}"))?.expect("a pair was in flight");
        same_result(&expected[number], &matched).map_err(|difference| {
            format!(
                "{}: pair {number}: {difference}; {}\n{params:?} {size:?} {:?} of {looks:?}",
                engine.description(),
                first_stage(&matched.pair, params, make),
                looks[number]
            )
        })?;
    }
    assert!(in_flight.is_empty() && engine.collect().is_ok_and(|none| none.is_none()));
    Ok(())
}

/// Maps from images of `size` to positions in raw images, and beyond their borders. The left raw image has
/// the size `source`, the right one mostly another.
pub fn wild_rectifier(source: (usize, usize), size: (usize, usize), seed: u64) -> Rectifier {
    let other = (source.0 + seed as usize % 5, source.1 + seed as usize % 3);
    let map = |source: (usize, usize), seed: u64| {
        let position = |x: usize, y: usize| {
            let mut state = (seed << 40 | (y << 20 | x) as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            let mut share = || {
                state ^= state >> 29;
                state = state.wrapping_mul(0xbf58_476d_1ce4_e5b9);
                (state >> 40) as f64 / f64::from(1 << 24)
            };
            // The first pixel is always seen; a tenth of the others is not.
            let beyond = if (x, y) == (0, 0) { 0.0 } else { 0.05 };
            let mut at =
                |side: usize| ((1.0 + 2.0 * beyond) * share() - beyond) * (side - 1) as f64;
            Some([at(source.0), at(source.1)])
        };
        RectifyMap::from_positions(source, size, position).unwrap()
    };
    let geometry = StereoGeometry {
        focal_px: 100.0,
        baseline_m: 0.1,
        centre_x_px: 0.0,
        centre_y_px: 0.0,
        right_centre_x_px: 0.0,
    };
    Rectifier::from_maps(map(source, 2 * seed), map(other, 2 * seed + 1), geometry).unwrap()
}

/// Colour of an image of this size; every second pixel across and down has another one.
fn chroma(width: usize, height: usize) -> Chroma {
    let across = width.div_ceil(2);
    let samples = (0..across * height.div_ceil(2)).map(|i| [(i * 7) as u8, (i * 13) as u8]);
    let samples = Pooled::unpooled(samples.collect());
    let plane = ChromaPlane::new((width, height), [1, 1], samples);
    Chroma::new(ColourCoding::new(0.299, 0.114, false), plane, Pool::new())
}

/// Colour samples expected after rectification: those of the pixels nearest to each source
/// position.
fn rectified_colour(map: &RectifyMap) -> Vec<[u8; 2]> {
    let ((width, height), (stride, rows)) = (map.size(), map.source_size());
    let of = chroma(stride, rows);
    let mut samples = Vec::new();
    for y in (0..height).step_by(2) {
        for x in (0..width).step_by(2) {
            let (offset, weights) = (map.offsets()[y * width + x], map.weights()[y * width + x]);
            let at = offset as usize;
            let (column, row) = (at % stride, at / stride);
            let (across, down) = ((weights & 255) / 128, (weights >> 8) / 128);
            samples.push(match offset {
                RectifyMap::UNSEEN => [128; 2],
                _ => of.plane().at(column + usize::from(across), row + usize::from(down)),
            });
        }
    }
    samples
}

/// As [`compare`], for an engine that rectifies: the images it returns also equal those of the
/// plain definition.
pub fn compare_rectified(
    engine: &mut dyn Engine,
    params: &Params,
    rectifier: &Rectifier,
    looks: &[Look],
) -> Result<(), String> {
    let [(width, height), other] = Eye::BOTH.map(|eye| rectifier.source_size(eye));
    let mut history = History::default();
    for &look in looks {
        let raw = || {
            let (left, _) = pictures(width, height, look);
            let (_, right) = pictures(other.0, other.1, look);
            pair(left.with_chroma(Some(chroma(width, height))), right)
        };
        let [left, right] = rectifier.rectify_pair(&raw());
        let rectified = with_prior(pair(left, right), look.seed);
        let prior = rectified.prior.as_ref().map(|prior| Box::new(prior.copy()));
        let expected = match_next(&rectified, params, &mut history);
        engine.submit(StereoPair { prior, ..raw() }).map_err(|e| format!("{e:#}"))?;
        let StereoPair { left, right, .. } = rectified;
        let matched = engine.collect().map_err(|e| format!("{e:#}"))?.expect("a pair in flight");
        let context = || format!("{}: {params:?} {look:?}", engine.description());
        for (eye, expected, got) in
            [(Eye::Left, &left, &matched.pair.left), (Eye::Right, &right, &matched.pair.right)]
        {
            if expected.pixels() != got.pixels() || expected.valid_mask() != got.valid_mask() {
                return Err(format!("the {eye} picture differs: {}", context()));
            }
        }
        let colour = matched.pair.left.chroma().map(|chroma| chroma.plane().samples());
        if colour != Some(&rectified_colour(rectifier.map(Eye::Left))[..]) {
            return Err(format!("the colour differs: {}", context()));
        }
        if matched.geometry != Some(rectifier.geometry()) || matched.stages.is_empty() {
            return Err(format!("the result lacks geometry or times: {}", context()));
        }
        same_result(&expected, &matched).map_err(|e| format!("{e}: {}", context()))?;
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

/// Makes the window smaller if it has too many pixels, or larger if it has only the centre.
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
        2 => (measures(), block_windows(), 1u8..=255).prop_map(|(measure, window, truncation)| {
            // Without its mean a single pixel is always 0.
            let alone = measure.is_zero_mean() && window.area() == 1;
            let window = if alone { BlockWindow { width: 3, ..window } } else { window };
            Cost::Block { measure, window, truncation }
        }),
        1 => (1u8..=127).prop_map(|truncation| Cost::MutualInformation { truncation }),
        2 => (0u8..=127, 0u8..=127, 0u8..=127, truncation(), truncation()).prop_map(
            |(census_weight, gradient_weight, intensity_weight, gradient_truncation, intensity)| {
                Cost::Combined(CombinedWeights {
                    census_weight,
                    gradient_weight,
                    intensity_weight,
                    gradient_truncation,
                    intensity_truncation: intensity,
                })
            }
        ),
    ]
    .prop_filter("a cost from 1 to 255", |cost| (1..=255).contains(&cost.max()))
}

fn measures() -> impl Strategy<Value = BlockMeasure> {
    prop_oneof![
        Just(BlockMeasure::Sad),
        Just(BlockMeasure::Ssd),
        Just(BlockMeasure::ZeroMeanSad),
        Just(BlockMeasure::ZeroMeanSsd),
    ]
}

fn block_windows() -> impl Strategy<Value = BlockWindow> {
    (0u8..=5, 0u8..=5)
        .prop_map(|(across, down)| BlockWindow { width: 2 * across + 1, height: 2 * down + 1 })
}

/// Support of the cost, the guide of P2, and whether paths follow the surface.
fn supports() -> impl Strategy<Value = (Option<Window>, Option<Prior>, Guide, [bool; 2])> {
    let window = prop_oneof![
        1 => Just(None),
        1 => (prop_oneof![Just(3u8), Just(5)], any::<bool>())
            .prop_map(|(side, by_texture)| Some(Window { side, by_texture })),
    ];
    let prior = prop_oneof![
        1 => Just(None),
        1 => (1u8..=3, 1u8..=32).prop_map(|(levels, strength)| Some(Prior { levels, strength })),
    ];
    let guide = prop_oneof![Just(Guide::Picture), Just(Guide::Smoothed)];
    (window, prior, guide, any::<[bool; 2]>())
}

fn subpixels() -> impl Strategy<Value = Subpixel> {
    prop_oneof![
        Just(Subpixel::Off),
        Just(Subpixel::Parabola),
        Just(Subpixel::Equiangular),
        Just(Subpixel::Corrected),
    ]
}

fn speckles() -> impl Strategy<Value = Option<Speckle>> {
    prop_oneof![
        2 => Just(None),
        3 => (prop_oneof![0u32..30, 30u32..2000], prop_oneof![0u16..50, any::<u16>()])
            .prop_map(|(size, range_16)| Some(Speckle { size, range_16 })),
    ]
}

/// Smoothing in time, with guards smaller and larger than the steps between maps.
pub fn smoothings() -> impl Strategy<Value = Smoothing> {
    (1u8..=255, prop_oneof![0u16..40, 0u16..=1023])
        .prop_map(|(weight_256, guard_16)| Smoothing { weight_256, guard_16 })
}

/// Smoothing of surfaces, or none.
fn spatials() -> impl Strategy<Value = Option<Spatial>> {
    prop_oneof![
        2 => Just(None),
        3 => (1u8..=16).prop_map(|reach| Some(Spatial { reach })),
    ]
}

fn fills() -> impl Strategy<Value = Option<Fill>> {
    let rule = prop_oneof![
        1 => Just(FillRule::Row),
        3 => Just(FillRule::Rays),
        2 => Just(FillRule::Gaps),
        2 => Just(FillRule::Network),
        2 => Just(FillRule::NetworkOrRays),
    ];
    let reach = prop_oneof![2 => 1u16..12, 2 => 12u16..200, 1 => Just(1023u16)];
    prop_oneof![
        2 => Just(None),
        3 => (rule, reach).prop_map(|(rule, reach)| Some(Fill { rule, reach })),
    ]
}

/// Parameters and sizes with range windows.
pub fn windowed() -> impl Strategy<Value = (Params, (usize, usize))> {
    (params(), (32usize..150, 32usize..80)).prop_filter_map("windows apply", |(params, size)| {
        let params = params.with_windows(true);
        levels::has_windows(&params, size).then_some((params, size))
    })
}

pub fn params() -> impl Strategy<Value = Params> {
    let range = (
        prop_oneof![Just(0i32), -20i32..20, -200i32..200],
        prop_oneof![
            4 => 1usize..=140,
            1 => prop_oneof![Just(1usize), Just(2), Just(16), Just(32), Just(64), Just(128)],
            1 => 141usize..=300,
        ],
    );
    let paths = prop_oneof![
        2 => Just(Paths::None),
        2 => Just(Paths::Four),
        2 => Just(Paths::Five),
        3 => Just(Paths::Eight),
        1 => Just(Paths::Sixteen),
    ];
    let refinement = (
        prop_oneof![Just(0u8), 1u8..=99],
        (
            subpixels(),
            prop_oneof![2 => Just(None), 1 => Just(Some(0)), 2 => any::<u8>().prop_map(Some)],
        ),
        prop_oneof![Just(None), (0u16..4).prop_map(Some)],
        prop_oneof![Just(Median::Off), Just(Median::Three), Just(Median::Five)],
        (speckles(), prop::option::of(any::<bool>().prop_map(|strict| Evidence { strict }))),
        (spatials(), prop_oneof![3 => Just(None), 2 => smoothings().prop_map(Some)]),
        fills(),
    );
    let paths = (paths, block_windows());
    (range, costs(), supports(), paths, (0u8..=255, 0u8..=255), p2_modes(), refinement).prop_map(
        |((min, count), cost, supports, paths, (p1, p2), p2_mode, refinement)| {
            let ((window, prior, p2_guide, [surface, prior_map]), (paths, sum_window)) =
                (supports, paths);
            // Settings that cannot be combined.
            let cost = match cost {
                Cost::Ad { truncation, .. } if paths == Paths::None => {
                    Cost::Ad { truncation, window: 1 }
                }
                cost => cost,
            };
            let supports = paths != Paths::None && !matches!(cost, Cost::Block { .. });
            let (window, prior) = if supports { (window, prior) } else { (None, None) };
            // Bring support and penalties into their limits.
            let room = 127u32.saturating_sub(cost.max()).min(32) as u8;
            let window = window.filter(|_| cost.max() <= 127);
            let prior = prior
                .filter(|_| room > 0)
                .map(|prior| Prior { strength: prior.strength.min(room), ..prior });
            let largest = cost.max() + prior.map_or(0, |prior| u32::from(prior.strength));
            let p2 = p2.min((255 - largest) as u8);
            let p1 = (u16::from(p1) % (u16::from(p2) + 1)) as u8;
            let p2_mode = match p2_mode {
                P2Mode::Linear { min, slope_16 } => P2Mode::Linear { min: min.min(p2), slope_16 },
                other => other,
            };
            let (uniqueness, (subpixel, confidence), left_right, median, invalid, smooth, fill) =
                refinement;
            let (speckle, evidence) = invalid;
            let (spatial, smoothing) = smooth;
            Params::bare(DisparityRange { min, count }, cost, (p1, p2))
                .with_window(window)
                .with_prior(prior)
                .with_prior_map(prior_map)
                .with_surface(surface)
                .with_paths(paths)
                .with_sum_window(sum_window)
                .with_p2_mode(p2_mode)
                .with_p2_guide(p2_guide)
                .with_uniqueness(uniqueness)
                .with_subpixel(subpixel)
                .with_confidence(confidence)
                .with_left_right(left_right)
                .with_median(median)
                .with_speckle(speckle)
                .with_evidence(evidence)
                .with_spatial(spatial)
                .with_smoothing(smoothing)
                .with_fill(fill)
        },
    )
}

pub fn looks() -> impl Strategy<Value = Look> {
    let numbers = (any::<u64>(), prop_oneof![1u8..=4, 5u8..=255], 1u8..=60, 0usize..40, 0u64..8);
    (numbers, proptest::bool::weighted(0.3)).prop_map(
        |((seed, levels, step, shift, noise), white)| Look {
            seed,
            levels,
            step,
            shift,
            noise,
            white,
        },
    )
}

/// Images of little texture and little noise, moved by few columns.
pub fn weak_looks() -> impl Strategy<Value = Look> {
    (any::<u64>(), 1u8..=12, 1u8..=3, 0usize..12, prop_oneof![Just(0u64), 10u64..60]).prop_map(
        |(seed, levels, step, shift, noise)| Look {
            seed,
            levels,
            step,
            shift,
            noise,
            white: seed % 4 == 0,
        },
    )
}

/// The combined cost, if the settings ask for it.
pub const COMBINED: Cost = Cost::Combined(CombinedWeights {
    census_weight: 22,
    gradient_weight: 19,
    intensity_weight: 10,
    gradient_truncation: 5,
    intensity_truncation: 6,
});

/// Parameters that vary between cases.
pub fn usual() -> Params {
    let cost = Cost::Ad { truncation: 40, window: 1 };
    Params::bare(DisparityRange { min: 0, count: 64 }, cost, (7, 86))
        .with_p2_mode(P2Mode::Linear { min: 3, slope_16: 40 })
        .with_uniqueness(5)
        .with_subpixel(Subpixel::Corrected)
        .with_left_right(Some(1))
        .with_median(Median::Three)
}

pub const NOISY: Look = Look { seed: 5, levels: 200, step: 1, shift: 9, noise: 5, white: false };
pub const CONSTANT: Look = Look { seed: 5, levels: 1, step: 1, shift: 0, noise: 0, white: false };
pub const POOR: Look = Look { seed: 77, levels: 2, step: 3, shift: 3, noise: 3, white: false };
