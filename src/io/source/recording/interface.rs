//! The interface of all recordings: topics, then messages in order of log time.

use std::fmt;

use anyhow::Result;

use crate::control::Switch;
use stereod_core::memory::{Budget, Size, TooMuch};

/// Part of the memory budget that one message or chunk may take.
pub(super) const PART: u64 = 4;

pub(super) const TOPICS_MAX: usize = 10_000;

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Encoding {
    Cdr,
    Ros1,
    /// The message is an image file.
    File,
    Protobuf,
    /// Frames of ZED's side-by-side video (.svo2).
    Svo,
    Other(String),
}

impl Encoding {
    pub(super) fn of(name: &str) -> Self {
        match name {
            "cdr" => Self::Cdr,
            "ros1" => Self::Ros1,
            "protobuf" => Self::Protobuf,
            other => Self::Other(other.to_owned()),
        }
    }
}

impl fmt::Display for Encoding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Cdr => "cdr",
            Self::Ros1 => "ros1",
            Self::File => "file",
            Self::Protobuf => "protobuf",
            Self::Svo => "svo2",
            Self::Other(name) => name,
        })
    }
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Topic {
    /// Name, such as `/camera/left/image_raw`.
    pub name: String,
    /// Type of its messages, such as `sensor_msgs/Image`.
    pub kind: String,
    pub encoding: Encoding,
    pub messages: Option<u64>,
}

impl Topic {
    /// Describes a topic. ROS 2 has `/msg/` in the names of types, or `::msg::` in OMG IDL.
    pub fn new(name: &str, kind: &str, encoding: Encoding, messages: Option<u64>) -> Self {
        let kind = kind.replacen("::msg::", "/", 1).replacen("/msg/", "/", 1);
        Self { name: name.to_owned(), kind, encoding, messages }
    }
}

/// Adds a topic to a list, or its messages to the same topic in it. Returns its number.
pub(super) fn add_topic(topics: &mut Vec<Topic>, topic: Topic) -> usize {
    let same = |other: &Topic| {
        (&other.name, &other.kind, &other.encoding) == (&topic.name, &topic.kind, &topic.encoding)
    };
    let Some(number) = topics.iter().position(same) else {
        topics.push(topic);
        return topics.len() - 1;
    };
    let known = &mut topics[number].messages;
    *known = known.zip(topic.messages).map(|(a, b)| a + b);
    number
}

#[derive(Clone, Debug, Default)]
pub struct Message {
    pub topic: usize,
    /// Time of recording in nanoseconds.
    pub log_ns: u64,
    pub data: Vec<u8>,
}

/// A damaged part of a recording, which its reader left out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lost {
    pub what: String,
    /// Number of lost messages of topics; 1 if it is not known.
    pub messages: Vec<(usize, u64)>,
}

pub trait Reader: Send {
    fn topics(&self) -> &[Topic];

    /// Starts from the beginning, with the messages of these topics only.
    fn begin(&mut self, topics: &[usize]) -> Result<()>;

    /// Reads the next message into `message`, in order of log time; false at the end.
    fn next(&mut self, message: &mut Message) -> Result<bool>;

    /// Makes a source that is live go on until `stop` is set, and reports whether it is live. Without this
    /// call its messages end after a few seconds.
    fn live(&mut self, _stop: &Switch) -> bool {
        false
    }

    /// Returns the parts that were left out since the last call.
    fn lost(&mut self) -> Vec<Lost> {
        Vec::new()
    }

    /// Returns the reason why the recording ended before its end, if it did.
    fn cut(&self) -> Option<String> {
        None
    }
}

/// Returns the largest length of a message or chunk in bytes.
pub(super) fn longest() -> u64 {
    Budget::of_process().left() / PART
}

/// Checks the length of a message or chunk that is about to be read. Decompressing and decoding it take more
/// memory than that.
pub fn check_length(what: &str, bytes: u64) -> Result<(), TooMuch> {
    let what = format!("reading {what} of {}", Size(bytes));
    Budget::of_process().check(what, bytes.saturating_mul(PART), "a smaller recording")
}

pub(super) fn resize(buffer: &mut Vec<u8>, bytes: usize) -> Result<()> {
    buffer.clear();
    stereod_core::memory::grow(buffer, bytes, 0)?;
    Ok(())
}
