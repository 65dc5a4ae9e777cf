//! Texture of all surfaces of the demo scene: periodic, band-limited value noise of several octaves
//! with a mipmap (Williams, "Pyramidal parametrics", SIGGRAPH 1983), so that a look-up never
//! aliases.
//!
//! Integer arithmetic and single IEEE operations in a fixed order give the same texels for a seed
//! on every machine.

/// Side of level 0 in texels; a power of two, and the period of the texture.
const SIDE: usize = 512;

/// Number of levels, from 512 x 512 down to 2 x 2 texels.
const LEVELS: usize = 9;

/// Octaves as (cell side in texels, amplitude): the finest cell spans several pixels, so that
/// linear interpolation between pixels is close to the truth.
const OCTAVES: [(usize, f32); 6] =
    [(4, 0.55), (8, 0.6), (16, 0.6), (32, 0.5), (64, 0.4), (128, 0.3)];

/// Fixed-point units per texel of a texture coordinate.
const TEXEL_UNITS: f32 = 256.0;

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
    /// Levels, finest first. A number holds the four texels (x, y), (x + 1, y), (x, y + 1) and (x +
    /// 1, y + 1), lowest byte first, so that a bilinear look-up needs one load.
    levels: Vec<Vec<u32>>,
}

impl Texture {
    /// Creates the texture of `seed`.
    pub(super) fn new(seed: u64) -> Self {
        let mut sum = vec![0f32; SIDE * SIDE];
        for (octave, &(cell, amplitude)) in OCTAVES.iter().enumerate() {
            add_octave(&mut sum, seeded(seed, octave as u32), cell, amplitude);
        }
        let finest: Vec<u8> =
            sum.iter().map(|v| (128.5 + 62.0 * v).clamp(0.0, 255.0) as u8).collect();
        let mut levels = vec![finest];
        while levels.len() < LEVELS {
            levels.push(halved(&levels[levels.len() - 1], SIDE >> (levels.len() - 1)));
        }
        let quads = levels.iter().enumerate().map(|(level, t)| quads(t, SIDE >> level));
        Self { levels: quads.collect() }
    }

    /// Samples the texture trilinearly at (u, v), in texels of level 0, for a pixel that spans
    /// `2^level` texels. The result is around 0, within -128 to 127.
    #[inline(always)]
    pub(super) fn sample(&self, u: f32, v: f32, level: f32) -> f32 {
        let level = level.clamp(0.0, (LEVELS - 1) as f32 - 0.001);
        let whole = level as usize;
        let fraction = level - whole as f32;
        let (u, v) = ((u * TEXEL_UNITS) as i32, (v * TEXEL_UNITS) as i32);
        let fine = bilinear(&self.levels[whole], SIDE >> whole, u >> whole, v >> whole);
        let coarse = whole + 1;
        let coarse = bilinear(&self.levels[coarse], SIDE >> coarse, u >> coarse, v >> coarse);
        fine + fraction * (coarse - fine) - 128.0
    }
}

/// Adds value noise: random values at the corners of square cells, blended smoothly between them.
fn add_octave(sum: &mut [f32], seed: u32, cell: usize, amplitude: f32) {
    let cells = SIDE / cell;
    let corner = |column: usize, row: usize| {
        let bits = mix(seed ^ mix((row % cells * cells + column % cells) as u32 + 1));
        ((bits >> 8) as f32 / (1 << 23) as f32 - 1.0) * amplitude
    };
    // 3 t^2 - 2 t^3 has no slope at the corners, so cell borders do not show.
    let fade: Vec<f32> = (0..cell)
        .map(|i| (i as f32 + 0.5) / cell as f32)
        .map(|t| t * t * (3.0 - 2.0 * t))
        .collect();
    let lattice: Vec<f32> = (0..cells * cells).map(|i| corner(i % cells, i / cells)).collect();
    for (y, row) in sum.chunks_exact_mut(SIDE).enumerate() {
        let (above, below) = (y / cell * cells, (y / cell + 1) % cells * cells);
        let down = fade[y % cell];
        for (column, texels) in row.chunks_exact_mut(cell).enumerate() {
            let next = (column + 1) % cells;
            let blend = |column| {
                lattice[above + column] + down * (lattice[below + column] - lattice[above + column])
            };
            let (left, right) = (blend(column), blend(next));
            for (texel, across) in texels.iter_mut().zip(&fade) {
                *texel += left + across * (right - left);
            }
        }
    }
}

