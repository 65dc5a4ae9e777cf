//! Rays that leave a pixel of a map in eight directions and end at the first known pixel.

use crate::frame::{INVALID, Image};

/// Longest reach of a ray in steps: across, down or diagonally.
pub const REACH_MAX: u16 = 1023;

/// Steps (dx, dy) of the eight rays; rays `k` and `7 - k` are opposite.
pub const RAYS: [(i32, i32); 8] =
    [(-1, -1), (0, -1), (1, -1), (-1, 0), (1, 0), (-1, 1), (0, 1), (1, 1)];
/// Number of the ray to the left.
pub const LEFT: usize = 3;
/// Number of the ray to the right.
pub const RIGHT: usize = 4;
/// Number of the ray upwards.
pub const UP: usize = 1;
/// Number of the ray downwards.
pub const DOWN: usize = 6;

/// The known pixel at the end of a ray.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Met {
    /// Its disparity in 1/16 px.
    pub value: i16,
    /// Steps to it.
    pub distance: u16,
    /// Largest difference in grey between two neighbours on the way, both ends included.
    pub edge: u8,
}

/// Reports whether the left camera has seen a pixel.
pub fn is_seen(left: &Image, at: usize) -> bool {
    left.valid_mask().is_none_or(|mask| mask.pixels()[at])
}

/// Returns the first known pixel on the ray from (x, y) with the steps (dx, dy), at most `reach` steps away.
/// A ray ends at the image border and at pixels outside the left camera's valid mask.
pub fn meet(
    known: &[i16],
    left: &Image,
    (x, y): (usize, usize),
    (dx, dy): (i32, i32),
    reach: u16,
) -> Option<Met> {
    let (width, height) = (left.width(), left.height());
    let mut grey = left.pixels()[y * width + x];
    let mut edge = 0;
    for distance in 1..=reach {
        let steps = isize::try_from(distance).ok()?;
        let x = x.checked_add_signed(dx as isize * steps).filter(|&x| x < width)?;
        let y = y.checked_add_signed(dy as isize * steps).filter(|&y| y < height)?;
        let at = y * width + x;
        let before = std::mem::replace(&mut grey, left.pixels()[at]);
        edge = edge.max(before.abs_diff(grey));
        if known[at] != INVALID {
            return Some(Met { value: known[at], distance, edge });
        }
        if !is_seen(left, at) {
            return None;
        }
    }
    None
}
