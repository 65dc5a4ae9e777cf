//! Images as JPEG files, for looking at.

use std::borrow::Cow;

use anyhow::{Result, bail};
use jpeg_encoder::{ColorType, Encoder, SamplingFactor};

use stereod_core::frame::Image;

const QUALITY: u8 = 80;

/// Encodes every `step`th pixel of every `step`th row.
pub fn encode(image: &Image, step: usize) -> Result<Vec<u8>> {
    let (width, height) = (image.width().div_ceil(step), image.height().div_ceil(step));
    let (samples, kind) = if image.chroma().is_some() {
        let mut rgb = vec![[0; 3]; image.width() * image.height()];
        image.write_rgb::<3>(rgb.as_flattened_mut(), 3 * image.width());
        let sampled = sampled(&rgb, image.width(), step).into_owned();
        (Cow::from(sampled.into_flattened()), ColorType::Rgb)
    } else {
        (sampled(image.pixels(), image.width(), step), ColorType::Luma)
    };
    write(&samples, (width, height), kind, SamplingFactor::F_2_2)
}

/// Encodes false colours (red, green, blue) at full resolution, because their edges need a colour for every
/// pixel.
pub fn encode_coloured(rgb: &[u8], size: (usize, usize)) -> Result<Vec<u8>> {
    write(rgb, size, ColorType::Rgb, SamplingFactor::F_1_1)
}

fn write(
    samples: &[u8],
    (width, height): (usize, usize),
    kind: ColorType,
    sampling: SamplingFactor,
) -> Result<Vec<u8>> {
    let (Ok(width), Ok(height)) = (u16::try_from(width), u16::try_from(height)) else {
        bail!("a picture of {width}x{height} pixels is too large for a JPEG")
    };
    let mut file = Vec::new();
    let mut encoder = Encoder::new(&mut file, QUALITY);
    encoder.set_sampling_factor(sampling);
    encoder.encode(samples, width, height, kind)?;
    Ok(file)
}

/// Returns every `step`th value of every `step`th row.
pub fn sampled<T: Copy>(values: &[T], width: usize, step: usize) -> Cow<'_, [T]> {
    if step == 1 {
        return values.into();
    }
    let rows = values.chunks(width).step_by(step);
    rows.flat_map(|row| row.iter().step_by(step).copied()).collect()
}
