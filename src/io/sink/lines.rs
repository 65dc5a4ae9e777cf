//! A line of text for each pair, in one file or in segments.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use anyhow::Result;

use super::output::{Container, Output};
use super::segments::Place;
use super::{Sink, StreamInfo, messages};
use stereod_core::files::explain;
use stereod_core::files::new_file::NewFile;
use stereod_core::frame::Matched;

/// Returns the line of a pair without its end; the time is that of its capture since 1970.
pub type Line = Arc<dyn Fn(&Matched, Duration) -> Option<String> + Send + Sync>;

struct LinesFile {
    file: NewFile,
    length: u64,
    frames: u64,
}

impl Container for LinesFile {
    type Header = ();
    type Frame<'a> = &'a str;

    fn create(
        file: NewFile,
        (): &(),
        _: &str,
        _: Duration,
        _: Option<SystemTime>,
    ) -> io::Result<Self> {
        Ok(Self { file, length: 0, frames: 0 })
    }

    fn append(&mut self, _: Duration, line: &str) -> io::Result<()> {
        self.file.write_all(line.as_bytes())?;
        self.length += line.len() as u64;
        self.frames += 1;
        Ok(())
    }

    fn frames(&self) -> u64 {
        self.frames
    }

    fn length(&self) -> u64 {
        self.length
    }

    fn file(&mut self) -> &mut NewFile {
        &mut self.file
    }

    fn finish(&mut self) -> io::Result<()> {
        if self.file.seeks() {
            self.file.seek(SeekFrom::Start(self.length))?;
        }
        self.file.flush()
    }
}

/// Joins files of lines, in their order, into a new file. Returns the number of lines.
pub fn join_lines(files: &[PathBuf], to: &Path) -> Result<u64> {
    let mut joined = NewFile::create(to)?;
    let mut lines = 0;
    for path in files {
        let file = File::open(path).map_err(|error| explain(path, &error))?;
        for line in BufReader::new(file).split(b'\n') {
            let mut line = line.map_err(|error| explain(path, &error))?;
            line.push(b'\n');
            joined.write_all(&line).map_err(|error| explain(to, &error))?;
            lines += 1;
        }
    }
    joined.put_in_place().map_err(|error| explain(to, &error))?;
    Ok(lines)
}

/// Writes the lines. Each is in the file as soon as its pair is matched.
pub struct LinesRecorder {
    name: String,
    stream: StreamInfo,
    line: Line,
    output: Output<LinesFile>,
    first: Option<Duration>,
    failed: bool,
}

impl LinesRecorder {
    pub fn create(place: Place, stream: &StreamInfo, line: Line) -> Result<Self> {
        let name = format!("lines {}", place.path().display());
        let output = Output::create(&place, (), stream.clock)?;
        Ok(Self { name, stream: *stream, line, output, first: None, failed: false })
    }

    fn write(&mut self, frame: &Matched) -> Result<()> {
        let time = frame.pair.timestamp;
        let stamp = messages::stamp(self.stream.clock, time);
        let Some(mut line) = (self.line)(frame, stamp) else { return Ok(()) };
        line.push('\n');
        let output = &mut self.output;
        let first = *self.first.get_or_insert_with(|| {
            output.set_origin(time);
            time
        });
        output.write(time.saturating_sub(first), &line, line.len() as u64)
    }
}

impl Sink for LinesRecorder {
    fn name(&self) -> &str {
        &self.name
    }

    fn consume(&mut self, frame: &Arc<Matched>) -> Result<()> {
        self.write(frame).inspect_err(|_| self.failed = true)
    }

    fn finish(&mut self) -> Result<()> {
        self.output.finish(self.failed)
    }
}
