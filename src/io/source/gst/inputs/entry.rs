//! Leaves out the frames at the beginning of an H.264 or H.265 stream that build on frames before it, as in a
//! recording that was cut, or a broadcast that was joined.
//!
//! Decoders deliver such frames like any others, with grey or false content. A stream that begins with a key frame
//! has none. Otherwise it becomes whole at a recovery point, with intra refresh some frames later; frames that are
//! decoded behind the first whole one but shown before it build on missing ones, too.

use std::sync::{Arc, Mutex};

use gstreamer as gst;
use gstreamer::prelude::*;

use crate::source::byte_stream::Codec;
use crate::source::gst::appsink::Shared;
use crate::source::gst::checks::time_jumps::decoder_input;
use crate::source::gst::units::references::{Fate, References};
use stereod_core::thread::locked;

/// Units behind the first whole one that may be shown before it. No frame is reordered across more than 16 others.
const REORDERED: u32 = 64;

/// Treatment of a unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Treatment {
    Deliver,
    /// The decoder needs it to become whole.
    Decode,
    Drop,
}

/// Beginning of a stream.
struct Entry {
    references: References,
    /// Bytes of the length before each NAL unit; `None`: start codes.
    length_bytes: Option<usize>,
    /// Time of the first whole frame.
    first: Option<gst::ClockTime>,
    /// Units since then.
    since: u32,
}

/// Watches every decoder of `pipeline` for H.264 and H.265.
pub(in crate::source::gst) fn watch(pipeline: &gst::Pipeline, shared: &Arc<Shared>) {
    let shared = Arc::downgrade(shared);
    pipeline.connect_deep_element_added(move |_, _, element| {
        let Some(pad) = decoder_input(element) else { return };
        let hidden = Arc::new(Mutex::new(Vec::new()));
        if let Some(output) = element.static_pad("src") {
            hide(&output, hidden.clone());
        }
        let (shared, entry) = (shared.clone(), Mutex::new(None::<Entry>));
        pad.add_probe(gst::PadProbeType::BUFFER, move |pad, info| {
            let mut entry = locked(&entry);
            if entry.is_none() {
                *entry = pad.current_caps().and_then(|caps| Entry::of(caps.structure(0)?));
            }
            let Some(entry) = &mut *entry else { return gst::PadProbeReturn::Remove };
            let Some(buffer) = info.buffer() else { return gst::PadProbeReturn::Ok };
            let treatment = match buffer.map_readable() {
                Ok(unit) => entry.next(&unit, buffer.pts()),
                Err(_) => Treatment::Deliver,
            };
            if treatment != Treatment::Deliver
                && let Some(shared) = shared.upgrade()
            {
                shared.note_dropped("its first pictures build on missing ones");
            }
            match treatment {
                Treatment::Deliver if entry.since > REORDERED => gst::PadProbeReturn::Remove,
                Treatment::Deliver => gst::PadProbeReturn::Ok,
                Treatment::Decode => {
                    locked(&hidden).extend(buffer.pts());
                    gst::PadProbeReturn::Ok
                }
                Treatment::Drop => gst::PadProbeReturn::Handled,
            }
        });
    });
}

/// Drops decoded frames with these times.
fn hide(output: &gst::Pad, hidden: Arc<Mutex<Vec<gst::ClockTime>>>) {
    output.add_probe(gst::PadProbeType::BUFFER, move |_, info| {
        let time = info.buffer().and_then(|buffer| buffer.pts());
        let is_hidden = time.is_some_and(|time| locked(&hidden).contains(&time));
        if is_hidden { gst::PadProbeReturn::Handled } else { gst::PadProbeReturn::Ok }
    });
}

impl Entry {
    /// Begins a stream of this format; `None` for other codecs.
    fn of(format: &gst::StructureRef) -> Option<Self> {
        let codec = match format.name().as_str() {
            "video/x-h264" => Codec::H264,
            "video/x-h265" => Codec::H265,
            _ => return None,
        };
        let mut references = References::new(codec);
        let mut length_bytes = None;
        if let Ok(record) = format.get::<gst::Buffer>("codec_data") {
            let record = record.map_readable().ok()?;
            let (bytes, parameters) = parameters(&record, codec)?;
            length_bytes = Some(bytes);
            references.next(&parameters);
        }
        Some(Self { references, length_bytes, first: None, since: 0 })
    }

    fn next(&mut self, unit: &[u8], time: Option<gst::ClockTime>) -> Treatment {
        let unit = match self.length_bytes {
            Some(bytes) => with_start_codes(unit, bytes),
            None => unit.to_vec(),
        };
        let (fate, is_intra) = self.references.next_or_intra(&unit);
        let Some(first) = self.first else {
            return match fate {
                Fate::Missing if !is_intra => Treatment::Drop,
                Fate::Recovering => Treatment::Decode,
                Fate::Whole | Fate::Missing => {
                    self.first = Some(time.unwrap_or_default());
                    Treatment::Deliver
                }
            };
        };
        self.since += 1;
        let is_shown_before = time.is_some_and(|time| time < first);
        if is_shown_before && fate == Fate::Missing { Treatment::Drop } else { Treatment::Deliver }
    }
}

