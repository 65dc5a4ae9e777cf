//! A folder of numbered files, one per pair, and a file that describes them.

use std::collections::HashSet;
use std::ffi::{OsStr, OsString};
use std::fs::{self, Metadata, OpenOptions};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use anyhow::{Result, bail};

use crate::pattern::{self, Pattern};
use crate::sink::segments::Place;
use stereod_core::files;
use stereod_core::files::claim::Claim;
use stereod_core::files::new_file::{self, NewFile};
use stereod_core::reading;

/// Name of the record of the files that stereod has written into a folder: their names, sizes and times. A
/// file that was changed or added since then does not belong to stereod, in any format.
pub const RECORD: &str = ".stereod-files";

const RECORD_MAX: u64 = 1 << 30;

#[derive(Debug)]
pub struct Kind {
    /// Plural name for people: "pictures".
    pub plural: &'static str,
    pub singular: &'static str,
    pub extensions: &'static [&'static str],
    pub description: &'static str,
}

/// Names of numbered files, in any format of their kind: `DIR/NNNNNN.EXT`, or those of a pattern such as
/// `DIR/shot.####.exr`.
#[derive(Clone, Debug)]
pub struct Names {
    pub dir: PathBuf,
    kind: &'static Kind,
    /// A pattern for each extension of the kind.
    patterns: Vec<(&'static str, Pattern)>,
}

impl Names {
    /// Returns the names of files in a folder, or of a pattern.
    pub fn of(path: &Path, kind: &'static Kind) -> Self {
        let parsed = |name: &Path, extension: &'static str| {
            let name = name.with_extension(extension);
            Some((extension, Pattern::parse(name.as_os_str(), true)?))
        };
        let (dir, name) = match pattern_in(path, kind) {
            Some(name) => (files::folder_of(path), Path::new(name)),
            None => (path, Path::new("%06d")),
        };
        let patterns = kind.extensions.iter().filter_map(|extension| parsed(name, extension));
        Self { dir: dir.to_owned(), kind, patterns: patterns.collect() }
    }

    /// Returns the number in a file's name, or `None` for other names.
    fn number_of(&self, name: &OsStr) -> Option<u64> {
        self.patterns.iter().find_map(|(_, pattern)| pattern.number(name))
    }

    fn name_of(&self, number: u64, extension: &str) -> OsString {
        let mut patterns = self.patterns.iter();
        let pattern = patterns.find(|(of, _)| *of == extension);
        pattern.expect("an extension of the kind").1.name(number)
    }

    fn numbered(&self) -> Result<Vec<PathBuf>> {
        let entries = fs::read_dir(&self.dir).map_err(|error| files::explain(&self.dir, &error))?;
        let paths = entries.filter_map(Result::ok).map(|entry| entry.path());
        let mut numbered: Vec<_> =
            paths.filter_map(|path| Some((self.number_of(path.file_name()?)?, path))).collect();
        numbered.sort_unstable();
        Ok(numbered.into_iter().map(|(_, path)| path).collect())
    }

    pub fn description(&self) -> PathBuf {
        self.dir.join(self.kind.description)
    }

    pub fn is_written(&self, name: &OsStr) -> bool {
        self.number_of(name).is_some() || name == self.kind.description || name == RECORD
    }
}

/// Returns the file name of a path if it is a pattern, and not that of a folder.
fn pattern_in<'a>(path: &'a Path, kind: &Kind) -> Option<&'a OsStr> {
    let extension = path.extension().and_then(OsStr::to_str).unwrap_or_default();
    let is_numbered = kind.extensions.contains(&extension);
    path.file_name().filter(|name| Pattern::parse(name, is_numbered).is_some())
}

/// Checks that the names of a pattern end as files of this format do.
pub fn check_name(path: &Path, kind: &Kind, extension: &str) -> Result<()> {
    if let Some(flaw) = path.file_name().and_then(pattern::flaw) {
        bail!("{}: {flaw}", path.display());
    }
    match pattern_in(path, kind) {
        Some(name) if Path::new(name).extension() != Some(OsStr::new(extension)) => bail!(
            "{}: {} are written as {extension}, so their names end with .{extension}; change the name or the \
             format",
            path.display(),
            kind.plural
        ),
        _ => Ok(()),
    }
}

