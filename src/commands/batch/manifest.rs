//! Manifest of a finished piece: its inputs and settings, and the hashes of its files (BLAKE3, in the format of `b3sum`).

use std::collections::HashSet;
use std::fmt::Write;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

use super::identity::{Identity, of_file};
use super::plan::{Piece, Plan, SCHEMA};
use stereod_core::files::{explain, write_whole};
use stereod_core::reading;

pub const NAME: &str = "manifest.json";

/// Name of the list of hashes, in the format of `b3sum --check`.
pub const SUMS: &str = "B3SUMS";

/// Reason why a folder is no piece; it may belong to the user.
pub const NO_MANIFEST: &str = "it has no manifest";

/// Largest size of both files in bytes.
const LONGEST: u64 = 1 << 30;

/// The facts of a finished piece.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    pub schema: u32,
    /// Identity of the settings, the version and the outputs.
    pub settings: String,
    pub source: String,
    pub input: Identity,
    pub first: u64,
    /// Number of the pair after its last one; `None`: to the end.
    pub end: Option<u64>,
    /// Number of its pairs; fewer than in its range if the input ends earlier.
    pub pairs: u64,
    /// Damaged frames of both views, concealed or left out.
    pub damaged: u64,
    /// Number of its files, except the manifest and the list of hashes.
    pub files: u64,
    /// Size of these files in bytes.
    pub size: u64,
    /// Hash of the list of hashes.
    pub sums: String,
    pub engine: String,
    /// Duration in seconds.
    pub seconds: f64,
    /// Hash of all of the above, to detect an edited manifest.
    pub checksum: String,
}

#[derive(Clone, Debug, PartialEq)]
pub enum State {
    Done(Box<Manifest>),
    Missing,
    /// It exists with other settings, or is damaged.
    Other(String),
}

/// Returns the state of a piece in `folder`. Only names and sizes of its files are checked.
pub fn state(folder: &Path, plan: &Plan, piece: &Piece) -> Result<State> {
    let path = folder.join(&piece.name).join(NAME);
    let text = match reading::read(&path, LONGEST) {
        Ok(text) => text,
        Err(error) if error.kind() == ErrorKind::NotFound => {
            return Ok(match folder.join(&piece.name).exists() {
                true => State::Other(NO_MANIFEST.to_owned()),
                false => State::Missing,
            });
        }
        Err(error) => return Err(error).with_context(|| path.display().to_string()),
    };
    let Ok(manifest) = serde_json::from_slice::<Manifest>(&text) else {
        return Ok(State::Other("its manifest is damaged".to_owned()));
    };
    let known = &plan.inputs[piece.input].identity;
    let reasons = [
        (manifest.schema != SCHEMA, "its manifest has another layout"),
        (manifest.checksum != manifest.checksum_now(), "its manifest was edited"),
        (manifest.settings != plan.settings_id(), "it was made with other settings"),
        (known.as_ref().is_some_and(|known| *known != manifest.input), "its input was another one"),
        ((manifest.first, manifest.end) != (piece.first, piece.end), "it has another range"),
    ];
    let reason = reasons.into_iter().find(|(is_so, _)| *is_so).map(|(_, reason)| reason.to_owned());
    let reason = reason.or_else(|| manifest.missing(&folder.join(&piece.name)));
    Ok(reason.map_or_else(|| State::Done(manifest.into()), State::Other))
}

/// Returns a file in the folder of a piece that is neither in its list of hashes, which may be damaged or missing,
/// nor in `own`, the files and folders of a piece.
pub fn foreign(folder: &Path, own: &[&str]) -> Result<Option<PathBuf>> {
    let listed = reading::read(&folder.join(SUMS), LONGEST).unwrap_or_default();
    let listed = String::from_utf8_lossy(&listed);
    let listed: HashSet<&Path> = listed.lines().map(|line| Path::new(name(line))).collect();
    let is_own = |found: &Path| own.iter().any(|own| found.starts_with(own));
    Ok(files(folder)?.into_iter().find(|found| !listed.contains(&**found) && !is_own(found)))
}

/// Returns the name of the file in a line of the list of hashes.
fn name(line: &str) -> &str {
    line.split_once("  ").map_or("", |(_, name)| name)
}

/// Returns the files below `folder` in order, without manifest and hashes, relative to it.
pub fn files(folder: &Path) -> Result<Vec<PathBuf>> {
    let (mut found, mut folders) = (Vec::new(), vec![PathBuf::new()]);
    while let Some(within) = folders.pop() {
        let path = folder.join(&within);
        for entry in fs::read_dir(&path).map_err(|error| explain(&path, &error))? {
            let entry = entry.map_err(|error| explain(&path, &error))?;
            let name = within.join(entry.file_name());
            match entry.file_type().map_err(|error| explain(&path, &error))?.is_dir() {
                true => folders.push(name),
                false if name == Path::new(NAME) || name == Path::new(SUMS) => {}
                false => found.push(name),
            }
        }
    }
    found.sort();
    Ok(found)
}

/// Hashes of the files of a piece.
pub struct Sums {
    pub files: u64,
    /// Size of all in bytes.
    pub size: u64,
    /// The list, one line per file.
    pub text: String,
}

/// Reads all files of a piece, at most `longest` bytes in total.
pub fn sums(folder: &Path, longest: u64) -> Result<Sums> {
    let mut sums = Sums { files: 0, size: 0, text: String::new() };
    for name in files(folder)? {
        let (hash, size) = of_file(&folder.join(&name), longest - sums.size)?;
        let _ = writeln!(sums.text, "{hash}  {}", name.display());
        (sums.files, sums.size) = (sums.files + 1, sums.size + size);
    }
    Ok(sums)
}

