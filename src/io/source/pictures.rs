//! Numbered images as a stream: the files of a pattern such as `left/%06d.png`, `left/####.png` or
//! `left/*.png`, and their times.
//!
//! Every existing number is played, in order; gaps do not end the stream. An image's time follows from its
//! number, so an image that one view lacks leaves its partner alone instead of shifting all later ones.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, bail, ensure};

use crate::labels::{Labels, Timecode, Timing};
use crate::pattern::Pattern;

/// With DPX, which is not read, so that the error names the cure. MPO, JPS and PNS are stereo images.
const KINDS: [&str; 14] = [
    "png", "jpg", "jpeg", "pgm", "ppm", "pnm", "bmp", "tif", "tiff", "exr", "dpx", "mpo", "jps",
    "pns",
];

#[derive(Clone, Debug)]
pub(super) struct Pictures {
    pub(super) pattern: String,
    /// Number and path of each image that exists, in order.
    pub(super) files: Vec<(u64, PathBuf)>,
    /// Whether the numbers belong to a printf pattern; otherwise they were found in the names, or just count.
    asked: bool,
}

/// Returns the pattern in a file's name; `None` without a number in it.
fn parsed(name: &OsStr) -> Option<Pattern> {
    Pattern::parse(name, is_picture(Path::new(name)))
}

/// Reports whether `path` has a number in its file name, `%d` or `%0Nd`.
pub(super) fn is_pattern(path: &Path) -> bool {
    split(path).is_some_and(|(_, name)| parsed(name).is_some())
}

/// Reports whether `path` has `*`, `?` or `[` in it, which stand for any characters.
pub(super) fn is_glob(path: &Path) -> bool {
    path.to_str().is_some_and(|text| text.contains(['*', '?', '[']))
}

fn split(path: &Path) -> Option<(&Path, &OsStr)> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    Some((folder.unwrap_or(Path::new(".")), path.file_name()?))
}

/// Returns the files of a printf or shell pattern; none if it is no pattern.
pub(super) fn files_of(pattern: &Path) -> Vec<PathBuf> {
    if is_pattern(pattern) {
        let found = Pictures::find_numbered(pattern);
        return found.map_or_else(|_| Vec::new(), |found| found.paths().collect());
    }
    let Some(text) = pattern.to_str().filter(|text| text.contains(['%', '*', '?', '['])) else {
        return Vec::new();
    };
    // Other number formats match any text.
    let mut general = String::new();
    let mut parts = text.split('%');
    general.push_str(parts.next().unwrap_or_default());
    for part in parts {
        general.push('*');
        let format = part.trim_start_matches(|c: char| c.is_ascii_digit());
        general.push_str(format.strip_prefix(|c: char| c.is_ascii_alphabetic()).unwrap_or(format));
    }
    files_of_glob(&general).unwrap_or_default()
}

/// Returns the files of a shell pattern, by name. As in a shell, `*` stands for no hidden file.
pub fn files_of_glob(pattern: &str) -> Result<Vec<PathBuf>, glob::PatternError> {
    let options =
        glob::MatchOptions { require_literal_leading_dot: true, ..glob::MatchOptions::default() };
    let found = glob::glob_with(pattern, options)?;
    Ok(found.filter_map(Result::ok).filter(|path| path.is_file()).collect())
}

/// Returns the last number in a file's name, without leading zeros, for pairing images.
pub fn number_in_name(path: &Path) -> Option<String> {
    let stem = path.file_stem()?.to_string_lossy().into_owned();
    let digits = stem.rsplit(|c: char| !c.is_ascii_digit()).find(|part| !part.is_empty())?;
    let digits = digits.trim_start_matches('0');
    Some(if digits.is_empty() { "0".to_owned() } else { digits.to_owned() })
}

pub fn is_picture(path: &Path) -> bool {
    let kind = path.extension().unwrap_or_default().to_string_lossy().to_ascii_lowercase();
    KINDS.contains(&kind.as_str())
}

