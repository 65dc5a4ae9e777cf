//! The outputs of a run, made from the settings. If an output of a live run fails, it is created
//! again without overwriting its earlier files.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use anyhow::{Context, Result, bail};

use crate::calibration::Aligner;
use crate::calibration::format::file_list;
use crate::commands::prepare::rig::Rig;
use crate::commands::{Error, inputs};
use crate::core::clock::CaptureClock;
use crate::core::reading;
use crate::matching::{Temporal, TemporalMode};
use crate::settings::names::path_of;
use crate::settings::{Loaded, Settings, Stats};
use crate::sink::claim::Claim;
use crate::sink::cloud::{CloudFormat, CloudOptions};
use crate::sink::clouds::{CLOUDS, Clouds};
use crate::sink::colouring::LiveColouring;
use crate::sink::encoding::Encoding;
use crate::sink::files;
use crate::sink::mcap::{self, McapOptions, McapRecorder, Place};
use crate::sink::new_file::NewFile;
use crate::sink::numbered;
use crate::sink::numbers::{DepthUnit, Quantity};
use crate::sink::pictures::{PICTURES, Pictures};
use crate::sink::restarting::{Factory, Restarting};
use crate::sink::segments::{self, SegmentLimits, Segments};
use crate::sink::still::StillFormat;
use crate::sink::video::{
    FragmentError, Preview, Recorder, StreamOptions, StreamPicture, StreamSink, VideoView,
    check_fragment, check_preview_name, check_recording_name,
};
use crate::sink::{Sink, StagesInTime, StreamInfo};
use crate::source::SourceInfo;
use crate::source::spec::{SourceSpec, files_of_fragment, values_of_fragment};

/// Largest size of an attached calibration file in bytes.
const CALIBRATION_MAX: u64 = 16 << 20;

/// A file that a run writes, or a folder of files.
struct Output {
    /// The flag that names it, or the key of the settings.
    flag: &'static str,
    /// Its destination, if the settings ask for it.
    path: fn(&Settings) -> Option<PathBuf>,
    kind: Kind,
}

/// How an output is written.
enum Kind {
    /// Lossless video or messages, in one file or in segments.
    Recording(fn(&Path, &Setup) -> Made, fn(Segments, &Setup) -> Made),
    /// Coloured video in one file.
    Preview,
    /// Numbered files in a folder, which is created or resumed.
    Folder(&'static numbered::Kind, fn(&Path, &Setup) -> Made, fn(&Path, &Setup) -> Made),
    /// The statistics at the end of the run.
    Statistics,
    /// A file that several runs may share: settings that a viewer saves, or the token of the page.
    Shared,
}

type Made = Result<Box<dyn Sink>>;

/// All outputs but the stream, which has no path.
static OUTPUTS: [Output; 10] = [
    Output {
        flag: "--record",
        path: |settings| path_of(&settings.output.record),
        kind: Kind::Recording(
            |path, to| match mcap::is_name(path) {
                true => {
                    let place = Place::File(path.to_path_buf());
                    McapRecorder::create(place, &to.stream, &to.mcap).map(boxed)
                }
                false => Recorder::create(path, &to.stream, to.quantity).map(boxed),
            },
            |segments, to| match mcap::is_name(segments.base()) {
                true => {
                    let place = Place::Segments(segments);
                    McapRecorder::create(place, &to.stream, &to.mcap).map(boxed)
                }
                false => Recorder::segmented(segments, &to.stream, to.quantity).map(boxed),
            },
        ),
    },
    Output {
        flag: "--confidence",
        path: |settings| path_of(&settings.output.confidence),
        kind: Kind::Recording(
            |path, to| Recorder::of_confidence(path, &to.stream).map(boxed),
            |segments, to| Recorder::of_confidence_segmented(segments, &to.stream).map(boxed),
        ),
    },
    Output {
        flag: "--whitened",
        path: |settings| path_of(&settings.output.whitened),
        kind: Kind::Recording(
            |path, to| Recorder::of_whitened(path, &to.stream).map(boxed),
            |segments, to| Recorder::of_whitened_segmented(segments, &to.stream).map(boxed),
        ),
    },
    Output {
        flag: "--aligned",
        path: |settings| path_of(&settings.output.aligned),
        kind: Kind::Recording(
            |path, to| Recorder::of_aligned(path, &to.stream, to.aligner()?, to.unit).map(boxed),
            |segments, to| {
                let aligner = to.aligner()?;
                Recorder::of_aligned_segmented(segments, &to.stream, aligner, to.unit).map(boxed)
            },
        ),
    },
    Output {
        flag: "--preview",
        path: |settings| path_of(&settings.output.preview),
        kind: Kind::Preview,
    },
    Output {
        flag: "--stats",
        path: |settings| match settings.output.stats() {
            Some(Stats::File(path)) => Some(path),
            Some(Stats::Stdout) | None => None,
        },
        kind: Kind::Statistics,
    },
    Output {
        flag: "window.settings",
        path: |settings| settings.window.settings(),
        kind: Kind::Shared,
    },
    Output {
        flag: "serve.token_file",
        path: |settings| settings.serve.token_file(),
        kind: Kind::Shared,
    },
    Output {
        flag: "--pictures",
        path: |settings| path_of(&settings.output.pictures),
        kind: Kind::Folder(
            &PICTURES,
            |folder, to| Pictures::create(folder, &to.stream, to.quantity, to.format).map(boxed),
            |folder, to| Pictures::resume(folder, &to.stream, to.quantity, to.format).map(boxed),
        ),
    },
    Output {
        flag: "--clouds",
        path: |settings| path_of(&settings.output.clouds),
        kind: Kind::Folder(
            &CLOUDS,
            |folder, to| Clouds::create(folder, &to.stream, to.clouds_format, to.clouds).map(boxed),
            |folder, to| Clouds::resume(folder, &to.stream, to.clouds_format, to.clouds).map(boxed),
        ),
    },
];

/// Properties that sinks are made with.
#[derive(Clone)]
struct Setup {
    stream: StreamInfo,
    quantity: Quantity,
    /// Unit of aligned depth.
    unit: DepthUnit,
    aligner: Option<Arc<Aligner>>,
    mcap: McapOptions,
    format: StillFormat,
    clouds: CloudOptions,
    clouds_format: CloudFormat,
    view: VideoView,
    preview_quality: u32,
    preview_legend: bool,
    colouring: LiveColouring,
}

impl Setup {
    fn aligner(&self) -> Result<Arc<Aligner>> {
        self.aligner.clone().context("neither the cameras nor --align give a third camera")
    }
}

fn boxed<S: Sink + 'static>(sink: S) -> Box<dyn Sink> {
    Box::new(sink)
}

