//! The wiring with made-up parts: nothing lost, nothing hidden, everything finished.

use std::ops::ControlFlow;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anyhow::anyhow;

use super::*;
use stereod_core::engine::Engine;
use stereod_core::frame::{DisparityMap, DisparityRange, Image, Matched, StereoPair};
use stereod_core::matching::History;
use stereod_core::matching::saturation::WHITE;
use stereod_core::pool::Pooled;
use stereod_io::control::{Recording, Recordings, Switch};
use stereod_io::playback::Move;
use stereod_io::source::{Place, SourceCounts, SourceInfo};

/// Waits until `is_so`; the limit is for hangs.
fn wait_until(mut is_so: impl FnMut() -> bool) {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < Duration::from_secs(120), "waited in vain");
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[derive(Default)]
struct Numbers {
    info: SourceInfo,
    length: u64,
    delivered: u64,
    fails: bool,
    /// Numbers of the pairs that may come, and of those that have come.
    step: Option<[Arc<AtomicU64>; 2]>,
}

fn numbers(length: u64, live: bool) -> Numbers {
    let info = SourceInfo {
        description: "numbers".into(),
        width: 1,
        height: 1,
        live,
        white: WHITE,
        ..SourceInfo::default()
    };
    Numbers { info, length, ..Numbers::default() }
}

impl Source for Numbers {
    fn info(&self) -> &SourceInfo {
        &self.info
    }
    fn run(
        &mut self,
        stop: &Switch,
        emit: &mut dyn FnMut(StereoPair, SourceCounts) -> ControlFlow<()>,
    ) -> anyhow::Result<()> {
        while self.delivered < self.length && !stop.is_set() {
            let pair = StereoPair {
                left: Image::from_vec(1, 1, vec![0]),
                right: Image::from_vec(1, 1, vec![0]),
                sequence: self.delivered,
                timestamp: Duration::from_millis(self.delivered),
                skew_ns: Some(0),
                arrived: Instant::now(),
                truth: None,
                prior: None,
            };
            if let Some([allowed, _]) = &self.step {
                wait_until(|| self.delivered < allowed.load(Ordering::SeqCst));
            } else if self.info.live {
                std::thread::sleep(Duration::from_micros(100));
            }
            self.delivered += 1;
            if emit(pair, self.counts()).is_break() {
                return Ok(());
            }
            if let Some([_, come]) = &self.step {
                come.store(self.delivered, Ordering::SeqCst);
            }
        }
        if self.fails { Err(anyhow!("left.mkv is damaged")) } else { Ok(()) }
    }
    fn seek(&mut self, place: Place) -> anyhow::Result<()> {
        self.delivered = match place {
            Place::Time(time) => time.as_nanos().div_ceil(1_000_000) as u64,
            Place::Pair(number) => number,
        };
        Ok(())
    }
    fn counts(&self) -> SourceCounts {
        SourceCounts { pairs: self.delivered, ..SourceCounts::default() }
    }
}

/// Keeps up to `depth` pairs before it hands them out; fails at pair number `fails_at`.
struct Delaying {
    depth: usize,
    held: std::collections::VecDeque<StereoPair>,
    fails_at: Option<u64>,
    restarts: Arc<AtomicU64>,
}

fn delaying(depth: usize) -> Delaying {
    let (held, restarts) = Default::default();
    Delaying { depth, held, fails_at: None, restarts }
}

fn boxed(engine: Delaying) -> Box<dyn Engine> {
    Box::new(engine)
}

impl Engine for Delaying {
    fn description(&self) -> String {
        "delaying".into()
    }
    fn depth(&self) -> usize {
        self.depth
    }
    fn submit(&mut self, pair: StereoPair) -> anyhow::Result<()> {
        assert!(self.held.len() < self.depth, "too many pairs in flight");
        anyhow::ensure!(self.fails_at != Some(pair.sequence), "the device was lost");
        self.held.push_back(pair);
        Ok(())
    }
    fn resume(&mut self, history: History) -> anyhow::Result<()> {
        self.restarts.fetch_add(u64::from(history == History::default()), Ordering::Relaxed);
        Ok(())
    }
    fn collect(&mut self) -> anyhow::Result<Option<Matched>> {
        let disparity = |range| DisparityMap::new(1, 1, range, Pooled::unpooled(vec![0]));
        let held = self.held.pop_front();
        Ok(held.map(|pair| Matched::new(pair, disparity(DisparityRange { min: 0, count: 1 }))))
    }
}

