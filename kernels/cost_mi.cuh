// Mutual information: what a table says of two grey levels (mutual_information.cu), [left level][right level].
//
// The words of the right picture are those of the absolute difference (cost_ad.cuh): one holds four candidates, d
// and d + 1, and the same HALF_DISPARITIES further on. The table takes the place of the left picture's features.
#pragma once
#define LOOKS_UP 1
#define BASE_WORDS 0
#define PLANES 2
#define COLUMNS 2
#define REACH HALF_DISPARITIES
#define MARGIN 0
#define LEVELS 256

__device__ __forceinline__ u32 base_feature(const Picture &, int, int, int) { return 0; }

__device__ __forceinline__ u32 match_feature(const Picture &right, int column, int y, int plane) {
    int x = column + plane;
    return right.at(x, y) | right.at(x - 1, y) << 8 | right.at(x - HALF_DISPARITIES, y) << 16 |
           right.at(x - 1 - HALF_DISPARITIES, y) << 24;
}

// The costs of window column `x`; `pixel` is its word (cost.cuh).
__device__ __forceinline__ Vector cost(const Window &window, int x, u32 lane, u32 pixel, int, int) {
    const u32 *match = window.match + (x & 1) * window.plane_pitch + (x + REACH) / 2 - lane * (REGISTERS / 2);
    const u8 *costs = (const u8 *)window.base + (pixel >> 8 * INTENSITY & 0xff) * LEVELS;
    Vector c;
#pragma unroll
    for (int k = 0; k < REGISTERS / 2; k++) {
        const u32 four = match[-k];
        c.v[2 * k] = costs[four & 0xff] | costs[four >> 16 & 0xff] << 16;
        c.v[2 * k + 1] = costs[four >> 8 & 0xff] | costs[four >> 24] << 16;
    }
    return c;
}