/// Returns the outputs that the settings ask for, with their destinations.
fn wanted(settings: &Settings) -> impl Iterator<Item = (&'static Output, PathBuf)> {
    OUTPUTS.iter().filter_map(|output| Some((output, (output.path)(settings)?)))
}

/// Returns the files and folders that frames are written to.
pub fn files_of_frames(settings: &Settings) -> impl Iterator<Item = PathBuf> {
    let frames = wanted(settings).filter(|(output, _)| match output.kind {
        Kind::Recording(..) | Kind::Preview | Kind::Folder(..) => true,
        Kind::Statistics | Kind::Shared => false,
    });
    frames.map(|(_, path)| path)
}

/// Reports whether somebody else may switch files off and on.
fn is_switched(settings: &Settings) -> bool {
    settings.serve.listen().is_some() || settings.ros2.namespace().is_some()
}

/// Reports whether frames are written to files.
pub fn writes_frames(settings: &Settings) -> bool {
    files_of_frames(settings).next().is_some()
}

/// Files that are settled before the source is opened.
pub struct Reserved {
    /// File of the statistics, if they go into one.
    pub statistics: Option<NewFile>,
    /// Keep other runs from writing the same files.
    _claims: Vec<Claim>,
}

/// Checks before anything is opened that the files can be written, that no two of them are the same,
/// and that no other run writes one of them.
pub fn reserve(settings: &Settings) -> Result<Reserved, Error> {
    refuse_shared_files(settings).map_err(Error::Usage)?;
    let (mut claims, mut statistics) = (Vec::new(), None);
    for (Output { flag, kind, .. }, path) in wanted(settings) {
        // Folders are claimed once they exist. Segments are claimed by the base of their names.
        if let Kind::Recording(..) | Kind::Preview | Kind::Statistics = kind {
            claims.extend(Claim::on(&path).context(*flag)?);
        }
        match (kind, settings.output.segmenting()) {
            (Kind::Recording(..), Some(limits)) => {
                drop(Segments::new(&path, limits).context(*flag)?)
            }
            (Kind::Statistics, _) => statistics = Some(NewFile::create(&path).context(*flag)?),
            _ => {}
        }
    }
    Ok(Reserved { statistics, _claims: claims })
}

