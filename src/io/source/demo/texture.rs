//! Grain of all surfaces of the demo scene: periodic, band-limited value noise of several octaves with a
//! mipmap (Williams, "Pyramidal parametrics", SIGGRAPH 1983), so that a look-up never aliases.
//!
//! Integer arithmetic and single IEEE operations in a fixed order give the same texels for a seed
//! on every machine.

/// Side of level 0 in texels; a power of two, and the period of the texture.
const SIDE: usize = 512;

/// Number of levels, from 512 x 512 down to 2 x 2 texels.
const LEVELS: usize = 9;

/// The sum with a number of a smaller size is rounded to a whole one, which its low bits hold.
pub(super) const WHOLE: f32 = 1.5 * (1 << 23) as f32;

/// Amplitudes of the octaves, with cells of 4, 8, 16 ... texels. The finest cell spans several pixels, so
/// that linear interpolation between pixels is close to the truth.
const AMPLITUDES: [f32; 5] = [0.85, 0.8, 0.5, 0.3, 0.2];

/// Mixes the bits of a 32-bit number (the finaliser of MurmurHash3, a bijection).
#[inline(always)]
pub(super) fn mix(mut bits: u32) -> u32 {
    bits ^= bits >> 16;
    bits = bits.wrapping_mul(0x85eb_ca6b);
    bits ^= bits >> 13;
    bits = bits.wrapping_mul(0xc2b2_ae35);
    bits ^ (bits >> 16)
}

/// Derives a 32-bit number from a 64-bit seed and the number of a purpose.
pub(super) fn seeded(seed: u64, purpose: u32) -> u32 {
    mix(mix(seed as u32 ^ purpose.wrapping_mul(0x9e37_79b9)) ^ (seed >> 32) as u32)
}

/// Approximates log2 of a positive number: the exponent, and the mantissa as a linear fraction.
#[inline(always)]
pub(super) fn log2_estimate(value: f32) -> f32 {
    value.to_bits() as i32 as f32 * (1.0 / (1 << 23) as f32) - 127.0
}

/// Mipmap of noise around 128 with a standard deviation of about 30 grey levels.
pub(super) struct Texture {
    levels: Vec<Vec<u8>>,
}

impl Texture {
    pub(super) fn new(seed: u64) -> Self {
        let mut sum = vec![0f32; SIDE * SIDE];
        for (octave, amplitude) in AMPLITUDES.into_iter().enumerate() {
            add_octave(&mut sum, seeded(seed, octave as u32), octave + 2, amplitude);
        }
        let finest = sum.iter().map(|v| (128.5 + 62.0 * v).clamp(0.0, 255.0) as u8);
        let mut levels: Vec<Vec<u8>> = vec![finest.collect()];
        while levels.len() < LEVELS {
            // Rounded means of 2 x 2 texels.
            let (texels, half) = (&levels[levels.len() - 1], SIDE >> levels.len());
            let mean = |i: usize| {
                let at = i / half * 4 * half + i % half * 2;
                let four = [at, at + 1, at + 2 * half, at + 2 * half + 1];
                ((four.map(|at| u32::from(texels[at])).iter().sum::<u32>() + 2) / 4) as u8
            };
            let halved = (0..half * half).map(mean).collect();
            levels.push(halved);
        }
        Self { levels }
    }

    /// Samples the texture bilinearly at points (u, v), in texels of level 0, for pixels that span `2^level`
    /// texels. The results are around 0, within -128 to 127.
    #[inline]
    pub(super) fn sample<const N: usize>(&self, at: &[[f32; N]; 2], level: &[f32; N]) -> [f32; N] {
        let (mut places, mut levels, mut samples) = ([[0; N]; 2], [0; N], [0.0; N]);
        // Compilers make vectors of this.
        for i in 0..N {
            levels[i] = (level[i].clamp(0.0, (LEVELS - 1) as f32) + WHOLE).to_bits() & 15;
            // In 1/256 texels, and texel centres are at half texels.
            let scale = f32::from_bits((127 + 8 - levels[i]) << 23);
            for (places, at) in places.iter_mut().zip(at) {
                places[i] = (at[i] * scale + WHOLE).to_bits().wrapping_sub(128);
            }
        }
        for i in 0..N {
            let (texels, side) = (&self.levels[levels[i] as usize], SIDE >> levels[i]);
            let [u, v] = [places[0][i], places[1][i]];
            let (across, down) = (u & 255, v & 255);
            let place = |texel: u32| texel as usize & (side - 1);
            let row = |y: usize| {
                let texel = |x: u32| u32::from(texels[y * side + place(x)]);
                texel(u >> 8) * (256 - across) + texel((u >> 8) + 1) * across
            };
            let value = row(place(v >> 8)) * (256 - down) + row(place((v >> 8) + 1)) * down;
            samples[i] = value as i32 as f32 * (1.0 / 65536.0) - 128.0;
        }
        samples
    }
}

