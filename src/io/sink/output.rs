//! Writes encoded frames to one file or to one segment after the other, in any format.

use std::fs::File;
use std::io::{self, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime};

use anyhow::{Context, Result, bail};
use crossbeam_channel::{Sender, unbounded};

use super::segments::Place;
use super::segments::Segments;
use crate::clock::CaptureClock;
use stereod_core::files;
use stereod_core::files::new_file::NewFile;
use stereod_core::thread::{self, locked};

pub(super) trait Container: Sized {
    type Header;
    type Frame<'a>: Copy;

    /// Begins a file with the first frame `frame`. `origin` is the capture time at the file's time 0, `date`
    /// its time of day, if known.
    fn create(
        file: NewFile,
        header: &Self::Header,
        frame: Self::Frame<'_>,
        origin: Duration,
        date: Option<SystemTime>,
    ) -> io::Result<Self>;

    /// Appends a frame. After a failure the caller cuts the file to [`length`](Self::length) and may
    /// try the same frame again.
    fn append(&mut self, time: Duration, frame: Self::Frame<'_>) -> io::Result<()>;

    fn frames(&self) -> u64;

    fn length(&self) -> u64;

    fn file(&mut self) -> &mut NewFile;

    /// Completes the file; may be repeated after a failure.
    fn finish(&mut self) -> io::Result<()>;
}

pub(super) struct Output<C: Container> {
    path: PathBuf,
    segments: Option<Segments>,
    header: C::Header,
    clock: Option<CaptureClock>,
    /// The capture time at time 0 of the encoder.
    origin: Duration,
    empty: Option<NewFile>,
    current: Option<Current<C>>,
    flusher: Option<Flusher>,
    written: u64,
}

struct Current<C> {
    path: PathBuf,
    writer: C,
    begin: Duration,
    /// True if the file can be deleted while it is written.
    has_name: bool,
}

impl<C: Container> Output<C> {
    /// Creates the file, or checks that segments can be created. `clock` belongs to the capture times, if
    /// any.
    pub(super) fn create(
        place: &Place,
        header: C::Header,
        clock: Option<CaptureClock>,
    ) -> Result<Self> {
        let (path, segments) = (place.path().to_path_buf(), place.segments()?);
        let empty = match segments {
            Some(_) => None,
            None => Some(NewFile::create(&path)?),
        };
        // Only live runs need it: a recorded source can be matched again.
        let flusher = clock.map(|_| Flusher::start()).transpose()?;
        let origin = Duration::ZERO;
        let (current, written) = (None, 0);
        Ok(Self { path, segments, header, clock, origin, empty, current, flusher, written })
    }

