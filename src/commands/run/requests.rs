//! What is asked of the tuner: of each kind of request the newest is kept until it is begun with.

use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use crate::sink::window::{Ask, Wish};

/// What is asked of the tuner, from any thread. Clones are the same.
#[derive(Clone, Default)]
pub struct Requests(Arc<(Mutex<Waiting>, Condvar)>);

/// What was not begun with yet: of each kind the newest.
#[derive(Default)]
struct Waiting {
    reload: bool,
    reset: bool,
    values: Option<(u64, Vec<Wish>)>,
    write: Option<PathBuf>,
    closed: bool,
}

impl Requests {
    /// Asks to read the configuration again.
    pub fn reload(&self) {
        self.ask(|waiting| waiting.reload = true);
    }

    /// Asks for what the window asks for.
    pub fn ask_for(&self, wanted: Ask) {
        self.ask(|waiting| match wanted {
            Ask::Values { number, values } => waiting.values = Some((number, values)),
            Ask::Reset => (waiting.reset, waiting.values) = (true, None),
            Ask::Write(path) => waiting.write = Some(path),
        });
    }

    /// Asks the tuner to end.
    pub fn close(&self) {
        self.ask(|waiting| waiting.closed = true);
    }

    fn ask(&self, what: impl FnOnce(&mut Waiting)) {
        what(&mut self.0.0.lock().unwrap_or_else(PoisonError::into_inner));
        self.0.1.notify_one();
    }

    /// The next request, waiting for it, but no longer than for `patience`.
    pub fn next(&self, patience: Option<Duration>) -> Request {
        let (waiting, news) = &*self.0;
        let mut waiting = waiting.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            if let Some(request) = waiting.next() {
                return request;
            }
            let timed_out;
            (waiting, timed_out) = match patience {
                None => (news.wait(waiting).unwrap_or_else(PoisonError::into_inner), false),
                Some(patience) => {
                    let waited = news.wait_timeout(waiting, patience);
                    let (waiting, ended) = waited.unwrap_or_else(PoisonError::into_inner);
                    (waiting, ended.timed_out())
                }
            };
            if timed_out {
                return waiting.next().unwrap_or(Request::Settle);
            }
        }
    }
}

impl Waiting {
    fn next(&mut self) -> Option<Request> {
        if self.closed {
            return Some(Request::Close);
        }
        if std::mem::take(&mut self.reload) {
            return Some(Request::Reload);
        }
        if std::mem::take(&mut self.reset) {
            return Some(Request::Reset);
        }
        // Before a file is written: it is to hold the newest values.
        if let Some((number, values)) = self.values.take() {
            return Some(Request::Values(number, values));
        }
        self.write.take().map(Request::Write)
    }
}

/// What the tuner does next.
pub enum Request {
    /// Read the configuration again.
    Reload,
    /// Take the values of the configuration.
    Reset,
    /// Take these values, of this request.
    Values(u64, Vec<Wish>),
    /// Write a configuration file.
    Write(PathBuf),
    /// Nobody has asked for anything for a while.
    Settle,
    /// End.
    Close,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(number: u64) -> Ask {
        Ask::Values { number, values: vec![("matching", "p1", number.to_string())] }
    }

    #[test]
    fn the_newest_values_win_and_are_in_effect_before_a_file_is_written() {
        let requests = Requests::default();
        requests.ask_for(Ask::Write("a.toml".into()));
        for number in 1..=5 {
            requests.ask_for(values(number));
        }
        let Request::Values(5, wishes) = requests.next(None) else { panic!("not the newest") };
        assert_eq!(wishes[0].2, "5");
        assert!(matches!(requests.next(None), Request::Write(path) if path.ends_with("a.toml")));
        assert!(matches!(requests.next(Some(Duration::from_millis(5))), Request::Settle));
    }

    #[test]
    fn a_reset_makes_values_void_and_the_end_comes_first() {
        let requests = Requests::default();
        requests.ask_for(values(1));
        requests.ask_for(Ask::Reset);
        requests.reload();
        assert!(matches!(requests.next(None), Request::Reload));
        assert!(matches!(requests.next(None), Request::Reset));
        assert!(matches!(requests.next(Some(Duration::ZERO)), Request::Settle));
        requests.ask_for(values(2));
        requests.close();
        assert!(matches!(requests.next(None), Request::Close));
    }
}