#[derive(Clone, Default)]
struct Keeper {
    seen: Arc<Mutex<Vec<u64>>>,
    finished: Arc<AtomicU64>,
    fails_at: Option<u64>,
    nap: Duration,
    /// Takes no frame before it is so.
    opens: Option<Arc<dyn Fn() -> bool + Send + Sync>>,
    newest_only: bool,
    is_check: bool,
}

impl Sink for Keeper {
    fn name(&self) -> &str {
        "keeper"
    }
    fn newest_only(&self) -> bool {
        self.newest_only
    }
    fn is_check(&self) -> bool {
        self.is_check
    }
    fn consume(&mut self, frame: &Arc<Matched>) -> anyhow::Result<()> {
        std::thread::sleep(self.nap);
        wait_until(|| self.opens.as_ref().is_none_or(|opens| opens()));
        anyhow::ensure!(self.fails_at != Some(frame.pair.sequence), "the disk is full");
        self.seen.lock().unwrap().push(frame.pair.sequence);
        Ok(())
    }
    fn finish(&mut self) -> anyhow::Result<()> {
        self.finished.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }
}

/// A pipeline without a limit, whose links hold two pairs each.
fn config(source: Numbers, engine: Box<dyn Engine>, sinks: Vec<Box<dyn Sink>>) -> PipelineConfig {
    PipelineConfig {
        source: Box::new(source),
        engine,
        swap: EngineSwap::default(),
        find: None,
        sinks,
        pair_room: 2,
        result_room: 2,
        first: 0,
        limit: None,
        realtime: false,
        timeline: None,
    }
}

fn run(source: Numbers, engine: Delaying, sinks: &[Keeper], limit: Option<u64>) -> Outcome {
    start_with(source, engine, sinks, limit).join()
}

fn start_with(source: Numbers, engine: Delaying, sinks: &[Keeper], limit: Option<u64>) -> Running {
    let config = PipelineConfig {
        limit,
        ..config(
            source,
            boxed(engine),
            sinks.iter().map(|s| Box::new(s.clone()) as Box<dyn Sink>).collect(),
        )
    };
    start(config, &Control::default()).unwrap()
}

#[test]
fn every_pair_of_a_file_reaches_every_sink_in_order() {
    for depth in [1, 3] {
        let quick = Keeper::default();
        let slow = Keeper { nap: Duration::from_micros(300), ..Keeper::default() };
        let sinks = [quick.clone(), slow.clone()];
        let running = start_with(numbers(200, false), delaying(depth), &sinks, None);
        let dropped = running.counters.dropped_pairs.clone();
        let outcome = running.join();
        assert!(outcome.error.is_none());
        assert_eq!((outcome.matched, outcome.source.pairs), (200, 200));
        assert_eq!(dropped.load(Ordering::Relaxed), 0);
        for sink in [quick, slow] {
            assert_eq!(*sink.seen.lock().unwrap(), (0..200).collect::<Vec<_>>());
            assert_eq!(sink.finished.load(Ordering::Relaxed), 1);
        }
        assert!(outcome.sinks.iter().all(|s| s.frames == 200 && s.dropped == 0));
    }
}

#[test]
fn a_sink_that_wants_the_newest_only_holds_up_nobody_and_gets_the_last() {
    let thorough = Keeper::default();
    let kept = thorough.seen.clone();
    let opens = Some(Arc::new(move || kept.lock().unwrap().len() == 200) as Arc<_>);
    let glancing = Keeper { opens, newest_only: true, ..Keeper::default() };
    let sinks = [glancing.clone(), thorough.clone()];
    let outcome = run(numbers(200, false), delaying(1), &sinks, None);
    assert!(outcome.error.is_none());
    assert_eq!(thorough.seen.lock().unwrap().len(), 200);
    let seen = glancing.seen.lock().unwrap();
    assert!(seen.len() < 5 && seen.last() == Some(&199), "{seen:?}");
}

