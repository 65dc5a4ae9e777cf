//! Every specialisation of every kernel compiles without a GPU for the oldest and the newest
//! architecture and for some between.

mod occupancy {
    pub mod code;
    pub mod cubin;
    pub mod limits;
    pub mod sweeps;
}

use std::collections::HashSet;
use std::sync::Mutex;

use occupancy::sweeps;
use stereod_core::engine::HalvedNetwork;
use stereod_core::engine::cuda::{Job, Nvrtc, Properties, Target, Unit, compile, specialisations};
use stereod_core::matching::learned::Cells;
use stereod_core::rectify::Rectifier;
use stereod_core::rectify::RectifyMap;
use stereod_core::{
    BlockMeasure, BlockWindow, CensusWindow, Cost, DisparityRange, Evidence, Fill, FillRule, Guide,
    Median, P2Mode, Params, Paths, Prior, Smoothing, Spatial, Steady, StereoGeometry, Subpixel,
    Temporal, TemporalMode, Window,
};

/// Supported architectures: Turing, Ampere, Ada, Hopper, Blackwell.
const ARCHITECTURES: [u32; 8] = [75, 80, 86, 87, 89, 90, 100, 120];

const GEOMETRY: StereoGeometry = StereoGeometry {
    focal_px: 400.0,
    baseline_m: 0.1,
    centre_x_px: 32.0,
    centre_y_px: 24.0,
    right_centre_x_px: 32.0,
};

fn params(count: usize, paths: Paths) -> Params {
    let cost = Cost::Ad { truncation: 32, window: 1 };
    Params::bare(DisparityRange { min: 0, count }, cost, (7, 86))
        .with_paths(paths)
        .with_p2_mode(P2Mode::Linear { min: 3, slope_16: 40 })
        .with_uniqueness(5)
        .with_subpixel(Subpixel::Corrected)
        .with_left_right(Some(1))
        .with_median(Median::Three)
}

