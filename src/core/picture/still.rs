//! Reads single images from files. A damaged image is an error, even if its decoder would fill the missing
//! part.

use std::borrow::Cow;
use std::io::Cursor;
use std::path::Path;

use anyhow::{Context, Result, bail, ensure};
use image::codecs::pnm::PnmDecoder;
use image::metadata::Orientation;
use image::{DynamicImage, ImageBuffer, ImageDecoder, ImageError, ImageFormat, ImageReader};

use super::grey::Grey;
use super::orientation::Orient;
use super::tone::Tone;
use super::{header, jpeg};
use crate::frame::Image;

/// APP0 segment that stands for the usual Huffman tables (JPEG DIB format), of an image that has none.
const USUAL_TABLES: [u8; 9] = *b"\xff\xe0\x00\x07AVI1\x00";

/// A decoded image.
pub struct Still {
    /// Samples, floating-point ones as 16 bits; turned by the orientation tag if requested.
    pub picture: DynamicImage,
    pub orientation: Orientation,
}

/// Reads an image: PNG, JPEG, PNM, BMP, TIFF or OpenEXR, told apart by content, not by name.
pub fn read(path: &Path, orient: Orient) -> Result<Still> {
    let (content, format) = read_known(path)?;
    let Still { picture, orientation } = decode_known(path, &content, format)?;
    let mut picture = encode_floats(picture);
    if orient == Orient::Auto {
        picture.apply_orientation(orientation);
    }
    Ok(Still { picture, orientation })
}

/// Reads an image as 8-bit intensity, not turned, because calibrations refer to the sensor's own image.
///
/// Colour becomes intensity by Rec. 709; `tone` reduces samples of more than 8 bits. Transparency is ignored.
pub fn read_still(path: &Path, tone: Tone) -> Result<Image> {
    Ok(Grey::of(read(path, Orient::Ignore)?.picture).into_image(tone))
}

/// Reads an image as red, green and blue, 8 bits each; grey images have three alike.
pub fn read_colours(path: &Path, orient: Orient) -> Result<[Image; 3]> {
    let picture = read(path, orient)?.picture.to_rgb8();
    let (width, height) = (picture.width() as usize, picture.height() as usize);
    let channel =
        |channel: usize| picture.as_raw().iter().skip(channel).step_by(3).copied().collect();
    Ok([0, 1, 2].map(|number| Image::from_vec(width, height, channel(number))))
}

/// Stored values of an image that stands for numbers: a map of disparity, a mask.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Levels {
    pub width: usize,
    pub height: usize,
    /// True if the values have 16 bits, not 8 or fewer.
    pub deep: bool,
    /// Every value, row by row.
    pub values: Vec<u16>,
}

/// Reads the stored values of a grey image, PNG or PGM, 8 or 16 bits. A colour image with equal
/// channels counts as grey.
pub fn read_levels(path: &Path) -> Result<Levels> {
    let (content, format) = read_known(path)?;
    let shown = path.display();
    if format == ImageFormat::Pnm {
        let most = PnmDecoder::new(Cursor::new(&content)).map(|pnm| pnm.header().maximal_sample());
        if let Ok(most @ (0..=254 | 256..=65534 | 65536..)) = most {
            bail!(
                "cannot read {shown} as numbers: its largest level is {most}; write it with 255 or 65535"
            );
        }
    }
    let picture = decode_known(path, &content, format)?.picture;
    if header::is_float(picture.color()) {
        bail!(
            "cannot read {shown} as numbers: it holds floating-point samples; write it as PFM or PNG"
        );
    }
    let (width, height) = (picture.width() as usize, picture.height() as usize);
    let deep = picture.color().bytes_per_pixel() / picture.color().channel_count() > 1;
    let (colours, values) = match picture {
        DynamicImage::ImageLuma8(p) => (1, p.into_raw().into_iter().map(u16::from).collect()),
        DynamicImage::ImageLuma16(p) => (1, p.into_raw()),
        other if deep => (3, other.into_rgb16().into_raw()),
        other => (3, other.into_rgb8().into_raw().into_iter().map(u16::from).collect::<Vec<_>>()),
    };
    if values.chunks_exact(colours).any(|pixel| pixel.iter().any(|&value| value != pixel[0])) {
        bail!(
            "cannot read {shown} as numbers: it is in colour (a coloured preview?); name a grey picture"
        );
    }
    let values = values.into_iter().step_by(colours).collect();
    Ok(Levels { width, height, deep, values })
}

