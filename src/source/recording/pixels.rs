//! Images of messages become frames: intensity of 8 bits, and the colour if an output needs it.

use anyhow::{Context, Result, bail, ensure};
use image::{ColorType, DynamicImage};

use super::messages::{Picture, Raw};
use crate::core::chroma::{Chroma, ChromaPlane, ColourCoding, Differences};
use crate::core::frame::{Image, intensity, intensity_16};
use crate::core::memory::{Budget, product};
use crate::core::pool::Pool;
use crate::source::gst::{Keep, ViewLayout, Views};
use crate::source::still;
use crate::source::tone::Tone;

/// Bytes a pixel of a frame being made: samples, intensity and colour.
const BYTES_A_PIXEL: usize = 8;

/// Order of the samples of a pixel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Layout {
    Grey,
    /// Indices of red, green and blue, and number of samples per pixel.
    Colour([usize; 3], usize),
    /// Two pixels in four bytes: positions of the first luma and of Cb.
    Yuv422([usize; 2]),
    /// A plane of luma, then one of pairs of colour differences: pixels that share a pair, across and down, as powers of
    /// two; position of Cb.
    TwoPlanes([u32; 2], usize),
    /// Column and row of the first red pixel of a Bayer mosaic.
    Bayer([usize; 2]),
}

const BGR: Layout = Layout::Colour([2, 1, 0], 3);
const RGB: Layout = Layout::Colour([0, 1, 2], 3);
const BGRA: Layout = Layout::Colour([2, 1, 0], 4);
const RGBA: Layout = Layout::Colour([0, 1, 2], 4);
const RGGB: Layout = Layout::Bayer([0, 0]);
const BGGR: Layout = Layout::Bayer([1, 1]);
const GBRG: Layout = Layout::Bayer([0, 1]);
const GRBG: Layout = Layout::Bayer([1, 0]);

/// Pixel formats with their layouts, and whether their samples have two bytes (`sensor_msgs/image_encodings.hpp`).
const FORMATS: [(&str, Layout, bool); 29] = [
    ("mono8", Layout::Grey, false),
    ("mono16", Layout::Grey, true),
    ("8UC1", Layout::Grey, false),
    ("16UC1", Layout::Grey, true),
    ("rgb8", RGB, false),
    ("bgr8", BGR, false),
    ("8UC3", BGR, false),
    ("rgba8", RGBA, false),
    ("bgra8", BGRA, false),
    ("8UC4", BGRA, false),
    ("rgb16", RGB, true),
    ("bgr16", BGR, true),
    ("rgba16", RGBA, true),
    ("bgra16", BGRA, true),
    ("yuv422", Layout::Yuv422([1, 0]), false),
    ("uyvy", Layout::Yuv422([1, 0]), false),
    ("yuv422_yuy2", Layout::Yuv422([0, 1]), false),
    ("yuyv", Layout::Yuv422([0, 1]), false),
    ("nv12", Layout::TwoPlanes([1, 1], 0), false),
    ("nv21", Layout::TwoPlanes([1, 1], 1), false),
    ("nv24", Layout::TwoPlanes([0, 0], 0), false),
    ("bayer_rggb8", RGGB, false),
    ("bayer_bggr8", BGGR, false),
    ("bayer_gbrg8", GBRG, false),
    ("bayer_grbg8", GRBG, false),
    ("bayer_rggb16", RGGB, true),
    ("bayer_bggr16", BGGR, true),
    ("bayer_gbrg16", GBRG, true),
    ("bayer_grbg16", GRBG, true),
];

/// Returns the layout of a pixel format, and whether its samples have two bytes.
fn layout(encoding: &str) -> Result<(Layout, bool)> {
    if let Some((_, layout, is_wide)) = FORMATS.iter().find(|(name, ..)| *name == encoding) {
        return Ok((*layout, *is_wide));
    }
    let names = FORMATS.iter().map(|(name, ..)| *name).filter(|name| !name.starts_with("bayer_"));
    bail!(
        "pixels in the format \"{encoding}\" are not read; known are {} and bayer_*",
        names.collect::<Vec<_>>().join(", ")
    )
}

