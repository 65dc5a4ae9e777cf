//! Single disparity maps as image files.

use std::io::Cursor;
use std::path::Path;

use anyhow::{Context, Result, bail, ensure};
use exr::math::Vec2;
use exr::meta::attribute::{AttributeValue, Text, TimeCode};
use exr::meta::header::LayerAttributes;
use serde::Deserialize;

use crate::labels::Timecode;
use crate::sink::colour::{ColourMap, ColourScale, colourise};
use stereod_core::files;
use stereod_core::floats::floats;
use stereod_core::frame::{DisparityMap, DisparityRange, INVALID, Image, SUBPIXEL, StereoGeometry};
use stereod_core::matching::confidence::{DEVIATION_LIMITS, deviation_px};
use stereod_core::picture::numbers::{DepthUnit, Numbers, Quantity};
use stereod_core::picture::png::{self, DisparityPng};
use stereod_core::pose::Pose;

/// The formats of [`Still::write`], by extension.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum StillFormat {
    /// `.png`: 16 bits, KITTI convention, or depth in a unit.
    Png,
    /// `.pfm`: floats in pixels, or in metres of depth.
    Pfm,
    Tiff,
    Npy,
    /// `.exr`: floats, with depth and confidence as channels of their own.
    Exr,
    /// `.pgm`: 8 bits, disparity times a factor; not for sequences.
    #[serde(skip_deserializing)]
    Pgm,
}

impl StillFormat {
    /// Extensions, for each format the usual one first.
    const NAMES: [(&str, Self); 7] = [
        ("png", Self::Png),
        ("pfm", Self::Pfm),
        ("tiff", Self::Tiff),
        ("tif", Self::Tiff),
        ("npy", Self::Npy),
        ("exr", Self::Exr),
        ("pgm", Self::Pgm),
    ];

    /// Returns the format of a path's extension. Commands call this before matching, so that a
    /// wrong name costs no time.
    pub fn of(path: &Path) -> Result<Self> {
        let extension = files::extension(path);
        let found = Self::NAMES.iter().find(|(name, _)| *name == extension);
        found.map(|(_, format)| *format).with_context(|| {
            format!(
                "cannot tell the format of {}: name it .png (16 bits, KITTI convention), .pfm, .tiff \
                 or .npy (floats), .exr (floats, with depth and confidence) or .pgm (8 bits)",
                path.display()
            )
        })
    }

    pub fn extension(self) -> &'static str {
        Self::NAMES.iter().find(|(_, format)| *format == self).map_or("", |(name, _)| name)
    }

    /// Returns the format for depth, which does not fit 8 bits.
    pub fn of_depth(path: &Path) -> Result<Self> {
        match Self::of(path) {
            Ok(Self::Pgm) | Err(_) => bail!(
                "cannot write depth to {}: name it .png (16 bits, --depth-unit), .pfm, .tiff, .npy or \
                 .exr (floats, metres)",
                path.display()
            ),
            format => format,
        }
    }
}

#[derive(Clone, Copy)]
pub struct Still<'a> {
    pub map: &'a DisparityMap,
    pub range: DisparityRange,
    pub geometry: Option<&'a StereoGeometry>,
    /// Unit of the depth that is written in place of disparity.
    pub depth: Option<DepthUnit>,
    pub confidence: Option<&'a Image>,
    /// For the header of an EXR file.
    pub about: About<'a>,
}

/// Origin of a map.
#[derive(Clone, Copy, Debug, Default)]
pub struct About<'a> {
    /// The source in words.
    pub source: &'a str,
    /// Pairs a second.
    pub rate: Option<f64>,
    /// Number of the image in the source.
    pub number: Option<u64>,
    pub timecode: Option<Timecode>,
    /// Pose of the left camera in its own frame at the first pair, if known.
    pub pose: Option<Pose>,
}

impl<'a> Still<'a> {
    pub fn of(map: &'a DisparityMap, range: DisparityRange) -> Self {
        let about = About::default();
        Self { map, range, geometry: None, depth: None, confidence: None, about }
    }

