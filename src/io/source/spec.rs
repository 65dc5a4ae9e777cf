//! Parses the names of sources of stereo pairs: one grammar for all commands.
//!
//! A text is a file or a `file:` URI, numbered pictures (`left/%06d.png`), pictures by a pattern of
//! their names (`left/*.png`), a camera (`/dev/video0`, or a link to it), a URI, or a fragment of a
//! GStreamer pipeline: a text with a `!`, or one element (`libcamerasrc`, `aravissrc
//! camera-name=X`). An existing file of exactly this name takes precedence.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use gstreamer::glib;

use super::recording::{GRAPH, is_graph, is_recording};
use super::{launch_line, misnamed, pictures, v4l2};
use crate::gst::start;
use stereod_core::files::extension;
use stereod_core::picture::still;
use stereod_core::redact::{redact, remember, string_at};

/// Endings of the names of videos.
pub const VIDEOS: [&str; 8] = ["mkv", "mp4", "mov", "m4v", "avi", "webm", "ts", "mts"];

/// Reports whether this is the name of a video.
pub fn is_video(path: &Path) -> bool {
    VIDEOS.contains(&&*extension(path))
}

/// Source of stereo pairs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SourceSpec {
    /// The synthetic scene.
    Demo,
    /// A stream for each view.
    Two {
        /// Left stream.
        left: StreamSpec,
        /// Right stream.
        right: StreamSpec,
    },
    /// One stream with the left view in its left half.
    SideBySide(StreamSpec),
    /// One stream with the left view in its upper half.
    TopBottom(StreamSpec),
    /// A recording of messages, or a data set.
    Recording {
        /// File or folder.
        path: PathBuf,
        /// Topics of the left and the right view; `None` is chosen.
        topics: [Option<String>; 2],
    },
}

/// Source of one stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StreamSpec {
    /// A file, which need not exist.
    File(PathBuf),
    /// Pictures: a name with a number in it (`%06d`), or with `*`, `?` or `[...]`.
    Pictures(PathBuf),
    /// A camera's device, which need not exist.
    Camera(String),
    /// A URI that names no file.
    Uri(String),
    /// A fragment of a GStreamer pipeline that delivers video at its end, raw or encoded.
    Fragment(String),
}

impl SourceSpec {
    /// Creates a stream for each view.
    pub fn two(left: impl AsRef<OsStr>, right: impl AsRef<OsStr>) -> Self {
        if let (Some(left), Some(right)) = (topic_of_graph(&left), topic_of_graph(&right)) {
            return Self::recording(GRAPH, [Some(left), Some(right)]);
        }
        Self::Two { left: StreamSpec::parse(left), right: StreamSpec::parse(right) }
    }

    /// Creates one stream with the left view in its left half.
    pub fn side_by_side(both: impl AsRef<OsStr>) -> Self {
        Self::SideBySide(StreamSpec::parse(both))
    }

    /// Creates one stream with the left view in its upper half.
    pub fn top_bottom(both: impl AsRef<OsStr>) -> Self {
        Self::TopBottom(StreamSpec::parse(both))
    }

    /// Creates a recording of messages with these topics.
    pub fn recording(path: impl AsRef<OsStr>, topics: [Option<String>; 2]) -> Self {
        Self::Recording { path: path.as_ref().into(), topics }
    }

    /// Returns the given source: `left` and `right`, or one of the others; `None` without any.
    pub fn choose<T: AsRef<OsStr>>(
        [left, right]: [Option<T>; 2],
        side_by_side: Option<T>,
        top_bottom: Option<T>,
    ) -> Option<Self> {
        let two = left.zip(right).map(|(left, right)| Self::two(left, right));
        two.or_else(|| side_by_side.map(Self::side_by_side))
            .or_else(|| top_bottom.map(Self::top_bottom))
    }

    /// Returns the streams: two, one, or none for the synthetic scene and recordings of messages.
    pub fn streams(&self) -> impl Iterator<Item = &StreamSpec> {
        let streams = match self {
            Self::Two { left, right } => [Some(left), Some(right)],
            Self::SideBySide(both) | Self::TopBottom(both) => [Some(both), None],
            Self::Demo | Self::Recording { .. } => [None, None],
        };
        streams.into_iter().flatten()
    }

