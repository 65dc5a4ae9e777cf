//! Sources of stereo pairs.

mod byte_stream;
pub mod demo;
pub mod excerpt;
pub mod gst;
pub(crate) mod interface;
mod launch_line;
pub mod live;
mod misnamed;
pub mod pairing;
pub mod pictures;
pub mod recording;
pub mod spec;
pub mod v4l2;

use crate::source::demo::{DemoOptions, DemoSource};
use crate::source::excerpt::Excerpt;
use crate::source::gst::GstOptions;
use crate::source::spec::SourceSpec;
pub use interface::{Damage, Place, Source, SourceCounts, SourceInfo, Unavailable};

/// Opens a source, or the part of it that `streams` names; its size is known then. Its images are
/// kept in the pool of `streams`.
pub fn open(
    spec: &SourceSpec,
    demo: DemoOptions,
    streams: &GstOptions,
) -> anyhow::Result<Box<dyn Source>> {
    spec.check(streams.half)?;
    let source: Box<dyn Source> = match spec {
        SourceSpec::Demo => Box::new(DemoSource::new(demo)?.with_pool(streams.keep.pixels.clone())),
        SourceSpec::Recording { path, topics } => recording::replay(path, topics, streams)?,
        _ => gst::open(spec, streams)?,
    };
    Excerpt::of(source, &streams.part)
}
