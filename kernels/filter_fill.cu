// Fills holes of the map from the valid pixels around them (matching/filter/fill.rs): with the
// smaller one of the two in the row, or with the weighted median along eight rays; or, where GAPS,
// with the line between the ends of a run of at most REACH unknown pixels in the row or column; or,
// where NETWORK, with the median of the rays that the prior map confirms.
//
// disparity and filled are [height][width], left is the left image, prior (where PRIOR_MAP) is
// [(height + 1) / 2][(width + 1) / 2] in 1/16 px of that size, seen_left (where MASKED) is a byte a
// pixel. Bit k of RAYS is set if ray k is followed, for at most REACH pixels. A thread has a pixel
// and copies it if it is valid. Grid: [width / BLOCK_THREADS][height].
#include "rays.cuh"

#define IN_ROW (RAYS == (1 << RAY_LEFT | 1 << RAY_RIGHT))

// Halved by every 8 grey levels of edge and every sixteenfold of the distance, with chords between.
__device__ __forceinline__ int ray_weight(int edge, int distance) {
    const int eighths = min(edge + 2 * (31 - __clz(distance + 2)), 96);
    return (16 - (eighths & 7)) << 8 >> (eighths >> 3);
}

extern "C" __global__ void __launch_bounds__(BLOCK_THREADS)
    fill(const short *disparity, const u8 *left,
#if PRIOR_MAP
         const short *prior,
#endif
#if MASKED
         const u8 *seen_left,
#endif
         int width, int height, short *filled) {
    wait_for_launches_before();
    const int x = blockIdx.x * BLOCK_THREADS + threadIdx.x, y = blockIdx.y;
    if (x >= width) return;
    const size_t here = (size_t)y * width + x;
    const int known = disparity[here];
    bool is_hole = known == INVALID;
#if MASKED
    is_hole = is_hole && BREAK(fill_mask, seen_left[here] != 0, true);
#endif
    if (!is_hole) {
        filled[here] = (short)known;
        return;
    }

#if !MASKED
    const u8 *seen_left = nullptr;
#endif
#if GAPS
    // Disparities met by the rays, and the steps to them.
    int values[8], distances[8];
#pragma unroll
    for (int k = 0; k < 8; k++) {
        values[k] = INVALID;
        distances[k] = 0;
    }
    follow_rays(RAYS, x, y, width, height, REACH, seen_left, [&](int k, size_t at, int, int, int distance) {
        const int value = disparity[at];
        if (value == INVALID) return 1;
        values[k] = value;
        distances[k] = distance;
        return 0;
    });

    // The row comes first, so that it counts if both runs are equally long. There is one step more
    // between two ends than there are unknown pixels.
    int chosen = INVALID, shortest = REACH + 2;
    const int ends[2] = {RAY_LEFT, RAY_UP};
#pragma unroll
    for (int k = 0; k < 2; k++) {
        const int a = values[ends[k]], b = values[7 - ends[k]];
        const int steps = distances[ends[k]], apart = steps + distances[7 - ends[k]];
        if (a == INVALID || b == INVALID || apart >= shortest || abs(b - a) > GAP_STEP_MAX) continue;
        shortest = apart;
        // The numerator is positive, because a division rounds towards 0.
        const int numerator = (b - a) * steps + GAP_STEP_MAX * apart + BREAK(gap_rounding, apart / 2, 0);
        chosen = a + numerator / apart - GAP_STEP_MAX;
    }
#else
    // Disparities met by the rays, with their weights; weight 0 means none.
    int values[8], weights[8], edges[8], greys[8];
    int right_distance = 0;
#pragma unroll
    for (int k = 0; k < 8; k++) {
        values[k] = INVALID;
        weights[k] = edges[k] = 0;
        greys[k] = left[here];
    }
    follow_rays(RAYS, x, y, width, height, REACH, seen_left, [&](int k, size_t at, int, int, int distance) {
        const int grey = left[at], value = disparity[at];
        edges[k] = max(edges[k], abs(grey - greys[k]));
        greys[k] = grey;
        if (value == INVALID) return 1;
        values[k] = value;
        weights[k] = ray_weight(edges[k], distance);
        if (k == RAY_RIGHT) right_distance = distance;
        return 0;
    });

#if NETWORK
    // Rays that the network does not confirm count as if they met nothing; where OR_RAYS, only if it
    // confirms any.
    int expected = INVALID;
#if PRIOR_MAP
    const int twice = 2 * prior[(size_t)BREAK(network_row, y / 2, y / 4) * ((width + 1) / 2) + x / 2];
    const int least = MIN_DISPARITY * SUBPIXEL_STEPS, most = least + (DISPARITIES - 1) * SUBPIXEL_STEPS;
    if (least <= twice && twice <= most) expected = twice;
#endif
    bool is_alone = true, any = false, confirmed[8];
#pragma unroll
    for (int k = 0; k < 8; k++) {
        confirmed[k] = weights[k] && expected != INVALID && abs(values[k] - expected) <= CONFIRMED_MAX;
        any |= confirmed[k];
        is_alone &= !weights[k];
    }
#pragma unroll
    for (int k = 0; k < 8; k++)
        if (!confirmed[k] && (any || !OR_RAYS)) weights[k] = BREAK(network_ray, 0, weights[k]);
#endif

    int total = 0;
#pragma unroll
    for (int k = 0; k < 8; k++) total += weights[k];
    // In the row the smaller one is taken, however little it weighs. A pixel that the foreground to
    // its right hides in the right picture belongs to the background: a quarter of the weight is
    // enough.
    const int nearer = values[RAY_RIGHT] - values[RAY_LEFT];
    const bool both_known = weights[RAY_LEFT] && weights[RAY_RIGHT];
    const bool is_hidden =
        both_known && nearer > SUBPIXEL_STEPS && right_distance * SUBPIXEL_STEPS <= nearer;
    const int parts = is_hidden ? 4 : 2;
    int chosen = total > 0 ? 32767 : INVALID;
#pragma unroll
    for (int k = 0; k < 8; k++) {
        int sum = 0;
#pragma unroll
        for (int other = 0; other < 8; other++) sum += BREAK(fill_tie, values[other] <= values[k], values[other] < values[k]) ? weights[other] : 0;
        if (weights[k] && (IN_ROW || parts * sum >= total)) chosen = min(chosen, values[k]);
    }
#if NETWORK
    if (is_alone) chosen = expected;
#endif
#endif
    filled[here] = (short)chosen;
}
