//! What every output file has in common: clear refusals, and pictures that appear whole or not at
//! all.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::SystemTime;

use anyhow::{Context, Result, bail};

/// Creates (or empties) the file for an output.
///
/// # Errors
/// Where that is impossible; the message names the path, what is wrong and, where the folder is
/// missing, what to do.
pub fn create(path: &Path) -> Result<File> {
    if path.is_dir() {
        bail!("cannot write {}: it is a folder; name a file", path.display());
    }
    File::create(path).map_err(|error| explain(path, &error))
}

/// The error for an output file that could not be created or written.
pub fn explain(path: &Path, error: &io::Error) -> anyhow::Error {
    let folder = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    let shown = path.display();
    match error.kind() {
        io::ErrorKind::NotFound if !folder.exists() => anyhow::anyhow!(
            "cannot write {shown}: the folder {0} does not exist; `mkdir -p {0}` makes it",
            folder.display()
        ),
        io::ErrorKind::PermissionDenied => anyhow::anyhow!(
            "cannot write {shown}: no permission; choose a folder in which you may write"
        ),
        io::ErrorKind::ReadOnlyFilesystem => {
            anyhow::anyhow!("cannot write {shown}: it is on a read-only file system")
        }
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => anyhow::anyhow!(
            "cannot write {shown}: the disk is full; make room or write to another disk"
        ),
        _ => anyhow::anyhow!("cannot write {shown}: {error}"),
    }
}

/// Year, month and day of a moment, UTC.
pub fn date(now: SystemTime) -> (u64, u64, u64) {
    civil(now.duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_secs() / 86400))
}

/// A moment of UTC as ISO 8601 writes it without separators, to the second: `20261121T101500Z`.
/// Names of files that begin so sort by time.
pub fn compact_time(moment: SystemTime) -> String {
    let (year, month, day) = date(moment);
    let seconds = moment.duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let (hour, minute, second) = (seconds / 3600 % 24, seconds / 60 % 60, seconds % 60);
    format!("{year:04}{month:02}{day:02}T{hour:02}{minute:02}{second:02}Z")
}

/// Year, month and day of the Gregorian calendar, `days` after 1 January 1970.
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

/// The path's extension in lower case, empty where it has none.
pub fn extension(path: &Path) -> String {
    path.extension().map(|e| e.to_string_lossy().to_lowercase()).unwrap_or_default()
}

/// Writes a whole file: under a temporary name in the same folder first, then renamed. Whoever
/// looks, and whenever the program is killed, sees the earlier file or the complete new one.
///
/// # Errors
/// Where it could not be written; the temporary file is then removed.
pub fn write_whole(path: &Path, content: &[u8]) -> Result<()> {
    // What is not an ordinary file (a pipe, /dev/stdout) cannot be replaced by a rename.
    if fs::metadata(path).is_ok_and(|found| !found.is_file()) {
        let mut file = create(path)?;
        return file.write_all(content).map_err(|error| explain(path, &error));
    }
    // A link is followed: it is its target that is replaced.
    let target = fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf());
    let unfinished = unfinished_name(&target)?;
    let written = File::create(&unfinished)
        .and_then(|mut file| file.write_all(content))
        .and_then(|()| fs::rename(&unfinished, &target));
    written.map_err(|error| {
        // Best effort: the error that matters is the one above.
        let _ = fs::remove_file(&unfinished);
        explain(path, &error)
    })
}

/// Whether files can be made in the folder that holds `path`.
///
/// # Errors
/// Where that is impossible; the message is that of [`create`].
pub fn check_folder_of(path: &Path) -> Result<()> {
    let probe = unfinished_name(path)?;
    File::create(&probe).map_err(|error| explain(path, &error))?;
    // One that cannot be removed is empty and hidden: no reason to refuse to write.
    let _ = fs::remove_file(&probe);
    Ok(())
}

/// Whether it is for want of room that something could not be written.
pub fn is_full(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}

/// A name beside `path` that no picture viewer takes for a picture, and that no other thread or
/// process uses now.
fn unfinished_name(path: &Path) -> Result<PathBuf> {
    path.file_name().with_context(|| format!("{} names no file", path.display()))?;
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    Ok(path.with_file_name(format!(".stereod-{}-{count}.part", std::process::id())))
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
        let error = create(&inside).unwrap_err().to_string();
        assert!(error.contains("missing/out.png") && error.contains("mkdir -p"), "{error}");
        let error = write_whole(&inside, b"x").unwrap_err().to_string();
        assert!(error.contains("mkdir -p"), "{error}");
        let error = create(dir.path()).unwrap_err().to_string();
        assert!(error.contains("is a folder"), "{error}");
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

    #[cfg(target_os = "linux")]
    #[test]
    fn a_full_disk_is_called_so() {
        let error = write_whole(Path::new("/dev/full"), b"x").unwrap_err().to_string();
        assert!(error.contains("/dev/full") && error.contains("disk is full"), "{error}");
    }
}