    /// Writes the map in the format of the path's extension:
    ///
    /// - `.png`: 16 bits, [`Encoding::for_range`], scale and offset in the text chunk `Comment`;
    ///   depth: in its unit;
    /// - `.pfm`: 32-bit floats in pixels or metres, unknown = +infinity, little endian, bottom row
    ///   first;
    /// - `.tiff`, `.npy`: 32-bit floats in pixels or metres, unknown = NaN, top row first;
    /// - `.exr`: the channels `disparity` in pixels, `Z` and its standard deviation `Z_std` in metres
    ///   and `confidence` from 0 to 1, as far as they are known; unknown = disparity 0 at infinity;
    /// - `.pgm`: 8 bits, [`pgm_factor`] and offset in the header's comment, 0 = unknown.
    ///
    /// Floats are without the steps of 1/16 px ([`floats`]).
    ///
    /// [`Encoding::for_range`]: stereod_core::picture::encoding::Encoding::for_range
    pub fn write(&self, path: &Path) -> Result<()> {
        let format = match self.depth {
            None => StillFormat::of(path)?,
            Some(_) => StillFormat::of_depth(path)?,
        };
        files::write_whole(path, &self.encode(format)?)
    }

    pub fn encode(&self, format: StillFormat) -> Result<Vec<u8>> {
        let Self { map, range, geometry, depth, .. } = *self;
        let size = (map.width(), map.height());
        Ok(match format {
            StillFormat::Png => {
                let quantity = depth.map_or(Quantity::Disparity, Quantity::Depth);
                let numbers = Numbers::new(quantity, range, geometry)?;
                DisparityPng::default().encode(map, &numbers)?.to_vec()
            }
            StillFormat::Pfm => encode_pfm(size.0, &self.floats(f32::INFINITY).collect::<Vec<_>>()),
            StillFormat::Tiff => tiff(size, &self.floats(f32::NAN).collect::<Vec<_>>())?,
            StillFormat::Npy => npy(size, self.floats(f32::NAN)),
            StillFormat::Exr => self.exr()?,
            StillFormat::Pgm => pgm(map, range),
        })
    }

    /// Returns disparity in pixels, or depth in metres if that is written; row by row.
    fn floats(&self, unknown: f32) -> impl Iterator<Item = f32> {
        let geometry = self.geometry.filter(|_| self.depth.is_some());
        floats(self.map).into_iter().map(move |disparity| match geometry {
            Some(geometry) => metres(geometry, disparity).unwrap_or(unknown),
            None if disparity.is_nan() => unknown,
            None => disparity,
        })
    }

    fn exr(&self) -> Result<Vec<u8>> {
        let floats = floats(self.map);
        let disparity = floats.iter().map(|&float| if float.is_nan() { 0.0 } else { float });
        let mut channels = vec![channel("disparity", disparity.collect())];
        let mut attributes = self.about.attributes();
        if let Some(geometry) = self.geometry {
            let depth = floats.iter().map(|&px| metres(geometry, px).unwrap_or(f32::INFINITY));
            channels.push(channel("Z", depth.collect()));
            self.describe_cameras(geometry, &mut attributes);
        }
        if let (Some(geometry), Some(confidence)) = (self.geometry, self.confidence) {
            let pixels = floats.iter().zip(confidence.pixels());
            let deviation = pixels.map(|(&disparity, &confidence)| {
                let metres = deviation_px(confidence)
                    .and_then(|px| geometry.depth_deviation_m(f64::from(disparity), px));
                metres.map_or(f32::INFINITY, |metres| metres as f32)
            });
            channels.push(channel("Z_std", deviation.collect()));
            attributes.comments = text(&format!("Z_std: {DEVIATION_LIMITS}"));
        }
        if let Some(confidence) = self.confidence {
            let share = confidence.pixels().iter().map(|&level| f32::from(level) / 255.0);
            channels.push(channel("confidence", share.collect()));
        }
        let timecode = self.about.timecode.map(exr_timecode);
        encode_exr((self.map.width(), self.map.height()), channels, attributes, timecode)
    }

