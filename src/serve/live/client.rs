//! One client of the live page, from its connection to its end.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use hyper_tungstenite::{HyperWebsocket, tungstenite};
use tokio::time::{MissedTickBehavior, interval};

use super::connection::{Connection, Rate};
use super::text::{self, Message, Own};
use super::{Live, Newest};
use crate::serve::access::Rights;
use crate::serve::state::State;
use crate::sink::viewer::{Ask, Tuned};

/// Frames that a client may have and not have drawn.
const UNDRAWN: usize = 2;

/// Period of figures.
const STATUS: Duration = Duration::from_secs(1);

/// A frame that takes longer than this to be drawn is too large for the connection.
const SLOW: Duration = Duration::from_millis(200);

/// Weight of the newest time in their mean.
const WEIGHT: f64 = 0.1;

/// Frames after which the size may change again.
const SETTLING: u32 = 60;

/// Serves a client until it leaves; one without rights is told so.
pub async fn serve(
    socket: HyperWebsocket,
    live: Live,
    state: Arc<dyn State>,
    rights: Option<Rights>,
) {
    let Some(connection) = Connection::open(socket, &live, rights).await else { return };
    let end = Client::new(&live, state, connection).run().await;
    tracing::debug!("live page: a client has left: {}", end.err().unwrap_or("it closed".into()));
}

struct Client<'a> {
    live: &'a Live,
    state: Arc<dyn State>,
    connection: Connection<'a>,
    /// Frames that it has not drawn: their number, and when they were sent.
    undrawn: VecDeque<(u64, Instant)>,
    pace: Pace,
    sent: u64,
    /// Number of the first frame.
    first: Option<u64>,
    /// Matched pairs a second.
    rate: Rate,
}

/// Choice of the size from the time that frames take to be drawn.
struct Pace {
    /// The user's choice.
    wanted: Option<bool>,
    is_half: bool,
    /// Mean time until a frame is drawn, in seconds.
    mean: Option<f64>,
    /// Frames since the size has changed.
    since: u32,
}

impl Pace {
    fn is_half(&self) -> bool {
        self.wanted.unwrap_or(self.is_half)
    }

    /// Notes the time of a frame until it was drawn.
    fn drawn(&mut self, after: Duration) {
        let after = after.as_secs_f64();
        let mean = self.mean.map_or(after, |mean| mean + WEIGHT * (after - mean));
        self.mean = Some(mean);
        self.since = self.since.saturating_add(1);
        // A quarter of the bytes take a quarter of the time, so only well below it is full size back.
        let becomes = match self.is_half {
            false => mean > SLOW.as_secs_f64(),
            true => mean > SLOW.as_secs_f64() / 8.0,
        };
        if self.since >= SETTLING && becomes != self.is_half {
            *self = Self { is_half: becomes, mean: None, since: 0, ..*self };
        }
    }
}

impl<'a> Client<'a> {
    fn new(live: &'a Live, state: Arc<dyn State>, connection: Connection<'a>) -> Self {
        Self {
            live,
            state,
            connection,
            undrawn: VecDeque::new(),
            pace: Pace { wanted: None, is_half: false, mean: None, since: 0 },
            sent: 0,
            first: None,
            rate: Rate::default(),
        }
    }

