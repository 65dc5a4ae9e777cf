//! Several rigs in one program: each `[[rig]]` of the configuration is a run of its own, on a thread of its own. They
//! share the page, the metrics, the service manager, the memory budget and the processors.

use anyhow::Context;

use super::faces::Rigs;
use super::one;
use super::open::{outputs, source};
use crate::cli::RunArgs;
use crate::commands::{Error, layers, load};
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
        let work = move || {
            let done = span.in_scope(|| one(args, Some((rigs, number))));
            done.map_err(|error| error.context(format!("rig {name}")).tell())
        };
        thread::spawn("rig", work, |_| {})
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
    let sources = all.iter().zip(&rigs).zip(names).map(|((args, loaded), name)| {
        source::named(args, &loaded.settings.source)
            .map_err(|error| error.context(format!("rig {name}")))
    });
    let sources: Vec<SourceSpec> = sources.collect::<Result<_, _>>()?;
    for (loaded, name) in rigs.iter().zip(names) {
        for (section, key) in SHARED {
            if loaded.values()[section][key] != rigs[0].values()[section][key] {
                return Err(Error::usage(format!(
                    "{section}.{key} holds for all rigs: write it above the first [[rig]], not in {name}"
                )));
            }
        }
        // The output of a rig must not be the input of another.
        for source in &sources {
            outputs::check(source, loaded)?;
        }
    }
    outputs::refuse_shared(&rigs, names).map_err(Error::Usage)?;
    Ok(rigs.into_iter().next().expect("there are several rigs"))
}
