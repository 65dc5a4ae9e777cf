//! The source's thread: pairs go into the first link at their pace. In a window and on the live page, a
//! recording goes on from wherever the user moves it.

use std::ops::ControlFlow::{self, Break, Continue};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use crate::queue::LinkSender;
use crate::telemetry::progress::Progress;
use stereod_core::frame::StereoPair;
use stereod_io::control::{Control, Shown};
use stereod_io::playback::Move;
use stereod_io::source::pairing::pace::Pacer;
use stereod_io::source::{Place, Source, SourceCounts, SourceInfo};

/// Period in which requests are checked while no pair flows.
const POLL: Duration = Duration::from_millis(5);

/// First distance before the end at which the last pair is looked for.
const FIRST_REACH: Duration = Duration::from_secs(1);

/// Smallest step of time.
const NEXT: Duration = Duration::from_nanos(1);

/// Frame period if no other is known.
const UNKNOWN_PERIOD: Duration = Duration::from_millis(33);

/// Timeline of a recording that the user moves through.
#[derive(Clone, Copy, Debug)]
pub struct Timeline {
    /// True to wait at the end for further moves.
    pub stays: bool,
}

pub(super) struct Delivery<'a> {
    pub(super) pairs: &'a LinkSender<StereoPair>,
    pub(super) control: &'a Control,
    pub(super) progress: &'a Progress,
    pub(super) first: u64,
    /// Number of pairs to deliver. In a recording that is moved through, those behind them do not exist.
    pub(super) left: u64,
    /// Set if pairs are held back until they are due.
    pub(super) pacer: Option<Pacer>,
    pub(super) timeline: Option<Timeline>,
}

struct Run<'a> {
    to: Delivery<'a>,
    /// Time of the recording's first image.
    begin: Duration,
    period: Duration,
    /// Time that the previous pair waited for room in the link.
    held: Duration,
    /// Copy of the last pair, to be matched again.
    last: Option<StereoPair>,
    /// Time of the pair directly before it.
    before: Option<Duration>,
    wanted: Option<Duration>,
    /// True until the first pair after a move, which is shown even if the source is paused.
    is_due: bool,
    place: Duration,
    /// Number of the pair behind the last one that is played, once the first one is known.
    end: Option<u64>,
    seeking: Seeking,
    /// True if the source is to be left: the run ends, or no pair is wanted.
    is_over: bool,
}

/// A pair that is looked for from the place of the last move on.
#[derive(Default)]
enum Seeking {
    #[default]
    First,
    /// The last one of the recording, this far before a place behind it; the last one found so far.
    Last { reach: Duration, found: Option<StereoPair> },
    /// A step back: the pair before this time, from a place on.
    Before { time: Duration, place: Duration },
}

impl Delivery<'_> {
    /// Delivers pairs until the source ends or a stop is requested.
    pub(super) fn run(self, mut source: Box<dyn Source>) -> (SourceCounts, anyhow::Result<()>) {
        let SourceInfo { begin, rate, .. } = *source.info();
        let period = rate.map_or(UNKNOWN_PERIOD, |rate| Duration::from_secs_f64(rate.recip()));
        let (control, progress) = (self.control, self.progress);
        let mut run = Run {
            to: self,
            begin,
            period,
            held: Duration::ZERO,
            last: None,
            before: None,
            wanted: None,
            is_due: false,
            place: begin,
            end: None,
            seeking: Seeking::First,
            is_over: false,
        };
        let mut result = source.run(&control.stop, &mut |pair, counts| run.take(pair, counts));
        let mut is_at_end = false;
        while let (Ok(()), Some(timeline)) = (&result, run.to.timeline) {
            // What was played to its end may be left at any time.
            is_at_end |= run.wanted.is_none() && !run.is_over && !control.stop.is_set();
            let Some(place) = run.next_place(timeline) else { break };
            result = source.seek(Place::Time(place)).and_then(|()| {
                source.run(&control.stop, &mut |pair, counts| run.take(pair, counts))
            });
        }
        let cut_short = run.to.left > 0 && control.stop.is_set() && !is_at_end;
        progress.cut_short.store(cut_short, Ordering::SeqCst);
        progress.source_ended.store(true, Ordering::SeqCst);
        // The source also counts a pair that was refused because the run ended.
        let pairs = progress.pairs.load(Ordering::Relaxed);
        let counts = SourceCounts { pairs, ..source.counts() };
        note(progress, counts);
        (counts, result)
    }
}

