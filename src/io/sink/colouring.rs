//! Colours that may change while pairs flow past.

use std::sync::{Arc, Mutex};

use super::colour::{ColourMap, ColourRange};
use stereod_core::thread::locked;

/// Colours of disparity.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Colouring {
    pub map: ColourMap,
    /// The disparities that they span.
    pub span: ColourRange,
}

/// The present colouring, for all who follow it. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct LiveColouring(Arc<Mutex<Colouring>>);

impl LiveColouring {
    /// Starts with this colouring.
    pub fn new(colouring: Colouring) -> Self {
        Self(Arc::new(Mutex::new(colouring)))
    }

    /// Returns the present colouring.
    pub fn get(&self) -> Colouring {
        *locked(&self.0)
    }

    /// Changes the colouring from now on.
    pub fn set(&self, colouring: Colouring) {
        *locked(&self.0) = colouring;
    }
}