/// Refuses outputs that would replace each other's files.
fn refuse_shared_files(settings: &Settings) -> Result<()> {
    let outputs: Vec<_> = wanted(settings).collect();
    // Segments have names of their own, but two recordings must not share those either.
    let recordings =
        outputs.iter().filter(|(output, _)| matches!(output.kind, Kind::Recording(..)));
    files::refuse_same(recordings.map(|(output, path)| (output.flag, &**path)))?;
    let is_segmented = settings.output.segmenting().is_some();
    let single = |(output, path): &(&Output, PathBuf)| match output.kind {
        Kind::Recording(..) if is_segmented => None,
        Kind::Folder(kind, ..) => Some((output.flag, path.join(kind.description))),
        _ => Some((output.flag, path.clone())),
    };
    let all: Vec<(&str, PathBuf)> = outputs.iter().filter_map(single).collect();
    let named = || all.iter().map(|(flag, path)| (*flag, path.as_path()));
    files::refuse_same(named())?;
    // Any property of a stream's fragment may name a file.
    let values = settings.output.stream().map(values_of_fragment).unwrap_or_default();
    for value in &values {
        files::refuse_same(named().chain([("--stream", Path::new(value))]))?;
    }
    for Series { flag, folder, is_written } in series(settings) {
        for (other, path) in named().filter(|(other, _)| *other != flag) {
            if let Ok(files::Target::File(file)) = files::target(path)
                && folder.canonicalize().is_ok_and(|folder| file.parent() == Some(&folder))
                && file.file_name().is_some_and(&is_written)
            {
                bail!(
                    "{other} {} is one of the files that {flag} writes into {}; name another file",
                    path.display(),
                    folder.display()
                );
            }
        }
    }
    let mut folders = HashMap::new();
    for (Output { flag, kind, .. }, folder) in outputs {
        let folder = folder.canonicalize().unwrap_or(folder);
        if let Kind::Folder(..) = kind
            && let Some(other) = folders.insert(folder.clone(), flag)
        {
            let folder = folder.display();
            bail!("{other} and {flag} are the same folder, {folder}; give each its own");
        }
    }
    Ok(())
}

/// An output of many files.
struct Series {
    flag: &'static str,
    /// Folder of the files.
    folder: PathBuf,
    /// Reports whether a file of this name may be one of them.
    is_written: Box<dyn Fn(&OsStr) -> bool>,
}

/// Returns the outputs of many files.
fn series(settings: &Settings) -> impl Iterator<Item = Series> {
    let is_segmented = settings.output.segmenting().is_some();
    wanted(settings).filter_map(move |(Output { flag, kind, .. }, path)| match kind {
        Kind::Folder(kind, ..) => {
            let is_written = Box::new(|name: &OsStr| kind.is_written(name));
            Some(Series { flag, folder: path, is_written })
        }
        Kind::Recording(..) if is_segmented => {
            let folder = files::folder_of(&path).to_owned();
            let is_written = Box::new(move |name: &OsStr| segments::is_segment(&path, name));
            Some(Series { flag, folder, is_written })
        }
        _ => None,
    })
}

/// Returns the properties of the stream of maps.
pub fn stream_info(
    loaded: &Loaded,
    info: &SourceInfo,
    rig: &Rig,
    clock: Option<CaptureClock>,
) -> StreamInfo {
    StreamInfo {
        size: rig.pairs.size,
        rate: info.rate,
        range: loaded.params.range,
        geometry: rig.pairs.geometry,
        has_colour: info.has_colour,
        clock,
        stages: StagesInTime { temporal: loaded.params.temporal, steady: loaded.params.steady },
    }
}

