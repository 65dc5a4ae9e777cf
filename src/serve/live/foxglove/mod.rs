//! A client of the Foxglove WebSocket protocol, from its connection to its end
//! (github.com/foxglove/ws-protocol, docs/spec.md).
//!
//! Topics are those of MCAP files. A message is encoded when a client has subscribed to its topic, and
//! once for all clients. A slow client gets the newest pair when it has taken the one before.

mod text;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use hyper_tungstenite::HyperWebsocket;
use hyper_tungstenite::tungstenite::Message;
use tokio::time::{MissedTickBehavior, interval};

use super::connection::{Connection, End, Heard, Visit};
use super::viewers::Answer;
use super::{Live, Newest, Source};
use crate::serve::State;
use crate::viewer::{Ask, Tuned};
use stereod_io::sink::messages::{Heading, Placed, TOPICS, diagnostics, placed, stamp};
use text::{DIAGNOSTICS, Level};

/// Versions of the protocol, which differ in nothing that is used here.
pub const PROTOCOLS: [&str; 2] = ["foxglove.sdk.v1", "foxglove.websocket.v1"];

const DIAGNOSTICS_EVERY: Duration = Duration::from_secs(1);

const MOST_SUBSCRIPTIONS: usize = 100;

/// First byte of a message of a topic.
const MESSAGE_DATA: u8 = 1;

/// Serves a client until it leaves; one without rights is told so.
pub async fn serve(socket: HyperWebsocket, visit: Visit) {
    let Some(connection) = Connection::open(socket, &visit, "Foxglove").await else { return };
    let mut client = Client {
        live: &visit.live,
        state: visit.state.clone(),
        connection,
        channels: Vec::new(),
        subscriptions: BTreeMap::new(),
        follows: false,
        sent: 0,
        asked: BTreeMap::new(),
    };
    let Err(end) = client.run().await;
    client.connection.close(end).await;
}

struct Client<'a> {
    live: &'a Live,
    state: Arc<dyn State>,
    connection: Connection,
    channels: Vec<usize>,
    /// The channel of each subscription, and what was sent last of a static topic.
    subscriptions: BTreeMap<u32, (usize, Placed)>,
    /// Set if it wants to know of changed parameters.
    follows: bool,
    /// Number of its last change of parameters.
    sent: u32,
    /// Its names for changes that were not answered, by their numbers.
    asked: BTreeMap<u32, String>,
}

