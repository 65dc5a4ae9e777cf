//! Colours that may change while pairs flow past.

use std::sync::{Arc, Mutex, PoisonError};

use super::colour::{ColourMap, ColourRange};

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
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Colours so from now on.
    pub fn set(&self, colouring: Colouring) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = colouring;
    }
}
