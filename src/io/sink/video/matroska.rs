//! Writes a Matroska file with one video track (RFC 9559).
//!
//! GStreamer's muxer writes tags only at the end of the file, so a killed recording would lack its scale and
//! offset; it supports no custom tags; and it rounds times to milliseconds. This writer puts the tags first,
//! keeps microseconds, and writes every frame at once, each in a cluster of its own:
//!
//! ```text
//! EBML | Segment { SeekHead+Void, Info, Tracks, Tags, Cluster, Cluster, ..., Cues }
//! ```
//!
//! Until [`finish`](MatroskaWriter::finish) the size of the segment is "unknown", and duration and
//! index are missing, so readers scan the clusters. Afterwards all three are present.

use std::io::{self, Seek, SeekFrom, Write};
use std::time::{Duration, SystemTime};

use crate::clock::unix_ns;
use crate::ebml::{
    UNKNOWN_SIZE, id, push, push_id, push_master, push_size, push_uint, push_void, wide_size,
};
use crate::sink::output::Container;
use stereod_core::files::new_file::NewFile;

/// Creates the tags of a file from the capture time of its time 0.
pub(super) type Tags = Box<dyn Fn(Duration) -> Vec<(&'static str, String)> + Send>;

pub(super) struct Header {
    pub(super) track: Track,
    pub(super) tags: Tags,
}

#[derive(Clone, Copy)]
pub(super) struct Packet<'a> {
    pub(super) data: &'a [u8],
    pub(super) private: Option<&'a [u8]>,
}

/// Nanoseconds per tick of the file's times: one microsecond.
pub(super) const TICK_NS: u64 = 1000;

/// Epoch of Matroska's dates: 1 January 2001 in nanoseconds of Unix time.
const DATE_ZERO_NS: i64 = 978_307_200_000_000_000;

/// Bytes reserved for the table of contents, which is complete only at the end.
const SEEK_HEAD_ROOM: usize = 120;

/// Interval of the index in ticks; readers find the frames between by scanning.
const INDEX_INTERVAL: u64 = 500_000;

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Track {
    pub(super) width: u64,
    pub(super) height: u64,
    pub(super) crop_right: u64,
    pub(super) crop_bottom: u64,
    pub(super) codec: String,
    /// Data that the decoder needs before the first frame.
    pub(super) codec_private: Option<Vec<u8>>,
    pub(super) frame_duration: Option<Duration>,
    pub(super) name: String,
}

#[derive(Debug)]
pub(super) struct MatroskaWriter<W> {
    out: W,
    /// Bytes written so far; the file's length after the last complete frame.
    length: u64,
    /// Offsets of the segment's size field and of its body.
    segment_size_at: u64,
    segment: u64,
    duration_at: u64,
    /// Contents of the segment: identifiers and offsets.
    contents: Vec<(u32, u64)>,
    /// Time in ticks and offset of the indexed frames.
    index: Vec<(u64, u64)>,
    last: Option<u64>,
    frame_ticks: Option<u64>,
    frames: u64,
    header: Vec<u8>,
}

impl<W: Write + Seek> MatroskaWriter<W> {
    /// Writes the header. `date` is the time of day of the file's time 0, if known.
    pub(super) fn create(
        out: W,
        track: &Track,
        date: Option<SystemTime>,
        tags: &[(&str, String)],
    ) -> io::Result<Self> {
        let frame_ticks = track.frame_duration.map(|duration| duration.as_nanos() as u64 / TICK_NS);
        let mut writer = Self {
            out,
            length: 0,
            segment_size_at: 0,
            segment: 0,
            duration_at: 0,
            contents: Vec::new(),
            index: Vec::new(),
            last: None,
            frame_ticks,
            frames: 0,
            header: Vec::new(),
        };
        let start = writer.start(track, date, tags);
        writer.out.write_all(&start)?;
        writer.length = start.len() as u64;
        Ok(writer)
    }

