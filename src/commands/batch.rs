//! `stereod batch`: many recordings in shards; each piece has its own folder and manifest.

mod checked;
mod identity;
mod list;
mod manifest;
mod merge;
mod plan;
mod shard;
mod work;

use std::cell::RefCell;
use std::fmt::Write;
use std::path::Path;
use std::time::Instant;

use anyhow::anyhow;
use serde::Serialize;

use self::list::{Both, Input};
use self::manifest::State;
use self::plan::{Piece, Plan};
use self::shard::Shards;
use self::work::{Ended, Work};
use super::error::BAD_INPUT;
use super::{Error, load, print, signals};
use crate::cli::batch::{BatchArgs, BatchCommand};
use crate::cli::{Common, FlagLayer};
use crate::core::control::Control;
use crate::matching::cost::Cost;
use crate::settings::Loaded;

/// Runs the command.
pub fn run(args: BatchArgs) -> Result<(), Error> {
    let begin = |common: &Common| load(common, FlagLayer::default()).map(drop);
    match args.command {
        Some(BatchCommand::Missing { folder, shards, shard_base, common }) => {
            begin(&common)?;
            missing(&folder, shards, shard_base)
        }
        Some(BatchCommand::Verify { folder, json, common }) => {
            begin(&common)?;
            checked::run(&folder, json)
        }
        Some(BatchCommand::Merge { folder, output, common }) => {
            begin(&common)?;
            merge::run(&folder, &output)
        }
        None => match (&args.list, &args.out) {
            (Some(list), Some(out)) => work(&args, list, out),
            _ => Err(Error::usage("give a list or folder of recordings, and --out DIR")),
        },
    }
}

/// Outcome of a shard, for scripts.
#[derive(Debug, Default, Serialize)]
struct Summary {
    /// Its number in the user's counting; absent without shards.
    #[serde(skip_serializing_if = "Option::is_none")]
    shard: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    shards: Option<u64>,
    pieces: usize,
    /// Pieces made by it.
    made: usize,
    /// Pieces that existed before.
    there: usize,
    /// Pieces that another worker is making.
    busy: Vec<String>,
    /// Pieces that failed, with the reason; a retry may help.
    failed: Vec<Failure>,
    /// Pieces with a missing or damaged input, with the reason.
    bad: Vec<Failure>,
    /// Pairs in the pieces made by it.
    pairs: u64,
    /// Damaged frames of their inputs, concealed or left out.
    damaged: u64,
    /// Duration in seconds.
    seconds: f64,
    /// Exit status.
    status: u8,
}

/// A piece that failed.
#[derive(Debug, Serialize)]
struct Failure {
    piece: String,
    reason: String,
}

