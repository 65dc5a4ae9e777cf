//! Which kernels a frame runs through: those for its vectors, its number of candidates and its cost.

use super::band_costs::{BandCost, FillBand};
use super::buffers::Scratch;
use super::cost::Cost;
use super::features::descriptor_bytes;
use super::geometry::Geometry;
use super::look_up::LookUpCost;
use super::plane_costs::{CensusCost, CombinedCost, Planes};
use super::schedule::{CostOfBand, Frame};
use super::simd::{Lanes, Simd, portable::Portable};
use super::support::{SupportBand, rows_around};
use super::window_sums::{Rounding, ToBytes, ToSums, Total};
use crate::matching;

/// Writes the costs of some rows (the first, and how many), [row][x][depth].
pub(super) type WriteRows<'a> = dyn FnMut(&mut Scratch, (usize, usize), *mut u8) + 'a;

impl Frame<'_> {
    /// What thread `thread` does for the frame.
    pub fn work(&self, simd: Simd, thread: usize) {
        // The number of vectors a pixel is fixed at compile time where that is common, also at coarser levels.
        match (simd, self.geometry.chunks) {
            #[cfg(target_arch = "x86_64")]
            (Simd::Avx512, 1) => self.work_with::<super::simd::avx512::Avx512, 1, true>(thread),
            #[cfg(target_arch = "x86_64")]
            (Simd::Avx512, 2) => self.work_with::<super::simd::avx512::Avx512, 2, true>(thread),
            #[cfg(target_arch = "x86_64")]
            (Simd::Avx512, _) => self.work_with::<super::simd::avx512::Avx512, 16, false>(thread),
            #[cfg(target_arch = "x86_64")]
            (Simd::Avx2, 1) => self.work_with::<super::simd::avx2::Avx2, 1, true>(thread),
            #[cfg(target_arch = "x86_64")]
            (Simd::Avx2, 2) => self.work_with::<super::simd::avx2::Avx2, 2, true>(thread),
            #[cfg(target_arch = "x86_64")]
            (Simd::Avx2, 4) => self.work_with::<super::simd::avx2::Avx2, 4, true>(thread),
            #[cfg(target_arch = "x86_64")]
            (Simd::Avx2, _) => self.work_with::<super::simd::avx2::Avx2, 32, false>(thread),
            #[cfg(target_arch = "aarch64")]
            (Simd::Neon, 1) => self.work_with::<super::simd::neon::Neon, 1, true>(thread),
            #[cfg(target_arch = "aarch64")]
            (Simd::Neon, 2) => self.work_with::<super::simd::neon::Neon, 2, true>(thread),
            #[cfg(target_arch = "aarch64")]
            (Simd::Neon, 4) => self.work_with::<super::simd::neon::Neon, 4, true>(thread),
            #[cfg(target_arch = "aarch64")]
            (Simd::Neon, 8) => self.work_with::<super::simd::neon::Neon, 8, true>(thread),
            #[cfg(target_arch = "aarch64")]
            (Simd::Neon, _) => self.work_with::<super::simd::neon::Neon, 64, false>(thread),
            (Simd::Portable, 4) => self.work_with::<Portable, 4, true>(thread),
            (Simd::Portable, 8) => self.work_with::<Portable, 8, true>(thread),
            (Simd::Portable, _) => self.work_with::<Portable, 64, false>(thread),
        }
    }

    fn work_with<V: Lanes, const MAX: usize, const EXACT: bool>(&self, thread: usize) {
        let mut scratch = self.scratches[thread].lock().unwrap_or_else(|e| e.into_inner());
        let scratch = &mut *scratch;
        let planes = self.planes();
        match self.params.cost {
            matching::Cost::Ad { truncation, window: 1 } => {
                let cost = self.ad_cost(truncation);
                match self.support {
                    None if !self.params.is_local() => {
                        self.stages::<V, _, MAX, EXACT>(thread, scratch, &mut |_, _, _| cost)
                    }
                    _ => self.band_cost_stages::<V, _, MAX, EXACT>(thread, scratch, cost),
                }
            }
            matching::Cost::Block { .. } if self.params.is_local() => {
                self.local_stages::<V, MAX, EXACT>(
                    thread,
                    scratch,
                    &mut |scratch, y, begins, to| {
                        self.window_row::<V, MAX, EXACT, _>(scratch, y, begins, ToSums(to));
                    },
                );
            }
            matching::Cost::Block { measure, truncation, .. } => {
                let rounding = Rounding::of_block(measure, truncation);
                self.window_cost_stages::<V, MAX, EXACT>(thread, scratch, rounding);
            }
            matching::Cost::Ad { .. } => {
                let rounding = Rounding::to_mean(self.params.summed_window().area());
                self.window_cost_stages::<V, MAX, EXACT>(thread, scratch, rounding);
            }
            matching::Cost::MutualInformation { .. } => {
                let table = self.learnt.expect("mutual information has a table").table;
                let cost = LookUpCost {
                    left: self.left.pixels().as_ptr(),
                    mirrored: self.shared.mirrored.ptr(),
                    width: self.geometry.width,
                    stride: self.geometry.mirrored_stride(),
                    table: table.as_ptr(),
                    last: self.geometry.chunks - 1,
                    padding: self.shared.padding.ptr(),
                };
                self.band_cost_stages::<V, _, MAX, EXACT>(thread, scratch, cost);
            }
            matching::Cost::Census { window } => match descriptor_bytes(window) {
                3 => self.band_cost_stages::<V, _, MAX, EXACT>(
                    thread,
                    scratch,
                    CensusCost::<3>(planes),
                ),
                4 => self.band_cost_stages::<V, _, MAX, EXACT>(
                    thread,
                    scratch,
                    CensusCost::<4>(planes),
                ),
                _ => self.band_cost_stages::<V, _, MAX, EXACT>(
                    thread,
                    scratch,
                    CensusCost::<8>(planes),
                ),
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
                self.band_cost_stages::<V, _, MAX, EXACT>(thread, scratch, cost);
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
            width: self.geometry.width,
            last: self.geometry.chunks - 1,
            padding: self.shared.padding.ptr(),
        }
    }

    /// The stages with the cost that `cost` makes for a band.
    fn stages<V: Lanes, C: Cost, const MAX: usize, const EXACT: bool>(
        &self,
        thread: usize,
        scratch: &mut Scratch,
        cost: &mut CostOfBand<'_, C>,
    ) {
        self.around::<V>(thread, scratch, &mut |scratch, parting| match self.geometry.banded {
            true => self.aggregate::<V, C, MAX, EXACT>(thread, scratch, cost, parting),
            false => self.aggregate_whole::<V, C, MAX, EXACT>(thread, scratch, cost, parting),
        });
    }

    /// The stages with a cost that is written into the thread's memory, band by band.
    fn band_cost_stages<V: Lanes, C: Cost, const MAX: usize, const EXACT: bool>(
        &self,
        thread: usize,
        scratch: &mut Scratch,
        cost: C,
    ) {
        let geometry = self.geometry;
        self.written_stages::<V, MAX, EXACT>(thread, scratch, &mut |_, rows, band_costs| {
            // SAFETY: the costs are this thread's, with room for the rows; the simd was found on this machine;
            // the planes were finished before the last barrier.
            unsafe {
                V::vectorize(FillBand::<_, MAX, EXACT> { geometry, cost, rows, band_costs });
            }
        });
    }

    /// The stages with a cost over windows, the sums of which become bytes.
    fn window_cost_stages<V: Lanes, const MAX: usize, const EXACT: bool>(
        &self,
        thread: usize,
        scratch: &mut Scratch,
        rounding: Rounding,
    ) {
        let Geometry { width, depth, count, .. } = *self.geometry;
        self.written_stages::<V, MAX, EXACT>(thread, scratch, &mut |scratch, (first, rows), to| {
            for row in 0..rows {
                // SAFETY: there is room for the rows.
                let to = unsafe { to.add(row * width * depth) };
                let sink = ToBytes { to, count, rounding };
                self.window_row::<V, MAX, EXACT, _>(scratch, first + row, row == 0, sink);
            }
        });
    }

    /// The stages with a cost that `write` writes for some rows, with what supports it.
    fn written_stages<V: Lanes, const MAX: usize, const EXACT: bool>(
        &self,
        thread: usize,
        scratch: &mut Scratch,
        write: &mut WriteRows<'_>,
    ) {
        let Geometry { width, depth, keeps_costs, .. } = *self.geometry;
        if self.params.is_local() {
            self.local_stages::<V, MAX, EXACT>(thread, scratch, &mut |scratch, y, begins, to| {
                self.pixel_sums_row::<V, _>(scratch, write, Total::Plain, y, begins, ToSums(to));
            });
            return;
        }
        self.stages::<V, BandCost, MAX, EXACT>(thread, scratch, &mut |scratch, rows, known| {
            let band_costs = match keeps_costs {
                // SAFETY: there is room for all rows; those of a band are one thread's until a barrier.
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
                    let radius = self.params.window.map_or(0, |w| usize::from(w.side / 2));
                    let around = rows_around(self.geometry, rows, radius);
                    let pixel_costs = scratch.pixel_costs.ptr();
                    write(scratch, around, pixel_costs);
                    // SAFETY: both are this thread's, and have room for these rows; the simd was found on
                    // this machine.
                    unsafe {
                        V::vectorize(SupportBand {
                            geometry: self.geometry,
                            radius,
                            rows,
                            pixel_costs,
                            support,
                            columns: &mut scratch.window_columns,
                            padding: self.shared.padding.ptr(),
                            band_costs,
                        });
                    }
                }
            }
            cost
        });
    }
}
