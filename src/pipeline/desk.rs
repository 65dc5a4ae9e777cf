//! The matcher's thread: pairs in, disparity out to every sink.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::{Matcher, Replacements};
use crate::frame::{Matched, StereoGeometry, StereoPair};
use crate::queue::{LinkReceiver, LinkSender};
use crate::telemetry::progress::Progress;

/// The matcher's thread.
pub(super) struct Desk<'a> {
    /// What depth is computed from, where it is known.
    pub(super) geometry: Option<StereoGeometry>,
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
        mut matcher: Matcher,
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
                    while self.hand_out(&mut matcher)? {}
                    in_flight = 0;
                    matcher = replacement;
                    self.progress.retuned.fetch_add(1, Ordering::Relaxed);
                }
                matcher.engine.submit(pair)?;
                in_flight += 1;
            }
            if waiting && in_flight < matcher.engine.depth() {
                continue;
            }
            if self.hand_out(&mut matcher)? {
                in_flight -= 1;
            }
        }
        Ok(())
    }

    /// Collects the oldest pair in flight and gives it to every sink; whether there was one.
    fn hand_out(&self, matcher: &mut Matcher) -> anyhow::Result<bool> {
        let Matcher { engine, candidates } = matcher;
        let Some(matched) = engine.collect()? else { return Ok(false) };
        let (latency, engine_time) = (matched.latency(), matched.engine_time());
        self.progress.count_matched(latency, engine_time, engine.device_time());
        let disparity = matched.disparity.of_candidates(*candidates);
        let matched = Arc::new(Matched { disparity, geometry: self.geometry, ..matched });
        for sink in self.fan_out {
            // A sink that failed is gone; its own thread says why.
            let _ = sink.send(matched.clone());
        }
        Ok(true)
    }
}
