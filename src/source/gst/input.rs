//! What a stream's text stands for: a file, numbered pictures, a URI, or a fragment of a pipeline.

use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow, bail};
use gstreamer::glib;

use super::camera::Camera;
use super::pictures::{self, Pictures};

/// Something that can be opened. [`super::camera::inputs`] finds the cameras among the texts.
#[derive(Clone, Debug)]
pub(super) enum Input {
    File(PathBuf),
    Pictures(Pictures),
    Uri(String),
    Fragment(String),
    Camera(Camera),
}

impl Input {
    /// Reads `text` and checks what can be checked without GStreamer.
    ///
    /// # Errors
    /// Where there is no such file, or it cannot be a video.
    pub(super) fn parse(text: &str) -> anyhow::Result<Self> {
        let text = text.trim();
        if text.is_empty() {
            bail!("the name of a stream is empty: give a file, a picture pattern or a URI");
        }
        let path = Path::new(text);
        if path.exists() {
            return file(path);
        }
        if text.contains('!') {
            // A dangling "!" stands for the link to whatever reads the pictures.
            return Ok(Self::Fragment(text.trim_end_matches([' ', '!']).to_owned()));
        }
        if let Some((scheme, _)) = text.split_once("://") {
            if !scheme.eq_ignore_ascii_case("file") {
                return Ok(Self::Uri(text.to_owned()));
            }
            let (path, _) = glib::filename_from_uri(text)
                .map_err(|error| anyhow!("{text}: {}", error.message()))?;
            return file(&path);
        }
        if pictures::is_pattern(text) {
            return Pictures::find(text).map(Self::Pictures);
        }
        file(path)
    }

    /// What it is, for people, in one line; without a password.
    pub(super) fn name(&self) -> String {
        match self {
            Self::File(path) => path.display().to_string(),
            Self::Pictures(pictures) => pictures.pattern.clone(),
            Self::Uri(uri) => without_password(uri),
            Self::Camera(camera) => camera.name.clone(),
            Self::Fragment(fragment) => {
                let line = fragment.split_whitespace().collect::<Vec<_>>().join(" ");
                format!("\"{line}\"")
            }
        }
    }

    /// The last part of its name.
    pub(super) fn short_name(&self) -> String {
        match self {
            Self::File(path) => {
                path.file_name().map_or_else(|| self.name(), |n| n.to_string_lossy().into_owned())
            }
            _ => self.name(),
        }
    }

    /// What may be wrong with a file that does not play, to follow the reason; empty where nothing
    /// is known.
    pub(super) fn hint(&self) -> &'static str {
        match self {
            Self::File(path) if lacks_index(path).unwrap_or(false) => {
                "; its index (moov) is missing: the recording or copy was cut off before its end"
            }
            _ => "",
        }
    }
}

/// Whether this is an MP4 or QuickTime file (ISO/IEC 14496-12) without the box that says where its
/// pictures are.
fn lacks_index(path: &Path) -> std::io::Result<bool> {
    let mut file = std::fs::File::open(path)?;
    let length = file.metadata()?.len();
    let (mut at, mut known) = (0, false);
    while at + 8 <= length {
        let mut head = [0; 16];
        file.seek(SeekFrom::Start(at))?;
        let read = file.read(&mut head)?;
        if read < 8 {
            break;
        }
        let [a, b, c, d, kind @ .., _, _, _, _, _, _, _, _] = head;
        match &kind {
            b"moov" | b"moof" => return Ok(false),
            b"ftyp" | b"mdat" | b"free" | b"wide" | b"skip" | b"uuid" => known = true,
            _ => break,
        }
        let size = match u32::from_be_bytes([a, b, c, d]) {
            0 => length,
            1 if read == 16 => u64::from_be_bytes(head[8..].try_into().unwrap_or_default()),
            size => u64::from(size),
        };
        at = at.saturating_add(size.max(8));
    }
    Ok(known)
}

