use super::*;

fn reduced(samples: &[u16], width: usize) -> Vec<u8> {
    let mut pixels = vec![0; samples.len()];
    Tone::Local.reduce(samples, width, &mut pixels);
    pixels
}

fn picture(width: usize, height: usize, sample: impl Fn(usize, usize) -> u16) -> Vec<u16> {
    (0..width * height).map(|i| sample(i % width, i / width)).collect()
}

/// Numbers from 0 to 65535 without order.
fn noise() -> impl FnMut() -> f64 {
    let mut state = 7u64;
    move || {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (state >> 48) as f64
    }
}

/// Nearly Gaussian numbers of variance 1: twelve even ones added up.
fn gaussian() -> impl FnMut() -> f64 {
    let mut even = noise();
    move || (0..12).map(|_| even() / 65536.0).sum::<f64>() - 6.0
}

fn deviation(values: &[u8]) -> f64 {
    let count = values.len() as f64;
    let mean = values.iter().map(|&value| f64::from(value)).sum::<f64>() / count;
    (values.iter().map(|&value| (f64::from(value) - mean).powi(2)).sum::<f64>() / count).sqrt()
}

/// Columns of 1000 and 1016 in turn: neighbours differ by 16 across and not at all down, so that
/// the sum over the window is 128 * 128 * 16 = 64 * 4096 and the gain 2 * 4096 / 64.5 = 16257 /
/// 256. The mean is 1008; it is lifted by 64 * (1 - 1008 / 65536) levels to 17140 / 256. 8 more or
/// less make 508 and -509.
#[test]
fn stripes_by_hand() {
    let pixels =
        reduced(&picture(300, 3, |x, _| if x.is_multiple_of(2) { 1000 } else { 1016 }), 300);
    for row in pixels.chunks(300) {
        assert_eq!(row[66..70], [64, 68, 64, 68]);
    }
    // Even areas have nothing to amplify: (1000 + 16134) / 256.
    assert_eq!(reduced(&[1000; 60], 10), [66; 60]);
}

#[test]
fn a_shifted_picture_gives_the_shifted_result() {
    let scene = |x: usize, y: usize| {
        let faint = (x * 31 + y * 17) % 23 * 8 + x;
        if (x / 20 + y / 30).is_multiple_of(3) { faint as u16 * 40 } else { faint as u16 }
    };
    let (width, height) = (320, 290);
    let here = reduced(&picture(width, height, scene), width);
    let there = reduced(&picture(width, height, |x, y| scene(x + 11, y + 3)), width);
    for y in WINDOW..height - WINDOW - 3 {
        for x in WINDOW..width - WINDOW - 11 {
            assert_eq!(here[(y + 3) * width + x + 11], there[y * width + x], "({x}, {y})");
        }
    }
}

#[test]
fn faint_texture_survives_that_the_upper_bits_lose() {
    // A dark wall in 12 linear bits of a 16-bit word: its texture lies within one code of the upper 8.
    let wall = picture(80, 80, |x, y| (40 << 4) + (((x * 5 + y * 3) % 7) << 4) as u16);
    let mut upper = vec![0; wall.len()];
    Tone::UpperBits.reduce(&wall, 80, &mut upper);
    assert!(deviation(&upper) < 0.01);
    let local = reduced(&wall, 80);
    assert!(deviation(&local) > 1.2);
    // The order of grey levels is kept.
    let mut both: Vec<_> = wall.iter().zip(&local).map(|(&s, &p)| (s, p)).collect();
    both.sort_unstable();
    let means = both
        .chunk_by(|a, b| a.0 == b.0)
        .map(|same| same.iter().map(|pair| f64::from(pair.1)).sum::<f64>() / same.len() as f64);
    assert!(means.is_sorted_by(|a, b| a < b));
}

#[test]
fn bits_in_the_low_end_of_a_word_look_like_those_in_its_middle() {
    let mut even = noise();
    let scene: Vec<u16> = picture(96, 96, |x, y| 200 + (x * 3 + y) as u16)
        .into_iter()
        .map(|level| level + (even() / 2000.0) as u16)
        .collect();
    let low = reduced(&scene, 96);
    let high: Vec<u16> = scene.iter().map(|level| level << 3).collect();
    let high = reduced(&high, 96);
    let [low, high] = [&low, &high].map(|pixels| deviation(pixels));
    assert!(low > 0.8 * high, "{low}, {high}");
}

#[test]
fn noise_comes_out_with_no_more_than_two_levels_whatever_it_was() {
    let limit = f64::from(DETAIL) / 1.128 + 0.5;
    for sigma in [1.0, 4.0, 20.0, 90.0, 400.0] {
        let mut gaussian = gaussian();
        let flat: Vec<u16> =
            (0..200 * 200).map(|_| (5000.0 + sigma * gaussian()).round() as u16).collect();
        let found = deviation(&reduced(&flat, 200));
        assert!(found < limit, "{sigma}: {found}");
        // Faint noise is not hidden either, because texture must be compared with it.
        assert!(found > 0.5 * limit || sigma < 4.0, "{sigma}: {found}");
    }
}

#[test]
fn where_there_is_contrast_the_upper_bits_remain() {
    let mut even = noise();
    let rough: Vec<u16> = (0..64 * 64).map(|_| even() as u16).collect();
    let expected: Vec<u8> = rough.iter().map(|sample| (sample >> 8) as u8).collect();
    assert_eq!(reduced(&rough, 64), expected);
    // Bytes in words, by 256 or by 257, are those bytes.
    let bytes: Vec<u8> = (0..64 * 64).map(|i| (i * i % 251) as u8).collect();
    for scale in [256, 257] {
        let words: Vec<u16> = bytes.iter().map(|&byte| u16::from(byte) * scale).collect();
        assert_eq!(reduced(&words, 64), bytes);
    }
}

#[test]
fn white_stays_white() {
    let white = picture(70, 40, |x, _| if x < 35 { 65535 } else { 64000 });
    let pixels = reduced(&white, 70);
    assert!(pixels[20 * 70] >= 254 && pixels[20 * 70 + 30] >= 250);
}

/// Debug builds panic on overflow.
#[test]
fn extremes_do_not_overflow() {
    let patterns: [fn(usize, usize) -> bool; 8] = [
        |_, _| true,
        |x, y| (x, y) == (0, 0),
        |x, y| (x, y) == (50, 50),
        |x, y| (x + y).is_multiple_of(2),
        |x, _| x == 33,
        |_, y| y == 33,
        |x, _| x >= 45,
        |x, y| x * y % 97 == 3,
    ];
    for (width, height) in [(1, 1), (1, 70), (70, 1), (2, 2), (31, 33), (100, 90)] {
        for pattern in patterns {
            for (dark, bright) in [(0, 65535), (65535, 0), (0, 1), (65534, 65535), (0, 255)] {
                let sample = |x, y| if pattern(x, y) { bright } else { dark };
                reduced(&picture(width, height, sample), width);
            }
        }
    }
    reduced(&[], 5);
}
