//! The CPU engine: the stages of `matching/`, vectorised and threaded, byte for byte the same.
//!
//! `stages.rs` shows the flow of a pair. Semi-Global Matching is memory-bound if the sums S(p, d) of all
//! pixels are stored. They are not:
//!
//! 0. *Rectify*, for raw pairs (`rectify.rs`).
//! 1. With an adaptive window or a prior: half-size images, matched in the same way (`level.rs`), and the
//!    *texture* of every pixel (`prepare.rs`), which weighs both (`support.rs`).
//! 2. *Cost features* (`features.rs`, `mirrored_rows.rs`). The cost itself is computed on the fly (`cost.rs`)
//!    or stored (`band_costs.rs`): for the whole image, or by each sweep for its band (`cost_source.rs`).
//! 3. *Aggregation, down*: the downward paths. Their vectors are stored only at the start of each band of
//!    eight rows (`vertical.rs`), as checkpoints.
//! 4. *Aggregation and winner*, band by band from the bottom up: the leftward paths (`leftwards.rs`), the
//!    downward ones once more from the checkpoint, the upward and the rightward ones together. Disparities
//!    are selected and refined as soon as the sums of a piece of a row are complete (`winner.rs`), so a band
//!    stays in the cache. Five paths need no upward sweep and so no checkpoints, four no diagonals. Without
//!    paths, sums over windows replace 3. and 4. (`window_sums.rs`, `local.rs`); 16 paths keep all sums
//!    (`full_volume.rs`).
//! 5. The *filters* of the map, one after the other (`filter/`).
//!
//! Threads take pieces of each stage one after the other (`team.rs`), and follow each other from band to band
//! as a wavefront (`schedule.rs`). Engines of several rigs take turns (`turns.rs`).
//!
//! Memory is allocated once (`memory.rs`). All threads share the checkpoints (3 W D H / 8 bytes for eight
//! paths), the prepared images (about W H for `ad`, 12 W H for `combined`) and P2 (2 W H, with diagonal paths
//! 4). Each thread has about 8 W D bytes of leftward paths and 6 W D of path vectors. Unless the cost is `ad`
//! of single pixels, W H D bytes of costs are kept, or 8 W D per thread if memory is short; with a window
//! each thread has another 12 W D of costs and 2 W D of sums. A coarser level needs about a seventh of that.

mod band_costs;
mod buffers;
mod cores;
mod cost;
mod cost_source;
mod features;
mod filter;
mod frame;
mod full_volume;
mod geometry;
mod leftwards;
mod level;
mod local;
mod look_up;
mod memory;
mod mirrored_rows;
mod mirrored_winners;
mod mutual_information;
mod noise;
mod options;
mod path;
mod pixel_rows;
pub(in crate::engine) mod placement;
mod plane_costs;
mod prepare;
pub(in crate::engine) mod rectify;
mod residuals;
mod schedule;
mod shape;
mod simd;
mod stage_timer;
mod stages;
mod steps;
mod striping;
mod support;
pub(in crate::engine) mod team;
mod temporal;
mod texture;
mod turns;
mod vertical;
mod watch;
mod whole;
mod window_sums;
mod windowed_costs;
mod windows;
mod winner;
mod zero_mean;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use anyhow::bail;

pub use self::cores::Cores;
use self::frame::InformationRound;
use self::level::{Level, PairInputs};
use self::memory::Arena;
use self::mutual_information::Information;
pub use self::options::CpuOptions;
pub use self::placement::NICE;
use self::placement::{Host, Placement};
pub use self::prepare::TEXTURE;
pub use self::rectify::CpuRectifier;
use self::rectify::Rectify;
pub(in crate::engine) use self::simd::Simd;
pub use self::simd::SimdChoice;
use self::team::Team;
pub use self::temporal::NAME as TEMPORAL;
use self::temporal::TemporalStage;
use self::turns::Seat;
pub use self::turns::{TURN, take_turns};
pub use self::whole::WholeMap;
use crate::engine::interface::{
    Engine, PairSpec, TileEngine, check_dimensions, check_size, check_thresholds, prior_of,
};
use crate::frame::{DisparityMap, Image, Matched, StageTime, StereoGeometry, StereoPair, add_time};
use crate::matching::continuity::Continuity;
use crate::matching::levels::{levels, prior_map_size};
use crate::matching::mutual_information::NAME;
use crate::matching::scene::Thumbnail;
use crate::matching::{History, Params};
use crate::memory::{Budget, Estimate, Reserved, Result};
use crate::pool::Pool;

