//! Translates messages of GStreamer for users.

use gstreamer as gst;
use gstreamer::prelude::*;

use super::checks::server;
use crate::plugins::install;

/// Returns the message and the useful part of its debug text, or what the server answered.
pub(super) fn error_text(message: &gst::message::Error) -> String {
    if let Some(refusal) = server::refusal(message) {
        return refusal;
    }
    let text = readable(message.error().message(), message.debug().as_deref());
    let element = message.src().and_then(|source| source.downcast_ref::<gst::Element>());
    let factory = element.and_then(gst::Element::factory);
    match factory.is_some_and(|factory| factory.name() == "multipartdemux") {
        true => text + PARTS,
        false => text,
    }
}

/// Cure of MJPEG over HTTP with parts that are not as long as they say, or without boundaries.
const PARTS: &str = "; the server's headers do not fit its pictures; read the pictures without them: \
                     \"souphttpsrc location=ADDRESS ! jpegdec\"";

/// Reports whether an element only could not push its data on, which is a consequence of another
/// error.
pub(super) fn is_consequence(message: &gst::message::Error) -> bool {
    message.debug().is_some_and(|debug| debug.contains("streaming stopped, reason"))
}

/// Reports whether a decoder sent the message.
pub(super) fn is_of_decoder(message: &gst::Message) -> bool {
    let element = message.src().and_then(|source| source.downcast_ref::<gst::Element>());
    let class = element.and_then(|element| element.factory()?.metadata("klass").map(str::to_owned));
    class.is_some_and(|class| class.contains("Decoder"))
}

/// Reports whether a message only says that the data stopped, and not why.
pub(super) fn says_nothing(text: &str) -> bool {
    ["Internal data stream error", "it gives no pictures", "it holds no picture"]
        .iter()
        .any(|nothing| text.starts_with(nothing))
}

/// Drops the first line of GStreamer's debug text, which names a source file and an element.
pub(super) fn readable(message: &str, debug: Option<&str>) -> String {
    let text = message.trim().trim_end_matches('.');
    let details: Vec<&str> = debug
        .into_iter()
        .flat_map(str::lines)
        .skip(1)
        .map(|line| line.trim().trim_end_matches('.'))
        .filter(|line| !line.is_empty() && !text.contains(line))
        // Only says that there was an error.
        .filter(|line| !line.starts_with("streaming stopped, reason error"))
        .collect();
    if details.is_empty() { text.to_owned() } else { format!("{text} ({})", details.join("; ")) }
}

/// Returns the missing plug-in that `message` reports, with the package to install.
pub(super) fn missing_plugin(message: &gst::message::Element) -> Option<String> {
    let structure = message.structure().filter(|s| s.name() == "missing-plugin")?;
    let what = structure.get::<String>("name").ok();
    let caps = structure.get::<gst::Caps>("detail").ok();
    let media = caps.as_ref().and_then(|caps| Some(caps.structure(0)?.name().as_str()));
    if let Some(codec) = caps.as_ref().and_then(|caps| nameless_codec(caps.structure(0)?)) {
        return Some(undecodable(&codec));
    }
    if media == Some("video/x-bayer") {
        return Some(BAYER.to_owned());
    }
    if let (Ok("urisource"), Ok(protocol)) =
        (structure.get::<&str>("type"), structure.get::<&str>("detail"))
    {
        return Some(no_source(protocol));
    }
    // Names of Debian and Ubuntu; the part after "gstreamer1.0-" is the same elsewhere.
    let package = match (structure.get::<&str>("type").ok()?, media) {
        ("decoder", Some(media)) if !in_good(media) => {
            "gstreamer1.0-libav and gstreamer1.0-plugins-bad"
        }
        ("element", _) => "gstreamer1.0-plugins-bad and gstreamer1.0-plugins-ugly",
        _ => "gstreamer1.0-plugins-good",
    };
    let what = what.or(media.map(str::to_owned)).unwrap_or_else(|| "what it needs".to_owned());
    Some(format!("GStreamer has no {what}; {}", install(package)))
}

/// Returns the error for an address of an unknown protocol, with the fix.
fn no_source(protocol: &str) -> String {
    let cure = match protocol {
        "tcp" => "give the element: \"tcpclientsrc host=HOST port=PORT ! decodebin\"".to_owned(),
        "http" | "https" | "rtsp" | "rtsps" | "rtspt" | "rtspu" | "udp" => {
            install("gstreamer1.0-plugins-good")
        }
        "srt" | "rtmp" | "rtmps" | "rist" | "rtp" => install("gstreamer1.0-plugins-bad"),
        _ => "check its beginning; docs/cameras.md has the text for each kind of camera".to_owned(),
    };
    format!("GStreamer reads no addresses {protocol}://; {cure}")
}

/// Cure of frames without a colour at each pixel, which no decoder reads.
const BAYER: &str = "its pictures are raw Bayer patterns; add \"... ! video/x-raw,format=GRAY8\" if the \
                     camera offers grey, else \"... ! bayer2rgb\" (in gstreamer1.0-plugins-bad)";

