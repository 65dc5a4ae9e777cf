//! From a decoded GStreamer buffer to 8-bit intensity.
//!
//! The luma of YUV and grey formats is taken as it is: stretching limited to full range would
//! change the picture's values and round twice. RGB becomes Rec. 709 intensity. Where colour is
//! wanted, the colour differences are copied beside it, at the format's own resolution.

use std::sync::LazyLock;

use anyhow::{Context, anyhow, ensure};
use gstreamer as gst;
use gstreamer_video as gst_video;
use gstreamer_video::prelude::*;

use super::options::Keep;
use crate::chroma::{Chroma, ChromaPlane, ColourCoding, Differences};
use crate::frame::{Image, intensity};
use crate::matching::saturation::{WHITE, WHITE_OF_LIMITED_RANGE};
use crate::pool::Pool;

/// Layout of the eyes' views in a picture of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Layout {
    /// One view fills it.
    Whole,
    /// The left half is the left eye.
    SideBySide,
    /// The upper half is the left eye.
    TopBottom,
}

/// The views of one picture.
#[derive(Debug)]
pub(super) enum Views {
    One(Image),
    Both(Image, Image),
}

impl Layout {
    /// Size of each view in a picture of `width` x `height`.
    pub(super) fn view_size(self, width: usize, height: usize) -> anyhow::Result<(usize, usize)> {
        match self {
            Layout::Whole => Ok((width, height)),
            Layout::SideBySide => {
                ensure!(
                    width.is_multiple_of(2),
                    "is {width}x{height}: side by side needs an even width, each eye has half of it"
                );
                Ok((width / 2, height))
            }
            Layout::TopBottom => {
                ensure!(
                    height.is_multiple_of(2),
                    "is {width}x{height}: top-bottom needs an even height, each eye has half of it"
                );
                Ok((width, height / 2))
            }
        }
    }
}

/// A rectangle of a picture in pixels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Area {
    x: usize,
    y: usize,
    width: usize,
    height: usize,
}

/// Copies the views out of `buffer`, which holds a picture as `info` describes it.
///
/// # Errors
/// Where the buffer is not what `info` says, or its size cannot hold two views.
pub(super) fn copy_views(
    buffer: &gst::BufferRef,
    info: &gst_video::VideoInfo,
    layout: Layout,
    keep: &Keep,
) -> anyhow::Result<Views> {
    let frame = gst_video::VideoFrameRef::from_buffer_ref_readable(buffer, info)
        .map_err(|_| anyhow!("delivers buffers that are smaller than their format says"))?;
    let whole = visible(buffer, &frame)?;
    let (width, height) = layout.view_size(whole.width, whole.height)?;
    let first = Area { width, height, ..whole };
    let copy = |area| {
        let colour = keep.colours.as_ref().map(|pool| copy_colour(&frame, area, pool));
        Ok::<_, anyhow::Error>(
            copy_area(&frame, area, &keep.pixels)?.with_chroma(colour.transpose()?.flatten()),
        )
    };
    Ok(match layout {
        Layout::Whole => Views::One(copy(first)?),
        Layout::SideBySide => {
            Views::Both(copy(first)?, copy(Area { x: whole.x + width, ..first })?)
        }
        Layout::TopBottom => {
            Views::Both(copy(first)?, copy(Area { y: whole.y + height, ..first })?)
        }
    })
}

/// The part of the picture that is meant to be seen.
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

/// Where the samples of one colour component lie.
struct Component<'a> {
    data: &'a [u8],
    stride: usize,
    /// Bytes before the first sample of a row, and from one sample to the next.
    offset: usize,
    step: usize,
    /// Shift that makes 8 bits of a stored word; 16-bit words where `wide`.
    shift: u32,
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
            // Of P010 and the like GStreamer counts words, so that the second one begins at 1.
            offset: if wide && !offset.is_multiple_of(2) { 2 * offset } else { offset },
            step: format.pixel_stride()[component] as usize,
            shift: format.shift()[component] + depth - 8,
            wide,
            little_endian: format.is_le(),
        })
    }

    /// The bytes of row `y` from pixel `x` on that hold `width` samples.
    fn row(&self, x: usize, y: usize, width: usize) -> anyhow::Result<&'a [u8]> {
        let start = y * self.stride + self.offset + x * self.step;
        let bytes = (width - 1) * self.step + 1 + usize::from(self.wide);
        self.data
            .get(start..start + bytes)
            .ok_or_else(|| anyhow!("delivers pictures that end in row {y}"))
    }

    /// The 8 most significant bits of each sample of a row.
    fn samples(&self, row: &'a [u8]) -> impl Iterator<Item = u8> + 'a {
        let (wide, shift, little_endian) = (self.wide, self.shift, self.little_endian);
        row.chunks(self.step).map(move |sample| {
            if !wide {
                return sample[0];
            }
            let bytes = [sample[0], sample[1]];
            let word =
                if little_endian { u16::from_le_bytes(bytes) } else { u16::from_be_bytes(bytes) };
            (word >> shift) as u8
        })
    }
}

