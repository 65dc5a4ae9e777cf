//! Preparation of an image before its costs: half-size images, the guide of P2, and the support of the cost
//! at every pixel. Rows are distributed over the threads.

use std::sync::Mutex;

use super::geometry::Geometry;
use super::memory::{Arena, Block};
use super::simd::Simd;
use super::support::{self, Coarse, PixelSupport, SupportRow, support_scratch};
use super::team::Team;
use super::texture::{HalfRow, NoiseRow, PixelRows, RangeRow, SmoothedRow, range_scratch};
use crate::frame::Image;
use crate::matching::levels::coarser;
use crate::matching::texture::{RESPONSE_MAX, threshold_of};
use crate::matching::{Guide, Params};
use crate::memory::{Refused, product};
use crate::pool::Pool;
use crate::thread::locked;

/// Name of the stage for texture and noise.
pub const TEXTURE: &str = "texture";

pub struct Prepare {
    size: (usize, usize),
    simd: Simd,
    /// Whether a smoothed image steers P2.
    smoothed: bool,
    pictures: Pool<u8>,
    /// Whether the noise of the left image is needed.
    noise: bool,
    supports: Option<Supports>,
    threads: Vec<Mutex<ThreadScratch>>,
}

/// Memory for the support of the cost.
struct Supports {
    /// Range of grey levels of every pixel.
    ranges: Block<u8>,
    pixels: Block<PixelSupport>,
    /// The map of the half-size images, if there is one.
    coarse: Option<(Block<i16>, (usize, usize))>,
}

/// Guide image and noise threshold of a left image.
pub struct Prepared {
    /// The image that steers P2, if it is not the left one itself.
    pub guide: Option<Image>,
    /// The noise threshold, if it is needed.
    pub threshold: u32,
}

struct ThreadScratch {
    histogram: Vec<u32>,
    numbers: Vec<u16>,
    bytes: Vec<u8>,
    expectation: Vec<i16>,
}

/// Rows of an image under construction; every thread writes its own rows.
pub struct Rows<T>(pub *mut T, pub usize);

// SAFETY: the threads write different rows, and the image outlives the task.
unsafe impl<T> Sync for Rows<T> {}

impl<T> Rows<T> {
    /// Row `y`.
    ///
    /// # Safety
    /// The row exists and is borrowed once.
    #[allow(clippy::mut_from_ref)]
    pub unsafe fn row(&self, y: usize) -> &mut [T] {
        // SAFETY: the caller's promise.
        unsafe { std::slice::from_raw_parts_mut(self.0.add(y * self.1), self.1) }
    }
}

impl Prepare {
    /// Allocates everything except its output images, for images of this size.
    pub fn new(
        arena: &Arena,
        params: &Params,
        size: (usize, usize),
        threads: usize,
        simd: Simd,
    ) -> Result<Self, Refused> {
        let (width, height) = size;
        let pixels = product([width, height]);
        let smoothed = params.guide() == Guide::Smoothed;
        if smoothed {
            arena.count(pixels);
        }
        let coarse = coarser(params, size).map(|(_, size)| {
            let pixels = product([size.0, size.1]);
            // Both images of that size.
            arena.count(pixels.saturating_mul(2));
            Ok((arena.block(pixels)?, size))
        });
        let supports = match params.is_supported() {
            true => Some(Supports {
                ranges: arena.block(pixels)?,
                pixels: arena.block(pixels)?,
                coarse: coarse.transpose()?,
            }),
            false => None,
        };
        let (supported, noise) = (params.is_supported(), params.follows_noise());
        let of_thread = || {
            Ok(ThreadScratch {
                histogram: arena.filled(if noise { RESPONSE_MAX + 1 } else { 0 }, 0)?,
                numbers: arena.filled(width, 0)?,
                bytes: arena.filled(if supported { range_scratch(width) } else { 0 }, 0)?,
                expectation: arena.filled(if supported { support_scratch(width) } else { 0 }, 0)?,
            })
        };
        let threads = arena.per_thread(threads, of_thread)?;
        Ok(Self { size, simd, smoothed, pictures: Pool::new(), noise, supports, threads })
    }

    /// Returns the memory of the half-size map; `None` without a prior.
    pub fn coarse_map(&self) -> Option<*mut i16> {
        let (map, _) = self.supports.as_ref()?.coarse.as_ref()?;
        Some(map.ptr())
    }

