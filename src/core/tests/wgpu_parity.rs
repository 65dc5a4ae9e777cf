//! The engine on GPUs of all makers gives the bytes of the scalar reference, with subgroups and without, whole and in
//! bands. Software Vulkan (Debian's mesa-vulkan-drivers) is enough; without any device the tests say that they are
//! skipped, and STEREOD_TEST_WGPU=required makes that a failure.

#![cfg(feature = "wgpu")]

mod common {
    pub mod guided;
    pub mod networks;
    pub mod parity;
    pub mod streams;
}

use std::sync::Arc;

use common::guided::{guided, weak};
use common::networks::{Dice, Shape, random_network, shapes};
use common::parity::{
    self, COMBINED, CONSTANT, Look, NOISY, POOR, cases, compare_rectified, compare_relay,
    compare_relay_of, looks, pair, params, pictures, smoothings, stream, usual, weak_looks,
    wild_rectifier, windowed,
};
use common::streams::{compare_predicted, compare_stream, drifting, streams};
use proptest::prelude::*;
use stereod_core::engine::cpu::{CpuEngine, CpuOptions};
use stereod_core::engine::webgpu::{NoDevice, WebGpuEngine, WebGpuOptions};
use stereod_core::engine::{Choice, Engine, HalvedNetwork, Options, PairSpec, PriorFrom, create};
use stereod_core::frame::{Image, StereoPair};
use stereod_core::matching::learned::{Cells, Network};
use stereod_core::matching::{Fill, FillRule, History, match_next};
use stereod_core::{
    CensusWindow, Cost, DisparityRange, Evidence, Eye, Guide, Median, P2Mode, Params, Paths, Prior,
    Smoothing, Spatial, Speckle, Subpixel, Temporal, TemporalMode, Window,
};

const WHOLE: WebGpuOptions = WebGpuOptions { buffer_max: None, subgroups: true, mutation: None };
/// Buffers of a few rows, so that images have several bands; wide ones hold a row at least.
const BANDS: WebGpuOptions = WebGpuOptions { buffer_max: Some(200_000), ..WHOLE };
const SHARED: WebGpuOptions = WebGpuOptions { subgroups: false, ..WHOLE };

fn make(params: &Params, pairs: &PairSpec, options: WebGpuOptions) -> anyhow::Result<WebGpuEngine> {
    // A byte for each disparity and path, of five in one direction, in groups of up to 128 words; or a row of tiles of
    // range windows.
    let row = 5 * pairs.size.0 * (params.range.count + 512).max(16 * 64);
    let buffer_max = options.buffer_max.map(|most| most.max(row as u64));
    let options = WebGpuOptions { buffer_max, ..options };
    WebGpuEngine::new(params, pairs, options, CpuOptions::default())
}

/// An engine, or `None` where this machine cannot have one.
fn engine(params: &Params, pairs: &PairSpec, options: WebGpuOptions) -> Option<WebGpuEngine> {
    present(make(params, pairs, options))
}

fn present<T>(made: anyhow::Result<T>) -> Option<T> {
    match made {
        Ok(engine) => Some(engine),
        Err(error) if error.downcast_ref::<NoDevice>().is_some() => {
            let required = std::env::var_os("STEREOD_TEST_WGPU").is_some();
            assert!(!required, "STEREOD_TEST_WGPU is set, but: {error}");
            eprintln!("skipped: {error}");
            None
        }
        Err(error) => panic!("{error:#}"),
    }
}