/// Name, size and time of the last change of each file that stereod has written into a folder, a line a file.
#[derive(Debug, Default)]
struct Record(HashSet<String>);

impl Record {
    fn of(dir: &Path) -> Result<Self> {
        let path = dir.join(RECORD);
        match reading::read(&path, RECORD_MAX) {
            Ok(text) => {
                Ok(Self(String::from_utf8_lossy(&text).lines().map(str::to_owned).collect()))
            }
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(Self::default()),
            Err(error) => Err(files::explain(&path, &error)),
        }
    }

    fn line_of(path: &Path) -> Option<String> {
        let about = fs::symlink_metadata(path).ok().filter(Metadata::is_file)?;
        Some(line(path.file_name()?.to_str()?, &about))
    }

    /// Reports whether a file is still as stereod has written it.
    fn holds(&self, path: &Path) -> bool {
        Self::line_of(path).is_some_and(|line| self.0.contains(&line))
    }

    fn present(self, dir: &Path) -> String {
        let is_present = |line: &String| {
            // Names may hold spaces.
            let name = line.rsplitn(3, ' ').nth(2).unwrap_or_default();
            Self::line_of(&dir.join(name)).as_ref() == Some(line)
        };
        self.0.into_iter().filter(is_present).map(|line| line + "\n").collect()
    }
}

fn line(name: &str, about: &Metadata) -> String {
    let modified = about.modified().unwrap_or(SystemTime::UNIX_EPOCH);
    let since = modified.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    format!("{name} {} {}", about.len(), since.as_nanos())
}

/// Writes a file for each number, with the names of [`Names`].
///
/// Each file appears under its name only when it is complete, with a description next to it. The
/// numbered files of a folder belong to one run: the first new file removes all that an earlier run
/// has left. Files that stereod has not written, or that were changed since, are neither replaced nor removed.
#[derive(Debug)]
pub struct NumberedFiles {
    names: Names,
    extension: &'static str,
    waiting: Option<Waiting>,
    _claim: Claim,
}

#[derive(Debug)]
struct Waiting {
    description: NewFile,
    text: String,
    earlier: Vec<PathBuf>,
    record: Record,
}

impl NumberedFiles {
    /// Creates the folder (and its parents) if missing, or continues in it, for files with one of the
    /// kind's extensions. `text` becomes the description.
    pub fn create(
        place: &Place,
        kind: &'static Kind,
        extension: &'static str,
        text: String,
    ) -> Result<Self> {
        check_name(place.path(), kind, extension)?;
        let names = Names::of(place.path(), kind);
        let dir = &names.dir;
        let is_resumed = matches!(place, Place::Resumed(_));
        if is_resumed {
            // If a disk was removed, a new folder would fill the disk that holds the mount point.
            files::check_folder_of(&dir.join("file"))?;
        }
        if dir.exists() && !dir.is_dir() {
            bail!("cannot write {} into {}: it is not a folder", kind.plural, dir.display());
        }
        fs::create_dir_all(dir).map_err(|error| files::explain(dir, &error))?;
        let claim = Claim::on_folder(dir)?;
        // This also checks, before the first match, that the folder can be written.
        let description = NewFile::create(&names.description())?;
        let (earlier, record) = match is_resumed {
            true => Default::default(),
            false => files_of_earlier_run(&names, extension)?,
        };
        let waiting = Some(Waiting { description, text, earlier, record });
        Ok(Self { names, extension, waiting, _claim: claim })
    }

    pub fn write(&mut self, number: u64, content: &[u8]) -> Result<()> {
        let path = self.names.dir.join(self.names.name_of(number, self.extension));
        self.put(NewFile::create(&path)?, content)?;
        match self.waiting.take() {
            Some(waiting) => self.take_over(waiting, &path),
            None => Ok(()),
        }
    }

