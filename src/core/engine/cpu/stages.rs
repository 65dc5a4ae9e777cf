//! One frame on the CPU: the stages in order, specialised for the vectors, the number of candidates and the
//! cost.
//!
//! Costs, paths, disparities and their checks run together, band by band (`schedule.rs`), because a band's
//! data then stays in the cache; without paths, or with 16, as in `local.rs` and `full_volume.rs`.

use super::buffers::Scratch;
use super::cost::BlockCost;
use super::cost_source::{CostSource, CostWriter, PixelWriter, Rows, StoredCosts, WindowWriter};
use super::features::{Destination, PrepareRows, descriptor_bytes};
use super::filter::Pass;
use super::frame::{Frame, Output};
use super::look_up::LookUpCost;
use super::memory::Block;
use super::plane_costs::{CensusCost, CombinedCost};
use super::shape::{Shape, Vectors};
#[cfg(target_arch = "aarch64")]
use super::simd::neon::Neon;
use super::simd::{Simd, portable::Portable};
#[cfg(target_arch = "x86_64")]
use super::simd::{avx2::Avx2, avx512::Avx512};
use super::stage_timer::StageTimer;
use super::steps::StepRows;
use super::team::Team;
use super::window_sums::{Rounding, ToSums, Total};
use super::windowed_costs::WindowedCosts;
use super::zero_mean::{ZeroMeanRows, zero_mean_window};
use crate::matching::Cost;

