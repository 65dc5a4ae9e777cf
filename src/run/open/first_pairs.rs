//! Sources whose first pairs are examined before the rest is matched: they decide the disparity
//! range. None of them is lost.

use std::collections::VecDeque;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;

use anyhow::Context;

use crate::observe::duplicate::{Stretches, Turn, find_duplicate};
use crate::observe::range::Spare;
use crate::observe::told::{Check, Warnings};
use crate::queue::{LinkReceiver, WhenFull, link};
use crate::run::faces::service::Watchdog;
use crate::run::prepare::ranging;
use crate::run::prepare::rig::Rig;
use crate::settings::Loaded;
use stereod_core::frame::StereoPair;
use stereod_core::thread;
use stereod_io::control::Switch;
use stereod_io::source::live::LiveState;
use stereod_io::source::{Place, Source, SourceCounts, SourceInfo};

pub const FIRST: usize = 4;

/// Pairs of a live source that may wait meanwhile; older ones are dropped.
const LIVE_ROOM: usize = 16;

type Item = (StereoPair, SourceCounts);

type Ended = (Box<dyn Source>, anyhow::Result<()>);

/// A source that runs on its own thread, with its first pairs at hand.
pub struct FirstPairs {
    info: SourceInfo,
    live: Option<Arc<LiveState>>,
    counts: SourceCounts,
    first: VecDeque<Item>,
    /// The pairs after them; `None` once taken.
    rest: Option<LinkReceiver<Item>>,
    /// Pairs dropped while the first ones were examined.
    dropped: Arc<AtomicU64>,
    thread: Option<JoinHandle<Ended>>,
    /// The source after its thread has ended.
    source: Option<Box<dyn Source>>,
}

impl FirstPairs {
    /// Starts the source and waits for [`FIRST`] pairs, or fewer if it ends or `stop` is set.
    pub fn await_of(mut source: Box<dyn Source>, stop: &Switch) -> anyhow::Result<Self> {
        let (info, live) = (source.info().clone(), source.live_state());
        let (room, when_full) = match info.live {
            true => (LIVE_ROOM, WhenFull::DropOldest),
            false => (1, WhenFull::Block),
        };
        let (to, rest) = link(room, when_full);
        let dropped = to.dropped();
        let thread = {
            let stop = stop.clone();
            let work = move || {
                let mut emit = |pair, counts| match to.send((pair, counts)) {
                    Ok(()) => ControlFlow::Continue(()),
                    Err(_) => ControlFlow::Break(()),
                };
                let result = source.run(&stop, &mut emit);
                (source, result)
            };
            // The link ends with the thread, which `run` joins.
            thread::spawn("first pairs", work, |_| ())
        };
        let thread = thread.context("cannot start the source's thread")?;
        let mut first = VecDeque::new();
        let mut watchdog = Watchdog::of_manager();
        while first.len() < FIRST && !stop.is_set() {
            match rest.try_recv() {
                Ok(Some(item)) => first.push_back(item),
                Ok(None) => {
                    watchdog.tick(|_| false);
                    std::thread::sleep(crate::run::TICK);
                }
                Err(_) => break,
            }
        }
        let counts = SourceCounts::default();
        let (rest, thread) = (Some(rest), Some(thread));
        Ok(Self { info, live, counts, first, rest, dropped, thread, source: None })
    }

    pub fn pairs(&self) -> impl Iterator<Item = &StereoPair> {
        self.first.iter().map(|(pair, _)| pair)
    }
}

/// Parts of a run with a known disparity range.
pub struct Chosen {
    /// The settings, with a number of disparities.
    pub loaded: Loaded,
    /// Number of disparities below which `--fit` must not go.
    pub fewest: usize,
    pub source: Box<dyn Source>,
    /// Pairs of a live source that were dropped meanwhile.
    pub dropped_before: Arc<AtomicU64>,
}

