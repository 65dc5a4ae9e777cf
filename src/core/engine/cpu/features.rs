//! Cost features: the inputs of a cost, computed once per pair as byte images ("planes") of either view;
//! those of the right view are mirrored (`mirrored_rows.rs`).

use super::geometry::Geometry;
use super::mirrored_rows;
use super::simd::{SimdKernel, Vector};
use crate::frame::Image;
use crate::matching::CensusWindow;
use crate::matching::census::Step;

/// Columns beyond either end of a copied row: half the widest census window, plus the overhang of a vector.
const MARGIN: usize = 128;

/// Planes of gradient and intensity: the positive part of the gradient, its negative part, the intensity.
pub const GRADIENT_PLANES: usize = 3;

/// Bytes of a descriptor in the compiled kernels; bits beyond the window's are 0.
pub fn descriptor_bytes(window: CensusWindow) -> usize {
    match window.bits() {
        ..=24 => 3,
        25..=32 => 4,
        _ => 8,
    }
}

/// The feature planes of a cost (`plane_costs.rs`).
pub struct Features {
    /// Comparisons of a descriptor, bit by bit; empty for a cost on intensities.
    comparisons: Vec<(Step, Step)>,
    /// Number of planes of the descriptor.
    bytes: usize,
    /// Whether gradient and intensity follow.
    gradient: bool,
    /// Rows of the descriptor's window above and below its pixel.
    radius: usize,
}

impl Features {
    /// Planes for the descriptors of `window`, and gradient and intensity; else one plane of intensities.
    pub fn of(window: Option<CensusWindow>, gradient: bool) -> Self {
        Self {
            comparisons: window.map_or(Vec::new(), CensusWindow::comparisons),
            bytes: window.map_or(0, descriptor_bytes),
            gradient,
            radius: window.map_or(0, |window| window.size().1 / 2),
        }
    }

    pub fn planes(&self) -> usize {
        (self.bytes + if self.gradient { GRADIENT_PLANES } else { 0 }).max(1)
    }

    /// Whether the left view has planes other than its image.
    pub fn of_left(&self) -> bool {
        self.bytes > 0 || self.gradient
    }

    /// Scratch bytes of a thread to prepare a row: the mirrored row, the rows of the window, and the planes.
    pub fn scratch_len(&self, geometry: &Geometry) -> usize {
        let mirrored = geometry.mirrored_stride();
        if !self.of_left() {
            return mirrored;
        }
        let rows = (2 * self.radius + 1) * (geometry.width + 2 * MARGIN);
        mirrored + rows + self.planes() * geometry.feature_stride()
    }
}

/// Destination of the planes of a view, [row][plane][stride].
#[derive(Clone, Copy)]
pub enum Destination {
    /// Not mirrored, [`Geometry::feature_stride`] bytes a row.
    Left(*mut u8),
    /// Mirrored, [`Geometry::mirrored_stride`] bytes a row.
    Right(*mut u8),
}

pub struct PrepareRows<'a> {
    pub geometry: &'a Geometry,
    pub features: &'a Features,
    pub image: &'a Image,
    /// First row, and the row behind the last.
    pub rows: (usize, usize),
    /// [`Features::scratch_len`] bytes.
    pub scratch: &'a mut [u8],
    /// Destination of the planes; its rows belong to the caller.
    pub to: Destination,
}

impl SimdKernel for PrepareRows<'_> {
    #[inline(always)]
    unsafe fn run<V: Vector>(mut self) {
        let scratch = std::mem::take(&mut self.scratch);
        let (plain, scratch) = scratch.split_at_mut(self.geometry.mirrored_stride());
        if !self.features.of_left() {
            for y in self.rows.0..self.rows.1 {
                // SAFETY: the caller owns the rows.
                unsafe { self.hand_out(y, 0, self.image.row(y), plain) }
            }
            return;
        }
        let radius = self.features.radius;
        let stride = self.geometry.width + 2 * MARGIN;
        let (rows, planes) = scratch.split_at_mut((2 * radius + 1) * stride);
        // Row n of the image, clamped, is kept at place (n + radius) mod the number of places.
        let mut next = self.rows.0;
        for y in self.rows.0..self.rows.1 {
            while next <= y + 2 * radius {
                let row = next.saturating_sub(radius).min(self.geometry.height - 1);
                let place = &mut rows[next % (2 * radius + 1) * stride..][..stride];
                pad(self.image.row(row), place);
                next += 1;
            }
            // SAFETY: the rows around y are in place; the planes have the length of a row each.
            unsafe {
                self.descriptors::<V>(y, rows, planes);
                if self.features.gradient {
                    self.gradient::<V>(y, rows, planes);
                }
            }
            let stride = self.geometry.feature_stride();
            for plane in 0..self.features.planes() {
                let row = &planes[plane * stride..][..self.geometry.width];
                // SAFETY: the caller owns the rows.
                unsafe { self.hand_out(y, plane, row, plain) }
            }
        }
    }
}

