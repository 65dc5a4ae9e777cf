//! Point clouds: the pixels of a disparity map as coloured points in space.

mod filters;
mod las;

use std::path::Path;

use anyhow::{Result, bail};
use serde::Deserialize;

use crate::files;
use crate::floats::floats;
use crate::frame::{DisparityMap, Image, StereoGeometry};
use crate::matching::confidence::{DEVIATION_LIMITS, deviation_px};
use crate::pose::{Odometry, Pose};

/// Property of points with a known confidence: standard deviation of z in metres, provided that the disparity
/// is right within 1 px; NaN if unknown.
const DEVIATION: &str = "z_std";

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CloudFormat {
    /// `.ply`: Stanford's polygon format.
    #[default]
    Ply,
    /// `.pcd`: the format of the Point Cloud Library.
    Pcd,
    /// `.las`: the format of laser scans.
    Las,
}

impl CloudFormat {
    pub fn of(path: &Path) -> Result<Self> {
        match files::extension(path).as_str() {
            "ply" => Ok(Self::Ply),
            "pcd" => Ok(Self::Pcd),
            "las" => Ok(Self::Las),
            _ => bail!(
                "cannot tell the format of {}: name a point cloud .ply, .pcd or .las",
                path.display()
            ),
        }
    }

    pub fn extension(self) -> &'static str {
        match self {
            Self::Ply => "ply",
            Self::Pcd => "pcd",
            Self::Las => "las",
        }
    }
}

/// Directions of the axes, with the origin in the left camera.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Axes {
    /// x to the right, y down, z forward, as in OpenCV and ROS' optical frames.
    #[default]
    Opencv,
    /// x to the right, y up, z backward, as in OpenGL and Maya.
    YUp,
}

impl Axes {
    /// Returns a pose between frames with the axes of OpenCV as one between frames with these axes.
    fn of_pose(self, pose: Pose) -> Pose {
        match self {
            Axes::Opencv => pose,
            Axes::YUp => pose.with_axes([1.0, -1.0, -1.0]),
        }
    }

    pub fn words(self) -> &'static str {
        match self {
            Axes::Opencv => "x right, y down, z forward",
            Axes::YUp => "x right, y up, z backward",
        }
    }
}

/// Choice of the points of a cloud, its axes, and the pose in its header.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct CloudOptions {
    pub axes: Axes,
    /// Depth in metres of the nearest points, if limited.
    pub near_m: Option<f64>,
    /// Depth in metres of the farthest points, if limited.
    pub far_m: Option<f64>,
    /// Standard deviations of the distance to neighbours beyond which outliers are removed, if they are.
    pub outliers: Option<f64>,
    /// Side in metres of the cubes for averaging points, if enabled.
    pub voxel_m: Option<f64>,
    /// Place of the left camera for the header; `None` without odometry.
    pub place: Option<Place>,
}

/// Place of the left camera in its own frame at the first pair of the stream; points stay in the camera's own axes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Place {
    /// With the axes of OpenCV.
    Known(Pose),
    /// The rig is lost.
    Lost,
}

impl From<&Odometry> for Place {
    fn from(odometry: &Odometry) -> Self {
        match odometry.lost {
            None => Self::Known(odometry.pose),
            Some(_) => Self::Lost,
        }
    }
}

impl CloudOptions {
    /// Returns the line of the header about the camera's place, which `mark` begins, and the pose: position and
    /// quaternion w, x, y, z.
    fn header(&self, mark: &str) -> (String, [f64; 7]) {
        let unknown = [0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0];
        let pose = match self.place {
            None => return (String::new(), unknown),
            Some(Place::Lost) => {
                return (format!("{mark} camera: lost, its pose is not known\n"), unknown);
            }
            Some(Place::Known(pose)) => self.axes.of_pose(pose),
        };
        let ([right, down, ahead], [x, y, z, w]) = (pose.position_m, pose.quaternion());
        let numbers = [right, down, ahead, w, x, y, z];
        let words = format!(
            "{mark} camera in its frame at the first pair, x y z qw qx qy qz: {}\n",
            spaced(&numbers)
        );
        (words, numbers)
    }

    fn takes(&self, depth_m: f64) -> bool {
        self.near_m.is_none_or(|near| depth_m >= near)
            && self.far_m.is_none_or(|far| depth_m <= far)
    }
}

