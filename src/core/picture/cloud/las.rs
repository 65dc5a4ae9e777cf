//! Point clouds as LAS 1.2 (ASPRS, "LAS Specification Version 1.2"), for GIS programs and CloudCompare.

use super::Point;

/// Smallest unit of the stored coordinates in metres.
const UNIT_M: f64 = 1e-4;

/// Bytes of the header, and of a point of format 2: 32-bit coordinates and 16-bit colours.
const HEADER: u16 = 227;
const POINT: u16 = 26;

/// Texts of 32 bytes: the system that wrote the file, and the program.
pub(super) const SYSTEM: &str = "stereod";
const SOFTWARE: &str = concat!("stereod ", env!("CARGO_PKG_VERSION"));

/// First of one return, and its number of returns.
const ONLY_RETURN: u8 = 1 | 1 << 3;

pub(super) fn encode(points: &[Point]) -> Vec<u8> {
    let position = |point: &Point| point.position.map(f64::from);
    let largest = points.iter().flat_map(position).map(f64::abs).fold(0.0, f64::max);
    // Ten times as coarse until the largest coordinate fits.
    let unit = std::iter::successors(Some(UNIT_M), |unit| Some(unit * 10.0))
        .find(|unit| largest / unit < f64::from(i32::MAX))
        .unwrap_or(UNIT_M);
    let count = points.len() as u32;
    let mut file = Vec::with_capacity(usize::from(HEADER) + usize::from(POINT) * points.len());
    file.extend(b"LASF");
    // No source, flags or project.
    file.extend([0; 20]);
    file.extend([1, 2]);
    for text in [SYSTEM, SOFTWARE] {
        let mut padded = [0; 32];
        padded[..text.len()].copy_from_slice(text.as_bytes());
        file.extend(padded);
    }
    // No date.
    file.extend([0; 4]);
    file.extend(HEADER.to_le_bytes());
    // The points follow the header, without records between them.
    file.extend(u32::from(HEADER).to_le_bytes());
    file.extend(0u32.to_le_bytes());
    file.push(2);
    file.extend(POINT.to_le_bytes());
    file.extend([count, count, 0, 0, 0, 0].map(u32::to_le_bytes).concat());
    file.extend([unit, unit, unit, 0.0, 0.0, 0.0].map(f64::to_le_bytes).concat());
    for axis in 0..3 {
        let of_axis = || points.iter().map(|point| position(point)[axis]);
        let largest = of_axis().reduce(f64::max).unwrap_or(0.0);
        let smallest = of_axis().reduce(f64::min).unwrap_or(0.0);
        file.extend([largest, smallest].map(f64::to_le_bytes).concat());
    }
    for point in points {
        let stored = position(point).map(|metres| (metres / unit).round() as i32);
        file.extend(stored.map(i32::to_le_bytes).concat());
        // No intensity, class, angle, user data or source.
        file.extend([0, 0, ONLY_RETURN, 0, 0, 0, 0, 0]);
        // 255 becomes 65535.
        file.extend(
            point.colour.map(|level| u16::from(level) * 257).map(u16::to_le_bytes).concat(),
        );
    }
    file
}