/// Opens the outputs that the settings ask for. `clock` is that of the source's capture times, if
/// they have one.
pub fn open(
    loaded: &Loaded,
    info: &SourceInfo,
    rig: &Rig,
    clock: Option<CaptureClock>,
    colouring: &LiveColouring,
) -> Result<Vec<Box<dyn Sink>>> {
    let (settings, range) = (&loaded.settings, loaded.params.range);
    let output = &settings.output;
    let stream = stream_info(loaded, info, rig, clock);
    let (quantity, view) = (output.quantity(), output.preview_view);
    let mcap =
        McapOptions { topics: output.mcap.clone(), calibration: calibration_files(settings)? };
    let setup = Setup {
        stream,
        quantity,
        unit: output.depth_unit(),
        aligner: rig.aligner.clone(),
        mcap,
        format: output.pictures_format,
        clouds: output.clouds(),
        clouds_format: output.clouds_format,
        view,
        preview_quality: output.preview_quality,
        preview_legend: output.preview_legend,
        colouring: colouring.clone(),
    };
    let streams_numbers = output.stream().is_some() && output.stream_view == StreamPicture::Numbers;
    let records_numbers = !output.record.is_empty() && !mcap::is_name(output.record.as_ref());
    let are_numbers = output.pictures_format == StillFormat::Png;
    let writes_numbers = !output.pictures.is_empty() && are_numbers;
    let has_numbers = records_numbers || writes_numbers || streams_numbers;
    if has_numbers && quantity == Quantity::Disparity {
        Encoding::for_range(range).report("recordings and pictures");
    }
    let mut sinks: Vec<Box<dyn Sink>> = Vec::new();
    // After a failure a recorded source can be matched again. On a live page or in a graph somebody may
    // switch the files off and on.
    let restarts = info.live || is_switched(settings);
    let mut add = |sink: Box<dyn Sink>, factory, is_file| {
        let restarting = |sink| Box::new(Restarting::new(sink, factory, is_file));
        sinks.push(if restarts { restarting(sink) } else { sink });
    };
    for (output, path) in wanted(settings) {
        let setup = setup.clone();
        let (first, factory): (Made, Factory) = match output.kind {
            Kind::Recording(create, segment) => {
                let limits = settings.output.segmenting();
                recording(path, limits, setup, create, segment)
            }
            Kind::Preview => preview(path, setup),
            Kind::Folder(_, create, resume) => {
                let first = create(&path, &setup);
                // A missing folder is not created again: if a disk was removed, that would fill the
                // disk that holds the mount point.
                let again = move || {
                    files::check_folder_of(&path.join("file"))?;
                    resume(&path, &setup)
                };
                (first, Box::new(again))
            }
            Kind::Statistics | Kind::Shared => continue,
        };
        add(first.context(output.flag)?, factory, true);
    }
    if let Some(fragment) = output.stream() {
        let options = StreamOptions {
            fragment: fragment.to_owned(),
            picture: output.stream_view,
            quantity,
            colouring: colouring.clone(),
        };
        let mut factory: Factory =
            Box::new(move || StreamSink::start(&stream, &options).map(boxed));
        match factory() {
            Ok(first) => add(first, factory, false),
            // A robot that starts before its receiver must see all the same.
            Err(error) if info.live => {
                let name = check_fragment(fragment)?;
                sinks.push(Box::new(Restarting::awaited(name, factory, &error)));
            }
            Err(error) => return Err(error.context("--stream")),
        }
    }
    Ok(sinks)
}

/// Returns names and contents of the calibration files for an MCAP file. A pipe was read already and
/// has no content any more.
fn calibration_files(settings: &Settings) -> Result<Vec<(String, Vec<u8>)>> {
    let list = settings.calibration.file.as_str();
    if list.is_empty() || !mcap::is_name(settings.output.record.as_ref()) {
        return Ok(Vec::new());
    }
    let files = file_list(list)?.into_iter().filter(|path| path.is_file());
    let read = |path: PathBuf| {
        let content = reading::read(&path, CALIBRATION_MAX)
            .with_context(|| format!("cannot read the calibration {}", path.display()))?;
        Ok((path.file_name().unwrap_or_default().to_string_lossy().into_owned(), content))
    };
    files.map(read).collect()
}

