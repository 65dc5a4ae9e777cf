//! The map as a file, for other programs.

mod gltf;

use std::path::Path;

use anyhow::{Result, bail};
use stereod_core::files;

use crate::fusion::Map;
use crate::surface::MapPoint;

/// Writes the points of a map in the format of the path's extension, `.ply` or `.glb`, and returns their number. The
/// file appears whole.
pub fn write(path: &Path, map: &Map) -> Result<usize> {
    check_name(path)?;
    let points: Vec<MapPoint> = map.points().collect();
    let file = match files::extension(path).as_str() {
        "glb" => gltf::encode(&points, map.rules.voxel_m)?,
        _ => ply(&points),
    };
    files::write_whole(path, &file)?;
    Ok(points.len())
}

/// Checks that the name of a file tells its format.
pub fn check_name(path: &Path) -> Result<()> {
    match files::extension(path).as_str() {
        "ply" | "glb" => Ok(()),
        _ => bail!("cannot tell the format of {}: name a map .ply or .glb", path.display()),
    }
}

/// Encodes points as a binary PLY file (Turk, The PLY Polygon File Format).
fn ply(points: &[MapPoint]) -> Vec<u8> {
    let header = format!(
        "ply\nformat binary_little_endian 1.0\n\
         comment stereod: metres from the left camera at the first pair, x right, y down, z forward\n\
         comment sigma: standard deviation in metres; part: of the path, whose parts have no known relation\n\
         element vertex {}\nproperty float x\nproperty float y\nproperty float z\n\
         property float nx\nproperty float ny\nproperty float nz\n\
         property uchar red\nproperty uchar green\nproperty uchar blue\n\
         property float sigma\nproperty float probability\nproperty uint part\nend_header\n",
        points.len()
    );
    let mut file = header.into_bytes();
    for point in points {
        file.extend(point.position_m.into_iter().chain(point.normal).flat_map(f32::to_le_bytes));
        file.extend(point.rgb);
        file.extend([point.sigma_m, point.probability].into_iter().flat_map(f32::to_le_bytes));
        file.extend(point.part.to_le_bytes());
    }
    file
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fusion::Rules;

    #[test]
    fn a_ply_file_has_all_that_is_known_of_a_point() {
        let point = MapPoint {
            position_m: [1.0, 2.0, 3.0],
            rgb: [0, 128, 255],
            sigma_m: 0.5,
            normal: [0.0, 0.0, -1.0],
            probability: 0.9,
            part: 7,
        };
        let file = ply(&[point]);
        let end = file.windows(11).position(|it| it == b"end_header\n").unwrap() + 11;
        let header = std::str::from_utf8(&file[..end]).unwrap();
        assert!(header.contains("element vertex 1\n"), "{header}");
        let bytes = &file[end..];
        let float = |at: usize| f32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
        assert_eq!([0, 4, 8, 12, 16, 20].map(float), [1.0, 2.0, 3.0, 0.0, 0.0, -1.0]);
        assert_eq!((&bytes[24..27], [27, 31].map(float)), (&[0, 128, 255][..], [0.5, 0.9]));
        assert_eq!(bytes[35..], [7, 0, 0, 0]);
    }

    #[test]
    fn the_extension_chooses_the_format_and_an_empty_map_is_a_file() {
        let dir = tempfile::tempdir().unwrap();
        let map = Map::new(Rules::default());
        for name in ["a.ply", "a.GLB"] {
            assert_eq!(write(&dir.path().join(name), &map).unwrap(), 0);
        }
        let wrong = write(&dir.path().join("a.obj"), &map).unwrap_err().to_string();
        assert!(wrong.contains("a.obj") && wrong.contains(".glb"), "{wrong}");
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 2);
    }
}
