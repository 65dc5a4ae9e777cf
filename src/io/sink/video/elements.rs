//! GStreamer elements that video outputs need, and their packages.

use anyhow::{Context, Result, bail};
use gstreamer as gst;

use stereod_core::reading::require_spare_files;

/// GStreamer elements that write or send video, each with its Debian and Ubuntu package.
const PACKAGES: [(&str, &str); 33] = [
    ("appsrc", "gstreamer1.0-plugins-base"),
    ("appsink", "gstreamer1.0-plugins-base"),
    ("videoconvert", "gstreamer1.0-plugins-base"),
    ("videoscale", "gstreamer1.0-plugins-base"),
    ("videorate", "gstreamer1.0-plugins-base"),
    ("tcpserversink", "gstreamer1.0-plugins-base"),
    ("tcpclientsink", "gstreamer1.0-plugins-base"),
    ("theoraenc", "gstreamer1.0-plugins-base"),
    ("mp4mux", "gstreamer1.0-plugins-good"),
    ("matroskamux", "gstreamer1.0-plugins-good"),
    ("udpsink", "gstreamer1.0-plugins-good"),
    ("rtpbin", "gstreamer1.0-plugins-good"),
    ("rtph264pay", "gstreamer1.0-plugins-good"),
    ("rtph265pay", "gstreamer1.0-plugins-good"),
    ("rtpvrawpay", "gstreamer1.0-plugins-good"),
    ("rtpjpegpay", "gstreamer1.0-plugins-good"),
    ("jpegenc", "gstreamer1.0-plugins-good"),
    ("vp8enc", "gstreamer1.0-plugins-good"),
    ("vp9enc", "gstreamer1.0-plugins-good"),
    ("v4l2sink", "gstreamer1.0-plugins-good"),
    ("v4l2h264enc", "gstreamer1.0-plugins-good"),
    ("h264parse", "gstreamer1.0-plugins-bad"),
    ("mpegtsmux", "gstreamer1.0-plugins-bad"),
    ("srtsink", "gstreamer1.0-plugins-bad"),
    ("shmsink", "gstreamer1.0-plugins-bad"),
    ("rtmp2sink", "gstreamer1.0-plugins-bad"),
    ("openh264enc", "gstreamer1.0-plugins-bad"),
    ("x265enc", "gstreamer1.0-plugins-bad"),
    ("nvh264enc", "gstreamer1.0-plugins-bad"),
    ("x264enc", "gstreamer1.0-plugins-ugly"),
    ("avenc_ffv1", "gstreamer1.0-libav"),
    ("vaapih264enc", "gstreamer1.0-vaapi"),
    ("rtspclientsink", "gstreamer1.0-rtsp"),
];

/// Returns the package of an element, if known.
pub(super) fn package_of(element: &str) -> Option<&'static str> {
    PACKAGES.iter().find(|(name, _)| *name == element).map(|(_, package)| *package)
}

/// Initialises GStreamer and checks that it has the elements.
pub(super) fn require(elements: &[&str], purpose: &str) -> Result<()> {
    require_spare_files().with_context(|| format!("{purpose} cannot be set up"))?;
    gst::init().context("GStreamer does not start")?;
    for &element in elements {
        if gst::ElementFactory::find(element).is_none() {
            let package = package_of(element).unwrap_or("its plug-in");
            bail!(
                "{purpose} needs the GStreamer element {element}, which is not installed: install \
                 {package} (`gst-inspect-1.0 {element}` shows whether it is there)"
            );
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_element_is_named_with_its_package() {
        require(&["appsrc", "avenc_ffv1"], "recording").unwrap();
        let error = require(&["no_such_encoder"], "recording").unwrap_err().to_string();
        assert!(error.contains("recording needs") && error.contains("no_such_encoder"), "{error}");
    }
}
