//! Views and projection of the first video track of an MP4 or QuickTime file (ISO/IEC 14496-12): `st3d` and `sv3d`
//! of Google's Spherical Video V2, the older XML of V1, and `vexu` of Apple's spatial video.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::ops::Range;

use super::{Arrangement, Projection, Stated, at};

/// Kind of a box.
pub(super) type Kind = [u8; 4];

/// Largest number of boxes that are read on one level.
const MOST_BOXES: usize = 100_000;

/// Largest number of bytes that are read of a box.
const LONGEST: u64 = 1 << 20;

/// Bytes of an entry of `stsd` before its boxes, behind its head (12.1.3).
const VISUAL: usize = 78;

/// Identifies the box with the XML of V1.
const SPHERICAL_V1: [u8; 16] = [
    0xff, 0xcc, 0x82, 0x63, 0xf8, 0x55, 0x4a, 0x93, 0x88, 0x14, 0x58, 0x7a, 0x02, 0x52, 0x1f, 0xdd,
];

/// Reports whether a file begins with a box of this kind; `rest` are the bytes behind its size.
pub(super) fn begins(rest: &[u8]) -> bool {
    [&b"ftyp"[..], b"moov", b"mdat", b"wide", b"free", b"skip"]
        .iter()
        .any(|kind| rest.starts_with(kind))
}

/// Returns kind and body of each box in a part of a file, and where it begins.
pub(super) fn boxes(file: &mut File, part: Range<u64>) -> io::Result<Vec<(Kind, u64, Range<u64>)>> {
    let (mut all, mut begin) = (Vec::new(), part.start);
    while begin < part.end && all.len() < MOST_BOXES {
        let Some([a, b, c, d, kind @ ..]) = at::<8>(file, begin)? else { break };
        let (head, size) = match u32::from_be_bytes([a, b, c, d]) {
            0 => (8, part.end - begin),
            1 => (16, u64::from_be_bytes(at(file, begin + 8)?.unwrap_or_default())),
            size => (8, u64::from(size)),
        };
        if size < head {
            break;
        }
        let end = begin.saturating_add(size).min(part.end);
        all.push((kind, begin, (begin + head).min(end)..end));
        begin = end;
    }
    Ok(all)
}

pub(super) fn stated(file: &mut File) -> io::Result<Stated> {
    let length = file.metadata()?.len();
    let Some(movie) = first(file, 0..length, &[b"moov"])? else { return Ok(Stated::default()) };
    for (kind, _, track) in boxes(file, movie)? {
        if kind == *b"trak" && is_video(file, track.clone())? {
            return of_track(file, track);
        }
    }
    Ok(Stated::default())
}

/// Returns the body of the first box on this path.
fn first(file: &mut File, part: Range<u64>, path: &[&Kind]) -> io::Result<Option<Range<u64>>> {
    let mut part = part;
    for wanted in path {
        let found = boxes(file, part)?.into_iter().find(|(kind, ..)| kind == *wanted);
        let Some((_, _, body)) = found else { return Ok(None) };
        part = body;
    }
    Ok(Some(part))
}

fn read(file: &mut File, part: Range<u64>) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    file.seek(SeekFrom::Start(part.start))?;
    file.take((part.end - part.start).min(LONGEST)).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn is_video(file: &mut File, track: Range<u64>) -> io::Result<bool> {
    let Some(handler) = first(file, track, &[b"mdia", b"hdlr"])? else { return Ok(false) };
    Ok(at(file, handler.start + 8)? == Some(*b"vide"))
}

fn of_track(file: &mut File, track: Range<u64>) -> io::Result<Stated> {
    let mut stated = Stated::default();
    for (kind, _, body) in boxes(file, track.clone())? {
        if kind == *b"uuid"
            && let Some(xml) = read(file, body)?.strip_prefix(&SPHERICAL_V1)
        {
            stated = of_xml(&String::from_utf8_lossy(xml));
        }
    }
    let Some(table) = first(file, track, &[b"mdia", b"minf", b"stbl", b"stsd"])? else {
        return Ok(stated);
    };
    let table = read(file, table)?;
    if let Some((_, entry)) = children(table.get(8..).unwrap_or_default()).next() {
        of_entry(entry.get(VISUAL..).unwrap_or_default(), &mut stated);
    }
    Ok(stated)
}

