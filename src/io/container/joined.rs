//! Finds a second recording behind the first one in a file, as `cat a.mkv b.mkv` makes it. GStreamer's readers of
//! these containers lose all or most of it without a message.

use std::fs::File;
use std::io::{self, BufReader, Read, Seek};
use std::ops::ControlFlow;
use std::path::Path;

use super::{at, mp4, y4m};
use crate::ebml::{self, id};

/// Returns where a second recording begins; `None` if there is none, or in other containers. `head`: the first
/// bytes.
pub(super) fn second(file: &mut File, head: [u8; 12]) -> io::Result<Option<u64>> {
    match head {
        [0x1a, 0x45, 0xdf, 0xa3, ..] => in_matroska(file),
        [b'R', b'I', b'F', b'F', ..] if head.ends_with(b"AVI ") => in_avi(file),
        [b'O', b'g', b'g', b'S', ..] => in_ogg(file),
        [b'F', b'L', b'V', 1, ..] => in_flv(file),
        [b'D', b'K', b'I', b'F', ..] => in_ivf(file),
        [_, _, _, _, kind @ ..] if mp4::begins(&kind) => in_mp4(file),
        _ if head.starts_with(b"YUV4MPEG2 ") => y4m::second(file),
        _ => Ok(None),
    }
}

/// Returns the refusal of a file whose second recording begins at a byte.
pub(super) fn refusal(path: &Path, begin: u64) -> String {
    let (name, next) = (path.display(), begin + 1);
    let ending = path.extension().map_or_else(String::new, |e| format!(".{}", e.to_string_lossy()));
    format!(
        "a second recording begins at byte {begin} of {name}, as in files that were joined by `cat`, and would be \
         lost; take them apart: head -c {begin} '{name}' > first{ending}; tail -c +{next} '{name}' > second{ending}; \
         then play each, or join them with ffmpeg's concat demuxer"
    )
}

fn in_matroska(file: &File) -> io::Result<Option<u64>> {
    let mut file = BufReader::new(file);
    let (mut second, mut is_first) = (None, true);
    let mut before = 0;
    file.rewind()?;
    // Only a segment without a size is entered.
    ebml::walk(&mut file, &[], |file, element, size| {
        let body = file.stream_position()?;
        if element == id::EBML && !std::mem::take(&mut is_first) {
            second = Some(before);
            return Ok(ControlFlow::Break(()));
        }
        before = if size == ebml::UNKNOWN_SIZE { body } else { body.saturating_add(size) };
        Ok(ControlFlow::Continue(()))
    })?;
    Ok(second)
}

/// Large AVI files have further chunks, of the kind "AVIX".
fn in_avi(file: &mut File) -> io::Result<Option<u64>> {
    let mut begin = 0;
    while let Some([b'R', b'I', b'F', b'F', a, b, c, d, kind @ ..]) = at::<12>(file, begin)? {
        if begin > 0 && kind == *b"AVI " {
            return Ok(Some(begin));
        }
        let size = u64::from(u32::from_le_bytes([a, b, c, d]));
        begin += 8 + size.next_multiple_of(2);
    }
    Ok(None)
}

/// A chained Ogg file (RFC 3533, section 4): a page that begins a stream, behind other pages.
fn in_ogg(file: &mut File) -> io::Result<Option<u64>> {
    const BEGINS: u8 = 2;
    let mut file = BufReader::new(file);
    let (mut begin, mut has_begun) = (0, false);
    while let Some(head) = at::<27>(&mut file, begin)?.filter(|head| head.starts_with(b"OggS")) {
        let begins = head[5] & BEGINS != 0;
        if begins && has_begun {
            return Ok(Some(begin));
        }
        has_begun |= !begins;
        let mut lengths = [0; 255];
        let lengths = &mut lengths[..usize::from(head[26])];
        if file.read_exact(lengths).is_err() {
            return Ok(None);
        }
        begin += 27
            + lengths.len() as u64
            + lengths.iter().map(|&length| u64::from(length)).sum::<u64>();
    }
    Ok(None)
}

/// Fragmented files may repeat their header.
fn in_mp4(file: &mut File) -> io::Result<Option<u64>> {
    let length = file.metadata()?.len();
    let (mut first, mut movies) = (0, 0);
    for (kind, begin, _) in mp4::boxes(file, 0..length)? {
        match &kind {
            b"moof" => return Ok(None),
            b"ftyp" if movies < 2 => first = begin,
            b"moov" => movies += 1,
            _ => {}
        }
    }
    Ok(Some(first).filter(|&first| first > 0 && movies > 1))
}