/// Decodes the content of an image file within the memory budget.
pub fn decode(content: &[u8]) -> Result<DynamicImage> {
    let Some(format) = header::format(content) else {
        bail!("it is no PNG, JPEG, PGM, PPM, BMP, TIFF or EXR picture");
    };
    header::check(content)?;
    let picture = decode_whole(content, format)?.picture;
    ensure!(picture.width() > 0 && picture.height() > 0, "the picture has no pixels");
    Ok(encode_floats(picture))
}

/// Returns width and height of an image by the header in its content.
pub fn size(content: &[u8]) -> Result<(usize, usize)> {
    let reader = ImageReader::new(Cursor::new(content)).with_guessed_format()?;
    let (width, height) = reader.into_dimensions()?;
    Ok((width as usize, height as usize))
}

/// Reports whether a file is an image, by its first bytes or else by its name.
pub fn is_picture(path: &Path) -> bool {
    // Opening a FIFO would wait for its writer.
    let reader = || ImageReader::open(path).and_then(ImageReader::with_guessed_format);
    path.is_file() && reader().is_ok_and(|reader| reader.format().is_some())
}

fn read_known(path: &Path) -> Result<(Vec<u8>, ImageFormat)> {
    let shown = path.display();
    if path.is_dir() {
        bail!("cannot read {shown}: it is a folder; name a picture in it");
    }
    let content = header::read_file(path).with_context(|| format!("cannot read {shown}"))?;
    if content.is_empty() {
        bail!("cannot read a picture: {shown} is empty (0 bytes)");
    }
    match header::format(&content) {
        Some(format) => Ok((content, format)),
        // Both orders of bytes.
        None if content.starts_with(b"SDPX") || content.starts_with(b"XPDS") => bail!(
            "cannot read {shown}: DPX is not read; convert it without loss, keeping the numbers: \
             `ffmpeg -start_number 1001 -i shot.%04d.dpx -start_number 1001 -pix_fmt rgb48be shot.%04d.png`"
        ),
        None => {
            bail!("cannot read {shown}: it is no PNG, JPEG, PGM, PPM, BMP, TIFF or EXR picture")
        }
    }
}

fn decode_known(path: &Path, content: &[u8], format: ImageFormat) -> Result<Still> {
    let shown = path.display();
    header::check(content).with_context(|| format!("cannot read {shown}"))?;
    let still = decode_whole(content, format).map_err(|error| {
        let is_unsupported = matches!(error.downcast_ref(), Some(ImageError::Unsupported(_)));
        let flaw = match format {
            _ if is_unsupported => {
                "its kind of samples or compression is not read; convert it to 8 or 16 bits of grey or RGB"
            }
            // The decoder reports both as a wrong format.
            ImageFormat::OpenExr => "the picture is damaged, or has no channels R, G and B; of a grey one `ffmpeg -i IN.exr -pix_fmt gbrpf32le \
                 OUT.exr` makes one in colour",
            _ => "the picture is damaged",
        };
        error.context(format!("cannot read {shown}: {flaw}"))
    })?;
    let (width, height) = (still.picture.width() as usize, still.picture.height() as usize);
    if width == 0 || height == 0 {
        bail!("cannot read {shown}: the picture has no pixels ({width}x{height})");
    }
    Ok(still)
}

