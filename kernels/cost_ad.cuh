// Truncated absolute difference of intensities: min(|I_left(x, y) - I_right(x - d, y)|, AD_TRUNCATION).
//
// A word of the right picture holds four candidates: d and d + 1, and the same HALF_DISPARITIES further
// on, so one difference of bytes serves two registers. Even and odd columns have a plane each.
#pragma once
#define BASE_WORDS 0
#define PLANES 2
#define COLUMNS 2
#define REACH HALF_DISPARITIES
#define MARGIN 0

__device__ __forceinline__ u32 base_feature(const Picture &, int, int, int) { return 0; }

// `column` is even: the column of the match picture (with MIN_DISPARITY taken off) that plane 0's candidate d
// looks at.
__device__ __forceinline__ u32 match_feature(const Picture &right, int column, int y, int plane) {
    int x = column + plane;
    return right.at(x, y) | right.at(x - 1, y) << 8 | right.at(x - HALF_DISPARITIES, y) << 16 |
           right.at(x - 1 - HALF_DISPARITIES, y) << 24;
}

// The costs of window column `x`; `pixel` is its word (cost.cuh).
__device__ __forceinline__ Vector cost(const Window &window, int x, u32 lane, u32 pixel, int, int) {
    const u32 *match = window.match + (x & 1) * window.plane_pitch + (x + REACH) / 2 - lane * (REGISTERS / 2);
    u32 intensity = __byte_perm(pixel, 0, IN_ALL_BYTES(INTENSITY));
    Vector c;
#pragma unroll
    for (int k = 0; k < REGISTERS / 2; k++) {
        u32 difference = __vabsdiffu4(match[-k], intensity);
        c.v[2 * k] = __byte_perm(difference, 0, EVEN_BYTES);
        c.v[2 * k + 1] = __byte_perm(difference, 0, ODD_BYTES);
    }
    if (AD_TRUNCATION < 255) {
#pragma unroll
        for (int j = 0; j < REGISTERS; j++) c.v[j] = min2(c.v[j], both(AD_TRUNCATION));
    }
    return c;
}
