//! Joins recordings of one stream: the encoded frames are copied, and their times continue.

use std::fs::File;
use std::io::{BufReader, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};

use super::matroska::{MatroskaWriter, TICK_NS, Track};
use super::tags::{FIRST, FIRST_FRAME};
use crate::ebml::{UNKNOWN_SIZE, children, collect_tags, id, read_body, read_header, skip};
use crate::labels::TIMECODE;
use stereod_core::files::explain;
use stereod_core::files::new_file::NewFile;
use stereod_core::reading;

/// Largest size of anything but frames, and of a frame with its header, in bytes.
const LONGEST: [u64; 2] = [1 << 24, 1 << 30];

/// Tags that depend on the first frame. The comment repeats the others.
const OF_FIRST: [&str; 4] = [FIRST, FIRST_FRAME, TIMECODE, "COMMENT"];

struct Head {
    track: Track,
    /// Names and values.
    tags: Vec<(String, String)>,
    /// Capture time of the first frame in nanoseconds.
    first_ns: u64,
}

/// Joins the recordings `parts`, which stereod has written from consecutive ranges of one source, into `to`. Returns
/// the number of frames. The result has the bytes of a recording of the whole range.
pub fn join_recordings(parts: &[PathBuf], to: &Path) -> Result<u64> {
    let (first, _) = parts.split_first().context("there is nothing to join")?;
    let (head, _) = head(first)?;
    let tags: Vec<(&str, String)> =
        head.tags.iter().map(|(name, value)| (name.as_str(), value.clone())).collect();
    let refused = |error| explain(to, &error);
    let file = NewFile::create(to)?;
    let mut writer = MatroskaWriter::create(file, &head.track, None, &tags).map_err(refused)?;
    let (mut frames, mut last) = (0, None);
    for path in parts {
        let shown = path.display();
        let (other, mut file) = self::head(path)?;
        ensure!(other.is_same(&head), "{shown} is of another stream than {}", first.display());
        let shift = other.first_ns.checked_sub(head.first_ns);
        let shift = shift.with_context(|| format!("{shown} begins before {}", first.display()))?;
        let mut next = Some((id::CLUSTER, file.1));
        while let Some((element, size)) = next {
            if element == id::CLUSTER {
                let (ticks, frame) = frame(&mut file.0, size).with_context(|| shown.to_string())?;
                let time = Duration::from_nanos(shift + ticks * TICK_NS);
                ensure!(
                    last.is_none_or(|last| time > last),
                    "{shown} overlaps with the recording before it"
                );
                writer.frame(time, &frame).map_err(refused)?;
                (frames, last) = (frames + 1, Some(time));
            } else {
                skip(&mut file.0, size).with_context(|| shown.to_string())?;
            }
            next = read_header(&mut file.0).with_context(|| shown.to_string())?;
        }
    }
    writer.finish().map_err(refused)?;
    let mut file = writer.into_inner();
    file.flush().and_then(|()| file.put_in_place()).map_err(refused)?;
    Ok(frames)
}

impl Head {
    fn is_same(&self, other: &Self) -> bool {
        let of_stream = |head: &Self| {
            let tags = head.tags.iter().filter(|(name, _)| !OF_FIRST.contains(&&**name));
            tags.cloned().collect::<Vec<_>>()
        };
        let kind =
            |head: &Self| Track { frame_duration: None, name: String::new(), ..head.track.clone() };
        kind(self) == kind(other) && of_stream(self) == of_stream(other)
    }
}

/// Reads a recording up to its first frame. Returns the file there, and the size of the first cluster.
fn head(path: &Path) -> Result<(Head, (BufReader<File>, u64))> {
    read_head(path).with_context(|| format!("cannot read the recording {}", path.display()))
}

fn read_head(path: &Path) -> Result<(Head, (BufReader<File>, u64))> {
    let mut file = BufReader::with_capacity(1 << 20, reading::open(path)?);
    let (mut tracks, mut tags) = (Vec::new(), Vec::new());
    let size = loop {
        let Some((element, size)) = read_header(&mut file)? else { bail!("it has no frame") };
        match element {
            id::CLUSTER => break size,
            id::SEGMENT => {}
            _ if size == UNKNOWN_SIZE => bail!("it is no recording of stereod"),
            id::TRACKS => tracks = read_body(&mut file, size, LONGEST[0])?,
            id::TAGS => collect_tags(&read_body(&mut file, size, LONGEST[0])?, &mut tags),
            _ => skip(&mut file, size)?,
        }
    };
    let entry =
        children(&tracks).find(|(element, _)| *element == 0xae).context("it has no track")?.1;
    let of =
        |body, wanted| children(body).find(|(element, _)| *element == wanted).map(|(_, body)| body);
    let text = |wanted| String::from_utf8_lossy(of(entry, wanted).unwrap_or_default()).into_owned();
    let video = of(entry, 0xe0).context("it has no video")?;
    let first = tags.iter().find(|(name, _)| name == FIRST);
    let first = first.and_then(|(_, value)| value.parse().ok());
    let first_ns =
        first.context("it is no recording of stereod: it lacks the time of its first frame")?;
    let side = |wanted| of(video, wanted).map_or(0, number);
    let track = Track {
        width: side(0xb0),
        height: side(0xba),
        crop_right: side(0x54dd),
        crop_bottom: side(0x54aa),
        codec: text(0x86),
        codec_private: of(entry, 0x63a2).map(<[u8]>::to_vec),
        frame_duration: of(entry, 0x23_e383).map(|ns| Duration::from_nanos(number(ns))),
        name: text(0x536e),
    };
    Ok((Head { track, tags, first_ns }, (file, size)))
}

