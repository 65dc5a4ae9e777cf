//! A rendered board before two known cameras, whose parameters `stereod calibrate` must recover.

use nalgebra::{Matrix3, Rotation3, Vector3};
use stereod_calibration::board::Board;
use stereod_core::frame::Image;

/// Samples along each side of a pixel.
const SAMPLES: usize = 3;

/// Pixels of the printed board per square. Markers of 0.75 squares then have modules of whole
/// pixels.
const PRINT: usize = 48;

/// A camera with two coefficients of radial distortion.
#[derive(Clone)]
pub struct Eye {
    pub size: (usize, usize),
    pub focal: f64,
    pub centre: [f64; 2],
    pub radial: [f64; 2],
    /// From the left camera's frame to this one's.
    pub rotation: Matrix3<f64>,
    pub translation: Vector3<f64>,
}

/// Both cameras of the tests: 640x480, 120 mm apart.
pub fn eyes() -> [Eye; 2] {
    let left = Eye {
        size: (640, 480),
        focal: 560.0,
        centre: [324.0, 237.0],
        radial: [-0.18, 0.05],
        rotation: Matrix3::identity(),
        translation: Vector3::zeros(),
    };
    let right = Eye {
        focal: 566.0,
        centre: [314.5, 243.0],
        radial: [-0.17, 0.045],
        rotation: *Rotation3::new(Vector3::new(0.006, -0.02, 0.004)).matrix(),
        translation: Vector3::new(-0.12, 0.001, 0.002),
        ..left.clone()
    };
    [left, right]
}

/// The same cameras with smaller pictures.
pub fn small_eyes() -> [Eye; 2] {
    eyes().map(|eye| Eye {
        size: (480, 360),
        focal: eye.focal * 0.75,
        centre: eye.centre.map(|at| (at + 0.5) * 0.75 - 0.5),
        ..eye
    })
}

/// Pose of a board: its centre in the left camera's frame in metres, and its rotation vector.
#[derive(Clone, Copy, PartialEq)]
pub struct Stand {
    pub middle: [f64; 3],
    pub turn: [f64; 3],
}

impl Stand {
    /// A pose between two others.
    pub fn towards(&self, other: &Stand, part: f64) -> Stand {
        let mix = |a: [f64; 3], b: [f64; 3]| [0, 1, 2].map(|i| a[i] + (b[i] - a[i]) * part);
        Stand { middle: mix(self.middle, other.middle), turn: mix(self.turn, other.turn) }
    }
}

/// Poses that a careful user would choose: every part of the image, all tilts, near and far.
pub fn stands() -> Vec<Stand> {
    let places = [-1.0, 0.0, 1.0];
    let turns = [[0.0, 0.5], [0.5, 0.0], [0.0, -0.5], [-0.5, 0.0], [0.35, 0.35]];
    let mut stands = Vec::new();
    for (i, depth) in [0.62, 0.9].into_iter().enumerate() {
        for (j, (x, y)) in places.iter().flat_map(|y| places.map(|x| (x, *y))).enumerate() {
            let [rx, ry] = turns[(i * 9 + j) % turns.len()];
            let reach = if i == 0 { [0.13, 0.10] } else { [0.27, 0.22] };
            stands.push(Stand {
                middle: [0.05 + x * reach[0], y * reach[1], depth + 0.04 * (j % 3) as f64],
                turn: [rx, ry, 0.1 * (j % 4) as f64 - 0.15],
            });
        }
    }
    stands
}

/// Renders a board for one camera.
pub struct Painter {
    size: (usize, usize),
    /// Directions of all samples in the left camera's frame, and the camera's centre there.
    rays: Vec<Vector3<f32>>,
    centre: Vector3<f64>,
    print: Vec<u8>,
    print_size: (usize, usize),
    board: Board,
}

