//! One level of the pyramid: the parameters and the memory for images of one size. Most engines have one
//! level; with a prior there is one more per coarser size.

use std::sync::Mutex;

use super::buffers::{Scratch, Shared};
use super::features::Features;
use super::filter::Filters;
use super::frame::{Frame, InformationRound, Output};
use super::geometry::Geometry;
use super::memory::{Arena, Block};
use super::mirrored_rows::Stripes;
use super::prepare::{Prepare, Prepared, TEXTURE};
use super::simd::Simd;
use super::stage_timer::StageTimer;
use super::team::Team;
use super::windows::Tiles;
use crate::frame::{DisparityMap, DisparityRange, Image, StageTime};
use crate::matching::levels::coarser;
use crate::matching::prior::{limits, replace};
use crate::matching::{Params, windows};
use crate::memory::{Refused, product};

/// Matches pairs of one size with one set of parameters.
pub struct Level {
    params: Params,
    /// Vectors of its candidates.
    simd: Simd,
    geometry: Geometry,
    features: Features,
    p2: [u8; 256],
    shared: Shared,
    scratches: Vec<Mutex<Scratch>>,
    prepare: Prepare,
    pub filters: Filters,
    windows: Option<Windows>,
}

/// Memory of range windows.
struct Windows {
    /// The map of the coarser level before its filters.
    unfiltered: Block<i16>,
    tiles: Tiles,
}

impl Level {
    /// Makes the level for images of this size, with all its memory. `costs_anew`: whether every sweep
    /// computes the costs.
    pub fn new(
        arena: &Arena,
        params: Params,
        size: (usize, usize),
        simd: Simd,
        threads: usize,
        costs_anew: bool,
    ) -> Result<Self, Refused> {
        let prepare = Prepare::new(arena, &params, size, threads, simd)?;
        let simd = simd.for_candidates(params.range.count);
        let lanes = simd.lanes();
        let geometry = Geometry::new(&params, size, lanes, costs_anew);
        let features = Features::new(params.cost);
        let scratch = || Scratch::new(arena, &geometry, &params, &features);
        let scratches = arena.per_thread(threads, scratch)?;
        Ok(Self {
            p2: params.p2_mode.table(params.p1, params.p2),
            shared: Shared::new(arena, &geometry, &params, &features, threads)?,
            prepare,
            filters: Filters::new(arena, &params, size, threads)?,
            windows: match coarser(&params, size).filter(|_| geometry.windowed) {
                Some((_, (width, height))) => {
                    arena.count(windows::bytes(size, params.range));
                    let unfiltered = arena.block(product([width, height]))?;
                    Some(Windows { unfiltered, tiles: Tiles::new(arena, size, lanes) })
                }
                None => None,
            },
            scratches,
            features,
            geometry,
            simd,
            params,
        })
    }

    /// Matches the half-size pair on the coarser levels, for the prior and the windows of this one.
    ///
    /// # Safety
    /// As [`run`].
    unsafe fn match_coarser(
        &mut self,
        coarser: &mut [Level],
        team: &mut Team,
        eyes: [&Image; 2],
        PairInputs { thresholds, round, prior, .. }: PairInputs<'_>,
        timer: &mut StageTimer,
    ) -> Result<(), Refused> {
        let (false, Some(map)) = (coarser.is_empty(), self.prepare.coarse_map()) else {
            return Ok(());
        };
        let [left, right] = eyes;
        let halves = [self.prepare.half(team, left)?, self.prepare.half(team, right)?];
        timer.end("pyramid");
        let inputs = PairInputs {
            thresholds: thresholds.map(|all| &all[1..]),
            goes_on: false,
            round: round.map(|round| InformationRound { map: None, last: true, ..round }),
            unfiltered: self.windows.as_ref().map(|windows| Output(windows.unfiltered.ptr())),
            prior: None,
        };
        // SAFETY: the map has the coarser level's size, and is only read after that level is done.
        unsafe { run(coarser, team, halves.each_ref(), inputs, map)? };
        if let Some(given) = prior {
            let given = given.values();
            // SAFETY: as above; the prior map was checked to have that level's size.
            let map = unsafe { std::slice::from_raw_parts_mut(map, given.len()) };
            replace(map, given, limits(coarser[0].params.range));
        }
        timer.end("prior");
        if let (Some(windows), Some(coarse)) = (&mut self.windows, self.prepare.coarse()) {
            windows.choose(coarse.values, self.params.range);
            timer.end("windows");
        }
        Ok(())
    }

