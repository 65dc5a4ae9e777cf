// The noise filter (matching/texture.rs).
#pragma once
#include "instructions.cuh"

// Its responses lie from 0 to RESPONSE_MAX; pixels that are cut off have none.
#define RESPONSES (RESPONSE_MAX + 1)

// Adds the response at column x and row y of a picture of this size to `counts`. `at` is the pixel,
// which has its neighbours beside it and rows that are `stride` bytes apart.
__device__ __forceinline__ void count_response(u32 *counts, const u8 *at, int stride, int x, int y, int width, int height) {
    const bool inside = x >= 1 && x < width - 1 && y >= 1 && y < height - 1;
    if (!inside || at[0] < UNCLIPPED_LEAST || at[0] > UNCLIPPED_MOST) return;
    auto of_row = [&](int down) {
        const u8 *row = at + down * stride;
        return row[-1] - 2 * row[0] + row[1];
    };
    atomicAdd(&counts[abs(of_row(-1) - 2 * of_row(0) + of_row(1))], 1u);
}
