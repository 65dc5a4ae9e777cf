//! MCAP files. A finished one is read by its index, in order of log time; one without an index, as a killed
//! recorder leaves it, or with a damaged one, from its start in the order of the file.

use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::io::{BufRead, BufReader, ErrorKind, Read, Seek, SeekFrom};
use std::ops::Range;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use mcap::records::{ChunkIndex, Record, op};
use mcap::sans_io::indexed_reader::{IndexedReadEvent, IndexedReader, IndexedReaderOptions};
use mcap::sans_io::linear_reader::{LinearReadEvent, LinearReader, LinearReaderOptions};
use mcap::sans_io::summary_reader::{SummaryReadEvent, SummaryReader, SummaryReaderOptions};
use mcap::{McapError, Summary};

use super::interface::{
    Encoding, Lost, Message, Reader, TOPICS_MAX, Topic, check_length, longest, resize,
};
use super::svo;
use crate::core::{reading, thread};

/// Bytes of a record before its content: opcode and length.
const RECORD: u64 = 1 + 8;

/// Bytes of a message's record before its data: channel, sequence and two times.
const MESSAGE_HEADER: usize = 2 + 4 + 8 + 8;

/// Opcode of a record of private use, which readers pass over.
const PRIVATE: u8 = 0x80;

/// Bytes of the footer's record and the magic behind it.
const FOOTER: u64 = RECORD + 8 + 8 + 4 + mcap::MAGIC.len() as u64;

/// Longest name of a compression.
const COMPRESSION_MAX: u32 = 32;

struct McapFile {
    file: BufReader<File>,
    length: u64,
    /// Its index; `None` if there is none that can be used.
    summary: Option<Summary>,
    topics: Vec<Topic>,
    /// Topics of the channels.
    numbers: HashMap<u16, usize>,
    /// Topics that are wanted.
    wanted: Vec<usize>,
    reading: Option<Reading>,
    /// Chunks by the offset that the library's reader requests.
    chunks: HashMap<u64, ChunkIndex>,
    /// Decompressed records of a chunk.
    records: Vec<u8>,
    lost: Vec<Lost>,
    /// Messages of each topic that were read or lost in this pass.
    seen: Vec<u64>,
    /// Reason why the file is not read by its index.
    flaw: Option<String>,
    /// True if messages outside of chunks differ from their checksum.
    is_wrong: bool,
    cut: Option<String>,
}

/// A pass over the file.
enum Reading {
    ByIndex(Box<IndexedReader>),
    FromStart(Walk),
}

/// A pass over the records in the order of the file.
#[derive(Clone, Default)]
struct Walk {
    /// Position of the next record in the file.
    at: u64,
    /// Position of the next of the records that were read.
    inside: usize,
    /// Types of messages by the numbers of their schemas.
    schemas: HashMap<u16, String>,
    channels: HashMap<u16, Topic>,
    /// Messages so far.
    messages: u64,
    /// Malformed records so far.
    malformed: u64,
    /// True if a message is in no chunk.
    has_loose: bool,
}

