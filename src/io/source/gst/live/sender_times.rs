//! Times of capture by the senders' clocks, which elements attach to buffers.

use gstreamer as gst;
use gstreamer::prelude::*;

use crate::source::pairing::sender_clocks::{Clock, SenderTime};

/// Makes RTP elements attach the sender's time (NTP of its reports, or of RFC 7273) to each frame.
pub(in crate::source::gst) fn request(pipeline: &gst::Pipeline) {
    const PROPERTY: &str = "add-reference-timestamp-meta";
    pipeline.connect_deep_element_added(|_, _, element| {
        if element.has_property_with_type(PROPERTY, bool::static_type()) {
            element.set_property(PROPERTY, true);
        }
    });
}

/// Returns the time that the sender stated for a frame. Clocks that begin with the stream (Decklink, NDI) are
/// left out, because two of them have nothing in common.
pub(in crate::source::gst) fn stated(buffer: &gst::BufferRef) -> Option<SenderTime> {
    buffer.iter_meta::<gst::ReferenceTimestampMeta>().find_map(|meta| {
        let reference = meta.reference().structure(0)?;
        let clock = match reference.name().as_str() {
            "timestamp/x-ntp" => Clock::Ntp,
            "timestamp/x-unix" => Clock::Unix,
            "timestamp/x-ptp" => Clock::Ptp(reference.get("domain").unwrap_or_default()),
            _ => return None,
        };
        let ns = i64::try_from(meta.timestamp().nseconds()).ok()?;
        Some(SenderTime { clock, ns })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_clocks_are_read_and_others_left_out() {
        gst::init().unwrap();
        let of = |references: &[&str]| {
            let mut buffer = gst::Buffer::new();
            for reference in references {
                let caps: gst::Caps = reference.parse().unwrap();
                let time = gst::ClockTime::from_seconds(4_004_734_962);
                let buffer = buffer.get_mut().unwrap();
                gst::ReferenceTimestampMeta::add(buffer, &caps, time, gst::ClockTime::NONE);
            }
            stated(&buffer).map(|time| (time.clock, time.ns / 1_000_000_000))
        };
        let at = |clock| Some((clock, 4_004_734_962));
        assert_eq!(of(&["timestamp/x-decklink-stream", "timestamp/x-ntp"]), at(Clock::Ntp));
        assert_eq!(of(&["timestamp/x-ptp,version=IEEE1588-2008,domain=3"]), at(Clock::Ptp(3)));
        assert_eq!(of(&["timestamp/x-unix"]), at(Clock::Unix));
        assert_eq!(of(&["timestamp/x-decklink-stream"]), None);
        assert_eq!(of(&[]), None);
    }
}
