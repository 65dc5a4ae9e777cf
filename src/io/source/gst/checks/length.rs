//! Finds truncated recordings: files shorter than their own headers say, as after an interrupted copy or
//! download.

use std::fs::File;
use std::io::{self, Seek, SeekFrom};
use std::path::Path;

use crate::{container, ebml};

/// A file that is shorter than it says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::source::gst) struct Lacking {
    /// Bytes that are there.
    pub(in crate::source::gst) length: u64,
    /// Bytes that there should be.
    pub(in crate::source::gst) said: u64,
    /// Number of frames according to the header, if given.
    pub(in crate::source::gst) pictures: Option<u64>,
    /// True if the part that is missing is no part of a frame, such as the index of an AVI file.
    pub(in crate::source::gst) is_beside_frames: bool,
}

/// End of a file according to its headers, and whether the part that is missing is no part of a frame.
type End = (u64, bool);

/// Element of a Matroska file with frames.
const CLUSTER: u32 = 0x1f43b675;

/// Some writers count the head of the file's outermost chunk to its content.
const SLOPPY: u64 = 8;

/// Reads the outermost structure of AVI (RIFF), MP4 and QuickTime (ISO/IEC 14496-12), and Matroska
/// files (RFC 8794); `None` for others, for whole files, and for recordings that were never given a
/// length.
pub(in crate::source::gst) fn lacking(path: &Path) -> io::Result<Option<Lacking>> {
    let mut file = File::open(path)?;
    let meta = file.metadata()?;
    if !meta.is_file() {
        return Ok(None);
    }
    let length = meta.len();
    let head = container::at::<12>(&mut file, 0)?.unwrap_or_default();
    let said = match head {
        [b'R', b'I', b'F', b'F', ..] if head.ends_with(b"AVI ") => avi(&mut file, length)?,
        [0x1a, 0x45, 0xdf, 0xa3, ..] => matroska(&mut file, length)?,
        [_, _, _, _, b'f', b't', b'y', b'p', ..] => mp4(&mut file, length)?,
        _ => None,
    };
    let pictures =
        match (said, container::at::<4>(&mut file, 24)?, container::at::<4>(&mut file, 48)?) {
            (Some(_), Some([b'a', b'v', b'i', b'h']), Some(frames)) => {
                Some(u64::from(u32::from_le_bytes(frames))).filter(|&frames| frames > 0)
            }
            _ => None,
        };
    let said = said.filter(|(said, _)| *said > length);
    let lacking = |(said, is_beside_frames)| Lacking { length, said, pictures, is_beside_frames };
    Ok(said.map(lacking))
}

/// Returns the end of the last top-level chunk; AVI files above a gigabyte have several.
fn avi(file: &mut File, length: u64) -> io::Result<Option<End>> {
    let mut at = 0;
    while let Some([b'R', b'I', b'F', b'F', a, b, c, d]) = container::at(file, at)? {
        let size = u64::from(u32::from_le_bytes([a, b, c, d]));
        // Not yet written, or unknown.
        if size == 0 || size == u64::from(u32::MAX) {
            return Ok(None);
        }
        if at + size > length {
            return Ok(Some((at + size + SLOPPY, has_frames(file, at + 12, length)?)));
        }
        at += SLOPPY + size + size % 2;
    }
    Ok(None)
}

/// Reports whether the list of an AVI file's frames is complete, among the chunks from `at` on.
fn has_frames(file: &mut File, mut at: u64, length: u64) -> io::Result<bool> {
    while let Some(head) = container::at::<12>(file, at)? {
        let [kind @ .., a, b, c, d, _, _, _, _] = head;
        let end = at + 8 + u64::from(u32::from_le_bytes([a, b, c, d]));
        if kind == *b"LIST" && head.ends_with(b"movi") {
            return Ok(end <= length);
        }
        at = end.next_multiple_of(2);
    }
    Ok(false)
}

/// Returns the end of the box that extends beyond the file's end.
fn mp4(file: &mut File, length: u64) -> io::Result<Option<End>> {
    let mut at: u64 = 0;
    while at < length {
        let Some([a, b, c, d, kind @ ..]) = container::at::<8>(file, at)? else { break };
        let size = match u32::from_be_bytes([a, b, c, d]) {
            // To the end of the file, however long it is.
            0 => return Ok(None),
            1 => u64::from_be_bytes(container::at(file, at + 8)?.unwrap_or_default()),
            size => u64::from(size),
        };
        // No box at all: something was appended.
        if size < 8 {
            return Ok(None);
        }
        at = at.saturating_add(size);
        if at > length {
            return Ok(Some((at, [*b"free", *b"skip", *b"mfra", *b"udta"].contains(&kind))));
        }
    }
    Ok(None)
}

