//! Frames of interleaved views, as RealSense cameras deliver their infrared pair: the pixels of both views in
//! turn.

use super::modes::Format;

/// Brings the views of a frame side by side, the left one first. Rows are padded to 4 bytes. Samples of Y12I
/// become words of 16 bits. Returns `None` if the frame is too short. `width` is that of a view.
pub fn separate(
    format: Format,
    bytes: &[u8],
    stride: usize,
    (width, height): (usize, usize),
) -> Option<Vec<u8>> {
    let (pixel, sample) = if format == Format::Y12i { (3, 2) } else { (2, 1) };
    let row_of_view = width * sample;
    let padded = (2 * row_of_view).next_multiple_of(4);
    let mut joined = vec![0; padded * height];
    for (y, row) in joined.chunks_exact_mut(padded).enumerate() {
        let pixels = bytes.get(y * stride..)?.get(..width * pixel)?.chunks_exact(pixel);
        let (left, right) = row.split_at_mut(row_of_view);
        if format == Format::Y12i {
            let views = left.chunks_exact_mut(2).zip(right.chunks_exact_mut(2));
            for (bits, (left, right)) in pixels.zip(views) {
                // The camera fills the lower 10 of 12 bits. Unlike in the kernel's documentation, the first
                // sample is the right view's, as in librealsense (y12i_pixel), which its maker tests on
                // cameras.
                let first = u16::from_le_bytes([bits[0], bits[1]]) & 0xfff;
                let second = u16::from_le_bytes([bits[1], bits[2]]) >> 4;
                let scaled = |sample: u16| (sample.min(0x3ff) << 6).to_le_bytes();
                left.copy_from_slice(&scaled(second));
                right.copy_from_slice(&scaled(first));
            }
        } else {
            for (pixel, (left, right)) in pixels.zip(left.iter_mut().zip(right)) {
                (*left, *right) = (pixel[0], pixel[1]);
            }
        }
    }
    Some(joined)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZE: (usize, usize) = (5, 3);

    fn left(x: usize, y: usize) -> u16 {
        (90 * x + 7 * y + 3) as u16
    }

    fn right(x: usize, y: usize) -> u16 {
        (1023 - 80 * x - 50 * y) as u16
    }

    /// Frame whose rows have `padding` unused bytes.
    fn frame(padding: usize, pixel: impl Fn(u16, u16) -> Vec<u8>) -> Vec<u8> {
        let row = |y| {
            let pixels = (0..SIZE.0).flat_map(|x| pixel(left(x, y), right(x, y)));
            pixels.chain(vec![0xee; padding]).collect::<Vec<u8>>()
        };
        (0..SIZE.1).flat_map(row).collect()
    }

    #[test]
    fn views_of_8_bits_are_separated() {
        let bytes = frame(2, |left, right| vec![left as u8, right as u8]);
        let joined = separate(Format::Y8i, &bytes, 12, SIZE).unwrap();
        assert_eq!(joined.len(), 12 * 3);
        for (y, row) in joined.chunks(12).enumerate() {
            let expected = (0..5).map(|x| left(x, y)).chain((0..5).map(|x| right(x, y)));
            assert!(row.iter().zip(expected).all(|(&byte, sample)| byte == sample as u8), "{y}");
        }
        assert_eq!(separate(Format::Y8i, &bytes[..33], 12, SIZE), None);
        assert!(separate(Format::Y8i, &bytes[..34], 12, SIZE).is_some(), "no padding at the end");
    }

    #[test]
    fn views_of_10_bits_are_separated() {
        let bytes = frame(1, |left, right| {
            let word = u32::from(left) << 12 | u32::from(right);
            word.to_le_bytes()[..3].to_vec()
        });
        let joined = separate(Format::Y12i, &bytes, 16, SIZE).unwrap();
        for (y, row) in joined.chunks(20).enumerate() {
            let samples: Vec<u16> =
                row.chunks(2).map(|word| u16::from_le_bytes([word[0], word[1]])).collect();
            let expected = (0..5).map(|x| left(x, y)).chain((0..5).map(|x| right(x, y)));
            assert_eq!(samples, expected.map(|sample| sample << 6).collect::<Vec<_>>());
        }
        assert_eq!(separate(Format::Y12i, &bytes[..46], 16, SIZE), None);
    }
}