    /// Writes a file, and gives it its name once it is in the record, so that a killed run leaves no file that is not.
    fn put(&self, mut file: NewFile, content: &[u8]) -> Result<()> {
        let (path, record) = (file.path().to_path_buf(), self.names.dir.join(RECORD));
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let written = file.write_all(content).and_then(|()| file.file().metadata());
        let about = written.map_err(|error| files::explain(&path, &error))?;
        let noted = new_file::open(OpenOptions::new().append(true).create(true), &record, false)
            .and_then(|mut record| writeln!(record, "{}", line(&name, &about)));
        noted.map_err(|error| files::explain(&record, &error))?;
        file.put_in_place().map_err(|error| files::explain(&path, &error))
    }

    /// Puts the description in place, and removes the files of an earlier run except `written`.
    fn take_over(&self, waiting: Waiting, written: &Path) -> Result<()> {
        let Waiting { description, text, earlier, record } = waiting;
        let Names { dir, kind: Kind { plural, singular, .. }, .. } = &self.names;
        self.put(description, text.as_bytes())?;
        for path in earlier.iter().filter(|path| *path != written && record.holds(path)) {
            match fs::remove_file(path) {
                Err(error) if error.kind() != ErrorKind::NotFound => {
                    bail!(
                        "cannot remove {}, a {singular} of an earlier run: {error}",
                        path.display()
                    );
                }
                _ => {}
            }
        }
        // Otherwise it would grow with every run.
        let present = Record::of(dir)?.present(dir);
        files::write_whole(&dir.join(RECORD), present.as_bytes())?;
        if !earlier.is_empty() {
            let (dir, count) = (dir.display(), earlier.len());
            tracing::info!("{dir}: new {plural} take the place of {count} of an earlier run");
        }
        Ok(())
    }
}

/// Returns the files in a folder that the first new one replaces, and the record with them. Files in
/// the way that stereod has not written, or that were changed since, are refused.
fn files_of_earlier_run(names: &Names, extension: &str) -> Result<(Vec<PathBuf>, Record)> {
    let Names { dir, kind, .. } = names;
    let record = Record::of(dir)?;
    let is_ours = |path: &PathBuf| record.holds(path);
    let (ours, foreign): (Vec<_>, Vec<_>) = names.numbered()?.into_iter().partition(is_ours);
    let is_in_the_way = |path: &PathBuf| path.extension() == Some(OsStr::new(extension));
    let description = Some(names.description()).filter(|path| path.exists());
    let description = description.filter(|path| !record.holds(path));
    if let Some(first) = foreign.into_iter().find(is_in_the_way).or(description) {
        bail!(
            "cannot write {} into {}: {} is there, and stereod has not written it, or somebody has changed or \
             copied it since; move or remove it, or name another folder",
            kind.plural,
            dir.display(),
            first.display()
        );
    }
    Ok((ours, record))
}

#[cfg(test)]
mod tests {
    use super::*;

    static KIND: Kind = Kind {
        plural: "pictures",
        singular: "picture",
        extensions: &["png", "tiff", "npy"],
        description: "about.json",
    };

