// The plain way, for pictures and ranges that the sweeps cannot take: each direction follows its
// paths from border to border and adds L to the sums of the whole picture in memory; then a second
// kernel picks the winners from them, and a third those of the right picture.
//
// Sums are [height][width][DH words]: 16-bit halves, registers of the lanes as `sums_at` says.
#define WINDOW_COLUMNS 0
#include "cost.cuh"

#define WARPS 4
#define INVALID (-32768)
#define NO_CANDIDATE 0xffffffffu

// This lane's registers lie behind each other, four at a time across the lanes.
__device__ __forceinline__ size_t sums_at(size_t pixel, u32 lane, int j) {
    const int unit = R % 4 == 0 ? 4 : 2;
    return pixel * DH + (j / unit * G + lane) * unit + j % unit;
}

// One direction (dx, dy). Paths begin where the pixel before lies outside: the first row or the last
// and, for dx, the first column or the last. `first` says that the sums hold nothing yet.
//
// Grid: [paths / (PIXELS * WARPS)]: height of them for dy = 0, width for dx = 0, else both.
extern "C" __global__ void __launch_bounds__(32 * WARPS)
    paths(const u32 *steps, const u32 *base, const u32 *match, int row, int width, int height, int dx, int dy,
          int first, u32 *sums) {
    const u32 lane = group_lane();
    const int group = (blockIdx.x * WARPS + threadIdx.x / 32) * PIXELS + threadIdx.x % 32 / G;
    const Features features = {steps, base, match, row};
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
    const int byte = dy == 0 ? (dx > 0 ? 1 : 2) : dx == 0 ? 1 : dx > 0 ? 2 : 3;
    const Edges edges(lane);
    Vector path = filled(0);
    u32 least = 0;
    // All lanes of a warp go on until the last of its paths has ended.
    while (true) {
        const bool inside = group < starts && x >= 0 && x < width && y >= 0 && y < height;
        if (!__any_sync(LANES_MASK, inside)) break;
        const int at_x = inside ? x : 0, at_y = inside ? y : 0;
        const u32 word = steps[(size_t)at_y * row + at_x + PAD];
        const Vector c = cost(window_at(features, 0, at_y), at_x, lane, word, 0, width);
        const u32 penalty = both(word >> 8 * byte & 0xff);
        Vector best = recurrence(path, add2(least, penalty), edges);
#pragma unroll
        for (int j = 0; j < R; j++) {
            path.v[j] = add2(sub2(best.v[j], least), c.v[j]);
            if (inside) {
                u32 *sum = sums + sums_at((size_t)y * width + x, lane, j);
                *sum = first ? path.v[j] : *sum + path.v[j];
            }
            if (D < DP) path.v[j] |= padding(lane, j);
        }
        least = least_of(path);
        x += dx, y += dy;
    }
}

__device__ __forceinline__ u32 sum_of(const u32 *sums, size_t pixel, int d) {
    const int r = d % DH;
    const u32 pair = sums[sums_at(pixel, r / R, r % R)];
    return d < DH ? pair & 0xffff : pair >> 16;
}

// The winner of every pixel: one thread group a pixel.
//
// Grid: [width * height / (PIXELS * WARPS)].
extern "C" __global__ void __launch_bounds__(32 * WARPS)
    winners(const u32 *sums, int width, int height, u32 *words) {
    const u32 lane = group_lane();
    const size_t group = ((size_t)blockIdx.x * WARPS + threadIdx.x / 32) * PIXELS + threadIdx.x % 32 / G;
    const size_t pixels = (size_t)width * height, pixel = min(group, pixels - 1);
    Vector sum;
    // (sum << 10 | candidate): the smallest sum and, among equals, the smallest disparity.
    u32 best = NO_CANDIDATE;
#pragma unroll
    for (int j = 0; j < R; j++) {
        sum.v[j] = sums[sums_at(pixel, lane, j)];
        const u32 d = lane * R + j;
        if (d < D) best = min(best, (sum.v[j] & 0xffff) << 10 | d);
        if (d + DH < D) best = min(best, (sum.v[j] >> 16) << 10 | (d + DH));
    }
#pragma unroll
    for (int step = 1; step < G; step *= 2) best = min(best, __shfl_xor_sync(LANES_MASK, best, step));
    const int winner = best & 1023, b = best >> 10;
    int disparity = (D_MIN + winner) * 16;
#if SUBPIXEL
    if (winner > 0 && winner + 1 < D) {
        const int a = sum_of(sums, pixel, winner - 1), c = sum_of(sums, pixel, winner + 1), den = a + c - 2 * b;
        // |a - c| <= den, so 32 den more make the numerator positive and the division a floor.
        if (den != 0) disparity += (16 * (a - c) + 33 * den) / (2 * den) - 16;
    }
#endif
#if UNIQUENESS
    u32 rival = 0;
#pragma unroll
    for (int j = 0; j < R; j++) {
        const int d = lane * R + j;
        if (d < D && abs(d - winner) > 1) rival |= (sum.v[j] & 0xffff) * (100 - UNIQUENESS) < b * 100;
        if (d + DH < D && abs(d + DH - winner) > 1) rival |= (sum.v[j] >> 16) * (100 - UNIQUENESS) < b * 100;
    }
#pragma unroll
    for (int step = 1; step < G; step *= 2) rival |= __shfl_xor_sync(LANES_MASK, rival, step);
    if (rival) disparity = INVALID;
#endif
    if (lane == 0 && group < pixels) words[pixel] = (disparity & 0xffff) | winner << 16;
}

// The winner of every pixel of the right picture: (sum << 10 | candidate), or NO_CANDIDATE.
//
// Grid: [width / 128][height], blocks of 128 threads.
extern "C" __global__ void __launch_bounds__(128)
    right_winners(const u32 *sums, int width, int height, u32 *right) {
    const int x = blockIdx.x * 128 + threadIdx.x, y = blockIdx.y;
    if (x >= width) return;
    u32 best = NO_CANDIDATE;
    const int first = max(0, -x - D_MIN), last = min(D - 1, width - 1 - x - D_MIN);
    for (int d = first; d <= last; d++)
        best = min(best, sum_of(sums, (size_t)y * width + x + D_MIN + d, d) << 10 | d);
    right[(size_t)y * width + x] = best;
}
