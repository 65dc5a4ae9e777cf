//! The geometry of the demo scene: a room of three slanted planes with a column that hides part of
//! it, and a ball that bounces around the column, in front of it and behind.
//!
//! Units: the image plane lies at depth 1, so that a pixel's ray is (p, q, 1) with p, q in tangents
//! and a point at depth Z has the inverse depth `delta = 1/Z`, which is its disparity up to scale.
//! y points down. All of it is +, -, *, / and square roots, which IEEE 754 defines to the last bit.

use super::options::DemoOptions;
use super::texture::{Texture, seeded};
use super::walk::{Eye, Vec3, sine};

/// Surface that a ray hits. All but the ball are planes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Surface {
    Back,
    Wall,
    Floor,
    ColumnFront,
    ColumnSide,
    Ball,
}

/// Number of rays of a row that are cast together, so that compilers make vectors.
pub(super) const BLOCK: usize = 64;

pub(super) type Block = [f32; BLOCK];

/// First hits of the rays of a block.
pub(super) struct Hits {
    /// [`Surface`] as a number.
    pub surface: [u32; BLOCK],
    /// Inverse depth.
    pub delta: Block,
}

pub(super) struct Plane {
    /// Normal, scaled so that n . P = 1 holds on the plane.
    pub normal: Vec3,
    /// Coordinates u and v of a scene point P on the surface are their products with P.
    pub axes: [Vec3; 2],
    /// Texels of the grain per unit of u and v.
    pub texels: [f32; 2],
    /// Contrast of the grain.
    pub contrast: f32,
}

/// Static parts of the scene, for one image format.
pub(super) struct Scene {
    pub options: DemoOptions,
    /// Focal length and centre of the image, in pixels.
    pub focal: f32,
    pub centre: [f32; 2],
    /// Half the image's width and height, in tangents.
    pub half: [f32; 2],
    /// Disparity of a point: `shift + scale * delta`.
    pub shift: f32,
    pub scale: f32,
    /// By [`Surface`].
    pub planes: [Plane; 5],
    pub texture: Texture,
    column_x: [f32; 2],
    /// Inverse depth of the column's rear and front.
    column_delta: [f32; 2],
    pub floor_y: f32,
    pub radius: f32,
}

/// Disparity scale: `delta` of the nearest floor in the image.
const FLOOR_NEAR: f32 = 0.8;

impl Scene {
    pub(super) fn new(options: DemoOptions) -> Self {
        let size = [options.width, options.height];
        let (focal, half) = (options.focal(), options.half());
        let [half_x, half_y] = half;
        let floor_y = half_y / FLOOR_NEAR;
        let column_z = [2.9, 3.5];
        let column_x = [0.36, 0.56].map(|part| part * half_x * column_z[0]);
        let wall: Vec3 = [-0.714 / half_x, 0.0, -0.0943];
        let length = dot(wall, wall).sqrt();
        let plane = |normal, axes, texels, contrast| Plane { normal, axes, texels, contrast };
        // Texels per scene unit, so that a pixel spans about one texel if the inverse depth is `delta`.
        let scale = |delta: f32| focal * delta;
        // A row of pixels spans z^2 / (focal * floor_y) of the floor's depth. Wood is streaky.
        let floor_scale = [scale(0.5), focal * floor_y * 0.12];
        let [x, y, z] = [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]];
        let along_wall = [wall[2] / length, 0.0, -wall[0] / length];
        let planes = [
            plane([0.03 / half_x, 0.0, 0.13], [x, y], [scale(0.15); 2], 0.3),
            plane(wall, [along_wall, y], [scale(0.26), scale(0.32)], 0.35),
            plane([0.0, 1.0 / floor_y, 0.0], [x, z], floor_scale, 0.4),
            plane([0.0, 0.0, 1.0 / column_z[0]], [x, y], [scale(0.34); 2], 0.25),
            plane([1.0 / column_x[0], 0.0, 0.0], [z, y], [scale(0.2), scale(0.34)], 0.15),
        ];
        Self {
            focal,
            centre: size.map(|side| (side - 1) as f32 / 2.0),
            half,
            shift: options.disparities.min as f32,
            scale: (options.disparities.count - 1) as f32,
            planes,
            texture: Texture::new(options.seed),
            column_x,
            column_delta: [1.0 / column_z[1], 1.0 / column_z[0]],
            floor_y,
            radius: 0.6 * half_x.min(half_y),
            options,
        }
    }
}

