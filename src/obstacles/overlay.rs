//! Places of the scan and the zones in the left image, and their colours, for all who draw them over it.

use stereod_core::frame::StereoGeometry;
use stereod_core::obstacles::{Bin, Mount, Obstacles, Scan};

use crate::scan::Rays;
use crate::zones::ZoneRule;

pub type Colour = [u8; 3];

pub const CLEAR: Colour = [40, 150, 60];
pub const UNKNOWN: Colour = [105, 105, 105];

/// Depth in metres before which nothing is drawn: the edges of a volume around the camera begin there.
const NEAR_M: f64 = 0.05;

/// Returns the colour of a bin: red for near obstacles to yellow for far ones, green if it is clear, grey if unknown.
pub fn colour(bin: Bin, far_m: f64) -> Colour {
    match bin {
        Bin::Obstacle(nearest) => [235, (220.0 * (nearest.distance_m / far_m).min(1.0)) as u8, 40],
        Bin::Clear => CLEAR,
        Bin::Unknown => UNKNOWN,
    }
}

/// Returns the colour of a zone's lines, on any image: orange if it is occupied, green if free, light grey if unknown.
pub fn zone_colour(occupied: Option<bool>) -> Colour {
    match occupied {
        Some(true) => [255, 138, 92],
        Some(false) => [110, 224, 140],
        None => [214, 218, 224],
    }
}

/// Places in the left image, as fractions of its width and height.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Overlay {
    /// Ends of the bins across the image, in the row of its optical axis: bin i reaches from `edges[i + 1]` at
    /// its left to `edges[i]`.
    pub edges: Vec<f64>,
    /// Edges of each zone, as far as they are in the image; none of a zone that is not to be seen.
    pub zones: Vec<Vec<Line>>,
}

/// Both ends of a line.
pub type Line = [[f64; 2]; 2];

impl Overlay {
    /// Finds the places of what was found in a pair; `rules` are those of its zones, by their names.
    pub fn new(
        found: &Obstacles,
        rules: &[ZoneRule],
        geometry: StereoGeometry,
        size: (usize, usize),
    ) -> Self {
        let lines = |name: &String| {
            let rule = rules.iter().find(|rule| rule.name == *name);
            rule.map(|rule| outline(rule, &found.mount, geometry, size)).unwrap_or_default()
        };
        let edges = edges(&found.scan, &found.mount, geometry, size.0);
        Self { edges, zones: found.zones.iter().map(|zone| lines(&zone.name)).collect() }
    }
}

/// Returns the edges of the scan's bins, from the first bin's right edge on.
pub fn edges(scan: &Scan, mount: &Mount, geometry: StereoGeometry, width: usize) -> Vec<f64> {
    let rays = Rays::new(mount, geometry);
    let [start, next] = [0.0, 1.0].map(|x| rays.direction(x, geometry.centre_y_px));
    let change = [next[0] - start[0], next[1] - start[1]];
    let middle = rays.direction(geometry.centre_x_px, geometry.centre_y_px);
    let place = |edge: usize| {
        let (sin, cos) = (scan.first_deg + scan.bin_deg * edge as f64).to_radians().sin_cos();
        let x = (start[1] * cos - start[0] * sin) / (change[0] * sin - change[1] * cos);
        let is_ahead = (start[0] + x * change[0]) * cos + (start[1] + x * change[1]) * sin > 0.0;
        let is_left = middle[0] * sin > middle[1] * cos;
        let outside = if is_left { 0.0 } else { 1.0 };
        if is_ahead { ((x + 0.5) / width as f64).clamp(0.0, 1.0) } else { outside }
    };
    (0..=scan.bins.len()).map(place).collect()
}

