//! Matched pairs as ROS 2 messages in CDR, for MCAP files, the Foxglove protocol and ROS 2. Topics, types and
//! conventions follow the ROS package stereo_image_proc (docs/remote.md).

mod cdr;
mod jpeg;
mod obstacles;
mod odometry;
mod schema;

use std::time::{Duration, SystemTime};

use anyhow::{Context, Result};
pub use cdr::Cdr;
use jpeg::encode_coloured;
pub use jpeg::{encode as jpeg, sampled};
use obstacles::{detections, mounting, scan};
use odometry::{grid, odometry};
pub use schema::{definition, full_name};

use crate::clock::CaptureClock;
use crate::sink::StreamInfo;
use crate::sink::colour::{ColourScale, colourise};
use crate::sink::colouring::Colouring;
use stereod_core::chroma;
use stereod_core::frame::{Image, Matched, SUBPIXEL, StereoGeometry};
use stereod_core::obstacles::Mount;
use stereod_core::picture::numbers::{DepthUnit, Numbers, Quantity};
use stereod_core::picture::png;

use self::Needs::{Confidence, Geometry, Grid, Motion, Nothing, Obstacles, Odometry, Verdicts};

/// Coordinate frame of the left camera: x to the right, y down, z forward (REP 103). All messages of a pair
/// are in it, also the right camera's; its projection has the baseline (sensor_msgs/CameraInfo,
/// image_geometry).
const FRAME: &str = "left_optical_frame";

/// Frame above the cameras', as robots count: x forward, y to the left, z up (REP 103). Its origin is that of the left
/// camera.
const BODY_FRAME: &str = "stereo_link";

/// Frame of the right camera, which only the transform has.
const RIGHT_FRAME: &str = "right_optical_frame";

pub struct Topic {
    /// Name in the settings; `None` for a topic that accompanies the others.
    pub key: Option<&'static str>,
    pub path: &'static str,
    /// Type of the messages: package and name.
    pub schema: &'static str,
    pub needs: Needs,
    encode: Encode,
}

/// Contents of the headers of a pair's messages.
#[derive(Clone, Copy, Debug, Default)]
pub struct Heading<'a> {
    /// Time of the capture since 1970.
    pub stamp: Duration,
    /// Text before the names of coordinate frames, which tells rigs apart.
    pub prefix: &'a str,
    /// Whether the place of the camera on the vehicle is that of each pair.
    pub tracks_ground: bool,
}

impl Heading<'_> {
    /// Writes a `std_msgs/Header` in this coordinate frame.
    fn write(self, cdr: &mut Cdr, frame: &str) {
        header(cdr, self.stamp, &self.named(frame));
    }

    fn named(self, frame: &str) -> String {
        format!("{}{frame}", self.prefix)
    }
}

/// Checks a prefix of coordinate frames.
pub fn check_prefix(prefix: &str) -> Result<(), String> {
    let is_known = |c: char| c.is_ascii_alphanumeric() || "_-./".contains(c);
    // tf2 refuses a slash at the beginning.
    match prefix.chars().all(is_known) && !prefix.starts_with('/') {
        true => Ok(()),
        false => Err("letters, digits and `_-./`, not `/` first, such as `front_`".into()),
    }
}

/// Requirement of a message besides the pair and its disparity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Needs {
    Nothing,
    Geometry,
    Confidence,
    /// A network that matching checks.
    Verdicts,
    Obstacles,
    /// The motion of the rig.
    Odometry,
    /// A new ground plan of the map.
    Grid,
    /// Obstacles and a mount that follows the ground, or the motion of a rig that places the vehicle.
    Motion,
}

