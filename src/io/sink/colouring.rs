//! Colours that may change while pairs flow past.

use std::sync::{Arc, Mutex};

use super::colour::{ColourMap, ColourRange};
use stereod_core::thread::locked;

#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Colouring {
    pub map: ColourMap,
    pub span: ColourRange,
}

/// The present colouring, for all who follow it. Clones share it.
#[derive(Clone, Debug, Default)]
pub struct LiveColouring(Arc<Mutex<Colouring>>);

impl LiveColouring {
    pub fn new(colouring: Colouring) -> Self {
        Self(Arc::new(Mutex::new(colouring)))
    }

    pub fn get(&self) -> Colouring {
        *locked(&self.0)
    }

    pub fn set(&self, colouring: Colouring) {
        *locked(&self.0) = colouring;
    }
}
