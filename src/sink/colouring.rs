//! Colours that may change while pairs flow past.

use std::sync::{Arc, Mutex};

use super::colour::{ColourMap, ColourRange};
use crate::thread::locked;

/// Colours of disparity.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Colouring {
    /// The colours.
    pub map: ColourMap,
    /// Which disparities they span.
    pub span: ColourRange,
}

/// The colouring that holds now, for all who follow it. Clones are the same.
#[derive(Clone, Debug, Default)]
pub struct LiveColouring(Arc<Mutex<Colouring>>);

impl LiveColouring {
    /// One that is this at first.
    pub fn new(colouring: Colouring) -> Self {
        Self(Arc::new(Mutex::new(colouring)))
    }

    /// The colouring now.
    pub fn get(&self) -> Colouring {
        *locked(&self.0)
    }

    /// Colours so from now on.
    pub fn set(&self, colouring: Colouring) {
        *locked(&self.0) = colouring;
    }
}
