//! Checks the size of an image by its header before decoding, because a few bytes can promise gigabytes.

use std::fs;
use std::io::{BufReader, Cursor};
use std::path::Path;

use anyhow::{bail, ensure};
use image::{ColorType, ImageDecoder, ImageFormat, ImageReader, Limits};

use crate::memory::{Budget, product};
use crate::reading;

const FORMATS: [ImageFormat; 6] = [
    ImageFormat::Png,
    ImageFormat::Jpeg,
    ImageFormat::Pnm,
    ImageFormat::Bmp,
    ImageFormat::Tiff,
    ImageFormat::OpenExr,
];

/// Largest length of an image file: 2^30 pixels of 16 bits in four channels.
const FILE_MAX: u64 = 8 << 30;

/// Largest expansion of a deflated byte (RFC 1951: 258 bytes from two bits).
const DEFLATED_MAX: u64 = 1032;

/// Bytes a pixel besides the decoded samples: intensity and three channels.
const MORE_A_PIXEL: usize = 4;

/// Returns the format of an image by its first bytes; `None` for a format that is not read.
pub fn format(content: &[u8]) -> Option<ImageFormat> {
    if content.starts_with(b"II\x2b\0") || content.starts_with(b"MM\0\x2b") {
        // BigTIFF, which the decoder of TIFF reads.
        return Some(ImageFormat::Tiff);
    }
    image::guess_format(content).ok().filter(|format| FORMATS.contains(format))
}

pub fn is_float(colours: ColorType) -> bool {
    matches!(colours, ColorType::Rgb32F | ColorType::Rgba32F)
}

/// Reads an image file, or a pipe that delivers one in time.
pub fn read_file(path: &Path) -> anyhow::Result<Vec<u8>> {
    if let Ok(told) = fs::metadata(path) {
        check_length(told.len())?;
    }
    Ok(reading::read(path, FILE_MAX)?)
}

fn check_length(bytes: u64) -> anyhow::Result<()> {
    ensure!(bytes <= FILE_MAX, "a file of {bytes} bytes is no picture");
    Budget::of_process().check("reading the file", bytes, "a smaller picture")?;
    Ok(())
}

/// Checks by its header that the image in `content` can be decoded within the memory budget. Content of
/// another format or with an unreadable header passes, because the decoder reports it better.
pub fn check(content: &[u8]) -> anyhow::Result<()> {
    let Some(format) = format(content) else { return Ok(()) };
    let mut reader = ImageReader::with_format(Cursor::new(content), format);
    // No limits, because sizes are checked here.
    reader.no_limits();
    let Ok(decoder) = reader.into_decoder() else { return Ok(()) };
    let ((width, height), decoded) = (decoder.dimensions(), decoder.total_bytes());
    let most = (content.len() as u64).saturating_mul(DEFLATED_MAX);
    // A one-bit palette index becomes four bytes.
    if format == ImageFormat::Png && decoded / 32 > most {
        bail!("{width}x{height} pixels cannot be in a file of {} bytes", content.len());
    }
    // Floating-point samples become 16 bits.
    let words = if is_float(decoder.color_type()) { decoded / 2 } else { 0 };
    check_decoded((width, height), decoded.saturating_add(words))
}

/// Checks that an image of this size that takes so many `bytes` while it is decoded fits the memory budget.
pub(super) fn check_decoded((width, height): (u32, u32), bytes: u64) -> anyhow::Result<()> {
    let more = product([width as usize, height as usize, MORE_A_PIXEL]);
    let what = format!("decoding {width}x{height} pixels");
    Budget::of_process().check(what, bytes.saturating_add(more), "a smaller picture")?;
    Ok(())
}

/// Reads width and height from the header of an image in a regular file.
pub fn dimensions(path: &Path) -> anyhow::Result<(usize, usize)> {
    let reader = ImageReader::new(BufReader::new(reading::open(path)?)).with_guessed_format()?;
    let (width, height) = reader.into_dimensions()?;
    Ok((width as usize, height as usize))
}

pub fn limits() -> Limits {
    let mut limits = Limits::no_limits();
    limits.max_alloc = Some(Budget::of_process().left());
    limits
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a PNG of 16 bits and four channels with that header and one empty part of data.
    fn png(width: u32, height: u32) -> Vec<u8> {
        let mut file = b"\x89PNG\r\n\x1a\n".to_vec();
        let mut chunk = |kind: &[u8; 4], data: &[u8]| {
            file.extend((data.len() as u32).to_be_bytes());
            let body = [kind, data].concat();
            file.extend(&body);
            file.extend(crc(&body).to_be_bytes());
        };
        let size = [width.to_be_bytes(), height.to_be_bytes()].concat();
        chunk(b"IHDR", &[&size[..], &[16, 6, 0, 0, 0]].concat());
        chunk(b"IDAT", &[]);
        chunk(b"IEND", &[]);
        file
    }

    fn crc(bytes: &[u8]) -> u32 {
        !bytes.iter().fold(!0, |crc, &byte| {
            (0..8).fold(crc ^ u32::from(byte), |crc, _| {
                (crc >> 1) ^ (0xedb8_8320 & (crc & 1).wrapping_neg())
            })
        })
    }

    #[test]
    fn a_header_cannot_promise_what_its_file_does_not_hold() {
        let error = check(&png(16384, 16384)).unwrap_err().to_string();
        assert!(error.contains("16384x16384 pixels cannot be in a file of 57 bytes"), "{error}");
        let side = 1 << 29;
        assert!(check(&png(side, side)).unwrap_err().to_string().contains("cannot be in a file"));
        check(&png(64, 48)).unwrap();
        assert!(check(b"P5\n1000000 1000000\n255\n1").unwrap_err().to_string().contains("budget"));
        assert!(check(b"P5\n2 1\n255\n12").is_ok());
        assert!(check(b"anything else").is_ok() && check(b"").is_ok());
    }

    #[test]
    fn the_size_is_read_from_the_header() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a");
        fs::write(&path, png(640, 375)).unwrap();
        assert_eq!(dimensions(&path).unwrap(), (640, 375));
        fs::write(&path, b"no picture").unwrap();
        assert!(dimensions(&path).is_err());
    }

    #[cfg(unix)]
    #[test]
    fn what_never_ends_is_not_read_for_ever() {
        assert!(dimensions(Path::new("/dev/zero")).is_err());
        let error = read_file(Path::new("/dev/zero")).unwrap_err().to_string();
        assert!(error.contains("longer than"), "{error}");
        assert!(check_length(FILE_MAX + 1).is_err());
    }
}
