//! Converts a decoded GStreamer buffer to 8-bit intensity.
//!
//! The luma of YUV and grey formats is copied unchanged, because stretching limited to full range
//! would change values and round twice. RGB becomes Rec. 709 intensity. Samples of more than 8 bits
//! are reduced by [`Tone`]. If an output needs colour, the colour differences are copied, too, 8
//! bits each, at the format's own resolution.

use std::sync::LazyLock;

use anyhow::{Context, anyhow, bail, ensure};
use gstreamer as gst;
use gstreamer::glib::translate::IntoGlib;
use gstreamer_video as gst_video;
use gstreamer_video::prelude::*;

use super::options::Keep;
use stereod_core::chroma::{Chroma, ChromaPlane, ColourCoding, Differences};
use stereod_core::frame::{Image, intensity, intensity_16};
use stereod_core::matching::saturation::{WHITE, WHITE_OF_LIMITED_RANGE};
use stereod_core::picture::stretch::stretched;
use stereod_core::picture::tone::Tone;
use stereod_core::pool::Pool;

/// ViewLayout of the views in a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ViewLayout {
    /// One view.
    Whole,
    /// One view, squeezed to half its width, or to half its height if its pixels are stated to be 1:2.
    HalfWhole,
    /// The left half is the left view.
    SideBySide,
    /// The upper half is the left view.
    TopBottom,
    /// Side by side, each view squeezed to half its width.
    HalfSideBySide,
    /// One above the other, each view squeezed to half its height.
    HalfTopBottom,
}

/// Views of one frame.
#[derive(Debug)]
pub enum Views {
    /// One view.
    One(Image),
    /// The first one is in the left or upper half.
    Both(Image, Image),
}

impl ViewLayout {
    /// Returns the factors of width and height by which views are stretched, so that their pixels are square.
    fn stretch(self, info: &gst_video::VideoInfo) -> [usize; 2] {
        match self {
            ViewLayout::HalfWhole if info.par() == gst::Fraction::new(1, 2) => [1, 2],
            ViewLayout::HalfWhole => [2, 1],
            ViewLayout::HalfSideBySide => [2, 1],
            ViewLayout::HalfTopBottom => [1, 2],
            ViewLayout::Whole | ViewLayout::SideBySide | ViewLayout::TopBottom => [1, 1],
        }
    }

    /// Returns the size of each view in a frame of `width` x `height`, before it is stretched.
    fn stored_size(self, width: usize, height: usize) -> anyhow::Result<(usize, usize)> {
        match self {
            ViewLayout::Whole | ViewLayout::HalfWhole => Ok((width, height)),
            ViewLayout::SideBySide | ViewLayout::HalfSideBySide => {
                ensure!(
                    width.is_multiple_of(2),
                    "is {width}x{height}: side by side needs an even width, each view has half of it"
                );
                Ok((width / 2, height))
            }
            ViewLayout::TopBottom | ViewLayout::HalfTopBottom => {
                // HDMI 1.4b, section 8.2.3.2.
                if let Some((rows, gap)) =
                    [(1080, 45), (720, 30)].into_iter().find(|(rows, gap)| 2 * rows + gap == height)
                {
                    bail!(
                        "is {width}x{height}, which is HDMI's frame packing: {gap} empty rows lie between the views; \
                         cut them out: ffmpeg -i INPUT -filter_complex '[0]crop=iw:{rows}:0:0[l];[0]crop=iw:{rows}:0:{}[r];\
                         [l][r]vstack' -c:v ffv1 OUTPUT.mkv",
                        rows + gap
                    );
                }
                ensure!(
                    height.is_multiple_of(2),
                    "is {width}x{height}: top-bottom needs an even height, each view has half of it"
                );
                Ok((width, height / 2))
            }
        }
    }
}

/// A rectangle of a frame in pixels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Area {
    x: usize,
    y: usize,
    width: usize,
    height: usize,
}

