//! MCAP files. A finished one is read by its index, in order of log time; one without an index, as a killed
//! recorder leaves it, from its start in the order of the file.

use std::collections::HashMap;
use std::fs::File;
use std::io::{BufReader, ErrorKind, Read, Seek, SeekFrom};
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use mcap::records::{ChunkIndex, op};
use mcap::sans_io::indexed_reader::{IndexedReadEvent, IndexedReader, IndexedReaderOptions};
use mcap::sans_io::linear_reader::{LinearReadEvent, LinearReader, LinearReaderOptions};
use mcap::sans_io::summary_reader::{SummaryReadEvent, SummaryReader, SummaryReaderOptions};
use mcap::sans_io::{MessageReadEvent, MessageReader};
use mcap::{Channel, McapError, Summary};

use super::interface::{Encoding, Lost, Message, Reader, TOPICS_MAX, Topic, check_length, longest};
use super::svo;
use crate::core::{reading, thread};

/// Bytes of a record before its content: opcode and length.
const RECORD: u64 = 1 + 8;

/// Bytes of a message's record before its data: channel, sequence and two times.
const MESSAGE_HEADER: usize = 2 + 4 + 8 + 8;

/// Opcode of a record of private use, which readers pass over.
const PRIVATE: u8 = 0x80;

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
    /// Chunks by the offset at which the reader of the library asks for them.
    chunks: HashMap<u64, ChunkIndex>,
    /// Decompressed records of a chunk.
    records: Vec<u8>,
    lost: Vec<Lost>,
    /// True if a file without an index ends within a chunk, whose messages are read nevertheless. Otherwise no
    /// message is read before all of its chunk was checked.
    ends_in_chunk: bool,
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
        chunks: HashMap::new(),
        records: Vec::new(),
        lost: Vec::new(),
        ends_in_chunk: false,
        read: 0,
        is_finished,
        cut: None,
    };
    match opened.summary.take() {
        Some(mut summary) => {
            let mut channels: Vec<_> = summary.channels.values().cloned().collect();
            channels.sort_by_key(|channel| channel.id);
            for channel in channels {
                let counts = summary.stats.as_ref().map(|stats| &stats.channel_message_counts);
                let count = counts.map(|counts| counts.get(&channel.id).copied().unwrap_or(0));
                opened.add(&channel, count)?;
            }
            opened.chunks = chunks(&mut summary)?;
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

/// Describes the chunks of a file as uncompressed, because version 0.26 does not compare the checksums of those
/// that it decompresses itself. Returns the chunks as they are, by the offset at which the library asks for them.
fn chunks(summary: &mut Summary) -> Result<HashMap<u64, ChunkIndex>> {
    summary.chunk_indexes.retain(|chunk| chunk.uncompressed_size >= RECORD);
    let of = |chunk: &mut ChunkIndex| {
        let own = chunk.clone();
        chunk.compression.clear();
        chunk.compressed_size = chunk.uncompressed_size;
        Ok((chunk.compressed_data_offset().map_err(explain)?, own))
    };
    summary.chunk_indexes.iter_mut().map(of).collect()
}

/// Reads and decompresses the records of a chunk. Returns its damage, if there is any.
fn read_chunk(
    file: &mut BufReader<File>,
    chunk: &ChunkIndex,
    records: &mut Vec<u8>,
) -> Result<Option<String>> {
    check_length("a chunk of the file", chunk.chunk_length.max(chunk.uncompressed_size))?;
    let (length, size) =
        (usize::try_from(chunk.chunk_length)?, usize::try_from(chunk.uncompressed_size)?);
    let options = LinearReaderOptions::default()
        .with_skip_start_magic(true)
        .with_skip_end_magic(true)
        .with_prevalidate_chunk_crcs(true)
        .with_record_length_limit(limit());
    let mut reader = LinearReader::new_with_options(options);
    file.seek(SeekFrom::Start(chunk.chunk_start_offset))?;
    match file.read_exact(reader.insert(length)) {
        Err(error) if error.kind() == ErrorKind::UnexpectedEof => {
            return Ok(Some("it lies beyond the end of the file".to_owned()));
        }
        read => read?,
    }
    reader.notify_read(length);
    records.clear();
    records.try_reserve(size)?;
    while let Some(event) = guarded(|| reader.next_event()) {
        match event {
            // Nothing follows.
            Ok(LinearReadEvent::ReadRequest(_)) => reader.notify_read(0),
            Ok(LinearReadEvent::Record { opcode, data })
                if records.len() + data.len() < size
                    && (opcode != op::MESSAGE || data.len() >= MESSAGE_HEADER) =>
            {
                records.push(opcode);
                records.extend_from_slice(&(data.len() as u64).to_le_bytes());
                records.extend_from_slice(data);
            }
            Ok(LinearReadEvent::Record { .. }) => {
                return Ok(Some("its records are malformed".to_owned()));
            }
            Err(McapError::UnsupportedCompression(name)) if name == chunk.compression => {
                return Err(explain(McapError::UnsupportedCompression(name)));
            }
            Err(error) => return Ok(Some(error.to_string())),
        }
    }
    let differs = || "its length differs from that in the index".to_owned();
    Ok((records.len() != size).then(differs))
}

/// Counts the messages of each channel in a chunk by the indices behind it.
fn counts(file: &mut BufReader<File>, chunk: &ChunkIndex) -> Vec<(u16, u64)> {
    let count = |(&channel, &offset): (&u16, &u64)| {
        // Opcode, length, channel, length of the entries.
        let mut head = [0; 15];
        file.seek(SeekFrom::Start(offset)).and_then(|_| file.read_exact(&mut head)).ok()?;
        let [opcode, a, b, c, d, e, f, g, h, low, high, entries @ ..] = head;
        let entries = u64::from(u32::from_le_bytes(entries));
        let is_index = opcode == op::MESSAGE_INDEX
            && u64::from_le_bytes([a, b, c, d, e, f, g, h]) == entries + 6
            && u16::from_le_bytes([low, high]) == channel;
        is_index.then_some((channel, entries / 16))
    };
    chunk.message_index_offsets.iter().filter_map(count).collect()
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
        let mut counts: HashMap<u16, (Arc<Channel<'static>>, u64)> = HashMap::new();
        loop {
            let was_known = self.ends_in_chunk;
            self.begin(&[])?;
            while let Some(message) = self.next_from_start()? {
                let channel = message.channel;
                counts.entry(channel.id).or_insert((channel, 0)).1 += 1;
            }
            if self.ends_in_chunk == was_known {
                break;
            }
            counts.clear();
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
                            self.ends_in_chunk = true;
                            "it was cut off there".to_owned()
                        }
                        McapError::BadChunkCrc { .. } => {
                            format!("the next chunk is damaged ({error})")
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
        self.lost.clear();
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
                    .with_validate_chunk_crcs(true)
                    .with_prevalidate_chunk_crcs(!self.ends_in_chunk)
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
                IndexedReadEvent::ReadChunkRequest { offset, .. } => {
                    let chunk = self.chunks.get(&offset).context("the index names no chunk")?;
                    if let Some(flaw) = read_chunk(&mut self.file, chunk, &mut self.records)? {
                        let topic = |(channel, count): (u16, u64)| {
                            Some((*self.numbers.get(&channel)?, count))
                        };
                        let messages = counts(&mut self.file, chunk).into_iter().filter_map(topic);
                        let messages: Vec<_> =
                            messages.filter(|(topic, _)| self.wanted.contains(topic)).collect();
                        let count = match messages.iter().map(|(_, count)| count).sum::<u64>() {
                            // The chunk has no indices.
                            0 => "all".to_owned(),
                            count => count.to_string(),
                        };
                        let [start, end] = [chunk.message_start_time, chunk.message_end_time]
                            .map(|ns| ns as f64 * 1e-9);
                        let what = format!(
                            "the chunk at byte {} (log time {start:.3} to {end:.3} s) is damaged: {flaw}; {count} \
                             of its messages are left out",
                            chunk.chunk_start_offset
                        );
                        self.lost.push(Lost { what, messages });
                        // The reader of the library cannot pass over a chunk, but over a record.
                        let size = usize::try_from(chunk.uncompressed_size)?;
                        self.records.clear();
                        self.records.resize(size, 0);
                        self.records[0] = PRIVATE;
                        let length = chunk.uncompressed_size - RECORD;
                        self.records[1..RECORD as usize].copy_from_slice(&length.to_le_bytes());
                    }
                    reader.insert_chunk_record_data(offset, &self.records).map_err(explain)?;
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

    fn lost(&mut self) -> Vec<Lost> {
        std::mem::take(&mut self.lost)
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
        read_and_lose(content).map(|(seen, is_cut, _)| (seen, is_cut))
    }

    /// Returns the lost parts as well.
    fn read_and_lose(content: &[u8]) -> Result<(Vec<u8>, bool, Vec<Lost>)> {
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
        Ok((seen, reader.cut().is_some(), reader.lost()))
    }

    /// Returns the place of the content of the second chunk with messages; the first chunk has the channels.
    fn second_chunk(content: &[u8]) -> usize {
        let summary = Summary::read(content).unwrap().unwrap();
        let mut starts: Vec<_> =
            summary.chunk_indexes.iter().map(|c| c.compressed_data_offset().unwrap()).collect();
        starts.sort_unstable();
        starts[2] as usize
    }

    #[test]
    fn a_damaged_chunk_is_left_out_and_counted() {
        for compression in [None, Some(mcap::Compression::Zstd)] {
            let is_plain = compression.is_none();
            let whole = file(compression);
            let at = second_chunk(&whole);
            for place in [at + 20, at + 30] {
                let mut content = whole.clone();
                content[place] ^= 0x10;
                let (seen, is_cut, lost) = read_and_lose(&content).unwrap();
                // The file has two messages in a chunk: 4 and 5, 6 and 1, 2 and 3.
                assert_eq!((seen, is_cut), (vec![2, 3, 4, 5], false), "{is_plain}");
                assert_eq!(lost.len(), 1);
                assert_eq!(lost[0].messages, [(0, 1), (1, 1)]);
                assert!(lost[0].what.contains("; 2 of its messages are left out"), "{lost:?}");
                // Without the index the file ends before the chunk.
                let end = content.len() - mcap::MAGIC.len() - 1;
                let (seen, is_cut, _) = read_and_lose(&content[..end]).unwrap();
                assert_eq!((seen, is_cut), (vec![4, 5], true), "{is_plain}");
            }
        }
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