#[test]
fn a_live_source_does_not_wait_and_every_loss_is_counted() {
    let (control, is_open) = (Control::default(), Switch::default());
    let opens = is_open.clone();
    let opens = Some(Arc::new(move || opens.is_set()) as Arc<_>);
    let slow = Keeper { opens, ..Keeper::default() };
    let config = config(numbers(u64::MAX, true), boxed(delaying(1)), vec![Box::new(slow.clone())]);
    let running = start(config, &control).unwrap();
    let (progress, dropped) = (running.progress.clone(), running.counters.dropped_pairs.clone());
    // The sink still has its first one, and two wait before it.
    wait_until(|| progress.matched.load(Ordering::Relaxed) >= 20);
    control.stop.set(true);
    is_open.set(true);
    let outcome = running.join();
    let seen = slow.seen.lock().unwrap();
    assert!(seen.windows(2).all(|w| w[0] < w[1]));
    let pairs = outcome.source.pairs;
    assert_eq!(outcome.matched + dropped.load(Ordering::Relaxed), pairs);
    assert_eq!(outcome.sinks[0].frames + outcome.sinks[0].dropped, outcome.matched);
    assert!(outcome.sinks[0].dropped > 0);
    assert_eq!(*seen.last().unwrap(), pairs - 1, "the newest pair wins");
}

/// Ten pairs come while it matches one; keeps by how many the begun ones are behind.
struct Tenfold {
    inner: Delaying,
    step: [Arc<AtomicU64>; 2],
    behind: Arc<Mutex<Vec<u64>>>,
}

impl Engine for Tenfold {
    fn description(&self) -> String {
        "tenfold".into()
    }
    fn depth(&self) -> usize {
        self.inner.depth()
    }
    fn submit(&mut self, pair: StereoPair) -> anyhow::Result<()> {
        let come = self.step[1].load(Ordering::SeqCst);
        self.behind.lock().unwrap().push(come.saturating_sub(pair.sequence));
        self.inner.submit(pair)
    }
    fn collect(&mut self) -> anyhow::Result<Option<Matched>> {
        let [allowed, come] = &self.step;
        let wanted = allowed.fetch_add(10, Ordering::SeqCst) + 10;
        wait_until(|| come.load(Ordering::SeqCst) >= wanted.min(2000));
        self.inner.collect()
    }
}

#[test]
fn a_slow_engine_is_given_the_newest_live_pairs() {
    let (keeper, behind) = (Keeper::default(), Arc::<Mutex<Vec<u64>>>::default());
    let step = [Arc::new(AtomicU64::new(10)), Arc::default()];
    let source = Numbers { step: Some(step.clone()), ..numbers(2000, true) };
    let engine = Tenfold { inner: delaying(1), step, behind: behind.clone() };
    let config = config(source, Box::new(engine), vec![Box::new(keeper.clone())]);
    let running = start(config, &Control::default()).unwrap();
    let dropped = running.counters.dropped_pairs.clone();
    let outcome = running.join();
    let dropped = dropped.load(Ordering::Relaxed);
    assert_eq!(outcome.matched + dropped, 2000);
    assert!(dropped > 1000, "{dropped}");
    assert_eq!(keeper.seen.lock().unwrap().last(), Some(&1999), "the newest pair wins");
    // Two pairs wait before it. The first ten may still be coming when it begins.
    let behind = behind.lock().unwrap();
    assert!(behind[1..].iter().all(|&pairs| pairs <= 4), "{behind:?}");
}

#[test]
fn a_limit_ends_the_run() {
    let sink = Keeper::default();
    let outcome = run(numbers(u64::MAX, false), delaying(2), std::slice::from_ref(&sink), Some(7));
    assert!(outcome.error.is_none());
    assert_eq!((outcome.matched, sink.seen.lock().unwrap().len()), (7, 7));
}

#[test]
fn a_damaged_source_fails_after_everything_before_it_was_kept() {
    let sink = Keeper::default();
    let source = Numbers { fails: true, ..numbers(20, false) };
    let outcome = run(source, delaying(3), std::slice::from_ref(&sink), None);
    assert_eq!(outcome.error.unwrap().to_string(), "left.mkv is damaged");
    assert_eq!(sink.seen.lock().unwrap().len(), 20);
    assert_eq!(sink.finished.load(Ordering::Relaxed), 1);
}

#[test]
fn a_failing_sink_stops_the_run_and_the_others_are_finished() {
    let broken = Keeper { fails_at: Some(5), ..Keeper::default() };
    let sound = Keeper::default();
    let outcome =
        run(numbers(u64::MAX, false), delaying(1), &[broken.clone(), sound.clone()], None);
    assert_eq!(format!("{:#}", outcome.error.unwrap()), "keeper: the disk is full");
    assert_eq!(broken.seen.lock().unwrap().len(), 5);
    for sink in [broken, sound] {
        assert_eq!(sink.finished.load(Ordering::Relaxed), 1);
    }
}

