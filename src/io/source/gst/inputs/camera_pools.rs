//! Releases the buffer pools of closed cameras that GStreamer before 1.26 leaks.
//!
//! There, `gst_v4l2_object_stop` keeps a reference to the pool of a `v4l2src` if the driver lets buffers be
//! orphaned (seen with 1.22.0, reported upstream as gstreamer issue 3097; the sources of 1.26 release it, the
//! sources of 1.24 were not examined). Every pool keeps five files open, so a camera with a loose cable,
//! reopened for days, would use up the files of the process.

use gstreamer as gst;
use gstreamer::glib;
use gstreamer_app::gst_base::{self, prelude::*};

/// First release of `v4l2src` without the leak, as major and minor number.
const FIXED: (u32, u32) = (1, 26);

/// Buffer pools of a pipeline's cameras. To be dropped after the pipeline.
#[derive(Default)]
pub(in crate::source::gst) struct CameraPools {
    pipeline: glib::WeakRef<gst::Pipeline>,
    pools: Vec<glib::WeakRef<gst::BufferPool>>,
}

impl CameraPools {
    /// Notes the pools of `pipeline`'s cameras; to be called before it is stopped.
    pub(in crate::source::gst) fn note(&mut self, pipeline: &gst::Pipeline) {
        let (major, minor, ..) = gst::version();
        if (major, minor) >= FIXED {
            return;
        }
        self.pipeline = pipeline.downgrade();
        for element in pipeline.iterate_recurse().into_iter().flatten() {
            let is_camera = element.factory().is_some_and(|factory| factory.name() == "v4l2src");
            let Ok(camera) = element.downcast::<gst_base::BaseSrc>() else { continue };
            let Some(pool) = camera.buffer_pool().filter(|_| is_camera) else { continue };
            // A pool of another kind belongs to an element after the camera.
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
            if !is_forgotten(&pool) {
                tracing::debug!("a camera's buffers are still in use: {pool:?}");
                continue;
            }
            // SAFETY: the released reference has no owner (`is_forgotten`), and `pool` is another one.
            unsafe { glib::gobject_ffi::g_object_unref(pool.as_ptr().cast()) };
        }
    }
}

/// Reports whether a pool of a finished pipeline has exactly one leaked reference in addition to the
/// caller's.
///
/// The reference count alone does not tell owners apart, because every buffer in use holds a
/// reference, too. Therefore the pool is offered another configuration: it refuses one while it is
/// active or any of its buffers is in use (`gst_buffer_pool_set_config`). A pool that accepts is
/// not active, so it hands out no buffers. Only elements of the pipeline could still hold it. They
/// are gone except for the camera, which the pool itself holds, and which gave up its pool when it
/// stopped. So the one reference besides the caller's is the leaked one. A pool with more
/// references is left alone.
fn is_forgotten(pool: &gst::BufferPool) -> bool {
    if pool.ref_count() != 2 || pool.is_active() {
        return false;
    }
    let mut other = pool.config();
    // An equal configuration would always be accepted.
    other.set("stereod-last-look", true);
    // The count is checked again, in case another thread has found the pool.
    pool.set_config(other).is_ok() && pool.ref_count() == 2
}

#[cfg(test)]
mod tests {
    use super::*;

    fn active_pool() -> gst::BufferPool {
        gst::init().unwrap();
        let pool = gst::BufferPool::new();
        let mut config = pool.config();
        config.set_params(None, 16, 1, 2);
        pool.set_config(config).unwrap();
        pool.set_active(true).unwrap();
        pool
    }

    #[test]
    fn only_a_pool_that_nobody_uses_is_forgotten() {
        let pool = active_pool();
        pool.set_active(false).unwrap();
        assert!(!is_forgotten(&pool), "there is no other reference");
        let forgotten = pool.clone();
        assert!(is_forgotten(&pool));
        let third = pool.clone();
        assert!(!is_forgotten(&pool), "somebody else has it");
        drop((forgotten, third));
    }

    #[test]
    fn a_reference_of_a_buffer_is_not_forgotten() {
        let pool = active_pool();
        let buffer = pool.acquire_buffer(None).unwrap();
        assert_eq!(pool.ref_count(), 2, "the buffer holds its pool");
        assert!(!is_forgotten(&pool));
        // A pool that was stopped still has its buffer out.
        pool.set_active(false).unwrap();
        assert_eq!(pool.ref_count(), 2);
        assert!(!is_forgotten(&pool));
        drop(buffer);
        assert_eq!(pool.ref_count(), 1);
    }

    #[test]
    fn an_active_pool_is_not_forgotten() {
        let pool = active_pool();
        let other = pool.clone();
        assert!(!is_forgotten(&pool));
        pool.set_active(false).unwrap();
        drop(other);
    }
}
