//! The table of outputs: how each is called, opened, and kept in the pieces of a batch.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result};

use crate::settings::names::path_of;
use crate::settings::{self, Settings, Stats};
use stereod_calibration::Aligner;
use stereod_io::sink::colouring::LiveColouring;
use stereod_io::sink::lines::{Line, LinesRecorder};
use stereod_io::sink::mcap::{self, McapOptions, McapRecorder};
use stereod_io::sink::numbered::{self, Names};
use stereod_io::sink::pictures::{CLOUDS, Clouds, PICTURES, Pictures};
use stereod_io::sink::poses::{Poses, check_poses_name};
use stereod_io::sink::segments::Place;
use stereod_io::sink::video::{Preview, Recorder};
use stereod_io::sink::{Sink, StreamInfo};

/// A file that a run writes, or a folder of files.
pub struct Output {
    /// The flag that names it, or the key of the settings.
    pub flag: &'static str,
    pub path: fn(&Settings) -> Option<PathBuf>,
    /// Its names in a batch's `--write`, each with the file or folder in the folder of a piece.
    pub pieces: &'static [(&'static str, &'static str)],
    pub kind: Kind,
}

impl Output {
    /// Returns the flag without dashes.
    pub fn name(&self) -> &'static str {
        self.flag.trim_start_matches("--")
    }

    /// Returns the section and the key of the settings that name its file.
    pub fn key(&self) -> (&'static str, &'static str) {
        match self.flag {
            "--obstacles" => ("obstacles", "lines"),
            flag => flag.split_once('.').unwrap_or(("output", self.name())),
        }
    }

    /// Returns the file or folder of a recording of this name, in place of that of the settings. Names of
    /// outputs keep those with the same extension apart.
    pub fn named(&self, path: &Path, name: &str) -> PathBuf {
        let stem = match self.name() {
            "record" => name.to_owned(),
            output => format!("{name}-{output}"),
        };
        match (&self.kind, path.extension()) {
            (Kind::Folder(kind, ..), _) => {
                let folder = Names::of(path, kind).dir;
                // A pattern of names stays.
                let rest = path.strip_prefix(&folder).unwrap_or(path);
                folder.with_file_name(stem).components().chain(rest.components()).collect()
            }
            (_, Some(extension)) => {
                path.with_file_name(format!("{stem}.{}", extension.to_string_lossy()))
            }
            (_, None) => path.with_file_name(stem),
        }
    }

    pub fn counted_as(&self) -> &'static str {
        if self.name() == "record" { "recording" } else { self.name() }
    }
}

pub enum Kind {
    /// Lossless video or messages, in one file or in segments.
    Recording(Open),
    /// Coloured video in one file.
    Preview(Open),
    /// One file of a whole run, with the check of its name. A batch does not write it, because its pieces are matched
    /// apart.
    WholeRun(fn(&Path) -> Result<()>, Open),
    /// Numbered files, and their extension.
    Folder(&'static numbered::Kind, fn(&settings::Output) -> &'static str, Open),
    Statistics,
    /// The map, which is written at the end by its own part.
    Map,
    /// A file that several runs may share: settings that a viewer saves, or the token of the page.
    Shared,
}

/// Creates an output, or continues it after a failure.
pub type Open = fn(Place, &Setup) -> Result<Box<dyn Sink>>;

