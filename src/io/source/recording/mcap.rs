//! MCAP files. A finished one is read by its index, in order of log time; one without an index, as a killed
//! recorder leaves it, or with a damaged one, from its start in the order of the file.

mod chunk;
mod index;
mod walk;

use std::collections::HashMap;
use std::fs::File;
use std::io::{BufReader, Read, Seek, SeekFrom};
use std::path::Path;

use anyhow::{Context, Result, ensure};
use mcap::Summary;
use mcap::records::ChunkIndex;
use mcap::sans_io::indexed_reader::{IndexedReadEvent, IndexedReader, IndexedReaderOptions};

use self::chunk::{RECORD, counts, explain, guarded, limit, read_chunk};
use self::index::{chunks, incompleteness, summary};
use super::interface::{Encoding, Lost, Message, Reader, TOPICS_MAX, Topic, add_topic};
use super::svo;
use stereod_core::reading;

/// Opcode of a record of private use, which readers pass over.
const PRIVATE: u8 = 0x80;

struct McapFile {
    file: BufReader<File>,
    length: u64,
    /// Its index; `None` if there is none that can be used.
    summary: Option<Summary>,
    topics: Vec<Topic>,
    numbers: HashMap<u16, usize>,
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
    schemas: HashMap<u16, String>,
    channels: HashMap<u16, Topic>,
    messages: u64,
    malformed: u64,
    /// True if a message is in no chunk.
    has_loose: bool,
}

/// Opens a file and finds its topics. Reports also whether it is ZED's `.svo2`.
pub(super) fn open(path: &Path) -> Result<(Box<dyn Reader>, bool)> {
    of_file(reading::open(path)?)
}

/// Finds the topics of an open file. Reports also whether it is ZED's `.svo2`.
pub(super) fn of_file(file: File) -> Result<(Box<dyn Reader>, bool)> {
    let mut file = BufReader::with_capacity(1 << 20, file);
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

impl McapFile {
    fn add(&mut self, channel: u16, topic: Topic) -> Result<()> {
        let number = add_topic(&mut self.topics, topic);
        ensure!(self.topics.len() <= TOPICS_MAX, "the file has more than {TOPICS_MAX} topics");
        self.numbers.insert(channel, number);
        Ok(())
    }

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
mod tests;