/// Returns the mosaic of a file by the message's name of the format: image_transport writes `bayer_rggb8; png
/// compressed `, followed by the target format if it has converted the image.
fn mosaic(format: &str) -> Option<Layout> {
    let (encoding, rest) = format.split_once(';')?;
    let converted = rest.rsplit_once("compressed").map_or("", |(_, to)| to.trim());
    let (layout, _) = layout(encoding.trim()).ok()?;
    let is_mosaic = matches!(layout, Layout::Bayer(_))
        && (converted.is_empty() || converted.starts_with("bayer_"));
    is_mosaic.then_some(layout)
}

/// Returns the size of an image in pixels, by its header.
pub fn size(picture: &Picture<'_>) -> Result<(usize, usize)> {
    match picture {
        Picture::Raw(raw) => {
            let Raw { width, height, .. } = *raw;
            ensure!(width > 0 && height > 0, "the image has no pixels ({width}x{height})");
            Ok((width, height))
        }
        Picture::File { content, .. } => still::size(content),
        Picture::Unit(..) => bail!(IS_VIDEO),
    }
}

/// Refusal of a frame of a video by itself.
const IS_VIDEO: &str = "a frame of a video cannot be decoded by itself";

/// Returns the pixel format of an image, for people.
pub fn format(picture: &Picture<'_>) -> String {
    match picture {
        Picture::Raw(raw) => raw.encoding.chars().take(20).collect(),
        Picture::File { content, format } => {
            let known = image::guess_format(content).ok();
            let file = known.map_or("unknown", |format| format.extensions_str()[0]).to_owned();
            let encoding = mosaic(format).and_then(|_| format.split(';').next());
            encoding.map_or(file.clone(), |encoding| format!("{encoding} in {file}"))
        }
        Picture::Unit(codec, _) => codec.map_or("unknown".to_owned(), |codec| codec.to_string()),
    }
}

/// Makes a frame of an image, or of each half if it has both views side by side, in memory of the pools.
pub fn views(picture: &Picture<'_>, views: ViewLayout, keep: &Keep, tone: Tone) -> Result<Views> {
    match picture {
        Picture::Raw(raw) => {
            // An empty image has no format either.
            size(picture)?;
            let (layout, is_wide) = layout(raw.encoding)?;
            of_raw(raw, (layout, is_wide), views, keep, tone)
        }
        Picture::File { content, format } => {
            let still = still::decode(content).with_context(|| named(format))?;
            match mosaic(format) {
                Some(layout) if !still.color().has_color() => {
                    of_mosaic(&still, layout, views, keep, tone)
                }
                _ => of_still(still, views, keep, tone),
            }
        }
        Picture::Unit(..) => bail!(IS_VIDEO),
    }
}

/// Names the format of a file that cannot be decoded.
fn named(format: &str) -> String {
    match format {
        "" => "the image cannot be decoded".to_owned(),
        _ => format!(
            "the image (format \"{}\") cannot be decoded",
            format.chars().take(40).collect::<String>()
        ),
    }
}

/// Calls `make` for the columns of each view.
fn each_view(
    width: usize,
    views: ViewLayout,
    make: impl Fn(usize, usize) -> Result<Image>,
) -> Result<Views> {
    if views == ViewLayout::Whole {
        return Ok(Views::One(make(0, width)?));
    }
    // Formats with shared colours, and mosaics, repeat after two columns.
    ensure!(
        width.is_multiple_of(4),
        "views side by side need a width of a multiple of 4, not {width}"
    );
    Ok(Views::Both(make(0, width / 2)?, make(width / 2, width / 2)?))
}

