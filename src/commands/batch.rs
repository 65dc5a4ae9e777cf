//! `stereod batch`: many recordings in shards; each piece has its own folder and manifest.

mod checked;
mod identity;
mod list;
mod manifest;
mod merge;
mod plan;
mod shard;
mod status;
mod summary;
mod work;

use std::cell::RefCell;
use std::ffi::OsString;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use self::list::{Both, Input};
use self::manifest::State;
use self::plan::{Piece, Plan};
use self::shard::Shards;
use self::summary::{Summary, stopped};
use self::work::Work;
use super::{Error, load, print, signals};
use crate::cli::batch::{BatchArgs, BatchCommand};
use crate::cli::{Common, FlagLayer};
use crate::run::open::outputs::check_flags;
use crate::settings::Loaded;
use stereod_core::matching::cost::Cost;
use stereod_io::control::{Control, Switch};

pub fn run(args: BatchArgs) -> Result<(), Error> {
    let begin = |common: &Common| load(common, FlagLayer::default()).map(drop);
    match args.command {
        Some(BatchCommand::Missing { folder, shards, shard_base, common }) => {
            begin(&common)?;
            missing(&folder, shards, shard_base)
        }
        Some(BatchCommand::Status { folder, json, common }) => {
            begin(&common)?;
            status::run(&folder, json)
        }
        Some(BatchCommand::Verify { folder, json, remove, common }) => {
            begin(&common)?;
            checked::run(&folder, json, remove)
        }
        Some(BatchCommand::Merge { folder, output, common }) => {
            begin(&common)?;
            merge::run(&folder, &output)
        }
        None => match (&args.list, &args.out) {
            (Some(_), Some(_)) if cfg!(windows) => {
                Err(Error::usage("Windows needs WSL 2 for batches"))
            }
            (Some(list), Some(out)) => work(&args, list, out),
            _ => Err(Error::usage("give a list or folder of recordings, and --out DIR")),
        },
    }
}

fn work(args: &BatchArgs, list: &Path, out: &Path) -> Result<(), Error> {
    let begin = Instant::now();
    let loaded = load(&args.common, args.flags())?;
    refuse_settings(&loaded, args)?;
    let topics = args.topics.wanted();
    let inputs = list::inputs(list, Both::of(args), &topics).map_err(Error::Usage)?;
    let control = Control::default();
    signals::stop_on_signals(&control, None, None)?;
    let stop = &control.stop;
    let earlier = Plan::read(out)?;
    let is_first = earlier.is_none();
    let pinned = earlier.and_then(|plan| plan.shards);
    let shard = args.shard.map(|shard| {
        shard::resolve(shard, args.shard_base, pinned, |name| std::env::var(name).ok())
    });
    let shard = shard.transpose().map_err(Error::usage)?;
    let wanted = Plan {
        schema: plan::SCHEMA,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        settings: plan::settings_of(&loaded, &topics)?,
        write: args.write.clone(),
        run_in: args.run_in.unwrap_or(0),
        piece: args.piece,
        shards: shard.map(|(_, shards)| shards).or(pinned),
        inputs: inputs.iter().map(plan::of_name).collect(),
    };
    let (plan, folder) = agree(args, out, wanted, &inputs, &loaded, stop)?;
    let pieces = plan.pieces();
    let (index, shards) = shard.unwrap_or((0, Shards { count: 1, base: 1 }));
    let of_pieces = plan::shards_of(&pieces, shards.count);
    let mine = pieces.iter().zip(of_pieces).filter(|(_, of)| *of == index);
    let mine: Vec<&Piece> = mine.map(|(piece, _)| piece).collect();
    if args.dry_run {
        return tell_states(&folder, &plan, &mine, &inputs);
    }
    let shard = shard.map(|(index, shards)| (index + shards.base, shards.count));
    let mut summary = Summary::new(mine.len(), shard);
    let (plan, loaded, folder, log) = (&plan, &loaded, &*folder, log_flags(&args.common));
    let (seen, force) = (RefCell::default(), args.force);
    let limit = args.time_limit.map(Duration::from_secs);
    let work = Work { folder, plan, loaded, stop, log, seen, force, limit };
    for piece in &mine {
        if stop.is_set() {
            break;
        }
        let ended = work.make(&inputs[piece.input], piece).inspect_err(|error| {
            // Otherwise the plan would refuse the corrected call.
            if is_first && summary.made == 0 && matches!(error, Error::Usage(_)) {
                plan::withdraw(folder);
            }
        });
        if summary.note(&piece.name, ended?).is_break() {
            break;
        }
    }
    recount_busy(&mut summary, folder, plan, &mine)?;
    summary.print(begin.elapsed(), args)
}

/// Counts the pieces of other workers that have finished in the meantime as done.
fn recount_busy(
    summary: &mut Summary,
    folder: &Path,
    plan: &Plan,
    mine: &[&Piece],
) -> Result<(), Error> {
    let busy = std::mem::take(&mut summary.busy);
    for piece in mine.iter().filter(|piece| busy.contains(&piece.name)) {
        match manifest::state(folder, plan, piece)? {
            State::Done(_) => summary.there += 1,
            _ => summary.busy.push(piece.name.clone()),
        }
    }
    Ok(())
}

