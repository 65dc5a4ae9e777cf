//! Times of the stages of a pair.

use std::time::Instant;

use crate::frame::StageTime;

pub struct StageTimer {
    began: Instant,
    stages: Vec<StageTime>,
}

impl StageTimer {
    pub fn begin() -> Self {
        Self { began: Instant::now(), stages: Vec::new() }
    }

    pub fn end(&mut self, name: &'static str) {
        let now = Instant::now();
        self.stages.push((name, now - std::mem::replace(&mut self.began, now)));
    }

    pub fn into_stages(self) -> Vec<StageTime> {
        self.stages
    }
}
