//! ROS 1 bags, version 2.0 (the ROS wiki, "Bags/Format/2.0").
//!
//! The records are walked once from the start, past the content of the chunks, so that a bag without an index,
//! as a killed recorder leaves it, is read like any other. The crate `rosbag` is not used: it maps the file
//! into memory, trusts the lengths in it, and panics on damaged indices.

use std::collections::{HashMap, HashSet, VecDeque};
use std::fs::File;
use std::io::{BufReader, Cursor, Read, Seek, SeekFrom};
use std::path::Path;

use anyhow::{Context, Result, bail, ensure};

use super::interface::{
    Encoding, Lost, Message, Reader, TOPICS_MAX, Topic, add_topic, check_length, longest, resize,
};
use stereod_core::memory::{Budget, TooMuch};
use stereod_core::reading;

const VERSION: &[u8] = b"#ROSBAG V2.0\n";

/// Largest header of a record. A connection's text is in its data.
const HEADER_MAX: u32 = 1 << 20;

/// Largest text of a connection: type, definition.
const CONNECTION_MAX: u32 = 16 << 20;

/// Decompressed chunks that are kept, for topics that were written one after the other.
const KEPT: usize = 4;

const OP_MESSAGE: u8 = 2;
const OP_BAG: u8 = 3;
const OP_INDEX: u8 = 4;
const OP_CHUNK: u8 = 5;
const OP_CONNECTION: u8 = 7;

#[derive(Clone, Debug)]
struct Chunk {
    start: u64,
    /// Bytes of its data in the file, fewer than its header says if the file was cut off there.
    length: u64,
    size: u64,
    compression: Compression,
    is_indexed: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Compression {
    None,
    Bzip2,
    Lz4,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    log_ns: u64,
    chunk: u32,
    /// Of its record in the decompressed chunk.
    offset: u32,
    connection: u32,
}

struct Bag {
    file: BufReader<File>,
    topics: Vec<Topic>,
    numbers: HashMap<u32, usize>,
    chunks: Vec<Chunk>,
    places: Vec<Place>,
    wanted: std::vec::IntoIter<Place>,
    /// Decompressed chunks, the newest last.
    kept: VecDeque<(u32, Vec<u8>)>,
    damaged: HashSet<u32>,
    lost: Vec<Lost>,
    cut: Option<String>,
}

struct Header<'a>(&'a [u8]);

impl<'a> Header<'a> {
    fn get(&self, name: &str) -> Option<&'a [u8]> {
        let mut rest = self.0;
        while let Some((length, after)) = rest.split_first_chunk() {
            let (field, after) = after.split_at_checked(u32::from_le_bytes(*length) as usize)?;
            if let Some([b'=', value @ ..]) = field.strip_prefix(name.as_bytes()) {
                return Some(value);
            }
            rest = after;
        }
        None
    }

    fn fixed<const LENGTH: usize>(&self, name: &str) -> Result<[u8; LENGTH]> {
        let value = self.get(name).with_context(|| format!("a record lacks \"{name}\""))?;
        value.try_into().with_context(|| format!("\"{name}\" of a record is malformed"))
    }

    fn u32(&self, name: &str) -> Result<u32> {
        Ok(u32::from_le_bytes(self.fixed(name)?))
    }

    fn op(&self) -> Result<u8> {
        Ok(self.fixed::<1>("op")?[0])
    }

    fn text(&self, name: &str) -> Result<&'a str> {
        let value = self.get(name).with_context(|| format!("a record lacks \"{name}\""))?;
        std::str::from_utf8(value).with_context(|| format!("\"{name}\" of a record is no text"))
    }
}

/// Reads a length; `None` at the end of the data.
fn length(from: &mut impl Read) -> Result<Option<u32>> {
    let mut bytes = Vec::new();
    from.take(4).read_to_end(&mut bytes)?;
    Ok(bytes.try_into().ok().map(u32::from_le_bytes))
}

/// Reads exactly this many bytes; `None` if the data ends before.
fn exactly(from: &mut impl Read, bytes: u32) -> Result<Option<Vec<u8>>> {
    let mut data = Vec::new();
    from.take(bytes.into()).read_to_end(&mut data)?;
    Ok(Some(data).filter(|data| data.len() == bytes as usize))
}

