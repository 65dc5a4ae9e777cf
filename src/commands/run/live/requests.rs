//! Requests to the tuner, which wait until they are served.

use std::collections::VecDeque;
use std::mem;
use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use crate::observe::alignment::rotation::Turn;
use crate::viewer::{Ask, RequestId, Wish};
use stereod_core::thread::locked;

/// Requests to the tuner, from any thread. Clones share them.
#[derive(Clone, Default)]
pub struct Requests(Arc<(Mutex<Waiting>, Condvar)>);

#[derive(Default)]
struct Waiting {
    close: bool,
    reload: bool,
    turn: Option<Turn>,
    reset: Vec<RequestId>,
    // Changes come before a file, which must hold the newest values.
    changes: Vec<Change>,
    files: VecDeque<PathBuf>,
}

/// Settings that a viewer changes, and the requests that asked for that.
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    pub ids: Vec<RequestId>,
    pub values: Vec<Wish>,
}

#[derive(Debug, PartialEq)]
pub enum Request {
    Close,
    /// Read the configuration again.
    Reload,
    /// Refine the calibration by this turn of the right camera.
    Refine(Turn),
    /// Return to the values of the configuration.
    Reset(Vec<RequestId>),
    /// Change settings, in this order.
    Change(Vec<Change>),
    /// Write a configuration file with the values in effect.
    Write(PathBuf),
}

impl Request {
    pub fn ids(&self) -> Vec<RequestId> {
        match self {
            Request::Reset(ids) => ids.clone(),
            Request::Change(changes) => changes.iter().flat_map(|it| it.ids.clone()).collect(),
            Request::Close | Request::Reload | Request::Refine(_) | Request::Write(_) => Vec::new(),
        }
    }
}

impl Waiting {
    fn add(&mut self, ask: Ask) {
        match ask {
            Ask::Values { id, values } => {
                // A viewer's earlier change is void if all of its settings are set again.
                let is_set = |path: &String| values.iter().any(|(new, _)| new == path);
                let is_void = |earlier: &mut Change| {
                    earlier.ids[0].viewer == id.viewer
                        && earlier.values.iter().all(|(path, _)| is_set(path))
                };
                let void = self.changes.extract_if(.., is_void);
                let mut ids: Vec<RequestId> = void.flat_map(|earlier| earlier.ids).collect();
                ids.push(id);
                self.changes.push(Change { ids, values });
            }
            Ask::Reset(id) => {
                // A reset makes earlier changes void.
                self.reset.extend(self.changes.drain(..).flat_map(|earlier| earlier.ids));
                self.reset.push(id);
            }
            Ask::Write(path) => self.files.push_back(path),
        }
    }

    fn next(&mut self) -> Option<Request> {
        if mem::take(&mut self.close) {
            Some(Request::Close)
        } else if mem::take(&mut self.reload) {
            Some(Request::Reload)
        } else if let Some(turn) = self.turn.take() {
            Some(Request::Refine(turn))
        } else if !self.reset.is_empty() {
            Some(Request::Reset(mem::take(&mut self.reset)))
        } else if !self.changes.is_empty() {
            Some(Request::Change(mem::take(&mut self.changes)))
        } else {
            self.files.pop_front().map(Request::Write)
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

    fn values(all: &[(&str, u32)]) -> Vec<Wish> {
        all.iter().map(|(path, value)| (String::from(*path), value.to_string())).collect()
    }

    fn ask(requests: &Requests, viewer: ViewerId, number: u32, all: &[(&str, u32)]) {
        requests.ask(Ask::Values { id: id(viewer, number), values: values(all) });
    }

    #[test]
    fn only_a_change_that_is_set_again_whole_by_its_viewer_is_void() {
        let requests = Requests::default();
        requests.ask(Ask::Write("a.toml".into()));
        requests.ask(Ask::Write("b.toml".into()));
        ask(&requests, OWN, 1, &[("p1", 1)]);
        ask(&requests, OTHER, 1, &[("p1", 2)]);
        ask(&requests, OWN, 2, &[("p1", 3), ("p2", 3)]);
        ask(&requests, OWN, 3, &[("p2", 4)]);
        let expected = [
            Change { ids: vec![id(OTHER, 1)], values: values(&[("p1", 2)]) },
            Change { ids: vec![id(OWN, 1), id(OWN, 2)], values: values(&[("p1", 3), ("p2", 3)]) },
            Change { ids: vec![id(OWN, 3)], values: values(&[("p2", 4)]) },
        ];
        assert_eq!(requests.next(None), Some(Request::Change(expected.into())));
        // They are in effect before a file is written.
        for path in ["a.toml", "b.toml"] {
            assert_eq!(requests.next(None), Some(Request::Write(path.into())));
        }
        assert_eq!(requests.next(Some(Duration::from_millis(5))), None);
    }

    #[test]
    fn a_reset_makes_changes_void_and_answers_them_and_the_end_comes_first() {
        let requests = Requests::default();
        ask(&requests, OTHER, 1, &[("p1", 1)]);
        requests.ask(Ask::Reset(id(OWN, 1)));
        ask(&requests, OTHER, 2, &[("p1", 2)]);
        requests.reload();
        assert_eq!(requests.next(None), Some(Request::Reload));
        let reset = Request::Reset(vec![id(OTHER, 1), id(OWN, 1)]);
        assert_eq!(requests.next(None), Some(reset));
        requests.close();
        assert_eq!(requests.next(None), Some(Request::Close));
        let change = requests.next(None).unwrap();
        assert_eq!(change.ids(), [id(OTHER, 2)]);
        assert_eq!(requests.next(Some(Duration::ZERO)), None);
    }
}
