//! The source of a run.

use super::waiting::until_there;
use crate::cli::RunArgs;
use crate::cli::source::NO_SOURCE;
use crate::commands::Error;
use crate::control::Control;
use crate::settings::{self, Loaded, Origin};
use crate::source::gst::Keep;
use crate::source::spec::SourceSpec;
use crate::source::{self, Source, SourceInfo};

/// The source that the command line names, else the settings.
pub fn named(args: &RunArgs, settings: &settings::Source) -> Result<SourceSpec, Error> {
    if let Some(spec) = args.source.spec() {
        return Ok(spec);
    }
    settings.complete().map_err(Error::usage)?;
    settings.spec().ok_or_else(|| Error::explained(NO_SOURCE))
}

/// As [`open_source`], once the source is there. `None` where the run was stopped meanwhile.
pub fn wait_for(
    spec: &SourceSpec,
    loaded: &Loaded,
    endless: bool,
    keep: &Keep,
    control: &Control,
) -> anyhow::Result<Option<Box<dyn Source>>> {
    let open = || open_source(spec, loaded, endless, keep, control);
    let source = until_there(loaded.settings.source.wait(), &control.stop, open)?;
    match &source {
        Some(source) => tracing::info!("{}", describe(source.info())),
        None => tracing::info!("stopped before the source was there"),
    }
    Ok(source)
}

/// Opens the source, which keeps its pictures in `keep`; its size is known then. `endless`: a demo
/// whose length nobody has set goes on for ever.
pub fn open_source(
    spec: &SourceSpec,
    loaded: &Loaded,
    endless: bool,
    keep: &Keep,
    control: &Control,
) -> anyhow::Result<Box<dyn Source>> {
    let settings = &loaded.settings;
    let mut demo = settings.demo.options(loaded.params.range);
    if endless && *loaded.origin("demo", "frames") == Origin::Default {
        demo.frames = None;
    }
    let streams = settings.source.stream_options(&settings.camera, &control.stop, keep);
    source::open(spec, demo, &streams)
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
