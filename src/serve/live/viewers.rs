//! The viewers of a run, and who gives way if there are too many.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use hyper_tungstenite::tungstenite::protocol::CloseFrame;
use hyper_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use serde::Serialize;
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::time::timeout;

use crate::serve::wire::Peer;
use crate::viewer::{ClientId, Tuned, ViewerId};
use stereod_core::redact::redact;
use stereod_core::thread::locked;
use stereod_io::text::on_one_line;

const MOST: usize = 8;

/// Time without an answer after which a viewer gives way before all others. Each is asked every five seconds.
const QUIET: Duration = Duration::from_secs(12);

/// Time for all viewers to be told of the end.
const GOODBYE: Duration = Duration::from_secs(1);

/// Longest reason in bytes (RFC 6455, 5.5).
const LONGEST_REASON: usize = 123;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ending {
    code: CloseCode,
    reason: String,
}

impl Ending {
    /// The viewer may not look.
    pub fn refused(reason: &str) -> Self {
        Self { code: CloseCode::Policy, reason: reason.into() }
    }

    pub fn without_token() -> Self {
        Self::refused("the token is missing or wrong")
    }

    /// A message of the viewer has more than so many bytes.
    pub fn too_long(most: usize) -> Self {
        let reason = format!("a message has more than {} KiB", most >> 10);
        Self { code: CloseCode::Size, reason }
    }

    /// Reports whether the rest of a message was not taken.
    pub fn leaves_rest(&self) -> bool {
        self.code == CloseCode::Size
    }

    /// A message of the viewer breaks a rule of its kind.
    pub fn invalid(reason: &str) -> Self {
        Self { code: CloseCode::Invalid, reason: reason.into() }
    }

    pub fn finished(reason: String) -> Self {
        Self { code: CloseCode::Normal, reason }
    }

    /// The program stops, and may come back.
    pub fn away(reason: String) -> Self {
        Self { code: CloseCode::Away, reason }
    }

    /// The viewer was closed, and must not come back by itself.
    fn closed(reason: &str) -> Self {
        Self { code: CloseCode::Library(4000), reason: reason.into() }
    }

    pub fn frame(&self) -> CloseFrame {
        let reason = redact(&on_one_line(&self.reason));
        let end = reason.floor_char_boundary(LONGEST_REASON);
        CloseFrame { code: self.code, reason: reason[..end].into() }
    }
}

/// All viewers. Clones share them.
#[derive(Clone, Default)]
pub struct Viewers(Arc<Mutex<All>>);

#[derive(Default)]
struct All {
    taken: u32,
    seats: Vec<Taken>,
    ending: Option<Ending>,
}

struct Taken {
    id: ClientId,
    kind: &'static str,
    peer: Peer,
    may_change: bool,
    since: Instant,
    end: watch::Sender<Option<Ending>>,
    answers: Vec<Answer>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Answer {
    /// The viewer's number of the request.
    pub number: u32,
    pub problem: Option<String>,
}

/// The seat of a viewer, which is free again when this is dropped.
pub struct Seat {
    pub id: ClientId,
    end: watch::Receiver<Option<Ending>>,
    viewers: Viewers,
}

impl Seat {
    /// Waits until the viewer must go.
    pub async fn ended(&mut self) -> Ending {
        // The sender lives until the viewer is told.
        let ending = self.end.wait_for(Option::is_some).await;
        let ending = ending.ok().and_then(|ending| ending.clone());
        ending.unwrap_or_else(|| Ending::closed("the viewer was closed"))
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        locked(&self.viewers.0).seats.retain(|taken| taken.id != self.id);
    }
}

impl Viewers {
    /// Seats a viewer of this kind. If all seats are taken, another viewer gives way.
    pub fn enter(&self, kind: &'static str, peer: Peer, may_change: bool) -> Result<Seat, Ending> {
        let mut all = locked(&self.0);
        if let Some(ending) = &all.ending {
            return Err(ending.clone());
        }
        if all.seats.len() >= MOST {
            let seats = all.seats.iter().map(|it| (it.may_change, it.peer.silence()));
            let Some(place) = gives_way(seats, may_change) else {
                return Err(Ending::refused(
                    "too many viewers with the token are open; close one of them",
                ));
            };
            let gone = all.seats.remove(place);
            tracing::debug!("viewers: {} takes the place of {}", peer.address, gone.peer.address);
            let reason = format!("a newer viewer took the place of this one ({MOST} are served)");
            gone.end.send_replace(Some(Ending::closed(&reason)));
        }
        all.taken += 1;
        let (end, ended) = watch::channel(None);
        let (id, since, answers) = (ClientId(all.taken), Instant::now(), Vec::new());
        all.seats.push(Taken { id, kind, peer, may_change, since, end, answers });
        Ok(Seat { id, end: ended, viewers: self.clone() })
    }

