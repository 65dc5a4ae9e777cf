//! The index at the end of an MCAP file.

use std::collections::HashMap;
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom};

use anyhow::{Context, Result, ensure};
use mcap::Summary;
use mcap::records::ChunkIndex;
use mcap::sans_io::summary_reader::{SummaryReadEvent, SummaryReader, SummaryReaderOptions};

use super::super::interface::{check_length, longest};
use super::chunk::{RECORD, explain, guarded, limit};

/// Bytes of the footer's record and the magic behind it.
pub(super) const FOOTER: u64 = RECORD + 8 + 8 + 4 + mcap::MAGIC.len() as u64;

/// Returns `Some` if the file is to be read without this index: it does not list all messages, or too much would be
/// held at once. The text is the damage, if there is any.
pub(super) fn incompleteness(summary: &Summary) -> Option<Option<String>> {
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

pub(super) fn checksum(file: &mut BufReader<File>, start: u64, bytes: u64) -> Result<u32> {
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

pub(super) fn summary(file: &mut BufReader<File>, length: u64) -> Result<Option<Summary>> {
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
pub(super) fn chunks(summary: &mut Summary) -> Result<HashMap<u64, ChunkIndex>> {
    summary.chunk_indexes.retain(|chunk| chunk.uncompressed_size >= RECORD);
    let of = |chunk: &mut ChunkIndex| {
        let own = chunk.clone();
        chunk.compression.clear();
        chunk.compressed_size = chunk.uncompressed_size;
        Ok((chunk.compressed_data_offset().map_err(explain)?, own))
    };
    summary.chunk_indexes.iter_mut().map(of).collect()
}