impl PrepareRows<'_> {
    /// Start of row `y + down` among the copied ones.
    #[inline(always)]
    fn place(&self, y: usize, down: i32) -> usize {
        let radius = self.features.radius;
        let number = (y + radius).wrapping_add_signed(down as isize);
        number % (2 * radius + 1) * (self.geometry.width + 2 * MARGIN) + MARGIN
    }

    #[inline(always)]
    unsafe fn descriptors<V: Vector>(&self, y: usize, rows: &[u8], planes: &mut [u8]) {
        let mut from = [(0usize, 0usize); 64];
        for (from, &(a, b)) in from.iter_mut().zip(&self.features.comparisons) {
            let at = |(x, down): Step| self.place(y, down).wrapping_add_signed(x as isize);
            *from = (at(a), at(b));
        }
        let from = &from[..self.features.comparisons.len()];
        let rows = rows.as_ptr();
        for byte in 0..self.features.bytes {
            let from = &from[(8 * byte).min(from.len())..(8 * byte + 8).min(from.len())];
            let plane = planes[byte * self.geometry.feature_stride()..].as_mut_ptr();
            for x in (0..self.geometry.width).step_by(V::N) {
                // SAFETY: a vector from any column of the image, moved by the window, stays within
                // the margins; a plane's stride is whole vectors.
                unsafe {
                    let mut bits = V::splat(0);
                    for (bit, &(a, b)) in from.iter().enumerate() {
                        let (a, b) = (V::load(rows.add(a + x)), V::load(rows.add(b + x)));
                        bits = bits.or(a.where_less(b, V::splat(1 << bit)));
                    }
                    bits.store(plane.add(x));
                }
            }
        }
    }

    #[inline(always)]
    unsafe fn gradient<V: Vector>(&self, y: usize, rows: &[u8], planes: &mut [u8]) {
        let stride = self.geometry.feature_stride();
        let row = rows[self.place(y, 0) - 1..].as_ptr();
        let planes = planes[self.features.bytes * stride..].as_mut_ptr();
        for x in (0..self.geometry.width).step_by(V::N) {
            // SAFETY: as in `descriptors`.
            unsafe {
                let row = row.add(x);
                let (before, after) = (V::load(row), V::load(row.add(2)));
                after.subs(before).store(planes.add(x));
                before.subs(after).store(planes.add(stride + x));
                V::load(row.add(1)).store(planes.add(2 * stride + x));
            }
        }
    }

    /// Writes a plane of row `y` to its destination. `plain`: memory for a mirrored row.
    #[inline(always)]
    unsafe fn hand_out(&self, y: usize, plane: usize, row: &[u8], plain: &mut [u8]) {
        let number = y * self.features.planes() + plane;
        // SAFETY: the row there belongs to the caller of `run`.
        unsafe {
            match self.to {
                Destination::Left(to) => {
                    let to = to.add(number * self.geometry.feature_stride());
                    std::ptr::copy_nonoverlapping(row.as_ptr(), to, row.len());
                }
                Destination::Right(to) => {
                    let stride = self.geometry.mirrored_stride();
                    let to = std::slice::from_raw_parts_mut(to.add(number * stride), stride);
                    mirrored_rows::write(self.geometry, row, plain, to);
                }
            }
        }
    }
}

/// Copies a row between margins that repeat its ends.
fn pad(row: &[u8], place: &mut [u8]) {
    let (before, rest) = place.split_at_mut(MARGIN);
    let (inside, after) = rest.split_at_mut(row.len());
    before.fill(row[0]);
    inside.copy_from_slice(row);
    after.fill(row[row.len() - 1]);
}