    /// Sets the capture time at time 0 of the encoder.
    pub(super) fn set_origin(&mut self, origin: Duration) {
        self.origin = origin;
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn written(&self) -> u64 {
        self.written
    }

    /// Writes an encoded frame of about `bytes` bytes, before the first one of a file its header.
    pub(super) fn write(&mut self, time: Duration, frame: C::Frame<'_>, bytes: u64) -> Result<()> {
        if self.is_full(time, bytes) {
            self.complete(self.flusher.is_some())?;
        }
        if self.current.is_none() {
            self.begin(time, frame)?;
        }
        let Some(current) = &mut self.current else { return Ok(()) };
        if current.has_name && links(current.writer.file().file()) == 0 {
            bail!("cannot write {}: somebody has deleted it", current.path.display());
        }
        while let Err(error) = current.writer.append(time - current.begin, frame) {
            if !make_room(&mut self.segments, &error) || current.take_back().is_err() {
                let error = files::explain(&current.path, &error);
                match current.writer.frames() {
                    0 => bail!(error),
                    frames => {
                        bail!("{error}; the recording is readable up to there ({frames} frames)")
                    }
                }
            }
        }
        let kept = current.keep(self.flusher.as_mut());
        kept.map_err(|error| files::explain(&current.path, &error))?;
        self.written += 1;
        if let Some(segments) = &mut self.segments {
            segments.prune(current.writer.length());
        }
        Ok(())
    }

    fn is_full(&self, time: Duration, bytes: u64) -> bool {
        match (&self.segments, &self.current) {
            (Some(segments), Some(current)) if current.writer.frames() > 0 => {
                let age = time.saturating_sub(current.begin);
                segments.is_full(current.writer.length() + bytes, age)
            }
            _ => false,
        }
    }

    /// Begins the file, or a segment with a first frame at `time`.
    fn begin(&mut self, time: Duration, frame: C::Frame<'_>) -> Result<()> {
        // The caller sets the time 0 of a single file, because two views share it.
        let begin = if self.segments.is_some() { time } else { Duration::ZERO };
        let origin = self.origin + begin;
        let date = self.clock.map(|clock| clock.time_of_day(origin));
        loop {
            let (file, path) = match &mut self.segments {
                None => {
                    let file = self.empty.take().context("the file is written by one writer")?;
                    (file, self.path.clone())
                }
                Some(segments) => {
                    let (file, path) = segments.open(date.unwrap_or_else(SystemTime::now))?;
                    (NewFile::in_place(&path, file), path)
                }
            };
            let has_name = links(file.file()) > 0;
            let error = match C::create(file, &self.header, frame, origin, date) {
                Ok(writer) => {
                    self.current = Some(Current { path, writer, begin, has_name });
                    return Ok(());
                }
                Err(error) => error,
            };
            let explained = files::explain(&path, &error);
            if self.segments.is_none() {
                return Err(explained);
            }
            // An empty segment is deleted, because repeated attempts would leave many.
            let _ = std::fs::remove_file(&path);
            if !make_room(&mut self.segments, &error) {
                return Err(explained);
            }
        }
    }

    /// Completes the current file and flushes it to the disk; in the background if a next one waits.
    fn complete(&mut self, next_waits: bool) -> Result<()> {
        let Some(mut current) = self.current.take() else { return Ok(()) };
        while let Err(error) = current.writer.finish() {
            if !make_room(&mut self.segments, &error) || current.take_back().is_err() {
                return Err(files::explain(&current.path, &error));
            }
        }
        let Current { path, mut writer, .. } = current;
        let file = writer.file();
        let explain = |error: io::Error| files::explain(&path, &error);
        file.put_in_place().map_err(explain)?;
        match &self.flusher {
            Some(flusher) if next_waits => {
                // A complete segment may be deleted to make room.
                let _ = file.file().unlock();
                flusher.hand_over(file.file().try_clone().map_err(explain)?);
            }
            _ if file.seeks() && is_ordinary(file.file()) => {
                file.file().sync_data().map_err(explain)?;
            }
            _ => {}
        }
        Ok(())
    }

    /// Completes the current file; `after_failure` as far as possible.
    pub(super) fn finish(&mut self, after_failure: bool) -> Result<()> {
        if self.empty.take().is_some() && !after_failure {
            tracing::warn!("no frame came: {} was not written", self.path.display());
        }
        if !after_failure {
            self.complete(false)?;
            let flushed = self.flusher.take().map_or(Ok(()), Flusher::finish);
            return flushed.map_err(|error| files::explain(&self.path, &error));
        }
        let Some(mut current) = self.current.take() else { return Ok(()) };
        if current.writer.frames() == 0 {
            // An unfinished new file deletes itself, and an earlier one stays.
            if self.segments.is_some() {
                let _ = std::fs::remove_file(&current.path);
            }
            return Ok(());
        }
        // Cutting off a partial frame makes room for the index. Best effort: the first error is
        // known, and the frames are readable anyway.
        let _ = current.take_back();
        let _ = current.writer.finish();
        Ok(())
    }
}

impl<C: Container> Current<C> {
    /// Gives the file its name after the first frame, and starts flushing it periodically.
    fn keep(&mut self, flusher: Option<&mut Flusher>) -> io::Result<()> {
        let file = self.writer.file();
        file.put_in_place()?;
        match flusher {
            Some(flusher) if is_ordinary(file.file()) => flusher.look_after(file.file()),
            _ => Ok(()),
        }
    }

    fn take_back(&mut self) -> io::Result<()> {
        let length = self.writer.length();
        let file = self.writer.file();
        file.file().set_len(length)?;
        file.seek(SeekFrom::Start(length)).map(drop)
    }
}

/// Deletes the oldest segment if the disk is full; reports whether there is more room now.
fn make_room(segments: &mut Option<Segments>, error: &io::Error) -> bool {
    files::is_full(error) && segments.as_mut().is_some_and(Segments::make_room)
}

fn is_ordinary(file: &File) -> bool {
    file.metadata().is_ok_and(|about| about.is_file())
}

/// Returns the number of names of a regular file, 0 after its deletion; 0 for others, and where the system does not
/// tell.
fn links(file: &File) -> u64 {
    #[cfg(unix)]
    let links = std::os::unix::fs::MetadataExt::nlink;
    #[cfg(not(unix))]
    let links = |_: &std::fs::Metadata| 0;
    file.metadata().ok().filter(std::fs::Metadata::is_file).map_or(0, |about| links(&about))
}

/// Time between two flushes to the disk. The system keeps written data in memory for half a minute, which a power cut
/// would lose.
const EVERY: Duration = Duration::from_secs(1);

/// Flushes the files of a live run. Flushing blocks for as long as the disk takes, so it has its own thread.
#[derive(Debug)]
pub struct Flusher {
    due: Instant,
    files: Sender<File>,
    thread: JoinHandle<()>,
    failure: Arc<Mutex<Option<io::Error>>>,
}

impl Flusher {
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

    pub fn finish(self) -> io::Result<()> {
        let Self { files, thread, failure, .. } = self;
        drop(files);
        thread::joined("the flush thread", thread.join()).map_err(io::Error::other)?;
        take(&failure)
    }
}

fn note(failure: &Mutex<Option<io::Error>>, error: io::Error) {
    locked(failure).get_or_insert(error);
}

fn take(failure: &Mutex<Option<io::Error>>) -> io::Result<()> {
    locked(failure).take().map_or(Ok(()), Err)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_grows_is_flushed_and_a_failure_told_with_a_later_frame() {
        let begun = Instant::now();
        let mut flusher = Flusher::start().unwrap();
        // Data without a disk cannot be flushed, and the error shows the attempt.
        let null = File::options().write(true).open("/dev/null").unwrap();
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