pub(super) struct Frame<'a> {
    pub scene: &'a Scene,
    pub eye: Eye,
    pub ball: Vec3,
    /// Rows of the rotation from the scene to the ball.
    pub rotation: [Vec3; 3],
    pub views: [View; 2],
    /// Seeds of the noise of both images.
    pub noise: [u32; 2],
}

/// Bounces of the ball within a loop.
const BOUNCES: f64 = 8.0;

impl<'a> Frame<'a> {
    /// Prepares the scene `seconds` after its start; `number` selects the noise.
    pub(super) fn new(scene: &'a Scene, number: u64, seconds: f64) -> Self {
        let seed = scene.options.seed;
        let turn = scene.options.turn(seconds);
        let [half_x, half_y] = scene.half;
        let eye = Eye::new(&scene.options.camera(seconds));

        let bounce = (turn * BOUNCES).fract() as f32;
        let height = 4.0 * bounce * (1.0 - bounce) * 0.9 * half_y;
        let ball = [
            (0.5 - 1.9 * sine(turn)) * half_x,
            scene.floor_y - scene.radius - height,
            2.9 - 1.5 * sine(turn + 0.25),
        ];
        // Three turns about a fixed tilted axis (a, b, 0) each loop: Rodrigues' formula.
        let (s, c) = (sine(3.0 * turn), sine(3.0 * turn + 0.25));
        let (a, b, rest) = (0.8, 0.6, 1.0 - c);
        let rotation = [
            [c + a * a * rest, a * b * rest, b * s],
            [a * b * rest, c + b * b * rest, -a * s],
            [-b * s, a * s, c],
        ];
        let views =
            [eye, eye.shifted(scene.scale / scene.focal)].map(|eye| View::new(scene, ball, eye));
        let seed = seed ^ number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        Self { scene, eye, ball, rotation, views, noise: [200, 201].map(|n| seeded(seed, n)) }
    }
}

pub(super) struct View {
    eye: Eye,
    /// Inverse depth along (p, q, 1) is n . (p, q, 1) with these normals.
    pub planes: [Vec3; 5],
    /// Centre of the ball, along the camera's axes.
    ball: Vec3,
    /// |centre|^2 - radius^2.
    ball_power: f32,
}

impl View {
    fn new(scene: &Scene, ball: Vec3, eye: Eye) -> Self {
        let planes = scene.planes.each_ref().map(|plane| {
            let distance = 1.0 - dot(plane.normal, eye.at);
            eye.seen(plane.normal).map(|component| component / distance)
        });
        let ball = eye.seen(std::array::from_fn(|i| ball[i] - eye.at[i]));
        Self { eye, planes, ball, ball_power: dot(ball, ball) - scene.radius * scene.radius }
    }