/// Adds value noise: random values at the corners of square cells of `1 << shift` texels, blended
/// smoothly between them.
fn add_octave(sum: &mut [f32], seed: u32, shift: usize, amplitude: f32) {
    let (cell, cells) = (1 << shift, SIDE >> shift);
    let corner = |i: usize| {
        let bits = mix(seed ^ mix(i as u32 + 1));
        ((bits >> 8) as f32 / (1 << 23) as f32 - 1.0) * amplitude
    };
    let lattice: Vec<f32> = (0..cells * cells).map(corner).collect();
    // 3 t^2 - 2 t^3 has no slope at the corners, so cell borders do not show.
    let fade = |t: f32| t * t * (3.0 - 2.0 * t);
    let fade: Vec<f32> = (0..cell).map(|i| fade((i as f32 + 0.5) / cell as f32)).collect();
    for (y, row) in sum.chunks_exact_mut(SIDE).enumerate() {
        let (above, below) = ((y >> shift) * cells, ((y >> shift) + 1) % cells * cells);
        let blend = |x: usize| {
            let (above, below) = (lattice[above + x % cells], lattice[below + x % cells]);
            above + fade[y % cell] * (below - above)
        };
        let corners: Vec<f32> = (0..=cells).map(blend).collect();
        for (x, texel) in row.iter_mut().enumerate() {
            let (left, right) = (corners[x >> shift], corners[(x >> shift) + 1]);
            *texel += left + fade[x % cell] * (right - left);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(texture: &Texture, u: f32, v: f32, level: f32) -> f32 {
        texture.sample(&[[u], [v]], &[level])[0]
    }

    #[test]
    fn the_noise_is_centred_varied_and_of_its_seed() {
        let texture = Texture::new(3);
        let texels: Vec<u8> = texture.levels[0].clone();
        let mean = texels.iter().map(|&t| f64::from(t)).sum::<f64>() / texels.len() as f64;
        let variance = texels.iter().map(|&t| (f64::from(t) - mean).powi(2)).sum::<f64>()
            / texels.len() as f64;
        assert!((mean - 128.0).abs() < 12.0, "mean {mean}");
        assert!((20.0..45.0).contains(&variance.sqrt()), "spread {}", variance.sqrt());
        assert_eq!(Texture::new(3).levels, texture.levels);
        assert_ne!(Texture::new(4).levels, texture.levels);
    }

    #[test]
    fn the_texture_is_periodic_and_linear_between_texel_centres() {
        let texture = Texture::new(5);
        let texel = |x: usize, y: usize| f32::from(texture.levels[0][y * SIDE + x]) - 128.0;
        assert_eq!(sample(&texture, 7.5, 9.5, 0.0), texel(7, 9));
        assert_eq!(sample(&texture, 8.0, 9.5, 0.0), (texel(7, 9) + texel(8, 9)) / 2.0);
        assert_eq!(sample(&texture, 7.5 - SIDE as f32, 9.5, 0.0), texel(7, 9));
        assert_eq!(sample(&texture, 0.0, 0.5, 0.0), (texel(SIDE - 1, 0) + texel(0, 0)) / 2.0);
    }

    #[test]
    fn a_coarser_level_is_calmer() {
        let texture = Texture::new(6);
        let roughness = |level: f32| -> f32 {
            let at = |i: usize| sample(&texture, i as f32, 40.5, level);
            (0..SIDE).map(|i| (at(i + 1) - at(i)).abs()).sum()
        };
        assert!(roughness(0.0) > 1.5 * roughness(2.0));
        assert!(roughness(2.0) > 1.5 * roughness(4.0));
        // Wild coordinates and levels are legal.
        assert!(sample(&texture, 1e30, f32::NAN, 99.0).is_finite());
    }

    #[test]
    fn the_logarithm_is_exact_at_powers_of_two() {
        for power in -4..9 {
            assert_eq!(log2_estimate(2f32.powi(power)), power as f32);
        }
        assert!((log2_estimate(3.0) - 3f32.log2()).abs() < 0.1);
    }
}