fn note(progress: &Progress, counts: SourceCounts) {
    let unpaired = [counts.unpaired_left, counts.unpaired_right];
    progress.note_source([counts.left, counts.right], unpaired);
}

impl Run<'_> {
    /// Takes a pair from the source. Breaks if the source is to be moved or left.
    fn take(&mut self, mut pair: StereoPair, counts: SourceCounts) -> ControlFlow<()> {
        note(self.to.progress, counts);
        if self.is_behind_end(pair.sequence) {
            return Break(());
        }
        match std::mem::take(&mut self.seeking) {
            Seeking::Last { reach, .. } => {
                self.seeking = Seeking::Last { reach, found: Some(pair) };
                return Continue(());
            }
            // The pair before is further away than those around it.
            Seeking::Before { time, place } if pair.timestamp >= time && place > self.begin => {
                return self.look_back(time, 2 * time.saturating_sub(place));
            }
            Seeking::Before { .. } | Seeking::First => {}
        }
        let control = self.to.control;
        loop {
            let is_asked_for = self.wait_while_paused(pair.timestamp)?;
            self.pace(pair.timestamp, is_asked_for)?;
            if self.to.pacer.is_some() || is_asked_for {
                // The pair was held back on purpose, so its latency starts now, as with a camera.
                pair.arrived = Instant::now();
            }
            // A pause that begins after this hides the pair from viewers, because it has arrived before.
            if is_asked_for || !control.pause.is_set() || control.stop.is_set() {
                break;
            }
        }
        self.send(pair)
    }

    /// Waits while the source is paused. Returns true for a single pair that was asked for. Breaks if the source is
    /// stopped or to be moved.
    fn wait_while_paused(&mut self, time: Duration) -> ControlFlow<(), bool> {
        let control = self.to.control;
        let since = Instant::now();
        let mut paused = false;
        let mut is_asked_for = std::mem::take(&mut self.is_due);
        while !is_asked_for && !control.stop.is_set() {
            match self.asked() {
                Some(Move::Forwards) => match self.behind() {
                    Some(shown) => return self.go_to(shown + NEXT),
                    None => is_asked_for = true,
                },
                Some(Move::Again) if control.pause.is_set() => match self.behind() {
                    Some(shown) => return self.go_to(shown),
                    None => self.send_again()?,
                },
                Some(Move::Again) | None => {}
                Some(wanted) => {
                    self.go(wanted)?;
                }
            }
            is_asked_for |= control.step.take();
            if is_asked_for {
                break;
            }
            if !control.pause.is_set() {
                if let Some(shown) = self.resumed_behind() {
                    return self.go_to(shown + NEXT);
                }
                // Steps may leave the marked part.
                if self.passes_mark(time) {
                    return Break(());
                }
                break;
            }
            paused = true;
            std::thread::sleep(POLL);
        }
        if paused {
            self.note_pause(since.elapsed());
        }
        if control.stop.is_set() {
            self.leave()?;
        }
        if is_asked_for {
            control.pause.forget_shown();
        }
        Continue(is_asked_for)
    }

    /// Returns the time of the pair in the paused window if later ones were delivered already, which it does not show.
    fn behind(&self) -> Option<Duration> {
        self.if_behind(self.to.control.pause.shown())
    }

    /// Returns the same once after the pause.
    fn resumed_behind(&self) -> Option<Duration> {
        self.if_behind(self.to.control.pause.take_shown())
    }

    fn if_behind(&self, shown: Option<Shown>) -> Option<Duration> {
        let last = self.last.as_ref().filter(|_| self.to.timeline.is_some())?;
        shown.filter(|(number, _)| *number != last.sequence).map(|(_, time)| time)
    }

    /// Holds a pair back until it is due, or until a pause begins if it was not asked for. Breaks if the source is to
    /// be moved meanwhile.
    fn pace(&mut self, time: Duration, is_asked_for: bool) -> ControlFlow<()> {
        let Delivery { control, timeline, progress, .. } = self.to;
        let Some(pacer) = &mut self.to.pacer else { return Continue(()) };
        if timeline.is_some() {
            pacer.set_speed(control.playback.playing().speed);
        }
        let is_asked = || timeline.is_some() && control.playback.is_asked();
        let is_paused = || !is_asked_for && control.pause.is_set();
        // A source that decodes too slowly is late, too, but cheaper matching would not help it.
        let is_ended = || control.stop.is_set() || is_asked() || is_paused();
        let delay = pacer.wait(time, is_ended).min(self.held);
        if is_paused() {
            return Continue(());
        }
        progress.note_paced(time, delay);
        match self.asked() {
            // Another step, quickly after the one that asked for this pair.
            Some(Move::Forwards) if is_asked_for => control.playback.ask(Move::Forwards),
            Some(Move::Again | Move::Forwards) | None => {}
            Some(wanted) => return self.go(wanted),
        }
        Continue(())
    }

    fn send(&mut self, pair: StereoPair) -> ControlFlow<()> {
        if self.to.timeline.is_some() {
            let follows = |last: &&StereoPair| last.sequence + 1 == pair.sequence;
            self.before = self.last.as_ref().filter(follows).map(|last| last.timestamp);
            self.last = Some(pair.copy());
        }
        let is_counted = pair.sequence >= self.to.first;
        let ready = Instant::now();
        if self.to.pairs.send(pair).is_err() {
            return self.leave();
        }
        self.held = ready.elapsed();
        if !is_counted {
            return Continue(());
        }
        self.to.progress.pairs.fetch_add(1, Ordering::Relaxed);
        if self.to.timeline.is_some() {
            return Continue(());
        }
        self.to.left -= 1;
        if self.to.left == 0 { self.leave() } else { Continue(()) }
    }

    /// Reports whether a pair is behind the last one that may be delivered.
    fn is_behind_end(&mut self, number: u64) -> bool {
        match self.to.timeline {
            Some(_) => number >= *self.end.get_or_insert(number.saturating_add(self.to.left)),
            None => self.to.left == 0,
        }
    }

    /// Sends the last pair once more.
    fn send_again(&mut self) -> ControlFlow<()> {
        let Some(last) = &self.last else { return Continue(()) };
        let again = StereoPair { arrived: Instant::now(), ..last.copy() };
        if self.to.pairs.send(again).is_err() {
            return self.leave();
        }
        self.to.progress.pairs.fetch_add(1, Ordering::Relaxed);
        Continue(())
    }

    /// Returns the user's latest request, if the recording can be moved through.
    fn asked(&self) -> Option<Move> {
        self.to.timeline.and_then(|_| self.to.control.playback.take())
    }

    /// Breaks, to continue where a request says.
    fn go(&mut self, wanted: Move) -> ControlFlow<()> {
        match (wanted, &self.last) {
            (Move::To(time), _) => self.wanted = Some(self.begin.saturating_add(time)),
            (Move::Backwards, Some(last)) => {
                let behind = self.behind();
                let time = behind.unwrap_or(last.timestamp);
                return match self.before.filter(|_| behind.is_none()) {
                    Some(before) => self.look_back(time, time.saturating_sub(before)),
                    None => self.look_back(time, self.period * 3 / 2),
                };
            }
            _ => {}
        }
        Break(())
    }

    /// Breaks, to continue with the first pair at this time or later.
    fn go_to(&mut self, time: Duration) -> ControlFlow<(), bool> {
        self.wanted = Some(time);
        Break(())
    }

    /// Breaks, to look for the pair before `time` this far back.
    fn look_back(&mut self, time: Duration, by: Duration) -> ControlFlow<()> {
        let place = time.saturating_sub(by).max(self.begin);
        (self.wanted, self.seeking) = (Some(place), Seeking::Before { time, place });
        Break(())
    }

    fn leave(&mut self) -> ControlFlow<()> {
        self.is_over = true;
        Break(())
    }

    /// Reports whether a pair at `time` is the first one behind the marked part.
    fn passes_mark(&self, time: Duration) -> bool {
        let [_, Some(end)] = self.to.control.playback.playing().marks else { return false };
        let end = self.begin.saturating_add(end);
        let last = self.last.as_ref().filter(|_| self.to.timeline.is_some());
        time >= end && last.is_some_and(|last| last.timestamp < end)
    }

    /// Returns the place to continue at after the source has broken off or ended; `None` ends the run.
    fn next_place(&mut self, timeline: Timeline) -> Option<Duration> {
        if self.is_over || self.to.control.stop.is_set() {
            return None;
        }
        let place = match self.wanted.take() {
            Some(place) => place,
            None => self.place_after_end(timeline)?,
        };
        self.to.control.pause.forget_shown();
        if !matches!(self.seeking, Seeking::Last { .. }) || place == self.begin {
            self.place = place;
        }
        self.to.pacer.iter_mut().for_each(Pacer::restart);
        self.to.progress.note_move();
        (self.is_due, self.held, self.before) = (true, Duration::ZERO, None);
        Some(place)
    }

    /// Returns where to continue at the end of the recording or of its marked part. Unless it repeats,
    /// waits until the user moves it or plays it again; `None` ends the run.
    fn place_after_end(&mut self, timeline: Timeline) -> Option<Duration> {
        let Delivery { control, .. } = self.to;
        let playback = &control.playback;
        let (reach, found) = match std::mem::take(&mut self.seeking) {
            Seeking::Last { reach, found } => (2 * reach, found),
            Seeking::Before { .. } | Seeking::First => (FIRST_REACH, None),
        };
        if std::mem::take(&mut self.is_due) && found.is_none() && self.place > self.begin {
            // The user moved it behind the last pair, which has to be found.
            self.seeking = Seeking::Last { reach, found: None };
            return Some(self.place.saturating_sub(reach).max(self.begin));
        }
        if let Some(found) = found {
            let found = StereoPair { arrived: Instant::now(), ..found };
            if self.send(found).is_break() {
                return None;
            }
        }
        if let Some(shown) = self.resumed_behind() {
            return Some(shown + NEXT);
        }
        let begin = self.begin;
        let first = || begin.saturating_add(playback.playing().marks[0].unwrap_or_default());
        let is_unattended = || playback.playing().is_unattended;
        // A pause before the last pairs were shown is not one at the end.
        if self.behind().is_none() {
            if playback.playing().repeats && self.last.is_some() && !is_unattended() {
                return Some(first());
            }
            if !timeline.stays || is_unattended() {
                return None;
            }
            control.pause.set_at_end();
            playback.change(|playing| playing.is_at_end = true);
        }
        let since = Instant::now();
        let place = loop {
            if control.stop.is_set() || is_unattended() {
                break None;
            }
            match (self.asked(), self.behind()) {
                (Some(Move::Again), None) => drop(self.send_again()),
                (Some(Move::Again), Some(shown)) => break Some(shown),
                (Some(Move::Forwards), Some(shown)) => break Some(shown + NEXT),
                (Some(wanted @ (Move::To(_) | Move::Backwards)), _) => {
                    let _ = self.go(wanted);
                    break self.wanted.take();
                }
                (Some(Move::Forwards) | None, _) => {}
            }
            if !control.pause.is_set() {
                break Some(self.resumed_behind().map_or_else(first, |shown| shown + NEXT));
            }
            std::thread::sleep(POLL);
        };
        playback.change(|playing| playing.is_at_end = false);
        self.note_pause(since.elapsed());
        place
    }

    fn note_pause(&mut self, pause: Duration) {
        self.to.progress.note_pause(pause);
        self.to.pacer.iter_mut().for_each(|pacer| pacer.shift(pause));
    }
}
