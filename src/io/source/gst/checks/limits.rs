//! Limits the size of a stream's frames: the size that a container or a decoder announces is
//! compared with the memory budget before any frame is decoded.

use std::sync::Arc;

use gstreamer as gst;
use gstreamer::prelude::*;

use crate::source::gst::appsink::Shared;
use stereod_core::memory::{Budget, product};

/// Approximate number of frames that decoders, converters and queues hold at once.
const PICTURES: usize = 8;

/// Approximate bytes of a pixel, decoded and converted.
const BYTES_A_PIXEL: usize = 4;

/// Watches every element of `pipeline` and ends the stream if its frames do not fit into the
/// budget.
pub(in crate::source::gst) fn watch(pipeline: &gst::Pipeline, shared: &Arc<Shared>) {
    let shared = shared.clone();
    pipeline.connect_deep_element_added(move |_, _, element| {
        if element.is::<gst::Bin>() {
            return;
        }
        for pad in element.sink_pads() {
            watch_pad(&pad, shared.clone());
        }
        let shared = shared.clone();
        element.connect_pad_added(move |_, pad| {
            if pad.direction() == gst::PadDirection::Sink {
                watch_pad(pad, shared.clone());
            }
        });
    });
}

fn watch_pad(pad: &gst::Pad, shared: Arc<Shared>) {
    pad.add_probe(gst::PadProbeType::EVENT_DOWNSTREAM, move |pad, info| {
        let Some(gst::EventView::Caps(caps)) = info.event().map(|event| event.view()) else {
            return gst::PadProbeReturn::Ok;
        };
        let Some((width, height)) = caps.caps().structure(0).and_then(size) else {
            return gst::PadProbeReturn::Ok;
        };
        let Err(refusal) = check(width, height) else { return gst::PadProbeReturn::Ok };
        shared.fail(refusal.clone());
        if let Some(element) = pad.parent_element() {
            gst::element_error!(element, gst::StreamError::Format, ("{refusal}"));
        }
        gst::PadProbeReturn::Drop
    });
}

/// Returns the size of the frames, if the caps have it.
fn size(structure: &gst::StructureRef) -> Option<(usize, usize)> {
    let side = |name: &str| usize::try_from(structure.get::<i32>(name).ok()?).ok();
    Some((side("width")?, side("height")?))
}

fn check(width: usize, height: usize) -> Result<(), String> {
    let bytes = product([width, height, BYTES_A_PIXEL, PICTURES]);
    let what = format!("decoding pictures of {width}x{height}");
    Budget::of_process().check(what, bytes, "smaller pictures").map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_size_is_that_of_the_caps() {
        gst::init().unwrap();
        let caps = |text: &str| text.parse::<gst::Caps>().unwrap();
        let of = |text| size(caps(text).structure(0).unwrap());
        assert_eq!(of("video/x-h264, width=640, height=480"), Some((640, 480)));
        assert_eq!(of("video/x-h264, width=-1, height=480"), None);
        assert_eq!(of("audio/x-raw"), None);
        assert!(check(640, 480).is_ok());
        let refusal = check(i32::MAX as usize, i32::MAX as usize).unwrap_err();
        assert!(refusal.contains("2147483647x2147483647 needs"), "{refusal}");
    }
}
