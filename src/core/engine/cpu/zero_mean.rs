//! Pixels minus their local mean, times the window's pixels (`matching::block::zero_mean`), for ZSAD.

use super::geometry::Geometry;
use super::mirrored_rows;
use super::simd::{SimdKernel, Vector};
use crate::frame::Image;
use crate::matching::{BlockMeasure, BlockWindow, Cost, Params};

/// Prepares the rows `rows.0..rows.1` of both views.
pub struct ZeroMeanRows<'a> {
    pub geometry: &'a Geometry,
    pub window: BlockWindow,
    pub eyes: [&'a Image; 2],
    /// First row, and the row behind the last.
    pub rows: (usize, usize),
    /// The left view's rows, [row][feature stride], and the right one's, mirrored; the caller's alone.
    pub to: [*mut i16; 2],
    /// [`scratch_len`] numbers.
    pub scratch: &'a mut [i16],
}

pub fn zero_mean_window(params: &Params) -> Option<BlockWindow> {
    match params.cost {
        Cost::Block { measure: BlockMeasure::ZeroMeanSad, window, .. } => Some(window),
        _ => None,
    }
}

/// Scratch numbers of a thread to prepare a row: column sums, the row, and the mirrored row.
pub fn scratch_len(geometry: &Geometry) -> usize {
    2 * geometry.width + geometry.mirrored_stride()
}

impl SimdKernel for ZeroMeanRows<'_> {
    #[inline(always)]
    unsafe fn run<V: Vector>(self) {
        let Geometry { width, height, .. } = *self.geometry;
        let (across, down) = self.window.radius();
        let pixels = self.window.area() as i16;
        let (columns, rest) = self.scratch.split_at_mut(width);
        let (row, plain) = rest.split_at_mut(width);
        for y in self.rows.0..self.rows.1 {
            for (eye, image) in self.eyes.into_iter().enumerate() {
                // A column sum has 11 pixels, a window 121; n times a pixel minus that sum fits 16 bits.
                columns.fill(0);
                for dy in -(down as i64)..=down as i64 {
                    let from = image.row((y as i64 + dy).clamp(0, height as i64 - 1) as usize);
                    for (sum, &pixel) in columns.iter_mut().zip(from) {
                        *sum += i16::from(pixel);
                    }
                }
                let column = |x: i64| x.clamp(0, width as i64 - 1) as usize;
                let reach = -(across as i64)..=across as i64;
                let mut sum: i16 = reach.map(|x| columns[column(x)]).sum();
                for (x, (value, &pixel)) in row.iter_mut().zip(image.row(y)).enumerate() {
                    if x > 0 {
                        // The sum temporarily holds a column too many.
                        let enters = columns[column((x + across) as i64)];
                        let leaves = columns[column(x as i64 - 1 - across as i64)];
                        sum = sum.wrapping_add(enters).wrapping_sub(leaves);
                    }
                    *value = pixels * i16::from(pixel) - sum;
                }
                // SAFETY: the caller owns the rows.
                unsafe {
                    let to = self.to[eye];
                    if eye == 0 {
                        let to = to.add(y * self.geometry.feature_stride());
                        std::ptr::copy_nonoverlapping(row.as_ptr(), to, width);
                    } else {
                        let stride = self.geometry.mirrored_stride();
                        let to = std::slice::from_raw_parts_mut(to.add(y * stride), stride);
                        mirrored_rows::write(self.geometry, row, plain, to);
                    }
                }
            }
        }
    }
}
