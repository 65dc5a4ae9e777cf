//! One client of the live page, from its connection to its end.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use hyper_tungstenite::{HyperWebsocket, tungstenite};
use tokio::sync::watch;
use tokio::time::{MissedTickBehavior, interval};

use super::connection::{Connection, End, Heard, Visit};
use super::text::{self, Message, Own, Place, Step};
use super::viewers::Answer;
use super::{Live, Newest, SCALES, Source};
use crate::serve::State;
use crate::viewer::{Ask, ClientId, Tuned};
use stereod_io::playback::Move;

/// Frames that a client may have and not have drawn, if its connection is fast.
const UNDRAWN: usize = 2;

const STATUS: Duration = Duration::from_secs(1);

/// A frame that takes longer than this to be drawn is too large for the connection.
const SLOW: Duration = Duration::from_millis(200);

/// Frames are drawn slowly, or quickly again, for at least these times before their size changes.
const SLOW_FOR: Duration = Duration::from_secs(1);
const QUICK_FOR: Duration = Duration::from_secs(3);

/// Longest such time, after larger frames were too slow again and again.
const QUICK_AT_MOST: Duration = Duration::from_secs(30);

/// Weight of the newest time in their mean.
const WEIGHT: f64 = 0.2;

/// Serves a client until it leaves; one without rights is told so.
pub async fn serve(socket: HyperWebsocket, visit: Visit) {
    let Some(connection) = Connection::open(socket, &visit, "page").await else { return };
    let mut client = Client::new(&visit, connection);
    let Err(end) = client.run().await;
    client.connection.close(end).await;
}

struct Client<'a> {
    live: &'a Live,
    state: Arc<dyn State>,
    connection: Connection,
    /// Frames that it has not drawn: their number, and when they were sent.
    undrawn: VecDeque<(u64, Instant)>,
    pace: Pace,
    /// Set if it shows the right image.
    right: bool,
    /// Number of the last frame that it got, among those for the page, and its size.
    last: Option<(u64, usize)>,
    /// Number after that of the newest point of the path that it has.
    trail: u64,
    skipped: u64,
}

/// Choice of the size from the time that frames take to be drawn. It begins with the smallest one, so that
/// the first images come quickly on any connection.
struct Pace {
    /// The user's choice of a size, as an index of [`SCALES`].
    wanted: Option<usize>,
    size: usize,
    /// Since when frames have this size.
    since: Instant,
    /// Mean time until a frame of it is drawn, in seconds.
    mean: Option<f64>,
    /// Since when frames are drawn too slowly.
    slow_since: Option<Instant>,
    /// Time for which frames must be drawn quickly before they become larger.
    quick_for: Duration,
}

impl Pace {
    fn new(now: Instant) -> Self {
        let (size, quick_for) = (SCALES.len() - 1, Duration::ZERO);
        Self { wanted: None, size, since: now, mean: None, slow_since: None, quick_for }
    }

    fn size(&self) -> usize {
        self.wanted.unwrap_or(self.size)
    }

    /// Returns the number of frames that may be on their way. A second one would only wait on a slow connection.
    fn ahead(&self) -> usize {
        if self.mean.is_some_and(|mean| mean < SLOW.as_secs_f64()) { UNDRAWN } else { 1 }
    }

    /// Notes that a frame was drawn now, so long after it was sent.
    fn drawn(&mut self, after: Duration, now: Instant) {
        let seconds = after.as_secs_f64();
        let mean = self.mean.map_or(seconds, |mean| mean + WEIGHT * (seconds - mean));
        self.mean = Some(mean);
        if self.wanted.is_some() {
            return;
        }
        let limit = SLOW.as_secs_f64();
        if mean <= limit {
            self.slow_since = None;
            // Whether larger frames are too slow shows when they are tried.
            if mean < 0.75 * limit && self.size > 0 && now - self.since >= self.quick_for {
                self.change(self.size - 1, now);
            }
            return;
        }
        let slow_since = *self.slow_since.get_or_insert(now - after);
        if now - slow_since >= SLOW_FOR && self.size + 1 < SCALES.len() {
            let was_long = now - self.since >= QUICK_AT_MOST;
            let longer = if was_long { QUICK_FOR } else { 2 * self.quick_for };
            self.quick_for = longer.clamp(QUICK_FOR, QUICK_AT_MOST);
            // A quarter of the bytes takes a quarter of the time.
            let is_far = seconds.max(mean) > 4.0 * limit;
            let smaller = if is_far { SCALES.len() - 1 } else { self.size + 1 };
            self.change(smaller, now);
        }
    }

