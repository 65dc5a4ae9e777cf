//! The stages of matching, in order, as kernels, buffers and launches for pairs of a size with a set of
//! parameters on a device.
//!
//! | stage | file here | kernels |
//! | --- | --- | --- |
//! | `compute_costs` | `costs.rs` | `compute_*.cu`, `cost_*.cuh` |
//! | `aggregate_costs` | `aggregation.rs`, `sweeps.rs` | `aggregate_*.cu` |
//! | `select_disparities`, `refine_subpixel` | `selection.rs` | `winner.cuh`, `select_disparities.cu` |
//! | `check_consistency` | `filters.rs` | `check_consistency.cu` |
//! | `filter` | `filters.rs` | `filter_*.cu` |
//! | learned prior | `learned.rs` | `learned_*.cu` |
//!
//! There are three ways to aggregate. *Sweeps* are the fast one: the horizontal paths are stored while two
//! sweeps run towards each other, and winners are selected after they pass each other. If a block of a sweep
//! does not fit, and for 16 paths, all paths are added to sums of the whole picture. Without paths, costs are
//! summed over windows.
//!
//! Coarser levels, with maps that support the costs of the finer ones, are matched before them in the same
//! way (`levels.rs`).

mod aggregation;
mod builder;
mod costs;
pub mod filters;
mod information;
mod learned;
mod pictures;
mod selection;
mod sweeps;
mod temporal;

pub use learned::units as network_units;
pub use temporal::units as temporal_units;

use anyhow::ensure;

use super::device::Properties;
use super::job::Job;
use super::launch::{Input, Occupancy, Plan};
use super::levels::Level;
use crate::engine::interface::Refusal;
use crate::frame::Eye;
use crate::matching::Cost;
use crate::matching::levels::prior_map_size;
use builder::Builder;

/// Largest number of rows of a grid.
const GRID_ROWS_MAX: usize = 65535;

