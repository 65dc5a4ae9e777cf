//! `stereod batch verify`: checks that every pair exists once, and that every file is unchanged.

use std::path::{Path, PathBuf};
use std::{fmt, fs};

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
        let Inspected { whole, problems } = check(folder, &plan, of_input)?;
        for mut problem in problems {
            if remove && matches!(problem.cure, Cure::Removal) {
                let place = folder.join(&problem.name);
                fs::remove_dir_all(&place).map_err(|error| explain(&place, &error))?;
                problem.cure = Cure::Text("removed; start the batch again".into());
                checked.removed.push(problem.name.clone());
            }
            checked.problems.push(problem.to_string());
        }
        for (_, manifest) in &whole {
            checked.whole += 1;
            checked.pairs += manifest.pairs;
            checked.damaged += manifest.damaged;
            checked.size += manifest.size;
        }
    }
    let Checked { inputs, pieces, whole, pairs, damaged, size, problems, removed: _ } = &checked;
    if json {
        print(serde_json::to_string(&checked).map_err(anyhow::Error::from)? + "\n")?;
    } else {
        let lines: String = problems.iter().map(|problem| format!("{problem}\n")).collect();
        let damaged = match damaged {
            0 => String::new(),
            count => format!(", damaged frames in the inputs: {count}"),
        };
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
    /// Problems of pieces that are not whole, and between pieces.
    pub problems: Vec<Problem>,
}

/// A problem of a piece or an input.
pub struct Problem {
    name: String,
    reason: String,
    /// Folder of the batch, for the cure.
    folder: PathBuf,
    cure: Cure,
}

enum Cure {
    /// The folder of the piece, which has no other files, has to be removed.
    Removal,
    Text(String),
    None,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, reason, folder, cure } = self;
        write!(f, "{name}: {reason}")?;
        match cure {
            Cure::Removal => write!(
                f,
                "; `stereod batch verify --remove {}` removes it, then start the batch again",
                folder.display()
            ),
            Cure::Text(text) => write!(f, "; {text}"),
            Cure::None => Ok(()),
        }
    }
}

/// Reads all pieces of an input.
pub fn check<'a>(
    folder: &Path,
    plan: &Plan,
    of_input: &'a [Piece],
) -> Result<Inspected<'a>, Error> {
    let (mut whole, mut problems) = (Vec::new(), Vec::new());
    for piece in of_input {
        let place = folder.join(&piece.name);
        let (reason, cure) = match state(folder, plan, piece)? {
            State::Missing => {
                let folder = folder.display();
                let cure =
                    format!("`stereod batch missing {folder}` lists the shards to start again");
                ("it is not there".to_owned(), Cure::Text(cure))
            }
            // Only a person can tell whether the batch has made it.
            State::Other(reason) if reason == NO_MANIFEST => (
                reason,
                Cure::Text(format!("remove {} and start the batch again", place.display())),
            ),
            State::Other(reason) => {
                (reason, Cure::Text("start the batch again, which makes it anew".into()))
            }
            State::Done(manifest) => {
                match (flaw(&manifest, &place), foreign(&place, &plan.own_files())?) {
                    (None, _) => {
                        whole.push((piece, *manifest));
                        continue;
                    }
                    (Some(reason), None) => (reason, Cure::Removal),
                    (Some(reason), Some(other)) => {
                        let other = place.join(other);
                        (
                            reason,
                            Cure::Text(format!("move {} away and verify again", other.display())),
                        )
                    }
                }
            }
        };
        let (name, folder) = (piece.name.clone(), folder.to_owned());
        problems.push(Problem { name, reason, folder, cure });
    }
    let input = of_input.first().map_or("", |piece| plan.inputs[piece.input].name.as_str());
    problems.extend(gap(input, &whole).map(|(name, reason)| Problem {
        name,
        reason,
        folder: folder.to_owned(),
        cure: Cure::None,
    }));
    Ok(Inspected { whole, problems })
}

/// Reads the files of a piece, and returns their first difference from the manifest.
fn flaw(manifest: &Manifest, place: &Path) -> Option<String> {
    manifest.check(place).unwrap_or_else(|error| Some(format!("{error:#}")))
}

/// Returns the place of missing pairs between whole pieces of an input. Ranges do not overlap, so no pair
/// exists twice.
fn gap(input: &str, whole: &[(&Piece, Manifest)]) -> Option<(String, String)> {
    let is_short = |piece: &Piece, manifest: &Manifest| {
        piece.end.is_some_and(|end| manifest.pairs < end - piece.first)
    };
    let is_long = |piece: &Piece, manifest: &Manifest| {
        piece.end.is_some_and(|end| manifest.pairs > end - piece.first)
    };
    let long = whole.iter().find(|(piece, manifest)| is_long(piece, manifest));
    if let Some((piece, manifest)) = long {
        let reason = format!("it has {} pairs, more than its range", manifest.pairs);
        return Some((piece.name.clone(), reason));
    }
    let short = whole.iter().position(|(piece, manifest)| is_short(piece, manifest))?;
    let later = whole[short + 1..].iter().find(|(_, manifest)| manifest.pairs > 0);
    let (piece, manifest) = &whole[short];
    later.map(|(later, _)| {
        let missing = piece.first + manifest.pairs;
        let reason = format!("pair {missing} is missing, but {} has pairs", later.name);
        (input.to_owned(), reason)
    })
}
