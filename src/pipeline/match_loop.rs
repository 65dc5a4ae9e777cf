//! The matcher's thread: pairs in, disparity out to every sink.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use super::Find;
use crate::queue::{LinkReceiver, LinkSender};
use crate::telemetry::progress::Progress;
use stereod_core::engine::Engine;
use stereod_core::engine::cpu::TURN;
use stereod_core::frame::{Matched, StereoPair};
use stereod_core::thread::locked;
use stereod_io::control::{Recording, Recordings};

/// A matched pair on its way to a sink.
#[derive(Clone)]
pub(super) struct Handed {
    pub(super) matched: Arc<Matched>,
    /// The recording that it belongs to; `None` if files are suspended.
    pub(super) recording: Option<Recording>,
}

/// Loop that keeps the engine as full as its depth allows, and hands results out as soon as no
/// further pair is waiting.
pub(super) struct MatchLoop {
    pub(super) engine: Box<dyn Engine>,
    pub(super) swap: EngineSwap,
    pub(super) find: Option<Find>,
    pub(super) pairs: LinkReceiver<StereoPair>,
    pub(super) fan_out: Vec<LinkSender<Handed>>,
    pub(super) recordings: Recordings,
    pub(super) progress: Arc<Progress>,
    pub(super) in_flight: usize,
    /// Set for a recording, whose pairs come without gaps unless it is moved.
    pub(super) is_recorded: bool,
    pub(super) last: Option<u64>,
    /// Number of the first pair to hand out.
    pub(super) first: u64,
}

impl MatchLoop {
    /// Matches until the link of pairs has ended and all results are handed out.
    pub(super) fn run(&mut self) -> anyhow::Result<()> {
        let mut open = true;
        while open || self.in_flight > 0 {
            let next = match self.in_flight {
                _ if !open => Ok(None),
                0 => self.pairs.recv().map(Some),
                _ => self.pairs.try_recv(),
            };
            open &= next.is_ok();
            if let Ok(Some(pair)) = next {
                self.swap_engine()?;
                self.restart_after_move(pair.sequence)?;
                self.engine.submit(pair)?;
                self.in_flight += 1;
                if self.in_flight < self.engine.depth() {
                    continue;
                }
            }
            self.hand_out()?;
        }
        Ok(())
    }

    /// Lets a waiting engine take over once all results in flight are handed out. It continues with
    /// the filters' memory of the previous one.
    fn swap_engine(&mut self) -> anyhow::Result<()> {
        let swap = self.swap.clone();
        let Some((mut next, _exchange)) = swap.take() else { return Ok(()) };
        while self.hand_out()? {}
        next.resume(self.engine.take_history()?)?;
        self.engine = next;
        self.progress.retuned.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    /// Lets stages with a memory start anew if a recording was moved before the pair of this number.
    fn restart_after_move(&mut self, number: u64) -> anyhow::Result<()> {
        let last = self.last.replace(number);
        if self.is_recorded && last.is_some_and(|last| number != last + 1) {
            while self.hand_out()? {}
            self.engine.restart()?;
        }
        Ok(())
    }

    /// Collects the oldest pair in flight and gives it to every sink; reports whether there was
    /// one.
    fn hand_out(&mut self) -> anyhow::Result<bool> {
        let Some(mut matched) = self.engine.collect()? else { return Ok(false) };
        self.in_flight -= 1;
        if matched.pair.sequence < self.first {
            return Ok(true);
        }
        self.find.iter_mut().for_each(|find| find(&mut matched));
        let (latency, engine_time) = (matched.latency(), matched.engine_time());
        self.progress.count_matched(latency, engine_time, matched.device_time);
        matched.temporal.iter().for_each(|report| self.progress.note_temporal(report));
        let turns = matched.stages.iter().filter(|(stage, _)| *stage == TURN);
        turns.for_each(|(_, waited)| self.progress.note_turn(*waited));
        // Decided once a pair, because the outputs are at different pairs at any moment.
        let handed = Handed { matched: Arc::new(matched), recording: self.recordings.now() };
        for sink in &self.fan_out {
            // A failed sink is gone; its own thread reports why.
            let _ = sink.send(handed.clone());
        }
        Ok(true)
    }
}

/// Slot for an engine that takes over between two pairs. No pair is lost or overtakes another.
/// Clones are the same slot.
#[derive(Clone, Default)]
pub struct EngineSwap(Arc<(Mutex<Slot>, Condvar)>);

#[derive(Default)]
struct Slot {
    waiting: Option<Box<dyn Engine>>,
    /// Set while an engine takes over, until the one before has freed its memory.
    is_changing: bool,
}

/// Longest wait until an engine has taken over: many times as long as any pair takes.
const CHANGING: Duration = Duration::from_secs(10);

impl EngineSwap {
    /// Lets this engine take over with the next pair; the newest wins.
    pub fn put(&self, engine: Box<dyn Engine>) {
        // An unused earlier engine is freed here, after the lock.
        let _unused = locked(&self.0.0).waiting.replace(engine);
    }

    /// Frees an engine that has not taken over yet, and waits until one that does has freed the one before. Reports
    /// whether there was one to free.
    pub fn withdraw(&self) -> bool {
        let (slot, changed) = &*self.0;
        let done = changed.wait_timeout_while(locked(slot), CHANGING, |slot| slot.is_changing);
        let withdrawn = done.unwrap_or_else(PoisonError::into_inner).0.waiting.take();
        withdrawn.is_some()
    }

    fn take(&self) -> Option<(Box<dyn Engine>, Exchange<'_>)> {
        let mut slot = locked(&self.0.0);
        let engine = slot.waiting.take()?;
        slot.is_changing = true;
        Some((engine, Exchange(self)))
    }
}

/// The exchange of two engines, which is over when this is dropped.
struct Exchange<'a>(&'a EngineSwap);

impl Drop for Exchange<'_> {
    fn drop(&mut self) {
        let (slot, changed) = &*self.0.0;
        locked(slot).is_changing = false;
        changed.notify_all();
    }
}
