//! MCAP files. A finished one is read by its index, in order of log time; one without an index, as a killed
//! recorder leaves it, from its start in the order of the file.

use std::collections::HashMap;
use std::fs::File;
use std::io::{BufReader, Read, Seek, SeekFrom};
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use mcap::sans_io::indexed_reader::{IndexedReadEvent, IndexedReader, IndexedReaderOptions};
use mcap::sans_io::linear_reader::LinearReaderOptions;
use mcap::sans_io::summary_reader::{SummaryReadEvent, SummaryReader, SummaryReaderOptions};
use mcap::sans_io::{MessageReadEvent, MessageReader};
use mcap::{Channel, McapError, Summary};

use super::interface::{
    Encoding, Message, Reader, TOPICS_MAX, Topic, check_length, longest, resize,
};
use super::svo;
use crate::core::{reading, thread};

/// An MCAP file.
struct McapFile {
    file: BufReader<File>,
    /// Its index; `None` for an unfinished file, or one without chunks.
    summary: Option<Summary>,
    topics: Vec<Topic>,
    /// Topics of the channels.
    numbers: HashMap<u16, usize>,
    /// Topics that are wanted.
    wanted: Vec<usize>,
    reading: Option<Reading>,
    /// Compressed bytes of a chunk.
    chunk: Vec<u8>,
    /// Messages read without the index.
    read: u64,
    /// False if a recorder did not finish the file.
    is_finished: bool,
    cut: Option<String>,
}

/// A pass over the file.
enum Reading {
    ByIndex(Box<IndexedReader>),
    FromStart(Box<MessageReader>),
}

/// Opens a file and finds its topics. Reports also whether it is ZED's `.svo2`.
pub(super) fn open(path: &Path) -> Result<(Box<dyn Reader>, bool)> {
    let mut file = BufReader::with_capacity(1 << 20, reading::open(path)?);
    // Without an index, or with a damaged one, the file is read from its start.
    let summary = summary(&mut file).ok().flatten().filter(is_complete);
    let mut end = [0; mcap::MAGIC.len()];
    let length = file.get_ref().metadata()?.len();
    // The same bytes begin the file.
    let is_finished = length > end.len() as u64
        && file
            .seek(SeekFrom::End(-(end.len() as i64)))
            .and_then(|_| file.read_exact(&mut end))
            .is_ok_and(|()| end == mcap::MAGIC);
    let mut opened = McapFile {
        file,
        summary,
        topics: Vec::new(),
        numbers: HashMap::new(),
        wanted: Vec::new(),
        reading: None,
        chunk: Vec::new(),
        read: 0,
        is_finished,
        cut: None,
    };
    match opened.summary.take() {
        Some(summary) => {
            let mut channels: Vec<_> = summary.channels.values().cloned().collect();
            channels.sort_by_key(|channel| channel.id);
            for channel in channels {
                let counts = summary.stats.as_ref().map(|stats| &stats.channel_message_counts);
                let count = counts.map(|counts| counts.get(&channel.id).copied().unwrap_or(0));
                opened.add(&channel, count)?;
            }
            opened.summary = Some(summary);
        }
        None => opened.find_topics()?,
    }
    let is_svo = svo::mark(&mut opened.topics);
    Ok((Box::new(opened), is_svo))
}

/// Reports whether the index lists all messages, and little enough is to be held at once.
fn is_complete(summary: &Summary) -> bool {
    let has_messages = summary.stats.as_ref().is_none_or(|stats| stats.message_count > 0);
    if summary.channels.is_empty() || has_messages && summary.chunk_indexes.is_empty() {
        return false;
    }
    // Chunks that overlap in time are held together: a sweep over their starts and ends.
    let mut ends: Vec<(u64, bool, u64)> = Vec::new();
    for chunk in &summary.chunk_indexes {
        ends.push((chunk.message_start_time, false, chunk.uncompressed_size));
        ends.push((chunk.message_end_time.saturating_add(1), true, chunk.uncompressed_size));
    }
    ends.sort_unstable();
    let (mut held, mut most) = (0_u64, 0);
    for (_, is_end, bytes) in ends {
        held = if is_end { held.saturating_sub(bytes) } else { held.saturating_add(bytes) };
        most = most.max(held);
    }
    most <= longest()
}

/// Reads the index at the end of the file.
fn summary(file: &mut BufReader<File>) -> Result<Option<Summary>> {
    let length = file.get_ref().metadata()?.len();
    let options =
        SummaryReaderOptions::default().with_file_size(length).with_record_length_limit(limit());
    let mut reader = SummaryReader::new_with_options(options);
    while let Some(event) = guarded(|| reader.next_event()) {
        match event? {
            SummaryReadEvent::ReadRequest(need) => {
                check_length("the index of the file", need as u64)?;
                let read = file.read(reader.insert(need))?;
                reader.notify_read(read);
            }
            SummaryReadEvent::SeekRequest(to) => {
                let position = file.seek(to)?;
                reader.notify_seeked(position);
            }
        }
    }
    Ok(reader.finish())
}

