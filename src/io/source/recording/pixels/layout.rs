//! Pixel formats by their names.

use anyhow::{Result, bail};

/// Order of the samples of a pixel.
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
pub(super) const FORMATS: [(&str, Layout, bool); 29] = [
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
pub(super) fn layout(encoding: &str) -> Result<(Layout, bool)> {
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
pub(super) fn mosaic(format: &str) -> Option<Layout> {
    let (encoding, rest) = format.split_once(';')?;
    let converted = rest.rsplit_once("compressed").map_or("", |(_, to)| to.trim());
    let (layout, _) = layout(encoding.trim()).ok()?;
    let is_mosaic = matches!(layout, Layout::Bayer(_))
        && (converted.is_empty() || converted.starts_with("bayer_"));
    is_mosaic.then_some(layout)
}
