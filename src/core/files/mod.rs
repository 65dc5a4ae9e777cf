//! Rules for all output files: clear refusals, and files that appear whole or not at all.

pub mod claim;
pub mod new_file;
mod target;

use std::fs::{self, TryLockError};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use anyhow::{Result, bail};

use crate::files::new_file::NewFile;
pub use crate::files::target::{Target, explain, folder_of, target};
use crate::reading;

/// Returns year, month and day of a time, UTC.
pub fn date(now: SystemTime) -> (u64, u64, u64) {
    civil(now.duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_secs() / 86400))
}

/// Formats a time in UTC as `20261121T101500Z`, so that file names sort by time.
pub fn compact_time(moment: SystemTime) -> String {
    let (year, month, day) = date(moment);
    let seconds = moment.duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let (hour, minute, second) = (seconds / 3600 % 24, seconds / 60 % 60, seconds % 60);
    format!("{year:04}{month:02}{day:02}T{hour:02}{minute:02}{second:02}Z")
}

/// Returns year, month and day of the Gregorian calendar, `days` after 1 January 1970.
fn civil(mut days: u64) -> (u64, u64, u64) {
    let leap = |year: u64| {
        year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400))
    };
    let mut year = 1970;
    while days >= 365 + u64::from(leap(year)) {
        days -= 365 + u64::from(leap(year));
        year += 1;
    }
    let february = 28 + u64::from(leap(year));
    let mut month = 1;
    for length in [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31] {
        if days < length {
            break;
        }
        days -= length;
        month += 1;
    }
    (year, month, days + 1)
}

/// Returns the path's extension in lower case; empty if it has none.
pub fn extension(path: &Path) -> String {
    path.extension().map(|e| e.to_string_lossy().to_lowercase()).unwrap_or_default()
}

/// Refuses outputs of one command, each with its flag, that are the same file, also by links.
pub fn refuse_same<'f, 'p>(outputs: impl IntoIterator<Item = (&'f str, &'p Path)>) -> Result<()> {
    let mut seen: Vec<(&str, Identity)> = Vec::new();
    for (flag, path) in outputs {
        let Some(identity) = Identity::of(path) else { continue };
        if let Some((other, _)) = seen.iter().find(|(_, known)| *known == identity) {
            bail!(
                "{other} and {flag} are the same file, {}, and would destroy each other; name another \
                 file for one of them",
                path.display()
            );
        }
        seen.push((flag, identity));
    }
    Ok(())
}

/// Identity of a file, equal for two names of one.
#[derive(PartialEq, Eq)]
enum Identity {
    /// Device and number of an existing file.
    Inode(u64, u64),
    /// Path without links of a missing one.
    Path(PathBuf),
}

impl Identity {
    /// Returns `None` for devices, which many may write at once, and for paths that cannot be written.
    fn of(path: &Path) -> Option<Self> {
        let Ok(Target::File(file)) = target(path) else { return None };
        Some(inode(&file).map_or(Self::Path(file), |(device, number)| Self::Inode(device, number)))
    }
}

/// Returns device and number of the file of this name; of a link itself, not of its target.
#[cfg(unix)]
pub(super) fn inode(path: &Path) -> Option<(u64, u64)> {
    use std::os::unix::fs::MetadataExt;
    fs::symlink_metadata(path).ok().map(|about| (about.dev(), about.ino()))
}

/// Other systems have no such numbers.
#[cfg(not(unix))]
pub(super) fn inode(_: &Path) -> Option<(u64, u64)> {
    None
}

/// Writes a whole file: next to its place first, as [`NewFile`] does. Readers see the earlier file
/// or the complete new one, even if the program is killed.
pub fn write_whole(path: &Path, content: &[u8]) -> Result<()> {
    NewFile::create(path)?.finish_with(content)
}

/// Writes a new file whole, and returns its name: this one or, if there is such a file, the first free one with a
/// number, `NAME-2.toml`. An earlier file is never replaced.
pub fn write_new(path: &Path, content: &[u8]) -> Result<PathBuf> {
    let failed = |error: io::Error| explain(path, &error);
    let mut unfinished = tempfile::Builder::new();
    #[cfg(unix)]
    unfinished.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
    let unfinished = unfinished.prefix(".stereod-").suffix(".part").tempfile_in(folder_of(path));
    let mut unfinished = unfinished.map_err(failed)?;
    unfinished.write_all(content).map_err(failed)?;
    for number in 1_u32.. {
        let name = numbered(path, number);
        match unfinished.persist_noclobber(&name) {
            Ok(_) => return Ok(name),
            Err(taken) if taken.error.kind() == io::ErrorKind::AlreadyExists => {
                unfinished = taken.file;
            }
            Err(other) => return Err(failed(other.error)),
        }
    }
    bail!("cannot write {}: all such names are taken", path.display())
}

/// Returns the files that `of_stem` names for this stem or, if there is one of them, for the first free stem with a
/// number, `STEM-2`.
pub fn unused<const FILES: usize>(
    stem: &str,
    of_stem: impl Fn(&str) -> [PathBuf; FILES],
) -> [PathBuf; FILES] {
    let stems = (2..).map(|number| of_stem(&format!("{stem}-{number}")));
    let mut all = std::iter::once(of_stem(stem)).chain(stems);
    let is_free = |files: &[PathBuf; FILES]| files.iter().all(|file| !file.exists());
    all.find(is_free).expect("there is always a further number")
}