/// Reads the header of a record and the length of its data; `None` at the end of the file.
fn record(from: &mut impl Read) -> Result<Option<(Vec<u8>, u32)>> {
    let Some(bytes) = length(from)? else { return Ok(None) };
    ensure!(bytes <= HEADER_MAX, "a record has a header of {bytes} bytes");
    let Some(header) = exactly(from, bytes)? else { return Ok(None) };
    Ok(length(from)?.map(|data| (header, data)))
}

/// Returns a time in nanoseconds.
fn time(bytes: [u8; 8]) -> u64 {
    let [a, b, c, d, e, f, g, h] = bytes;
    let (seconds, nanoseconds) =
        (u32::from_le_bytes([a, b, c, d]), u32::from_le_bytes([e, f, g, h]));
    u64::from(seconds) * 1_000_000_000 + u64::from(nanoseconds)
}

pub(super) fn open(path: &Path) -> Result<Box<dyn Reader>> {
    let mut file = BufReader::with_capacity(1 << 16, reading::open(path)?);
    let end = file.get_ref().metadata()?.len();
    ensure!(
        exactly(&mut file, VERSION.len() as u32)?.as_deref() == Some(VERSION),
        "it is no bag of version 2.0"
    );
    let mut bag = Bag {
        file,
        topics: Vec::new(),
        numbers: HashMap::new(),
        chunks: Vec::new(),
        places: Vec::new(),
        wanted: Vec::new().into_iter(),
        kept: VecDeque::new(),
        damaged: HashSet::new(),
        lost: Vec::new(),
        cut: None,
    };
    bag.walk(end)?;
    bag.complete()?;
    for place in &bag.places {
        if let Some(topic) = bag.numbers.get(&place.connection) {
            *bag.topics[*topic].messages.get_or_insert(0) += 1;
        }
    }
    Ok(Box::new(bag))
}

impl Bag {
    fn walk(&mut self, end: u64) -> Result<()> {
        let (mut is_whole, mut stated) = (false, 0);
        let mut at = VERSION.len() as u64;
        while let Some((header, bytes)) = record(&mut self.file)? {
            let header = Header(&header);
            let start = self.file.stream_position()?;
            let there = end.saturating_sub(start);
            match header.op()? {
                OP_BAG => {
                    is_whole = u64::from_le_bytes(header.fixed("index_pos")?) > 0;
                    stated = header.u32("chunk_count").unwrap_or(0);
                }
                OP_CHUNK => {
                    let compression = match header.text("compression")? {
                        "none" => Compression::None,
                        "bz2" => Compression::Bzip2,
                        "lz4" => Compression::Lz4,
                        other => bail!("chunks compressed by \"{other}\" are not read"),
                    };
                    let length = there.min(bytes.into());
                    let size = header.u32("size")?.into();
                    let is_indexed = false;
                    self.chunks.push(Chunk { start, length, size, compression, is_indexed });
                }
                OP_INDEX if there >= u64::from(bytes) => {
                    let connection = header.u32("conn")?;
                    check_length("the index of the bag", bytes.into())?;
                    let Some(data) = exactly(&mut self.file, bytes)? else { break };
                    self.add_index(connection, &data)?;
                }
                OP_CONNECTION if there >= u64::from(bytes) => {
                    ensure!(bytes <= CONNECTION_MAX, "a connection is described by {bytes} bytes");
                    let Some(data) = exactly(&mut self.file, bytes)? else { break };
                    self.add_connection(&header, &data)?;
                }
                _ => {}
            }
            if there < u64::from(bytes) {
                is_whole = false;
                break;
            }
            at = start + u64::from(bytes);
            self.file.seek(SeekFrom::Start(at))?;
        }
        if !is_whole || at != end || self.chunks.last().is_some_and(|chunk| !chunk.is_indexed) {
            self.cut = Some("it was cut off, or its recorder did not finish it".to_owned());
        } else if self.chunks.len() < stated as usize {
            let found = self.chunks.len();
            self.cut = Some(format!("it is damaged: {found} of its {stated} chunks are there"));
        }
        Ok(())
    }

