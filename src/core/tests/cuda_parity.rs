//! The CUDA engine gives the bytes of the scalar reference. Without a GPU the tests say that they are
//! skipped; STEREOD_TEST_CUDA=required makes that a failure.

mod common {
    pub mod guided;
    pub mod networks;
    pub mod parity;
    pub mod streams;
}

use std::collections::VecDeque;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use common::guided::{guided, weak};
use common::networks::{Dice, random_network, shapes};
use common::parity::{
    self, CONSTANT, Look, NOISY, POOR, cases, compare_relay, compare_relay_of, looks, pair, params,
    pictures, smoothings, usual, weak_looks, wild_rectifier, windowed,
};
use common::streams::{compare_stream, drifting, streams};
use proptest::prelude::*;
use stereod_core::engine::cpu::{CpuEngine, CpuOptions};
use stereod_core::engine::cuda::{Cache, CudaEngine, CudaOptions, Unusable, list};
use stereod_core::engine::difference::compare_maps;
use stereod_core::engine::{Engine, HalvedNetwork, PairSpec};
use stereod_core::frame::Image;
use stereod_core::matching::learned::{Cells, Network};
use stereod_core::matching::{History, match_next};
use stereod_core::{
    Cost, DisparityMap, DisparityRange, Median, P2Mode, Params, Paths, Prior, Window,
};

/// An engine, or `None` where this machine cannot have one.
fn engine(params: &Params, size: (usize, usize), options: &CudaOptions) -> Option<CudaEngine> {
    present(CudaEngine::new(params, &PairSpec::rectified(size.0, size.1), options))
}

fn present(made: anyhow::Result<CudaEngine>) -> Option<CudaEngine> {
    match made {
        Ok(engine) => Some(engine),
        Err(error) => match error.downcast_ref::<Unusable>() {
            Some(reason) => {
                let required = std::env::var_os("STEREOD_TEST_CUDA").is_some();
                assert!(!required, "STEREOD_TEST_CUDA is set, but: {reason}");
                eprintln!("skipped: {reason}");
                None
            }
            None => panic!("{error:#}"),
        },
    }
}

/// Compares with two and with three pairs in flight; `false` if skipped.
fn compare(params: &Params, size: (usize, usize), looks: &[Look]) -> Result<bool, String> {
    let mut expected = None;
    for in_flight in [2, 3] {
        let options = CudaOptions { in_flight, ..CudaOptions::default() };
        let Some(mut engine) = engine(params, size, &options) else { return Ok(false) };
        let expected = expected.get_or_insert_with(|| parity::expected(params, size, looks));
        let make = |params: &Params, pairs: &PairSpec| -> anyhow::Result<Box<dyn Engine>> {
            Ok(Box::new(CudaEngine::new(params, pairs, &options)?))
        };
        for profiling in [false, true] {
            engine.set_profiling(profiling);
            parity::compare(&mut engine, params, size, looks, expected, &make)
                .map_err(|difference| format!("{difference} {options:?}"))?;
        }
    }
    Ok(true)
}

fn compare_all(params: &Params, size: (usize, usize)) -> bool {
    params.check().unwrap();
    compare(params, size, &[NOISY, CONSTANT, POOR, NOISY, POOR]).unwrap_or_else(|e| panic!("{e}"))
}

proptest! {
    #![proptest_config(cases(60))]

    #[test]
    fn the_cuda_engine_gives_the_bytes_of_the_reference(
        params in params(),
        size in prop_oneof![3 => (1usize..70, 1usize..30), 1 => (1usize..400, 1usize..40)],
        looks in proptest::collection::vec(prop_oneof![3 => looks(), 1 => weak_looks()], 1..=5),
    ) {
        prop_assert!(params.check().is_ok(), "{:?}", params.check());
        if let Err(difference) = compare(&params, size, &looks) {
            prop_assert!(false, "{}", difference);
        }
    }
}

