//! `[output]`: where results go besides the window.

use std::path::PathBuf;
use std::time::Duration;

use clap::ValueEnum;
use serde::{Deserialize, Serialize};

use super::names::path_of;
use super::values::Unfit;

/// Where results go besides the window. An empty text is no such output.
#[derive(Clone, Debug, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Output {
    /// Lossless recording (Matroska).
    pub record: String,
    /// The recording begins a new file after so long.
    pub segment: String,
    /// The recording begins a new file before it has more bytes than this.
    pub segment_size: String,
    /// Bytes of all files of the recording at most; the oldest are deleted.
    pub keep: String,
    /// Bytes that stay free on the disk; the oldest files of the recording are deleted.
    pub keep_free: String,
    /// Coloured preview video (MP4).
    pub preview: String,
    /// Folder of numbered pictures.
    pub pictures: String,
    /// Fragment of a GStreamer pipeline that sends raw pictures wherever it likes.
    pub stream: String,
    /// What that gets.
    pub stream_view: StreamView,
    /// Statistics as JSON; `-` is standard output.
    pub stats: String,
    /// Recording and pictures hold depth instead of disparity.
    pub depth: bool,
}

/// What is streamed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum StreamView {
    /// The disparity in colours.
    #[default]
    Disparity,
    /// The left picture.
    Left,
    /// The left picture, and the disparity in colours.
    SideBySide,
    /// The 16-bit numbers of a recording.
    Numbers,
}

/// How a recording is cut into files, and what is kept of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Segmenting {
    /// How long a file goes on.
    pub length: Option<Duration>,
    /// Bytes of a file at most.
    pub size: Option<u64>,
    /// Bytes of all files at most.
    pub keep: Option<u64>,
    /// Bytes that stay free on the disk.
    pub keep_free: Option<u64>,
}

/// Where the statistics go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stats {
    /// Standard output.
    Stdout,
    /// A file.
    File(PathBuf),
}

impl Output {
    /// File of the lossless recording.
    pub fn record(&self) -> Option<PathBuf> {
        path(&self.record)
    }

    /// How the recording is cut into files; `None`: it is one file.
    pub fn segmenting(&self) -> Option<Segmenting> {
        let segmenting = Segmenting {
            length: given(&self.segment).and_then(duration),
            size: given(&self.segment_size).and_then(bytes),
            keep: given(&self.keep).and_then(bytes),
            keep_free: given(&self.keep_free).and_then(bytes),
        };
        (segmenting != Segmenting::default()).then_some(segmenting)
    }

    /// File of the preview video.
    pub fn preview(&self) -> Option<PathBuf> {
        path(&self.preview)
    }

    /// Folder of the numbered pictures.
    pub fn pictures(&self) -> Option<PathBuf> {
        path(&self.pictures)
    }

    /// Where the statistics go.
    pub fn stats(&self) -> Option<Stats> {
        match self.stats.as_str() {
            "" => None,
            "-" => Some(Stats::Stdout),
            file => Some(Stats::File(path_of(file))),
        }
    }

    /// The fragment that raw pictures are sent through.
    pub fn stream(&self) -> Option<&str> {
        given(self.stream.trim())
    }

    /// Whether frames are written to files.
    pub fn any_frames(&self) -> bool {
        !(self.record.is_empty() && self.preview.is_empty() && self.pictures.is_empty())
    }

    /// Two outputs in one file would destroy each other.
    pub(super) fn check(&self) -> Result<(), Unfit> {
        if !self.record.is_empty() && self.record == self.preview {
            return Err(Unfit::new("preview", "another file than `record`"));
        }
        if !self.stats.is_empty() && (self.stats == self.record || self.stats == self.preview) {
            return Err(Unfit::new("stats", "another file than `record` and `preview`"));
        }
        for (key, text) in [
            ("segment_size", &self.segment_size),
            ("keep", &self.keep),
            ("keep_free", &self.keep_free),
        ] {
            if given(text).is_some_and(|text| bytes(text).is_none()) {
                return Err(Unfit::new(key, "a size of 1 kB or more such as `2GB` or `500 MiB`"));
            }
        }
        if given(&self.segment).is_some_and(|text| duration(text).is_none()) {
            return Err(Unfit::new("segment", "a time from 1 s on such as `10min` or `1h 30min`"));
        }
        Ok(())
    }