#[test]
fn a_failing_engine_is_the_cause_that_is_named() {
    let sink = Keeper::default();
    let engine = Delaying { fails_at: Some(9), ..delaying(1) };
    let outcome = run(numbers(u64::MAX, false), engine, std::slice::from_ref(&sink), None);
    assert_eq!(outcome.error.unwrap().to_string(), "the device was lost");
    assert_eq!(sink.seen.lock().unwrap().len(), 9);
    assert_eq!(sink.finished.load(Ordering::Relaxed), 1);
}

#[test]
fn a_panicking_sink_stops_the_run() {
    struct Panics(Arc<AtomicU64>);
    impl Sink for Panics {
        fn name(&self) -> &str {
            "panics"
        }
        fn consume(&mut self, _: &Arc<Matched>) -> anyhow::Result<()> {
            panic!("on purpose")
        }
        fn finish(&mut self) -> anyhow::Result<()> {
            self.0.fetch_add(1, Ordering::Relaxed);
            Ok(())
        }
    }
    let finished = Arc::<AtomicU64>::default();
    let sound = Keeper::default();
    let config = config(
        numbers(u64::MAX, false),
        boxed(delaying(1)),
        vec![Box::new(Panics(finished.clone())), Box::new(sound.clone())],
    );
    let outcome = start(config, &Control::default()).unwrap().join();
    let error = outcome.error.unwrap().to_string();
    assert!(error.starts_with("panics"), "{error}");
    // Every output has its line in the statistics, and even the broken one was finished.
    assert_eq!(outcome.sinks.len(), 2);
    assert_eq!(finished.load(Ordering::Relaxed), 1);
    assert_eq!(sound.finished.load(Ordering::Relaxed), 1);
}

#[test]
fn stopping_matches_what_is_on_the_way() {
    let sink = Keeper { nap: Duration::from_millis(1), ..Keeper::default() };
    let control = Control::default();
    let config = PipelineConfig {
        pair_room: 4,
        result_room: 4,
        ..config(numbers(u64::MAX, false), boxed(delaying(3)), vec![Box::new(sink.clone())])
    };
    let running = start(config, &control).unwrap();
    let progress = running.progress.clone();
    wait_until(|| progress.matched.load(Ordering::Relaxed) >= 20);
    control.stop.set(true);
    let outcome = running.join();
    assert!(outcome.error.is_none());
    let delivered = progress.pairs.load(Ordering::Relaxed);
    assert_eq!(outcome.matched, delivered);
    assert_eq!(sink.seen.lock().unwrap().len() as u64, delivered);
}

/// A disparity that tells which engine made the map.
struct Labelled(Delaying, i16, i32);

impl Engine for Labelled {
    fn description(&self) -> String {
        "labelled".into()
    }
    fn depth(&self) -> usize {
        self.0.depth()
    }
    fn submit(&mut self, pair: StereoPair) -> anyhow::Result<()> {
        self.0.submit(pair)
    }
    fn collect(&mut self) -> anyhow::Result<Option<Matched>> {
        let mut matched = self.0.collect()?;
        if let Some(matched) = &mut matched {
            matched.disparity.values_mut().fill(self.1);
            self.2 += 1;
            matched.stages = vec![("pairs so far", Duration::from_secs(self.2 as u64))];
        }
        Ok(matched)
    }
    fn take_history(&mut self) -> anyhow::Result<History> {
        assert!(self.0.held.is_empty(), "pairs in flight");
        let states = [("pairs", vec![std::mem::take(&mut self.2)])].into();
        Ok(History { states, ..History::default() })
    }
    fn resume(&mut self, history: History) -> anyhow::Result<()> {
        self.2 = history.states["pairs"][0];
        Ok(())
    }
}

/// An engine whose maps bear this label, and that counts the pairs of the stream.
fn labelled(depth: usize, label: i16) -> Box<dyn Engine> {
    Box::new(Labelled(delaying(depth), label, 0))
}

/// Sequence number and label of a map, and the number of pairs so far.
type Seen = (u64, i16, u64);

/// Puts other engines in while pairs flow past; keeps what it sees of each.
struct Replacing {
    swap: EngineSwap,
    seen: Arc<Mutex<Vec<Seen>>>,
}