    /// Returns every existing local file that the source may read.
    pub fn local_files(&self) -> Vec<PathBuf> {
        if let Self::Recording { path, .. } = self {
            return super::recording::files(path);
        }
        self.streams().flat_map(StreamSpec::local_files).collect()
    }

    /// Returns the devices of cameras, also those that a fragment names.
    pub fn cameras(&self) -> Vec<PathBuf> {
        let of_stream = |stream: &StreamSpec| match stream {
            StreamSpec::Camera(name) => vec![name.into()],
            StreamSpec::Fragment(fragment) => {
                let values = values_of_fragment(fragment).into_iter().map(PathBuf::from);
                values.filter(|path| v4l2::is_camera(path)).collect()
            }
            StreamSpec::File(_) | StreamSpec::Pictures(_) | StreamSpec::Uri(_) => Vec::new(),
        };
        self.streams().flat_map(of_stream).collect()
    }

    /// Reports whether the source may be live, which is certain only once it is open.
    pub fn may_be_live(&self) -> bool {
        if let Self::Recording { path, .. } = self {
            return is_graph(path);
        }
        self.streams().any(StreamSpec::may_be_live)
    }

    /// Names a way to views of this size, if there is one.
    pub fn resized(&self, (width, height): (usize, usize)) -> Option<String> {
        let (width, height) = match self {
            Self::Demo => return Some(format!("--demo-size {width}x{height}")),
            Self::SideBySide(_) => (2 * width, height),
            Self::TopBottom(_) => (width, 2 * height),
            _ => (width, height),
        };
        let is_file =
            |stream: &StreamSpec| matches!(stream, StreamSpec::File(_) | StreamSpec::Pictures(_));
        if self.streams().any(|stream| matches!(stream, StreamSpec::Camera(_))) {
            Some("--size of cameras".into())
        } else if self.streams().next().is_some() && self.streams().all(is_file) {
            Some(format!("ffmpeg -i INPUT -vf scale={width}:{height} -c:v ffv1 OUTPUT.mkv"))
        } else {
            None
        }
    }

    /// Reports whether one stream holds both views.
    pub fn is_one_stream(&self) -> bool {
        matches!(self, Self::SideBySide(_) | Self::TopBottom(_))
    }

    /// Fails if an input is of the wrong kind: one stream in place of a recording of both views, a recording or graph in
    /// place of one view, or, with `half` (views squeezed to half their size), messages or the scene. For a graph, also
    /// if a variable of ROS has a wrong value.
    pub fn check(&self, half: bool) -> anyhow::Result<()> {
        anyhow::ensure!(
            !half || self.is_one_stream() || matches!(self, Self::Two { .. }),
            "`--half` is for two videos or images, or for two views in one picture: give it with --left and --right, \
             --side-by-side or --top-bottom, or leave it out"
        );
        self.streams().try_for_each(StreamSpec::check_view)?;
        let Self::Recording { path, .. } = self else { return Ok(()) };
        #[cfg(feature = "ros2")]
        if is_graph(path) {
            crate::ros2::dds::chosen()?;
        }
        let is_stream = || match StreamSpec::parse(path) {
            StreamSpec::File(path) => is_video(&path) || pictures::is_picture(&path),
            _ => true,
        };
        let name = redact(&path.display().to_string());
        anyhow::ensure!(
            is_recording(path) || is_graph(path) || !is_stream(),
            "{name} is one stream, and there are two views: if it holds both, give `--side-by-side '{name}'` (the \
             left view in its left half) or `--top-bottom '{name}'` (in its upper half); if it is the left view, \
             give the right one after it: `'{name}' RIGHT`"
        );
        Ok(())
    }

    /// Reports whether the source consists of single images.
    pub fn are_pictures(&self) -> bool {
        self.streams().next().is_some_and(|first| match first {
            StreamSpec::Pictures(_) => true,
            StreamSpec::File(path) => still::is_picture(path),
            StreamSpec::Camera(_) | StreamSpec::Uri(_) | StreamSpec::Fragment(_) => false,
        })
    }
}