    fn change(&mut self, size: usize, now: Instant) {
        *self = Self { size, since: now, mean: None, slow_since: None, ..*self };
    }
}

impl<'a> Client<'a> {
    fn new(visit: &'a Visit, connection: Connection) -> Self {
        Self {
            live: &visit.live,
            state: visit.state.clone(),
            connection,
            undrawn: VecDeque::new(),
            pace: Pace::new(Instant::now()),
            right: false,
            last: None,
            trail: 0,
            skipped: 0,
        }
    }

    async fn run(&mut self) -> Result<std::convert::Infallible, End> {
        let mut newest = self.live.0.newest.subscribe();
        let mut tuned = self.live.0.tuned.subscribe();
        let mut saved = self.live.0.saved.subscribe();
        saved.mark_unchanged();
        newest.mark_changed();
        let mut status = interval(STATUS);
        status.set_missed_tick_behavior(MissedTickBehavior::Skip);
        let may_change = self.connection.rights.may_change;
        self.connection.send(text::hello(self.live, may_change)).await?;
        // The settings come before the first frame.
        self.send_knobs(&mut tuned).await?;
        // The senders live as long as the page, so no change is an error.
        loop {
            tokio::select! {
                message = self.connection.hear() => {
                    let right = self.right;
                    if self.act_on(&message?).await? {
                        status.reset_immediately();
                    }
                    // During a pause no other pair would bring the right image, or another size.
                    if self.right && !right || self.wants_other_size() {
                        newest.mark_changed();
                    }
                }
                _ = newest.changed(), if self.undrawn.len() < self.pace.ahead() => {
                    let frame = newest.borrow_and_update().clone();
                    if let Some(frame) = frame {
                        self.send_frame(frame).await?;
                    }
                }
                _ = tuned.changed() => self.send_knobs(&mut tuned).await?,
                _ = saved.changed() => {
                    let note = saved.borrow_and_update().as_ref().map(text::note);
                    if let Some(note) = note {
                        self.connection.send(note).await?;
                    }
                }
                _ = status.tick() => {
                    self.send_status().await?;
                    self.connection.keep_alive().await?;
                }
            }
        }
    }

    async fn send_knobs(&mut self, tuned: &mut watch::Receiver<Tuned>) -> Result<(), End> {
        let (tuned, answers) = self.live.take_tuned(tuned, self.connection.id());
        self.connection.send(text::knobs(self.live, &tuned, &answers)).await
    }

    async fn send_frame(&mut self, newest: Arc<Newest>) -> Result<(), End> {
        let sequence = newest.frame.pair.sequence;
        let size = self.pace.size();
        let encoded = newest.for_page(self.live, size, self.right);
        let message = self.connection.during(encoded).await??;
        let before = self.last.replace((newest.number, size));
        self.skipped += before.map_or(0, |(before, _)| newest.number.saturating_sub(before + 1));
        self.undrawn.push_back((sequence, Instant::now()));
        if let Some((path, end)) = text::path(self.live, self.trail) {
            self.trail = end;
            self.connection.send(path).await?;
        }
        self.connection.send(tungstenite::Message::Binary(message)).await
    }

