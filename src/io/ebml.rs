//! EBML, the binary structure of Matroska: elements with an identifier, a size and a body (RFC 8794); and
//! Matroska's tags.

use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::ops::ControlFlow;
use std::path::Path;

use anyhow::ensure;

use stereod_core::reading;

/// Size that means "until the next element of this or a higher level".
pub const UNKNOWN_SIZE: u64 = (1 << 56) - 1;

/// Identifier of a filler element.
pub const VOID: u32 = 0xec;

/// Identifiers of Matroska, RFC 9559, section 5.1.
pub mod id {
    pub const EBML: u32 = 0x1a45_dfa3;
    pub const SEGMENT: u32 = 0x1853_8067;
    pub const SEEK_HEAD: u32 = 0x114d_9b74;
    pub const INFO: u32 = 0x1549_a966;
    pub const DURATION: u32 = 0x4489;
    pub const TRACKS: u32 = 0x1654_ae6b;
    pub const TAGS: u32 = 0x1254_c367;
    pub const TAG: u32 = 0x7373;
    pub const SIMPLE_TAG: u32 = 0x67c8;
    pub const TAG_NAME: u32 = 0x45a3;
    pub const TAG_STRING: u32 = 0x4487;
    pub const CLUSTER: u32 = 0x1f43_b675;
    pub const CUES: u32 = 0x1c53_bb6b;
}

/// Largest size of tags. They are a few hundred bytes of text; a file that claims more is damaged.
const LONGEST_TAGS: u64 = 1 << 24;

/// Appends an identifier, which includes its marker bits.
pub fn push_id(out: &mut Vec<u8>, id: u32) {
    let bytes = id.to_be_bytes();
    out.extend(&bytes[id.leading_zeros() as usize / 8..]);
}

/// Appends a size in as few bytes as possible.
pub fn push_size(out: &mut Vec<u8>, size: u64) {
    // A field of n bytes holds 7 n bits, and all of them set is reserved for "unknown".
    let length = (1..8).find(|n| size < (1 << (7 * n)) - 1).unwrap_or(8);
    let marked = size | 1 << (7 * length);
    out.extend(&marked.to_be_bytes()[8 - length..]);
}

/// Returns a size in eight bytes, which can be changed in place later; [`UNKNOWN_SIZE`] is allowed.
pub fn wide_size(size: u64) -> [u8; 8] {
    (size | 1 << 56).to_be_bytes()
}

pub fn push(out: &mut Vec<u8>, id: u32, body: &[u8]) {
    push_id(out, id);
    push_size(out, body.len() as u64);
    out.extend(body);
}

/// Appends an element with an unsigned number in as few bytes as possible.
pub fn push_uint(out: &mut Vec<u8>, id: u32, value: u64) {
    let skipped = (value.leading_zeros() as usize / 8).min(7);
    push(out, id, &value.to_be_bytes()[skipped..]);
}

/// Appends an element that contains the elements appended by `fill`.
pub fn push_master(out: &mut Vec<u8>, id: u32, fill: impl FnOnce(&mut Vec<u8>)) {
    let mut body = Vec::new();
    fill(&mut body);
    push(out, id, &body);
}

/// Appends filler of exactly `length` bytes, header included.
///
/// # Panics
/// If `length` is below 2 or above 126: there is no such filler with a one-byte size.
pub fn push_void(out: &mut Vec<u8>, length: usize) {
    assert!((2..=126).contains(&length), "filler of {length} bytes");
    push(out, VOID, &[0; 126][..length - 2]);
}

/// Reads identifier and body size of the next element; `None` at the end of the file, also within a
/// header, and if there is no element.
pub fn read_header(reader: &mut impl Read) -> io::Result<Option<(u32, u64)>> {
    let Some(id) = read_number(reader, 4, false)? else { return Ok(None) };
    let Some(size) = read_number(reader, 8, true)? else { return Ok(None) };
    Ok(Some((id as u32, size)))
}

/// Reads a number of variable length, at most `longest` bytes. The leading zeros of the first byte tell the
/// length. With `strip` the marker bit is removed, and a size with all bits set becomes [`UNKNOWN_SIZE`].
fn read_number(reader: &mut impl Read, longest: u32, strip: bool) -> io::Result<Option<u64>> {
    let mut bytes = [0; 8];
    if !fill(reader, &mut bytes[..1])? {
        return Ok(None);
    }
    let length = bytes[0].leading_zeros() + 1;
    if length > longest || !fill(reader, &mut bytes[1..length as usize])? {
        return Ok(None);
    }
    let number = bytes[..length as usize].iter().fold(0, |n, &byte| n << 8 | u64::from(byte));
    if !strip {
        return Ok(Some(number));
    }
    let largest = (1 << (7 * length)) - 1;
    let size = number & largest;
    Ok(Some(if size == largest { UNKNOWN_SIZE } else { size }))
}

fn fill(reader: &mut impl Read, bytes: &mut [u8]) -> io::Result<bool> {
    match reader.read_exact(bytes) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
        Err(error) => Err(error),
    }
}