    pub fn answer(&self, tuned: &Tuned) {
        for taken in &mut locked(&self.0).seats {
            let own = tuned.answers_to(ViewerId::Client(taken.id));
            let answer = |(number, problem): (_, Option<&String>)| Answer {
                number,
                problem: problem.cloned(),
            };
            taken.answers.extend(own.map(answer));
        }
    }

    pub fn take_answers(&self, id: ClientId) -> Vec<Answer> {
        let mut all = locked(&self.0);
        let taken = all.seats.iter_mut().find(|taken| taken.id == id);
        taken.map_or_else(Vec::new, |taken| std::mem::take(&mut taken.answers))
    }

    pub fn close(&self, id: ClientId) {
        if let Some(taken) = locked(&self.0).seats.iter().find(|taken| taken.id == id) {
            taken.end.send_replace(Some(Ending::closed("the viewer was closed by another one")));
        }
    }

    /// Tells viewers of the end, those that come later, too.
    pub fn end(&self, ending: Ending) {
        let mut all = locked(&self.0);
        for taken in &all.seats {
            taken.end.send_replace(Some(ending.clone()));
        }
        all.ending = Some(ending);
    }

    /// Tells all viewers of the end, and waits until they have heard it.
    pub async fn say_goodbye(&self) {
        let closed: Vec<_> = {
            let mut all = locked(&self.0);
            let ending = all.ending.get_or_insert_with(|| Ending::away("stereod has ended".into()));
            let ending = ending.clone();
            let tell = |taken: Taken| {
                taken.end.send_replace(Some(ending.clone()));
                taken.end
            };
            all.seats.drain(..).map(tell).collect()
        };
        // Each drops its receiver when it has gone.
        let all_gone = async {
            for end in &closed {
                end.closed().await;
            }
        };
        let _ = timeout(GOODBYE, all_gone).await;
    }

    pub fn list(&self, own: ClientId) -> Vec<Value> {
        let row = |taken: &Taken| {
            json!({
                "id": taken.id.0,
                "kind": taken.kind,
                "address": taken.peer.address.ip().to_string(),
                "may_change": taken.may_change,
                "since_s": taken.since.elapsed().as_secs(),
                "silent_s": taken.peer.silence().as_secs(),
                "own": taken.id == own,
            })
        };
        locked(&self.0).seats.iter().map(row).collect()
    }
}

/// Returns the number of the viewer that gives way to a new one, of those that may change the run or not and
/// have been silent for so long. A viewer without the token never displaces one with it.
fn gives_way(seats: impl Iterator<Item = (bool, Duration)>, may_change: bool) -> Option<usize> {
    seats
        .enumerate()
        .filter(|(_, (has_token, _))| may_change || !has_token)
        .max_by_key(|&(_, (has_token, silence))| (silence >= QUIET, !has_token, silence))
        .map(|(place, _)| place)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_one_that_answered_longest_ago_gives_way_but_no_token_to_none() {
        let of = |seats: &[(bool, u64)], may_change| {
            let seats = seats.iter().map(|&(token, ms)| (token, Duration::from_millis(ms)));
            gives_way(seats, may_change)
        };
        let seats = [(true, 3000), (false, 10), (false, 20), (true, 0)];
        assert_eq!((of(&seats, true), of(&seats, false)), (Some(2), Some(2)));
        let asleep = [(true, 29_000), (false, 10), (true, 13_000), (false, 20)];
        assert_eq!((of(&asleep, true), of(&asleep, false)), (Some(0), Some(3)));
        let owners = [(true, 2), (true, 7), (true, 3)];
        assert_eq!((of(&owners, true), of(&owners, false)), (Some(1), None));
    }

    #[test]
    fn a_reason_fits_its_message() {
        let ending = Ending::away("ä".repeat(100));
        assert_eq!(ending.frame().reason.len(), 122);
        let secret = Ending::away("rtsp://me:secret@rig/\nfailed".into());
        assert_eq!(secret.frame().reason.as_str(), "rtsp://***@rig/\\nfailed");
    }
}