    /// Casts the rays (p, q, 1) to their first hits.
    pub(super) fn cast(&self, scene: &Scene, p: &Block, q: f32) -> Hits {
        let mut hits = Hits { surface: [0; BLOCK], delta: [f32::NEG_INFINITY; BLOCK] };
        for ((surface, nearest), &p) in hits.surface.iter_mut().zip(&mut hits.delta).zip(p) {
            let delta = |surface: Surface| {
                let n = self.planes[surface as usize];
                n[0] * p + (n[1] * q + n[2])
            };
            let mut meet = |other: Surface, delta: f32, exists: bool| {
                let is_nearer = exists & (delta > *nearest);
                *surface = if is_nearer { other as u32 } else { *surface };
                *nearest = if is_nearer { delta } else { *nearest };
            };
            // The room is convex and the camera is inside, so the nearest plane is the visible one.
            for surface in [Surface::Back, Surface::Wall, Surface::Floor] {
                meet(surface, delta(surface), true);
            }
            // The column reaches from the floor out of the image. Only its front and its left side
            // are visible.
            let (front, side) = (delta(Surface::ColumnFront), delta(Surface::ColumnSide));
            let within = |[low, high]: [f32; 2], value: f32| (low <= value) & (value <= high);
            let [across, _, along] = self.eye.ray(p, q);
            let x = self.eye.at[0] + across / front;
            meet(Surface::ColumnFront, front, within(scene.column_x, x));
            // 1 / z in the scene; the camera is at another z.
            let z_inverse = side / (along + self.eye.at[2] * side);
            meet(Surface::ColumnSide, side, within(scene.column_delta, z_inverse));
            // |t (p, q, 1) - centre|^2 = radius^2, solved for 1/t: power delta^2 - 2 b delta + a = 0.
            // NaN if the ray misses the ball, and NaN is never larger.
            let a = p * p + q * q + 1.0;
            let b = p * self.ball[0] + q * self.ball[1] + self.ball[2];
            let root = (b * b - a * self.ball_power).sqrt();
            meet(Surface::Ball, (b + root) / self.ball_power, true);
        }
        hits
    }
}

#[inline(always)]
pub(super) fn dot(a: Vec3, b: Vec3) -> f32 {
    a[0] * b[0] + a[1] * b[1] + a[2] * b[2]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sine_is_a_sine() {
        for i in -40..80 {
            let turns = f64::from(i) / 32.0;
            let expected = (turns * std::f64::consts::TAU).sin();
            assert!((f64::from(sine(turns)) - expected).abs() < 1e-7, "{turns}");
        }
    }

    #[test]
    fn a_hit_on_the_ball_lies_on_the_ball() {
        let scene = Scene::new(DemoOptions::default());
        let frame = Frame::new(&scene, 0, 4.2);
        let Frame { views: [view, _], eye, ball, .. } = &frame;
        let centre: Vec3 = std::array::from_fn(|i| ball[i] - eye.at[i]);
        let (p, q) = (centre[0] / centre[2], centre[1] / centre[2]);
        for (dp, dq) in [(0.0, 0.0), (0.08, 0.0), (-0.05, 0.06), (0.0, -0.1)] {
            let hits = view.cast(&scene, &[p + dp; BLOCK], q + dq);
            assert_eq!(hits.surface[5], Surface::Ball as u32);
            let z = 1.0 / hits.delta[5];
            let to_centre: Vec3 =
                [(p + dp) * z - centre[0], (q + dq) * z - centre[1], z - centre[2]];
            assert!((dot(to_centre, to_centre).sqrt() - scene.radius).abs() < 1e-4);
            assert!(z < centre[2]);
        }
    }

    #[test]
    fn every_ray_of_a_loop_hits_something_in_range_and_the_rotation_is_one() {
        let scenes =
            [false, true].map(|walks| Scene::new(DemoOptions { walks, ..DemoOptions::default() }));
        for (scene, i) in scenes.iter().flat_map(|scene| (0..128).map(move |i| (scene, i))) {
            let frame = Frame::new(scene, 0, f64::from(i) / 8.0);
            for (j, row) in frame.rotation.iter().enumerate() {
                for (k, other) in frame.rotation.iter().enumerate() {
                    let expected = if j == k { 1.0 } else { 0.0 };
                    assert!((dot(*row, *other) - expected).abs() < 1e-5);
                }
            }
            for y in -20..=20 {
                let p = std::array::from_fn(|i| 0.55 * (2.0 * i as f32 / 63.0 - 1.0));
                for delta in frame.views[0].cast(scene, &p, 0.41 * y as f32 / 20.0).delta {
                    assert!((0.05..0.95).contains(&delta), "{delta}");
                }
            }
        }
    }
}
