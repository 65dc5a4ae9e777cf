//! The outputs of a run, made from the settings. Those of a live run last: one that fails is made anew
//! beside what it has written.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use anyhow::{Context, Result};

use crate::clock::CaptureClock;
use crate::commands::rig::Rig;
use crate::commands::{Error, inputs};
use crate::matching::{Temporal, TemporalMode};
use crate::settings::{self, Loaded, Stats};
use crate::sink::claim::Claim;
use crate::sink::clouds::{CLOUDS, Clouds};
use crate::sink::colouring::LiveColouring;
use crate::sink::files;
use crate::sink::new_file::NewFile;
use crate::sink::numbers::Quantity;
use crate::sink::pictures::{PICTURES, Pictures};
use crate::sink::restarting::{Recipe, Restarting};
use crate::sink::segments::{self, SegmentLimits, Segments};
use crate::sink::video::{FragmentError, Preview, Recorder, Stream, StreamOptions, check_fragment};
use crate::sink::{Sink, StagesInTime, StreamInfo};
use crate::source::SourceInfo;
use crate::source::spec::{SourceSpec, files_of_fragment};

/// Files that are settled before the source is opened.
pub struct Reserved {
    /// File of the statistics, if they go into one.
    pub statistics: Option<NewFile>,
    /// No other run writes the same files meanwhile.
    _claims: Vec<Claim>,
}

/// Finds out before anything is opened whether the files can be written: none of them twice, none that
/// another run is writing.
///
/// # Errors
/// Where they cannot; wrong usage where they are the same file.
pub fn reserve(output: &settings::Output) -> Result<Reserved, Error> {
    let statistics = match output.stats() {
        Some(Stats::File(path)) => Some(path),
        _ => None,
    };
    let preview = output.preview();
    // Segments have names of their own.
    let record = output.record().filter(|_| output.segmenting().is_none());
    let pictures = output.pictures().map(|dir| dir.join(PICTURES.description));
    let clouds = output.clouds().map(|dir| dir.join(CLOUDS.description));
    let confidence = output.confidence().filter(|_| output.segmenting().is_none());
    let whitened = output.whitened().filter(|_| output.segmenting().is_none());
    let files: [(&'static str, &Option<PathBuf>); 7] = [
        ("--record", &record),
        ("--confidence", &confidence),
        ("--whitened", &whitened),
        ("--preview", &preview),
        ("--stats", &statistics),
        ("--pictures", &pictures),
        ("--clouds", &clouds),
    ];
    // Two recordings must not share those of segments either.
    let recordings = recordings(output);
    let recordings = recordings.iter().filter_map(|(flag, path)| Some((*flag, path.as_deref()?)));
    files::refuse_same(recordings).map_err(Error::Usage)?;
    let named = files.iter().filter_map(|(flag, path)| Some((*flag, path.as_deref()?)));
    files::refuse_same(named.clone()).map_err(Error::Usage)?;
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
    // Folders are claimed once they are made.
    for (flag, path) in named.filter(|(flag, _)| !["--pictures", "--clouds"].contains(flag)) {
        claims.extend(Claim::on(path).context(flag)?);
    }
    let statistics = statistics.as_deref().map(NewFile::create).transpose().context("--stats")?;
    Ok(Reserved { statistics, _claims: claims })
}

/// Opens the outputs that the settings ask for. `clock` is that of the source's capture times, where
/// they have one.
///
/// # Errors
/// Where one of them cannot be opened; they name the flag.
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
    let quantity = if settings.output.depth { Quantity::Depth } else { Quantity::Disparity };
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
///
/// # Errors
/// Where it is wrong usage; where this machine lacks an element for the stream.
pub fn check(spec: &SourceSpec, loaded: &Loaded) -> Result<(), Error> {
    let output = &loaded.settings.output;
    output.complete().map_err(Error::usage)?;
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
    let stats = match output.stats() {
        Some(Stats::File(path)) => Some(path),
        Some(Stats::Stdout) | None => None,
    };
    let videos = recordings(output).map(|(_, path)| path);
    let files =
        videos.into_iter().chain([output.preview(), stats, loaded.settings.window.settings()]);
    let streamed = output.stream().map(files_of_fragment).unwrap_or_default();
    for path in files.flatten().chain(streamed) {
        inputs.refuse(&path)?;
    }
    if let Some(folder) = output.pictures() {
        inputs.refuse_folder(&folder, |name| PICTURES.is_written(name))?;
    }
    if let Some(folder) = output.clouds() {
        inputs.refuse_folder(&folder, |name| CLOUDS.is_written(name))?;
    }
    let segmented = recordings(output).into_iter().filter_map(|(_, path)| path);
    for base in segmented.filter(|_| output.segmenting().is_some()) {
        let folder = base.parent().filter(|folder| !folder.as_os_str().is_empty());
        let is_segment = |name: &OsStr| segments::is_segment(&base, name);
        inputs.refuse_folder(folder.unwrap_or(Path::new(".")), is_segment)?;
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