impl Manifest {
    /// Writes the hashes of the files in `folder`, and then the manifest. Number of pairs, engine and seconds
    /// are already set.
    pub fn write(mut self, folder: &Path) -> Result<Self> {
        let Sums { files, size, text } = sums(folder, u64::MAX)?;
        self.sums = blake3::hash(text.as_bytes()).to_hex().to_string();
        (self.files, self.size) = (files, size);
        self.checksum = self.checksum_now();
        write_whole(&folder.join(SUMS), text.as_bytes())?;
        let text = serde_json::to_string_pretty(&self)? + "\n";
        write_whole(&folder.join(NAME), text.as_bytes())?;
        Ok(self)
    }

    /// Returns the hash of everything except the hash itself.
    fn checksum_now(&self) -> String {
        let bare = Self { checksum: String::new(), ..self.clone() };
        let text = serde_json::to_string(&bare).expect("plain values");
        blake3::hash(text.as_bytes()).to_hex()[..32].to_owned()
    }

    /// Checks names and sizes in `folder`, without reading the files; returns the first problem.
    fn missing(&self, folder: &Path) -> Option<String> {
        let listed = reading::read(&folder.join(SUMS), LONGEST).unwrap_or_default();
        if blake3::hash(&listed).to_hex().as_str() != self.sums {
            return Some(format!("{SUMS} has changed"));
        }
        let mut size = 0;
        for name in String::from_utf8_lossy(&listed).lines().map(name) {
            match fs::symlink_metadata(folder.join(name)) {
                Ok(about) if about.is_file() => size += about.len(),
                Ok(_) => return Some(format!("{name} is no regular file")),
                Err(error) if error.kind() == ErrorKind::NotFound => {
                    return Some(format!("{name} is missing"));
                }
                Err(error) => return Some(format!("{name}: {error}")),
            }
        }
        let expected = self.size;
        (size != expected).then(|| format!("its files have {size} bytes in place of {expected}"))
    }

    /// Reads the files in `folder` again; returns the first problem.
    pub fn check(&self, folder: &Path) -> Result<Option<String>> {
        let listed = reading::read(&folder.join(SUMS), LONGEST);
        let listed = listed.with_context(|| folder.join(SUMS).display().to_string())?;
        if blake3::hash(&listed).to_hex().as_str() != self.sums {
            return Ok(Some(format!("{SUMS} has changed")));
        }
        let found = sums(folder, self.size.saturating_add(1))?.text;
        let listed = String::from_utf8_lossy(&listed);
        if found == *listed {
            return Ok(None);
        }
        // A set, because a piece may have thousands of images.
        let found_lines: HashSet<&str> = found.lines().collect();
        let [there, here] = [&*listed, &*found].map(|text| text.lines().map(name).collect());
        let (there, here): (HashSet<&str>, HashSet<&str>) = (there, here);
        let missing = listed.lines().map(name).find(|name| !here.contains(name));
        let more = found.lines().map(name).find(|name| !there.contains(name));
        let changed = listed.lines().find(|line| !found_lines.contains(line));
        Ok(Some(match (missing, more, changed) {
            (Some(name), ..) => format!("{name} is missing"),
            (_, Some(name), _) => format!("{name} does not belong to it"),
            (.., changed) => format!("{} has changed", name(changed.unwrap_or_default())),
        }))
    }
}

#[cfg(test)]
mod tests {

    use super::*;

    #[test]
    fn every_change_is_noticed() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::create_dir(at("pictures")).unwrap();
        fs::write(at("a.mkv"), "a").unwrap();
        fs::write(at("pictures/000001.png"), "b").unwrap();
        let input = Identity { files: 1, size: 1, blake3: "x".into() };
        let manifest = Manifest {
            schema: SCHEMA,
            settings: "s".into(),
            source: "a.mcap".into(),
            input,
            first: 0,
            end: None,
            pairs: 1,
            damaged: 0,
            files: 0,
            size: 0,
            sums: String::new(),
            engine: "CPU".into(),
            seconds: 1.0,
            checksum: String::new(),
        };
        let manifest = manifest.write(folder.path()).unwrap();
        assert_eq!((manifest.files, manifest.size), (2, 2));
        let said = || manifest.check(folder.path()).unwrap();
        assert_eq!((said(), manifest.missing(folder.path())), (None, None));
        let edited = Manifest { pairs: 0, ..manifest.clone() };
        assert!(manifest.checksum == manifest.checksum_now());
        assert!(edited.checksum != edited.checksum_now());
        assert_eq!(foreign(folder.path(), &[]).unwrap(), None);
        fs::write(at("a.mkv"), "c").unwrap();
        assert_eq!(said().unwrap(), "a.mkv has changed");
        fs::write(at("b.mkv"), "c").unwrap();
        assert_eq!(said().unwrap(), "b.mkv does not belong to it");
        assert_eq!(foreign(folder.path(), &[]).unwrap(), Some("b.mkv".into()));
        // Names and sizes are unchanged.
        assert_eq!(manifest.missing(folder.path()), None);
        fs::write(at("a.mkv"), "cc").unwrap();
        let shown = manifest.missing(folder.path()).unwrap();
        assert_eq!(shown, "its files have 3 bytes in place of 2");
        fs::remove_file(at("pictures/000001.png")).unwrap();
        assert_eq!(said().unwrap(), "pictures/000001.png is missing");
        assert_eq!(manifest.missing(folder.path()), said());
        fs::write(at(SUMS), "").unwrap();
        assert_eq!(said().unwrap(), "B3SUMS has changed");
    }
}
