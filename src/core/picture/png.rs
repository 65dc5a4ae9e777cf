//! PNG files in memory: 16-bit disparity with its scale and offset, and colour.

use anyhow::{Context, Result};
use image::codecs::png::{CompressionType, FilterType, PngEncoder};
use image::{ExtendedColorType, ImageEncoder};

use crate::frame::DisparityMap;
use crate::picture::numbers::Numbers;

/// Start of the chunk after the header: 8 bytes of signature, 25 bytes of IHDR.
const AFTER_HEADER: usize = 33;

/// Buffers for writing one disparity map after the other without allocating.
#[derive(Debug, Default)]
pub struct DisparityPng {
    stored: Vec<u16>,
    file: Vec<u8>,
}

impl DisparityPng {
    /// Encodes the map as a 16-bit grey PNG file. Its text chunk `Comment` gives the meaning of the
    /// numbers: `disparity = value / 256 + 0; 0 = unknown`.
    pub fn encode(&mut self, map: &DisparityMap, numbers: &Numbers) -> Result<&[u8]> {
        self.stored.resize(map.values().len(), 0);
        numbers.encode(map.values(), &mut self.stored);
        write_numbers(
            &mut self.file,
            &self.stored,
            (map.width(), map.height()),
            &numbers.describe(),
        )?;
        Ok(&self.file)
    }
}

/// Encodes 16-bit numbers as a grey PNG file with a text chunk `Comment` on their meaning.
pub fn encode_numbers(numbers: &[u16], size: (usize, usize), meaning: &str) -> Result<Vec<u8>> {
    let mut file = Vec::new();
    write_numbers(&mut file, numbers, size, meaning)?;
    Ok(file)
}

fn write_numbers(
    file: &mut Vec<u8>,
    numbers: &[u16],
    size: (usize, usize),
    meaning: &str,
) -> Result<()> {
    file.clear();
    write(file, bytemuck::cast_slice(numbers), size, ExtendedColorType::L16)?;
    file.splice(AFTER_HEADER..AFTER_HEADER, text_chunk("Comment", meaning));
    Ok(())
}

/// Encodes an image of 3 bytes per pixel (red, green, blue) as a PNG file.
pub fn encode_rgb(rgb: &[u8], width: usize, height: usize) -> Result<Vec<u8>> {
    encode(rgb, (width, height), ExtendedColorType::Rgb8)
}

pub fn encode_grey_16(grey: &[u16], width: usize, height: usize) -> Result<Vec<u8>> {
    encode(bytemuck::cast_slice(grey), (width, height), ExtendedColorType::L16)
}

pub fn encode_grey(grey: &[u8], width: usize, height: usize) -> Result<Vec<u8>> {
    encode(grey, (width, height), ExtendedColorType::L8)
}

fn encode(samples: &[u8], size: (usize, usize), colour: ExtendedColorType) -> Result<Vec<u8>> {
    let mut file = Vec::new();
    write(&mut file, samples, size, colour)?;
    Ok(file)
}

fn write(
    file: &mut Vec<u8>,
    samples: &[u8],
    (width, height): (usize, usize),
    colour: ExtendedColorType,
) -> Result<()> {
    let size = || -> Result<(u32, u32)> { Ok((width.try_into()?, height.try_into()?)) };
    let (columns, rows) = size().context("too large for a PNG")?;
    // The encoder takes samples in the machine's byte order and stores them most significant first.
    PngEncoder::new_with_quality(file, CompressionType::Fast, FilterType::Up)
        .write_image(samples, columns, rows, colour)
        .with_context(|| format!("cannot encode a PNG of {width}x{height}"))
}

/// Returns a `tEXt` chunk (PNG specification, third edition, section 11.3.3.2).
fn text_chunk(keyword: &str, text: &str) -> Vec<u8> {
    let mut chunk = b"tEXt".to_vec();
    chunk.extend(keyword.as_bytes());
    chunk.push(0);
    chunk.extend(text.as_bytes());
    let length = chunk.len() as u32 - 4;
    let check = crc32(&chunk);
    [&length.to_be_bytes()[..], &chunk, &check.to_be_bytes()[..]].concat()
}

/// Computes the cyclic redundancy check of PNG chunks (PNG specification, third edition, annex D),
/// bit by bit because the text is short.
fn crc32(bytes: &[u8]) -> u32 {
    let mut crc = u32::MAX;
    for &byte in bytes {
        crc ^= u32::from(byte);
        for _ in 0..8 {
            crc = if crc & 1 == 1 { 0xedb8_8320 ^ (crc >> 1) } else { crc >> 1 };
        }
    }
    !crc
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::{DisparityRange, INVALID};
    use crate::picture::numbers::Quantity;
    use crate::pool::Pooled;

    #[test]
    fn the_check_value_of_the_standard() {
        assert_eq!(crc32(b"123456789"), 0xcbf4_3926);
        assert_eq!(crc32(b"IEND"), 0xae42_6082);
    }

    #[test]
    fn a_map_comes_back_from_its_file() {
        let range = DisparityRange { min: -7, count: 40 };
        let numbers = Numbers::new(Quantity::Disparity, range, None).unwrap();
        let values: Vec<i16> =
            (0..35).map(|i| if i % 5 == 0 { INVALID } else { i * 16 - 112 }).collect();
        let map = DisparityMap::new(
            7,
            5,
            DisparityRange { min: 0, count: 64 },
            Pooled::unpooled(values.clone()),
        );
        let mut png = DisparityPng::default();
        // Twice, because leftovers in the buffers must not show.
        png.encode(&map, &numbers).unwrap();
        let file = png.encode(&map, &numbers).unwrap();
        let text = b"Comment\0disparity = value / 256 + -7; 0 = unknown";
        assert!(file.windows(text.len()).any(|window| window == text));
        let image::DynamicImage::ImageLuma16(picture) = image::load_from_memory(file).unwrap()
        else {
            panic!("not 16-bit grey");
        };
        assert_eq!(picture.dimensions(), (7, 5));
        let mut decoded = vec![0; 35];
        numbers.encoding().decode(picture.as_raw(), &mut decoded);
        assert_eq!(decoded, values);
    }
}
