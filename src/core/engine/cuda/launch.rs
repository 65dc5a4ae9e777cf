//! Work of the engine for a frame, as data: kernels, buffers, and the steps in order. `plan/` makes it;
//! `frames.rs` runs it on streams.

use std::collections::BTreeMap;

use super::geometry::BLOCK_THREADS;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct BufferId(pub usize);

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct KernelId(pub usize);

/// Owner of a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// One for the engine, shared by all frames in flight: tables.
    Engine,
    /// One for each concurrently computed frame, possibly fewer than are in flight: large scratch memory.
    Concurrent,
    /// One for each frame in flight.
    Slot,
    /// One for the engine, carried from frame to frame: only the launches of one chain may access it.
    Sequence,
}

/// Device memory. It is zero when the engine starts; after that only the steps change it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Buffer {
    /// Name of the contents, for memory reports.
    pub name: &'static str,
    pub bytes: usize,
    pub scope: Scope,
    /// Initial content, if not zeros: a prefix of the buffer.
    pub content: Vec<u8>,
}

/// One translation unit: a file of `kernels/` with these macros defined.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Unit {
    /// Name within the plan, unique.
    pub name: String,
    pub file: &'static str,
    /// Macros and their values.
    pub defines: Vec<(String, String)>,
}

impl Unit {
    pub fn new(file: &'static str) -> Self {
        Unit { name: file.trim_end_matches(".cu").to_owned(), file, defines: Vec::new() }
    }

    /// Defines the block size of pixel-wise kernels.
    #[must_use]
    pub fn pixelwise(self) -> Self {
        self.define("BLOCK_THREADS", BLOCK_THREADS)
    }

    /// Adds a macro.
    #[must_use]
    pub fn define(mut self, name: &str, value: impl ToString) -> Self {
        self.defines.push((name.to_owned(), value.to_string()));
        self
    }
}

/// A kernel: the `extern "C" __global__` function `symbol` of the unit named `unit`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Kernel {
    pub unit: String,
    pub symbol: &'static str,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Arg {
    Buffer(BufferId),
    /// An address at this byte offset into a buffer.
    At(BufferId, usize),
    /// `int`.
    I32(i32),
    /// `unsigned`: number of times that this slot may have run the launch before, over frames and rounds 0 to
    /// [`ROUNDS`](crate::matching::mutual_information::ROUNDS) - 1 of a frame, for data in buffers of
    /// [`Scope::Slot`]. It wraps around.
    Turn(u32),
    /// `int`: 1 if this buffer of [`Scope::Sequence`] holds the previous frame's state, else 0.
    Known(BufferId),
    /// `unsigned`: the tile's noise threshold of the level of this number; 0 to measure it.
    Threshold(usize),
}

impl Arg {
    pub fn buffer(&self) -> Option<BufferId> {
        match *self {
            Arg::Buffer(id) | Arg::At(id, _) | Arg::Known(id) => Some(id),
            Arg::I32(_) | Arg::Turn(_) | Arg::Threshold(_) => None,
        }
    }

    pub fn varies(&self) -> bool {
        match self {
            Arg::Buffer(_) | Arg::At(..) | Arg::I32(_) => false,
            Arg::Turn(_) | Arg::Known(_) | Arg::Threshold(_) => true,
        }
    }
}

/// A frame's work runs in two lanes that may overlap.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Lane {
    /// The lane at the beginning and the end of a frame.
    Main,
    /// A concurrent lane, between [`Step::Fork`] and [`Step::Join`].
    Side,
}

/// Launches that run in frame order: each waits only for the same chain of the previous frame. So the
/// pictures of a frame need not wait for the filters of the previous one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Chain {
    /// Stages before matching.
    Pictures,
    /// Stages that depend on previous maps.
    Maps,
}

impl Chain {
    pub const COUNT: usize = 2;
}

