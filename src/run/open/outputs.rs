//! The outputs of a run, opened as the settings ask. If an output of a live run fails, it is created
//! again without overwriting its earlier files.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result, bail};

use crate::outputs::{self, Kind, Output, Setup, wanted};
use crate::run::live::opened::Opened;
use crate::run::open::links;
use crate::run::{Error, inputs};
use crate::settings::{self, Ground, Loaded, Settings, WindowMode};
use crate::viewer::Recorder;
use stereod_calibration::format::file_list;
use stereod_core::files::claim::Claim;
use stereod_core::files::new_file::NewFile;
use stereod_core::matching::{Temporal, TemporalMode};
use stereod_core::picture::encoding::Encoding;
use stereod_core::picture::numbers::Quantity;
use stereod_core::settings::Origin;
use stereod_core::{files, reading};
use stereod_io::control::Recordings;
use stereod_io::sink::numbered::{self, Names};
use stereod_io::sink::restarting::{Factory, Restarting};
use stereod_io::sink::segments::{self, Place, SegmentLimits, Segments};
use stereod_io::sink::still::StillFormat;
use stereod_io::sink::video::{
    FragmentError, StreamOptions, StreamPicture, StreamSink, check_fragment, check_preview_name,
    check_recording_name,
};
use stereod_io::sink::{Sink, StagesInTime, StreamInfo, mcap};
use stereod_io::source::spec::{SourceSpec, StreamSpec, files_of_fragment, values_of_fragment};

/// Largest size of an attached calibration file in bytes.
const CALIBRATION_MAX: u64 = 16 << 20;

pub fn files_of_frames(settings: &Settings) -> impl Iterator<Item = PathBuf> {
    of_frames(settings).map(|(_, path)| path)
}

fn of_frames(settings: &Settings) -> impl Iterator<Item = (&'static Output, PathBuf)> {
    wanted(settings).filter(|(output, _)| match output.kind {
        Kind::Recording(_) | Kind::Preview(_) | Kind::WholeRun(..) | Kind::Folder(..) => true,
        Kind::Statistics | Kind::Map | Kind::Shared => false,
    })
}

/// Returns what viewers start and stop, if the run writes files of frames.
pub fn recorder(settings: &Settings, recordings: Recordings) -> Option<Recorder> {
    let outputs: Vec<_> =
        of_frames(settings).map(|(output, path)| Recorded::of(output, path)).collect();
    let are_there = !outputs.is_empty();
    let files = move |name: Option<&str>| outputs.iter().map(|it| it.in_recording(name)).collect();
    are_there.then(|| Recorder { recordings, files: Arc::new(files) })
}

/// An output whose file or folder has the name of a recording.
struct Recorded {
    output: &'static Output,
    path: PathBuf,
    /// Set for a pipe or device, which has no other name.
    is_stream: bool,
}

impl Recorded {
    fn of(output: &'static Output, path: PathBuf) -> Self {
        let is_stream = matches!(files::target(&path), Ok(files::Target::Stream));
        Self { output, path, is_stream }
    }

    fn in_recording(&self, name: Option<&str>) -> PathBuf {
        let name = name.filter(|_| !self.is_stream);
        name.map_or_else(|| self.path.clone(), |name| self.output.named(&self.path, name))
    }
}

/// Reports whether somebody else may switch files off and on.
fn is_switched(settings: &Settings) -> bool {
    settings.serve.listen().is_some() || settings.ros2.namespace().is_some()
}

/// Fails if nobody could switch the files on that are written on demand.
pub fn check_on_demand(settings: &Settings, has_window: bool) -> Result<(), Error> {
    let can_begin = writes_frames(settings) && (has_window || is_switched(settings));
    if !settings.output.on_demand || can_begin {
        return Ok(());
    }
    Err(Error::usage(
        "--on-demand is about files that somebody switches on in the window, on the live page or by a service of \
         ROS 2: give an output, such as --record OUT.mkv, and, where there is no window, --serve PORT or \
         --ros2 NAMESPACE",
    ))
}

pub fn writes_frames(settings: &Settings) -> bool {
    files_of_frames(settings).next().is_some()
}

