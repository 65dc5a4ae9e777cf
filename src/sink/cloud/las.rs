//! Point clouds as LAS 1.2 (ASPRS), for GIS programs and CloudCompare.

use std::io::Cursor;

use anyhow::Result;
use las::point::Format;
use las::{Builder, Color, Transform, Vector, Writer};

use super::point::Point;

/// Smallest unit of the stored coordinates in metres.
const UNIT_M: f64 = 1e-4;

/// System that wrote the file.
pub(super) const SYSTEM: &str = "stereod";

/// Encodes points of format 2: 32-bit coordinates in multiples of a unit, and 16-bit colours.
pub(super) fn encode(points: &[Point]) -> Result<Vec<u8>> {
    let coordinates =
        points.iter().flat_map(|point| point.position).map(|metres| f64::from(metres).abs());
    let largest = coordinates.fold(0.0, f64::max);
    // Ten times as coarse until the largest coordinate fits.
    let scale = std::iter::successors(Some(UNIT_M), |unit| Some(unit * 10.0))
        .find(|unit| largest / unit < f64::from(i32::MAX))
        .unwrap_or(UNIT_M);
    let mut builder = Builder::from((1, 2));
    builder.point_format = Format::new(2)?;
    let axis = Transform { scale, offset: 0.0 };
    builder.transforms = Vector { x: axis, y: axis, z: axis };
    builder.system_identifier = SYSTEM.to_owned();
    builder.generating_software = concat!("stereod ", env!("CARGO_PKG_VERSION")).to_owned();
    builder.date = None;
    let mut writer = Writer::new(Cursor::new(Vec::new()), builder.into_header()?)?;
    for point in points {
        let [x, y, z] = point.position.map(f64::from);
        // 255 becomes 65535.
        let [red, green, blue] = point.colour.map(|level| u16::from(level) * 257);
        let color = Some(Color { red, green, blue });
        writer.write_point(las::Point {
            x,
            y,
            z,
            color,
            return_number: 1,
            number_of_returns: 1,
            ..Default::default()
        })?;
    }
    Ok(writer.into_inner()?.into_inner())
}
