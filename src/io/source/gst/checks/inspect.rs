//! Probes inside a pipeline that find damaged JPEG frames, which decoders would fill with grey, and
//! gaps in a camera's frame numbers.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use gstreamer as gst;
use gstreamer::prelude::*;

use crate::source::gst::appsink::Shared;
use crate::source::live::EyeState;
use stereod_core::picture::jpeg::{self, Flaw};

/// Largest distance of a JPEG frame's end marker from its last non-zero byte: some cameras append a
/// few bytes of their own.
const TAIL: usize = 64;

/// Watches every element of a live `pipeline`.
pub(in crate::source::gst) fn watch(pipeline: &gst::Pipeline, state: &Arc<EyeState>) {
    let state = state.clone();
    pipeline.connect_deep_element_added(move |_, _, element| {
        if let Some(pad) = jpeg_input(element) {
            drop_cut_pictures(&pad, state.clone());
        }
        if element.factory().is_some_and(|factory| factory.name() == "v4l2src")
            && let Some(pad) = element.static_pad("src")
        {
            count_gaps(&pad, state.clone());
        }
    });
}

/// Drops damaged JPEG frames of a recorded video. Each is checked completely, because a recording
/// waits.
pub(in crate::source::gst) fn watch_recorded(pipeline: &gst::Pipeline, shared: &Arc<Shared>) {
    let shared = Arc::downgrade(shared);
    pipeline.connect_deep_element_added(move |_, _, element| {
        let Some(pad) = jpeg_input(element) else { return };
        let (shared, has_whole) = (shared.clone(), AtomicBool::new(false));
        pad.add_probe(gst::PadProbeType::BUFFER, move |pad, info| {
            // A bare sequence of frames comes in pieces of any length, which the decoder joins.
            let picture = info.buffer().filter(|_| comes_in_pictures(pad));
            let picture = picture.and_then(|buffer| buffer.map_readable().ok());
            match picture.map_or(Ok(()), |bytes| jpeg::check(&bytes)) {
                // It is complete; some cameras never send an end marker.
                Ok(()) | Err(Flaw::NoEnd) => has_whole.store(true, Ordering::Relaxed),
                // If no frame was ever complete, the flaw is a habit of the encoder.
                Err(flaw) => {
                    if has_whole.load(Ordering::Relaxed)
                        && let Some(shared) = shared.upgrade()
                    {
                        shared.note_dropped(&flaw.to_string());
                        return gst::PadProbeReturn::Handled;
                    }
                }
            }
            gst::PadProbeReturn::Ok
        });
    });
}

/// Reports whether each buffer is a frame: the segment then counts time, not bytes.
fn comes_in_pictures(pad: &gst::Pad) -> bool {
    pad.sticky_event::<gst::event::Segment>(0)
        .is_some_and(|event| event.segment().format() == gst::Format::Time)
}

/// Returns the input pad of `element` if it decodes JPEG.
fn jpeg_input(element: &gst::Element) -> Option<gst::Pad> {
    let factory = element.factory()?;
    let decodes_jpeg = factory.metadata("klass").is_some_and(|class| class.contains("Decoder"))
        && factory.can_sink_any_caps(&gst::Caps::new_empty_simple("image/jpeg"))
        && !element.is::<gst::Bin>();
    element.static_pad("sink").filter(|_| decodes_jpeg)
}

/// Drops JPEG frames without an end marker from a camera that has sent one before. Entropy-coded
/// data never contains this marker (ITU-T T.81, B.1.1.5).
fn drop_cut_pictures(pad: &gst::Pad, state: Arc<EyeState>) {
    let has_ends = AtomicBool::new(false);
    pad.add_probe(gst::PadProbeType::BUFFER, move |pad, info| {
        let buffer = info.buffer().filter(|_| comes_in_pictures(pad));
        let whole = buffer.and_then(|buffer| buffer.map_readable().ok());
        let Some(whole) = whole.map(|bytes| ends(&bytes)) else { return gst::PadProbeReturn::Ok };
        if whole {
            has_ends.store(true, Ordering::Relaxed);
        } else if has_ends.load(Ordering::Relaxed) {
            state.note_broken();
            return gst::PadProbeReturn::Handled;
        }
        gst::PadProbeReturn::Ok
    });
}

/// Reports whether a JPEG frame has its end marker.
fn ends(bytes: &[u8]) -> bool {
    let length = bytes.iter().rposition(|&byte| byte != 0).map_or(0, |last| last + 1);
    let tail = &bytes[length.saturating_sub(TAIL)..length];
    tail.windows(2).any(|marker| marker == [0xff, 0xd9])
}

/// Counts gaps in the driver's frame numbers.
fn count_gaps(pad: &gst::Pad, state: Arc<EyeState>) {
    let next = AtomicU64::new(u64::MAX);
    pad.add_probe(gst::PadProbeType::BUFFER, move |_, info| {
        let number = info.buffer().map_or(u64::MAX, |buffer| buffer.offset());
        if number != u64::MAX {
            let expected = next.swap(number + 1, Ordering::Relaxed);
            state.note_missed(number.saturating_sub(expected));
        }
        gst::PadProbeReturn::Ok
    });
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_end_of_a_picture_may_be_padded() {
        let mut picture = vec![0xff, 0xd8, 0xff, 0xda, 1, 2, 3, 0xff, 0, 4, 0xff, 0xd9];
        assert!(ends(&picture));
        picture.extend([0; 5000]);
        assert!(ends(&picture));
        assert!(!ends(&picture[..10]) && !ends(&[0; 9]) && !ends(&[]));
    }

    proptest! {
        #[test]
        fn an_end_is_found_within_its_distance(
            before in prop::collection::vec(any::<u8>(), 0..300),
            after in prop::collection::vec(1u8..=0xd8, 0..100),
            zeros in 0usize..300,
        ) {
            let _ = ends(&before);
            let tail = [&[0xff, 0xd9][..], &after].concat();
            let picture = [&before[..], &tail, &vec![0; zeros]].concat();
            if tail.len() <= TAIL {
                prop_assert!(ends(&picture));
            }
            let without: Vec<u8> = picture.iter().map(|&b| if b == 0xff { 0xfe } else { b }).collect();
            prop_assert!(!ends(&without));
        }
    }
}
