//! Flushing of a live run's files to the disk, about once a second.
//!
//! The system keeps written data in memory for half a minute, which a power cut would lose.
//! Flushing blocks for as long as the disk takes, so it has its own thread: writers never wait for
//! it.

use std::fs::File;
use std::io;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use crossbeam_channel::{Sender, unbounded};

use stereod_core::thread::{self, locked};

/// Time between two flushes to the disk.
const EVERY: Duration = Duration::from_secs(1);

/// Flusher of the files of one output.
#[derive(Debug)]
pub struct Flusher {
    due: Instant,
    files: Sender<File>,
    thread: JoinHandle<()>,
    /// The first error of the disk.
    failure: Arc<Mutex<Option<io::Error>>>,
}

impl Flusher {
    /// Starts its thread, which ends when this is dropped.
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

    /// Requests a flush of the file if the last one is a second old; does not wait for it.
    pub fn look_after(&mut self, file: &File) -> io::Result<()> {
        take(&self.failure)?;
        // If the disk is slower, later data is flushed together.
        if Instant::now() >= self.due && self.files.is_empty() {
            self.due = Instant::now() + EVERY;
            self.hand_over(file.try_clone()?);
        }
        Ok(())
    }

    /// Hands over a complete file to be flushed and closed; does not wait for it.
    pub fn hand_over(&self, file: File) {
        // The thread ends after this file.
        let _ = self.files.send(file);
    }

    /// Waits until everything is on the disk.
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
        // Data without a disk cannot be flushed, and the error shows the attempt.
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