fn limit() -> usize {
    usize::try_from(longest()).unwrap_or(usize::MAX)
}

/// Returns what a reader of the library does next. Version 0.26 subtracts the lengths that a damaged
/// record states without checking them; a panic of it is the end of the chunk.
fn guarded<E>(next: impl FnOnce() -> Option<Result<E, McapError>>) -> Option<Result<E, McapError>> {
    thread::guarded("the reader of MCAP files", next).unwrap_or(Some(Err(McapError::UnexpectedEoc)))
}

/// Explains an error of the library.
fn explain(error: McapError) -> anyhow::Error {
    match error {
        McapError::ChunkTooLarge(bytes) | McapError::RecordTooLarge { len: bytes, .. } => {
            match check_length("a chunk of the file", bytes) {
                Err(too_much) => too_much.into(),
                Ok(()) => anyhow::anyhow!(
                    "a chunk of the file takes more than a quarter of the memory budget decompressed; a larger [engine] \
                     memory_mib reads it"
                ),
            }
        }
        McapError::UnsupportedCompression(name) if name == "lz4" && !cfg!(feature = "bags") => {
            anyhow::anyhow!("LZ4 is read only by a program with the feature `bags`")
        }
        other => other.into(),
    }
}

impl McapFile {
    /// Adds a channel, which shares a topic with others of the same name and type.
    fn add(&mut self, channel: &Arc<Channel<'static>>, count: Option<u64>) -> Result<()> {
        let kind = channel.schema.as_ref().map_or("", |schema| &*schema.name);
        let encoding = Encoding::of(&channel.message_encoding);
        let topic = Topic::new(&channel.topic, kind, encoding, count);
        let same = |other: &Topic| Topic { messages: count, ..other.clone() } == topic;
        let number = self.topics.iter().position(same);
        if let Some(known) = number {
            let known = &mut self.topics[known];
            known.messages = known.messages.zip(count).map(|(a, b)| a + b);
        } else {
            self.topics.push(topic);
            ensure!(self.topics.len() <= TOPICS_MAX, "the file has more than {TOPICS_MAX} topics");
        }
        self.numbers.insert(channel.id, number.unwrap_or(self.topics.len() - 1));
        Ok(())
    }

    /// Reads the whole file for its topics and their counts.
    fn find_topics(&mut self) -> Result<()> {
        self.begin(&[])?;
        let mut counts: HashMap<u16, (Arc<Channel<'static>>, u64)> = HashMap::new();
        while let Some(message) = self.next_from_start()? {
            let channel = message.channel;
            counts.entry(channel.id).or_insert((channel, 0)).1 += 1;
        }
        let mut found: Vec<_> = counts.into_values().collect();
        found.sort_by_key(|(channel, _)| channel.id);
        for (channel, count) in found {
            self.add(&channel, Some(count))?;
        }
        Ok(())
    }

    /// Reads the next message of any topic without the index; `None` at the end, or where the file was cut off.
    fn next_from_start(&mut self) -> Result<Option<mcap::Message<'static>>> {
        let Some(Reading::FromStart(reader)) = &mut self.reading else { return Ok(None) };
        loop {
            match guarded(|| reader.next_event()) {
                None => return Ok(None),
                Some(Ok(MessageReadEvent::ReadRequest(need))) => {
                    check_length("a part of the file", need as u64)?;
                    let read = self.file.read(reader.insert(need))?;
                    reader.notify_read(read);
                }
                Some(Ok(MessageReadEvent::Message(message))) => {
                    self.read += 1;
                    return Ok(Some(message));
                }
                Some(Err(
                    error @ (McapError::ChunkTooLarge(_)
                    | McapError::RecordTooLarge { .. }
                    | McapError::UnsupportedCompression(_)),
                )) => return Err(explain(error)),
                Some(Err(error)) => {
                    let what = match error {
                        McapError::UnexpectedEof | McapError::UnexpectedEoc => {
                            "it was cut off there".to_owned()
                        }
                        other => format!("{other}"),
                    };
                    self.cut = Some(format!("it ends after {} messages: {what}", self.read));
                    return Ok(None);
                }
            }
        }
    }
}

impl Reader for McapFile {
    fn topics(&self) -> &[Topic] {
        &self.topics
    }

    fn begin(&mut self, topics: &[usize]) -> Result<()> {
        self.wanted = topics.to_vec();
        self.file.seek(SeekFrom::Start(0))?;
        (self.read, self.cut) = (0, None);
        self.reading = Some(match &self.summary {
            Some(summary) => {
                let names = topics.iter().map(|&topic| self.topics[topic].name.clone());
                let options = IndexedReaderOptions::new()
                    .include_topics(names)
                    .with_record_length_limit(limit());
                let reader = IndexedReader::new_with_options(summary, options).map_err(explain)?;
                Reading::ByIndex(Box::new(reader))
            }
            None => {
                let options = LinearReaderOptions::default()
                    // The end is of no use without an index.
                    .with_skip_end_magic(true)
                    .with_record_length_limit(limit());
                Reading::FromStart(Box::new(MessageReader::new_with_options(options)))
            }
        });
        Ok(())
    }