proptest! {
    #![proptest_config(cases(30))]

    /// Images large enough for coarser levels, whose texture is about as strong as their noise.
    #[test]
    fn supported_costs_are_those_of_the_reference(
        params in params(),
        window in prop::option::of((prop_oneof![Just(3u8), Just(5)], any::<bool>())),
        prior in prop::option::of((1u8..=3, 1u8..=32)),
        truncation in 1u8..=60,
        (min, count) in (-10i32..10, 1usize..=140),
        size in (32usize..200, 32usize..100),
        looks in proptest::collection::vec(weak_looks(), 1..=4),
    ) {
        let params = params.clone()
            .with_range(DisparityRange { min, count })
            .with_cost(Cost::Ad { truncation, window: 1 })
            .with_window(window.map(|(side, by_texture)| Window { side, by_texture }))
            .with_prior(prior.map(|(levels, strength)| Prior { levels, strength }))
            .with_p1(params.p1.min(30))
            .with_p2(params.p2.clamp(30, 120))
            .with_p2_mode(P2Mode::Linear { min: 20, slope_16: 60 })
            .with_paths(if params.is_local() { Paths::Four } else { params.paths });
        if let Err(difference) = compare(&params, size, &looks) {
            prop_assert!(false, "{}", difference);
        }
    }
}

proptest! {
    #![proptest_config(cases(60))]

    #[test]
    fn range_windows_give_the_bytes_of_the_reference(
        (params, size) in windowed(),
        looks in proptest::collection::vec(looks(), 1..=3),
    ) {
        if let Err(difference) = compare(&params, size, &looks) {
            prop_assert!(false, "{}", difference);
        }
    }
}

/// A path that begins at the right border, in a tile that the row before does not have.
#[test]
fn range_windows_begin_paths_beside_the_picture() {
    let look = Look {
        seed: 2_682_554_729_261_049_285,
        levels: 188,
        step: 10,
        shift: 2,
        noise: 5,
        white: true,
    };
    let params = usual()
        .with_windows(true)
        .with_range(DisparityRange { min: -185, count: 229 })
        .with_cost(Cost::MutualInformation { truncation: 125 })
        .with_window(Some(Window { side: 5, by_texture: false }))
        .with_prior(Some(Prior { levels: 1, strength: 2 }))
        .with_paths(Paths::Eight)
        .with_p1(82)
        .with_p2(128)
        .with_p2_mode(P2Mode::InverseGradient)
        .with_surface(false);
    compare(&params, (116, 55), &[look]).unwrap_or_else(|difference| panic!("{difference}"));
}

proptest! {
    #![proptest_config(cases(25))]

    #[test]
    fn raw_pairs_are_rectified_to_the_bytes_of_the_reference(
        params in params(),
        source in (1usize..90, 1usize..40),
        size in (1usize..90, 1usize..30),
        seed in 0u64..1000,
        looks in proptest::collection::vec(looks(), 1..=3),
    ) {
        prop_assert!(params.check().is_ok(), "{:?}", params.check());
        let rectifier = Arc::new(wild_rectifier(source, size, seed));
        let options = CudaOptions { in_flight: 2, ..CudaOptions::default() };
        let made = CudaEngine::new(&params, &PairSpec::raw(rectifier.clone()), &options);
        let Some(mut engine) = present(made) else { return Ok(()) };
        if let Err(difference) =
            parity::compare_rectified(&mut engine, &params, &rectifier, &looks)
        {
            prop_assert!(false, "{} {:?} {:?}", difference, source, size);
        }
    }
}

proptest! {
    #![proptest_config(cases(25))]

    #[test]
    fn what_filters_remember_goes_to_the_cpu_and_back(
        params in params(),
        smoothing in smoothings(),
        size in (1usize..70, 1usize..30),
        looks in proptest::collection::vec(looks(), 2..=6),
    ) {
        let params = params.with_smoothing(Some(smoothing));
        let options = CudaOptions { in_flight: 2, ..CudaOptions::default() };
        let Some(cuda) = engine(&params, size, &options) else { return Ok(()) };
        let pairs = PairSpec::rectified(size.0, size.1);
        let cpu = CpuEngine::new(&params, &pairs, CpuOptions::default()).unwrap();
        let mut engines: [Box<dyn Engine>; 2] = [Box::new(cuda), Box::new(cpu)];
        let outcome = compare_relay(&mut engines, &params, size, &looks);
        prop_assert!(outcome.is_ok(), "{:?}", outcome);
    }
}

proptest! {
    #![proptest_config(cases(40))]

    #[test]
    fn what_is_made_of_a_stream_is_that_of_the_reference(
        (params, size, drift, pairs) in streams(),
    ) {
        let Some(mut cuda) = engine(&params, size, &CudaOptions::default()) else { return Ok(()) };
        let outcome = compare_stream(&mut cuda, &params, drifting(size, drift, pairs));
        prop_assert!(outcome.is_ok(), "{:?} {:?} {:?}", outcome, drift, size);
        let spec = PairSpec::rectified(size.0, size.1);
        let cpu = CpuEngine::new(&params, &spec, CpuOptions::default()).unwrap();
        let mut engines: [Box<dyn Engine>; 2] = [Box::new(cuda), Box::new(cpu)];
        let outcome = compare_relay_of(&mut engines, &params, drifting(size, drift, pairs));
        prop_assert!(outcome.is_ok(), "{:?} {:?} {:?}", outcome, drift, size);
    }
}

