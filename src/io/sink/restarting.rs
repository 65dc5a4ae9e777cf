//! An output of a run. In a live run it is reopened after failures until it works again, and a viewer
//! can suspend it.
//!
//! A robot with a full disk still has to see, and its disk may have room again later. Frames that cannot be
//! written are counted, the run continues, and it fails at its end.

use std::sync::Arc;
use std::time::Instant;

use anyhow::{Error, Result, anyhow};

use super::{Losses, Sink};
use crate::backoff::{Backoff, STEADY};
use crate::control::Recording;
use stereod_core::frame::Matched;

/// Creates an output again without overwriting the previous one's files, with the name of this recording.
pub type Factory = Box<dyn FnMut(Option<&str>) -> Result<Box<dyn Sink>> + Send>;

/// An output that is created again after failures and when it was suspended, if it has a factory.
pub struct Restarting {
    name: String,
    counted_as: &'static str,
    sink: Option<Box<dyn Sink>>,
    has_begun: bool,
    is_switched: bool,
    recording: Option<Recording>,
    /// Without it, the first failure is the caller's.
    factory: Option<Factory>,
    backoff: Backoff,
    since: Instant,
    not_before: Instant,
    /// Set from a failure until the next sink has proved itself.
    outage: Option<Outage>,
    losses: Losses,
    reason: Option<String>,
}

struct Outage {
    since: Instant,
    lost_before: u64,
}

impl Restarting {
    /// Wraps an output, which `factory` makes again after failures, and for each recording if it `is_switched`.
    pub fn new(
        counted_as: &'static str,
        sink: Box<dyn Sink>,
        factory: Option<Factory>,
        is_switched: bool,
    ) -> Self {
        let name = sink.name().to_owned();
        Self { sink: Some(sink), is_switched, ..Self::without_sink(counted_as, name, factory) }
    }

    /// Wraps an output that `factory` could not make yet because of `error`.
    pub fn awaited(
        counted_as: &'static str,
        name: String,
        factory: Factory,
        error: &Error,
    ) -> Self {
        let mut restarting = Self::without_sink(counted_as, name, Some(factory));
        restarting.note_lost(error);
        restarting
    }

    fn without_sink(counted_as: &'static str, name: String, factory: Option<Factory>) -> Self {
        let now = Instant::now();
        Self {
            name,
            counted_as,
            sink: None,
            has_begun: false,
            is_switched: false,
            recording: None,
            factory,
            backoff: Backoff::default(),
            since: now,
            not_before: now,
            outage: None,
            losses: Losses::default(),
            reason: None,
        }
    }

    /// Completes the output so far. An output without frames waits for its first one.
    fn suspend(&mut self) {
        if !std::mem::take(&mut self.has_begun) {
            return;
        }
        let Some(mut sink) = self.sink.take() else { return };
        let finished = sink.finish();
        self.losses += sink.losses();
        match finished {
            Ok(()) => tracing::info!("{} is suspended", sink.name()),
            Err(error) => self.note_lost(&error),
        }
    }

    fn look_for_it(&mut self) {
        if self.sink.is_some() || Instant::now() < self.not_before {
            return;
        }
        let Some(factory) = &mut self.factory else { return };
        let name = self.recording.as_ref().and_then(|recording| recording.name.as_deref());
        match factory(name) {
            Ok(sink) => {
                self.since = Instant::now();
                self.sink = Some(sink);
            }
            Err(error) if self.outage.is_some() => {
                tracing::debug!("{}: tried again in vain: {error:#}", self.name);
                self.not_before = Instant::now() + self.backoff.further();
            }
            // It was suspended.
            Err(error) => self.note_lost(&error),
        }
    }

    fn lose(&mut self, error: &Error) {
        let Some(mut sink) = self.sink.take() else { return };
        // It completes its data as far as possible; the reason is known.
        let _ = sink.finish();
        self.has_begun = false;
        self.note_lost(error);
        self.losses += sink.losses();
        self.losses.failed += 1;
    }

    fn note_lost(&mut self, error: &Error) {
        let reason = format!("{error:#}");
        self.not_before = Instant::now() + self.backoff.after(self.since.elapsed());
        if self.outage.is_none() {
            tracing::warn!(
                "{} failed: {reason}; its frames are lost until that is mended, trying again",
                self.name
            );
            self.outage = Some(Outage { since: Instant::now(), lost_before: self.losses.failed });
        } else {
            tracing::debug!("{} failed again: {reason}", self.name);
        }
        self.reason.get_or_insert(reason);
    }

    /// Logs the recovery once the sink has worked for a while.
    fn note_back(&mut self) {
        if self.since.elapsed() < STEADY {
            return;
        }
        if let Some(outage) = self.outage.take() {
            tracing::info!(
                "{} is being written again after {:.1} s; {} frames are lost",
                self.sink.as_ref().map_or(&*self.name, |sink| sink.name()),
                outage.since.elapsed().saturating_sub(STEADY).as_secs_f64(),
                self.losses.failed - outage.lost_before
            );
        }
    }
}

