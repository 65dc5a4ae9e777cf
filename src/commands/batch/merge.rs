//! `stereod batch merge`: one result for each input, in place of its pieces.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow, bail, ensure};
use serde_json::{Value, json};

use super::checked::{Inspected, check};
use super::manifest::Manifest;
use super::plan::{Piece, Plan, STATISTICS};
use crate::commands::{Error, print};
use crate::outputs::Kind;
use crate::run::prepare::loading::Inputs;
use stereod_core::files::claim::Claim;
use stereod_core::files::{explain, extension, write_whole};
use stereod_io::sink::lines::join_lines;
use stereod_io::sink::mcap::{self, join_files};
use stereod_io::sink::video::join_recordings;

/// The pieces of an input, with their folders.
type Parts = Vec<(PathBuf, Manifest)>;

/// Runs the command. Inputs that are not whole are left out and named in the error.
pub fn run(folder: &Path, to: &Path) -> Result<(), Error> {
    let plan = Plan::of(folder)?;
    let pieces = plan.pieces();
    let mut parts: Vec<Option<Parts>> = Vec::new();
    let mut left_out: Option<String> = None;
    for of_input in pieces.chunk_by(|one, next| one.input == next.input) {
        let Inspected { whole, problems } = check(folder, &plan, of_input)?;
        let part = |(piece, manifest): (&Piece, _)| (folder.join(&piece.name), manifest);
        parts.push(problems.is_empty().then(|| whole.into_iter().map(part).collect()));
        left_out = left_out.or(problems.first().map(ToString::to_string));
    }
    let whole = parts.iter().flatten().count();
    let advice =
        "to go on without an input that cannot be read, take it out of the list and give --force";
    if let Some(first) = left_out.take_if(|_| whole == 0) {
        return Err(anyhow!("{first}; {advice}").into());
    }
    let output = match &*extension(to) {
        "mkv" => Some("record"),
        "mcap" => Some("mcap"),
        "ndjson" => Some("obstacles"),
        _ => None,
    };
    if let Some(output) = output {
        let [Some(parts)] = &parts[..] else {
            let count = parts.len();
            return Err(Error::usage(format!(
                "{} is one file, but the batch has {count} inputs; name a folder",
                to.display()
            )));
        };
        let Some((_, of_batch, path)) = plan.outputs().find(|(name, ..)| *name == output) else {
            return Err(Error::usage(format!(
                "the batch has written no {output} (--write {output})"
            )));
        };
        refuse(&of_batch.kind, path, parts, to)?;
        let _claim = Claim::on(to)?;
        join(&of_batch.kind, path, parts, to)?;
        return print(format!("joined {} pieces: {}\n", parts.len(), to.display()));
    }
    join_inputs(&plan, &parts, to)?;
    let (all, joined) = (plan.inputs.len(), parts.iter().flatten().flatten().count());
    print(format!("joined {joined} pieces of {whole} inputs: {}\n", to.display()))?;
    left_out.map_or(Ok(()), |first| {
        let count = all - whole;
        Err(anyhow!("{count} of {all} inputs are not whole and were left out: {first}; {advice}")
            .into())
    })
}

/// Joins the outputs of each whole input into a folder of its name.
fn join_inputs(plan: &Plan, parts: &[Option<Parts>], to: &Path) -> Result<(), Error> {
    let whole_inputs = || {
        let all = plan.inputs.iter().zip(parts);
        all.filter_map(|(input, parts)| Some((input, parts.as_ref()?, to.join(&input.name))))
    };
    // Before anything is written.
    for (_, parts, to) in whole_inputs() {
        let mut outputs = plan.outputs();
        outputs
            .try_for_each(|(_, output, path)| refuse(&output.kind, path, parts, &to.join(path)))?;
    }
    for (input, parts, to) in whole_inputs() {
        fs::create_dir_all(&to).map_err(|error| explain(&to, &error))?;
        for (_, output, path) in plan.outputs() {
            join(&output.kind, path, parts, &to.join(path)).with_context(|| input.name.clone())?;
        }
        let statistics =
            serde_json::to_string_pretty(&statistics(parts)?).map_err(anyhow::Error::from)?;
        write_whole(&to.join(STATISTICS), (statistics + "\n").as_bytes())?;
    }
    Ok(())
}

/// Returns one output of all pieces that have pairs, which is `path` in the folder of each.
fn of_pieces(path: &str, parts: &[(PathBuf, Manifest)]) -> Vec<PathBuf> {
    let with_pairs = parts.iter().filter(|(_, manifest)| manifest.pairs > 0);
    with_pairs.map(|(folder, _)| folder.join(path)).collect()
}

/// Refuses to join an output over the pieces themselves, or into a folder with other files.
fn refuse(kind: &Kind, path: &str, parts: &[(PathBuf, Manifest)], to: &Path) -> Result<(), Error> {
    Inputs::new(of_pieces(path, parts)).refuse(to).map_err(Error::Usage)?;
    let is_empty = fs::read_dir(to).map_or(true, |mut entries| entries.next().is_none());
    if matches!(kind, Kind::Folder(..)) && !is_empty {
        return Err(Error::usage(format!(
            "{} is not empty; remove it or name another folder",
            to.display()
        )));
    }
    Ok(())
}

