//! A file that replaces an earlier one only once it has content.
//!
//! It is written next to its place, under an unpredictable name, and renamed. An earlier file stays whole if
//! a run never starts, and a planted link is never written through. A killed program may leave
//! `.NAME.stereod-XXXXXX.part`, which the next program that [claims](super::claim) the same output removes.

use std::fs::{File, Metadata, OpenOptions};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{self, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use anyhow::Result;
use tempfile::TempPath;

use super::target::{Target, explain, folder_of, target};

pub(super) const UNFINISHED: &str = ".part";

#[derive(Debug)]
pub struct NewFile {
    /// The name given by the user.
    path: PathBuf,
    file: File,
    /// The unfinished file, until it is in its place; removes it when dropped.
    pending: Option<Pending>,
    seeks: bool,
}

#[derive(Debug)]
struct Pending {
    unfinished: TempPath,
    target: PathBuf,
    /// Set if there is an earlier file with content.
    replaces: bool,
}

impl NewFile {
    /// Starts the output; anything but an ordinary file (device, pipe with a reader) is opened directly.
    pub fn create(path: &Path) -> Result<Self> {
        match target(path)? {
            Target::File(target) => Self::beside(path, target),
            Target::Stream => Self::stream(path),
        }
    }

    /// Wraps the file `path`, which the caller has just created in its place.
    pub fn in_place(path: &Path, file: File) -> Self {
        Self { path: path.to_path_buf(), file, pending: None, seeks: true }
    }

    fn beside(path: &Path, target: PathBuf) -> Result<Self> {
        let refused = |error: &io::Error| explain(path, error);
        // Who may not write a file may not replace it either, though the folder would allow it.
        let earlier = match open(OpenOptions::new().write(true), &target, false) {
            Ok(earlier) => Some(earlier.metadata().map_err(|error| refused(&error))?),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(refused(&error)),
        };
        let mut name = tempfile::Builder::new();
        #[cfg(unix)]
        name.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
        let unfinished = name
            .prefix(&unfinished_prefix(&target))
            .suffix(UNFINISHED)
            .tempfile_in(folder_of(&target));
        let (file, unfinished) = unfinished.map_err(|error| refused(&error))?.into_parts();
        // Some file systems have no locks; then no other run checks for them either.
        let _ = file.try_lock();
        if let Some(earlier) = &earlier {
            take_over(&file, earlier);
        }
        let replaces = earlier.is_some_and(|earlier| earlier.len() > 0);
        let pending = Some(Pending { unfinished, target, replaces });
        Ok(Self { path: path.to_path_buf(), file, pending, seeks: true })
    }

    #[cfg(unix)]
    fn stream(path: &Path) -> Result<Self> {
        use std::os::unix::fs::FileTypeExt;
        let shown = path.display();
        let about = path.metadata().map_err(|error| explain(path, &error))?;
        if about.file_type().is_socket() {
            anyhow::bail!("cannot write {shown}: it is a socket; name a file");
        }
        let file = open(OpenOptions::new().write(true), path, true);
        let mut file = file.map_err(|error| match error.raw_os_error() {
            Some(libc::ENXIO) => anyhow::anyhow!(
                "cannot write {shown}: it is a pipe that nobody reads; start its reader first"
            ),
            _ => explain(path, &error),
        })?;
        if about.file_type().is_fifo()
            && matches!(file.try_lock(), Err(std::fs::TryLockError::WouldBlock))
        {
            anyhow::bail!(
                "cannot write {shown}: another run writes into this pipe; name another one"
            );
        }
        wait_for_room(&file).map_err(|error| explain(path, &error))?;
        let seeks = file.stream_position().is_ok();
        Ok(Self { path: path.to_path_buf(), file, pending: None, seeks })
    }

    #[cfg(not(unix))]
    fn stream(path: &Path) -> Result<Self> {
        let file = OpenOptions::new().write(true).open(path);
        let file = file.map_err(|error| explain(path, &error))?;
        Ok(Self { path: path.to_path_buf(), file, pending: None, seeks: false })
    }

    /// Returns the name given by the user.
    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn file(&self) -> &File {
        &self.file
    }

    /// Reports whether the file can be seeked; pipes cannot.
    pub fn seeks(&self) -> bool {
        self.seeks
    }

    /// Gives the file its name, replacing an earlier one; later calls do nothing. Its content is on
    /// the disk before an earlier file goes.
    pub fn put_in_place(&mut self) -> io::Result<()> {
        let Some(Pending { unfinished, target, replaces }) = self.pending.take() else {
            return Ok(());
        };
        if replaces {
            self.file.sync_data()?;
        }
        unfinished.persist(target).map_err(|refused| refused.error)
    }

    pub fn finish_with(mut self, content: &[u8]) -> Result<()> {
        let written = self.file.write_all(content).and_then(|()| self.put_in_place());
        written.map_err(|error| explain(&self.path, &error))
    }
}

impl Write for NewFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Seek for NewFile {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.file.seek(to)
    }
}

pub(super) fn unfinished_prefix(target: &Path) -> String {
    format!(".{}.stereod-", short_name(target))
}

