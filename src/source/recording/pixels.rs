//! Images of messages become frames: intensity of 8 bits, and the colour if an output needs it.

use anyhow::{Result, bail, ensure};
use image::DynamicImage;

use super::messages::{Picture, Raw};
use crate::core::chroma::{Chroma, ChromaPlane, ColourCoding, Differences};
use crate::core::frame::{Image, intensity, intensity_16};
use crate::core::memory::{Budget, product};
use crate::core::pool::Pool;
use crate::source::gst::Keep;
use crate::source::still;
use crate::source::tone::Tone;

/// Bytes a pixel of a frame being made: samples, intensity and colour.
const BYTES_A_PIXEL: usize = 8;

/// Order of the samples of a pixel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Layout {
    Grey,
    /// Positions of red, green and blue among so many samples.
    Colour([usize; 3], usize),
    /// Two pixels in four bytes: positions of the first luma and of Cb.
    Yuv422([usize; 2]),
    /// Column and row of the first red pixel of a Bayer mosaic.
    Bayer([usize; 2]),
}

/// Returns the layout of a pixel format, and whether its samples have two bytes
/// (`sensor_msgs/image_encodings.hpp`).
fn layout(encoding: &str) -> Option<(Layout, bool)> {
    const BGR: Layout = Layout::Colour([2, 1, 0], 3);
    Some(match encoding {
        "mono8" | "8UC1" => (Layout::Grey, false),
        "mono16" | "16UC1" => (Layout::Grey, true),
        "rgb8" => (Layout::Colour([0, 1, 2], 3), false),
        "bgr8" | "8UC3" => (BGR, false),
        "rgba8" => (Layout::Colour([0, 1, 2], 4), false),
        "bgra8" | "8UC4" => (Layout::Colour([2, 1, 0], 4), false),
        "rgb16" => (Layout::Colour([0, 1, 2], 3), true),
        "bgr16" => (BGR, true),
        "yuv422" | "uyvy" => (Layout::Yuv422([1, 0]), false),
        "yuv422_yuy2" | "yuyv" => (Layout::Yuv422([0, 1]), false),
        _ => {
            let rest = encoding.strip_prefix("bayer_")?;
            let (order, is_wide) = match rest.split_at_checked(4)? {
                (order, "8") => (order, false),
                (order, "16") => (order, true),
                _ => return None,
            };
            let red = match order {
                "rggb" => [0, 0],
                "bggr" => [1, 1],
                "gbrg" => [0, 1],
                "grbg" => [1, 0],
                _ => return None,
            };
            (Layout::Bayer(red), is_wide)
        }
    })
}

/// Returns the size of an image in pixels, by its header.
pub fn size(picture: &Picture<'_>) -> Result<(usize, usize)> {
    match picture {
        Picture::Raw(raw) => Ok((raw.width, raw.height)),
        Picture::File(content) => still::size(content),
        Picture::Unit(..) => bail!(IS_VIDEO),
    }
}

/// Refusal of a frame of a video by itself.
const IS_VIDEO: &str = "a frame of a video cannot be decoded by itself";

/// Returns the pixel format of an image, for people.
pub fn format(picture: &Picture<'_>) -> String {
    match picture {
        Picture::Raw(raw) => raw.encoding.chars().take(20).collect(),
        Picture::File(content) => {
            let known = image::guess_format(content).ok();
            known.map_or("unknown", |format| format.extensions_str()[0]).to_owned()
        }
        Picture::Unit(codec, _) => codec.map_or("unknown".to_owned(), |codec| codec.to_string()),
    }
}

/// Makes a frame of an image, in memory of the pools.
pub fn frame(picture: &Picture<'_>, keep: &Keep, tone: Tone) -> Result<Image> {
    match picture {
        Picture::Raw(raw) => of_raw(raw, keep, tone),
        Picture::File(content) => of_still(still::decode(content)?, keep, tone),
        Picture::Unit(..) => bail!(IS_VIDEO),
    }
}