/// Joins one output of all pieces.
fn join(kind: &Kind, path: &str, parts: &[(PathBuf, Manifest)], to: &Path) -> Result<()> {
    let files = of_pieces(path, parts);
    let pairs: u64 = parts.iter().map(|(_, manifest)| manifest.pairs).sum();
    match kind {
        Kind::Recording(_) if mcap::is_name(to) => join_files(&files, to).map(drop),
        Kind::Recording(_) => {
            let frames = match &*extension(to) {
                "ndjson" => join_lines(&files, to)?,
                _ => join_recordings(&files, to)?,
            };
            ensure!(frames == pairs, "{} has {frames} frames of {pairs} pairs", to.display());
            Ok(())
        }
        Kind::Folder(..) => join_folders(&files, to, pairs),
        Kind::Preview(_) => {
            tracing::warn!("previews are not joined; ffmpeg does that: -f concat -c copy");
            Ok(())
        }
        // A batch does not write them.
        Kind::Statistics | Kind::Map | Kind::Shared | Kind::WholeRun(..) => Ok(()),
    }
}

/// Puts numbered files of all pieces into one folder, with their description. Files are linked if possible.
fn join_folders(folders: &[PathBuf], to: &Path, pairs: u64) -> Result<()> {
    fs::create_dir_all(to).map_err(|error| explain(to, &error))?;
    let mut count = 0;
    for folder in folders {
        for entry in fs::read_dir(folder).map_err(|error| explain(folder, &error))? {
            let from = entry.map_err(|error| explain(folder, &error))?.path();
            let place = to.join(from.file_name().context("a file without a name")?);
            let is_description = extension(&from) == "json";
            if is_description && place.exists() {
                ensure!(
                    fs::read(&from)? == fs::read(&place)?,
                    "{} and {} differ; they are of different settings",
                    from.display(),
                    place.display()
                );
                continue;
            }
            if place.exists() {
                bail!("{} is there twice", place.display());
            }
            let linked = fs::hard_link(&from, &place);
            linked
                .or_else(|_| fs::copy(&from, &place).map(drop))
                .map_err(|error| explain(&place, &error))?;
            count += u64::from(!is_description);
        }
    }
    ensure!(count == pairs, "{} has {count} files of {pairs} pairs", to.display());
    Ok(())
}

fn statistics(parts: &[(PathBuf, Manifest)]) -> Result<Value> {
    const SUMS: [&str; 7] = [
        "/frames/left",
        "/frames/right",
        "/pairs",
        "/unpaired/left",
        "/unpaired/right",
        "/matched",
        "/matching_seconds",
    ];
    let mut sum: Option<Value> = None;
    let mut known = 0.0;
    for (folder, manifest) in parts.iter().filter(|(_, manifest)| manifest.pairs > 0) {
        let path = folder.join(STATISTICS);
        let text = fs::read(&path).map_err(|error| explain(&path, &error))?;
        let of_piece: Value =
            serde_json::from_slice(&text).with_context(|| path.display().to_string())?;
        known += of_piece["known"].as_f64().unwrap_or(0.0) * manifest.pairs as f64;
        let Some(sum) = &mut sum else {
            sum = Some(of_piece);
            continue;
        };
        for place in SUMS {
            if let (Some(sum), Some(more)) = (sum.pointer_mut(place), of_piece.pointer(place)) {
                *sum = match (sum.as_u64(), more.as_u64()) {
                    (Some(a), Some(b)) => json!(a + b),
                    _ => json!(sum.as_f64().unwrap_or(0.0) + more.as_f64().unwrap_or(0.0)),
                };
            }
        }
    }
    let sum = sum.context("no piece has a pair")?;
    let pairs: u64 = parts.iter().map(|(_, manifest)| manifest.pairs).sum();
    let seconds: f64 = parts.iter().map(|(_, manifest)| manifest.seconds).sum();
    let engines: std::collections::BTreeSet<&str> =
        parts.iter().map(|(_, manifest)| manifest.engine.as_str()).collect();
    let rounded = |value: f64, unit: f64| (value * unit).round() / unit;
    let matching = sum["matching_seconds"].as_f64().unwrap_or(0.0);
    Ok(json!({
        "version": sum["version"],
        "pieces": parts.len(),
        "width": sum["width"],
        "height": sum["height"],
        "frames": sum["frames"],
        "pairs": pairs,
        "unpaired": sum["unpaired"],
        "matched": sum["matched"],
        "known": rounded(known / pairs.max(1) as f64, 100.0),
        "seconds": rounded(seconds, 1000.0),
        "matching_seconds": rounded(matching, 1000.0),
        "fps": rounded(pairs as f64 / matching.max(1e-3), 100.0),
        "engines": engines,
        "settings": sum["settings"],
    }))
}
