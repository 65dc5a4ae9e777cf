//! Number and settings of the encoders of a lossless video.

use anyhow::Result;
use gstreamer as gst;
use gstreamer::prelude::*;

use stereod_core::memory::{self, Budget};
use stereod_core::thread;

/// Bytes a pixel that an encoder allocates with its first frame: FFmpeg (5.1) reserves the longest
/// possible frame, 37 bytes a pixel, four times.
const BYTES_OF_PIXEL: usize = 148;

/// Largest number of encoders of one video.
const MOST: usize = 16;

/// Divisor of the free memory budget for further encoders of one video: a quarter.
const SHARE: u64 = 4;

/// Encoders that take frames in turn. All produce the same bytes of a frame.
#[derive(Debug)]
pub(super) struct Encoders {
    /// Encoders, each a chain of one element.
    pub(super) elements: Vec<gst::Element>,
    /// Reserved memory of all encoders but the first, which is not budgeted, like decoders.
    pub(super) room: Option<memory::Reserved>,
}

impl Encoders {
    /// Creates as many encoders as keep the processors busy and fit into the memory budget.
    pub(super) fn new(width: usize, height: usize) -> Result<Self> {
        let (cores, budget) = (thread::available(), Budget::of_process());
        let one = memory::product([width, height, BYTES_OF_PIXEL]);
        let further = useful(cores, one, budget.left()) - 1;
        let bytes = one.saturating_mul(further as u64);
        let room = budget.reserve("encoding", bytes, "make memory free").ok();
        let count = 1 + room.as_ref().map_or(0, |_| further);
        Ok(Self { room, ..Self::of(count, width, height)? })
    }

    /// Creates this many encoders.
    pub(super) fn of(count: usize, width: usize, height: usize) -> Result<Self> {
        let elements = (0..count).map(|_| encoder(width, height)).collect::<Result<_>>()?;
        Ok(Self { elements, room: None })
    }
}

/// Returns the number of encoders that keep the processors busy if each takes `one` of `left`
/// bytes.
///
/// A single encoder waits for the slowest slice of each frame and leaves the other processors idle;
/// slices of further frames fill them. A single processor is never idle.
fn useful(cores: usize, one: u64, left: u64) -> usize {
    let affordable = usize::try_from(left / SHARE / one.max(1)).unwrap_or(usize::MAX);
    let busy = if cores > 1 { cores.div_ceil(2) + 1 } else { 1 };
    busy.min(MOST).min(affordable.saturating_add(1))
}

/// Creates an FFV1 encoder for images of this size.
fn encoder(width: usize, height: usize) -> Result<gst::Element> {
    let encoder = gst::ElementFactory::make("avenc_ffv1").build()?;
    // For several slices FFmpeg chooses version 3 of the format, with checksums, and encodes them
    // in parallel. It supports 16 (4x4) and 4 (2x2), and requires several beyond 352x288.
    let slices = match width.min(height) {
        64.. => 16,
        16.. => 4,
        _ if width > 352 || height > 288 => 4,
        _ => 1,
    };
    encoder.set_property("slices", slices);
    encoder.set_property_from_str("threads", "auto");
    // Every frame is decodable alone: seeking is exact, damage stays within a frame, and the bytes
    // do not depend on the encoder.
    encoder.set_property("gop-size", 1);
    Ok(encoder)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn their_number_follows_processors_and_memory() {
        let one = memory::product([1280, 720, BYTES_OF_PIXEL]);
        let count = |cores, left| useful(cores, one, left);
        let plenty = u64::MAX;
        let with_plenty = [1, 2, 3, 4, 8, 16, 32, 256].map(|cores| count(cores, plenty));
        assert_eq!(with_plenty, [1, 2, 3, 3, 5, 9, 16, 16]);
        // The first one is there in any case.
        assert_eq!((count(16, 0), count(16, SHARE * one - 1)), (1, 1));
        assert_eq!((count(16, SHARE * one), count(16, SHARE * 3 * one)), (2, 4));
        assert_eq!(useful(0, 0, 0), 1);
    }
}
