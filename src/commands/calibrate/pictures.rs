//! Pairs of image files, and the boards detected in them.

use std::cell::Cell;
use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

use indicatif::ProgressBar;

use super::super::Error;
use super::{detector, refuse_inputs};
use crate::cli::calibrate::CalibrateArgs;
use crate::commands::progress_bar;
use crate::settings::{Loaded, Source};
use stereod_calibration::board::Board;
use stereod_calibration::board::detect::Detector;
use stereod_calibration::solve::{Reason, Sighting, fit};
use stereod_core::frame::{Eye, Image};
use stereod_core::picture::grey::Grey;
use stereod_core::picture::{orientation, still};
use stereod_io::source::pictures::{files_of_glob, number_in_name};

pub(super) struct Found {
    /// Width and height of the images of each camera.
    pub(super) sizes: [(usize, usize); 2],
    pub(super) sightings: Vec<Sighting>,
}

/// A pair's files; one of them may be missing.
type Files = [Option<PathBuf>; 2];

pub(super) fn look_at(args: &CalibrateArgs, loaded: &Loaded, board: Board) -> Result<Found, Error> {
    let eyes = [
        expand(&args.left_pictures, "--left-pictures")?,
        expand(&args.right_pictures, "--right-pictures")?,
    ];
    refuse_inputs(args, loaded, eyes.iter().flatten().cloned())?;
    let pairs = pair_up(eyes)?;
    let detector = detector(args, board);
    let reading = Reading { source: &loaded.settings.source, tags_reported: Cell::new(false) };
    let bar = progress_bar(Some(pairs.len() as u64), args.common.quiet, "pairs");
    let seen: Vec<_> =
        pairs.iter().map(|files| look_at_pair(&detector, files, &reading, &bar)).collect();
    bar.finish_and_clear();
    crate::telemetry::logs::write_above(None);
    let sizes = |eye: usize| usual(seen.iter().filter_map(|(_, sizes, _)| Some((*sizes)?[eye])));
    let usual = sizes(0).zip(sizes(1)).map(<[_; 2]>::from).ok_or_else(|| {
        let reasons: Vec<String> = seen
            .iter()
            .filter_map(|(name, _, seen)| Some(format!("\n  {name}: {}", seen.as_ref().err()?)))
            .take(5)
            .collect();
        Error::Failed(anyhow::anyhow!("no pair of pictures can be read:{}", reasons.concat()))
    })?;
    let sightings = seen.into_iter().map(|(name, sizes, seen)| {
        let eyes = Eye::BOTH.into_iter().zip(sizes.into_iter().flatten()).zip(usual);
        let other = eyes.into_iter().find(|((_, size), usual)| size != usual);
        let seen = match other {
            Some(((eye, size), usual)) => Err(Reason::Size { eye, size, usual }),
            None => seen,
        };
        Sighting { name, seen }
    });
    Ok(Found { sizes: usual, sightings: sightings.collect() })
}

type Looked = (
    String,
    Option<[(usize, usize); 2]>,
    Result<[stereod_calibration::board::Detection; 2], Reason>,
);

struct Reading<'a> {
    source: &'a Source,
    tags_reported: Cell<bool>,
}

impl Reading<'_> {
    /// Reads the images of a pair as 8-bit intensity.
    fn pair(&self, files: [&Path; 2]) -> Result<[Image; 2], Reason> {
        let Source { tone, orient, .. } = *self.source;
        let unreadable = |error: anyhow::Error| Reason::Unreadable(format!("{error:#}"));
        let [left, right] = files.map(|file| still::read(file, orient).map_err(unreadable));
        let stills = [left?, right?];
        if !self.tags_reported.get() {
            let name = |file: &Path| file.display().to_string();
            let tags = [0, 1].map(|eye| (name(files[eye]), stills[eye].orientation));
            self.tags_reported.set(orientation::report(&tags, orient));
        }
        Ok(stills.map(|still| Grey::of(still.picture).into_image(tone)))
    }
}

fn look_at_pair(
    detector: &Detector,
    files: &Files,
    reading: &Reading<'_>,
    bar: &ProgressBar,
) -> Looked {
    bar.inc(1);
    let name = |path: &Option<PathBuf>| -> Option<String> {
        Some(path.as_deref()?.file_name()?.to_string_lossy().into_owned())
    };
    let names: Vec<String> = files.iter().filter_map(name).collect();
    let name = names.join(" + ");
    let [Some(left), Some(right)] = files else {
        let eye = if files[0].is_some() { Eye::Left } else { Eye::Right };
        return (name, None, Err(Reason::Alone(eye)));
    };
    let [left, right] = match reading.pair([left, right]) {
        Ok(pair) => pair,
        Err(reason) => return (name, None, Err(reason)),
    };
    let sizes = [&left, &right].map(|image| (image.width(), image.height()));
    let seen = fit(&detector.detect_pair(&left, &right));
    match &seen {
        Ok(_) => tracing::debug!("{name}: the board is seen"),
        Err(reason) => tracing::debug!("{name}: {reason}"),
    }
    (name, Some(sizes), seen)
}

