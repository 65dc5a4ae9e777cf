//! The WebSocket of a viewer, whichever protocol it speaks.

use std::collections::VecDeque;
use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::stream::{SplitSink, SplitStream};
use futures_util::{SinkExt, StreamExt};
use hyper_tungstenite::tungstenite::Message;
use hyper_tungstenite::tungstenite::protocol::WebSocketConfig;
use hyper_tungstenite::{HyperWebsocket, HyperWebsocketStream, tungstenite};
use serde::de::DeserializeOwned;
use tokio::io::AsyncReadExt;
use tokio::time::timeout;

use super::Live;
use super::viewers::{Ending, Seat};
use crate::serve::State;
use crate::serve::access::Rights;
use crate::serve::wire::{Peer, SILENCE};
use crate::viewer::{ClientId, RequestId, ViewerId};

/// Period in which a viewer is asked whether it is there.
const PING: Duration = Duration::from_secs(5);

/// Time to tell a client why its connection is closed, and to hear that it knows.
const CLOSING: Duration = Duration::from_secs(1);

/// Longest message of a client in bytes.
const LONGEST: usize = 64 << 10;

/// Messages of a client that wait while another one is sent to it.
const MOST_WAITING: usize = 64;

/// Pings of a client until a message to it is taken; each makes an answer that waits, too.
const MOST_PINGS: usize = 1000;

pub fn limits() -> WebSocketConfig {
    WebSocketConfig::default().max_message_size(Some(LONGEST)).max_frame_size(Some(LONGEST))
}

pub struct Visit {
    pub live: Live,
    pub state: Arc<dyn State>,
    /// Its rights; `None` if it may not look.
    pub rights: Option<Rights>,
    pub peer: Peer,
}

pub enum End {
    /// The client has closed it.
    Left,
    Broken(String),
    /// The client must go, and is told why.
    Sent(Ending),
}

impl From<String> for End {
    fn from(reason: String) -> Self {
        Self::Broken(reason)
    }
}

/// A message of a client.
pub enum Heard {
    Text(String),
    Binary,
}

impl Heard {
    /// Parses a message, which must be a text.
    pub fn parse<T: DeserializeOwned>(&self) -> Result<T, String> {
        let parsed = match self {
            Self::Text(text) => serde_json::from_str(text).map_err(|error| error.to_string()),
            Self::Binary => Err("it is binary, and texts are expected".to_owned()),
        };
        parsed.map_err(|reason| format!("this message is not understood: {reason}"))
    }
}

/// Returns the end of a connection that has failed. A client that broke a rule is told which.
fn of_error(error: tungstenite::Error) -> End {
    let broken = error.to_string();
    match error {
        tungstenite::Error::Capacity(_) => End::Sent(Ending::too_long(LONGEST)),
        tungstenite::Error::Utf8(_) => End::Sent(Ending::invalid("a text is not UTF-8")),
        _ => End::Broken(broken),
    }
}

pub struct Connection {
    sink: SplitSink<HyperWebsocketStream, Message>,
    ears: Ears,
    pub rights: Rights,
    pinged: Instant,
}

/// The part of a connection that hears the client, also while something is sent to it.
struct Ears {
    stream: SplitStream<HyperWebsocketStream>,
    /// Messages that were heard meanwhile.
    waiting: VecDeque<Heard>,
    /// Pings since a message to the client was taken.
    pings: usize,
    peer: Peer,
    seat: Seat,
}

impl Ears {
    async fn next(&mut self) -> Result<Heard, End> {
        loop {
            tokio::select! {
                message = self.stream.next() => match message {
                    Some(Ok(Message::Text(text))) => {
                        return Ok(Heard::Text(text.as_str().to_owned()));
                    }
                    Some(Ok(Message::Binary(_))) => return Ok(Heard::Binary),
                    Some(Ok(Message::Close(_))) | None => return Err(End::Left),
                    Some(Ok(_)) if self.pings == MOST_PINGS => return Err(Self::flooded()),
                    Some(Ok(_)) => self.pings += 1,
                    Some(Err(error)) => return Err(of_error(error)),
                },
                ending = self.seat.ended() => return Err(End::Sent(ending)),
                () = self.peer.gone() => {
                    let reason = format!("it has not answered for {} s", SILENCE.as_secs());
                    return Err(End::Broken(reason));
                }
            }
        }
    }

