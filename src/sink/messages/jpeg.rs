//! The left picture as a JPEG file, for looking at.

use anyhow::{Result, bail};
use jpeg_encoder::{ColorType, Encoder};

use crate::core::frame::Image;

/// Quality of the file.
const QUALITY: u8 = 80;

/// Encodes every `step`th pixel of every `step`th row.
pub fn encode(image: &Image, step: usize) -> Result<Vec<u8>> {
    let (width, height) = (image.width().div_ceil(step), image.height().div_ceil(step));
    let (samples, kind) = if image.chroma().is_some() {
        let mut rgb = vec![0; 3 * image.width() * image.height()];
        image.write_rgb::<3>(&mut rgb, 3 * image.width());
        let (pixels, _) = rgb.as_chunks::<3>();
        (sampled(pixels, image.width(), step).flatten().collect(), ColorType::Rgb)
    } else {
        (sampled(image.pixels(), image.width(), step).collect::<Vec<u8>>(), ColorType::Luma)
    };
    let (Ok(width), Ok(height)) = (u16::try_from(width), u16::try_from(height)) else {
        bail!("a picture of {width}x{height} pixels is too large for a JPEG")
    };
    let mut file = Vec::new();
    Encoder::new(&mut file, QUALITY).encode(&samples, width, height, kind)?;
    Ok(file)
}

/// Returns every `step`th value of every `step`th row.
pub fn sampled<T: Copy>(values: &[T], width: usize, step: usize) -> impl Iterator<Item = T> {
    values.chunks(width).step_by(step).flat_map(move |row| row.iter().step_by(step).copied())
}