pub static TOPICS: [Topic; 19] = [
    topic(None, "/left/camera_info", CAMERA_INFO, Geometry, |pair, at| camera_info(pair, at, 0)),
    topic(None, "/right/camera_info", CAMERA_INFO, Geometry, |pair, at| camera_info(pair, at, 1)),
    topic(None, STATIC, TRANSFORMS, Geometry, fixed_transforms),
    topic(None, MOVING, TRANSFORMS, Motion, moving_transforms),
    topic(Some("left"), "/left/image_rect", IMAGE, Nothing, left),
    topic(Some("left-jpeg"), "/left/image_rect/compressed", COMPRESSED, Nothing, compressed),
    topic(Some("right"), "/right/image_rect", IMAGE, Nothing, right),
    topic(Some("disparity"), "/disparity", "stereo_msgs/DisparityImage", Nothing, disparity),
    topic(Some("disparity-jpeg"), COLOURED, COMPRESSED, Nothing, coloured_disparity),
    topic(Some("depth"), "/depth/image_rect", IMAGE, Geometry, depth),
    topic(Some("depth-float"), "/depth/image_rect_float", IMAGE, Geometry, depth_float),
    topic(Some("depth-png"), DEPTH_PNG, COMPRESSED, Geometry, depth_png),
    topic(Some("points"), "/points2", "sensor_msgs/PointCloud2", Geometry, points),
    topic(Some("confidence"), "/confidence", IMAGE, Confidence, confidence),
    topic(Some("verdicts"), "/verdicts", IMAGE, Verdicts, verdicts),
    topic(Some("scan"), "/scan", "sensor_msgs/LaserScan", Obstacles, scan),
    topic(Some("obstacles"), "/obstacles", "vision_msgs/Detection3DArray", Obstacles, detections),
    topic(Some("odometry"), "/odom", "nav_msgs/Odometry", Odometry, odometry),
    topic(Some("grid"), "/grid", "nav_msgs/OccupancyGrid", Grid, grid),
];

/// Topic of messages that hold for the whole stream.
pub const STATIC: &str = "/tf_static";

const MOVING: &str = "/tf";

const COLOURED: &str = "/disparity/image_color/compressed";
const DEPTH_PNG: &str = "/depth/image_rect/compressedDepth";

const IMAGE: &str = "sensor_msgs/Image";
const COMPRESSED: &str = "sensor_msgs/CompressedImage";
const CAMERA_INFO: &str = "sensor_msgs/CameraInfo";
const TRANSFORMS: &str = "tf2_msgs/TFMessage";