#[derive(Clone, Debug, PartialEq)]
pub struct Launch {
    /// Name in timing reports; consecutive steps of a lane with one name are one stage.
    pub stage: &'static str,
    pub kernel: KernelId,
    pub grid: [u32; 3],
    pub block: [u32; 3],
    /// Dynamic shared memory of a block; more than 48 KiB is requested from the driver.
    pub shared_bytes: u32,
    /// Whether all blocks must be resident at once.
    pub cooperative: bool,
    /// Its chain, in frame order; `None` if it is independent of the previous frame.
    pub chain: Option<Chain>,
    pub lane: Lane,
    pub args: Vec<Arg>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    Launch(Launch),
    /// Sets every byte of a buffer.
    Memset {
        /// Name in timing reports.
        stage: &'static str,
        buffer: BufferId,
        value: u8,
        lane: Lane,
    },
    /// The side lane waits for all steps enqueued in the main lane so far.
    Fork,
    /// The main lane waits for all steps enqueued in the side lane so far.
    Join,
    /// Skips up to [`Step::Always`] if this buffer of [`Scope::Sequence`] holds the previous frame's state.
    IfAnew(BufferId),
    /// The steps from here on run for every frame.
    Always,
}

/// Outputs of the spatio-temporal stage for one frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Passed {
    /// The left image without its background, if requested.
    pub whitened: Option<BufferId>,
    /// The header of the state.
    pub report: BufferId,
}

/// Description of an engine for pairs of one size with one set of parameters.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    pub kernels: Vec<Kernel>,
    /// Memory of the device.
    pub buffers: Vec<Buffer>,
    /// A frame's work, in order.
    pub steps: Vec<Step>,
    /// Format of the uploaded pictures.
    pub inputs: [Input; 2],
    /// Upload buffer of the left picture, of [`Scope::Slot`]; aligned to 256 bytes.
    pub left: BufferId,
    pub right: BufferId,
    /// Both rectified pictures, rows tightly packed, if the steps rectify them.
    pub rectified: Option<[BufferId; 2]>,
    /// The disparity map: `width * height` values of 16 bits, rows tightly packed, of [`Scope::Slot`].
    pub disparity: BufferId,
    /// Confidence, one byte per pixel of the map, if requested.
    pub confidence: Option<BufferId>,
    /// Outputs of the spatio-temporal stage, if it runs.
    pub passed: Option<Passed>,
    /// Upload buffer of the prior map, if pairs may come with one.
    pub prior: Option<BufferId>,
    /// Number of concurrently computed frames, at least 1. Frame n in flight waits for frame n minus this
    /// number and reuses its [`Scope::Concurrent`] buffers.
    pub concurrent: usize,
    /// Buffers of [`Scope::Sequence`] with the filters' states, by the filters' names.
    pub states: Vec<(&'static str, BufferId)>,
}

/// Format of the uploaded pictures of a view.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Input {
    pub width: usize,
    pub height: usize,
    /// Bytes between the starts of rows on the device, at least the width.
    pub pitch: usize,
}

impl Input {
    /// Pictures with rows tightly packed.
    pub fn packed((width, height): (usize, usize)) -> Self {
        Input { width, height, pitch: width }
    }

    pub fn bytes(&self) -> usize {
        self.pitch * self.height
    }
}

impl Plan {
    /// A plan without steps for maps of `width` x `height` pixels, with its three buffers.
    pub fn new(width: usize, height: usize, inputs: [Input; 2]) -> Self {
        let mut plan = Plan {
            kernels: Vec::new(),
            buffers: Vec::new(),
            steps: Vec::new(),
            inputs,
            left: BufferId(0),
            right: BufferId(1),
            rectified: None,
            disparity: BufferId(2),
            confidence: None,
            passed: None,
            prior: None,
            concurrent: 1,
            states: Vec::new(),
        };
        plan.buffer("left picture", inputs[0].bytes(), Scope::Slot);
        plan.buffer("right picture", inputs[1].bytes(), Scope::Slot);
        plan.buffer("disparity", 2 * width * height, Scope::Slot);
        plan
    }

    /// Both pictures in the form for matching.
    pub fn matched_views(&self) -> [BufferId; 2] {
        self.rectified.unwrap_or([self.left, self.right])
    }

    /// Adds a buffer of zeros.
    pub fn buffer(&mut self, name: &'static str, bytes: usize, scope: Scope) -> BufferId {
        self.buffers.push(Buffer { name, bytes, scope, content: Vec::new() });
        BufferId(self.buffers.len() - 1)
    }

    pub fn state(&mut self, filter: &'static str, numbers: usize) -> BufferId {
        let id = self.buffer(filter, size_of::<i32>() * numbers, Scope::Sequence);
        self.states.push((filter, id));
        id
    }