/// Returns the bodies of the boxes in `bytes`.
fn children(mut bytes: &[u8]) -> impl Iterator<Item = (Kind, &[u8])> {
    std::iter::from_fn(move || {
        let (&[a, b, c, d, e, f, g, h], _) = bytes.split_first_chunk::<8>()?;
        let size = u32::from_be_bytes([a, b, c, d]) as usize;
        let (own, rest) = bytes.split_at_checked(size).filter(|_| size >= 8)?;
        bytes = rest;
        Some(([e, f, g, h], &own[8..]))
    })
}

fn child<'a>(bytes: &'a [u8], wanted: &Kind) -> Option<&'a [u8]> {
    children(bytes).find(|(kind, _)| kind == wanted).map(|(_, body)| body)
}

/// Adds the statements among the boxes of a video's description.
fn of_entry(entry: &[u8], stated: &mut Stated) {
    use Arrangement as A;
    if let Some(&[_, _, _, _, mode]) =
        child(entry, b"st3d").and_then(|body| body.first_chunk::<5>())
    {
        stated.right_first = mode == 4;
        stated.arrangement = Some(match mode {
            0 => A::Single,
            1 => A::TopBottom,
            2 | 4 => A::SideBySide,
            _ => A::Unstated,
        });
    }
    if let Some(projection) = child(entry, b"sv3d").and_then(|body| child(body, b"proj")) {
        stated.projection = children(projection).find_map(|(kind, body)| match &kind {
            b"equi" => Some(of_bounds(body)),
            b"cbmp" => Some(Projection::Cubemap),
            b"mshp" => Some(Projection::Mesh),
            _ => None,
        });
    }
    if let Some(extended) = child(entry, b"vexu") {
        of_extended(extended, child(entry, b"lhvC").is_some(), stated);
    } else if child(entry, b"lhvC").is_some() {
        stated.arrangement = Some(A::MvHevc);
    }
}

/// Returns the projection of these bounds: VR180 shows a half of the sphere's width.
fn of_bounds(body: &[u8]) -> Projection {
    let bound = |at: usize| {
        body.get(at..at + 4).map(|b| u64::from(u32::from_be_bytes([b[0], b[1], b[2], b[3]])))
    };
    let (left, right) = (bound(12).unwrap_or(0), bound(16).unwrap_or(0));
    // Of 2^32; a quarter is cut off on each side.
    if left + right >= 3 << 29 {
        Projection::HalfEquirectangular
    } else {
        Projection::Equirectangular
    }
}

/// Adds the statements of Apple's `vexu` (QuickTime File Format, "Video extended usage").
fn of_extended(body: &[u8], has_layers: bool, stated: &mut Stated) {
    // Bits: left view, right view, further views, right one first.
    let views =
        child(body, b"eyes").and_then(|eyes| child(eyes, b"stri")).and_then(|stri| stri.get(4));
    let views = views.copied().unwrap_or(0);
    let packed =
        child(body, b"pack").and_then(|pack| child(pack, b"pkin")).and_then(|pkin| pkin.get(4..8));
    let arrangement = match packed {
        Some(b"side") => Some(Arrangement::SideBySide),
        Some(b"over") => Some(Arrangement::TopBottom),
        Some(_) => Some(Arrangement::Unstated),
        None if has_layers || views & 3 == 3 => Some(Arrangement::MvHevc),
        None => None,
    };
    if arrangement.is_some() {
        (stated.arrangement, stated.right_first) = (arrangement, views & 8 != 0);
    }
    let kind =
        child(body, b"proj").and_then(|proj| child(proj, b"prji")).and_then(|prji| prji.get(4..8));
    stated.projection = match kind {
        Some(b"equi") => Some(Projection::Equirectangular),
        Some(b"hequ") => Some(Projection::HalfEquirectangular),
        Some(b"fish") => Some(Projection::Fisheye),
        _ => stated.projection,
    };
}

/// Returns the statement of Spherical Video V1.
fn of_xml(xml: &str) -> Stated {
    let value = |name: &str| {
        let (_, rest) = xml.split_once(&format!("<GSpherical:{name}>"))?;
        rest.split_once('<').map(|(value, _)| value.trim())
    };
    let arrangement = match value("StereoMode") {
        Some("left-right") => Some(Arrangement::SideBySide),
        Some("top-bottom") => Some(Arrangement::TopBottom),
        _ => None,
    };
    let is_spherical = value("Spherical").is_some_and(|spherical| spherical == "true");
    let projection = is_spherical.then_some(Projection::Equirectangular);
    Stated { arrangement, right_first: false, projection }
}

#[cfg(test)]
pub(super) mod tests {
    use std::io::Write;

