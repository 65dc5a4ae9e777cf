//! An MCAP file (mcap.dev/spec) with the profile `ros2`, for appending pairs.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io::{self, Seek, SeekFrom, Write};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use mcap::records::{MessageHeader, Metadata};
use mcap::write::NoSeek;
use mcap::{Attachment, WriteOptions, Writer};

use crate::sink::messages::{Topic, definition, full_name};
use crate::sink::output::Container;
use stereod_core::files::new_file::NewFile;
use stereod_core::thread::locked;

pub(super) struct Header {
    /// The topics, in the order of a pair's messages.
    pub(super) topics: Vec<&'static Topic>,
    /// Names and values that describe the run, from the capture time of the file's first pair.
    pub(super) metadata: Box<dyn Fn(Duration) -> BTreeMap<String, String> + Send>,
    pub(super) attachments: Vec<(String, Vec<u8>)>,
}

#[derive(Clone, Copy)]
pub(super) struct Messages<'a> {
    /// Time of the capture since 1970.
    pub(super) stamp: Duration,
    pub(super) sequence: u64,
    /// By topic; `None` if the pair has no message of it.
    pub(super) encoded: &'a [Option<Vec<u8>>],
    /// Whether messages that are seldom sent differ from those before.
    pub(super) has_moved: bool,
}

#[derive(Clone, Default)]
struct Made(Arc<Mutex<Vec<u8>>>);

impl Write for Made {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        locked(&self.0).extend(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A file being written. The crate's encoder writes to memory, and a pair goes to the file once it is
/// encoded, so that a full disk leaves whole pairs behind and can be tried again.
pub(super) struct McapFile {
    file: NewFile,
    encoder: Writer<NoSeek<Made>>,
    /// The channel of each topic, and whether its messages are seldom sent.
    channels: Vec<(u16, bool)>,
    made: Made,
    /// Set if the bytes of the present pair are made and wait for room in the file.
    is_waiting: bool,
    length: u64,
    frames: u64,
    is_finished: bool,
}

impl McapFile {
    fn write_made(&mut self) -> io::Result<()> {
        let mut made = locked(&self.made.0);
        self.file.write_all(&made)?;
        self.length += made.len() as u64;
        made.clear();
        self.is_waiting = false;
        Ok(())
    }
}

pub(super) fn options() -> WriteOptions {
    WriteOptions::new()
        .profile("ros2")
        .library(concat!("stereod ", env!("CARGO_PKG_VERSION")))
        // The index of the chunks stays in memory until the end: a pair has one, or a few if large.
        .chunk_size(Some(4 << 20))
        // Compressed by the thread of this output alone; others match meanwhile.
        .compression_threads(0)
        .disable_seeking(true)
}

impl Container for McapFile {
    type Header = Header;
    type Frame<'a> = Messages<'a>;

    fn create(
        file: NewFile,
        header: &Header,
        frame: Messages<'_>,
        origin: Duration,
        _: Option<SystemTime>,
    ) -> io::Result<Self> {
        let made = Made::default();
        let mut encoder = options().create(NoSeek::new(made.clone())).map_err(io::Error::other)?;
        for (name, metadata) in [("stereod", (header.metadata)(origin)), ("rosbag2", of_rosbag2())]
        {
            let metadata = Metadata { name: name.into(), metadata };
            encoder.write_metadata(&metadata).map_err(io::Error::other)?;
        }
        let time = nanoseconds(frame.stamp);
        for (name, data) in &header.attachments {
            let attachment = Attachment {
                log_time: time,
                create_time: time,
                name: name.clone(),
                media_type: "application/octet-stream".into(),
                data: Cow::Borrowed(data),
            };
            encoder.attach(&attachment).map_err(io::Error::other)?;
        }
        let mut channels = Vec::new();
        for topic in &header.topics {
            let (name, text) = (full_name(topic.schema), definition(topic.schema));
            let schema = encoder.add_schema(&name, "ros2msg", text.as_bytes());
            let channel = schema.and_then(|schema| {
                encoder.add_channel(schema, topic.path, "cdr", &quality(topic.is_kept()))
            });
            channels.push((channel.map_err(io::Error::other)?, topic.is_static()));
        }
        let (length, frames) = (0, 0);
        let (is_waiting, is_finished) = (false, false);
        Ok(Self { file, encoder, channels, made, is_waiting, length, frames, is_finished })
    }

    fn append(&mut self, _: Duration, frame: Messages<'_>) -> io::Result<()> {
        if !self.is_waiting {
            let (sequence, time) = (frame.sequence as u32, nanoseconds(frame.stamp));
            for (&(channel_id, is_static), data) in self.channels.iter().zip(frame.encoded) {
                let Some(data) = data else { continue };
                let header =
                    MessageHeader { channel_id, sequence, log_time: time, publish_time: time };
                if !is_static || self.frames == 0 || frame.has_moved {
                    let written = self.encoder.write_to_known_channel(&header, data);
                    written.map_err(io::Error::other)?;
                }
            }
            // A chunk ends with the pair, so a killed run leaves whole pairs.
            self.encoder.flush().map_err(io::Error::other)?;
            self.is_waiting = true;
        }
        self.write_made()?;
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
        if !std::mem::replace(&mut self.is_finished, true) {
            self.encoder.finish().map_err(io::Error::other)?;
        }
        // A pair that waits for room is written as well, because the index counts it.
        if self.file.seeks() {
            self.file.seek(SeekFrom::Start(self.length))?;
        }
        let written = self.write_made().and_then(|()| self.file.flush());
        if written.is_err() {
            // Without an index the file is readable to its last whole pair.
            self.file.file().set_len(self.length)?;
        }
        written
    }
}

/// Returns the record that makes rosbag2 (Jazzy and later) read qualities of service as numbers, as Humble
/// and Iron need; without it, it expects names.
fn of_rosbag2() -> BTreeMap<String, String> {
    ["ROS_DISTRO", "serialized_metadata"].map(|key| (key.to_owned(), String::new())).into()
}

/// Returns the quality of service for a topic of `ros2 bag play`, in rosbag2's numbers (rmw/types.h):
/// reliable, and the newest message kept for later subscribers if the next one comes late or never.
fn quality(is_kept: bool) -> BTreeMap<String, String> {
    const TRANSIENT_LOCAL: u8 = 1;
    const VOLATILE: u8 = 2;
    const FOREVER: &str = "{sec: 9223372036, nsec: 854775807}";
    let durability = if is_kept { TRANSIENT_LOCAL } else { VOLATILE };
    let profile = format!(
        "- history: 1\n  depth: 10\n  reliability: 1\n  durability: {durability}\n  deadline: {FOREVER}\n  \
         lifespan: {FOREVER}\n  liveliness: 1\n  liveliness_lease_duration: {FOREVER}\n  \
         avoid_ros_namespace_conventions: false\n"
    );
    [("offered_qos_profiles".to_owned(), profile)].into()
}

fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}