fn of_raw(raw: &Raw<'_>, keep: &Keep, tone: Tone) -> Result<Image> {
    let Raw { width, height, encoding, step, data, .. } = *raw;
    let Some((layout, is_wide)) = layout(encoding) else {
        bail!(
            "pixels in the format \"{encoding}\" are not read; known are mono8, mono16, rgb8, bgr8, rgba8, \
             bgra8, rgb16, bgr16, yuv422, yuv422_yuy2 and bayer_*"
        );
    };
    ensure!(width > 0 && height > 0, "the image has no pixels ({width}x{height})");
    let pixels = product([width, height, BYTES_A_PIXEL]);
    Budget::of_process().check(
        format!("an image of {width}x{height}"),
        pixels,
        "a smaller image",
    )?;
    let samples = match layout {
        Layout::Colour(_, samples) => samples,
        Layout::Yuv422(_) => 2,
        Layout::Grey | Layout::Bayer(_) => 1,
    };
    let columns =
        if matches!(layout, Layout::Yuv422(_)) { width.next_multiple_of(2) } else { width };
    let row = columns * samples * (1 + usize::from(is_wide));
    ensure!(
        step >= row,
        "the step of {step} bytes is smaller than a row of {width} pixels in {encoding} ({row} bytes)"
    );
    ensure!(
        data.len() as u64 >= product([step, height - 1]).saturating_add(row as u64),
        "{width}x{height} pixels in {encoding}, {step} bytes a row, need more than the {} bytes of the message",
        data.len()
    );
    let rows = Rows { data, step, length: row, is_wide, is_big_endian: raw.is_big_endian };
    let pixel = |x, y| pixel(&rows, layout, (width, height), x, y);
    let mut grey = keep.pixels.try_take(width * height)?;
    if is_wide {
        let mut words = keep.samples.try_take(width * height)?;
        for (y, out) in words.chunks_exact_mut(width).enumerate() {
            for (x, out) in out.iter_mut().enumerate() {
                *out = match layout {
                    Layout::Grey => rows.at(x, y),
                    _ => {
                        let [r, g, b] = pixel(x, y);
                        intensity_16(r, g, b)
                    }
                };
            }
        }
        tone.reduce(&words, width, &mut grey);
    } else {
        for (y, out) in grey.chunks_exact_mut(width).enumerate() {
            let row = rows.row(y);
            match layout {
                Layout::Grey => out.copy_from_slice(&row[..width]),
                Layout::Colour([r, g, b], samples) => {
                    for (out, p) in out.iter_mut().zip(row.chunks_exact(samples)) {
                        *out = intensity(p[r], p[g], p[b]);
                    }
                }
                Layout::Yuv422([luma, _]) => {
                    for (out, luma) in out.iter_mut().zip(row[luma..].iter().step_by(2)) {
                        *out = *luma;
                    }
                }
                Layout::Bayer(_) => {
                    for (x, out) in out.iter_mut().enumerate() {
                        let [r, g, b] = pixel(x, y).map(|sample| sample as u8);
                        *out = intensity(r, g, b);
                    }
                }
            }
        }
    }
    let image = Image::new(width, height, grey);
    let Some(pool) = &keep.colours else { return Ok(image) };
    let chroma = match layout {
        Layout::Grey => None,
        Layout::Yuv422([_, cb]) => Some(of_yuv(&rows, cb, (width, height), pool)?),
        Layout::Colour(..) | Layout::Bayer(_) => {
            let shift = if is_wide { 8 } else { 0 };
            Some(of_rgb((width, height), pool, |x, y| pixel(x, y).map(|s| (s >> shift) as u8))?)
        }
    };
    Ok(image.with_chroma(chroma))
}

/// Rows of samples.
struct Rows<'a> {
    data: &'a [u8],
    step: usize,
    /// Bytes of a row.
    length: usize,
    is_wide: bool,
    is_big_endian: bool,
}

impl<'a> Rows<'a> {
    fn row(&self, y: usize) -> &'a [u8] {
        &self.data[y * self.step..][..self.length]
    }

    /// Returns sample `x` of row `y`.
    fn at(&self, x: usize, y: usize) -> u16 {
        let row = self.row(y);
        match (self.is_wide, self.is_big_endian) {
            (false, _) => row[x].into(),
            (true, false) => u16::from_le_bytes([row[2 * x], row[2 * x + 1]]),
            (true, true) => u16::from_be_bytes([row[2 * x], row[2 * x + 1]]),
        }
    }
}

/// Returns red, green and blue of a pixel of a colour image or a mosaic.
fn pixel(rows: &Rows<'_>, layout: Layout, size: (usize, usize), x: usize, y: usize) -> [u16; 3] {
    match layout {
        Layout::Colour(order, samples) => order.map(|sample| rows.at(x * samples + sample, y)),
        Layout::Bayer(red) => demosaic(rows, red, size, x, y),
        Layout::Grey | Layout::Yuv422(_) => [rows.at(x, y); 3],
    }
}