/// Opens a file and finds its topics. Reports also whether it is ZED's `.svo2`.
pub(super) fn open(path: &Path) -> Result<(Box<dyn Reader>, bool)> {
    let mut file = BufReader::with_capacity(1 << 20, reading::open(path)?);
    let length = file.get_ref().metadata()?.len();
    let (summary, flaw) = match summary(&mut file, length) {
        Ok(Some(summary)) => match incompleteness(&summary) {
            None => (Some(summary), None),
            Some(flaw) => (None, flaw),
        },
        Ok(None) => (None, None),
        Err(error) => (None, Some(format!("its index is damaged ({error:#})"))),
    };
    let mut end = [0; mcap::MAGIC.len()];
    // The same bytes begin the file.
    let is_finished = length > end.len() as u64
        && file
            .seek(SeekFrom::End(-(end.len() as i64)))
            .and_then(|_| file.read_exact(&mut end))
            .is_ok_and(|()| end == mcap::MAGIC);
    let unfinished = || "it is unfinished, without an index".to_owned();
    let flaw = if is_finished { flaw } else { Some(unfinished()) };
    let mut opened = McapFile {
        file,
        length,
        summary,
        topics: Vec::new(),
        numbers: HashMap::new(),
        wanted: Vec::new(),
        reading: None,
        chunks: HashMap::new(),
        records: Vec::new(),
        lost: Vec::new(),
        seen: Vec::new(),
        flaw,
        is_wrong: false,
        cut: None,
    };
    match opened.summary.take() {
        Some(mut summary) => {
            let mut channels: Vec<_> = summary.channels.values().cloned().collect();
            channels.sort_by_key(|channel| channel.id);
            for channel in channels {
                let counts = summary.stats.as_ref().map(|stats| &stats.channel_message_counts);
                // An empty map is none.
                let counts = counts.filter(|counts| !counts.is_empty());
                let count = counts.map(|counts| counts.get(&channel.id).copied().unwrap_or(0));
                let kind = channel.schema.as_ref().map_or("", |schema| &*schema.name);
                let encoding = Encoding::of(&channel.message_encoding);
                opened.add(channel.id, Topic::new(&channel.topic, kind, encoding, count))?;
            }
            opened.chunks = chunks(&mut summary)?;
            opened.summary = Some(summary);
        }
        None => opened.find_topics()?,
    }
    let is_svo = svo::mark(&mut opened.topics);
    Ok((Box::new(opened), is_svo))
}