    async fn run(&mut self) -> Result<(), String> {
        let mut newest = self.live.0.newest.subscribe();
        let mut tuned = self.live.0.tuned.subscribe();
        let mut saved = self.live.0.saved.subscribe();
        saved.mark_unchanged();
        newest.mark_changed();
        let mut status = interval(STATUS);
        status.set_missed_tick_behavior(MissedTickBehavior::Skip);
        let may_change = self.connection.rights.may_change;
        self.connection.send(text::hello(self.live, may_change)).await?;
        let knobs = tuned.borrow_and_update().clone();
        self.connection.send(text::knobs(self.live, &knobs, None)).await?;
        loop {
            tokio::select! {
                message = self.connection.hear() => {
                    let Some(message) = message? else { return Ok(()) };
                    let knobs = tuned.borrow().clone();
                    self.act_on(&message, &knobs);
                }
                changed = newest.changed(), if self.undrawn.len() < UNDRAWN => {
                    changed.map_err(|_| "the run has ended")?;
                    let frame = newest.borrow_and_update().clone();
                    if let Some(frame) = frame {
                        self.send_frame(frame).await?;
                    }
                }
                changed = tuned.changed() => {
                    changed.map_err(|_| "the run has ended")?;
                    let knobs = tuned.borrow_and_update().clone();
                    let number = knobs.number.and_then(|number| self.connection.own(number));
                    self.connection.send(text::knobs(self.live, &knobs, number)).await?;
                }
                changed = saved.changed() => {
                    changed.map_err(|_| "the run has ended")?;
                    let note = saved.borrow_and_update().as_ref().map(text::note);
                    if let Some(note) = note {
                        self.connection.send(note).await?;
                    }
                }
                _ = status.tick() => self.send_status().await?,
            }
        }
    }

    async fn send_frame(&mut self, newest: Arc<Newest>) -> Result<(), String> {
        let (sequence, is_half) = (newest.frame.pair.sequence, self.pace.is_half());
        let encoded = tokio::task::spawn_blocking(move || newest.for_page(is_half)).await;
        let message = encoded.map_err(|broken| broken.to_string())??;
        self.first.get_or_insert(sequence);
        self.sent += 1;
        self.undrawn.push_back((sequence, Instant::now()));
        self.connection.send(tungstenite::Message::Binary(message)).await
    }

    async fn send_status(&mut self) -> Result<(), String> {
        let reading = self.state.reading();
        let rate = self.rate.of(reading.matched);
        let passed = self.first.map_or(0, |first| reading.matched.saturating_sub(first));
        let skipped = passed.saturating_sub(self.sent);
        let own = Own { skipped, is_half: self.pace.is_half(), rate };
        self.connection.send(text::status(self.live, &reading, &own)).await
    }

    /// Acts on a message of the client.
    fn act_on(&mut self, message: &str, tuned: &Tuned) {
        let source = &self.live.0.source;
        match serde_json::from_str(message) {
            Ok(Message::Ack { seq }) => {
                while let Some((sequence, sent)) = self.undrawn.front().copied()
                    && sequence <= seq
                {
                    self.undrawn.pop_front();
                    self.pace.drawn(sent.elapsed());
                }
            }
            Ok(Message::Quality { half }) => self.pace.wanted = half,
            Ok(_) if !self.connection.rights.may_change => {
                tracing::debug!("live page: a change without the token is refused");
            }
            Ok(Message::Tune { number, values }) => {
                let number = self.connection.request(number);
                (source.ask)(Ask::Values { number, values: text::wishes(tuned, values) });
            }
            Ok(Message::Reset) => (source.ask)(Ask::Reset),
            Ok(Message::Save) => {
                let new = || {
                    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
                    source.folder.join(format!("stereod-{}.toml", now.as_secs()))
                };
                (source.ask)(Ask::Write(source.settings_file.clone().unwrap_or_else(new)));
            }
            Ok(Message::Pause { on }) => source.control.pause.set(on),
            Ok(Message::Record { on }) => source.control.suspend_recording.set(!on),
            Err(error) => tracing::debug!("live page: {error}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slow_frames_become_small_and_fast_ones_large_again() {
        let mut pace = Pace { wanted: None, is_half: false, mean: None, since: 0 };
        let draw = |pace: &mut Pace, ms: u64, times: u32| {
            (0..times).for_each(|_| pace.drawn(Duration::from_millis(ms)));
        };
        draw(&mut pace, 30, 200);
        assert!(!pace.is_half());
        draw(&mut pace, 400, 59);
        assert!(pace.is_half(), "{:?}", pace.mean);
        draw(&mut pace, 100, 200);
        assert!(pace.is_half());
        draw(&mut pace, 10, 100);
        assert!(!pace.is_half());
        pace.wanted = Some(true);
        assert!(pace.is_half());
    }
}