    /// Adds the cameras: as the screen window, which is how OpenEXR describes a perspective, at a distance of 1;
    /// and as plain numbers.
    fn describe_cameras(&self, geometry: &StereoGeometry, attributes: &mut LayerAttributes) {
        let StereoGeometry { focal_px, baseline_m, centre_x_px, centre_y_px, .. } = *geometry;
        let middle = |side: usize| (side as f64 - 1.0) / 2.0;
        let (width, height) = (self.map.width(), self.map.height());
        attributes.screen_window_width = (width as f64 / focal_px) as f32;
        let x = (middle(width) - centre_x_px) / focal_px;
        // The window's y axis points up.
        let y = (centre_y_px - middle(height)) / focal_px;
        attributes.screen_window_center = Vec2(x as f32, y as f32);
        let numbers = [("focalLengthPx", focal_px), ("baselineM", baseline_m)];
        let numbers =
            numbers.map(|(name, number)| (name.into(), AttributeValue::F32(number as f32)));
        attributes.other.extend(numbers);
        attributes
            .other
            .extend(text("m").map(|unit| ("depthUnit".into(), AttributeValue::Text(unit))));
    }
}

/// Writes depth in metres, infinite if unknown, in the format of the path's extension, as [`Still::write`]
/// does.
pub fn write_depth(
    path: &Path,
    size: (usize, usize),
    depth_m: &[f32],
    unit: DepthUnit,
) -> Result<()> {
    let or_nan = || depth_m.iter().map(|z| if z.is_finite() { *z } else { f32::NAN });
    let file = match StillFormat::of_depth(path)? {
        StillFormat::Png | StillFormat::Pgm => {
            let mut stored = vec![0; depth_m.len()];
            unit.encode(depth_m, &mut stored);
            png::encode_numbers(&stored, size, &unit.describe())?
        }
        StillFormat::Pfm => encode_pfm(size.0, depth_m),
        StillFormat::Tiff => tiff(size, &or_nan().collect::<Vec<_>>())?,
        StillFormat::Npy => npy(size, or_nan()),
        StillFormat::Exr => {
            let attributes = About::default().attributes();
            encode_exr(size, vec![channel("Z", depth_m.to_vec())], attributes, None)?
        }
    };
    files::write_whole(path, &file)
}

type Channel = exr::prelude::AnyChannel<exr::prelude::FlatSamples>;

fn channel(name: &str, samples: Vec<f32>) -> Channel {
    exr::prelude::AnyChannel::new(name, exr::prelude::FlatSamples::F32(samples))
}

impl About<'_> {
    /// Returns the attributes, by OpenEXR's names where it has one
    /// (<https://openexr.com/en/latest/StandardAttributes.html>).
    fn attributes(&self) -> LayerAttributes {
        let mut attributes = LayerAttributes {
            software_name: text(concat!("stereod ", env!("CARGO_PKG_VERSION"))),
            frames_per_second: self.rate.and_then(|rate| {
                let rate = gstreamer::Fraction::approximate_f64(rate)?;
                Some((rate.numer(), u32::try_from(rate.denom()).ok()?))
            }),
            world_to_camera: self.pose.map(|pose| world_to_camera(&pose)),
            ..LayerAttributes::default()
        };
        let number = self.number.and_then(|number| i32::try_from(number).ok());
        let number = number.map(|number| ("imageCounter".into(), AttributeValue::I32(number)));
        let source = text(self.source).filter(|_| !self.source.is_empty());
        let source = source.map(|name| ("source".into(), AttributeValue::Text(name)));
        attributes.other.extend(number.into_iter().chain(source));
        attributes
    }
}

