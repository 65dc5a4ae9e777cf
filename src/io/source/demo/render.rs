//! Renders the rows of both images and of their true disparity.
//!
//! Edges of objects are sharp: a pixel shows one surface. The brightness of a point is a function of
//! the point alone (its position, and the size of a pixel of the left view there), never of the
//! view, so both images agree to a fraction of a pixel.

use super::scene::{BLOCK, Block, Frame, Hits, Scene, Surface, Vec3, dot};
use super::texture::{log2_estimate, mix};

/// A point of the left image counts as hidden in the right one if something there is nearer by
/// more than this many pixels of disparity.
const HIDDEN_PX: f32 = 0.05;

/// Tiles and bricks are numbered from here, so that truncation to an integer is rounding down.
const FAR: f32 = 65536.0;

impl Frame<'_> {
    /// Renders row `y` of both images, the disparities, and the visibility of their pixels in the right view.
    pub(super) fn row(
        &self,
        y: usize,
        [left, right]: [&mut [u8]; 2],
        disparity: &mut [f32],
        visible: &mut [bool],
    ) {
        let Scene { options, focal, centre, shift, scale, .. } = self.scene;
        let q = (y as f32 - centre[1]) / focal;
        let width = left.len();
        let cast = |eye: usize, p: &Block| self.views[eye].cast(self.scene, p, q);
        // The right image is shifted by the smallest disparity.
        let right_p = |x: f32| (x + shift - centre[0]) / focal;
        for start in (0..width).step_by(BLOCK) {
            let columns: Block = std::array::from_fn(|i| (start + i) as i32 as f32);
            let p = columns.map(|x| (x - centre[0]) / focal);
            let hits = cast(0, &p);
            let disparities = hits.delta.map(|delta| shift + scale * delta);
            let match_x: Block = std::array::from_fn(|i| columns[i] - disparities[i]);
            let seen = cast(1, &match_x.map(right_p));
            let left_grey = self.shade(&p, q, &hits);

            let p = columns.map(right_p);
            let right_hits = cast(1, &p);
            // The same points' rays from the left camera.
            let p = std::array::from_fn(|i| p[i] + scale * right_hits.delta[i] / focal);
            let right_grey = self.shade(&p, q, &right_hits);
            for (i, x) in (start..width).take(BLOCK).enumerate() {
                disparity[x] = disparities[i];
                let hidden = scale * (seen.delta[i] - hits.delta[i]) > HIDDEN_PX;
                visible[x] = (0.0..=(width - 1) as f32).contains(&match_x[i]) && !hidden;
                left[x] = self.expose(0, y * width + x, left_grey[i]);
                let grey = right_grey[i] * options.right_gain + options.right_offset;
                right[x] = self.expose(1, y * width + x, grey);
            }
        }
    }

    /// Converts the brightness of pixel `index` of a view into the grey level of a noisy sensor.
    fn expose(&self, eye: usize, index: usize, grey: f32) -> u8 {
        // The sum of four bytes is close to normal: mean 510, standard deviation 147.8.
        let strength = self.scene.options.noise / 147.8;
        let bits = mix(self.noise[eye] ^ mix(index as u32));
        let sum: i32 = bits.to_le_bytes().into_iter().map(i32::from).sum();
        (grey + 0.5 + (sum - 510) as f32 * strength) as u8
    }

    /// Returns the grey levels of the points at `hits` along the rays (p, q, 1) of the left view.
    fn shade(&self, p: &Block, q: f32, hits: &Hits) -> Block {
        let (scene, mut grey, mut start) = (self.scene, [0.0; BLOCK], 0);
        for run in hits.surface.chunk_by(|a, b| a == b) {
            let (surface, range) = (run[0], start..start + run.len());
            start = range.end;
            if surface == Surface::Ball as u32 {
                for i in range {
                    grey[i] = self.shade_ball([p[i], q, 1.0], 1.0 / hits.delta[i]);
                }
                continue;
            }
            let plane = &scene.planes[surface as usize];
            // Texture coordinates, and texels per pixel of the left view. With P = eye + z (p, q, 1)
            // and 1/z = n . (p, q, 1): du/dp = z (U_x - (U . ray) z n_x), and so on.
            let n = self.views[0].planes[surface as usize];
            let (mut at, mut span) = ([[0.0; BLOCK]; 2], [[0.0; BLOCK]; 2]);
            for ((at, span), t) in at.iter_mut().zip(&mut span).zip(plane.axes) {
                for i in 0..BLOCK {
                    let z = 1.0 / hits.delta[i];
                    let along = (t[0] * p[i] + (t[1] * q + t[2])) * z;
                    at[i] = along + dot(t, self.eye);
                    let spans = ((t[0] - along * n[0]).abs(), (t[1] - along * n[1]).abs());
                    span[i] = spans.0.max(spans.1) * z * (1.0 / scene.focal);
                }
            }
            for i in range.clone() {
                let level = log2_estimate(span[0][i].max(span[1][i]));
                let texture = scene.texture.sample(at[0][i], at[1][i], level);
                grey[i] = plane.grey + plane.contrast * texture;
            }
            let at = |i: usize| ([at[0][i], at[1][i]], [1.0 / span[0][i], 1.0 / span[1][i]]);
            if surface == Surface::Back as u32 {
                range.for_each(|i| grey[i] = scene.board(grey[i], at(i)));
            } else if surface == Surface::Wall as u32 {
                range.for_each(|i| grey[i] += 40.0 * scene.joint(at(i)));
            } else if surface == Surface::Floor as u32 {
                range.for_each(|i| grey[i] = (grey[i] + scene.tile(at(i))) * self.lit(at(i).0));
            }
        }
        grey
    }

    /// Returns the light on the floor outside the shadow of the ball, which is fainter and wider
    /// when the ball is high.
    fn lit(&self, [u, v]: [f32; 2]) -> f32 {
        let Scene { radius, floor_y, planes, .. } = self.scene;
        let [along_x, along_z] = planes[Surface::Floor as usize].axes;
        let [x, y, z] = self.ball;
        let blur = radius + 0.5 * (floor_y - radius - y);
        let (dx, dz) = (u * (1.0 / along_x[0]) - x, v * (1.0 / along_z[2]) - z);
        let near = 1.0 / (1.0 + (dx * dx + dz * dz) * (1.0 / (blur * blur)));
        1.0 - 0.75 * radius / blur * near * near * near
    }

    /// Returns the grey level of a ball with eight panels of two shades, lit from the upper left.
    fn shade_ball(&self, ray: Vec3, z: f32) -> f32 {
        let Scene { radius, focal, texture, .. } = self.scene;
        let normal: Vec3 =
            std::array::from_fn(|i| (self.eye[i] + ray[i] * z - self.ball[i]) / radius);
        // The texture belongs to the cube around the ball: find the face in this direction.
        let [x, y, w] = self.rotation.map(|row| dot(row, normal));
        let [ax, ay, aw] = [x.abs(), y.abs(), w.abs()];
        let (face, a, b, c) = if ax >= ay && ax >= aw {
            (0.0, y, w, x)
        } else if ay >= aw {
            (1.0, w, x, y)
        } else {
            (2.0, x, y, w)
        };
        let offset = 170.0 * face + if c < 0.0 { 85.0 } else { 0.0 };
        // Texels per radius.
        let scale = focal * radius * 0.45;
        let (u, v) = (a / c * scale + offset, b / c * scale + offset);
        // A pixel spans z / focal across the ray, and more on surfaces at an angle.
        let facing = (-dot(normal, ray)).max(0.2);
        let texture = texture.sample(u, v, log2_estimate(z / focal / radius * scale / facing));

        let odd = (x < 0.0) ^ (y < 0.0) ^ (w < 0.0);
        let panel = if odd { 205.0 } else { 105.0 };
        let light = dot(normal, [-0.48, -0.64, -0.6]).max(0.0);
        (panel + 0.75 * texture) * (0.45 + 0.68 * light)
    }
}

