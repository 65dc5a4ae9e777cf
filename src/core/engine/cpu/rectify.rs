//! Rectification with vectors and threads: the bytes of [`RectifyMap::apply`].

use std::ops::Range;
use std::sync::Arc;

use anyhow::bail;

use super::options::CpuOptions;
use super::placement::Host;
use super::simd::{INTERPOLATED, Simd, SimdKernel, Taps, Vector};
use super::team::Team;
use crate::frame::{Eye, Image, StereoPair};
use crate::memory::Result;
use crate::pool::Pool;
use crate::rectify::map::interpolate;
use crate::rectify::{Rectifier, RectifyMap};

pub struct Rectify {
    rectifier: Arc<Rectifier>,
    pool: Pool<u8>,
}

impl Rectify {
    pub fn new(rectifier: Arc<Rectifier>) -> Self {
        Self { rectifier, pool: Pool::new() }
    }

    /// Checks that both images have their camera's size.
    pub fn check_size(&self, raw: &StereoPair) -> anyhow::Result<()> {
        for (image, eye) in [(&raw.left, Eye::Left), (&raw.right, Eye::Right)] {
            let (width, height) = self.rectifier.source_size(eye);
            if (image.width(), image.height()) != (width, height) {
                bail!(
                    "the {eye} picture has {}x{} pixels, but its camera's pictures {width}x{height}",
                    image.width(),
                    image.height()
                );
            }
        }
        Ok(())
    }

    /// Returns the rectified pair of a raw one. The images have the sources' sizes.
    pub fn run(&self, team: &mut Team, simd: Simd, raw: StereoPair) -> Result<StereoPair> {
        let (width, height) = self.rectifier.size();
        let mut left = self.pool.try_take(width * height)?;
        let mut right = self.pool.try_take(width * height)?;
        let eyes = [
            (Eye::Left, &raw.left, Destination(left.as_mut_ptr())),
            (Eye::Right, &raw.right, Destination(right.as_mut_ptr())),
        ];
        let count = team.pieces();
        team.share(eyes.len() * count, &|_, pieces| {
            for piece in pieces {
                let (eye, from, to) = &eyes[piece / count];
                let map = self.rectifier.map(*eye);
                let pixels = share(width * height, piece % count, count);
                // SAFETY: buffers hold rectified images, pieces are separate; the simd was found here.
                unsafe { apply(simd, map, from, pixels, to.0) };
            }
        });
        Ok(StereoPair {
            left: self.rectifier.rectified_image(Eye::Left, left, raw.left),
            right: self.rectifier.rectified_image(Eye::Right, right, raw.right),
            // The ground truth refers to the raw image's pixels.
            truth: None,
            ..raw
        })
    }
}

/// Rectifies raw pairs without matching them.
pub struct CpuRectifier {
    rectify: Rectify,
    simd: Simd,
    team: Team,
    host: Host,
}

impl CpuRectifier {
    pub fn new(rectifier: Arc<Rectifier>, options: CpuOptions) -> anyhow::Result<Self> {
        let (simd, team, host) = options.start_team()?;
        Ok(Self { rectify: Rectify::new(rectifier), simd, team, host })
    }

    pub fn rectify(&mut self, raw: StereoPair) -> anyhow::Result<StereoPair> {
        self.rectify.check_size(&raw)?;
        let Self { rectify, simd, team, host } = self;
        Ok(host.run(|| rectify.run(team, *simd, raw))?)
    }
}

/// Memory of a rectified image; every piece writes its own part.
struct Destination(*mut u8);

// SAFETY: the threads write different pixels, and the buffer outlives the task.
unsafe impl Sync for Destination {}

/// Pixels of a piece out of `count`: whole vectors, except for the last one.
fn share(pixels: usize, piece: usize, count: usize) -> Range<usize> {
    let border = |piece: usize| {
        let vectors = pixels.div_ceil(INTERPOLATED) * piece / count;
        (vectors * INTERPOLATED).min(pixels)
    };
    border(piece)..border(piece + 1)
}

/// Writes the rectified pixels of the range; `to` is the address of pixel 0.
///
/// # Safety
/// The machine has the instructions; the range lies in the rectified image, and its pixels are writable and
/// not shared.
///
/// # Panics
/// If `from` has not the source's size.
unsafe fn apply(simd: Simd, map: &RectifyMap, from: &Image, pixels: Range<usize>, to: *mut u8) {
    assert_eq!((from.width(), from.height()), map.source_size(), "size of a raw picture");
    let kernel = Part { map, from: from.pixels(), pixels, to };
    // SAFETY: the caller's promise.
    unsafe { simd.vectorize(kernel) }
}

struct Part<'a> {
    map: &'a RectifyMap,
    from: &'a [u8],
    pixels: Range<usize>,
    to: *mut u8,
}

