//! A folder of numbered files, one a pair, and a file that describes them.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};

use anyhow::{Result, bail};

use crate::sink::claim::Claim;
use crate::sink::files;
use crate::sink::new_file::NewFile;

/// Bytes of a file's beginning by which its kind is told.
const BEGIN: usize = 64;

/// Kind of numbered files.
#[derive(Debug)]
pub struct Kind {
    /// Name for people, of several: "pictures".
    pub plural: &'static str,
    /// Name for people, of one.
    pub singular: &'static str,
    /// Extension of each.
    pub extension: &'static str,
    /// Name of the file that describes those of a folder, beside them.
    pub description: &'static str,
    /// Tells whether a file that begins so was written by stereod.
    pub is_ours: fn(&[u8]) -> bool,
}

impl Kind {
    fn path_of(&self, dir: &Path, number: u64) -> PathBuf {
        dir.join(format!("{number:06}.{}", self.extension))
    }

    /// The number of a file with this name, if it is one that is written here.
    fn number_of(&self, name: &OsStr) -> Option<u64> {
        let (number, extension) = name.to_str()?.split_once('.')?;
        let number = number.parse().ok().filter(|_| extension == self.extension)?;
        (self.path_of(Path::new(""), number).as_os_str() == name).then_some(number)
    }

    /// The files of a folder that are named so, in the order of their numbers.
    fn numbered(&self, dir: &Path) -> Result<Vec<PathBuf>> {
        let entries = fs::read_dir(dir).map_err(|error| files::explain(dir, &error))?;
        let entries = entries.filter_map(Result::ok);
        let mut numbers: Vec<u64> =
            entries.filter_map(|entry| self.number_of(&entry.file_name())).collect();
        numbers.sort_unstable();
        Ok(numbers.into_iter().map(|number| self.path_of(dir, number)).collect())
    }

    /// True where a file looks like one that was written here.
    fn may_be_ours(&self, path: &Path) -> bool {
        let mut begin = [0; BEGIN];
        fs::symlink_metadata(path).is_ok_and(|about| about.is_file())
            && File::open(path).and_then(|mut file| file.read_exact(&mut begin)).is_ok()
            && (self.is_ours)(&begin)
    }

    /// True where files of this name are written into a folder of this kind.
    pub fn is_written(&self, name: &OsStr) -> bool {
        self.number_of(name).is_some() || name == self.description
    }
}

/// Writes `DIR/NNNNNN.EXT`, numbered by the pairs' sequence numbers.
///
/// Each file appears under its name only when it is complete, with one beside them that describes them. The
/// numbered files of a folder are those of one run: with the first new one, all that an earlier run has
/// left are removed. Those that stereod has not written are neither replaced nor removed.
#[derive(Debug)]
pub struct NumberedFiles {
    dir: PathBuf,
    kind: &'static Kind,
    /// Until the first file is there.
    waiting: Option<Waiting>,
    _claim: Claim,
}

/// Work that is done with the first file.
#[derive(Debug)]
struct Waiting {
    description: NewFile,
    text: String,
    /// Files of an earlier run.
    earlier: Vec<PathBuf>,
}

impl NumberedFiles {
    /// Makes the folder (and those above it) where it is missing. `text` goes into the description.
    pub fn create(dir: &Path, kind: &'static Kind, text: String) -> Result<Self> {
        let mut files = Self::resume(dir, kind, text)?;
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

    /// Goes on in a folder with files of this run.
    pub fn resume(dir: &Path, kind: &'static Kind, text: String) -> Result<Self> {
        if dir.exists() && !dir.is_dir() {
            bail!("cannot write {} into {}: it is not a folder", kind.plural, dir.display());
        }
        fs::create_dir_all(dir).map_err(|error| files::explain(dir, &error))?;
        let claim = Claim::on_folder(dir)?;
        // This also finds out now, and not after the first match, whether the folder can be written.
        let description = NewFile::create(&dir.join(kind.description))?;
        let waiting = Some(Waiting { description, text, earlier: Vec::new() });
        Ok(Self { dir: dir.to_path_buf(), kind, waiting, _claim: claim })
    }

    /// Writes the file of a pair.
    pub fn write(&mut self, sequence: u64, content: &[u8]) -> Result<()> {
        let path = self.kind.path_of(&self.dir, sequence);
        files::write_whole(&path, content)?;
        match self.waiting.take() {
            Some(waiting) => self.take_over(waiting, &path),
            None => Ok(()),
        }
    }

    /// Puts the description in place, and removes the files of an earlier run but for `written`.
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
