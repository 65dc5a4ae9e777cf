//! The cost table of [`crate::matching::mutual_information`], learnt by all threads.

use std::sync::Mutex;

use super::memory::Arena;
use super::team::Team;
use crate::frame::Image;
use crate::matching::history::State;
use crate::matching::mutual_information::{
    LEVELS, Marginal, ROUNDS, beginnings, cost_row, count_row, count_row_by, joint_row,
};
use crate::matching::{Cost, Params};
use crate::memory::Result;
use crate::thread::locked;

const CELLS: usize = LEVELS * LEVELS;

/// State of mutual information for a stream, and the memory to estimate its table.
pub struct Information {
    truncation: u8,
    /// Initial disparities.
    beginnings: [i32; 4],
    /// The map so far.
    map: Vec<i32>,
    /// Whether `map` is valid: of this pair or of the previous one in the stream.
    known: bool,
    /// Joint histogram of grey levels, per thread.
    counts: Vec<Mutex<Vec<u32>>>,
    logarithms: Vec<i32>,
    table: Vec<u8>,
}

impl Information {
    /// Allocates for images of this size and this many threads; `None` for another cost.
    pub fn new(
        arena: &Arena,
        params: &Params,
        size: (usize, usize),
        threads: usize,
    ) -> Result<Option<Self>> {
        let Cost::MutualInformation { truncation } = params.cost else { return Ok(None) };
        Ok(Some(Self {
            truncation,
            beginnings: beginnings(params.range),
            map: arena.filled(size.0 * size.1, 0)?,
            known: false,
            counts: arena.per_thread(threads, || arena.filled(CELLS, 0))?,
            logarithms: arena.filled(CELLS, 0)?,
            table: arena.filled(CELLS, 0)?,
        }))
    }

    /// Prepares for the next pair; `goes_on` if it continues the stream. Returns the number of rounds.
    pub fn begin_pair(&mut self, goes_on: bool) -> usize {
        self.known &= goes_on;
        if self.known { 1 } else { ROUNDS }
    }

    /// Returns the memory for the next map. The last map, from which the table was learnt, becomes invalid.
    pub fn next_map(&mut self) -> *mut i32 {
        self.known = false;
        self.map.as_mut_ptr()
    }

    pub fn end_round(&mut self) {
        self.known = true;
    }

    /// The table, [left level][right level].
    pub fn table(&self) -> &[u8] {
        &self.table
    }

    pub fn learn(&mut self, team: &mut Team, [left, right]: [&Image; 2]) {
        let (threads, height, width) = (team.len(), left.height(), left.width());
        let Self { counts, map, logarithms, table, truncation, beginnings, known, .. } = self;
        let counts_of = |thread: usize| locked(&counts[thread]);
        (0..threads).for_each(|thread| counts_of(thread).fill(0));
        team.rows(height, |thread, rows| {
            let mut counts = counts_of(thread);
            for y in rows {
                let (left, right) = (left.row(y), right.row(y));
                match *known {
                    true => count_row(left, right, &map[y * width..][..width], &mut counts),
                    false => count_row_by(left, right, beginnings, &mut counts),
                }
            }
        });
        let mut sums = counts_of(0);
        for thread in 1..threads {
            let others = counts_of(thread);
            sums.iter_mut().zip(&*others).for_each(|(sum, &count)| *sum += count);
        }
        let counts = &*sums;
        by_level(team, logarithms, |i, row| row.copy_from_slice(&joint_row(counts, i)));
        let (logarithms, marginal) = (&*logarithms, Marginal::of(counts));
        by_level(team, table, |i, row| {
            row.copy_from_slice(&cost_row(logarithms, &marginal, i, *truncation));
        });
    }

    /// Takes the map of the newest pair, if there is one; the stream restarts.
    pub fn take_state(&mut self) -> Option<State> {
        std::mem::take(&mut self.known).then(|| self.map.clone())
    }

    pub fn resume(&mut self, state: Option<&State>) {
        let state = state.filter(|state| state.len() == self.map.len());
        self.known = state.is_some();
        state.iter().for_each(|state| self.map.copy_from_slice(state));
    }
}

/// Fills a table, [left level][right level], row by row with the team.
fn by_level<T: Send>(team: &mut Team, table: &mut [T], row: impl Fn(usize, &mut [T]) + Sync) {
    let rows: Vec<_> = table.chunks_exact_mut(LEVELS).map(Mutex::new).collect();
    team.share(rows.len(), &|_, levels| {
        for i in levels {
            row(i, &mut locked(&rows[i]));
        }
    });
}
