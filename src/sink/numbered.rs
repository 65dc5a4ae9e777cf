//! A folder of numbered files, one per pair, and a file that describes them.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};

use anyhow::{Result, bail};

use crate::sink::claim::Claim;
use crate::sink::files;
use crate::sink::new_file::NewFile;

/// Number of first bytes that identify a kind of file.
const BEGIN: usize = 64;

/// Kind of numbered files.
#[derive(Debug)]
pub struct Kind {
    /// Plural name for people: "pictures".
    pub plural: &'static str,
    /// Singular name for people.
    pub singular: &'static str,
    /// Extensions that they may have.
    pub extensions: &'static [&'static str],
    /// Name of the folder's description.
    pub description: &'static str,
    /// Reports whether a file with these first bytes was written by stereod.
    pub is_ours: fn(&[u8]) -> bool,
}

impl Kind {
    /// Returns the number in a file's name, if it is such a name.
    fn number_of(&self, name: &OsStr) -> Option<u64> {
        let (number, extension) = name.to_str()?.split_once('.')?;
        let number = number.parse().ok().filter(|_| self.extensions.contains(&extension))?;
        (OsStr::new(&name_of(number, extension)) == name).then_some(number)
    }

    /// Returns the numbered files of a folder in order.
    fn numbered(&self, dir: &Path) -> Result<Vec<PathBuf>> {
        let entries = fs::read_dir(dir).map_err(|error| files::explain(dir, &error))?;
        let names = entries.filter_map(Result::ok).map(|entry| entry.file_name());
        let mut numbered: Vec<_> =
            names.filter_map(|name| Some((self.number_of(&name)?, name))).collect();
        numbered.sort_unstable();
        Ok(numbered.into_iter().map(|(_, name)| dir.join(name)).collect())
    }

    /// Reports whether a file may have been written by stereod.
    fn may_be_ours(&self, path: &Path) -> bool {
        let mut begin = [0; BEGIN];
        fs::symlink_metadata(path).is_ok_and(|about| about.is_file())
            && File::open(path).and_then(|mut file| file.read_exact(&mut begin)).is_ok()
            && (self.is_ours)(&begin)
    }

    /// Reports whether this name can occur in a folder of this kind.
    pub fn is_written(&self, name: &OsStr) -> bool {
        self.number_of(name).is_some() || name == self.description
    }
}

/// Returns the name of the file of a pair.
fn name_of(number: u64, extension: &str) -> String {
    format!("{number:06}.{extension}")
}

/// Writes `DIR/NNNNNN.EXT`, numbered by the pairs' sequence numbers.
///
/// Each file appears under its name only when it is complete, with a description next to it. The
/// numbered files of a folder belong to one run: the first new file removes all that an earlier run
/// has left. Files that stereod has not written are neither replaced nor removed.
#[derive(Debug)]
pub struct NumberedFiles {
    dir: PathBuf,
    kind: &'static Kind,
    extension: &'static str,
    /// Until the first file is written.
    waiting: Option<Waiting>,
    _claim: Claim,
}

/// [`NumberedFiles::create`] or [`NumberedFiles::resume`].
pub type Open = fn(&Path, &'static Kind, &'static str, String) -> Result<NumberedFiles>;

/// Work to do with the first file.
#[derive(Debug)]
struct Waiting {
    description: NewFile,
    text: String,
    /// Files of an earlier run.
    earlier: Vec<PathBuf>,
}

impl NumberedFiles {
    /// Creates the folder (and its parents) if missing, for files with one of the kind's extensions.
    /// `text` becomes the description.
    pub fn create(
        dir: &Path,
        kind: &'static Kind,
        extension: &'static str,
        text: String,
    ) -> Result<Self> {
        let mut files = Self::resume(dir, kind, extension, text)?;
        let earlier = kind.numbered(dir)?;
        let (Some(waiting), Some(first)) = (&mut files.waiting, earlier.first()) else {
            return Ok(files);
        };
        let Kind { plural, description, .. } = kind;
        if !waiting.description.spares_earlier() {
            bail!(
                "cannot write {plural} into {}: there are numbered {plural} already, such as {}, and no \
                 {description} that says stereod has written them; name another folder",
                dir.display(),
                first.display()
            );
        }
        if let Some(foreign) = earlier.iter().find(|path| !kind.may_be_ours(path)) {
            bail!(
                "cannot write {plural} into {}: {} is none of stereod's; move it, or name another folder",
                dir.display(),
                foreign.display()
            );
        }
        waiting.earlier = earlier;
        Ok(files)
    }

    /// Continues in a folder with files of this run.
    pub fn resume(
        dir: &Path,
        kind: &'static Kind,
        extension: &'static str,
        text: String,
    ) -> Result<Self> {
        if dir.exists() && !dir.is_dir() {
            bail!("cannot write {} into {}: it is not a folder", kind.plural, dir.display());
        }
        fs::create_dir_all(dir).map_err(|error| files::explain(dir, &error))?;
        let claim = Claim::on_folder(dir)?;
        // This also checks, before the first match, that the folder can be written.
        let description = NewFile::create(&dir.join(kind.description))?;
        let waiting = Some(Waiting { description, text, earlier: Vec::new() });
        Ok(Self { dir: dir.to_path_buf(), kind, extension, waiting, _claim: claim })
    }

    /// Writes the file of a pair.
    pub fn write(&mut self, sequence: u64, content: &[u8]) -> Result<()> {
        let path = self.dir.join(name_of(sequence, self.extension));
        files::write_whole(&path, content)?;
        match self.waiting.take() {
            Some(waiting) => self.take_over(waiting, &path),
            None => Ok(()),
        }
    }

    /// Puts the description in place, and removes the files of an earlier run except `written`.
    fn take_over(&self, waiting: Waiting, written: &Path) -> Result<()> {
        let Waiting { description, text, earlier } = waiting;
        let Kind { plural, singular, .. } = self.kind;
        description.finish_with(text.as_bytes())?;
        for path in earlier.iter().filter(|path| *path != written) {
            match fs::remove_file(path) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                    bail!(
                        "cannot remove {}, a {singular} of an earlier run: {error}",
                        path.display()
                    );
                }
                _ => {}
            }
        }
        if !earlier.is_empty() {
            let (dir, count) = (self.dir.display(), earlier.len());
            tracing::info!("{dir}: new {plural} take the place of {count} of an earlier run");
        }
        Ok(())
    }
}