impl Client<'_> {
    async fn run(&mut self) -> Result<std::convert::Infallible, End> {
        let mut newest = self.live.0.newest.subscribe();
        let mut tuned = self.live.0.tuned.subscribe();
        newest.mark_changed();
        let mut due = interval(DIAGNOSTICS_EVERY);
        due.set_missed_tick_behavior(MissedTickBehavior::Skip);
        let may_change = self.connection.rights.may_change;
        let shared = &self.live.0;
        let info = text::server_info(&shared.source.name, may_change, &shared.session());
        self.connection.send(info).await?;
        self.advertise(vec![DIAGNOSTICS]).await?;
        // The senders live as long as the page, so no change is an error.
        loop {
            tokio::select! {
                message = self.connection.hear() => {
                    let knobs = tuned.borrow().clone();
                    self.act_on(&message?, &knobs).await?;
                }
                _ = newest.changed() => {
                    let pair = newest.borrow_and_update().clone();
                    if let Some(pair) = pair {
                        self.send_pair(&pair).await?;
                    }
                }
                _ = tuned.changed() => {
                    let (tuned, answers) = self.live.take_tuned(&mut tuned, self.connection.id());
                    self.tell_tuned(&tuned, answers).await?;
                }
                _ = due.tick() => {
                    self.send_diagnostics().await?;
                    self.connection.keep_alive().await?;
                }
            }
        }
    }

    async fn advertise(&mut self, channels: Vec<usize>) -> Result<(), End> {
        self.connection.send(text::advertise(&channels)).await?;
        self.channels.extend(channels);
        Ok(())
    }

    async fn send_pair(&mut self, pair: &Arc<Newest>) -> Result<(), End> {
        let is_new = |number: &usize| !self.channels.contains(number);
        let Source { tracks_ground, frame_prefix, clock, .. } = &self.live.0.source;
        let (tracks_ground, stamp) = (*tracks_ground, stamp(*clock, pair.frame.pair.timestamp));
        let head = Heading { stamp, prefix: frame_prefix, tracks_ground };
        let has = |number: &usize| TOPICS[*number].is_in(&pair.frame, head);
        let new: Vec<usize> = (0..TOPICS.len()).filter(is_new).filter(has).collect();
        if !new.is_empty() {
            self.advertise(new).await?;
        }
        let placed = placed(&pair.frame, tracks_ground);
        let is_static = |channel: usize| TOPICS[channel].is_static();
        let wanted: Vec<(u32, usize)> = self
            .subscriptions
            .iter()
            .filter(|(_, (channel, sent))| {
                *channel != DIAGNOSTICS && has(channel) && (!is_static(*channel) || *sent != placed)
            })
            .map(|(&id, &(channel, _))| (id, channel))
            .collect();
        for (id, channel) in wanted {
            match self.connection.during(pair.of_topic(self.live, channel)).await? {
                Ok(message) => {
                    self.send_message(id, stamp, &message).await?;
                    self.subscriptions.insert(id, (channel, placed));
                }
                // The confidence was switched off, most likely; it may come back.
                Err(error) => tracing::debug!("foxglove: {error}"),
            }
        }
        Ok(())
    }

    async fn send_diagnostics(&mut self) -> Result<(), End> {
        let is_of =
            |(id, (channel, _)): (&u32, &(usize, Placed))| (*channel == DIAGNOSTICS).then_some(*id);
        let Some(id) = self.subscriptions.iter().find_map(is_of) else { return Ok(()) };
        let time = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let diagnosis = self.state.status().diagnosis();
        let message = diagnostics(&self.live.0.source.name, &diagnosis, time);
        self.send_message(id, time, &message).await
    }

    async fn send_message(&mut self, id: u32, time: Duration, data: &[u8]) -> Result<(), End> {
        let time = (time.as_nanos() as u64).to_le_bytes();
        let message = [&[MESSAGE_DATA], &id.to_le_bytes()[..], &time, data].concat();
        self.connection.send(Message::Binary(message.into())).await
    }

    /// Answers changes of parameters, or tells of those that it follows.
    async fn tell_tuned(&mut self, tuned: &Tuned, answers: Vec<Answer>) -> Result<(), End> {
        if self.follows && answers.is_empty() {
            self.connection.send(text::parameters(tuned, &[], None)).await?;
        }
        for Answer { number, problem } in answers {
            let name = self.asked.remove(&number);
            if let Some(problem) = problem {
                self.connection.send(text::status(Level::Error, &problem)).await?;
            }
            if self.follows || name.is_some() {
                self.connection.send(text::parameters(tuned, &[], name.as_deref())).await?;
            }
        }
        Ok(())
    }

    async fn act_on(&mut self, message: &Heard, tuned: &Tuned) -> Result<(), End> {
        let message = match message.parse::<text::Request>() {
            Ok(message) => message,
            Err(problem) => {
                return self.connection.send(text::status(Level::Warning, &problem)).await;
            }
        };
        use text::Request::*;
        let needs_token = !matches!(message, Subscribe { .. } | Unsubscribe { .. });
        if needs_token && !self.connection.rights.may_change {
            let text =
                "parameters need the token in the address: ws://HOST:PORT/foxglove?token=...";
            return self.connection.send(text::status(Level::Error, text)).await;
        }
        match message {
            Subscribe { subscriptions } => {
                for text::Subscription { id, channel } in subscriptions {
                    let is_known = channel.checked_sub(1).filter(|c| self.channels.contains(c));
                    let Some(channel) = is_known else {
                        let text = format!("there is no channel {channel}");
                        self.connection.send(text::status(Level::Warning, &text)).await?;
                        continue;
                    };
                    if self.subscriptions.len() >= MOST_SUBSCRIPTIONS {
                        let text = format!("more than {MOST_SUBSCRIPTIONS} subscriptions");
                        return self.connection.send(text::status(Level::Error, &text)).await;
                    }
                    self.subscriptions.insert(id, (channel, None));
                }
                // A paused run has no next pair.
                let newest = self.live.0.newest.borrow().clone();
                if let (Some(newest), true) = (newest, self.live.0.source.control.pause.is_set()) {
                    self.send_pair(&newest).await?;
                }
            }
            Unsubscribe { subscriptions } => {
                self.subscriptions.retain(|id, _| !subscriptions.contains(id));
            }
            GetParameters { names, id } => {
                self.connection.send(text::parameters(tuned, &names, id.as_deref())).await?;
            }
            SetParameters { parameters, id } => {
                self.sent += 1;
                self.asked.extend(id.map(|id| (self.sent, id)));
                let values = parameters.into_iter().map(text::Parameter::wish).collect();
                let id = self.connection.request(self.sent);
                (self.live.0.source.ask)(Ask::Values { id, values });
            }
            SubscribeParameterUpdates {} => self.follows = true,
            UnsubscribeParameterUpdates {} => self.follows = false,
        }
        Ok(())
    }
}
