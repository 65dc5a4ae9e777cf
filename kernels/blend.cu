// Computes the weights with which a window and the prior support the cost of each pixel
// (blend.cuh): the window where texture is weak (matching/window.rs), the prior where the coarse
// map has a disparity and there is no texture (matching/prior.rs).
//
// ranges and blends are [height][width]. coarse is [(height + 1) / 2][(width + 1) / 2] in 1/16 px
// and is read only with a prior. A thread has a pixel. Grid: [width / BLOCK_THREADS][height].
#include "blend.cuh"
#include "disparity.cuh"

// The candidate that the coarse map expects at pixel (x, y), or that one is expected at all: false
// where it is not known and flat.
__device__ __forceinline__ bool expects(const short *coarse, int width, int height, int x, int y, int &candidate) {
    x /= 2, y /= 2;
    auto at = [&](int right, int down) {
        const int column = BREAK(prior_border, min(max(x + right, 0), width - 1), x);
        return (int)coarse[(size_t)min(max(y + down, 0), height - 1) * width + column];
    };
    const int centre = at(0, 0);
    bool flat = centre != INVALID;
#pragma unroll
    for (int k = 1; k <= BREAK(bend_reach, BEND_REACH, 1); k++) {
#pragma unroll
        for (int direction = 0; direction < 4; direction++) {
            const int right = direction == 1 ? 0 : k, down = direction == 0 ? 0 : direction == 3 ? -k : k;
            const int before = at(-right, -down), behind = at(right, down);
            flat &= before != INVALID && behind != INVALID && abs(before + behind - 2 * centre) <= BEND_MAX;
        }
    }
    // Twice the coarse disparity in whole pixels, halves upwards.
    const int disparity = (2 * centre + BREAK(prior_rounding, SUBPIXEL_STEPS / 2, 0)) >> 4;
    candidate = min(max(disparity - MIN_DISPARITY, -PRIOR_REACH), DISPARITIES - 1 + PRIOR_REACH);
    return flat;
}

// Replaces the map of the half-size images by the prior map of the pair, where that lies within the
// limits (matching/prior.rs). A thread has a pixel. Grid: [pixels / BLOCK_THREADS].
extern "C" __global__ void __launch_bounds__(BLOCK_THREADS)
    replace(const short *given, int least, int most, int pixels, short *coarse) {
    wait_for_launches_before();
    const int i = blockIdx.x * BLOCK_THREADS + threadIdx.x;
    if (i < pixels && least <= given[i] && given[i] <= most) coarse[i] = given[i];
}

extern "C" __global__ void __launch_bounds__(BLOCK_THREADS)
    blend(const u8 *ranges, const u32 *threshold, const short *coarse, int width, int height, u32 *blends) {
    wait_for_launches_before();
    const int x = blockIdx.x * BLOCK_THREADS + threadIdx.x, y = blockIdx.y;
    if (x >= width) return;
    const size_t at = (size_t)y * width + x;
    const int range = ranges[at], noise = *threshold;
    u32 window = WINDOW_MOST, prior = 0, expects_one = 0;
    int expected = 0;
#if WINDOW_BY_TEXTURE
    window = (WINDOW_MOST * min(max(3 * noise - range, 0), 2 * noise) + noise) / (2 * noise);
#endif
#if PRIOR
    if (expects(coarse, (width + 1) / 2, (height + 1) / 2, x, y, expected)) {
        prior = (PRIOR_MOST * min(max(2 * noise - range, 0), noise) + noise / 2) / noise;
        expects_one = EXPECTS;
    }
#endif
    blends[at] = blend_word(window, prior, expected) | expects_one;
}
