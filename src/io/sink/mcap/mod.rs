//! Recordings in MCAP files, as robots and their viewers have them: the messages of every pair as ROS 2
//! writes them, compressed by zstd.

mod file;
mod join;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use file::{Header, McapFile, Messages};
pub use join::join_files;

use super::output::Output;
use super::segments::Place;
use super::video::run_tags;
use super::{Sink, StreamInfo, check_same_size};
use crate::sink::messages::{Heading, Placed, Topic, chosen, placed, stamp};
use stereod_core::files;
use stereod_core::frame::Matched;

/// Default topics of a file, as far as the cameras are known, obstacles are found and the motion is followed.
const DEFAULT: &str = "left, disparity, disparity-jpeg, depth, verdicts, scan, obstacles, odometry";

pub fn is_name(path: &Path) -> bool {
    files::extension(path) == "mcap"
}

#[derive(Clone, Debug, Default)]
pub struct McapOptions {
    /// Names of the topics, separated by commas; empty for the default.
    pub topics: String,
    /// Names and contents of the calibration files, which are attached. They are read once, because
    /// a later segment must not depend on them.
    pub calibration: Vec<(String, Vec<u8>)>,
    /// Text before the names of coordinate frames.
    pub prefix: String,
}

/// Records the messages of every pair. Each pair is a chunk of its own or several, at once in the file.
pub struct McapRecorder {
    name: String,
    path: PathBuf,
    stream: StreamInfo,
    topics: Vec<&'static Topic>,
    prefix: String,
    output: Output<McapFile>,
    first: Option<Duration>,
    /// Of the pair before.
    placed: Option<Placed>,
    failed: bool,
}

impl McapRecorder {
    pub fn create(
        place: impl Into<Place>,
        stream: &StreamInfo,
        options: McapOptions,
    ) -> Result<Self> {
        let place = place.into();
        let path = place.path().to_path_buf();
        ensure!(is_name(&path), "cannot record to {}: name it .mcap", path.display());
        let topics = chosen(&options.topics, DEFAULT, stream, &options.prefix)?;
        let attachments = options.calibration;
        let run = *stream;
        let metadata = move |first: Duration| -> BTreeMap<String, String> {
            let tags = run_tags(&run, first).into_iter();
            let version = ("VERSION".to_owned(), env!("CARGO_PKG_VERSION").to_owned());
            tags.map(|(name, value)| (name.to_owned(), value)).chain([version]).collect()
        };
        let header = Header { topics: topics.clone(), metadata: Box::new(metadata), attachments };
        Ok(Self {
            name: format!("recording {}", path.display()),
            path,
            stream: *stream,
            topics,
            prefix: options.prefix,
            output: Output::create(&place, header, stream.clock)?,
            first: None,
            placed: None,
            failed: false,
        })
    }

    fn record(&mut self, frame: &Matched) -> Result<()> {
        let map = &frame.disparity;
        check_same_size(self.stream.size, (map.width(), map.height()))
            .with_context(|| format!("cannot record to {}", self.path.display()))?;
        let time = frame.pair.timestamp;
        let stamp = stamp(self.stream.clock, time);
        let tracks_ground = self.stream.tracks_ground;
        let head = Heading { stamp, prefix: &self.prefix, tracks_ground };
        let is_told = |topic: &Topic| !topic.is_intermittent() || topic.is_in(frame, head);
        let encode = |topic: &&Topic| is_told(topic).then(|| topic.encode(frame, head)).transpose();
        let encoded = self.topics.iter().map(encode).collect::<Result<Vec<_>>>()?;
        let output = &mut self.output;
        let first = *self.first.get_or_insert_with(|| {
            output.set_origin(time);
            time
        });
        let bytes = encoded.iter().flatten().map(|message| message.len() as u64).sum();
        let placed = placed(frame, tracks_ground);
        let has_moved = self.placed.replace(placed).is_some_and(|before| before != placed);
        let sequence = frame.pair.sequence;
        let messages = Messages { stamp, sequence, encoded: &encoded, has_moved };
        output.write(time.saturating_sub(first), messages, bytes)
    }
}

impl Sink for McapRecorder {
    fn name(&self) -> &str {
        &self.name
    }

    fn consume(&mut self, frame: &Arc<Matched>) -> Result<()> {
        self.record(frame).inspect_err(|_| self.failed = true)
    }

    fn finish(&mut self) -> Result<()> {
        self.output.finish(self.failed)
    }
}
