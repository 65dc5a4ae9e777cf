//! The work of a slot as a CUDA graph: one call a frame instead of one a kernel.

use std::ptr;
use std::sync::Arc;

use cudarc::driver::sys;

use super::driver::{Context, Result, Stream, check};
use super::frames::{Ready, Work};
use super::launch::Lane;

/// An instantiated graph of a slot's steps.
#[derive(Debug)]
pub(super) struct FrameGraph {
    graph: sys::CUgraph,
    executable: sys::CUgraphExec,
    /// The step and the node of every launch whose arguments change from frame to frame.
    changing: Vec<(usize, sys::CUgraphNode)>,
    context: Arc<Context>,
}

// SAFETY: the driver's handles may be used from any thread, one at a time.
unsafe impl Send for FrameGraph {}

impl Drop for FrameGraph {
    fn drop(&mut self) {
        if self.context.make_current().is_ok() {
            // SAFETY: both were created with `self`, or are null where that failed half way; the
            // engine waits for its frames before it drops anything.
            unsafe {
                if !self.executable.is_null() {
                    sys::cuGraphExecDestroy(self.executable);
                }
                sys::cuGraphDestroy(self.graph);
            }
        }
    }
}

impl FrameGraph {
    /// Builds the graph: each lane is a chain, fork and join tie them.
    pub fn new(context: &Arc<Context>, work: &mut Work) -> Result<Self> {
        let mut graph = ptr::null_mut();
        // SAFETY: `graph` receives the handle.
        check("creating a graph", unsafe { sys::cuGraphCreate(&mut graph, 0) })?;
        let mut built = Self {
            graph,
            executable: ptr::null_mut(),
            changing: Vec::new(),
            context: context.clone(),
        };
        // What the next node of each lane waits for.
        let mut ends: [Vec<sys::CUgraphNode>; 2] = [Vec::new(), Vec::new()];
        let [main, side] = [Lane::Main as usize, Lane::Side as usize];
        for (i, step) in work.steps.iter_mut().enumerate() {
            match step {
                Ready::Fork => {
                    let waited = ends[main].clone();
                    add_new(&mut ends[side], waited);
                }
                Ready::Join => {
                    let waited = ends[side].clone();
                    add_new(&mut ends[main], waited);
                }
                Ready::Launch(launch, lane) => {
                    let after = &mut ends[*lane as usize];
                    let mut node = ptr::null_mut();
                    let params = launch.node_params();
                    // SAFETY: graph and nodes are alive; the driver copies the arguments.
                    check("adding a kernel to a graph", unsafe {
                        sys::cuGraphAddKernelNode_v2(
                            &mut node,
                            graph,
                            after.as_ptr(),
                            after.len(),
                            &params,
                        )
                    })?;
                    if launch.is_cooperative() {
                        let mut value = sys::CUlaunchAttributeValue { pad: [0; 64] };
                        value.cooperative = 1;
                        let attribute = sys::CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_COOPERATIVE;
                        // SAFETY: the node is a kernel's, the value that of this attribute.
                        check("adding a kernel to a graph", unsafe {
                            sys::cuGraphKernelNodeSetAttribute(node, attribute, &value)
                        })?;
                    }
                    if launch.set(0, 0) {
                        built.changing.push((i, node));
                    }
                    *after = vec![node];
                }
                Ready::Memset { address, bytes, value, lane } => {
                    let after = &mut ends[*lane as usize];
                    let mut node = ptr::null_mut();
                    let params = sys::CUDA_MEMSET_NODE_PARAMS {
                        dst: *address,
                        pitch: 0,
                        value: u32::from(*value),
                        elementSize: 1,
                        width: *bytes,
                        height: 1,
                    };
                    // SAFETY: graph and nodes are alive; the range is one of the slot's buffers.
                    check("adding a memset to a graph", unsafe {
                        sys::cuGraphAddMemsetNode(
                            &mut node,
                            graph,
                            after.as_ptr(),
                            after.len(),
                            &params,
                            context.raw(),
                        )
                    })?;
                    *after = vec![node];
                }
            }
        }
        // SAFETY: the graph is whole.
        check("instantiating a graph", unsafe {
            sys::cuGraphInstantiateWithFlags(&mut built.executable, graph, 0)
        })?;
        Ok(built)
    }

    /// Enqueues a frame; [`Work::set`] has set the arguments.
    pub fn enqueue(&self, work: &mut Work, stream: &Stream) -> Result<()> {
        for &(step, node) in &self.changing {
            if let Some(Ready::Launch(launch, _)) = work.steps.get_mut(step) {
                let params = launch.node_params();
                // SAFETY: the node is this launch's; the driver copies the arguments.
                check("changing a graph", unsafe {
                    sys::cuGraphExecKernelNodeSetParams_v2(self.executable, node, &params)
                })?;
            }
        }
        // SAFETY: graph and stream are alive.
        check("launching a graph", unsafe { sys::cuGraphLaunch(self.executable, stream.raw()) })
    }
}

/// Adds what is not there yet: the driver refuses a dependency that is named twice.
fn add_new(ends: &mut Vec<sys::CUgraphNode>, more: Vec<sys::CUgraphNode>) {
    for node in more {
        if !ends.contains(&node) {
            ends.push(node);
        }
    }
}