/// Compares maps that a network on the device guides with those of the reference; `false` if skipped.
fn compare_guided(
    network: &HalvedNetwork,
    params: &Params,
    size: (usize, usize),
    looks: &[Look],
) -> Result<bool, String> {
    let options = CudaOptions { in_flight: 2, ..CudaOptions::default() };
    let spec = PairSpec::rectified(size.0, size.1);
    let made = CudaEngine::with_network(params, &spec, Some(network), &options);
    let Some(mut engine) = present(made) else { return Ok(false) };
    for &look in looks {
        let (left, right) = pictures(size.0, size.1, look);
        let expected = guided(network, params, pair(left.copy(), right.copy()));
        let expected = match_next(&expected, params, &mut History::default()).map;
        engine.submit(pair(left, right)).unwrap();
        let got = engine.collect().unwrap().unwrap();
        compare_maps(&expected, &got.disparity)
            .map_err(|difference| format!("{difference:#} {size:?} {look:?}"))?;
    }
    Ok(true)
}

proptest! {
    #![proptest_config(cases(40))]

    #[test]
    fn networks_on_the_device_give_the_bytes_of_the_reference(
        shape in shapes(),
        seed: u64,
        halvings in 0u32..=2,
        size in (32usize..150, 32usize..90),
        looks in proptest::collection::vec(weak_looks(), 1..=3),
    ) {
        let network = random_network(&shape, &mut Dice(seed));
        let network = HalvedNetwork { network, halvings };
        let outcome = compare_guided(&network, &weak(), size, &looks);
        prop_assert!(outcome.is_ok(), "{:?}", outcome);
    }
}

#[test]
fn the_networks_of_the_program_give_the_bytes_of_the_reference() {
    for (cells, halvings, size) in
        [(Cells::Fine, 0, (131, 75)), (Cells::Coarse, 0, (133, 70)), (Cells::Coarse, 1, (90, 121))]
    {
        let network = HalvedNetwork { network: Network::own(cells, size), halvings };
        let outcome = compare_guided(&network, &weak(), size, &[POOR, NOISY]);
        outcome.unwrap_or_else(|difference| panic!("{difference}"));
    }
}

#[test]
fn tiny_and_narrow_pictures() {
    for paths in [Paths::Four, Paths::Five, Paths::Eight] {
        let params = usual().with_paths(paths).with_median(Median::Five);
        for size in [(1, 1), (1, 40), (40, 1), (2, 2), (33, 9), (63, 8), (5, 17), (257, 3)] {
            if !compare_all(&params, size) {
                return;
            }
        }
    }
}

#[test]
fn ranges_around_the_warps_and_beyond_the_width() {
    for count in [1, 2, 3, 15, 16, 17, 31, 33, 63, 64, 65, 127, 128, 129, 257, 511] {
        for min in [-70, 0, 5] {
            let params = usual().with_range(DisparityRange { min, count });
            if !compare_all(&params, (50, 10)) {
                return;
            }
        }
    }
    let params = usual().with_range(DisparityRange { min: -100, count: 1024 });
    compare_all(&params, (70, 9));
}

#[test]
fn extreme_costs_and_penalties() {
    let cases = [(255, 0, 0), (1, 254, 254), (127, 128, 128), (128, 0, 127), (1, 0, 254)];
    for paths in [Paths::Four, Paths::Five, Paths::Eight] {
        for (truncation, p1, p2) in cases {
            for window in [1, 3, 7] {
                let cost = Cost::Ad { truncation, window };
                let params = usual()
                    .with_cost(cost)
                    .with_p1(p1)
                    .with_p2(p2)
                    .with_p2_mode(P2Mode::Fixed)
                    .with_paths(paths);
                if !compare_all(&params, (41, 18)) {
                    return;
                }
            }
        }
    }
}

