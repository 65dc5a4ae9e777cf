//! The work of one frame in flight, prepared so that a frame needs few host calls and no allocation.

use std::ffi::c_void;
use std::ptr;
use std::sync::Arc;
use std::time::Duration;

use cudarc::driver::sys;

use super::driver::{Context, DeviceMemory, Event, Function, Priority, Result, Stream, check};
use super::launch::{Arg, BufferId, Chain, Lane, Launch, Step};
use crate::frame::{StageTime, add_time};
use crate::matching::mutual_information::ROUNDS;

#[derive(Debug)]
pub(super) struct StreamPair {
    pub main: Stream,
    pub side: Stream,
}

impl StreamPair {
    pub fn new(context: &Arc<Context>, priority: Priority) -> Result<Self> {
        let stream = || Stream::new(context, priority);
        Ok(Self { main: stream()?, side: stream()? })
    }

    fn of(&self, lane: Lane) -> &Stream {
        match lane {
            Lane::Main => &self.main,
            Lane::Side => &self.side,
        }
    }
}

/// The events after the last launch of each chain.
pub(super) type Chained = [Arc<Event>; Chain::COUNT];

pub(super) struct Turn<'a> {
    /// Number of frames that the slot has run before; it wraps around.
    pub number: u32,
    pub known: &'a [BufferId],
    /// Noise threshold of each level of a tile; empty to measure them.
    pub thresholds: &'a [u32],
    /// The previous frame's events of each chain, if it may be in flight.
    pub before: Option<Chained>,
    /// Whether each stage is timed.
    pub profile: bool,
}

/// A launch with its arguments in the driver's format.
#[derive(Debug)]
struct ReadyLaunch {
    function: Function,
    grid: [u32; 3],
    block: [u32; 3],
    shared_bytes: u32,
    cooperative: bool,
    /// Whether its blocks may start while those of the launch before end.
    overlaps: bool,
    /// One value per argument; smaller ones are in its first bytes (hosts of CUDA are little-endian).
    values: Box<[u64]>,
    /// Address of each argument; filled in for each launch.
    pointers: Box<[*mut c_void]>,
    varying: Vec<(usize, Arg)>,
    chain: Option<Chain>,
    ends_chain: bool,
}

// SAFETY: the pointers are rewritten before each use.
unsafe impl Send for ReadyLaunch {}

impl ReadyLaunch {
    fn new(launch: &Launch, function: Function, address: &dyn Fn(BufferId) -> u64) -> Result<Self> {
        let value = |arg: &Arg| match *arg {
            Arg::Buffer(id) => address(id),
            Arg::I32(value) => u64::from(value as u32),
            Arg::At(id, bytes) => address(id) + bytes as u64,
            Arg::Turn(_) | Arg::Known(_) | Arg::Threshold(_) => 0,
        };
        let args = launch.args.iter().enumerate();
        Ok(Self {
            function,
            grid: launch.grid,
            block: launch.block,
            shared_bytes: launch.shared_bytes,
            cooperative: launch.cooperative,
            overlaps: !launch.cooperative && function.waits()?,
            values: launch.args.iter().map(value).collect(),
            pointers: vec![ptr::null_mut(); launch.args.len()].into(),
            varying: args.filter(|(_, arg)| arg.varies()).map(|(i, arg)| (i, *arg)).collect(),
            chain: launch.chain,
            ends_chain: false,
        })
    }

    /// The arguments in the driver's format, valid until `self` moves or changes.
    fn arguments(&mut self, turn: &Turn) -> *mut *mut c_void {
        for &(place, arg) in &self.varying {
            self.values[place] = match arg {
                Arg::Turn(round) => {
                    let rounds = turn.number.wrapping_mul(ROUNDS as u32);
                    u64::from(rounds.wrapping_add(round))
                }
                Arg::Known(id) => u64::from(turn.known.contains(&id)),
                Arg::Threshold(level) => {
                    turn.thresholds.get(level).map_or(0, |&given| u64::from(given))
                }
                Arg::Buffer(_) | Arg::At(..) | Arg::I32(_) => continue,
            };
        }
        for (pointer, value) in self.pointers.iter_mut().zip(&mut self.values) {
            *pointer = ptr::from_mut(value).cast();
        }
        self.pointers.as_mut_ptr()
    }

