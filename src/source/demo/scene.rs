//! The geometry of the demo scene: a room of three slanted planes with a column that hides part of
//! it, and a ball that bounces around the column, in front of it and behind.
//!
//! Units: the image plane lies at depth 1, so that a pixel's ray is (p, q, 1) with p, q in tangents
//! and a point at depth Z has the inverse depth `delta = 1/Z`, which is its disparity up to scale.
//! y points down. All of it is +, -, *, / and square roots, which IEEE 754 defines to the last bit.

/// A vector or point (x, y, z).
pub(super) type Vec3 = [f32; 3];

/// Surface that a ray hits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub(super) enum Surface {
    Back,
    Wall,
    Floor,
    ColumnFront,
    ColumnSide,
    Ball,
}

/// Number of [`Surface`]s that are planes; they come first.
pub(super) const PLANES: usize = 5;

/// Number of rays of a row that are cast together.
pub(super) const BLOCK: usize = 64;

/// Hits of the rays of a block.
pub(super) struct Hits {
    /// [`Surface`] as a number.
    pub surface: [u32; BLOCK],
    /// Inverse depth.
    pub delta: [f32; BLOCK],
}

/// Static parts of the scene, for one image format.
pub(super) struct Room {
    /// Half the image's width and height, in tangents.
    pub half: [f32; 2],
    /// Normals of the planes, scaled so that n . P = 1 holds on the plane, by [`Surface`].
    pub planes: [Vec3; PLANES],
    /// Left and right edge of the column.
    column_x: [f32; 2],
    /// Depth of the column's front and rear.
    column_z: [f32; 2],
    /// Height of the floor.
    pub floor_y: f32,
    /// Radius of the ball.
    pub radius: f32,
}

/// Disparity scale: `delta` of the nearest floor in the image.
const FLOOR_NEAR: f32 = 0.8;

impl Room {
    /// Creates the room that fills an image of half size `half` in tangents.
    pub(super) fn new(half: [f32; 2]) -> Self {
        let [half_x, half_y] = half;
        let floor_y = half_y / FLOOR_NEAR;
        let column_z = [2.9, 3.5];
        let column_x = [0.36 * half_x * column_z[0], 0.56 * half_x * column_z[0]];
        let planes = [
            [0.03 / half_x, 0.0, 0.13],
            [-0.714 / half_x, 0.0, -0.0943],
            [0.0, 1.0 / floor_y, 0.0],
            [0.0, 0.0, 1.0 / column_z[0]],
            [1.0 / column_x[0], 0.0, 0.0],
        ];
        let radius = 0.6 * half_x.min(half_y);
        Self { half, planes, column_x, column_z, floor_y, radius }
    }
}

/// Positions of the moving parts at one moment.
#[derive(Clone, Copy, Debug)]
pub(super) struct Moment {
    /// Position of the left camera.
    pub eye: Vec3,
    /// Centre of the ball.
    pub ball: Vec3,
    /// Rows of the rotation from the scene to the ball.
    pub rotation: [Vec3; 3],
}

/// Seconds after which the motion repeats.
const LOOP_SECONDS: f64 = 8.0;

/// Bounces of the ball within a loop.
const BOUNCES: f64 = 8.0;

impl Moment {
    /// Computes the moment `seconds` after the start, which lies `phase` (0 to 1) into the loop.
    pub(super) fn new(room: &Room, seconds: f64, phase: f64) -> Self {
        let turn = (seconds / LOOP_SECONDS + phase).fract();
        let [half_x, half_y] = room.half;
        let (sine, cosine) = (sine(turn), sine(turn + 0.25));
        let eye = [0.12 * half_x * sine, 0.04 * half_y * self::sine(2.0 * turn), 0.0];

        let bounce = (turn * BOUNCES).fract() as f32;
        let height = 4.0 * bounce * (1.0 - bounce) * 0.9 * half_y;
        let ball =
            [(0.5 - 1.9 * sine) * half_x, room.floor_y - room.radius - height, 2.9 - 1.5 * cosine];
        // Three turns about a fixed tilted axis (0.6, 0.8, 0) each loop: with s, c of the angle and
        // the axis (a, b, 0), Rodrigues' formula.
        let (s, c) = (self::sine(3.0 * turn), self::sine(3.0 * turn + 0.25));
        let (a, b, rest) = (0.8, 0.6, 1.0 - c);
        let rotation = [
            [c + a * a * rest, a * b * rest, b * s],
            [a * b * rest, c + b * b * rest, -a * s],
            [-b * s, a * s, c],
        ];
        Self { eye, ball, rotation }
    }
}