    /// Reports whether the frame of a paused run is to come once more: in the size that the client chose, or in
    /// a larger one that its connection takes.
    fn wants_other_size(&self) -> bool {
        let Some((_, size)) = self.last else { return false };
        let is_still = self.live.0.source.control.pause.is_set() || self.state.status().ended;
        is_still
            && match self.pace.wanted {
                Some(wanted) => wanted != size,
                None => self.undrawn.is_empty() && self.pace.size() < size,
            }
    }

    async fn send_status(&mut self) -> Result<(), End> {
        let run = self.state.status();
        let own = Own { skipped: self.skipped, scale: SCALES[self.pace.size()] };
        self.connection.send(text::status(self.live, &run, own, &self.connection)).await
    }

    /// Does what a message asks for. Returns true if that changes the state that viewers are told.
    async fn act_on(&mut self, message: &Heard) -> Result<bool, End> {
        let source = &self.live.0.source;
        match message.parse() {
            Ok(Message::Ack { seq, hidden }) => {
                while let Some((sequence, sent)) = self.undrawn.front().copied()
                    && sequence <= seq
                {
                    self.undrawn.pop_front();
                    if !hidden {
                        self.pace.drawn(sent.elapsed(), Instant::now());
                    }
                }
            }
            Ok(Message::Clock { at }) => {
                self.connection.send(text::clock(self.live, at)).await?;
            }
            Ok(Message::Quality { scale, right }) => {
                self.right = right;
                let size = |wanted| SCALES.iter().position(|scale| *scale == wanted);
                self.pace.wanted = scale.and_then(size);
            }
            Ok(message) if !self.connection.rights.may_change => {
                self.connection.send(self.refusal(message)).await?;
            }
            Ok(Message::Tune { number, values }) => {
                let wish = |(section, key, value)| (format!("{section}.{key}"), value);
                let values =
                    values.into_iter().map(|it: (String, String, String)| wish(it)).collect();
                (source.ask)(Ask::Values { id: self.connection.request(number), values });
            }
            Ok(Message::Zone { number, edit }) => {
                (source.ask)(Ask::Zone { id: self.connection.request(number), edit });
            }
            Ok(Message::Reset { number }) => {
                (source.ask)(Ask::Reset(self.connection.request(number)));
            }
            Ok(Message::Save) => (source.ask)(Ask::Write),
            Ok(Message::Pause { on }) => {
                match on {
                    true => self.live.pause(),
                    false => source.control.pause.set(false),
                }
                return Ok(true);
            }
            Ok(Message::Record { on, name }) => {
                self.record(on, name).await?;
                return Ok(true);
            }
            Ok(message @ (Message::Move { .. } | Message::Mark { .. } | Message::Play { .. })) => {
                if let Some(note) = self.play(&message).transpose() {
                    self.connection.send(text::note(&note)).await?;
                }
                return Ok(true);
            }
            Ok(Message::Close { viewer }) => self.live.0.viewers.close(ClientId(viewer)),
            Err(problem) => self.connection.send(text::note(&Err(problem))).await?,
        }
        Ok(false)
    }

    /// Moves through the recording. Returns what the client should read, or why that cannot be.
    fn play(&self, message: &Message) -> Result<Option<String>, String> {
        let Source { span, control, .. } = &self.live.0.source;
        let (span, playback) = (span.clone()?, &control.playback);
        let time = |seconds| {
            Duration::try_from_secs_f64(seconds)
                .map_err(|error| format!("{seconds} is no time in seconds: {error}"))
        };
        match message {
            Message::Move { to: Place::Time(to) } => playback.ask(Move::To(time(*to)?)),
            Message::Move { to: Place::Step(step) } => {
                self.live.pause();
                playback.ask(match step {
                    Step::Next => Move::Forwards,
                    Step::Before => Move::Backwards,
                });
            }
            Message::Mark { end, at } => return Ok(Some(span.mark(playback, *end, time(*at)?))),
            Message::Play { repeats, speed } => {
                playback.change(|playing| playing.repeats = repeats.unwrap_or(playing.repeats));
                if let Some(speed) = speed {
                    span.set_speed(playback, |_| *speed)?;
                }
            }
            _ => {}
        }
        Ok(None)
    }