/// Returns the number of length bytes, and the parameter sets as a byte stream, of a decoder configuration record
/// (ISO/IEC 14496-15, 5.3.3 and 8.3.3).
fn parameters(record: &[u8], codec: Codec) -> Option<(usize, Vec<u8>)> {
    let mut sets = Vec::new();
    let mut rest;
    let length_bytes = match codec {
        Codec::H264 => {
            rest = record.get(5..)?;
            for mask in [0x1f, 0xff] {
                let (&count, after) = rest.split_first()?;
                rest = take_sets(after, usize::from(count & mask), &mut sets)?;
            }
            record[4]
        }
        Codec::H265 => {
            let (&arrays, after) = record.get(22..)?.split_first()?;
            rest = after;
            for _ in 0..arrays {
                let ([_, a, b], after) = rest.split_first_chunk::<3>()?;
                rest = take_sets(after, usize::from(u16::from_be_bytes([*a, *b])), &mut sets)?;
            }
            record[21]
        }
    };
    Some((usize::from(length_bytes & 3) + 1, sets))
}

/// Appends `count` parameter sets, each behind its length of two bytes, and returns the rest.
fn take_sets<'a>(mut rest: &'a [u8], count: usize, sets: &mut Vec<u8>) -> Option<&'a [u8]> {
    for _ in 0..count {
        let (&length, after) = rest.split_first_chunk::<2>()?;
        let (set, after) = after.split_at_checked(usize::from(u16::from_be_bytes(length)))?;
        sets.extend([0, 0, 1]);
        sets.extend(set);
        rest = after;
    }
    Some(rest)
}

/// Replaces the length before each NAL unit by a start code.
fn with_start_codes(mut unit: &[u8], length_bytes: usize) -> Vec<u8> {
    let mut stream = Vec::with_capacity(unit.len() + 16);
    while let Some((length, after)) = unit.split_at_checked(length_bytes) {
        let length = length.iter().fold(0, |length, &byte| length << 8 | usize::from(byte));
        if length == 0 && after.is_empty() || length_bytes == 0 {
            break;
        }
        let (nal, after) = after.split_at(length.min(after.len()));
        stream.extend([0, 0, 1]);
        stream.extend(nal);
        unit = after;
    }
    stream
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::gst::units::access_units::tests::stamped_units;

    #[test]
    fn records_of_parameters_become_byte_streams() {
        let avc = [1, 100, 0, 30, 0xff, 0xe1, 0, 2, 0x67, 7, 1, 0, 1, 0x68];
        let sets = vec![0, 0, 1, 0x67, 7, 0, 0, 1, 0x68];
        assert_eq!(parameters(&avc, Codec::H264), Some((4, sets)));
        let hevc = [&[1; 21][..], &[0xfd, 1, 0xa1, 0, 2, 0, 1, 0x42, 0, 2, 0x42, 9]].concat();
        assert_eq!(
            parameters(&hevc, Codec::H265),
            Some((2, vec![0, 0, 1, 0x42, 0, 0, 1, 0x42, 9]))
        );
        for (record, codec) in [(&avc[..], Codec::H264), (&hevc[..], Codec::H265)] {
            for end in 0..record.len() {
                assert_eq!(parameters(&record[..end], codec), None, "{end}");
            }
        }
    }

    #[test]
    fn lengths_become_start_codes() {
        let unit = [0, 0, 0, 2, 0x65, 1, 0, 0, 0, 1, 0x41];
        assert_eq!(with_start_codes(&unit, 4), [0, 0, 1, 0x65, 1, 0, 0, 1, 0x41]);
        assert_eq!(with_start_codes(&unit[..5], 4), [0, 0, 1, 0x65]);
        assert!(with_start_codes(&[0, 0], 4).is_empty());
    }

    /// Returns the treatment of each frame of a stream that lacks its first `cut` units, in order of the times.
    fn treatments(codec: Codec, encoder: &str, cut: usize) -> Vec<Treatment> {
        let parse = format!("{encoder} ! {codec}parse config-interval=-1 ! video/x-{codec}");
        let units = stamped_units(&parse, 40);
        let format = gst::Structure::new_empty(format!("video/x-{codec}"));
        let mut entry = Entry::of(&format).unwrap();
        if cut > 0 {
            // It has the parameter sets.
            entry.references.next(&units[0].1);
            entry.references.lose();
        }
        let treat = |(time, unit): &(u64, Vec<u8>)| {
            (*time, entry.next(unit, Some(gst::ClockTime::from_nseconds(*time))))
        };
        let mut all: Vec<(u64, Treatment)> = units[cut..].iter().map(treat).collect();
        all.sort_by_key(|(time, _)| *time);
        all.into_iter().map(|(_, treatment)| treatment).collect()
    }

    #[test]
    fn frames_before_the_first_whole_one_are_not_delivered() {
        for (codec, encoder, is_refreshed) in [
            (Codec::H264, "x264enc key-int-max=10 bframes=0 intra-refresh=true", true),
            (
                Codec::H264,
                "x264enc key-int-max=10 bframes=2 b-adapt=false option-string=open-gop=1",
                false,
            ),
            (
                Codec::H265,
                "x265enc key-int-max=10 option-string=open-gop=1:bframes=4:b-adapt=0",
                false,
            ),
        ] {
            let whole = treatments(codec, encoder, 0);
            assert!(whole.iter().all(|&one| one == Treatment::Deliver), "{encoder}: {whole:?}");
            let cut = treatments(codec, encoder, 4);
            let first = cut.iter().position(|&one| one == Treatment::Deliver).unwrap();
            assert!(
                first > 0 && cut[first..].iter().all(|&one| one == Treatment::Deliver),
                "{cut:?}"
            );
            assert_eq!(
                cut[..first].contains(&Treatment::Decode),
                is_refreshed,
                "{encoder}: {cut:?}"
            );
        }
    }
}