/// Returns the plan that all shards share, and its folder. The first shard of a batch looks at the inputs, and
/// writes the plan unless it is a dry run.
fn agree(
    args: &BatchArgs,
    out: &Path,
    mut wanted: Plan,
    inputs: &[Input],
    loaded: &Loaded,
    stop: &Switch,
) -> Result<(Plan, PathBuf), Error> {
    let find_out = |plan: &mut Plan| {
        for (known, input) in plan.inputs.iter_mut().zip(inputs) {
            if stop.is_set() {
                return stopped(0);
            }
            *known = plan::known(input, loaded, plan.piece, stop)?;
        }
        let number = plan.check_number();
        number.map_err(|wrong| Error::usage(format!("{wrong}; give a larger --piece")))?;
        refuse_memory(loaded, args, plan)
    };
    if !args.dry_run {
        let folder = plan::create_folder(out)?;
        return Ok((plan::agree(&folder, wanted, args.force, stop, find_out)?, folder));
    }
    match Plan::read(out)? {
        Some(found) if wanted.difference(&found).is_none() => Ok((found, out.to_owned())),
        _ => {
            find_out(&mut wanted)?;
            Ok((wanted, out.to_owned()))
        }
    }
}

fn log_flags(common: &Common) -> Vec<OsString> {
    match (common.quiet, common.verbose) {
        (true, _) => vec!["-q".into()],
        (false, 0) => Vec::new(),
        (false, level) => vec![format!("-{}", "v".repeat(level.into())).into()],
    }
}

fn tell_states(folder: &Path, plan: &Plan, mine: &[&Piece], inputs: &[Input]) -> Result<(), Error> {
    let mut text = String::new();
    for piece in mine {
        let end = piece.end.map_or_else(String::new, |end| end.to_string());
        let state = match manifest::state(folder, plan, piece)? {
            State::Done(_) => "is there".to_owned(),
            State::Missing => "to do".to_owned(),
            State::Other(reason) => format!("to do: {reason}"),
        };
        let files = inputs[piece.input].spec.local_files();
        let missing = if files.is_empty() { ", its input is missing" } else { "" };
        let _ = writeln!(text, "{}: pairs {}..{end}, {state}{missing}", piece.name, piece.first);
    }
    print(text)
}

fn missing(folder: &Path, shards: Option<u64>, base: Option<u64>) -> Result<(), Error> {
    let plan = Plan::of(folder)?;
    let pieces = plan.pieces();
    let one_each = Shards { count: pieces.len().max(1) as u64, base: 1 };
    let known = plan.shards.unwrap_or(one_each);
    let count = shards.unwrap_or(known.count);
    let base = base.unwrap_or(known.base);
    let mut numbers = Vec::new();
    for (piece, shard) in pieces.iter().zip(plan::shards_of(&pieces, count)) {
        if !matches!(manifest::state(folder, &plan, piece)?, State::Done(_)) {
            numbers.push(shard + base);
        }
    }
    numbers.dedup();
    match numbers.is_empty() {
        true => {
            tracing::info!("nothing is missing: all {} pieces are there", pieces.len());
            Ok(())
        }
        false => print(shard::array(&numbers) + "\n"),
    }
}

/// Refuses settings that each process chooses anew, because pieces would differ.
fn refuse_settings(loaded: &Loaded, args: &BatchArgs) -> Result<(), Error> {
    let settings = &loaded.settings;
    if loaded.awaits_choice() {
        return Err(Error::usage(
            "--disparities auto would choose another range for each piece; give a number (`stereod run \
             --disparities auto --frames 4` on one recording names one)",
        ));
    }
    if settings.engine.fit.is_some() {
        return Err(Error::usage(
            "--fit would choose other settings on each machine; give the settings that it names in a run",
        ));
    }
    if settings.source.start_s > 0.0 || settings.source.duration_s.is_some() {
        return Err(Error::usage(
            "source.start_s and source.duration_s are for single runs, not for a batch",
        ));
    }
    if loaded.params.odometry {
        return Err(Error::usage(
            "a path leads through a whole recording, but the pieces of a batch are matched apart: leave odometry and grid \
             out of --mcap, or use `stereod run`",
        ));
    }
    let has = |output: &str| args.write.iter().any(|write| write == output);
    if has("record") && has("mcap") {
        return Err(Error::usage("--write: record and mcap exclude each other; choose one"));
    }
    check_flags(
        loaded,
        &[
            ("output", "preview_view", has("preview"), "--write preview"),
            ("output", "pictures_format", has("pictures"), "--write pictures"),
            ("output", "mcap", has("mcap"), "--write mcap"),
        ],
    )
}

/// Refuses to divide inputs if a stage remembers earlier pairs and no run-in is given.
fn refuse_memory(loaded: &Loaded, args: &BatchArgs, plan: &Plan) -> Result<(), Error> {
    let params = &loaded.params;
    let stages = [
        (params.temporal.is_some(), "matching.temporal"),
        (params.steady.is_some(), "matching.steady"),
        (matches!(params.cost, Cost::MutualInformation { .. }), "matching.cost = \"mi\""),
    ];
    let Some((_, stage)) = stages.into_iter().find(|(is_on, _)| *is_on) else { return Ok(()) };
    let is_cut = plan.pieces().iter().any(|piece| piece.end.is_some());
    if !is_cut || args.run_in.is_some() {
        return Ok(());
    }
    Err(Error::usage(format!(
        "{stage} remembers earlier pairs, and inputs are cut into pieces of {} pairs: give --piece 0 for whole \
         inputs, or --run-in 100 to match 100 pairs before each piece as well (docs/clusters.md has the \
         differences that remain)",
        plan.piece
    )))
}