#[test]
fn pictures_of_the_usual_sizes() {
    for (size, count) in [((640, 480), 64), ((752, 480), 100), ((1280, 720), 128)] {
        let params = usual().with_range(DisparityRange { min: 0, count });
        let options = CudaOptions::default();
        let Some(mut engine) = engine(&params, size, &options) else { return };
        // The reference takes seconds for these; the CPU engine is its equal (tests/engine_parity.rs).
        let mut cpu =
            CpuEngine::new(&params, &PairSpec::rectified(size.0, size.1), CpuOptions::default())
                .unwrap();
        let looks: Vec<Look> = (1..8).map(|seed| Look { seed, shift: 30, ..NOISY }).collect();
        let mut expected = VecDeque::new();
        for look in looks {
            let (left, right) = pictures(size.0, size.1, look);
            expected.push_back(on_cpu(&mut cpu, size, look));
            engine.submit(pair(left, right)).unwrap();
            if expected.len() == engine.depth() {
                check_next(&mut engine, &mut expected);
            }
        }
        while !expected.is_empty() {
            check_next(&mut engine, &mut expected);
        }
    }
}

fn on_cpu(cpu: &mut CpuEngine, (width, height): (usize, usize), look: Look) -> DisparityMap {
    let (left, right) = pictures(width, height, look);
    cpu.submit(pair(left, right)).unwrap();
    cpu.collect().unwrap().unwrap().disparity
}

fn check_next(engine: &mut CudaEngine, expected: &mut VecDeque<DisparityMap>) {
    let matched = engine.collect().unwrap().unwrap();
    let expected = expected.pop_front().unwrap();
    compare_maps(&expected, &matched.disparity).unwrap_or_else(|e| panic!("{e}"));
}

#[test]
fn what_cannot_be_matched_is_refused_by_name() {
    let options = CudaOptions::default();
    let Some(mut engine) = engine(&usual(), (30, 20), &options) else { return };
    let flat = |width, height| Image::from_fn(width, height, |_, _| 0);
    let error = engine.submit(pair(flat(31, 20), flat(31, 20))).unwrap_err().to_string();
    assert!(error.contains("31x20") && error.contains("30x20"), "{error}");
    assert!(engine.collect().unwrap().is_none());
    for _ in 0..engine.depth() {
        engine.submit(pair(flat(30, 20), flat(30, 20))).unwrap();
    }
    let error = engine.submit(pair(flat(30, 20), flat(30, 20))).unwrap_err().to_string();
    assert!(error.contains("3 pairs at a time"), "{error}");
    // Dropped with frames in flight: it waits for them.
    drop(engine);

    let none = CudaOptions { device: Some(9999), ..CudaOptions::default() };
    let error =
        CudaEngine::new(&usual(), &PairSpec::rectified(30, 20), &none).err().unwrap().to_string();
    assert!(error.contains("no CUDA device 9999; this machine has "), "{error}");
    let huge = usual().with_range(DisparityRange { min: 0, count: 1024 });
    let many = CudaOptions { in_flight: 100_000, ..CudaOptions::default() };
    let error =
        CudaEngine::new(&huge, &PairSpec::rectified(4096, 4096), &many).err().unwrap().to_string();
    assert!(error.contains("too little free memory") && error.contains("`engine=cpu`"), "{error}");
}

#[test]
fn maps_outlive_their_engine() {
    let options = CudaOptions { cache: Cache::off(), ..CudaOptions::default() };
    let Some(mut engine) = engine(&usual(), (64, 48), &options) else { return };
    let (left, right) = pictures(64, 48, NOISY);
    engine.submit(pair(left, right)).unwrap();
    let matched = engine.collect().unwrap().unwrap();
    assert!(matched.device_time.is_some());
    let names: Vec<_> = matched.stages.iter().map(|(name, _)| *name).collect();
    assert_eq!(names, ["upload", "kernels", "download"]);
    drop(engine);
    let copy = matched.disparity.values().to_vec();
    let freed = std::thread::spawn(move || drop(matched));
    freed.join().unwrap();
    assert_eq!(copy.len(), 64 * 48);
}