/// Returns the name of a file, or a hash if names derived from it would be too long for a file system.
pub(super) fn short_name(target: &Path) -> String {
    let name = target.file_name().unwrap_or_default();
    if let Some(name) = name.to_str().filter(|name| name.len() < 200) {
        return name.to_owned();
    }
    let mut hasher = DefaultHasher::new();
    name.hash(&mut hasher);
    format!("{:016x}", hasher.finish())
}

/// Opens an existing file, without waiting for the other end of a pipe. A link at the end of the
/// name is refused unless it is to be followed.
pub fn open(options: &mut OpenOptions, path: &Path, follow: bool) -> io::Result<File> {
    #[cfg(unix)]
    {
        let no_link = if follow { 0 } else { libc::O_NOFOLLOW };
        std::os::unix::fs::OpenOptionsExt::custom_flags(options, libc::O_NONBLOCK | no_link);
    }
    #[cfg(not(unix))]
    let _ = follow;
    options.open(path)
}

/// Makes writes wait for room again, after an opening that did not wait.
#[cfg(unix)]
fn wait_for_room(file: &File) -> io::Result<()> {
    use std::os::fd::AsRawFd;
    let descriptor = file.as_raw_fd();
    // SAFETY: the descriptor belongs to an open file, and the calls take no pointers.
    let set = unsafe {
        let flags = libc::fcntl(descriptor, libc::F_GETFL);
        libc::fcntl(descriptor, libc::F_SETFL, flags & !libc::O_NONBLOCK)
    };
    if set == -1 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Copies owner and permissions (read, write, execute) of the file that will be replaced, as far as
/// this user may; the rest is skipped.
fn take_over(file: &File, earlier: &Metadata) {
    #[cfg(unix)]
    let permissions = {
        use std::os::unix::fs::{MetadataExt, PermissionsExt, fchown};
        let _ = fchown(file, Some(earlier.uid()), Some(earlier.gid()));
        // The setuid and setgid bits were granted to the earlier content.
        PermissionsExt::from_mode(earlier.mode() & 0o777)
    };
    #[cfg(not(unix))]
    let permissions = earlier.permissions();
    let _ = file.set_permissions(permissions);
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).unwrap();
        let mut names: Vec<_> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn an_earlier_file_stays_until_the_new_one_is_put_in_place() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a");
        fs::write(&path, b"earlier").unwrap();
        let mut file = NewFile::create(&path).unwrap();
        file.write_all(b"new").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"earlier");
        drop(file);
        assert_eq!(
            (fs::read(&path).unwrap(), names(dir.path())),
            (b"earlier".to_vec(), vec!["a".into()])
        );

        let mut file = NewFile::create(&path).unwrap();
        file.write_all(b"new").unwrap();
        file.put_in_place().unwrap();
        file.put_in_place().unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"new");
        file.write_all(b" and more").unwrap();
        drop(file);
        assert_eq!(
            (fs::read(&path).unwrap(), names(dir.path())),
            (b"new and more".to_vec(), vec!["a".into()])
        );
    }

    #[test]
    fn unfinished_names_cannot_be_told_beforehand() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a");
        let unfinished = || {
            let file = NewFile::create(&path).unwrap();
            let name = names(dir.path()).concat();
            assert!(name.starts_with(".a.stereod-") && name.ends_with(".part"), "{name}");
            drop(file);
            name
        };
        assert_ne!(unfinished(), unfinished());
        // Names as long as file systems allow can be written, too.
        let long = dir.path().join("n".repeat(255));
        NewFile::create(&long).unwrap().finish_with(b"x").unwrap();
        assert_eq!(fs::read(long).unwrap(), b"x");
    }

    #[cfg(unix)]
    #[test]
    fn a_new_file_is_not_run_as_somebody_else() {
        use std::os::unix::fs::PermissionsExt;
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a");
        fs::write(&path, b"earlier").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o6755)).unwrap();
        NewFile::create(&path).unwrap().finish_with(b"new").unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o7777, 0o755);
    }

    #[cfg(unix)]
    #[test]
    fn permissions_stay_and_are_those_of_any_new_file_at_first() {
        use std::os::unix::fs::PermissionsExt;
        let dir = tempfile::tempdir().unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        let (path, plain) = (dir.path().join("a"), dir.path().join("plain"));
        fs::write(&plain, b"").unwrap();
        NewFile::create(&path).unwrap().finish_with(b"x").unwrap();
        assert_eq!(mode(&path), mode(&plain));
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        NewFile::create(&path).unwrap().finish_with(b"y").unwrap();
        assert_eq!((fs::read(&path).unwrap(), mode(&path)), (b"y".to_vec(), 0o640));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_pipe_without_a_reader_is_an_error_and_not_waited_for() {
        let dir = tempfile::tempdir().unwrap();
        let pipe = dir.path().join("pipe");
        let made = std::process::Command::new("mkfifo").arg(&pipe).status().unwrap();
        assert!(made.success());
        let error = NewFile::create(&pipe).unwrap_err().to_string();
        assert!(error.contains("pipe that nobody reads"), "{error}");

        let reader = open(OpenOptions::new().read(true), &pipe, true).unwrap();
        let file = NewFile::create(&pipe).unwrap();
        assert!(!file.seeks());
        let error = NewFile::create(&pipe).unwrap_err().to_string();
        assert!(error.contains("another run"), "{error}");
        file.finish_with(b"through").unwrap();
        let read = io::read_to_string(reader).unwrap();
        assert_eq!(read, "through");
    }
}
