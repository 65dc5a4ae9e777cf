//! What is found in the pairs of a run besides the disparity, which may change between two of them.

use std::sync::{Arc, Mutex};

use crate::viewer::Zones;
use stereod_core::grid::Grid;
use stereod_core::thread::locked;
use stereod_obstacles::finder::Finder;
use stereod_obstacles::zones::ZoneRule;

/// The newest ground plan, until a pair takes it along.
#[derive(Clone, Default)]
pub struct NewestGrid(Arc<Mutex<Option<Arc<Grid>>>>);

impl NewestGrid {
    pub fn put(&self, grid: Grid) {
        *locked(&self.0) = Some(Arc::new(grid));
    }

    pub fn take(&self) -> Option<Arc<Grid>> {
        locked(&self.0).take()
    }
}

/// The finder of a run, for those that change it. Clones share it.
#[derive(Clone, Default)]
pub struct Finding {
    /// The zones in effect.
    pub zones: Zones,
    next: Arc<Mutex<Option<Finder>>>,
    /// The newest ground plan of the map.
    pub grid: NewestGrid,
}

impl Finding {
    /// Has pairs searched by this finder, with these zones, from the next one on.
    pub fn change(&self, finder: Finder, zones: Vec<ZoneRule>) {
        *locked(&self.next) = Some(finder);
        self.zones.set(zones);
    }

    /// Returns the finder as which the one at work has to go on, if there is one.
    pub fn take(&self) -> Option<Finder> {
        locked(&self.next).take()
    }
}
