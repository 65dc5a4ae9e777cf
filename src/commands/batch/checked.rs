//! `stereod batch verify`: checks that every pair exists once, and that every file is unchanged.

use std::fs;
use std::path::Path;

use anyhow::anyhow;
use serde::Serialize;

use super::manifest::{Manifest, NO_MANIFEST, State, foreign, state};
use super::plan::{Piece, Plan};
use crate::commands::{Error, print};
use stereod_core::files::explain;

#[derive(Debug, Default, Serialize)]
struct Checked {
    inputs: usize,
    pieces: usize,
    whole: usize,
    pairs: u64,
    damaged: u64,
    size: u64,
    problems: Vec<String>,
    /// Pieces whose folders were removed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    removed: Vec<String>,
}

pub fn run(folder: &Path, json: bool, remove: bool) -> Result<(), Error> {
    let plan = Plan::of(folder)?;
    let pieces = plan.pieces();
    let mut checked =
        Checked { inputs: plan.inputs.len(), pieces: pieces.len(), ..Checked::default() };
    for of_input in pieces.chunk_by(|one, next| one.input == next.input) {
        let Inspected { whole, damaged, problems } = check(folder, &plan, of_input)?;
        for piece in damaged.into_iter().filter(|_| remove) {
            let place = folder.join(&piece.name);
            match foreign(&place, &plan.own_files())? {
                None => {
                    fs::remove_dir_all(&place).map_err(|error| explain(&place, &error))?;
                    checked.removed.push(piece.name.clone());
                }
                Some(name) => tracing::warn!(
                    "{}: not removed, because {} is none of its files",
                    piece.name,
                    name.display()
                ),
            }
        }
        for (_, manifest) in &whole {
            checked.whole += 1;
            checked.pairs += manifest.pairs;
            checked.damaged += manifest.damaged;
            checked.size += manifest.size;
        }
        checked.problems.extend(problems);
    }
    let Checked { inputs, pieces, whole, pairs, damaged, size, problems, removed } = &checked;
    if json {
        print(serde_json::to_string(&checked).map_err(anyhow::Error::from)? + "\n")?;
    } else {
        let lines: String = problems.iter().map(|problem| format!("{problem}\n")).collect();
        let damaged = match damaged {
            0 => String::new(),
            count => format!(", damaged frames in the inputs: {count}"),
        };
        let gone = |name: &String| format!("{name}: removed; start the batch again\n");
        let lines = lines + &removed.iter().map(gone).collect::<String>();
        print(format!(
            "{lines}{inputs} inputs, {whole} of {pieces} pieces whole, {pairs} pairs, {size} bytes{damaged}\n"
        ))?;
    }
    match problems.len() {
        0 => Ok(()),
        1 => Err(anyhow!("{}", problems[0]).into()),
        count => Err(anyhow!("{count} problems, the first one is {}", problems[0]).into()),
    }
}

/// The pieces of an input.
pub struct Inspected<'a> {
    pub whole: Vec<(&'a Piece, Manifest)>,
    /// Pieces whose files differ from their manifest.
    pub damaged: Vec<&'a Piece>,
    /// Problems of pieces that are not whole, and between pieces, with the cure.
    pub problems: Vec<String>,
}

/// Reads all pieces of an input.
pub fn check<'a>(
    folder: &Path,
    plan: &Plan,
    of_input: &'a [Piece],
) -> Result<Inspected<'a>, Error> {
    let (mut whole, mut damaged, mut problems) = (Vec::new(), Vec::new(), Vec::new());
    for piece in of_input {
        let place = folder.join(&piece.name);
        let reason = match state(folder, plan, piece)? {
            State::Missing => format!(
                "it is not there; `stereod batch missing {}` lists the shards to start again",
                folder.display()
            ),
            State::Other(reason) if reason == NO_MANIFEST => {
                format!("{reason}; remove {} and start the batch again", place.display())
            }
            State::Other(reason) => format!("{reason}; start the batch again, which makes it anew"),
            State::Done(manifest) => match flaw(&manifest, folder, piece) {
                None => {
                    whole.push((piece, *manifest));
                    continue;
                }
                Some(flaw) => {
                    damaged.push(piece);
                    flaw
                }
            },
        };
        problems.push(format!("{}: {reason}", piece.name));
    }
    let input = of_input.first().map_or("", |piece| plan.inputs[piece.input].name.as_str());
    problems.extend(gap(input, &whole));
    Ok(Inspected { whole, damaged, problems })
}

/// Reads the files of a piece, and returns their first difference from the manifest, with the cure.
fn flaw(manifest: &Manifest, folder: &Path, piece: &Piece) -> Option<String> {
    let place = folder.join(&piece.name);
    let reason = match manifest.check(&place) {
        Ok(found) => found?,
        Err(error) => format!("{error:#}"),
    };
    Some(format!("{reason}; remove {} and start the batch again", place.display()))
}

/// Returns the place of missing pairs between whole pieces of an input. Ranges do not overlap, so no pair
/// exists twice.
fn gap(input: &str, whole: &[(&Piece, Manifest)]) -> Option<String> {
    let is_short = |piece: &Piece, manifest: &Manifest| {
        piece.end.is_some_and(|end| manifest.pairs < end - piece.first)
    };
    let is_long = |piece: &Piece, manifest: &Manifest| {
        piece.end.is_some_and(|end| manifest.pairs > end - piece.first)
    };
    let long = whole.iter().find(|(piece, manifest)| is_long(piece, manifest));
    if let Some((piece, manifest)) = long {
        return Some(format!(
            "{}: it has {} pairs, more than its range",
            piece.name, manifest.pairs
        ));
    }
    let short = whole.iter().position(|(piece, manifest)| is_short(piece, manifest))?;
    let later = whole[short + 1..].iter().find(|(_, manifest)| manifest.pairs > 0);
    let (piece, manifest) = &whole[short];
    later.map(|(later, _)| {
        let missing = piece.first + manifest.pairs;
        format!("{input}: pair {missing} is missing, but {} has pairs", later.name)
    })
}
