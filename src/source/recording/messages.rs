//! The messages that are read: images and calibrations of `sensor_msgs`, and frames of videos.

use std::fmt::Write;

use anyhow::{Context, Result, bail};

use super::fields::Fields;
use super::interface::{Encoding, Topic};
use super::{protobuf, svo};
use crate::source::byte_stream::Codec;
use crate::source::gst::ViewLayout;

/// Most distortion coefficients of a calibration; OpenCV knows 14.
const COEFFICIENTS_MAX: usize = 32;

/// Types of messages that hold an image.
const IMAGES: [&str; 2] = ["sensor_msgs/Image", "sensor_msgs/CompressedImage"];

/// Types of messages that hold a frame of a video, in ROS and in Protocol Buffers.
const VIDEOS: [&str; 2] = ["foxglove_msgs/CompressedVideo", "foxglove.CompressedVideo"];

/// Type of messages that hold a calibration.
const CAMERA_INFO: &str = "sensor_msgs/CameraInfo";

impl Topic {
    /// Reports whether its messages are images that can be read.
    pub fn has_images(&self) -> bool {
        self.encoding == Encoding::File
            || IMAGES.contains(&self.kind.as_str()) && self.encoding.is_of_ros()
            || self.is_video()
    }

    /// Reports whether its images are compressed.
    pub fn is_compressed(&self) -> bool {
        self.kind == IMAGES[1] || self.is_video()
    }

    /// Reports whether its images are a video, most of whose frames build on others.
    pub fn is_video(&self) -> bool {
        match self.encoding {
            Encoding::Svo => true,
            Encoding::Protobuf => self.kind == VIDEOS[1],
            _ => self.kind == VIDEOS[0] && self.encoding.is_of_ros(),
        }
    }

    /// Returns the views in each of its images.
    pub fn layout(&self) -> ViewLayout {
        if self.encoding == Encoding::Svo { ViewLayout::SideBySide } else { ViewLayout::Whole }
    }

    /// Reports whether its messages are calibrations.
    pub fn has_calibrations(&self) -> bool {
        self.kind == CAMERA_INFO && self.encoding.is_of_ros()
    }
}

/// An image in a message.
#[derive(Clone, Copy, Debug)]
pub enum Picture<'a> {
    /// Pixels.
    Raw(Raw<'a>),
    /// A file, such as a JPEG.
    File(&'a [u8]),
    /// An access unit of a video as a byte stream. Only the first units need tell the codec.
    Unit(Option<Codec>, &'a [u8]),
}

/// Pixels of a `sensor_msgs/Image`.
#[derive(Clone, Copy, Debug)]
pub struct Raw<'a> {
    /// Width in pixels.
    pub width: usize,
    /// Height in pixels.
    pub height: usize,
    /// Name of the pixel format.
    pub encoding: &'a str,
    /// True if samples of two bytes begin with the upper one.
    pub is_big_endian: bool,
    /// Bytes from one row to the next.
    pub step: usize,
    /// Every row.
    pub data: &'a [u8],
}

/// Returns the stamp of an image in nanoseconds, and the image. A stamp of 0 was never set; the time of
/// recording takes its place.
pub fn picture<'a>(topic: &Topic, log_ns: u64, data: &'a [u8]) -> Result<(u64, Picture<'a>)> {
    if topic.encoding == Encoding::File {
        return Ok((log_ns, Picture::File(data)));
    }
    let set = |stamp: u64| if stamp > 0 { stamp } else { log_ns };
    match topic.encoding {
        Encoding::Svo => {
            let (stamp, unit) = svo::frame(data)?;
            return Ok((set(stamp), Picture::Unit(Codec::of_stream(unit), unit)));
        }
        Encoding::Protobuf => {
            let video = protobuf::CompressedVideo::read(data)?;
            return Ok((set(video.stamp), Picture::Unit(Some(codec(video.format)?), video.data)));
        }
        _ => {}
    }
    let mut fields = Fields::new(data, &topic.encoding)?;
    if topic.is_video() {
        let stamp = set(fields.time()?);
        let (_frame, data) = (fields.text()?, fields.bytes()?);
        return Ok((stamp, Picture::Unit(Some(codec(fields.text()?)?), data)));
    }
    let stamp = set(fields.stamp()?);
    if topic.is_compressed() {
        let format = fields.text()?;
        if format.contains("compressedDepth") {
            bail!("the images are depth (\"{format}\"), not a camera's view");
        }
        return Ok((stamp, Picture::File(fields.bytes()?)));
    }
    let (height, width) = (fields.u32()? as usize, fields.u32()? as usize);
    let encoding = fields.text()?;
    let is_big_endian = fields.u8()? != 0;
    let step = fields.u32()? as usize;
    let data = fields.bytes()?;
    Ok((stamp, Picture::Raw(Raw { width, height, encoding, is_big_endian, step, data })))
}