/// The nearest parameters that the engine has.
fn supported(params: Params) -> Params {
    let cost = match params.cost {
        Cost::Ad { truncation, .. } => Cost::Ad { truncation, window: 1 },
        cost @ (Cost::Census { .. } | Cost::Combined { .. }) => cost,
        Cost::Block { .. } | Cost::MutualInformation { .. } => {
            Cost::Census { window: CensusWindow::Symmetric9x7 }
        }
        cost => panic!("{cost:?}: can shaders match with it?"),
    };
    let paths = match params.paths {
        Paths::None | Paths::Sixteen => Paths::Eight,
        paths @ (Paths::Four | Paths::Five | Paths::Eight) => paths,
        paths => panic!("{paths:?}: can shaders follow them?"),
    };
    let largest = cost.max() + params.prior.map_or(0, |prior| u32::from(prior.strength));
    let p2 = params.p2.min((255 - largest) as u8);
    let p2_mode = match params.p2_mode {
        P2Mode::Linear { min, slope_16 } => P2Mode::Linear { min: min.min(p2), slope_16 },
        mode => mode,
    };
    let p1 = params.p1.min(p2);
    params.with_cost(cost).with_paths(paths).with_p1(p1).with_p2(p2).with_p2_mode(p2_mode)
}

/// Compares on engines with these options.
fn compare(
    params: &Params,
    size: (usize, usize),
    options: &[WebGpuOptions],
    looks: &[Look],
) -> Result<(), String> {
    let mut expected = None;
    for &options in options {
        let pairs = PairSpec::rectified(size.0, size.1);
        let Some(mut engine) = engine(params, &pairs, options) else { return Ok(()) };
        let expected = expected.get_or_insert_with(|| parity::expected(params, size, looks));
        let make = |params: &Params, pairs: &PairSpec| -> anyhow::Result<Box<dyn Engine>> {
            Ok(Box::new(make(params, pairs, options)?))
        };
        parity::compare(&mut engine, params, size, looks, expected, &make)
            .map_err(|difference| format!("{difference} {options:?}"))?;
    }
    Ok(())
}

