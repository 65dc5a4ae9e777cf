//! The records of an MCAP file in its order, without the index.

use std::collections::BTreeMap;
use std::io::{Read, Seek, SeekFrom};
use std::ops::Range;

use anyhow::{Context, Result, ensure};
use mcap::records::{Record, op};

use super::super::interface::{Encoding, Message, TOPICS_MAX, Topic, check_length, resize};
use super::chunk::{MESSAGE_HEADER, RECORD, chunk_at, find_counts, read_chunk, record};
use super::index::checksum;
use super::{McapFile, Walk};

/// Reason for the end of a file amid a record.
const CUT_OFF: &str = "it was cut off there";

impl McapFile {
    pub(super) fn find_topics(&mut self) -> Result<()> {
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
        let here = self.length.saturating_sub(walk.at);
        if here == 0 && self.cut.is_none() {
            return Ok(false);
        }
        if here < RECORD {
            return self.end(walk, CUT_OFF);
        }
        self.file.seek(SeekFrom::Start(walk.at))?;
        self.file.read_exact(&mut head)?;
        let [opcode, stated @ ..] = head;
        let stated = RECORD.saturating_add(u64::from_le_bytes(stated));
        let (is_cut, bytes) = (stated > here, stated.min(here));
        match opcode {
            op::CHUNK => return self.read_chunk_here(walk, stated, here),
            op::DATA_END | op::FOOTER => {
                let mut stated = [0; 4];
                self.is_wrong = walk.has_loose
                    && opcode == op::DATA_END
                    && self.file.read_exact(&mut stated).is_ok()
                    && stated != [0; 4]
                    && checksum(&mut self.file, 0, walk.at)? != u32::from_le_bytes(stated);
                return Ok(false);
            }
            0 => return self.end(walk, "the next record is malformed"),
            _ if is_cut => return self.end(walk, CUT_OFF),
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

    /// Reads the records of the chunk here into `records`; false at the end. Its length is stated, and so many bytes
    /// of the file are left here.
    fn read_chunk_here(&mut self, walk: &mut Walk, stated: u64, here: u64) -> Result<bool> {
        let (is_cut, mut bytes) = (stated > here, stated.min(here));
        let Some(mut chunk) = chunk_at(&mut self.file, walk.at, bytes)? else {
            return self.end(walk, "a chunk is malformed");
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
            self.end(walk, CUT_OFF)?;
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
        walk.at += bytes;
        Ok(true)
    }

    fn end(&mut self, walk: &Walk, why: &str) -> Result<bool> {
        self.cut = Some(format!("it ends after {} messages: {why}", walk.messages));
        Ok(false)
    }

    /// Reads the next wanted message without the index; false at the end.
    pub(super) fn next_of_walk(&mut self, walk: &mut Walk, message: &mut Message) -> Result<bool> {
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
}
