//! What GStreamer leaves behind of a closed camera, and its removal.
//!
//! `v4l2src` forgets one reference to its buffer pool whenever it stops where the driver lets
//! buffers be orphaned (seen with GStreamer 1.22.0: the pool found by `gst_v4l2_object_stop` is not
//! given back). Every pool keeps five files open, so that a camera with a loose cable, opened again
//! and again for days, would use up all that a process may open.

use gstreamer as gst;
use gstreamer::glib;
use gstreamer_app::gst_base::{self, prelude::*};

/// The buffer pools of a pipeline's cameras. To be dropped after the pipeline.
#[derive(Default)]
pub(super) struct CameraPools {
    pipeline: glib::WeakRef<gst::Pipeline>,
    pools: Vec<glib::WeakRef<gst::BufferPool>>,
}

impl CameraPools {
    /// Notes the pools of `pipeline`'s cameras; to be called before it is stopped.
    pub(super) fn note(&mut self, pipeline: &gst::Pipeline) {
        self.pipeline = pipeline.downgrade();
        for element in pipeline.iterate_recurse().into_iter().flatten() {
            let is_camera = element.factory().is_some_and(|factory| factory.name() == "v4l2src");
            let Ok(camera) = element.downcast::<gst_base::BaseSrc>() else { continue };
            let Some(pool) = camera.buffer_pool().filter(|_| is_camera) else { continue };
            // A pool of another kind belongs to what comes after the camera.
            if pool.type_().name() == "GstV4l2BufferPool" {
                self.pools.push(pool.downgrade());
            }
        }
    }
}

impl Drop for CameraPools {
    fn drop(&mut self) {
        if self.pipeline.upgrade().is_some() {
            tracing::debug!("a pipeline outlives its stream: its cameras stay open");
            return;
        }
        // Without the bug the pools have gone with the pipeline.
        for pool in self.pools.drain(..).filter_map(|pool| pool.upgrade()) {
            if pool.ref_count() != 2 {
                tracing::debug!("a camera's buffers are still in use: {pool:?}");
                continue;
            }
            // SAFETY: of the two references one is `pool` here, and the other nobody's: the pipeline is
            // gone, with it all elements that could hold buffers of the pool (the camera itself is
            // held by the pool, not the other way round), and pictures are copied before they leave.
            unsafe { glib::gobject_ffi::g_object_unref(pool.as_ptr().cast()) };
        }
    }
}