    fn add_index(&mut self, connection: u32, data: &[u8]) -> Result<()> {
        let chunk = self.chunks.len().checked_sub(1).context("an index comes before its chunk")?;
        self.chunks[chunk].is_indexed = true;
        for entry in data.as_chunks::<12>().0 {
            let (at, offset) =
                (time([0, 1, 2, 3, 4, 5, 6, 7].map(|i: usize| entry[i])), &entry[8..]);
            let offset = u32::from_le_bytes(offset.try_into()?);
            self.places.push(Place { log_ns: at, chunk: chunk as u32, offset, connection });
        }
        let bytes = (self.places.len() * size_of::<Place>()) as u64;
        Budget::of_process().check("the index of the bag", bytes, "a smaller bag")?;
        Ok(())
    }

    fn add_connection(&mut self, header: &Header<'_>, data: &[u8]) -> Result<()> {
        let connection = header.u32("conn")?;
        let kind = Header(data).text("type")?;
        let topic = Topic::new(header.text("topic")?, kind, Encoding::Ros1, Some(0));
        let number = add_topic(&mut self.topics, topic);
        ensure!(self.topics.len() <= TOPICS_MAX, "the bag has more than {TOPICS_MAX} topics");
        self.numbers.insert(connection, number);
        Ok(())
    }

    /// Finds the messages and connections that the index lacks in the chunks themselves.
    fn complete(&mut self) -> Result<()> {
        let known = |bag: &Self, place: &Place| bag.numbers.contains_key(&place.connection);
        let is_open = self.cut.is_some() || !self.places.iter().all(|place| known(self, place));
        if !is_open {
            return Ok(());
        }
        for number in 0..self.chunks.len() {
            match self.load(number as u32) {
                Err(error) if !error.is::<TooMuch>() => {
                    let start = self.chunks[number].start;
                    self.cut
                        .get_or_insert(format!("the chunk at byte {start} is damaged: {error:#}"));
                    continue;
                }
                loaded => loaded?,
            }
            let Some((_, data)) = self.kept.pop_back() else { continue };
            let mut cursor = Cursor::new(&data[..]);
            loop {
                let offset = cursor.position();
                // The rest of a chunk that was cut off.
                let Ok(Some((header, bytes))) = record(&mut cursor) else { break };
                let start = cursor.position() as usize;
                let Some(content) = data.get(start..start + bytes as usize) else { break };
                let header = Header(&header);
                match header.op()? {
                    OP_CONNECTION => self.add_connection(&header, content)?,
                    OP_MESSAGE if !self.chunks[number].is_indexed => {
                        let log_ns = time(header.fixed("time")?);
                        let connection = header.u32("conn")?;
                        let (chunk, offset) = (number as u32, u32::try_from(offset)?);
                        self.places.push(Place { log_ns, chunk, offset, connection });
                    }
                    _ => {}
                }
                cursor.set_position((start + bytes as usize) as u64);
            }
        }
        let unknown = self.places.iter().filter(|place| !known(self, place)).count();
        if unknown > 0 {
            let why = format!("it is damaged: {unknown} of its messages belong to no topic");
            self.cut.get_or_insert(why);
        }
        Ok(())
    }

    fn take(&self, place: &Place, message: &mut Message) -> Result<()> {
        let (_, data) = self.kept.back().context("no chunk was read")?;
        let record =
            data.get(place.offset as usize..).context("the index of the bag is damaged")?;
        let mut cursor = Cursor::new(record);
        let damaged = "a message of the bag is damaged";
        let (header, bytes) = self::record(&mut cursor)?.context(damaged)?;
        let header = Header(&header);
        ensure!(header.op()? == OP_MESSAGE && header.u32("conn")? == place.connection, damaged);
        let start = cursor.position() as usize;
        let content = record[start..].get(..bytes as usize).context(damaged)?;
        message.topic = *self.numbers.get(&place.connection).context(damaged)?;
        // The index has no checksum, the chunk may have one.
        message.log_ns = time(header.fixed("time")?);
        message.data.clear();
        message.data.extend_from_slice(content);
        Ok(())
    }