impl Sink for Replacing {
    fn name(&self) -> &str {
        "replacing"
    }
    fn consume(&mut self, frame: &Arc<Matched>) -> anyhow::Result<()> {
        let sequence = frame.pair.sequence;
        let (label, pairs) = (frame.disparity.values()[0], frame.stages[0].1.as_secs());
        self.seen.lock().unwrap().push((sequence, label, pairs));
        if sequence % 50 == 10 {
            let depth = 1 + sequence as usize / 50 % 3;
            self.swap.put(labelled(depth, sequence as i16));
        }
        Ok(())
    }
}

#[test]
fn engines_are_replaced_between_two_pairs_and_none_is_lost() {
    let swap = EngineSwap::default();
    let seen = Arc::default();
    // The newest wins: the first of the two is never begun with.
    swap.put(labelled(1, 2));
    swap.put(labelled(2, 3));
    let sink = Replacing { swap: swap.clone(), seen: Arc::clone(&seen) };
    let config = PipelineConfig {
        swap,
        ..config(numbers(300, false), labelled(3, 1), vec![Box::new(sink)])
    };
    let running = start(config, &Control::default()).unwrap();
    let progress = running.progress.clone();
    let outcome = running.join();
    assert!(outcome.error.is_none());
    let seen = seen.lock().unwrap();
    assert!(seen.iter().map(|&(sequence, ..)| sequence).eq(0..300), "none lost, none overtaken");
    assert!(seen.iter().all(|&(sequence, _, pairs)| pairs == sequence + 1), "{seen:?}");
    let mut labels: Vec<_> = seen.iter().map(|&(_, label, _)| label).collect();
    labels.dedup();
    assert_eq!(labels, [3, 10, 60, 110, 160, 210, 260]);
    assert_eq!(progress.retuned.load(Ordering::Relaxed), 7);
}

#[test]
fn an_output_that_is_held_up_is_a_failure_and_a_check_is_none() {
    for is_check in [false, true] {
        let slow = Keeper { nap: Duration::from_secs(3600), is_check, ..Keeper::default() };
        let config = config(numbers(2, true), boxed(delaying(1)), vec![Box::new(slow)]);
        let mut running = start(config, &Control::default()).unwrap();
        running.patience = Some(Duration::from_millis(300));
        wait_until(|| running.is_finished());
        let error = running.join().error.map(|error| error.to_string());
        assert_eq!(error.is_none(), is_check, "{error:?}");
        assert!(error.is_none_or(|error| error.contains("keeper: it is held up")));
    }
}

#[test]
fn a_step_lets_one_pair_pass_while_the_source_is_held() {
    let control = Control::default();
    control.pause.set(true);
    let config = PipelineConfig {
        pair_room: 4,
        result_room: 4,
        ..config(numbers(u64::MAX, false), boxed(delaying(3)), vec![])
    };
    let running = start(config, &control).unwrap();
    let progress = running.progress.clone();
    let matched = || progress.matched.load(Ordering::Relaxed);
    for expected in 1..=3 {
        // The source has come to its next pair, and holds it.
        std::thread::sleep(Duration::from_millis(100));
        control.step.set(true);
        wait_until(|| matched() >= expected);
        std::thread::sleep(Duration::from_millis(50));
        assert_eq!(matched(), expected);
    }
    control.stop.set(true);
    assert!(running.join().error.is_none());
}

/// Starts a recording of so many pairs, one each millisecond, that is moved through.
fn moved_through(length: u64, control: &Control, sink: &Keeper, engine: Delaying) -> Running {
    let mut source = numbers(length, false);
    source.info.rate = Some(1000.0);
    let config = PipelineConfig {
        timeline: Some(Timeline { stays: true }),
        ..config(source, boxed(engine), vec![Box::new(sink.clone())])
    };
    start(config, control).unwrap()
}

fn wait_for(sink: &Keeper, pairs: usize) {
    wait_until(|| sink.seen.lock().unwrap().len() >= pairs);
}

