//! The matcher's thread: pairs in, disparity out to every sink.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::Replacements;
use crate::engine::Engine;
use crate::frame::{Matched, StereoPair};
use crate::queue::{LinkReceiver, LinkSender};
use crate::telemetry::progress::Progress;

/// The matcher's thread.
pub(super) struct Desk<'a> {
    /// Where disparity goes.
    pub(super) fan_out: &'a [LinkSender<Arc<Matched>>],
    /// Counts what is matched.
    pub(super) progress: &'a Progress,
}

impl Desk<'_> {
    /// Keeps the engine as full as its depth allows, and hands results out as soon as no further
    /// pair is waiting.
    pub(super) fn match_pairs(
        &self,
        mut engine: Box<dyn Engine>,
        replacements: &Replacements,
        pairs: &LinkReceiver<StereoPair>,
    ) -> anyhow::Result<()> {
        let mut in_flight = 0;
        let mut open = true;
        while open || in_flight > 0 {
            let next = match in_flight {
                _ if !open => None,
                0 => pairs.recv().map(Some).unwrap_or_else(|_| {
                    open = false;
                    None
                }),
                _ => pairs.try_recv().unwrap_or_else(|_| {
                    open = false;
                    None
                }),
            };
            let waiting = next.is_some();
            if let Some(pair) = next {
                if let Some(replacement) = replacements.take() {
                    while self.hand_out(&mut *engine)? {}
                    in_flight = 0;
                    engine = replacement;
                    self.progress.retuned.fetch_add(1, Ordering::Relaxed);
                }
                engine.submit(pair)?;
                in_flight += 1;
            }
            if waiting && in_flight < engine.depth() {
                continue;
            }
            if self.hand_out(&mut *engine)? {
                in_flight -= 1;
            }
        }
        Ok(())
    }

    /// Collects the oldest pair in flight and gives it to every sink; whether there was one.
    fn hand_out(&self, engine: &mut dyn Engine) -> anyhow::Result<bool> {
        let Some(matched) = engine.collect()? else { return Ok(false) };
        let (latency, engine_time) = (matched.latency(), matched.engine_time());
        self.progress.count_matched(latency, engine_time, matched.device_time);
        let matched = Arc::new(matched);
        for sink in self.fan_out {
            // A sink that failed is gone; its own thread says why.
            let _ = sink.send(matched.clone());
        }
        Ok(true)
    }
}