impl Pictures {
    pub(super) fn find(pattern: &Path) -> anyhow::Result<Self> {
        if is_pattern(pattern) { Self::find_numbered(pattern) } else { Self::find_globbed(pattern) }
    }

    pub(super) fn single(path: PathBuf) -> Self {
        Self { pattern: path.display().to_string(), files: vec![(0, path)], asked: false }
    }

    fn find_numbered(pattern: &Path) -> anyhow::Result<Self> {
        let shown = pattern.display();
        let (folder, name) = split(pattern).context("no file name")?;
        let name = parsed(name).context("no number in the file name")?;
        ensure!(
            !folder.to_string_lossy().contains('%') || folder.is_dir(),
            "{shown}: the number must be in the file's name, not in the folder's"
        );
        let entries = std::fs::read_dir(folder)
            .with_context(|| format!("{shown}: cannot read the folder {}", folder.display()))?;
        let mut files = Vec::new();
        for entry in entries {
            let entry = entry.with_context(|| format!("{shown}: {}", folder.display()))?;
            if let Some(number) = name.number(&entry.file_name()) {
                files.push((number, entry.path()));
            }
        }
        files.sort_unstable();
        if files.is_empty() {
            bail!("{shown}: no such picture in {}{}", folder.display(), there(folder));
        }
        Ok(Self { pattern: shown.to_string(), files, asked: true })
    }

    /// Finds the files of a shell pattern, ordered by the last number in their names, or by name if
    /// the numbers are not distinct.
    fn find_globbed(pattern: &Path) -> anyhow::Result<Self> {
        let shown = pattern.display().to_string();
        let files = files_of_glob(&shown).with_context(|| shown.clone())?;
        if files.is_empty() {
            let there = split(pattern).map(|(folder, _)| there(folder)).unwrap_or_default();
            bail!("{shown}: no file is called so{there}");
        }
        if let Some(other) = files.iter().find(|file| !is_picture(file)) {
            bail!("{shown}: {} is no picture; name one video, or pictures only", other.display());
        }
        let number = |file: &PathBuf| number_in_name(file)?.parse().ok();
        let numbers: Option<BTreeSet<u64>> = files.iter().map(number).collect();
        let told_apart = numbers.is_some_and(|numbers| numbers.len() == files.len());
        let mut found = Self { pattern: shown, files: Vec::new(), asked: false };
        found.files = files.into_iter().map(|file| (number(&file).unwrap_or(0), file)).collect();
        if told_apart {
            found.files.sort_unstable();
        } else {
            found.count();
        }
        Ok(found)
    }

    /// Makes two patterns count alike: by the numbers in the names if these pair the images, else
    /// in the order of the names.
    pub(super) fn agree(left: &mut Self, right: &mut Self) -> anyhow::Result<()> {
        let common = {
            let numbers: HashSet<u64> = left.numbers().collect();
            right.numbers().any(|number| numbers.contains(&number))
        };
        if common || (left.asked && right.asked) {
            return Ok(());
        }
        let (l, r) = (left.files.len(), right.files.len());
        ensure!(
            l == r,
            "the {l} pictures of {} and the {r} of {} cannot be paired by the numbers in their names; \
             number them alike (left01.png, right01.png), or give as many of each",
            left.pattern,
            right.pattern
        );
        if let Some(warning) = out_of_step(left, right) {
            tracing::warn!("{warning}");
        }
        left.count();
        right.count();
        Ok(())
    }

    /// Numbers the images in the order of their names.
    fn count(&mut self) {
        self.files.sort_unstable_by(|(_, a), (_, b)| a.cmp(b));
        (0..).zip(&mut self.files).for_each(|(count, (number, _))| *number = count);
    }

    pub(super) fn numbers(&self) -> impl Iterator<Item = u64> {
        self.files.iter().map(|&(number, _)| number)
    }