/// Copies the views out of `buffer`, a frame in the format `info`. Each is reduced to 8 bits
/// separately, so that no view depends on the other.
pub(super) fn copy_views(
    buffer: &gst::BufferRef,
    info: &gst_video::VideoInfo,
    layout: ViewLayout,
    keep: &Keep,
    tone: Tone,
) -> anyhow::Result<Views> {
    let frame = gst_video::VideoFrameRef::from_buffer_ref_readable(buffer, info)
        .map_err(|_| anyhow!("delivers buffers that are smaller than their format says"))?;
    let whole = visible(buffer, &frame)?;
    let (width, height) = layout.stored_size(whole.width, whole.height)?;
    let first = Area { width, height, ..whole };
    let stretch = layout.stretch(info);
    let copy = |area| {
        let colour = keep.colours.as_ref().map(|pool| copy_colour(&frame, area, stretch, pool));
        let mut view = copy_area(&frame, area, keep, tone)?;
        if stretch != [1, 1] {
            let pixels = keep.pixels.try_take(2 * width * height)?;
            view = stretched(&view, stretch[0] == 2, pixels);
        }
        Ok::<_, anyhow::Error>(view.with_chroma(colour.transpose()?.flatten()))
    };
    Ok(match layout {
        ViewLayout::Whole | ViewLayout::HalfWhole => Views::One(copy(first)?),
        ViewLayout::SideBySide | ViewLayout::HalfSideBySide => {
            Views::Both(copy(first)?, copy(Area { x: whole.x + width, ..first })?)
        }
        ViewLayout::TopBottom | ViewLayout::HalfTopBottom => {
            Views::Both(copy(first)?, copy(Area { y: whole.y + height, ..first })?)
        }
    })
}

/// Returns the visible part of the frame.
fn visible(
    buffer: &gst::BufferRef,
    frame: &gst_video::VideoFrameRef<&gst::BufferRef>,
) -> anyhow::Result<Area> {
    let (width, height) = (frame.width() as usize, frame.height() as usize);
    let Some(crop) = buffer.meta::<gst_video::VideoCropMeta>() else {
        return Ok(Area { x: 0, y: 0, width, height });
    };
    let (x, y, w, h) = crop.rect();
    let area = Area { x: x as usize, y: y as usize, width: w as usize, height: h as usize };
    ensure!(
        w > 0 && h > 0 && area.x + area.width <= width && area.y + area.height <= height,
        "asks to crop {w}x{h} at ({x}, {y}) out of {width}x{height}"
    );
    Ok(area)
}

/// ViewLayout of the samples of one colour component.
struct Component<'a> {
    data: &'a [u8],
    stride: usize,
    /// Bytes before the first sample of a row, and from one sample to the next.
    offset: usize,
    step: usize,
    /// Bits below and above the sample in a stored word; words have 16 bits if `wide`, else 8.
    below: u32,
    above: u32,
    wide: bool,
    little_endian: bool,
}

impl<'a> Component<'a> {
    fn new(
        frame: &'a gst_video::VideoFrameRef<&gst::BufferRef>,
        component: usize,
    ) -> anyhow::Result<Self> {
        let format = frame.format_info();
        let plane = format.plane()[component];
        let data = frame
            .plane_data(plane)
            .map_err(|_| anyhow!("delivers pictures without plane {plane}"))?;
        let stride = usize::try_from(frame.plane_stride()[plane as usize])
            .context("delivers pictures whose rows run backwards")?;
        let depth = format.depth()[component];
        let wide = depth > 8;
        let offset = format.poffset()[component] as usize;
        Ok(Self {
            data,
            stride,
            // For P010 and the like GStreamer counts words, so the second one begins at 1.
            offset: if wide && !offset.is_multiple_of(2) { 2 * offset } else { offset },
            step: format.pixel_stride()[component] as usize,
            below: format.shift()[component],
            above: (if wide { 16 } else { 8 }) - format.shift()[component] - depth,
            wide,
            little_endian: format.is_le(),
        })
    }

    /// Returns the bytes of `width` samples of row `y` from pixel `x` on.
    fn row(&self, x: usize, y: usize, width: usize) -> anyhow::Result<&'a [u8]> {
        let start = y * self.stride + self.offset + x * self.step;
        let bytes = (width - 1) * self.step + 1 + usize::from(self.wide);
        self.data
            .get(start..start + bytes)
            .ok_or_else(|| anyhow!("delivers pictures that end in row {y}"))
    }

    /// Reads the samples of a row, the highest bit of each in bit 15.
    fn words(&self, row: &'a [u8]) -> impl Iterator<Item = u16> + 'a {
        let (below, above, wide) = (self.below, self.above, self.wide);
        let little_endian = self.little_endian;
        row.chunks(self.step).map(move |sample| {
            if !wide {
                return u16::from(sample[0]) << 8;
            }
            let bytes = [sample[0], sample[1]];
            let word =
                if little_endian { u16::from_le_bytes(bytes) } else { u16::from_be_bytes(bytes) };
            word >> below << (below + above)
        })
    }

    /// Reads the 8 most significant bits of each sample of a row.
    fn bytes(&self, row: &'a [u8]) -> impl Iterator<Item = u8> + 'a {
        self.words(row).map(|word| (word >> 8) as u8)
    }
}

/// The three components of a frame in red, green and blue.
struct Rgb<'a>([Component<'a>; 3]);