proptest! {
    #![proptest_config(cases(12))]

    #[test]
    fn shaders_give_the_bytes_of_the_reference(
        params in params().prop_map(supported),
        size in prop_oneof![3 => (1usize..70, 1usize..30), 1 => (1usize..300, 1usize..40)],
        options in prop_oneof![Just(WHOLE), Just(BANDS), Just(SHARED)],
        looks in proptest::collection::vec(prop_oneof![3 => looks(), 1 => weak_looks()], 1..=3),
    ) {
        prop_assert!(params.check().is_ok(), "{:?}", params.check());
        if let Err(difference) = compare(&params, size, &[options], &looks) {
            prop_assert!(false, "{}", difference);
        }
    }

    /// Images large enough for coarser levels, whose texture is about as strong as their noise.
    #[test]
    fn supported_costs_are_those_of_the_reference(
        params in params(),
        combined in any::<bool>(),
        window in prop::option::of((prop_oneof![Just(3u8), Just(5)], any::<bool>())),
        prior in prop::option::of((1u8..=3, 1u8..=32)),
        (min, count) in (-10i32..10, 1usize..=140),
        size in (32usize..200, 32usize..100),
        options in prop_oneof![Just(WHOLE), Just(BANDS), Just(SHARED)],
        looks in proptest::collection::vec(weak_looks(), 1..=3),
    ) {
        let params = supported(params
            .with_range(DisparityRange { min, count })
            .with_cost(if combined { COMBINED } else { Cost::Ad { truncation: 60, window: 1 } })
            .with_window(window.map(|(side, by_texture)| Window { side, by_texture }))
            .with_prior(prior.map(|(levels, strength)| Prior { levels, strength }))
            .with_surface(true)
            .with_p1(20)
            .with_p2(100)
            .with_p2_mode(P2Mode::Linear { min: 20, slope_16: 60 }));
        if let Err(difference) = compare(&params, size, &[options], &looks) {
            prop_assert!(false, "{}", difference);
        }
    }

    #[test]
    fn range_windows_give_the_bytes_of_the_reference(
        (params, size) in windowed(),
        options in prop_oneof![Just(WHOLE), Just(BANDS), Just(SHARED)],
        looks in proptest::collection::vec(looks(), 1..=2),
    ) {
        if let Err(difference) = compare(&supported(params), size, &[options], &looks) {
            prop_assert!(false, "{}", difference);
        }
    }

    /// With valid masks, which are applied before all filters.
    #[test]
    fn raw_pairs_are_rectified_to_the_bytes_of_the_reference(
        params in params().prop_map(supported),
        source in (1usize..90, 1usize..40),
        size in (1usize..90, 1usize..30),
        seed in 0u64..1000,
        looks in proptest::collection::vec(looks(), 1..=3),
    ) {
        let rectifier = Arc::new(wild_rectifier(source, size, seed));
        let Some(mut engine) = engine(&params, &PairSpec::raw(rectifier.clone()), WHOLE) else { return Ok(()) };
        let outcome = compare_rectified(&mut engine, &params, &rectifier, &looks);
        prop_assert!(outcome.is_ok(), "{:?} {:?} {:?}", outcome, source, size);
    }

    #[test]
    fn what_filters_remember_goes_to_the_cpu_and_back(
        params in params().prop_map(supported),
        smoothing in smoothings(),
        size in (1usize..70, 1usize..30),
        looks in proptest::collection::vec(looks(), 2..=6),
    ) {
        let params = params.with_smoothing(Some(smoothing));
        let spec = PairSpec::rectified(size.0, size.1);
        let Some(gpu) = engine(&params, &spec, WHOLE) else { return Ok(()) };
        let cpu = CpuEngine::new(&params, &spec, CpuOptions::default()).unwrap();
        let mut engines: [Box<dyn Engine>; 2] = [Box::new(gpu), Box::new(cpu)];
        let outcome = compare_relay(&mut engines, &params, size, &looks);
        prop_assert!(outcome.is_ok(), "{:?}", outcome);
    }

    #[test]
    fn what_is_made_of_a_stream_is_that_of_the_reference(
        (params, size, drift, pairs) in streams(),
    ) {
        let params = supported(params);
        let spec = PairSpec::rectified(size.0, size.1);
        let Some(mut gpu) = engine(&params, &spec, WHOLE) else { return Ok(()) };
        let outcome = compare_stream(&mut gpu, &params, drifting(size, drift, pairs));
        prop_assert!(outcome.is_ok(), "{:?} {:?} {:?}", outcome, drift, size);
        let cpu = CpuEngine::new(&params, &spec, CpuOptions::default()).unwrap();
        let mut engines: [Box<dyn Engine>; 2] = [Box::new(gpu), Box::new(cpu)];
        let outcome = compare_relay_of(&mut engines, &params, drifting(size, drift, pairs));
        prop_assert!(outcome.is_ok(), "{:?} {:?} {:?}", outcome, drift, size);
    }
}

/// Compares on an engine that predicts the prior maps itself.
fn compare_guided(
    network: &HalvedNetwork,
    params: &Params,
    options: WebGpuOptions,
    pairs: impl IntoIterator<Item = StereoPair>,
) -> Result<(), String> {
    let mut pairs = pairs.into_iter().peekable();
    let first = pairs.peek().expect("a pair");
    let spec = PairSpec::rectified(first.left.width(), first.left.height());
    let made =
        WebGpuEngine::with_network(params, &spec, Some(network), options, CpuOptions::default());
    let Some(mut engine) = present(made) else { return Ok(()) };
    compare_predicted(&mut engine, params, pairs, |pair| guided(network, params, pair))
}

proptest! {
    #![proptest_config(cases(4))]

    #[test]
    fn networks_on_the_device_give_the_bytes_of_the_reference(
        shape in shapes(),
        seed: u64,
        halvings in 0u32..=2,
        size in (32usize..100, 32usize..60),
        look in weak_looks(),
    ) {
        let network = random_network(&shape, &mut Dice(seed));
        let network = HalvedNetwork { network, halvings };
        let outcome = compare_guided(&network, &weak(), WHOLE, stream(size, &[look]));
        prop_assert!(outcome.is_ok(), "{:?} {:?}", outcome, size);
    }
}

