// The plain way, for pictures and ranges that the sweeps cannot take: each direction follows its
// paths from border to border and adds L to the sums of the whole picture in memory; then a second
// kernel picks the winners from them, and a third those of the right picture.
//
// Sums are [height][width][HALF_DISPARITIES]: words of two 16-bit halves, interleaved (lanes.cuh).
#define WINDOW_COLUMNS 0
#include "cost.cuh"
#include "disparity.cuh"

// One direction (dx, dy). Paths begin where the pixel before lies outside: the first row or the last
// and, for dx, the first column or the last. `first` says that the sums hold nothing yet.
//
// Grid: [paths / (WARP_PIXELS * WARPS)]: height of them for dy = 0, width for dx = 0, else both.
extern "C" __global__ void __launch_bounds__(32 * WARPS)
    paths(const u32 *p2, const u32 *base, const u32 *match, int row, int width, int height, int dx, int dy,
          int first, u32 *sums) {
    const u32 lane = group_lane();
    const int group = (blockIdx.x * WARPS + threadIdx.x / 32) * WARP_PIXELS + warp_group();
    const Features features = {p2, base, match, row};
    const int starts = dy == 0 ? height : dx == 0 ? width : width + height - 1;
    // Those along the first row in sight, and then those along the side.
    int x, y;
    if (dy == 0) {
        x = dx > 0 ? 0 : width - 1;
        y = group;
    } else {
        const bool along_row = group < width;
        x = along_row ? group : dx > 0 ? 0 : width - 1;
        y = along_row ? 0 : group - width + 1;
        if (dy < 0) y = height - 1 - y;
    }
    const int horizontal = dx > 0 ? P2_HORIZONTAL_FROM_LEFT : P2_HORIZONTAL_FROM_RIGHT;
    const int diagonal = dx > 0 ? P2_DIAGONAL_FROM_LEFT : P2_DIAGONAL_FROM_RIGHT;
    const int byte = dy == 0 ? horizontal : dx == 0 ? P2_VERTICAL : diagonal;
    const Edges edges(lane);
    Vector path = filled(0);
    u32 least = 0;
    // All lanes of a warp go on until the last of its paths has ended.
    while (true) {
        const bool inside = group < starts && x >= 0 && x < width && y >= 0 && y < height;
        if (!__any_sync(LANES_MASK, inside)) break;
        const int at_x = inside ? x : 0, at_y = inside ? y : 0;
        const u32 pixel = p2[(size_t)at_y * row + at_x + PAD];
        const Vector c = cost(window_at(features, 0, at_y), at_x, lane, pixel, 0, width);
        const u32 penalty = both(pixel >> 8 * byte & 0xff);
        Vector delta = recurrence(path, add2(least, penalty), edges);
#pragma unroll
        for (int j = 0; j < REGISTERS; j++) {
            path.v[j] = add2(sub2(delta.v[j], least), c.v[j]);
            if (inside) {
                u32 *sum = sums + ((size_t)y * width + x) * HALF_DISPARITIES + interleaved(lane, j);
                *sum = first ? path.v[j] : *sum + path.v[j];
            }
            if (DISPARITIES < PADDED_DISPARITIES) path.v[j] |= padding(lane, j);
        }
        least = least_of(path);
        x += dx, y += dy;
    }
}

__device__ __forceinline__ u32 sum_of(const u32 *sums, size_t pixel, int d) {
    const int r = d % HALF_DISPARITIES;
    const u32 pair = sums[pixel * HALF_DISPARITIES + interleaved(r / REGISTERS, r % REGISTERS)];
    return d < HALF_DISPARITIES ? pair & 0xffff : pair >> 16;
}

// The winner of every pixel, words[height][width] (disparity.cuh): one thread group a pixel.
//
// Grid: [width * height / (WARP_PIXELS * WARPS)].
extern "C" __global__ void __launch_bounds__(32 * WARPS)
    winners(const u32 *sums, int width, int height, u32 *words) {
    const u32 lane = group_lane();
    const size_t group = ((size_t)blockIdx.x * WARPS + threadIdx.x / 32) * WARP_PIXELS + warp_group();
    const size_t pixels = (size_t)width * height, pixel = min(group, pixels - 1);
    Vector sum;
    u32 best = NO_WINNER;
#pragma unroll
    for (int j = 0; j < REGISTERS; j++) {
        sum.v[j] = sums[pixel * HALF_DISPARITIES + interleaved(lane, j)];
        const u32 d = lane * REGISTERS + j;
        if (d < DISPARITIES) best = min(best, winner_key(sum.v[j] & 0xffff, d));
        if (d + HALF_DISPARITIES < DISPARITIES) best = min(best, winner_key(sum.v[j] >> 16, d + HALF_DISPARITIES));
    }
#pragma unroll
    for (int step = 1; step < GROUP; step *= 2) best = min(best, __shfl_xor_sync(LANES_MASK, best, step));
    const int winner = key_candidate(best), b = key_sum(best);
    int disparity = (MIN_DISPARITY + winner) * SUBPIXEL_STEPS;
#if SUBPIXEL
    if (winner > 0 && winner + 1 < DISPARITIES)
        disparity += subpixel_offset(sum_of(sums, pixel, winner - 1), b, sum_of(sums, pixel, winner + 1), true);
#endif
#if UNIQUENESS
    const u32 limit = ambiguous_below(b);
    u32 rival = 0;
#pragma unroll
    for (int j = 0; j < REGISTERS; j++) {
        const int d = lane * REGISTERS + j;
        if (d < DISPARITIES && abs(d - winner) > 1) rival |= (sum.v[j] & 0xffff) < limit;
        const int e = d + HALF_DISPARITIES;
        if (e < DISPARITIES && abs(e - winner) > 1) rival |= sum.v[j] >> 16 < limit;
    }
#pragma unroll
    for (int step = 1; step < GROUP; step *= 2) rival |= __shfl_xor_sync(LANES_MASK, rival, step);
    if (rival) disparity = INVALID;
#endif
    if (lane == 0 && group < pixels) words[pixel] = winner_word(disparity, winner);
}

// The winner of every pixel of the right picture: its key, or NO_WINNER.
//
// Grid: [width / (32 * WARPS)][height].
extern "C" __global__ void __launch_bounds__(32 * WARPS)
    right_winners(const u32 *sums, int width, int height, u32 *right) {
    const int x = blockIdx.x * (32 * WARPS) + threadIdx.x, y = blockIdx.y;
    if (x >= width) return;
    u32 best = NO_WINNER;
    const int first = max(0, -x - MIN_DISPARITY), last = min(DISPARITIES - 1, width - 1 - x - MIN_DISPARITY);
    for (int d = first; d <= last; d++)
        best = min(best, winner_key(sum_of(sums, (size_t)y * width + x + MIN_DISPARITY + d, d), d));
    right[(size_t)y * width + x] = best;
}
