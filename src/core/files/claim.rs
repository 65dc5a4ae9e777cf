//! Claims on outputs, so that only one run at a time writes each. A file is renamed into its place while it
//! is written, so the lock is on a file next to it, `.NAME.stereod-lock`. The system releases it whenever a
//! program ends, so that a lock file left by a killed run blocks no other run.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

use anyhow::{Result, bail};

use super::new_file::{self, UNFINISHED};
use crate::files::{self, Target};

/// Another run has the claim.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Taken(String);

/// The right to write an output, until dropped.
#[derive(Debug)]
pub struct Claim {
    lock: File,
    /// The lock's own file; `None` if the lock is on the output itself.
    beside: Option<PathBuf>,
}

impl Claim {
    /// Claims the output and removes unfinished files of killed runs; `None` for devices and pipes.
    pub fn on(path: &Path) -> Result<Option<Self>> {
        let Target::File(target) = files::target(path)? else { return Ok(None) };
        let name = format!(".{}.stereod-lock", new_file::short_name(&target));
        let beside = target.with_file_name(name);
        let lock = loop {
            let lock = open(&beside).map_err(|error| files::explain(path, &error))?;
            if let Err(TryLockError::WouldBlock) = lock.try_lock() {
                bail!(Taken(format!(
                    "cannot write {}: another run of stereod is writing it; name another file, or end \
                     that run first",
                    path.display()
                )));
            }
            // The previous owner may have removed it between the opening and the lock.
            if is_at(&lock, &beside) {
                break lock;
            }
        };
        let prefix = new_file::unfinished_prefix(&target);
        remove_unfinished(files::folder_of(&target), |name| name.starts_with(&prefix));
        Ok(Some(Self { lock, beside: Some(beside) }))
    }

    /// Claims an existing folder for numbered files, and removes unfinished files of killed runs.
    pub fn on_folder(folder: &Path) -> Result<Self> {
        // Windows opens no folder as a file.
        let beside = cfg!(windows).then(|| folder.join(".stereod-lock"));
        let lock = beside.as_deref().map_or_else(|| File::open(folder), open);
        let lock = lock.map_err(|error| files::explain(folder, &error))?;
        if let Err(TryLockError::WouldBlock) = lock.try_lock() {
            bail!(
                "cannot write into {}: another run of stereod is writing there; name another \
                 folder, or end that run first",
                folder.display()
            );
        }
        remove_unfinished(folder, |name| name.starts_with('.') && name.contains(".stereod-"));
        Ok(Self { lock, beside })
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        // Removed while locked, so that no program takes it meanwhile. If it stays, no harm is done.
        let mut beside = self.beside.iter().filter(|beside| is_at(&self.lock, beside));
        let _ = beside.try_for_each(fs::remove_file);
    }
}

fn open(path: &Path) -> io::Result<File> {
    loop {
        // A lock needs read access only, which is allowed on another user's file.
        match new_file::open(OpenOptions::new().read(true), path, false) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            opened => return opened,
        }
        match File::create_new(path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            created => return created,
        }
    }
}

#[cfg(unix)]
fn is_at(file: &File, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    let Ok(about) = file.metadata() else { return false };
    files::inode(path) == Some((about.dev(), about.ino()))
}

/// Files that are open cannot be removed on other systems.
#[cfg(not(unix))]
fn is_at(_: &File, _: &Path) -> bool {
    true
}

/// Removes unfinished files of killed runs, among the files with a matching name; none of them is locked.
fn remove_unfinished(folder: &Path, begins_right: impl Fn(&str) -> bool) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries.filter_map(io::Result::ok) {
        let name = entry.file_name();
        let Some(name) = name.to_str() else { continue };
        let is_file = entry.file_type().is_ok_and(|kind| kind.is_file());
        if !(is_file && begins_right(name) && name.ends_with(UNFINISHED)) {
            continue;
        }
        match files::delete_unlocked(&entry.path()) {
            Ok(true) => {
                tracing::debug!("removed {}, which a killed run has left", entry.path().display())
            }
            Ok(false) => {}
            Err(error) => tracing::debug!("cannot remove {}: {error}", entry.path().display()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::new_file::NewFile;
    use super::*;

    #[test]
    fn an_output_has_one_writer_whatever_it_is_called() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.mkv");
        let claim = Claim::on(&path).unwrap();
        let refused = |path: &Path| {
            let error = Claim::on(path).unwrap_err().to_string();
            assert!(error.contains("another run"), "{error}");
        };
        refused(&path);
        refused(&dir.path().join("./a.mkv"));
        // The claim outlives the renaming.
        files::write_whole(&path, b"x").unwrap();
        refused(&path);
        let _other = Claim::on(&dir.path().join("b.mkv")).unwrap();
        drop(claim);
        drop(Claim::on(&path).unwrap());
        assert!(!dir.path().join(".a.mkv.stereod-lock").exists());
        #[cfg(unix)]
        assert!(Claim::on(Path::new("/dev/null")).unwrap().is_none());
    }

    #[test]
    fn what_a_killed_run_has_left_stands_in_nobodys_way() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        let left = [".a.mkv.stereod-lock", ".a.mkv.stereod-Ab3xY9.part"];
        let foreign = [".b.mkv.stereod-Ab3xY9.part", ".a.mkv.stereod-Ab3xY9", "a.mkv.part"];
        for name in left.iter().chain(&foreign) {
            fs::write(at(name), b"").unwrap();
        }
        // One that is being written stays.
        let _writing = NewFile::create(&at("a.mkv")).unwrap();
        drop(Claim::on(&at("a.mkv")).unwrap().unwrap());
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), foreign.len() + 1);
        assert!(foreign.iter().all(|name| at(name).exists()));
    }

    #[test]
    fn of_many_at_once_one_gets_it() {
        let dir = tempfile::tempdir().unwrap();
        let path = &dir.path().join("a");
        for _ in 0..50 {
            let start = &std::sync::Barrier::new(4);
            let claims: Vec<_> = std::thread::scope(|scope| {
                let claim = || {
                    start.wait();
                    Claim::on(path).ok()
                };
                let threads: Vec<_> = (0..4).map(|_| scope.spawn(claim)).collect();
                threads.into_iter().filter_map(|thread| thread.join().unwrap()).collect()
            });
            assert_eq!(claims.len(), 1);
        }
    }

    // Windows opens no folder as a file; the library claims none.
    #[cfg(unix)]
    #[test]
    fn a_folder_has_one_writer() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join(".000007.png.stereod-Ab3xY9.part"), b"").unwrap();
        let claim = Claim::on_folder(dir.path()).unwrap();
        let error = Claim::on_folder(dir.path()).unwrap_err().to_string();
        assert!(error.contains("another run"), "{error}");
        drop(claim);
        Claim::on_folder(dir.path()).unwrap();
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
    }

    #[cfg(unix)]
    #[test]
    fn a_link_in_place_of_the_lock_is_not_followed() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        std::os::unix::fs::symlink("victim", at(".a.stereod-lock")).unwrap();
        assert!(Claim::on(&at("a")).is_err());
        assert!(!at("victim").exists());
    }
}