#[test]
fn the_networks_of_the_program_give_the_bytes_of_the_reference() {
    for (cells, halvings, size) in
        [(Cells::Fine, 0, (67, 50)), (Cells::Coarse, 0, (133, 70)), (Cells::Coarse, 1, (90, 121))]
    {
        let network = HalvedNetwork { network: Network::own(cells, size), halvings };
        compare_guided(&network, &weak(), WHOLE, stream(size, &[POOR, NOISY])).unwrap();
    }
}

/// The host fills holes with the help of what the network predicts on the device.
#[test]
fn holes_are_filled_as_the_network_says() {
    let network = HalvedNetwork { network: Network::own(Cells::Coarse, (0, 0)), halvings: 0 };
    let filled = |rule| weak().with_uniqueness(40).with_fill(Some(Fill { rule, reach: 64 }));
    let size = (133, 70);
    let views = || stream(size, &[NOISY, POOR]);
    for rule in [FillRule::Network, FillRule::NetworkOrRays] {
        compare_guided(&network, &filled(rule), WHOLE, views()).unwrap();
    }
    let map = |rule| {
        let pair = guided(&network, &weak(), views().next().unwrap());
        match_next(&pair, &filled(rule), &mut History::default()).map
    };
    assert_ne!(map(FillRule::NetworkOrRays).values(), map(FillRule::Rays).values());
}

/// The network sees the images before the temporal stage, as on the CPU.
#[test]
fn networks_see_the_images_as_they_come() {
    let temporal = Temporal { mode: TemporalMode::Denoise, history: 4, degree: 1 };
    let network = HalvedNetwork { network: Network::own(Cells::Coarse, (0, 0)), halvings: 1 };
    let params = weak().with_temporal(Some(temporal));
    // The same scene, with other noise.
    let views = |noise: u64| {
        let noisy = |x: usize, y: usize| {
            let mixed = ((x + 200 * y) as u64 ^ noise << 32).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            (x * 73 % 90 + y * 151 % 70) as u8 + (mixed >> 59) as u8
        };
        let [left, right] = [0, 9].map(|shift| Image::from_fn(120, 70, |x, y| noisy(x + shift, y)));
        pair(left, right)
    };
    compare_guided(&network, &params, WHOLE, (0..5).map(views)).unwrap();
}

/// Raw pairs, on the engines that the program makes.
#[test]
fn the_program_takes_the_network_to_the_device() {
    let params = weak().with_prior_map(false);
    let options = Options { prior_from: PriorFrom::Learned(Cells::Coarse), ..Options::default() };
    let spec = PairSpec::raw(Arc::new(wild_rectifier((140, 90), (120, 70), 3)));
    let Some(mut gpu) = present(create(&Choice::Wgpu, &params, &spec, &options)) else { return };
    let mut cpu = create(&Choice::Cpu, &params, &spec, &options).unwrap();
    for engine in [&gpu, &cpu] {
        assert!(engine.description().ends_with("prior of the network, cells of 8x8 px"));
    }
    let rectifier = spec.rectifier.as_ref().unwrap();
    for look in [NOISY, POOR] {
        let [mut on_gpu, mut on_cpu] = [&mut gpu, &mut cpu].map(|engine| {
            let [left, right] = Eye::BOTH.map(|eye| rectifier.source_size(eye));
            let view = |(width, height), number| {
                let (left, right) = pictures(width, height, look);
                if number == 0 { left } else { right }
            };
            engine.submit(pair(view(left, 0), view(right, 1))).unwrap();
            engine.collect().unwrap().unwrap()
        });
        assert_eq!(on_gpu.disparity.values_mut(), on_cpu.disparity.values_mut());
    }
}

