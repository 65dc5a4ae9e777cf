//! Numbered pictures as a stream: which files a pattern such as `left/%06d.png` stands for, and
//! when each of them is shown.
//!
//! Every number that exists is played, in order; gaps do not end the stream. A picture's time
//! comes from its number, so that a picture that one eye lacks leaves its partner alone instead
//! of shifting all that follow.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, bail, ensure};

/// The files of a pattern, by number.
#[derive(Clone, Debug)]
pub(super) struct Pictures {
    /// The pattern, as it was given.
    pub(super) pattern: String,
    /// Number and path of each picture that exists, in order.
    pub(super) files: Vec<(u64, PathBuf)>,
}

/// When the pictures of one or both eyes are shown.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Timing {
    /// The smallest number of all: time zero.
    first: u64,
    /// What all distances between numbers are multiples of: one frame period.
    step: u64,
    /// Periods a second.
    rate: f64,
}

/// A file name with one number in it.
struct Name<'a> {
    before: &'a str,
    after: &'a str,
    /// Digits at least, zeros in front.
    digits: usize,
}

impl<'a> Name<'a> {
    /// Reads `before%0Nd`after, also `%d`; `None` where there is no number in the name.
    fn parse(name: &'a str) -> Option<Self> {
        name.match_indices('%').find_map(|(at, _)| {
            let rest = &name[at + 1..];
            let end = rest.find(|c: char| !c.is_ascii_digit())?;
            let (width, after) = rest.split_at(end);
            let after = after.strip_prefix('d')?;
            // "%5d" pads with spaces, which no picture's name does.
            let digits = match width {
                "" => 1,
                width if width.starts_with('0') => width.parse().ok().filter(|&n| n <= 20)?,
                _ => return None,
            };
            Some(Self { before: &name[..at], after, digits })
        })
    }

    /// The number in `file`, where printf would have written that name.
    fn number(&self, file: &str) -> Option<u64> {
        let digits = file.strip_prefix(self.before)?.strip_suffix(self.after)?;
        let plain = digits.bytes().all(|b| b.is_ascii_digit());
        let padded =
            digits.len() == self.digits || (digits.len() > self.digits && !digits.starts_with('0'));
        (plain && padded).then(|| digits.parse().ok())?
    }
}

/// Whether `text` has a number in its file name, `%d` or `%0Nd`.
pub(super) fn is_pattern(text: &str) -> bool {
    split(text).is_some_and(|(_, name)| Name::parse(name).is_some())
}

fn split(text: &str) -> Option<(&Path, &str)> {
    let path = Path::new(text);
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    Some((folder.unwrap_or(Path::new(".")), path.file_name()?.to_str()?))
}

impl Pictures {
    /// Finds the files of `pattern`.
    ///
    /// # Errors
    /// Where the folder cannot be read, or holds no such file.
    pub(super) fn find(pattern: &str) -> anyhow::Result<Self> {
        let (folder, name) = split(pattern).context("no file name")?;
        let name = Name::parse(name).context("no number in the file name")?;
        ensure!(
            !folder.to_string_lossy().contains('%') || folder.is_dir(),
            "{pattern}: the number must be in the file's name, not in the folder's"
        );
        let entries = std::fs::read_dir(folder)
            .with_context(|| format!("{pattern}: cannot read the folder {}", folder.display()))?;
        let mut files = Vec::new();
        for entry in entries {
            let entry = entry.with_context(|| format!("{pattern}: {}", folder.display()))?;
            let number = entry.file_name().to_str().and_then(|file| name.number(file));
            if let Some(number) = number {
                files.push((number, entry.path()));
            }
        }
        files.sort_unstable();
        if files.is_empty() {
            let there = suggest(folder)
                .map(|there| format!("; pictures that are there: {there}"))
                .unwrap_or_default();
            bail!("{pattern}: no such picture in {}{there}", folder.display());
        }
        Ok(Self { pattern: pattern.to_owned(), files })
    }

    /// The numbers, in order.
    pub(super) fn numbers(&self) -> impl Iterator<Item = u64> {
        self.files.iter().map(|&(number, _)| number)
    }