    /// Adds a constant table, one for the engine.
    pub fn table(&mut self, name: &'static str, content: Vec<u8>) -> BufferId {
        let bytes = content.len();
        self.buffers.push(Buffer { name, bytes, scope: Scope::Engine, content });
        BufferId(self.buffers.len() - 1)
    }

    pub fn kernel(&mut self, unit: &str, symbol: &'static str) -> KernelId {
        let kernel = Kernel { unit: unit.to_owned(), symbol };
        let known = self.kernels.iter().position(|known| *known == kernel);
        KernelId(known.unwrap_or_else(|| {
            self.kernels.push(kernel);
            self.kernels.len() - 1
        }))
    }

    /// Moves the steps from number `from` on into the side lane behind the last [`Step::Join`] before, if
    /// there is one: they run beside the steps of the main lane from there to here, where both are joined.
    pub fn run_beside(&mut self, from: usize) {
        let Some(join) = self.steps[..from].iter().rposition(|step| *step == Step::Join) else {
            return;
        };
        let mut moved = self.steps.split_off(from);
        for step in &mut moved {
            if let Step::Launch(Launch { lane, .. }) | Step::Memset { lane, .. } = step {
                *lane = Lane::Side;
            }
        }
        self.steps.splice(join + 1..join + 1, moved);
        self.steps.push(Step::Join);
    }

    /// Checks the steps: all ids exist, launches are within the limits of every device, lanes are forked
    /// before they are used and joined at the end.
    pub fn check(&self) -> Result<(), String> {
        let handed_out =
            [self.left, self.right, self.disparity].into_iter().chain(self.matched_views());
        let passed = self
            .passed
            .iter()
            .flat_map(|passed| passed.whitened.into_iter().chain([passed.report]));
        for id in handed_out.chain(self.confidence).chain(self.prior).chain(passed) {
            let buffer = self.buffers.get(id.0).ok_or("a picture has no buffer")?;
            if buffer.scope != Scope::Slot {
                return Err(format!("the buffer `{}` must be one of each slot", buffer.name));
            }
        }
        if let Some(buffer) = self.buffers.iter().find(|b| b.content.len() > b.bytes) {
            return Err(format!("the buffer `{}` is smaller than its content", buffer.name));
        }
        let (mut forked, mut open) = (false, false);
        let mut chains = BTreeMap::new();
        for step in &self.steps {
            match step {
                Step::Fork => forked = true,
                Step::Join => open = false,
                Step::IfAnew(_) | Step::Always if open => {
                    return Err("the side lane is not joined where steps may be left out".into());
                }
                Step::IfAnew(_) | Step::Always => {}
                Step::Memset { buffer, lane, .. } => {
                    self.buffers.get(buffer.0).ok_or("a memset without a buffer")?;
                    open |= *lane == Lane::Side;
                }
                Step::Launch(launch) => {
                    self.check_launch(launch)?;
                    for id in launch.args.iter().filter_map(Arg::buffer) {
                        let buffer = &self.buffers[id.0];
                        let is_streams = buffer.scope == Scope::Sequence;
                        if is_streams && *chains.entry(id).or_insert(launch.chain) != launch.chain {
                            return Err(format!("`{}` is touched by two chains", buffer.name));
                        }
                    }
                    open |= launch.lane == Lane::Side;
                }
            }
            if open && !forked {
                return Err("the side lane is used before it is forked".into());
            }
        }
        if open { Err("the side lane is not joined".into()) } else { Ok(()) }
    }

    fn check_launch(&self, launch: &Launch) -> Result<(), String> {
        let kernel = self.kernels.get(launch.kernel.0).ok_or("a launch without a kernel")?;
        let wrong = |what: &str| Err(format!("the launch of `{}`: {what}", kernel.symbol));
        let threads: u64 = launch.block.iter().map(|&n| u64::from(n)).product();
        if !(1..=1024).contains(&threads) || launch.block[2] > 64 {
            return wrong(&format!("a block of {:?} threads", launch.block));
        }
        let [x, y, z] = launch.grid;
        if x == 0 || y == 0 || z == 0 || x > i32::MAX as u32 || y > 65535 || z > 65535 {
            return wrong(&format!("a grid of {:?} blocks", launch.grid));
        }
        for arg in &launch.args {
            let Some(id) = arg.buffer() else { continue };
            let Some(buffer) = self.buffers.get(id.0) else {
                return wrong("an argument without a buffer");
            };
            if buffer.scope == Scope::Sequence
                && (launch.chain.is_none() || launch.lane != Lane::Main)
            {
                return wrong(&format!("`{}` is touched out of order", buffer.name));
            }
        }
        Ok(())
    }
}

