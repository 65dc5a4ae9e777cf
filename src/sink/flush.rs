//! Files of a live run on their way to the disk, about once a second.
//!
//! The system keeps what was written in memory for half a minute, which is what a power cut would cost.
//! Flushing takes as long as the disk takes, so it has a thread of its own: who writes never waits for
//! it, and where a disk hangs, only that thread does.

use std::fs::File;
use std::io;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use crossbeam_channel::{Sender, unbounded};

use crate::thread::{self, locked};

/// Time between two flushes to the disk.
const EVERY: Duration = Duration::from_secs(1);

/// Puts the files of one output on the disk.
#[derive(Debug)]
pub struct Flusher {
    due: Instant,
    files: Sender<File>,
    thread: JoinHandle<()>,
    /// Why the disk has refused what was written.
    failure: Arc<Mutex<Option<io::Error>>>,
}

impl Flusher {
    /// Starts its thread. Where this is dropped, the thread ends by itself.
    pub fn start() -> Result<Self> {
        let (files, given) = unbounded::<File>();
        let failure = Arc::<Mutex<Option<io::Error>>>::default();
        let (noted, broken) = (failure.clone(), failure.clone());
        let body = move || {
            for file in given {
                if let Err(error) = file.sync_data() {
                    note(&noted, error);
                }
            }
        };
        let thread = thread::spawn("flush", body, move |why| note(&broken, io::Error::other(why)))
            .context("cannot start the flush thread")?;
        Ok(Self { due: Instant::now() + EVERY, files, thread, failure })
    }

    /// Has the file put on the disk if that was not done for a second; does not wait for it.
    pub fn look_after(&mut self, file: &File) -> io::Result<()> {
        take(&self.failure)?;
        // Where the disk is slower, what comes meanwhile is put on it together.
        if Instant::now() >= self.due && self.files.is_empty() {
            self.due = Instant::now() + EVERY;
            self.hand_over(file.try_clone()?);
        }
        Ok(())
    }

    /// Has a file that is complete put on the disk, and then closed; does not wait for it.
    pub fn hand_over(&self, file: File) {
        // The thread ends after this only.
        let _ = self.files.send(file);
    }

    /// Waits until all that was handed over is on the disk.
    pub fn finish(self) -> io::Result<()> {
        let Self { files, thread, failure, .. } = self;
        drop(files);
        thread::joined("the flush thread", thread.join()).map_err(io::Error::other)?;
        take(&failure)
    }
}

/// Keeps the first failure.
fn note(failure: &Mutex<Option<io::Error>>, error: io::Error) {
    locked(failure).get_or_insert(error);
}

/// Returns the failure once.
fn take(failure: &Mutex<Option<io::Error>>) -> io::Result<()> {
    locked(failure).take().map_or(Ok(()), Err)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_grows_is_flushed_and_a_failure_told_with_a_later_frame() {
        let mut flusher = Flusher::start().unwrap();
        // What has no disk below it cannot be put there, which tells that it was tried.
        let null = File::options().write(true).open("/dev/null").unwrap();
        let begun = Instant::now();
        let frames = std::iter::repeat_with(|| {
            std::thread::sleep(Duration::from_millis(5));
            flusher.look_after(&null)
        });
        let error = frames.take(60_000).find_map(Result::err).expect("it cannot be flushed");
        assert_eq!(error.kind(), io::ErrorKind::InvalidInput, "{error}");
        assert!(begun.elapsed() >= EVERY, "not with every frame");
        flusher.hand_over(null);
        assert!(flusher.finish().is_err());
    }
}
