//! The outputs of a run, made from the settings. Those of a live run last: one that fails is made anew
//! beside what it has written.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use anyhow::{Context, Result, bail};

use crate::clock::CaptureClock;
use crate::commands::prepare::rig::Rig;
use crate::commands::{Error, inputs};
use crate::matching::{Temporal, TemporalMode};
use crate::settings::{self, Loaded, Settings, Stats};
use crate::sink::claim::Claim;
use crate::sink::clouds::{CLOUDS, Clouds};
use crate::sink::colouring::LiveColouring;
use crate::sink::encoding::Encoding;
use crate::sink::files;
use crate::sink::new_file::NewFile;
use crate::sink::numbers::Quantity;
use crate::sink::pictures::{PICTURES, Pictures};
use crate::sink::restarting::{Recipe, Restarting};
use crate::sink::segments::{self, SegmentLimits, Segments};
use crate::sink::video::{
    FragmentError, Preview, Recorder, Stream, StreamOptions, StreamPicture, check_fragment,
    check_preview_name, check_recording_name,
};
use crate::sink::{Sink, StagesInTime, StreamInfo};
use crate::source::SourceInfo;
use crate::source::spec::{SourceSpec, files_of_fragment, values_of_fragment};

/// Files that are settled before the source is opened.
pub struct Reserved {
    /// File of the statistics, if they go into one.
    pub statistics: Option<NewFile>,
    /// No other run writes the same files meanwhile.
    _claims: Vec<Claim>,
}

/// Finds out before anything is opened whether the files can be written: none of them twice, none that
/// another run is writing.
pub fn reserve(settings: &Settings) -> Result<Reserved, Error> {
    let output = &settings.output;
    refuse_shared_files(settings).map_err(Error::Usage)?;
    let folders = [output.pictures(), output.clouds()]
        .map(|folder| folder.map(|folder| folder.canonicalize().unwrap_or(folder)));
    if let [Some(pictures), Some(clouds)] = folders
        && pictures == clouds
    {
        return Err(Error::usage(format!(
            "--pictures and --clouds are the same folder, {}; give each its own",
            clouds.display()
        )));
    }
    let mut claims = Vec::new();
    // Folders are claimed once they are made. Segments are claimed by the name that theirs derive from.
    let videos = recordings(output).into_iter().chain([("--preview", output.preview())]);
    let statistics = statistics(output);
    for (flag, path) in videos.chain([("--stats", statistics.clone())]) {
        if let Some(path) = path {
            claims.extend(Claim::on(&path).context(flag)?);
        }
    }
    for (flag, base) in recordings(output) {
        if let (Some(base), Some(limits)) = (base, output.segmenting()) {
            Segments::new(&base, limits).context(flag)?;
        }
    }
    let statistics = statistics.as_deref().map(NewFile::create).transpose().context("--stats")?;
    Ok(Reserved { statistics, _claims: claims })
}

