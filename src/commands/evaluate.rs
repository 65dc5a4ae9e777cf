//! `stereod evaluate`: accuracy of the disparity, on pairs of known disparity.

mod measure;
mod outputs;

use std::path::PathBuf;

use indicatif::ProgressBar;

use super::{Error, load, progress_bar};
use crate::cli::EvaluateArgs;
use crate::run::prepare::rig::Cameras;
use crate::run::{read_over, told};
use crate::settings::Loaded;
use crate::telemetry::logs;
use measure::{Bench, Failure};
use outputs::{Outputs, Prepared};
use stereod_core::matching::Cost;
use stereod_core::settings::Origin;
use stereod_evaluate::compare::{Comparison, Variant};
use stereod_evaluate::find::{self, Found, Searched};
use stereod_evaluate::noise::Noise;
use stereod_evaluate::opencv::OpenCv;
use stereod_evaluate::report::{Dataset, Report};
use stereod_evaluate::{described, layouts};

const SEED: u64 = 1;

/// Number of failed pairs that the final error names.
const NAMED: usize = 5;

pub fn run(args: EvaluateArgs) -> Result<(), Error> {
    let loaded = load(&args.common, args.flags())?;
    let mut seeds = vec![args.seed.unwrap_or(SEED)];
    let variants: Vec<Chosen> = match &args.compare {
        None => vec![Chosen { name: String::new(), loaded, opencv: None, noise: args.noise }],
        Some(text) => {
            let Comparison { variants, opencv, noises, seeds: listed } =
                stereod_evaluate::compare::comparison(text).map_err(Error::Usage)?;
            check_noise(&args, &noises, &listed)?;
            if !listed.is_empty() {
                seeds = listed;
            }
            let with = |Variant { name, assignments, noise }: Variant| {
                let loaded = read_over(&args.common, args.flags(), &assignments)
                    .map_err(|error| error.context("--compare".into()))?;
                Ok(Chosen { name, loaded, opencv: None, noise: noise.or(args.noise) })
            };
            let mut variants = variants.into_iter().map(with).collect::<Result<Vec<_>, Error>>()?;
            match opencv.then(OpenCv::find).transpose() {
                Ok(opencv) => {
                    let of_noise = |opencv: &OpenCv, noise: Option<f64>| Chosen {
                        name: noise.map_or(opencv.name.clone(), |sigma| {
                            format!("{} noise={sigma}", opencv.name)
                        }),
                        loaded: loaded.clone(),
                        opencv: Some(opencv.clone()),
                        noise: noise.or(args.noise),
                    };
                    let noises = noises.into_iter().map(Some);
                    let noises: Vec<_> =
                        if noises.len() == 0 { vec![None] } else { noises.collect() };
                    let rows = opencv
                        .iter()
                        .flat_map(|opencv| noises.iter().map(|noise| of_noise(opencv, *noise)));
                    variants.extend(rows);
                }
                Err(error) => tracing::warn!(
                    "OpenCV is left out of the comparison: {error:#}; `python3 -m pip install \
                     opencv-python-headless` installs it"
                ),
            }
            variants
        }
    };
    let outputs = Outputs::of(&args)?;
    let datasets = search(&args.datasets, args.submission.is_none())?;
    for Chosen { loaded, .. } in &variants {
        check(&args, loaded, &datasets)?;
    }
    let outputs = outputs.prepare(&variants[0].loaded, &datasets)?;
    let count: usize = datasets.iter().map(|searched| searched.pairs.len()).sum();
    let bar = progress_bar(
        Some((count * variants.len() * seeds.len()) as u64),
        args.common.quiet,
        "pairs",
    );
    let mut unshown = None;
    let mut reports = Vec::new();
    for variant in &variants {
        let mut of =
            |&seed| evaluate(&args, variant, seed, &datasets, &outputs, &bar, &mut unshown);
        let of_seeds = seeds.iter().map(&mut of).collect::<Result<Vec<_>, _>>()?;
        reports.push((&variant.name, Report::of_seeds(of_seeds)));
    }
    bar.finish_and_clear();
    logs::write_above(None);
    let failed = reports.iter().try_for_each(|(_, report)| failures(report));
    let report = match &args.compare {
        None => reports.remove(0).1,
        Some(_) => Report::comparison(reports),
    };
    outputs.write(&report, &args.layout())?;
    failed?;
    match unshown {
        None => Ok(()),
        Some((count, error)) => Err(error
            .context(format!("{count} of the pictures of errors could not be written"))
            .into()),
    }
}

/// Settings, or OpenCV, and the noise that they meet.
struct Chosen {
    name: String,
    loaded: Loaded,
    opencv: Option<OpenCv>,
    noise: Option<f64>,
}

/// Checks that noise and seeds of a comparison and of flags go together.
fn check_noise(args: &EvaluateArgs, noises: &[f64], seeds: &[u64]) -> Result<(), Error> {
    if !noises.is_empty() && args.noise.is_some() {
        return Err(Error::usage("--compare varies the noise; leave out --noise"));
    }
    if !seeds.is_empty() && args.seed.is_some() {
        return Err(Error::usage("--compare lists the seeds; leave out --seed"));
    }
    if !seeds.is_empty() && noises.is_empty() && args.noise.is_none() {
        return Err(Error::usage(
            "--compare: seeds are of noise; give --noise SIGMA, or `noise=SIGMA` in the list",
        ));
    }
    Ok(())
}

