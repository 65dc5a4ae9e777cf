//! Whole, damaged and unfinished files.

use std::collections::BTreeMap;
use std::ops::Range;

use mcap::WriteOptions;
use mcap::records::MessageHeader;
use proptest::prelude::*;

use super::index::FOOTER;
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
        let header = MessageHeader { channel_id, sequence: 0, log_time: time, publish_time: time };
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
        let header =
            MessageHeader { channel_id: channel, sequence: 0, log_time: time, publish_time: time };
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
    for compression in compressions.into_iter().take(if cfg!(feature = "bags") { 3 } else { 2 }) {
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