/// Reads the cluster of a frame: its time in ticks, and the encoded frame.
fn frame(file: &mut BufReader<File>, size: u64) -> Result<(u64, Vec<u8>)> {
    let body = read_body(file, size, LONGEST[1])?;
    ensure!(body.len() as u64 == size, "it is cut off within a frame");
    let of = |wanted| children(&body).find(|(element, _)| *element == wanted).map(|(_, body)| body);
    let (time, block) = of(0xe7).zip(of(0xa3)).context("a frame is damaged")?;
    // Track 1, time 0 within the cluster, key frame.
    let data = block.strip_prefix(&[0x81, 0, 0, 0x80]).context("it is no recording of stereod")?;
    Ok((number(time), data.to_vec()))
}

fn number(bytes: &[u8]) -> u64 {
    bytes.iter().take(8).fold(0, |number, &byte| number << 8 | u64::from(byte))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::super::matroska::tests::frames;
    use super::*;

    /// Writes a recording with its first frame captured at `first`, and frames at these distances from it.
    fn write(path: &Path, first: Duration, times: &[Duration], width: u64) {
        let track = Track {
            width,
            height: 4,
            crop_right: 0,
            crop_bottom: 1,
            codec: "V_FFV1".to_owned(),
            codec_private: Some(b"private".to_vec()),
            frame_duration: Some(Duration::from_nanos(33_333_333)),
            name: "disparity".to_owned(),
        };
        let [number, first] = [first.as_millis() / 33, first.as_nanos()].map(|it| it.to_string());
        let tags = [("DISPARITY_SCALE", "256".into()), (FIRST, first), (FIRST_FRAME, number)];
        let mut writer =
            MatroskaWriter::create(NewFile::create(path).unwrap(), &track, None, &tags).unwrap();
        for (number, &time) in times.iter().enumerate() {
            writer.frame(time, &vec![number as u8; 3 + number]).unwrap();
        }
        writer.finish().unwrap();
        writer.into_inner().put_in_place().unwrap();
    }

    #[test]
    fn joined_recordings_are_those_of_the_whole_run() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let ms = Duration::from_millis;
        let begin = ms(500);
        write(&at("a"), begin, &[ms(0), ms(33), ms(66)], 8);
        write(&at("b"), begin + ms(100), &[ms(0), ms(33)], 8);
        let parts = [at("a"), at("b")];
        assert_eq!(join_recordings(&parts, &at("joined")).unwrap(), 5);
        let ticks: Vec<u64> =
            frames(&fs::read(at("joined")).unwrap()).iter().map(|(t, _)| *t).collect();
        assert_eq!(ticks, [0, 33_000, 66_000, 100_000, 133_000]);
        // A single recording is copied unchanged.
        assert_eq!(join_recordings(&parts[..1], &at("alone")).unwrap(), 3);
        assert_eq!(fs::read(at("alone")).unwrap(), fs::read(at("a")).unwrap());

        let refused = |parts: &[PathBuf]| {
            let error = join_recordings(parts, &at("wrong")).unwrap_err();
            assert!(!at("wrong").exists());
            format!("{error:#}")
        };
        assert!(refused(&[at("b"), at("a")]).contains("begins before"));
        assert!(refused(&[at("a"), at("a")]).contains("overlaps"));
        write(&at("wide"), begin + ms(100), &[ms(0)], 16);
        assert!(refused(&[at("a"), at("wide")]).contains("another stream"));
        let whole = fs::read(at("a")).unwrap();
        for length in 0..whole.len() - 40 {
            fs::write(at("cut"), &whole[..length]).unwrap();
            // Every prefix is an error or a recording with fewer frames.
            if let Ok(frames) = join_recordings(&[at("cut")], &at("short")) {
                assert!((1..=3).contains(&frames), "{length}");
            }
        }
        fs::write(at("other"), "no recording").unwrap();
        assert!(refused(&[at("other")]).contains("no frame"));
    }
}
