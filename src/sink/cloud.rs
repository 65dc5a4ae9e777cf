//! Point clouds: the pixels of a disparity map as coloured points in space.

use std::path::Path;

use anyhow::{Result, bail};
use serde::Deserialize;

use crate::core::frame::{DisparityMap, Image, StereoGeometry};
use crate::matching::confidence::deviation_px;
use crate::sink::files;

/// Bytes of a point: three floats and three bytes of colour.
const POINT_BYTES: usize = 15;

/// Property of points whose confidence is known: standard deviation of z in metres, provided that the
/// disparity is right within 1 px; NaN where nothing is known of it.
const DEVIATION: &str = "property float z_std\n";

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
    /// Returns the directions of the axes in words.
    pub fn words(self) -> &'static str {
        match self {
            Axes::Opencv => "x right, y down, z forward",
            Axes::YUp => "x right, y up, z backward",
        }
    }
}

/// Choice of the points of a cloud, and its axes.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct CloudOptions {
    /// Axes.
    pub axes: Axes,
    /// Depth in metres of the nearest points, if limited.
    pub near_m: Option<f64>,
    /// Depth in metres of the farthest points, if limited.
    pub far_m: Option<f64>,
}

impl CloudOptions {
    /// Reports whether points at this depth are in the cloud.
    fn takes(&self, depth_m: f64) -> bool {
        self.near_m.is_none_or(|near| depth_m >= near)
            && self.far_m.is_none_or(|far| depth_m <= far)
    }
}

/// Checks that a path names a point cloud.
pub fn check_name(path: &Path) -> Result<()> {
    if files::extension(path) != "ply" {
        bail!("cannot write {}: point clouds are PLY files; name it .ply", path.display());
    }
    Ok(())
}

/// First bytes of every file.
const MAGIC: &str = "ply\nformat binary_little_endian 1.0\ncomment stereod";

/// Reports whether a file with these first bytes is a point cloud of stereod.
pub fn is_cloud(begin: &[u8]) -> bool {
    begin.starts_with(MAGIC.as_bytes())
}

/// Writes the file of [`encode_cloud`], and returns the number of points.
pub fn write_cloud(
    path: &Path,
    map: &DisparityMap,
    confidence: Option<&Image>,
    geometry: &StereoGeometry,
    options: CloudOptions,
    colour: impl Fn(usize, usize) -> [u8; 3],
) -> Result<usize> {
    check_name(path)?;
    let (file, count) = encode_cloud(map, confidence, geometry, options, colour);
    files::write_whole(path, &file)?;
    Ok(count)
}

/// Encodes every pixel with a finite depth within the limits as a point of a binary PLY file (Turk, "The
/// PLY Polygon File Format") in metres, with the colour that `colour` gives for pixel (x, y), and the
/// standard deviation of z if the confidence is known. Also returns the number of points.
pub fn encode_cloud(
    map: &DisparityMap,
    confidence: Option<&Image>,
    geometry: &StereoGeometry,
    options: CloudOptions,
    colour: impl Fn(usize, usize) -> [u8; 3],
) -> (Vec<u8>, usize) {
    let mut points = Vec::with_capacity(map.values().len() * POINT_BYTES);
    let mut count = 0;
    for y in 0..map.height() {
        for x in 0..map.width() {
            let Some(disparity) = map.at(x, y) else { continue };
            let point = geometry.point_m(x as f64, y as f64, f64::from(disparity));
            let Some([right, down, forward]) = point.filter(|point| options.takes(point[2])) else {
                continue;
            };
            let point = match options.axes {
                Axes::Opencv => [right, down, forward],
                Axes::YUp => [right, -down, -forward],
            };
            for coordinate in point {
                points.extend((coordinate as f32).to_le_bytes());
            }
            points.extend(colour(x, y));
            if let Some(confidence) = confidence {
                let deviation = deviation_px(confidence.row(y)[x])
                    .and_then(|px| geometry.depth_deviation_m(f64::from(disparity), px));
                let deviation = deviation.map_or(f32::NAN, |metres| metres as f32);
                points.extend(deviation.to_le_bytes());
            }
            count += 1;
        }
    }
    let deviation = if confidence.is_some() { DEVIATION } else { "" };
    let axes = options.axes.words();
    let mut file = format!(
        "{MAGIC}: metres from the left camera, {axes}\n\
         element vertex {count}\nproperty float x\nproperty float y\nproperty float z\n\
         property uchar red\nproperty uchar green\nproperty uchar blue\n{deviation}end_header\n"
    )
    .into_bytes();
    file.append(&mut points);
    (file, count)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::frame::INVALID;
    use crate::core::pool::Pooled;

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
            crate::core::frame::DisparityRange { min: 0, count: 64 },
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
        let (file, count) =
            encode_cloud(&map, Some(&confidence), &geometry, Default::default(), colour);
        let end = file.windows(11).position(|w| w == b"end_header\n").unwrap() + 11;
        assert!(std::str::from_utf8(&file[..end]).unwrap().contains(DEVIATION));
        let points: Vec<_> = file[end..].chunks_exact(POINT_BYTES + 4).collect();
        assert_eq!((points.len(), count), (2, 2));
        let deviation = |point: &[u8]| f32::from_le_bytes(point[15..].try_into().unwrap());
        assert!((deviation(points[0]) - 0.0216).abs() < 1e-6 && deviation(points[1]).is_nan());

        // Only the point at 4 m, with the other axes.
        let limits = CloudOptions { axes: Axes::YUp, near_m: Some(2.5), far_m: Some(4.0) };
        let (file, count) = encode_cloud(&map, None, &geometry, limits, colour);
        assert_eq!(count, 1);
        let end = file.windows(11).position(|w| w == b"end_header\n").unwrap() + 11;
        assert_eq!(of(&file[end..]).0, [0.0, -0.04, -4.0]);
        assert!(String::from_utf8_lossy(&file[..end]).contains("y up, z backward"));
        let limits = CloudOptions { far_m: Some(3.9), ..limits };
        assert_eq!(encode_cloud(&map, None, &geometry, limits, colour).1, 0);
    }
}
