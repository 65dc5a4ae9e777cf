//! Requests to the tuner: the newest of each kind waits until it is served.

use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use crate::sink::viewer::Ask;

/// Requests to the tuner, from any thread. Clones share them.
#[derive(Clone, Default)]
pub struct Requests(Arc<(Mutex<Waiting>, Condvar)>);

/// Waiting requests: the newest of each kind, in the order of service.
type Waiting = [Option<Request>; 5];

/// A request to the tuner.
pub enum Request {
    /// End.
    Close,
    /// Read the configuration again.
    Reload,
    /// A request of a viewer.
    Viewer(Ask),
}

impl Request {
    /// Its place in the order of service.
    fn place(&self) -> usize {
        match self {
            Request::Close => 0,
            Request::Reload => 1,
            Request::Viewer(Ask::Reset) => 2,
            // Values come before a file, which must hold the newest.
            Request::Viewer(Ask::Values { .. }) => 3,
            Request::Viewer(Ask::Write(_)) => 4,
        }
    }
}

impl Requests {
    /// Adds a request.
    pub fn ask(&self, request: Request) {
        let mut waiting = self.0.0.lock().unwrap_or_else(PoisonError::into_inner);
        let place = request.place();
        if let Request::Viewer(Ask::Reset) = request {
            // A reset voids earlier values.
            waiting[place + 1] = None;
        }
        waiting[place] = Some(request);
        self.0.1.notify_one();
    }

    /// Waits for the next request; `None` if none comes within `patience`.
    pub fn next(&self, patience: Option<Duration>) -> Option<Request> {
        let (waiting, news) = &*self.0;
        let waiting = waiting.lock().unwrap_or_else(PoisonError::into_inner);
        let mut next = None;
        let nothing_yet = |waiting: &mut Waiting| {
            next = waiting.iter_mut().find_map(Option::take);
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

    fn ask_for_values(requests: &Requests, number: u64) {
        let values = vec![("matching", "p1", number.to_string())];
        requests.ask(Request::Viewer(Ask::Values { number, values }));
    }

    #[test]
    fn the_newest_values_win_and_are_in_effect_before_a_file_is_written() {
        let requests = Requests::default();
        requests.ask(Request::Viewer(Ask::Write("a.toml".into())));
        for number in 1..=5 {
            ask_for_values(&requests, number);
        }
        let Some(Request::Viewer(Ask::Values { number: 5, values })) = requests.next(None) else {
            panic!("not the newest")
        };
        assert_eq!(values[0].2, "5");
        let next = requests.next(None);
        assert!(
            matches!(next, Some(Request::Viewer(Ask::Write(path))) if path.ends_with("a.toml"))
        );
        assert!(requests.next(Some(Duration::from_millis(5))).is_none());
    }

    #[test]
    fn a_reset_makes_values_void_and_the_end_comes_first() {
        let requests = Requests::default();
        ask_for_values(&requests, 1);
        requests.ask(Request::Viewer(Ask::Reset));
        requests.ask(Request::Reload);
        assert!(matches!(requests.next(None), Some(Request::Reload)));
        assert!(matches!(requests.next(None), Some(Request::Viewer(Ask::Reset))));
        assert!(requests.next(Some(Duration::ZERO)).is_none());
        ask_for_values(&requests, 2);
        requests.ask(Request::Close);
        assert!(matches!(requests.next(None), Some(Request::Close)));
    }
}
