//! Renders the rows of both images and of their true disparity.
//!
//! Edges of objects are sharp: a pixel shows one surface.

use crate::core::frame::DisparityRange;
use crate::source::demo::scene::{BLOCK, Hits, Moment, Room, View};
use crate::source::demo::shading::{Rays, Shader};
use crate::source::demo::texture::{mix, seeded};

/// Focal length in units of the longer side of the image: 58 degrees of view.
const FOCAL: f32 = 0.9;

/// A point of the left image counts as hidden in the right one if something there is nearer by
/// more than this many pixels of disparity.
const HIDDEN_PX: f32 = 0.05;

/// Brightness of the right sensor relative to the left one, and the noise of both.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sensor {
    pub right_gain: f32,
    pub right_offset: f32,
    pub noise: f32,
}

/// The scene, its camera and its sensor: all that does not change with time.
pub(super) struct Renderer {
    room: Room,
    shader: Shader,
    /// Focal length and centre of the image, in pixels.
    focal: f32,
    centre: [f32; 2],
    /// Disparity of a point: `shift + scale * delta`.
    shift: f32,
    scale: f32,
    sensor: Sensor,
    seed: u64,
}

/// Buffers of one row.
pub(super) struct RowOut<'a> {
    pub y: usize,
    pub left: &'a mut [u8],
    pub right: &'a mut [u8],
    pub disparity: &'a mut [f32],
    pub visible: &'a mut [bool],
}

/// Both views of one moment.
pub(super) struct Frame<'a> {
    renderer: &'a Renderer,
    moment: Moment,
    left: View<'a>,
    right: View<'a>,
    /// Seeds of the noise of both images.
    noise: [u32; 2],
}

impl Renderer {
    /// Sets the scene up for images of this size and this range of disparities.
    pub(super) fn new(
        (width, height): (usize, usize),
        range: DisparityRange,
        seed: u64,
        sensor: Sensor,
    ) -> Self {
        let focal = FOCAL * width.max(height) as f32;
        let room = Room::new([0.5 * width as f32 / focal, 0.5 * height as f32 / focal]);
        let shader = Shader::new(&room, focal, seed);
        let centre = [(width - 1) as f32 / 2.0, (height - 1) as f32 / 2.0];
        let (shift, scale) = (range.min as f32, (range.count - 1) as f32);
        Self { room, shader, focal, centre, shift, scale, sensor, seed }
    }

    /// Prepares the scene `seconds` after its start; `number` selects the noise.
    pub(super) fn frame(&self, number: u64, seconds: f64) -> Frame<'_> {
        let phase = f64::from(seeded(self.seed, 100)) / (f64::from(u32::MAX) + 1.0);
        let moment = Moment::new(&self.room, seconds, phase);
        let [x, y, z] = moment.eye;
        let right = [x + self.scale / self.focal, y, z];
        let frame_seed = self.seed ^ number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        Frame {
            renderer: self,
            moment,
            left: View::new(&self.room, moment.ball, moment.eye),
            right: View::new(&self.room, moment.ball, right),
            noise: [seeded(frame_seed, 200), seeded(frame_seed, 201)],
        }
    }
}

impl Frame<'_> {
    /// Renders one row of both images and of the truth.
    pub(super) fn row(&self, out: RowOut<'_>) {
        #[cfg(target_arch = "x86_64")]
        if std::arch::is_x86_feature_detected!("avx2") {
            // SAFETY: the processor has AVX2.
            return unsafe { self.row_avx2(out) };
        }
        self.row_portable(out);
    }

    /// [`Frame::row_portable`] compiled for AVX2. Wider registers do not change a result: every
    /// operation is rounded on its own, and none are fused.
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2")]
    fn row_avx2(&self, out: RowOut<'_>) {
        self.row_portable(out);
    }

    /// Renders [`Frame::row`] in plain code.
    #[inline(always)]
    pub(super) fn row_portable(&self, out: RowOut<'_>) {
        let r = self.renderer;
        let RowOut { y, left, right, disparity, visible } = out;
        let q = (y as f32 - r.centre[1]) / r.focal;
        let (left_row, right_row) = (self.left.row(q), self.right.row(q));
        let width = left.len();
        for start in (0..width).step_by(BLOCK) {
            let end = (start + BLOCK).min(width);
            let columns: [f32; BLOCK] = std::array::from_fn(|i| (start + i) as i32 as f32);

            let p = columns.map(|x| (x - r.centre[0]) / r.focal);
            let hits = left_row.cast(&p);
            let disparities = hits.delta.map(|delta| r.shift + r.scale * delta);
            let match_x: [f32; BLOCK] = std::array::from_fn(|i| columns[i] - disparities[i]);
            let seen = right_row.cast(&match_x.map(|x| self.right_p(x)));
            for (i, x) in (start..end).enumerate() {
                disparity[x] = disparities[i];
                let inside = (match_x[i] >= 0.0) & (match_x[i] <= (width - 1) as f32);
                visible[x] = inside & (r.scale * (seen.delta[i] - hits.delta[i]) <= HIDDEN_PX);
            }
            let grey = self.shade(&p, q, &hits, end - start);
            self.expose(&grey, self.noise[0], y * width + start, &mut left[start..end]);

            let p = columns.map(|x| self.right_p(x));
            let hits = right_row.cast(&p);
            // The same points' rays from the left camera.
            let left_p = std::array::from_fn(|i| p[i] + r.scale * hits.delta[i] / r.focal);
            let Sensor { right_gain, right_offset, .. } = r.sensor;
            let grey = self.shade(&left_p, q, &hits, end - start);
            let grey = grey.map(|g| g * right_gain + right_offset);
            self.expose(&grey, self.noise[1], y * width + start, &mut right[start..end]);
        }
    }

    /// Returns the grey levels of the first `count` points at `hits` along the rays (p, q, 1) of
    /// the left view.
    #[inline(always)]
    fn shade(&self, p: &[f32; BLOCK], q: f32, hits: &Hits, count: usize) -> [f32; BLOCK] {
        let mut grey = [0.0; BLOCK];
        let scene = (&self.renderer.room, &self.moment, &self.left);
        self.renderer.shader.shade(&Rays { p, q }, hits, 0..count, scene, &mut grey);
        grey
    }

    /// Returns the ray of column `x` of the right image, which is shifted by the smallest
    /// disparity.
    #[inline(always)]
    fn right_p(&self, x: f32) -> f32 {
        let r = self.renderer;
        (x + r.shift - r.centre[0]) / r.focal
    }

    /// Converts brightnesses into the grey levels of noisy sensor pixels. `index` is the number of
    /// the first one in its image.
    #[inline(always)]
    fn expose(&self, grey: &[f32; BLOCK], seed: u32, index: usize, pixels: &mut [u8]) {
        let mut exposed = grey.map(|g| g + 0.5);
        if self.renderer.sensor.noise > 0.0 {
            // The sum of four even bytes is close to normal: mean 510, standard deviation 147.8.
            let strength = self.renderer.sensor.noise / 147.8;
            for (i, value) in exposed.iter_mut().enumerate() {
                let bits = mix(seed ^ mix((index + i) as u32));
                let pairs = (bits & 0x00ff_00ff) + ((bits >> 8) & 0x00ff_00ff);
                let sum = (pairs & 0xffff) + (pairs >> 16);
                *value += (sum as i32 - 510) as f32 * strength;
            }
        }
        for (pixel, value) in pixels.iter_mut().zip(exposed) {
            *pixel = value as u8;
        }
    }
}