/// Returns OpenEXR's matrix of a pose, which multiplies rows of coordinates from the left. Its axes are x to the right, y
/// up and z ahead (<https://openexr.com/en/latest/StandardAttributes.html>), in both frames.
fn world_to_camera(pose: &Pose) -> [f32; 16] {
    let Pose { rotation, position_m } = pose.with_axes([1.0, -1.0, 1.0]).inverse();
    let column = |to: usize| [0, 1, 2].map(|from| rotation[to][from]);
    let [right, up, ahead] = [0, 1, 2].map(column);
    let row = |from: usize| [right[from], up[from], ahead[from], 0.0];
    let rows = [row(0), row(1), row(2), [position_m[0], position_m[1], position_m[2], 1.0]];
    std::array::from_fn(|place| (rows[place / 4][place % 4] + 0.0) as f32)
}

/// Converts a text to UTF-8, as OpenEXR stores texts.
fn text(text: &str) -> Option<Text> {
    Some(Text::from_bytes_unchecked(text.bytes().collect()))
}

/// Converts a time code; above 30 frames a second it counts pairs of frames, as SMPTE ST 12-1 has it.
fn exr_timecode(code: Timecode) -> TimeCode {
    let Timecode { hours, minutes, seconds, frames, drop: drop_frame, .. } = code;
    let (frame, field_phase) = match code.is_fast() {
        true => (frames / 2, frames % 2 == 1),
        false => (frames, false),
    };
    TimeCode { hours, minutes, seconds, frame, drop_frame, field_phase, ..TimeCode::default() }
}

/// Encodes channels as OpenEXR (<https://openexr.com/en/latest/>).
fn encode_exr(
    size: (usize, usize),
    channels: Vec<Channel>,
    attributes: LayerAttributes,
    timecode: Option<TimeCode>,
) -> Result<Vec<u8>> {
    let mut image = exr::prelude::Image::from_encoded_channels(
        size,
        exr::prelude::Encoding::SMALL_LOSSLESS,
        exr::prelude::AnyChannels::sort(channels.into()),
    );
    image.layer_data.attributes = attributes;
    image.attributes.time_code = timecode;
    let mut file = Cursor::new(Vec::new());
    exr::prelude::WritableImage::write(&image).to_buffered(&mut file)?;
    Ok(file.into_inner())
}

/// Returns the depth of a disparity; none of NaN, which is unknown.
fn metres(geometry: &StereoGeometry, disparity: f32) -> Option<f32> {
    geometry.depth_m(f64::from(disparity)).map(|metres| metres as f32)
}

pub fn check_png_name(path: &Path) -> Result<()> {
    ensure!(
        files::extension(path) == "png",
        "cannot write {}: it is a PNG file; name it .png",
        path.display()
    );
    Ok(())
}

/// Writes a disparity map in colour as a PNG.
pub fn write_colour_png(
    path: &Path,
    map: &DisparityMap,
    colours: ColourMap,
    scale: &ColourScale,
) -> Result<()> {
    check_png_name(path)?;
    let mut rgb = vec![0; map.width() * map.height() * 3];
    colourise::<3>(map, colours, scale, &mut rgb, map.width() * 3);
    files::write_whole(path, &png::encode_rgb(&rgb, map.width(), map.height())?)
}

pub fn write_grey_png(path: &Path, image: &Image) -> Result<()> {
    check_png_name(path)?;
    files::write_whole(path, &png::encode_grey(image.pixels(), image.width(), image.height())?)
}

/// Encodes rows of `width` floats as a portable float map (Middlebury's description:
/// <https://vision.middlebury.edu/stereo/>).
pub fn encode_pfm(width: usize, floats: &[f32]) -> Vec<u8> {
    // The negative scale means little endian.
    let mut file = format!("Pf\n{width} {}\n-1.0\n", floats.len() / width.max(1)).into_bytes();
    for row in floats.chunks_exact(width.max(1)).rev() {
        file.extend(row.iter().flat_map(|number| number.to_le_bytes()));
    }
    file
}

