//! Reads single images from files. A damaged image is an error, even if its decoder would fill the missing
//! part.

use std::borrow::Cow;
use std::io::Cursor;
use std::path::Path;

use anyhow::{Context, Result, bail, ensure};
use image::codecs::pnm::PnmDecoder;
use image::metadata::Orientation;
use image::{DynamicImage, ImageDecoder, ImageError, ImageFormat, ImageReader};

use super::grey::Grey;
use super::light::{self, encode_floats};
use super::orientation::Orient;
use super::packing::Stated;
use super::tone::Tone;
use super::unread::{self, Unread};
use super::{exr, header, jpeg, several, tiff};
use crate::frame::Image;

/// APP0 segment that stands for the usual Huffman tables (JPEG DIB format), of an image that has none.
const USUAL_TABLES: [u8; 9] = *b"\xff\xe0\x00\x07AVI1\x00";

/// A decoded image.
pub struct Still {
    /// Samples, floating-point ones as 16 bits; turned by the orientation tag if requested.
    pub picture: DynamicImage,
    pub orientation: Orientation,
    /// Arrangement of both views, if the file states that it holds both (JPS).
    pub stated: Option<Stated>,
}

/// Reads an image of one view: PNG, JPEG, PNM, BMP, TIFF or OpenEXR, told apart by content, not by name.
pub fn read(path: &Path, orient: Orient) -> Result<Still> {
    let still = read_any(path, orient)?;
    if let Some(stated) = still.stated {
        bail!("cannot read {} as one view: {}", path.display(), stated.describe());
    }
    Ok(still)
}

/// Reads an image as [`read`] does, also one that states that it holds both views.
pub fn read_any(path: &Path, orient: Orient) -> Result<Still> {
    let (content, format) = read_known(path)?;
    let Still { picture, orientation, stated } = decode_known(path, &content, format)?;
    let mut picture = encode_floats(picture);
    if orient == Orient::Auto {
        picture.apply_orientation(orientation);
    }
    let kind = path.extension().unwrap_or_default().to_ascii_lowercase();
    let is_stereo = ["jps", "pns"].iter().any(|stereo| kind == *stereo);
    Ok(Still { picture, orientation, stated: stated.or(is_stereo.then_some(Stated::CROSS_EYED)) })
}

/// Reads an image as 8-bit intensity, not turned, because calibrations refer to the sensor's own image.
///
/// Colour becomes intensity by Rec. 709; `tone` reduces samples of more than 8 bits. Transparency is ignored.
pub fn read_still(path: &Path, tone: Tone) -> Result<Image> {
    Ok(Grey::of(read(path, Orient::Ignore)?.picture).into_image(tone))
}

/// Reads an image as red, green and blue, 8 bits each; grey images have three alike.
pub fn read_colours(path: &Path, orient: Orient) -> Result<[Image; 3]> {
    let picture = read_any(path, orient)?.picture.to_rgb8();
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
    let format = known_format(content)?;
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
    let format = known_format(&content).with_context(|| format!("cannot read {shown}"))?;
    Ok((content, format))
}

/// Returns the format of an image that is read.
fn known_format(content: &[u8]) -> Result<ImageFormat> {
    if let Some(unread) = unread::by_first_bytes(content) {
        return Err(unread.into());
    }
    header::format(content).context("it is no PNG, JPEG, PGM, PPM, BMP, TIFF or EXR picture")
}

fn decode_known(path: &Path, content: &[u8], format: ImageFormat) -> Result<Still> {
    let shown = path.display();
    header::check(content).with_context(|| format!("cannot read {shown}"))?;
    let still = decode_whole(content, format).map_err(|error| {
        if error.is::<Unread>() {
            return error.context(format!("cannot read {shown}"));
        }
        let is_unsupported = matches!(error.downcast_ref(), Some(ImageError::Unsupported(_)));
        let flaw = match format {
            ImageFormat::Tiff if is_unsupported => {
                "its kind of samples or compression is not read; convert it: `convert IN.tif -depth 16 OUT.png`, or \
                 for the raw picture of a camera `dcraw -T -6 IN`"
            }
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
    let mut stated = None;
    match format {
        ImageFormat::Jpeg => stated = jpeg::check_file(content)?,
        ImageFormat::Png => several::check_png(content)?,
        ImageFormat::Pnm => several::check_pnm(content)?,
        ImageFormat::OpenExr => exr::check(content)?,
        ImageFormat::Tiff => {
            tiff::check(content)?;
            if let Some((picture, orientation)) = tiff::floats(content)? {
                light::check(&picture)?;
                return Ok(Still { picture, orientation, stated });
            }
        }
        _ => {}
    }
    let mut content = Cow::Borrowed(content);
    if format == ImageFormat::Jpeg && jpeg::lacks_tables(&content) {
        content.to_mut().splice(2..2, USUAL_TABLES);
    }
    let mut reader = ImageReader::with_format(Cursor::new(&content), format);
    reader.limits(header::limits());
    let mut decoder = reader.into_decoder()?;
    // Damaged metadata counts as none.
    let orientation = decoder.orientation().unwrap_or(Orientation::NoTransforms);
    let picture = DynamicImage::from_decoder(decoder)?;
    if format == ImageFormat::Tiff {
        light::check(&picture)?;
    }
    // The decoder stops after the last pixel.
    let has_end = || several::chunks(&content).any(|(kind, _)| kind == b"IEND");
    ensure!(format != ImageFormat::Png || has_end(), "it was cut off before its end");
    Ok(Still { picture, orientation, stated })
}

#[cfg(test)]
mod tests {
    use std::fs;

    use image::{ImageBuffer, Luma, LumaA, Rgb, Rgba};

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
            let error = format!("{:#}", read(&path, Orient::Ignore).err().unwrap());
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
        fails("gif.gif", Some(b"GIF89a\x3a\0\0\0\0\0\0\0"), "GIF is not read; convert it: `");
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
            ("d.tif", alpha.into()),
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
    fn what_holds_more_than_one_view_is_refused_with_the_cure() {
        let dir = tempfile::tempdir().unwrap();
        let told = |name: &str, content: &[u8]| {
            let path = dir.path().join(name);
            fs::write(&path, content).unwrap();
            format!("{:#}", read(&path, Orient::Ignore).err().unwrap())
        };
        let one = b"P5\n2 1\n255\n\x05\xff";
        let several = told("a.pgm", &[one, &one[..]].concat());
        assert!(several.contains("a.pgm: it holds 2 pictures, and only"), "{several}");
        let cross_eyed = told("a.jps", one);
        assert!(
            cross_eyed.contains("a.jps as one view") && cross_eyed.contains("--swap`"),
            "{cross_eyed}"
        );
        let read = read_any(&dir.path().join("a.jps"), Orient::Ignore).unwrap();
        assert_eq!(read.stated, Some(Stated::CROSS_EYED));
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
}
