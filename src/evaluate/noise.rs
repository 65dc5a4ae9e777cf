//! Sensor noise, added to images.
//!
//! Grey levels are whole numbers, and so is the noise: the rounded normal distribution, drawn by inversion
//! from a table of its distribution function. It uses only additions, multiplications, divisions and square
//! roots, which IEEE 754 defines to the last bit, so that a seed gives the same noise on every machine.

use stereod_core::frame::{Eye, Image};

/// Largest step, beyond all grey levels.
const STEPS: usize = 256;

/// Normal noise of whole grey levels.
#[derive(Clone, Debug)]
pub struct Noise {
    /// Standard deviation in grey levels, before rounding.
    pub sigma: f64,
    pub seed: u64,
    /// Cumulative counts: for each step from -[`STEPS`] on, the draws (of 2^32) that give at most this step.
    below: Vec<u64>,
}

impl Noise {
    pub fn new(sigma: f64, seed: u64) -> Self {
        let steps = -(STEPS as i64)..=STEPS as i64;
        let draws = |step: i64| match sigma > 0.0 {
            true => (distribution((step as f64 + 0.5) / sigma) * 4_294_967_296.0).round() as u64,
            false => u64::from(step >= 0) << 32,
        };
        Self { sigma, seed, below: steps.map(draws).collect() }
    }

    /// Returns the image with noise. Each view has its own noise, the same for all images of a size.
    pub fn add(&self, picture: &Image, eye: Eye) -> Image {
        let mut draws = SplitMix::of(self.seed, eye.index() as u64);
        let pixels = picture.pixels().iter().map(|&level| {
            let draw = draws.next() >> 32;
            let step = self.below.partition_point(|&end| end <= draw) as i64 - STEPS as i64;
            (i64::from(level) + step).clamp(0, 255) as u8
        });
        Image::from_vec(picture.width(), picture.height(), pixels.collect())
    }
}

/// Returns the distribution function of the normal distribution with mean 0 and standard deviation
/// 1, by its series (Marsaglia, Evaluating the normal distribution, Journal of Statistical Software
/// 11(4), 2004, section 3).
fn distribution(x: f64) -> f64 {
    // Beyond, it is 0 or 1 to 32 bits.
    if x.abs() > 7.0 {
        return f64::from(u8::from(x > 0.0));
    }
    let (mut sum, mut term, mut divisor) = (x, x, 1.0);
    loop {
        divisor += 2.0;
        term *= x * x / divisor;
        let more = sum + term;
        if more == sum {
            break;
        }
        sum = more;
    }
    0.5 + sum * exponential(-0.5 * x * x) / std::f64::consts::TAU.sqrt()
}

/// Returns e to the power of `x`, from -32 to 0, by its series for 1/64 of it.
fn exponential(x: f64) -> f64 {
    let x = x / 64.0;
    let (mut sum, mut term) = (1.0, 1.0);
    for n in 1..24 {
        term *= x / f64::from(n);
        sum += term;
    }
    (0..6).fold(sum, |power, _| power * power)
}

/// The generator SplitMix64 (Steele, Lea and Flood, Fast splittable pseudorandom number generators, OOPSLA
/// 2014).
struct SplitMix(u64);

impl SplitMix {
    fn of(seed: u64, stream: u64) -> Self {
        let mut seeds = SplitMix(seed);
        let first = seeds.next();
        Self(first ^ SplitMix(stream).next())
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_generator_is_the_published_one() {
        let mut draws = SplitMix(1_234_567);
        // The reference's first numbers for this seed (prng.di.unimi.it, splitmix64.c).
        assert_eq!(draws.next(), 6_457_827_717_110_365_317);
        assert_eq!(draws.next(), 3_203_168_211_198_807_973);
        assert_eq!(draws.next(), 9_817_491_932_198_370_423);
    }

    #[test]
    fn the_distribution_has_its_known_values() {
        for (x, expected) in [
            (0.0, 0.5),
            (1.0, 0.841_344_746_068_542_9),
            (-1.96, 0.024_997_895_148_220_435),
            (3.0, 0.998_650_101_968_369_9),
            (-6.0, 9.865_876_450_376_946e-10),
            (8.0, 1.0),
            (-8.0, 0.0),
        ] {
            assert!((distribution(x) - expected).abs() < 1e-13, "{x}: {}", distribution(x));
        }
    }

    fn differences(sigma: f64, seed: u64, eye: Eye) -> Vec<i32> {
        let grey = Image::from_fn(400, 250, |_, _| 128);
        let noisy = Noise::new(sigma, seed).add(&grey, eye);
        noisy.pixels().iter().map(|&level| i32::from(level) - 128).collect()
    }

    #[test]
    fn noise_has_the_moments_of_the_normal_distribution() {
        for sigma in [0.6, 5.0, 10.0] {
            let steps = differences(sigma, 3, Eye::Left);
            let mean_of = |f: fn(f64) -> f64| {
                steps.iter().map(|&step| f(f64::from(step))).sum::<f64>() / steps.len() as f64
            };
            // Rounding adds a twelfth to the variance; 100000 draws give the mean to 0.0032 sigma.
            let variance = sigma * sigma + 1.0 / 12.0;
            assert!(mean_of(|x| x).abs() < 0.02 * sigma, "{sigma}: mean {}", mean_of(|x| x));
            let told = mean_of(|x| x * x) / variance;
            assert!((0.97..1.03).contains(&told), "{sigma}: variance {told}");
            let kurtosis = mean_of(|x| x * x * x * x) / (variance * variance);
            assert!((2.85..3.15).contains(&kurtosis), "{sigma}: kurtosis {kurtosis}");
        }
    }

    #[test]
    fn eyes_and_seeds_have_noise_of_their_own() {
        let all = [(1, Eye::Left), (1, Eye::Right), (2, Eye::Left)]
            .map(|(seed, eye)| differences(5.0, seed, eye));
        for (a, b) in [(0, 1), (0, 2), (1, 2)] {
            let product: i32 = all[a].iter().zip(&all[b]).map(|(a, b)| a * b).sum();
            let correlation = f64::from(product) / all[a].len() as f64 / 25.0;
            assert!(correlation.abs() < 0.02, "{correlation}");
        }
        assert_eq!(all[0], differences(5.0, 1, Eye::Left));
    }

    #[test]
    fn no_noise_changes_nothing_and_levels_stay_within_a_byte() {
        assert!(differences(0.0, 1, Eye::Left).iter().all(|&step| step == 0));
        let edge = Image::from_fn(64, 64, |x, _| if x < 32 { 0 } else { 255 });
        let noisy = Noise::new(20.0, 1).add(&edge, Eye::Left);
        let dark = noisy.row(7)[..32].iter().filter(|&&level| level == 0).count();
        assert!((8..24).contains(&dark), "about half of the draws are negative: {dark}");
    }

    /// Changed noise would make figures of different versions incomparable.
    #[test]
    fn the_noise_of_a_seed_stays_what_it_is() {
        let steps = differences(5.0, 1, Eye::Left);
        // From a few lines of Python with its own error function.
        assert_eq!(steps[..8], [5, 2, -3, -7, -5, -1, 0, 4]);
    }
}
