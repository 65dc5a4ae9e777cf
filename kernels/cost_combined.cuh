// Census, horizontal gradient and intensity together:
// (CENSUS_WEIGHT * Hamming(census 5x5) + GRADIENT_WEIGHT * min(|g_l - g_r|, GRADIENT_TRUNCATION)
//  + INTENSITY_WEIGHT * min(|I_l - I_r|, INTENSITY_TRUNCATION) + 8) >> 4, with g = I(x + 1) - I(x - 1).
//
// Gradients and intensities of candidates d and d + HIGH_HALF share a word, as half-floats
// whose bits are the integers (lanes.cuh), so that a difference and a truncation take one
// instruction each.
#pragma once
#include "census.cuh"
#define BASE_WORDS 2
#define PLANES 3
#define COLUMNS 1
#define REACH PADDED_RANGE
#define MARGIN 0

// The gradient as the bits of a half-float: magnitude and sign.
__device__ __forceinline__ u32 gradient(const Picture &picture, int x, int y) {
    x = min(max(x, 0), picture.width - 1);
    int g = picture.at(x + 1, y) - picture.at(x - 1, y);
    return g < 0 ? 0x8000u | -g : g;
}
__device__ __forceinline__ u32 base_feature(const Picture &left, int x, int y, int word) {
    return word == 0 ? census(left, min(max(x, 0), left.width - 1), y, 0) : both(gradient(left, x, y));
}
__device__ __forceinline__ u32 match_feature(const Picture &right, int column, int y, int plane) {
    if (plane == 0) return census(right, min(max(column, 0), right.width - 1), y, 0);
    if (plane == 1) return gradient(right, column, y) | gradient(right, column - HIGH_HALF, y) << 16;
    return right.at(column, y) | right.at(column - HIGH_HALF, y) << 16;
}

// min(|a - b|, limit) of the halves, as integers.
__device__ __forceinline__ u32 truncated_difference(u32 a, u32 b, u32 limit) {
    return least_magnitude(sub2(a, b), limit);
}

__device__ __forceinline__ Vector cost(const Window &window, int x, u32 part, u32 pixel, int, int) {
    const u32 *match = window.match + x + REACH - part * REGISTERS;
    const u32 census_left = window.base[x], gradient_left = window.base[window.base_pitch + x];
    const u32 intensity_left = __byte_perm(pixel, 0, IN_BOTH_HALVES(INTENSITY));
    Vector c;
#pragma unroll
    for (int j = 0; j < REGISTERS; j++) {
        const u32 *at = match - j;
        // 16 times the sum, so that a half's upper byte is the cost.
        u32 sum = truncated_difference(gradient_left, at[window.plane_pitch], both(GRADIENT_TRUNCATION)) * (16 * GRADIENT_WEIGHT) + both(16 * 8);
        sum += truncated_difference(intensity_left, at[2 * window.plane_pitch], both(INTENSITY_TRUNCATION)) * (16 * INTENSITY_WEIGHT);
        sum += __popc(census_left ^ at[0]) * (16 * CENSUS_WEIGHT);
        sum += __popc(census_left ^ at[-HIGH_HALF]) * (CENSUS_WEIGHT << 20);
        c.v[j] = __byte_perm(sum, 0, ODD_BYTES);
    }
    return c;
}