    /// Starts or stops the recording. The client hears why a recording cannot be started.
    async fn record(&mut self, on: bool, name: String) -> Result<(), End> {
        let Some(recorder) = self.live.0.source.recorder.clone() else {
            let problem = "the run has no files to write: start it with --record OUT.mkv".into();
            return self.connection.send(text::note(&Err(problem))).await;
        };
        if !on {
            recorder.recordings.stop();
            return Ok(());
        }
        // The disk may let it wait.
        let work = self.live.0.makers.work(move || recorder.start(&name));
        match self.connection.during(work).await?? {
            Ok(()) => Ok(()),
            problem => self.connection.send(text::note(&problem.map(|()| String::new()))).await,
        }
    }

    /// Returns the answer to a client without the token that asks for a change.
    fn refusal(&self, message: Message) -> String {
        let problem = "changes need the token in the address: ?token=...".to_owned();
        match message {
            Message::Tune { number, .. }
            | Message::Zone { number, .. }
            | Message::Reset { number } => {
                let answer = Answer { number, problem: Some(problem) };
                text::knobs(self.live, &self.live.0.tuned.borrow(), &[answer])
            }
            _ => text::note(&Err(problem)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Draws frames for so many seconds, one after the other, and returns the time.
    fn draw(pace: &mut Pace, mut now: Instant, seconds: f64, ms: impl Fn(usize) -> u64) -> Instant {
        let end = now + Duration::from_secs_f64(seconds);
        while now < end {
            let after = Duration::from_millis(ms(SCALES[pace.size()]));
            now += after.max(Duration::from_millis(33));
            pace.drawn(after, now);
        }
        now
    }

    #[test]
    fn frames_begin_small_and_are_as_large_as_the_connection_takes_quickly() {
        let start = Instant::now();
        let mut pace = Pace::new(start);
        assert_eq!((SCALES[pace.size()], pace.ahead()), (4, 1));
        let now = draw(&mut pace, start, 0.3, |_| 30);
        assert_eq!((SCALES[pace.size()], pace.ahead()), (1, UNDRAWN));
        // 180 kB at full size over 1.2 Mbit/s: within seconds at a quarter of the width.
        let slow = |scale: usize| 1200 / (scale * scale) as u64 + 20;
        let now = draw(&mut pace, now, 3.0, slow);
        assert_eq!(SCALES[pace.size()], 4);
        // Half the width takes 320 ms: it is tried less and less often.
        let mut small = 0;
        let mut now = now;
        for _ in 0..100 {
            now = draw(&mut pace, now, 1.0, slow);
            small += u32::from(SCALES[pace.size()] == 4);
        }
        assert!(small > 80, "{small}");
        // The connection becomes fast again.
        draw(&mut pace, now, 2.1 * QUICK_AT_MOST.as_secs_f64(), |_| 40);
        assert_eq!(SCALES[pace.size()], 1);
        pace.wanted = Some(2);
        assert_eq!(SCALES[pace.size()], 4);
    }

    #[test]
    fn one_slow_frame_changes_nothing() {
        let start = Instant::now();
        let mut pace = Pace::new(start);
        let now = draw(&mut pace, start, 1.0, |_| 30);
        pace.drawn(Duration::from_millis(900), now + Duration::from_millis(900));
        draw(&mut pace, now + Duration::from_millis(900), 0.2, |_| 30);
        assert_eq!(SCALES[pace.size()], 1);
    }

    /// With a long way to the viewer, small images would come no sooner.
    #[test]
    fn the_time_of_a_long_way_keeps_nothing_small() {
        let start = Instant::now();
        let mut pace = Pace::new(start);
        draw(&mut pace, start, 2.0, |_| 140);
        assert_eq!(SCALES[pace.size()], 1);
    }
}
