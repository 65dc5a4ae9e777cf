//! The pictures for matching: rectified ones, and half-size ones for coarser levels.

use super::super::geometry::BLOCK_THREADS;
use super::super::launch::{Arg, BufferId, Plan, Scope};
use crate::frame::Eye;
use crate::rectify::{Rectifier, RectifyMap};

impl Plan {
    /// Rectifies the raw pictures to this size.
    pub(super) fn rectify(&mut self, rectifier: &Rectifier, (width, height): (usize, usize)) {
        let pixels = width * height;
        let raw = [self.left, self.right];
        let mut args = vec![Arg::I32(pixels as i32)];
        let mut rectified = [self.left; 2];
        let names = [
            ("left map", "left map's weights", "left rectified picture"),
            ("right map", "right map's weights", "right rectified picture"),
        ];
        // The kernel takes four pixels at a time.
        let whole = pixels.next_multiple_of(4);
        for ((eye, names), number) in Eye::BOTH.into_iter().zip(names).zip(0..) {
            let map = rectifier.map(eye);
            let mut offsets = map.offsets().to_vec();
            offsets.resize(whole, RectifyMap::UNSEEN);
            let mut weights = map.weights().to_vec();
            weights.resize(whole, 0);
            rectified[number] = self.buffer(names.2, whole, Scope::Slot);
            args.extend([
                Arg::Buffer(raw[number]),
                Arg::I32(map.source_size().0 as i32),
                Arg::Buffer(self.table(names.0, bytemuck::cast_slice(&offsets).to_vec())),
                Arg::Buffer(self.table(names.1, bytemuck::cast_slice(&weights).to_vec())),
                Arg::Buffer(rectified[number]),
            ]);
        }
        self.rectified = Some(rectified);
        let kernel = self.kernel("rectify", "rectify");
        let blocks = pixels.div_ceil(4 * BLOCK_THREADS as usize) as u32;
        self.launch("rectify", kernel, [blocks, 2], [BLOCK_THREADS, 1], args);
    }

    /// Adds the buffer for prior maps of a size that the pairs bring.
    pub(super) fn prior_map(&mut self, (width, height): (usize, usize)) -> BufferId {
        let map = self.buffer("prior map", size_of::<i16>() * width * height, Scope::Slot);
        self.prior = Some(map);
        map
    }

    /// Makes both pictures at half the size; `size` is the full size.
    pub(super) fn half(
        &mut self,
        [left, right]: [BufferId; 2],
        (width, height): (usize, usize),
    ) -> [BufferId; 2] {
        let pixels = width.div_ceil(2) * height.div_ceil(2);
        let halves = ["left picture at half the size", "right picture at half the size"]
            .map(|name| self.buffer(name, pixels, Scope::Slot));
        let args = vec![
            Arg::Buffer(left),
            Arg::Buffer(right),
            Arg::I32(width as i32),
            Arg::I32(height as i32),
            Arg::Buffer(halves[0]),
            Arg::Buffer(halves[1]),
        ];
        let kernel = self.kernel("half", "half_size");
        let blocks = pixels.div_ceil(BLOCK_THREADS as usize) as u32;
        self.launch("pyramid", kernel, [blocks, 2], [BLOCK_THREADS, 1], args);
        halves
    }
}
