//! The messages that are read: images, frames of videos and calibrations, in the encodings of ROS and in Protocol
//! Buffers.

use std::fmt::Write;

use anyhow::{Context, Result, bail, ensure};

use super::fields::Fields;
use super::interface::{Encoding, Topic};
use super::{protobuf, svo};
use crate::source::byte_stream::Codec;
use crate::source::gst::ViewLayout;

/// Most distortion coefficients of a calibration; OpenCV knows 14.
const COEFFICIENTS_MAX: usize = 32;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Content {
    Pixels,
    File,
    Video,
    /// A frame of a video in the fields of ffmpeg_image_transport.
    Packet,
    Calibration,
}

const OF_ROS: [(&str, Content); 5] = [
    ("sensor_msgs/Image", Content::Pixels),
    ("sensor_msgs/CompressedImage", Content::File),
    ("foxglove_msgs/CompressedVideo", Content::Video),
    ("ffmpeg_image_transport_msgs/FFMPEGPacket", Content::Packet),
    ("sensor_msgs/CameraInfo", Content::Calibration),
];

const OF_PROTOBUF: [(&str, Content); 4] = [
    ("foxglove.RawImage", Content::Pixels),
    ("foxglove.CompressedImage", Content::File),
    ("foxglove.CompressedVideo", Content::Video),
    ("foxglove.CameraCalibration", Content::Calibration),
];

/// Words in the types of messages with an image in some encoding, and in the types of others.
const OF_IMAGES: [&str; 4] = ["image", "video", "ffmpeg", "theora"];
const OF_OTHERS: [&str; 3] = ["annotation", "marker", "disparity"];

impl Topic {
    fn content(&self) -> Option<Content> {
        let known = match self.encoding {
            Encoding::File => return Some(Content::File),
            Encoding::Svo => return Some(Content::Video),
            Encoding::Cdr | Encoding::Ros1 => &OF_ROS[..],
            Encoding::Protobuf => &OF_PROTOBUF,
            Encoding::Other(_) => return None,
        };
        known.iter().find(|(kind, _)| *kind == self.kind).map(|(_, content)| *content)
    }

    pub fn has_images(&self) -> bool {
        self.content().is_some_and(|content| content != Content::Calibration)
    }

    /// Reports whether its messages seem to be images that cannot be read, by their type.
    pub fn has_unread_images(&self) -> bool {
        let kind = self.kind.to_lowercase();
        let has = |words: &[&str]| words.iter().any(|word| kind.contains(word));
        self.content().is_none() && has(&OF_IMAGES) && !has(&OF_OTHERS)
    }

    pub fn is_compressed(&self) -> bool {
        self.encoding != Encoding::File && self.content() != Some(Content::Pixels)
    }

    /// Reports whether its images are a video, with frames that build on each other.
    pub fn is_video(&self) -> bool {
        matches!(self.content(), Some(Content::Video | Content::Packet))
    }

    pub fn layout(&self) -> ViewLayout {
        if self.encoding == Encoding::Svo { ViewLayout::SideBySide } else { ViewLayout::Whole }
    }

    pub fn has_calibrations(&self) -> bool {
        self.content() == Some(Content::Calibration)
    }
}

#[derive(Clone, Copy, Debug)]
pub enum Picture<'a> {
    Raw(Raw<'a>),
    File {
        content: &'a [u8],
        /// The message's own name of the format; empty if there is none.
        format: &'a str,
    },
    /// An access unit of a video as a byte stream. Only the first units need tell the codec.
    Unit(Option<Codec>, &'a [u8]),
}

/// Pixels of a `sensor_msgs/Image`.
#[derive(Clone, Copy, Debug)]
pub struct Raw<'a> {
    pub width: usize,
    pub height: usize,
    pub encoding: &'a str,
    pub is_big_endian: bool,
    /// Bytes from one row to the next.
    pub step: usize,
    pub data: &'a [u8],
}

/// Returns the stamp of an image in nanoseconds, and the image. A stamp of 0 was never set; the time of
/// recording takes its place.
pub fn picture<'a>(topic: &Topic, log_ns: u64, data: &'a [u8]) -> Result<(u64, Picture<'a>)> {
    let (stamp, picture) = match topic.encoding {
        Encoding::File => (0, Picture::File { content: data, format: "" }),
        Encoding::Svo => {
            let (stamp, unit) = svo::frame(data)?;
            (stamp, Picture::Unit(Codec::of_stream(unit), unit))
        }
        Encoding::Protobuf => of_protobuf(topic, data)?,
        _ => of_ros(topic, data)?,
    };
    Ok((if stamp > 0 { stamp } else { log_ns }, picture))
}

