// Mutual information: a cost looked up by the two grey levels, table[left level][right level]
// (mutual_information.cu). The table takes the place of the left image's features.
#pragma once
#include "four_candidates.cuh"
#define LOOKS_UP 1
#define LEVELS 256

// The costs of window column `x`; `pixel` is its word (cost.cuh).
__device__ __forceinline__ Vector cost(const Window &window, int x, u32 part, u32 pixel, int, int) {
    const u32 *match = match_words(window, x, part);
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