    use super::*;

    /// Returns a box.
    pub fn boxed(kind: &Kind, parts: &[&[u8]]) -> Vec<u8> {
        let body = parts.concat();
        [&(body.len() as u32 + 8).to_be_bytes()[..], kind, &body].concat()
    }

    /// Returns the statement of a file with a track of sound and one of video, whose description ends with
    /// `entry` and whose track with `beside`.
    fn of(entry: &[u8], beside: &[u8]) -> Stated {
        let handler = |kind: &[u8]| boxed(b"hdlr", &[&[0; 8], kind, &[0; 13]]);
        let entry = boxed(b"hvc1", &[&[0; VISUAL], &boxed(b"hvcC", &[&[1; 23]]), entry]);
        let table = boxed(b"stbl", &[&boxed(b"stsd", &[&[0, 0, 0, 0, 0, 0, 0, 1], &entry])]);
        let media = boxed(b"mdia", &[&handler(b"vide"), &boxed(b"minf", &[&table])]);
        let sound = boxed(b"trak", &[&boxed(b"mdia", &[&handler(b"soun")])]);
        let movie = boxed(b"moov", &[&sound, &boxed(b"trak", &[beside, &media])]);
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(&[boxed(b"ftyp", &[b"qt  "]), boxed(b"mdat", &[&[7; 90]]), movie].concat())
            .unwrap();
        stated(&mut file).unwrap()
    }

    #[test]
    fn boxes_of_spherical_video_are_read() {
        use Arrangement::*;
        let modes = [
            (Single, false),
            (TopBottom, false),
            (SideBySide, false),
            (Unstated, false),
            (SideBySide, true),
        ];
        for (mode, (arrangement, right_first)) in (0..).zip(modes) {
            let stated = of(&boxed(b"st3d", &[&[0, 0, 0, 0, mode]]), &[]);
            assert_eq!(
                stated,
                Stated { arrangement: Some(arrangement), right_first, projection: None }
            );
        }
        let sphere = |kind: &Kind, body: &[u8]| {
            let proj = boxed(b"proj", &[&boxed(b"prhd", &[&[0; 16]]), &boxed(kind, &[body])]);
            of(&boxed(b"sv3d", &[&boxed(b"svhd", &[&[0; 5]]), &proj]), &[]).projection
        };
        assert_eq!(sphere(b"equi", &[0; 20]), Some(Projection::Equirectangular));
        let half = [&[0; 12][..], &[0x40, 0, 0, 0, 0x40, 0, 0, 0]].concat();
        assert_eq!(sphere(b"equi", &half), Some(Projection::HalfEquirectangular));
        assert_eq!(sphere(b"cbmp", &[0; 12]), Some(Projection::Cubemap));
        assert_eq!(of(&[], &[]), Stated::default());
        let xml = b"<GSpherical:Spherical>true</GSpherical:Spherical>\
                    <GSpherical:StereoMode>top-bottom</GSpherical:StereoMode>";
        let first = of(&[], &boxed(b"uuid", &[&SPHERICAL_V1, xml]));
        assert_eq!(first.arrangement, Some(TopBottom));
        assert_eq!(first.projection, Some(Projection::Equirectangular));
    }

    #[test]
    fn boxes_of_spatial_video_are_read() {
        let eyes = |bits| boxed(b"eyes", &[&boxed(b"stri", &[&[0, 0, 0, 0, bits]])]);
        let of_parts = |parts: &[&[u8]]| of(&boxed(b"vexu", parts), &[]);
        assert_eq!(of_parts(&[&eyes(3)]).arrangement, Some(Arrangement::MvHevc));
        assert_eq!(of_parts(&[&eyes(1)]), Stated::default());
        let packed = |kind: &[u8]| boxed(b"pack", &[&boxed(b"pkin", &[&[0; 4], kind])]);
        let side = of_parts(&[&eyes(11), &packed(b"side")]);
        assert_eq!((side.arrangement, side.right_first), (Some(Arrangement::SideBySide), true));
        assert_eq!(of_parts(&[&packed(b"over")]).arrangement, Some(Arrangement::TopBottom));
        let projected = boxed(b"proj", &[&boxed(b"prji", &[&[0; 4], b"hequ"])]);
        assert_eq!(of_parts(&[&projected]).projection, Some(Projection::HalfEquirectangular));
        assert_eq!(of(&boxed(b"lhvC", &[&[0; 9]]), &[]).arrangement, Some(Arrangement::MvHevc));
    }
}