/// Tags of Adobe's FLV, each followed by its size.
fn in_flv(file: &mut File) -> io::Result<Option<u64>> {
    let mut begin = 9 + 4;
    while let Some([kind, a, b, c]) = at::<4>(file, begin)? {
        if [kind, a, b, c] == *b"FLV\x01" {
            return Ok(Some(begin));
        }
        begin += 11 + u64::from(u32::from_be_bytes([0, a, b, c])) + 4;
    }
    Ok(None)
}

/// Frames of IVF, each behind its size and time.
fn in_ivf(file: &mut File) -> io::Result<Option<u64>> {
    let mut begin = 32;
    while let Some(size) = at::<4>(file, begin)? {
        if size == *b"DKIF" {
            return Ok(Some(begin));
        }
        begin += 12 + u64::from(u32::from_le_bytes(size));
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::super::mp4::tests::boxed;
    use super::*;
    use crate::ebml::{UNKNOWN_SIZE, push, push_id, wide_size};

    fn of(bytes: &[u8]) -> Option<u64> {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(bytes).unwrap();
        let mut head = [0; 12];
        head[..bytes.len().min(12)].copy_from_slice(&bytes[..bytes.len().min(12)]);
        second(&mut file, head).unwrap()
    }

    fn matroska(is_sized: bool) -> Vec<u8> {
        let mut bytes = Vec::new();
        push(&mut bytes, id::EBML, b"\x42\x82\x84webm");
        let mut cluster = Vec::new();
        push(&mut cluster, id::CLUSTER, &[0xa3, 0x84, 1, 2, 3, 4]);
        if is_sized {
            push(&mut bytes, id::SEGMENT, &cluster);
        } else {
            push_id(&mut bytes, id::SEGMENT);
            bytes.extend(wide_size(UNKNOWN_SIZE));
            bytes.extend(cluster);
        }
        bytes
    }

    /// Returns a small file of each container.
    fn files() -> Vec<Vec<u8>> {
        let ogg = |kind: u8| [&b"OggS\0"[..], &[kind], &[0; 20], &[2, 3, 1], &[9; 4]].concat();
        let avi = [&b"RIFF\x0d\0\0\0AVI "[..], &[1; 10]].concat();
        let movie =
            [boxed(b"ftyp", &[b"isom"]), boxed(b"mdat", &[&[1; 9]]), boxed(b"moov", &[&[2; 9]])];
        let flv = [
            &b"FLV\x01\x01\0\0\0\x09\0\0\0\0"[..],
            b"\x09\0\0\x05",
            &[0; 7],
            &[3; 5],
            &[0, 0, 0, 16],
        ];
        let ivf = [&b"DKIF"[..], &[0; 28], &[5, 0, 0, 0], &[0; 8], &[1; 5]];
        let y4m = b"YUV4MPEG2 W4 H2 F30:1 C422\nFRAME\n0123456789abcdefFRAME Ip\n0123456789abcdef";
        vec![
            matroska(true),
            matroska(false),
            [ogg(2), ogg(2), ogg(0), ogg(4)].concat(),
            avi,
            movie.concat(),
            flv.concat(),
            ivf.concat(),
            y4m.to_vec(),
        ]
    }

    #[test]
    fn the_second_of_joined_files_is_found() {
        for file in files() {
            let joined = [&file[..], &file, &file].concat();
            let name = String::from_utf8_lossy(&file[..8]);
            assert_eq!(of(&file), None, "{name}");
            assert_eq!(of(&joined), Some(file.len() as u64), "{name}");
            for end in 0..joined.len() {
                let found = of(&joined[..end]);
                assert!(found.is_none_or(|at| at == file.len() as u64), "{name} {end}");
            }
        }
    }

    #[test]
    fn parts_of_one_recording_are_no_second_one() {
        let part = [boxed(b"moof", &[&[1; 9]]), boxed(b"mdat", &[&[1; 9]])].concat();
        let movie = [boxed(b"ftyp", &[b"isom"]), boxed(b"moov", &[&[2; 9]])].concat();
        assert_eq!(of(&[&movie[..], &part, &movie, &part].concat()), None);
        let avi = files().swap_remove(3);
        assert_eq!(of(&[&avi[..], b"RIFF\x04\0\0\0AVIX"].concat()), None);
    }
}
