// Prepares a pair for the aggregation: the features that the cost compares (cost.cuh), and for each
// pixel of the left image a word with its intensity and the penalties P2 of every path. A table
// gives P2 for each step of brightness in the guide, which is the left image or a smoothed copy of
// it.
//
// A thread has a column of a prepared row. Grid: [row / BLOCK_THREADS][height].
#define WINDOW_COLUMNS 0
#include "cost.cuh"
#include "blend.cuh"

// The penalty for the step of brightness between a pixel and the one before it on a path.
__device__ __forceinline__ u32 penalty(const Picture &guide, const u8 *penalties, int x, int y, int dx, int dy) {
    return penalties[abs(guide.at(x, y) - guide.at(x - dx, y - dy))];
}

extern "C" __global__ void __launch_bounds__(BLOCK_THREADS)
    compute_features(const u8 *left_pixels, const u8 *right_pixels, const u8 *guide_pixels, const u8 *penalties, int width,
             int height, int row, u32 *p2_down, u32 *p2_up, u32 *p2_across, u32 *base, u32 *match, const u32 *blends) {
    wait_for_launches_before();
    int i = blockIdx.x * BLOCK_THREADS + threadIdx.x, y = blockIdx.y;
    if (i >= row) return;
    Picture left = {left_pixels, width, height}, right = {right_pixels, width, height};
    Picture guide = {guide_pixels, width, height};
    int x = i - PAD;
    size_t at = (size_t)y * row + i;
    u32 intensity = left.at(x, y) << 8 * INTENSITY;
    u32 down = intensity, up = intensity, across = intensity;
#if SURFACE
    auto slant = [&](int dx, int dy, int byte, int path) {
        auto of = [&](int x, int y) {
            return Blend{blends[(size_t)min(max(y, 0), height - 1) * width + min(max(x, 0), width - 1)]};
        };
        return slant_bits(slant_of(of(x - dx, y - dy), of(x, y)), byte, path);
    };
    // The vertical paths read the intensity elsewhere: its byte has the slants.
    down = slant(0, 1, SLANTS, P2_VERTICAL) | slant(1, 1, SLANTS, P2_DIAGONAL_FROM_LEFT) |
           slant(-1, 1, SLANTS, P2_DIAGONAL_FROM_RIGHT);
    up = slant(0, -1, SLANTS, P2_VERTICAL) | slant(1, -1, SLANTS, P2_DIAGONAL_FROM_LEFT) |
         slant(-1, -1, SLANTS, P2_DIAGONAL_FROM_RIGHT);
    across |= slant(1, 0, SLANTS_HORIZONTAL, P2_HORIZONTAL_FROM_LEFT) |
              slant(-1, 0, SLANTS_HORIZONTAL, P2_HORIZONTAL_FROM_RIGHT);
#endif
    p2_down[at] = down | penalty(guide, penalties, x, y, 0, 1) << 8 * P2_VERTICAL |
                  penalty(guide, penalties, x, y, 1, 1) << 8 * P2_DIAGONAL_FROM_LEFT |
                  penalty(guide, penalties, x, y, -1, 1) << 8 * P2_DIAGONAL_FROM_RIGHT;
    p2_up[at] = up | penalty(guide, penalties, x, y, 0, -1) << 8 * P2_VERTICAL |
                penalty(guide, penalties, x, y, 1, -1) << 8 * P2_DIAGONAL_FROM_LEFT |
                penalty(guide, penalties, x, y, -1, -1) << 8 * P2_DIAGONAL_FROM_RIGHT;
    p2_across[at] = across | penalty(guide, penalties, x, y, 1, 0) << 8 * P2_HORIZONTAL_FROM_LEFT |
                    penalty(guide, penalties, x, y, -1, 0) << 8 * P2_HORIZONTAL_FROM_RIGHT;
#if BASE_WORDS > 0
    for (int word = 0; word < BASE_WORDS; word++)
        base[((size_t)y * BASE_WORDS + word) * row + i] = base_feature(left, x, y, word);
#endif
    int words = row / COLUMNS;
    if (i < words) {
        for (int plane = 0; plane < PLANES; plane++)
            match[((size_t)y * PLANES + plane) * words + i] =
                match_feature(right, i * COLUMNS - PAD - MIN_DISPARITY, y, plane);
    }
}