/// Makes the pieces of a shard.
fn work(args: &BatchArgs, list: &Path, out: &Path) -> Result<(), Error> {
    let begin = Instant::now();
    let loaded = load(&args.common, args.flags())?;
    refuse_settings(&loaded, args)?;
    let both = match (args.side_by_side, args.top_bottom) {
        (true, _) => Both::SideBySide,
        (_, true) => Both::TopBottom,
        _ => Both::None,
    };
    let topics = args.topics.wanted();
    let inputs = list::inputs(list, both, &topics).map_err(Error::Usage)?;
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
    let mut wanted = Plan {
        schema: plan::SCHEMA,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        settings: plan::settings_of(&loaded, &topics)?,
        write: args.write.clone(),
        run_in: args.run_in.unwrap_or(0),
        piece: args.piece,
        shards: shard.map(|(_, shards)| shards).or(pinned),
        inputs: inputs.iter().map(plan::of_name).collect(),
    };
    let find_out = |plan: &mut Plan| {
        for (known, input) in plan.inputs.iter_mut().zip(&inputs) {
            if stop.is_set() {
                return stopped(0);
            }
            *known = plan::known(input, &loaded, plan.piece, stop)?;
        }
        let number = plan.check_number();
        number.map_err(|wrong| Error::usage(format!("{wrong}; give a larger --piece")))?;
        refuse_memory(&loaded, args, plan)
    };
    let (plan, folder) = match args.dry_run {
        true => match Plan::read(out)? {
            Some(found) if wanted.difference(&found).is_none() => (found, out.to_owned()),
            _ => {
                find_out(&mut wanted)?;
                (wanted, out.to_owned())
            }
        },
        false => {
            let folder = plan::create_folder(out)?;
            (plan::agree(&folder, wanted, args.force, stop, find_out)?, folder)
        }
    };
    let pieces = plan.pieces();
    let (index, shards) = shard.unwrap_or((0, Shards { count: 1, base: 1 }));
    let of_pieces = plan::shards_of(&pieces, shards.count);
    let mine = pieces.iter().zip(of_pieces).filter(|(_, of)| *of == index);
    let mine: Vec<&Piece> = mine.map(|(piece, _)| piece).collect();
    if args.dry_run {
        return tell_states(&folder, &plan, &mine, &inputs);
    }
    let mut log = Vec::new();
    match (args.common.quiet, args.common.verbose) {
        (true, _) => log.push("-q".into()),
        (false, 0) => {}
        (false, level) => log.push(format!("-{}", "v".repeat(level.into())).into()),
    }
    let (plan, loaded, folder) = (&plan, &loaded, &*folder);
    let work =
        Work { folder, plan, loaded, stop, log, seen: RefCell::default(), force: args.force };
    let mut summary = Summary { pieces: mine.len(), ..Summary::default() };
    if shard.is_some() {
        (summary.shard, summary.shards) = (Some(index + shards.base), Some(shards.count));
    }
    for (number, piece) in (1..).zip(&mine) {
        if stop.is_set() {
            break;
        }
        let Piece { name, .. } = piece;
        let failure = |reason| Failure { piece: name.clone(), reason };
        let ended = work.make(&inputs[piece.input], piece).inspect_err(|error| {
            // Otherwise the plan would refuse the corrected call.
            if is_first && summary.made == 0 && matches!(error, Error::Usage(_)) {
                plan::withdraw(folder);
            }
        });
        match ended? {
            Ended::Done(manifest) => {
                let pairs = manifest.pairs;
                summary.made += 1;
                summary.pairs += pairs;
                summary.damaged += manifest.damaged;
                tracing::info!("{name}: {pairs} pairs ({number} of {} pieces)", mine.len());
            }
            Ended::WasThere => summary.there += 1,
            Ended::Busy => {
                tracing::warn!("{name}: another worker is making it");
                summary.busy.push(name.clone());
            }
            Ended::BadInput(reason) => {
                tracing::error!("{name}: {reason}");
                summary.bad.push(failure(reason));
            }
            Ended::Failed(reason) => {
                tracing::error!("{name}: {reason}; a retry may help");
                summary.failed.push(failure(reason));
            }
            Ended::Stopped => break,
        }
    }
    // The other worker may have finished in the meantime.
    let busy = std::mem::take(&mut summary.busy);
    for piece in mine.iter().filter(|piece| busy.contains(&piece.name)) {
        match manifest::state(folder, plan, piece)? {
            State::Done(_) => summary.there += 1,
            _ => summary.busy.push(piece.name.clone()),
        }
    }
    summary.seconds = (begin.elapsed().as_secs_f64() * 1000.0).round() / 1000.0;
    let outcome = outcome(&summary);
    summary.status = outcome.as_ref().map_or_else(Error::exit_status, |()| 0);
    match args.json {
        true => print(serde_json::to_string(&summary).map_err(anyhow::Error::from)? + "\n")?,
        false if args.common.quiet => {}
        false => print(in_words(&summary))?,
    }
    outcome
}

/// Returns an error if pieces are left to do after a signal or a failure.
fn outcome(summary: &Summary) -> Result<(), Error> {
    let Summary { made, there, busy, failed, bad, pieces, .. } = summary;
    let left = pieces - made - there - busy.len() - failed.len() - bad.len();
    let named = |failures: &[Failure]| match failures {
        [Failure { piece, reason }] => format!("{piece}: {reason}"),
        [Failure { piece, reason }, ..] => {
            format!("{} pieces failed, the first one is {piece}: {reason}", failures.len())
        }
        [] => String::new(),
    };
    match () {
        () if left > 0 => stopped(made + there),
        () if !failed.is_empty() => Err(anyhow!("{}; a retry may help", named(failed)).into()),
        () if !busy.is_empty() => {
            let (count, first) = (busy.len(), &busy[0]);
            Err(anyhow!(
                "another worker is making {first}; {count} of {pieces} pieces are left to it"
            )
            .into())
        }
        () if !bad.is_empty() => {
            Err(Error::Input(anyhow!("{}; a retry does not help", named(bad)), BAD_INPUT))
        }
        () => Ok(()),
    }
}

fn stopped(done: usize) -> Result<(), Error> {
    let status = signals::exit_status().unwrap_or(1);
    Err(Error::Stopped(
        anyhow!("stopped by a signal; {done} pieces are whole and will be kept"),
        status,
    ))
}

fn in_words(summary: &Summary) -> String {
    let Summary { shard, shards, pieces, made, there, pairs, damaged, seconds, .. } = summary;
    let mut text = match (shard, shards) {
        (Some(shard), Some(shards)) => format!("shard {shard} of {shards}: "),
        _ => String::new(),
    };
    let _ = write!(text, "{pieces} pieces: {made} made, {there} there before");
    for (count, what) in [
        (summary.busy.len(), "left to another worker"),
        (summary.failed.len(), "failed"),
        (summary.bad.len(), "with a missing or damaged input"),
    ] {
        if count > 0 {
            let _ = write!(text, ", {count} {what}");
        }
    }
    if *damaged > 0 {
        let _ = write!(text, ", damaged frames in the inputs: {damaged}");
    }
    let _ = writeln!(text, "; {pairs} pairs in {seconds:.1} s");
    text
}

/// Prints the plan of a shard.
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

/// Prints the shards with work left.
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
    let has = |output: &str| args.write.iter().any(|write| write == output);
    if has("record") && has("mcap") {
        return Err(Error::usage("--write: record and mcap exclude each other; choose one"));
    }
    Ok(())
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
