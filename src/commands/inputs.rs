//! Inputs of a run, which its outputs must not destroy.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::fs::{self, Metadata};
use std::path::{Path, PathBuf};

use anyhow::{Result, bail};

/// The files that a run reads: sources, calibrations, configuration.
#[derive(Clone, Debug, Default)]
pub struct Inputs {
    files: HashMap<Identity, PathBuf>,
}

/// Device and number of a file, equal for all its names and links.
#[cfg(unix)]
type Identity = (u64, u64);
#[cfg(not(unix))]
type Identity = PathBuf;

impl Inputs {
    /// Collects the files among `paths`; writing cannot destroy others.
    pub fn new(paths: impl IntoIterator<Item = PathBuf>) -> Self {
        let known = |path: PathBuf| Some((identity(&path)?, path));
        Self { files: paths.into_iter().filter_map(known).collect() }
    }

    /// Refuses an output that is one of them, also by another name: a link of either kind, `./`.
    pub fn refuse(&self, output: &Path) -> Result<()> {
        let Some(input) = identity(output).and_then(|found| self.files.get(&found)) else {
            return Ok(());
        };
        let name = if input == output { String::new() } else { format!(" ({})", input.display()) };
        bail!(
            "cannot write {}: it is also an input{name}, and would be destroyed; name another file",
            output.display()
        );
    }

    /// Refuses a folder that holds one of them under a name that will be written or deleted,
    /// according to `is_at_risk`.
    pub fn refuse_folder(&self, folder: &Path, is_at_risk: impl Fn(&OsStr) -> bool) -> Result<()> {
        if self.files.is_empty() {
            return Ok(());
        }
        // A missing or unreadable folder holds no known file.
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            let at_risk = is_at_risk(&entry.file_name());
            if at_risk && identity(&entry.path()).is_some_and(|id| self.files.contains_key(&id)) {
                bail!(
                    "cannot write into {}: it holds {}, which is also an input and would be destroyed; \
                     name another folder",
                    folder.display(),
                    entry.file_name().display()
                );
            }
        }
        Ok(())
    }
}

/// Returns the identity of the file at `path`, following links; `None` if there is none.
fn identity(path: &Path) -> Option<Identity> {
    let about = fs::metadata(path).ok().filter(Metadata::is_file)?;
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;
        Some((about.dev(), about.ino()))
    }
    #[cfg(not(unix))]
    {
        drop(about);
        fs::canonicalize(path).ok()
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn inputs_are_recognised_by_any_name() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        for name in ["input", "other"] {
            fs::write(at(name), name).unwrap();
        }
        std::os::unix::fs::symlink(at("input"), at("link")).unwrap();
        fs::hard_link(at("input"), at("hard")).unwrap();
        let inputs = Inputs::new([at("input"), at("missing")]);
        for same in ["input", "./input", "link", "hard"] {
            let error = inputs.refuse(&at(same)).unwrap_err().to_string();
            assert!(error.contains(same) && error.contains("also an input"), "{error}");
        }
        for well in ["other", "missing", "new"] {
            inputs.refuse(&at(well)).unwrap();
        }
        // A device or a pipe loses nothing.
        Inputs::new(["/dev/null".into()]).refuse(Path::new("/dev/null")).unwrap();
    }

    #[test]
    fn folders_are_refused_for_the_names_at_risk_only() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        fs::write(at("7.png"), "x").unwrap();
        fs::create_dir(at("links")).unwrap();
        fs::hard_link(at("7.png"), at("links/8.png")).unwrap();
        let inputs = Inputs::new([at("7.png")]);
        let is_at_risk = |name: &OsStr| name.to_string_lossy().ends_with(".png");
        let error = inputs.refuse_folder(dir.path(), is_at_risk).unwrap_err().to_string();
        assert!(error.contains("holds 7.png"), "{error}");
        let error = inputs.refuse_folder(&at("links"), is_at_risk).unwrap_err().to_string();
        assert!(error.contains("holds 8.png"), "{error}");
        inputs.refuse_folder(dir.path(), |name| name == "8.png").unwrap();
        inputs.refuse_folder(&at("missing"), is_at_risk).unwrap();
    }
}
