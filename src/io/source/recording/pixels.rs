//! Images of messages become frames: intensity of 8 bits, and the colour if an output needs it.

mod rows;

use anyhow::{Context, Result, bail, ensure};
use image::{ColorType, DynamicImage};

use self::rows::{Rows, of_rgb, pairs_step};
use super::messages::{Picture, Raw};
use crate::source::gst::{Keep, ViewLayout, Views};
use stereod_core::frame::Image;
use stereod_core::memory::{Budget, product};
use stereod_core::picture::still;
use stereod_core::picture::tone::Tone;

/// Bytes a pixel of a frame being made: samples, intensity and colour.
const BYTES_A_PIXEL: usize = 8;

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
        let (is_big_endian, size) = (raw.is_big_endian, (width, size.1));
        let rows = Rows { data, step, start, length, is_wide, is_big_endian, layout, size };
        rows.image(keep, tone)
    })
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
    let grey = stereod_core::picture::grey::Grey::of(picture);
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

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Layout {
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

#[cfg(test)]
mod tests;
