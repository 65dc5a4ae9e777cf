//! Several rigs in one program: each `[[rig]]` of the configuration is a run of its own, on a thread of its own. They
//! share the page, the metrics, the service manager, the memory budget and the processors.

use std::path::PathBuf;

use anyhow::Context;

use super::faces::Rigs;
use super::one;
use super::open::{outputs, source};
use crate::cli::RunArgs;
use crate::run::{Error, layers, load};
use crate::settings::{Loaded, Places, config_file};
use stereod_core::engine;
use stereod_core::thread;
use stereod_io::source::spec::SourceSpec;

/// Values that hold for the whole program, so that rigs must agree on them.
const SHARED: [(&str, &str); 3] =
    [("engine", "memory_mib"), ("ros2", "domain"), ("ros2", "discovery")];

/// Returns the names of the rigs that are to run; none if the configuration has no `[[rig]]`.
pub fn of(args: &RunArgs) -> Result<Vec<String>, Error> {
    if let Some(rig) = &args.common.rig {
        return Ok(vec![rig.clone()]);
    }
    let file = config_file(args.common.config.as_deref(), &Places::of_this_process());
    Ok(layers(file.as_deref(), &args.common, args.flags())
        .finish()?
        .rigs()
        .map(str::to_owned)
        .collect())
}

/// Runs all rigs to their ends. A rig that fails is told at once, and the others go on. The first failure decides the
/// exit status.
pub fn run_all(args: &RunArgs, names: Vec<String>) -> Result<(), Error> {
    let of_rig = |name: &String| RunArgs { common: args.common.of_rig(Some(name)), ..args.clone() };
    let all: Vec<_> = names.iter().map(of_rig).collect();
    let rigs = Rigs::bind(&check(&all, &names)?.settings, names)?;
    engine::take_turns();
    let start = |(number, args): (usize, RunArgs)| {
        let (name, rigs) = (rigs.names[number].clone(), rigs.clone());
        let span = tracing::error_span!("rig", %name);
        let failed = {
            let rigs = rigs.clone();
            move |broken: thread::BrokenDown| rigs.failed(number, &broken.to_string())
        };
        let work = move || {
            let done = span.in_scope(|| one(args, Some((rigs.clone(), number))));
            done.map_err(|error| {
                rigs.failed(number, &error.to_string());
                error.context(format!("rig {name}")).tell()
            })
        };
        thread::spawn("rig", work, failed)
    };
    let started: std::io::Result<Vec<_>> = all.into_iter().enumerate().map(start).collect();
    let ended = started.context("cannot start the threads of the rigs")?.into_iter();
    let ended =
        ended.map(|rig| thread::joined("a rig", rig.join()).map_err(anyhow::Error::from)?);
    let failed: Vec<_> = ended.filter_map(Result::err).collect();
    drop(rigs);
    failed.into_iter().next().map_or(Ok(()), Err)
}

/// Fails if the rigs are in each other's way. Returns the settings of the first.
fn check(all: &[RunArgs], names: &[String]) -> Result<Loaded, Error> {
    if all[0].source.spec().is_some() {
        return Err(Error::usage(format!(
            "the configuration has several rigs ({}), each with a source of its own: choose one with --rig NAME, \
             or leave out the source",
            names.join(", ")
        )));
    }
    let rigs: Vec<Loaded> =
        all.iter().map(|args| load(&args.common, args.flags())).collect::<Result<_, _>>()?;
    let of_rig = |((args, loaded), name): ((&RunArgs, &Loaded), &String)| {
        let source = source::named(args, &loaded.settings.source);
        let checked = source.and_then(|source| outputs::check(&source, loaded).map(|()| source));
        checked.map(Some).map_err(|error| error.context(format!("rig {name}")))
    };
    let sources = all.iter().zip(&rigs).zip(names).map(of_rig).collect::<Result<Vec<_>, _>>()?;
    refuse_collisions(&rigs, &sources, names)?;
    Ok(rigs.into_iter().next().expect("there are several rigs"))
}

/// Fails if the rigs have different values for the program, the same camera, or the same output, or if the output of a rig
/// is the input of another. `sources`: those that are known.
pub fn refuse_collisions(
    rigs: &[Loaded],
    sources: &[Option<SourceSpec>],
    names: &[String],
) -> Result<(), Error> {
    for (loaded, name) in rigs.iter().zip(names) {
        for (section, key) in SHARED {
            if loaded.values()[section][key] != rigs[0].values()[section][key] {
                return Err(Error::usage(format!(
                    "{section}.{key} holds for all rigs: write it above the first [[rig]], not in {name}"
                )));
            }
        }
        for source in sources.iter().flatten() {
            let spared = outputs::spare_inputs(source, loaded);
            spared.with_context(|| format!("rig {name}")).map_err(Error::Usage)?;
        }
    }
    let mut cameras: Vec<(PathBuf, &String)> = Vec::new();
    for (source, name) in sources.iter().zip(names) {
        for camera in source.iter().flat_map(SourceSpec::cameras) {
            let device = camera.canonicalize().unwrap_or_else(|_| camera.clone());
            match cameras.iter().find(|(other, _)| *other == device) {
                Some((_, other)) if *other != name => {
                    return Err(Error::usage(format!(
                        "the camera {} is that of {other} and of {name}; give each rig its own",
                        camera.display()
                    )));
                }
                _ => cameras.push((device, name)),
            }
        }
    }
    outputs::refuse_shared(rigs, names).map_err(Error::Usage)
}
