//! ZED's `.svo2`: an MCAP file with a side-by-side video, by the layout that RadarML published (open-svo2,
//! docs/format.md and `FrameFooter` in src/open_svo2/metadata.py).
//!
//! A message of the topic `Camera_SN…/side_by_side` has the number of the bytes that follow, the length of the
//! access unit, the unit as a byte stream of H.264 or H.265, and a footer of 56 bytes. All numbers are
//! little-endian. The layout has no calibration of the cameras.

use anyhow::{Context, Result, ensure};

use super::interface::{Encoding, Topic};
use crate::source::byte_stream::start_code;

/// Topic that only these files have.
const HEADER: &str = "svo_header";

/// End of the name of the topic with the video.
const VIDEO: &str = "/side_by_side";

/// Length of the two numbers before the access unit.
const LENGTHS: usize = 8;

/// Position of the time of capture in the footer, in nanoseconds.
const STAMP: usize = 0x18;

/// Times before this (1973) are none in nanoseconds since 1970. The published example has milliseconds.
const EARLIEST: u64 = 100_000_000_000_000_000;

/// Refusal of the format before `.svo2`.
pub(super) const FIRST_VERSION: &str = "recordings of ZED's older format (.svo) are not read; ZED's tools convert \
                                        them to .svo2, or to a video for `--side-by-side`";

pub(super) fn mark(topics: &mut [Topic]) -> bool {
    if !topics.iter().any(|topic| topic.name == HEADER) {
        return false;
    }
    for topic in topics {
        if topic.name.ends_with(VIDEO) {
            (topic.kind, topic.encoding) = ("ZED side by side".to_owned(), Encoding::Svo);
        }
    }
    true
}

/// Returns the time of capture, or 0 if there is none, and the access unit of a message.
pub(super) fn frame(message: &[u8]) -> Result<(u64, &[u8])> {
    let length = message.get(4..LENGTHS).context("the message has no length")?;
    let length = u32::from_le_bytes(length.try_into()?) as usize;
    let rest = &message[LENGTHS..];
    let (unit, footer) = rest.split_at_checked(length).with_context(|| {
        format!("the message names a frame of {length} bytes, but has {}", rest.len())
    })?;
    ensure!(
        start_code(unit).is_some(),
        "the frames are neither H.264 nor H.265; encrypted and lossless .svo2 files are not read: ZED's tools \
         convert them to H.264 or H.265"
    );
    let stamp = footer.get(STAMP..STAMP + 8).and_then(|bytes| bytes.try_into().ok());
    let stamp = stamp.map(u64::from_le_bytes).filter(|stamp| *stamp >= EARLIEST);
    Ok((stamp.unwrap_or(0), unit))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A message with this unit, made by the published layout.
    fn message(unit: &[u8], stamp: u64) -> Vec<u8> {
        let length = unit.len() as u32;
        let mut message = [length + 4 + 56, length].map(u32::to_le_bytes).concat();
        message.extend(unit);
        message
            .extend([3840_u32, 1080, 0x5c00_2c00, 1, 2, u32::MAX].map(u32::to_le_bytes).concat());
        message.extend(stamp.to_le_bytes());
        message.extend([length, 3, 0, 0, 0].map(u32::to_le_bytes).concat());
        message.extend([0; 4]);
        message
    }

    #[test]
    fn a_frame_stands_between_lengths_and_footer() {
        let unit = [0, 0, 0, 1, 0x67, 9];
        let time = 1_738_434_526_000_000_000;
        let whole = message(&unit, time);
        assert_eq!(whole.len(), 8 + unit.len() + 56);
        assert_eq!(frame(&whole).unwrap(), (time, &unit[..]));
        assert_eq!(frame(&message(&unit, time / 1_000_000)).unwrap().0, 0);
        // Without a footer there is no time of its own.
        assert_eq!(frame(&whole[..8 + unit.len()]).unwrap(), (0, &unit[..]));
        for length in 0..8 + unit.len() {
            assert!(frame(&whole[..length]).is_err(), "{length} bytes");
        }
        let error = frame(&message(&[7; 9], 77)).unwrap_err().to_string();
        assert!(error.contains("encrypted") && error.contains("lossless"), "{error}");
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(message in prop::collection::vec(any::<u8>(), 0..100)) {
            let _ = frame(&message);
        }
    }
}