/// Makes the buffers and launches for a device, with one concurrent frame. `occupancy` gives properties of
/// the compiled units.
pub fn plan(job: &Job, device: &Properties, occupancy: &dyn Occupancy) -> anyhow::Result<Plan> {
    let (width, height) = job.size;
    ensure!(
        height <= GRID_ROWS_MAX,
        Refusal::Size(format!(
            "the CUDA engine takes pictures of at most {GRID_ROWS_MAX} rows, not {height}; use `engine=cpu`"
        ))
    );
    let inputs = Eye::BOTH.map(|eye| {
        Input::packed(job.rectifier.map_or(job.size, |rectifier| rectifier.source_size(eye)))
    });
    let mut plan = Plan::new(width, height, inputs);
    if let Some(rectifier) = job.rectifier {
        plan.rectify(rectifier, job.size);
    }
    let views = plan.matched_views();
    let eyes = job.params.temporal.map_or(views, |how| plan.pass(how, job.size, views));
    let levels = Level::all(job);
    let mut pictures = vec![eyes];
    for finer in levels.iter().filter(|level| level.has_coarser) {
        pictures.push(plan.half(pictures[finer.number], finer.size));
    }
    let information = match job.params.cost {
        Cost::MutualInformation { .. } => Some(plan.learn(job, pictures[0])),
        _ => None,
    };
    let (mut coarse, mut unfiltered) = (None, None);
    for (level, pictures) in levels.iter().zip(pictures).rev() {
        let begin = plan.steps.len();
        let given = prior_map_size(&level.params, level.size).map(|size| match job.network {
            Some(network) => plan.predict(network, (views, level.size), size, device),
            None => plan.prior_map(size),
        });
        let mut stages = Builder::new(&mut plan, level, pictures, device, occupancy);
        (stages.coarse, stages.unfiltered, stages.given) = (coarse, unfiltered, given);
        stages.information = information;
        let features = stages.compute_features();
        if coarse.is_some() {
            stages.plan.run_beside(begin);
        }
        stages.replace_coarse();
        let costs = stages.compute_costs(features);
        let sums = stages.aggregate_costs(costs)?;
        // Winner takes all; its kernels also refine_subpixel.
        stages.select_disparities(sums)?;
        stages.check_consistency();
        unfiltered = level.guides_windows.then(|| stages.unfiltered());
        coarse = Some(stages.filter(&level.job(job)));
    }
    plan.disparity = coarse.unwrap_or(plan.disparity);
    Ok(plan)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::super::launch::{Arg, Kernel, Lane, Step};
    use super::super::units::specialisations;
    use super::*;
    use crate::engine::HalvedNetwork;
    use crate::matching::learned::Cells;
    use crate::matching::{
        Evidence, Fill, FillRule, Median, Params, Paths, Prior, Smoothing, Spatial, Speckle,
    };

    struct Fits(u32);

    impl Occupancy for Fits {
        fn resident_blocks(&self, _: &Kernel, _: u32, _: u32) -> anyhow::Result<u32> {
            Ok(self.0)
        }
    }

    /// The plan for a job, which makes sense and launches the units of the job, all of them.
    fn check(job: &Job, device: &Properties) -> Plan {
        let plan = plan(job, device, &Fits(32)).unwrap();
        plan.check().unwrap();
        let units: BTreeSet<_> =
            specialisations(job, device).into_iter().map(|unit| unit.name).collect();
        let launched = plan.kernels.iter().map(|kernel| kernel.unit.clone()).collect();
        assert_eq!(units, launched);
        plan
    }

    #[test]
    fn filters_that_are_on_are_launched_in_order() {
        let usual = crate::settings::Matching::default().params().unwrap();
        let device = Properties::typical(90);
        let speckle = Some(Speckle { size: 20, range_16: 16 });
        let evidence = Some(Evidence { strict: false });
        let usual = Params { prior: None, spatial: None, ..usual };
        for (left_right, median, speckle, evidence, expected) in [
            (None, Median::Off, None, None, &["check_consistency"][..]),
            (Some(1), Median::Off, None, None, &["check_consistency"]),
            (
                Some(1),
                Median::Off,
                None,
                evidence,
                &["check_consistency", "evidence", "diagonals", "supported"],
            ),
            (Some(1), Median::Three, None, None, &["check_consistency", "median"]),
            (None, Median::Off, speckle, None, &["check_consistency", "speckle_label"]),
            (
                Some(1),
                Median::Five,
                speckle,
                None,
                &["check_consistency", "median", "speckle_label"],
            ),
        ] {
            let params = Params { left_right, median, speckle, evidence, ..usual.clone() };
            let job = Job { params: &params, size: (640, 480), rectifier: None, network: None };
            let plan = check(&job, &device);
            let mut launches = plan.steps.iter().filter_map(|step| match step {
                Step::Launch(launch) => Some(launch),
                _ => None,
            });
            let symbols = launches.clone().map(|launch| plan.kernels[launch.kernel.0].symbol);
            let filters: Vec<_> = symbols.skip_while(|symbol| *symbol != expected[0]).collect();
            assert!(filters.starts_with(expected), "{filters:?}");
            let (_, rest) = filters.split_at(expected.len());
            assert!(rest.iter().all(|symbol| symbol.starts_with("speckle_")), "{filters:?}");
            let last = launches.next_back().unwrap();
            assert!(last.args.contains(&Arg::Buffer(plan.disparity)), "{last:?}");
        }
    }

    #[test]
    fn coarser_levels_come_first_and_support_the_cost() {
        let params = crate::settings::Matching::default().params().unwrap();
        let params = Params { prior: Some(Prior { levels: 2, strength: 4 }), ..params };
        let job = Job { params: &params, size: (640, 480), rectifier: None, network: None };
        let plan = check(&job, &Properties::typical(90));
        let mut stages: Vec<_> = plan
            .steps
            .iter()
            .filter_map(|step| match step {
                Step::Launch(launch) => Some(launch.stage),
                _ => None,
            })
            .collect();
        stages.dedup();
        let blended = stages.iter().rposition(|stage| *stage == "prior").unwrap();
        assert_eq!(stages[..2], ["pyramid", "prior"]);
        assert_eq!(stages[blended..blended + 3], ["prior", "cost features", "cost volume"]);
        // The finest level's texture and features are computed beside the coarser one.
        let texture = plan.steps.iter().position(|step| {
            matches!(step, Step::Launch(launch) if launch.stage == "texture" && launch.lane == Lane::Side)
        });
        let prior = plan.steps.iter().rposition(|step| {
            matches!(step, Step::Launch(launch) if launch.stage == "prior" && launch.lane == Lane::Main)
        });
        assert!(texture.is_some() && texture < prior);
        let of_level = |level: &str| plan.kernels.iter().any(|kernel| kernel.unit.ends_with(level));
        assert!(of_level(" of level 2") && !of_level(" of level 3"));
    }

    #[test]
    fn a_network_runs_beside_the_coarser_level() {
        let params = crate::settings::Matching::default().params().unwrap().with_prior_map(true);
        for (size, halvings) in [((640, 480), 0), ((1281, 719), 2)] {
            let network = HalvedNetwork::own(Cells::Auto, size, params.range.max(), halvings);
            let job = Job { params: &params, size, rectifier: None, network: Some(&network) };
            let plan = check(&job, &Properties::typical(90));
            assert_eq!(plan.prior, None, "nothing is uploaded");
            let launches = plan.steps.iter().filter_map(|step| match step {
                Step::Launch(launch) => Some((plan.kernels[launch.kernel.0].symbol, launch)),
                _ => None,
            });
            let beside: Vec<_> =
                launches.clone().filter(|(_, launch)| launch.stage == "network").collect();
            assert!(beside.iter().all(|(_, launch)| launch.lane == Lane::Side));
            assert_eq!(beside[0].0, "planes");
            let (last, map) = beside[beside.len() - 1];
            let behind: Vec<_> = launches.skip_while(|(symbol, _)| *symbol != last).collect();
            let (_, replace) = behind.iter().find(|(symbol, _)| *symbol == "replace").unwrap();
            assert_eq!(replace.args.first(), map.args.last());
        }
    }

    #[test]
    fn holes_are_filled_last_beside_the_left_picture() {
        let usual = crate::settings::Matching::default().params().unwrap();
        let smoothing = Some(Smoothing { weight_256: 77, guard_16: 16 });
        for (rule, prior_map) in [
            (FillRule::Row, true),
            (FillRule::Rays, true),
            (FillRule::Gaps, true),
            (FillRule::Network, false),
            (FillRule::Network, true),
            (FillRule::NetworkOrRays, true),
        ] {
            let fill = Some(Fill { rule, reach: 64 });
            let usual = Params { prior_map, ..usual.clone() };
            let params = Params { smoothing, fill, confidence: Some(0), ..usual };
            let job = Job { params: &params, size: (640, 480), rectifier: None, network: None };
            let plan = check(&job, &Properties::typical(90));
            let Some(Step::Launch(last)) = plan.steps.last() else { panic!("{:?}", plan.steps) };
            assert_eq!(plan.kernels[last.kernel.0].symbol, "fill");
            let Some(Step::Launch(before)) = plan.steps.iter().nth_back(1) else { panic!() };
            assert_eq!(plan.kernels[before.kernel.0].symbol, "confidence_of_known");
            assert!(last.args.contains(&Arg::Buffer(plan.left)), "{last:?}");
            let asks = plan.prior.is_some_and(|prior| last.args.contains(&Arg::Buffer(prior)));
            assert_eq!(asks, prior_map && rule.asks_network(), "{rule:?}");
            assert_eq!(last.args.last(), Some(&Arg::Buffer(plan.disparity)));
        }
    }

    #[test]
    fn surfaces_are_smoothed_before_the_filters_with_memory() {
        let usual = crate::settings::Matching::default().params().unwrap();
        let smoothing = Some(Smoothing { weight_256: 77, guard_16: 16 });
        let params = Params { spatial: Some(Spatial { reach: 8 }), smoothing, ..usual };
        let job = Job { params: &params, size: (640, 480), rectifier: None, network: None };
        let plan = check(&job, &Properties::typical(90));
        let launches = plan.steps.iter().filter_map(|step| match step {
            Step::Launch(launch) => Some(plan.kernels[launch.kernel.0].symbol),
            _ => None,
        });
        let last: Vec<_> = launches.skip_while(|symbol| *symbol != "supported").collect();
        assert_eq!(last, ["supported", "smooth_rows", "smooth_columns", "smoothing"]);
    }

    #[test]
    fn every_plan_is_sound() {
        let usual = crate::settings::Matching::default().params().unwrap();
        for paths in [Paths::None, Paths::Four, Paths::Five, Paths::Eight, Paths::Sixteen] {
            for count in [1, 64, 128, 1024] {
                for size in [(1, 1), (640, 480), (1920, 1080), (8192, 4096)] {
                    for sm in [75, 90] {
                        let range = crate::frame::DisparityRange { min: 0, count };
                        let supports = |params: &Params| match paths {
                            Paths::None => Params { window: None, prior: None, ..params.clone() },
                            _ => params.clone(),
                        };
                        let windows = sm == 90 && count > 64;
                        let params = Params { paths, range, windows, ..supports(&usual) };
                        let device = Properties::typical(sm);
                        let job = Job { params: &params, size, rectifier: None, network: None };
                        check(&job, &device);
                    }
                }
            }
        }
    }

    #[test]
    fn a_device_that_holds_too_few_strips_is_refused() {
        let params = crate::settings::Matching::default().params().unwrap();
        let device = Properties::typical(90);
        let job = Job { params: &params, size: (1920, 1080), rectifier: None, network: None };
        let error = plan(&job, &device, &Fits(0)).unwrap_err();
        assert!(error.to_string().contains("`engine=cpu`"), "{error}");
    }
}