/// Matches pairs of one size with one set of parameters.
pub struct CpuEngine {
    params: Params,
    size: (usize, usize),
    simd: Simd,
    team: Team,
    host: Host,
    placement: Placement,
    seat: Arc<Seat>,
    /// The finest level first; it has the size of the pairs.
    levels: Vec<Level>,
    /// State of mutual information, if that is the cost.
    information: Option<Information>,
    temporal: Option<TemporalStage>,
    continuity: Continuity,
    pool: Pool<i16>,
    confidences: Pool<u8>,
    rectify: Option<Rectify>,
    depth_from: Option<StereoGeometry>,
    finished: Option<Matched>,
    _memory: Reserved,
}

/// Largest memory in bytes of an engine that keeps costs.
const KEEPING: u64 = 1_000_000_000;

/// Advice to need less memory.
const CURE: &str = "fewer `disparities`, a smaller picture";

/// Name of the stage before matching.
pub const RECTIFY: &str = "rectify";

impl CpuEngine {
    /// Makes an engine for such pairs, with all its memory. If the budget cannot hold the costs, every sweep
    /// recomputes them ([`CpuEngine::options_within`]). For raw pairs, the result includes the rectified
    /// images.
    pub fn new(params: &Params, pairs: &PairSpec, options: CpuOptions) -> anyhow::Result<Self> {
        let (width, height) = pairs.size;
        let left = Budget::of_process().left();
        let options = Self::options_within(left, params, pairs.size, options)?;
        // Before any thread starts.
        let needed = Self::estimate(params, width, height, options)?.host;
        let memory = Budget::of_process().reserve(in_words(params, pairs), needed, CURE)?;
        let (simd, team, host) = options.start_team()?;
        let parts = Parts::new(&Arena::new(), params, pairs.size, (simd, team.len()), options)?;
        let Parts { levels, information, temporal } = parts;
        let seat = Seat::new(options.cores, team.len());
        Ok(Self {
            params: params.clone(),
            size: pairs.size,
            simd,
            team,
            host,
            placement: options.placement(),
            seat,
            levels,
            information,
            temporal,
            continuity: Continuity::default(),
            pool: Pool::new(),
            confidences: Pool::new(),
            rectify: pairs.rectifier.clone().map(Rectify::new),
            depth_from: pairs.geometry,
            finished: None,
            _memory: memory,
        })
    }

    /// Estimates the memory of an engine for such pairs, without its output maps; nothing is allocated.
    pub fn estimate(
        params: &Params,
        width: usize,
        height: usize,
        options: CpuOptions,
    ) -> anyhow::Result<Estimate> {
        params.check()?;
        check_dimensions(width, height)?;
        let arena = Arena::dry();
        Parts::new(&arena, params, (width, height), options.simd_and_threads()?, options)?;
        Ok(Estimate { host: arena.bytes(), device: 0 })
    }

    /// Fails if the whole budget cannot hold an engine for such pairs; nothing is allocated.
    pub fn check_memory(
        params: &Params,
        pairs: &PairSpec,
        options: CpuOptions,
    ) -> anyhow::Result<()> {
        let (width, height) = pairs.size;
        let fewest = CpuOptions { costs_anew: true, ..options };
        let needed = Self::estimate(params, width, height, fewest)?.host;
        Ok(Budget::of_process().check_alone(in_words(params, pairs), needed, CURE)?)
    }

