//! Shading of the surfaces of the demo scene.
//!
//! The brightness of a point is a function of the point alone (its position, and the size of a
//! pixel of the left view there), never of the view, so both images agree to a fraction of a pixel.

use std::ops::Range;

use crate::source::demo::scene::{BLOCK, Hits, Moment, PLANES, Room, Surface, Vec3, View, dot};
use crate::source::demo::texture::{Texture, log2_estimate};

/// Tiles and bricks are numbered from here, so that truncation to an integer is rounding down.
const FAR: f32 = 65536.0;

/// Texture of a plane: u and v of a scene point P, in texels, are U . P and V . P.
#[derive(Clone, Copy)]
struct Material {
    u: Vec3,
    v: Vec3,
    /// Mean grey level and contrast of the texture.
    grey: f32,
    contrast: f32,
}

/// Points of a plane, in texels of its texture.
struct SurfacePoints {
    u: [f32; BLOCK],
    v: [f32; BLOCK],
    /// Pixels of the left view per texel, in u and in v.
    fine_u: [f32; BLOCK],
    fine_v: [f32; BLOCK],
    /// Level of the texture that suits the larger of the two.
    level: [f32; BLOCK],
}

/// Rays of the left view: (p, q, 1).
pub(super) struct Rays<'a> {
    pub p: &'a [f32; BLOCK],
    pub q: f32,
}

/// Shader of all surfaces, for one image format.
pub(super) struct Shader {
    texture: Texture,
    materials: [Material; PLANES],
    /// Texels per radius on the ball.
    ball_scale: f32,
    /// Sides of a floor tile in u and v, and height of a brick, in texels.
    tile: [f32; 2],
    brick: f32,
    /// The board without texture: corners in (u, v) of the back wall, and its frame in pixels.
    board: [[f32; 2]; 2],
    frame: f32,
    /// Focal length in pixels.
    focal: f32,
}

impl Shader {
    /// Shades `room` in images of this focal length in pixels.
    pub(super) fn new(room: &Room, focal: f32, seed: u64) -> Self {
        let [half_x, half_y] = room.half;
        // Texels per scene unit, so that a pixel spans about one texel if the inverse depth is
        // `delta`.
        let scale = |delta: f32| focal * delta;
        let along = |direction: Vec3, texels: f32| direction.map(|c| c * texels);
        let [x, y, z] = [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]];
        let normal = room.planes[Surface::Wall as usize];
        let length = dot(normal, normal).sqrt();
        let along_wall = [normal[2] / length, 0.0, -normal[0] / length];