/// Makes frames of a file that holds a mosaic.
fn of_mosaic(
    still: &DynamicImage,
    layout: Layout,
    views: ViewLayout,
    keep: &Keep,
    tone: Tone,
) -> Result<Views> {
    let is_wide = matches!(still.color(), ColorType::L16 | ColorType::La16);
    let samples =
        if is_wide { DynamicImage::from(still.to_luma16()) } else { still.to_luma8().into() };
    let (width, height) = (still.width() as usize, still.height() as usize);
    let raw = Raw {
        width,
        height,
        encoding: "mosaic",
        is_big_endian: cfg!(target_endian = "big"),
        step: width * (1 + usize::from(is_wide)),
        data: samples.as_bytes(),
    };
    of_raw(&raw, (layout, is_wide), views, keep, tone)
}

fn of_raw(
    raw: &Raw<'_>,
    (layout, is_wide): (Layout, bool),
    views: ViewLayout,
    keep: &Keep,
    tone: Tone,
) -> Result<Views> {
    let Raw { width, height, encoding, step, data, .. } = *raw;
    let size = size(&Picture::Raw(*raw))?;
    let pixels = product([width, height, BYTES_A_PIXEL]);
    Budget::of_process().check(
        format!("an image of {width}x{height}"),
        pixels,
        "a smaller image",
    )?;
    let samples = match layout {
        Layout::Colour(_, samples) => samples,
        Layout::Yuv422(_) => 2,
        Layout::Grey | Layout::Bayer(_) | Layout::TwoPlanes(..) => 1,
    };
    let columns =
        if matches!(layout, Layout::Yuv422(_)) { width.next_multiple_of(2) } else { width };
    let pixel_bytes = samples * (1 + usize::from(is_wide));
    let row = columns * pixel_bytes;
    ensure!(
        step >= row,
        "the step of {step} bytes is smaller than a row of {width} pixels in {encoding} ({row} bytes)"
    );
    let needed = match layout {
        Layout::TwoPlanes(shift, _) => {
            let pairs = product([pairs_step(step, shift), height.div_ceil(1 << shift[1])]);
            product([step, height]).saturating_add(pairs)
        }
        _ => product([step, height - 1]).saturating_add(row as u64),
    };
    ensure!(
        data.len() as u64 >= needed,
        "{width}x{height} pixels in {encoding}, {step} bytes a row, need more than the {} bytes of the message",
        data.len()
    );
    each_view(width, views, |column, width| {
        let start = column * pixel_bytes;
        let length = if views == ViewLayout::Whole { row } else { width * pixel_bytes };
        let rows = Rows { data, step, start, length, is_wide, is_big_endian: raw.is_big_endian };
        of_rows(&rows, layout, (width, size.1), keep, tone)
    })
}

/// Returns the bytes from one row of pairs of colour differences to the next.
fn pairs_step(step: usize, shift: [u32; 2]) -> usize {
    step.saturating_mul(2) >> shift[0]
}

/// Makes a frame of rows of samples.
fn of_rows(
    rows: &Rows<'_>,
    layout: Layout,
    (width, height): (usize, usize),
    keep: &Keep,
    tone: Tone,
) -> Result<Image> {
    let is_wide = rows.is_wide;
    let pixel = |x, y| pixel(rows, layout, (width, height), x, y);
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
                Layout::Grey | Layout::TwoPlanes(..) => out.copy_from_slice(&row[..width]),
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
        Layout::Yuv422([_, cb]) => {
            let pairs =
                |y: usize| rows.row(y).chunks_exact(4).map(move |four| [four[cb], four[cb + 2]]);
            Some(of_yuv((width, height), [1, 0], pool, pairs)?)
        }
        Layout::TwoPlanes(shift, cb) => {
            let step = pairs_step(rows.step, shift);
            let start = rows.step * height + pairs_step(rows.start, shift);
            let pairs = |y: usize| {
                let row = rows.data[start + y * step..].as_chunks::<2>().0;
                row.iter().map(move |pair| [pair[cb], pair[1 - cb]])
            };
            Some(of_yuv((width, height), shift, pool, pairs)?)
        }
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
    /// First byte of a row that counts, and number of those bytes.
    start: usize,
    length: usize,
    is_wide: bool,
    is_big_endian: bool,
}

