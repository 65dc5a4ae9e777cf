//! A pair with known disparity, as its folder describes it, before anything is read.

use std::path::PathBuf;

/// A value for each of the areas over which figures are taken.
#[derive(Clone, Debug, PartialEq)]
pub struct Areas<T> {
    /// Pixels visible in both views.
    pub non_occluded: Option<T>,
    /// All pixels with truth, including those that only the left camera sees.
    pub all: Option<T>,
    /// Pixels near depth discontinuities, of those visible in both views.
    pub discontinuities: Option<T>,
}

// Not derived, which would ask for a default of `T`.
impl<T> Default for Areas<T> {
    fn default() -> Self {
        Self { non_occluded: None, all: None, discontinuities: None }
    }
}

impl<T> Areas<T> {
    /// Joins the values of each area, of those that have one.
    pub fn join(of: &[&Self], join: impl Fn(&[&T]) -> Option<T>) -> Self {
        let join = |area: fn(&Self) -> Option<&T>| {
            join(&of.iter().filter_map(|areas| area(areas)).collect::<Vec<_>>())
        };
        Self {
            non_occluded: join(|areas| areas.non_occluded.as_ref()),
            all: join(|areas| areas.all.as_ref()),
            discontinuities: join(|areas| areas.discontinuities.as_ref()),
        }
    }

    /// Applies a function to each.
    pub fn map<U>(&self, f: impl Fn(&T) -> Option<U>) -> Areas<U> {
        let of = |area: &Option<T>| area.as_ref().and_then(&f);
        Areas {
            non_occluded: of(&self.non_occluded),
            all: of(&self.all),
            discontinuities: of(&self.discontinuities),
        }
    }
}

/// File of the true disparities of the left image, and the pixels that count.
#[derive(Clone, Debug, PartialEq)]
pub struct Truth {
    /// A PFM file, an array of NumPy, or a grey image of 8 or 16 bits.
    pub file: PathBuf,
    /// Stored value of one pixel of disparity; `None`: 256 for images of 16 bits, else 1.
    pub scale: Option<f64>,
    /// Value that stands for unknown truth; `None`: 0 for images. Negative and non-finite values are
    /// unknown anyway.
    pub unknown: Option<f64>,
    /// Set if the file has depths: the focal length in pixels times the baseline, in the unit of the depths.
    pub of_depth: Option<f64>,
    /// Larger disparities do not count.
    pub largest: Option<f64>,
    /// Mask of the pixels that count, with the value 255; `None`: all of them.
    pub mask: Option<PathBuf>,
}

/// A pair with known disparity.
#[derive(Clone, Debug, PartialEq)]
pub struct Item {
    /// Left and right image.
    pub eyes: [PathBuf; 2],
    pub truth: Areas<Truth>,
    /// Number of candidates from 0 on that its publisher names.
    pub disparities: Option<usize>,
    pub described_by: Vec<PathBuf>,
}

impl Item {
    pub fn files(&self) -> impl Iterator<Item = &PathBuf> {
        let Areas { non_occluded, all, discontinuities } = &self.truth;
        let truths = [non_occluded, all, discontinuities].into_iter().flatten();
        let truths = truths.flat_map(|truth| [Some(&truth.file), truth.mask.as_ref()]);
        self.eyes.iter().chain(truths.flatten()).chain(&self.described_by)
    }
}
