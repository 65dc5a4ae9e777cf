//! Obstacles about a vehicle that has turned since they were seen.

use stereod_core::obstacles::{Bin, Obstacles};

/// Returns the scan about a vehicle that has turned to the left by this angle in degrees since then.
pub fn after_turn(mut seen: Obstacles, left_deg: f64) -> Obstacles {
    let (sin, cos) = left_deg.to_radians().sin_cos();
    let turned = |[x, y, z]: [f64; 3]| [cos * x + sin * y, cos * y - sin * x, z];
    seen.scan.first_deg -= left_deg;
    seen.mount.position_m = turned(seen.mount.position_m);
    for bin in &mut seen.scan.bins {
        if let Bin::Obstacle(nearest) = bin {
            nearest.position_m = turned(nearest.position_m);
        }
    }
    seen
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mavlink::{Reading, around_vehicle};
    use stereod_core::obstacles::{Mount, Nearest, Scan};

    #[test]
    fn what_was_ahead_is_to_the_right_after_a_turn_to_the_left() {
        let nearest = Nearest {
            distance_m: 3.0,
            nearest_m: 3.0,
            sigma_m: 0.01,
            position_m: [4.0, 0.0, 0.5],
            pixels: 100,
        };
        let scan = Scan {
            first_deg: -0.5,
            bin_deg: 1.0,
            bins: vec![Bin::Obstacle(nearest)],
            near_m: 0.5,
            far_m: 20.0,
        };
        let mount = Mount { position_m: [1.0, 0.0, 0.5], ..Mount::default() };
        let seen = Obstacles { scan, zones: Vec::new(), things: Vec::new(), mount };
        let turned = after_turn(seen, 90.0);
        let [x, y, z] = match turned.scan.bins[0] {
            Bin::Obstacle(nearest) => nearest.position_m,
            _ => panic!("{turned:?}"),
        };
        assert!(x.abs() < 1e-9 && (y + 4.0).abs() < 1e-9 && z == 0.5, "{x} {y} {z}");
        // Elements count clockwise: the one of 90 degrees is the 18th. The camera was a metre ahead of the origin.
        let readings = around_vehicle(&[&turned]);
        let Reading::Obstacle(distance) = readings[18] else { panic!("{readings:?}") };
        assert!((distance - 4.0).abs() < 0.01, "{distance}");
        assert_eq!(readings[0], Reading::Unknown);
    }
}
