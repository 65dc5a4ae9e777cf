//! Bags in order of time, damaged and cut off.

use proptest::prelude::*;

use super::*;

fn fields(fields: &[(&str, &[u8])]) -> Vec<u8> {
    let one = |(name, value): &(&str, &[u8])| {
        let field = [name.as_bytes(), b"=", value].concat();
        [&(field.len() as u32).to_le_bytes()[..], &field].concat()
    };
    fields.iter().flat_map(one).collect()
}

fn written(header: &[(&str, &[u8])], data: &[u8]) -> Vec<u8> {
    let header = fields(header);
    let length = |bytes: &[u8]| (bytes.len() as u32).to_le_bytes();
    [&length(&header)[..], &header, &length(data), data].concat()
}

fn at(seconds: u32) -> Vec<u8> {
    [seconds.to_le_bytes(), [0; 4]].concat()
}

/// Returns a bag of two chunks without compression: `/a` at 1 and 4 s, then `/b` at 2 and 3 s.
fn bag() -> Vec<u8> {
    compressed_bag("none", <[u8]>::to_vec)
}

fn compressed_bag(name: &str, compress: impl Fn(&[u8]) -> Vec<u8>) -> Vec<u8> {
    let mut file = VERSION.to_vec();
    let index_pos = 1_u64.to_le_bytes();
    file.extend(written(&[("op", &[OP_BAG]), ("index_pos", &index_pos)], &[b' '; 10]));
    for (number, times) in [(0_u32, [1, 4]), (1, [2, 3])] {
        let conn = number.to_le_bytes();
        let topic = ["/a", "/b"][number as usize].as_bytes();
        let head = [("op", &[OP_CONNECTION][..]), ("conn", &conn), ("topic", topic)];
        let mut chunk = written(&head, &fields(&[("type", b"sensor_msgs/Image")]));
        let mut index = Vec::new();
        for seconds in times {
            index.extend([&at(seconds)[..], &(chunk.len() as u32).to_le_bytes()].concat());
            let head = [("op", &[OP_MESSAGE][..]), ("conn", &conn), ("time", &at(seconds))];
            chunk.extend(written(&head, &[seconds as u8; 5]));
        }
        let size = (chunk.len() as u32).to_le_bytes();
        let name = name.as_bytes();
        let head = [("op", &[OP_CHUNK][..]), ("compression", name), ("size", &size)];
        file.extend(written(&head, &compress(&chunk)));
        let count = 2_u32.to_le_bytes();
        let head = [("op", &[OP_INDEX][..]), ("conn", &conn), ("count", &count)];
        file.extend(written(&head, &index));
    }
    file
}

/// Returns the topic and the first byte of every message, and whether the bag is cut off.
fn read(content: &[u8]) -> Result<(Vec<(String, u8)>, bool)> {
    read_and_lose(content).map(|(seen, is_cut, _)| (seen, is_cut))
}

/// Returns the lost parts as well.
#[expect(clippy::type_complexity)]
fn read_and_lose(content: &[u8]) -> Result<(Vec<(String, u8)>, bool, Vec<Lost>)> {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("a.bag");
    std::fs::write(&path, content)?;
    let mut bag = open(&path)?;
    let all: Vec<usize> = (0..bag.topics().len()).collect();
    bag.begin(&all)?;
    let (mut message, mut seen) = (Message::default(), Vec::new());
    while bag.next(&mut message)? {
        let first = message.data.first().copied().unwrap_or_default();
        // The bytes of a message are alike.
        let other = message.data.iter().copied().find(|byte| *byte != first);
        seen.push((bag.topics()[message.topic].name.clone(), other.unwrap_or(first)));
    }
    Ok((seen, bag.cut().is_some(), bag.lost()))
}

fn bzip2(data: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut encoder = bzip2::read::BzEncoder::new(data, bzip2::Compression::fast());
    encoder.read_to_end(&mut out).unwrap();
    out
}

/// With a checksum of the content, as ROS writes it.
fn lz4(data: &[u8]) -> Vec<u8> {
    let mut encoder = lz4::EncoderBuilder::new().build(Vec::new()).unwrap();
    std::io::Write::write_all(&mut encoder, data).unwrap();
    encoder.finish().0
}