#[test]
fn a_paused_recording_shows_the_pair_that_is_asked_for() {
    let (control, sink, engine) = (Control::default(), Keeper::default(), delaying(1));
    let restarts = engine.restarts.clone();
    control.pause.set(true);
    let running = moved_through(100, &control, &sink, engine);
    let ms = Duration::from_millis;
    let moves = [
        (Move::To(ms(50)), 50),
        (Move::Forwards, 51),
        (Move::Backwards, 50),
        (Move::Again, 50),
        // Behind the end: the last pair.
        (Move::To(ms(1000)), 99),
        (Move::Again, 99),
        (Move::Backwards, 98),
        (Move::To(ms(0)), 0),
        (Move::Backwards, 0),
    ];
    for (count, (wanted, _)) in moves.iter().enumerate() {
        control.playback.ask(*wanted);
        wait_for(&sink, count + 1);
    }
    control.stop.set(true);
    let outcome = running.join();
    assert!(outcome.error.is_none());
    assert_eq!(*sink.seen.lock().unwrap(), moves.map(|(_, number)| number));
    assert_eq!(restarts.load(Ordering::Relaxed), 7, "all but the first pair and the next one");
}

#[test]
fn a_marked_part_repeats_until_it_is_stopped() {
    let (control, sink) = (Control::default(), Keeper::default());
    let part = [Some(Duration::from_millis(3)), Some(Duration::from_millis(6))];
    control.playback.change(|playing| (playing.marks, playing.repeats) = (part, true));
    let running = moved_through(10, &control, &sink, delaying(1));
    wait_for(&sink, 12);
    control.stop.set(true);
    assert!(running.join().error.is_none());
    assert_eq!(sink.seen.lock().unwrap()[..12], [0, 1, 2, 3, 4, 5, 3, 4, 5, 3, 4, 5]);
}

#[test]
fn at_its_end_a_recording_waits_to_be_played_again() {
    let (control, sink) = (Control::default(), Keeper::default());
    let running = moved_through(3, &control, &sink, delaying(1));
    wait_for(&sink, 3);
    wait_until(|| control.playback.playing().is_at_end);
    assert!(!running.is_finished() && control.pause.is_set());
    control.pause.set(false);
    wait_for(&sink, 6);
    control.stop.set(true);
    assert!(running.join().error.is_none());
    assert_eq!(sink.seen.lock().unwrap()[..6], [0, 1, 2, 0, 1, 2]);
}

#[test]
fn the_pairs_behind_a_limit_are_not_there() {
    let (control, sink) = (Control::default(), Keeper::default());
    let mut source = numbers(100, false);
    source.info.rate = Some(1000.0);
    let config = PipelineConfig {
        limit: Some(3),
        timeline: Some(Timeline { stays: true }),
        ..config(source, boxed(delaying(1)), vec![Box::new(sink.clone())])
    };
    let running = start(config, &control).unwrap();
    let progress = running.progress.clone();
    wait_until(|| control.playback.playing().is_at_end);
    let moves = [Move::To(Duration::from_millis(50)), Move::Backwards];
    for (count, wanted) in (4..).zip(moves) {
        control.playback.ask(wanted);
        wait_for(&sink, count);
    }
    control.stop.set(true);
    assert!(running.join().error.is_none());
    assert_eq!(*sink.seen.lock().unwrap(), [0, 1, 2, 2, 1]);
    assert!(!progress.cut_short.load(Ordering::SeqCst), "it was played to its end");
}

#[test]
fn without_a_window_a_recording_ends() {
    let (control, sink) = (Control::default(), Keeper::default());
    control.playback.change(|playing| playing.repeats = true);
    let running = moved_through(3, &control, &sink, delaying(1));
    wait_for(&sink, 6);
    control.playback.change(|playing| playing.is_unattended = true);
    assert!(running.join().error.is_none());
    assert_eq!(sink.seen.lock().unwrap().len() % 3, 0);
}

/// A screen that is paused at certain pairs; keeps the pairs that it shows.
struct Screen {
    control: Control,
    pauses: Vec<u64>,
    shown: Arc<Mutex<Vec<u64>>>,
}

impl Sink for Screen {
    fn name(&self) -> &str {
        "screen"
    }
    fn consume(&mut self, frame: &Arc<Matched>) -> anyhow::Result<()> {
        let pair = &frame.pair;
        if self.control.pause.window_shows(pair.arrived) {
            self.shown.lock().unwrap().push(pair.sequence);
            if self.pauses.last() == Some(&pair.sequence) {
                self.pauses.pop();
                self.control.pause.hold((pair.sequence, pair.timestamp));
            }
        }
        std::thread::sleep(Duration::from_millis(1));
        Ok(())
    }
}

