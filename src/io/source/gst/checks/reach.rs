//! Keeps the content of a stream from opening other files and addresses.
//!
//! Playlists and manifests (HLS, DASH, SDP and the like) name other addresses and files, which
//! their demuxers then open. That is allowed for an address that the user gives. It is not allowed
//! for a local file of any name: the sender of a "video" must not be able to make the receiver's
//! machine fetch addresses of its network or read its files.

use gstreamer as gst;
use gstreamer::prelude::*;

/// Resources that content may open besides itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::source::gst) enum Reach {
    /// Nothing.
    Itself,
    /// Everything that the content names.
    Network,
}

/// Media types of content that names other content.
const LISTS: [(&str, &str); 10] = [
    ("application/x-hls", "an HLS playlist"),
    ("application/dash+xml", "a DASH manifest"),
    ("application/vnd.ms-sstr+xml", "a Smooth Streaming manifest"),
    ("application/sdp", "a session description (SDP)"),
    ("application/x-rtsp", "a session description (RTSP)"),
    ("application/smil", "a SMIL presentation"),
    ("application/xges", "an editing project"),
    ("application/x-quicktimeplayer", "a QuickTime link"),
    ("text/uri-list", "a list of addresses"),
    ("text/x-uri-list", "a list of addresses"),
];

/// FFmpeg's demuxers that open other content although their class does not say so.
const OF_FFMPEG: [&str; 8] =
    ["applehttp", "concat", "dash", "hls", "imf", "rtsp", "sdp", "webm_dash_manifest"];

impl Reach {
    /// Reports whether an element may take part.
    pub(in crate::source::gst) fn allows(self, factory: &gst::ElementFactory) -> bool {
        self == Reach::Network || !reaches_out(factory)
    }

    /// Returns why content of this type is refused; `None` if it is read.
    pub(in crate::source::gst) fn refusal(self, caps: &gst::CapsRef) -> Option<String> {
        if self == Reach::Network {
            return None;
        }
        let name = caps.structure(0)?.name();
        let known = LISTS.iter().find(|(media, _)| *media == name.as_str());
        let what = match known {
            Some((_, what)) => (*what).to_owned(),
            None => only_reached_out(caps).then(|| format!("{name}, a list of other files"))?,
        };
        Some(format!(
            "it is {what}, which names other files and addresses; a local file must hold its pictures \
             itself: give the address that it came from (http://...), or, if you trust it, a pipeline that \
             names the demuxer (\"filesrc location=FILE ! hlsdemux\")"
        ))
    }
}

/// Returns the reach of the content that a fragment reads: nothing besides itself if it comes from
/// files. Playlists are followed only in a fragment that names their demuxer or an address.
pub(in crate::source::gst) fn of_fragment(fragment: &gst::Bin) -> Reach {
    let mut sources = fragment.iterate_sources().into_iter().flatten().peekable();
    let is_local = |source: gst::Element| {
        source.factory().is_some_and(|factory| class(&factory).contains("Source/File"))
    };
    if sources.peek().is_some() && sources.all(is_local) { Reach::Itself } else { Reach::Network }
}

/// Reports whether only elements that reach out can read this.
fn only_reached_out(caps: &gst::CapsRef) -> bool {
    if caps.is_any() || caps.is_empty() {
        return false;
    }
    let caps = caps.to_owned();
    let kinds = gst::ElementFactoryType::DECODABLE;
    let mut readers = gst::ElementFactory::factories_with_type(kinds, gst::Rank::MARGINAL)
        .into_iter()
        .filter(|factory| factory.can_sink_any_caps(&caps))
        .peekable();
    readers.peek().is_some() && readers.all(|factory| reaches_out(&factory))
}

/// Reports whether an element opens resources that its content names.
fn reaches_out(factory: &gst::ElementFactory) -> bool {
    let class = class(factory);
    let by_class = ["Adaptive", "Playlist", "Network", "RTSP", "Editing", "Source"];
    let name = factory.name();
    let by_name = name.strip_prefix("avdemux_").is_some_and(|name| OF_FFMPEG.contains(&name));
    by_name || by_class.iter().any(|part| class.contains(part))
}

fn class(factory: &gst::ElementFactory) -> &str {
    factory.metadata("klass").unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_refused_and_containers_are_not() {
        gst::init().unwrap();
        let refusal = |reach: Reach, name: &str| reach.refusal(&gst::Caps::new_empty_simple(name));
        for (name, _) in LISTS {
            assert!(refusal(Reach::Itself, name).unwrap().contains("other files"), "{name}");
            assert_eq!(refusal(Reach::Network, name), None);
        }
        for name in ["video/x-matroska", "video/quicktime", "image/png", "video/x-h264", "x/y"] {
            assert_eq!(refusal(Reach::Itself, name), None, "{name}");
        }
    }

    /// An installed demuxer with manifests or playlists in its description is never used for a file.
    #[test]
    fn no_installed_demuxer_of_lists_is_allowed() {
        gst::init().unwrap();
        let all = gst::ElementFactory::factories_with_type(
            gst::ElementFactoryType::DECODABLE,
            gst::Rank::NONE,
        );
        for factory in all {
            let told = factory.metadata("long-name").unwrap_or_default().to_ascii_lowercase();
            let telling = ["dash", "http live", "hls", "playlist", "sdp session", "smooth"];
            let is_list = telling.iter().any(|word| told.contains(word));
            assert!(!is_list || !Reach::Itself.allows(&factory), "{}: {told}", factory.name());
        }
        for name in ["matroskademux", "qtdemux", "avidemux", "tsdemux", "h264parse", "pngdec"] {
            if let Some(factory) = gst::ElementFactory::find(name) {
                assert!(Reach::Itself.allows(&factory), "{name}");
            }
        }
    }

    #[test]
    fn fragments_of_files_reach_nothing_else() {
        gst::init().unwrap();
        let reach = |text: &str| {
            let bin = gst::parse::bin_from_description(text, false).unwrap();
            of_fragment(&bin)
        };
        assert_eq!(reach("filesrc location=x ! queue"), Reach::Itself);
        assert_eq!(reach("videotestsrc ! queue"), Reach::Network);
    }
}