    /// Adjusts the options to `left` bytes: costs are recomputed if they do not fit, or beyond a gigabyte.
    pub fn options_within(
        left: u64,
        params: &Params,
        (width, height): (usize, usize),
        options: CpuOptions,
    ) -> anyhow::Result<CpuOptions> {
        let keeping = Self::estimate(params, width, height, options)?.host;
        Ok(CpuOptions { costs_anew: options.costs_anew || keeping > left.min(KEEPING), ..options })
    }

    /// Computes the disparity of a pair of the engine's size, its confidence if requested, and the time of
    /// each stage. `prior`: its prior map; `thresholds`: noise thresholds, `None` to measure them. `goes_on`: whether it continues
    /// the previous pair.
    fn compute(
        &mut self,
        eyes: [&Image; 2],
        prior: Option<&DisparityMap>,
        thresholds: Option<&[u32]>,
        goes_on: bool,
    ) -> anyhow::Result<(DisparityMap, Option<Image>, Vec<StageTime>)> {
        let (width, height) = self.size;
        let mut values = self.pool.try_take(width * height)?;
        let output = values.as_mut_ptr();
        let (levels, team) = (&mut self.levels, &mut self.team);
        let mut run = |team: &mut Team, round: Option<InformationRound<'_>>| {
            let inputs = PairInputs { thresholds, goes_on, round, unfiltered: None, prior };
            // SAFETY: the maps have a value a pixel, and the simd was found on this machine.
            unsafe { level::run(levels, team, eyes, inputs, output) }
        };
        let stages = match &mut self.information {
            None => run(team, None)?,
            Some(information) => {
                let mut stages = Vec::new();
                for left in (0..information.begin_pair(goes_on)).rev() {
                    let began = Instant::now();
                    information.learn(team, eyes);
                    add_time(&mut stages, (NAME, began.elapsed()));
                    let map = Some(information.next_map());
                    let round =
                        InformationRound { table: information.table(), map, last: left == 0 };
                    let times = run(team, Some(round))?;
                    times.into_iter().for_each(|time| add_time(&mut stages, time));
                    information.end_round();
                }
                stages
            }
        };
        let confidence = match self.levels[0].filters.confidence() {
            Some(filter) => {
                let mut confidence = self.confidences.try_take(width * height)?;
                confidence.copy_from_slice(filter.confidence());
                Some(Image::new(width, height, confidence))
            }
            None => None,
        };
        Ok((DisparityMap::new(width, height, self.params.range, values), confidence, stages))
    }

    /// Matches a pair, raw or rectified, for [`Engine::collect`]. `thresholds`: as in [`CpuEngine::compute`];
    /// `of_stream`: whether it may continue the previous pair.
    fn take(
        &mut self,
        pair: StereoPair,
        thresholds: Option<&[u32]>,
        of_stream: bool,
    ) -> anyhow::Result<()> {
        let turn = self.seat.turn();
        let mut host = std::mem::take(&mut self.host);
        let taken = host.run(|| {
            match &self.rectify {
                Some(rectify) => rectify.check_size(&pair)?,
                None => check_size(&pair, self.size)?,
            }
            if self.finished.is_some() {
                bail!("the CPU engine holds one pair at a time; collect it before the next");
            }
            let submitted = Instant::now();
            let (mut stages, mut pair) = (Vec::new(), pair);
            stages.extend(turn.as_ref().map(|turn| (TURN, turn.waited)));
            if let Some(rectify) = &self.rectify {
                pair = rectify.run(&mut self.team, self.simd, pair)?;
                stages.push((RECTIFY, submitted.elapsed()));
            }
            let goes_on = of_stream
                && self.params.keeps_state()
                && self.continuity.goes_on(pair.timestamp, Thumbnail::of(&pair.left));
            let eyes = [&pair.left, &pair.right];
            let began = Instant::now();
            let passed = match &mut self.temporal {
                Some(stage) => Some(stage.run(&mut self.team, self.simd, eyes, goes_on)?),
                None => None,
            };
            if passed.is_some() {
                stages.push((temporal::NAME, began.elapsed()));
            }
            let denoised = passed.as_ref().and_then(|passed| passed.denoised.as_ref());
            let eyes = denoised.map_or(eyes, |eyes| eyes.each_ref());
            let prior = prior_of(&pair, prior_map_size(&self.params, self.size))?;
            let (disparity, confidence, of_matching) =
                self.compute(eyes, prior, thresholds, goes_on)?;
            stages.extend(of_matching);
            let report = passed.as_ref().map(|passed| passed.report);
            let whitened = passed.and_then(|passed| passed.whitened);
            self.finished = Some(Matched {
                confidence,
                whitened,
                temporal: report,
                geometry: self.depth_from,
                submitted,
                stages,
                ..Matched::new(pair, disparity)
            });
            Ok(())
        });
        self.host = host;
        taken
    }
}

