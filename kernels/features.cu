// Prepares a pair for the aggregation: the penalties P2 of every path beside the intensities of the
// left picture, and what the cost compares (cost.cuh).
//
// One thread a word column of a row; the grid covers [row / 256][height].
#define WINDOW_COLUMNS 0
#include "cost.cuh"

// The penalty for the brightness step between a pixel and the one before it on a path.
__device__ __forceinline__ u32 penalty(const Picture &left, const u8 *penalties, int x, int y, int dx, int dy) {
    return penalties[abs(left.at(x, y) - left.at(x - dx, y - dy))];
}

extern "C" __global__ void __launch_bounds__(256)
    features(const u8 *left_pixels, const u8 *right_pixels, const u8 *penalties, int width, int height,
             int row, u32 *steps_down, u32 *steps_up, u32 *steps_across, u32 *base, u32 *match) {
    int i = blockIdx.x * 256 + threadIdx.x, y = blockIdx.y;
    if (i >= row) return;
    Picture left = {left_pixels, width, height}, right = {right_pixels, width, height};
    int x = i - PAD;
    size_t at = (size_t)y * row + i;
    u32 intensity = left.at(x, y);
    // Byte 1: straight, byte 2: the path that comes from the left, byte 3: the one from the right.
    steps_down[at] = intensity | penalty(left, penalties, x, y, 0, 1) << 8 |
                     penalty(left, penalties, x, y, 1, 1) << 16 |
                     penalty(left, penalties, x, y, -1, 1) << 24;
    steps_up[at] = intensity | penalty(left, penalties, x, y, 0, -1) << 8 |
                   penalty(left, penalties, x, y, 1, -1) << 16 |
                   penalty(left, penalties, x, y, -1, -1) << 24;
    steps_across[at] = intensity | penalty(left, penalties, x, y, 1, 0) << 8 |
                       penalty(left, penalties, x, y, -1, 0) << 16;
#if BASE_WORDS > 0
    for (int word = 0; word < BASE_WORDS; word++)
        base[((size_t)y * BASE_WORDS + word) * row + i] = base_feature(left, x, y, word);
#endif
    int words = row / COLUMNS;
    if (i < words) {
        for (int plane = 0; plane < PLANES; plane++)
            match[((size_t)y * PLANES + plane) * words + i] =
                match_feature(right, i * COLUMNS - PAD - D_MIN, y, plane);
    }
}