/// Encodes floats as TIFF of one sample a pixel, compressed without loss.
fn tiff((width, height): (usize, usize), floats: &[f32]) -> Result<Vec<u8>> {
    let mut file = Cursor::new(Vec::new());
    let encoder = tiff::encoder::TiffEncoder::new(&mut file)?;
    let deflate = tiff::encoder::Compression::Deflate(Default::default());
    let [width, height] = [width, height].map(|side| side as u32);
    encoder
        .with_compression(deflate)
        .write_image::<tiff::encoder::colortype::Gray32Float>(width, height, floats)?;
    Ok(file.into_inner())
}

/// Encodes floats as an array of NumPy (version 1.0 of its format, `numpy.lib.format`).
fn npy((width, height): (usize, usize), floats: impl Iterator<Item = f32>) -> Vec<u8> {
    let shape = format!("({height}, {width})");
    let text = format!("{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}, }}");
    // Magic, version and length are 10 bytes; with them and a newline the header fills blocks of 64.
    let padded = (10 + text.len() + 1).next_multiple_of(64) - 10 - 1;
    let mut file = b"\x93NUMPY\x01\x00".to_vec();
    file.extend((padded as u16 + 1).to_le_bytes());
    file.extend(format!("{text:padded$}\n").into_bytes());
    file.extend(floats.flat_map(f32::to_le_bytes));
    file
}

/// Returns the grey levels per pixel of disparity in an 8-bit file, as numerator and denominator: the largest
/// power of two up to 16 that fits the whole range below 256. This gives the factors of the Middlebury
/// images: 16 for Tsukuba, 8 for Venus, 4 for Teddy and Cones.
pub fn pgm_factor(range: DisparityRange) -> (u32, u32) {
    let span = i64::from(range.max()) - i64::from(pgm_offset(range));
    let mut factor = (16, 1);
    while span * i64::from(factor.0) > 255 * i64::from(factor.1) {
        factor = if factor.0 > 1 { (factor.0 / 2, 1) } else { (1, factor.1 * 2) };
    }
    factor
}

/// Returns the disparity of the level 0: 0, or the smallest one of a range below 0.
fn pgm_offset(range: DisparityRange) -> i32 {
    range.min.min(0)
}