    fn next(&mut self, message: &mut Message) -> Result<bool> {
        if let Some(Reading::FromStart(_)) = &self.reading {
            while let Some(found) = self.next_from_start()? {
                let Some(&topic) = self.numbers.get(&found.channel.id) else { continue };
                if self.wanted.contains(&topic) {
                    *message =
                        Message { topic, log_ns: found.log_time, data: found.data.into_owned() };
                    return Ok(true);
                }
            }
            return Ok(false);
        }
        let Some(Reading::ByIndex(reader)) = &mut self.reading else { return Ok(false) };
        while let Some(event) = guarded(|| reader.next_event()) {
            match event.map_err(explain)? {
                IndexedReadEvent::ReadChunkRequest { offset, length } => {
                    check_length("a chunk of the file", length as u64)?;
                    resize(&mut self.chunk, length)?;
                    self.file.seek(SeekFrom::Start(offset))?;
                    let read = self.file.read_exact(&mut self.chunk);
                    read.context("a chunk of the index lies beyond the end of the file")?;
                    reader.insert_chunk_record_data(offset, &self.chunk).map_err(explain)?;
                }
                IndexedReadEvent::Message { header, data } => {
                    let Some(&topic) = self.numbers.get(&header.channel_id) else { continue };
                    if self.wanted.contains(&topic) {
                        (message.topic, message.log_ns) = (topic, header.log_time);
                        message.data.clear();
                        message.data.extend_from_slice(data);
                        return Ok(true);
                    }
                }
            }
        }
        Ok(false)
    }

    fn cut(&self) -> Option<String> {
        let unfinished = || "it is unfinished, without an index".to_owned();
        self.cut.clone().or_else(|| (!self.is_finished).then(unfinished))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use mcap::WriteOptions;
    use mcap::records::MessageHeader;
    use proptest::prelude::*;

    use super::*;

    /// Returns a file with six messages of two topics, in small chunks and in the wrong order.
    fn file(compression: Option<mcap::Compression>) -> Vec<u8> {
        let mut content = std::io::Cursor::new(Vec::new());
        let options = WriteOptions::new().chunk_size(Some(100)).compression(compression);
        let mut writer = options.create(&mut content).unwrap();
        let channels = ["/a", "/b"].map(|topic| {
            let schema = writer.add_schema("sensor_msgs/msg/Image", "ros2msg", b"").unwrap();
            writer.add_channel(schema, topic, "cdr", &BTreeMap::new()).unwrap()
        });
        for number in 0..6_u64 {
            let time = [4, 5, 6, 1, 2, 3][number as usize];
            let channel_id = channels[number as usize % 2];
            let header =
                MessageHeader { channel_id, sequence: 0, log_time: time, publish_time: time };
            writer.write_to_known_channel(&header, &[time as u8; 40]).unwrap();
        }
        writer.finish().unwrap();
        drop(writer);
        content.into_inner()
    }

    /// Returns the first byte of every message, and whether the file was cut off.
    fn read(content: &[u8]) -> Result<(Vec<u8>, bool)> {
        let folder = tempfile::tempdir()?;
        let path = folder.path().join("a.mcap");
        std::fs::write(&path, content)?;
        let (mut reader, _) = open(&path)?;
        let all: Vec<usize> = (0..reader.topics().len()).collect();
        reader.begin(&all)?;
        let (mut message, mut seen) = (Message::default(), Vec::new());
        while reader.next(&mut message)? {
            seen.extend(message.data.first());
        }
        Ok((seen, reader.cut().is_some()))
    }

    #[test]
    fn a_finished_file_is_read_in_order_of_time_and_a_cut_one_in_its_own() {
        let content = file(Some(mcap::Compression::Zstd));
        assert_eq!(read(&content).unwrap(), (vec![1, 2, 3, 4, 5, 6], false));
        let mut counts = Vec::new();
        for length in 8..content.len() {
            let (seen, is_cut) = read(&content[..length]).unwrap();
            assert_eq!(seen, [4, 5, 6, 1, 2, 3][..seen.len()], "{length} bytes");
            assert!(is_cut, "{length} bytes");
            counts.push(seen.len());
        }
        assert!(counts.is_sorted() && counts[0] == 0 && counts.last() == Some(&6), "{counts:?}");
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]
        #[test]
        fn damage_is_an_error_at_worst(
            places in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
            is_plain: bool,
        ) {
            let mut content = file((!is_plain).then_some(mcap::Compression::Zstd));
            for (place, byte) in places {
                let at = place.index(content.len());
                content[at] = byte;
            }
            let _ = read(&content);
        }
    }
}
