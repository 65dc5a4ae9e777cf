//! The account of a pair's times.

use std::time::Instant;

use crate::frame::StageTime;

/// The stages of a pair that are over, with their times.
pub struct Laps {
    began: Instant,
    stages: Vec<StageTime>,
}

impl Laps {
    /// Begins the first stage.
    pub fn begin() -> Self {
        Self { began: Instant::now(), stages: Vec::new() }
    }

    /// Ends the stage `name` and begins the next one.
    pub fn end(&mut self, name: &'static str) {
        let now = Instant::now();
        self.stages.push((name, now - std::mem::replace(&mut self.began, now)));
    }

    /// The names and times of the stages, in their order.
    pub fn stages(self) -> Vec<StageTime> {
        self.stages
    }
}