/// Returns the visible edges of a zone.
fn outline(
    rule: &ZoneRule,
    mount: &Mount,
    geometry: StereoGeometry,
    (width, height): (usize, usize),
) -> Vec<Line> {
    if !rule.image.is_empty() {
        return around(&rule.image).filter_map(|line| clipped(line, [[0.0, 1.0]; 2])).collect();
    }
    let turn = mount.rotation();
    let optical = |[x, y]: [f64; 2], z: f64| {
        let away: [f64; 3] = std::array::from_fn(|i| [x, y, z][i] - mount.position_m[i]);
        std::array::from_fn(|axis| (0..3).map(|i| turn[i][axis] * away[i]).sum::<f64>())
    };
    let seen = |[x, y, z]: [f64; 3]| {
        let StereoGeometry { focal_px, centre_x_px, centre_y_px, .. } = geometry;
        let place =
            |centre: f64, at: f64, all: usize| (centre + focal_px * at / z + 0.5) / all as f64;
        [place(centre_x_px, x, width), place(centre_y_px, y, height)]
    };
    let [low, high] = rule.height_m;
    let flat = [low, high].map(|z| around(&rule.floor).map(move |[a, b]| [(a, z), (b, z)]));
    let upright = rule.floor.iter().map(|&corner| [(corner, low), (corner, high)]);
    let edges = flat.into_iter().flatten().chain(upright);
    let lines = edges.filter_map(|edge| ahead(edge.map(|(at, z)| optical(at, z))));
    lines.filter_map(|line| clipped(line.map(seen), [[0.0, 1.0]; 2])).collect()
}

/// Returns the sides of a polygon.
fn around(corners: &[[f64; 2]]) -> impl Iterator<Item = Line> {
    corners.iter().zip(corners.iter().cycle().skip(1)).map(|(&a, &b)| [a, b])
}

/// Returns the part of a line in front of the camera, in its optical axes.
fn ahead(line: [[f64; 3]; 2]) -> Option<[[f64; 3]; 2]> {
    let every = [f64::NEG_INFINITY, f64::INFINITY];
    clipped(line, [every, every, [NEAR_M, f64::INFINITY]])
}

