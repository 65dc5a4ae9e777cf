//! Destinations of outputs.

use std::path::{Path, PathBuf};

use anyhow::Result;

use super::segments::{SegmentLimits, Segments};

/// Destination of an output.
#[derive(Clone, Debug)]
pub enum Place {
    /// A file or folder of this name; the first frame replaces the content of an earlier run.
    New(PathBuf),
    /// Segments of the file of this name, each a file of its own. Nothing is replaced.
    Segments(PathBuf, SegmentLimits),
    /// A folder that this run has written into before.
    Resumed(PathBuf),
}

impl Place {
    /// Returns the file or folder, or the name that those of the segments derive from.
    pub fn path(&self) -> &Path {
        let (Place::New(path) | Place::Segments(path, _) | Place::Resumed(path)) = self;
        path
    }

    /// Returns the segments; `None` for a single file or a folder.
    pub(super) fn segments(&self) -> Result<Option<Segments>> {
        match self {
            Place::Segments(base, limits) => Segments::new(base, *limits).map(Some),
            Place::New(_) | Place::Resumed(_) => Ok(None),
        }
    }
}

impl<P: AsRef<Path> + ?Sized> From<&P> for Place {
    fn from(path: &P) -> Self {
        Place::New(path.as_ref().to_path_buf())
    }
}