fn file(path: &Path) -> anyhow::Result<Input> {
    let name = path.display();
    let meta = match std::fs::metadata(path) {
        Ok(meta) => meta,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            bail!("{name}: no such file; check the path")
        }
        Err(error) => return Err(error).with_context(|| format!("{name}: cannot be looked at")),
    };
    if meta.is_dir() {
        let pattern =
            pictures::suggest(path).unwrap_or_else(|| path.join("%06d.png").display().to_string());
        bail!("{name} is a folder; for the pictures in it give their pattern, such as {pattern}");
    }
    if meta.is_file() {
        if meta.len() == 0 {
            bail!("{name} is empty (0 bytes); was its recording or copy interrupted?");
        }
        std::fs::File::open(path).with_context(|| format!("{name}: cannot be opened"))?;
    } else {
        // Opening a pipe waits for whoever writes to it, and nothing could stop that.
        bail!(
            "{name} is no regular file; what comes through a pipe is read with a GStreamer pipeline: \
             --left 'fdsrc fd=0 ! matroskademux ! decodebin'"
        );
    }
    Ok(Input::File(path.to_owned()))
}

fn without_password(uri: &str) -> String {
    let Some((scheme, rest)) = uri.split_once("://") else { return uri.to_owned() };
    let (host, path) = rest.find('/').map_or((rest, ""), |at| rest.split_at(at));
    let host = host.rsplit_once('@').map_or(host, |(_, host)| host);
    format!("{scheme}://{host}{path}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(text: &str) -> String {
        format!("{:#}", Input::parse(text).unwrap_err())
    }

    #[test]
    fn each_kind_is_recognised() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name).display().to_string();
        for name in ["a.mp4", "a b.mp4", "what!.mp4", "%d.png", "007.png"] {
            std::fs::write(at(name), "x").unwrap();
        }
        assert!(matches!(Input::parse(&at("a.mp4")), Ok(Input::File(_))));
        assert!(matches!(Input::parse(&at("what!.mp4")), Ok(Input::File(_))));
        // A file of that very name wins over the pattern.
        assert!(matches!(Input::parse(&at("%d.png")), Ok(Input::File(_))));
        assert!(
            matches!(Input::parse(&at("%03d.png")), Ok(Input::Pictures(p)) if p.files.len() == 1)
        );
        let uri = format!("file://{}", at("a%20b.mp4"));
        assert!(matches!(Input::parse(&uri), Ok(Input::File(path)) if path.ends_with("a b.mp4")));
        assert!(matches!(Input::parse("rtsp://camera/1"), Ok(Input::Uri(_))));
        let fragment = Input::parse("videotestsrc  !\n video/x-raw,width=64 ! ").unwrap();
        assert_eq!(fragment.name(), "\"videotestsrc ! video/x-raw,width=64\"");
    }

    #[test]
    fn refusals_name_the_file_and_the_cure() {
        let folder = tempfile::tempdir().unwrap();
        let empty = folder.path().join("empty.mp4");
        std::fs::write(&empty, "").unwrap();
        let message = refusal(empty.to_str().unwrap());
        assert!(message.contains("empty.mp4") && message.contains("0 bytes"), "{message}");
        let message = refusal("nowhere/left.mp4");
        assert!(message.contains("nowhere/left.mp4: no such file"), "{message}");
        let message = refusal(folder.path().to_str().unwrap());
        assert!(message.contains("is a folder") && message.contains("%06d.png"), "{message}");
        assert!(refusal("file:///nowhere.mp4").contains("/nowhere.mp4: no such file"));
        assert!(refusal("  ").contains("empty"));
    }

    #[test]
    fn passwords_stay_out_of_names() {
        let input = Input::parse("rtsp://me:secret@cam:554/a@b").unwrap();
        assert_eq!(input.name(), "rtsp://cam:554/a@b");
    }
}
