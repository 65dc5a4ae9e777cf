//! Results of a pair.

use stereod_core::frame::{DisparityRange, Image};

use crate::item::Areas;
use crate::scoring::Values;
use crate::summary::Summary;
use crate::truth::Region;

/// Result of a pair.
#[derive(Debug)]
pub struct Measured {
    /// Width and height of the map.
    pub size: (usize, usize),
    /// The candidate disparities.
    pub range: DisparityRange,
    /// The figures; of several seeds their means.
    pub summary: Summary,
    /// Standard deviations of a combination's means over several seeds.
    pub deviation: Option<Summary>,
}

/// A pair's maps and truth, for images of the errors.
pub struct Compared {
    pub left: Image,
    /// The map, and the map with its holes filled along the rows.
    pub maps: [Values; 2],
    /// The map with its holes filled as the settings say.
    pub map: Values,
    pub truth: Areas<Region>,
    /// Samples to learn the confidence from, if they are asked for: for each pixel that was measured and
    /// has a truth its levels, and 1 if it is off by more than a pixel, else 0.
    pub levels: Vec<u8>,
}
