//! Records and chunks of an MCAP file, the indices behind chunks, and what the library makes of them.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufReader, ErrorKind, Read, Seek, SeekFrom};
use std::ops::Range;

use anyhow::Result;
use mcap::McapError;
use mcap::records::{ChunkIndex, op};
use mcap::sans_io::linear_reader::{LinearReadEvent, LinearReader, LinearReaderOptions};

use super::super::interface::{check_length, longest};
use stereod_core::thread;

/// Bytes of a record before its content: opcode and length.
pub(super) const RECORD: u64 = 1 + 8;

/// Bytes of a message's record before its data: channel, sequence and two times.
pub(super) const MESSAGE_HEADER: usize = 2 + 4 + 8 + 8;

/// Returns the opcode and the place of the data of the record at `at`, which is moved behind it.
pub(super) fn record(records: &[u8], at: &mut usize) -> Option<(u8, Range<usize>)> {
    let (head, rest) = records.get(*at..)?.split_first_chunk::<{ RECORD as usize }>()?;
    let [opcode, length @ ..] = *head;
    let length = usize::try_from(u64::from_le_bytes(length)).ok()?;
    let start = *at + RECORD as usize;
    (length <= rest.len()).then_some(())?;
    *at = start + length;
    Some((opcode, start..start + length))
}

pub(super) fn limit() -> usize {
    usize::try_from(longest()).unwrap_or(usize::MAX)
}

/// Returns the next result of the library's reader. Version 0.26 subtracts the lengths in a damaged record
/// without checking them; a panic counts as the end of the chunk.
pub(super) fn guarded<E>(
    next: impl FnOnce() -> Option<Result<E, McapError>>,
) -> Option<Result<E, McapError>> {
    thread::guarded("the reader of MCAP files", next).unwrap_or(Some(Err(McapError::UnexpectedEoc)))
}

pub(super) fn explain(error: McapError) -> anyhow::Error {
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

const COMPRESSION_MAX: u32 = 32;

/// Reads and decompresses the records of a chunk; its end may be missing if `is_cut`. Returns its damage, if
/// there is any.
pub(super) fn read_chunk(
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
pub(super) fn counts(file: &mut BufReader<File>, chunk: &ChunkIndex) -> Vec<(u16, u64)> {
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
pub(super) fn find_counts(file: &mut BufReader<File>, chunk: &mut ChunkIndex) {
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
pub(super) fn chunk_at(
    file: &mut BufReader<File>,
    at: u64,
    bytes: u64,
) -> Result<Option<ChunkIndex>> {
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
