//! Paint of the surfaces of the demo scene: brick, planks and a rug, a papered wall with a picture and a door.
//!
//! All patterns are filtered over the pixel that shows them, so that distant ones become even instead of
//! flickering. Lengths are in units of the scene, which are metres.

use std::array::from_fn;

use super::scene::Scene;
use super::texture::{WHOLE, mix};

/// A point of a surface, and how many pixels of the left view its unit of length has along both axes.
#[derive(Clone, Copy)]
pub(super) struct Spot {
    pub at: [f32; 2],
    pub fine: [f32; 2],
}

/// Along one axis a place in units of a pattern's period, and the pixels of a period.
#[derive(Clone, Copy)]
struct Cells {
    at: f32,
    fine: f32,
}

impl Spot {
    /// Returns how much of the pixel lies in a rectangle that is smaller by `margin` on all sides.
    fn inside(self, rectangle: [[f32; 2]; 2], margin: f32) -> f32 {
        let pixels = |i: usize| {
            let [low, high] = rectangle[i];
            ((self.at[i] - low).min(high - self.at[i]) - margin) * self.fine[i]
        };
        (pixels(0).min(pixels(1)) + 0.5).clamp(0.0, 1.0)
    }

    /// Paints rectangles with these margins and grey levels onto each other.
    fn nested(self, ground: f32, rectangle: [[f32; 2]; 2], layers: &[(f32, f32)]) -> f32 {
        layers.iter().fold(ground, |below, &(margin, grey)| {
            blend(below, grey, self.inside(rectangle, margin))
        })
    }

    fn cells(self, i: usize, period: f32) -> Cells {
        Cells { at: self.at[i] * (1.0 / period), fine: self.fine[i] * period }
    }
}

impl Cells {
    fn moved(self, by: f32) -> Self {
        Self { at: self.at + by, ..self }
    }

    /// Returns the number of the cell, in the low bits.
    fn number(self) -> u32 {
        (self.at + WHOLE).to_bits()
    }

    /// Returns how much of the pixel lies on strips of `width` between cells: the difference of the integral of
    /// these strips at its ends.
    fn edges(self, width: f32) -> f32 {
        let integral = |at: f32| {
            let edge = (at + WHOLE) - WHOLE;
            edge * width + (at - edge).max(-0.5 * width).min(0.5 * width)
        };
        let half = 0.5 / self.fine;
        (integral(self.at + 0.5 + half) - integral(self.at + 0.5 - half)) * self.fine
    }

    /// Returns a number from -1 to 1 of the cell here and in `other`, which fades where cells are small.
    fn shade(self, other: Self) -> f32 {
        let number = mix(self.number() ^ (other.number() << 16)) >> 8;
        let clear = (0.5 * self.fine.min(other.fine) - 1.0).clamp(0.0, 1.0);
        (number as i32 as f32 / (1 << 23) as f32 - 1.0) * clear
    }
}

/// Returns grey level `a` where `share` is 0 and `b` where it is 1.
#[inline(always)]
pub(super) fn blend(a: f32, b: f32, share: f32) -> f32 {
    a + share * (b - a)
}

/// Bricks with joints of mortar.
#[inline(always)]
pub(super) fn bricks(spot: Spot) -> f32 {
    let course = spot.cells(1, 0.075);
    let odd = (course.number() & 1) as i32 as f32;
    let along = spot.cells(0, 0.25).moved(0.5 * odd);
    let mortar = course.edges(0.16).max(along.edges(0.05));
    blend(104.0 + 26.0 * along.shade(course), 176.0, mortar)
}

/// Planks along the room.
#[inline(always)]
pub(super) fn planks(spot: Spot) -> f32 {
    let across = spot.cells(0, 0.13);
    let along = spot.cells(1, 1.3).moved(0.37 * (across.number() & 7) as i32 as f32);
    let gap = across.edges(0.05).max(along.edges(0.008));
    blend(126.0 + 24.0 * across.shade(along), 55.0, gap)
}

/// A rug on a floor of this grey level.
pub(super) fn rug(ground: f32, spot: Spot) -> f32 {
    let rug = [[-0.72, 0.42], [1.75, 4.3]];
    if spot.inside(rug, 0.0) == 0.0 {
        return ground;
    }
    let [u, v] = [spot.cells(0, 0.28), spot.cells(1, 0.44)];
    let fine = u.fine * v.fine / (u.fine + v.fine);
    let diagonal = |at: f32| Cells { at, fine }.edges(0.5);
    let field = 82.0 + 52.0 * (diagonal(u.at + v.at) + diagonal(u.at - v.at));
    let layers = [(0.0, 70.0), (0.04, 180.0), (0.1, 90.0), (0.13, 165.0), (0.16, field)];
    spot.nested(ground, rug, &layers)
}