/// Refuses outputs that would replace each other's files.
fn refuse_shared_files(settings: &Settings) -> Result<()> {
    let output = &settings.output;
    // Segments have names of their own, but two recordings must not share those either.
    let recordings = recordings(output);
    let paths = recordings.iter().filter_map(|(flag, path)| Some((*flag, path.as_deref()?)));
    files::refuse_same(paths)?;
    let single = recordings.into_iter().filter(|_| output.segmenting().is_none());
    let others = [
        ("--preview", output.preview()),
        ("--stats", statistics(output)),
        ("window.settings", settings.window.settings()),
        ("--pictures", output.pictures().map(|dir| dir.join(PICTURES.description))),
        ("--clouds", output.clouds().map(|dir| dir.join(CLOUDS.description))),
    ];
    let all: Vec<(&str, PathBuf)> =
        single.chain(others).filter_map(|(flag, path)| Some((flag, path?))).collect();
    let named = || all.iter().map(|(flag, path)| (*flag, path.as_path()));
    files::refuse_same(named())?;
    // Any property of a stream's fragment may name a file.
    let values = output.stream().map(values_of_fragment).unwrap_or_default();
    for value in &values {
        files::refuse_same(named().chain([("--stream", Path::new(value))]))?;
    }
    for Series { flag, folder, is_written } in series(output) {
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

/// An output of many files.
struct Series {
    flag: &'static str,
    /// Folder of the files.
    folder: PathBuf,
    /// Reports whether a file of this name may be one of them.
    is_written: Box<dyn Fn(&OsStr) -> bool>,
}

/// The outputs of many files.
fn series(output: &settings::Output) -> Vec<Series> {
    let folders =
        [("--pictures", output.pictures(), &PICTURES), ("--clouds", output.clouds(), &CLOUDS)];
    let numbered = folders.into_iter().filter_map(|(flag, folder, kind)| {
        Some(Series { flag, folder: folder?, is_written: Box::new(|name| kind.is_written(name)) })
    });
    let segmented = recordings(output).into_iter().filter(|_| output.segmenting().is_some());
    let segmented = segmented.filter_map(|(flag, base)| {
        let base = base?;
        let folder = files::folder_of(&base).to_owned();
        let is_written = Box::new(move |name: &OsStr| segments::is_segment(&base, name));
        Some(Series { flag, folder, is_written })
    });
    numbered.chain(segmented).collect()
}

/// File of the statistics.
fn statistics(output: &settings::Output) -> Option<PathBuf> {
    match output.stats() {
        Some(Stats::File(path)) => Some(path),
        Some(Stats::Stdout) | None => None,
    }
}

/// Opens the outputs that the settings ask for. `clock` is that of the source's capture times, where
/// they have one.
pub fn open(
    loaded: &Loaded,
    info: &SourceInfo,
    rig: &Rig,
    clock: Option<CaptureClock>,
    colouring: &LiveColouring,
) -> Result<Vec<Box<dyn Sink>>> {
    let (settings, range) = (&loaded.settings, loaded.params.range);
    let stream = StreamInfo {
        size: rig.pairs.size,
        rate: info.rate,
        range,
        geometry: rig.pairs.geometry,
        has_colour: info.has_colour,
        clock,
        stages: StagesInTime { temporal: loaded.params.temporal, steady: loaded.params.steady },
    };
    let quantity = settings.output.quantity();
    let numbers = settings.output.record().is_some()
        || settings.output.pictures().is_some()
        || (settings.output.stream().is_some()
            && settings.output.stream_view == StreamPicture::Numbers);
    if numbers && quantity == Quantity::Disparity {
        Encoding::for_range(range).report("recordings and pictures");
    }
    let mut sinks: Vec<Box<dyn Sink>> = Vec::new();
    let mut add = |sink: Box<dyn Sink>, recipe| {
        // A recorded source is better matched anew, with room for all of it.
        sinks.push(if info.live { Box::new(Restarting::new(sink, recipe)) } else { sink });
    };
    let limits = settings.output.segmenting();
    if let Some(path) = settings.output.record() {
        let create: Create = Box::new(move |place| {
            Ok(match place {
                Place::File(path) => Box::new(Recorder::create(path, &stream, quantity)?),
                Place::Segments(names) => Box::new(Recorder::segmented(names, &stream, quantity)?),
            })
        });
        let (first, recipe) = recording(path, limits, create);
        add(first.context("--record")?, recipe);
    }
    if let Some(path) = settings.output.confidence() {
        let create: Create = Box::new(move |place| {
            Ok(match place {
                Place::File(path) => Box::new(Recorder::of_confidence(path, &stream)?),
                Place::Segments(names) => {
                    Box::new(Recorder::of_confidence_segmented(names, &stream)?)
                }
            })
        });
        let (first, recipe) = recording(path, limits, create);
        add(first.context("--confidence")?, recipe);
    }
    if let Some(path) = settings.output.whitened() {
        let create: Create = Box::new(move |place| {
            Ok(match place {
                Place::File(path) => Box::new(Recorder::of_whitened(path, &stream)?),
                Place::Segments(names) => {
                    Box::new(Recorder::of_whitened_segmented(names, &stream)?)
                }
            })
        });
        let (first, recipe) = recording(path, limits, create);
        add(first.context("--whitened")?, recipe);
    }
    if let Some(path) = settings.output.preview() {
        let colouring = colouring.clone();
        let view = settings.output.preview_view;
        let create = move |path: &Path| Preview::create(path, &stream, view, colouring.clone());
        let first = create(&path).context("--preview")?;
        add(Box::new(first), preview_again(path, create));
    }
    if let Some(dir) = settings.output.pictures() {
        let first = Pictures::create(&dir, &stream, quantity).context("--pictures")?;
        let again = move |dir: &Path| Pictures::resume(dir, &stream, quantity);
        add(Box::new(first), Box::new(move || Ok(Box::new(again_in(&dir, again)?))));
    }
    if let Some(dir) = settings.output.clouds() {
        let first = Clouds::create(&dir, &stream).context("--clouds")?;
        let again = move |dir: &Path| Clouds::resume(dir, &stream);
        add(Box::new(first), Box::new(move || Ok(Box::new(again_in(&dir, again)?))));
    }
    if let Some(fragment) = settings.output.stream() {
        let options = StreamOptions {
            fragment: fragment.to_owned(),
            picture: settings.output.stream_view,
            quantity,
            colouring: colouring.clone(),
        };
        let first = Stream::start(&stream, &options);
        let recipe: Recipe = Box::new(move || Ok(Box::new(Stream::start(&stream, &options)?)));
        match first {
            Ok(first) => add(Box::new(first), recipe),
            // A robot that starts before its receiver must see all the same.
            Err(error) if info.live => {
                let name = check_fragment(fragment)?;
                sinks.push(Box::new(Restarting::awaited(name, recipe, &error)));
            }
            Err(error) => return Err(error.context("--stream")),
        }
    }
    Ok(sinks)
}

/// Checks what is asked of the outputs before anything is opened: it goes together, none of them harms
/// what the run reads, the fragment of a stream can be built.
pub fn check(spec: &SourceSpec, loaded: &Loaded) -> Result<(), Error> {
    let output = &loaded.settings.output;
    output.complete().map_err(Error::usage)?;
    for (flag, path) in recordings(output) {
        let named = path.as_deref().map_or(Ok(()), check_recording_name);
        named.context(flag).map_err(Error::Usage)?;
    }
    let named = output.preview().as_deref().map_or(Ok(()), check_preview_name);
    named.context("--preview").map_err(Error::Usage)?;
    let whitens = |temporal: Temporal| temporal.mode == TemporalMode::Whiten;
    if output.whitened().is_some() && !loaded.params.temporal.is_some_and(whitens) {
        return Err(Error::usage(
            "--whitened records what is left of the pictures without their background, which nothing finds: give \
             --temporal whiten as well",
        ));
    }
    spare_inputs(spec, loaded).map_err(Error::Usage)?;
    let Some(fragment) = output.stream() else { return Ok(()) };
    check_fragment(fragment).map(drop).map_err(|error| match error {
        FragmentError::Wrong(_) => Error::usage(format!("--stream: {error}")),
        FragmentError::Missing(_) => anyhow::Error::new(error).context("--stream").into(),
    })
}

/// No output may be, hold or lead to what the run reads, nor delete it.
fn spare_inputs(spec: &SourceSpec, loaded: &Loaded) -> Result<()> {
    let inputs = inputs(loaded, spec.local_files());
    let output = &loaded.settings.output;
    let stats = statistics(output);
    let videos = recordings(output).map(|(_, path)| path);
    let files =
        videos.into_iter().chain([output.preview(), stats, loaded.settings.window.settings()]);
    let streamed = output.stream().map(files_of_fragment).unwrap_or_default();
    for path in files.flatten().chain(streamed) {
        inputs.refuse(&path)?;
    }
    for Series { folder, is_written, .. } in series(output) {
        inputs.refuse_folder(&folder, is_written)?;
    }
    Ok(())
}

/// The lossless recordings with their flags.
fn recordings(output: &settings::Output) -> [(&'static str, Option<PathBuf>); 3] {
    [
        ("--record", output.record()),
        ("--confidence", output.confidence()),
        ("--whitened", output.whitened()),
    ]
}

/// Where a recording goes: one file, or segments.
enum Place<'a> {
    File(&'a Path),
    Segments(Segments),
}

/// Makes a recording, and makes it anew.
type Create = Box<dyn FnMut(Place<'_>) -> Result<Box<dyn Sink>> + Send>;

/// A recording, and how it goes on where it has failed.
fn recording(
    path: PathBuf,
    limits: Option<SegmentLimits>,
    mut create: Create,
) -> (Result<Box<dyn Sink>>, Recipe) {
    let segments = |path: &Path, limits| Ok(Place::Segments(Segments::new(path, limits)?));
    let first = match limits {
        Some(limits) => segments(&path, limits).and_then(&mut create),
        None => create(Place::File(&path)),
    };
    let is_file = matches!(files::target(&path), Ok(files::Target::File(_)));
    let recipe: Recipe = match limits {
        // A pipe may have a reader again.
        None if !is_file => Box::new(move || create(Place::File(&path))),
        // A single file that was cut short goes on in segments of any length.
        _ => Box::new(move || create(segments(&path, limits.unwrap_or_default())?)),
    };
    (first, recipe)
}

/// Goes on with a preview in a file named as segments are.
fn preview_again(
    path: PathBuf,
    create: impl Fn(&Path) -> Result<Preview> + Send + 'static,
) -> Recipe {
    let mut last: Option<PathBuf> = None;
    Box::new(move || {
        // The attempt before may have left a file that nothing could be written to.
        if let Some(last) = last.take()
            && std::fs::metadata(&last).is_ok_and(|about| about.len() == 0)
        {
            let _ = std::fs::remove_file(last);
        }
        let mut names = Segments::new(&path, SegmentLimits::default())?;
        let (_, next) = names.open(SystemTime::now())?;
        last = Some(next.clone());
        Ok(Box::new(create(&next)?))
    })
}

/// Goes on in a folder of numbered files. One that is gone is not made again: where a disk was taken out,
/// that would fill the one below.
fn again_in<S: Sink>(dir: &Path, resume: impl Fn(&Path) -> Result<S>) -> Result<S> {
    files::check_folder_of(&dir.join("file"))?;
    resume(dir)
}
