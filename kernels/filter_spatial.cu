// Smooths surfaces (matching/filter/spatial.rs): each known pixel becomes the mean of itself and of
// the pairs of pixels up to SPATIAL_REACH steps away in opposite directions, along the rows or along the
// columns. A pair counts where both pixels are known, their differences from the pixel add up to at
// most SPATIAL_STEP_MAX, and their grey levels differ from the pixel's by at most SPATIAL_GREY_MAX.
//
// disparity and smoothed are [height][width], left is the left image. A thread has a pixel. Grid:
// [width / BLOCK_THREADS][height].
#include "disparity.cuh"

// The smoothed value of pixel `here` of a line of `length` pixels, `stride` apart. It has number
// `at` in the line.
__device__ __forceinline__ short smooth(const short *disparity, const u8 *left, size_t here, size_t stride, int at, int length) {
    const int own = disparity[here], grey = left[here];
    if (own == INVALID) return INVALID;
    int sum = 0, pairs = 0;
#pragma unroll
    for (int k = 1; k <= SPATIAL_REACH; k++) {
        if (at < k || at + k >= length) break;
        const size_t before = here - k * stride, behind = here + k * stride;
        const int a = disparity[before], b = disparity[behind];
        const int step = a + b - 2 * own;
        const int edge = max(abs(left[before] - grey), abs(left[behind] - grey));
        const bool counts = a != INVALID && b != INVALID && abs(step) <= SPATIAL_STEP_MAX &&
                            edge <= BREAK(spatial_edge, SPATIAL_GREY_MAX, 255);
        sum += counts ? step : 0;
        pairs += counts;
    }
    // The numerator is positive, because a division rounds towards 0.
    const int pixels = 2 * pairs + 1;
    const int numerator = sum + BREAK(spatial_rounding, pairs, 0) + SPATIAL_STEP_MAX * pixels;
    return (short)(own + numerator / pixels - SPATIAL_STEP_MAX);
}

extern "C" __global__ void __launch_bounds__(BLOCK_THREADS)
    smooth_rows(const short *disparity, const u8 *left, int width, int height, short *smoothed) {
    wait_for_launches_before();
    const int x = blockIdx.x * BLOCK_THREADS + threadIdx.x, y = blockIdx.y;
    if (x >= width) return;
    const size_t here = (size_t)y * width + x;
    smoothed[here] = smooth(disparity, left, here, 1, x, width);
}

extern "C" __global__ void __launch_bounds__(BLOCK_THREADS)
    smooth_columns(const short *disparity, const u8 *left, int width, int height, short *smoothed) {
    wait_for_launches_before();
    const int x = blockIdx.x * BLOCK_THREADS + threadIdx.x, y = blockIdx.y;
    if (x >= width) return;
    const size_t here = (size_t)y * width + x;
    smoothed[here] = smooth(disparity, left, here, width, y, height);
}
