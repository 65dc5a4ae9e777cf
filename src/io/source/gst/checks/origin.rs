//! Origin of a pipeline's data: whether it delivers at its own pace, and what to check if it
//! delivers nothing.

use gstreamer as gst;
use gstreamer::prelude::*;

/// Elements that read from devices and networks, and what to check if no frame comes.
const CHECKS: [(&str, &str); 9] = [
    (
        "aravissrc",
        "; if the camera is found (arv-tool-0.8), check that it does not wait for a trigger, that the \
         firewall lets its UDP packets in, and that every part of the network passes its packets \
         (auto-packet-size=true, or packet-size=1400)",
    ),
    (
        "rtspsrc",
        "; check the address in another player, and that the firewall lets RTP over UDP in, or do \
         without UDP: \"rtspsrc location=ADDRESS protocols=tcp\"",
    ),
    (
        "udpsrc",
        "; check that the sender sends to this address and port, that the firewall lets UDP in, and that \
         the caps of udpsrc are the sender's",
    ),
    (
        "srtsrc",
        "; check the address and the passphrase, that the sender waits for callers (mode=listener), and that \
         the firewall lets UDP through",
    ),
    (
        "souphttpsrc",
        "; check that a browser shows this address; many cameras serve one client at a time",
    ),
    (
        "libcamerasrc",
        "; check that `cam -l` lists the camera and that no other program has it open",
    ),
    (
        "nvarguscamerasrc",
        "; check that no other program has the sensor open (sudo systemctl restart nvargus-daemon)",
    ),
    (
        "v4l2src",
        "; check that the camera does not wait for a trigger, and that its USB bus is not full: another \
         port, a smaller `--size`, or `--format mjpg`",
    ),
    (
        "decklinkvideosrc",
        "; check that its driver finds the card (/dev/blackmagic), that a signal is connected, and its mode \
         (mode=..., connection=...)",
    ),
];

/// Reports whether the data comes over a network and neither its source knows a length in bytes nor its
/// container one in time: it is being made while it is sent. Segments of HLS and DASH come in bursts and have
/// a pace of their own.
pub(in crate::source::gst) fn is_endless(pipeline: &gst::Pipeline) -> bool {
    let (mut is_remote, mut is_segmented, mut bytes) = (false, false, None);
    for element in pipeline.iterate_recurse().into_iter().flatten() {
        let Some(factory) = element.factory() else { continue };
        let class = factory.metadata("klass").unwrap_or_default();
        is_segmented |= class.contains("Adaptive");
        // RTMP's sources have no class of their own.
        let of_network = class.contains("Network") || factory.name().starts_with("rtmp");
        if of_network && class.contains("Source") {
            is_remote = true;
            bytes = bytes.or_else(|| element.query_duration::<gst::format::Bytes>());
        }
    }
    let lasts = pipeline.query_duration::<gst::ClockTime>();
    is_remote && !is_segmented && bytes.is_none() && lasts.is_none()
}

/// Returns what to check if no frame comes, by the kind of the source; empty for others.
pub(in crate::source::gst) fn what_to_check(pipeline: &gst::Pipeline) -> &'static str {
    let elements: Vec<_> = pipeline.iterate_recurse().into_iter().flatten().collect();
    let has = |name: &str| elements.iter().any(|e| e.factory().is_some_and(|f| f.name() == name));
    CHECKS.iter().find(|(name, _)| has(name)).map_or("", |(_, check)| check)
}