/// All outputs but the stream, which has no path.
pub static OUTPUTS: [Output; 14] = [
    Output {
        flag: "--record",
        path: |settings| path_of(&settings.output.record),
        pieces: &[("record", "disparity.mkv"), ("mcap", "disparity.mcap")],
        kind: Kind::Recording(|place, to| match mcap::is_name(place.path()) {
            true => {
                let (topics, calibration) = (to.output.mcap.clone(), to.calibration.clone());
                let prefix = to.output.frame_prefix.clone();
                let options = McapOptions { topics, calibration, prefix };
                boxed(McapRecorder::create(place, &to.stream, options))
            }
            false => boxed(Recorder::create(place, &to.stream, to.output.quantity())),
        }),
    },
    Output {
        flag: "--confidence",
        path: |settings| path_of(&settings.output.confidence),
        pieces: &[("confidence", "confidence.mkv")],
        kind: Kind::Recording(|place, to| boxed(Recorder::of_confidence(place, &to.stream))),
    },
    Output {
        flag: "--whitened",
        path: |settings| path_of(&settings.output.whitened),
        pieces: &[("whitened", "whitened.mkv")],
        kind: Kind::Recording(|place, to| boxed(Recorder::of_whitened(place, &to.stream))),
    },
    Output {
        flag: "--verdicts",
        path: |settings| path_of(&settings.output.verdicts),
        pieces: &[("verdicts", "verdicts.mkv")],
        kind: Kind::Recording(|place, to| boxed(Recorder::of_verdicts(place, &to.stream))),
    },
    Output {
        flag: "--aligned",
        path: |settings| path_of(&settings.output.aligned),
        pieces: &[("aligned", "aligned.mkv")],
        kind: Kind::Recording(|place, to| {
            let aligner = to.aligner.clone();
            let aligner = aligner.context("neither the cameras nor --align give a third camera")?;
            boxed(Recorder::of_aligned(place, &to.stream, aligner, to.output.depth_unit()))
        }),
    },
    Output {
        flag: "--obstacles",
        path: |settings| settings.obstacles.file(),
        pieces: &[("obstacles", "obstacles.ndjson")],
        kind: Kind::Recording(|place, to| {
            boxed(LinesRecorder::create(place, &to.stream, to.line.clone()))
        }),
    },
    Output {
        flag: "--poses",
        path: |settings| path_of(&settings.output.poses),
        pieces: &[],
        kind: Kind::WholeRun(check_poses_name, |place, to| boxed(Poses::create(place, &to.stream))),
    },
    Output {
        flag: "--preview",
        path: |settings| path_of(&settings.output.preview),
        pieces: &[("preview", "preview.mp4")],
        kind: Kind::Preview(|place, to| {
            let (view, colours) = (to.output.preview_view, to.colouring.clone());
            let quality = to.output.preview_quality;
            let preview = Preview::create(place, &to.stream, view, colours, quality)?;
            boxed(Ok(preview.with_legend(to.output.preview_legend)))
        }),
    },
    Output {
        flag: "--stats",
        path: |settings| match settings.output.stats() {
            Some(Stats::File(path)) => Some(path),
            Some(Stats::Stdout) | None => None,
        },
        pieces: &[],
        kind: Kind::Statistics,
    },
    Output { flag: "--map", path: |settings| settings.output.map(), pieces: &[], kind: Kind::Map },
    Output {
        flag: "window.settings",
        path: |settings| settings.window.settings(),
        pieces: &[],
        kind: Kind::Shared,
    },
    Output {
        flag: "serve.token_file",
        path: |settings| settings.serve.token_file(),
        pieces: &[],
        kind: Kind::Shared,
    },
    Output {
        flag: "--pictures",
        path: |settings| path_of(&settings.output.pictures),
        pieces: &[("pictures", "pictures")],
        kind: Kind::Folder(
            &PICTURES,
            |to| to.pictures_format.extension(),
            |place, to| {
                let format = to.output.pictures_format;
                let pictures = Pictures::create(place, &to.stream, to.output.quantity(), format)?;
                boxed(Ok(pictures.of_source(&to.source)))
            },
        ),
    },
    Output {
        flag: "--clouds",
        path: |settings| path_of(&settings.output.clouds),
        pieces: &[("clouds", "clouds")],
        kind: Kind::Folder(
            &CLOUDS,
            |to| to.clouds_format.extension(),
            |place, to| {
                let format = to.output.clouds_format;
                boxed(Clouds::create(place, &to.stream, format, to.output.clouds()))
            },
        ),
    },
];

pub struct Setup {
    pub stream: StreamInfo,
    pub aligner: Option<Arc<Aligner>>,
    /// Names and contents of the calibration files, for an MCAP file.
    pub calibration: Vec<(String, Vec<u8>)>,
    pub colouring: LiveColouring,
    pub output: settings::Output,
    /// The source in words.
    pub source: String,
    /// A line for what is found in a pair.
    pub line: Line,
}

fn boxed<S: Sink + 'static>(sink: Result<S>) -> Result<Box<dyn Sink>> {
    Ok(Box::new(sink?))
}