fn decode_whole(content: &[u8], format: ImageFormat) -> Result<Still> {
    let mut content = Cow::Borrowed(content);
    if format == ImageFormat::Jpeg {
        jpeg::check(&content)?;
        if jpeg::lacks_tables(&content) {
            content.to_mut().splice(2..2, USUAL_TABLES);
        }
    }
    let mut reader = ImageReader::with_format(Cursor::new(&content), format);
    reader.limits(header::limits());
    let mut decoder = reader.into_decoder()?;
    // Damaged metadata counts as none.
    let orientation = decoder.orientation().unwrap_or(Orientation::NoTransforms);
    let picture = DynamicImage::from_decoder(decoder)?;
    // The decoder stops after the last pixel.
    ensure!(format != ImageFormat::Png || png_ends(&content), "it was cut off before its end");
    Ok(Still { picture, orientation })
}

/// Reports whether a PNG image has its last chunk (ISO/IEC 15948, 11.2.5).
fn png_ends(content: &[u8]) -> bool {
    let mut rest = content.get(8..).unwrap_or_default();
    while let Some((&[a, b, c, d, kind @ ..], _)) = rest.split_first_chunk::<8>() {
        let length = u32::from_be_bytes([a, b, c, d]) as usize;
        let Some(next) = rest.get(length.saturating_add(12)..) else { return false };
        if &kind == b"IEND" {
            return true;
        }
        rest = next;
    }
    false
}