    /// Returns the result of `work` for the client, unless it leaves before.
    async fn during<T>(&mut self, work: impl Future<Output = T>) -> Result<T, End> {
        let mut work = pin!(work);
        loop {
            tokio::select! {
                done = &mut work => return Ok(done),
                heard = self.next() => self.waiting.push_back(heard?),
            }
            if self.waiting.len() > MOST_WAITING {
                return Err(Self::flooded());
            }
        }
    }

    fn flooded() -> End {
        End::Sent(Ending::refused("too many messages"))
    }
}

/// Tells a client why it cannot be served.
pub async fn refuse(socket: HyperWebsocket, ending: Ending) {
    if let Ok(socket) = socket.await {
        part_from(socket, &ending).await;
    }
}

/// Tells a client why its connection ends, and waits a little until it knows.
async fn part_from(mut socket: HyperWebsocketStream, ending: &Ending) {
    let close = async {
        socket.send(Message::Close(Some(ending.frame()))).await.ok()?;
        while let Some(Ok(_)) = socket.next().await {}
        // A client that still sends hears nothing before its message is taken.
        let mut rest = vec![0; 64 << 10];
        while ending.leaves_rest() && socket.get_mut().read(&mut rest).await.ok()? > 0 {}
        Some(())
    };
    let _ = timeout(CLOSING, close).await;
}

impl Connection {
    /// Lets a client in; one without rights or place is told so and sent away.
    pub async fn open(socket: HyperWebsocket, visit: &Visit, kind: &'static str) -> Option<Self> {
        let socket = socket.await.ok()?;
        let peer = visit.peer.clone();
        let entered = match visit.rights {
            None => Err(Ending::without_token()),
            Some(rights) => {
                let seat = visit.live.0.viewers.enter(kind, peer.clone(), rights.may_change);
                seat.map(|seat| (rights, seat))
            }
        };
        match entered {
            Ok((rights, seat)) => {
                let (sink, stream) = socket.split();
                let ears = Ears { stream, waiting: VecDeque::new(), pings: 0, peer, seat };
                Some(Self { sink, ears, rights, pinged: Instant::now() })
            }
            Err(refusal) => {
                part_from(socket, &refusal).await;
                None
            }
        }
    }

    /// Sends a message. It may take any time while the client takes parts of it.
    pub async fn send(&mut self, message: impl Into<Message>) -> Result<(), End> {
        let sent = self.ears.during(self.sink.send(message.into())).await?;
        self.ears.pings = 0;
        sent.map_err(|error| End::Broken(error.to_string()))
    }

    /// Returns the result of `work` for the client, unless it leaves before.
    pub async fn during<T>(&mut self, work: impl Future<Output = T>) -> Result<T, End> {
        self.ears.during(work).await
    }

    pub async fn hear(&mut self) -> Result<Heard, End> {
        match self.ears.waiting.pop_front() {
            Some(heard) => Ok(heard),
            None => self.ears.next().await,
        }
    }

    /// Asks from time to time whether the client is there; called more often than that.
    pub async fn keep_alive(&mut self) -> Result<(), End> {
        if self.pinged.elapsed() >= PING {
            self.pinged = Instant::now();
            self.send(Message::Ping(Default::default())).await?;
        }
        Ok(())
    }

    /// Tells the client why it must go, if it must, and waits a little until it knows.
    pub async fn close(mut self, end: End) {
        match end {
            End::Left => {
                tracing::debug!("viewers: one has left");
                // Sends the answer to its goodbye.
                let _ = timeout(CLOSING, self.sink.close()).await;
            }
            End::Broken(reason) => tracing::debug!("viewers: one is lost: {reason}"),
            End::Sent(ending) => {
                if let Ok(socket) = self.sink.reunite(self.ears.stream) {
                    part_from(socket, &ending).await;
                }
            }
        }
    }

    pub fn id(&self) -> ClientId {
        self.ears.seat.id
    }

    /// Returns the name of the client's request of this number.
    pub fn request(&self, number: u32) -> RequestId {
        RequestId { viewer: ViewerId::Client(self.id()), number }
    }
}