    /// Returns the bytes before the first cluster, and notes the offsets of later changes.
    fn start(
        &mut self,
        track: &Track,
        date: Option<SystemTime>,
        tags: &[(&str, String)],
    ) -> Vec<u8> {
        let mut out = Vec::new();
        push_master(&mut out, id::EBML, |ebml| {
            push_uint(ebml, 0x4286, 1); // EBMLVersion
            push_uint(ebml, 0x42f7, 1); // EBMLReadVersion
            push_uint(ebml, 0x42f2, 4); // EBMLMaxIDLength
            push_uint(ebml, 0x42f3, 8); // EBMLMaxSizeLength
            push(ebml, 0x4282, b"matroska"); // DocType
            push_uint(ebml, 0x4287, 4); // DocTypeVersion
            push_uint(ebml, 0x4285, 2); // DocTypeReadVersion
        });
        push_id(&mut out, id::SEGMENT);
        self.segment_size_at = out.len() as u64;
        out.extend(wide_size(UNKNOWN_SIZE));
        self.segment = out.len() as u64;
        let seek_head_at = out.len();
        out.extend([0; SEEK_HEAD_ROOM]);

        self.contents.push((id::INFO, out.len() as u64 - self.segment));
        push_master(&mut out, id::INFO, |info| {
            push_uint(info, 0x2a_d7b1, TICK_NS); // TimestampScale
            let app = concat!("stereod ", env!("CARGO_PKG_VERSION"));
            push(info, 0x4d80, app.as_bytes()); // MuxingApp
            push(info, 0x5741, app.as_bytes()); // WritingApp
            if let Some(date) = date {
                push(info, 0x4461, &(unix_ns(date) - DATE_ZERO_NS).to_be_bytes()); // DateUTC
            }
            push_void(info, 11); // Duration, at the end
        });
        self.duration_at = out.len() as u64 - 11;

        self.contents.push((id::TRACKS, out.len() as u64 - self.segment));
        push_master(&mut out, id::TRACKS, |tracks| {
            push_master(tracks, 0xae, |entry| push_track(entry, track));
        });

        self.contents.push((id::TAGS, out.len() as u64 - self.segment));
        push_master(&mut out, id::TAGS, |all| {
            push_master(all, id::TAG, |tag| {
                push_master(tag, 0x63c0, |targets| push_uint(targets, 0x68ca, 50)); // the whole file
                for (name, value) in tags {
                    push_master(tag, id::SIMPLE_TAG, |simple| {
                        push(simple, id::TAG_NAME, name.as_bytes());
                        push(simple, id::TAG_STRING, value.as_bytes());
                    });
                }
            });
        });
        out[seek_head_at..][..SEEK_HEAD_ROOM].copy_from_slice(&self.seek_head());
        out
    }

    fn seek_head(&self) -> Vec<u8> {
        let mut out = Vec::new();
        push_master(&mut out, id::SEEK_HEAD, |head| {
            for &(element, place) in &self.contents {
                push_master(head, 0x4dbb, |seek| {
                    push(seek, 0x53ab, &element.to_be_bytes()); // SeekID
                    push(seek, 0x53ac, &place.to_be_bytes()); // SeekPosition
                });
            }
        });
        let left = SEEK_HEAD_ROOM - out.len();
        push_void(&mut out, left);
        out
    }

    /// Writes one independently decodable frame. `time` must be later than the previous frame's.
    pub(super) fn frame(&mut self, time: Duration, data: &[u8]) -> io::Result<()> {
        let nanoseconds = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        let ticks = nanoseconds.saturating_add(TICK_NS / 2) / TICK_NS;
        let place = self.length - self.segment;

        // SimpleBlock: track 1, time relative to the cluster 0, keyframe.
        const BLOCK: [u8; 4] = [0x81, 0, 0, 0x80];
        let mut timestamp = Vec::with_capacity(16);
        push_uint(&mut timestamp, 0xe7, ticks);
        let block_size = (BLOCK.len() + data.len()) as u64;
        let mut block = Vec::with_capacity(16);
        push_id(&mut block, 0xa3);
        push_size(&mut block, block_size);

        self.header.clear();
        push_id(&mut self.header, id::CLUSTER);
        push_size(&mut self.header, (timestamp.len() + block.len()) as u64 + block_size);
        self.header.extend(timestamp);
        self.header.extend(block);
        self.header.extend(BLOCK);
        self.out.write_all(&self.header)?;
        self.out.write_all(data)?;

        self.length += (self.header.len() + data.len()) as u64;
        if self.index.last().is_none_or(|&(before, _)| ticks >= before + INDEX_INTERVAL) {
            self.index.push((ticks, place));
        }
        self.last = Some(ticks);
        self.frames += 1;
        Ok(())
    }

