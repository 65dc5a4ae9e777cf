//! Inputs of streams: files, cameras, URIs and fragments that are ready to be opened.

use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, bail};

use crate::camera::CameraInput;
use crate::container::{self, Stated};
use crate::labels::{Labels, Timecode, Timing};
use crate::pattern;
use crate::source::pictures::{self, Pictures};
use crate::source::spec::StreamSpec;
use crate::source::v4l2::{Controls, Pick};
use stereod_core::frame::Eye;
use stereod_core::picture::unread;

/// A camera with its mode and controls.
#[derive(Clone, Debug)]
pub(in crate::source::gst) struct Camera {
    /// Name as given by the user.
    pub(in crate::source::gst) name: String,
    pub(in crate::source::gst) pick: Pick,
    pub(in crate::source::gst) controls: Controls,
}

/// Input of a stream. [`super::camera::inputs`] chooses the modes of cameras.
#[derive(Clone, Debug)]
pub(in crate::source::gst) enum Input {
    File(PathBuf),
    Pictures(Pictures),
    Uri(String),
    Fragment(String),
    Camera(Camera),
}

impl Input {
    /// Checks the input as far as possible without GStreamer.
    pub(in crate::source::gst) fn find(spec: &StreamSpec) -> anyhow::Result<Self> {
        if let Some(cure) = spec.misnamed() {
            bail!("{cure}");
        }
        match spec {
            StreamSpec::File(path) if path.as_os_str().is_empty() => {
                bail!("the name of a stream is empty: give a file, a picture pattern or a URI")
            }
            StreamSpec::File(path) => Ok(match file(path)? {
                Self::File(path) if pictures::is_picture(&path) => {
                    Self::Pictures(Pictures::single(path))
                }
                other => other,
            }),
            StreamSpec::Pictures(pattern) => Pictures::find(pattern).map(Self::Pictures),
            StreamSpec::Uri(uri) => Ok(Self::Uri(uri.clone())),
            StreamSpec::Fragment(fragment) => Ok(Self::Fragment(fragment.clone())),
            StreamSpec::Camera(name) => file(Path::new(name)),
        }
    }

    /// Returns the name for messages, in one line and without secrets.
    pub(in crate::source::gst) fn name(&self) -> String {
        self.spec().name()
    }

    /// Returns the camera that delivers this view, if it is one.
    pub(in crate::source::gst) fn camera_input(&self, eye: Eye) -> Option<CameraInput> {
        let Self::Camera(Camera { name, pick, .. }) = self else { return None };
        let Pick { format, width, height, rate } = pick;
        let mode = format!("{format} {width}x{height} at {rate}/s");
        Some(CameraInput { eye, name: name.clone(), mode })
    }

    /// Returns the last part of the name.
    pub(in crate::source::gst) fn short_name(&self) -> String {
        self.spec().short_name()
    }

    fn spec(&self) -> StreamSpec {
        match self {
            Self::File(path) => StreamSpec::File(path.clone()),
            Self::Pictures(pictures) => match &pictures.files[..] {
                [(_, path)] if path.as_path() == Path::new(&pictures.pattern) => {
                    StreamSpec::File(path.clone())
                }
                _ => StreamSpec::Pictures((&pictures.pattern).into()),
            },
            Self::Uri(uri) => StreamSpec::Uri(uri.clone()),
            Self::Fragment(fragment) => StreamSpec::Fragment(fragment.clone()),
            Self::Camera(camera) => StreamSpec::Camera(camera.name.clone()),
        }
    }

    /// Returns the times of numbered image files at this rate; `None` for other inputs.
    pub(in crate::source::gst) fn own_timing(&self, rate: f64) -> Option<Timing> {
        match self {
            Self::Pictures(pictures) => Some(pictures::timing(&[pictures], rate)),
            _ => None,
        }
    }

    /// Returns the labels of the frames. `timing`: of numbered images; `begin`: time of the first frame; `delay`:
    /// time added to all; `rate`: frames a second.
    pub(in crate::source::gst) fn labels(
        &self,
        timing: Option<Timing>,
        rate: Option<f64>,
        begin: Option<Duration>,
        delay: Duration,
    ) -> Labels {
        match (self, timing) {
            (Self::Pictures(pictures), Some(timing)) => pictures.labels(timing, delay),
            (Self::File(path), _) => Labels {
                zero: begin.unwrap_or_default() + delay,
                timing: None,
                timecode: Timecode::read(path, rate).map(|first| (first, 0)),
            },
            _ => Labels::default(),
        }
    }

    /// Returns the views and the projection that the files of the input state.
    pub(in crate::source::gst) fn stated(&self) -> Stated {
        match self {
            Self::File(path) => Stated::read(path),
            Self::Fragment(_) => match &self.spec().local_files()[..] {
                [path] => Stated::read(path),
                _ => Stated::default(),
            },
            Self::Pictures(_) | Self::Uri(_) | Self::Camera(_) => Stated::default(),
        }
    }

