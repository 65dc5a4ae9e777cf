//! Points as a binary glTF 2.0 file (Khronos, glTF 2.0 Specification, sections 3.6 to 3.9 and 4).
//!
//! A point becomes a square on its surface, because viewers draw glTF's own points as single pixels, or not at all. The
//! axes are x to the right, y up and z backward, so that a viewer begins with the view of the first pair.

use anyhow::{Result, bail};
use stereod_core::pose::cross;

use crate::surface::MapPoint;

/// Bytes of a corner: three floats, and red, green, blue and opacity of 16 bits.
const CORNER: usize = 20;

/// Two triangles of a square's corners.
const TRIANGLES: [u32; 6] = [0, 1, 2, 2, 1, 3];

/// Overlap of neighbouring squares, which lie at irregular distances.
const OVERLAP: f64 = 1.15;

/// The squares of one part of the path.
#[derive(Default)]
struct Part {
    number: u32,
    corners: Vec<u8>,
    indices: Vec<u8>,
    least: [f32; 3],
    most: [f32; 3],
}

/// Encodes the points of voxels with a side of `voxel_m`. The file has a node a part of the path.
pub fn encode(points: &[MapPoint], voxel_m: f64) -> Result<Vec<u8>> {
    let mut points: Vec<&MapPoint> = points.iter().collect();
    points.sort_by_key(|point| point.part);
    let parts: Vec<Part> = points
        .chunk_by(|a, b| a.part == b.part)
        .map(|points| Part::of(points, voxel_m * OVERLAP / 2.0))
        .collect();
    let mut json = describe(&parts).into_bytes();
    json.resize(json.len().next_multiple_of(4), b' ');
    let binary: usize = parts.iter().map(|part| part.corners.len() + part.indices.len()).sum();
    let length = 12 + 8 + json.len() + if binary == 0 { 0 } else { 8 + binary };
    let Ok(length) = u32::try_from(length) else {
        bail!(
            "a .glb file holds at most 4 GiB: {} points are too many; name it .ply",
            points.len()
        );
    };
    let mut file = Vec::with_capacity(length as usize);
    file.extend(b"glTF");
    file.extend([2, length, json.len() as u32].into_iter().flat_map(u32::to_le_bytes));
    file.extend(b"JSON");
    file.extend(json);
    if binary > 0 {
        file.extend((binary as u32).to_le_bytes());
        file.extend(b"BIN\0");
        parts.iter().for_each(|part| file.extend(&part.corners));
        parts.iter().for_each(|part| file.extend(&part.indices));
    }
    Ok(file)
}

impl Part {
    fn of(points: &[&MapPoint], half_m: f64) -> Self {
        let (least, most) = ([f32::INFINITY; 3], [f32::NEG_INFINITY; 3]);
        let mut part = Self { number: points[0].part, least, most, ..Self::default() };
        for point in points {
            // A point without a surface becomes three squares that cross.
            let axes: &[[f32; 3]] = match point.normal {
                [0.0, 0.0, 0.0] => &[[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]],
                _ => &[point.normal],
            };
            axes.iter().for_each(|axis| part.add(point, *axis, half_m));
        }
        part
    }

    /// Adds a square at a point.
    fn add(&mut self, point: &MapPoint, normal: [f32; 3], half_m: f64) {
        let first = (self.corners.len() / CORNER) as u32;
        self.indices
            .extend(TRIANGLES.into_iter().flat_map(|corner| (first + corner).to_le_bytes()));
        let normal = normal.map(f64::from);
        // Any vector that is far from the normal gives a side.
        let other = if normal[1].abs() < 0.7 { [0.0, 1.0, 0.0] } else { [1.0, 0.0, 0.0] };
        let along = cross(normal, other);
        let length = along.iter().map(|part| part * part).sum::<f64>().sqrt();
        let along = along.map(|part| part * half_m / length);
        let across = cross(normal, along);
        let [red, green, blue] = point.rgb.map(linear);
        let colour = [red, green, blue, u16::MAX];
        for [one, other] in [[-1.0, -1.0], [1.0, -1.0], [-1.0, 1.0], [1.0, 1.0]] {
            let offset = [0, 1, 2].map(|axis| (one * along[axis] + other * across[axis]) as f32);
            let [right, down, forward] =
                [0, 1, 2].map(|axis| point.position_m[axis] + offset[axis]);
            let at = [right, -down, -forward];
            self.least = [0, 1, 2].map(|axis| self.least[axis].min(at[axis]));
            self.most = [0, 1, 2].map(|axis| self.most[axis].max(at[axis]));
            self.corners.extend(at.into_iter().flat_map(f32::to_le_bytes));
            self.corners.extend(colour.into_iter().flat_map(u16::to_le_bytes));
        }
    }
}

/// Seen from both sides, with the colours of the images in any light.
const MATERIAL: &str = r#"{"doubleSided":true,"pbrMetallicRoughness":{"metallicFactor":0},
"extensions":{"KHR_materials_unlit":{}}}"#;