/// Returns the codec of a `CompressedVideo`.
fn codec(format: &str) -> Result<Codec> {
    Codec::of(format).with_context(|| {
        let format: String = format.chars().take(20).collect();
        format!("video in the format \"{format}\" is not read; h264 and h265 are")
    })
}

/// A `sensor_msgs/CameraInfo`: the calibration of one camera.
#[derive(Clone, Debug, PartialEq)]
pub struct CameraInfo {
    /// Width and height of the full image in pixels.
    pub size: (usize, usize),
    model: String,
    d: Vec<f64>,
    k: [f64; 9],
    r: [f64; 9],
    /// Projection of the rectified view, row by row.
    pub p: [f64; 12],
    binning: [u32; 2],
    /// Offset in x and y, height, width.
    roi: [u32; 4],
}

impl CameraInfo {
    /// Reads a message.
    pub fn read(encoding: &Encoding, data: &[u8]) -> Result<Self> {
        let mut fields = Fields::new(data, encoding)?;
        fields.stamp()?;
        let (height, width) = (fields.u32()? as usize, fields.u32()? as usize);
        let model = fields.text()?.to_owned();
        Ok(Self {
            size: (width, height),
            model,
            d: fields.f64_list(COEFFICIENTS_MAX)?,
            k: fields.f64s()?,
            r: fields.f64s()?,
            p: fields.f64s()?,
            binning: [fields.u32()?, fields.u32()?],
            roi: [fields.u32()?, fields.u32()?, fields.u32()?, fields.u32()?],
        })
    }