fn copy_area(
    frame: &gst_video::VideoFrameRef<&gst::BufferRef>,
    area: Area,
    pool: &Pool<u8>,
) -> anyhow::Result<Image> {
    let Area { x, y, width, height } = area;
    let mut pixels = pool.try_take(width * height)?;
    let rows = pixels.chunks_exact_mut(width).zip(y..);
    if frame.format_info().is_rgb() {
        let [red, green, blue] = [0, 1, 2].map(|component| Component::new(frame, component));
        let (red, green, blue) = (red?, green?, blue?);
        for (out, y) in rows {
            let r = red.samples(red.row(x, y, width)?);
            let g = green.samples(green.row(x, y, width)?);
            let b = blue.samples(blue.row(x, y, width)?);
            for (((out, r), g), b) in out.iter_mut().zip(r).zip(g).zip(b) {
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
                for (out, sample) in out.iter_mut().zip(luma.samples(row)) {
                    *out = sample;
                }
            }
        }
    }
    Ok(Image::new(width, height, pixels))
}

/// True where pictures of this format are in colour.
pub(super) fn has_colour(format: &gst_video::VideoFormatInfo) -> bool {
    format.is_rgb() || (format.is_yuv() && format.n_components() >= 3)
}

/// The colour of an area; `None` where the format has none.
fn copy_colour(
    frame: &gst_video::VideoFrameRef<&gst::BufferRef>,
    area: Area,
    pool: &Pool<Differences>,
) -> anyhow::Result<Option<Chroma>> {
    let format = frame.format_info();
    if !has_colour(&format) {
        return Ok(None);
    }
    let (shift, coding) = if format.is_rgb() {
        ([0, 0], ColourCoding::of_rgb())
    } else {
        // All formats have both differences alike.
        ([format.w_sub()[1], format.h_sub()[1]], coding(frame.info()))
    };
    let size = (area.width, area.height);
    let (width, height) = ChromaPlane::size_for(size, shift);
    let mut samples = pool.try_take(width * height)?;
    let (x, y) = (area.x >> shift[0], area.y >> shift[1]);
    let rows = samples.chunks_exact_mut(width).zip(y..);
    if format.is_rgb() {
        let [red, green, blue] = [0, 1, 2].map(|component| Component::new(frame, component));
        let (red, green, blue) = (red?, green?, blue?);
        for (out, y) in rows {
            let r = red.samples(red.row(x, y, width)?);
            let g = green.samples(green.row(x, y, width)?);
            let b = blue.samples(blue.row(x, y, width)?);
            for (((out, r), g), b) in out.iter_mut().zip(r).zip(g).zip(b) {
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
            let b = cb.samples(cb.row(x, y, width)?);
            let r = cr.samples(cr.row(x, y, width)?);
            for ((out, b), r) in out.iter_mut().zip(b).zip(r) {
                *out = [b, r];
            }
        }
    }
    Ok(Some(Chroma::new(coding, ChromaPlane::new(size, shift, samples), pool.clone())))
}

/// How a stream codes its colours; by Rec. 601 in limited range where it does not say.
fn coding(info: &gst_video::VideoInfo) -> ColourCoding {
    let colorimetry = info.colorimetry();
    let (red, blue) = colorimetry.matrix().kr_kb().unwrap_or((0.299, 0.114));
    ColourCoding::new(red, blue, colorimetry.range() == gst_video::VideoColorRange::Range0_255)
}

/// Grey level from which on pictures are white, less what codecs take from it.
pub(super) fn white(info: &gst_video::VideoInfo) -> u8 {
    match info.colorimetry().range() {
        gst_video::VideoColorRange::Range0_255 => WHITE,
        _ if info.format_info().is_yuv() => WHITE_OF_LIMITED_RANGE,
        _ => WHITE,
    }
}

/// True where [`copy_views`] reads this format; videoconvert turns every other one into one of these.
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
        // A whole byte, or the bits of one 16-bit word. GStreamer's description of packed formats
        // with other depths does not tell where their samples are (Y412, RGB10A2): they convert.
        let own_plane = step == 2 && shift + depth <= 16;
        (depth == 8 && shift == 0 && step >= 1)
            || ((9..=16).contains(&depth) && own_plane)
            || (depth == 16 && shift == 0 && step == 8 && info.is_rgb())
    })
}

