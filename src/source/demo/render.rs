//! The rows of the two pictures and of their truth.
//!
//! Edges of objects are sharp: a pixel shows one surface.

use crate::frame::DisparityRange;
use crate::source::demo::cloth::{Rays, Wardrobe};
use crate::source::demo::scene::{BLOCK, Moment, Room, RowView, View};
use crate::source::demo::texture::{mix, seeded};

/// Focal length in units of the longer side of the picture: 58 degrees of view.
const FOCAL: f32 = 0.9;

/// A point of the left picture counts as hidden in the right one where something there is nearer by
/// more than this many pixels of disparity.
const HIDDEN_PX: f32 = 0.05;

/// Differences of the right eye, and the noise of both.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sensor {
    pub right_gain: f32,
    pub right_offset: f32,
    pub noise: f32,
}

/// Everything about the pictures that does not change with time.
pub(super) struct Renderer {
    room: Room,
    wardrobe: Wardrobe,
    /// Focal length in pixels, and the picture's centre.
    focal: f32,
    centre: [f32; 2],
    /// Disparity of a point: `shift + scale * delta`.
    shift: f32,
    scale: f32,
    sensor: Sensor,
    seed: u64,
}

/// One row of everything that is rendered.
pub(super) struct RowOut<'a> {
    pub y: usize,
    pub left: &'a mut [u8],
    pub right: &'a mut [u8],
    pub disparity: &'a mut [f32],
    pub visible: &'a mut [bool],
}

/// Both eyes' views of one moment.
pub(super) struct Frame<'a> {
    renderer: &'a Renderer,
    moment: Moment,
    left: View<'a>,
    right: View<'a>,
    /// Seeds of the noise of the two pictures.
    noise: [u32; 2],
}

impl Renderer {
    /// The scene in pictures of this size and for this range of disparities.
    pub(super) fn new(
        (width, height): (usize, usize),
        range: DisparityRange,
        seed: u64,
        sensor: Sensor,
    ) -> Self {
        let focal = FOCAL * width.max(height) as f32;
        let room = Room::new([0.5 * width as f32 / focal, 0.5 * height as f32 / focal]);
        let wardrobe = Wardrobe::new(&room, focal, seed);
        let centre = [(width - 1) as f32 / 2.0, (height - 1) as f32 / 2.0];
        let (shift, scale) = (range.min as f32, (range.count - 1) as f32);
        Self { room, wardrobe, focal, centre, shift, scale, sensor, seed }
    }

    /// The scene `seconds` after its start; `number` chooses the noise.
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
    /// Fills one row of both pictures and of the truth.
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

    /// [`Frame::row`] in plain code.
    #[inline(always)]
    pub(super) fn row_portable(&self, out: RowOut<'_>) {
        let r = self.renderer;
        let q = (out.y as f32 - r.centre[1]) / r.focal;
        let rows = (self.left.row(q), self.right.row(q));
        for start in (0..out.left.len()).step_by(BLOCK) {
            self.left_block(&rows, start, &mut *out.left, out.disparity, out.visible, out.y);
            self.right_block(&rows.1, start, out.right, out.y);
        }
    }

    /// The left picture and the truth of up to [`BLOCK`] pixels from column `start` on.
    #[inline(always)]
    fn left_block(
        &self,
        (left, right): &(RowView<'_>, RowView<'_>),
        start: usize,
        pixels: &mut [u8],
        disparity: &mut [f32],
        visible: &mut [bool],
        y: usize,
    ) {
        let r = self.renderer;
        let width = pixels.len();
        let end = (start + BLOCK).min(width);
        let columns: [f32; BLOCK] = std::array::from_fn(|i| (start + i) as i32 as f32);
        let p = columns.map(|x| (x - r.centre[0]) / r.focal);
        let hits = left.cast(&p);

        let match_x: [f32; BLOCK] =
            std::array::from_fn(|i| columns[i] - (r.shift + r.scale * hits.delta[i]));
        let seen = right.cast(&match_x.map(|x| self.right_p(x)));
        let last = (width - 1) as f32;
        for (i, x) in (start..end).enumerate() {
            disparity[x] = r.shift + r.scale * hits.delta[i];
            let inside = (match_x[i] >= 0.0) & (match_x[i] <= last);
            visible[x] = inside & (r.scale * (seen.delta[i] - hits.delta[i]) <= HIDDEN_PX);
        }

        let mut grey = [0.0; BLOCK];
        let rays = Rays { p: &p, q: left.q };
        let scene = (&r.room, &self.moment, &self.left);
        r.wardrobe.shade(&rays, &hits, 0..end - start, scene, &mut grey);
        self.expose(&grey, self.noise[0], y * width + start, &mut pixels[start..end]);
    }

    /// The right picture of up to [`BLOCK`] pixels from column `start` on.
    #[inline(always)]
    fn right_block(&self, right: &RowView<'_>, start: usize, pixels: &mut [u8], y: usize) {
        let r = self.renderer;
        let width = pixels.len();
        let end = (start + BLOCK).min(width);
        let p: [f32; BLOCK] = std::array::from_fn(|i| self.right_p((start + i) as i32 as f32));
        let hits = right.cast(&p);
        // The same points' rays from the left eye.
        let left_p: [f32; BLOCK] =
            std::array::from_fn(|i| p[i] + r.scale * hits.delta[i] / r.focal);

        let mut grey = [0.0; BLOCK];
        let rays = Rays { p: &left_p, q: right.q };
        let scene = (&r.room, &self.moment, &self.left);
        r.wardrobe.shade(&rays, &hits, 0..end - start, scene, &mut grey);
        let Sensor { right_gain, right_offset, .. } = r.sensor;
        let grey = grey.map(|g| g * right_gain + right_offset);
        self.expose(&grey, self.noise[1], y * width + start, &mut pixels[start..end]);
    }

    /// The ray of column `x` of the right picture, which is shifted by the smallest disparity.
    #[inline(always)]
    fn right_p(&self, x: f32) -> f32 {
        let r = self.renderer;
        (x + r.shift - r.centre[0]) / r.focal
    }

    /// The grey levels of sensor pixels that see these brightnesses; `index` is the number of the
    /// first one in its picture.
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