    /// Whether what is told of the recording's files goes together.
    ///
    /// # Errors
    /// Where it does not: what to change.
    pub fn complete(&self) -> Result<(), &'static str> {
        let Some(Segmenting { length, size, keep, .. }) = self.segmenting() else { return Ok(()) };
        if self.record.is_empty() {
            return Err("output.segment, segment_size, keep and keep_free are about a recording, \
                        and there is none: give --record OUT.mkv as well");
        }
        if length.is_none() && size.is_none() {
            return Err(
                "output.keep and keep_free delete the oldest files of a recording, and this \
                        one is a single file: give --segment 10min or --segment-size 2GB as well",
            );
        }
        if size.zip(keep).is_some_and(|(size, keep)| size > keep / 2) {
            return Err(
                "output.keep must be at least twice output.segment_size, because the file \
                        being written is never deleted",
            );
        }
        Ok(())
    }
}

/// A length of time of at least a second.
fn duration(text: &str) -> Option<Duration> {
    humantime::parse_duration(text.trim()).ok().filter(|time| *time >= Duration::from_secs(1))
}

/// A number of bytes, of at least 1000.
fn bytes(text: &str) -> Option<u64> {
    let bytes = text.trim().parse::<bytesize::ByteSize>().ok()?.as_u64();
    (1000..=i64::MAX as u64).contains(&bytes).then_some(bytes)
}

fn given(text: &str) -> Option<&str> {
    (!text.is_empty()).then_some(text)
}

fn path(text: &str) -> Option<PathBuf> {
    (!text.is_empty()).then(|| path_of(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn empty_is_no_output() {
        let output = Output { preview: "a.mp4".into(), stats: "-".into(), ..Output::default() };
        assert_eq!((output.record(), output.pictures()), (None, None));
        assert_eq!(output.preview(), Some("a.mp4".into()));
        assert_eq!(output.stats(), Some(Stats::Stdout));
        assert!(output.any_frames());
        assert!(!Output { stats: "s.json".into(), ..Output::default() }.any_frames());
    }

    #[test]
    fn times_and_sizes_are_texts_with_units() {
        assert_eq!(Output::default().segmenting(), None);
        let output = Output {
            record: "a.mkv".into(),
            segment: "1h 30min".into(),
            segment_size: "2GB".into(),
            keep: "1.5 TB".into(),
            keep_free: "500MiB".into(),
            ..Output::default()
        };
        output.check().unwrap();
        output.complete().unwrap();
        let expected = Segmenting {
            length: Some(Duration::from_secs(5400)),
            size: Some(2_000_000_000),
            keep: Some(1_500_000_000_000),
            keep_free: Some(500 << 20),
        };
        assert_eq!(output.segmenting(), Some(expected));

        for wrong in ["10", "min", "-1min", "0s", "10ms", "1.5 fortnights", "ten"] {
            let output = Output { segment: wrong.into(), ..Output::default() };
            assert_eq!(output.check().unwrap_err().key, "segment", "{wrong}");
        }
        for wrong in ["2", "GB", "-1GB", "0", "two GB", "99999999999TB", "nan", "infGB"] {
            let output = Output { keep: wrong.into(), ..Output::default() };
            assert_eq!(output.check().unwrap_err().key, "keep", "{wrong}");
        }
    }

    #[test]
    fn what_contradicts_itself_is_refused_with_the_cure() {
        let output = |record: &str, size: &str, keep: &str| Output {
            record: record.into(),
            segment_size: size.into(),
            keep: keep.into(),
            ..Output::default()
        };
        output("a.mkv", "1GB", "2GB").complete().unwrap();
        for (wrong, cure) in [
            (output("", "1GB", ""), "--record"),
            (output("a.mkv", "", "2GB"), "--segment 10min"),
            (output("a.mkv", "1.1GB", "2GB"), "at least twice"),
        ] {
            assert!(wrong.complete().unwrap_err().contains(cure), "{cure}");
        }
    }

    #[test]
    fn outputs_do_not_share_a_file() {
        let output = Output { record: "a".into(), preview: "a".into(), ..Output::default() };
        assert_eq!(output.check().unwrap_err().key, "preview");
        let output = Output { record: "a".into(), stats: "a".into(), ..Output::default() };
        assert_eq!(output.check().unwrap_err().key, "stats");
    }
}