impl Frame<'_> {
    /// Matches the pair.
    pub fn run(&self, simd: Simd, team: &mut Team, timer: &mut StageTimer) {
        // Common numbers of vectors per pixel are compile-time constants, also at coarser levels.
        match (simd, self.geometry.chunks) {
            #[cfg(target_arch = "x86_64")]
            (Simd::Avx512, 1) => self.run_stages::<Vectors<Avx512, 1, true>>(simd, team, timer),
            #[cfg(target_arch = "x86_64")]
            (Simd::Avx512, 2) => self.run_stages::<Vectors<Avx512, 2, true>>(simd, team, timer),
            #[cfg(target_arch = "x86_64")]
            (Simd::Avx512, _) => self.run_stages::<Vectors<Avx512, 16, false>>(simd, team, timer),
            #[cfg(target_arch = "x86_64")]
            (Simd::Avx2, 1) => self.run_stages::<Vectors<Avx2, 1, true>>(simd, team, timer),
            #[cfg(target_arch = "x86_64")]
            (Simd::Avx2, 2) => self.run_stages::<Vectors<Avx2, 2, true>>(simd, team, timer),
            #[cfg(target_arch = "x86_64")]
            (Simd::Avx2, 4) => self.run_stages::<Vectors<Avx2, 4, true>>(simd, team, timer),
            #[cfg(target_arch = "x86_64")]
            (Simd::Avx2, _) => self.run_stages::<Vectors<Avx2, 32, false>>(simd, team, timer),
            #[cfg(target_arch = "aarch64")]
            (Simd::Neon, 1) => self.run_stages::<Vectors<Neon, 1, true>>(simd, team, timer),
            #[cfg(target_arch = "aarch64")]
            (Simd::Neon, 2) => self.run_stages::<Vectors<Neon, 2, true>>(simd, team, timer),
            #[cfg(target_arch = "aarch64")]
            (Simd::Neon, 4) => self.run_stages::<Vectors<Neon, 4, true>>(simd, team, timer),
            #[cfg(target_arch = "aarch64")]
            (Simd::Neon, 8) => self.run_stages::<Vectors<Neon, 8, true>>(simd, team, timer),
            #[cfg(target_arch = "aarch64")]
            (Simd::Neon, _) => self.run_stages::<Vectors<Neon, 64, false>>(simd, team, timer),
            (Simd::Portable, _) => {
                self.run_stages::<Vectors<Portable, 64, false>>(simd, team, timer)
            }
        }
    }

    /// The stages of a pair, in order.
    fn run_stages<S: Shape>(&self, simd: Simd, team: &mut Team, timer: &mut StageTimer) {
        team.rows(self.geometry.height, |thread, rows| {
            self.compute_features(simd, &mut self.scratch(thread), (rows.start, rows.end));
        });
        timer.end("cost features");
        self.match_with_cost::<S>(team, timer);
        self.filter(simd, team, timer);
    }

    fn match_with_cost<S: Shape>(&self, team: &mut Team, timer: &mut StageTimer) {
        let planes = self.planes();
        match self.params.cost {
            Cost::Ad { truncation, window: 1 } => {
                let cost = self.ad_cost(truncation);
                match self.support {
                    None if !self.params.is_local() => self.match_paths::<S, _>(team, timer, cost),
                    _ => self.match_pixels::<S, _>(team, timer, cost),
                }
            }
            Cost::Block { .. } if self.params.is_local() => {
                self.match_locally::<S>(team, timer, |scratch, row, to| {
                    self.sum_windows::<S, _>(scratch, row, ToSums(to));
                });
            }
            Cost::Block { measure, truncation, .. } => {
                let rounding = Rounding::of_block(measure, truncation);
                self.match_stored::<S, _>(team, timer, WindowWriter { frame: self, rounding });
            }
            Cost::Ad { .. } => {
                let rounding = Rounding::to_mean(self.params.summed_window().area());
                self.match_stored::<S, _>(team, timer, WindowWriter { frame: self, rounding });
            }
            Cost::MutualInformation { .. } => {
                let table = self.round.expect("mutual information has a table").table;
                let cost = LookUpCost {
                    left: self.left.pixels().as_ptr(),
                    mirrored: self.shared.mirrored.ptr(),
                    width: self.geometry.width,
                    stride: self.geometry.mirrored_stride(),
                    stripes: self.stripes(),
                    table: table.as_ptr(),
                    padding: self.padding(),
                };
                self.match_pixels::<S, _>(team, timer, cost);
            }
            Cost::Census { window } => match descriptor_bytes(window) {
                3 => self.match_pixels::<S, _>(team, timer, CensusCost::<3>(planes)),
                4 => self.match_pixels::<S, _>(team, timer, CensusCost::<4>(planes)),
                _ => self.match_pixels::<S, _>(team, timer, CensusCost::<8>(planes)),
            },
            Cost::Combined(of) => {
                self.match_pixels::<S, _>(team, timer, CombinedCost { planes, of });
            }
        }
    }

    /// Matches with a cost of single pixels, stored band by band.
    fn match_pixels<S: Shape, C: BlockCost>(
        &self,
        team: &mut Team,
        timer: &mut StageTimer,
        cost: C,
    ) {
        if let Some(windows) = self.windows {
            let source = WindowedCosts { frame: self, windows, cost };
            return self.match_bands::<S, _>(team, timer, &source);
        }
        self.match_stored::<S, _>(team, timer, PixelWriter { geometry: self.geometry, cost });
    }

    fn match_stored<S: Shape, W: CostWriter>(
        &self,
        team: &mut Team,
        timer: &mut StageTimer,
        writer: W,
    ) {
        if !self.params.is_local() {
            return self.match_paths::<S, _>(team, timer, StoredCosts { frame: self, writer });
        }
        self.match_locally::<S>(team, timer, |scratch, row, to| {
            self.sum_pixels::<S, _, _>(scratch, &writer, Total::Plain, row, ToSums(to));
        });
    }

    fn match_paths<S: Shape, F: CostSource>(
        &self,
        team: &mut Team,
        timer: &mut StageTimer,
        source: F,
    ) {
        match self.geometry.banded {
            true => self.match_bands::<S, _>(team, timer, &source),
            false => self.match_full_volume::<S, _>(team, timer, &source),
        }
    }

    /// Matches band by band: from top to bottom for the downward paths, and from bottom to top for all of
    /// them.
    fn match_bands<S: Shape, F: CostSource>(
        &self,
        team: &mut Team,
        timer: &mut StageTimer,
        source: &F,
    ) {
        let geometry = self.geometry;
        if geometry.upward {
            team.share(geometry.bands - 1, &|thread, bands| {
                let scratch = &mut *self.scratch(thread);
                for band in bands {
                    let cost = source.compute_costs::<S>(scratch, geometry.band(band), false);
                    self.follow_downward_paths::<S, _>(scratch, band, cost);
                }
            });
        }
        timer.end("aggregation, down");

        team.share(geometry.bands, &|thread, numbers| {
            let scratch = &mut *self.scratch(thread);
            for number in numbers {
                let band = if geometry.upward { geometry.bands - 1 - number } else { number };
                let again = geometry.upward && band + 1 < geometry.bands;
                let cost = source.compute_costs::<S>(scratch, geometry.band(band), again);
                // The last sweep selects and refines the disparities as soon as the sums of a piece
                // of a row are complete (`WinnerTakesAll::select_disparities`).
                self.aggregate_costs::<S, _>(scratch, band, cost);
                self.check_consistency(scratch, geometry.band(band));
            }
        });
        timer.end("aggregation and winner");
    }

    fn filter(&self, simd: Simd, team: &mut Team, timer: &mut StageTimer) {
        let size = (self.geometry.width, self.geometry.height);
        let sure = self.filters.confidence().map(|confidence| confidence.confidence_ptr());
        // SAFETY: `check_consistency` wrote the map to the filters' input; the simd was found on this
        // machine.
        unsafe {
            let mut pass = Pass {
                size,
                left: self.left,
                threshold: self.threshold,
                prior: self.prior,
                simd,
                team,
            };
            self.filters.run(&mut pass, self.output.0, sure, timer);
        }
    }

    /// Prepares the inputs of the cost and P2 for the rows `rows.0..rows.1`.
    fn compute_features(&self, simd: Simd, scratch: &mut Scratch, rows: (usize, usize)) {
        let left = Destination::Left(self.shared.left.ptr());
        let right = Destination::Right(self.shared.mirrored.ptr());
        let views = [(self.left, left), (self.right, right)];
        let from = if self.features.of_left() { 0 } else { 1 };
        for &(image, to) in &views[from..] {
            // SAFETY: the rows are this thread's until the stage is over; the simd was found on
            // this machine.
            unsafe {
                simd.vectorize(PrepareRows {
                    geometry: self.geometry,
                    features: self.features,
                    image,
                    rows,
                    scratch: &mut scratch.features,
                    to,
                });
            }
        }
        if self.geometry.banded {
            // SAFETY: as above.
            unsafe {
                simd.vectorize(StepRows {
                    geometry: self.geometry,
                    guide: self.guide,
                    p2: self.p2,
                    rows,
                    scratch: &mut scratch.steps,
                    penalties: self.shared.penalties.ptr(),
                    slants: self
                        .support
                        .filter(|_| self.geometry.follows_surface)
                        .map(|support| (self.shared.slants.ptr(), support)),
                });
            }
        }
        if let Some(window) = zero_mean_window(self.params) {
            // SAFETY: as above.
            unsafe {
                simd.vectorize(ZeroMeanRows {
                    geometry: self.geometry,
                    window,
                    eyes: [self.left, self.right],
                    rows,
                    to: self.shared.zero_mean.each_ref().map(Block::ptr),
                    scratch: &mut scratch.zero_mean,
                });
            }
        }
    }

    /// Checks the disparities of rows against the right view, and passes them to the filters.
    pub(super) fn check_consistency(&self, scratch: &mut Scratch, (first, rows): Rows) {
        let width = self.geometry.width;
        let to = self.filters.input(0, self.output.0);
        for row in 0..rows {
            let seen =
                [self.left, self.right].map(|view| view.valid_mask().map(|m| m.row(first + row)));
            let (values, peaks) =
                scratch.winner.check_consistency(row, self.params.left_right, seen);
            // SAFETY: the band's rows of the result are this thread's.
            unsafe {
                let to = to.add((first + row) * width);
                std::ptr::copy_nonoverlapping(values.as_ptr(), to, width);
                if let Some(Output(unfiltered)) = self.unfiltered {
                    let to = unfiltered.add((first + row) * width);
                    std::ptr::copy_nonoverlapping(values.as_ptr(), to, width);
                }
                if let Some(map) = self.round.and_then(|round| round.map) {
                    let map = map.add((first + row) * width);
                    let map = std::slice::from_raw_parts_mut(map, width);
                    map.iter_mut().zip(values).for_each(|(to, &value)| *to = value.into());
                }
                if let (Some(peaks), Some(filter)) = (peaks, self.filters.confidence()) {
                    let views = [self.left, self.right];
                    filter.put_row(views, first + row, values, peaks);
                }
            }
        }
    }
}
