//! Sources of stereo pairs.

#[cfg(feature = "cli")]
mod byte_stream;
#[cfg(feature = "video")]
pub mod demo;
#[cfg(feature = "video")]
pub mod excerpt;
pub mod grey;
#[cfg(feature = "video")]
pub mod gst;
pub mod header;
#[cfg(feature = "video")]
mod interface;
pub mod jpeg;
mod linear;
#[cfg(feature = "video")]
pub mod live;
pub mod orientation;
#[cfg(feature = "video")]
pub mod pairing;
#[cfg(feature = "video")]
pub mod pictures;
#[cfg(feature = "cli")]
pub mod recording;
#[cfg(feature = "video")]
pub mod spec;
pub mod still;
pub mod tone;
#[cfg(feature = "video")]
pub mod v4l2;

#[cfg(feature = "video")]
use crate::source::demo::{DemoOptions, DemoSource};
#[cfg(feature = "video")]
use crate::source::excerpt::Excerpt;
#[cfg(feature = "video")]
use crate::source::gst::GstOptions;
#[cfg(feature = "video")]
use crate::source::spec::SourceSpec;
#[cfg(feature = "video")]
pub use interface::{Damage, Place, Source, SourceCounts, SourceInfo, Unavailable};

/// Opens a source, or the part of it that `streams` names; its size is known then. Its images are
/// kept in the pool of `streams`.
#[cfg(feature = "video")]
pub fn open(
    spec: &SourceSpec,
    demo: DemoOptions,
    streams: &GstOptions,
) -> anyhow::Result<Box<dyn Source>> {
    let source: Box<dyn Source> = match spec {
        SourceSpec::Demo => Box::new(DemoSource::new(demo)?.with_pool(streams.keep.pixels.clone())),
        #[cfg(feature = "cli")]
        SourceSpec::Recording { path, topics } => recording::replay(path, topics, streams)?,
        _ => gst::open(spec, streams)?,
    };
    Excerpt::of(source, &streams.part)
}
