//! Mutual information: rounds of learning the cost table (`kernels/mutual_information.cu`).

use super::super::geometry::{BLOCK_THREADS, COUNT_RUN};
use super::super::job::Job;
use super::super::launch::{Arg, BufferId, Chain, Lane, Launch, Plan, Scope, Step};
use crate::matching::mutual_information::{LEVELS, NAME, ROUNDS};

/// State of the mutual-information cost, shared by the levels of a pair.
#[derive(Clone, Copy)]
pub(super) struct Information {
    /// The costs, [left level][right level].
    pub table: BufferId,
    /// The map for learning the table, kept in the stream's state.
    map: BufferId,
    /// Index of the first step of a round.
    begin: usize,
}

impl Plan {
    /// Begins a round: learns the table from the pictures and the stream's map.
    pub(super) fn learn(&mut self, job: &Job, [left, right]: [BufferId; 2]) -> Information {
        let (width, height) = job.size;
        let cells = LEVELS * LEVELS;
        let map = self.state(NAME, width * height);
        let counts = self.buffer("pairs of grey levels", 4 * cells, Scope::Slot);
        let logarithms = self.buffer("logarithms", 4 * cells, Scope::Slot);
        let marginal = self.buffer("grey levels", 4 * LEVELS, Scope::Slot);
        let table = self.buffer("mutual information", cells, Scope::Slot);
        let begin = self.steps.len();
        let lane = Lane::Main;
        self.steps.push(Step::Memset { stage: NAME, buffer: counts, value: 0, lane });
        let mut launch = |symbol, grid, threads, args: Vec<Arg>| {
            let kernel = self.kernel("mutual_information", symbol);
            self.launch(NAME, kernel, grid, [threads, 1], args).chain =
                (symbol == "count").then_some(Chain::Maps);
        };
        let columns = (width as u32).div_ceil(COUNT_RUN * BLOCK_THREADS);
        let [left, right, map_arg, counts] = [left, right, map, counts].map(Arg::Buffer);
        let args = vec![left, right, map_arg, Arg::I32(width as i32), counts];
        launch("count", [columns, height as u32], BLOCK_THREADS, args);
        let [logarithms, marginal, costs] = [logarithms, marginal, table].map(Arg::Buffer);
        let levels = LEVELS as u32;
        // One block more counts the levels of the right picture.
        launch("joint", [levels + 1, 1], levels, vec![counts, logarithms, marginal]);
        launch("table", [levels, 1], levels, vec![logarithms, marginal, costs]);
        Information { table, map, begin }
    }

    /// Ends a round: stores the checked winners, a map of `pixels` pixels, for the next pair. When the stream
    /// restarts, earlier rounds repeat the same steps.
    pub(super) fn remember(&mut self, of: Information, winners: BufferId, pixels: usize) {
        let Information { map, begin: first, .. } = of;
        let grid = [pixels.div_ceil(BLOCK_THREADS as usize) as u32, 1];
        let remember = self.kernel("mutual_information", "remember");
        let args = vec![Arg::I32(pixels as i32), Arg::Buffer(winners), Arg::Buffer(map)];
        self.launch(NAME, remember, grid, [BLOCK_THREADS, 1], args).chain = Some(Chain::Maps);

        let mut kernel = |symbol| self.kernel("mutual_information", symbol);
        let [count, begin] = ["count", "begin"].map(&mut kernel);
        let round = self.steps.split_off(first);
        self.steps.push(Step::IfAnew(map));
        for number in 1..ROUNDS as u32 {
            let knows_no_map = number == 1;
            self.steps.extend(round.iter().cloned().map(|mut step| {
                if let Step::Launch(launch) = &mut step {
                    if knows_no_map && launch.kernel == count {
                        launch.kernel = begin;
                    }
                    of_round(launch, number);
                }
                step
            }));
        }
        self.steps.push(Step::Always);
        self.steps.extend(round);
    }
}

/// Assigns a launch to an earlier round.
fn of_round(launch: &mut Launch, number: u32) {
    for arg in &mut launch.args {
        if let Arg::Turn(round) = arg {
            *round = number;
        }
    }
}