/// Returns the sine of `turns` full turns by the Taylor polynomial of a quarter turn. Unlike the
/// system's sine it has the same bits everywhere.
fn sine(turns: f64) -> f32 {
    let turns = turns - turns.floor();
    // Fold onto -1/4..=1/4.
    let folded = match turns {
        t if t < 0.25 => t,
        t if t < 0.75 => 0.5 - t,
        t => t - 1.0,
    };
    let x = folded * std::f64::consts::TAU;
    let square = x * x;
    let series = [
        1.0 / 6227020800.0,
        -1.0 / 39916800.0,
        1.0 / 362880.0,
        -1.0 / 5040.0,
        1.0 / 120.0,
        -1.0 / 6.0,
        1.0,
    ];
    (x * series.iter().fold(0.0, |sum, term| sum * square + term)) as f32
}

/// The scene as one view sees it at one moment.
pub(super) struct View<'a> {
    room: &'a Room,
    eye: Vec3,
    /// Inverse depth along (p, q, 1) is n . (p, q, 1) with these normals.
    pub planes: [Vec3; PLANES],
    /// Centre of the ball relative to the camera.
    ball: Vec3,
    /// |centre|^2 - radius^2.
    ball_power: f32,
    /// Bounds of the ball in p and in q.
    ball_p: [f32; 2],
    ball_q: [f32; 2],
    /// Bounds of the column in p.
    column_p: [f32; 2],
}

impl<'a> View<'a> {
    /// Creates the view from `eye`.
    pub(super) fn new(room: &'a Room, ball: Vec3, eye: Vec3) -> Self {
        let planes = room.planes.map(|n| {
            let distance = 1.0 - dot(n, eye);
            n.map(|component| component / distance)
        });
        let ball: Vec3 = std::array::from_fn(|i| ball[i] - eye[i]);
        let r = room.radius;
        // The bounding box of the ball, projected at its nearest and its farthest depth.
        let bounds = |centre: f32| {
            let quotients = [
                (centre - r) / (ball[2] - r),
                (centre - r) / (ball[2] + r),
                (centre + r) / (ball[2] - r),
                (centre + r) / (ball[2] + r),
            ];
            [quotients[0].min(quotients[1]), quotients[2].max(quotients[3])]
        };
        let front = room.column_x.map(|x| (x - eye[0]) / room.column_z[0]);
        let rear = (room.column_x[0] - eye[0]) / room.column_z[1];
        Self {
            room,
            eye,
            planes,
            ball,
            ball_power: dot(ball, ball) - r * r,
            ball_p: bounds(ball[0]),
            ball_q: bounds(ball[1]),
            column_p: [front[0].min(rear), front[1].max(rear)],
        }
    }

    /// Returns the rays of one row.
    pub(super) fn row(&self, q: f32) -> RowView<'_> {
        RowView {
            view: self,
            q,
            offsets: self.planes.map(|n| n[1] * q + n[2]),
            meets_ball: self.ball_q[0] <= q && q <= self.ball_q[1],
        }
    }
}

/// One row of a [`View`].
pub(super) struct RowView<'a> {
    view: &'a View<'a>,
    pub q: f32,
    offsets: [f32; PLANES],
    meets_ball: bool,
}