/// Encodes the map as an 8-bit portable grey map: round((d - offset) * factor); a valid 0 becomes 1.
fn pgm(map: &DisparityMap, range: DisparityRange) -> Vec<u8> {
    let (times, over) = pgm_factor(range);
    let offset = pgm_offset(range);
    let factor = f64::from(times) / f64::from(over);
    let mut file = format!(
        "P5\n# disparity = value / {factor} + {offset}; 0 = unknown\n{} {}\n255\n",
        map.width(),
        map.height()
    )
    .into_bytes();
    let unit = f64::from(SUBPIXEL);
    file.extend(map.values().iter().map(|&value| match value {
        INVALID => 0,
        value => {
            let level = (f64::from(value) / unit - f64::from(offset)) * factor;
            level.round().clamp(1.0, 255.0) as u8
        }
    }));
    file
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::sink::colour::ColourRange;
    use stereod_core::pool::Pooled;

    const RANGE: DisparityRange = DisparityRange { min: 0, count: 64 };

    fn map() -> DisparityMap {
        // 3 x 2: 0, unknown, 1.5 / 10, 20.0625, 63
        DisparityMap::new(3, 2, RANGE, Pooled::unpooled(vec![0, INVALID, 24, 160, 321, 1008]))
    }

    /// 60 px of focal length times 1 m.
    fn geometry() -> StereoGeometry {
        StereoGeometry {
            focal_px: 60.0,
            baseline_m: 1.0,
            centre_x_px: 1.0,
            centre_y_px: 0.5,
            right_centre_x_px: 1.0,
        }
    }

    fn written(name: &str, range: DisparityRange) -> Vec<u8> {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join(name);
        Still::of(&map(), range).write(&path).unwrap();
        fs::read(path).unwrap()
    }

    #[test]
    fn png_holds_the_kitti_convention() {
        let image::DynamicImage::ImageLuma16(picture) =
            image::load_from_memory(&written("a.PNG", RANGE)).unwrap()
        else {
            panic!("not 16-bit grey");
        };
        assert_eq!(picture.into_raw(), [1, 0, 384, 2560, 5136, 63 * 256]);
    }

    #[test]
    fn pfm_holds_floats_bottom_row_first() {
        let file = written("a.pfm", RANGE);
        let header = b"Pf\n3 2\n-1.0\n";
        assert_eq!(&file[..header.len()], header);
        let (floats, rest) = file[header.len()..].as_chunks();
        assert!(rest.is_empty());
        let floats: Vec<f32> = floats.iter().map(|&bytes| f32::from_le_bytes(bytes)).collect();
        assert_eq!(floats, [10.0, 20.0625, 63.0, 0.0, f32::INFINITY, 1.5]);
    }

    #[test]
    fn tiff_holds_floats_in_pixels_or_metres() {
        let read = |file: Vec<u8>| {
            let mut decoder = tiff::decoder::Decoder::new(Cursor::new(file)).unwrap();
            assert_eq!(decoder.dimensions().unwrap(), (3, 2));
            match decoder.read_image().unwrap() {
                tiff::decoder::DecodingResult::F32(floats) => floats,
                other => panic!("{other:?}"),
            }
        };
        let pixels = read(written("a.tif", RANGE));
        assert!(pixels[1].is_nan());
        assert_eq!([pixels[0], pixels[2], pixels[5]], [0.0, 1.5, 63.0]);

        let geometry = geometry();
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("depth.tiff");
        let (map, depth) = (map(), Some(DepthUnit::of_millimetres(1.0)));
        let still = Still { geometry: Some(&geometry), depth, ..Still::of(&map, RANGE) };
        still.write(&path).unwrap();
        let metres = read(fs::read(&path).unwrap());
        // A disparity of 0 is at no distance that a number could hold.
        assert!(metres[0].is_nan() && metres[1].is_nan());
        assert_eq!([metres[2], metres[3]], [40.0, 6.0]);
        assert!(still.write(&dir.path().join("depth.pgm")).is_err());
    }

    #[test]
    fn npy_is_aligned_and_holds_floats() {
        let file = written("a.npy", RANGE);
        assert_eq!(file[..8], *b"\x93NUMPY\x01\0");
        let header = 10 + usize::from(u16::from_le_bytes([file[8], file[9]]));
        assert_eq!((header % 64, file[header - 1]), (0, b'\n'));
        let text = std::str::from_utf8(&file[10..header]).unwrap();
        assert!(text.contains("'shape': (2, 3)"), "{text}");
        let floats: Vec<f32> =
            file[header..].as_chunks().0.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect();
        assert!(floats[1].is_nan());
        assert_eq!([floats[2], floats[3], floats[4], floats[5]], [1.5, 10.0, 20.0625, 63.0]);
    }

    #[test]
    fn exr_holds_all_that_is_known() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.exr");
        let read = || {
            let image = exr::prelude::read_first_flat_layer_from_file(&path).unwrap();
            let channels = image.layer_data.channel_data.list;
            let channel = |channel: &exr::prelude::AnyChannel<exr::prelude::FlatSamples>| {
                (channel.name.to_string(), channel.sample_data.values_as_f32().collect::<Vec<_>>())
            };
            channels.iter().map(channel).collect::<Vec<_>>()
        };
        let (map, geometry) = (map(), geometry());
        let disparity = vec![0.0, 0.0, 1.5, 10.0, 20.0625, 63.0];
        Still::of(&map, RANGE).write(&path).unwrap();
        assert_eq!(read(), [("disparity".to_owned(), disparity.clone())]);
        let confidence = Image::from_vec(3, 2, vec![0, 0, 255, 51, 1, 204]);
        let (geometry, confidence) = (Some(&geometry), Some(&confidence));
        let still = Still { geometry, confidence, ..Still::of(&map, RANGE) };
        still.write(&path).unwrap();
        let comments = exr::prelude::read_first_flat_layer_from_file(&path)
            .unwrap()
            .layer_data
            .attributes
            .comments;
        assert!(comments.unwrap().to_string().starts_with("Z_std: standard deviation if "));
        let channels = read();
        let names: Vec<&str> = channels.iter().map(|(name, _)| &**name).collect();
        assert_eq!(names, ["Z", "Z_std", "confidence", "disparity"]);
        assert_eq!(channels[0].1[..4], [f32::INFINITY, f32::INFINITY, 40.0, 6.0]);
        // 40^2 / 60 times 0.27 px, and 6^2 / 60 times 0.68 - 0.41 * 0.2; none without evidence.
        let deviations = &channels[1].1;
        assert!((deviations[2] - 7.2).abs() < 1e-4 && (deviations[3] - 0.3588).abs() < 1e-4);
        assert_eq!([deviations[1], deviations[4]], [f32::INFINITY; 2]);
        assert_eq!(channels[2].1, [0, 0, 255, 51, 1, 204].map(|level| level as f32 / 255.0));
        assert_eq!(channels[3].1, disparity);
    }

    #[test]
    fn exr_says_where_a_map_comes_from() {
        gstreamer::init().unwrap();
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.exr");
        let (map, geometry) = (map(), geometry());
        let mut code = Timecode {
            hours: 1,
            minutes: 2,
            seconds: 3,
            frames: 23,
            rate: [24_000, 1001],
            drop: false,
        };
        for (rate, frames) in [([24_000, 1001], 23), ([60, 1], 59)] {
            code = Timecode { rate, frames, ..code };
            let about = About {
                source: "links.mov",
                rate: Some(f64::from(rate[0]) / f64::from(rate[1])),
                number: Some(1001),
                timecode: Some(code),
                pose: None,
            };
            let still = Still { geometry: Some(&geometry), about, ..Still::of(&map, RANGE) };
            still.write(&path).unwrap();
            assert_eq!(Timecode::read(&path, None), Some(code));
        }
        let image = exr::prelude::read_first_flat_layer_from_file(&path).unwrap();
        let attributes = image.layer_data.attributes;
        assert!(attributes.software_name.unwrap().to_string().starts_with("stereod "));
        assert_eq!(attributes.frames_per_second, Some((60, 1)));
        let other = |name: &str| attributes.other.get(&Text::from(name));
        assert_eq!(other("imageCounter"), Some(&AttributeValue::I32(1001)));
        assert_eq!(other("source"), Some(&AttributeValue::Text("links.mov".into())));
        assert_eq!(other("focalLengthPx"), Some(&AttributeValue::F32(geometry.focal_px as f32)));
        assert_eq!(other("baselineM"), Some(&AttributeValue::F32(geometry.baseline_m as f32)));
        // Three columns and two rows.
        let width = 3.0 / geometry.focal_px as f32;
        assert!((attributes.screen_window_width - width).abs() < 1e-6);
        let expected = [
            (1.0 - geometry.centre_x_px) / geometry.focal_px,
            (geometry.centre_y_px - 0.5) / geometry.focal_px,
        ];
        let Vec2(x, y) = attributes.screen_window_center;
        assert!(
            (f64::from(x) - expected[0]).abs() < 1e-6 && (f64::from(y) - expected[1]).abs() < 1e-6
        );
    }

    #[test]
    fn exr_has_the_matrix_of_the_camera() {
        // Half a metre to the right, 1 m up and 2 m ahead, turned to the right by 90 degrees.
        let rotation = [[0.0, 0.0, 1.0], [0.0, 1.0, 0.0], [-1.0, 0.0, 0.0]];
        let pose = Pose { rotation, position_m: [0.5, -1.0, 2.0] };
        let map = map();
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.exr");
        let written = |pose| {
            let about = About { pose, ..About::default() };
            Still { about, ..Still::of(&map, RANGE) }.write(&path).unwrap();
            let image = exr::prelude::read_first_flat_layer_from_file(&path).unwrap();
            image.layer_data.attributes.world_to_camera
        };
        assert_eq!(written(None), None);
        let matrix = written(Some(pose)).unwrap();
        // Right, up and ahead of a point, of which the camera is now at the place.
        let seen = |[right, up, ahead]: [f32; 3]| {
            [0, 1, 2].map(|column| {
                let of = |row: usize| matrix[4 * row + column];
                right * of(0) + up * of(1) + ahead * of(2) + of(3)
            })
        };
        assert_eq!(seen([0.5, 1.0, 2.0]), [0.0; 3]);
        assert_eq!(
            seen([3.5, 1.0, 2.0]),
            [0.0, 0.0, 3.0],
            "ahead is to the right of the first pair"
        );
        assert_eq!(seen([0.5, 2.0, 1.0]), [1.0, 1.0, 0.0]);
        assert_eq!([3, 7, 11, 15].map(|place| matrix[place]), [0.0, 0.0, 0.0, 1.0]);
    }

    #[test]
    fn pgm_holds_disparity_times_the_factor() {
        let file = written("a.pgm", RANGE);
        let header = b"P5\n# disparity = value / 4 + 0; 0 = unknown\n3 2\n255\n";
        assert_eq!(&file[..header.len()], header);
        assert_eq!(&file[header.len()..], [1, 0, 6, 40, 80, 252]);
        assert_eq!(image::load_from_memory(&file).unwrap().to_luma8().as_raw()[3], 40);

        let file = written("a.pgm", DisparityRange { min: -10, count: 400 });
        let header = b"P5\n# disparity = value / 0.5 + -10; 0 = unknown\n3 2\n255\n";
        assert_eq!(&file[..header.len()], header);
        assert_eq!(&file[header.len()..], [5, 0, 6, 10, 15, 37]);
    }

    #[test]
    fn pgm_factors() {
        let factor = |min, count| pgm_factor(DisparityRange { min, count });
        assert_eq!(factor(0, 1), (16, 1));
        assert_eq!(factor(0, 16), (16, 1));
        assert_eq!(factor(0, 32), (8, 1));
        assert_eq!(factor(0, 60), (4, 1));
        assert_eq!(factor(0, 128), (2, 1));
        assert_eq!(factor(0, 256), (1, 1));
        assert_eq!(factor(0, 1024), (1, 8));
        assert_eq!(factor(-100, 101), (2, 1));
        assert_eq!(factor(-100, 50), (4, 1));
    }

    #[test]
    fn unknown_formats_are_refused_and_the_earlier_file_stays() {
        let dir = tempfile::tempdir().unwrap();
        for name in ["a.dpx", "a", "a.jpg"] {
            let path = dir.path().join(name);
            fs::write(&path, b"earlier").unwrap();
            let error = Still::of(&map(), RANGE).write(&path).unwrap_err().to_string();
            assert!(
                error.contains(name) && [".png", ".pfm", ".pgm"].iter().all(|e| error.contains(e)),
                "{error}"
            );
            assert_eq!(fs::read(&path).unwrap(), b"earlier");
        }
        let nowhere = dir.path().join("no/where.pfm");
        let error = Still::of(&map(), RANGE).write(&nowhere).unwrap_err().to_string();
        assert!(error.contains("no/where.pfm") && error.contains("does not exist"), "{error}");
    }

    #[test]
    fn colours_come_back() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("colour.png");
        let scale = ColourScale::new(ColourRange::Full, RANGE);
        write_colour_png(&path, &map(), ColourMap::Turbo, &scale).unwrap();
        let picture = image::open(&path).unwrap().to_rgb8();
        let table = ColourMap::Turbo.table();
        assert_eq!(picture.get_pixel(0, 0).0, table[0]);
        assert_eq!(picture.get_pixel(1, 0).0, ColourMap::Turbo.unknown());
        assert_eq!(picture.get_pixel(2, 1).0, table[255]);
        let wrong = dir.path().join("colour.jpg");
        assert!(write_colour_png(&wrong, &map(), ColourMap::Turbo, &scale).is_err());
    }
}
