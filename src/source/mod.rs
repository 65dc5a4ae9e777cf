//! Sources of stereo pairs.

pub mod demo;
pub mod grey;
pub mod gst;
pub mod header;
mod interface;
pub mod jpeg;
mod linear;
pub mod live;
pub mod orientation;
pub mod pairing;
pub mod pictures;
pub mod spec;
pub mod still;
pub mod tone;
pub mod v4l2;

use crate::source::demo::{DemoOptions, DemoSource};
use crate::source::gst::GstOptions;
use crate::source::spec::SourceSpec;
pub use interface::{Damage, Source, SourceCounts, SourceInfo, Unavailable};

/// Opens a source; its size is known then. Its images are kept in the pool of `streams`.
pub fn open(
    spec: &SourceSpec,
    demo: DemoOptions,
    streams: &GstOptions,
) -> anyhow::Result<Box<dyn Source>> {
    match spec {
        SourceSpec::Demo => {
            Ok(Box::new(DemoSource::new(demo)?.with_pool(streams.keep.pixels.clone())))
        }
        _ => gst::open(spec, streams),
    }
}
