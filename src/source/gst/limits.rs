//! Limits on the pictures of a stream: the size that a container or a decoder names is looked at
//! before any picture is decoded into memory.

use std::sync::Arc;

use gstreamer as gst;
use gstreamer::prelude::*;

use super::appsink::Shared;
use crate::memory::{Budget, product};

/// Pictures of a stream that decoders, converters and we hold at once, about.
const PICTURES: usize = 8;

/// Bytes of a pixel, about: decoded, and as it is kept.
const BYTES_A_PIXEL: usize = 4;

/// Watches every element that is ever added to `pipeline`: pictures that the memory does not
/// suffice for end the stream.
pub(super) fn watch(pipeline: &gst::Pipeline, shared: &Arc<Shared>) {
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

/// The size of the pictures, where it is told.
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