impl StreamSpec {
    /// Parses `text`. Its secrets are remembered, so that they are never shown.
    pub fn parse(text: impl AsRef<OsStr>) -> Self {
        let text = text.as_ref();
        // Space around a name is a typing error, unless a file has this name.
        let trimmed = text.to_str().map(str::trim).filter(|_| !Path::new(text).exists());
        let path = trimmed.map_or(Path::new(text), Path::new);
        if v4l2::is_camera(path)
            && let Some(name) = path.to_str()
        {
            return Self::Camera(name.to_owned());
        }
        if path.exists() {
            return Self::File(path.to_owned());
        }
        // URIs and pipelines are UTF-8; file names need not be.
        if let Some(text) = trimmed {
            let is_command = launch_line::without_command(text).is_some();
            if text.contains('!') || is_command || is_element(text) {
                remember(text);
                // A trailing "!" is the link to the reader of the frames.
                let text = launch_line::pipeline(text);
                return Self::Fragment(text.trim_end_matches([' ', '!']).to_owned());
            }
            // The address of V4L2 in GStreamer.
            if let Some(device) = text.strip_prefix("v4l2://").filter(|d| d.starts_with("/dev/")) {
                return Self::Camera(device.to_owned());
            }
            if let Some(path) = file_of_uri(text) {
                return Self::File(path);
            }
            if text.contains("://") {
                remember(text);
                return Self::Uri(text.to_owned());
            }
        }
        if pictures::is_pattern(path) || pictures::is_glob(path) {
            return Self::Pictures(path.to_owned());
        }
        Self::File(path.to_owned())
    }

    /// Returns the name for messages, in one line and without secrets.
    pub fn name(&self) -> String {
        match self {
            Self::File(path) | Self::Pictures(path) => path.display().to_string(),
            Self::Camera(name) => name.clone(),
            Self::Uri(uri) => redact(uri),
            Self::Fragment(fragment) => {
                let line = fragment.split_whitespace().collect::<Vec<_>>().join(" ");
                format!("\"{}\"", redact(&line))
            }
        }
    }

    /// Returns the last part of the name.
    pub fn short_name(&self) -> String {
        match self {
            Self::File(path) => {
                path.file_name().map_or_else(|| self.name(), |n| n.to_string_lossy().into_owned())
            }
            _ => self.name(),
        }
    }

    /// Fails if it is a recording or a graph, which has both views.
    fn check_view(&self) -> anyhow::Result<()> {
        let Self::File(path) = self else { return Ok(()) };
        let name = path.display();
        anyhow::ensure!(
            !is_graph(path),
            "{name} is a topic of a ROS 2 graph; both views must come from the graph: --left {GRAPH}TOPIC \
             --right {GRAPH}TOPIC"
        );
        anyhow::ensure!(
            !is_recording(path),
            "{name} is a recording, which has both views; give it by itself: stereod run {name} (a topic that has \
             both views side by side is named twice: --left-topic TOPIC --right-topic TOPIC)"
        );
        Ok(())
    }

    /// Returns what is to be given instead, if it is a name that other programs take.
    pub fn misnamed(&self) -> Option<String> {
        match self {
            Self::File(path) if !path.exists() => misnamed::cure(path.to_str()?),
            Self::Uri(uri) => misnamed::cure(uri),
            _ => None,
        }
    }

    /// Returns every existing local file that it may read.
    pub fn local_files(&self) -> Vec<PathBuf> {
        match self {
            Self::File(path) => vec![path.clone()],
            Self::Pictures(pattern) => pictures::files_of(pattern),
            Self::Camera(name) => vec![name.into()],
            Self::Uri(uri) => files_of_uri(uri),
            Self::Fragment(fragment) => files_of_fragment(fragment),
        }
    }

    /// Reports whether it may be live; that is known only once it is open.
    pub fn may_be_live(&self) -> bool {
        matches!(self, Self::Camera(_) | Self::Uri(_) | Self::Fragment(_))
    }
}

/// Reports whether `text` is one element of GStreamer, with its properties: "libcamerasrc", "aravissrc
/// camera-name=X". By its form, so that a text means the same whatever is installed: sources are
/// named "...src", and an element of any name has properties.
fn is_element(text: &str) -> bool {
    let is_name = |word: &str| {
        word.starts_with(|c: char| c.is_ascii_alphabetic())
            && word.chars().all(|c| c.is_ascii_alphanumeric() || "-_".contains(c))
    };
    let (element, properties) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
    let property = properties.split_once('=').map(|(name, _)| name.trim());
    is_name(element) && (property.is_some_and(is_name) || text.ends_with("src"))
}