    fn lose(&mut self, places: &[Place], what: &str, error: &anyhow::Error) {
        let mut messages: Vec<(usize, u64)> = Vec::new();
        for topic in places.iter().filter_map(|place| self.numbers.get(&place.connection)) {
            match messages.iter_mut().find(|(known, _)| known == topic) {
                Some((_, count)) => *count += 1,
                None => messages.push((*topic, 1)),
            }
        }
        let from = places.first().map_or(0.0, |place| place.log_ns as f64 * 1e-9);
        let what = format!(
            "{what} (from log time {from:.3} s) is damaged: {error:#}; messages left out: {}",
            places.len()
        );
        self.lost.push(Lost { what, messages });
    }

    /// Decompresses a chunk and makes it the newest of the cached ones.
    fn load(&mut self, number: u32) -> Result<()> {
        if let Some(at) = self.kept.iter().position(|(kept, _)| *kept == number) {
            let kept = self.kept.remove(at);
            self.kept.extend(kept);
            return Ok(());
        }
        let chunk = self.chunks.get(number as usize).context("the index names no chunk")?.clone();
        check_length("a chunk of the bag", chunk.size.max(chunk.length))?;
        // The buffer of the oldest one is used again.
        let oldest = if self.kept.len() >= KEPT { self.kept.pop_front() } else { None };
        let mut data = oldest.map(|(_, data)| data).unwrap_or_default();
        self.file.seek(SeekFrom::Start(chunk.start))?;
        let compressed = (&mut self.file).take(chunk.length);
        match chunk.compression {
            Compression::None => {
                resize(&mut data, usize::try_from(chunk.length)?)?;
                self.file.read_exact(&mut data)?;
            }
            Compression::Bzip2 => {
                decompress(bzip2::read::MultiBzDecoder::new(compressed), &chunk, &mut data)?;
            }
            Compression::Lz4 => {
                let mut decoder = lz4::Decoder::new(compressed).context("a chunk in LZ4")?;
                decompress(&mut decoder, &chunk, &mut data)?;
                if chunk.is_indexed {
                    decoder.finish().1.context("the data ends too early")?;
                }
            }
        }
        self.kept.push_back((number, data));
        Ok(())
    }
}

/// Decompresses a chunk. Of the last one of a bag that was cut off, as much as there is.
fn decompress(from: impl Read, chunk: &Chunk, data: &mut Vec<u8>) -> Result<()> {
    data.clear();
    data.try_reserve_exact(usize::try_from(chunk.size)?)?;
    // The decoders check their checksums when they are read beyond the last byte.
    let read = from.take(chunk.size.min(longest()) + 1).read_to_end(data);
    if chunk.is_indexed {
        read?;
        let length = data.len() as u64;
        ensure!(length == chunk.size, "it has {length} bytes instead of {}", chunk.size);
    }
    Ok(())
}

impl Reader for Bag {
    fn topics(&self) -> &[Topic] {
        &self.topics
    }

    fn begin(&mut self, topics: &[usize]) -> Result<()> {
        let number = |place: &Place| self.numbers.get(&place.connection);
        let is_wanted = |place: &&Place| number(place).is_some_and(|topic| topics.contains(topic));
        let mut wanted: Vec<Place> = self.places.iter().filter(is_wanted).copied().collect();
        wanted.sort_unstable();
        self.wanted = wanted.into_iter();
        self.damaged.clear();
        self.lost.clear();
        Ok(())
    }

    fn next(&mut self, message: &mut Message) -> Result<bool> {
        while let Some(place) = self.wanted.next() {
            if self.damaged.contains(&place.chunk) {
                continue;
            }
            match self.load(place.chunk) {
                Err(error) if !error.is::<TooMuch>() => {
                    let rest = self.wanted.as_slice().iter().copied();
                    let rest = rest.filter(|other| other.chunk == place.chunk);
                    let places: Vec<_> = std::iter::once(place).chain(rest).collect();
                    let start = self.chunks.get(place.chunk as usize).map_or(0, |c| c.start);
                    self.lose(&places, &format!("the chunk at byte {start}"), &error);
                    self.damaged.insert(place.chunk);
                    continue;
                }
                loaded => loaded?,
            }
            match self.take(&place, message) {
                Ok(()) => return Ok(true),
                Err(error) => self.lose(&[place], "a message", &error),
            }
        }
        Ok(false)
    }

    fn lost(&mut self) -> Vec<Lost> {
        std::mem::take(&mut self.lost)
    }

    fn cut(&self) -> Option<String> {
        self.cut.clone()
    }
}

#[cfg(test)]
mod tests;
