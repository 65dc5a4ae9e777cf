//! Segments of an endless recording: their names, and their deletion.
//!
//! The segments of `DIR/NAME.mkv` are `DIR/NAME-20261121T101500Z-00003.mkv`: their start time, and
//! a number that keeps rising over runs. Names sort by time, and numbers by age even if the
//! machine's clock was wrong. Only files with such names are ever counted or deleted.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use anyhow::{Context, Result, bail};

use stereod_core::files;

/// Least number of digits, with leading zeros.
const DIGITS: usize = 5;

/// Shortest time between two queries of the free space.
const ROOM_EVERY: Duration = Duration::from_millis(500);

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SegmentLimits {
    /// Time between the first frames of two segments; `None`: unlimited.
    pub length: Option<Duration>,
    /// Largest size of a segment in bytes; `None`: unlimited. One frame always fits.
    pub size: Option<u64>,
    /// Largest size of all segments in bytes, beyond which the oldest are deleted; `None`:
    /// unlimited. A segment is full at half of this, so that there always is one to delete.
    pub keep: Option<u64>,
    /// Bytes to keep free on the file system by deleting the oldest; `None`: none.
    pub keep_free: Option<u64>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Segment {
    number: u64,
    path: PathBuf,
    bytes: u64,
}

/// Largest number of a segment. No recording reaches it, so a file with a larger number is not ours
/// (numbers continue from the largest).
const NUMBER_MAX: u64 = 1 << 60;

#[derive(Debug, Default)]
pub struct Segments {
    base: PathBuf,
    limits: SegmentLimits,
    finished: Vec<Segment>,
    current: Option<PathBuf>,
    /// The number of the youngest, even if it was deleted.
    last: u64,
    room_asked: Option<Instant>,
    /// Set once a failed deletion was reported.
    complained: bool,
}

impl Segments {
    pub fn new(base: &Path, limits: SegmentLimits) -> Result<Self> {
        files::check_folder_of(base)?;
        let segments = Self::named(base, limits);
        let first = segments.path_of(SystemTime::UNIX_EPOCH, 1);
        match fs::symlink_metadata(&first) {
            Err(error) if error.kind() == io::ErrorKind::InvalidFilename => bail!(
                "cannot write {}: its name is too long, because the time and number of a segment add {} \
                 bytes to it; give a shorter name",
                base.display(),
                first.as_os_str().len() - base.as_os_str().len()
            ),
            _ => Ok(segments),
        }
    }

    fn named(base: &Path, limits: SegmentLimits) -> Self {
        Self { base: base.to_path_buf(), limits, ..Self::default() }
    }

    /// Creates the file of the next segment, which starts at `start`, and makes room for it. No file is ever
    /// replaced. The file stays locked while it is open, so that no other run deletes it.
    pub fn open(&mut self, start: SystemTime) -> Result<(File, PathBuf)> {
        self.current = None;
        self.look();
        let youngest = self.finished.first().map_or(0, |youngest| youngest.number);
        self.last = self.last.max(youngest);
        self.prune(0);
        loop {
            let path = self.path_of(start, self.last + 1);
            match File::create_new(&path) {
                Ok(file) => {
                    // Some file systems have no locks; then no other run checks for them either.
                    let _ = file.try_lock();
                    self.last += 1;
                    self.current = Some(path.clone());
                    return Ok((file, path));
                }
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => self.last += 1,
                Err(error) if files::is_full(&error) && self.make_room() => {}
                Err(error) => return Err(files::explain(&path, &error)),
            }
        }
    }

    /// Reports whether a segment is full with `bytes` bytes, if its next frame comes `age` after its first
    /// one.
    pub fn is_full(&self, bytes: u64, age: Duration) -> bool {
        let half = self.limits.keep.map(|keep| keep / 2);
        let size = self.limits.size.into_iter().chain(half).min();
        size.is_some_and(|size| bytes > size)
            || self.limits.length.is_some_and(|length| age >= length)
    }

    /// Deletes the oldest segments until the limits are kept; the open one has `writing` bytes.
    pub fn prune(&mut self, writing: u64) {
        if let Some(keep) = self.limits.keep {
            let mut total: u64 = writing + self.finished.iter().map(|s| s.bytes).sum::<u64>();
            while total > keep {
                let Some(freed) = self.delete_oldest() else { break };
                total -= freed;
            }
        }
        let Some(wanted) = self.limits.keep_free else { return };
        if self.room_asked.is_some_and(|asked| asked.elapsed() < ROOM_EVERY) {
            return;
        }
        self.room_asked = Some(Instant::now());
        while free_bytes(self.folder()).is_ok_and(|free| free < wanted) {
            if self.delete_oldest().is_none() {
                break;
            }
        }
    }

    /// Deletes the oldest segment on a full disk, if deletion is enabled; reports whether there is
    /// more room now.
    pub fn make_room(&mut self) -> bool {
        let wanted = self.limits.keep.is_some() || self.limits.keep_free.is_some();
        wanted && self.delete_oldest().is_some()
    }

    /// Deletes the oldest segment that can be deleted, and returns its size; `None` if there is none.
    fn delete_oldest(&mut self) -> Option<u64> {
        while let Some(oldest) = self.finished.pop() {
            match files::delete_unlocked(&oldest.path) {
                Ok(true) => {
                    tracing::debug!("deleted {} to make room", oldest.path.display());
                    return Some(oldest.bytes);
                }
                // Another run writes it.
                Ok(false) => {}
                // Another process was faster.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    return Some(oldest.bytes);
                }
                Err(error) if !std::mem::replace(&mut self.complained, true) => {
                    tracing::warn!(
                        "cannot delete {} to make room: {error}; old segments pile up until this \
                         user may delete them",
                        oldest.path.display()
                    );
                }
                Err(_) => {}
            }
        }
        None
    }

    /// Lists the finished segments; if the folder cannot be read, the old list stays.
    fn look(&mut self) {
        let Ok(entries) = fs::read_dir(self.folder()) else { return };
        let found = entries.filter_map(Result::ok).filter_map(|entry| {
            let number = self.number_of(entry.file_name().to_str()?)?;
            // Of the entry itself, because links are no segments.
            let about = entry.metadata().ok().filter(fs::Metadata::is_file)?;
            let path = self.base.with_file_name(entry.file_name());
            Some(Segment { number, path, bytes: about.len() })
        });
        let mut found: Vec<Segment> =
            found.filter(|segment| Some(&segment.path) != self.current.as_ref()).collect();
        found.sort_by(|a, b| (b.number, &b.path).cmp(&(a.number, &a.path)));
        self.finished = found;
    }

    fn folder(&self) -> &Path {
        files::folder_of(&self.base)
    }

    /// Returns the constant parts of the names: "NAME-" and ".mkv".
    fn name_parts(&self) -> (String, String) {
        let [stem, extension] = [self.base.file_stem(), self.base.extension()]
            .map(|part| part.unwrap_or_default().to_string_lossy());
        (format!("{stem}-"), format!(".{extension}"))
    }

    fn path_of(&self, start: SystemTime, number: u64) -> PathBuf {
        let (before, after) = self.name_parts();
        let time = files::compact_time(start);
        self.base.with_file_name(format!("{before}{time}-{number:0DIGITS$}{after}"))
    }

    fn number_of(&self, name: &str) -> Option<u64> {
        let (before, after) = self.name_parts();
        let (time, number) = name.strip_prefix(&before)?.strip_suffix(&after)?.split_once('-')?;
        let (date, clock) = time.strip_suffix('Z')?.split_once('T')?;
        let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
        let is_ours = date.len() >= 8 && clock.len() == 6 && number.len() >= DIGITS;
        let number = (is_ours && [date, clock, number].into_iter().all(digits))
            .then(|| number.parse().ok())?;
        number.filter(|&number| number <= NUMBER_MAX)
    }
}

