//! `[output]`: where results go besides the window.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::values::Unfit;

/// Where results go besides the window. An empty text is no such output.
#[derive(Clone, Debug, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Output {
    /// Lossless recording (Matroska).
    pub record: String,
    /// Coloured preview video (MP4).
    pub preview: String,
    /// Folder of numbered pictures.
    pub pictures: String,
    /// Statistics as JSON; `-` is standard output.
    pub stats: String,
    /// Recording and pictures hold depth instead of disparity.
    pub depth: bool,
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
            file => Some(Stats::File(file.into())),
        }
    }

    /// Whether frames are written anywhere.
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
        Ok(())
    }
}

fn path(text: &str) -> Option<PathBuf> {
    (!text.is_empty()).then(|| text.into())
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
    fn outputs_do_not_share_a_file() {
        let output = Output { record: "a".into(), preview: "a".into(), ..Output::default() };
        assert_eq!(output.check().unwrap_err().key, "preview");
        let output = Output { record: "a".into(), stats: "a".into(), ..Output::default() };
        assert_eq!(output.check().unwrap_err().key, "stats");
    }
}
