//! Views that are squeezed to half their width or height ("half side by side") get square pixels again.

use crate::frame::Image;
use crate::pool::Pooled;

/// Doubles the width of an image, or its height unless `across`, into `pixels`, with linear interpolation between
/// the centres of pixels. The colour is left out.
///
/// # Panics
/// If `pixels` does not hold exactly twice as many bytes as the image.
pub fn stretched(image: &Image, across: bool, mut pixels: Pooled<u8>) -> Image {
    let (width, height) = (image.width(), image.height());
    // New centres lie a quarter of a pixel beside the old ones.
    let mix = |near: u8, far: u8| ((3 * u16::from(near) + u16::from(far) + 2) / 4) as u8;
    if across {
        for (y, out) in pixels.chunks_exact_mut(2 * width).enumerate() {
            let row = image.row(y);
            for (x, out) in out.as_chunks_mut::<2>().0.iter_mut().enumerate() {
                let at = |x: usize| row[x.min(width - 1)];
                *out = [mix(row[x], at(x.saturating_sub(1))), mix(row[x], at(x + 1))];
            }
        }
        return Image::new(2 * width, height, pixels);
    }
    for (y, out) in pixels.chunks_exact_mut(width).enumerate() {
        let near = image.row(y / 2);
        let other =
            if y % 2 == 0 { (y / 2).saturating_sub(1) } else { (y / 2 + 1).min(height - 1) };
        for ((out, near), far) in out.iter_mut().zip(near).zip(image.row(other)) {
            *out = mix(*near, *far);
        }
    }
    Image::new(width, 2 * height, pixels)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ramps_stay_ramps() {
        let image = Image::from_vec(2, 2, vec![0, 8, 40, 48]);
        let of = |across| stretched(&image, across, Pooled::unpooled(vec![0; 8]));
        let wide = of(true);
        assert_eq!((wide.width(), wide.height()), (4, 2));
        assert_eq!(wide.pixels(), [0, 2, 6, 8, 40, 42, 46, 48]);
        let tall = of(false);
        assert_eq!((tall.width(), tall.height()), (2, 4));
        assert_eq!(tall.pixels(), [0, 8, 10, 18, 30, 38, 40, 48]);
    }
}