#[derive(Clone, Debug)]
pub enum Place {
    /// A file or folder of this name; the first frame replaces the content of an earlier run.
    New(PathBuf),
    /// Segments of the file of this name, each a file of its own. Nothing is replaced.
    Segments(PathBuf, SegmentLimits),
    /// A folder that this run has written into before.
    Resumed(PathBuf),
}

impl Place {
    pub fn path(&self) -> &Path {
        let (Place::New(path) | Place::Segments(path, _) | Place::Resumed(path)) = self;
        path
    }

    pub(super) fn segments(&self) -> Result<Option<Segments>> {
        match self {
            Place::Segments(base, limits) => Segments::new(base, *limits).map(Some),
            Place::New(_) | Place::Resumed(_) => Ok(None),
        }
    }
}

impl<P: AsRef<Path> + ?Sized> From<&P> for Place {
    fn from(path: &P) -> Self {
        Place::New(path.as_ref().to_path_buf())
    }
}

/// Reports whether a file of this name, in the folder of the recording `base`, is one of its
/// segments, which may be deleted for room.
pub fn is_segment(base: &Path, name: &OsStr) -> bool {
    let segments = Segments::named(base, SegmentLimits::default());
    name.to_str().is_some_and(|name| segments.number_of(name).is_some())
}

