//! Stages over whole images that are matched in tiles.

use std::collections::BTreeMap;

use super::filter::{Filters, Pass, valid_mask};
use super::memory::Arena;
use super::noise::Noise;
use super::options::CpuOptions;
use super::placement::Host;
use super::simd::Simd;
use super::stage_timer::StageTimer;
use super::team::Team;
use super::temporal::{self, Passed, TemporalStage};
use crate::frame::{DisparityMap, Image, StageTime};
use crate::matching::history::State;
use crate::matching::tiles::TileLayout;
use crate::matching::{Params, tiles};
use crate::memory::Result;

/// Measures whole images of one size and filters their maps; owns the memory for it.
pub struct WholeMap {
    params: Params,
    size: (usize, usize),
    noise: Option<Noise>,
    filters: Filters,
    temporal: Option<TemporalStage>,
    simd: Simd,
    team: Team,
    host: Host,
}

impl WholeMap {
    pub fn new(params: &Params, layout: &TileLayout, options: CpuOptions) -> anyhow::Result<Self> {
        let (params, size) = (tiles::of_whole(params), layout.size);
        let (simd, team, host) = options.start_team()?;
        let (noise, filters, temporal) = Self::parts(&Arena::new(), &params, layout, team.len())?;
        Ok(Self { params, size, noise, filters, temporal, simd, team, host })
    }

    /// Estimates its memory in bytes.
    pub fn bytes_of(
        params: &Params,
        layout: &TileLayout,
        options: CpuOptions,
    ) -> anyhow::Result<u64> {
        let (_, threads) = options.simd_and_threads()?;
        let arena = Arena::dry();
        Self::parts(&arena, &tiles::of_whole(params), layout, threads)?;
        Ok(arena.bytes())
    }

    fn parts(
        arena: &Arena,
        params: &Params,
        layout: &TileLayout,
        threads: usize,
    ) -> Result<(Option<Noise>, Filters, Option<TemporalStage>)> {
        let noise = Noise::new(arena, params, layout.size.0, layout.window, threads)?;
        let filters = Filters::new(arena, params, layout.size, threads)?;
        let temporal = |how| TemporalStage::new(arena, how, layout.size, threads);
        Ok((noise, filters, params.temporal.map(temporal).transpose()?))
    }

    /// Passes a pair through the spatio-temporal stage; `None` if there is none. `goes_on`: whether it
    /// continues the previous pair of its stream.
    pub fn pass(&mut self, eyes: [&Image; 2], goes_on: bool) -> Result<Option<Passed>> {
        let (team, simd) = (&mut self.team, self.simd);
        let Some(stage) = &mut self.temporal else { return Ok(None) };
        self.host.run(|| stage.run(team, simd, eyes, goes_on)).map(Some)
    }

    /// Measures the noise thresholds of this left image for its tiles, the finest level first; `None` if they
    /// are not needed. The map's `values`, not computed yet, serve as scratch memory for the half-size
    /// images.
    ///
    /// # Panics
    /// If map or image do not have the size.
    pub fn thresholds(&mut self, left: &Image, values: &mut [i16]) -> Option<Vec<u32>> {
        self.noise.as_ref()?;
        self.check(left, values);
        let Self { noise, team, simd, host, .. } = self;
        let room = bytemuck::cast_slice_mut(values);
        noise.as_ref().map(|noise| host.run(|| noise.thresholds(team, *simd, left, room)))
    }

    /// Invalidates pixels outside the left valid mask, or with a match outside the right one.
    pub fn hide_unseen(&self, values: &mut [i16], [left, right]: [&Image; 2]) {
        let masks = [left, right].map(Image::valid_mask);
        if masks.iter().all(Option::is_none) {
            return;
        }
        let range = self.params.range;
        let mut winners = vec![0u16; self.size.0];
        for (y, row) in values.chunks_exact_mut(self.size.0).enumerate() {
            for (winner, &value) in winners.iter_mut().zip(&*row) {
                *winner = tiles::winner(value, range) as u16;
            }
            valid_mask::apply(row, &winners, range.min, masks.map(|mask| mask.map(|m| m.row(y))));
        }
    }

    /// Applies the filters of the whole map and returns the time of each. `threshold`: the noise threshold of
    /// the image. `prior`: the pair's prior map. `sure`: confidence of each pixel, if requested. `goes_on`:
    /// whether the map continues the previous one of its stream.
    ///
    /// # Panics
    /// If map or image do not have the size.
    pub fn filter(
        &mut self,
        values: &mut [i16],
        sure: Option<&mut [u8]>,
        left: &Image,
        prior: Option<&DisparityMap>,
        threshold: u32,
        goes_on: bool,
    ) -> Vec<StageTime> {
        self.check(left, values);
        assert!(sure.as_ref().is_none_or(|sure| sure.len() == values.len()), "a number a pixel");
        self.filters.begin_map(goes_on);
        let Self { size, simd, team, host, filters, .. } = self;
        let timer = host.run(|| {
            let mut timer = StageTimer::begin();
            let mut pass = Pass { size: *size, left, threshold, prior, simd: *simd, team };
            let sure = sure.map(<[u8]>::as_mut_ptr);
            let input = filters.input(0, values.as_mut_ptr());
            // SAFETY: map, confidence and filter inputs have the size, and inputs are separate from the map;
            // the simd was found on this machine.
            unsafe {
                if input != values.as_mut_ptr() {
                    input.copy_from_nonoverlapping(values.as_ptr(), values.len());
                }
                filters.run(&mut pass, values.as_mut_ptr(), sure, &mut timer);
            }
            timer
        });
        self.filters.end_map();
        timer.into_stages()
    }

    fn check(&self, left: &Image, values: &[i16]) {
        assert_eq!((left.width(), left.height()), self.size, "size of the left picture");
        assert_eq!(values.len(), self.size.0 * self.size.1, "values of the map");
    }

    /// Takes the states of the filters, by their names; the filters then restart.
    pub fn take_states(&mut self) -> BTreeMap<&'static str, State> {
        let mut states = self.filters.take_states();
        let state = self.temporal.as_mut().and_then(TemporalStage::take_state);
        states.extend(state.map(|state| (temporal::NAME, state)));
        states
    }

    pub fn resume(&mut self, states: &BTreeMap<&'static str, State>) {
        self.filters.resume(states);
        if let Some(stage) = &mut self.temporal {
            stage.resume(states.get(temporal::NAME));
        }
    }
}