fn in_words(params: &Params, pairs: &PairSpec) -> String {
    let ((width, height), count) = (pairs.size, params.range.count);
    format!("matching {width}x{height} at {count} disparities")
}

/// The parts of an engine that take memory.
struct Parts {
    levels: Vec<Level>,
    information: Option<Information>,
    temporal: Option<TemporalStage>,
}

impl Parts {
    fn new(
        arena: &Arena,
        params: &Params,
        size: (usize, usize),
        (simd, threads): (Simd, usize),
        options: CpuOptions,
    ) -> Result<Self> {
        let temporal = params.temporal.map(|how| TemporalStage::new(arena, how, size, threads));
        let levels = levels(params, size).into_iter();
        let levels = levels.map(|(params, size)| {
            Level::new(arena, params, size, simd, threads, options.costs_anew)
        });
        Ok(Self {
            levels: levels.collect::<Result<_, _>>()?,
            information: Information::new(arena, params, size, threads)?,
            temporal: temporal.transpose()?,
        })
    }
}

impl Engine for CpuEngine {
    fn description(&self) -> String {
        let threads = self.team.len();
        let plural = if threads == 1 { "" } else { "s" };
        format!("CPU ({}, {threads} thread{plural}{})", self.simd, self.placement)
    }

    fn depth(&self) -> usize {
        1
    }

    fn submit(&mut self, pair: StereoPair) -> anyhow::Result<()> {
        self.take(pair, None, true)
    }

    fn collect(&mut self) -> anyhow::Result<Option<Matched>> {
        Ok(self.finished.take())
    }

    fn take_history(&mut self) -> anyhow::Result<History> {
        let continuity = std::mem::take(&mut self.continuity);
        let mut states = self.levels[0].filters.take_states();
        let state = self.information.as_mut().and_then(Information::take_state);
        states.extend(state.map(|state| (NAME, state)));
        let state = self.temporal.as_mut().and_then(TemporalStage::take_state);
        states.extend(state.map(|state| (temporal::NAME, state)));
        Ok(History { continuity, size: self.size, states, odometer: None })
    }

    fn resume(&mut self, history: History) -> anyhow::Result<()> {
        self.continuity = history.continuity;
        // Filter states of another size are dropped.
        let states = if history.size == self.size { history.states } else { BTreeMap::new() };
        self.levels[0].filters.resume(&states);
        if let Some(information) = &mut self.information {
            information.resume(states.get(NAME));
        }
        if let Some(stage) = &mut self.temporal {
            stage.resume(states.get(temporal::NAME));
        }
        Ok(())
    }
}

impl TileEngine for CpuEngine {
    fn submit_tile(&mut self, pair: StereoPair, thresholds: Option<&[u32]>) -> anyhow::Result<()> {
        check_thresholds(thresholds, self.levels.len())?;
        self.take(pair, thresholds, false)
    }
}

#[cfg(test)]
mod tests;
