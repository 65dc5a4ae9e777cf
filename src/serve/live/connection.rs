//! The WebSocket of a viewer, whichever protocol it speaks.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use futures_util::{SinkExt, StreamExt};
use hyper_tungstenite::tungstenite::Message;
use hyper_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use hyper_tungstenite::tungstenite::protocol::{CloseFrame, WebSocketConfig};
use hyper_tungstenite::{HyperWebsocket, WebSocketStream};
use hyper_util::rt::TokioIo;
use tokio::sync::SemaphorePermit;
use tokio::time::timeout;

use super::Live;
use crate::serve::access::Rights;

/// Time in which a message must fit the connection.
const SENDING: Duration = Duration::from_secs(10);

/// Longest message of a client in bytes.
const LONGEST: usize = 64 << 10;

/// Limits of a connection.
pub fn limits() -> WebSocketConfig {
    WebSocketConfig::default().max_message_size(Some(LONGEST)).max_frame_size(Some(LONGEST))
}

/// The connection of a client that was let in.
pub struct Connection<'a> {
    socket: WebSocketStream<TokioIo<hyper::upgrade::Upgraded>>,
    /// Rights of the client.
    pub rights: Rights,
    /// Distinguishes its requests from those of other viewers.
    id: u32,
    _place: SemaphorePermit<'a>,
}

impl<'a> Connection<'a> {
    /// Lets a client in; one without rights or place is told so and sent away.
    pub async fn open(
        socket: HyperWebsocket,
        live: &'a Live,
        rights: Option<Rights>,
    ) -> Option<Self> {
        static NEXT: AtomicU32 = AtomicU32::new(1);
        let mut socket = socket.await.ok()?;
        let refusal = match (rights, live.0.clients.try_acquire()) {
            (Some(rights), Ok(place)) => {
                let id = NEXT.fetch_add(1, Ordering::Relaxed);
                return Some(Self { socket, rights, id, _place: place });
            }
            (None, _) => "the token is missing or wrong",
            (_, Err(_)) => "too many viewers are open; close one of them",
        };
        let refused = CloseFrame { code: CloseCode::Policy, reason: refusal.into() };
        let _ = timeout(SENDING, socket.close(Some(refused))).await;
        None
    }

    /// Sends a message; a client that takes none for a while is given up.
    pub async fn send(&mut self, message: impl Into<Message>) -> Result<(), String> {
        match timeout(SENDING, self.socket.send(message.into())).await {
            Ok(sent) => sent.map_err(|error| error.to_string()),
            Err(_) => Err("it takes no messages".into()),
        }
    }

    /// Waits for a text of the client; `None`: it has left.
    pub async fn hear(&mut self) -> Result<Option<String>, String> {
        loop {
            match self.socket.next().await {
                Some(Ok(Message::Text(text))) => return Ok(Some(text.as_str().to_owned())),
                Some(Ok(Message::Close(_))) | None => return Ok(None),
                Some(Ok(_)) => {}
                Some(Err(error)) => return Err(error.to_string()),
            }
        }
    }

    /// Returns the number of a request, which distinguishes it from those of all other clients.
    pub fn request(&self, own: u32) -> u64 {
        u64::from(self.id) << 32 | u64::from(own)
    }

    /// Returns the client's own number of a request, if it is one of its requests.
    pub fn own(&self, request: u64) -> Option<u32> {
        (request >> 32 == u64::from(self.id)).then_some(request as u32)
    }
}

/// Rate of a count.
#[derive(Default)]
pub struct Rate(Option<(Instant, u64)>);

impl Rate {
    /// Returns the increase a second since the last call; 0 at the first one.
    pub fn of(&mut self, count: u64) -> f64 {
        let now = Instant::now();
        let before = self.0.replace((now, count));
        before.map_or(0.0, |(then, earlier)| {
            count.saturating_sub(earlier) as f64 / (now - then).as_secs_f64().max(1e-3)
        })
    }
}