/// Files that are settled before the source is opened.
pub struct Reserved {
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
        if !matches!(kind, Kind::Folder(..) | Kind::Shared) {
            claims.extend(Claim::on(&path).context(*flag)?);
        }
        match (kind, settings.output.segmenting()) {
            (Kind::Recording(_), Some(limits)) => {
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
    let mut folders = HashMap::new();
    for (output, folder) in &outputs {
        let Kind::Folder(kind, ..) = output.kind else { continue };
        let folder = Names::of(folder, kind).dir;
        let folder = folder.canonicalize().unwrap_or(folder);
        if let Some(other) = folders.insert(folder.clone(), output.flag) {
            let (folder, flag) = (folder.display(), output.flag);
            bail!("{other} and {flag} are the same folder, {folder}; give each its own");
        }
    }
    // Segments have names of their own, but two recordings must not share those either.
    files::refuse_same(outputs.iter().map(|(output, path)| (output.flag, &**path)))?;
    let is_segmented = settings.output.segmenting().is_some();
    let single = |(output, path): &(&Output, PathBuf)| match output.kind {
        Kind::Recording(_) if is_segmented => None,
        Kind::Folder(kind, ..) => Some((output.flag, Names::of(path, kind).description())),
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
    Ok(())
}

/// Refuses outputs of rigs that would replace each other's files, or send to the same place.
pub fn refuse_shared(rigs: &[Loaded], names: &[String]) -> Result<()> {
    let (mut files, mut places) = (Vec::new(), HashMap::new());
    for (Loaded { settings, .. }, name) in rigs.iter().zip(names) {
        let mut taken = Vec::new();
        for (output, path) in wanted(settings).filter(|(output, _)| output.flag != TOKEN_FILE) {
            if let Kind::Folder(kind, ..) = output.kind {
                let folder = Names::of(&path, kind).dir;
                let folder = folder.canonicalize().unwrap_or(folder).display().to_string();
                taken.push((output.flag, folder));
            }
            files.push((format!("{} of {name}", output.flag), path));
        }
        let stream = settings.output.stream();
        taken.extend(stream.map(|fragment| ("--stream", destination(fragment))));
        taken.extend(settings.obstacles.of_one_rig());
        taken.extend(settings.ros2.namespace().map(|namespace| ("--ros2", namespace)));
        for (flag, place) in taken {
            if let Some(other) = places.insert((flag, place.clone()), name) {
                bail!("{flag} {place} is that of {other} and of {name}; {IN_RIGS}");
            }
        }
    }
    let named = files.iter().map(|(flag, path)| (flag.as_str(), path.as_path()));
    files::refuse_same(named).with_context(|| IN_RIGS)
}

/// Returns the element of a fragment that sends, if it names a place, else the whole fragment.
fn destination(fragment: &str) -> String {
    let last = fragment.rsplit('!').next().unwrap_or_default();
    let names_place = ["port=", "location=", "uri="].iter().any(|name| last.contains(name));
    let text = if names_place { last } else { fragment };
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The token is that of the whole program.
const TOKEN_FILE: &str = "serve.token_file";

const IN_RIGS: &str = "give each rig its own: {rig} in a text stands for its name";

struct Series {
    flag: &'static str,
    folder: PathBuf,
    is_written: Box<dyn Fn(&OsStr) -> bool>,
}

fn series(settings: &Settings) -> impl Iterator<Item = Series> {
    let is_segmented = settings.output.segmenting().is_some();
    wanted(settings).filter_map(move |(Output { flag, kind, .. }, path)| match kind {
        Kind::Folder(kind, ..) => {
            let names = Names::of(&path, kind);
            let folder = names.dir.clone();
            let is_written = Box::new(move |name: &OsStr| names.is_written(name));
            Some(Series { flag, folder, is_written })
        }
        Kind::Recording(_) if is_segmented => {
            let folder = files::folder_of(&path).to_owned();
            let is_written = Box::new(move |name: &OsStr| segments::is_segment(&path, name));
            Some(Series { flag, folder, is_written })
        }
        _ => None,
    })
}

pub fn stream_info(run: &Opened, loaded: &Loaded) -> StreamInfo {
    let Opened { info, rig, clock, .. } = run;
    StreamInfo {
        size: rig.pairs.size,
        rate: info.rate,
        range: loaded.params.range,
        geometry: rig.pairs.geometry,
        has_colour: info.has_colour,
        has_obstacles: loaded.settings.finds_obstacles(),
        has_odometry: loaded.params.odometry,
        has_verdicts: loaded.settings.engine.is_checked(),
        tracks_ground: loaded.settings.mount.ground == Ground::Track,
        clock: *clock,
        stages: StagesInTime { temporal: loaded.params.temporal, steady: loaded.params.steady },
        labels: info.labels,
    }
}

/// Opens the outputs that the settings ask for.
pub fn open(run: &Opened, loaded: &Loaded) -> Result<Vec<Box<dyn Sink>>> {
    let Opened { info, rig, colouring, .. } = run;
    let (settings, range) = (&loaded.settings, loaded.params.range);
    let output = &settings.output;
    let stream = stream_info(run, loaded);
    let quantity = output.quantity();
    let setup = Arc::new(Setup {
        stream,
        aligner: rig.aligner.clone(),
        calibration: calibration_files(settings)?,
        colouring: colouring.clone(),
        output: output.clone(),
        source: info.description.clone(),
        line: super::obstacles::line(loaded.rig()),
    });
    if writes_numbers(output) && quantity == Quantity::Disparity {
        Encoding::for_range(range).report("recordings and pictures");
    }
    let mut sinks: Vec<Box<dyn Sink>> = Vec::new();
    // After a failure a recorded source can be matched again. In a window, on a live page or in a graph
    // somebody may switch the files off and on.
    let restarts = info.live || run.remote.is_some() || is_switched(settings);
    let mut add = |counted_as, sink, factory: Factory, is_file| {
        let (factory, is_switched) = (restarts.then_some(factory), restarts && is_file);
        sinks.push(Box::new(Restarting::new(counted_as, sink, factory, is_switched)));
    };
    for (row, path) in wanted(settings) {
        let segmenting = output.segmenting();
        let place_of = move |path| places(&row.kind, path, segmenting);
        let Some((open, first, _)) = place_of(path.clone()) else { continue };
        let first = open(first, &setup).context(row.flag)?;
        let (setup, recorded) = (setup.clone(), Recorded::of(row, path));
        let factory: Factory = Box::new(move |name| {
            let path = recorded.in_recording(name);
            let is_new = name.is_some() && !path.exists();
            let (_, first, again) = place_of(path).context("it has a place")?;
            open(if is_new { first } else { again }, &setup)
        });
        add(row.counted_as(), first, factory, true);
    }
    if let Some(fragment) = output.stream() {
        let options = StreamOptions {
            fragment: fragment.to_owned(),
            picture: output.stream_view,
            quantity,
            colouring: colouring.clone(),
        };
        let mut factory: Factory =
            Box::new(move |_| Ok(Box::new(StreamSink::start(&stream, &options)?)));
        match factory(None) {
            Ok(first) => add("stream", first, factory, false),
            // A robot that starts before its receiver must see all the same.
            Err(error) if info.live => {
                let name = check_fragment(fragment)?;
                sinks.push(Box::new(Restarting::awaited("stream", name, factory, &error)));
            }
            Err(error) => return Err(error.context("--stream")),
        }
    }
    Ok(sinks)
}

/// Reports whether disparity or depth is written or sent as numbers.
fn writes_numbers(output: &settings::Output) -> bool {
    let streams = output.stream().is_some() && output.stream_view == StreamPicture::Numbers;
    let records = !output.record.is_empty() && !mcap::is_name(output.record.as_ref());
    let are_numbers = output.pictures_format == StillFormat::Png;
    streams || records || !output.pictures.is_empty() && are_numbers
}

/// Returns how an output with frames is opened, its place, and the place where it goes on after a failure.
fn places(
    kind: &Kind,
    path: PathBuf,
    segmenting: Option<SegmentLimits>,
) -> Option<(outputs::Open, Place, Place)> {
    let of_any_length = |path| Place::Segments(path, SegmentLimits::default());
    match (kind, segmenting) {
        (Kind::Recording(open), Some(limits)) => {
            let segments = Place::Segments(path, limits);
            Some((*open, segments.clone(), segments))
        }
        // A pipe may have a reader again. A single file that was cut short continues in segments of any
        // length.
        (Kind::Recording(open), None) => {
            let is_file = matches!(files::target(&path), Ok(files::Target::File(_)));
            let first = Place::New(path.clone());
            Some((*open, first.clone(), if is_file { of_any_length(path) } else { first }))
        }
        (Kind::Preview(open) | Kind::WholeRun(_, open), _) => {
            Some((*open, Place::from(&path), of_any_length(path)))
        }
        (Kind::Folder(_, _, open), _) => Some((*open, Place::from(&path), Place::Resumed(path))),
        (Kind::Statistics | Kind::Map | Kind::Shared, _) => None,
    }
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
    let records = wanted(settings).any(|(output, _)| matches!(output.kind, Kind::Recording(_)));
    settings.output.complete(records).map_err(Error::usage)?;
    let output = &settings.output;
    let has_camera = spec.streams().any(|stream| matches!(stream, StreamSpec::Camera(_)));
    check_flags(
        loaded,
        &[
            ("output", "preview_view", !output.preview.is_empty(), "--preview"),
            ("output", "pictures_format", !output.pictures.is_empty(), "--pictures"),
            ("output", "clouds_format", !output.clouds.is_empty(), "--clouds"),
            ("output", "stream_view", !output.stream.is_empty(), "--stream"),
            ("source", "size", has_camera, "cameras such as /dev/video0"),
            ("source", "rate", has_camera, "cameras such as /dev/video0"),
            ("source", "format", has_camera, "cameras such as /dev/video0"),
        ],
    )?;
    check_on_demand(settings, settings.window.mode != WindowMode::Off)?;
    for (output, path) in wanted(settings) {
        let named = match output.kind {
            Kind::Recording(_) if output.flag == "--record" && mcap::is_name(&path) => Ok(()),
            Kind::Recording(_) if output.flag == "--obstacles" => Ok(()),
            Kind::Recording(_) => check_recording_name(&path),
            Kind::Preview(_) => check_preview_name(&path),
            Kind::Map => stereod_map::files::check_name(&path),
            Kind::WholeRun(check, _) => check(&path),
            Kind::Folder(kind, extension, _) => {
                numbered::check_name(&path, kind, extension(&settings.output))
            }
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
    // Read again when they are used; a mistake is told before a camera is opened.
    settings.obstacles.zones().map_err(Error::Usage)?;
    links::check(settings).map_err(Error::Usage)?;
    let whitens = |temporal: Temporal| temporal.mode == TemporalMode::Whiten;
    if !settings.output.whitened.is_empty() && !loaded.params.temporal.is_some_and(whitens) {
        return Err(Error::usage(
            "--whitened records what is left of the pictures without their background, which nothing finds: give \
             --temporal whiten as well",
        ));
    }
    refuse_verdicts(!settings.output.verdicts.is_empty(), settings)?;
    spare_inputs(spec, loaded).map_err(Error::Usage)?;
    let Some(fragment) = settings.output.stream() else { return Ok(()) };
    check_fragment(fragment).map(drop).map_err(|error| match error {
        FragmentError::Wrong(_) => Error::usage(format!("--stream: {error}")),
        FragmentError::Missing(_) => anyhow::Error::new(error).context("--stream").into(),
    })
}

/// Fails if verdicts are wanted and there is no network, or nothing checks it.
pub fn refuse_verdicts(are_wanted: bool, settings: &Settings) -> Result<(), Error> {
    if !are_wanted || settings.engine.is_checked() {
        return Ok(());
    }
    Err(Error::usage(
        "--verdicts is about a network and what matching says of it: give --engine onnx:FILE and --check sgm as well",
    ))
}

/// Fails if one of these settings is a flag about something that is missing. The configuration file may have values for
/// what only some runs have.
pub fn check_flags(loaded: &Loaded, about: &[(&str, &str, bool, &str)]) -> Result<(), Error> {
    for &(section, key, is_there, of) in about {
        if let (Origin::Flag(flag), false) = (loaded.origin(section, key), is_there) {
            return Err(Error::usage(format!(
                "{flag} is about {of}: give {of} as well, or leave it out"
            )));
        }
    }
    Ok(())
}

/// Refuses outputs that are, hold, lead to or would delete an input of the run.
pub fn spare_inputs(spec: &SourceSpec, loaded: &Loaded) -> Result<()> {
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
    fn rigs_do_not_share_folders_or_receivers() {
        let folder = tempfile::tempdir().unwrap();
        let pictures =
            |name: &str| format!("output.pictures={}", folder.path().join(name).display());
        std::fs::create_dir(folder.path().join("out")).unwrap();
        let rig = |setting: &str| {
            let mut layers = crate::settings::Layers::new();
            layers.assignment(setting);
            layers.assignment("serve.token_file=token");
            layers.finish().unwrap()
        };
        let names = ["front", "rear"].map(str::to_owned);
        let refused = |first: &str, second: &str| {
            refuse_shared(&[rig(first), rig(second)], &names)
                .err()
                .map(|error| format!("{error:#}"))
        };
        let of_stream = |fragment: &str| format!("output.stream={fragment}");
        let to = |port| of_stream(&format!("x264enc ! udpsink host=a port={port}"));
        for (first, second) in [
            (pictures("out"), pictures("./out")),
            (to(5000), of_stream("x265enc  !  udpsink host=a  port=5000")),
            ("ros2.namespace=both".into(), "ros2.namespace=/both".into()),
            ("window.settings=a.toml".into(), "window.settings=a.toml".into()),
        ] {
            let error = refused(&first, &second).expect(&first);
            assert!(error.contains("front") && error.contains("rear"), "{error}");
            assert!(error.contains("{rig} in a text stands for its name"), "{error}");
        }
        // Lines name their rig.
        let lines = || "obstacles.lines=-".to_owned();
        for (first, second) in
            [(pictures("out"), pictures("out2")), (to(5000), to(5001)), (lines(), lines())]
        {
            assert_eq!(refused(&first, &second), None);
        }
    }

    #[test]
    fn outputs_do_not_share_a_file() {
        let mut settings = Settings::default();
        (settings.output.record, settings.output.stats) = ("a".into(), "a".into());
        let error = reserve(&settings).err().unwrap().to_string();
        assert!(error.contains("--record and --stats are the same file"), "{error}");
        // A folder that is not there yet.
        (settings.output.record, settings.output.pictures) = ("".into(), "a".into());
        let error = reserve(&settings).err().unwrap().to_string();
        assert!(error.contains("are the same file"), "{error}");
    }
}