/// Returns the end of the segment, the second top-level element.
fn matroska(file: &mut File, length: u64) -> io::Result<Option<End>> {
    const SEGMENT: u32 = 0x18538067;
    file.rewind()?;
    let Some((_, header)) = ebml::read_header(file)? else { return Ok(None) };
    ebml::skip(file, header)?;
    match ebml::read_header(file)? {
        Some((SEGMENT, size)) if size != ebml::UNKNOWN_SIZE => {
            let said = file.stream_position()?.saturating_add(size);
            while said > length
                && let Some((id, size)) = ebml::read_header(file)?
            {
                let end = file.stream_position()?.saturating_add(size);
                if end > length {
                    return Ok(Some((said, id != CLUSTER)));
                }
                file.seek(SeekFrom::Start(end))?;
            }
            Ok(Some((said, true)))
        }
        _ => Ok(None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Head of a Matroska file, up to the length of its segment.
    const SEGMENT: &[u8] = b"\x1a\x45\xdf\xa3\x84abcd\x18\x53\x80\x67";

    fn found(content: &[u8]) -> Option<Lacking> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        std::fs::write(&path, content).unwrap();
        let found = lacking(&path).unwrap()?;
        assert_eq!(found.length, content.len() as u64);
        Some(found)
    }

    fn judged(content: &[u8]) -> Option<(u64, u64)> {
        found(content).map(|found| (found.said, found.pictures.unwrap_or(0)))
    }

    #[test]
    fn a_file_without_its_index_has_all_frames() {
        let is_beside = |file: &[u8], cut: usize| found(&file[..cut]).unwrap().is_beside_frames;
        let chunk = |kind: &[u8], body: &[u8]| {
            [kind, &(body.len() as u32).to_le_bytes(), body, &vec![0; body.len() % 2]].concat()
        };
        let header = chunk(b"LIST", &[&b"hdrl"[..], &[1; 60]].concat());
        let frames = chunk(b"LIST", &[&b"movi"[..], &[1; 31]].concat());
        let index = chunk(b"idx1", &[1; 32]);
        let file = chunk(b"RIFF", &[b"AVI ", &header[..], &frames, &index].concat());
        let end = file.len() - index.len();
        assert!(!is_beside(&file, end - frames.len() - 1) && !is_beside(&file, end - 2));
        assert!(is_beside(&file, end - 1) && is_beside(&file, end) && is_beside(&file, end + 20));

        let r#box = |kind: &[u8], body: &[u8]| {
            [&(body.len() as u32 + 8).to_be_bytes()[..], kind, body].concat()
        };
        let head = [r#box(b"ftyp", b"isom"), r#box(b"moov", &[1; 9])].concat();
        let file = [&head[..], &r#box(b"mdat", &[1; 20]), &r#box(b"mfra", &[1; 20])].concat();
        let end = file.len() - 28;
        assert!(!is_beside(&file, head.len() - 1) && !is_beside(&file, end - 1));
        assert!(is_beside(&file, end + 8) && is_beside(&file, file.len() - 1));

        let mut parts = Vec::new();
        ebml::push(&mut parts, CLUSTER, &[1; 20]);
        ebml::push(&mut parts, 0x1c53bb6b, &[1; 20]);
        let file = [SEGMENT, &[0x80 | parts.len() as u8], &parts].concat();
        let end = file.len() - 25;
        assert!(!is_beside(&file, end - 1) && !is_beside(&file, end - 20));
        assert!(is_beside(&file, end) && is_beside(&file, end + 2) && is_beside(&file, end + 6));
    }

    #[test]
    fn an_avi_knows_its_length_and_its_pictures() {
        let mut avi = b"RIFF\x68\0\0\0AVI LIST\x30\0\0\0hdrlavih\x20\0\0\0".to_vec();
        avi.resize(48, 0);
        avi.extend(95u32.to_le_bytes());
        avi.resize(0x68 + 8, 1);
        assert_eq!(judged(&avi), None);
        // Its own head counted, or not.
        assert_eq!(judged(&avi[..0x68]), None);
        assert_eq!(judged(&avi[..80]), Some((0x70, 95)));
        // A second chunk, as large files have.
        let two = [&avi[..], b"RIFF\x64\0\0\0AVIX", &[1; 0x60]].concat();
        assert_eq!(judged(&two), None);
        assert_eq!(judged(&two[..two.len() - 20]), Some((two.len() as u64, 95)));
        // Never finished.
        avi[4..8].fill(0);
        assert_eq!(judged(&avi[..80]), None);
    }

    #[test]
    fn an_mp4_is_as_long_as_its_boxes() {
        let mp4 =
            [&b"\0\0\0\x0cftypisom\0\0\0\x0cmoov0123\0\0\0\x01mdat\0\0\0\0\0\0\0\x18"[..], &[1; 8]]
                .concat();
        assert_eq!(judged(&mp4), None);
        assert_eq!(judged(&mp4[..mp4.len() - 3]), Some((mp4.len() as u64, 0)));
        assert_eq!(judged(&[&mp4[..], b"\0\0\0\0free"].concat()), None);
    }

    #[test]
    fn a_matroska_file_is_as_long_as_its_segment() {
        let head = SEGMENT;
        let mkv = [head, b"\x40\x14", &[1; 20]].concat();
        assert_eq!(judged(&mkv), None);
        assert_eq!(judged(&mkv[..mkv.len() - 1]), Some((mkv.len() as u64, 0)));
        let endless = [head, b"\x01\xff\xff\xff\xff\xff\xff\xff", &[1; 20]].concat();
        assert_eq!(judged(&endless[..endless.len() - 1]), None);
    }
}