/// Returns the colour of a pixel of a Bayer mosaic: bilinear, mirrored at the borders.
fn demosaic(
    rows: &Rows<'_>,
    [red_x, red_y]: [usize; 2],
    (width, height): (usize, usize),
    x: usize,
    y: usize,
) -> [u16; 3] {
    let mirror = |at: usize, by: isize, length: usize| match at.checked_add_signed(by) {
        Some(there) if there < length => there,
        // A mosaic of one row or column has no other neighbour.
        _ => at.checked_add_signed(-by).filter(|&there| there < length).unwrap_or(at),
    };
    let mean = |offsets: &[(isize, isize)]| {
        let at = |&(dx, dy): &(isize, isize)| {
            u32::from(rows.at(mirror(x, dx, width), mirror(y, dy, height)))
        };
        let count = offsets.len() as u32;
        ((offsets.iter().map(at).sum::<u32>() + count / 2) / count) as u16
    };
    const BESIDE: [(isize, isize); 2] = [(-1, 0), (1, 0)];
    const ABOVE: [(isize, isize); 2] = [(0, -1), (0, 1)];
    const AROUND: [(isize, isize); 4] = [(-1, 0), (1, 0), (0, -1), (0, 1)];
    const DIAGONAL: [(isize, isize); 4] = [(-1, -1), (1, -1), (-1, 1), (1, 1)];
    let own = rows.at(x, y);
    match (x % 2 == red_x, y % 2 == red_y) {
        (true, true) => [own, mean(&AROUND), mean(&DIAGONAL)],
        (false, false) => [mean(&DIAGONAL), mean(&AROUND), own],
        (false, true) => [mean(&BESIDE), own, mean(&ABOVE)],
        (true, false) => [mean(&ABOVE), own, mean(&BESIDE)],
    }
}

fn of_rgb(
    size: (usize, usize),
    pool: &Pool<Differences>,
    pixel: impl Fn(usize, usize) -> [u8; 3],
) -> Result<Chroma> {
    let mut samples = pool.try_take(size.0 * size.1)?;
    for (y, out) in samples.chunks_exact_mut(size.0).enumerate() {
        for (x, out) in out.iter_mut().enumerate() {
            let [r, g, b] = pixel(x, y);
            *out = ColourCoding::differences(intensity(r, g, b), r, b);
        }
    }
    let plane = ChromaPlane::new(size, [0, 0], samples);
    Ok(Chroma::new(ColourCoding::of_rgb(), plane, pool.clone()))
}

fn of_yuv(
    rows: &Rows<'_>,
    cb: usize,
    size: (usize, usize),
    pool: &Pool<Differences>,
) -> Result<Chroma> {
    let shift = [1, 0];
    let (width, height) = ChromaPlane::size_for(size, shift);
    let mut samples = pool.try_take(width * height)?;
    for (y, out) in samples.chunks_exact_mut(width).enumerate() {
        for (out, four) in out.iter_mut().zip(rows.row(y).chunks_exact(4)) {
            *out = [four[cb], four[cb + 2]];
        }
    }
    // Rec. 601 in limited range, as cameras deliver it.
    let coding = ColourCoding::new(0.299, 0.114, false);
    Ok(Chroma::new(coding, ChromaPlane::new(size, shift, samples), pool.clone()))
}

