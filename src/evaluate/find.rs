//! Recursive search for pairs with known disparity.

use std::collections::{BTreeSet, HashSet};
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail, ensure};

use super::described;
use super::item::Item;
use super::layouts::{self, Contents};
use stereod_core::files;

/// Largest number of files and folders in a data set.
const MOST: usize = 1_000_000;

/// Largest depth of folders.
const DEEPEST: usize = 32;

/// Pairs by their names, which are their paths below the data set; unusable ones with the reason.
pub type Pairs = Vec<(String, anyhow::Result<Item>)>;

/// A data set with its name on the command line, and its pairs.
pub struct Searched {
    pub path: PathBuf,
    pub pairs: Pairs,
}

/// Result of the search of a data set.
#[derive(Debug, Default)]
pub struct Found {
    pub pairs: Pairs,
    /// Number of folders with a pair of images and no truth.
    pub without_truth: usize,
}

/// Searches a folder, or reads one pair's description; `needs_truth` leaves out pairs without truth.
pub fn search(dataset: &Path, needs_truth: bool) -> anyhow::Result<Found> {
    let shown = dataset.display();
    let about = fs::metadata(dataset).with_context(|| format!("cannot read {shown}"))?;
    if !about.is_dir() {
        ensure!(
            dataset.extension().is_some_and(|extension| extension == "json"),
            "{shown} is no data set: name a folder, or the {} of a pair",
            described::NAME
        );
        let name = name_of(files::folder_of(dataset));
        let pairs = vec![(name, described::item(dataset))];
        return Ok(Found { pairs, without_truth: 0 });
    }
    let (seen, found) = (HashSet::new(), Found::default());
    let mut search = Search { dataset, needs_truth, left: MOST, seen, found };
    search.folder(dataset, 0)?;
    Ok(search.found)
}

/// Returns the name of a folder, also if it is given as `.` or a link.
pub fn name_of(folder: &Path) -> String {
    let path = fs::canonicalize(folder).unwrap_or_else(|_| folder.to_owned());
    path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned()
}

struct Search<'a> {
    dataset: &'a Path,
    needs_truth: bool,
    /// Number of further files and folders to visit.
    left: usize,
    /// Folders visited, without links: a linked folder is searched once.
    seen: HashSet<PathBuf>,
    found: Found,
}

impl Search<'_> {
    fn folder(&mut self, folder: &Path, depth: usize) -> anyhow::Result<()> {
        let shown = folder.display();
        let names = match self.names(folder) {
            Ok(names) => names,
            Err(error) => {
                let error = error.context(format!("cannot read {shown}"));
                self.add(folder, None, Err(error));
                return Ok(());
            }
        };
        let Some(names) = names else { return Ok(()) };
        self.left = self.left.saturating_sub(names.len());
        if self.left == 0 || depth > DEEPEST {
            bail!(
                "{} holds more than data sets do (at {shown}): name the folders that hold the pairs",
                self.dataset.display()
            );
        }
        if names.contains(&OsString::from(described::NAME)) {
            self.add(folder, None, described::item(&folder.join(described::NAME)));
        } else {
            let Contents { items, lacks_truth } =
                layouts::contents(folder, &names, self.needs_truth);
            self.found.without_truth += usize::from(lacks_truth);
            for (file, item) in items {
                self.add(folder, file.as_deref().map(Path::new), item);
            }
        }
        for below in names.iter().map(|name| folder.join(name)).filter(|path| path.is_dir()) {
            self.folder(&below, depth + 1)?;
        }
        Ok(())
    }

    /// Returns the names in a folder, sorted; `None` if it was visited before.
    fn names(&mut self, folder: &Path) -> anyhow::Result<Option<BTreeSet<OsString>>> {
        if !self.seen.insert(fs::canonicalize(folder)?) {
            return Ok(None);
        }
        let entries = fs::read_dir(folder)?.take(self.left);
        Ok(Some(entries.map(|entry| Ok(entry?.file_name())).collect::<anyhow::Result<_>>()?))
    }

    fn add(&mut self, folder: &Path, file: Option<&Path>, item: anyhow::Result<Item>) {
        let below = folder.strip_prefix(self.dataset).unwrap_or(folder);
        let path = match file.and_then(Path::file_stem) {
            Some(stem) => below.join(stem),
            None => below.to_owned(),
        };
        let name = match path.to_string_lossy() {
            name if name.is_empty() => name_of(self.dataset),
            name => name.into_owned(),
        };
        self.found.pairs.push((name, item));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(found: &Found) -> Vec<&str> {
        found.pairs.iter().map(|(name, _)| &**name).collect()
    }

    const ITEM: &str = r#"{"left": "l.png", "right": "r.png", "gt": "g.pfm"}"#;

    fn with_items(folders: &[&str]) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        for folder in folders {
            fs::create_dir_all(root.path().join(folder)).unwrap();
            fs::write(root.path().join(folder).join("item.json"), ITEM).unwrap();
        }
        root
    }

    #[test]
    fn pairs_are_found_below_and_named_by_their_place() {
        let root = with_items(&["b", "a/deep/er", "a"]);
        let found = search(root.path(), true).unwrap();
        assert_eq!(names(&found), ["a", "a/deep/er", "b"]);
        assert!(found.pairs.iter().all(|(_, item)| item.is_ok()));
        let own = search(&root.path().join("a/deep/er"), true).unwrap();
        assert_eq!(names(&own), ["er"]);
        let one = search(&root.path().join("b/item.json"), true).unwrap();
        assert_eq!(names(&one), ["b"]);
        assert_eq!(one.pairs[0].1.as_ref().unwrap().eyes[0], root.path().join("b/l.png"));
    }

    #[test]
    fn what_is_wrong_with_a_pair_belongs_to_it() {
        let root = with_items(&["good", "bad"]);
        fs::write(root.path().join("bad/item.json"), "{").unwrap();
        let found = search(root.path(), true).unwrap();
        assert_eq!(names(&found), ["bad", "good"]);
        assert!(found.pairs[0].1.is_err() && found.pairs[1].1.is_ok());
        let missing = search(&root.path().join("none"), true).unwrap_err();
        assert!(format!("{missing:#}").contains("none: No such file"), "{missing:#}");
        fs::write(root.path().join("a.png"), "x").unwrap();
        let no_folder = search(&root.path().join("a.png"), true).unwrap_err().to_string();
        assert!(no_folder.contains("name a folder, or the item.json"), "{no_folder}");
        assert!(names(&search(&root.path().join("bad"), true).unwrap()) == ["bad"]);
    }

    #[cfg(unix)]
    #[test]
    fn links_are_followed_but_not_round_and_round() {
        let root = with_items(&["a"]);
        let elsewhere = with_items(&["linked"]);
        std::os::unix::fs::symlink(elsewhere.path(), root.path().join("z")).unwrap();
        std::os::unix::fs::symlink(root.path(), root.path().join("a/up")).unwrap();
        std::os::unix::fs::symlink("a", root.path().join("again")).unwrap();
        assert_eq!(names(&search(root.path(), true).unwrap()), ["a", "z/linked"]);
    }

    #[test]
    fn no_search_goes_on_for_ever() {
        let deep = (0..=DEEPEST).map(|n| n.to_string()).collect::<Vec<_>>().join("/");
        let error = search(with_items(&[&deep]).path(), true).unwrap_err().to_string();
        assert!(error.contains("more than data sets do"), "{error}");
    }
}