    /// Returns the half-size map, after the coarser level has written it; `None` without a prior.
    pub fn coarse(&self) -> Option<Coarse<'_>> {
        let &(ref map, size) = self.supports.as_ref()?.coarse.as_ref()?;
        // SAFETY: the block holds a value per pixel; only the coarser level writes it, on the owner's behalf.
        Some(Coarse { values: unsafe { map.all(size.0 * size.1) }, size })
    }

    /// Returns the support of every pixel, row by row; `None` without window and prior.
    pub fn support(&self) -> Option<&[PixelSupport]> {
        let pixels = &self.supports.as_ref()?.pixels;
        // SAFETY: the block holds a value per pixel, and is only written by `run`, which borrows it mutably.
        Some(unsafe { std::slice::from_raw_parts(pixels.ptr(), self.size.0 * self.size.1) })
    }

    pub fn half(&self, team: &mut Team, image: &Image) -> Result<Image, Refused> {
        let (width, height) = (image.width().div_ceil(2), image.height().div_ceil(2));
        let mut pixels = self.pictures.try_take(width * height)?;
        half(team, self.simd, picture(image), &mut pixels);
        Ok(Image::new(width, height, pixels))
    }

    /// Prepares the left image: the guide of P2, if it is not the image itself, its noise threshold, if
    /// needed, and the support of the cost. [`Prepare::coarse_map`] must hold the map of the half-size
    /// images. `threshold`: the noise threshold, `None` to measure it.
    pub fn run(
        &mut self,
        team: &mut Team,
        left: &Image,
        threshold: Option<u32>,
        geometry: &Geometry,
        params: &Params,
    ) -> Result<Prepared, Refused> {
        let (width, height) = self.size;
        let mut smoothed = match self.smoothed {
            true => Some(self.pictures.try_take(width * height)?),
            false => None,
        };
        let guide = smoothed.as_mut().map(|pixels| Rows(pixels.as_mut_ptr(), width));
        let ranges = self.supports.as_ref().map(|supports| Rows(supports.ranges.ptr(), width));
        let (threads, simd, of) = (&self.threads, self.simd, picture(left));
        let measured = self.noise && threshold.is_none();
        let scratch = |thread: usize| locked(&threads[thread]);
        threads.iter().enumerate().for_each(|(i, _)| scratch(i).histogram.fill(0));
        share(team, height, |thread, y| {
            let ThreadScratch { histogram, numbers, bytes, .. } = &mut *scratch(thread);
            // SAFETY: every row is given to one thread once; the simd was found on this machine.
            unsafe {
                if let Some(guide) = &guide {
                    let to = guide.row(y);
                    simd.vectorize(SmoothedRow { of, y, to, sums: &mut *numbers });
                }
                if let Some(ranges) = &ranges {
                    simd.vectorize(RangeRow { of, y, to: ranges.row(y), scratch: bytes });
                }
                if measured && y > 0 && y + 1 < height {
                    simd.vectorize(NoiseRow { of, y, histogram, responses: numbers });
                }
            }
        });
        let threshold = threshold.unwrap_or_else(|| self.threshold());
        if let (Some(supports), Some(ranges)) = (&self.supports, &ranges) {
            let of_ranges = &support::of_ranges(params, threshold);
            let pixels = Rows(supports.pixels.ptr(), width);
            let coarse = self.coarse();
            share(team, height, |thread, y| {
                let scratch = &mut scratch(thread).expectation;
                // SAFETY: as above; the ranges were finished before.
                unsafe {
                    let (ranges, to) = (&*ranges.row(y), pixels.row(y));
                    let row = SupportRow { geometry, of_ranges, coarse, y, ranges, scratch, to };
                    simd.vectorize(row);
                }
            });
        }
        let guide = smoothed.map(|pixels| Image::new(width, height, pixels));
        Ok(Prepared { guide, threshold })
    }

    /// Returns the noise threshold from the histograms of all threads.
    fn threshold(&self) -> u32 {
        let mut first = locked(&self.threads[0]);
        for thread in &self.threads[1..] {
            let others = &locked(thread).histogram;
            first.histogram.iter_mut().zip(others).for_each(|(sum, &other)| *sum += other);
        }
        threshold_of(&first.histogram)
    }
}

/// Writes the half-size image to `to`, which has its number of pixels.
pub fn half(team: &mut Team, simd: Simd, of: PixelRows, to: &mut [u8]) {
    let (width, height) = (of.size.0.div_ceil(2), of.size.1.div_ceil(2));
    assert_eq!(to.len(), width * height, "pixels of the half-size picture");
    let to = Rows(to.as_mut_ptr(), width);
    share(team, height, |_, y| {
        // SAFETY: every row is given to one thread once; the simd was found on this machine.
        unsafe { simd.vectorize(HalfRow { of, y, to: to.row(y) }) };
    });
}

pub fn picture(image: &Image) -> PixelRows<'_> {
    PixelRows { pixels: image.pixels(), size: (image.width(), image.height()) }
}

/// Processes `height` rows with the team: `row` gets the number of the thread and of the row.
pub fn share(team: &mut Team, height: usize, row: impl Fn(usize, usize) + Sync) {
    team.rows(height, |thread, rows| rows.for_each(|y| row(thread, y)));
}
