//! Renders the rows of both images and of their true disparity.
//!
//! Edges of objects are sharp: a pixel shows one surface. The brightness of a point is a function of
//! the point alone (its position, and the size of a pixel of the left view there), never of the
//! view, so both images agree to a fraction of a pixel.

use std::array::from_fn;

use super::paint::{Spot, blend, bricks, planks, rug};
use super::scene::{BLOCK, Block, Frame, Hits, Scene, Surface, dot};
use super::texture::{log2_estimate, mix};
use super::walk::Vec3;

/// A point of the left image counts as hidden in the right one if something there is nearer by
/// more than this many pixels of disparity.
const HIDDEN_PX: f32 = 0.05;

/// Place of the lamp.
const LAMP: Vec3 = [0.6, -1.6, 3.0];

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
            let columns: Block = from_fn(|i| (start + i) as i32 as f32);
            let p = columns.map(|x| (x - centre[0]) / focal);
            let hits = cast(0, &p);
            let disparities = hits.delta.map(|delta| shift + scale * delta);
            let match_x: Block = from_fn(|i| columns[i] - disparities[i]);
            let seen = cast(1, &match_x.map(right_p));
            let left_grey = self.shade(&p, q, &hits);

            let p = columns.map(right_p);
            let right_hits = cast(1, &p);
            // The same points' rays from the left camera.
            let p = from_fn(|i| p[i] + scale * right_hits.delta[i] / focal);
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
        let (scene, mut start) = (self.scene, 0);
        let mut light = self.light(p, q, hits);
        // Grey levels without grain, the contrast of the grain, its texels, and how many a pixel spans.
        let (mut paint, mut contrast, mut spans) = ([0.0; BLOCK], [0.0; BLOCK], [1.0; BLOCK]);
        let mut texels = [[0.0; BLOCK]; 2];
        for run in hits.surface.chunk_by(|a, b| a == b) {
            let (surface, range) = (run[0], start..start + run.len());
            start = range.end;
            if surface == Surface::Ball as u32 {
                for i in range {
                    let ball = self.ball(self.eye.ray(p[i], q), 1.0 / hits.delta[i]);
                    (paint[i], light[i], [texels[0][i], texels[1][i]], spans[i]) = ball;
                    contrast[i] = 0.3;
                }
                continue;
            }
            let plane = &scene.planes[surface as usize];
            // Coordinates on the surface, and the lengths that a pixel of the left view spans. Along the camera's axes,
            // with P = eye + z (p, q, 1) and 1/z = n . (p, q, 1): du/dp = z (U_x - (U . ray) z n_x), and so on.
            let n = self.views[0].planes[surface as usize];
            let axes = plane.axes.map(|axis| (self.eye.seen(axis), dot(axis, self.eye.at)));
            let (mut at, mut span) = ([[0.0; BLOCK]; 2], [[0.0; BLOCK]; 2]);
            for ((at, span), (t, origin)) in at.iter_mut().zip(&mut span).zip(axes) {
                for i in 0..BLOCK {
                    let z = 1.0 / hits.delta[i];
                    let along = (t[0] * p[i] + (t[1] * q + t[2])) * z;
                    at[i] = along + origin;
                    let spans = ((t[0] - along * n[0]).abs(), (t[1] - along * n[1]).abs());
                    span[i] = spans.0.max(spans.1) * z * (1.0 / scene.focal);
                }
            }
            let fine = span.map(|span| span.map(|span| 1.0 / span));
            let spot = |i: usize| Spot { at: [at[0][i], at[1][i]], fine: [fine[0][i], fine[1][i]] };
            // Compilers make vectors of what holds for whole blocks.
            let painted: Block = match surface {
                _ if surface == Surface::Back as u32 => from_fn(|i| scene.back(spot(i))),
                _ if surface == Surface::Wall as u32 => from_fn(|i| bricks(spot(i))),
                _ if surface == Surface::Floor as u32 => from_fn(|i| planks(spot(i))),
                _ if surface == Surface::ColumnFront as u32 => from_fn(|i| scene.column(spot(i))),
                _ => from_fn(|i| 0.6 * scene.column(spot(i))),
            };
            let [across, down] = plane.texels;
            for i in range {
                paint[i] = match surface {
                    _ if surface == Surface::Back as u32 => scene.hang(painted[i], spot(i)),
                    _ if surface == Surface::Floor as u32 => rug(painted[i], spot(i)),
                    _ => painted[i],
                };
                contrast[i] = plane.contrast;
                [texels[0][i], texels[1][i]] = [at[0][i] * across, at[1][i] * down];
                spans[i] = (span[0][i] * across).max(span[1][i] * down);
            }
        }
        for span in &mut spans {
            *span = log2_estimate(*span);
        }
        let grain = scene.texture.sample(&texels, &spans);
        from_fn(|i| (paint[i] + contrast[i] * grain[i]) * light[i])
    }

    /// Returns the light at the points at `hits`: that of a lamp, weaker in corners and in the shadow of the
    /// ball, which is fainter and wider when the ball is high.
    fn light(&self, p: &Block, q: f32, hits: &Hits) -> Block {
        let Scene { radius, floor_y, planes, .. } = self.scene;
        let sides: [(Vec3, f32); 3] = from_fn(|i| {
            let normal = planes[i].normal;
            (normal, 1.0 / dot(normal, normal).sqrt())
        });
        let blur = radius + 0.5 * (floor_y - radius - self.ball[1]);
        let (narrow, dark) = (1.0 / (blur * blur), 0.75 * radius / blur);
        from_fn(|i| {
            let z = 1.0 / hits.delta[i];
            let ray = self.eye.ray(p[i], q);
            let at: Vec3 = from_fn(|i| self.eye.at[i] + ray[i] * z);
            let [x, y, z]: Vec3 = from_fn(|i| at[i] - LAMP[i]);
            let lamp = 1.0 / (1.0 + (x * x + y * y + z * z) * (1.0 / 12.0));
            let (mut open, mut all) = (0.65 + 0.7 * lamp, 1.0);
            for (surface, (normal, depth)) in sides.iter().enumerate() {
                let distance = (1.0 - dot(*normal, at)) * depth;
                let is_other = hits.surface[i] != surface as u32;
                open *= distance + if is_other { 0.06 } else { 0.12 };
                all *= distance + 0.12;
            }
            let [dx, dz] = [0, 2].map(|i| at[i] - self.ball[i]);
            let near = 1.0 / (1.0 + (dx * dx + dz * dz) * narrow);
            let is_floor = hits.surface[i] == Surface::Floor as u32;
            let shadow = if is_floor { dark * near * near * near } else { 0.0 };
            open / all * (1.0 - shadow)
        })
    }

    /// Returns the paint of a ball with eight panels of two shades, its light, its texels, and how many a pixel
    /// spans.
    fn ball(&self, ray: Vec3, z: f32) -> (f32, f32, [f32; 2], f32) {
        let Scene { radius, focal, .. } = self.scene;
        let normal: Vec3 = from_fn(|i| (self.eye.at[i] + ray[i] * z - self.ball[i]) / radius);
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
        let texels = [a, b].map(|side| side / c * scale + offset);
        // A pixel spans z / focal across the ray, and more on surfaces at an angle.
        let facing = (-dot(normal, ray)).max(0.2);
        let span = z / focal / radius * scale / facing;

        let odd = (x < 0.0) ^ (y < 0.0) ^ (w < 0.0);
        let panel = if odd { 205.0 } else { 90.0 };
        // Pixels from the nearest seam.
        let seam = ax.min(ay).min(aw) * radius * focal / z;
        let light = 0.4 + 0.75 * dot(normal, [0.36, -0.72, -0.6]).max(0.0);
        (blend(60.0, panel, (seam / 2.0).min(1.0)), light, texels, span)
    }
}
