//! Views and projection of the first video track of a Matroska or WebM file (RFC 9559, sections 5.1.4 and 18.10).

use std::fs::File;
use std::io::{self, BufReader, Seek};
use std::ops::ControlFlow;

use super::{Arrangement, Projection, Stated};
use crate::ebml::{self, children, id, read_body};

const TRACK_ENTRY: u32 = 0xae;
const TRACK_TYPE: u32 = 0x83;
const VIDEO: u32 = 0xe0;
const STEREO_MODE: u32 = 0x53b8;
/// Written by libmatroska before 0.9.0.
const OLD_STEREO_MODE: u32 = 0x53b9;
const PROJECTION: u32 = 0x7670;
const PROJECTION_TYPE: u32 = 0x7671;

/// Largest size of a track's entry, which holds the parameters of its codec.
const LONGEST_ENTRY: u64 = 1 << 24;

pub(super) fn stated(mut file: File) -> io::Result<Stated> {
    file.rewind()?;
    let mut found = Stated::default();
    ebml::walk(&mut BufReader::new(file), &[id::SEGMENT, id::TRACKS], |file, element, size| {
        if element != TRACK_ENTRY {
            return Ok(ControlFlow::Continue(()));
        }
        let entry = read_body(file, size, LONGEST_ENTRY)?;
        if number(&entry, TRACK_TYPE) != Some(1) {
            return Ok(ControlFlow::Continue(()));
        }
        found = child(&entry, VIDEO).map_or(found, of_video);
        Ok(ControlFlow::Break(()))
    })?;
    Ok(found)
}

/// Returns the statement of a track's element "Video".
fn of_video(video: &[u8]) -> Stated {
    use Arrangement as A;
    let (arrangement, right_first) =
        match (number(video, STEREO_MODE), number(video, OLD_STEREO_MODE)) {
            (Some(0), _) | (None, Some(0..=2)) => (Some(A::Single), false),
            (Some(mode @ (1 | 11)), _) => (Some(A::SideBySide), mode == 11),
            (Some(mode @ (2 | 3)), _) => (Some(A::TopBottom), mode == 2),
            (Some(mode @ (4 | 5)), _) => (Some(A::Checkerboard), mode == 4),
            (Some(mode @ (6 | 7)), _) => (Some(A::Rows), mode == 6),
            (Some(mode @ (8 | 9)), _) => (Some(A::Columns), mode == 8),
            (Some(10 | 12), _) => (Some(A::Anaglyph), false),
            (Some(mode @ (13 | 14)), _) => (Some(A::Mvc), mode == 14),
            (None, None) => (None, false),
            _ => (Some(A::Unstated), false),
        };
    let projection = child(video, PROJECTION).and_then(|body| number(body, PROJECTION_TYPE));
    let projection = match projection {
        Some(1) => Some(Projection::Equirectangular),
        Some(2) => Some(Projection::Cubemap),
        Some(3) => Some(Projection::Mesh),
        _ => None,
    };
    Stated { arrangement, right_first, projection }
}

fn child(body: &[u8], wanted: u32) -> Option<&[u8]> {
    children(body).find(|(element, _)| *element == wanted).map(|(_, child)| child)
}

fn number(body: &[u8], wanted: u32) -> Option<u64> {
    let digits = child(body, wanted).filter(|digits| digits.len() <= 8)?;
    Some(digits.iter().fold(0, |number, &byte| number << 8 | u64::from(byte)))
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;
    use crate::ebml::{UNKNOWN_SIZE, push, push_id, push_master, push_uint, wide_size};

    /// Writes a file whose second track is the video; `fill` adds to its element "Video". The sizes of the
    /// segment and its first cluster, which comes before the tracks, are unknown.
    fn file(fill: impl FnOnce(&mut Vec<u8>)) -> File {
        let mut bytes = Vec::new();
        push(&mut bytes, id::EBML, b"\x42\x82\x84webm");
        for unknown in [id::SEGMENT, id::CLUSTER] {
            push_id(&mut bytes, unknown);
            bytes.extend(wide_size(UNKNOWN_SIZE));
        }
        push(&mut bytes, 0xa3, &[0; 300]);
        push_master(&mut bytes, id::TRACKS, |tracks| {
            push_master(tracks, TRACK_ENTRY, |track| push_uint(track, TRACK_TYPE, 2));
            push_master(tracks, TRACK_ENTRY, |track| {
                push_uint(track, 0xd7, 7);
                push_uint(track, TRACK_TYPE, 1);
                push_master(track, VIDEO, |video| {
                    push_uint(video, 0xb0, 640);
                    fill(video);
                });
            });
            push_master(tracks, TRACK_ENTRY, |track| {
                push_uint(track, TRACK_TYPE, 1);
                push_master(track, VIDEO, |video| push_uint(video, STEREO_MODE, 1));
            });
        });
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&bytes).unwrap();
        file
    }

    #[test]
    fn every_stereo_mode_of_the_first_video_is_read() {
        use Arrangement::*;
        let expected = [
            (Single, false),
            (SideBySide, false),
            (TopBottom, true),
            (TopBottom, false),
            (Checkerboard, true),
            (Checkerboard, false),
            (Rows, true),
            (Rows, false),
            (Columns, true),
            (Columns, false),
            (Anaglyph, false),
            (SideBySide, true),
            (Anaglyph, false),
            (Mvc, false),
            (Mvc, true),
            (Unstated, false),
        ];
        for (mode, (arrangement, right_first)) in (0..).zip(expected) {
            let stated = stated(file(|video| push_uint(video, STEREO_MODE, mode))).unwrap();
            assert_eq!(stated.arrangement, Some(arrangement), "{mode}");
            assert_eq!(stated.right_first, right_first, "{mode}");
        }
        assert_eq!(stated(file(|_| {})).unwrap(), Stated::default());
    }

    #[test]
    fn old_modes_and_projections_are_read() {
        let old = |mode| stated(file(|video| push_uint(video, OLD_STEREO_MODE, mode))).unwrap();
        assert_eq!(old(1).arrangement, Some(Arrangement::Single));
        assert_eq!(old(3).arrangement, Some(Arrangement::Unstated));
        let vr = |kind| {
            let fill = |video: &mut Vec<u8>| {
                push_master(video, PROJECTION, |body| push_uint(body, PROJECTION_TYPE, kind));
            };
            stated(file(fill)).unwrap().projection
        };
        let expected = [None, Some(Projection::Equirectangular), Some(Projection::Cubemap)];
        assert_eq!([vr(0), vr(1), vr(2)], expected);
    }
}