/// Returns the topic of a ROS 2 graph that `ros2:/left/image_raw` names.
fn topic_of_graph(text: &impl AsRef<OsStr>) -> Option<String> {
    let text = text.as_ref().to_str()?.trim();
    text.strip_prefix(GRAPH).filter(|_| is_graph(Path::new(text))).map(str::to_owned)
}

/// Returns the existing local files that a GStreamer fragment names in any property, because
/// elements differ in the property's name (`location`, `uri`, `file`, `filename`).
pub fn files_of_fragment(fragment: &str) -> Vec<PathBuf> {
    let values = values_of_fragment(fragment);
    values.iter().flat_map(|value| files_of_value(value)).collect()
}

fn files_of_value(value: &str) -> Vec<PathBuf> {
    if let Some(path) = file_of_uri(value) {
        return vec![path];
    }
    if value.contains("://") {
        return files_of_uri(value);
    }
    let path = Path::new(value);
    if path.is_file() { vec![path.to_owned()] } else { pictures::files_of(path) }
}

/// Returns the local files of a URI without a host, such as `splitfile:///tmp/part*`.
fn files_of_uri(uri: &str) -> Vec<PathBuf> {
    let Some((_, path)) = uri.split_once("://").filter(|(_, path)| path.starts_with('/')) else {
        return Vec::new();
    };
    let path = path.split(['?', '#']).next().unwrap_or_default();
    file_of_uri(&format!("file://{path}")).map_or_else(Vec::new, |path| {
        if path.is_file() { vec![path] } else { pictures::files_of(&path) }
    })
}

/// Returns the file of a `file:` URI in any spelling. Without GStreamer nothing can read it.
fn file_of_uri(text: &str) -> Option<PathBuf> {
    let scheme = text.get(..6).filter(|start| start.eq_ignore_ascii_case("file:/"))?;
    let uri = format!("file:/{}", &text[scheme.len()..]);
    start().ok()?;
    glib::filename_from_uri(&uri).ok().map(|(path, _)| path)
}

/// Returns the values of a fragment's properties, as GStreamer's parser reads them: an identifier,
/// `=` and a string, which may be quoted.
pub fn values_of_fragment(fragment: &str) -> Vec<String> {
    let is_in_name = |c: char| c.is_alphanumeric() || "-_%:".contains(c);
    let equals = fragment.match_indices('=').map(|(at, _)| at);
    let assignments = equals.filter(|&at| fragment[..at].trim_end().ends_with(is_in_name));
    let value = |at: usize| {
        let start = fragment.len() - fragment[at + 1..].trim_start().len();
        unescape(&fragment[string_at(fragment, start, &["\"", "'"], char::is_whitespace)])
    };
    assignments.map(value).collect()
}