/// Chooses a number of disparities that suffices for the first pairs if the settings say `auto`,
/// and counts the disparities that they need if a rate is asked for. Returns `None` if `stop` was
/// set meanwhile.
pub fn choose_range(
    loaded: &Loaded,
    source: Box<dyn Source>,
    rig: &Rig,
    stop: &Switch,
    warnings: &Warnings,
) -> anyhow::Result<Option<Chosen>> {
    let source: Box<dyn Source> = Box::new(Compared::new(source, warnings.clone()));
    if !ranging::needs_pairs(loaded) {
        let (loaded, dropped_before) = (loaded.clone(), Arc::default());
        let fewest = loaded.params.range.count;
        return Ok(Some(Chosen { loaded, fewest, source, dropped_before }));
    }
    let source = FirstPairs::await_of(source, stop)?;
    if stop.is_set() {
        tracing::info!("stopped before the first pairs were there");
        return Ok(None);
    }
    let (loaded, needed) = ranging::with_choice(loaded, source.pairs(), rig, Spare::ForLater)?;
    // Pairs that show nothing (a covered lens) are no reason to take fewer.
    let fewest = needed.unwrap_or(loaded.params.range.count);
    let dropped_before = source.dropped.clone();
    Ok(Some(Chosen { loaded, fewest, source: Box::new(source), dropped_before }))
}

impl Source for FirstPairs {
    fn info(&self) -> &SourceInfo {
        &self.info
    }

    fn run(
        &mut self,
        stop: &Switch,
        emit: &mut dyn FnMut(StereoPair, SourceCounts) -> ControlFlow<()>,
    ) -> anyhow::Result<()> {
        let Some(rest) = self.rest.take() else {
            let Some(source) = &mut self.source else { return Ok(()) };
            let result = source.run(stop, emit);
            self.counts = source.counts();
            return result;
        };
        let first = std::mem::take(&mut self.first);
        let dropped = self.dropped.load(Ordering::Relaxed);
        if dropped > 0 {
            tracing::info!("{dropped} pairs were dropped while the first ones were looked at");
        }
        // The source's own thread checks the switch, and the link ends with it.
        for (pair, counts) in first.into_iter().chain(std::iter::from_fn(|| rest.recv().ok())) {
            self.counts = counts;
            if emit(pair, counts).is_break() {
                break;
            }
        }
        // A source that waits for room in the link is released.
        drop(rest);
        let Some(thread) = self.thread.take() else { return Ok(()) };
        let (source, result) = thread::joined("the source", thread.join())?;
        let counts = source.counts();
        self.source = Some(source);
        // Frames that it read beyond the last wanted pair do not count.
        if result.is_err() || counts.pairs == self.counts.pairs {
            self.counts = counts;
        }
        result
    }

    fn seek(&mut self, place: Place) -> anyhow::Result<()> {
        // A source that waits for room in the link is released.
        drop(self.rest.take());
        self.first.clear();
        if let Some(thread) = self.thread.take() {
            let (source, result) = thread::joined("the source", thread.join())?;
            result?;
            self.source = Some(source);
        }
        self.source.as_mut().map_or(Ok(()), |source| source.seek(place))
    }

    fn counts(&self) -> SourceCounts {
        self.counts
    }

    fn live_state(&self) -> Option<Arc<LiveState>> {
        self.live.clone()
    }
}

/// A source that compares the two views of each pair: both inputs may be, or become, one stream.
pub struct Compared {
    source: Box<dyn Source>,
    warnings: Warnings,
    stretches: Stretches,
}

impl Compared {
    pub fn new(source: Box<dyn Source>, warnings: Warnings) -> Self {
        Self { source, warnings, stretches: Stretches::default() }
    }
}

fn tell(warnings: &Warnings, turn: Option<Turn>) {
    match turn {
        Some(Turn::Begins(text)) => warnings.warn(Check::SameImage, text),
        Some(Turn::Ends(text)) => {
            tracing::info!("{text}");
            warnings.renew(Check::SameImage, None);
        }
        None => {}
    }
}

impl Source for Compared {
    fn info(&self) -> &SourceInfo {
        self.source.info()
    }