/// Checks before anything is opened that the outputs go together, that none of them harms the run's
/// inputs, and that the fragment of a stream can be built.
pub fn check(spec: &SourceSpec, loaded: &Loaded) -> Result<(), Error> {
    let settings = &loaded.settings;
    settings.output.complete().map_err(Error::usage)?;
    if settings.output.on_demand && !(writes_frames(settings) && is_switched(settings)) {
        return Err(Error::usage(
            "--on-demand is about files that the live page or a service of ROS 2 switches on: give an output, \
             such as --record OUT.mkv, and --serve PORT or --ros2 NAMESPACE",
        ));
    }
    for (output, path) in wanted(settings) {
        let named = match output.kind {
            Kind::Recording(..) if output.flag == "--record" && mcap::is_name(&path) => Ok(()),
            Kind::Recording(..) => check_recording_name(&path),
            Kind::Preview => check_preview_name(&path),
            _ => Ok(()),
        };
        named.context(output.flag).map_err(Error::Usage)?;
    }
    let calibration = &settings.calibration;
    if settings.output.aligned.is_empty() && !calibration.align.is_empty() {
        return Err(Error::usage(
            "--align describes a third camera for --aligned, which is missing: give --aligned OUT.mkv as well",
        ));
    }
    let whitens = |temporal: Temporal| temporal.mode == TemporalMode::Whiten;
    if !settings.output.whitened.is_empty() && !loaded.params.temporal.is_some_and(whitens) {
        return Err(Error::usage(
            "--whitened records what is left of the pictures without their background, which nothing finds: give \
             --temporal whiten as well",
        ));
    }
    spare_inputs(spec, loaded).map_err(Error::Usage)?;
    let Some(fragment) = settings.output.stream() else { return Ok(()) };
    check_fragment(fragment).map(drop).map_err(|error| match error {
        FragmentError::Wrong(_) => Error::usage(format!("--stream: {error}")),
        FragmentError::Missing(_) => anyhow::Error::new(error).context("--stream").into(),
    })
}

/// Refuses outputs that are, hold, lead to or would delete an input of the run.
fn spare_inputs(spec: &SourceSpec, loaded: &Loaded) -> Result<()> {
    let inputs = inputs(loaded, spec.local_files());
    let settings = &loaded.settings;
    let files = wanted(settings).filter(|(output, _)| !matches!(output.kind, Kind::Folder(..)));
    let streamed = settings.output.stream().map(files_of_fragment).unwrap_or_default();
    for path in files.map(|(_, path)| path).chain(streamed) {
        inputs.refuse(&path)?;
    }
    for Series { folder, is_written, .. } in series(settings) {
        inputs.refuse_folder(&folder, is_written)?;
    }
    Ok(())
}

/// Opens a recording. Also returns the factory that continues it after a failure.
fn recording(
    path: PathBuf,
    limits: Option<SegmentLimits>,
    setup: Setup,
    create: fn(&Path, &Setup) -> Made,
    segment: fn(Segments, &Setup) -> Made,
) -> (Made, Factory) {
    let segmented =
        move |path: &Path, limits, setup: &Setup| segment(Segments::new(path, limits)?, setup);
    let first = match limits {
        Some(limits) => segmented(&path, limits, &setup),
        None => create(&path, &setup),
    };
    let is_file = matches!(files::target(&path), Ok(files::Target::File(_)));
    let factory: Factory = match limits {
        // A pipe may have a reader again.
        None if !is_file => Box::new(move || create(&path, &setup)),
        // A single file that was cut short continues in segments of any length.
        _ => Box::new(move || segmented(&path, limits.unwrap_or_default(), &setup)),
    };
    (first, factory)
}

/// Opens a preview. After a failure it continues in a file named like a segment.
fn preview(path: PathBuf, setup: Setup) -> (Made, Factory) {
    let create = move |path: &Path| {
        let Setup { stream, view, colouring, preview_quality, preview_legend, .. } = &setup;
        let preview = Preview::create(path, stream, *view, colouring.clone(), *preview_quality);
        preview.map(|preview| boxed(preview.with_legend(*preview_legend)))
    };
    let first = create(&path);
    let mut last: Option<PathBuf> = None;
    let again = move || {
        // The attempt before may have left an empty file.
        if let Some(last) = last.take()
            && std::fs::metadata(&last).is_ok_and(|about| about.len() == 0)
        {
            let _ = std::fs::remove_file(last);
        }
        let mut names = Segments::new(&path, SegmentLimits::default())?;
        let (_, next) = names.open(SystemTime::now())?;
        last = Some(next.clone());
        create(&next)
    };
    (first, Box::new(again))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statistics_are_no_frames() {
        let mut settings = Settings::default();
        settings.output.stats = "s.json".into();
        assert!(!writes_frames(&settings));
        settings.output.preview = "a.mp4".into();
        assert!(writes_frames(&settings));
    }

    #[test]
    fn outputs_do_not_share_a_file() {
        let mut settings = Settings::default();
        (settings.output.record, settings.output.stats) = ("a".into(), "a".into());
        let error = reserve(&settings).err().unwrap().to_string();
        assert!(error.contains("--record and --stats are the same file"), "{error}");
    }
}