/// Properties of a compiled kernel that `plan/` needs.
pub trait Occupancy {
    /// Number of blocks of `threads` threads and `shared_bytes` bytes of dynamic shared memory that are
    /// resident on one multiprocessor at once.
    fn resident_blocks(
        &self,
        kernel: &Kernel,
        threads: u32,
        shared_bytes: u32,
    ) -> anyhow::Result<u32>;
}

#[cfg(test)]
mod tests {
    use super::*;

    fn launch(kernel: KernelId, lane: Lane) -> Launch {
        Launch {
            stage: "stage",
            kernel,
            grid: [1, 1, 1],
            block: [32, 1, 1],
            shared_bytes: 0,
            cooperative: false,
            chain: None,
            lane,
            args: vec![],
        }
    }

    #[test]
    fn steps_run_beside_those_behind_the_last_join() {
        let mut plan = Plan::new(4, 3, [Input::packed((4, 3)); 2]);
        let kernels = ["a", "b", "c"].map(|symbol| plan.kernel("unit", symbol));
        let [main, beside, moved] = kernels.map(|kernel| launch(kernel, Lane::Main));
        let side = Launch { lane: Lane::Side, ..moved.clone() };
        let [main, beside, moved, side] = [main, beside, moved, side].map(Step::Launch);
        plan.steps = vec![main.clone(), moved.clone()];
        plan.run_beside(1);
        assert_eq!(plan.steps, [main.clone(), moved.clone()], "nothing is joined");
        plan.steps = vec![Step::Fork, main.clone(), Step::Join, beside.clone(), moved];
        plan.run_beside(4);
        assert_eq!(plan.steps, [Step::Fork, main, Step::Join, side, beside, Step::Join]);
        assert_eq!(plan.check(), Ok(()));
    }

    #[test]
    fn a_plan_is_checked_before_it_runs() {
        let mut plan = Plan::new(4, 3, [Input::packed((4, 3)); 2]);
        assert_eq!(plan.check(), Ok(()));
        let kernel = plan.kernel("unit", "kernel");
        assert_eq!(plan.kernel("unit", "kernel"), kernel);
        assert_ne!(plan.kernel("other", "kernel"), kernel);

        let with = |steps: Vec<Step>| Plan { steps, ..plan.clone() }.check();
        let side = Step::Launch(launch(kernel, Lane::Side));
        assert_eq!(with(vec![Step::Fork, side.clone(), Step::Join]), Ok(()));
        assert!(with(vec![side.clone(), Step::Join]).unwrap_err().contains("before"));
        assert!(with(vec![Step::Fork, side]).unwrap_err().contains("not joined"));

        let main = || launch(kernel, Lane::Main);
        let wrong = |launch: Launch| with(vec![Step::Launch(launch)]).unwrap_err();
        assert!(wrong(Launch { grid: [1, 0, 1], ..main() }).contains("grid"));
        assert!(wrong(Launch { grid: [1, 70000, 1], ..main() }).contains("grid"));
        assert!(wrong(Launch { block: [64, 32, 1], ..main() }).contains("block"));
        let of_buffer = |id| Launch { args: vec![Arg::Buffer(id)], ..main() };
        assert!(wrong(of_buffer(BufferId(9))).contains("buffer"));
        let mut remembering = plan.clone();
        let state = remembering.state("state", 12);
        let steps = |launch| vec![Step::Launch(launch)];
        remembering.steps = steps(of_buffer(state));
        assert!(remembering.check().unwrap_err().contains("out of order"));
        remembering.steps = steps(Launch { chain: Some(Chain::Maps), ..of_buffer(state) });
        assert_eq!(remembering.check(), Ok(()));
        let of_chain = |chain| Step::Launch(Launch { chain: Some(chain), ..of_buffer(state) });
        remembering.steps = vec![of_chain(Chain::Pictures), of_chain(Chain::Maps)];
        assert!(remembering.check().unwrap_err().contains("two chains"));
        assert!(wrong(Launch { kernel: KernelId(7), ..main() }).contains("kernel"));
    }
}
