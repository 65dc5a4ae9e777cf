// Truncated absolute difference of intensities: min(|I_left(x, y) - I_right(x - d, y)|, AD_TRUNCATION).
//
// A word of the right picture holds four candidates: d and d + 1, and the same DP / 2 further on, so
// one difference of bytes serves two registers. Even and odd columns have a plane each.
#pragma once
#define BASE_WORDS 0
#define PLANES 2
#define COLUMNS 2
#define REACH DH
#define MARGIN 0

__device__ __forceinline__ u32 base_feature(const Picture &, int, int, int) { return 0; }

// `column` is even: the column of the match picture (with D_MIN taken off) that plane 0's candidate d
// looks at.
__device__ __forceinline__ u32 match_feature(const Picture &right, int column, int y, int plane) {
    int x = column + plane;
    return right.at(x, y) | right.at(x - 1, y) << 8 | right.at(x - DH, y) << 16 |
           right.at(x - 1 - DH, y) << 24;
}

// The costs of window column `x`; `steps` is its word, with the intensity in the lowest byte.
__device__ __forceinline__ Vector cost(const Window &window, int x, u32 lane, u32 steps, int, int) {
    const u32 *match = window.match + (x & 1) * window.plane_pitch + (x + REACH) / 2 - lane * (R / 2);
    u32 intensity = __byte_perm(steps, 0, 0x0000);
    Vector c;
#pragma unroll
    for (int k = 0; k < R / 2; k++) {
        u32 difference = __vabsdiffu4(match[-k], intensity);
        c.v[2 * k] = __byte_perm(difference, 0, 0x4240);
        c.v[2 * k + 1] = __byte_perm(difference, 0, 0x4341);
    }
    if (AD_TRUNCATION < 255) {
#pragma unroll
        for (int j = 0; j < R; j++) c.v[j] = min2(c.v[j], both(AD_TRUNCATION));
    }
    return c;
}