/// Halves a level: the rounded means of 2 x 2 texels.
fn halved(texels: &[u8], side: usize) -> Vec<u8> {
    let half = side / 2;
    let mean = |i: usize| {
        let at = i / half * 2 * side + i % half * 2;
        let four = [texels[at], texels[at + 1], texels[at + side], texels[at + side + 1]];
        ((four.iter().map(|&t| u32::from(t)).sum::<u32>() + 2) / 4) as u8
    };
    (0..half * half).map(mean).collect()
}

/// Packs every texel with its neighbours to the right, below, and below right, wrapped around.
fn quads(texels: &[u8], side: usize) -> Vec<u32> {
    let quad = |i: usize| {
        let (x, y) = (i % side, i / side);
        let (x_next, y_next) = ((x + 1) % side, (y + 1) % side);
        let texel = |x: usize, y: usize| texels[y * side + x];
        u32::from_le_bytes([texel(x, y), texel(x_next, y), texel(x, y_next), texel(x_next, y_next)])
    };
    (0..side * side).map(quad).collect()
}

/// Interpolates bilinearly at (u, v), in 1/256 texels from the corner of the first texel.
#[inline(always)]
fn bilinear(quads: &[u32], side: usize, u: i32, v: i32) -> f32 {
    // Texel centres are at half texels.
    let (u, v) = (u.wrapping_sub(128), v.wrapping_sub(128));
    let (x, y) = ((u >> 8) as usize & (side - 1), (v >> 8) as usize & (side - 1));
    let (across, down) = ((u & 255) as u32, (v & 255) as u32);
    let quad = quads[y * side + x];
    // Two 16-bit lanes: the upper pair of texels in the low half, the lower pair in the high half.
    let (left, right) = (quad & 0x00ff_00ff, (quad >> 8) & 0x00ff_00ff);
    let mixed = left * (256 - across) + right * across;
    let value = (mixed & 0xffff) * (256 - down) + (mixed >> 16) * down;
    value as i32 as f32 * (1.0 / 65536.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_noise_is_centred_varied_and_of_its_seed() {
        let texture = Texture::new(3);
        let texels: Vec<u8> = texture.levels[0].iter().map(|&quad| quad as u8).collect();
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
        let texel = |x: usize, y: usize| f32::from(texture.levels[0][y * SIDE + x] as u8) - 128.0;
        assert_eq!(texture.sample(7.5, 9.5, 0.0), texel(7, 9));
        assert_eq!(texture.sample(8.0, 9.5, 0.0), (texel(7, 9) + texel(8, 9)) / 2.0);
        assert_eq!(texture.sample(7.5 - SIDE as f32, 9.5, 0.0), texel(7, 9));
        assert_eq!(texture.sample(0.0, 0.5, 0.0), (texel(SIDE - 1, 0) + texel(0, 0)) / 2.0);
    }

    #[test]
    fn a_coarser_level_is_calmer() {
        let texture = Texture::new(6);
        let roughness = |level: f32| -> f32 {
            let at = |i: usize| texture.sample(i as f32, 40.5, level);
            (0..SIDE).map(|i| (at(i + 1) - at(i)).abs()).sum()
        };
        assert!(roughness(0.0) > 1.5 * roughness(2.0));
        assert!(roughness(2.0) > 1.5 * roughness(4.0));
        // Wild coordinates and levels are legal.
        assert!(texture.sample(1e30, f32::NAN, 99.0).is_finite());
    }

    #[test]
    fn the_logarithm_is_exact_at_powers_of_two() {
        for power in -4..9 {
            assert_eq!(log2_estimate(2f32.powi(power)), power as f32);
        }
        assert!((log2_estimate(3.0) - 3f32.log2()).abs() < 0.1);
    }
}
