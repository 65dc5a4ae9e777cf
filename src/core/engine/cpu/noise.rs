//! Noise thresholds of a whole image in tiles ([`crate::matching::levels::noise_thresholds`]).

use std::sync::Mutex;

use super::memory::Arena;
use super::prepare::{half, picture, share};
use super::simd::Simd;
use super::team::Team;
use super::texture::{NoiseRow, PixelRows};
use crate::frame::Image;
use crate::matching::Params;
use crate::matching::levels::levels;
use crate::matching::texture::{RESPONSE_MAX, threshold_of};
use crate::memory::Result;
use crate::thread::locked;

/// Measures the thresholds of images of one width.
pub struct Noise {
    levels: usize,
    threads: Vec<Mutex<ThreadScratch>>,
}

struct ThreadScratch {
    histogram: Vec<u32>,
    responses: Vec<u16>,
}

impl Noise {
    /// For images of this width in windows of this size; `None` if the parameters ignore the noise.
    pub fn new(
        arena: &Arena,
        params: &Params,
        width: usize,
        window: (usize, usize),
        threads: usize,
    ) -> Result<Option<Self>> {
        if !params.follows_noise() {
            return Ok(None);
        }
        let of_thread = || {
            let histogram = arena.filled(RESPONSE_MAX + 1, 0)?;
            Ok(ThreadScratch { histogram, responses: arena.filled(width, 0)? })
        };
        let threads = arena.per_thread(threads, of_thread)?;
        Ok(Some(Self { levels: levels(params, window).len(), threads }))
    }

    /// Measures the thresholds of a left image, the finest level first. `room` receives the images of half
    /// the size and less, one byte per pixel.
    ///
    /// # Panics
    /// If the room is too small.
    pub fn thresholds(
        &self,
        team: &mut Team,
        simd: Simd,
        left: &Image,
        mut room: &mut [u8],
    ) -> Vec<u32> {
        let mut thresholds = vec![self.threshold(team, simd, picture(left))];
        let mut finer = picture(left);
        for _ in 1..self.levels {
            let size = (finer.size.0.div_ceil(2), finer.size.1.div_ceil(2));
            let (pixels, rest) = std::mem::take(&mut room).split_at_mut(size.0 * size.1);
            half(team, simd, finer, pixels);
            (finer, room) = (PixelRows { pixels, size }, rest);
            thresholds.push(self.threshold(team, simd, finer));
        }
        thresholds
    }

    fn threshold(&self, team: &mut Team, simd: Simd, of: PixelRows) -> u32 {
        let scratch = |thread: usize| locked(&self.threads[thread]);
        (0..self.threads.len()).for_each(|thread| scratch(thread).histogram.fill(0));
        // The first row and the last one have no response.
        share(team, of.size.1.saturating_sub(2), |thread, y| {
            let ThreadScratch { histogram, responses } = &mut *scratch(thread);
            // SAFETY: the simd was found on this machine.
            unsafe { simd.vectorize(NoiseRow { of, y: y + 1, histogram, responses }) };
        });
        let mut sum = [0; RESPONSE_MAX + 1];
        for thread in 0..self.threads.len() {
            let counts = &scratch(thread).histogram;
            sum.iter_mut().zip(counts).for_each(|(sum, &count)| *sum += count);
        }
        threshold_of(&sum)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::engine::cpu::{CpuEngine, CpuOptions, SimdChoice};
    use crate::engine::interface::{Engine, PairSpec, TileEngine};
    use crate::frame::{DisparityRange, StereoPair};
    use crate::matching::levels::noise_thresholds;
    use crate::matching::{Cost, Prior, Window, match_pair, match_tile};

    fn params(levels: u8) -> Params {
        let range = DisparityRange { min: 0, count: 16 };
        Params {
            window: Some(Window { side: 5, by_texture: true }),
            prior: (levels > 0).then_some(Prior { levels, strength: 16 }),
            ..Params::bare(range, Cost::Ad { truncation: 30, window: 1 }, (5, 60))
        }
    }

    /// A slope with noise of up to this many grey levels, increasing downwards.
    fn picture((width, height): (usize, usize), noise: usize, shift: usize) -> Image {
        Image::from_fn(width, height, |x, y| {
            let blot = (x + 1000 * shift).wrapping_mul(0x9e37_79b9) ^ y.wrapping_mul(0x85eb_ca6b);
            let random = (blot.wrapping_mul(0xc2b2_ae35) >> 13) % (1 + noise * (y + 1) / height);
            ((x + shift) / 2 + y + random) as u8
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn thresholds_are_those_of_the_definition(
            (width, height) in (1usize..150, 1usize..150),
            window in (1usize..150, 1usize..150),
            noise in 0usize..90,
            (levels, threads) in (0u8..=3, 1usize..4),
        ) {
            let window = (window.0.min(width), window.1.min(height));
            let (params, left) = (params(levels), picture((width, height), noise, 0));
            let expected = noise_thresholds(&left, &params, window);
            for simd in SimdChoice::available() {
                let options = CpuOptions { threads: Some(threads), simd, ..CpuOptions::default() };
                let (simd, mut team, _) = options.start_team().unwrap();
                let noise = Noise::new(&Arena::new(), &params, width, window, threads).unwrap().unwrap();
                let mut room = vec![0; 2 * width * height];
                // The second run must equal the first.
                for _ in 0..2 {
                    let got = noise.thresholds(&mut team, simd, &left, &mut room);
                    prop_assert_eq!(&got, &expected);
                }
            }
        }
    }

    #[test]
    fn a_tile_is_matched_with_the_thresholds_that_it_comes_with() {
        let size = (70, 66);
        let params = params(2);
        let options = CpuOptions { threads: Some(2), ..CpuOptions::default() };
        let mut engine = CpuEngine::new(&params, &PairSpec::rectified(70, 66), options).unwrap();
        let pair = || StereoPair::of_stills(picture(size, 40, 0), picture(size, 40, 3));
        let of_noise = pair();
        let own = noise_thresholds(&of_noise.left, &params, size);
        let whole = match_pair(&of_noise.left, &of_noise.right, &params);
        assert_eq!(match_tile(&of_noise, &params, &own).0.values(), whole.values());
        for level in 0..3 {
            let mut given = own.clone();
            given[level] = 4;
            let expected = match_tile(&of_noise, &params, &given).0;
            assert!(expected.values() != whole.values(), "level {level} of {own:?}");
            engine.submit_tile(pair(), Some(&given)).unwrap();
            let got = engine.collect().unwrap().unwrap().disparity;
            assert_eq!(got.values(), expected.values());
            // The next pair has its own thresholds again.
            engine.submit(pair()).unwrap();
            assert_eq!(engine.collect().unwrap().unwrap().disparity.values(), whole.values());
        }
        for wrong in [&own[..2], &[20, 0, 20]] {
            let error = engine.submit_tile(pair(), Some(wrong)).unwrap_err().to_string();
            assert!(error.contains("3 levels"), "{error}");
        }
    }
}