/// Returns the part of a line between limits along each axis (Liang and Barsky, 1984).
fn clipped<const N: usize>(line: [[f64; N]; 2], limits: [[f64; 2]; N]) -> Option<[[f64; N]; 2]> {
    let [from, to] = line;
    let (mut begin, mut end) = (0.0f64, 1.0f64);
    for axis in 0..N {
        let along = to[axis] - from[axis];
        let [low, high] = limits[axis].map(|limit| limit - from[axis]);
        if along == 0.0 {
            if low > 0.0 || high < 0.0 {
                return None;
            }
            continue;
        }
        let [enter, leave] = if along > 0.0 { [low, high] } else { [high, low] };
        begin = begin.max(enter / along);
        end = end.min(leave / along);
    }
    let at = |share: f64| std::array::from_fn(|axis| from[axis] + share * (to[axis] - from[axis]));
    (begin < end).then(|| [at(begin), at(end)])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scan::{Rules, Scanner};
    use crate::world::{HEIGHT, WIDTH, World, geometry, mount};
    use crate::zones::{Watch, read};

    /// The findings of the scanner and the zones in a world of one box, and their places.
    fn seen(mount: Mount, corners: [[f64; 3]; 2], zones: &str) -> (Obstacles, Overlay) {
        let world = World { boxes: vec![corners], ..World::default() };
        let matched = world.seen(&mount);
        let rules = Rules {
            bin_deg: 1.0,
            field_deg: None,
            band_m: [0.1, 2.0],
            slope_deg: 1.0,
            overhangs: true,
            far_m: 20.0,
            confidence: 0,
            pixels: 20,
        };
        let scan = Scanner::new(rules, &mount).unwrap().scan(&matched, &mount, geometry());
        let rules = read(zones).unwrap();
        let zones = Watch::new(rules.clone(), 20, 0).zones(&matched, &mount, geometry());
        let found = Obstacles { scan, zones, things: Vec::new(), mount };
        let overlay = Overlay::new(&found, &rules, geometry(), (WIDTH, HEIGHT));
        (found, overlay)
    }

    #[test]
    fn bins_with_an_obstacle_lie_over_its_columns() {
        for yaw in [0.0, 25.0, 180.0] {
            // 3 m ahead of the camera, wherever it looks, and to its left.
            let turned = Mount { attitude_deg: [0.0, 0.0, yaw], ..mount() };
            let facing = [[3.0, 0.3, 0.0], [3.4, 0.9, 1.8]];
            let corners = match yaw {
                180.0 => [[-3.4, -0.9, 0.0], [-3.0, -0.3, 1.8]],
                _ => facing,
            };
            let (found, Overlay { edges, .. }) = seen(turned, corners, "");
            let range = turned.attitude_deg[2].to_radians().sin_cos();
            // Columns of the box's near face.
            let ys = [corners[0][1], corners[1][1]];
            let x = if yaw == 180.0 { corners[1][0] } else { corners[0][0] };
            let columns = ys.map(|y| {
                let (ahead, left) = (x * range.1 + y * range.0, y * range.1 - x * range.0);
                (geometry().centre_x_px - geometry().focal_px * left / ahead) / WIDTH as f64
            });
            let (least, most) = (columns[0].min(columns[1]), columns[0].max(columns[1]));
            let mut count = 0;
            for (bin, state) in found.scan.bins.iter().enumerate() {
                assert!(edges[bin + 1] < edges[bin], "{yaw}: {edges:?}");
                let middle = (edges[bin] + edges[bin + 1]) / 2.0;
                if matches!(state, Bin::Obstacle(_)) {
                    count += 1;
                    assert!((least - 0.02..most + 0.02).contains(&middle), "{yaw}: {middle}");
                }
            }
            assert!(count >= 8, "{yaw}: {count}");
        }
    }

    #[test]
    fn bins_outside_the_image_have_no_width() {
        let scan = Scan {
            first_deg: -90.0,
            bin_deg: 60.0,
            bins: vec![Bin::Clear; 4],
            near_m: 0.5,
            far_m: 9.0,
        };
        let edges = edges(&scan, &mount(), geometry(), WIDTH);
        assert_eq!((edges[0], edges[3], edges[4]), (1.0, 0.0, 0.0));
        assert!(edges[1] > 0.9 && edges[2] < 0.1, "{edges:?}");
    }

    #[test]
    fn a_volume_is_drawn_around_what_is_in_it() {
        let corners = [[3.0, -0.5, 0.2], [3.5, 0.5, 1.5]];
        let zone = "[[zone]]\nname = 'v'\nfloor = [[3, -0.5], [3.5, -0.5], [3.5, 0.5], [3, 0.5]]\nheight_m = [0.2, 1.5]\n";
        let (_, Overlay { zones, .. }) = seen(mount(), corners, zone);
        assert_eq!(zones[0].len(), 12);
        // The near face, of 1 m by 1.3 m at 3 m, is that of the box.
        let ends = || zones[0].iter().flatten();
        let [left, top] = [0, 1].map(|axis| ends().map(|end| end[axis]).fold(1.0, f64::min));
        assert!((left - (160.0 - 250.0 * 0.5 / 3.0) / WIDTH as f64).abs() < 1e-9, "{left}");
        assert!((top - (120.0 - 250.0 * 0.5 / 3.0) / HEIGHT as f64).abs() < 1e-9, "{top}");
    }

    #[test]
    fn what_is_behind_the_camera_or_beside_the_image_is_cut_off() {
        let zones = |floor: &str| {
            let zone = format!("[[zone]]\nname = 'v'\nfloor = {floor}\n");
            seen(mount(), [[3.0, -0.5, 0.2], [3.5, 0.5, 1.5]], &zone).1.zones.remove(0)
        };
        // Around the camera: of the edges that go ahead, the far ends are to be seen.
        let around = zones("[[-2, -1], [4, -1], [4, 1], [-2, 1]]");
        assert!(around.len() >= 6, "{around:?}");
        assert!(
            around.iter().flatten().flatten().all(|part| (-1e-9..=1.0 + 1e-9).contains(part)),
            "{around:?}"
        );
        assert!(zones("[[-4, -1], [-2, -1], [-2, 1]]").is_empty());
        let whole = seen(
            mount(),
            [[3.0, -0.5, 0.2], [3.5, 0.5, 1.5]],
            "[[zone]]\nname = 'p'\nimage = [[0, 0], [1, 0], [1, 1]]\n",
        )
        .1
        .zones
        .remove(0);
        assert_eq!(
            whole,
            [[[0.0, 0.0], [1.0, 0.0]], [[1.0, 0.0], [1.0, 1.0]], [[1.0, 1.0], [0.0, 0.0]]]
        );
    }
}
