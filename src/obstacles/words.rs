//! What is seen, in a sentence, so that a wrong sign or height shows at once.

use stereod_core::obstacles::{Bin, Nearest, Obstacles, Scan, Zone};

use crate::lines::rounded;

/// Returns such as "nearest 3.2 m, 12 degrees to the right, 0.4 m up; 40 of 72 directions clear, unknown: left of 38
/// degrees left".
pub fn in_words(obstacles: &Obstacles) -> String {
    let scan = &obstacles.scan;
    let nearest = scan.nearest().map_or_else(
        || format!("nothing found within {:.1} m", scan.far_m),
        |(direction, Nearest { distance_m, position_m, .. })| {
            let up_m = rounded(position_m[2], 1);
            format!("nearest {distance_m:.2} m, {}, {up_m:.1} m up", toward(direction))
        },
    );
    let count = |state: Bin| scan.bins.iter().filter(|bin| **bin == state).count();
    let (clear, unknown, all) = (count(Bin::Clear), count(Bin::Unknown), scan.bins.len());
    let mut text = format!("{nearest}; {clear} of {all} directions clear to {:.1} m", scan.far_m);
    if unknown == all {
        text += ", all unknown";
    } else if unknown > 0 {
        text += &format!(", {unknown} unknown: {}", unknown_parts(scan).join(", "));
    }
    text
}

/// Returns such as "zone gate: occupied, 2.13 m away".
pub fn of_zone(zone: &Zone) -> String {
    let state = match zone.occupied {
        Some(true) => "occupied",
        Some(false) => "free",
        None => "unknown",
    };
    let away = zone.nearest.map(|it| format!(", {:.2} m away", it.distance_m)).unwrap_or_default();
    format!("zone {}: {state}{away} ({:.0} % seen)", zone.name, 100.0 * zone.known)
}

/// Returns a direction in words: "12 degrees to the right".
pub fn toward(degrees: f64) -> String {
    match degrees.round() as i64 {
        0 => "straight ahead".into(),
        left @ 1.. => format!("{left} degrees to the left"),
        right => format!("{} degrees to the right", -right),
    }
}

/// Most parts that are named.
const PARTS: usize = 3;

fn unknown_parts(scan: &Scan) -> Vec<String> {
    let is_unknown = |bin: usize| scan.bins.get(bin) == Some(&Bin::Unknown);
    let edge = |bin: usize| scan.first_deg + scan.bin_deg * bin as f64;
    // From the left to the right, as people look at an image.
    let mut runs = Vec::new();
    let mut end = None;
    for bin in (0..scan.bins.len()).rev() {
        if is_unknown(bin) {
            let from = *end.get_or_insert(bin + 1);
            if bin == 0 || !is_unknown(bin - 1) {
                runs.push((from, bin));
                end = None;
            }
        }
    }
    let mut parts: Vec<_> = runs
        .iter()
        .take(PARTS)
        .map(|&(left, right)| match (left == scan.bins.len(), right == 0) {
            (true, _) => format!("left of {}", short(edge(right))),
            (_, true) => format!("right of {}", short(edge(left))),
            _ => format!("{} to {}", short(edge(left)), short(edge(right))),
        })
        .collect();
    if runs.len() > PARTS {
        parts.push(format!("and {} more", runs.len() - PARTS));
    }
    parts
}

fn short(degrees: f64) -> String {
    match degrees.round() as i64 {
        0 => "0".into(),
        left @ 1.. => format!("{left} left"),
        right => format!("{} right", -right),
    }
}

#[cfg(test)]
mod tests {
    use stereod_core::obstacles::Mount;

    use super::*;

    fn told(bins: Vec<Bin>) -> String {
        let scan = Scan { first_deg: -2.0, bin_deg: 1.0, bins, near_m: 0.5, far_m: 20.0 };
        let mount = Mount::default();
        in_words(&Obstacles { scan, zones: Vec::new(), things: Vec::new(), mount })
    }

    #[test]
    fn left_is_left() {
        let at = |distance_m| {
            let position_m = [distance_m, 0.0, 0.42];
            let (nearest_m, sigma_m, pixels) = (distance_m, 0.1, 99);
            Bin::Obstacle(Nearest { distance_m, nearest_m, sigma_m, position_m, pixels })
        };
        let said = told(vec![Bin::Unknown, Bin::Clear, at(5.0), at(3.2)]);
        assert_eq!(
            said,
            "nearest 3.20 m, 2 degrees to the left, 0.4 m up; 1 of 4 directions clear to 20.0 m, 1 unknown: right of 1 right"
        );
        let said = told(vec![at(3.0), Bin::Clear, Bin::Clear, Bin::Unknown]);
        assert!(said.starts_with("nearest 3.00 m, 2 degrees to the right"), "{said}");
        assert!(said.ends_with("left of 1 left"), "{said}");
    }

    #[test]
    fn nothing_is_not_called_clear() {
        let said = told(vec![Bin::Unknown; 4]);
        assert_eq!(
            said,
            "nothing found within 20.0 m; 0 of 4 directions clear to 20.0 m, all unknown"
        );
    }
}