/// Returns the codec of a video that its container names in a way unknown to GStreamer, so that no plug-in
/// would decode it.
fn nameless_codec(media: &gst::StructureRef) -> Option<String> {
    let letters = |code: u32| String::from_utf8_lossy(&code.to_le_bytes()).into_owned();
    let code = || media.get::<i32>("fourcc").ok().map(|code| letters(code as u32));
    let code = || code().or_else(|| media.get::<u32>("fourcc").ok().map(letters));
    let text = |field: &str| media.get::<String>(field).ok();
    match media.name().as_str() {
        "video/x-unknown" => text("fourcc").or_else(|| text("codec-id")),
        "video/x-avi-unknown" | "video/x-asf-unknown" => code(),
        name => name.strip_prefix("video/x-gst-fourcc-").map(str::to_owned),
    }
}

/// Returns the error for such a video, with the fix.
fn undecodable(codec: &str) -> String {
    // The frame rate in MXF is not taken from QuickTime's time scale.
    let rewrapped = match codec {
        "AVdh" => {
            " (DNxHR also plays from MXF: ffmpeg -r RATE -i INPUT -c copy OUTPUT.mxf, with its frames per second)"
        }
        _ => "",
    };
    format!(
        "GStreamer decodes no video {codec} in this kind of file, whatever is installed; convert it without loss: \
         ffmpeg -i INPUT -c:v ffv1 OUTPUT.mkv{rewrapped}"
    )
}

/// Reports whether the plug-ins package "good" reads this media type.
fn in_good(media: &str) -> bool {
    const GOOD: [&str; 9] = [
        "video/x-matroska",
        "video/webm",
        "video/quicktime",
        "video/x-msvideo",
        "video/x-flv",
        "video/x-vp8",
        "video/x-vp9",
        "image/jpeg",
        "image/png",
    ];
    GOOD.contains(&media)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_useful_part_of_the_debug_text_is_kept() {
        let debug = "../gst/isomp4/qtdemux.c(509): post (): /GstPipeline:p/GstQTDemux:q:\nno known streams found\n";
        assert_eq!(
            readable("This file contains no playable streams.", Some(debug)),
            "This file contains no playable streams (no known streams found)"
        );
        assert_eq!(readable("Not found.", Some("x.c(1): f ():")), "Not found");
        assert_eq!(readable("Not found.", None), "Not found");
    }

    /// Returns the message about a missing plug-in.
    fn said(kind: &str, caps: gst::Caps, name: &str) -> Option<String> {
        let structure = gst::Structure::builder("missing-plugin")
            .field("type", kind)
            .field("detail", caps)
            .field("name", name)
            .build();
        let message = gst::message::Element::new(structure);
        match message.view() {
            gst::MessageView::Element(element) => missing_plugin(element),
            _ => None,
        }
    }

    #[test]
    fn no_package_is_named_for_a_codec_without_a_name() {
        gst::init().unwrap();
        let caps = |name: &str| gst::Caps::builder(name);
        let code = |letters: &[u8; 4]| u32::from_le_bytes(*letters);
        let hap = code(b"Hap1");
        for (caps, codec) in [
            (caps("video/x-gst-fourcc-AVdh").build(), "AVdh"),
            (caps("video/x-avi-unknown").field("fourcc", hap as i32).build(), "Hap1"),
            (caps("video/x-asf-unknown").field("fourcc", hap).build(), "Hap1"),
            (caps("video/x-unknown").field("codec-id", "V_SNOW").build(), "V_SNOW"),
            (
                caps("video/x-unknown").field("codec-id", "V_MS").field("fourcc", "M8Y0").build(),
                "M8Y0",
            ),
        ] {
            let said = said("decoder", caps, "video decoder").unwrap();
            assert!(said.contains(&format!("no video {codec} ")), "{said}");
            assert!(said.contains("ffmpeg -i INPUT -c:v ffv1") && !said.contains("install g"));
            assert_eq!(said.contains("OUTPUT.mxf"), codec == "AVdh", "{said}");
        }
    }

    #[test]
    fn a_missing_plugin_names_its_package() {
        gst::init().unwrap();
        let text = |kind: &str, media: &str, name: &str| {
            said(kind, gst::Caps::new_empty_simple(media), name)
        };
        let hevc = text("decoder", "video/x-h265", "H.265 decoder").unwrap();
        assert!(hevc.contains("no H.265 decoder") && hevc.contains("libav"), "{hevc}");
        let bayer = text("decoder", "video/x-bayer", "video/x-bayer decoder").unwrap();
        assert!(bayer.contains("format=GRAY8") && bayer.contains("! bayer2rgb"), "{bayer}");
        let demuxer = text("decoder", "video/quicktime", "Quicktime demuxer").unwrap();
        assert!(demuxer.ends_with("gstreamer1.0-plugins-good"), "{demuxer}");
    }
}