    /// Completes the file with index, duration, table of contents and size; may be repeated after a failure.
    /// After a failed [`frame`](Self::frame) the caller first cuts the file to [`length`](Container::length).
    pub(super) fn finish(&mut self) -> io::Result<()> {
        let indexed = self.contents.iter().any(|&(element, _)| element == id::CUES);
        if !self.index.is_empty() && !indexed {
            let mut cues = Vec::new();
            push_master(&mut cues, id::CUES, |cues| {
                for &(time, place) in &self.index {
                    push_master(cues, 0xbb, |point| {
                        push_uint(point, 0xb3, time); // CueTime
                        push_master(point, 0xb7, |positions| {
                            push_uint(positions, 0xf7, 1); // CueTrack
                            push_uint(positions, 0xf1, place); // CueClusterPosition
                        });
                    });
                }
            });
            let place = self.length - self.segment;
            self.out.seek(SeekFrom::Start(self.length))?;
            self.out.write_all(&cues)?;
            self.length += cues.len() as u64;
            self.contents.push((id::CUES, place));
        }

        // The last frame lasts as long as the others: by the rate, or their mean duration.
        let last = self.last.unwrap_or(0);
        let average = last.checked_div(self.frames.saturating_sub(1)).unwrap_or(0);
        let ticks = last + self.frame_ticks.unwrap_or(average);
        if ticks > 0 {
            let mut duration = Vec::new();
            push(&mut duration, id::DURATION, &(ticks as f64).to_be_bytes());
            self.write_at(self.duration_at, &duration)?;
        }
        let seek_head = self.seek_head();
        self.write_at(self.segment, &seek_head)?;
        self.write_at(self.segment_size_at, &wide_size(self.length - self.segment))?;
        self.out.seek(SeekFrom::Start(self.length))?;
        self.out.flush()
    }

    pub(super) fn into_inner(self) -> W {
        self.out
    }

    fn write_at(&mut self, place: u64, bytes: &[u8]) -> io::Result<()> {
        self.out.seek(SeekFrom::Start(place))?;
        self.out.write_all(bytes)
    }
}

impl Container for MatroskaWriter<NewFile> {
    type Header = Header;
    type Frame<'a> = Packet<'a>;

    fn create(
        file: NewFile,
        header: &Header,
        frame: Packet<'_>,
        origin: Duration,
        date: Option<SystemTime>,
    ) -> io::Result<Self> {
        let codec_private = frame.private.map(<[u8]>::to_vec);
        let track = Track { codec_private, ..header.track.clone() };
        Self::create(file, &track, date, &(header.tags)(origin))
    }

    fn append(&mut self, time: Duration, frame: Packet<'_>) -> io::Result<()> {
        self.frame(time, frame.data)
    }

    fn frames(&self) -> u64 {
        self.frames
    }

    fn length(&self) -> u64 {
        self.length
    }

    fn file(&mut self) -> &mut NewFile {
        &mut self.out
    }

    fn finish(&mut self) -> io::Result<()> {
        // A pipe cannot seek, and its reader does not need duration and index.
        match self.out.seeks() {
            true => self.finish(),
            false => self.out.flush(),
        }
    }
}

