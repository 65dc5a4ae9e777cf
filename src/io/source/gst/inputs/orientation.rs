//! Orientation tags of videos.

use std::sync::Arc;

use gstreamer as gst;
use gstreamer::prelude::*;
use image::metadata::Orientation;

use super::wiring::element;
use crate::source::gst::appsink::Shared;

/// Notes the orientation in the tags that arrive at `pad`.
pub(in crate::source::gst) fn watch(pad: &gst::Pad, shared: Arc<Shared>) {
    pad.add_probe(gst::PadProbeType::EVENT_DOWNSTREAM, move |_, info| {
        if let Some(gst::EventView::Tag(tag)) = info.event().map(|event| event.view())
            && let Some(text) = tag.tag().get::<gst::tags::ImageOrientation>()
            && let Some(orientation) = parse(text.get())
        {
            shared.note_orientation(orientation);
        }
        gst::PadProbeReturn::Ok
    });
}

/// Parses GStreamer's name of an orientation.
fn parse(name: &str) -> Option<Orientation> {
    Some(match name {
        "rotate-0" => Orientation::NoTransforms,
        "rotate-90" => Orientation::Rotate90,
        "rotate-180" => Orientation::Rotate180,
        "rotate-270" => Orientation::Rotate270,
        "flip-rotate-0" => Orientation::FlipHorizontal,
        "flip-rotate-90" => Orientation::Rotate270FlipH,
        "flip-rotate-180" => Orientation::FlipVertical,
        "flip-rotate-270" => Orientation::Rotate90FlipH,
        _ => return None,
    })
}

/// Adds elements before `pad` that turn frames as their tags say. Returns the new input pad.
pub(in crate::source::gst) fn turn(
    pipeline: &gst::Pipeline,
    pad: &gst::Pad,
) -> anyhow::Result<gst::Pad> {
    let (convert, flip) = (element("videoconvert")?, element("videoflip")?);
    flip.set_property_from_str("video-direction", "auto");
    pipeline.add_many([&convert, &flip])?;
    convert.link(&flip)?;
    let turned = flip.static_pad("src").ok_or_else(|| anyhow::anyhow!("no pad to link"))?;
    turned.link(pad)?;
    convert.static_pad("sink").ok_or_else(|| anyhow::anyhow!("no pad to link"))
}