type Encode = fn(&Matched, Heading<'_>) -> Result<Vec<u8>>;

const fn topic(
    key: Option<&'static str>,
    path: &'static str,
    schema: &'static str,
    needs: Needs,
    encode: Encode,
) -> Topic {
    Topic { key, path, schema, needs, encode }
}

impl Topic {
    /// Encodes the message of a pair.
    pub fn encode(&self, frame: &Matched, head: Heading<'_>) -> Result<Vec<u8>> {
        (self.encode)(frame, head).with_context(|| format!("topic {}", self.path))
    }

    /// Reports whether a pair has a message of the topic. While the rig is lost, its pose is not told.
    pub fn is_in(&self, frame: &Matched, head: Heading<'_>) -> bool {
        match self.needs {
            Needs::Nothing => true,
            Needs::Geometry => frame.geometry.is_some(),
            Needs::Confidence => frame.confidence.is_some(),
            Needs::Verdicts => frame.verdicts.is_some(),
            Needs::Obstacles => frame.obstacles.is_some(),
            Needs::Odometry => odometry::is_moving(frame),
            Needs::Grid => frame.grid.is_some(),
            Needs::Motion => {
                tracked_mount(frame, head.tracks_ground).is_some()
                    || odometry::place(frame, head).is_some()
            }
        }
    }

    /// Reports whether it holds until it is sent again, which is seldom.
    pub fn is_static(&self) -> bool {
        self.path == STATIC
    }

    /// Reports whether it places coordinate frames, which all programs do on the same topics.
    pub fn are_transforms(&self) -> bool {
        self.schema == TRANSFORMS
    }

    /// Reports whether pairs may lack it in a run that has it.
    pub fn is_intermittent(&self) -> bool {
        matches!(self.needs, Needs::Odometry | Needs::Grid | Needs::Motion)
    }

    /// Reports whether the newest message is kept for later subscribers, because the next one comes late or never.
    pub fn is_kept(&self) -> bool {
        self.is_static() || self.needs == Needs::Grid
    }

    /// Reports whether its subscribers ask for reliable messages, as those of transforms, odometry and maps do.
    pub fn is_reliable(&self) -> bool {
        self.are_transforms() || matches!(self.needs, Needs::Odometry | Needs::Grid)
    }
}

pub fn names(list: &str) -> impl Iterator<Item = &str> {
    list.split(',').map(str::trim).filter(|name| !name.is_empty())
}

/// Reports whether a list names a topic of obstacles.
pub fn show_obstacles(list: &str) -> bool {
    name_topic(list, Needs::Obstacles)
}

/// Reports whether a list names a topic of the rig's motion.
pub fn show_odometry(list: &str) -> bool {
    name_topic(list, Needs::Odometry) || show_grid(list)
}

/// Reports whether a list names the ground plan of the map.
pub fn show_grid(list: &str) -> bool {
    name_topic(list, Needs::Grid)
}

fn name_topic(list: &str, needs: Needs) -> bool {
    let keys = TOPICS.iter().filter(|topic| topic.needs == needs).filter_map(|topic| topic.key);
    keys.into_iter().any(|key| names(list).any(|name| name == key))
}

pub fn check_topics(list: &str) -> Result<(), String> {
    let known = || TOPICS.iter().filter_map(|topic| topic.key);
    match names(list).all(|name| known().any(|key| key == name)) {
        true => Ok(()),
        false => Err(format!("a list of {}", known().collect::<Vec<_>>().join(", "))),
    }
}

/// Returns the topics of a list, and their companions, for a rig with a prefix of its frames. An empty list is `default`,
/// limited by the known cameras and by whether obstacles are found, the motion is followed and a network is checked.
pub fn chosen(
    list: &str,
    default: &str,
    stream: &StreamInfo,
    prefix: &str,
) -> Result<Vec<&'static Topic>> {
    let is_default = names(list).next().is_none();
    let list = if is_default { default } else { list };
    let chosen = |topic: &Topic| topic.key.is_none_or(|key| names(list).any(|name| name == key));
    let moves = (stream.has_obstacles && stream.tracks_ground)
        || (stream.has_odometry && odometry::places(prefix));
    let lack = |topic: &Topic| match topic.needs {
        Needs::Geometry if stream.geometry.is_none() => {
            Some("a calibration: give --calibration FILE, or --focal and --baseline")
        }
        Needs::Verdicts if !stream.has_verdicts => {
            Some("a checked network: give --engine onnx:FILE and --check sgm")
        }
        Needs::Obstacles if !stream.has_obstacles => {
            Some("obstacles: give --set obstacles.find=true")
        }
        Needs::Odometry | Needs::Grid if !stream.has_odometry => {
            Some("the motion of the rig: give --odometry")
        }
        Needs::Motion if !moves => Some("--set mount.ground=track, or --odometry"),
        _ => None,
    };
    let mut topics = Vec::new();
    for topic in TOPICS.iter().filter(|topic| chosen(topic)) {
        match (lack(topic), topic.key) {
            (None, _) => topics.push(topic),
            (Some(lack), Some(key)) if !is_default => {
                anyhow::bail!("the topic {key} needs {lack}")
            }
            (Some(_), _) => {}
        }
    }
    Ok(topics)
}

/// Returns the time of a capture since 1970; for a source without a clock its own time, from 0.
pub fn stamp(clock: Option<CaptureClock>, time: Duration) -> Duration {
    let since = |at: SystemTime| at.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    clock.map_or(time, |clock| since(clock.time_of_day(time)))
}