impl<'a> Rgb<'a> {
    fn new(frame: &'a gst_video::VideoFrameRef<&gst::BufferRef>) -> anyhow::Result<Self> {
        Ok(Self([Component::new(frame, 0)?, Component::new(frame, 1)?, Component::new(frame, 2)?]))
    }

    /// Reads red, green and blue of `width` pixels of row `y` from `x` on, the highest bit of each
    /// in bit 15.
    fn words(
        &self,
        x: usize,
        y: usize,
        width: usize,
    ) -> anyhow::Result<impl Iterator<Item = [u16; 3]> + '_> {
        let [red, green, blue] = &self.0;
        let r = red.words(red.row(x, y, width)?);
        let g = green.words(green.row(x, y, width)?);
        let b = blue.words(blue.row(x, y, width)?);
        Ok(r.zip(g).zip(b).map(|((r, g), b)| [r, g, b]))
    }

    /// Reads the 8 most significant bits of the same.
    fn bytes(
        &self,
        x: usize,
        y: usize,
        width: usize,
    ) -> anyhow::Result<impl Iterator<Item = [u8; 3]> + '_> {
        Ok(self.words(x, y, width)?.map(|rgb| rgb.map(|word| (word >> 8) as u8)))
    }
}

fn copy_area(
    frame: &gst_video::VideoFrameRef<&gst::BufferRef>,
    area: Area,
    keep: &Keep,
    tone: Tone,
) -> anyhow::Result<Image> {
    let (width, height) = (area.width, area.height);
    let mut pixels = keep.pixels.try_take(width * height)?;
    if frame.format_info().depth()[0] > 8 {
        let mut samples = keep.samples.try_take(width * height)?;
        copy_words(frame, area, &mut samples)?;
        tone.reduce(&samples, width, &mut pixels);
    } else {
        copy_bytes(frame, area, &mut pixels)?;
    }
    Ok(Image::new(width, height, pixels))
}

/// Copies the intensity of an area of a format with 8 bits a sample.
fn copy_bytes(
    frame: &gst_video::VideoFrameRef<&gst::BufferRef>,
    Area { x, y, width, .. }: Area,
    pixels: &mut [u8],
) -> anyhow::Result<()> {
    let rows = pixels.chunks_exact_mut(width).zip(y..);
    if frame.format_info().is_rgb() {
        let rgb = Rgb::new(frame)?;
        for (out, y) in rows {
            for (out, [r, g, b]) in out.iter_mut().zip(rgb.bytes(x, y, width)?) {
                *out = intensity(r, g, b);
            }
        }
    } else {
        let luma = Component::new(frame, 0)?;
        for (out, y) in rows {
            let row = luma.row(x, y, width)?;
            if luma.step == 1 {
                out.copy_from_slice(row);
            } else {
                for (out, sample) in out.iter_mut().zip(luma.bytes(row)) {
                    *out = sample;
                }
            }
        }
    }
    Ok(())
}

/// Copies the intensity of an area of a format with more bits, the highest bit in bit 15.
fn copy_words(
    frame: &gst_video::VideoFrameRef<&gst::BufferRef>,
    Area { x, y, width, .. }: Area,
    samples: &mut [u16],
) -> anyhow::Result<()> {
    let rows = samples.chunks_exact_mut(width).zip(y..);
    if frame.format_info().is_rgb() {
        let rgb = Rgb::new(frame)?;
        for (out, y) in rows {
            for (out, [r, g, b]) in out.iter_mut().zip(rgb.words(x, y, width)?) {
                *out = intensity_16(r, g, b);
            }
        }
    } else {
        let luma = Component::new(frame, 0)?;
        for (out, y) in rows {
            for (out, sample) in out.iter_mut().zip(luma.words(luma.row(x, y, width)?)) {
                *out = sample;
            }
        }
    }
    Ok(())
}

/// Reports whether frames of this format are in colour.
fn has_colour(format: &gst_video::VideoFormatInfo) -> bool {
    format.is_rgb() || (format.is_yuv() && format.n_components() >= 3)
}

