//! Files in the folders of data sets.

use std::fs;
use std::path::{Path, PathBuf};

use super::choice;
use crate::source::pictures;

/// Largest number of entries of a folder that are looked at.
const ENTRIES_MAX: usize = 1_000_000;

/// Largest number of folders below a folder that are looked at for images.
const FOLDERS_MAX: usize = 32;

/// Returns the paths in a folder by name, without hidden ones, because macOS writes a file `._NAME` for each
/// NAME.
pub(super) fn entries(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten().take(ENTRIES_MAX);
    let is_hidden = |path: &PathBuf| {
        path.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"."))
    };
    let mut paths: Vec<_> =
        entries.map(|entry| entry.path()).filter(|path| !is_hidden(path)).collect();
    paths.sort();
    paths
}

/// Names the images of two views in a folder and the folders below it as two streams.
pub(super) fn as_streams(folder: &Path) -> Option<String> {
    let below = |folder: &PathBuf| -> Vec<PathBuf> {
        entries(folder).into_iter().filter(|path| path.is_dir()).take(FOLDERS_MAX).collect()
    };
    let first = below(&folder.to_owned());
    let second = first.iter().flat_map(below).collect();
    let folders = [vec![folder.to_owned()], first.clone(), second].concat();
    let patterns: Vec<PathBuf> = folders.iter().flat_map(|at| pictures::patterns(at)).collect();
    let name = |path: &PathBuf| path.strip_prefix(folder).unwrap_or(path).display().to_string();
    let partner = |left: &PathBuf| {
        let is_partner = |right: &&PathBuf| {
            let right = name(right).to_lowercase();
            choice::partners(&name(left)).any(|partner| partner == right)
        };
        Some((left.clone(), patterns.iter().find(is_partner)?.clone()))
    };
    let (left, right) = patterns.iter().find_map(partner)?;
    let [left, right] = [left, right].map(|view| view.display().to_string());
    Some(format!("its images are played by --left '{left}' --right '{right}'"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_images_of_two_views_are_found_by_their_names() {
        for (files, streams) in [
            (
                &["image_left/0_left.jpg", "image_right/0_right.jpg"][..],
                ["image_left/*.jpg", "image_right/*.jpg"],
            ),
            (&["left9.png", "left10.png", "right9.png"], ["left%d.png", "right%d.png"]),
            (&["cam0/0.png", "cam1/0.png", "cam0/._0.png"], ["cam0/%d.png", "cam1/%d.png"]),
            (&["a/L/07.png", "a/L/08.png", "a/R/07.png"], ["a/L/%02d.png", "a/R/%02d.png"]),
            (&["left/0.png", "centre/0.png"], ["", ""]),
            (&[], ["", ""]),
        ] {
            let folder = tempfile::tempdir().unwrap();
            for file in files {
                let path = folder.path().join(file);
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(path, "").unwrap();
            }
            let [left, right] = streams.map(|name| folder.path().join(name).display().to_string());
            let due = format!("its images are played by --left '{left}' --right '{right}'");
            let due = (!streams[0].is_empty()).then_some(due);
            assert_eq!(as_streams(folder.path()), due, "{files:?}");
        }
    }
}