fn of_ros<'a>(topic: &Topic, data: &'a [u8]) -> Result<(u64, Picture<'a>)> {
    let mut fields = Fields::new(data, &topic.encoding)?;
    if topic.content() == Some(Content::Video) {
        let stamp = fields.time()?;
        let (_frame, data) = (fields.text()?, fields.bytes()?);
        return Ok((stamp, Picture::Unit(Some(codec(fields.text()?)?), data)));
    }
    let stamp = fields.stamp()?;
    if topic.content() == Some(Content::File) {
        let format = fields.text()?;
        return Ok((stamp, of_format(topic, format, fields.bytes()?)?));
    }
    if topic.content() == Some(Content::Packet) {
        let (_width, _height, encoding) = (fields.u32()?, fields.u32()?, fields.text()?);
        let (_pts, _flags, _is_big_endian) = (fields.f64s::<1>()?, fields.u8()?, fields.u8()?);
        return Ok((stamp, Picture::Unit(Some(codec(encoding)?), fields.bytes()?)));
    }
    let (height, width) = (fields.u32()? as usize, fields.u32()? as usize);
    let encoding = fields.text()?;
    let is_big_endian = fields.u8()? != 0;
    let step = fields.u32()? as usize;
    let data = fields.bytes()?;
    Ok((stamp, Picture::Raw(Raw { width, height, encoding, is_big_endian, step, data })))
}

/// Reads messages of the package foxglove (foxglove-sdk, schemas/proto).
fn of_protobuf<'a>(topic: &Topic, data: &'a [u8]) -> Result<(u64, Picture<'a>)> {
    let message = protobuf::Message::read(data)?;
    let picture = match topic.content() {
        Some(Content::File) => of_format(topic, message.text(3)?, message.bytes(2))?,
        Some(Content::Pixels) => Picture::Raw(Raw {
            width: message.number(2) as usize,
            height: message.number(3) as usize,
            encoding: message.text(4)?,
            is_big_endian: false,
            step: message.number(5) as usize,
            data: message.bytes(6),
        }),
        _ => Picture::Unit(Some(codec(message.text(4)?)?), message.bytes(3)),
    };
    Ok((message.stamp(1)?, picture))
}

/// Returns the image of a message that names its format: a file or, as some drivers send it, a frame of a video.
fn of_format<'a>(topic: &Topic, format: &'a str, content: &'a [u8]) -> Result<Picture<'a>> {
    ensure!(
        !format.contains("compressedDepth"),
        "the images are depth (\"{format}\"), not a camera's view"
    );
    if format == "zstd" {
        let name = &topic.name;
        let out = name.strip_suffix("/zstd").unwrap_or("/raw");
        bail!(
            "the images are of zstd_image_transport, which is not read; publish them as raw images while the \
             recording is played, and record those: ros2 run image_transport republish --ros-args -p \
             in_transport:=zstd -p out_transport:=raw -r in/zstd:={name} -r out:={out}"
        );
    }
    Ok(match Codec::of_words(format) {
        Some(codec) => Picture::Unit(Some(codec), content),
        None => Picture::File { content, format },
    })
}

fn codec(format: &str) -> Result<Codec> {
    Codec::of_words(format).with_context(|| {
        let format: String = format.chars().take(20).collect();
        format!("video in the format \"{format}\" is not read; h264 and h265 are")
    })
}

/// A `sensor_msgs/CameraInfo`: the calibration of one camera.
#[derive(Clone, Debug, PartialEq)]
pub struct CameraInfo {
    size: (usize, usize),
    model: String,
    d: Vec<f64>,
    k: [f64; 9],
    r: [f64; 9],
    /// Projection of the rectified view, row by row.
    p: [f64; 12],
    binning: [u32; 2],
    /// Offset in x and y, height, width.
    roi: [u32; 4],
}