/// Expands names and patterns to files, each once, by name.
fn expand(patterns: &[String], flag: &str) -> Result<Vec<PathBuf>, Error> {
    let mut files = Vec::new();
    for pattern in patterns {
        // A name may contain brackets without being a pattern.
        if Path::new(pattern).exists() {
            files.push(PathBuf::from(pattern));
            continue;
        }
        let found = files_of_glob(pattern)
            .map_err(|error| Error::usage(format!("{flag}: {pattern}: {error}")))?;
        let before = files.len();
        files.extend(found);
        if files.len() == before {
            return Err(Error::usage(format!("{flag}: no file is called {pattern}")));
        }
    }
    let mut seen = HashSet::new();
    files.retain(|file| seen.insert(file.clone()));
    Ok(files)
}

/// Pairs files with the same number, or by their order if the numbers are not unique.
fn pair_up(eyes: [Vec<PathBuf>; 2]) -> Result<Vec<Files>, Error> {
    let numbered = |files: &[PathBuf]| -> Option<HashMap<String, PathBuf>> {
        let all: Option<HashMap<_, _>> =
            files.iter().map(|file| Some((number_in_name(file)?, file.clone()))).collect();
        all.filter(|all| all.len() == files.len())
    };
    if let (Some(left), Some(mut right)) = (numbered(&eyes[0]), numbered(&eyes[1]))
        && left.keys().any(|number| right.contains_key(number))
    {
        let mut pairs: Vec<(String, Files)> = left
            .into_iter()
            .map(|(number, file)| {
                let partner = right.remove(&number);
                (number, [Some(file), partner])
            })
            .collect();
        pairs.extend(right.into_iter().map(|(number, file)| (number, [None, Some(file)])));
        // Numbers may exceed any integer type: compared by length, then digit by digit.
        pairs.sort_by(|(a, _), (b, _)| (a.len(), a).cmp(&(b.len(), b)));
        return Ok(pairs.into_iter().map(|(_, files)| files).collect());
    }
    let [left, right] = eyes;
    if left.len() != right.len() {
        return Err(Error::usage(format!(
            "{} left and {} right pictures cannot be paired by the numbers in their names; number \
             them alike (left01.png, right01.png), or give as many of each",
            left.len(),
            right.len()
        )));
    }
    Ok(left.into_iter().zip(right).map(|(left, right)| [Some(left), Some(right)]).collect())
}

/// Returns the most frequent size of one camera's images.
fn usual(sizes: impl Iterator<Item = (usize, usize)>) -> Option<(usize, usize)> {
    let mut counts: HashMap<_, usize> = HashMap::new();
    sizes.for_each(|size| *counts.entry(size).or_default() += 1);
    counts.into_iter().max_by_key(|&(size, count)| (count, size)).map(|(size, _)| size)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(pairs: &[Files]) -> Vec<String> {
        let name = |file: &Option<PathBuf>| {
            file.as_ref().map_or_else(|| "-".to_owned(), |file| file.display().to_string())
        };
        pairs.iter().map(|[left, right]| format!("{} {}", name(left), name(right))).collect()
    }

    fn pairs(left: &[&str], right: &[&str]) -> Result<Vec<Files>, Error> {
        pair_up([left, right].map(|names| names.iter().map(PathBuf::from).collect()))
    }

    #[test]
    fn numbers_pair_pictures() {
        let found =
            pairs(&["a/l10.png", "a/l2.png", "a/l3.png"], &["b/r02.png", "b/r10.png", "b/r7.png"]);
        assert_eq!(
            names(&found.unwrap()),
            ["a/l2.png b/r02.png", "a/l3.png -", "- b/r7.png", "a/l10.png b/r10.png"]
        );
        let stamps = pairs(&["1403715273262142976.png"], &["1403715273262142976.png"]).unwrap();
        assert_eq!(stamps.len(), 1);
    }

    #[test]
    fn order_pairs_what_numbers_do_not() {
        let found = pairs(&["a_cam0.png", "b_cam0.png"], &["a_cam1.png", "b_cam1.png"]).unwrap();
        assert_eq!(names(&found), ["a_cam0.png a_cam1.png", "b_cam0.png b_cam1.png"]);
        let error = pairs(&["a.png", "b.png"], &["a.png"]).unwrap_err();
        assert!(error.to_string().contains("number them alike"), "{error}");
        assert_eq!(error.exit_status(), 2);
    }

    #[test]
    fn patterns_and_names_are_expanded_once() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name).display().to_string();
        for name in ["l1.png", "l2.png", "l[3].png"] {
            std::fs::write(at(name), "x").unwrap();
        }
        let files =
            expand(&[at("l*.png"), at("l1.png"), at("l[3].png")], "--left-pictures").unwrap();
        assert_eq!(files.len(), 3);
        let error = expand(&[at("r*.png")], "--right-pictures").unwrap_err();
        assert!(error.to_string().contains("r*.png") && error.exit_status() == 2, "{error}");
        assert!(expand(&["a***b".into()], "--left-pictures").is_err());
    }
}