    /// Returns a guess at the fault of a file that does not play, to be appended to the reason;
    /// empty if there is none.
    pub(in crate::source::gst) fn hint(&self) -> String {
        match self {
            Self::File(path) if lacks_index(path).unwrap_or(false) => {
                "; its index (moov) is missing: the recording or copy was cut off before its end"
                    .to_owned()
            }
            Self::File(path) if is_named_raw(path) => {
                let name = path.display();
                format!(
                    "; by its name it holds raw frames without a header; name their size W and H and their format: \
                     --left 'filesrc location=\"{name}\" ! rawvideoparse width=W height=H format=i420 \
                     framerate=30/1' (gray8, gray16-le, nv12, yuy2, rgb or another format instead of i420)"
                )
            }
            _ => String::new(),
        }
    }
}

/// Reports whether a file has an ending that is usual for frames without a header.
fn is_named_raw(path: &Path) -> bool {
    const ENDINGS: [&str; 16] = [
        "yuv", "raw", "bin", "dat", "i420", "yv12", "nv12", "nv21", "yuyv", "yuy2", "uyvy", "gray",
        "grey", "y8", "rgb", "bgr",
    ];
    let ending = path.extension().unwrap_or_default();
    ENDINGS.iter().any(|raw| ending.eq_ignore_ascii_case(raw))
}

/// Reports whether this is an MP4 or QuickTime file (ISO/IEC 14496-12) without the index of its
/// frames.
fn lacks_index(path: &Path) -> std::io::Result<bool> {
    let mut file = std::fs::File::open(path)?;
    let length = file.metadata()?.len();
    let (mut at, mut known) = (0_u64, false);
    // A box may claim any length up to the largest number.
    while at.checked_add(8).is_some_and(|end| end <= length) {
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
            match path.file_name().and_then(pattern::flaw) {
                Some(flaw) => bail!("{name}: {flaw}"),
                None => bail!("{name}: no such file; check the path"),
            }
        }
        Err(error) => return Err(error).with_context(|| format!("{name}: cannot be looked at")),
    };
    if meta.is_dir() {
        let Some(pattern) = pictures::patterns(path).into_iter().next() else {
            bail!("{name} is a folder without pictures; give a file, or the pattern of pictures");
        };
        let pattern = pattern.display();
        bail!("{name} is a folder; for the pictures in it give their pattern, such as '{pattern}'");
    }
    if meta.is_file() {
        if meta.len() == 0 {
            bail!("{name} is empty (0 bytes); was its recording or copy interrupted?");
        }
        let file = std::fs::File::open(path);
        let file = file.with_context(|| format!("{name}: cannot be opened"))?;
        refuse_unread(file).with_context(|| format!("cannot read {name}"))?;
        let refusal = container::refusal(path);
        if let Some(refusal) = refusal.with_context(|| format!("{name}: cannot be opened"))? {
            bail!(refusal);
        }
    } else {
        // Opening a pipe waits for its writer, and nothing could interrupt that.
        bail!(
            "{name} is no regular file; what comes through a pipe is read with a GStreamer pipeline: \
             --left 'filesrc location={name} ! matroskademux ! decodebin'"
        );
    }
    Ok(Input::File(path.to_owned()))
}

/// Fails for an image of a known format that is not read.
fn refuse_unread(file: std::fs::File) -> anyhow::Result<()> {
    let mut head = Vec::new();
    file.take(64).read_to_end(&mut head)?;
    match unread::by_first_bytes(&head) {
        // A GIF is refused with a command that keeps it a video.
        Some(unread) if !head.starts_with(b"GIF") => Err(unread.into()),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(text: &str) -> String {
        format!("{:#}", Input::find(&StreamSpec::parse(text)).unwrap_err())
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
        let message = refusal("nowhere/%999999999d.png");
        assert!(message.contains("at most 20 digits"), "{message}");
        let webp = folder.path().join("a.webp");
        std::fs::write(&webp, b"RIFF\x04\0\0\0WEBPVP8 ").unwrap();
        let message = refusal(webp.to_str().unwrap());
        assert!(
            message.contains("a.webp: WebP is not read") && message.contains("`convert"),
            "{message}"
        );
        let message = refusal(folder.path().to_str().unwrap());
        assert!(message.contains("is a folder without pictures"), "{message}");
        for name in ["._0007.png", "0007.png", "0008.png"] {
            std::fs::write(folder.path().join(name), "").unwrap();
        }
        let message = refusal(folder.path().to_str().unwrap());
        assert!(message.contains("is a folder;") && message.contains("/%04d.png"), "{message}");
        assert!(refusal("file:///nowhere.mp4").contains("/nowhere.mp4: no such file"));
        assert!(refusal("  ").contains("empty"));
        assert!(refusal("0").contains("/dev/video0") && refusal("csi://0").contains("nvargus"));
    }

    #[test]
    fn a_box_of_any_length_ends_the_search_for_the_index() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("v.mp4");
        for size in [u64::MAX, u64::MAX - 8, 1 << 63, 0, 1] {
            let head = [&[0, 0, 0, 1][..], b"free", &size.to_be_bytes(), &[0; 40]].concat();
            std::fs::write(&path, head).unwrap();
            assert!(lacks_index(&path).unwrap_or(true), "{size}");
        }
    }
}