impl Painter {
    pub fn new(eye: &Eye, board: &Board) -> Self {
        let (width, height) = eye.size;
        let back = eye.rotation.transpose();
        let mut rays = Vec::with_capacity(width * height * SAMPLES * SAMPLES);
        for i in 0..width * height {
            for sample in 0..SAMPLES * SAMPLES {
                let offset = |part: usize| (part as f64 + 0.5) / SAMPLES as f64 - 0.5;
                let x = ((i % width) as f64 + offset(sample % SAMPLES) - eye.centre[0]) / eye.focal;
                let y = ((i / width) as f64 + offset(sample / SAMPLES) - eye.centre[1]) / eye.focal;
                // Inverts the distortion by fixed-point iteration.
                let (mut u, mut v) = (x, y);
                for _ in 0..20 {
                    let r2 = u * u + v * v;
                    let scale = 1.0 + r2 * (eye.radial[0] + r2 * eye.radial[1]);
                    (u, v) = (x / scale, y / scale);
                }
                rays.push((back * Vector3::new(u, v, 1.0)).cast());
            }
        }
        let at = |length: f64| (length / board.square_m * PRINT as f64).round() as usize;
        let (board_width, board_height) = board.size_m();
        let print_size = (at(board_width), at(board_height));
        let mut print = vec![255; print_size.0 * print_size.1];
        for ink in stereod_calibration::board::ink(board) {
            for y in at(ink.y)..at(ink.y + ink.height) {
                print[y * print_size.0..][at(ink.x)..at(ink.x + ink.width)].fill(0);
            }
        }
        let centre = -(back * eye.translation);
        Self { size: eye.size, rays, centre, print, print_size, board: *board }
    }

    /// Renders the board in this pose before a grey wall, slightly blurred as by a lens.
    pub fn paint(&self, stand: &Stand) -> Image {
        let (width, height) = self.size;
        let turn = *Rotation3::new(Vector3::from(stand.turn)).matrix();
        let (board_width, board_height) = self.board.size_m();
        let corner = Vector3::from(stand.middle)
            - turn * Vector3::new(board_width / 2.0, board_height / 2.0, 0.0);
        // Board coordinates of centre + t * ray: linear in both.
        let back = turn.transpose();
        let from: Vector3<f32> = (back * (self.centre - corner)).cast();
        let back: Matrix3<f32> = back.cast();
        let scale = PRINT as f32 / self.board.square_m as f32;
        let size = [self.print_size.0, self.print_size.1].map(|side| side as f32);
        let place = |ray: &Vector3<f32>| {
            let ray = back * ray;
            let along = -from.z / ray.z;
            let at = [from.x + along * ray.x, from.y + along * ray.y].map(|length| length * scale);
            (along > 0.0).then_some(at)
        };
        let is_on = |at: [f32; 2], border: f32| {
            (0..2).all(|axis| at[axis] >= -border && at[axis] < size[axis] + border)
        };
        const WALL: u32 = 110;
        let level = |ray: &Vector3<f32>| match place(ray) {
            Some(at) if is_on(at, 0.0) => {
                let ink = self.print[at[1] as usize * self.print_size.0 + at[0] as usize];
                if ink == 0 { 35 } else { 215 }
            }
            Some(at) if is_on(at, 0.4 * PRINT as f32) => 215,
            _ => WALL,
        };
        let per_pixel = SAMPLES * SAMPLES;
        // Far from the board, the middle of a pixel tells all of it.
        let pixel = |rays: &[Vector3<f32>]| match place(&rays[per_pixel / 2]) {
            Some(at) if is_on(at, PRINT as f32) => {
                rays.iter().map(level).sum::<u32>() * 16 / per_pixel as u32
            }
            _ => WALL * 16,
        };
        let sharp: Vec<u32> = self.rays.chunks_exact(per_pixel).map(pixel).collect();
        Image::from_fn(width, height, |x, y| {
            let mut sum = 0;
            for (dy, wy) in [(-1i32, 1), (0, 2), (1, 1)] {
                for (dx, wx) in [(-1i32, 1), (0, 2), (1, 1)] {
                    let column = (x as i32 + dx).clamp(0, width as i32 - 1) as usize;
                    let row = (y as i32 + dy).clamp(0, height as i32 - 1) as usize;
                    sum += wx * wy * sharp[row * width + column];
                }
            }
            (sum / 256) as u8
        })
    }
}

pub fn copy(image: &Image) -> Image {
    Image::from_vec(image.width(), image.height(), image.pixels().to_vec())
}

/// Writes a picture as PNG.
pub fn save(image: &Image, path: &std::path::Path) {
    let (width, height) = (image.width() as u32, image.height() as u32);
    image::GrayImage::from_raw(width, height, image.pixels().to_vec()).unwrap().save(path).unwrap();
}