/// Returns the path with a number behind its stem; 1 is the path itself.
fn numbered(path: &Path, number: u32) -> PathBuf {
    if number == 1 {
        return path.to_path_buf();
    }
    let mut name = path.file_stem().unwrap_or_default().to_os_string();
    name.push(format!("-{number}"));
    if let Some(extension) = path.extension() {
        name.push(".");
        name.push(extension);
    }
    path.with_file_name(name)
}

/// Checks that an output can be written at the end of long work.
pub fn check_writable(path: &Path) -> Result<()> {
    match target(path)? {
        // A pipe that is opened and closed has ended for its reader.
        Target::Stream => Ok(()),
        Target::File(_) => NewFile::create(path).map(drop),
    }
}

pub fn check_folder_of(path: &Path) -> Result<()> {
    let probe =
        tempfile::Builder::new().prefix(".stereod-").suffix(".part").tempfile_in(folder_of(path));
    probe.map(drop).map_err(|error| explain(path, &error))
}

/// Deletes a file unless it is locked; reports whether it did.
pub fn delete_unlocked(path: &Path) -> io::Result<bool> {
    let file = reading::open(path)?;
    if let Err(TryLockError::WouldBlock) = file.try_lock() {
        return Ok(false);
    }
    fs::remove_file(path).map(|()| true)
}

pub fn is_full(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn moments_as_names() {
        let at = |seconds| compact_time(SystemTime::UNIX_EPOCH + Duration::from_secs(seconds));
        // `date -u -d @1795256105 +%Y%m%dT%H%M%SZ`
        assert_eq!(at(1_795_256_105), "20261121T101505Z");
        assert_eq!(at(951_868_799), "20000229T235959Z");
        assert_eq!(at(0), "19700101T000000Z");
    }

    #[test]
    fn missing_folders_and_folders_are_named() {
        let dir = tempfile::tempdir().unwrap();
        let inside = dir.path().join("missing/out.png");
        let error = write_whole(&inside, b"x").unwrap_err().to_string();
        assert!(error.contains("missing/out.png") && error.contains("mkdir -p"), "{error}");
        let error = check_writable(&inside).unwrap_err().to_string();
        assert!(error.contains("mkdir -p"), "{error}");
        for folder in [dir.path(), &dir.path().join("new/")] {
            let error = write_whole(folder, b"x").unwrap_err().to_string();
            assert!(error.contains("is a folder"), "{error}");
        }
    }

    #[test]
    fn a_file_is_replaced_whole_and_nothing_else_is_left() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.bin");
        write_whole(&path, b"first, and longer").unwrap();
        write_whole(&path, b"second").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"second");
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_new_file_takes_the_first_free_name() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.b.toml");
        let names = ["a.b.toml", "a.b-2.toml", "a.b-3.toml"];
        for name in names {
            assert_eq!(write_new(&path, name.as_bytes()).unwrap(), dir.path().join(name));
        }
        for name in names {
            assert_eq!(fs::read(dir.path().join(name)).unwrap(), name.as_bytes());
        }
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 3);
        let two = |stem: &str| ["toml", "png"].map(|it| dir.path().join(format!("{stem}.{it}")));
        assert_eq!(unused("new", two), two("new"));
        assert_eq!(unused("a.b", two), two("a.b-4"));
        let error = write_new(&dir.path().join("missing/a"), b"x").unwrap_err().to_string();
        assert!(error.contains("mkdir -p"), "{error}");
    }

    #[cfg(unix)]
    #[test]
    fn links_keep_pointing() {
        let dir = tempfile::tempdir().unwrap();
        let (file, link) = (dir.path().join("a"), dir.path().join("b"));
        fs::write(&file, b"old").unwrap();
        std::os::unix::fs::symlink(&file, &link).unwrap();
        write_whole(&link, b"new").unwrap();
        assert_eq!(fs::read(&file).unwrap(), b"new");
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    }

    #[cfg(unix)]
    #[test]
    fn a_link_to_nothing_yet_names_the_file_to_be_made() {
        let dir = tempfile::tempdir().unwrap();
        let (file, link) = (dir.path().join("a"), dir.path().join("b"));
        std::os::unix::fs::symlink("a", &link).unwrap();
        write_whole(&link, b"new").unwrap();
        assert_eq!(fs::read(&file).unwrap(), b"new");
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        std::os::unix::fs::symlink("round", dir.path().join("round")).unwrap();
        assert!(write_whole(&dir.path().join("round"), b"x").is_err());
    }

    #[cfg(unix)]
    #[test]
    fn one_file_under_two_names_is_no_two_outputs() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        let refused = |a: &str, b: &str| {
            let (a, b) = (at(a), at(b));
            refuse_same([("-o", a.as_path()), ("--colour", b.as_path())]).map_err(|e| e.to_string())
        };
        fs::write(at("there"), b"").unwrap();
        fs::hard_link(at("there"), at("hard")).unwrap();
        std::os::unix::fs::symlink("there", at("soft")).unwrap();
        std::os::unix::fs::symlink("new", at("dangling")).unwrap();
        std::os::unix::fs::symlink("/dev/null", at("nothing")).unwrap();
        for (a, b) in [
            ("there", "there"),
            ("there", "hard"),
            ("soft", "hard"),
            ("new", "new"),
            ("new", "./new"),
            ("dangling", "new"),
        ] {
            let error = refused(a, b).expect_err(a);
            assert!(error.contains("-o and --colour are the same file"), "{error}");
        }
        for (a, b) in [("there", "new"), ("soft", "new"), ("nothing", "nothing")] {
            refused(a, b).unwrap();
        }
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_full_disk_is_called_so() {
        let error = write_whole(Path::new("/dev/full"), b"x").unwrap_err().to_string();
        assert!(error.contains("/dev/full") && error.contains("disk is full"), "{error}");
    }
}
