//! Recordings and images of real cameras, which the project does not ship.

use std::path::{Path, PathBuf};

/// Returns the folder or file `below` the test data ("" is all of it). If it is missing, prints a
/// note and returns nothing.
pub fn data(below: &str) -> Option<PathBuf> {
    let root = std::env::var_os("STEREOD_TEST_DATA").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/data"),
        PathBuf::from,
    );
    let path = root.join(below);
    if !path.exists() {
        eprintln!("skipped: no {}; set STEREOD_TEST_DATA", path.display());
        return None;
    }
    Some(path)
}
