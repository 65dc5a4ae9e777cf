//! The parts of a run, made from the settings: source, outputs, window.

use std::ffi::OsStr;
use std::path::Path;

use crate::alignment::Options;
use crate::commands::inputs;
use crate::commands::ranging::small_matcher;
use crate::commands::rig::Rig;
use crate::control::Control;
use crate::engine::cpu::CpuOptions;
use crate::pool::Pool;
use crate::settings::{Loaded, Stats};
use crate::sink::alignment::{self, AlignmentSink, SharedLimits};
use crate::sink::range::{self, RangeSink};
use crate::sink::window::WindowOptions;
use crate::sink::{Sink, pictures, segments};
use crate::source::demo::DemoSource;
use crate::source::gst;
use crate::source::spec::{SourceSpec, files_of_fragment};
use crate::source::{Source, SourceInfo};

/// No output may be, hold or lead to what the run reads, nor delete it.
///
/// # Errors
/// Where one does; they name both and the cure.
pub fn check_outputs(spec: &SourceSpec, loaded: &Loaded) -> anyhow::Result<()> {
    let inputs = inputs(loaded, spec.local_files());
    let output = &loaded.settings.output;
    let stats = match output.stats() {
        Some(Stats::File(path)) => Some(path),
        Some(Stats::Stdout) | None => None,
    };
    let files = [output.record(), output.preview(), stats, loaded.settings.window.settings()];
    let streamed = output.stream().map(files_of_fragment).unwrap_or_default();
    for path in files.into_iter().flatten().chain(streamed) {
        inputs.refuse(&path)?;
    }
    if let Some(folder) = output.pictures() {
        inputs.refuse_folder(&folder, pictures::is_written)?;
    }
    if let Some(base) = output.record().filter(|_| output.segmenting().is_some()) {
        let folder = base.parent().filter(|folder| !folder.as_os_str().is_empty());
        let is_segment = |name: &OsStr| segments::is_segment(&base, name);
        inputs.refuse_folder(folder.unwrap_or(Path::new(".")), is_segment)?;
    }
    Ok(())
}

/// Opens the source, which keeps its pictures in the pool; its size is known then.
pub fn open_source(
    spec: &SourceSpec,
    loaded: &Loaded,
    endless_demo: bool,
    pool: &Pool<u8>,
    control: &Control,
) -> anyhow::Result<Box<dyn Source>> {
    if *spec == SourceSpec::Demo {
        let mut options = loaded.settings.demo.options(loaded.params.range);
        if endless_demo {
            options.frames = None;
        }
        return Ok(Box::new(DemoSource::new(options)?.with_pool(pool.clone())));
    }
    let options = loaded.settings.stream_options(&control.stop, pool);
    gst::open(spec, &options)
}

/// One line on a source.
pub fn describe(info: &SourceInfo) -> String {
    let mut text = format!("{}: {}x{}", info.description, info.width, info.height);
    if let Some(rate) = info.rate {
        text += &format!(", {rate:.4} pairs/s").replace(".0000", "");
    }
    match info.pairs {
        Some(pairs) => text += &format!(", about {pairs} pairs"),
        None if info.live => text += ", live",
        None => {}
    }
    text
}

/// Has the alignment of the eyes watched where that is wanted: how it stands, and by what it is
/// judged.
pub fn watch_alignment(
    loaded: &Loaded,
    rig: &Rig,
    sinks: &mut Vec<Box<dyn Sink>>,
) -> anyhow::Result<Option<(alignment::Shared, SharedLimits)>> {
    if !loaded.settings.alignment.check {
        return Ok(None);
    }
    let shared = alignment::Shared::default();
    let options = Options { range: Some(loaded.params.range), ..Options::default() };
    let limits = loaded.settings.alignment.limits(rig.calibrated);
    let sink = AlignmentSink::new(options, limits, shared.clone())?;
    let limits = sink.limits();
    sinks.push(Box::new(sink));
    Ok(Some((shared, limits)))
}

/// Has the range of disparities watched: what is found.
pub fn watch_range(loaded: &Loaded, sinks: &mut Vec<Box<dyn Sink>>) -> range::Shared {
    let shared = range::Shared::default();
    // Beside an engine that may be at work on all cores.
    let one = CpuOptions { threads: Some(1), ..loaded.settings.engine.options().cpu };
    sinks.push(Box::new(RangeSink::new(Box::new(small_matcher(one)), shared.clone())));
    shared
}

/// How the window starts.
pub fn window_options(loaded: &Loaded, info: &SourceInfo, rig: &Rig) -> WindowOptions {
    let (settings, range) = (&loaded.settings, loaded.params.range);
    let title = format!("stereod: {}", info.description);
    let picture = (rig.size.0 as u32, rig.size.1 as u32);
    let mut options = WindowOptions::new(title, picture, range);
    options.colour_range = settings.colour.span(range);
    options.colour_map = settings.colour.map;
    options.view = settings.window.view;
    options.snapshot_dir = (&settings.window.snapshots).into();
    options.settings_file = settings.window.settings();
    options.full_screen = settings.window.full_screen;
    options
}