/// A fault in any shader of the network is noticed.
#[test]
fn broken_networks_are_noticed() {
    let shape = Shape {
        channels: [5, 21, 7, 40, 35],
        candidates: 11,
        groups: 3,
        kernel: 3,
        dilations: [2, 1],
    };
    let network = HalvedNetwork { network: random_network(&shape, &mut Dice(7)), halvings: 0 };
    let (params, size) = (weak(), (85, 46));
    let looks = [NOISY, Look { seed: 8, levels: 5, step: 1, shift: 4, noise: 40, white: false }];
    let pairs: Vec<_> = stream(size, &looks).map(|pair| guided(&network, &params, pair)).collect();
    let map = |pair| match_next(pair, &params, &mut History::default()).map;
    let expected: Vec<_> = pairs.iter().map(map).collect();
    let differs = |options: WebGpuOptions| {
        let spec = PairSpec::rectified(size.0, size.1);
        let cpu = CpuOptions::default();
        let made = WebGpuEngine::with_network(&params, &spec, Some(&network), options, cpu);
        let mut engine = present(made)?;
        Some(pairs.iter().zip(&expected).any(|(pair, expected)| {
            engine.submit(pair.copy()).unwrap();
            engine.collect().unwrap().unwrap().disparity.values() != expected.values()
        }))
    };
    let Some(differs_unbroken) = differs(WHOLE) else { return };
    assert!(!differs_unbroken);
    let changes = [
        ("planes", "(total + 4) / 9", "total / 9"),
        ("planes: enlarged", "vec2<i32>(sizes.image) - 1", "vec2<i32>(sizes.planes) - 1"),
        ("convolve: border", "all(at < layer.input)", "true"),
        ("convolve: taps of planes", "tap / kernel)", "tap % kernel)"),
        ("convolve: doubled", "vec2<u32>(group.doublings)", "vec2<u32>(0u)"),
        ("convolve: parts", "+ first_quad + lane", "+ lane"),
        ("convolve: right view", "view * group.view", "0u"),
        ("convolve: stride", ") * layer.stride;", ");"),
        ("convolve: bias", "(sum + ends[2u * quad])", "sum"),
        ("convolve: shift", "vec4<u32>(ends[2u * quad + 1u])", "vec4<u32>(9u)"),
        ("convolve: least", "vec4<i32>(layer.low)", "vec4<i32>(-4096)"),
        ("convolve: greatest", "vec4<i32>(layer.high)", "vec4<i32>(4095)"),
        ("convolve: added", "values + vec4<i32>(others)", "values"),
        ("convolve: logits", "bits.y << 16u", "bits.x << 16u"),
        ("convolve: steps", "begun * layer.channels + row", "row"),
        ("correlate", "d <= column", "d < column"),
        ("correlate: groups", "(0xffffffffu << before) & (0xffffffffu >> after)", "~0u"),
        ("decode: best", "value > largest", "value < largest"),
        ("decode: around", "best + head.reach + 1u", "best + head.reach"),
        ("decode: table", "head.entries - 1u", "0u"),
        ("decode: rounding", "(32u * moment + total)", "(32u * moment)"),
        ("interpolate: own", "i32(own & 0xffffu) * head.cell", "0"),
        ("interpolate: rounding", "(sum + 2 * head.cell)", "sum"),
    ];
    let missed: Vec<_> = changes
        .into_iter()
        .filter(|&(_, text, instead)| {
            differs(WebGpuOptions { mutation: Some((text, instead)), ..WHOLE }) == Some(false)
        })
        .collect();
    assert!(missed.is_empty(), "{missed:#?}");
}

/// Pairs in flight, what filters remember and the network are not lost with the device.
#[test]
fn the_cpu_goes_on_when_the_device_fails() {
    let smoothing = Smoothing { weight_256: 100, guard_16: 40 };
    let evidence = Evidence { strict: false };
    let params = usual().with_smoothing(Some(smoothing)).with_evidence(Some(evidence));
    goes_on(&params, None);
    let network = HalvedNetwork { network: Network::own(Cells::Coarse, (0, 0)), halvings: 1 };
    let fill = Fill { rule: FillRule::NetworkOrRays, reach: 64 };
    let params = weak().with_smoothing(Some(smoothing)).with_uniqueness(40).with_fill(Some(fill));
    goes_on(&params, Some(&network));
}