    fn enqueue(&mut self, turn: &Turn, stream: &Stream) -> Result<()> {
        // SAFETY: zeros are a valid attribute: the ignored one.
        let mut attribute: sys::CUlaunchAttribute = unsafe { std::mem::zeroed() };
        if self.cooperative {
            attribute.id = sys::CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_COOPERATIVE;
            attribute.value.cooperative = 1;
        } else {
            attribute.id =
                sys::CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION;
            attribute.value.programmaticStreamSerializationAllowed = 1;
        }
        let [grid_x, grid_y, grid_z] = self.grid;
        let [block_x, block_y, block_z] = self.block;
        let config = sys::CUlaunchConfig {
            gridDimX: grid_x,
            gridDimY: grid_y,
            gridDimZ: grid_z,
            blockDimX: block_x,
            blockDimY: block_y,
            blockDimZ: block_z,
            sharedMemBytes: self.shared_bytes,
            hStream: stream.raw(),
            attrs: &mut attribute,
            numAttrs: u32::from(self.cooperative || self.overlaps),
        };
        // SAFETY: function and stream are alive; each argument of the kernel is behind its pointer.
        check("launching a kernel", unsafe {
            sys::cuLaunchKernelEx(
                &config,
                self.function.raw(),
                self.arguments(turn),
                ptr::null_mut(),
            )
        })
    }
}

/// A prepared step.
#[derive(Debug)]
enum Ready {
    Launch(ReadyLaunch, Lane),
    Memset { address: u64, bytes: usize, value: u8, lane: Lane },
    Fork,
    Join,
    IfAnew(BufferId),
    Always,
}

/// Consecutive steps of a lane under one name.
#[derive(Debug)]
struct Stage {
    name: &'static str,
    lane: Lane,
    first: usize,
    last: usize,
    begin: Event,
    end: Event,
    ran: bool,
}

/// The computation of one slot.
#[derive(Debug)]
pub(super) struct Work {
    steps: Vec<Ready>,
    stages: Vec<Stage>,
    begin: Event,
    end: Event,
    forked: Event,
    joined: Event,
    /// Events after the last launch of each chain.
    chained: Chained,
    /// Whether the frame in flight records its stages.
    profiled: bool,
}

impl Work {
    pub fn new(
        context: &Arc<Context>,
        steps: &[Step],
        functions: &[Function],
        buffer: &dyn Fn(BufferId) -> (u64, usize),
    ) -> Result<Self> {
        let address = |id: BufferId| buffer(id).0;
        let ready = |step: &Step| {
            Ok(match step {
                Step::Launch(launch) => {
                    let function = functions[launch.kernel.0];
                    Ready::Launch(ReadyLaunch::new(launch, function, &address)?, launch.lane)
                }
                Step::Memset { buffer: id, value, lane, .. } => {
                    let (address, bytes) = buffer(*id);
                    Ready::Memset { address, bytes, value: *value, lane: *lane }
                }
                Step::Fork => Ready::Fork,
                Step::Join => Ready::Join,
                Step::IfAnew(state) => Ready::IfAnew(*state),
                Step::Always => Ready::Always,
            })
        };
        let event = || Event::new(context);
        let stages = stages_of(steps).into_iter().map(|(name, lane, first, last)| {
            Ok(Stage { name, lane, first, last, begin: event()?, end: event()?, ran: false })
        });
        let mut ready: Vec<Ready> = steps.iter().map(ready).collect::<Result<_>>()?;
        mark_ends(&mut ready);
        Ok(Self {
            steps: ready,
            stages: stages.collect::<Result<_>>()?,
            begin: event()?,
            end: event()?,
            forked: event()?,
            joined: event()?,
            chained: [Arc::new(event()?), Arc::new(event()?)],
            profiled: false,
        })
    }

    /// Enqueues a frame between two events; if it is profiled, also two events per stage.
    pub fn enqueue(&mut self, streams: &StreamPair, turn: &Turn) -> Result<()> {
        let profile = turn.profile;
        self.profiled = profile;
        self.begin.record(&streams.main)?;
        let (mut left_out, mut waited) = (false, [false; Chain::COUNT]);
        self.stages.iter_mut().for_each(|stage| stage.ran = false);
        for (i, step) in self.steps.iter_mut().enumerate() {
            match step {
                Ready::IfAnew(state) => left_out = turn.known.contains(state),
                Ready::Always => left_out = false,
                _ => {}
            }
            if left_out {
                continue;
            }
            if profile && let Some(stage) = self.stages.iter_mut().find(|stage| stage.first == i) {
                stage.begin.record(streams.of(stage.lane))?;
                stage.ran = true;
            }
            match step {
                Ready::Launch(launch, lane) => {
                    let stream = streams.of(*lane);
                    // Later steps in the same lane implicitly wait, too.
                    if let (Some(chain), Some(before)) = (launch.chain, &turn.before)
                        && !std::mem::replace(&mut waited[chain as usize], true)
                    {
                        stream.wait_for(&before[chain as usize])?;
                    }
                    launch.enqueue(turn, stream)?;
                    if let (Some(chain), true) = (launch.chain, launch.ends_chain) {
                        self.chained[chain as usize].record(stream)?;
                    }
                }
                Ready::Memset { address, bytes, value, lane } => {
                    // SAFETY: the range is one of the slot's buffers.
                    check("clearing GPU memory", unsafe {
                        sys::cuMemsetD8Async(*address, *value, *bytes, streams.of(*lane).raw())
                    })?;
                }
                Ready::Fork => {
                    self.forked.record(&streams.main)?;
                    streams.side.wait_for(&self.forked)?;
                }
                Ready::Join => {
                    self.joined.record(&streams.side)?;
                    streams.main.wait_for(&self.joined)?;
                }
                Ready::IfAnew(_) | Ready::Always => {}
            }
            if profile && let Some(stage) = self.stages.iter().find(|stage| stage.last == i) {
                stage.end.record(streams.of(stage.lane))?;
            }
        }
        self.end.record(&streams.main)
    }