impl<'a> Rows<'a> {
    fn row(&self, y: usize) -> &'a [u8] {
        &self.data[y * self.step + self.start..][..self.length]
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
        Layout::Grey | Layout::Yuv422(_) | Layout::TwoPlanes(..) => [rows.at(x, y); 3],
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

/// Returns the colour from rows of colour differences; each pair belongs to 2^`shift` pixels.
fn of_yuv<Pairs: Iterator<Item = Differences>>(
    size: (usize, usize),
    shift: [u32; 2],
    pool: &Pool<Differences>,
    pairs: impl Fn(usize) -> Pairs,
) -> Result<Chroma> {
    let (width, height) = ChromaPlane::size_for(size, shift);
    let mut samples = pool.try_take(width * height)?;
    for (y, out) in samples.chunks_exact_mut(width).enumerate() {
        for (out, pair) in out.iter_mut().zip(pairs(y)) {
            *out = pair;
        }
    }
    // Rec. 601 in limited range, as cameras deliver it.
    let coding = ColourCoding::new(0.299, 0.114, false);
    Ok(Chroma::new(coding, ChromaPlane::new(size, shift, samples), pool.clone()))
}

fn of_still(still: DynamicImage, views: ViewLayout, keep: &Keep, tone: Tone) -> Result<Views> {
    if views == ViewLayout::Whole {
        return Ok(Views::One(of_view(still, keep, tone)?));
    }
    each_view(still.width() as usize, views, |column, width| {
        of_view(still.crop_imm(column as u32, 0, width as u32, still.height()), keep, tone)
    })
}

fn of_view(picture: DynamicImage, keep: &Keep, tone: Tone) -> Result<Image> {
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

    fn frame(picture: &Picture<'_>, keep: &Keep, tone: Tone) -> Result<Image> {
        match views(picture, ViewLayout::Whole, keep, tone)? {
            Views::One(image) => Ok(image),
            Views::Both(..) => panic!("two views of one"),
        }
    }

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
    fn colour_differences_in_a_plane_of_their_own() {
        // Four pixels share a pair, and each has its own.
        let luma = [50, 60, 70, 80, 90, 100, 110, 120];
        let quarter = [&luma[..], &[90, 160, 128, 128]].concat();
        let whole = [&luma[..], &[90, 160].repeat(2), &[128; 12]].concat();
        let read = |encoding: &str, data: &[u8]| {
            let raw = Raw { width: 4, height: 2, encoding, is_big_endian: false, step: 4, data };
            frame(&Picture::Raw(raw), &keep(), Tone::Local)
        };
        let coloured = |encoding: &str, data: &[u8]| {
            let image = read(encoding, data).unwrap();
            assert_eq!(image.pixels(), luma, "{encoding}");
            (image.rgb_at(1, 0), image.rgb_at(3, 1))
        };
        let coding = ColourCoding::new(0.299, 0.114, false);
        let due = (coding.rgb(60, [90, 160]), coding.rgb(120, [128, 128]));
        assert_eq!(coloured("nv12", &quarter), due);
        assert_eq!(coloured("nv24", &whole), due);
        let swapped = [&luma[..], &[160, 90, 128, 128]].concat();
        assert_eq!(coloured("nv21", &swapped), due);
        let cut = read("nv12", &quarter[..11]).unwrap_err();
        assert!(cut.to_string().contains("need more than the 11 bytes"), "{cut}");
    }

    /// A file that holds these samples.
    fn png(image: impl Into<DynamicImage>) -> Vec<u8> {
        let mut file = std::io::Cursor::new(Vec::new());
        image.into().write_to(&mut file, image::ImageFormat::Png).unwrap();
        file.into_inner()
    }

    #[test]
    fn a_mosaic_in_a_file_is_interpolated_as_in_a_message() {
        let sample = |x: u32, y: u32| [200, 90, 20][(x % 2 + y % 2) as usize];
        let mosaic = image::GrayImage::from_fn(6, 4, |x, y| image::Luma([sample(x, y)]));
        let due = made("bayer_rggb8", (6, 4), mosaic.as_raw());
        let file = png(mosaic.clone());
        let read = |format, content: &[u8]| {
            frame(&Picture::File { content, format }, &keep(), Tone::UpperBits).unwrap()
        };
        for format in ["bayer_rggb8; png compressed ", "bayer_rggb8; jpeg compressed bayer_rggb8"] {
            let image = read(format, &file);
            assert_eq!(image.pixels(), due.pixels(), "{format}");
            assert!(image.chroma().is_some());
        }
        let wide =
            image::ImageBuffer::from_fn(6, 4, |x, y| image::Luma([u16::from(sample(x, y)) << 8]));
        assert_eq!(read("bayer_rggb16; png compressed ", &png(wide)).pixels(), due.pixels());
        // Converted before, or no mosaic.
        for format in ["bayer_rggb8; png compressed mono8", "mono8; png compressed ", "png", ""] {
            assert_eq!(read(format, &file).pixels(), mosaic.as_raw(), "{format}");
        }
        let colour = png(image::RgbImage::from_pixel(6, 4, image::Rgb([9, 9, 9])));
        assert_eq!(read("bayer_rggb8; png compressed bgr8", &colour).pixels(), [9; 24]);
        assert_eq!(read("bayer_rggb8; png compressed ", &colour).pixels(), [9; 24]);
    }

    #[test]
    fn the_halves_of_an_image_are_the_views() {
        let (width, height) = (8, 4);
        for (encoding, layout, is_wide) in FORMATS {
            let bytes = match layout {
                Layout::Colour(_, samples) => samples,
                Layout::Yuv422(_) => 2,
                _ => 1,
            } * (1 + usize::from(is_wide));
            let planes = match layout {
                Layout::TwoPlanes([0, 0], _) => 2 * width * height,
                Layout::TwoPlanes(..) => width * height / 2,
                _ => 0,
            };
            // Both halves alike.
            let half: Vec<u8> = (0..bytes * width / 2).map(|i| (17 * i) as u8).collect();
            let data = [half.repeat(2 * height), vec![128; planes]].concat();
            let step = bytes * width;
            let raw = Raw { width, height, encoding, is_big_endian: false, step, data: &data };
            let both = views(&Picture::Raw(raw), ViewLayout::SideBySide, &keep(), Tone::UpperBits);
            let Views::Both(left, right) = both.unwrap() else { panic!("{encoding}") };
            assert_eq!((left.width(), left.height()), (width / 2, height));
            assert_eq!(left.pixels(), right.pixels(), "{encoding}");
            let whole = frame(&Picture::Raw(raw), &keep(), Tone::UpperBits).unwrap();
            assert_eq!(left.row(1)[..3], whole.row(1)[..3], "{encoding}");
        }
        let file = png(image::GrayImage::from_fn(8, 1, |x, _| image::Luma([x as u8])));
        let picture = Picture::File { content: &file, format: "" };
        let Views::Both(left, right) =
            views(&picture, ViewLayout::SideBySide, &keep(), Tone::Local).unwrap()
        else {
            panic!()
        };
        assert_eq!((left.pixels(), right.pixels()), (&[0, 1, 2, 3][..], &[4, 5, 6, 7][..]));
        let odd = png(image::GrayImage::new(6, 1));
        let picture = Picture::File { content: &odd, format: "" };
        let error = views(&picture, ViewLayout::SideBySide, &keep(), Tone::Local).unwrap_err();
        assert!(error.to_string().contains("a multiple of 4, not 6"), "{error}");
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
        let error = tried("32FC1").unwrap_err().to_string();
        for (known, ..) in FORMATS {
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
            known in 0..FORMATS.len(),
            is_big_endian: bool,
            data in prop::collection::vec(any::<u8>(), 0..4000),
        ) {
            let raw = Raw { width, height, encoding: FORMATS[known].0, is_big_endian, step, data: &data };
            if let Ok(image) = frame(&Picture::Raw(raw), &keep(), Tone::Local) {
                prop_assert_eq!((image.width(), image.height()), (width, height));
            }
            let _ = views(&Picture::Raw(raw), ViewLayout::SideBySide, &keep(), Tone::Local);
        }
    }
}