impl Sink for Restarting {
    fn name(&self) -> &str {
        &self.name
    }

    fn counted_as(&self) -> Option<&'static str> {
        Some(self.counted_as)
    }

    fn switch_to(&mut self, recording: Option<&Recording>) {
        // All pairs between two recordings may have been dropped.
        if self.is_switched && self.recording.as_ref() != recording {
            self.suspend();
            // An output that waits for its first frame has the name of the settings.
            if recording.is_some_and(|recording| recording.name.is_some()) {
                self.sink = None;
            }
        }
        self.recording = recording.cloned();
    }

    fn consume(&mut self, frame: &Arc<Matched>) -> Result<()> {
        if self.is_switched && self.recording.is_none() {
            self.losses.suspended += 1;
            return Ok(());
        }
        self.look_for_it();
        // It stays in its place meanwhile, so that it is finished also after a panic.
        let Some(sink) = &mut self.sink else {
            self.losses.failed += 1;
            return Ok(());
        };
        match sink.consume(frame) {
            Ok(()) => {
                self.has_begun = true;
                self.note_back();
            }
            Err(error) if self.factory.is_none() => return Err(error),
            Err(error) => self.lose(&error),
        }
        Ok(())
    }

    fn losses(&self) -> Losses {
        let mut losses = self.losses;
        losses += self.sink.as_ref().map(|sink| sink.losses()).unwrap_or_default();
        losses
    }

    fn finish(&mut self) -> Result<()> {
        let finished = self.sink.as_mut().map_or(Ok(()), |sink| sink.finish());
        match &self.reason {
            Some(reason) => {
                let lost = self.losses().failed;
                Err(anyhow!("{lost} frames could not be written: {reason}"))
            }
            None => finished,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;
    use std::time::Duration;

    use anyhow::bail;

    use super::*;
    use stereod_core::frame::{DisparityMap, DisparityRange, Image, StereoPair};
    use stereod_core::pool::Pooled;

    /// The shortest pause before an attempt.
    const PAUSE: Duration = Duration::from_millis(500);

    fn frame(sequence: u64) -> Arc<Matched> {
        let eye = || Image::from_vec(1, 1, vec![0]);
        let pair = StereoPair { sequence, ..StereoPair::of_stills(eye(), eye()) };
        let range = DisparityRange { min: 0, count: 64 };
        let disparity = DisparityMap::new(1, 1, range, Pooled::unpooled(vec![0]));
        Arc::new(Matched::new(pair, disparity))
    }

    fn recording(number: u64) -> Recording {
        Recording { number, name: None }
    }

    type Disk = Arc<Mutex<(bool, Vec<u64>)>>;

    /// Keeps numbers on a disk, one of them on the way; a full disk takes neither.
    struct Slow {
        disk: Disk,
        on_the_way: Option<u64>,
        lost: u64,
    }

    impl Sink for Slow {
        fn name(&self) -> &str {
            "slow"
        }

        fn consume(&mut self, frame: &Arc<Matched>) -> Result<()> {
            let mut disk = self.disk.lock().unwrap();
            let before = self.on_the_way.replace(frame.pair.sequence);
            if disk.0 {
                self.lost += before.iter().count() as u64;
                self.on_the_way = None;
                bail!("the disk is full");
            }
            disk.1.extend(before);
            Ok(())
        }

        fn losses(&self) -> Losses {
            Losses { failed: self.lost, ..Losses::default() }
        }

        fn finish(&mut self) -> Result<()> {
            self.disk.lock().unwrap().1.extend(self.on_the_way.take());
            Ok(())
        }
    }

    fn restarting(disk: &Disk, makes: &Arc<Mutex<u64>>) -> Restarting {
        let slow = {
            let disk = disk.clone();
            move || Box::new(Slow { disk: disk.clone(), on_the_way: None, lost: 0 })
        };
        let (first, makes, disk) = (slow(), makes.clone(), disk.clone());
        let factory: Factory = Box::new(move |_| {
            *makes.lock().unwrap() += 1;
            if disk.lock().unwrap().0 {
                bail!("still full");
            }
            Ok(slow())
        });
        Restarting::new("slow", first, Some(factory), true)
    }

    #[test]
    fn what_was_taken_before_a_panic_is_finished() {
        let disk = Disk::default();
        let slow = Slow { disk: disk.clone(), on_the_way: None, lost: 0 };
        let mut output = Restarting::new("slow", Box::new(slow), None, false);
        output.consume(&frame(0)).unwrap();
        let broken = Arc::clone(&disk);
        let _ = std::thread::spawn(move || {
            let _held = broken.lock().unwrap();
            panic!("poisons the lock");
        })
        .join();
        assert!(stereod_core::thread::guarded("slow", || output.consume(&frame(1))).is_err());
        disk.clear_poison();
        output.finish().unwrap();
        assert_eq!(disk.lock().unwrap().1, [0]);
    }

    #[test]
    fn without_a_factory_the_first_failure_is_the_callers() {
        let disk = Disk::default();
        let slow = Slow { disk: disk.clone(), on_the_way: None, lost: 0 };
        let mut output = Restarting::new("slow", Box::new(slow), None, false);
        output.switch_to(None);
        (0..3).for_each(|n| output.consume(&frame(n)).unwrap());
        disk.lock().unwrap().0 = true;
        assert_eq!(output.consume(&frame(3)).unwrap_err().to_string(), "the disk is full");
        assert_eq!(output.losses().failed, 1, "the one on the way");
        output.finish().unwrap();
        assert_eq!((output.counted_as(), &*disk.lock().unwrap().1), (Some("slow"), &[0, 1][..]));
    }

    #[test]
    fn what_a_failure_costs_is_counted_and_the_rest_is_written() {
        let (disk, makes) = (Disk::default(), Arc::default());
        let mut restarting = restarting(&disk, &makes);
        restarting.switch_to(Some(&recording(0)));
        (0..5).for_each(|n| restarting.consume(&frame(n)).unwrap());
        disk.lock().unwrap().0 = true;
        let failing = Instant::now();
        restarting.consume(&frame(5)).unwrap();
        assert!(restarting.not_before >= failing + PAUSE);
        let pauses = |restarting: &mut Restarting, goes_on: bool| {
            restarting.not_before = Instant::now() + 7200 * PAUSE * u32::from(goes_on);
        };
        pauses(&mut restarting, true);
        (6..8).for_each(|n| restarting.consume(&frame(n)).unwrap());
        // The frame on the way, the failed one, and two that came before the retry.
        assert_eq!((restarting.losses().failed, *makes.lock().unwrap()), (4, 0));
        pauses(&mut restarting, false);
        restarting.consume(&frame(8)).unwrap();
        pauses(&mut restarting, true);
        restarting.consume(&frame(9)).unwrap();
        assert_eq!((restarting.losses().failed, *makes.lock().unwrap()), (6, 1));
        disk.lock().unwrap().0 = false;
        pauses(&mut restarting, false);
        (10..13).for_each(|n| restarting.consume(&frame(n)).unwrap());
        let error = restarting.finish().unwrap_err().to_string();
        assert_eq!(error, "6 frames could not be written: the disk is full");
        assert_eq!(disk.lock().unwrap().1, [0, 1, 2, 3, 10, 11, 12]);
        assert_eq!(*makes.lock().unwrap(), 2);
    }

    #[test]
    fn without_a_failure_nothing_is_different() {
        let (disk, makes) = (Disk::default(), Arc::default());
        let mut restarting = restarting(&disk, &makes);
        restarting.switch_to(Some(&recording(0)));
        (0..3).for_each(|n| restarting.consume(&frame(n)).unwrap());
        restarting.finish().unwrap();
        assert_eq!((restarting.losses().failed, restarting.name()), (0, "slow"));
        assert_eq!(disk.lock().unwrap().1, [0, 1, 2]);
    }

    #[test]
    fn a_recording_with_a_name_has_an_output_of_its_own() {
        let (disk, names) = (Disk::default(), Arc::<Mutex<Vec<Option<String>>>>::default());
        let slow = |disk: &Disk| Slow { disk: disk.clone(), on_the_way: None, lost: 0 };
        let (made, of_factory) = (names.clone(), disk.clone());
        let factory: Factory = Box::new(move |name| {
            made.lock().unwrap().push(name.map(str::to_owned));
            Ok(Box::new(slow(&of_factory)))
        });
        let mut restarting = Restarting::new("slow", Box::new(slow(&disk)), Some(factory), true);
        let named = |name: &str| Recording { name: Some(name.into()), ..recording(1) };
        for (n, to) in [Some(named("yard")), None, Some(recording(2))].iter().enumerate() {
            restarting.switch_to(to.as_ref());
            restarting.consume(&frame(n as u64)).unwrap();
        }
        restarting.finish().unwrap();
        assert_eq!(*names.lock().unwrap(), [Some("yard".to_owned()), None]);
        assert_eq!(disk.lock().unwrap().1, [0, 2]);
    }

    #[test]
    fn while_it_is_suspended_nothing_is_written_and_nothing_lost() {
        let (disk, makes) = (Disk::default(), Arc::default());
        let mut restarting = restarting(&disk, &makes);
        // The pairs between the recordings 1 and 2 did not come through.
        let recordings = [None, Some(0), Some(0), None, None, Some(1), Some(2)];
        for (n, recording) in recordings.into_iter().enumerate() {
            restarting.switch_to(recording.map(self::recording).as_ref());
            restarting.consume(&frame(n as u64)).unwrap();
        }
        restarting.finish().unwrap();
        assert_eq!(disk.lock().unwrap().1, [1, 2, 5, 6]);
        // The first one waits for its first frame; each further recording has a file of its own.
        let losses = Losses { suspended: 3, ..Losses::default() };
        assert_eq!((*makes.lock().unwrap(), restarting.losses()), (2, losses));
    }
}