impl SimdKernel for Part<'_> {
    #[inline(always)]
    unsafe fn run<V: Vector>(self) {
        let Self { map, from, pixels, to } = self;
        let stride = map.source_size().0;
        let (offsets, weights) = (map.offsets(), map.weights());
        let mut at = pixels.start;
        // SAFETY: the map has an offset and a weight for every pixel of the range, and the offsets lie in the
        // source; the rest is the caller's promise.
        unsafe {
            // Otherwise pixel by pixel, at any size.
            if let Some(taps) = Taps::of(from, stride) {
                while at + INTERPOLATED <= pixels.end {
                    let (offsets, weights) = (offsets.as_ptr().add(at), weights.as_ptr().add(at));
                    V::interpolate(taps, offsets, weights, to.add(at));
                    at += INTERPOLATED;
                }
            }
            for at in at..pixels.end {
                *to.add(at) = interpolate(from, stride, offsets[at], weights[at]);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use proptest::prelude::*;

    use super::*;
    use crate::engine::cpu::SimdChoice;
    use crate::frame::StereoGeometry;

    /// A map of `size` from positions in and around `source`, many of them on its borders.
    fn wild(source: (usize, usize), size: (usize, usize), seed: u64) -> RectifyMap {
        let position = |x: usize, y: usize| {
            let mut state =
                (seed ^ ((y << 20 | x) as u64) << 20).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            let mut random = || {
                state = (state ^ state >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9);
                state >> 33
            };
            let mut coordinate = |side: usize| match random() % 8 {
                0 => 0.0,
                1 => side as f64 - 1.0,
                2 => side as f64 - 1.0 - 1.0 / 256.0,
                // Rounds onto the border from outside, and does not.
                3 => side as f64 - 1.0 + 0.0019,
                4 => -0.0020,
                _ => (random() % 100_000) as f64 / 99_999.0 * (side as f64 + 0.2) - 0.6,
            };
            let at = [coordinate(source.0), coordinate(source.1)];
            (random() % 50 > 0).then_some(at)
        };
        RectifyMap::from_positions(source, size, position).unwrap()
    }

    fn noise((width, height): (usize, usize), seed: u64) -> Image {
        let random = |i: usize| (seed + i as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        // Many pixels at the ends of the range.
        Image::from_fn(width, height, |x, y| match random(y * width + x) >> 55 {
            value @ 0..=255 => value as u8,
            256..=383 => 255,
            _ => 0,
        })
    }

    fn raw(left: Image, right: Image) -> StereoPair {
        StereoPair {
            left,
            right,
            sequence: 3,
            timestamp: Duration::from_millis(7),
            skew_ns: Some(-5),
            arrived: Instant::now(),
            truth: None,
            prior: None,
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn every_vector_width_gives_the_bytes_of_the_plain_map(
            left in (1usize..40, 1usize..12),
            right in (1usize..40, 1usize..12),
            size in prop_oneof![(1usize..90, 1usize..9), (1usize..4, 1usize..4)],
            seed in any::<u64>(),
            threads in 1usize..=4,
        ) {
            let maps = [wild(left, size, seed), wild(right, size, seed ^ 1)];
            prop_assume!(maps.iter().all(RectifyMap::sees_anything));
            let [l, r] = maps;
            let geometry = StereoGeometry {
                focal_px: 1.0,
                baseline_m: 1.0,
                centre_x_px: 0.0,
                centre_y_px: 0.0,
                right_centre_x_px: 0.0,
            };
            let rectifier = Arc::new(Rectifier::from_maps(l, r, geometry).unwrap());
            let rectify = Rectify::new(rectifier.clone());
            let mut team = Team::new(threads).unwrap();
            for choice in SimdChoice::available() {
                let simd = choice.resolve().unwrap();
                let pair = || raw(noise(left, seed), noise(right, seed / 3));
                let [expected_left, expected_right] = rectifier.rectify_pair(&pair());
                let got = rectify.run(&mut team, simd, pair()).unwrap();
                prop_assert_eq!(got.left.pixels(), expected_left.pixels(), "{:?}", choice);
                prop_assert_eq!(got.right.pixels(), expected_right.pixels(), "{:?}", choice);
                prop_assert_eq!(got.left.valid_mask(), expected_left.valid_mask());
                prop_assert_eq!(got.right.valid_mask(), expected_right.valid_mask());
                prop_assert_eq!((got.sequence, got.skew_ns), (3, Some(-5)));
            }
        }
    }

    /// 2^30 pixels, most of them never accessed: the largest size for a map, and for vector units with signed
    /// offsets.
    #[test]
    fn the_last_pixels_of_the_largest_picture_are_found() {
        let source = (1usize << 15, 1usize << 15);
        let mut pixels = vec![0u8; source.0 * source.1];
        let (first_of_last_row, last) = (pixels.len() - source.0, pixels.len() - 1);
        for (at, value) in [(0, 50), (source.0 - 1, 60), (first_of_last_row, 70)] {
            pixels[at] = value;
        }
        pixels[last - 3..].copy_from_slice(&[10, 40, 80, 200]);
        let image = Image::from_vec(source.0, source.1, pixels);
        let end = source.0 as f64 - 1.0;
        let corners = [[0.0, 0.0], [end, 0.0], [0.0, end], [end, end], [end - 0.5, end]];
        let size = (2 * INTERPOLATED, 1);
        let position = |x: usize, _| Some(corners[x % corners.len()]);
        let map = RectifyMap::from_positions(source, size, position).unwrap();
        let expected: Vec<u8> = (0..size.0).map(|x| [50, 60, 70, 200, 140][x % 5]).collect();
        for choice in SimdChoice::available() {
            let mut got = vec![0; size.0];
            // SAFETY: the simd was found on this machine, and the range is all of the image.
            unsafe { apply(choice.resolve().unwrap(), &map, &image, 0..size.0, got.as_mut_ptr()) };
            assert_eq!(got, expected, "{choice:?}");
        }
        assert!(RectifyMap::from_positions((1 << 15, (1 << 15) + 1), size, position).is_err());
    }

    #[test]
    fn the_pieces_have_all_pixels() {
        for (pixels, count) in [(1, 4), (16, 3), (17, 2), (1000, 7), (921_600, 4)] {
            let parts: Vec<_> = (0..count).map(|piece| share(pixels, piece, count)).collect();
            assert_eq!(parts[0].start, 0);
            assert_eq!(parts[count - 1].end, pixels);
            assert!(parts.windows(2).all(|pair| pair[0].end == pair[1].start));
        }
    }
}