fn of_still(picture: DynamicImage, keep: &Keep, tone: Tone) -> Result<Image> {
    let colours = keep.colours.as_ref().filter(|_| picture.color().has_color());
    let rgb = colours.map(|pool| (pool, picture.to_rgb8()));
    let grey = crate::source::grey::Grey::of(picture);
    let size = (grey.width(), grey.height());
    let image = grey.into_image(tone);
    let chroma = match rgb {
        Some((pool, rgb)) => {
            let all = rgb.as_raw();
            let at = |x, y| std::array::from_fn(|c| all[3 * (y * size.0 + x) + c]);
            Some(of_rgb(size, pool, at)?)
        }
        None => None,
    };
    Ok(image.with_chroma(chroma))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const KNOWN: [&str; 14] = [
        "mono8",
        "mono16",
        "rgb8",
        "bgr8",
        "rgba8",
        "bgra8",
        "rgb16",
        "bgr16",
        "yuv422",
        "yuv422_yuy2",
        "bayer_rggb8",
        "bayer_bggr8",
        "bayer_gbrg16",
        "bayer_grbg8",
    ];

    fn keep() -> Keep {
        Keep { colours: Some(Pool::new()), ..Keep::default() }
    }

    fn made(encoding: &str, (width, height): (usize, usize), data: &[u8]) -> Image {
        let step = data.len() / height;
        let raw = Raw { width, height, encoding, is_big_endian: false, step, data };
        frame(&Picture::Raw(raw), &keep(), Tone::UpperBits).unwrap()
    }

    #[test]
    fn samples_stand_where_their_names_say() {
        let rgb = [10, 200, 30];
        let grey = intensity(10, 200, 30);
        let [r, g, b] = rgb;
        for (encoding, pixel) in [
            ("rgb8", vec![r, g, b]),
            ("bgr8", vec![b, g, r]),
            ("rgba8", vec![r, g, b, 9]),
            ("bgra8", vec![b, g, r, 9]),
            ("rgb16", vec![0, r, 0, g, 0, b]),
            ("bgr16", vec![0, b, 0, g, 0, r]),
        ] {
            let image = made(encoding, (2, 2), &pixel.repeat(4));
            assert_eq!(image.pixels(), [grey; 4], "{encoding}");
            // The differences are rounded.
            let seen = image.rgb_at(1, 1);
            assert!(seen.iter().zip(rgb).all(|(a, b)| a.abs_diff(b) <= 2), "{encoding}: {seen:?}");
        }
        let image = made("yuv422", (2, 1), &[128, 50, 128, 60]);
        assert_eq!((image.pixels(), image.chroma().is_some()), (&[50, 60][..], true));
        assert_eq!(made("yuv422_yuy2", (2, 1), &[50, 128, 60, 128]).pixels(), [50, 60]);
        assert_eq!(made("mono16", (2, 1), &[1, 50, 255, 60]).pixels(), [50, 60]);
        assert!(made("mono8", (2, 1), &[1, 2]).chroma().is_none());
    }

    #[test]
    fn an_even_colour_of_a_mosaic_is_even() {
        let (width, height) = (6, 4);
        for (order, red) in [("rggb", [0, 0]), ("bggr", [1, 1]), ("gbrg", [0, 1]), ("grbg", [1, 0])]
        {
            let sample = |i: usize| {
                let (x, y) = (i % width, i / width);
                match (x % 2 == red[0], y % 2 == red[1]) {
                    (true, true) => 200,
                    (false, false) => 20,
                    _ => 90,
                }
            };
            let data: Vec<u8> = (0..width * height).map(sample).collect();
            let image = made(&format!("bayer_{order}8"), (width, height), &data);
            assert_eq!(image.pixels(), vec![intensity(200, 90, 20); width * height], "{order}");
            let wide: Vec<u8> = data.iter().flat_map(|&sample| [0, sample]).collect();
            let deep = made(&format!("bayer_{order}16"), (width, height), &wide);
            assert!(deep.pixels().iter().zip(image.pixels()).all(|(a, b)| a.abs_diff(*b) <= 1));
        }
    }

    #[test]
    fn rows_may_be_padded() {
        assert_eq!(made("mono8", (2, 2), &[1, 2, 0, 3, 4, 0]).pixels(), [1, 2, 3, 4]);
        let raw = |step, data| Raw {
            width: 2,
            height: 2,
            encoding: "mono8",
            is_big_endian: false,
            step,
            data,
        };
        // The last row need not be padded.
        let image = frame(&Picture::Raw(raw(3, &[1, 2, 0, 3, 4])), &keep(), Tone::Local).unwrap();
        assert_eq!(image.pixels(), [1, 2, 3, 4]);
        for (step, data, what) in [
            (3, &[1, 2, 0, 3][..], "need more than the 4 bytes"),
            (usize::MAX, &[1, 2, 3, 4], "need more than the 4 bytes"),
            (1, &[1, 2, 3, 4], "the step of 1 bytes is smaller than a row of 2 pixels"),
            (0, &[1, 2, 3, 4], "the step of 0 bytes is smaller than a row of 2 pixels"),
        ] {
            let error = frame(&Picture::Raw(raw(step, data)), &keep(), Tone::Local).unwrap_err();
            assert!(error.to_string().contains(what), "{error}");
        }
    }

    #[test]
    fn the_refusal_of_a_format_names_those_that_are_read() {
        let raw = |encoding| Raw {
            width: 1,
            height: 1,
            encoding,
            is_big_endian: false,
            step: 8,
            data: &[0; 8],
        };
        let tried = |encoding| frame(&Picture::Raw(raw(encoding)), &keep(), Tone::Local);
        let error = tried("nv12").unwrap_err().to_string();
        for known in KNOWN {
            let named = if known.starts_with("bayer_") { "bayer_*" } else { known };
            assert!(error.contains(named), "{named}: {error}");
        }
    }

    proptest! {
        #[test]
        fn any_header_is_read_or_refused(
            width in 0_usize..40,
            height in 0_usize..40,
            step in 0_usize..200,
            known in 0..KNOWN.len(),
            is_big_endian: bool,
            data in prop::collection::vec(any::<u8>(), 0..4000),
        ) {
            let raw = Raw { width, height, encoding: KNOWN[known], is_big_endian, step, data: &data };
            if let Ok(image) = frame(&Picture::Raw(raw), &keep(), Tone::Local) {
                prop_assert_eq!((image.width(), image.height()), (width, height));
            }
        }
    }
}