    /// The events that the next frame's launches of each chain wait for.
    pub fn chained(&self) -> &Chained {
        &self.chained
    }

    pub fn end(&self) -> &Event {
        &self.end
    }

    /// Time from the first kernel's start to the last one's end.
    pub fn time(&self) -> Result<Duration> {
        self.end.since(&self.begin)
    }

    /// Adds the time of each stage of a profiled frame, else the total. Stages of the two lanes overlap, so
    /// they may add up to more than [`Work::time`].
    pub fn add_times(&self, times: &mut Vec<StageTime>) -> Result<()> {
        if !self.profiled {
            times.push(("kernels", self.time()?));
            return Ok(());
        }
        for stage in self.stages.iter().filter(|stage| stage.ran) {
            add_time(times, (stage.name, stage.end.since(&stage.begin)?));
        }
        Ok(())
    }
}

/// Marks the last launch of each chain, never in a conditional part: what follows a map is not.
fn mark_ends(steps: &mut [Ready]) {
    let mut ended = [false; Chain::COUNT];
    for step in steps.iter_mut().rev() {
        if let Ready::Launch(launch, _) = step
            && let Some(chain) = launch.chain
        {
            launch.ends_chain = !std::mem::replace(&mut ended[chain as usize], true);
        }
    }
}

/// Name, lane, first and last step of every stage, which ends at waits and borders of conditional parts.
fn stages_of(steps: &[Step]) -> Vec<(&'static str, Lane, usize, usize)> {
    let mut stages: Vec<(&'static str, Lane, usize, usize)> = Vec::new();
    let mut open: [Option<usize>; 2] = [None, None];
    for (i, step) in steps.iter().enumerate() {
        let (name, lane) = match step {
            Step::Launch(launch) => (launch.stage, launch.lane),
            Step::Memset { stage, lane, .. } => (*stage, *lane),
            Step::Fork => {
                open[Lane::Side as usize] = None;
                continue;
            }
            Step::Join => {
                open[Lane::Main as usize] = None;
                continue;
            }
            Step::IfAnew(_) | Step::Always => {
                open = [None, None];
                continue;
            }
        };
        match open[lane as usize] {
            Some(stage) if stages[stage].0 == name => stages[stage].3 = i,
            _ => {
                open[lane as usize] = Some(stages.len());
                stages.push((name, lane, i, i));
            }
        }
    }
    stages
}

/// Device memory of a plan's buffers: per engine and stream, per concurrent frame, and per slot.
#[derive(Debug)]
pub(super) struct Memory {
    pub engine: Vec<Option<DeviceMemory>>,
    pub concurrent: Vec<Vec<Option<DeviceMemory>>>,
    pub slots: Vec<Vec<Option<DeviceMemory>>>,
}

impl Memory {
    pub fn of(&self, slot: usize, id: BufferId) -> (u64, usize) {
        let shared = &self.concurrent[slot % self.concurrent.len()];
        let memory = [&self.slots[slot], shared, &self.engine]
            .into_iter()
            .find_map(|all| all[id.0].as_ref());
        memory.map_or((0, 0), |memory| (memory.address(), memory.bytes()))
    }
}

#[cfg(test)]
mod tests {
    use super::super::launch::KernelId;
    use super::*;

    fn launch(stage: &'static str, lane: Lane) -> Step {
        Step::Launch(Launch {
            stage,
            kernel: KernelId(0),
            grid: [1, 1, 1],
            block: [1, 1, 1],
            shared_bytes: 0,
            cooperative: false,
            chain: None,
            lane,
            args: vec![],
        })
    }

    #[test]
    fn steps_of_one_name_in_a_lane_are_one_stage() {
        use Lane::{Main, Side};
        let steps = [
            launch("cost features", Main),
            launch("cost features", Main),
            Step::Fork,
            launch("aggregation, horizontal", Side),
            launch("winner", Main),
            launch("aggregation, horizontal", Side),
            Step::Join,
            launch("winner", Main),
            launch("cost features", Main),
        ];
        let expected = [
            ("cost features", Main, 0, 1),
            ("aggregation, horizontal", Side, 3, 5),
            ("winner", Main, 4, 4),
            ("winner", Main, 7, 7),
            ("cost features", Main, 8, 8),
        ];
        assert_eq!(stages_of(&steps), expected);
    }
}