    fn stripes(&self) -> Stripes {
        Stripes::of(&self.geometry, self.shared.starts.ptr())
    }
}

impl Windows {
    /// Chooses the candidates of the next pair from the coarser level's map.
    fn choose(&mut self, coarse: &[i16], range: DisparityRange) {
        // SAFETY: the coarser level has written all of its values.
        let unfiltered = unsafe { self.unfiltered.all(coarse.len()) };
        let size = self.tiles.size;
        self.tiles.set(&windows::Windows::of(coarse, unfiltered, size, range), range.count);
    }
}

/// Per-pair inputs in addition to the images: noise thresholds, continuity, cost table.
#[derive(Clone, Copy)]
pub struct PairInputs<'a> {
    /// Noise thresholds of the levels; `None` to measure them.
    pub thresholds: Option<&'a [u32]>,
    /// Whether it continues the previous pair of its stream.
    pub goes_on: bool,
    /// The cost table of mutual information, if that is the cost.
    pub round: Option<InformationRound<'a>>,
    /// Takes the map before its filters, for the windows of a finer level.
    pub unfiltered: Option<Output>,
    /// Replaces the map of the coarser level where it is known, and may fill holes; of that level's size.
    pub prior: Option<&'a DisparityMap>,
}

/// Matches a pair on the first level, which has its size, with the prior from the others. Returns the time of
/// each stage.
///
/// # Safety
/// `output` has room for one value per pixel, and no other thread accesses it; the simd was found on this
/// machine.
pub unsafe fn run(
    levels: &mut [Level],
    team: &mut Team,
    [left, right]: [&Image; 2],
    inputs: PairInputs<'_>,
    output: *mut i16,
) -> Result<Vec<StageTime>, Refused> {
    let (level, coarser) = levels.split_first_mut().expect("an engine has at least one level");
    let mut timer = StageTimer::begin();
    let PairInputs { thresholds, goes_on, round, unfiltered, prior } = inputs;
    // SAFETY: the caller's promise.
    unsafe { level.match_coarser(coarser, team, [left, right], inputs, &mut timer)? };
    let threshold = thresholds.map(|all| all[0]);
    let Prepared { guide, threshold } =
        level.prepare.run(team, left, threshold, &level.geometry, &level.params)?;
    if guide.is_some() || level.params.follows_noise() {
        timer.end(TEXTURE);
    }

    level.shared.begin_frame();
    // The next round uses unfiltered winners.
    let none = Filters::default();
    let unfinished = round.is_some_and(|round| !round.last);
    if !unfinished {
        level.filters.begin_map(goes_on);
    }
    let filters = if unfinished { &none } else { &level.filters };
    let watch = team.watch();
    let frame = Frame {
        geometry: &level.geometry,
        params: &level.params,
        features: &level.features,
        p2: &level.p2,
        left,
        right,
        guide: guide.as_ref().unwrap_or(left),
        support: level.prepare.support(),
        threshold,
        prior,
        windows: level.windows.as_ref().map(|windows| windows.tiles.view(level.stripes())),
        unfiltered,
        round,
        shared: &level.shared,
        scratches: &level.scratches,
        filters,
        watch: &watch,
        output: Output(output),
    };
    frame.run(level.simd, team, &mut timer);
    if !unfinished {
        level.filters.end_map();
    }
    Ok(timer.into_stages())
}