fn goes_on(params: &Params, network: Option<&HalvedNetwork>) {
    let size = (120, 40);
    let pairs = PairSpec::rectified(size.0, size.1);
    let made = WebGpuEngine::with_network(params, &pairs, network, WHOLE, CpuOptions::default());
    let Some(mut engine) = present(made) else { return };
    let looks =
        [NOISY, POOR, NOISY, POOR, NOISY, CONSTANT].map(|look| Look { levels: 100, ..look });
    let mut history = History::default();
    let expected: Vec<_> = stream(size, &looks)
        .map(|pair| match network {
            Some(network) => guided(network, params, pair),
            None => pair,
        })
        .map(|pair| match_next(&pair, params, &mut history).map)
        .collect();
    let mut expected = expected.iter();
    let mut check = |engine: &mut WebGpuEngine| {
        let matched = engine.collect().unwrap().expect("a pair in flight");
        assert_eq!(matched.disparity.values(), expected.next().unwrap().values());
    };
    for (number, pair) in stream(size, &looks).enumerate() {
        engine.submit(pair).unwrap();
        if number == 2 {
            engine.lose_device();
        }
        if number > 0 {
            check(&mut engine);
        }
    }
    check(&mut engine);
    assert!(engine.description().starts_with("CPU"), "{}", engine.description());
}

/// One pixel, one row, one column, and rows of no whole word.
#[test]
fn tiny_and_narrow_pictures() {
    for size in [(1, 1), (1, 9), (9, 1), (3, 2), (33, 31), (70, 33)] {
        for options in [WHOLE, BANDS, SHARED] {
            compare(&usual(), size, &[options], &[NOISY, CONSTANT, POOR]).unwrap();
        }
    }
}

/// Ranges about the number of candidates of a word, of a lane and of a group of lanes, and of all that there may be.
#[test]
fn ranges_around_the_lanes() {
    for count in [1, 3, 4, 5, 31, 33, 64, 65, 127, 129, 257, 1024] {
        let params = usual().with_range(DisparityRange { min: -2, count });
        compare(&params, (90, 5), &[WHOLE, SHARED], &[NOISY]).unwrap();
    }
}

/// NVIDIA's driver lost winners of the right view that are the only candidate of a word.
#[test]
fn a_candidate_with_padding_beside_it_wins() {
    let params = usual()
        .with_range(DisparityRange { min: -133, count: 137 })
        .with_cost(Cost::Ad { truncation: 136, window: 1 })
        .with_paths(Paths::Five)
        .with_p1(100)
        .with_p2(119)
        .with_p2_mode(P2Mode::InverseGradient)
        .with_uniqueness(0)
        .with_left_right(Some(2))
        .with_median(Median::Off);
    let look = Look {
        seed: 16_990_158_615_151_709_075,
        levels: 3,
        step: 31,
        shift: 4,
        noise: 6,
        white: true,
    };
    compare(&params, (40, 5), &[WHOLE, SHARED], &[look]).unwrap();
}

#[test]
fn what_shaders_cannot_do_is_refused_by_name() {
    let mutual = Cost::MutualInformation { truncation: 60 };
    let wide = Cost::Ad { truncation: 20, window: 3 };
    for (params, name) in [
        (usual().with_cost(mutual), "`cost=mi`"),
        (usual().with_cost(wide), "`ad_window`"),
        (usual().with_paths(Paths::Sixteen), "`paths=16`"),
        (usual().with_paths(Paths::None), "`paths=0`"),
    ] {
        let made =
            WebGpuEngine::new(&params, &PairSpec::rectified(64, 48), WHOLE, CpuOptions::default());
        let Err(error) = made else { panic!("{name} is not refused") };
        if error.downcast_ref::<NoDevice>().is_none() {
            let text = error.to_string();
            assert!(text.contains(name) && text.contains("engine=cpu"), "{text}");
            assert!(text.contains("cannot match with"), "{text}");
        }
    }
}