/// Returns the JSON of the file: all corners are in the first view of its buffer, all indices in the second one.
fn describe(parts: &[Part]) -> String {
    let asset = r#""asset":{"version":"2.0","generator":"stereod"},"scene":0"#;
    // glTF has no empty lists.
    if parts.is_empty() {
        return format!(r#"{{{asset},"scenes":[{{}}]}}"#);
    }
    let list = |of: &dyn Fn(usize, &Part) -> String| {
        let items: Vec<String> = parts.iter().enumerate().map(|(i, part)| of(i, part)).collect();
        items.join(",")
    };
    let sum = |of: fn(&Part) -> usize| parts.iter().map(of).sum::<usize>();
    let [corners, indices] = [sum(|part| part.corners.len()), sum(|part| part.indices.len())];
    let sections = [
        asset.to_string(),
        r#""extensionsUsed":["KHR_materials_unlit"]"#.to_string(),
        format!(r#""scenes":[{{"nodes":[{}]}}]"#, list(&|i, _| i.to_string())),
        format!(
            r#""nodes":[{}]"#,
            list(&|i, part| format!(r#"{{"name":"part {}","mesh":{i}}}"#, part.number))
        ),
        format!(r#""meshes":[{}]"#, list(&|i, _| mesh(3 * i))),
        format!(r#""materials":[{MATERIAL}]"#),
        format!(r#""accessors":[{}]"#, list(&|i, _| accessors(parts, i))),
        format!(
            r#""bufferViews":[{{"buffer":0,"byteLength":{corners},"byteStride":{CORNER},"target":34962}},
{{"buffer":0,"byteOffset":{corners},"byteLength":{indices},"target":34963}}]"#
        ),
        format!(r#""buffers":[{{"byteLength":{}}}]"#, corners + indices),
    ];
    format!("{{{}}}", sections.join(","))
}

/// Describes the mesh whose accessors begin at this number.
fn mesh(first: usize) -> String {
    let (colour, indices) = (first + 1, first + 2);
    format!(
        r#"{{"primitives":[{{"attributes":{{"POSITION":{first},"COLOR_0":{colour}}},
"indices":{indices},"material":0}}]}}"#
    )
}

/// Describes the positions, colours and indices of a part.
fn accessors(parts: &[Part], number: usize) -> String {
    let Part { corners, indices, least, most, .. } = &parts[number];
    let before = |of: fn(&Part) -> usize| parts[..number].iter().map(of).sum::<usize>();
    let (from, count) = (before(|part| part.corners.len()), corners.len() / CORNER);
    // Floats, numbers of 16 bits and of 32 bits are 5126, 5123 and 5125.
    [
        format!(
            r#"{{"bufferView":0,"byteOffset":{from},"componentType":5126,"count":{count},
"type":"VEC3","min":{least:?},"max":{most:?}}}"#
        ),
        format!(
            r#"{{"bufferView":0,"byteOffset":{},"componentType":5123,"normalized":true,
"count":{count},"type":"VEC4"}}"#,
            from + 12
        ),
        format!(
            r#"{{"bufferView":1,"byteOffset":{},"componentType":5125,"count":{},"type":"SCALAR"}}"#,
            before(|part| part.indices.len()),
            indices.len() / 4
        ),
    ]
    .join(",")
}

/// Converts a grey level of an image (sRGB, IEC 61966-2-1) to linear light in 16 bits, as glTF's colours are.
fn linear(level: u8) -> u16 {
    let level = f64::from(level) / 255.0;
    let light = if level <= 0.04045 { level / 12.92 } else { ((level + 0.055) / 1.055).powf(2.4) };
    (65535.0 * light).round() as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(position_m: [f32; 3], normal: [f32; 3], part: u32) -> MapPoint {
        let rgb = [0, 128, 255];
        MapPoint { position_m, rgb, sigma_m: 0.5, normal, probability: 0.9, part }
    }

    #[test]
    fn a_file_has_aligned_chunks_and_a_node_a_part() {
        let ahead = [0.0, 0.0, -1.0];
        let points = [
            point([1.0, 2.0, 3.0], ahead, 2),
            point([0.0, 0.0, 5.0], ahead, 1),
            point([4.0; 3], [0.0; 3], 2),
        ];
        let file = encode(&points, 2.0 / OVERLAP).unwrap();
        let number = |at: usize| u32::from_le_bytes(file[at..at + 4].try_into().unwrap()) as usize;
        assert_eq!((&file[..4], number(4), number(8)), (&b"glTF"[..], 2, file.len()));
        let (json, binary) = (number(12), 20 + number(12));
        // A square with a normal, and three without.
        let squares = 1 + 1 + 3;
        assert_eq!((&file[16..20], json % 4), (&b"JSON"[..], 0));
        assert_eq!(number(binary), squares * (4 * CORNER + 4 * TRIANGLES.len()));
        let text = std::str::from_utf8(&file[20..binary]).unwrap();
        assert!(
            text.contains(r#""name":"part 1""#) && text.contains(r#""name":"part 2""#),
            "{text}"
        );
        assert!(text.contains(r#""min":[0.0, -5.0, -5.0],"max":[5.0, -1.0, -3.0]"#), "{text}");
        // The corners of the first part are first: 1 m around the point. 128 of 255 is 0.2159 of full light.
        let float = |at: usize| f32::from_le_bytes(file[at..at + 4].try_into().unwrap());
        let corner = |i: usize| [0, 4, 8].map(|offset| float(binary + 8 + i * CORNER + offset));
        for i in 0..4 {
            let [right, up, backward] = corner(i);
            assert_eq!([right.abs(), up.abs(), backward], [1.0, 1.0, -5.0]);
        }
        assert!(corner(0)[..2] != corner(1)[..2] && corner(1)[..2] != corner(2)[..2]);
        let level = |at: usize| u16::from_le_bytes(file[at..at + 2].try_into().unwrap());
        let colour = [12, 14, 16, 18].map(|offset| level(binary + 8 + offset));
        assert_eq!(colour, [0, 14146, 65535, 65535]);
    }
}