impl RowView<'_> {
    /// Casts the rays (p, q, 1) to their first hits.
    #[inline(always)]
    pub(super) fn cast(&self, p: &[f32; BLOCK]) -> Hits {
        let view = self.view;
        let mut hits = Hits { surface: [0; BLOCK], delta: [0.0; BLOCK] };
        let slope = |surface: Surface| view.planes[surface as usize][0];
        let offset = |surface: Surface| self.offsets[surface as usize];
        let (back, wall) = (slope(Surface::Back), slope(Surface::Wall));
        let (back_offset, wall_offset) = (offset(Surface::Back), offset(Surface::Wall));
        let floor = offset(Surface::Floor);
        // The room is convex and the camera is inside, so the nearest plane is the visible one.
        for ((delta, surface), p) in hits.delta.iter_mut().zip(&mut hits.surface).zip(p) {
            let (back, wall) = (back * p + back_offset, wall * p + wall_offset);
            let (nearer, which) = if wall > back {
                (wall, Surface::Wall as u32)
            } else {
                (back, Surface::Back as u32)
            };
            let is_floor = floor > nearer;
            *delta = if is_floor { floor } else { nearer };
            *surface = if is_floor { Surface::Floor as u32 } else { which };
        }
        let (mut least, mut most) = (p[0], p[0]);
        for &p in p {
            least = if p < least { p } else { least };
            most = if p > most { p } else { most };
        }
        let meets = |bounds: [f32; 2]| bounds[0] <= most && least <= bounds[1];
        if meets(view.column_p) {
            self.cast_column(p, &mut hits);
        }
        if self.meets_ball && meets(view.ball_p) {
            self.cast_ball(p, &mut hits);
        }
        hits
    }

    /// Casts rays at the column, which reaches from the floor out of the image. Only its front and
    /// its left side are visible.
    fn cast_column(&self, p: &[f32; BLOCK], hits: &mut Hits) {
        let (view, room) = (self.view, self.view.room);
        let front = self.offsets[Surface::ColumnFront as usize];
        let side_slope = view.planes[Surface::ColumnSide as usize][0];
        let side_range = 1.0 / room.column_z[1]..=1.0 / room.column_z[0];
        for ((delta, surface), p) in hits.delta.iter_mut().zip(&mut hits.surface).zip(p) {
            let x = view.eye[0] + p / front;
            let side = side_slope * p;
            if front > *delta && room.column_x[0] <= x && x <= room.column_x[1] {
                (*delta, *surface) = (front, Surface::ColumnFront as u32);
            } else if side > *delta && side_range.contains(&side) {
                (*delta, *surface) = (side, Surface::ColumnSide as u32);
            }
        }
    }

    /// Casts rays at the ball: |t (p, q, 1) - centre|^2 = radius^2, solved for 1/t: power delta^2 -
    /// 2 b delta + a = 0.
    fn cast_ball(&self, p: &[f32; BLOCK], hits: &mut Hits) {
        let view = self.view;
        for ((nearest, surface), p) in hits.delta.iter_mut().zip(&mut hits.surface).zip(p) {
            let a = p * p + self.q * self.q + 1.0;
            let b = p * view.ball[0] + self.q * view.ball[1] + view.ball[2];
            let discriminant = b * b - a * view.ball_power;
            // NaN if the ray misses the ball, and NaN is never larger.
            let delta = (b + discriminant.sqrt()) / view.ball_power;
            if delta > *nearest {
                (*nearest, *surface) = (delta, Surface::Ball as u32);
            }
        }
    }
}

/// Returns the scalar product.
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
        let room = Room::new([0.55, 0.41]);
        let moment = Moment::new(&room, 0.4, 0.0);
        let view = View::new(&room, moment.ball, moment.eye);
        let centre: Vec3 = std::array::from_fn(|i| moment.ball[i] - moment.eye[i]);
        let (p, q) = (centre[0] / centre[2], centre[1] / centre[2]);
        for (dp, dq) in [(0.0, 0.0), (0.08, 0.0), (-0.05, 0.06), (0.0, -0.1)] {
            let hits = view.row(q + dq).cast(&[p + dp; BLOCK]);
            assert_eq!(hits.surface[5], Surface::Ball as u32);
            let z = 1.0 / hits.delta[5];
            let to_centre: Vec3 =
                [(p + dp) * z - centre[0], (q + dq) * z - centre[1], z - centre[2]];
            assert!((dot(to_centre, to_centre).sqrt() - room.radius).abs() < 1e-4);
            assert!(z < centre[2]);
        }
    }

    #[test]
    fn every_ray_of_a_loop_hits_something_in_range_and_the_rotation_is_one() {
        let room = Room::new([0.55, 0.41]);
        for i in 0..64 {
            let moment = Moment::new(&room, f64::from(i) / 8.0, 0.3);
            for (j, row) in moment.rotation.iter().enumerate() {
                for (k, other) in moment.rotation.iter().enumerate() {
                    let expected = if j == k { 1.0 } else { 0.0 };
                    assert!((dot(*row, *other) - expected).abs() < 1e-5);
                }
            }
            let view = View::new(&room, moment.ball, moment.eye);
            for y in -20..=20 {
                let row = view.row(0.41 * y as f32 / 20.0);
                let across = |i: usize| 0.55 * (2.0 * i as f32 / (BLOCK - 1) as f32 - 1.0);
                for delta in row.cast(&std::array::from_fn(across)).delta {
                    assert!((0.05..0.95).contains(&delta), "{delta}");
                }
            }
        }
    }
}