/// A fault in any shader is noticed, and the stage is named: each of these changes one shader.
#[test]
fn broken_shaders_are_noticed() {
    let params = usual()
        .with_cost(COMBINED)
        .with_range(DisparityRange { min: 0, count: 40 })
        .with_window(Some(Window { side: 5, by_texture: true }))
        .with_prior(Some(Prior { levels: 2, strength: 8 }))
        .with_prior_map(true)
        .with_surface(true)
        .with_p2_guide(Guide::Smoothed)
        .with_confidence(Some(60))
        .with_evidence(Some(Evidence { strict: false }))
        .with_spatial(Some(Spatial { reach: 5 }))
        .with_speckle(Some(Speckle { size: 30, range_16: 16 }));
    let size = (150, 70);
    let looks = [
        Look { seed: 3, levels: 12, step: 3, shift: 7, noise: 25, white: true },
        Look { seed: 8, levels: 5, step: 1, shift: 4, noise: 40, white: false },
    ];
    let changes = [
        ("half", "prior of level 1", WHOLE, "(sum + 2u) >> 2u", "sum >> 2u"),
        ("smooth", "aggregation", WHOLE, "var sum = 8u;", "var sum = 0u;"),
        (
            "compute_features",
            "cost volume",
            WHOLE,
            "is_centre || number == CENSUS_BITS",
            "number >= 9u",
        ),
        (
            "compute_blends",
            "texture",
            WHOLE,
            "min(3u * threshold - min(range",
            "min(4u * threshold - min(range",
        ),
        ("replace", "prior", WHOLE, "<= 16 * (MIN", "<= 0 * (MIN"),
        ("expect", "prior of level 1", WHOLE, "(2 * own + 8) >> 4u", "(2 * own) >> 4u"),
        ("compute_costs", "cost volume", WHOLE, "INTENSITY_WEIGHT * min(", "0u * min("),
        ("compute_costs: window", "texture", WHOLE, "max(id.y + k, RADIUS)", "max(id.y, RADIUS)"),
        (
            "compute_costs: prior",
            "prior of level 1",
            WHOLE,
            "distances(d + 1, e)",
            "distances(d, e)",
        ),
        ("aggregate_paths", "aggregation", WHOLE, "+ vec4<u32>(P1)", "+ vec4<u32>(P1 + 1u)"),
        ("aggregate_paths: surface", "surface", WHOLE, "slant > 0", "slant < 0"),
        ("aggregate_paths: bands", "aggregation", BANDS, "band.goes_on != 0u", "false"),
        (
            "select_disparities",
            "sub-pixel",
            WHOLE,
            "let least = best >> 10u;",
            "let least = (best >> 10u) + 9u;",
        ),
        ("select_disparities: right", "left-right of level 2", WHOLE, "~keys[c]", "~keys[0]"),
        (
            "check_consistency",
            "left-right of level 2",
            WHOLE,
            "- k) <= LEFT_RIGHT",
            "- k) < LEFT_RIGHT",
        ),
        (
            "check_consistency: saturated",
            "confidence",
            WHOLE,
            "levels.x >= WHITE &&",
            "levels.x > 255u &&",
        ),
        ("filter_confidence", "confidence", WHOLE, "min((greatest - value) >> 3u, 15)", "0"),
        ("filter_median", "median of level 2", WHOLE, "(count - 1) / 2", "count / 2"),
        (
            "filter_speckle",
            "speckle of level 2",
            WHOLE,
            "joins_left(i) && joins_up(i - 1u)",
            "joins_left(i)",
        ),
        (
            "filter_spatial",
            "spatial of level 2",
            WHOLE,
            "let over = sum + pairs;",
            "let over = sum;",
        ),
        ("lanes", "aggregation", WHOLE, "subgroupShuffleDown(number, 1u)", "number"),
        ("lanes without subgroups", "cost volume", SHARED, "slot ^ bits", "slot"),
        ("texture", "texture of level 1", WHOLE, "443u", "343u"),
        (
            "filter_evidence",
            "evidence",
            WHOLE,
            "9u * (2u * threshold - 5u)",
            "5u * (2u * threshold - 5u)",
        ),
        ("filter_evidence: rays", "evidence", WHOLE, "off <= tolerance", "off > tolerance"),
        ("pack", "cost volume", WHOLE, "(values.y << 16u)", "(values.x << 16u)"),
    ];
    notices_all(&params, size, &looks, &changes);
}

