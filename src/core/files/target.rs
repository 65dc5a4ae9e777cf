//! Targets of output names, and errors of writing them.

use std::path::{Path, PathBuf};
use std::{fs, io};

use anyhow::{Context, Result, bail};

/// Explains why an output file could not be created or written.
pub fn explain(path: &Path, error: &io::Error) -> anyhow::Error {
    let folder = folder_of(path);
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
        _ if error.raw_os_error() == Some(libc::EMFILE) => anyhow::anyhow!(
            "cannot write {shown}: too many open files; raise the limit of this process (ulimit -n)"
        ),
        _ => anyhow::anyhow!("cannot write {shown}: {error}"),
    }
}

/// Target of an output's name.
#[derive(Debug, PartialEq, Eq)]
pub enum Target {
    /// An ordinary file, existing or not: its path without links.
    File(PathBuf),
    /// A device or pipe, which is written directly.
    Stream,
}

/// Follows the links of an output's name, also to a missing file.
pub fn target(path: &Path) -> Result<Target> {
    let shown = path.display();
    if path.is_dir() || path.as_os_str().as_encoded_bytes().ends_with(b"/") {
        bail!("cannot write {shown}: it is a folder; name a file");
    }
    if fs::metadata(path).is_ok_and(|found| !found.is_file()) {
        return Ok(Target::Stream);
    }
    let mut at = path.to_path_buf();
    // As many links as Linux follows.
    for _ in 0..40 {
        let name = at.file_name().with_context(|| format!("{shown} names no file"))?;
        let folder = fs::canonicalize(folder_of(&at)).map_err(|error| explain(path, &error))?;
        at = folder.join(name);
        match fs::read_link(&at) {
            Ok(next) => at = folder.join(next),
            Err(_) => return Ok(Target::File(at)),
        }
    }
    bail!("cannot write {shown}: it is a link that leads nowhere")
}

pub fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}