/// Checks that settings, flags and pairs go together.
fn check(args: &EvaluateArgs, loaded: &Loaded, datasets: &[Searched]) -> Result<(), Error> {
    if args.even.is_some() && !loaded.settings.calibration.file.is_empty() {
        return Err(Error::usage(
            "--even paints regions into rectified pictures; leave out --calibration",
        ));
    }
    if args.learn.is_some() && matches!(loaded.params.cost, Cost::MutualInformation { .. }) {
        return Err(Error::usage("--learn cannot learn from --cost mi; choose another cost"));
    }
    let min = i64::from(loaded.params.range.min);
    let is_below = |count| i64::try_from(count).is_ok_and(|count| count <= min);
    let mut items = datasets.iter().flat_map(|searched| &searched.pairs).map(|(_, item)| item);
    if *loaded.origin("matching", "disparities") == Origin::Default
        && items.all(|item| item.as_ref().is_ok_and(|item| item.disparities.is_some_and(is_below)))
    {
        return Err(Error::usage(format!(
            "the candidates of all pairs, from 0 on, are below --min-disparity {min}; give --disparities as well"
        )));
    }
    Ok(())
}

/// Matches all pairs with these settings, or by OpenCV. `unshown` counts images of errors that could not be written, and
/// has the reason of the first.
fn evaluate(
    args: &EvaluateArgs,
    Chosen { loaded, opencv, noise, .. }: &Chosen,
    seed: u64,
    datasets: &[Searched],
    outputs: &Prepared<'_>,
    bar: &ProgressBar,
    unshown: &mut Option<(usize, anyhow::Error)>,
) -> Result<Report, Error> {
    let cameras = Cameras::read(&loaded.settings, None)?;
    let noise = noise.map(|sigma| Noise::new(sigma, seed));
    let mut report = Report {
        engine: None,
        repeat: args.repeat,
        even: args.even,
        noise: noise.as_ref().map(|noise| noise.sigma),
        seeds: noise.iter().map(|noise| noise.seed).collect(),
        settings: loaded.values()["matching"].clone(),
        datasets: Vec::new(),
        is_comparison: false,
        combinations: Vec::new(),
        deviation: None,
    };
    let mut bench = Bench {
        loaded,
        cameras,
        even: args.even,
        noise,
        repeat: args.repeat,
        learns: args.learn.is_some(),
        opencv: opencv.clone(),
        engine: None,
    };
    let mut number = 0;
    for Searched { path, pairs } in datasets {
        let mut evaluated = Vec::new();
        for (name, item) in pairs {
            let outcome = match item.as_ref().map(|item| bench.measure(item)) {
                Err(error) => Err(told(error)),
                Ok(Ok((measured, compared))) => {
                    outputs.submit(number, &measured, &compared)?;
                    // The figures do not depend on the image.
                    if let Err(error) = outputs.show_errors(number, &compared) {
                        tracing::debug!("{error:#}");
                        unshown.get_or_insert((0, error)).0 += 1;
                    }
                    Ok(measured)
                }
                Ok(Err(Failure::All(error))) => return Err(error.into()),
                Ok(Err(Failure::Pair(error))) => Err(told(&error)),
            };
            number += 1;
            evaluated.push((name.clone(), outcome));
            bar.inc(1);
        }
        report.datasets.push(Dataset { path: path.clone(), pairs: evaluated });
    }
    report.engine = bench.engine();
    Ok(report)
}

fn failures(report: &Report) -> Result<(), Error> {
    let (measured, all) = report.counts();
    if measured == all {
        return Ok(());
    }
    let failed = report.datasets.iter().flat_map(|dataset| &dataset.pairs);
    let mut failed = failed.filter_map(|(name, pair)| Some((name, pair.as_ref().err()?)));
    let mut message = format!("{} of {all} pairs could not be evaluated:", all - measured);
    for (name, error) in failed.by_ref().take(NAMED) {
        message.push_str(&format!("\n  {name}: {error}"));
    }
    match failed.count() {
        0 => {}
        more => message.push_str(&format!("\n  and {more} more (--json has all of them)")),
    }
    Err(Error::Failed(anyhow::anyhow!("{message}")))
}

fn search(paths: &[PathBuf], needs_truth: bool) -> Result<Vec<Searched>, Error> {
    let (mut datasets, mut without_truth) = (Vec::new(), 0);
    for path in paths {
        let found = find::search(path, needs_truth).map_err(Error::Usage)?;
        let Found { pairs, without_truth: more } = found;
        without_truth += more;
        if pairs.is_empty() {
            let lacking = match more {
                0 => String::new(),
                _ => format!(" ({more} folders hold pictures, but no truth)"),
            };
            let known = if needs_truth { " with known disparity" } else { "" };
            return Err(Error::usage(format!(
                "no pair{known} in {}{lacking}: name a folder of {}, or one with an {} (`stereod \
                 evaluate --help`)",
                path.display(),
                layouts::KNOWN,
                described::NAME
            )));
        }
        datasets.push(Searched { path: path.clone(), pairs });
    }
    if without_truth > 0 {
        tracing::info!("{without_truth} folders with a pair and no truth are passed over");
    }
    Ok(datasets)
}