    /// Returns the message as `ros2 topic echo` prints it, which is a calibration file.
    pub fn to_yaml(&self) -> String {
        let (width, height) = self.size;
        let [x, y, part_height, part_width] = self.roi;
        // A name with other characters is unknown, and must not change the rest of the file.
        let model: String =
            self.model.chars().filter(|&c| c.is_alphanumeric() || c == '_').collect();
        let mut text = format!("height: {height}\nwidth: {width}\ndistortion_model: {model}\n");
        let lists = [("d", &self.d[..]), ("k", &self.k), ("r", &self.r), ("p", &self.p)];
        for (name, values) in lists {
            let values: Vec<_> = values.iter().map(|value| format!("{value:?}")).collect();
            // Writing to a text cannot fail.
            let _ = writeln!(text, "{name}: [{}]", values.join(", "));
        }
        let [across, down] = self.binning;
        text += &format!("binning_x: {across}\nbinning_y: {down}\nroi:\n");
        text += &format!("  x_offset: {x}\n  y_offset: {y}\n");
        text + &format!("  height: {part_height}\n  width: {part_width}\n")
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn topic(kind: &str) -> Topic {
        Topic { name: "/a".into(), kind: kind.into(), encoding: Encoding::Cdr, messages: None }
    }

    /// Header of a CDR message: the stamp 1.000000002 s, and an empty frame.
    const HEADER: [u8; 20] = [0, 1, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0];

    #[test]
    fn an_image_is_read_field_by_field() {
        let mut data = HEADER.to_vec();
        data.extend([2, 0, 0, 0, 3, 0, 0, 0, 6, 0, 0, 0]);
        data.extend(b"mono8\0\0\0");
        // Replaces the padding: is_bigendian stands directly behind the text.
        let step = data.len();
        data[step - 2] = 1;
        data.extend([4, 0, 0, 0, 2, 0, 0, 0, 7, 8]);
        let topic = topic("sensor_msgs/Image");
        let (stamp, Picture::Raw(raw)) = picture(&topic, 9, &data).unwrap() else { panic!() };
        assert_eq!((stamp, raw.width, raw.height, raw.step), (1_000_000_002, 3, 2, 4));
        assert_eq!((raw.encoding, raw.is_big_endian, raw.data), ("mono8", true, &[7, 8][..]));
        for length in 0..data.len() {
            assert!(picture(&topic, 9, &data[..length]).is_err(), "{length} bytes");
        }
        // A stamp that was never set.
        data[4..12].fill(0);
        assert_eq!(picture(&topic, 9, &data).unwrap().0, 9);
    }

    #[test]
    fn depth_is_no_view() {
        let mut data = HEADER.to_vec();
        let format = b"16UC1; compressedDepth png\0";
        data.extend((format.len() as u32).to_le_bytes());
        data.extend(format);
        data.extend([0; 8]);
        let error = picture(&topic("sensor_msgs/CompressedImage"), 9, &data).unwrap_err();
        assert!(error.to_string().contains("are depth"), "{error}");
    }

    #[test]
    fn a_frame_of_a_video_is_read_in_every_encoding() {
        let numbers = [5_u32, 7].map(u32::to_le_bytes).concat();
        let cdr: [&[u8]; 6] = [
            &[0, 1, 0, 0],
            &numbers,
            &[2, 0, 0, 0, b'a', 0, 0, 0],
            &[3, 0, 0, 0, 1, 2, 3, 0],
            &[5, 0, 0, 0],
            b"h265\0",
        ];
        let ros1: [&[u8]; 5] =
            [&numbers, &[1, 0, 0, 0, b'a'], &[3, 0, 0, 0, 1, 2, 3], &[4, 0, 0, 0], b"h265"];
        for (encoding, data) in [(Encoding::Cdr, cdr.concat()), (Encoding::Ros1, ros1.concat())] {
            let topic = Topic { encoding, ..topic(VIDEOS[0]) };
            let (stamp, Picture::Unit(codec, unit)) = picture(&topic, 9, &data).unwrap() else {
                panic!()
            };
            assert_eq!((stamp, codec, unit), (5_000_000_007, Some(Codec::H265), &[1, 2, 3][..]));
            for length in 0..data.len() {
                assert!(picture(&topic, 9, &data[..length]).is_err(), "{length} bytes");
            }
            let text = String::from_utf8_lossy(&data).replace("h265", "mpeg");
            let error = picture(&topic, 9, text.as_bytes()).unwrap_err().to_string();
            assert!(error.contains("\"mpeg\" is not read; h264"), "{error}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(data in prop::collection::vec(any::<u8>(), 0..500)) {
            for encoding in [Encoding::Cdr, Encoding::Ros1] {
                for kind in IMAGES.into_iter().chain(VIDEOS) {
                    let _ = picture(&Topic { encoding: encoding.clone(), ..topic(kind) }, 1, &data);
                }
                let protobuf = Topic { encoding: Encoding::Protobuf, ..topic(VIDEOS[1]) };
                let _ = picture(&protobuf, 1, &data);
                if let Ok(info) = CameraInfo::read(&encoding, &data) {
                    prop_assert!(info.to_yaml().lines().count() == 14);
                }
            }
        }
    }
}