fn push_track(entry: &mut Vec<u8>, track: &Track) {
    push_uint(entry, 0xd7, 1); // TrackNumber
    push_uint(entry, 0x73c5, 1); // TrackUID
    push_uint(entry, 0x83, 1); // TrackType: video
    push_uint(entry, 0x9c, 0); // FlagLacing
    push(entry, 0x22_b59c, b"und"); // Language
    push(entry, 0x536e, track.name.as_bytes()); // Name
    push(entry, 0x86, track.codec.as_bytes()); // CodecID
    if let Some(private) = &track.codec_private {
        push(entry, 0x63a2, private); // CodecPrivate
    }
    if let Some(duration) = track.frame_duration {
        push_uint(entry, 0x23_e383, duration.as_nanos() as u64); // DefaultDuration
    }
    push_master(entry, 0xe0, |video| {
        push_uint(video, 0xb0, track.width); // PixelWidth
        push_uint(video, 0xba, track.height); // PixelHeight
        if track.crop_bottom > 0 {
            push_uint(video, 0x54aa, track.crop_bottom); // PixelCropBottom
        }
        if track.crop_right > 0 {
            push_uint(video, 0x54dd, track.crop_right); // PixelCropRight
        }
        push_uint(video, 0x9a, 2); // FlagInterlaced: progressive
        push_master(video, 0x55b0, |colour| push_uint(colour, 0x55b9, 2)); // Range: full
    });
}

#[cfg(test)]
pub(super) mod tests {
    use std::io::Cursor;

    use proptest::prelude::*;

    use super::*;
    use crate::ebml::{children, read_body, read_header, skip};

    /// Returns the time in ticks and data of every frame that can be read.
    pub(in crate::sink::video) fn frames(file: &[u8]) -> Vec<(u64, Vec<u8>)> {
        let (mut file, mut frames) = (Cursor::new(file), Vec::new());
        while let Some((element, size)) = read_header(&mut file).unwrap() {
            match element {
                id::SEGMENT => {}
                id::CLUSTER => {
                    let body = read_body(&mut file, size, u64::MAX).unwrap();
                    if (body.len() as u64) < size {
                        break;
                    }
                    let of = |wanted| children(&body).find(|(id, _)| *id == wanted).unwrap().1;
                    let ticks = of(0xe7).iter().fold(0, |n, &byte| n << 8 | u64::from(byte));
                    frames.push((ticks, of(0xa3)[4..].to_vec()));
                }
                _ if skip(&mut file, size).is_err() => break,
                _ => {}
            }
        }
        frames
    }

    fn track(private: Option<Vec<u8>>, name: String, rate: Option<u64>) -> Track {
        Track {
            width: 640,
            height: 480,
            crop_right: 0,
            crop_bottom: 0,
            codec: "V_FFV1".to_owned(),
            codec_private: private,
            frame_duration: rate.map(Duration::from_nanos),
            name,
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn frames_come_back_whole_cut_or_finished(
            times in prop::collection::vec(prop_oneof![0u64..1 << 40, any::<u64>()], 0..12),
            lengths in prop::collection::vec(prop_oneof![0usize..300, 16_380usize..16_390], 12),
            private in prop::option::of(prop::collection::vec(any::<u8>(), 0..200)),
            (name, tag) in ("\\PC{0,40}", "\\PC{0,200}"),
            rate in prop::option::of(any::<u64>()),
            cut in 0.0..1.0_f64,
        ) {
            let track = track(private, name, rate);
            let tags = [("TITLE", tag)];
            let mut writer =
                MatroskaWriter::create(Cursor::new(Vec::new()), &track, None, &tags).unwrap();
            let mut expected = Vec::new();
            for (number, (&time, &length)) in times.iter().zip(&lengths).enumerate() {
                let data = vec![number as u8; length];
                writer.frame(Duration::from_nanos(time), &data).unwrap();
                expected.push((time.saturating_add(TICK_NS / 2) / TICK_NS, data));
            }
            let killed = writer.out.get_ref().clone();
            prop_assert_eq!(killed.len() as u64, writer.length);
            prop_assert_eq!(&frames(&killed), &expected);
            let some = frames(&killed[..(cut * killed.len() as f64) as usize]);
            prop_assert_eq!(&some[..], &expected[..some.len()]);
            writer.finish().unwrap();
            prop_assert_eq!(&frames(writer.out.get_ref()), &expected);
            prop_assert_eq!(writer.frames, expected.len() as u64);
        }
    }
}
