//! Which kernels a frame runs through: those for its vectors, its number of candidates and its cost.

use super::band_costs::{BandCost, FillBand};
use super::buffers::Scratch;
use super::cost::{Cost, Padding};
use super::features::descriptor_bytes;
use super::geometry::Geometry;
use super::laps::Laps;
use super::look_up::LookUpCost;
use super::mirrored::Stripes;
use super::pixel_rows::{self, PixelRows};
use super::plane_costs::{CensusCost, CombinedCost, Planes};
use super::schedule::{CostOfBand, Frame};
#[cfg(target_arch = "aarch64")]
use super::simd::neon::Neon;
use super::simd::{Lanes, Simd, portable::Portable};
#[cfg(target_arch = "x86_64")]
use super::simd::{avx2::Avx2, avx512::Avx512};
use super::support::SupportBand;
use super::team::Team;
use super::window_sums::{Rounding, ToBytes, ToSums, Total};
use crate::matching;

/// Writes the costs of some rows (the first, and how many), [row][x][depth].
pub(super) type WriteRows<'a> = dyn Fn(&mut Scratch, (usize, usize), *mut u8) + Sync + 'a;

impl Frame<'_> {
    /// The values of all rows, as they are before the filters.
    pub(super) fn match_rows(&self, simd: Simd, team: &mut Team, laps: &mut Laps) {
        // The number of vectors a pixel is fixed at compile time where that is common, also at coarser levels.
        match (simd, self.geometry.chunks) {
            #[cfg(target_arch = "x86_64")]
            (Simd::Avx512, 1) => self.match_with::<Avx512, 1, true>(team, laps),
            #[cfg(target_arch = "x86_64")]
            (Simd::Avx512, 2) => self.match_with::<Avx512, 2, true>(team, laps),
            #[cfg(target_arch = "x86_64")]
            (Simd::Avx512, _) => self.match_with::<Avx512, 16, false>(team, laps),
            #[cfg(target_arch = "x86_64")]
            (Simd::Avx2, 1) => self.match_with::<Avx2, 1, true>(team, laps),
            #[cfg(target_arch = "x86_64")]
            (Simd::Avx2, 2) => self.match_with::<Avx2, 2, true>(team, laps),
            #[cfg(target_arch = "x86_64")]
            (Simd::Avx2, 4) => self.match_with::<Avx2, 4, true>(team, laps),
            #[cfg(target_arch = "x86_64")]
            (Simd::Avx2, _) => self.match_with::<Avx2, 32, false>(team, laps),
            #[cfg(target_arch = "aarch64")]
            (Simd::Neon, 1) => self.match_with::<Neon, 1, true>(team, laps),
            #[cfg(target_arch = "aarch64")]
            (Simd::Neon, 2) => self.match_with::<Neon, 2, true>(team, laps),
            #[cfg(target_arch = "aarch64")]
            (Simd::Neon, 4) => self.match_with::<Neon, 4, true>(team, laps),
            #[cfg(target_arch = "aarch64")]
            (Simd::Neon, 8) => self.match_with::<Neon, 8, true>(team, laps),
            #[cfg(target_arch = "aarch64")]
            (Simd::Neon, _) => self.match_with::<Neon, 64, false>(team, laps),
            (Simd::Portable, 4) => self.match_with::<Portable, 4, true>(team, laps),
            (Simd::Portable, 8) => self.match_with::<Portable, 8, true>(team, laps),
            (Simd::Portable, _) => self.match_with::<Portable, 64, false>(team, laps),
        }
    }

    fn match_with<V: Lanes, const MAX: usize, const EXACT: bool>(
        &self,
        team: &mut Team,
        laps: &mut Laps,
    ) {
        let planes = self.planes();
        match self.params.cost {
            matching::Cost::Ad { truncation, window: 1 } => {
                let cost = self.ad_cost(truncation);
                match self.support {
                    None if !self.params.is_local() => {
                        self.stages::<V, _, MAX, EXACT>(team, laps, &|_, _, _| cost)
                    }
                    _ => self.band_cost_stages::<V, _, MAX, EXACT>(team, laps, cost),
                }
            }
            matching::Cost::Block { .. } if self.params.is_local() => {
                self.local_stages::<V, MAX, EXACT>(team, laps, &|scratch, y, begins, to| {
                    self.window_row::<V, MAX, EXACT, _>(scratch, y, begins, ToSums(to));
                });
            }
            matching::Cost::Block { measure, truncation, .. } => {
                let rounding = Rounding::of_block(measure, truncation);
                self.window_cost_stages::<V, MAX, EXACT>(team, laps, rounding);
            }
            matching::Cost::Ad { .. } => {
                let rounding = Rounding::to_mean(self.params.summed_window().area());
                self.window_cost_stages::<V, MAX, EXACT>(team, laps, rounding);
            }
            matching::Cost::MutualInformation { .. } => {
                let table = self.learnt.expect("mutual information has a table").table;
                let cost = LookUpCost {
                    left: self.left.pixels().as_ptr(),
                    mirrored: self.shared.mirrored.ptr(),
                    width: self.geometry.width,
                    stride: self.geometry.mirrored_stride(),
                    stripes: self.stripes(),
                    table: table.as_ptr(),
                    padding: self.padding(),
                };
                self.band_cost_stages::<V, _, MAX, EXACT>(team, laps, cost);
            }
            matching::Cost::Census { window } => match descriptor_bytes(window) {
                3 => self.band_cost_stages::<V, _, MAX, EXACT>(team, laps, CensusCost::<3>(planes)),
                4 => self.band_cost_stages::<V, _, MAX, EXACT>(team, laps, CensusCost::<4>(planes)),
                _ => self.band_cost_stages::<V, _, MAX, EXACT>(team, laps, CensusCost::<8>(planes)),
            },
            matching::Cost::Combined {
                census_weight,
                gradient_weight,
                intensity_weight,
                gradient_truncation,
                intensity_truncation,
            } => {
                let cost = CombinedCost {
                    planes,
                    weights: [census_weight, gradient_weight, intensity_weight],
                    truncations: [gradient_truncation, intensity_truncation],
                };
                self.band_cost_stages::<V, _, MAX, EXACT>(team, laps, cost);
            }
        }
    }

    /// The prepared planes of both eyes.
    fn planes(&self) -> Planes {
        Planes {
            left: self.shared.left.ptr(),
            left_stride: self.geometry.feature_stride(),
            right: self.shared.mirrored.ptr(),
            right_stride: self.geometry.mirrored_stride(),
            count: self.features.planes(),
            stripes: self.stripes(),
            padding: self.padding(),
        }
    }

    /// The stripes of the mirrored rows.
    pub(super) fn stripes(&self) -> Stripes {
        Stripes::of(self.geometry, self.shared.starts.ptr())
    }

    /// What costs become beyond the range.
    pub(super) fn padding(&self) -> Padding {
        let Geometry { count, depth, .. } = *self.geometry;
        Padding { bytes: self.shared.padding.ptr(), needed: count < depth }
    }

    /// The stages with the cost that `cost` makes for a band.
    fn stages<V: Lanes, C: Cost, const MAX: usize, const EXACT: bool>(
        &self,
        team: &mut Team,
        laps: &mut Laps,
        cost: &CostOfBand<'_, C>,
    ) {
        match self.geometry.banded {
            true => self.aggregate::<V, C, MAX, EXACT>(team, laps, cost),
            false => self.aggregate_whole::<V, C, MAX, EXACT>(team, laps, cost),
        }
    }

    /// The stages with a cost that is written into the thread's memory, band by band.
    fn band_cost_stages<V: Lanes, C: Cost, const MAX: usize, const EXACT: bool>(
        &self,
        team: &mut Team,
        laps: &mut Laps,
        cost: C,
    ) {
        let geometry = self.geometry;
        self.written_stages::<V, MAX, EXACT>(team, laps, &|_, rows, band_costs| {
            // SAFETY: the costs are this thread's, with room for the rows; the simd was found on this machine;
            // the planes were finished before.
            unsafe {
                V::vectorize(FillBand::<_, MAX, EXACT> { geometry, cost, rows, band_costs });
            }
        });
    }

    /// The stages with a cost over windows, the sums of which become bytes.
    fn window_cost_stages<V: Lanes, const MAX: usize, const EXACT: bool>(
        &self,
        team: &mut Team,
        laps: &mut Laps,
        rounding: Rounding,
    ) {
        let Geometry { width, depth, .. } = *self.geometry;
        self.written_stages::<V, MAX, EXACT>(team, laps, &|scratch, (first, rows), to| {
            for row in 0..rows {
                // SAFETY: there is room for the rows.
                let to = unsafe { to.add(row * width * depth) };
                let sink = ToBytes { to, padding: self.shared.padding.ptr(), rounding };
                self.window_row::<V, MAX, EXACT, _>(scratch, first + row, row == 0, sink);
            }
        });
    }

    /// The stages with a cost that `write` writes for some rows, with what supports it.
    fn written_stages<V: Lanes, const MAX: usize, const EXACT: bool>(
        &self,
        team: &mut Team,
        laps: &mut Laps,
        write: &WriteRows<'_>,
    ) {
        let Geometry { width, depth, keeps_costs, .. } = *self.geometry;
        if self.params.is_local() {
            self.local_stages::<V, MAX, EXACT>(team, laps, &|scratch, y, begins, to| {
                self.pixel_sums_row::<V, _>(scratch, write, Total::Plain, y, begins, ToSums(to));
            });
            return;
        }
        self.stages::<V, BandCost, MAX, EXACT>(team, laps, &|scratch, rows, known| {
            let band_costs = match keeps_costs {
                // SAFETY: there is room for all rows; those of a band are one thread's.
                true => unsafe { self.shared.whole_costs.ptr().add(rows.0 * width * depth) },
                false => scratch.band_costs.ptr(),
            };
            let cost = BandCost { band_costs, first: rows.0, width, depth };
            if known && keeps_costs {
                return cost;
            }
            match self.support {
                None => write(scratch, rows, band_costs),
                Some(support) => {
                    let radius = pixel_rows::radius(self.params);
                    let own = scratch.pixel_costs.ptr();
                    let pixel_rows = PixelRows::write(
                        self.geometry,
                        rows,
                        radius,
                        own,
                        &self.shared.handed_on,
                        |rows, to| write(scratch, rows, to),
                    );
                    // SAFETY: nobody writes to the rows, and the costs are this thread's; the simd was found on this
                    // machine.
                    unsafe {
                        V::vectorize(SupportBand::<MAX, EXACT> {
                            geometry: self.geometry,
                            radius,
                            rows,
                            pixel_rows,
                            support,
                            columns: &mut scratch.window_columns,
                            numbers: self.shared.numbers.ptr(),
                            padding: self.padding(),
                            band_costs,
                        });
                    }
                }
            }
            cost
        });
    }
}