    fn run(
        &mut self,
        stop: &Switch,
        emit: &mut dyn FnMut(StereoPair, SourceCounts) -> ControlFlow<()>,
    ) -> anyhow::Result<()> {
        let Self { source, warnings, stretches } = self;
        let result = source.run(stop, &mut |pair, counts| {
            let found = find_duplicate(&pair.left, &pair.right);
            tell(warnings, stretches.note(found, pair.timestamp));
            emit(pair, counts)
        });
        tell(warnings, stretches.finish());
        result
    }

    fn seek(&mut self, place: Place) -> anyhow::Result<()> {
        self.source.seek(place)
    }

    fn counts(&self) -> SourceCounts {
        self.source.counts()
    }

    fn live_state(&self) -> Option<Arc<LiveState>> {
        self.source.live_state()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use stereod_core::frame::Image;
    use stereod_io::source::demo::{DemoOptions, DemoSource};

    fn demo(frames: u64) -> Box<dyn Source> {
        let options =
            DemoOptions { width: 64, height: 32, frames: Some(frames), ..DemoOptions::default() };
        Box::new(DemoSource::new(options).unwrap())
    }

    fn delivered(source: &mut dyn Source, wanted: usize) -> Vec<u64> {
        let mut seen = Vec::new();
        let mut emit = |pair: StereoPair, counts: SourceCounts| {
            seen.push(pair.sequence);
            assert_eq!(counts.pairs, seen.len() as u64);
            if seen.len() == wanted { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        source.run(&Switch::default(), &mut emit).unwrap();
        seen
    }

    #[test]
    fn the_pairs_that_were_looked_at_come_first_and_none_is_lost() {
        for frames in [0, 1, 3, 4, 5, 11] {
            let mut source = FirstPairs::await_of(demo(frames), &Switch::default()).unwrap();
            assert_eq!(source.pairs().count(), FIRST.min(frames as usize));
            assert_eq!(delivered(&mut source, usize::MAX), (0..frames).collect::<Vec<_>>());
            assert_eq!(source.counts().pairs, frames);
        }
    }

    #[test]
    fn whoever_wants_no_more_is_heard() {
        for wanted in [1, 4, 6] {
            let mut source = FirstPairs::await_of(demo(1_000_000), &Switch::default()).unwrap();
            assert_eq!(delivered(&mut source, wanted).len(), wanted);
            assert_eq!(source.counts().pairs, wanted as u64);
        }
    }

    #[test]
    fn a_stop_ends_the_wait() {
        let stop = Switch::default();
        stop.set(true);
        assert_eq!(FirstPairs::await_of(demo(9), &stop).unwrap().pairs().count(), 0);
    }

    /// Source of pairs with equal views, except for the given pair.
    struct Twins(SourceInfo, u64, Option<u64>);

    impl Source for Twins {
        fn info(&self) -> &SourceInfo {
            &self.0
        }
        fn run(
            &mut self,
            _: &Switch,
            emit: &mut dyn FnMut(StereoPair, SourceCounts) -> ControlFlow<()>,
        ) -> anyhow::Result<()> {
            for number in 0..self.1 {
                let shift = usize::from(self.2 == Some(number));
                let picture = |shift| Image::from_fn(8, 8, |x, y| ((x + shift) * 30 + y * 7) as u8);
                let _ = emit(StereoPair::of_stills(picture(0), picture(shift)), self.counts());
            }
            Ok(())
        }
        fn counts(&self) -> SourceCounts {
            SourceCounts::default()
        }
    }

    #[test]
    fn pairs_of_one_picture_are_noticed() {
        let noticed = |pairs, other| {
            let info = demo(0).info().clone();
            let warnings = Warnings::default();
            let mut source = Compared::new(Box::new(Twins(info, pairs, other)), warnings.clone());
            source.run(&Switch::default(), &mut |_, _| ControlFlow::Continue(())).unwrap();
            warnings.all().iter().map(|told| (told.count, told.stands)).collect::<Vec<_>>()
        };
        assert_eq!(noticed(2, None), [(1, true)]);
        assert_eq!(noticed(9, Some(6)), [(1, true)]);
        assert_eq!(noticed(9, Some(3)), [(1, true)]);
        assert_eq!(noticed(5, Some(3)), []);
        assert_eq!(noticed(0, None), []);
    }
}