/// Reports whether a run writes or sends something, so that it is more than a show.
pub fn are_wanted(settings: &Settings) -> bool {
    let Settings { output, obstacles, ros2, .. } = settings;
    let writes = wanted(settings).any(|(output, _)| !matches!(output.kind, Kind::Shared));
    let sends = [&obstacles.lines, &obstacles.mavlink, &obstacles.mqtt];
    writes
        || sends.iter().any(|text| !text.is_empty())
        || output.stats().is_some()
        || output.stream().is_some()
        || ros2.namespace().is_some()
}

pub fn wanted(settings: &Settings) -> impl Iterator<Item = (&'static Output, PathBuf)> {
    OUTPUTS.iter().filter_map(|output| Some((output, (output.path)(settings)?)))
}

/// Returns the outputs that a batch can write: the name in `--write`, the output, and the file or folder
/// in the folder of a piece.
pub fn of_batch() -> impl Iterator<Item = (&'static str, &'static Output, &'static str)> {
    OUTPUTS
        .iter()
        .flat_map(|output| output.pieces.iter().map(move |(name, path)| (*name, output, *path)))
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;
    use crate::settings::{Layers, rows};
    use stereod_core::settings::row::{Kind as Value, Row};

    /// The rows of `[output]` that name a file or folder.
    fn paths() -> impl Iterator<Item = &'static Row> {
        let of_output = rows().filter(|(section, _)| *section == "output").map(|(_, row)| row);
        of_output.filter(|row| matches!(row.kind, Value::Path))
    }

    #[test]
    fn every_path_of_the_settings_is_an_output() {
        for row in paths() {
            let flag = row.flag.expect("an output has a flag").name;
            let known = OUTPUTS.iter().find(|output| output.flag == flag);
            let known = known.unwrap_or_else(|| panic!("{flag} has no row in OUTPUTS"));
            assert_eq!(known.key(), ("output", row.key));
            let mut layers = Layers::new();
            layers.assignment(&format!("output.{}=a/b", row.key));
            let settings = layers.finish().unwrap().settings;
            let wanted: Vec<_> =
                wanted(&settings).map(|(output, path)| (output.flag, path)).collect();
            assert_eq!(wanted, [(flag, PathBuf::from("a/b"))]);
        }
    }

    #[test]
    fn the_files_of_a_recording_have_its_name_and_different_ones() {
        let named = |flag: &str, path: &str| {
            let output = OUTPUTS.iter().find(|output| output.flag == flag).unwrap();
            output.named(Path::new(path), "yard.2")
        };
        for (flag, path, expected) in [
            ("--record", "out.mkv", "yard.2.mkv"),
            ("--record", "a/out.mcap", "a/yard.2.mcap"),
            ("--confidence", "a/c.mkv", "a/yard.2-confidence.mkv"),
            ("--poses", "a/p.tum", "a/yard.2-poses.tum"),
            ("--pictures", "a/out", "a/yard.2-pictures"),
            ("--clouds", "a/out/%04d.ply", "a/yard.2-clouds/%04d.ply"),
            ("--clouds", "%04d.ply", "./yard.2-clouds/%04d.ply"),
            ("--pictures", "..", "../yard.2-pictures"),
        ] {
            assert_eq!(named(flag, path), Path::new(expected));
        }
    }

    #[test]
    fn outputs_of_frames_have_names_of_their_own_in_a_batch() {
        let (mut names, mut files) = (HashSet::new(), HashSet::new());
        for (name, _, path) in of_batch() {
            assert!(names.insert(name) && files.insert(path), "{name} or {path} is there twice");
        }
        for output in &OUTPUTS {
            let (section, key) = output.key();
            assert!(crate::settings::row(section, key).is_some(), "{section}.{key}");
        }
        for Output { flag, pieces, kind, .. } in &OUTPUTS {
            let has_pieces = match kind {
                Kind::Recording(_) | Kind::Preview(_) | Kind::Folder(..) => true,
                Kind::Statistics | Kind::Shared | Kind::Map | Kind::WholeRun(..) => false,
            };
            assert_eq!(!pieces.is_empty(), has_pieces, "{flag}");
        }
    }
}