/// As when a run is tuned: the images lie in memory lent by an engine that no longer exists.
#[test]
fn pictures_outlive_the_engine_that_lent_their_memory() {
    let options = CudaOptions { cache: Cache::off(), ..CudaOptions::default() };
    let Some(first) = engine(&usual(), (64, 48), &options) else { return };
    let pool = stereod_core::pool::Pool::new();
    pool.take_from(first.picture_memory().expect("a device has memory of its own"));
    let (left, right) = pictures(64, 48, NOISY);
    let lent = [&left, &right].map(|picture| {
        let mut pixels = pool.take(picture.pixels().len());
        pixels.copy_from_slice(picture.pixels());
        assert!(pixels.is_pinned());
        Image::new(64, 48, pixels)
    });
    let other = usual().with_p1(usual().p1 + 1).with_p2(usual().p2.max(usual().p1 + 1));
    let Some(mut second) = engine(&other, (64, 48), &options) else { return };
    drop(first);
    let [lent_left, lent_right] = lent;
    second.submit(pair(lent_left, lent_right)).unwrap();
    let matched = second.collect().unwrap().unwrap();
    let mut cpu =
        CpuEngine::new(&other, &PairSpec::rectified(64, 48), CpuOptions::default()).unwrap();
    let expected = on_cpu(&mut cpu, (64, 48), NOISY);
    compare_maps(&expected, &matched.disparity).unwrap_or_else(|e| panic!("{e}"));
    // The pool continues with its remaining memory.
    assert_eq!(pool.take(64 * 48).len(), 64 * 48);
}

/// Many frames of changing content, three in flight. At random frames the map's hash equals that of
/// the CPU engine, and neither the device's nor the process's memory grows. STEREOD_SOAK_FRAMES
/// sets the number of frames (20000), STEREOD_SOAK_MULTIPROCESSORS the part of the device (all).
#[test]
#[ignore = "takes minutes; for a machine with a GPU"]
fn cuda_soak() {
    let frames = std::env::var("STEREOD_SOAK_FRAMES").map_or(20_000, |n| n.parse().unwrap());
    let size = (640, 480);
    let params = usual();
    let part = std::env::var("STEREOD_SOAK_MULTIPROCESSORS").ok().map(|n| n.parse().unwrap());
    let options = CudaOptions { multiprocessors: part, ..CudaOptions::default() };
    let Some(mut engine) = engine(&params, size, &options) else { return };
    let mut cpu =
        CpuEngine::new(&params, &PairSpec::rectified(size.0, size.1), CpuOptions::default())
            .unwrap();
    let look = |seed: u64| {
        // Grey levels, shift and noise change with the frame too.
        let seed = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
        let [levels, step, shift, noise] = [8, 16, 24, 32].map(|bits| (seed >> bits) as u8);
        Look {
            seed,
            levels: levels.max(2),
            step: step % 60 + 1,
            shift: usize::from(shift % 40),
            noise: u64::from(noise % 8),
            white: seed.is_multiple_of(3),
        }
    };
    let device = list().unwrap().remove(0).open().unwrap();
    let free_bytes = || device.memory().unwrap().0;
    // Drawing a frame takes far longer than matching it: content changes every eighth.
    let mut drawn = (u64::MAX, pictures(8, 8, NOISY));
    let (mut checked, mut baseline) = (0u64, None);
    let mut submitted = 0u64;
    for collected in 0..frames {
        while submitted < frames && submitted < collected + engine.depth() as u64 {
            if drawn.0 != submitted / 8 {
                drawn = (submitted / 8, pictures(size.0, size.1, look(submitted / 8)));
            }
            let copy = |image: &Image| Image::from_vec(size.0, size.1, image.pixels().to_vec());
            engine.submit(pair(copy(&drawn.1.0), copy(&drawn.1.1))).unwrap();
            submitted += 1;
        }
        let matched = engine.collect().unwrap().unwrap();
        if collected.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 32 & 63 == 0 {
            let expected = on_cpu(&mut cpu, size, look(collected / 8));
            assert_eq!(hash(&matched.disparity), hash(&expected), "frame {collected}");
            checked += 1;
        }
        if collected == frames / 10 {
            baseline = Some((free_bytes(), resident_kib()));
        }
    }
    let (free, resident) = baseline.expect("enough frames");
    let (free_now, resident_now) = (free_bytes(), resident_kib());
    eprintln!(
        "{frames} frames, {checked} compared; GPU memory free {free} then {free_now} bytes, resident \
         {resident} then {resident_now} KiB"
    );
    assert!(checked > frames / 200);
    assert_eq!(free_now, free, "memory of the device");
    assert!(resident_now < resident + 16 * 1024, "memory of the process");
}

fn hash(map: &DisparityMap) -> u64 {
    let mut hasher = DefaultHasher::new();
    map.values().hash(&mut hasher);
    hasher.finish()
}

/// Resident memory of this process in KiB; 0 if the system does not report it.
fn resident_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmRSS:"));
    line.and_then(|line| line.split_whitespace().nth(1)?.parse().ok()).unwrap_or(0)
}
