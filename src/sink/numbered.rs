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

    /// Returns the numbered files of a folder with this extension, in order.
    fn numbered(&self, dir: &Path, extension: &str) -> Result<Vec<PathBuf>> {
        let entries = fs::read_dir(dir).map_err(|error| files::explain(dir, &error))?;
        let paths = entries.filter_map(Result::ok).map(|entry| entry.path());
        let paths = paths.filter(|path| path.extension() == Some(OsStr::new(extension)));
        let mut numbered: Vec<_> =
            paths.filter_map(|path| Some((self.number_of(path.file_name()?)?, path))).collect();
        numbered.sort_unstable();
        Ok(numbered.into_iter().map(|(_, path)| path).collect())
    }

    /// Returns the extension of an earlier run's files, as its description names it. Descriptions without a
    /// format are of the first one.
    fn earlier_extension(&self, dir: &Path) -> &'static str {
        let description = fs::read(dir.join(self.description)).ok();
        let description: Option<serde_json::Value> =
            description.and_then(|text| serde_json::from_slice(&text).ok());
        let format = description.as_ref().and_then(|description| description["format"].as_str());
        let known = self.extensions.iter().find(|known| Some(**known) == format);
        known.copied().unwrap_or(self.extensions[0])
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
        let Some(waiting) = &mut files.waiting else { return Ok(files) };
        let Kind { plural, description, .. } = kind;
        let before = kind.earlier_extension(dir);
        let in_the_way = kind.numbered(dir, extension)?;
        if !waiting.description.spares_earlier() {
            let Some(first) = in_the_way.first() else { return Ok(files) };
            bail!(
                "cannot write {plural} into {}: there are numbered {plural} already, such as {}, and no \
                 {description} that says stereod has written them; name another folder",
                dir.display(),
                first.display()
            );
        }
        let earlier = kind.numbered(dir, before)?;
        let mut foreign = earlier.iter().filter(|path| !kind.may_be_ours(path));
        let other = in_the_way.first().filter(|_| extension != before);
        if let Some(foreign) = foreign.next().or(other) {
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

#[cfg(test)]
mod tests {
    use super::*;

    static KIND: Kind = Kind {
        plural: "pictures",
        singular: "picture",
        extensions: &["png", "tiff"],
        description: "about.json",
        is_ours: |begin| begin.starts_with(b"ours"),
    };

    fn names(dir: &Path) -> Vec<String> {
        let entries = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name());
        let mut names: Vec<_> = entries.map(|name| name.into_string().unwrap()).collect();
        names.sort();
        names
    }

    /// Writes two files, of which the second is 000001.
    fn write(dir: &Path, extension: &'static str) -> Result<()> {
        let about = format!("{{ \"format\": \"{extension}\" }}");
        let mut files = NumberedFiles::create(dir, &KIND, extension, about)?;
        let content = [&b"ours"[..], &[0; BEGIN]].concat();
        files.write(0, &content)?;
        files.write(1, &content)
    }

    #[test]
    fn another_format_takes_the_place_of_the_earlier_one_and_of_nothing_else() {
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path();
        write(dir, "png").unwrap();
        // The user has converted one.
        fs::write(dir.join("000001.tiff"), [&b"ours"[..], &[0; BEGIN]].concat()).unwrap();
        let refused = write(dir, "tiff").unwrap_err().to_string();
        assert!(refused.contains("000001.tiff is none of stereod's"), "{refused}");
        assert_eq!(names(dir), ["000000.png", "000001.png", "000001.tiff", "about.json"]);
        write(dir, "png").unwrap();
        assert_eq!(names(dir).len(), 4, "the converted one stays");
        fs::remove_file(dir.join("000001.tiff")).unwrap();
        write(dir, "tiff").unwrap();
        assert_eq!(names(dir), ["000000.tiff", "000001.tiff", "about.json"]);
        write(dir, "png").unwrap();
        assert_eq!(names(dir), ["000000.png", "000001.png", "about.json"]);
        fs::remove_file(dir.join("about.json")).unwrap();
        assert!(write(dir, "png").unwrap_err().to_string().contains("no about.json"));
    }
}