    fn paths(self) -> impl Iterator<Item = PathBuf> {
        self.files.into_iter().map(|(_, path)| path)
    }

    /// Returns the labels of the images, with the time code of the first file; no numbers if they are too large for
    /// times. `zero`: time of the first number.
    pub(super) fn labels(&self, timing: Timing, zero: Duration) -> Labels {
        let are_exact = |timing: &Timing| {
            self.numbers().all(|number| timing.number(timing.time(number)) == number)
        };
        let first = self.files.first();
        let code = first
            .and_then(|(number, path)| Some((Timecode::read(path, Some(timing.rate))?, *number)));
        let timing = Some(timing).filter(are_exact);
        Labels { zero, timing, timecode: code.filter(|_| timing.is_some()) }
    }

    /// Describes the first and last number.
    pub(super) fn range(&self) -> String {
        match (self.files.first(), self.files.last()) {
            (Some((first, _)), Some((last, _))) if first != last => format!("{first} to {last}"),
            (Some((first, _)), _) => first.to_string(),
            _ => "none".to_owned(),
        }
    }
}

/// Returns a warning if the numbers of the right view are those of the left one plus a constant: they may count from
/// different numbers.
pub(super) fn shifted(left: &Pictures, right: &Pictures) -> Option<String> {
    let (count, first) = (left.files.len(), (left.numbers().next()?, right.numbers().next()?));
    let shift = i128::from(first.1) - i128::from(first.0);
    let is_shifted = shift != 0
        && count == right.files.len()
        && left.numbers().zip(right.numbers()).all(|(l, r)| i128::from(r) - i128::from(l) == shift);
    is_shifted.then(|| {
        format!(
            "the numbers of the pictures begin at {} (left) and {} (right), and both views have {count}: if these \
             belong together in their order, `--set source.pair_by=index` pairs them so",
            first.0, first.1
        )
    })
}

/// Returns a warning if views that are paired in order have overlapping numbers that are more than half a step apart, such
/// as times of which one view lacks the first ones.
fn out_of_step(left: &Pictures, right: &Pictures) -> Option<String> {
    let ends = |view: &Pictures| Some((view.numbers().next()?, view.numbers().last()?));
    let ((begin, end), (other_begin, other_end)) = (ends(left)?, ends(right)?);
    let mut apart: Vec<u64> =
        left.numbers().zip(right.numbers()).map(|(l, r)| l.abs_diff(r)).collect();
    apart.sort_unstable();
    let step = (end - begin) as f64 / (apart.len() - 1).max(1) as f64;
    let steps = apart[apart.len() / 2] as f64 / step;
    (begin < other_end && other_begin < end && steps > 0.5).then(|| {
        format!(
            "{} and {} have no number in common, so their pictures are paired in order; by the numbers these are \
             {steps:.1} pictures apart: if the numbers are times, remove the first and last pictures that only one \
             view has",
            left.pattern, right.pattern
        )
    })
}

/// Returns a remark on the images in `folder`, to be appended to an error about missing ones.
fn there(folder: &Path) -> String {
    suggest(folder).map(|there| format!("; pictures that are there: {there}")).unwrap_or_default()
}

/// Returns the pattern of the numbered images in `folder`, if any.
pub(super) fn suggest(folder: &Path) -> Option<String> {
    let found = patterns(folder).into_iter().find(|pattern| is_pattern(pattern));
    found.map(|pattern| pattern.display().to_string())
}

