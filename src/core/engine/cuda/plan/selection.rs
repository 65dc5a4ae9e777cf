//! The stage `select_disparities`: winner takes all in both views, with the uniqueness check. The same
//! kernels do `refine_subpixel` (`kernels/disparity.cuh`), because they have the sums around a winner.

use super::super::geometry::{PLAIN_WARPS, SEGMENT, WARP};
use super::super::launch::{Arg, BufferId};
use super::aggregation::Aggregated;
use super::builder::Builder;

/// Stage in timing reports, if the sums of the whole picture are stored.
const WINNER: &str = "winner";

impl Builder<'_> {
    /// Selects the candidate with the least sum for each pixel of the left view and, for the left-right
    /// check, of the right one.
    pub fn select_disparities(&mut self, aggregated: Aggregated) -> anyhow::Result<()> {
        match aggregated {
            Aggregated::Whole(sums) => self.select_from_sums(sums),
            Aggregated::ToMiddle(sweeps) => self.sweep_and_select(&sweeps)?,
        }
        Ok(())
    }

    /// Selects from sums of the whole picture (`kernels/select_disparities.cu`).
    fn select_from_sums(&mut self, sums: BufferId) {
        let [width, height] = self.size();
        let kernel = self.kernel("select_disparities", "select_disparities");
        let args = vec![
            Arg::Buffer(sums),
            width,
            height,
            Arg::Buffer(self.winners),
            Arg::Buffer(self.peaks),
            Arg::Buffer(self.right),
        ];
        let grid = [self.width.div_ceil(SEGMENT), self.height];
        self.launch(WINNER, kernel, grid, [WARP * PLAIN_WARPS, 1], args);
    }
}
