//! Linear light as 16-bit codes.

use image::{DynamicImage, ImageBuffer};

use super::unread::Unread;

/// Encodes floating-point samples (0 is black, 1 is white) as 16 bits with the curve of sRGB (IEC 61966-2-1);
/// other images stay unchanged. The curve is fixed, so that the same light gets the same grey in both views
/// and in every frame.
pub(super) fn encode_floats(picture: DynamicImage) -> DynamicImage {
    fn words(samples: Vec<f32>) -> Vec<u16> {
        samples.into_iter().map(encode).collect()
    }
    let size = (picture.width(), picture.height());
    let encoded = match picture {
        DynamicImage::ImageRgb32F(p) => {
            ImageBuffer::from_raw(size.0, size.1, words(p.into_raw())).map(DynamicImage::ImageRgb16)
        }
        DynamicImage::ImageRgba32F(p) => ImageBuffer::from_raw(size.0, size.1, words(p.into_raw()))
            .map(DynamicImage::ImageRgba16),
        other => return other,
    };
    encoded.expect("there are as many samples as before")
}

/// Returns the 16-bit code of a sample of linear light. NaN becomes black.
fn encode(linear: f32) -> u16 {
    let code = match linear {
        high if high > 0.003_130_8 => 1.055 * high.min(1.0).powf(1.0 / 2.4) - 0.055,
        low => 12.92 * low,
    };
    // The conversion saturates and turns NaN into 0.
    (code * 65535.0).round() as u16
}

/// Fails if most floating-point samples exceed 1, because they are then on another scale, such as 0 to 255.
pub(super) fn check(picture: &DynamicImage) -> Result<(), Unread> {
    let samples: &[f32] = match picture {
        DynamicImage::ImageRgb32F(p) => p.as_raw(),
        DynamicImage::ImageRgba32F(p) => p.as_raw(),
        _ => return Ok(()),
    };
    let beyond = samples.iter().filter(|&&sample| sample > 1.0).count();
    if beyond > samples.len() / 2 {
        return Err(Unread::other(
            "most of its floating-point samples exceed 1, which is white; divide them by their largest value (255 \
             or 65535), or write whole numbers of 8 or 16 bits"
                .to_owned(),
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_on_another_scale_are_told() {
        let of = |samples: Vec<f32>| {
            check(&DynamicImage::ImageRgb32F(ImageBuffer::from_raw(1, 1, samples).unwrap()))
        };
        assert!(of(vec![0.5, 1.0, 40.0]).is_ok());
        assert!(of(vec![0.5, 7.0, 40.0]).unwrap_err().to_string().contains("exceed 1"));
    }

    #[test]
    fn light_is_encoded_by_the_curve_of_srgb() {
        let samples = vec![0.0, 1.0, 0.214_041_14, 0.003, -1.0, 7.5, f32::NAN, f32::INFINITY, 0.5];
        let picture = ImageBuffer::from_raw(3, 1, samples).unwrap();
        let DynamicImage::ImageRgb16(encoded) = encode_floats(DynamicImage::ImageRgb32F(picture))
        else {
            panic!("not 16 bits");
        };
        // Half of the codes is 21.4 % of the light.
        assert_eq!(encoded.into_raw(), [0, 65535, 32768, 2540, 0, 65535, 0, 65535, 48192]);
    }
}