impl CameraInfo {
    pub fn read(encoding: &Encoding, data: &[u8]) -> Result<Self> {
        if *encoding == Encoding::Protobuf {
            return Self::of_protobuf(&protobuf::Message::read(data)?);
        }
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

    fn of_protobuf(message: &protobuf::Message<'_>) -> Result<Self> {
        // A list that is not sent has zeros.
        fn matrix<const LENGTH: usize>(values: Vec<f64>) -> Result<[f64; LENGTH]> {
            ensure!(
                values.is_empty() || values.len() == LENGTH,
                "a matrix has {} numbers",
                values.len()
            );
            Ok(values.try_into().unwrap_or([0.0; LENGTH]))
        }
        let d = message.f64s(5)?;
        ensure!(d.len() <= COEFFICIENTS_MAX, "{} distortion coefficients", d.len());
        Ok(Self {
            size: (message.number(2) as usize, message.number(3) as usize),
            model: message.text(4)?.to_owned(),
            d,
            k: matrix(message.f64s(6)?)?,
            r: matrix(message.f64s(7)?)?,
            p: matrix(message.f64s(8)?)?,
            binning: [0; 2],
            roi: [0; 4],
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

    /// A `CompressedImage` with this format.
    fn compressed(format: &str) -> Vec<u8> {
        let mut data = HEADER.to_vec();
        data.extend((format.len() as u32 + 1).to_le_bytes());
        data.extend(format.as_bytes());
        data.push(0);
        data.resize(data.len().next_multiple_of(4), 0);
        data.extend([2, 0, 0, 0, 7, 8]);
        data
    }

    #[test]
    fn the_format_of_a_compressed_image_tells_its_content() {
        let topic = topic("sensor_msgs/CompressedImage");
        let error = picture(&topic, 9, &compressed("16UC1; compressedDepth png")).unwrap_err();
        assert!(error.to_string().contains("are depth"), "{error}");
        for format in ["jpeg", "bayer_rggb8; png compressed ", "mono8; jpeg compressed mono8", ""] {
            let data = compressed(format);
            let (_, Picture::File { content, format: found }) = picture(&topic, 9, &data).unwrap()
            else {
                panic!("{format}")
            };
            assert_eq!((content, found), (&[7, 8][..], format));
        }
        for (format, due) in [("h264", Codec::H264), ("h265", Codec::H265), ("hevc", Codec::H265)] {
            let data = compressed(format);
            let (_, Picture::Unit(codec, unit)) = picture(&topic, 9, &data).unwrap() else {
                panic!("{format}")
            };
            assert_eq!((codec, unit), (Some(due), &[7, 8][..]));
        }
    }

    #[test]
    fn a_packet_of_ffmpeg_is_a_frame_of_a_video() {
        let mut data = HEADER.to_vec();
        data.extend([64, 1, 0, 0, 240, 0, 0, 0, 8, 0, 0, 0]);
        data.extend(b"libx264\0");
        data.resize(data.len().next_multiple_of(8) + 4, 0);
        // Counted from behind the encapsulation: pts, flags, is_bigendian.
        data.extend([1, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 7, 8]);
        let topic = topic("ffmpeg_image_transport_msgs/FFMPEGPacket");
        let (stamp, Picture::Unit(codec, unit)) = picture(&topic, 9, &data).unwrap() else {
            panic!()
        };
        assert_eq!((stamp, codec, unit), (1_000_000_002, Some(Codec::H264), &[7, 8][..]));
        let name = data.windows(7).position(|bytes| bytes == b"libx264").unwrap();
        data[name..name + 7].copy_from_slice(b"libaom-");
        let error = picture(&topic, 9, &data).unwrap_err().to_string();
        assert!(error.contains("\"libaom-\" is not read; h264"), "{error}");
    }

    #[test]
    fn images_of_zstd_image_transport_come_with_the_line_that_converts_them() {
        let mut topic = topic("sensor_msgs/CompressedImage");
        topic.name = "/left/image_raw/zstd".to_owned();
        let error = of_format(&topic, "zstd", &[]).unwrap_err().to_string();
        let names = "-r in/zstd:=/left/image_raw/zstd -r out:=/left/image_raw";
        assert!(error.contains("zstd_image_transport") && error.ends_with(names), "{error}");
    }

    #[test]
    fn types_that_are_not_read_are_known_by_their_names() {
        let of = |kind: &str, encoding: &str| {
            let topic = Topic::new("/a", kind, Encoding::of(encoding), None);
            (topic.has_images(), topic.has_unread_images())
        };
        assert_eq!(of("foxglove.CompressedImage", "json"), (false, true));
        assert_eq!(of("theora_image_transport/msg/Packet", "cdr"), (false, true));
        assert_eq!(of("foxglove.RawImage", "protobuf"), (true, false));
        assert_eq!(of("sensor_msgs::msg::Image", "cdr"), (true, false));
        for other in ["sensor_msgs/msg/Imu", "stereo_msgs/msg/DisparityImage"] {
            assert_eq!(of(other, "cdr"), (false, false), "{other}");
        }
        assert_eq!(of("sensor_msgs/msg/CameraInfo", "cdr"), (false, false));
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
            let topic = Topic { encoding, ..topic("foxglove_msgs/CompressedVideo") };
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
            let both = [(Encoding::Cdr, &OF_ROS[..]), (Encoding::Ros1, &OF_ROS), (Encoding::Protobuf, &OF_PROTOBUF)];
            for (encoding, kinds) in both {
                for (kind, _) in kinds {
                    let _ = picture(&Topic { encoding: encoding.clone(), ..topic(kind) }, 1, &data);
                }
                if let Ok(info) = CameraInfo::read(&encoding, &data) {
                    prop_assert!(info.to_yaml().lines().count() == 14);
                }
            }
        }
    }
}