/// Likewise those of range windows.
#[test]
fn broken_range_windows_are_noticed() {
    let params = usual()
        .with_cost(COMBINED)
        .with_windows(true)
        .with_range(DisparityRange { min: -3, count: 130 })
        .with_window(Some(Window { side: 3, by_texture: false }))
        .with_prior(Some(Prior { levels: 1, strength: 4 }))
        .with_paths(Paths::Eight)
        .with_surface(true)
        .with_uniqueness(0)
        .with_left_right(None)
        .with_median(Median::Off)
        .with_subpixel(Subpixel::Parabola);
    let looks = [
        Look { seed: 3, levels: 90, step: 3, shift: 37, noise: 3, white: false },
        Look { seed: 8, levels: 120, step: 1, shift: 90, noise: 8, white: false },
        // Disparities are random.
        Look { seed: 9, levels: 200, step: 1, shift: 12, noise: 1, white: false },
    ];
    let changes = [
        ("count_blocks", "windows", WHOLE, "local, 1u, WINDOW_MARGIN", "local, 1u, 0"),
        ("count_blocks: parts", "windows", WHOLE, "place * parts / SIDE", "vec2<u32>(0u)"),
        ("choose: seen", "windows", WHOLE, "before[k] >= WINDOW_SEEN", "false"),
        ("choose: beside", "windows", WHOLE, "k < BLOCKS && before_it[", "false && before_it["),
        ("entered", "windows", WHOLE, "block(before, number ^ apart) == own", "apart == 0u"),
        ("bands", "windows", BANDS, "blocks_at(before, y - step.y)", "blocks_at(x, y)"),
        ("joins: below", "windows", WHOLE, "max(number, 1u) - 1u) + 1u == own", "0u) < 4096u"),
        ("joins: above", "windows", WHOLE, "min(number + 1u, 3u)) == own + 1u", "0u) < 4096u"),
        ("select: neighbours", "windows", WHOLE, "if (are_tried &&", "if (winner > 0u &&"),
    ];
    notices_all(&params, (150, 70), &looks, &changes);
}

/// A shader, the stage that differs, options, a text and what takes its place.
type Change = (&'static str, &'static str, WebGpuOptions, &'static str, &'static str);

/// Fails unless the maps are right, and each change shows in its stage.
fn notices_all(params: &Params, size: (usize, usize), looks: &[Look], changes: &[Change]) {
    compare(params, size, &[WHOLE, BANDS], looks).unwrap();
    let mut wrong = Vec::new();
    for &(what, stage, options, text, instead) in changes {
        let options = WebGpuOptions { mutation: Some((text, instead)), ..options };
        if engine(params, &PairSpec::rectified(size.0, size.1), options).is_none() {
            return;
        }
        let named = format!("the first stage that differs: {stage} (");
        match compare(params, size, &[options], looks) {
            Err(error) if error.contains(&named) => {}
            outcome => wrong.push(format!("{what}: {text}: {outcome:?}")),
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}