/// Distance in bits between the flips of the next test; 1 takes a minute.
const STEP: usize = 13;

#[test]
fn no_flipped_bit_changes_a_message_or_loses_one_without_a_word() {
    for (name, whole) in [
        ("none", bag()),
        ("bz2", compressed_bag("bz2", bzip2)),
        ("lz4", compressed_bag("lz4", lz4)),
    ] {
        for bit in (0..8 * whole.len()).step_by(STEP) {
            let mut content = whole.clone();
            content[bit / 8] ^= 1 << (bit % 8);
            let Ok((seen, is_told, lost)) = read_and_lose(&content) else { continue };
            let mut bytes: Vec<_> = seen.iter().map(|(_, byte)| *byte).collect();
            bytes.sort_unstable();
            bytes.dedup();
            // Chunks that are not compressed have no checksum.
            let is_right = name == "none" || bytes.iter().all(|byte| (1..=4).contains(byte));
            assert!(is_right, "{name}, bit {bit}: {seen:?}");
            let count: u64 = lost.iter().flat_map(|l| &l.messages).map(|(_, n)| n).sum();
            let all = bytes.len() as u64 + count;
            assert!(all >= 4 || is_told, "{name}, bit {bit}: {seen:?}, {lost:?}");
        }
    }
}

#[test]
fn a_damaged_chunk_is_left_out_and_counted() {
    for (name, mut whole) in
        [("bz2", compressed_bag("bz2", bzip2)), ("lz4", compressed_bag("lz4", lz4))]
    {
        // Finished bags have the connections behind the chunks as well.
        for (number, topic) in [(0_u32, b"/a"), (1, b"/b")] {
            let conn = number.to_le_bytes();
            let head = [("op", &[OP_CONNECTION][..]), ("conn", &conn), ("topic", topic)];
            whole.extend(written(&head, &fields(&[("type", b"sensor_msgs/Image")])));
        }
        let expected = [("/a", 1), ("/b", 2), ("/b", 3), ("/a", 4)];
        let named = |seen: &[(&str, u8)]| {
            seen.iter().map(|(topic, byte)| ((*topic).to_owned(), *byte)).collect::<Vec<_>>()
        };
        assert_eq!(read(&whole).unwrap(), (named(&expected), false), "{name}");
        // Within the data of the first chunk.
        let field = b"compression=";
        let at = whole.windows(field.len()).position(|bytes| bytes == field).unwrap();
        let mut content = whole.clone();
        content[at + 60] ^= 0xff;
        content[at + 61] ^= 0xff;
        let (seen, is_cut, lost) = read_and_lose(&content).unwrap();
        assert_eq!((seen, is_cut), (named(&[("/b", 2), ("/b", 3)]), false), "{name}");
        assert_eq!(lost.len(), 1, "{name}: {lost:?}");
        assert_eq!(lost[0].messages, [(0, 2)], "{name}");
        assert!(lost[0].what.contains("(from log time 1.000 s) is damaged"), "{lost:?}");
    }
}

#[test]
fn messages_come_in_order_of_time() {
    let (seen, is_cut) = read(&bag()).unwrap();
    let expected = [("/a", 1), ("/b", 2), ("/b", 3), ("/a", 4)];
    assert_eq!(seen, expected.map(|(name, byte)| (name.to_owned(), byte)));
    assert!(!is_cut);
}

#[test]
fn a_bag_is_read_to_its_last_whole_message() {
    let whole = bag();
    let mut counts = Vec::new();
    for length in VERSION.len()..whole.len() {
        let (seen, _) = read(&whole[..length]).unwrap();
        counts.push(seen.len());
    }
    assert!(counts.is_sorted() && counts.first() == Some(&0) && counts.last() == Some(&4));
    assert!([1, 2, 3].iter().all(|count| counts.contains(count)), "{counts:?}");
    let (_, is_cut) = read(&whole[..whole.len() - 80]).unwrap();
    assert!(is_cut);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn damage_is_an_error_at_worst(
        places in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
    ) {
        let mut content = bag();
        for (place, byte) in places {
            let at = place.index(content.len());
            content[at] = byte;
        }
        let _ = read(&content);
    }
}
