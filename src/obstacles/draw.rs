//! A picture of the scan: in a strip below the left image, and from above.

use stereod_core::frame::{Image, StereoGeometry};
use stereod_core::obstacles::{Bin, Obstacles};

use crate::overlay::{CLEAR, colour, edges};

const BEHIND: [u8; 3] = [30, 30, 30];
const OUTSIDE: [u8; 3] = [12, 12, 12];
const RING: [u8; 3] = [200, 200, 200];

/// A picture of three bytes a pixel: red, green, blue.
pub struct Picture {
    pub width: usize,
    pub height: usize,
    pub rgb: Vec<u8>,
}

/// Draws the scan under the left image, and from above at its right: ahead is up, and rings are a quarter of the far limit
/// apart.
pub fn draw(obstacles: &Obstacles, left: &Image, geometry: StereoGeometry) -> Picture {
    let scan = &obstacles.scan;
    let (width, height) = (left.width(), left.height());
    let strip = (height / 16).max(4);
    let whole = height + strip;
    let mut picture = Picture { width: width + whole, height: whole, rgb: Vec::new() };
    picture.rgb.resize(3 * picture.width * whole, 0);
    let bin_at = |degrees: f64| {
        let bin = (degrees - scan.first_deg).rem_euclid(360.0) / scan.bin_deg;
        scan.bins.get(bin as usize).copied()
    };
    let mut put = |x: usize, y: usize, colour: [u8; 3]| {
        picture.rgb[3 * (y * picture.width + x)..][..3].copy_from_slice(&colour);
    };
    for y in 0..height {
        left.row(y).iter().enumerate().for_each(|(x, &grey)| put(x, y, [grey; 3]));
    }
    let edges = edges(scan, &obstacles.mount, geometry, width);
    for x in 0..width {
        let middle = (x as f64 + 0.5) / width as f64;
        let is_here = |(_, edges): &(_, &[f64])| (edges[1]..edges[0]).contains(&middle);
        let bin = scan.bins.iter().zip(edges.windows(2)).find(is_here);
        let colour = bin.map_or(OUTSIDE, |(&bin, _)| colour(bin, scan.far_m));
        (height..whole).for_each(|y| put(x, y, colour));
    }
    // The middle of the scan points up, so that a camera that looks back is no different.
    let middle = scan.first_deg + scan.bin_deg * scan.bins.len() as f64 / 2.0;
    let metres = scan.far_m / (0.96 * whole as f64);
    for (y, x) in (0..whole).flat_map(|y| (0..whole).map(move |x| (y, x))) {
        let ahead = (whole as f64 - 0.5 - y as f64) * metres;
        let to_left = (whole as f64 / 2.0 - 0.5 - x as f64) * metres;
        let away = ahead.hypot(to_left);
        let bin = bin_at(to_left.atan2(ahead).to_degrees() + middle).filter(|_| away <= scan.far_m);
        let is_ring = (4.0 * away / scan.far_m).fract() * scan.far_m / 4.0 < metres;
        let shown = match bin {
            None => OUTSIDE,
            Some(_) if is_ring => RING,
            Some(Bin::Obstacle(nearest)) if away < nearest.distance_m => CLEAR.map(|part| part / 2),
            // What is behind an obstacle is hidden.
            Some(Bin::Obstacle(nearest)) if away > nearest.distance_m * 1.06 => BEHIND,
            Some(bin) => colour(bin, scan.far_m),
        };
        put(width + x, y, shown);
    }
    picture
}