/// Encodes floating-point samples (0 is black, 1 is white) as 16 bits with the curve of sRGB (IEC 61966-2-1);
/// other images stay unchanged. The curve is fixed, so that the same light gets the same grey in both views
/// and in every frame.
fn encode_floats(picture: DynamicImage) -> DynamicImage {
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

#[cfg(test)]
mod tests {
    use std::fs;

    use image::{Luma, LumaA, Rgb, Rgba};

    use super::*;
    use crate::frame::intensity;

    fn save(name: &str, picture: DynamicImage) -> Vec<u8> {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(name);
        picture.save(&path).unwrap();
        let read = read_still(&path, Tone::UpperBits).unwrap();
        assert_eq!((read.width(), read.height()), (3, 2));
        read.pixels().to_vec()
    }

    #[test]
    fn dpx_is_refused_with_the_command_that_converts_it() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("shot.1001.dpx");
        for magic in ["SDPX", "XPDS"] {
            fs::write(&path, format!("{magic}{}", "x".repeat(2044))).unwrap();
            let error = read(&path, Orient::Ignore).err().unwrap().to_string();
            assert!(error.contains("ffmpeg") && error.contains("shot.%04d.png"), "{error}");
        }
    }

    #[test]
    fn grey_of_every_kind() {
        let expected = [0, 40, 80, 100, 140, 180];
        let level = |x: u32, y: u32| (x * 40 + y * 100) as u8;
        let grey = ImageBuffer::from_fn(3, 2, |x, y| Luma([level(x, y)]));
        assert_eq!(save("a.png", grey.clone().into()), expected);
        assert_eq!(save("a.pgm", grey.into()), expected);
        let alpha = ImageBuffer::from_fn(3, 2, |x, y| LumaA([level(x, y), 7]));
        assert_eq!(save("a.png", alpha.into()), expected);
        // Cut to the upper bits, the lower ones must not matter.
        let wide = |x, y| u16::from(level(x, y)) << 8 | 0xff;
        let deep = ImageBuffer::from_fn(3, 2, |x, y| Luma([wide(x, y)]));
        assert_eq!(save("a.png", DynamicImage::ImageLuma16(deep.clone())), expected);
        assert_eq!(save("a.pgm", DynamicImage::ImageLuma16(deep)), expected);
    }

    #[test]
    fn colours_are_read_channel_by_channel() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.png");
        let picture = ImageBuffer::from_fn(3, 2, |x, y| Rgb([x as u8, y as u8 + 10, 30]));
        DynamicImage::from(picture).save(&path).unwrap();
        let channels = read_colours(&path, Orient::Ignore).unwrap();
        let expected = [[0, 1, 2, 0, 1, 2], [10, 10, 10, 11, 11, 11], [30; 6]];
        assert_eq!(channels.each_ref().map(Image::pixels), expected);
    }

    #[test]
    fn levels_are_what_is_stored() {
        let dir = tempfile::tempdir().unwrap();
        let levels = |name: &str, picture: DynamicImage| {
            let path = dir.path().join(name);
            picture.save(&path).unwrap();
            read_levels(&path)
        };
        let shallow: Vec<u16> = vec![0, 7, 255, 16, 8, 1];
        let eight = ImageBuffer::from_fn(3, 2, |x, y| Luma([shallow[(y * 3 + x) as usize] as u8]));
        let grey = Levels { width: 3, height: 2, deep: false, values: shallow };
        assert_eq!(levels("a.png", eight.clone().into()).unwrap(), grey);
        assert_eq!(levels("a.pgm", eight.clone().into()).unwrap(), grey);
        let alike = ImageBuffer::from_fn(3, 2, |x, y| Rgb([eight.get_pixel(x, y)[0]; 3]));
        assert_eq!(levels("a.png", alike.into()).unwrap(), grey);
        let values = vec![0, 1, 256, 65535, 384, 2];
        let deep = ImageBuffer::from_fn(3, 2, |x, y| Luma([values[(y * 3 + x) as usize]]));
        let grey = Levels { width: 3, height: 2, deep: true, values };
        assert_eq!(levels("a.png", DynamicImage::ImageLuma16(deep.clone())).unwrap(), grey);
        assert_eq!(levels("a.pgm", DynamicImage::ImageLuma16(deep)).unwrap(), grey);

        let colour = ImageBuffer::from_fn(3, 2, |x, _| Rgb([x as u8, 0, 0]));
        let error = levels("a.png", colour.into()).unwrap_err().to_string();
        assert!(error.contains("a.png as numbers: it is in colour"), "{error}");
        let path = dir.path().join("few.pgm");
        fs::write(&path, b"P5\n2 1\n15\n\x03\x0f").unwrap();
        let error = read_levels(&path).unwrap_err().to_string();
        assert!(error.contains("its largest level is 15"), "{error}");
    }

    #[test]
    fn colour_of_every_kind_becomes_rec_709() {
        let rgb = |x: u32, y: u32| [x as u8 * 100, y as u8 * 200, 30];
        let expected: Vec<u8> = (0..6)
            .map(|i| {
                let [r, g, b] = rgb(i % 3, i / 3);
                intensity(r, g, b)
            })
            .collect();
        assert_eq!(expected[..4], [2, 23, 45, 145]);
        let colour = ImageBuffer::from_fn(3, 2, |x, y| Rgb(rgb(x, y)));
        assert_eq!(save("a.png", colour.clone().into()), expected);
        assert_eq!(save("a.ppm", colour.into()), expected);
        let alpha = ImageBuffer::from_fn(3, 2, |x, y| {
            let [r, g, b] = rgb(x, y);
            Rgba([r, g, b, 0])
        });
        assert_eq!(save("a.png", alpha.into()), expected);
        let deep = |x, y| rgb(x, y).map(|v| u16::from(v) << 8 | 0x80);
        let wide = ImageBuffer::from_fn(3, 2, |x, y| Rgb(deep(x, y)));
        assert_eq!(save("a.png", DynamicImage::ImageRgb16(wide.clone())), expected);
        assert_eq!(save("a.ppm", DynamicImage::ImageRgb16(wide)), expected);
    }

    #[test]
    fn jpeg_under_a_wrong_name() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.jpg");
        ImageBuffer::from_fn(16, 8, |_, _| Luma([90u8])).save(&path).unwrap();
        let renamed = dir.path().join("b.png");
        fs::rename(&path, &renamed).unwrap();
        let read = read_still(&renamed, Tone::Local).unwrap();
        assert_eq!((read.width(), read.height()), (16, 8));
        assert!(read.pixels().iter().all(|p| p.abs_diff(90) < 3));
    }

    #[test]
    fn a_pgm_with_few_levels_or_a_comment() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.pgm");
        fs::write(&path, b"P5\n# by hand\n2 1\n255\n\x05\xff").unwrap();
        assert_eq!(read_still(&path, Tone::Local).unwrap().pixels(), [5, 255]);
        fs::write(&path, b"P2\n2 1\n255\n5 255\n").unwrap();
        assert_eq!(read_still(&path, Tone::Local).unwrap().pixels(), [5, 255]);
        fs::write(&path, b"P5\n2 1\n15\n\x03\x0f").unwrap();
        assert_eq!(read_still(&path, Tone::Local).unwrap().pixels(), [51, 255]);
    }

    #[test]
    fn what_cannot_be_read_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let fails = |name: &str, content: Option<&[u8]>, words: &str| {
            let path = dir.path().join(name);
            if let Some(content) = content {
                fs::write(&path, content).unwrap();
            }
            let error = format!("{:#}", read_still(&path, Tone::Local).unwrap_err());
            assert!(error.contains(name) && error.contains(words), "{error}");
        };
        fails("missing.png", None, "(os error 2)");
        fails("", None, "is a folder");
        fails("empty.png", Some(b""), "is empty");
        fails("text.png", Some(b"not a picture at all"), "no PNG, JPEG");
        fails("gif.gif", Some(b"GIF89a\x3a\0\0\0\0\0\0\0"), "no PNG, JPEG");
        fails("bmp.bmp", Some(b"BM\x3a\0\0\0\0\0\0\0"), "damaged");
        fails("cut.pgm", Some(b"P5\n100 100\n255\n12345"), "damaged");
        fails("zero.pgm", Some(b"P5\n0 4\n255\n"), "zero.pgm");
        fails("huge.pgm", Some(b"P5\n100000 4000000000\n255\n12"), "the budget is");
        fails("cut.png", Some(b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0"), "damaged");
    }

    #[test]
    fn big_tiff_is_read() {
        // A header with 64-bit offsets, nine entries, two pixels.
        let entries: [(u16, u16, u64); 9] = [
            (256, 3, 2),
            (257, 3, 1),
            (258, 3, 8),
            (259, 3, 1),
            (262, 3, 1),
            (273, 16, 16 + 8 + 9 * 20 + 8),
            (277, 3, 1),
            (278, 3, 1),
            (279, 16, 2),
        ];
        let mut file = b"II\x2b\0\x08\0\0\0".to_vec();
        file.extend([16u64, 9].map(u64::to_le_bytes).concat());
        for (tag, kind, value) in entries {
            file.extend([tag, kind].map(u16::to_le_bytes).concat());
            file.extend([1, value].map(u64::to_le_bytes).concat());
        }
        file.extend([0; 8]);
        file.extend([7, 9]);
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.tif");
        std::fs::write(&path, file).unwrap();
        let image = read_still(&path, Tone::default()).unwrap();
        assert_eq!((image.width(), image.height(), image.pixels()), (2, 1, &[7, 9][..]));
    }

    #[test]
    fn linear_light_and_every_depth_of_tiff_are_read() {
        let dir = tempfile::tempdir().unwrap();
        // Half of the codes is 21.4 % of the light.
        let half = 0.214_041_14;
        let light = ImageBuffer::from_fn(3, 2, |x, _| Rgb([half * x as f32; 3]));
        let alpha = ImageBuffer::from_fn(3, 2, |x, _| {
            Rgba([half * x as f32, half * x as f32, half * x as f32, 0.5])
        });
        for (name, picture) in [
            ("a.exr", DynamicImage::from(light.clone())),
            ("b.exr", alpha.clone().into()),
            ("c.tif", light.into()),
        ] {
            let path = dir.path().join(name);
            picture.save(&path).unwrap();
            let read = read_still(&path, Tone::UpperBits).unwrap();
            assert_eq!(read.pixels(), [0, 128, 175, 0, 128, 175], "{name}");
            let [red, _, blue] = read_colours(&path, Orient::Ignore).unwrap();
            assert!(red.pixels()[1].abs_diff(128) <= 1 && red.pixels() == blue.pixels(), "{name}");
            let error = read_levels(&path).unwrap_err().to_string();
            assert!(error.contains(name) && error.contains("floating-point"), "{error}");
        }
        let deep = ImageBuffer::from_fn(3, 2, |x, y| Rgb([(x * 20_000 + y * 1_000) as u16; 3]));
        let with_alpha = ImageBuffer::from_fn(3, 2, |x, y| {
            let [grey, ..] = deep.get_pixel(x, y).0;
            Rgba([grey, grey, grey, 9])
        });
        let grey = ImageBuffer::from_fn(3, 2, |x, y| Luma([deep.get_pixel(x, y)[0]]));
        let expected = [0, 78, 156, 3, 82, 160];
        assert_eq!(save("a.tif", DynamicImage::ImageRgb16(deep)), expected);
        assert_eq!(save("a.tif", DynamicImage::ImageRgba16(with_alpha)), expected);
        assert_eq!(save("a.tiff", DynamicImage::ImageLuma16(grey)), expected);
    }

    /// Cameras of the USB video class leave the usual tables out (`image` writes exactly those).
    #[test]
    fn a_jpeg_without_huffman_tables_has_the_usual_ones() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.jpg");
        ImageBuffer::from_fn(40, 24, |x, y| Rgb([(x * y) as u8, x as u8 * 6, y as u8 * 10]))
            .save(&path)
            .unwrap();
        let expected = read(&path, Orient::Ignore).unwrap().picture;
        let mut content = fs::read(&path).unwrap();
        assert!(!jpeg::lacks_tables(&content));
        let mut removed = 0;
        while let Some(at) = content.windows(2).position(|two| two == [0xff, 0xc4]) {
            let length = usize::from(u16::from_be_bytes([content[at + 2], content[at + 3]]));
            content.drain(at..at + 2 + length);
            removed += 1;
        }
        assert!(removed > 0 && jpeg::lacks_tables(&content), "{removed} segments");
        fs::write(&path, &content).unwrap();
        assert_eq!(read(&path, Orient::Ignore).unwrap().picture, expected);
        fs::write(&path, &content[..content.len() - 40]).unwrap();
        let error = format!("{:#}", read_still(&path, Tone::Local).unwrap_err());
        assert!(error.contains("damaged"), "{error}");
    }

    #[test]
    fn orientation_is_told_and_followed_on_request() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.jpg");
        ImageBuffer::from_fn(16, 8, |x, _| Luma([x as u8 * 16])).save(&path).unwrap();
        let plain = read(&path, Orient::Auto).unwrap();
        assert_eq!((plain.orientation, plain.picture.width()), (Orientation::NoTransforms, 16));
        let mut content = fs::read(&path).unwrap();
        // An EXIF segment (APP1) with one entry: orientation 6, to be turned clockwise.
        let entry = b"MM\0*\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0\x06\0\0\0\0\0\0";
        let segment = [&b"\xff\xe1\0\x22Exif\0\0"[..], entry].concat();
        assert_eq!(segment.len(), 0x22 + 2);
        content.splice(2..2, segment);
        fs::write(&path, content).unwrap();
        let as_it_is = read(&path, Orient::Ignore).unwrap();
        assert_eq!(as_it_is.orientation, Orientation::Rotate90);
        assert_eq!(as_it_is.picture, plain.picture);
        assert_eq!(read(&path, Orient::Auto).unwrap().picture, plain.picture.rotate90());
    }

    #[test]
    fn a_picture_that_was_cut_is_damaged_wherever_it_was_cut() {
        let dir = tempfile::tempdir().unwrap();
        let picture = ImageBuffer::from_fn(24, 16, |x, y| Luma([(x * y + 3 * x) as u8]));
        for kind in ["png", "jpg", "pgm", "bmp", "tif"] {
            let path = dir.path().join(format!("a.{kind}"));
            picture.save(&path).unwrap();
            let whole = fs::read(&path).unwrap();
            assert!(read_still(&path, Tone::Local).is_ok(), "{kind}");
            for length in 1..whole.len() {
                fs::write(&path, &whole[..length]).unwrap();
                assert!(
                    read_still(&path, Tone::Local).is_err(),
                    "{kind}: {length} of {}",
                    whole.len()
                );
            }
        }
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
