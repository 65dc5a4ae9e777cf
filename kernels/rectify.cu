// Rectification: bilinear interpolation at the positions of a map in fixed point
// (calibration/map.rs).
//
// A thread makes four neighbouring pixels, whose map entries it reads as vectors; rows are packed
// in both pictures, so that four pixels may lie in two rows.
// Grid: [pixels / (4 * BLOCK_THREADS)][eyes].
#include "instructions.cuh"

#define UNSEEN 0xffffffffu

// One view: the raw picture, its map, and where the rectified picture goes. The map has a whole
// number of vectors.
struct Eye {
    const u8 *raw;
    int stride;
    const u32 *offsets;
    const u16 *weights;
    u8 *rectified;
};

// The value at one position. Taps without a weight may lie outside the picture: another pixel is
// read in their place.
__device__ __forceinline__ u32 interpolated(const u8 *raw, int stride, u32 offset, u32 weights) {
    if (offset == UNSEEN) return 0;
    const u32 fx = weights & 255, fy = weights >> 8;
    const u8 *above = raw + offset, *below = above + (fy > 0 ? stride : 0);
    const int right = fx > 0;
    const u32 top = (256 - fx) * above[0] + fx * above[right];
    const u32 bottom = (256 - fx) * below[0] + fx * below[right];
    return (top * (256 - fy) + bottom * fy + BREAK(rectify_rounding, 32768, 0)) >> 16;
}

extern "C" __global__ void __launch_bounds__(BLOCK_THREADS)
    rectify(int pixels, const u8 *left_raw, int left_stride, const u32 *left_offsets, const u16 *left_weights,
            u8 *left, const u8 *right_raw, int right_stride, const u32 *right_offsets,
            const u16 *right_weights, u8 *right) {
    wait_for_launches_before();
    const Eye eye = blockIdx.y == 0 ? Eye{left_raw, left_stride, left_offsets, left_weights, left}
                                    : Eye{right_raw, right_stride, right_offsets, right_weights, right};
    const int vector = blockIdx.x * BLOCK_THREADS + threadIdx.x;
    if (4 * vector >= pixels) return;
    const uint4 offsets = ((const uint4 *)eye.offsets)[vector];
    const uint2 weights = ((const uint2 *)eye.weights)[vector];
    const u32 values = interpolated(eye.raw, eye.stride, offsets.x, weights.x & 0xffff) |
                       interpolated(eye.raw, eye.stride, offsets.y, weights.x >> 16) << 8 |
                       interpolated(eye.raw, eye.stride, offsets.z, weights.y & 0xffff) << 16 |
                       interpolated(eye.raw, eye.stride, offsets.w, weights.y >> 16) << 24;
    ((u32 *)eye.rectified)[vector] = values;
}