        let (back, wall, front) = (scale(0.15), scale(0.32), scale(0.34));
        // A row of pixels spans z^2 / (focal * floor_y) of the floor's depth.
        let (floor_u, floor_v) = (scale(0.5), focal * room.floor_y * 0.5 * 0.5);
        let material = |u, v, grey, contrast| Material { u, v, grey, contrast };
        let materials = [
            material(along(x, back), along(y, back), 132.0, 0.8),
            material(along(along_wall, wall * 0.8), along(y, wall), 112.0, 0.75),
            material(along(x, floor_u), along(z, floor_v), 104.0, 0.75),
            material(along(x, front), along(y, front), 172.0, 0.75),
            material(along(z, scale(0.2)), along(y, front), 96.0, 0.65),
        ];
        let corner = |p: f32, q: f32| [p * half_x * back / 0.13, q * half_y * back / 0.13];
        Self {
            texture: Texture::new(seed),
            materials,
            ball_scale: focal * room.radius * 0.45,
            tile: [0.55 * half_x * floor_u, 0.55 * half_x * floor_v],
            brick: 0.13 * half_y * wall / 0.32,
            board: [corner(-0.12, -0.64), corner(0.24, -0.2)],
            frame: focal * 0.008,
            focal,
        }
    }

    /// Computes the grey levels of the points at `hits` along the `rays` of the `left` view.
    /// Entries outside `range` stay as they are.
    #[inline(always)]
    pub(super) fn shade(
        &self,
        rays: &Rays<'_>,
        hits: &Hits,
        range: Range<usize>,
        scene: (&Room, &Moment, &View<'_>),
        grey: &mut [f32; BLOCK],
    ) {
        let (room, moment, left) = scene;
        let mut start = range.start;
        while start < range.end {
            let surface = hits.surface[start];
            let same = hits.surface[start..range.end].iter().take_while(|&&s| s == surface);
            let run = start..start + same.count();
            start = run.end;
            if surface == Surface::Ball as u32 {
                for i in run {
                    grey[i] =
                        self.shade_ball([rays.p[i], rays.q, 1.0], hits.delta[i], room, moment);
                }
                continue;
            }
            let material = &self.materials[surface as usize];
            let normal = left.planes[surface as usize];
            let points = self.surface_points(material, normal, rays, &hits.delta, moment.eye);
            for i in run.clone() {
                let texture = self.texture.sample(points.u[i], points.v[i], points.level[i]);
                grey[i] = material.grey + material.contrast * texture;
            }
            if surface == Surface::Back as u32 {
                self.draw_board(&points, run, grey);
            } else if surface == Surface::Wall as u32 {
                self.draw_joints(&points, run, grey);
            } else if surface == Surface::Floor as u32 {
                self.draw_tiles(&points, run.clone(), grey);
                self.draw_shadow(&points, run, (room, moment), grey);
            }
        }
    }

    /// Returns the texture coordinates of the points at inverse depths `delta`. With P = eye + z
    /// (p, q, 1) and 1/z = n . (p, q, 1): du/dp = z (U_x - (U . ray) z n_x), and so on.
    #[inline(always)]
    fn surface_points(
        &self,
        material: &Material,
        n: Vec3,
        rays: &Rays<'_>,
        delta: &[f32; BLOCK],
        eye: Vec3,
    ) -> SurfacePoints {
        let none = [0.0; BLOCK];
        let mut points =
            SurfacePoints { u: none, v: none, fine_u: none, fine_v: none, level: none };
        let (u_eye, v_eye) = (dot(material.u, eye), dot(material.v, eye));
        let (u_row, v_row) =
            (material.u[1] * rays.q + material.u[2], material.v[1] * rays.q + material.v[2]);
        let per_pixel = 1.0 / self.focal;
        for (i, (&delta, &p)) in delta.iter().zip(rays.p).enumerate() {
            let z = 1.0 / delta;
            let u = (material.u[0] * p + u_row) * z;
            let v = (material.v[0] * p + v_row) * z;
            let span = |t: Vec3, along: f32| {
                let (across, down) = ((t[0] - along * n[0]).abs(), (t[1] - along * n[1]).abs());
                larger(across, down) * z * per_pixel
            };
            let (span_u, span_v) = (span(material.u, u), span(material.v, v));
            points.u[i] = u + u_eye;
            points.v[i] = v + v_eye;
            points.fine_u[i] = 1.0 / span_u;
            points.fine_v[i] = 1.0 / span_v;
            points.level[i] = log2_estimate(larger(span_u, span_v));
        }
        points
    }

    /// Draws a blank board in a dark frame on the back wall.
    #[inline(always)]
    fn draw_board(&self, points: &SurfacePoints, run: Range<usize>, grey: &mut [f32; BLOCK]) {
        let [low, high] = self.board;
        for i in run {
            // Pixels from the board's edge, positive inside.
            let (u, v) = (points.u[i], points.v[i]);
            let inside_u = smaller(u - low[0], high[0] - u) * points.fine_u[i];
            let inside_v = smaller(v - low[1], high[1] - v) * points.fine_v[i];
            let inside = smaller(inside_u, inside_v);
            if inside >= self.frame {
                grey[i] = 190.0;
            } else if inside >= 0.0 {
                grey[i] *= 0.4;
            }
        }
    }

    /// Draws lighter joints of about two pixels between bricks.
    #[inline(always)]
    fn draw_joints(&self, points: &SurfacePoints, run: Range<usize>, grey: &mut [f32; BLOCK]) {
        let (height, length) = (self.brick, 2.2 * self.brick);
        let (per_height, per_length) = (1.0 / height, 1.0 / length);
        for i in run {
            let course = points.v[i] * per_height + FAR;
            let odd = (course as i32 & 1) as f32;
            let along = points.u[i] * per_length + 0.5 * odd + FAR;
            // Pixels from the nearest joint.
            let level = to_edge(course) * height * points.fine_v[i];
            let upright = to_edge(along) * length * points.fine_u[i];
            grey[i] += 40.0 * unit(2.0 - smaller(level, upright));
        }
    }

    /// Draws tiles of two shades, blended over a pixel at their edges.
    #[inline(always)]
    fn draw_tiles(&self, points: &SurfacePoints, run: Range<usize>, grey: &mut [f32; BLOCK]) {
        let [side_u, side_v] = self.tile;
        let (per_u, per_v) = (1.0 / side_u, 1.0 / side_v);
        for i in run {
            let (u, v) = (points.u[i] * per_u + FAR, points.v[i] * per_v + FAR);
            let odd = ((u as i32 ^ v as i32) & 1) as f32;
            let edge_u = to_edge(u) * side_u * points.fine_u[i];
            let edge_v = to_edge(v) * side_v * points.fine_v[i];
            grey[i] += (26.0 - 52.0 * odd) * unit(smaller(edge_u, edge_v));
        }
    }

    /// Draws the shadow of the ball on the floor, fainter and wider when the ball is high.
    #[inline(always)]
    fn draw_shadow(
        &self,
        points: &SurfacePoints,
        run: Range<usize>,
        (room, moment): (&Room, &Moment),
        grey: &mut [f32; BLOCK],
    ) {
        let floor = &self.materials[Surface::Floor as usize];
        let (per_u, per_v) = (1.0 / floor.u[0], 1.0 / floor.v[2]);
        let [x, y, z] = moment.ball;
        let height = room.floor_y - room.radius - y;
        let blur = room.radius + 0.5 * height;
        let (per_square, strength) = (1.0 / (blur * blur), 0.75 * room.radius / blur);
        for i in run {
            let (dx, dz) = (points.u[i] * per_u - x, points.v[i] * per_v - z);
            let near = 1.0 / (1.0 + (dx * dx + dz * dz) * per_square);
            grey[i] *= 1.0 - strength * near * near * near;
        }
    }

    /// Returns the grey level of a ball with eight panels of two shades, lit from the upper left.
    fn shade_ball(&self, ray: Vec3, delta: f32, room: &Room, moment: &Moment) -> f32 {
        let z = 1.0 / delta;
        let normal: Vec3 =
            std::array::from_fn(|i| (moment.eye[i] + ray[i] * z - moment.ball[i]) / room.radius);
        // The texture is that of the cube around the ball: find the face that this direction meets.
        let [x, y, w] = moment.rotation.map(|row| dot(row, normal));
        let [ax, ay, aw] = [x.abs(), y.abs(), w.abs()];
        let (face, a, b, c) = if ax >= ay && ax >= aw {
            (0.0, y, w, x)
        } else if ay >= aw {
            (1.0, w, x, y)
        } else {
            (2.0, x, y, w)
        };
        let offset = 170.0 * face + if c < 0.0 { 85.0 } else { 0.0 };
        let (u, v) = (a / c * self.ball_scale + offset, b / c * self.ball_scale + offset);
        // A pixel spans z / focal across the ray, and more where the ball turns away.
        let facing = larger(-dot(normal, ray), 0.2);
        let span = z / self.focal / room.radius * self.ball_scale / facing;
        let texture = self.texture.sample(u, v, log2_estimate(span));

        let odd = (x < 0.0) ^ (y < 0.0) ^ (w < 0.0);
        let panel = if odd { 205.0 } else { 105.0 };
        let light = larger(dot(normal, [-0.48, -0.64, -0.6]), 0.0);
        (panel + 0.75 * texture) * (0.45 + 0.68 * light)
    }
}

/// Returns the larger number. `f32::max` also handles NaN, which costs time.
#[inline(always)]
fn larger(a: f32, b: f32) -> f32 {
    if a > b { a } else { b }
}

/// Returns the smaller number.
#[inline(always)]
fn smaller(a: f32, b: f32) -> f32 {
    if a < b { a } else { b }
}

/// Returns the number, or the nearer of 0 and 1.
#[inline(always)]
fn unit(value: f32) -> f32 {
    smaller(larger(value, 0.0), 1.0)
}

/// Returns the distance of a positive number from the nearest whole one.
#[inline(always)]
fn to_edge(value: f32) -> f32 {
    let fraction = value - value as i32 as f32;
    smaller(fraction, 1.0 - fraction)
}
