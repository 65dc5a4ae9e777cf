//! Requests to the tuner, which wait until they are served.

use std::collections::VecDeque;
use std::mem;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use crate::observe::alignment::rotation::Turn;
use crate::viewer::{Ask, RequestId, Wish};
use stereod_core::thread::locked;
use stereod_obstacles::zones::Edit;

/// Requests to the tuner, from any thread. Clones share them.
#[derive(Clone, Default)]
pub struct Requests(Arc<(Mutex<Waiting>, Condvar)>);

#[derive(Default)]
struct Waiting {
    close: bool,
    reload: bool,
    turn: Option<Turn>,
    // Changes come before a file, which must hold the newest values.
    changes: Vec<Change>,
    zones: VecDeque<(RequestId, Edit)>,
    files: usize,
}

/// A request of a viewer that changes settings.
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    pub id: RequestId,
    pub to: Wanted,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Wanted {
    Values(Vec<Wish>),
    /// The values of the configuration.
    Configured,
}

#[derive(Debug, PartialEq)]
pub enum Request {
    Close,
    /// Read the configuration again.
    Reload,
    /// Refine the calibration by this turn of the right camera.
    Refine(Turn),
    /// Change settings, in this order.
    Change(Vec<Change>),
    Zone(RequestId, Edit),
    /// Write a configuration file with the values in effect.
    Write,
}

impl Request {
    pub fn ids(&self) -> Vec<RequestId> {
        match self {
            Request::Change(changes) => changes.iter().map(|change| change.id).collect(),
            Request::Zone(id, _) => vec![*id],
            Request::Close | Request::Reload | Request::Refine(_) | Request::Write => Vec::new(),
        }
    }
}

impl Waiting {
    fn add(&mut self, ask: Ask) {
        match ask {
            Ask::Values { id, values } => {
                self.changes.push(Change { id, to: Wanted::Values(values) });
            }
            Ask::Reset(id) => self.changes.push(Change { id, to: Wanted::Configured }),
            Ask::Zone { id, edit } => self.zones.push_back((id, edit)),
            Ask::Write => self.files += 1,
        }
    }

    fn next(&mut self) -> Option<Request> {
        if mem::take(&mut self.close) {
            Some(Request::Close)
        } else if mem::take(&mut self.reload) {
            Some(Request::Reload)
        } else if let Some(turn) = self.turn.take() {
            Some(Request::Refine(turn))
        } else if !self.changes.is_empty() {
            Some(Request::Change(mem::take(&mut self.changes)))
        } else if let Some((id, edit)) = self.zones.pop_front() {
            Some(Request::Zone(id, edit))
        } else {
            self.files = self.files.checked_sub(1)?;
            Some(Request::Write)
        }
    }
}

impl Requests {
    pub fn ask(&self, ask: Ask) {
        self.change(|waiting| waiting.add(ask));
    }

    pub fn reload(&self) {
        self.change(|waiting| waiting.reload = true);
    }

    pub fn refine(&self, turn: Turn) {
        self.change(|waiting| waiting.turn = Some(turn));
    }

    pub fn close(&self) {
        self.change(|waiting| waiting.close = true);
    }

    fn change(&self, change: impl FnOnce(&mut Waiting)) {
        change(&mut locked(&self.0.0));
        self.0.1.notify_one();
    }

    /// Waits for the next request; `None` if none comes within `patience`.
    pub fn next(&self, patience: Option<Duration>) -> Option<Request> {
        let (waiting, news) = &*self.0;
        let waiting = waiting.lock().unwrap_or_else(PoisonError::into_inner);
        let mut next = None;
        let nothing_yet = |waiting: &mut Waiting| {
            next = waiting.next();
            next.is_none()
        };
        match patience {
            None => drop(news.wait_while(waiting, nothing_yet)),
            Some(patience) => drop(news.wait_timeout_while(waiting, patience, nothing_yet)),
        }
        next
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::viewer::{ClientId, ViewerId};

    const OWN: ViewerId = ViewerId::Window;
    const OTHER: ViewerId = ViewerId::Client(ClientId(1));

    fn id(viewer: ViewerId, number: u32) -> RequestId {
        RequestId { viewer, number }
    }

    fn values(text: &str) -> Vec<Wish> {
        vec![("p1".to_owned(), text.to_owned())]
    }

    #[test]
    fn changes_wait_in_the_order_of_asking_and_a_file_is_written_after_them() {
        let requests = Requests::default();
        requests.ask(Ask::Write);
        requests.ask(Ask::Values { id: id(OTHER, 1), values: values("1") });
        requests.ask(Ask::Write);
        let edit = Edit::Remove("gate".into());
        requests.ask(Ask::Zone { id: id(OWN, 2), edit: edit.clone() });
        requests.ask(Ask::Reset(id(OWN, 1)));
        requests.ask(Ask::Values { id: id(OTHER, 2), values: values("2") });
        requests.reload();
        assert_eq!(requests.next(None), Some(Request::Reload));
        let changes = vec![
            Change { id: id(OTHER, 1), to: Wanted::Values(values("1")) },
            Change { id: id(OWN, 1), to: Wanted::Configured },
            Change { id: id(OTHER, 2), to: Wanted::Values(values("2")) },
        ];
        let change = requests.next(None).unwrap();
        assert_eq!(change.ids(), [id(OTHER, 1), id(OWN, 1), id(OTHER, 2)]);
        assert_eq!(change, Request::Change(changes));
        let zone = requests.next(None).unwrap();
        assert_eq!((zone.ids(), zone), (vec![id(OWN, 2)], Request::Zone(id(OWN, 2), edit)));
        requests.close();
        assert_eq!(requests.next(None), Some(Request::Close));
        assert_eq!(requests.next(None), Some(Request::Write));
        assert_eq!(requests.next(None), Some(Request::Write));
        assert_eq!(requests.next(Some(Duration::ZERO)), None);
    }
}