/// Parameters that between them use every branch of the kernels: path sets, costs, refinements, and
/// numbers of disparities below, at and above the usual ones.
fn variants() -> Vec<(Params, (usize, usize), Option<Rectifier>)> {
    let usual = (1280, 720);
    let mut variants = Vec::new();
    for paths in [Paths::Four, Paths::Five, Paths::Eight, Paths::Sixteen] {
        variants.push((params(128, paths), usual));
        variants.push((params(64, paths), (640, 480)));
    }
    for count in [1, 3, 33, 100, 256, 1024] {
        variants.push((params(count, Paths::Eight), usual));
    }
    for window in [3, 5, 7] {
        let cost = Cost::Ad { truncation: 255, window };
        let p2_mode = P2Mode::Fixed;
        variants.push((
            params(64, Paths::Five).with_cost(cost).with_p1(0).with_p2(0).with_p2_mode(p2_mode),
            usual,
        ));
    }
    for (measure, width, count, paths) in [
        (BlockMeasure::Sad, 11, 128, Paths::None),
        (BlockMeasure::Ssd, 3, 64, Paths::None),
        (BlockMeasure::ZeroMeanSad, 5, 1024, Paths::None),
        (BlockMeasure::ZeroMeanSsd, 11, 192, Paths::None),
        (BlockMeasure::Sad, 7, 100, Paths::Eight),
        (BlockMeasure::ZeroMeanSad, 9, 64, Paths::Four),
        (BlockMeasure::ZeroMeanSsd, 9, 300, Paths::Sixteen),
    ] {
        let window = BlockWindow { width, height: 7 };
        let cost = Cost::Block { measure, window, truncation: 64 };
        variants.push((params(count, paths).with_cost(cost), usual));
    }
    let cost = Cost::MutualInformation { truncation: 60 };
    for (count, paths) in [(64, Paths::Four), (128, Paths::Eight), (33, Paths::None)] {
        variants.push((params(count, paths).with_cost(cost), usual));
    }
    let sum_window = BlockWindow { width: 9, height: 5 };
    variants.push((params(33, Paths::None).with_sum_window(sum_window), usual));
    let bare = params(48, Paths::Four)
        .with_uniqueness(0)
        .with_subpixel(Subpixel::Off)
        .with_left_right(None)
        .with_median(Median::Off)
        .with_p2_mode(P2Mode::InverseGradient);
    variants.push((bare, (1, 1)));
    variants.push((params(64, Paths::Eight).with_median(Median::Five), (8192, 4096)));
    let smoothing = Some(Smoothing { weight_256: 77, guard_16: 16 });
    variants.push((params(64, Paths::Eight).with_smoothing(smoothing), usual));
    for (confidence, strength) in [(None, 1), (Some(0), 60)] {
        let steady = Some(Steady { strength });
        variants
            .push((params(64, Paths::Four).with_steady(steady).with_confidence(confidence), usual));
    }
    for (mode, history, degree) in [
        (TemporalMode::Denoise, 20, 2),
        (TemporalMode::Denoise, 64, 3),
        (TemporalMode::Whiten, 2, 0),
        (TemporalMode::Whiten, 8, 1),
    ] {
        let temporal = Some(Temporal { mode, history, degree });
        variants.push((params(64, Paths::Four).with_temporal(temporal), usual));
    }
    for (confidence, count) in [(0, 64), (40, 3), (255, 1024)] {
        variants.push((params(count, Paths::Eight).with_confidence(Some(confidence)), usual));
    }
    for (strict, confidence) in [(false, None), (false, Some(0)), (true, Some(9))] {
        let evidence = Some(Evidence { strict });
        variants.push((
            params(64, Paths::Eight).with_evidence(evidence).with_confidence(confidence),
            usual,
        ));
    }
    for reach in [1, 16] {
        let spatial = Some(Spatial { reach });
        variants.push((params(64, Paths::Eight).with_spatial(spatial), usual));
    }
    for rule in [FillRule::Row, FillRule::Rays, FillRule::Gaps] {
        let fill = Some(Fill { rule, reach: 64 });
        variants.push((params(64, Paths::Eight).with_fill(fill), usual));
    }
    for rule in [FillRule::Network, FillRule::NetworkOrRays] {
        let fill = Some(Fill { rule, reach: 64 });
        variants.push((Params::default().with_prior_map(true).with_fill(fill), usual));
    }
    let prior = |levels, strength| Some(Prior { levels, strength });
    let window = |side, by_texture| Some(Window { side, by_texture });
    let combined = Params::default().with_window(window(5, true)).with_prior(prior(2, 8));
    for (window, prior, paths, count, size) in [
        (window(5, false), None, Paths::Four, 129, usual),
        (window(3, true), None, Paths::Five, 40, (320, 240)),
        (None, prior(1, 32), Paths::Eight, 512, (320, 240)),
    ] {
        let p2_guide = Guide::Smoothed;
        variants.push((
            params(count, paths).with_window(window).with_prior(prior).with_p2_guide(p2_guide),
            size,
        ));
    }
    for count in [64, 128, 1024] {
        let range = DisparityRange { min: 0, count };
        variants.push((combined.clone().with_range(range), usual));
    }
    for window in [
        CensusWindow::Symmetric9x7,
        CensusWindow::Plain { width: 5, height: 5 },
        CensusWindow::Plain { width: 9, height: 7 },
    ] {
        variants.push((params(128, Paths::Eight).with_cost(Cost::Census { window }), usual));
    }
    let negative = DisparityRange { min: -70, count: 77 };
    variants.push((params(64, Paths::Eight).with_range(negative), (33, 9)));
    let mut variants: Vec<_> =
        variants.into_iter().map(|(params, size)| (params, size, None)).collect();
    // Rectified, with pixels that no camera sees and without.
    for unseen in [0, 1] {
        let size = (64, 48);
        let position = |x, y| (x >= unseen).then_some([x as f64, y as f64]);
        let map = RectifyMap::from_positions(size, size, position).unwrap();
        let rectifier = Rectifier::from_maps(map.clone(), map, GEOMETRY).unwrap();
        let fill = Some(Fill { rule: FillRule::Rays, reach: 64 });
        let evidence = Some(Evidence { strict: false });
        let params = params(64, Paths::Eight).with_evidence(evidence).with_fill(fill);
        variants.push((params, size, Some(rectifier)));
    }
    variants
}

