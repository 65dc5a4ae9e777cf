//! The source of a run.

use super::waiting::until_there;
use crate::cli::RunArgs;
use crate::cli::source::NO_SOURCE;
use crate::commands::Error;
use crate::settings::{self, Loaded};
use stereod_core::control::Control;
use stereod_core::settings::Origin;
use stereod_io::source::excerpt::Frames;
use stereod_io::source::gst::Keep;
use stereod_io::source::spec::SourceSpec;
use stereod_io::source::{self, Source, SourceInfo};

/// Returns the source of the command line, else that of the settings.
pub fn named(args: &RunArgs, settings: &settings::Source) -> Result<SourceSpec, Error> {
    if let Some(spec) = args.source.spec() {
        return Ok(spec);
    }
    settings.complete().map_err(Error::usage)?;
    settings.spec().ok_or_else(|| Error::explained(NO_SOURCE))
}

/// Opens the source as [`open_source`] does, once it is available. Returns `None` if the run was
/// stopped meanwhile.
pub fn wait_for(
    spec: &SourceSpec,
    loaded: &Loaded,
    endless: bool,
    frames: Frames,
    keep: &Keep,
    control: &Control,
) -> anyhow::Result<Option<Box<dyn Source>>> {
    let open = || open_source(spec, loaded, endless, frames, keep, control);
    let source = until_there(loaded.settings.source.wait(), &control.stop, open)?;
    match &source {
        Some(source) => tracing::info!("{}", describe(source.info())),
        None => tracing::info!("stopped before the source was there"),
    }
    Ok(source)
}

/// Opens the source, which takes its memory from `keep`; then its size is known. `endless`: a demo
/// without a set length never ends.
pub fn open_source(
    spec: &SourceSpec,
    loaded: &Loaded,
    endless: bool,
    frames: Frames,
    keep: &Keep,
    control: &Control,
) -> anyhow::Result<Box<dyn Source>> {
    let settings = &loaded.settings;
    let mut demo = settings.demo.options(loaded.params.range);
    if endless && *loaded.origin("demo", "frames") == Origin::Default {
        demo.frames = None;
    }
    let mut streams = settings.source.stream_options(&settings.camera, &control.stop, keep);
    streams.part.frames = frames;
    source::open(spec, demo, &streams)
}

/// Logs one line on a source.
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