/// Returns numbers in a row. Zero has no sign.
fn spaced(numbers: &[f64]) -> String {
    numbers.iter().map(|number| (number + 0.0).to_string()).collect::<Vec<_>>().join(" ")
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Point {
    /// In metres.
    position: [f32; 3],
    /// Red, green and blue.
    colour: [u8; 3],
    /// Standard deviation of z in metres; NaN if unknown.
    deviation: f32,
}

const PLY: &str = "ply\nformat binary_little_endian 1.0\ncomment stereod";

const PCD: &str = "# .PCD v0.7 - Point Cloud Data file format\n# stereod";

/// Writes the file of [`encode_cloud`] in the format of the path's extension, and returns the number of points.
pub fn write_cloud(
    path: &Path,
    map: &DisparityMap,
    confidence: Option<&Image>,
    geometry: &StereoGeometry,
    options: CloudOptions,
    colour: impl Fn(usize, usize) -> [u8; 3],
) -> Result<usize> {
    let format = CloudFormat::of(path)?;
    let (file, count) = encode_cloud(format, map, confidence, geometry, options, colour)?;
    files::write_whole(path, &file)?;
    Ok(count)
}

/// Encodes every pixel with a finite depth within the limits as a point in metres, with the colour that `colour`
/// gives for pixel (x, y), after the filters of the options. Also returns the number of points.
///
/// PLY (Turk, "The PLY Polygon File Format") and PCD files are binary, and have the standard deviation of z if the
/// confidence is known. The place of the camera is a comment of PLY files and the viewpoint of PCD files.
pub fn encode_cloud(
    format: CloudFormat,
    map: &DisparityMap,
    confidence: Option<&Image>,
    geometry: &StereoGeometry,
    options: CloudOptions,
    colour: impl Fn(usize, usize) -> [u8; 3],
) -> Result<(Vec<u8>, usize)> {
    let points = points(map, confidence, geometry, options, colour);
    let has_deviation = confidence.is_some();
    let file = match format {
        CloudFormat::Ply => ply(&points, has_deviation, &options),
        CloudFormat::Pcd => pcd(&points, has_deviation, &options),
        CloudFormat::Las => las::encode(&points),
    };
    Ok((file, points.len()))
}

fn points(
    map: &DisparityMap,
    confidence: Option<&Image>,
    geometry: &StereoGeometry,
    options: CloudOptions,
    colour: impl Fn(usize, usize) -> [u8; 3],
) -> Vec<Point> {
    let point = |(pixel, disparity): (usize, f32)| {
        let (x, y) = (pixel % map.width(), pixel / map.width());
        let disparity = f64::from(disparity);
        // None if the disparity is unknown, i.e. NaN.
        let [right, down, forward] = geometry.point_m(x as f64, y as f64, disparity)?;
        if !options.takes(forward) {
            return None;
        }
        let position = match options.axes {
            Axes::Opencv => [right, down, forward],
            Axes::YUp => [right, -down, -forward],
        };
        let deviation = confidence
            .and_then(|confidence| deviation_px(confidence.row(y)[x]))
            .and_then(|px| geometry.depth_deviation_m(disparity, px));
        Some(Point {
            position: position.map(|metres| metres as f32),
            colour: colour(x, y),
            deviation: deviation.map_or(f32::NAN, |metres| metres as f32),
        })
    };
    let pixels = floats(map).into_iter().enumerate().map(point);
    let points: Vec<Point> = match options.outliers {
        None => pixels.flatten().collect(),
        Some(ratio) => {
            let mut grid: Vec<Option<Point>> = pixels.collect();
            filters::remove_outliers(&mut grid, map.width(), ratio);
            grid.into_iter().flatten().collect()
        }
    };
    match options.voxel_m {
        None => points,
        Some(size) => filters::average_voxels(points, size),
    }
}

fn ply(points: &[Point], has_deviation: bool, options: &CloudOptions) -> Vec<u8> {
    let (count, axes, (place, _)) = (points.len(), options.axes.words(), options.header("comment"));
    let (limits, deviation) = match has_deviation {
        true => (
            format!("comment {DEVIATION}: {DEVIATION_LIMITS}\n"),
            format!("property float {DEVIATION}\n"),
        ),
        false => Default::default(),
    };
    let header = format!(
        "{PLY}: metres from the left camera, {axes}\n{place}{limits}\
         element vertex {count}\nproperty float x\nproperty float y\nproperty float z\n\
         property uchar red\nproperty uchar green\nproperty uchar blue\n{deviation}end_header\n"
    );
    with_points(header, points, has_deviation, |colour| colour)
}

/// Encodes points as <https://pointclouds.org/documentation/tutorials/pcd_file_format.html> has them: the colour is
/// 0x00RRGGBB, stored as if it were a float.
fn pcd(points: &[Point], has_deviation: bool, options: &CloudOptions) -> Vec<u8> {
    let (count, axes) = (points.len(), options.axes.words());
    let (place, viewpoint) = options.header("#");
    let viewpoint = spaced(&viewpoint);
    let fields = if has_deviation { 5 } else { 4 };
    let line = |name: &str, words: [&str; 5]| format!("{name} {}\n", words[..fields].join(" "));
    let [names, sizes, types, counts] = [
        line("FIELDS", ["x", "y", "z", "rgb", DEVIATION]),
        line("SIZE", ["4"; 5]),
        line("TYPE", ["F"; 5]),
        line("COUNT", ["1"; 5]),
    ];
    let limits = match has_deviation {
        true => format!("# {DEVIATION}: {DEVIATION_LIMITS}\n"),
        false => String::new(),
    };
    let header = format!(
        "{PCD}: metres from the left camera, {axes}\n{place}{limits}VERSION 0.7\n{names}{sizes}{types}{counts}\
         WIDTH {count}\nHEIGHT 1\nVIEWPOINT {viewpoint}\nPOINTS {count}\nDATA binary\n"
    );
    with_points(header, points, has_deviation, |[red, green, blue]| [blue, green, red, 0])
}

fn with_points<const N: usize>(
    header: String,
    points: &[Point],
    has_deviation: bool,
    colour: impl Fn([u8; 3]) -> [u8; N],
) -> Vec<u8> {
    let mut file = header.into_bytes();
    for point in points {
        file.extend(point.position.into_iter().flat_map(f32::to_le_bytes));
        file.extend(colour(point.colour));
        if has_deviation {
            file.extend(point.deviation.to_le_bytes());
        }
    }
    file
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::INVALID;
    use crate::pool::Pooled;

    /// Bytes of a point in PLY: three floats and three bytes of colour.
    const POINT_BYTES: usize = 15;

    #[test]
    fn points_lie_where_the_geometry_says() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.ply");
        let geometry = StereoGeometry {
            focal_px: 100.0,
            baseline_m: 0.5,
            centre_x_px: 1.0,
            centre_y_px: 0.0,
            right_centre_x_px: 1.0,
        };
        // 25 px: 2 m; unknown; at infinity; 12.5 px: 4 m.
        let values = vec![400, INVALID, 0, 200];
        let map = DisparityMap::new(
            2,
            2,
            crate::frame::DisparityRange { min: 0, count: 64 },
            Pooled::unpooled(values),
        );
        let image = Image::from_fn(2, 2, |x, y| (100 * y + 10 * x) as u8);
        assert_eq!(
            write_cloud(&path, &map, None, &geometry, Default::default(), |x, y| image
                .rgb_at(x, y))
            .unwrap(),
            2
        );
        let file = std::fs::read(&path).unwrap();
        let end = file.windows(11).position(|w| w == b"end_header\n").unwrap() + 11;
        let header = String::from_utf8(file[..end].to_vec()).unwrap();
        assert!(header.contains("element vertex 2\n"), "{header}");
        let points: Vec<_> = file[end..].chunks_exact(POINT_BYTES).collect();
        let of = |point: &[u8]| {
            let float = |i: usize| f32::from_le_bytes(point[4 * i..4 * i + 4].try_into().unwrap());
            ([float(0), float(1), float(2)], [point[12], point[13], point[14]])
        };
        assert_eq!(of(points[0]), ([-0.02, 0.0, 2.0], [0, 0, 0]));
        assert_eq!(of(points[1]), ([0.0, 0.04, 4.0], [110, 110, 110]));
        let colour = |x, y| image.rgb_at(x, y);
        let name = dir.path().join("a.xyz");
        let wrong = write_cloud(&name, &map, None, &geometry, Default::default(), colour);
        assert!(wrong.unwrap_err().to_string().contains(".ply"));

        // 2^2 / 50 times 0.27 px; nothing is known of the other point's.
        let confidence = Image::from_vec(2, 2, vec![255, 0, 255, 1]);
        let encoded = |format, confidence: Option<&Image>, options| {
            encode_cloud(format, &map, confidence, &geometry, options, colour).unwrap()
        };
        let options = CloudOptions::default();
        let (file, count) = encoded(CloudFormat::Ply, Some(&confidence), options);
        let end = file.windows(11).position(|w| w == b"end_header\n").unwrap() + 11;
        let header = std::str::from_utf8(&file[..end]).unwrap();
        assert!(header.contains("\ncomment z_std: standard deviation if "), "{header}");
        assert!(header.contains("property float z_std\n"), "{header}");
        let points: Vec<_> = file[end..].chunks_exact(POINT_BYTES + 4).collect();
        assert_eq!((points.len(), count), (2, 2));
        let deviation = |point: &[u8]| f32::from_le_bytes(point[15..].try_into().unwrap());
        assert!((deviation(points[0]) - 0.0216).abs() < 1e-6 && deviation(points[1]).is_nan());

        // Only the point at 4 m, with the other axes.
        let limits =
            CloudOptions { axes: Axes::YUp, near_m: Some(2.5), far_m: Some(4.0), ..options };
        let (file, count) = encoded(CloudFormat::Ply, None, limits);
        assert_eq!(count, 1);
        let end = file.windows(11).position(|w| w == b"end_header\n").unwrap() + 11;
        assert_eq!(of(&file[end..]).0, [0.0, -0.04, -4.0]);
        assert!(String::from_utf8_lossy(&file[..end]).contains("y up, z backward"));
        let limits = CloudOptions { far_m: Some(3.9), ..limits };
        assert_eq!(encoded(CloudFormat::Ply, None, limits).1, 0);

        let (file, _) = encoded(CloudFormat::Pcd, Some(&confidence), options);
        assert!(file.starts_with(PCD.as_bytes()));
        let end = file.windows(12).position(|w| w == b"DATA binary\n").unwrap() + 12;
        let header = std::str::from_utf8(&file[..end]).unwrap();
        assert!(header.contains("\n# z_std: standard deviation if "), "{header}");
        assert!(header.contains("FIELDS x y z rgb z_std\nSIZE 4 4 4 4 4\n"), "{header}");
        let points: Vec<_> = file[end..].chunks_exact(20).collect();
        assert_eq!((points.len(), &points[1][12..16]), (2, &[110, 110, 110, 0][..]));

        // Both points are in one cube of 10 m, and far apart from each other.
        let voxel = CloudOptions { voxel_m: Some(10.0), near_m: Some(1.0), ..options };
        assert_eq!(encoded(CloudFormat::Ply, None, voxel).1, 2, "x is on both sides of 0");
        let voxel = CloudOptions { outliers: Some(2.0), voxel_m: None, ..voxel };
        assert_eq!(encoded(CloudFormat::Ply, None, voxel).1, 2);
    }

    #[test]
    fn headers_have_the_place_of_the_camera() {
        // The camera has turned to its right by 90 degrees, about y, which points down.
        let rotation = [[0.0, 0.0, 1.0], [0.0, 1.0, 0.0], [-1.0, 0.0, 0.0]];
        let pose = Pose { rotation, position_m: [1.0, -0.25, 3.0] };
        let of = |place, axes| CloudOptions { place, axes, ..CloudOptions::default() };
        let header = |file: Vec<u8>| String::from_utf8(file).unwrap();
        let half = 0.5_f64.sqrt();
        let known = Some(Place::Known(pose));
        let viewpoint = |options: &CloudOptions| {
            let file = header(pcd(&[], false, options));
            let line = file.lines().find_map(|line| line.strip_prefix("VIEWPOINT ")).unwrap();
            let numbers = line.split(' ').map(|number| number.parse::<f64>().unwrap());
            (numbers.collect::<Vec<_>>(), file.contains("# camera: lost"))
        };
        let is = |(numbers, lost): (Vec<f64>, bool), expected: [f64; 7]| {
            !lost && numbers.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-12)
        };
        let opencv = of(known, Axes::Opencv);
        assert!(is(viewpoint(&opencv), [1.0, -0.25, 3.0, half, 0.0, half, 0.0]));
        // A turn to the right about an axis that points up.
        let y_up = of(known, Axes::YUp);
        assert!(is(viewpoint(&y_up), [1.0, 0.25, -3.0, half, 0.0, -half, 0.0]));
        let none = [0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0];
        assert!(is(viewpoint(&of(None, Axes::Opencv)), none));
        assert_eq!(viewpoint(&of(Some(Place::Lost), Axes::YUp)), (none.to_vec(), true));

        let file = header(ply(&[], false, &opencv));
        let line =
            "\ncomment camera in its frame at the first pair, x y z qw qx qy qz: 1 -0.25 3 0.7071";
        assert!(file.contains(line), "{file}");
        assert!(!header(ply(&[], false, &of(None, Axes::Opencv))).contains("comment camera"));
    }

    #[test]
    fn las_has_units_that_fit() {
        let of = |metres: f32| {
            let point =
                Point { position: [1.0, -2.0, metres], colour: [1, 2, 255], deviation: 0.0 };
            let file = las::encode(&[point]);
            let mut reader = ::las::Reader::new(std::io::Cursor::new(file)).unwrap();
            let read = reader.read_all().unwrap();
            let colours: Vec<_> = read.rgb().unwrap().collect();
            assert_eq!(colours, [(257, 514, 65535)]);
            [read.x().next(), read.y().next(), read.z().next()].map(Option::unwrap)
        };
        assert_eq!(of(3.25), [1.0, -2.0, 3.25]);
        assert_eq!(of(1e6), [1.0, -2.0, 1e6]);
    }
}