#[test]
fn a_pause_shows_nothing_later_and_goes_on_from_the_pair_that_is_shown() {
    let (control, shown) = (Control::default(), Arc::<Mutex<Vec<u64>>>::default());
    let mut source = numbers(100, false);
    source.info.rate = Some(1000.0);
    let screen =
        Screen { control: control.clone(), pauses: vec![99, 98, 40, 20], shown: shown.clone() };
    let config = PipelineConfig {
        pair_room: 4,
        result_room: 4,
        timeline: Some(Timeline { stays: true }),
        ..config(source, boxed(delaying(3)), vec![Box::new(screen)])
    };
    let running = start(config, &control).unwrap();
    let comes_to = |count, number| {
        wait_until(|| shown.lock().unwrap().len() >= count && control.pause.is_set());
        // The pairs that are on their way pass by.
        std::thread::sleep(Duration::from_millis(60));
        assert_eq!(shown.lock().unwrap().last(), Some(&number));
        assert_eq!(shown.lock().unwrap().len(), count);
    };
    comes_to(21, 20);
    let moves =
        [(Move::Forwards, 21), (Move::Forwards, 22), (Move::Again, 22), (Move::Backwards, 21)];
    for (count, (wanted, number)) in (22..).zip(moves) {
        control.playback.ask(wanted);
        comes_to(count, number);
    }
    control.pause.set(false);
    comes_to(44, 40);
    control.playback.ask(Move::Again);
    comes_to(45, 40);
    control.pause.set(false);
    comes_to(103, 98);
    control.playback.ask(Move::Backwards);
    comes_to(104, 97);
    control.pause.set(false);
    comes_to(106, 99);
    control.stop.set(true);
    assert!(running.join().error.is_none());
    let mut expected: Vec<u64> = (0..=20).chain([21, 22, 22, 21]).chain(22..=40).collect();
    expected.extend([40].into_iter().chain(41..=98).chain([97, 98, 99]));
    assert_eq!(*shown.lock().unwrap(), expected);
}

/// Pairs that were written, with the number of their recording.
type Written = Arc<Mutex<Vec<(u64, Option<u64>)>>>;

#[derive(Clone, Default)]
struct Switched {
    written: Written,
    recording: Option<u64>,
    nap: Duration,
    switch: Option<Recordings>,
}

impl Sink for Switched {
    fn name(&self) -> &str {
        "switched"
    }
    fn switch_to(&mut self, recording: Option<&Recording>) {
        self.recording = recording.map(|recording| recording.number);
    }
    fn consume(&mut self, frame: &Arc<Matched>) -> anyhow::Result<()> {
        std::thread::sleep(self.nap);
        let sequence = frame.pair.sequence;
        self.written.lock().unwrap().push((sequence, self.recording));
        // Fewer than fifty pairs are on their way, to which this comes too late.
        if let Some(switch) = &self.switch
            && [20, 70, 120, 170, 220].contains(&sequence)
        {
            if switch.is_on() {
                switch.stop();
            } else {
                switch.start(None);
            }
        }
        Ok(())
    }
}

#[test]
fn files_are_switched_at_the_same_pair() {
    let control = Control::default();
    control.recordings.stop();
    let mut sinks =
        [0, 300, 900].map(Duration::from_micros).map(|nap| Switched { nap, ..Switched::default() });
    sinks[0].switch = Some(control.recordings.clone());
    let config = PipelineConfig {
        result_room: 30,
        ..config(
            numbers(300, false),
            boxed(delaying(3)),
            sinks.iter().map(|sink| Box::new(sink.clone()) as Box<dyn Sink>).collect(),
        )
    };
    let running = start(config, &control).unwrap();
    assert!(running.join().error.is_none());
    let seen = sinks.map(|sink| sink.written.lock().unwrap().clone());
    assert!(seen[0] == seen[1] && seen[0] == seen[2]);
    let mut recordings: Vec<_> = seen[0].iter().map(|(_, recording)| *recording).collect();
    recordings.dedup();
    assert_eq!(recordings, [None, Some(1), None, Some(2), None, Some(3)]);
    assert_eq!(seen[0].len(), 300);
}

#[test]
fn a_pipeline_that_is_given_up_finishes_its_files() {
    let sink = Keeper::default();
    let running =
        start_with(numbers(u64::MAX, false), delaying(1), std::slice::from_ref(&sink), None);
    drop(running);
    assert_eq!(sink.finished.load(Ordering::Relaxed), 1);
}