    /// First and last number, for people.
    pub(super) fn range(&self) -> String {
        match (self.files.first(), self.files.last()) {
            (Some((first, _)), Some((last, _))) if first != last => format!("{first} to {last}"),
            (Some((first, _)), _) => first.to_string(),
            _ => "none".to_owned(),
        }
    }
}

/// The pattern of the numbered pictures in `folder`, if there are any.
pub(super) fn suggest(folder: &Path) -> Option<String> {
    let mut names: Vec<String> = std::fs::read_dir(folder)
        .ok()?
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .filter(|name| {
            let kind = name.rsplit('.').next().unwrap_or_default().to_ascii_lowercase();
            ["png", "jpg", "jpeg", "pgm", "ppm", "bmp", "tif", "tiff"].contains(&kind.as_str())
        })
        .collect();
    names.sort_unstable();
    names.iter().find_map(|name| {
        let (stem, kind) = name.rsplit_once('.')?;
        let digits = stem.len() - stem.trim_end_matches(|c: char| c.is_ascii_digit()).len();
        let before = &stem[..stem.len() - digits];
        let number = if digits == 1 { "%d".to_owned() } else { format!("%0{digits}d") };
        let pattern = folder.join(format!("{before}{number}.{kind}"));
        (digits > 0).then(|| pattern.display().to_string())
    })
}

/// Times for the pictures of all `streams` together, `rate` of them a second.
pub(super) fn timing(streams: &[&Pictures], rate: f64) -> Timing {
    let first = streams.iter().flat_map(|s| s.numbers()).min().unwrap_or(0);
    let step = streams.iter().flat_map(|s| s.numbers()).fold(0, |step, n| gcd(step, n - first));
    Timing { first, step: step.max(1), rate }
}

impl Timing {
    /// When picture `number` is shown.
    pub(super) fn time(&self, number: u64) -> Duration {
        let steps = number.saturating_sub(self.first) / self.step;
        // A century at most: numbers that are themselves dates would overflow GStreamer's clock.
        let nanos = (steps as f64 * 1e9 / self.rate).round().min(3e18);
        Duration::from_nanos(nanos as u64)
    }
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
        }
    }

    #[test]
    fn patterns_are_told_from_names() {
        for pattern in ["%06d.png", "left/%d.pgm", "a/b_%03d_rect.jpg", "100%/x%02d.png"] {
            assert!(is_pattern(pattern), "{pattern}");
        }
        for name in ["left.mp4", "100%.mp4", "%s.png", "a%20b.mp4", "%06d/left.png", "%5d.png"] {
            assert!(!is_pattern(name), "{name}");
        }
    }

    #[test]
    fn numbers_are_read_as_printf_writes_them() {
        let name = Name::parse("l%03d.png").unwrap();
        assert_eq!(name.number("l007.png"), Some(7));
        assert_eq!(name.number("l1234.png"), Some(1234));
        for other in ["l07.png", "l0123.png", "l.png", "l-07.png", "r007.png", "l007.jpg"] {
            assert_eq!(name.number(other), None, "{other}");
        }
        assert_eq!(Name::parse("%d.png").unwrap().number("12.png"), Some(12));
        assert_eq!(Name::parse("%d.png").unwrap().number("012.png"), None);
    }

    #[test]
    fn files_are_found_in_order_from_any_first_number() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["010.png", "9.png", "1000.png", "999.png", "012.png", "x.png"] {
            std::fs::write(folder.path().join(name), "x").unwrap();
        }
        let pattern = folder.path().join("%03d.png").display().to_string();
        let found = Pictures::find(&pattern).unwrap();
        assert_eq!(found.numbers().collect::<Vec<_>>(), [10, 12, 999, 1000]);
        assert_eq!(found.range(), "10 to 1000");
        assert_eq!(suggest(folder.path()).unwrap(), pattern);
        let other = folder.path().join("%05d.png").display().to_string();
        let error = Pictures::find(&other).unwrap_err().to_string();
        assert!(error.contains("%05d.png") && error.contains("%03d.png"), "{error}");
        let error = Pictures::find("nowhere/%05d.png").unwrap_err().to_string();
        assert!(error.contains("nowhere"), "{error}");
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
        assert!(super::timing(&[&pictures(&[0, 1, u64::MAX])], 20.0).time(u64::MAX) > period);
    }
}