/// Returns the bytes that this user may still write to a folder's file system.
pub fn free_bytes(folder: &Path) -> Result<u64> {
    fs4::available_space(folder)
        .with_context(|| format!("cannot ask for the room of {}", folder.display()))
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use proptest::prelude::*;

    use super::*;

    fn at(seconds: u64) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_secs(1_795_256_100 + seconds)
    }

    fn names(folder: &Path) -> Vec<String> {
        let name = |entry: io::Result<fs::DirEntry>| entry.unwrap().file_name();
        let mut names: Vec<_> = fs::read_dir(folder)
            .unwrap()
            .map(name)
            .map(|name| name.into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    /// Writes a segment of this size.
    fn write(segments: &mut Segments, second: u64, bytes: usize) {
        let (mut file, _) = segments.open(at(second)).unwrap();
        file.write_all(&vec![7; bytes]).unwrap();
        segments.prune(bytes as u64);
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn only_names_of_our_own_have_a_number(
            base in "[a-zA-Z0-9_. -]{1,12}",
            second in 0u64..20_000_000_000,
            number in 0..=NUMBER_MAX,
            other in prop_oneof!["\\PC{0,40}", "[a-z]-[0-9]{0,12}T[0-9]{0,8}Z-[0-9]{0,24}[.]mkv"],
        ) {
            let path = std::env::temp_dir().join(format!("{base}.mkv"));
            let segments = Segments::new(&path, SegmentLimits::default()).unwrap();
            let start = SystemTime::UNIX_EPOCH + Duration::from_secs(second);
            let name = segments.path_of(start, number);
            let name = name.file_name().unwrap().to_str().unwrap();
            prop_assert_eq!(segments.number_of(name), Some(number));
            prop_assert!(segments.number_of(&other).is_none_or(|number| number <= NUMBER_MAX));
            for (at, _) in name.char_indices() {
                // Cut off or begun late, it is another file.
                prop_assert_eq!(segments.number_of(&name[..at]), None);
            }
        }
    }

    #[test]
    fn names_sort_and_numbers_go_on_in_the_next_run() {
        let folder = tempfile::tempdir().unwrap();
        let base = folder.path().join("out.mkv");
        let mut segments = Segments::new(&base, SegmentLimits::default()).unwrap();
        write(&mut segments, 0, 1);
        write(&mut segments, 3, 1);
        let mut next_run = Segments::new(&base, SegmentLimits::default()).unwrap();
        // The clock was set back meanwhile: the same name once more but for its number.
        write(&mut next_run, 0, 1);
        assert_eq!(
            names(folder.path()),
            [
                "out-20261121T101500Z-00001.mkv",
                "out-20261121T101500Z-00003.mkv",
                "out-20261121T101503Z-00002.mkv"
            ]
        );
    }

    #[test]
    fn numbers_that_cannot_go_on_are_not_ours() {
        let folder = tempfile::tempdir().unwrap();
        let foreign = folder.path().join(format!("out-20261121T101500Z-{}.mkv", u64::MAX));
        fs::write(&foreign, "x").unwrap();
        let mut segments =
            Segments::new(&folder.path().join("out.mkv"), SegmentLimits::default()).unwrap();
        let (_, path) = segments.open(at(0)).unwrap();
        assert!(path.to_str().unwrap().ends_with("-00001.mkv"), "{}", path.display());
        assert!(foreign.exists());
    }

    #[test]
    fn the_oldest_of_this_recording_go_and_nothing_else_does() {
        let folder = tempfile::tempdir().unwrap();
        let foreign = [
            "out.mkv",
            "other-20261121T101500Z-00001.mkv",
            "out-20261121T101500Z-00001.mp4",
            "out-20261121T101500Z-00001.mkv.bak",
            "out-20261121T101500Z-1.mkv",
            "out-2026112xT101500Z-00001.mkv",
            "out-front-20261121T101500Z-00001.mkv",
            "out-20261121T101500Z-00001 copy.mkv",
        ];
        for name in foreign {
            fs::write(folder.path().join(name), [0; 5000]).unwrap();
        }
        fs::create_dir(folder.path().join("out-20261121T101500Z-00002.mkv")).unwrap();
        let limits = SegmentLimits { keep: Some(2500), ..SegmentLimits::default() };
        let base = folder.path().join("out.mkv");
        let mut segments = Segments::new(&base, limits).unwrap();
        for second in 0..5 {
            write(&mut segments, second, 1000);
        }
        let mut expected: Vec<String> = foreign.iter().map(|name| name.to_string()).collect();
        expected.extend(
            ["101500Z-00002", "101503Z-00004", "101504Z-00005"]
                .map(|rest| format!("out-20261121T{rest}.mkv")),
        );
        expected.sort();
        assert_eq!(names(folder.path()), expected);

        // Segments of an earlier run count, and the one being written stays, however large.
        let mut next_run = Segments::new(&base, limits).unwrap();
        write(&mut next_run, 9, 9000);
        let kept = names(folder.path());
        assert!(kept.contains(&"out-20261121T101509Z-00006.mkv".to_owned()), "{kept:?}");
        assert_eq!(kept.len(), foreign.len() + 2, "{kept:?}");
    }

    #[test]
    fn one_that_another_run_writes_is_not_deleted() {
        let folder = tempfile::tempdir().unwrap();
        let base = folder.path().join("out.mkv");
        let limits = SegmentLimits { keep: Some(10), ..SegmentLimits::default() };
        let mut other = Segments::new(&base, limits).unwrap();
        let (mut file, theirs) = other.open(at(0)).unwrap();
        file.write_all(&[1; 100]).unwrap();
        let mut ours = Segments::new(&base, limits).unwrap();
        write(&mut ours, 1, 100);
        assert!(theirs.exists());
        drop(file);
        write(&mut ours, 2, 100);
        assert_eq!(names(folder.path()), ["out-20261121T101502Z-00003.mkv"]);
    }

    #[test]
    fn segments_are_full_by_size_or_time() {
        let folder = tempfile::tempdir().unwrap();
        let base = folder.path().join("out.mkv");
        let with = |limits| Segments::new(&base, limits).unwrap();
        let (second, none) = (Duration::from_secs(1), SegmentLimits::default());
        assert!(!with(none).is_full(u64::MAX, second * 1_000_000));
        let sized = with(SegmentLimits { size: Some(10), ..none });
        assert!(!sized.is_full(10, second) && sized.is_full(11, second));
        let timed = with(SegmentLimits { length: Some(second * 3), ..none });
        assert!(!timed.is_full(11, second * 2) && timed.is_full(0, second * 3));
        // Two of them always fit into the limit.
        let kept = with(SegmentLimits { size: Some(10), keep: Some(8), ..none });
        assert!(!kept.is_full(4, second) && kept.is_full(5, second));
    }

    #[test]
    fn room_is_made_only_where_deleting_is_wanted() {
        let folder = tempfile::tempdir().unwrap();
        let base = folder.path().join("out.mkv");
        let none = SegmentLimits::default();
        let mut segments = Segments::new(&base, none).unwrap();
        (0..3).for_each(|second| write(&mut segments, second, 10));
        segments.look();
        assert!(!segments.make_room());
        assert_eq!(names(folder.path()).len(), 3);
        let all = free_bytes(folder.path()).unwrap();
        assert!(all > 0);
        // More than there is: everything but the one being written goes.
        let mut greedy =
            Segments::new(&base, SegmentLimits { keep_free: Some(u64::MAX), ..none }).unwrap();
        write(&mut greedy, 5, 10);
        assert_eq!(names(folder.path()), ["out-20261121T101505Z-00004.mkv"]);
        assert!(!greedy.make_room());
    }
}
