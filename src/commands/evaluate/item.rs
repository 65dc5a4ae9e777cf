//! A pair with known disparity, as a folder describes it; nothing of it has been read.

use std::path::PathBuf;

/// What there is of each of the two areas over which figures are taken.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Areas<T> {
    /// Pixels that both eyes see.
    pub(super) non_occluded: Option<T>,
    /// All pixels with truth, those that only the left eye sees among them.
    pub(super) all: Option<T>,
}

impl<T> Areas<T> {
    /// Both, for the same function.
    pub(super) fn map<U>(&self, f: impl Fn(&T) -> Option<U>) -> Areas<U> {
        let of = |area: &Option<T>| area.as_ref().and_then(&f);
        Areas { non_occluded: of(&self.non_occluded), all: of(&self.all) }
    }
}

/// File of true disparities of the left picture, and which of them count.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Truth {
    /// A PFM file, or a grey picture of 8 or 16 bits.
    pub(super) file: PathBuf,
    /// Stored value of one pixel of disparity; `None`: 1 for PFM, 256 for pictures of 16 bits.
    pub(super) scale: Option<f64>,
    /// Value that stands for no truth; `None`: 0 for pictures. In a PFM file what is negative or no finite
    /// number is no truth anyway.
    pub(super) unknown: Option<f64>,
    /// Larger disparities do not count.
    pub(super) largest: Option<f64>,
    /// Picture in which the pixels that count are 255; `None`: all of them.
    pub(super) mask: Option<PathBuf>,
}

/// A pair with known disparity.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Item {
    /// Left and right picture.
    pub(super) eyes: [PathBuf; 2],
    /// Where the truth is; at least one of the two.
    pub(super) truth: Areas<Truth>,
    /// Number of candidates from 0 on that its publisher gives.
    pub(super) disparities: Option<usize>,
    /// Files that describe it, which are read beside the pictures.
    pub(super) described_by: Vec<PathBuf>,
}

impl Item {
    /// All files that it is read from.
    pub(super) fn files(&self) -> impl Iterator<Item = &PathBuf> {
        let truths = [&self.truth.non_occluded, &self.truth.all].into_iter().flatten();
        let truths = truths.flat_map(|truth| [Some(&truth.file), truth.mask.as_ref()]);
        self.eyes.iter().chain(truths.flatten()).chain(&self.described_by)
    }
}
