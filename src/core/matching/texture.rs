//! Texture of a pixel, compared with the noise of its image.

use crate::frame::{Image, clamped};

/// Radius of the texture window in pixels.
pub const RADIUS: usize = 2;

/// Largest response of the noise filter: four pixels at 255 with a weight of 1, one with a weight of 4.
pub const RESPONSE_MAX: usize = 4 * 255 + 4 * 255;

/// Darkest and brightest grey level for the noise estimate; beyond them noise is clipped.
pub const UNCLIPPED: (u8, u8) = (8, 247);

/// Range (maximum minus minimum) of the grey levels of the 5 x 5 pixels around (x, y), clamped to the image.
pub fn grey_range(image: &Image, x: usize, y: usize) -> u8 {
    let (mut least, mut greatest) = (u8::MAX, 0);
    let reach = -(RADIUS as i64)..=RADIUS as i64;
    for down in reach.clone() {
        let row = image.row(clamped(y as i64 + down, image.height()));
        for across in reach.clone() {
            let grey = row[clamped(x as i64 + across, image.width())];
            (least, greatest) = (least.min(grey), greatest.max(grey));
        }
    }
    greatest - least
}

/// Range of grey levels of a window of pure noise, about 4 + 4 sigma.
///
/// Sigma is estimated as by Immerkaer (CVIU 1996), from the response of a filter that ignores linear
/// structure, but by a quantile instead of the mean, because texture has strong responses: 30 % of the
/// responses to Gaussian noise are below 6 * 0.3853 sigma.
pub fn noise_threshold(image: &Image) -> u32 {
    threshold_of(&responses(image))
}

/// Histogram of the noise filter's responses by magnitude.
pub fn responses(image: &Image) -> Vec<u32> {
    let mut histogram = vec![0u32; RESPONSE_MAX + 1];
    for y in 1..image.height().saturating_sub(1) {
        let rows = [y - 1, y, y + 1].map(|y| image.row(y));
        for x in 1..image.width().saturating_sub(1) {
            if (UNCLIPPED.0..=UNCLIPPED.1).contains(&rows[1][x]) {
                let of_row = |row: &[u8]| {
                    i32::from(row[x - 1]) - 2 * i32::from(row[x]) + i32::from(row[x + 1])
                };
                let response = of_row(rows[0]) - 2 * of_row(rows[1]) + of_row(rows[2]);
                histogram[response.unsigned_abs() as usize] += 1;
            }
        }
    }
    histogram
}

/// Standard deviation of the noise in grey levels, at a finer resolution than the threshold: responses of one
/// magnitude are assumed evenly distributed over half a step to either side. 0 if it is below 0.2, or if no
/// pixel can be used.
pub fn noise_sigma(image: &Image) -> f64 {
    let histogram = responses(image);
    let wanted = 0.3 * histogram.iter().map(|&n| f64::from(n)).sum::<f64>();
    let mut below = 0.0;
    for (magnitude, &n) in histogram.iter().enumerate().filter(|(_, n)| **n > 0) {
        let n = f64::from(n);
        if below + n > wanted {
            let quantile = magnitude as f64 - 0.5 + (wanted - below) / n;
            return if magnitude == 0 { 0.0 } else { quantile / (6.0 * 0.3853) };
        }
        below += n;
    }
    0.0
}

/// Threshold from the histogram of responses: 4 + 4 sigma, with sigma = q / (6 * 0.3853) and q the
/// [`quantile`]; 4 for an empty histogram.
pub fn threshold_of(histogram: &[u32]) -> u32 {
    4 + ((443 * quantile(histogram) + 128) >> 8)
}

/// The least magnitude that with all smaller ones exceeds 30 % of a histogram; 0 if it is empty.
pub fn quantile(histogram: &[u32]) -> u32 {
    let count: u64 = histogram.iter().map(|&n| u64::from(n)).sum();
    let mut below = 0;
    let place = histogram.iter().position(|&n| {
        below += u64::from(n);
        10 * below > 3 * count
    });
    place.unwrap_or(0) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_range_is_that_of_the_window_inside_the_picture() {
        let image = Image::from_fn(9, 6, |x, y| if (x, y) == (6, 3) { 90 } else { x as u8 });
        assert_eq!(grey_range(&image, 0, 0), 2);
        assert_eq!(grey_range(&image, 3, 0), 4);
        assert_eq!(grey_range(&image, 4, 1), 88);
        assert_eq!(grey_range(&image, 8, 5), 84);
    }

    #[test]
    fn the_threshold_is_that_of_the_noise() {
        let mut histogram = vec![0; RESPONSE_MAX + 1];
        assert_eq!(threshold_of(&histogram), 4);
        // 3 of 10 are not more than 30 %; 4 are. 4 + (443 * 7 + 128) / 256 = 4 + 12.
        (histogram[2], histogram[7], histogram[2000]) = (3, 1, 6);
        assert_eq!(threshold_of(&histogram), 16);
        let even = Image::from_fn(20, 20, |x, y| (60 + 3 * x + 2 * y) as u8);
        assert_eq!(noise_threshold(&even), 4);
    }

    #[test]
    fn gaussian_noise_gives_four_sigma() {
        let mut state = 1u64;
        let mut uniform = move || {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (state >> 33) as f64 / f64::from(1u32 << 31)
        };
        for sigma in [2.0, 5.0, 10.0] {
            // Twelve uniform numbers sum up to nearly Gaussian ones of variance 1.
            let pixels = (0..200 * 200).map(|_| {
                let gaussian: f64 = (0..12).map(|_| uniform()).sum::<f64>() - 6.0;
                (128.0 + sigma * gaussian).round() as u8
            });
            let image = Image::from_vec(200, 200, pixels.collect());
            let found = f64::from(noise_threshold(&image) - 4);
            assert!((found - 4.0 * sigma).abs() <= 1.0 + 0.1 * sigma, "{sigma}: {found}");
            let finer = noise_sigma(&image);
            assert!((finer - sigma).abs() <= 0.03 * sigma + 0.02, "{sigma}: {finer}");
        }
    }

    #[test]
    fn small_and_clipped_pictures_have_no_noise() {
        assert_eq!(noise_threshold(&Image::from_fn(2, 9, |x, y| (x * 99 + y) as u8)), 4);
        let clipped = Image::from_fn(30, 30, |x, y| if (x + y) % 2 == 0 { 255 } else { 0 });
        assert_eq!(noise_threshold(&clipped), 4);
    }
}