/// Returns the patterns that together match every image in `folder`: numbers at the end of names are `%d`, all
/// other names `*`.
pub(super) fn patterns(folder: &Path) -> Vec<PathBuf> {
    // The digits of each number, by the name before and behind it.
    let mut found: BTreeMap<(String, String), Vec<String>> = BTreeMap::new();
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    for name in names.filter(|name| is_picture(Path::new(name)) && !name.starts_with('.')) {
        let Some((stem, kind)) = name.rsplit_once('.') else { continue };
        let before = stem.trim_end_matches(|c: char| c.is_ascii_digit());
        let digits = &stem[before.len()..];
        let before = if digits.is_empty() { "*" } else { before };
        found.entry((before.to_owned(), kind.to_owned())).or_default().push(digits.to_owned());
    }
    let pattern = |((before, kind), numbers): ((String, String), Vec<String>)| {
        let padded = numbers.iter().filter(|digits| digits.starts_with('0')).map(String::len);
        let lengths: BTreeSet<usize> = numbers.iter().map(String::len).collect();
        let length = match (padded.filter(|&length| length > 1).min(), lengths.len()) {
            (Some(length), _) => length,
            (None, 1) => lengths.first().copied().unwrap_or(0),
            (None, _) => 1,
        };
        let number = match length {
            0 => String::new(),
            1 => "%d".to_owned(),
            _ => format!("%0{length}d"),
        };
        folder.join(format!("{before}{number}.{kind}"))
    };
    found.into_iter().map(pattern).collect()
}