    /// Names in a folder except the record's.
    fn names(dir: &Path) -> Vec<String> {
        let entries = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name());
        let mut names: Vec<_> = entries.map(|name| name.into_string().unwrap()).collect();
        names.retain(|name| name != RECORD);
        names.sort();
        names
    }

    /// Writes two files, 000000 and 000001.
    fn write(dir: &Path, extension: &'static str) -> Result<()> {
        let about = format!("{{ \"format\": \"{extension}\" }}");
        let mut files = NumberedFiles::create(&dir.into(), &KIND, extension, about)?;
        files.write(0, b"ours")?;
        files.write(1, b"ours")
    }

    #[test]
    fn another_format_takes_the_place_of_the_earlier_one_and_of_nothing_else() {
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path();
        write(dir, "png").unwrap();
        // The user has converted one.
        fs::write(dir.join("000001.tiff"), b"ours").unwrap();
        let refused = write(dir, "tiff").unwrap_err().to_string();
        assert!(refused.contains("000001.tiff is there"), "{refused}");
        assert_eq!(names(dir), ["000000.png", "000001.png", "000001.tiff", "about.json"]);
        write(dir, "png").unwrap();
        assert_eq!(names(dir).len(), 4, "the converted one stays");
        fs::remove_file(dir.join("000001.tiff")).unwrap();
        write(dir, "tiff").unwrap();
        assert_eq!(names(dir), ["000000.tiff", "000001.tiff", "about.json"]);
        write(dir, "png").unwrap();
        assert_eq!(names(dir), ["000000.png", "000001.png", "about.json"]);
        let record = fs::read_to_string(dir.join(RECORD)).unwrap();
        assert_eq!(record.lines().count(), 3, "{record}");
    }

    #[test]
    fn files_have_the_names_of_a_pattern() {
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path();
        write(dir, "png").unwrap();
        let write = |pattern: &str, extension, numbers: &[u64]| {
            let place = Place::from(&dir.join(pattern));
            let mut files = NumberedFiles::create(&place, &KIND, extension, "{}".into()).unwrap();
            numbers.iter().for_each(|&number| files.write(number, b"ours").unwrap());
        };
        write("a shot.####.npy", "npy", &[97, 1001]);
        write("a shot.####.tiff", "tiff", &[1001, 12_345]);
        assert_eq!(
            names(dir),
            ["000000.png", "000001.png", "a shot.1001.tiff", "a shot.12345.tiff", "about.json"]
        );
        for (name, extension, error) in [
            ("a/s.%04d.exr", "png", Some("end with .png")),
            ("a/s.%04d", "npy", Some("end with .npy")),
            ("a/s.$F4.npy", "png", Some("pictures are written as png")),
            ("a/%999999999d.png", "png", Some("at most 20 digits")),
            ("a/%5d.png", "png", Some("%06d")),
            ("a/s.####.png", "png", None),
            ("a/take#2", "png", None),
            ("a/take#2.d", "png", None),
        ] {
            let checked = check_name(Path::new(name), &KIND, extension);
            let checked = checked.map_err(|error| error.to_string()).err();
            assert_eq!(checked.is_some(), error.is_some(), "{name}");
            assert!(checked.is_none_or(|text| text.contains(error.unwrap())), "{name}");
        }
        assert_eq!(Names::of(Path::new("take#2"), &KIND).dir, Path::new("take#2"));
    }

    #[test]
    fn nothing_that_somebody_else_has_written_or_changed_is_deleted() {
        for extension in KIND.extensions {
            for foreign in
                [format!("000001.{extension}"), format!("000077.{extension}"), "about.json".into()]
            {
                let dir = tempfile::tempdir().unwrap();
                let dir = dir.path();
                write(dir, extension).unwrap();
                // Of the same size, as another program would write it into its place.
                let other =
                    if foreign == "about.json" { "{ \"format\": \"npy\" }" } else { "mine" };
                fs::remove_file(dir.join(&foreign)).ok();
                fs::write(dir.join(&foreign), other).unwrap();
                // The clock of files is coarse.
                let file = OpenOptions::new().write(true).open(dir.join(&foreign)).unwrap();
                file.set_modified(SystemTime::UNIX_EPOCH).unwrap();
                let refused = write(dir, extension).unwrap_err().to_string();
                assert!(refused.contains(&format!("{foreign} is there")), "{refused}");
                assert_eq!(fs::read_to_string(dir.join(&foreign)).unwrap(), other);
                assert!(dir.join(format!("000000.{extension}")).exists());
                fs::remove_file(dir.join(&foreign)).unwrap();
                write(dir, extension).unwrap();
            }
        }
        // A run without a new file changes nothing.
        let dir = tempfile::tempdir().unwrap();
        write(dir.path(), "png").unwrap();
        drop(NumberedFiles::create(&dir.path().into(), &KIND, "npy", String::new()).unwrap());
        assert_eq!(names(dir.path()), ["000000.png", "000001.png", "about.json"]);
    }
}
