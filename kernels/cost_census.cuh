// Hamming distance of census descriptors (Zabih and Woodfill, ECCV 1994): plain windows of
// CENSUS_WIDTH x CENSUS_HEIGHT pixels, a bit a neighbour, 1 where it is darker than the centre; or
// with CENSUS_SYMMETRIC a bit a pair of opposite pixels, 1 where the earlier one is brighter
// (Spangenberg et al., CAIP 2013). Pixels outside the picture are the nearest inside.
#pragma once
#include "census.cuh"
#define BASE_WORDS CENSUS_WORDS
#define PLANES CENSUS_WORDS
#define COLUMNS 1
#define REACH PADDED_RANGE
#define MARGIN 0

// A column outside the picture has the descriptor of the nearest inside.
__device__ __forceinline__ u32 base_feature(const Picture &left, int x, int y, int word) {
    return census(left, min(max(x, 0), left.width - 1), y, word);
}
__device__ __forceinline__ u32 match_feature(const Picture &right, int column, int y, int plane) {
    return census(right, min(max(column, 0), right.width - 1), y, plane);
}

__device__ __forceinline__ Vector cost(const Window &window, int x, u32 part, u32, int, int) {
    const u32 *match = window.match + x + REACH - part * REGISTERS;
    Vector c = filled(0);
#pragma unroll
    for (int word = 0; word < CENSUS_WORDS; word++) {
        const u32 base = window.base[word * window.base_pitch + x];
#pragma unroll
        for (int j = 0; j < REGISTERS; j++) {
            const u32 *at = match + word * window.plane_pitch - j;
            c.v[j] += __popc(base ^ at[0]) + (__popc(base ^ at[-HIGH_HALF]) << 16);
        }
    }
    return c;
}