/// Returns the common timing of the images of all `streams`, `rate` of them a second.
pub(super) fn timing(streams: &[&Pictures], rate: f64) -> Timing {
    let first = streams.iter().flat_map(|s| s.numbers()).min().unwrap_or(0);
    let step = streams.iter().flat_map(|s| s.numbers()).fold(0, |step, n| gcd(step, n - first));
    Timing { first, step: step.max(1), rate }
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pictures(numbers: &[u64]) -> Pictures {
        Pictures {
            pattern: "p".to_owned(),
            files: numbers.iter().map(|&n| (n, PathBuf::from(n.to_string()))).collect(),
            asked: true,
        }
    }

    #[test]
    fn patterns_are_told_from_names() {
        for pattern in [
            "%06d.png",
            "left/%d.pgm",
            "a/b_%03d_rect.jpg",
            "100%/x%02d.png",
            "shot.####.exr",
            "#.png",
            "shot.$F4.exr",
            "$F.png",
        ] {
            assert!(is_pattern(Path::new(pattern)), "{pattern}");
        }
        for name in [
            "take#2.mp4",
            "take$F4.mp4",
            "##/left.png",
            "left.mp4",
            "100%.mp4",
            "%s.png",
            "a%20b.mp4",
            "%06d/left.png",
            "%5d.png",
        ] {
            assert!(!is_pattern(Path::new(name)), "{name}");
        }
    }

    #[test]
    fn files_are_found_in_order_from_any_first_number() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["010.png", "9.png", "1000.png", "999.png", "012.png", "x.png"] {
            std::fs::write(folder.path().join(name), "x").unwrap();
        }
        let pattern = folder.path().join("%03d.png").display().to_string();
        let found = Pictures::find(pattern.as_ref()).unwrap();
        assert_eq!(found.numbers().collect::<Vec<_>>(), [10, 12, 999, 1000]);
        assert_eq!(found.range(), "10 to 1000");
        assert_eq!(suggest(folder.path()).unwrap(), pattern);
        let other = folder.path().join("%05d.png").display().to_string();
        let error = Pictures::find(other.as_ref()).unwrap_err().to_string();
        assert!(error.contains("%05d.png") && error.contains("%03d.png"), "{error}");
        let error = Pictures::find("nowhere/%05d.png".as_ref()).unwrap_err().to_string();
        assert!(error.contains("nowhere"), "{error}");
    }

    #[test]
    fn a_shells_pattern_finds_pictures_by_number_or_by_name() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        for name in ["l10.png", "l9.png", "r010.jpg", "r009.jpg", "a_l.png", "b_l.png", "v.mp4"] {
            std::fs::write(at(name), "x").unwrap();
        }
        // macOS writes such a file for each image.
        std::fs::write(at("._l9.png"), "x").unwrap();
        let find = |name: &str| Pictures::find(&at(name));
        let numbers = |found: &Pictures| found.numbers().collect::<Vec<_>>();
        assert_eq!(numbers(&find("*9.png").unwrap()), [9]);
        let (mut left, mut right) = (find("l*.png").unwrap(), find("r*.jpg").unwrap());
        Pictures::agree(&mut left, &mut right).unwrap();
        assert_eq!((numbers(&left), numbers(&right)), (vec![9, 10], vec![9, 10]));
        assert!(left.files[0].1.ends_with("l9.png"));

        let mut named = find("?_l.png").unwrap();
        assert_eq!(numbers(&named), [0, 1]);
        Pictures::agree(&mut named, &mut right).unwrap();
        assert_eq!(numbers(&right), [0, 1]);
        let error = Pictures::agree(&mut named, &mut find("l9*.png").unwrap()).unwrap_err();
        assert!(error.to_string().contains("number them alike"), "{error}");

        let error = find("x*.png").unwrap_err().to_string();
        assert!(error.contains("x*.png") && error.contains("pictures that are there"), "{error}");
        let error = find("*").unwrap_err().to_string();
        assert!(error.contains("v.mp4 is no picture"), "{error}");
    }

    #[test]
    fn views_that_count_from_different_numbers_are_told() {
        let told = |left: &[u64], right: &[u64]| shifted(&pictures(left), &pictures(right));
        let warning = told(&[0, 1, 2, 4], &[1, 2, 3, 5]).unwrap();
        assert!(warning.contains("begin at 0 (left) and 1 (right), and both views have 4"));
        assert!(told(&[100, 110, 120], &[90, 100, 110]).is_some());
        // One view has other gaps, more images, or the same numbers.
        for (left, right) in [
            (&[0, 1, 2, 4][..], &[1, 2, 4, 5][..]),
            (&[0, 1, 2], &[1, 2]),
            (&[1, 2, 3], &[1, 2, 3]),
            (&[1, 2, 4], &[1, 2, 3]),
        ] {
            assert_eq!(told(left, right), None);
        }
    }

    #[test]
    fn times_in_names_that_contradict_the_order_are_told() {
        let told = |left: &[u64], right: &[u64]| out_of_step(&pictures(left), &pictures(right));
        let (first, step) = (1_403_636_579_763_555_584, 50_000_000);
        let times = |from: u64, late: u64| {
            (from..from + 8).map(|n| first + n * step + late + n % 2 * 1000).collect::<Vec<_>>()
        };
        let warning = told(&times(0, 0), &times(3, 7000)).unwrap();
        assert!(warning.contains("3.0 pictures apart"), "{warning}");
        assert_eq!(told(&times(0, 0), &times(0, 7000)), None);
        // Other numbers altogether.
        assert_eq!(told(&[0, 1, 2], &[100, 101, 102]), None);
        assert_eq!(told(&[3], &[4]), None);
    }

    #[test]
    fn time_follows_the_number() {
        let period = Duration::from_millis(50);
        // Every sixteenth frame, one missing in the middle: one period per sixteen numbers.
        let (left, right) = (pictures(&[32, 48, 64, 80]), pictures(&[16, 32, 80]));
        let timing = timing(&[&left, &right], 20.0);
        assert_eq!(timing, Timing { first: 16, step: 16, rate: 20.0 });
        assert_eq!(timing.time(16), Duration::ZERO);
        assert_eq!(timing.time(80), 4 * period);
        assert_eq!(super::timing(&[&pictures(&[5])], 20.0).time(5), Duration::ZERO);
        assert_eq!(right.labels(timing, period).number(3 * period), Some(48));
        let dates = pictures(&[1, 1_403_636_579_763_555_584]);
        let labels = dates.labels(super::timing(&[&dates, &left], 20.0), period);
        assert_eq!(labels.number(3 * period), None);
        assert!(super::timing(&[&pictures(&[0, 1, u64::MAX])], 20.0).time(u64::MAX) > period);
    }
}