#[test]
fn every_specialisation_compiles() {
    let nvrtc = match Nvrtc::find() {
        Ok(nvrtc) => nvrtc,
        Err(missing) => return eprintln!("skipped: {missing}"),
    };
    let mut work: Vec<(u32, Unit)> = Vec::new();
    let networks =
        [Cells::Fine, Cells::Coarse].map(|cells| HalvedNetwork::own(cells, (640, 480), 63, 0));
    let mut seen = HashSet::new();
    for (i, sm) in ARCHITECTURES.into_iter().enumerate() {
        let properties = Properties::typical(sm);
        let outermost = i == 0 || i + 1 == ARCHITECTURES.len();
        for (j, (params, size, rectifier)) in variants().into_iter().enumerate() {
            // A kernel rarely compiles for both ends but not between, so one of those is enough for
            // each.
            if !outermost && i != 1 + j % (ARCHITECTURES.len() - 2) {
                continue;
            }
            params.check().unwrap();
            let network = params.prior.map(|_| &networks[j % 2]);
            let job = Job { params: &params, size, rectifier: rectifier.as_ref(), network };
            let units = specialisations(&job, &properties);
            assert!(!units.is_empty());
            let names: HashSet<&str> = units.iter().map(|unit| unit.name.as_str()).collect();
            assert_eq!(names.len(), units.len(), "names of units are unique: {units:?}");
            // The same source with the same macros needs to be compiled only once, or once per chip
            // if its code depends on the chip.
            let is_new = |unit: &Unit| {
                let chip = differs_by_chip(unit.file).then_some(sm);
                seen.insert((chip, unit.file, unit.defines.clone()))
            };
            work.extend(units.into_iter().filter(is_new).map(|unit| (sm, unit)));
        }
    }
    let count = work.len();
    let work = Mutex::new(work);
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                loop {
                    let Some((sm, unit)) = work.lock().unwrap().pop() else { break };
                    let cubin = compile(nvrtc, &unit, Target::Real(sm))
                        .unwrap_or_else(|error| panic!("{unit:?}: {error:#}"));
                    assert_eq!(architecture(&cubin), sm, "{unit:?}");
                    sweeps::check(&unit, &cubin, &Properties::typical(sm));
                }
            });
        }
    });
    eprintln!("{} units compiled with NVRTC {}", count, nvrtc.version());
}

/// Reports whether the code of a kernel or its layout depends on the chip (`__CUDA_ARCH__`,
/// `Properties`): those with vectors of candidates, those that multiply matrices, and the one that sums
/// over a warp with an instruction of newer chips.
fn differs_by_chip(file: &str) -> bool {
    let depending = ["compute_", "aggregate_", "select_", "temporal_shift", "learned_convolution"];
    depending.iter().any(|beginning| file.starts_with(beginning))
}

/// The values that geometry.rs computes are compared with the kernels' own formulas.
#[test]
fn a_layout_that_the_kernels_do_not_share_is_refused() {
    let nvrtc = match Nvrtc::find() {
        Ok(nvrtc) => nvrtc,
        Err(missing) => return eprintln!("skipped: {missing}"),
    };
    let window = Some(Window { side: 5, by_texture: true });
    let steady = Some(Steady { strength: 5 });
    let temporal = Some(Temporal { mode: TemporalMode::Denoise, history: 8, degree: 2 });
    let combined =
        Params::default().with_window(window).with_steady(steady).with_temporal(temporal);
    let mut refused = HashSet::new();
    for params in [combined, params(64, Paths::Four), params(64, Paths::Sixteen)] {
        let job = Job { params: &params, size: (1280, 720), rectifier: None, network: None };
        for unit in specialisations(&job, &Properties::typical(90)) {
            for (i, (name, value)) in unit.defines.iter().enumerate() {
                if !name.starts_with("EXPECTED_") {
                    continue;
                }
                let mut other = unit.clone();
                other.defines[i].1 = (value.parse::<u32>().unwrap() + 4).to_string();
                let error = compile(nvrtc, &other, Target::Real(90)).expect_err(name);
                assert!(format!("{error:#}").contains("geometry.rs"), "{name}: {error:#}");
                refused.insert((unit.file, name.clone()));
            }
        }
    }
    // Five sizes of the cost's features in each of six files, those of the blocks and volumes, and
    // those of sums and magnitudes of the stages in time.
    assert_eq!(refused.len(), 6 * 5 + 2 + 6 + 4 + 1 + 4, "{refused:?}");
}

/// The architecture in a cubin's ELF header. Up to NVRTC 12 it is the lowest byte of the flags,
/// later the second.
fn architecture(cubin: &[u8]) -> u32 {
    assert_eq!(&cubin[..4], b"\x7fELF");
    assert_eq!(u16::from_le_bytes([cubin[18], cubin[19]]), 190, "a CUDA object");
    let flags = u32::from_le_bytes(cubin[48..52].try_into().unwrap());
    let (low, second) = (flags & 0xff, flags >> 8 & 0xff);
    if ARCHITECTURES.contains(&second) { second } else { low }
}