/// Removes the backslashes that make the next character ordinary.
fn unescape(text: &str) -> String {
    let mut is_escaped = false;
    let is_kept = |c: &char| {
        is_escaped = !is_escaped && *c == '\\';
        !is_escaped
    };
    text.chars().filter(is_kept).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_way_to_smaller_views_depends_on_the_source() {
        let of = |spec: SourceSpec| spec.resized((320, 240)).unwrap_or_default();
        assert_eq!(of(SourceSpec::Demo), "--demo-size 320x240");
        assert_eq!(of(SourceSpec::two("/dev/video70", "/dev/video72")), "--size of cameras");
        assert!(of(SourceSpec::two("l.mp4", "r.mp4")).contains("-vf scale=320:240 "));
        assert!(of(SourceSpec::side_by_side("both.mkv")).contains("-vf scale=640:240 "));
        assert!(of(SourceSpec::top_bottom("both.mkv")).contains("-vf scale=320:480 "));
        assert_eq!(of(SourceSpec::two("rtsp://a/1", "rtsp://a/2")), "");
        assert_eq!(of(SourceSpec::two("l.mp4", "videotestsrc ! identity")), "");
    }

    #[test]
    fn each_kind_is_recognised() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let text = |name: &str| at(name).display().to_string();
        for name in ["a.mp4", "a b.mp4", "what!.mp4", "%d.png", "[1].png", "007.png"] {
            std::fs::write(at(name), "x").unwrap();
        }
        let file = |name: &str| StreamSpec::File(at(name));
        // A file of this name has priority over any other meaning.
        for name in ["a.mp4", "a b.mp4", "what!.mp4", "%d.png", "[1].png", "missing.mp4"] {
            assert_eq!(StreamSpec::parse(text(name)), file(name));
        }
        assert_eq!(StreamSpec::parse(format!(" {} ", text("a.mp4"))), file("a.mp4"));
        for start in ["file://", "FILE://", "file:", "file://localhost"] {
            let uri = format!("{start}{}", text("a%20b.mp4"));
            assert_eq!(StreamSpec::parse(&uri), file("a b.mp4"), "{uri}");
        }
        for name in ["%03d.png", "*.png", "00?.png"] {
            assert_eq!(StreamSpec::parse(at(name)), StreamSpec::Pictures(at(name)));
        }
        assert!(matches!(StreamSpec::parse("rtsp://camera/1"), StreamSpec::Uri(_)));
        for name in ["/dev/video77", "v4l2:///dev/video77"] {
            assert_eq!(StreamSpec::parse(name), StreamSpec::Camera("/dev/video77".to_owned()));
        }
        let launched = StreamSpec::parse("gst-launch-1.0 -v videotestsrc ! 'video/x-raw,width=64'");
        assert_eq!(launched.name(), "\"videotestsrc ! video/x-raw,width=64\"");
        let fragment = StreamSpec::parse("videotestsrc  !\n video/x-raw,width=64 ! ");
        assert_eq!(fragment.name(), "\"videotestsrc ! video/x-raw,width=64\"");
        assert!(fragment.may_be_live() && !file("a.mp4").may_be_live());
    }

    #[test]
    fn one_element_is_a_fragment() {
        for text in [
            "libcamerasrc",
            " v4l2src ",
            "aravissrc camera-name=X",
            "aravissrc camera-name=\"Basler acA1300 (1)\"",
            "videotestsrc is-live = true pattern=ball",
            "uridecodebin uri=http://host/a.mp4",
        ] {
            let fragment = StreamSpec::Fragment(text.trim().to_owned());
            assert_eq!(StreamSpec::parse(text), fragment, "{text}");
        }
        for text in ["a.mp4", "left", "left right", "take 1=2.mp4", "out/src", "a.src", "", "x = y"]
        {
            assert!(matches!(StreamSpec::parse(text), StreamSpec::File(_)), "{text}");
        }
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("src");
        std::fs::write(&path, "x").unwrap();
        assert_eq!(StreamSpec::parse(&path), StreamSpec::File(path));
    }

    #[cfg(unix)]
    #[test]
    fn a_camera_by_another_name_may_be_live_as_well() {
        let folder = tempfile::tempdir().unwrap();
        let link = folder.path().join("left camera");
        std::os::unix::fs::symlink("/dev/null", &link).unwrap();
        assert_eq!(StreamSpec::parse(&link), StreamSpec::Camera(link.display().to_string()));
        assert!(SourceSpec::side_by_side(&link).may_be_live());
        assert!(StreamSpec::parse("/dev/v4l/by-id/usb-of-a-camera-index0").may_be_live());
    }

    #[test]
    fn one_stream_is_no_recording() {
        let folder = tempfile::tempdir().unwrap();
        let video = folder.path().join("both.mp4");
        std::fs::write(&video, "x").unwrap();
        let streams =
            ["both.mp4", "l.png", "l%02d.png", "rtsp://h/1", "/dev/video0", "v4l2src ! x"];
        for stream in streams.into_iter().map(OsStr::new).chain([video.as_os_str()]) {
            let error = SourceSpec::recording(stream, [None, None]).check(false).unwrap_err();
            let cure = format!("--side-by-side '{}'", stream.display());
            assert!(error.to_string().contains(&cure), "{error}");
        }
        let folder = folder.path().as_os_str();
        for other in
            ["a.mcap", "a.bag", "a.txt", "ros2:/a"].into_iter().map(OsStr::new).chain([folder])
        {
            SourceSpec::recording(other, [None, None]).check(false).unwrap();
        }
        SourceSpec::two("a.mp4", "b.mp4").check(true).unwrap();
    }

    #[test]
    fn a_recording_or_graph_is_no_view() {
        let folder = tempfile::tempdir().unwrap();
        let bag = folder.path().join("a.bag").display().to_string();
        std::fs::write(&bag, "#ROSBAG V2.0\n").unwrap();
        let told = |spec: SourceSpec| spec.check(false).unwrap_err().to_string();
        let of_graph = "both views must come from the graph";
        assert!(told(SourceSpec::two("ros2:/x", "b.mp4")).contains(of_graph));
        assert!(told(SourceSpec::two("a.mp4", "ros2:/x")).contains(of_graph));
        assert!(told(SourceSpec::top_bottom("ros2:/x")).contains(of_graph));
        assert!(told(SourceSpec::two("a.mp4", &bag)).contains(&format!("stereod run {bag}")));
        for other in [SourceSpec::two("ros2:/x", "ros2:/y"), SourceSpec::side_by_side("a.mp4")] {
            other.check(false).unwrap();
        }
        assert!(SourceSpec::Demo.check(true).unwrap_err().to_string().contains("--half"));
    }

    #[cfg(unix)]
    #[test]
    fn names_need_not_be_utf_8() {
        use std::os::unix::ffi::OsStrExt;
        let name = OsStr::from_bytes(b"/tmp/l\xff.mp4");
        assert_eq!(StreamSpec::parse(name), StreamSpec::File(name.into()));
        let pattern = OsStr::from_bytes(b"/tmp/l\xff%03d.png");
        assert_eq!(StreamSpec::parse(pattern), StreamSpec::Pictures(pattern.into()));
    }

    #[test]
    fn secrets_stay_out_of_names() {
        let name = |text: &str| StreamSpec::parse(text).name();
        assert_eq!(name("rtsp://me:secret@cam:554/a"), "rtsp://***@cam:554/a");
        let fragment = "rtspsrc location=rtsp://h user-pw=hush-hush ! decodebin";
        assert!(!name(fragment).contains("hush-hush"));
    }

    #[test]
    fn every_file_that_is_read_is_known() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name).display().to_string();
        for name in ["l1.png", "l2.png", "r 1.mkv", "a\"b.mkv"] {
            std::fs::write(at(name), "x").unwrap();
        }
        let files = |text: String| {
            let files = StreamSpec::parse(text).local_files();
            let names = files.iter().map(|file| file.file_name().unwrap().to_str().unwrap());
            names.collect::<Vec<_>>().join(", ")
        };
        for (text, expected) in [
            (at("l%d.png"), "l1.png, l2.png"),
            (at("l*.png"), "l1.png, l2.png"),
            (format!("file://{}", at("r%201.mkv")), "r 1.mkv"),
            (format!("filesrc location={} ! pngdec", at("l1.png")), "l1.png"),
            (format!("filesrc location = \"{}\" ! decodebin", at("r 1.mkv")), "r 1.mkv"),
            (format!("filesrc location='{}' ! decodebin", at("r 1.mkv")), "r 1.mkv"),
            (format!("filesrc location={} ! decodebin", at("r\\ 1.mkv")), "r 1.mkv"),
            (format!("filesrc location={} ! decodebin", at("a\\\"b.mkv")), "a\"b.mkv"),
            (format!("uridecodebin uri=file://{} ! queue", at("r%201.mkv")), "r 1.mkv"),
            (format!("multifilesrc location={} ! pngdec", at("l%d.png")), "l1.png, l2.png"),
            (format!("multifilesrc location={} ! pngdec", at("l%1u.png")), "l1.png, l2.png"),
            (format!("splitfilesrc location={} ! x", at("l*.png")), "l1.png, l2.png"),
            (format!("splitfile://{}", at("l*.png")), "l1.png, l2.png"),
            ("videotestsrc ! video/x-raw,width=64".into(), ""),
            ("http://host/l1.png".into(), ""),
        ] {
            assert_eq!(files(text.clone()), expected, "{text}");
        }
    }
}