/// Copies the colour of an area; `None` if the format has none. A view that is stretched by these factors has its
/// colour at a coarser resolution.
fn copy_colour(
    frame: &gst_video::VideoFrameRef<&gst::BufferRef>,
    area: Area,
    stretch: [usize; 2],
    pool: &Pool<Differences>,
) -> anyhow::Result<Option<Chroma>> {
    let format = frame.format_info();
    if !has_colour(&format) {
        return Ok(None);
    }
    let (shift, coding) = if format.is_rgb() {
        ([0, 0], ColourCoding::of_rgb())
    } else {
        // In all formats both differences have the same layout.
        ([format.w_sub()[1], format.h_sub()[1]], coding(frame.info()))
    };
    let size = (area.width, area.height);
    let (width, height) = ChromaPlane::size_for(size, shift);
    let mut samples = pool.try_take(width * height)?;
    let (x, y) = (area.x >> shift[0], area.y >> shift[1]);
    let rows = samples.chunks_exact_mut(width).zip(y..);
    if format.is_rgb() {
        let rgb = Rgb::new(frame)?;
        for (out, y) in rows {
            for (out, [r, g, b]) in out.iter_mut().zip(rgb.bytes(x, y, width)?) {
                *out = ColourCoding::differences(intensity(r, g, b), r, b);
            }
        }
    } else {
        let (mut cb, mut cr) = (Component::new(frame, 1)?, Component::new(frame, 2)?);
        // GStreamer 1.22 describes VYUY as if it were UYVY.
        if format.format() == gst_video::VideoFormat::Vyuy && cb.offset < cr.offset {
            std::mem::swap(&mut cb, &mut cr);
        }
        for (out, y) in rows {
            let b = cb.bytes(cb.row(x, y, width)?);
            let r = cr.bytes(cr.row(x, y, width)?);
            for ((out, b), r) in out.iter_mut().zip(b).zip(r) {
                *out = [b, r];
            }
        }
    }
    let size = (stretch[0] * size.0, stretch[1] * size.1);
    let shift = [0, 1].map(|i| shift[i] + stretch[i].ilog2());
    Ok(Some(Chroma::new(coding, ChromaPlane::new(size, shift, samples), pool.clone())))
}

/// Returns the format of frames with these caps.
pub(super) fn format(caps: &gst::CapsRef) -> anyhow::Result<gst_video::VideoInfo> {
    let info = gst_video::VideoInfo::from_caps(caps)?;
    let stated = caps.structure(0).and_then(|s| s.get::<&str>("colorimetry").ok());
    // Range, matrix, transfer and primaries by number. GStreamer takes its default for all four if the matrix of
    // YUV is unknown (0), also for frames of full range (1).
    let Some(rest) = stated.and_then(|text| text.strip_prefix("1:0:")) else { return Ok(info) };
    let matrix = info.colorimetry().matrix().into_glib();
    let mut caps = caps.to_owned();
    caps.make_mut().set("colorimetry", format!("1:{matrix}:{rest}"));
    Ok(gst_video::VideoInfo::from_caps(&caps)?)
}

/// Returns the colour coding of a stream; Rec. 601 in limited range if it states none.
fn coding(info: &gst_video::VideoInfo) -> ColourCoding {
    let colorimetry = info.colorimetry();
    let (red, blue) = colorimetry.matrix().kr_kb().unwrap_or((0.299, 0.114));
    ColourCoding::new(red, blue, colorimetry.range() == gst_video::VideoColorRange::Range0_255)
}

/// Returns the smallest grey level of white, with an allowance for codecs.
pub(super) fn white(info: &gst_video::VideoInfo) -> u8 {
    match info.colorimetry().range() {
        gst_video::VideoColorRange::Range0_255 => WHITE,
        _ if info.format_info().is_yuv() => WHITE_OF_LIMITED_RANGE,
        _ => WHITE,
    }
}

/// Reports whether [`copy_views`] reads this format; videoconvert turns every other one into one of
/// these.
fn readable(format: gst_video::VideoFormat) -> bool {
    let info = gst_video::VideoFormatInfo::from_format(format);
    if info.is_complex() || info.is_tiled() || info.has_palette() {
        return false;
    }
    let components = if info.is_rgb() {
        0..3
    } else if info.is_yuv() || info.is_gray() {
        0..1
    } else {
        return false;
    };
    components.into_iter().all(|c| {
        let (depth, shift, step) = (info.depth()[c], info.shift()[c], info.pixel_stride()[c]);
        // Readable samples are whole bytes or within one 16-bit word. GStreamer's description of
        // packed formats with other depths lacks the position of the samples (Y412, RGB10A2), so
        // they are converted.
        let own_plane = step == 2 && shift + depth <= 16;
        (depth == 8 && shift == 0 && step >= 1)
            || ((9..=16).contains(&depth) && own_plane)
            || (depth == 16 && shift == 0 && step == 8 && info.is_rgb())
    })
}

/// Returns the formats that are read without conversion.
static READABLE: LazyLock<Vec<gst_video::VideoFormat>> =
    LazyLock::new(|| gst_video::VideoFormat::iter_raw().filter(|&f| readable(f)).collect());

/// Returns the caps of all formats that [`copy_views`] reads.
pub(super) fn readable_caps() -> gst::Caps {
    gst_video::VideoCapsBuilder::new().format_list(READABLE.iter().copied()).build()
}

#[cfg(test)]
mod tests;