/// Reads the body of an element, at most `limit` bytes.
pub fn read_body(reader: &mut impl Read, size: u64, limit: u64) -> io::Result<Vec<u8>> {
    let mut body = Vec::new();
    reader.take(size.min(limit)).read_to_end(&mut body)?;
    Ok(body)
}

pub fn skip(reader: &mut impl Seek, size: u64) -> io::Result<()> {
    reader.seek(SeekFrom::Current(size.min(i64::MAX as u64) as i64)).map(|_| ())
}

pub fn children(mut body: &[u8]) -> impl Iterator<Item = (u32, &[u8])> {
    std::iter::from_fn(move || {
        let (id, size) = read_header(&mut body).ok()??;
        let (child, rest) = body.split_at(body.len().min(usize::try_from(size).ok()?));
        body = rest;
        Some((id, child))
    })
}

/// Calls `visit` with the identifier and size of each element in turn, the reader at its body, until it breaks.
/// The elements within the ones to `enter` follow, as do those of elements of unknown size, which end at the next
/// one of their level.
pub fn walk<R: Read + Seek>(
    reader: &mut R,
    enter: &[u32],
    mut visit: impl FnMut(&mut R, u32, u64) -> io::Result<ControlFlow<()>>,
) -> io::Result<()> {
    while let Some((element, size)) = read_header(reader)? {
        let body = reader.stream_position()?;
        if visit(reader, element, size)?.is_break() {
            break;
        }
        let is_entered = size == UNKNOWN_SIZE || enter.contains(&element);
        let end = if is_entered { body } else { body.saturating_add(size).min(i64::MAX as u64) };
        reader.seek(SeekFrom::Start(end))?;
    }
    Ok(())
}

/// Reads every tag of a Matroska file; with `head`, only the tags before its first image.
pub fn read_tags(path: &Path, head: bool) -> anyhow::Result<Vec<(String, String)>> {
    let mut file = BufReader::new(reading::open(path)?);
    let mut pairs = Vec::new();
    let mut is_matroska = false;
    walk(&mut file, &[id::SEGMENT], |file, element, size| {
        is_matroska |= element == id::EBML;
        if !is_matroska || element == id::CLUSTER && head {
            return Ok(ControlFlow::Break(()));
        }
        if element == id::TAGS && size != UNKNOWN_SIZE {
            collect_tags(&read_body(file, size, LONGEST_TAGS)?, &mut pairs);
        }
        Ok(ControlFlow::Continue(()))
    })?;
    ensure!(is_matroska, "it is no Matroska file");
    Ok(pairs)
}

/// Appends names and values of the body of an element with tags.
pub fn collect_tags(tags: &[u8], pairs: &mut Vec<(String, String)>) {
    let within = |body, wanted| children(body).filter(move |(element, _)| *element == wanted);
    for (_, tag) in within(tags, id::TAG) {
        for (_, simple) in within(tag, id::SIMPLE_TAG) {
            let text = |wanted| {
                let (_, text) = within(simple, wanted).next()?;
                // Text may be padded with zeros.
                Some(String::from_utf8_lossy(text).trim_end_matches('\0').to_owned())
            };
            if let (Some(name), Some(value)) = (text(id::TAG_NAME), text(id::TAG_STRING)) {
                pairs.push((name, value));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn headers_as_the_standard_shows_them() {
        let mut out = Vec::new();
        push_uint(&mut out, 0x4286, 1);
        assert_eq!(out, [0x42, 0x86, 0x81, 1]);
        out.clear();
        push_size(&mut out, 127);
        assert_eq!(out, [0x40, 127]);
        assert_eq!(wide_size(UNKNOWN_SIZE), [1, 255, 255, 255, 255, 255, 255, 255]);
        out.clear();
        push_void(&mut out, 2);
        push_void(&mut out, 126);
        assert_eq!((out.len(), &out[..4]), (128, &[0xec, 0x80, 0xec, 0xfc][..]));
    }

    #[test]
    fn a_torn_end_is_an_end() {
        for torn in [&[][..], &[0x1a], &[0x1a, 0x45, 0xdf, 0xa3], &[0x42, 0x86, 0x40], &[0, 0]] {
            assert_eq!(read_header(&mut &torn[..]).unwrap(), None);
        }
    }

    proptest! {
        #[test]
        fn numbers_come_back(id in prop::sample::select(vec![0xec, 0x4286, 0x2ad7b1, 0x1a45dfa3]),
                             size in 0u64..UNKNOWN_SIZE, value: u64) {
            let mut out = Vec::new();
            push_id(&mut out, id);
            push_size(&mut out, size);
            prop_assert_eq!(read_header(&mut &out[..]).unwrap(), Some((id, size)));
            let mut out = Vec::new();
            push_uint(&mut out, id, value);
            let (found, body) = children(&out).next().unwrap();
            prop_assert_eq!(found, id);
            let read = body.iter().fold(0u64, |n, &byte| n << 8 | u64::from(byte));
            prop_assert_eq!(read, value);
        }
    }
}