impl Scene {
    /// Striped paper above panels and a skirting board.
    #[inline(always)]
    pub(super) fn back(&self, spot: Spot) -> f32 {
        let stripe = spot.cells(0, 0.3);
        let paper = blend(120.0, 134.0, stripe.edges(0.5));
        let paper = blend(paper, 112.0, stripe.moved(0.25).edges(0.06));
        let panels = blend(158.0, 96.0, spot.cells(0, 0.16).edges(0.09));
        let upto_1_m = [[-99.0, 99.0], [self.floor_y - 1.0, 99.0]];
        let rails = [(0.12, 190.0), (0.2, 90.0), (0.23, panels), (0.82, 100.0), (0.84, 182.0)];
        spot.nested(paper, upto_1_m, &rails)
    }

    /// A framed picture of hills and a door with panels on a wall of this grey level.
    pub(super) fn hang(&self, wall: f32, spot: Spot) -> f32 {
        let side = |i: usize, parts: [f32; 2]| parts.map(|part| part * self.half[i]);
        let [left, right] = side(0, [4.55, 5.95]);
        let (top, middle) = (self.floor_y - 4.9 * self.half[1], 0.5 * (left + right));
        let (lock, door) = (self.floor_y - 0.95, [[left, right], [top, self.floor_y + 1.0]]);
        if spot.inside(door, 0.0) > 0.0 {
            let mut grey = spot.nested(wall, door, &[(0.0, 195.0), (0.09, 60.0), (0.11, 118.0)]);
            for across in [[left + 0.2, middle - 0.05], [middle + 0.05, right - 0.2]] {
                for down in [[top + 0.2, lock - 0.06], [lock + 0.06, self.floor_y - 0.2]] {
                    grey = spot.nested(grey, [across, down], &[(0.0, 84.0), (0.03, 132.0)]);
                }
            }
            return grey;
        }
        let frame = [side(0, [-0.92, 1.85]), side(1, [-4.92, -1.54])];
        if spot.inside(frame, 0.0) == 0.0 {
            return wall;
        }
        let [x, y] = from_fn(|i| (spot.at[i] - frame[i][0]) / (frame[i][1] - frame[i][0]));
        let fine = spot.fine[1] * (frame[1][1] - frame[1][0]);
        let paint = |ground: f32, grey: f32, depth: f32| {
            blend(ground, grey, (depth * fine + 0.5).clamp(0.0, 1.0))
        };
        let (dx, dy) = (1.3 * (x - 0.66), y - 0.34);
        let mut hills = paint(blend(120.0, 215.0, y), 245.0, 0.09 - (dx * dx + dy * dy).sqrt());
        for (hill, height, grey) in [(0.0, 0.44, 135.0), (170.0, 0.56, 95.0), (340.0, 0.7, 62.0)] {
            let ridge = 0.004 * self.texture.sample(&[[90.0 * x], [hill]], &[3.0])[0];
            hills = paint(hills, grey, y - height - ridge);
        }
        spot.nested(wall, frame, &[(0.0, 58.0), (0.08, 205.0), (0.2, hills)])
    }

    /// Blocks of stone on a base.
    #[inline(always)]
    pub(super) fn column(&self, spot: Spot) -> f32 {
        let course = spot.cells(1, 0.26);
        let stone = blend(170.0, 105.0, course.edges(0.05));
        spot.nested(stone, [[-99.0, 99.0], [self.floor_y - 0.14, 99.0]], &[(0.0, 115.0)])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_are_sharp_nearby_and_even_far_away() {
        for (at, expected) in [(-3.5, 1.0), (-2.7, 0.0), (0.5, 1.0), (0.6, 0.5), (7.0, 0.0)] {
            let share = Cells { at, fine: 100.0 }.edges(0.2);
            assert!((share - expected).abs() < 1e-3, "{share} at {at}");
        }
        let shade = |at: f32, fine: f32| Cells { at, fine }.shade(Cells { at: 4.0, fine: 9.0 });
        for i in -50..50 {
            let at = i as f32;
            assert_eq!(shade(at - 0.45, 4.0), shade(at + 0.45, 4.0));
            assert!(shade(at, 4.0) != shade(at + 1.0, 4.0) && shade(at, 2.0) == 0.0);
            // A pixel of whole cells has the mean wherever it begins.
            let share = Cells { at: 0.17 * at, fine: 1.0 / 3.0 }.edges(0.2);
            assert!((share - 0.2).abs() < 1e-3, "{share} at {at}");
        }
    }
}
