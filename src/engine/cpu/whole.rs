//! The filters that go over a whole map which was put together of tiles.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::Instant;

use super::filter::{Filters, Pass, valid_mask};
use super::options::CpuOptions;
use super::schedule::Output;
use super::simd::{Kernel, Lanes, Simd};
use super::team::{Barrier, Team};
use crate::frame::{Image, StageTime};
use crate::matching::filter::State;
use crate::matching::{Params, tiles};

/// Filters whole maps of one size, with memory of its own.
pub struct WholeMap {
    params: Params,
    size: (usize, usize),
    filters: Filters,
    simd: Simd,
    team: Team,
    barrier: Barrier,
}

impl WholeMap {
    /// For maps of this size, with those filters of the parameters that tiles leave out
    /// ([`tiles::of_whole`]).
    ///
    /// # Errors
    /// No threads, vector instructions that the machine lacks, a system that refuses a thread, or no memory.
    pub fn new(params: &Params, size: (usize, usize), options: CpuOptions) -> anyhow::Result<Self> {
        let params = tiles::of_whole(params);
        let (simd, team) = options.crew()?;
        let filters = Filters::new(&params, size, team.len())?;
        Ok(Self { params, size, filters, simd, team, barrier: Barrier::default() })
    }

    /// Memory in bytes that the filters of such maps take.
    ///
    /// # Errors
    /// No threads, or vector instructions that the machine lacks.
    pub fn bytes_of(
        params: &Params,
        size: (usize, usize),
        options: CpuOptions,
    ) -> anyhow::Result<u64> {
        let (_, threads) = options.hands()?;
        Ok(Filters::bytes_of(&tiles::of_whole(params), size, threads))
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

    /// Smooths a map of the left picture in time and fills its holes, as the parameters ask for; the time that
    /// each filter took. `goes_on`: whether the map follows the one before in its stream.
    ///
    /// # Panics
    /// Where map or picture have not the size.
    pub fn filter(&mut self, values: &mut [i16], left: &Image, goes_on: bool) -> Vec<StageTime> {
        let size = self.size;
        assert_eq!((left.width(), left.height()), size, "size of the left picture");
        assert_eq!(values.len(), size.0 * size.1, "values of the map");
        self.filters.begin_map(goes_on);
        self.barrier.reset();
        let (filters, barrier, simd) = (&self.filters, &self.barrier, self.simd);
        let (watch, threads) = (self.team.watch(), self.team.len());
        let (output, times) = (Output(values.as_mut_ptr()), Mutex::new(vec![Instant::now()]));
        self.team.run(&|thread| {
            let mut round = 0;
            let mut wait = || {
                round += 1;
                barrier.wait(&watch, threads, round);
            };
            let times = (thread == 0).then_some(&times);
            let pass = Pass { size, left, thread, threads, wait: &mut wait };
            let output = &output;
            // SAFETY: the map has the size, every thread makes the same pass, and none of these filters has an
            // input of its own; the simd was found on this machine.
            unsafe { simd.vectorize(Share { filters, pass, output: output.0, times }) };
        });
        self.filters.end_map();
        let times = times.into_inner().unwrap_or_else(|e| e.into_inner());
        let names = self.filters.names();
        names.zip(times.windows(2)).map(|(name, mark)| (name, mark[1] - mark[0])).collect()
    }

    /// What the filters remember, by their names; they begin anew.
    pub fn take_states(&mut self) -> BTreeMap<&'static str, State> {
        self.filters.take_states()
    }

    /// Takes over what filters of these names remember of the stream.
    pub fn resume(&mut self, states: &BTreeMap<&'static str, State>) {
        self.filters.resume(states);
    }
}

/// A thread's share of the filters.
struct Share<'a> {
    filters: &'a Filters,
    pass: Pass<'a>,
    output: *mut i16,
    /// When each filter was done; one thread writes it.
    times: Option<&'a Mutex<Vec<Instant>>>,
}

impl Kernel for Share<'_> {
    #[inline(always)]
    unsafe fn run<V: Lanes>(mut self) {
        let mark = || {
            if let Some(times) = self.times {
                times.lock().unwrap_or_else(|e| e.into_inner()).push(Instant::now());
            }
        };
        // SAFETY: the promise of whoever made the share.
        unsafe { self.filters.run::<V>(&mut self.pass, self.output, mark) };
    }
}