impl Scene {
    /// Returns the grey level of the back wall, which has a blank board in a dark frame.
    fn board(&self, grey: f32, (at, fine): ([f32; 2], [f32; 2])) -> f32 {
        // Pixels from the board's edge, positive inside.
        let inside = |i: usize, low: f32, high: f32| {
            let corner = |part: f32| part * self.half[i] * (self.focal * 0.15) / 0.13;
            (at[i] - corner(low)).min(corner(high) - at[i]) * fine[i]
        };
        match inside(0, -0.12, 0.24).min(inside(1, -0.64, -0.2)) {
            inside if inside >= self.focal * 0.008 => 190.0,
            inside if inside >= 0.0 => grey * 0.4,
            _ => grey,
        }
    }

    /// Returns how much of a pixel lies on the joints between bricks, of about two pixels.
    fn joint(&self, ([u, v], fine): ([f32; 2], [f32; 2])) -> f32 {
        let height = 0.13 * self.half[1] * (self.focal * 0.32) / 0.32;
        let length = 2.2 * height;
        let course = v * (1.0 / height) + FAR;
        let odd = (course as i32 & 1) as f32;
        let along = u * (1.0 / length) + 0.5 * odd + FAR;
        // Pixels from the nearest joint.
        let (level, upright) = (to_edge(course) * height, to_edge(along) * length);
        (2.0 - (level * fine[1]).min(upright * fine[0])).clamp(0.0, 1.0)
    }

    /// Returns the grey levels that tiles of two shades add, blended over a pixel at their edges.
    fn tile(&self, ([u, v], fine): ([f32; 2], [f32; 2])) -> f32 {
        let [along_x, along_z] = self.planes[Surface::Floor as usize].axes;
        let side = 0.55 * self.half[0];
        let (side_u, side_v) = (side * along_x[0], side * along_z[2]);
        let (u, v) = (u * (1.0 / side_u) + FAR, v * (1.0 / side_v) + FAR);
        let odd = ((u as i32 ^ v as i32) & 1) as f32;
        let (edge_u, edge_v) = (to_edge(u) * side_u * fine[0], to_edge(v) * side_v * fine[1]);
        (26.0 - 52.0 * odd) * edge_u.min(edge_v).clamp(0.0, 1.0)
    }
}

/// Returns the distance of a positive number from the nearest whole one.
fn to_edge(value: f32) -> f32 {
    let fraction = value - value as i32 as f32;
    fraction.min(1.0 - fraction)
}