/// Returns `Some` if the file is to be read without this index: it does not list all messages, or too much would be
/// held at once. The text is the damage, if there is any.
fn incompleteness(summary: &Summary) -> Option<Option<String>> {
    let stats = summary.stats.as_ref();
    let (listed, chunks) = (summary.chunk_indexes.len(), stats.map(|stats| stats.chunk_count));
    // Writers may leave out the index of chunks as a whole.
    if let Some(chunks) = chunks.filter(|chunks| *chunks as usize != listed && listed > 0) {
        return Some(Some(format!("its index lists {listed} of {chunks} chunks")));
    }
    let has_messages = stats.is_none_or(|stats| stats.message_count > 0);
    if summary.channels.is_empty() || has_messages && listed == 0 {
        return Some(None);
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
    (most > longest()).then_some(None)
}

/// Checks the checksum of the index, if it has one.
fn check_summary(file: &mut BufReader<File>, length: u64) -> Result<()> {
    let footer = length.checked_sub(FOOTER).context("the file is too short")?;
    // The start of the index and of its own index, and the checksum.
    let mut numbers = [0; 20];
    file.seek(SeekFrom::Start(footer + RECORD))?;
    file.read_exact(&mut numbers)?;
    let [start @ .., _, _, _, _, _, _, _, _, a, b, c, d] = numbers;
    let (start, stated) = (u64::from_le_bytes(start), u32::from_le_bytes([a, b, c, d]));
    if start == 0 || stated == 0 {
        return Ok(());
    }
    // All up to the checksum itself.
    let bytes = (footer + RECORD + 16).checked_sub(start).context("it begins behind its end")?;
    ensure!(checksum(file, start, bytes)? == stated, "its checksum differs");
    Ok(())
}

/// Returns the checksum of a part of the file.
fn checksum(file: &mut BufReader<File>, start: u64, bytes: u64) -> Result<u32> {
    file.seek(SeekFrom::Start(start))?;
    let (mut sum, mut left) = (crc32fast::Hasher::new(), bytes);
    while left > 0 {
        let part = file.fill_buf()?;
        ensure!(!part.is_empty(), "the file ends");
        let taken = part.len().min(usize::try_from(left).unwrap_or(usize::MAX));
        sum.update(&part[..taken]);
        file.consume(taken);
        left -= taken as u64;
    }
    Ok(sum.finalize())
}

/// Reads the index at the end of the file.
fn summary(file: &mut BufReader<File>, length: u64) -> Result<Option<Summary>> {
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
    let summary = reader.finish();
    if summary.is_some() {
        check_summary(file, length)?;
    }
    Ok(summary)
}

/// Describes the chunks of a file as uncompressed, because version 0.26 does not verify the checksums of
/// chunks that it decompresses itself. Returns the original chunks, by the offset that the library requests.
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

/// Reads and decompresses the records of a chunk; its end may be missing if `is_cut`. Returns its damage, if
/// there is any.
fn read_chunk(
    file: &mut BufReader<File>,
    chunk: &ChunkIndex,
    is_cut: bool,
    records: &mut Vec<u8>,
) -> Result<Option<String>> {
    check_length("a chunk of the file", chunk.chunk_length.max(chunk.uncompressed_size))?;
    let (length, size) =
        (usize::try_from(chunk.chunk_length)?, usize::try_from(chunk.uncompressed_size)?);
    let options = LinearReaderOptions::default()
        .with_skip_start_magic(true)
        .with_skip_end_magic(true)
        .with_prevalidate_chunk_crcs(!is_cut)
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
                // 0 is never an opcode, and a chunk of zeros would be a long list of such records.
                if opcode != 0
                    && records.len() + data.len() < size
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

/// Adds the positions of the indices behind a chunk.
fn find_counts(file: &mut BufReader<File>, chunk: &mut ChunkIndex) {
    let mut at = chunk.chunk_start_offset + chunk.chunk_length;
    loop {
        // Opcode, length, channel.
        let mut head = [0; 11];
        let read = file.seek(SeekFrom::Start(at)).and_then(|_| file.read_exact(&mut head));
        let [opcode, a, b, c, d, e, f, g, h, low, high] = head;
        if read.is_err() || opcode != op::MESSAGE_INDEX {
            return;
        }
        chunk.message_index_offsets.insert(u16::from_le_bytes([low, high]), at);
        at = at.saturating_add(RECORD).saturating_add(u64::from_le_bytes([a, b, c, d, e, f, g, h]));
    }
}

/// Describes the chunk here by its header, within the first `bytes` bytes; `None` if it is malformed. Its
/// length is derived from the length of its content.
fn chunk_at(file: &mut BufReader<File>, at: u64, bytes: u64) -> Result<Option<ChunkIndex>> {
    file.seek(SeekFrom::Start(at + RECORD))?;
    let mut header = Vec::new();
    let longest = 8 + 8 + 8 + 4 + 4 + u64::from(COMPRESSION_MAX) + 8;
    file.take(longest.min(bytes - RECORD)).read_to_end(&mut header)?;
    let mut rest = &header[..];
    let mut number = || {
        let (number, after) = rest.split_first_chunk()?;
        rest = after;
        Some(u64::from_le_bytes(*number))
    };
    let (Some(start), Some(end), Some(size)) = (number(), number(), number()) else {
        return Ok(None);
    };
    let Some(([.., a, b, c, d], after)) = rest.split_first_chunk::<8>() else { return Ok(None) };
    let name = after.split_at_checked(u32::from_le_bytes([*a, *b, *c, *d]) as usize);
    let Some((name, after)) = name else { return Ok(None) };
    let (Some(compressed), Ok(name)) = (after.first_chunk(), std::str::from_utf8(name)) else {
        return Ok(None);
    };
    Ok(Some(ChunkIndex {
        message_start_time: start,
        message_end_time: end,
        chunk_start_offset: at,
        chunk_length: u64::from_le_bytes(*compressed)
            .saturating_add(RECORD + 8 + 8 + 8 + 4 + 4 + name.len() as u64 + 8),
        message_index_offsets: BTreeMap::new(),
        message_index_length: 0,
        compression: name.to_owned(),
        compressed_size: u64::from_le_bytes(*compressed),
        uncompressed_size: size,
    }))
}

/// Returns the opcode and the place of the data of the record at `at`, which is moved behind it.
fn record(records: &[u8], at: &mut usize) -> Option<(u8, Range<usize>)> {
    let (head, rest) = records.get(*at..)?.split_first_chunk::<{ RECORD as usize }>()?;
    let [opcode, length @ ..] = *head;
    let length = usize::try_from(u64::from_le_bytes(length)).ok()?;
    let start = *at + RECORD as usize;
    (length <= rest.len()).then_some(())?;
    *at = start + length;
    Some((opcode, start..start + length))
}

fn limit() -> usize {
    usize::try_from(longest()).unwrap_or(usize::MAX)
}

/// Returns the next result of the library's reader. Version 0.26 subtracts the lengths in a damaged record
/// without checking them; a panic counts as the end of the chunk.
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
    fn add(&mut self, channel: u16, topic: Topic) -> Result<()> {
        let count = topic.messages;
        let same = |other: &Topic| Topic { messages: count, ..other.clone() } == topic;
        let number = self.topics.iter().position(same);
        if let Some(known) = number {
            let known = &mut self.topics[known];
            known.messages = known.messages.zip(count).map(|(a, b)| a + b);
        } else {
            self.topics.push(topic);
            ensure!(self.topics.len() <= TOPICS_MAX, "the file has more than {TOPICS_MAX} topics");
        }
        self.numbers.insert(channel, number.unwrap_or(self.topics.len() - 1));
        Ok(())
    }

    /// Reads the whole file for its topics and their counts.
    fn find_topics(&mut self) -> Result<()> {
        let mut counts: BTreeMap<u16, u64> = BTreeMap::new();
        let mut walk = Walk::default();
        self.records.clear();
        while let Some((channel, ..)) = self.next_from_start(&mut walk)? {
            *counts.entry(channel).or_default() += 1;
        }
        self.lost.clear();
        for (channel, count) in counts {
            let topic = walk.channels.remove(&channel).context("a message without a channel")?;
            self.add(channel, Topic { messages: Some(count), ..topic })?;
        }
        Ok(())
    }

    /// Reads the next message of any topic without the index: its channel, its log time, and the place of its
    /// data in `records`. `None` at the end of the file, also of a truncated one.
    fn next_from_start(&mut self, walk: &mut Walk) -> Result<Option<(u16, u64, Range<usize>)>> {
        loop {
            let Some((opcode, data)) = record(&self.records, &mut walk.inside) else {
                if !self.read_part(walk)? {
                    return Ok(None);
                }
                walk.inside = 0;
                continue;
            };
            if !matches!(opcode, op::SCHEMA | op::CHANNEL | op::MESSAGE) {
                continue;
            }
            match mcap::parse_record(opcode, &self.records[data.clone()]) {
                Ok(Record::Schema { header, .. }) => {
                    walk.schemas.insert(header.id, header.name);
                }
                Ok(Record::Channel(channel)) => {
                    ensure!(
                        walk.channels.len() <= TOPICS_MAX,
                        "the file has more than {TOPICS_MAX} topics"
                    );
                    let kind = walk.schemas.get(&channel.schema_id).map_or("", String::as_str);
                    let encoding = Encoding::of(&channel.message_encoding);
                    let topic = Topic::new(&channel.topic, kind, encoding, None);
                    walk.channels.insert(channel.id, topic);
                }
                Ok(Record::Message { header, .. })
                    if walk.channels.contains_key(&header.channel_id) =>
                {
                    walk.messages += 1;
                    let content = data.start + MESSAGE_HEADER..data.end;
                    return Ok(Some((header.channel_id, header.log_time, content)));
                }
                _ => {
                    if walk.malformed == 0 {
                        let what =
                            "a record of the file is malformed, or one that it needs is missing";
                        self.lose(what.to_owned(), &[]);
                    }
                    walk.malformed += 1;
                }
            }
        }
    }

    /// Reads the next record of the file, or the records of the next chunk, into `records`; false at the end.
    fn read_part(&mut self, walk: &mut Walk) -> Result<bool> {
        self.records.clear();
        if walk.at == 0 {
            walk.at = mcap::MAGIC.len() as u64;
        }
        let mut head = [0; RECORD as usize];
        let messages = walk.messages;
        let end = |cut: &mut Option<String>, why: &str| {
            *cut = Some(format!("it ends after {messages} messages: {why}"));
            Ok(false)
        };
        let here = self.length.saturating_sub(walk.at);
        if here == 0 && self.cut.is_none() {
            return Ok(false);
        }
        if here < RECORD {
            return end(&mut self.cut, "it was cut off there");
        }
        self.file.seek(SeekFrom::Start(walk.at))?;
        self.file.read_exact(&mut head)?;
        let [opcode, stated @ ..] = head;
        let stated = RECORD.saturating_add(u64::from_le_bytes(stated));
        let (is_cut, mut bytes) = (stated > here, stated.min(here));
        match opcode {
            op::CHUNK => {
                let Some(mut chunk) = chunk_at(&mut self.file, walk.at, bytes)? else {
                    return end(&mut self.cut, "a chunk is malformed");
                };
                let length = chunk.chunk_length;
                let flaw = match length == stated {
                    true => {
                        chunk.chunk_length = bytes;
                        read_chunk(&mut self.file, &chunk, is_cut, &mut self.records)?
                    }
                    false => Some("its two lengths differ".to_owned()),
                };
                if is_cut && (length == stated || length > here) {
                    walk.at = self.length;
                    end(&mut self.cut, "it was cut off there")?;
                    return Ok(!self.records.is_empty());
                }
                if is_cut {
                    bytes = length;
                }
                chunk.chunk_length = bytes;
                if let Some(flaw) = flaw {
                    self.records.clear();
                    find_counts(&mut self.file, &mut chunk);
                    self.lose_chunk(&chunk, &flaw);
                }
            }
            op::DATA_END | op::FOOTER => {
                let mut stated = [0; 4];
                self.is_wrong = walk.has_loose
                    && opcode == op::DATA_END
                    && self.file.read_exact(&mut stated).is_ok()
                    && stated != [0; 4]
                    && checksum(&mut self.file, 0, walk.at)? != u32::from_le_bytes(stated);
                return Ok(false);
            }
            0 => return end(&mut self.cut, "the next record is malformed"),
            _ if is_cut => return end(&mut self.cut, "it was cut off there"),
            op::SCHEMA | op::CHANNEL | op::MESSAGE => {
                check_length("a part of the file", bytes)?;
                walk.has_loose |= opcode == op::MESSAGE;
                resize(&mut self.records, usize::try_from(bytes)?)?;
                self.file.seek(SeekFrom::Start(walk.at))?;
                self.file.read_exact(&mut self.records)?;
            }
            _ => {}
        }
        walk.at += bytes;
        Ok(true)
    }

    /// Notes the loss of messages of these channels.
    fn lose(&mut self, what: String, counts: &[(u16, u64)]) {
        let topic = |&(channel, count): &(u16, u64)| Some((*self.numbers.get(&channel)?, count));
        let is_wanted = |(topic, _): &(usize, u64)| self.wanted.contains(topic);
        let mut messages: Vec<_> = counts.iter().filter_map(topic).filter(is_wanted).collect();
        for (topic, count) in &messages {
            self.seen[*topic] += count;
        }
        if counts.is_empty() {
            // Unless they are counted at the end.
            let is_known =
                |topic: &usize| self.summary.is_some() && self.topics[*topic].messages.is_some();
            let unknown = self.wanted.iter().filter(|topic| !is_known(topic));
            messages = unknown.map(|topic| (*topic, 1)).collect();
        }
        self.lost.push(Lost { what, messages });
    }

    /// Notes the loss of a chunk.
    fn lose_chunk(&mut self, chunk: &ChunkIndex, flaw: &str) {
        let counts = counts(&mut self.file, chunk);
        let [start, end] =
            [chunk.message_start_time, chunk.message_end_time].map(|ns| ns as f64 * 1e-9);
        let of_wanted = |(channel, _): &&(u16, u64)| {
            self.numbers.get(channel).is_some_and(|topic| self.wanted.contains(topic))
        };
        let count = match counts.iter().filter(of_wanted).map(|(_, count)| count).sum::<u64>() {
            // The chunk has no indices.
            0 if counts.is_empty() => "all".to_owned(),
            count => count.to_string(),
        };
        let what = format!(
            "the chunk at byte {} (log time {start:.3} to {end:.3} s) is damaged: {flaw}; {count} of its messages \
             are left out",
            chunk.chunk_start_offset
        );
        self.lose(what, &counts);
    }

    /// Reads the next wanted message by the index; false at the end.
    fn next_by_index(&mut self, reader: &mut IndexedReader, message: &mut Message) -> Result<bool> {
        while let Some(event) = guarded(|| reader.next_event()) {
            match event.map_err(explain)? {
                IndexedReadEvent::ReadChunkRequest { offset, .. } => {
                    let chunk =
                        self.chunks.get(&offset).context("the index names no chunk")?.clone();
                    if let Some(flaw) =
                        read_chunk(&mut self.file, &chunk, false, &mut self.records)?
                    {
                        self.lose_chunk(&chunk, &flaw);
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

    /// Reads the next wanted message without the index; false at the end.
    fn next_of_walk(&mut self, walk: &mut Walk, message: &mut Message) -> Result<bool> {
        while let Some((channel, log_ns, content)) = self.next_from_start(walk)? {
            let Some(&topic) = self.numbers.get(&channel) else { continue };
            if self.wanted.contains(&topic) {
                (message.topic, message.log_ns) = (topic, log_ns);
                message.data.clear();
                message.data.extend_from_slice(&self.records[content]);
                return Ok(true);
            }
        }
        if self.is_wrong {
            self.lose(
                "the checksum of the file's messages differs: at least one is damaged".to_owned(),
                &[],
            );
        }
        Ok(false)
    }

    /// Compares the messages of a whole pass with the numbers that the index states.
    fn compare_counts(&mut self) {
        for &topic in &self.wanted {
            let (Topic { name, messages, .. }, seen) = (&self.topics[topic], self.seen[topic]);
            let Some(stated) = messages.filter(|stated| *stated != seen) else { continue };
            let what = format!("{name} has {seen} messages, but the file states {stated}");
            let messages = vec![(topic, stated.saturating_sub(seen))];
            self.lost.push(Lost { what, messages });
        }
    }
}

impl Reader for McapFile {
    fn topics(&self) -> &[Topic] {
        &self.topics
    }

    fn begin(&mut self, topics: &[usize]) -> Result<()> {
        self.wanted = topics.to_vec();
        self.seen = vec![0; self.topics.len()];
        self.cut = None;
        self.lost.clear();
        self.records.clear();
        self.reading = Some(match &self.summary {
            Some(summary) => {
                let names = topics.iter().map(|&topic| self.topics[topic].name.clone());
                let options = IndexedReaderOptions::new()
                    .include_topics(names)
                    .with_record_length_limit(limit());
                let reader = IndexedReader::new_with_options(summary, options).map_err(explain)?;
                Reading::ByIndex(Box::new(reader))
            }
            None => Reading::FromStart(Walk::default()),
        });
        Ok(())
    }

    fn next(&mut self, message: &mut Message) -> Result<bool> {
        let Some(mut reading) = self.reading.take() else { return Ok(false) };
        let found = match &mut reading {
            Reading::ByIndex(reader) => self.next_by_index(reader, message)?,
            Reading::FromStart(walk) => self.next_of_walk(walk, message)?,
        };
        if found {
            self.seen[message.topic] += 1;
            self.reading = Some(reading);
        } else if self.summary.is_some() {
            self.compare_counts();
        }
        Ok(found)
    }

    fn lost(&mut self) -> Vec<Lost> {
        std::mem::take(&mut self.lost)
    }

    fn cut(&self) -> Option<String> {
        self.cut.clone().or_else(|| self.flaw.clone())
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
            // The bytes of a message are alike. 0 stands for a message that is none.
            seen.push(if message.data.len() == 40 { message.data[0] } else { 0 });
            seen.extend(message.data.iter().find(|byte| **byte != message.data[0]));
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
                // Without the index as well.
                let end = content.len() - mcap::MAGIC.len() - 1;
                let (seen, is_cut, lost) = read_and_lose(&content[..end]).unwrap();
                assert_eq!((seen, is_cut), (vec![4, 5, 2, 3], true), "{is_plain}");
                assert_eq!(lost[0].messages, [(0, 1), (1, 1)]);
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

    /// Returns the range of the index, without its checksum.
    fn index(content: &[u8]) -> Range<usize> {
        let footer = content.len() - FOOTER as usize;
        let start = content[footer + RECORD as usize..].first_chunk().unwrap();
        u64::from_le_bytes(*start) as usize..footer
    }

    #[test]
    fn a_damaged_index_is_none() {
        for compression in [None, Some(mcap::Compression::Zstd)] {
            let whole = file(compression);
            let index = index(&whole);
            for place in index {
                let mut content = whole.clone();
                content[place] ^= 1;
                // In the order of the file.
                let (seen, is_told, lost) = read_and_lose(&content).unwrap();
                assert_eq!((seen, is_told), (vec![4, 5, 6, 1, 2, 3], true), "byte {place}");
                assert!(lost.is_empty(), "{lost:?}");
            }
        }
    }

    #[test]
    fn messages_that_the_file_states_and_lacks_are_told() {
        let mut content = file(None);
        let summary = Summary::read(&content).unwrap().unwrap();
        // The number of messages of the first channel, without a checksum to notice it.
        let stated = u64::from(*summary.channels.keys().min().unwrap()) as u16;
        let wanted = [&stated.to_le_bytes()[..], &3_u64.to_le_bytes()].concat();
        let index = index(&content);
        let mut windows = content[index.clone()].windows(10);
        let at = windows.rposition(|bytes| bytes == wanted).unwrap();
        content[index.start + at + 2] = 5;
        let end = content.len() - mcap::MAGIC.len();
        content[end - 4..end].fill(0);
        let (seen, _, lost) = read_and_lose(&content).unwrap();
        assert_eq!(seen, [1, 2, 3, 4, 5, 6]);
        assert_eq!(lost.len(), 1, "{lost:?}");
        assert_eq!(lost[0].messages, [(0, 2)]);
        assert!(lost[0].what.contains("has 3 messages, but the file states 5"), "{lost:?}");
    }

    #[test]
    fn the_checksum_of_messages_outside_of_chunks_is_compared() {
        let mut whole = std::io::Cursor::new(Vec::new());
        let options = WriteOptions::new().use_chunks(false).compression(None);
        let mut writer = options.create(&mut whole).unwrap();
        let channel = writer.add_channel(0, "/a", "cdr", &BTreeMap::new()).unwrap();
        for time in 1..4 {
            let header = MessageHeader {
                channel_id: channel,
                sequence: 0,
                log_time: time,
                publish_time: time,
            };
            writer.write_to_known_channel(&header, &[time as u8; 40]).unwrap();
        }
        writer.finish().unwrap();
        drop(writer);
        let mut content = whole.into_inner();
        assert_eq!(read_and_lose(&content).unwrap(), (vec![1, 2, 3], false, vec![]));
        let at = content.windows(40).position(|bytes| bytes == [2; 40]).unwrap();
        content[at + 20] ^= 1;
        let (seen, is_cut, lost) = read_and_lose(&content).unwrap();
        // The damaged byte is 3.
        assert_eq!((seen, is_cut), (vec![1, 2, 3, 3], false));
        assert!(lost[0].what.contains("checksum") && lost[0].messages == [(0, 1)], "{lost:?}");
    }

    /// Distance in bits between the flips of the next test; 1 takes a minute.
    const STEP: usize = 13;

    #[test]
    fn no_flipped_bit_changes_a_message_or_loses_one_without_a_word() {
        let compressions = [None, Some(mcap::Compression::Zstd), Some(mcap::Compression::Lz4)];
        for compression in compressions.into_iter().take(if cfg!(feature = "bags") { 3 } else { 2 })
        {
            let name = format!("{compression:?}");
            let whole = file(compression);
            for is_finished in [true, false] {
                let whole = match is_finished {
                    true => &whole[..],
                    false => &whole[..index(&whole).start],
                };
                for bit in (0..8 * whole.len()).step_by(STEP) {
                    let mut content = whole.to_vec();
                    content[bit / 8] ^= 1 << (bit % 8);
                    let Ok((mut seen, is_told, lost)) = read_and_lose(&content) else { continue };
                    seen.sort_unstable();
                    seen.dedup();
                    // The index of a chunk that has become a message is noticed by the last checksum.
                    let is_right = seen.iter().all(|time| (1..=6).contains(time));
                    assert!(is_right || !lost.is_empty(), "{name}, bit {bit}: {seen:?}");
                    let count: u64 = lost.iter().flat_map(|l| &l.messages).map(|(_, n)| n).sum();
                    let all = seen.len() as u64 + count;
                    assert!(all >= 6 || is_told, "{name}, bit {bit}: {seen:?}, {lost:?}");
                }
            }
        }
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