/// The formats that are read without conversion.
static READABLE: LazyLock<Vec<gst_video::VideoFormat>> =
    LazyLock::new(|| gst_video::VideoFormat::iter_raw().filter(|&f| readable(f)).collect());

/// Caps of everything that [`copy_views`] reads.
pub(super) fn readable_caps() -> gst::Caps {
    gst_video::VideoCapsBuilder::new().format_list(READABLE.iter().copied()).build()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keep() -> Keep {
        Keep { pixels: Pool::new(), colours: Some(Pool::new()) }
    }

    fn sizes(width: u32, height: u32) -> (usize, usize) {
        (width as usize, height as usize)
    }

    /// Converts one picture by videoconvert, as GStreamer's own opinion of each format.
    fn convert(
        from: &gst_video::VideoInfo,
        data: Vec<u8>,
        to: gst_video::VideoFormat,
    ) -> (gst::Sample, gst_video::VideoInfo) {
        let sample = gst::Sample::builder()
            .buffer(&gst::Buffer::from_mut_slice(data))
            .caps(&from.to_caps().unwrap())
            .build();
        let info = gst_video::VideoInfo::builder(to, from.width(), from.height());
        let info = if from.format_info().is_rgb()
            == gst_video::VideoFormatInfo::from_format(to).is_rgb()
        {
            info.colorimetry(&from.colorimetry()).build().unwrap()
        } else {
            info.build().unwrap()
        };
        let converted = gst_video::convert_sample(
            &sample,
            &info.to_caps().unwrap(),
            Some(gst::ClockTime::from_seconds(10)),
        );
        let converted = converted.unwrap_or_else(|error| panic!("{to}: {error}"));
        let info = gst_video::VideoInfo::from_caps(converted.caps().unwrap()).unwrap();
        (converted, info)
    }

    fn read(sample: &gst::Sample, info: &gst_video::VideoInfo, layout: Layout) -> Views {
        copy_views(sample.buffer().unwrap(), info, layout, &keep()).unwrap()
    }

    fn one(views: Views) -> Image {
        match views {
            Views::One(image) => image,
            Views::Both(..) => panic!("two views"),
        }
    }

    #[test]
    fn luma_comes_through_every_format_unchanged() {
        gst::init().unwrap();
        // Odd sizes; values outside the limited range as well.
        let (width, height) = (37, 5);
        let luma: Vec<u8> = (0..width * height).map(|i| (i * 7 % 256) as u8).collect();
        let from = gst_video::VideoInfo::builder(gst_video::VideoFormat::Y444, width, height)
            .build()
            .unwrap();
        let mut tried = 0;
        for &format in READABLE.iter() {
            let info = gst_video::VideoFormatInfo::from_format(format);
            if !info.is_yuv() {
                continue;
            }
            let stride = from.stride()[0] as usize;
            let mut data = vec![128; from.size()];
            for (y, row) in luma.chunks(width as usize).enumerate() {
                data[y * stride..][..width as usize].copy_from_slice(row);
            }
            let (sample, info) = convert(&from, data, format);
            let image = one(read(&sample, &info, Layout::Whole));
            assert_eq!((image.width(), image.height()), sizes(width, height), "{format}");
            // videoconvert itself rounds on its way to 10 and 12 bits; the next test is exact.
            let slack = u8::from((9..16).contains(&info.comp_depth(0)));
            let mut both = image.pixels().iter().zip(&luma);
            assert!(both.all(|(a, b)| a.abs_diff(*b) <= slack), "{format}");
            tried += 1;
        }
        assert!(tried >= 25, "{tried} formats");
    }

    #[test]
    fn deeper_samples_keep_their_8_highest_bits() {
        gst::init().unwrap();
        for (format, bytes) in [
            (gst_video::VideoFormat::Gray8, vec![7u8, 200, 31]),
            (gst_video::VideoFormat::Gray16Le, vec![99, 7, 255, 200, 0, 31]),
            (gst_video::VideoFormat::Gray16Be, vec![7, 99, 200, 255, 31, 0]),
            // 10 bits in the low end of the word, then in the high end.
            (gst_video::VideoFormat::I42010le, vec![0x1f, 0, 0x23, 3, 0x7c, 0]),
            (gst_video::VideoFormat::P01010le, vec![0xc0, 7, 0xc0, 200, 0, 31]),
        ] {
            assert!(READABLE.contains(&format));
            let info = gst_video::VideoInfo::builder(format, 3, 1).build().unwrap();
            let mut data = vec![0; info.size()];
            data[..bytes.len()].copy_from_slice(&bytes);
            let buffer = gst::Buffer::from_mut_slice(data);
            let image = one(copy_views(&buffer, &info, Layout::Whole, &keep()).unwrap());
            assert_eq!(image.pixels(), [7, 200, 31], "{format}");
        }
    }

    #[test]
    fn rgb_becomes_intensity_in_every_format() {
        gst::init().unwrap();
        let colours = [[255, 0, 0], [0, 255, 0], [0, 0, 255], [10, 200, 90], [255, 255, 255]];
        let from =
            gst_video::VideoInfo::builder(gst_video::VideoFormat::Rgb, 5, 1).build().unwrap();
        let expected = colours.map(|[r, g, b]| intensity(r, g, b));
        let mut tried = 0;
        for &format in READABLE.iter() {
            if !gst_video::VideoFormatInfo::from_format(format).is_rgb() {
                continue;
            }
            let mut data = vec![0; from.size()];
            data[..15].copy_from_slice(colours.as_flattened());
            let (sample, info) = convert(&from, data, format);
            assert_eq!(one(read(&sample, &info, Layout::Whole)).pixels(), expected, "{format}");
            tried += 1;
        }
        assert!(tried >= 12, "{tried} formats");
    }

    #[test]
    fn colours_come_through_every_format() {
        gst::init().unwrap();
        // Two fields that no subsampling mixes but at their border, and how videoconvert sees them.
        let (width, height) = (32, 8);
        let colours = [[180u8, 60, 40], [30, 90, 200]];
        let from = gst_video::VideoInfo::builder(gst_video::VideoFormat::Rgb, width, height);
        let from = from.build().unwrap();
        let stride = from.stride()[0] as usize;
        let mut data = vec![0; from.size()];
        for y in 0..height as usize {
            for x in 0..width as usize {
                data[y * stride + 3 * x..][..3].copy_from_slice(&colours[x / 16]);
            }
        }
        let (mut grey, mut tried) = (0, 0);
        for &format in READABLE.iter() {
            let (sample, info) = convert(&from, data.clone(), format);
            let image = one(read(&sample, &info, Layout::Whole));
            if gst_video::VideoFormatInfo::from_format(format).is_gray() {
                assert!(image.chroma().is_none(), "{format}");
                grey += 1;
                continue;
            }
            for (x, colour) in
                [(3, colours[0]), (10, colours[0]), (21, colours[1]), (31, colours[1])]
            {
                for y in [0, 5, 7] {
                    let got = image.rgb_at(x, y);
                    let off = got.iter().zip(colour).map(|(a, b)| a.abs_diff(b)).max();
                    assert!(off <= Some(4), "{format} ({x}, {y}): {got:?}, not {colour:?}");
                }
            }
            tried += 1;
        }
        assert!(tried >= 35 && grey >= 3, "{tried} formats, {grey} grey");
    }

    #[test]
    fn each_half_has_its_own_colour_and_none_is_kept_unasked() {
        gst::init().unwrap();
        let info = gst_video::VideoInfo::builder(gst_video::VideoFormat::I420, 8, 2);
        let info = info.build().unwrap();
        let mut data = vec![100; info.size()];
        for (plane, values) in [(1, [10, 20, 30, 40]), (2, [50, 60, 70, 80])] {
            data[info.offset()[plane]..][..4].copy_from_slice(&values);
        }
        let buffer = gst::Buffer::from_mut_slice(data);
        let Views::Both(left, right) =
            copy_views(&buffer, &info, Layout::SideBySide, &keep()).unwrap()
        else {
            panic!("one view")
        };
        let samples = |image: &Image| image.chroma().unwrap().plane().samples().to_vec();
        assert_eq!(samples(&left), [[10, 50], [20, 60]]);
        assert_eq!(samples(&right), [[30, 70], [40, 80]]);
        assert_eq!(white(&info), 231);
        let unasked = Keep { colours: None, ..keep() };
        let image = one(copy_views(&buffer, &info, Layout::Whole, &unasked).unwrap());
        assert!(image.chroma().is_none());
    }

    fn grey(width: u32, height: u32) -> (gst::Buffer, gst_video::VideoInfo) {
        let info = gst_video::VideoInfo::builder(gst_video::VideoFormat::Gray8, width, height)
            .build()
            .unwrap();
        let stride = info.stride()[0] as usize;
        let data = (0..info.size()).map(|i| (i / stride * 16 + i % stride) as u8).collect();
        (gst::Buffer::from_mut_slice::<Vec<u8>>(data), info)
    }

    #[test]
    fn halves_go_to_their_eyes() {
        gst::init().unwrap();
        let (buffer, info) = grey(6, 2);
        let pool = keep();
        let Views::Both(left, right) =
            copy_views(&buffer, &info, Layout::SideBySide, &pool).unwrap()
        else {
            panic!("one view")
        };
        assert_eq!(left.pixels(), [0, 1, 2, 16, 17, 18]);
        assert_eq!(right.pixels(), [3, 4, 5, 19, 20, 21]);
        let Views::Both(top, bottom) =
            copy_views(&buffer, &info, Layout::TopBottom, &pool).unwrap()
        else {
            panic!("one view")
        };
        assert_eq!(top.pixels(), [0, 1, 2, 3, 4, 5]);
        assert_eq!(bottom.pixels(), [16, 17, 18, 19, 20, 21]);
        let (buffer, info) = grey(5, 3);
        let odd = copy_views(&buffer, &info, Layout::SideBySide, &pool).unwrap_err().to_string();
        assert!(odd.contains("5x3") && odd.contains("even width"), "{odd}");
        let odd = copy_views(&buffer, &info, Layout::TopBottom, &pool).unwrap_err().to_string();
        assert!(odd.contains("even height"), "{odd}");
    }

    #[test]
    fn cropped_and_padded_buffers_are_read_where_the_picture_is() {
        gst::init().unwrap();
        let (mut buffer, info) = grey(8, 4);
        let pool = keep();
        gst_video::VideoCropMeta::add(buffer.get_mut().unwrap(), (2, 1, 3, 2));
        let image = one(copy_views(&buffer, &info, Layout::Whole, &pool).unwrap());
        assert_eq!(image.pixels(), [18, 19, 20, 34, 35, 36]);

        // A decoder that pads its rows says so in the buffer's video meta.
        let mut buffer = gst::Buffer::from_mut_slice((0..64u8).collect::<Vec<u8>>());
        gst_video::VideoMeta::add_full(
            buffer.get_mut().unwrap(),
            gst_video::VideoFrameFlags::empty(),
            gst_video::VideoFormat::Gray8,
            4,
            2,
            &[3],
            &[20],
        )
        .unwrap();
        let info =
            gst_video::VideoInfo::builder(gst_video::VideoFormat::Gray8, 4, 2).build().unwrap();
        let image = one(copy_views(&buffer, &info, Layout::Whole, &pool).unwrap());
        assert_eq!(image.pixels(), [3, 4, 5, 6, 23, 24, 25, 26]);

        let mut buffer = grey(8, 4).0;
        gst_video::VideoCropMeta::add(buffer.get_mut().unwrap(), (6, 0, 3, 2));
        let (_, info) = grey(8, 4);
        assert!(copy_views(&buffer, &info, Layout::Whole, &pool).is_err());
        let small = gst::Buffer::from_mut_slice(vec![0u8; 5]);
        assert!(copy_views(&small, &info, Layout::Whole, &pool).is_err());
    }
}
