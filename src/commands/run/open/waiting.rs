//! Waiting for cameras and servers that are missing at the start of a run.

use std::time::{Duration, Instant};

use crate::commands::run::live::service::{self, Watchdog};
use stereod_core::backoff::Backoff;
use stereod_core::control::Switch;
use stereod_core::redact::redact;
use stereod_io::source::Unavailable;

/// Period in which `stop` is checked.
const TICK: Duration = Duration::from_millis(50);

/// Opens a part with `open`, and tries again for up to `longest` if it is not available yet. Each
/// new reason is logged once. Returns `None` if `stop` was set meanwhile.
pub fn until_there<T>(
    longest: Duration,
    stop: &Switch,
    mut open: impl FnMut() -> anyhow::Result<T>,
) -> anyhow::Result<Option<T>> {
    let begin = Instant::now();
    let mut backoff = Backoff::default();
    let mut pause = backoff.after(Duration::MAX);
    let mut said = None;
    let mut watchdog = Watchdog::of_manager();
    loop {
        let error = match open() {
            Ok(opened) => {
                if said.is_some() {
                    let waited = begin.elapsed().as_secs_f64();
                    tracing::info!("it is there after {waited:.1} s");
                }
                return Ok(Some(opened));
            }
            _ if stop.is_set() => return Ok(None),
            Err(error) => error,
        };
        let Some(Unavailable { reason }) = error.downcast_ref() else { return Err(error) };
        let left = longest.saturating_sub(begin.elapsed());
        if left.is_zero() {
            return Err(error);
        }
        if said.as_ref() != Some(reason) {
            tracing::warn!("{reason}; waiting for it");
            service::waits(&redact(reason));
            said = Some(reason.clone());
        }
        let until = Instant::now() + pause.min(left);
        while Instant::now() < until {
            if stop.is_set() {
                return Ok(None);
            }
            watchdog.tick(|_| false);
            std::thread::sleep(TICK);
        }
        pause = backoff.further();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn absent() -> anyhow::Error {
        Unavailable { reason: "no camera".to_owned() }.into()
    }

    #[test]
    fn what_is_absent_is_tried_again() {
        let mut attempts = 0;
        let opened = until_there(Duration::MAX, &Switch::default(), || {
            attempts += 1;
            if attempts < 3 { Err(absent()) } else { Ok(attempts) }
        });
        assert_eq!(opened.unwrap(), Some(3));
    }

    #[test]
    fn not_longer_than_wanted() {
        let mut attempts = 0;
        let wait = Duration::from_millis(700);
        let begin = Instant::now();
        let opened = until_there(wait, &Switch::default(), || -> anyhow::Result<()> {
            attempts += 1;
            Err(absent())
        });
        assert!(opened.unwrap_err().is::<Unavailable>());
        assert!(begin.elapsed() >= wait);
        assert_eq!(attempts, 3, "at once, after the first pause, at the end");
    }

    #[test]
    fn what_waiting_does_not_help_against_fails_at_once() {
        let mut attempts = 0;
        let opened = until_there(Duration::MAX, &Switch::default(), || -> anyhow::Result<()> {
            attempts += 1;
            anyhow::bail!("the camera has no such format")
        });
        assert!(opened.is_err());
        assert_eq!(attempts, 1);
    }

    #[test]
    fn stopping_ends_the_wait_without_an_error() {
        let stop = Switch::default();
        let opened = until_there(Duration::MAX, &stop, || -> anyhow::Result<()> {
            stop.set(true);
            Err(absent())
        });
        assert_eq!(opened.unwrap(), None);
    }
}