#[derive(Clone, Debug, Default)]
pub struct Diagnosis {
    pub values: Vec<(&'static str, String)>,
    pub troubles: Vec<String>,
}

/// Returns a `diagnostic_msgs/DiagnosticArray` with one status: a warning if there are troubles.
pub fn diagnostics(source: &str, diagnosis: &Diagnosis, stamp: Duration) -> Vec<u8> {
    let Diagnosis { values, troubles } = diagnosis;
    const OK: u8 = 0;
    const WARN: u8 = 1;
    let level = if troubles.is_empty() { OK } else { WARN };
    let message = if troubles.is_empty() { "ok".to_owned() } else { troubles.join("; ") };
    let mut cdr = Cdr::with_room(1024);
    header(&mut cdr, stamp, "");
    cdr.length(1).u8(level).text("stereod").text(&message).text(source);
    cdr.length(values.len());
    for (key, value) in values {
        cdr.text(key).text(value);
    }
    cdr.finish()
}

/// Begins a message with a `std_msgs/Header` in the coordinate frame of the pair.
fn with_header(room: usize, head: Heading<'_>) -> Cdr {
    let mut cdr = Cdr::with_room(128 + room);
    head.write(&mut cdr, FRAME);
    cdr
}

pub fn header(cdr: &mut Cdr, stamp: Duration, frame: &str) {
    cdr.i32(stamp.as_secs() as i32).u32(stamp.subsec_nanos()).text(frame);
}

/// Writes the fields of a `sensor_msgs/Image` after its header.
fn image(
    cdr: &mut Cdr,
    (width, height): (usize, usize),
    (encoding, pixel_bytes): (&str, usize),
    fill: impl FnOnce(&mut Vec<u8>),
) {
    cdr.u32(height as u32).u32(width as u32).text(encoding).u8(0);
    cdr.u32((pixel_bytes * width) as u32).bytes(fill);
}

/// Returns a view as `mono8` or, if it has colours, as `rgb8`. Video of a grey camera has colour differences, but none
/// that says anything, and three times the bytes.
fn picture(view: &Image, head: Heading<'_>) -> Vec<u8> {
    let size = (view.width(), view.height());
    match view.chroma() {
        Some(chroma) if chroma.is_neutral() => {
            let grey = |&luma: &u8| chroma.coding().rgb(luma, chroma::NONE)[0];
            image_message(size, ("mono8", 1), head, |out| {
                out.extend(view.pixels().iter().map(grey))
            })
        }
        Some(_) => image_message(size, ("rgb8", 3), head, |out| {
            let start = out.len();
            out.resize(start + 3 * size.0 * size.1, 0);
            view.write_rgb::<3>(&mut out[start..], 3 * size.0);
        }),
        None => image_message(size, ("mono8", 1), head, |out| out.extend(view.pixels())),
    }
}

/// Returns a `sensor_msgs/Image` of an encoding with this many bytes a pixel, which `fill` appends.
fn image_message(
    (width, height): (usize, usize),
    encoding: (&str, usize),
    head: Heading<'_>,
    fill: impl FnOnce(&mut Vec<u8>),
) -> Vec<u8> {
    let mut cdr = with_header(encoding.1 * width * height, head);
    image(&mut cdr, (width, height), encoding, fill);
    cdr.finish()
}

fn left(frame: &Matched, head: Heading<'_>) -> Result<Vec<u8>> {
    Ok(picture(&frame.pair.left, head))
}

fn right(frame: &Matched, head: Heading<'_>) -> Result<Vec<u8>> {
    Ok(picture(&frame.pair.right, head))
}

fn compressed(frame: &Matched, head: Heading<'_>) -> Result<Vec<u8>> {
    Ok(jpeg_message(jpeg(&frame.pair.left, 1)?, head))
}

/// Returns disparity in the colours of the preview, for viewers without a decoder of `DisparityImage`.
fn coloured_disparity(frame: &Matched, head: Heading<'_>) -> Result<Vec<u8>> {
    let map = &frame.disparity;
    let (width, height) = (map.width(), map.height());
    let Colouring { map: colours, span } = Colouring::default();
    let mut rgb = vec![0; 3 * width * height];
    colourise::<3>(map, colours, &ColourScale::new(span, map.range()), &mut rgb, 3 * width);
    Ok(jpeg_message(encode_coloured(&rgb, (width, height))?, head))
}

fn jpeg_message(file: Vec<u8>, head: Heading<'_>) -> Vec<u8> {
    let mut cdr = with_header(file.len(), head);
    cdr.text("jpeg").bytes(|out| out.extend(file));
    cdr.finish()
}

fn confidence(frame: &Matched, head: Heading<'_>) -> Result<Vec<u8>> {
    let confidence = frame.confidence.as_ref().context("the pair has no confidence")?;
    Ok(picture(confidence, head))
}

fn verdicts(frame: &Matched, head: Heading<'_>) -> Result<Vec<u8>> {
    Ok(picture(frame.verdicts.as_ref().context("nothing checks the pair")?, head))
}

/// Returns disparity in pixels as 32-bit floats; unknown is NaN. The message defines the disparity of a point
/// at infinity as 0, even if the principal points of the views differ.
fn disparity(frame: &Matched, head: Heading<'_>) -> Result<Vec<u8>> {
    let map = &frame.disparity;
    let (width, height) = (map.width(), map.height());
    let mut cdr = with_header(4 * width * height, head);
    head.write(&mut cdr, FRAME);
    let at_infinity = frame.geometry.map_or(0.0, |it| it.centre_x_px - it.right_centre_x_px) as f32;
    image(&mut cdr, (width, height), ("32FC1", 4), |out| {
        let pixels = (0..height).flat_map(|y| (0..width).map(move |x| map.at(x, y)));
        let pixels = pixels.map(|pixel| pixel.map_or(f32::NAN, |pixel| pixel - at_infinity));
        out.extend(pixels.flat_map(f32::to_le_bytes));
    });
    let range = map.range();
    let [focal, baseline] = frame.geometry.map_or([0.0; 2], |it| [it.focal_px, it.baseline_m]);
    cdr.f32(focal as f32).f32(baseline as f32);
    region(&mut cdr, (width, height));
    let last = range.min + range.count as i32 - 1;
    let [least, most] = [range.min, last].map(|disparity| disparity as f32 - at_infinity);
    cdr.f32(least).f32(most).f32(1.0 / SUBPIXEL as f32);
    Ok(cdr.finish())
}

/// Returns depth in millimetres (REP 118); unknown is 0.
fn millimetres(frame: &Matched) -> Result<Vec<u16>> {
    let map = &frame.disparity;
    let millimetres = Quantity::Depth(DepthUnit::default());
    let numbers = Numbers::new(millimetres, map.range(), frame.geometry.as_ref())?;
    let mut stored = vec![0; map.values().len()];
    numbers.encode(map.values(), &mut stored);
    Ok(stored)
}

fn depth(frame: &Matched, head: Heading<'_>) -> Result<Vec<u8>> {
    let (map, stored) = (&frame.disparity, millimetres(frame)?);
    Ok(image_message((map.width(), map.height()), ("16UC1", 2), head, |out| {
        out.extend(stored.iter().flat_map(|number| number.to_le_bytes()));
    }))
}

/// Returns depth in metres as 32-bit floats (REP 118); unknown is NaN.
fn depth_float(frame: &Matched, head: Heading<'_>) -> Result<Vec<u8>> {
    let (map, geometry) = (&frame.disparity, geometry(frame)?);
    let (width, height) = (map.width(), map.height());
    Ok(image_message((width, height), ("32FC1", 4), head, |out| {
        let pixels = (0..height).flat_map(|y| (0..width).map(move |x| map.at(x, y)));
        let metres = pixels.map(|pixel| geometry.depth_m(pixel?.into()));
        out.extend(metres.flat_map(|z| z.map_or(f32::NAN, |z| z as f32).to_le_bytes()));
    }))
}

/// Returns depth in millimetres as image_transport's plug-in compressedDepth does: a header of 12 bytes,
/// which 16-bit depth does not use, before a PNG.
fn depth_png(frame: &Matched, head: Heading<'_>) -> Result<Vec<u8>> {
    let map = &frame.disparity;
    let file = png::encode_numbers(
        &millimetres(frame)?,
        (map.width(), map.height()),
        &DepthUnit::default().describe(),
    )?;
    let mut cdr = with_header(12 + file.len(), head);
    cdr.text("16UC1; compressedDepth png").bytes(|out| {
        out.extend([0; 12]);
        out.extend(file);
    });
    Ok(cdr.finish())
}

/// Returns a point for every pixel, in rows like the image, in metres; unknown is NaN. The colour is
/// packed into a float, as PCL has it.
fn points(frame: &Matched, head: Heading<'_>) -> Result<Vec<u8>> {
    const FLOAT32: u8 = 7;
    let (map, geometry) = (&frame.disparity, geometry(frame)?);
    let (width, height) = (map.width(), map.height());
    let mut cdr = with_header(16 * width * height, head);
    cdr.u32(height as u32).u32(width as u32).length(4);
    for (number, name) in ["x", "y", "z", "rgb"].into_iter().enumerate() {
        cdr.text(name).u32(4 * number as u32).u8(FLOAT32).u32(1);
    }
    cdr.u8(0).u32(16).u32(16 * width as u32).bytes(|out| {
        for (x, y) in (0..height).flat_map(|y| (0..width).map(move |x| (x, y))) {
            let disparity = map.at(x, y).map(f64::from);
            let point = disparity.and_then(|d| geometry.point_m(x as f64, y as f64, d));
            let point = point.map_or([f32::NAN; 3], |point| point.map(|along| along as f32));
            out.extend(point.into_iter().flat_map(f32::to_le_bytes));
            let [red, green, blue] = frame.pair.left.rgb_at(x, y);
            out.extend([blue, green, red, 0]);
        }
    });
    cdr.u8(0);
    Ok(cdr.finish())
}

/// Returns the calibration of a rectified camera. `p` projects points of the left camera's frame, so the
/// right one has minus focal length times baseline in its fourth column.
fn camera_info(frame: &Matched, head: Heading<'_>, camera: usize) -> Result<Vec<u8>> {
    let geometry = geometry(frame)?;
    let centre = [geometry.centre_x_px, geometry.right_centre_x_px][camera];
    let (focal, row) = (geometry.focal_px, geometry.centre_y_px);
    let shift = [0.0, -focal * geometry.baseline_m][camera];
    let size = (frame.disparity.width(), frame.disparity.height());
    let mut cdr = with_header(400, head);
    cdr.u32(size.1 as u32).u32(size.0 as u32).text("plumb_bob").length(5).f64s(&[0.0; 5]);
    cdr.f64s(&[focal, 0.0, centre, 0.0, focal, row, 0.0, 0.0, 1.0]);
    cdr.f64s(&[1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0]);
    cdr.f64s(&[focal, 0.0, centre, shift, 0.0, focal, row, 0.0, 0.0, 0.0, 1.0, 0.0]);
    cdr.u32(0).u32(0);
    region(&mut cdr, (0, 0));
    Ok(cdr.finish())
}

/// Writes a `sensor_msgs/RegionOfInterest` at the first pixel.
fn region(cdr: &mut Cdr, (width, height): (usize, usize)) {
    cdr.u32(0).u32(0).u32(height as u32).u32(width as u32).u8(0);
}

/// A `geometry_msgs/TransformStamped` without its stamp: the outer and the inner frame, and the inner one's position in
/// metres and attitude as a quaternion (x, y, z, w).
type Transform = (String, String, [f64; 3], [f64; 4]);

const NOT_TURNED: [f64; 4] = [0.0, 0.0, 0.0, 1.0];

/// Returns the place of the left camera in the robot's axes, and of the right camera in the frame of the left one; with
/// obstacles or odometry also the place of the left camera on the vehicle, if it holds for the whole stream.
fn fixed_transforms(frame: &Matched, head: Heading<'_>) -> Result<Vec<u8>> {
    let geometry = geometry(frame)?;
    let [body, left, right] = [BODY_FRAME, FRAME, RIGHT_FRAME].map(|frame| head.named(frame));
    let mut transforms: Vec<Transform> = vec![
        // Forward, x, is the camera's z; left, y, its -x; up, z, its -y.
        (body, left.clone(), [0.0; 3], [-0.5, 0.5, -0.5, 0.5]),
        (left, right, [geometry.baseline_m, 0.0, 0.0], NOT_TURNED),
    ];
    let fixed = fixed_mount(frame, head.tracks_ground);
    // A scan is among the obstacles.
    let frames = if frame.obstacles.is_some() { 2 } else { 1 };
    transforms.extend(fixed.iter().flat_map(|mount| mounting(mount, head)).take(frames));
    Ok(transform_message(&transforms, head))
}

/// The cameras and their place on the vehicle, which [`STATIC`] tells.
pub type Placed = Option<(StereoGeometry, Option<Mount>)>;

/// Returns what [`STATIC`] would tell with a pair. It is sent again if that has changed, as somebody may tune the mount.
pub fn placed(frame: &Matched, tracks_ground: bool) -> Placed {
    frame.geometry.map(|geometry| (geometry, fixed_mount(frame, tracks_ground)))
}

/// Returns the place of the left camera on the vehicle, if it is known and holds for the whole stream.
fn fixed_mount(frame: &Matched, tracks_ground: bool) -> Option<Mount> {
    match (&frame.obstacles, &frame.odometry) {
        (Some(found), _) => (!tracks_ground).then_some(found.mount),
        (None, odometry) => odometry.as_ref().map(|odometry| odometry.mount),
    }
}

/// Returns the place of the left camera on the vehicle, if it is that of the pair.
fn tracked_mount(frame: &Matched, tracks_ground: bool) -> Option<Mount> {
    frame.obstacles.as_ref().filter(|_| tracks_ground).map(|found| found.mount)
}

/// Returns the places of the vehicle and of the left camera on it at the time of the pair, as far as they are known.
fn moving_transforms(frame: &Matched, head: Heading<'_>) -> Result<Vec<u8>> {
    let vehicle = odometry::place(frame, head).into_iter();
    let mount = tracked_mount(frame, head.tracks_ground);
    let transforms = vehicle.chain(mount.iter().flat_map(|mount| mounting(mount, head)));
    Ok(transform_message(&transforms.collect::<Vec<_>>(), head))
}

/// Returns a `tf2_msgs/TFMessage`.
fn transform_message(transforms: &[Transform], head: Heading<'_>) -> Vec<u8> {
    let mut cdr = Cdr::with_room(512);
    cdr.length(transforms.len());
    for (outer, inner, position, attitude) in transforms {
        header(&mut cdr, head.stamp, outer);
        cdr.text(inner).f64s(position).f64s(attitude);
    }
    cdr.finish()
}

fn geometry(frame: &Matched) -> Result<&StereoGeometry> {
    frame.geometry.as_ref().context("the cameras are not known; give a calibration")
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::labels::Labels;
    use crate::sink::StagesInTime;
    use stereod_core::chroma::{Chroma, ChromaPlane, ColourCoding};
    use stereod_core::frame::{DisparityMap, DisparityRange, StereoPair};
    use stereod_core::pool::{Pool, Pooled};

    #[test]
    fn a_grey_camera_behind_a_codec_is_sent_as_grey() {
        let view = |differences: [u8; 2]| {
            let samples = Pooled::unpooled(vec![differences; 2]);
            let plane = ChromaPlane::new((4, 2), [1, 1], samples);
            // Video range: 126 is 50 % grey.
            let coding = ColourCoding::new(0.2126, 0.0722, false);
            let chroma = Chroma::new(coding, plane, Pool::new());
            picture(
                &Image::from_vec(4, 2, vec![126; 8]).with_chroma(Some(chroma)),
                Heading::default(),
            )
        };
        let has = |message: &[u8], text: &str| {
            message.windows(text.len()).any(|at| at == text.as_bytes())
        };
        let grey = view([128, 127]);
        assert!(has(&grey, "mono8") && grey.ends_with(&[128; 8]), "{grey:?}");
        assert!(has(&view([140, 128]), "rgb8"));
    }

    /// Returns a pair that every topic can be made of.
    pub(super) fn matched() -> Matched {
        let geometry = StereoGeometry {
            focal_px: 400.0,
            baseline_m: 0.1,
            centre_x_px: 4.0,
            centre_y_px: 2.0,
            right_centre_x_px: 4.0,
        };
        let image = || Image::from_vec(8, 4, vec![9; 32]);
        let range = DisparityRange { min: 0, count: 4 };
        let map = DisparityMap::of_values(8, range, vec![16; 32]);
        let mut frame = Matched::new(StereoPair::of_stills(image(), image()), map);
        frame.geometry = Some(geometry);
        frame.confidence = Some(image());
        frame.verdicts = Some(image());
        frame.obstacles = Some(obstacles::tests::obstacles());
        frame.odometry = Some(Box::new(odometry::tests::odometry()));
        frame.grid = Some(Arc::new(odometry::tests::grid()));
        frame
    }

    #[test]
    fn a_prefix_is_before_every_frame() {
        let frame = matched();
        for topic in &TOPICS {
            let tracks_ground = topic.path == MOVING;
            let head = Heading { prefix: "front_", tracks_ground, ..Heading::default() };
            let message = topic.encode(&frame, head).unwrap();
            let count = |text: &[u8]| message.windows(text.len()).filter(|at| *at == text).count();
            let frames =
                [FRAME, BODY_FRAME, RIGHT_FRAME, "stereo_scan", odometry::ODOM_FRAME, "base_link"];
            let named = frames.map(|frame| count(frame.as_bytes()));
            let prefixed = frames.map(|frame| count(head.named(frame).as_bytes()));
            // The vehicle is that of all rigs.
            assert_eq!((&prefixed[..5], prefixed[5]), (&named[..5], 0), "{}", topic.path);
            let expected = match topic.path {
                STATIC => [2, 2, 1, 1, 0, 2],
                "/disparity" => [2, 0, 0, 0, 0, 0],
                MOVING => [0, 1, 0, 1, 0, 2],
                "/scan" => [0, 0, 0, 1, 0, 0],
                "/obstacles" => [0, 0, 0, 0, 0, 3],
                "/odom" => [0, 0, 0, 0, 1, 1],
                "/grid" => [0, 0, 0, 0, 1, 0],
                _ => [1, 0, 0, 0, 0, 0],
            };
            assert_eq!(named, expected, "{}", topic.path);
        }
        for (prefix, is_known) in [("", true), ("rig1/", true), ("/rig1", false), ("a b", false)] {
            assert_eq!(check_prefix(prefix).is_ok(), is_known, "{prefix}");
        }
    }

    #[test]
    fn topics_that_cannot_be_made_are_refused_with_the_cure() {
        let known = StreamInfo {
            size: (8, 4),
            rate: None,
            range: DisparityRange { min: 0, count: 4 },
            geometry: matched().geometry,
            has_colour: false,
            has_odometry: false,
            has_obstacles: true,
            has_verdicts: false,
            tracks_ground: false,
            clock: None,
            stages: StagesInTime::default(),
            labels: Labels::default(),
        };
        let (without, unknown) = (
            StreamInfo { has_obstacles: false, ..known },
            StreamInfo { geometry: None, has_obstacles: false, ..known },
        );
        let keys = |list: &str, stream: &StreamInfo| {
            let topics = chosen(list, "left, depth, scan, odometry", stream, "");
            topics.map(|topics| topics.iter().filter_map(|topic| topic.key).collect::<Vec<_>>())
        };
        assert_eq!(keys("", &known).unwrap(), ["left", "depth", "scan"]);
        assert_eq!(keys("", &without).unwrap(), ["left", "depth"]);
        assert_eq!(keys("", &unknown).unwrap(), ["left"]);
        assert_eq!(keys("obstacles,scan", &known).unwrap(), ["scan", "obstacles"]);
        let moves = |stream: &StreamInfo, prefix: &str| {
            let topics = chosen("left", "", stream, prefix).unwrap();
            topics.iter().any(|topic| topic.path == MOVING)
        };
        assert!(moves(&StreamInfo { tracks_ground: true, ..known }, "a_") && !moves(&known, ""));
        assert!(!moves(&StreamInfo { tracks_ground: true, ..without }, ""));
        let followed = StreamInfo { has_odometry: true, ..known };
        assert!(moves(&followed, "") && !moves(&followed, "a_"));
        assert_eq!(keys("", &followed).unwrap(), ["left", "depth", "scan", "odometry"]);
        let refused = |list, stream| keys(list, stream).unwrap_err().to_string();
        assert_eq!(
            refused("scan", &without),
            "the topic scan needs obstacles: give --set obstacles.find=true"
        );
        assert!(refused("left,depth", &unknown).contains("--calibration FILE"));
        assert!(refused("left,odometry", &known).contains("give --odometry"));
        let checked = StreamInfo { has_verdicts: true, ..known };
        assert_eq!(keys("verdicts", &checked).unwrap(), ["verdicts"]);
        assert!(refused("verdicts", &known).contains("--check sgm"));
    }

    #[test]
    fn the_layout_for_viewers_shows_topics_that_are_sent() {
        let text = include_str!("../../../../docs/foxglove-layout.json");
        let layout: serde_json::Value = serde_json::from_str(text).unwrap();
        let panels = layout["configById"].as_object().unwrap();
        let mut shown = Vec::new();
        for panel in panels.values() {
            let image = &panel["imageMode"];
            shown.extend([&image["imageTopic"], &image["calibrationTopic"]].map(|it| it.as_str()));
            let clouds = panel["topics"].as_object();
            shown.extend(clouds.into_iter().flat_map(|topics| topics.keys().map(|it| Some(&**it))));
        }
        for topic in shown.iter().flatten() {
            assert!(TOPICS.iter().any(|known| known.path == *topic), "{topic}");
        }
        assert_eq!(panels["3D!points"]["followTf"], BODY_FRAME);
        assert!(shown.contains(&Some("/disparity/image_color/compressed")), "{shown:?}");
        // Millimetres up to 10 m; Lichtblick's default reaches to 65535.
        assert_eq!(panels["Image!depth"]["imageMode"]["maxValue"], 10_000);
        // Every panel of the mosaic is described.
        let mosaic = layout["layout"].to_string();
        assert!(panels.keys().all(|name| mosaic.contains(name)), "{mosaic}");
    }
}
