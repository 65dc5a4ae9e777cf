//! Stages over whole images that are matched in tiles: the noise thresholds before the tiles, and
//! the filters that go over the map which was put together of them.

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
use crate::core::frame::{Image, StageTime};
use crate::core::memory::Refused;
use crate::matching::history::State;
use crate::matching::tiles::TileLayout;
use crate::matching::{Params, tiles};

/// Measures whole images of one size and filters their maps, with memory of its own.
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
    /// For images of this layout, with those filters of the parameters that tiles leave out
    /// ([`tiles::of_whole`]).
    pub fn new(params: &Params, layout: &TileLayout, options: CpuOptions) -> anyhow::Result<Self> {
        let (params, size) = (tiles::of_whole(params), layout.size);
        let (simd, team, host) = options.start_team()?;
        let (noise, filters, temporal) = Self::parts(&Arena::new(), &params, layout, team.len())?;
        Ok(Self { params, size, noise, filters, temporal, simd, team, host })
    }

    /// Memory in bytes that it takes.
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
    ) -> Result<(Option<Noise>, Filters, Option<TemporalStage>), Refused> {
        let noise = Noise::new(arena, params, layout.size.0, layout.window, threads)?;
        let filters = Filters::new(arena, params, layout.size, threads)?;
        let temporal = |how| TemporalStage::new(arena, how, layout.size, threads);
        Ok((noise, filters, params.temporal.map(temporal).transpose()?))
    }

    /// Passes a pair through the spatio-temporal stage; `None` if there is none. `goes_on`:
    /// whether it follows the one before in its stream.
    pub fn pass(&mut self, eyes: [&Image; 2], goes_on: bool) -> Result<Option<Passed>, Refused> {
        let (team, simd) = (&mut self.team, self.simd);
        let Some(stage) = &mut self.temporal else { return Ok(None) };
        self.host.run(|| stage.run(team, simd, eyes, goes_on)).map(Some)
    }

    /// The noise thresholds of the tiles of this left image, the finest level first; `None` where
    /// nothing follows them. The values of the map, of which none is there yet, are overwritten:
    /// images of half the size lie in them for a while.
    ///
    /// # Panics
    /// If map or image have not the size.
    pub fn thresholds(&mut self, left: &Image, values: &mut [i16]) -> Option<Vec<u32>> {
        self.noise.as_ref()?;
        self.check(left, values);
        let Self { noise, team, simd, host, .. } = self;
        let room = bytemuck::cast_slice_mut(values);
        noise.as_ref().map(|noise| host.run(|| noise.thresholds(team, *simd, left, room)))
    }

    /// Invalidates values that the left camera has not seen, or whose match the right one has not.
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

    /// Removes from a map of the left image what no evidence supports, smooths it in time and fills
    /// its holes, as the parameters ask for; the time that each filter took. `threshold`: the noise
    /// threshold of the image. `sure`: how sure each pixel is, if that is asked for. `goes_on`:
    /// whether the map follows the one before in its stream.
    ///
    /// # Panics
    /// If map or image have not the size.
    pub fn filter(
        &mut self,
        values: &mut [i16],
        sure: Option<&mut [u8]>,
        left: &Image,
        threshold: u32,
        goes_on: bool,
    ) -> Vec<StageTime> {
        let mut host = std::mem::take(&mut self.host);
        let times = host.run(|| self.filter_here(values, sure, left, threshold, goes_on));
        self.host = host;
        times
    }

    /// [`WholeMap::filter`] on the calling thread.
    fn filter_here(
        &mut self,
        values: &mut [i16],
        sure: Option<&mut [u8]>,
        left: &Image,
        threshold: u32,
        goes_on: bool,
    ) -> Vec<StageTime> {
        self.check(left, values);
        assert!(sure.as_ref().is_none_or(|sure| sure.len() == values.len()), "a number a pixel");
        self.filters.begin_map(goes_on);
        let mut timer = StageTimer::begin();
        let (size, simd, team) = (self.size, self.simd, &mut self.team);
        let mut pass = Pass { size, left, threshold, simd, team };
        let sure = sure.map(<[u8]>::as_mut_ptr);
        let input = self.filters.input(0, values.as_mut_ptr());
        // SAFETY: map, confidence and inputs of filters have the size, and inputs lie apart from
        // the map; the simd was found on this machine.
        unsafe {
            if input != values.as_mut_ptr() {
                input.copy_from_nonoverlapping(values.as_ptr(), values.len());
            }
            self.filters.run(&mut pass, values.as_mut_ptr(), sure, &mut timer);
        }
        self.filters.end_map();
        timer.into_stages()
    }

    fn check(&self, left: &Image, values: &[i16]) {
        assert_eq!((left.width(), left.height()), self.size, "size of the left picture");
        assert_eq!(values.len(), self.size.0 * self.size.1, "values of the map");
    }

    /// Takes the states of the filters, by their names; the filters restart.
    pub fn take_states(&mut self) -> BTreeMap<&'static str, State> {
        let mut states = self.filters.take_states();
        let state = self.temporal.as_mut().and_then(TemporalStage::take_state);
        states.extend(state.map(|state| (temporal::NAME, state)));
        states
    }

    /// Takes over what filters of these names remember of the stream.
    pub fn resume(&mut self, states: &BTreeMap<&'static str, State>) {
        self.filters.resume(states);
        if let Some(stage) = &mut self.temporal {
            stage.resume(states.get(temporal::NAME));
        }
    }
}
