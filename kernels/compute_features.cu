// Prepares a pair for the aggregation: the features that the cost compares (cost.cuh), and for each
// pixel of the left image a word with its intensity and the penalties P2 of every path. A table
// gives P2 for each step of brightness in the guide, which is the left image or a smoothed copy of
// it.
//
// PARTS of a launch: the features, the penalties, or both. Only the penalties need the coarser
// level, where paths follow a surface.
//
// A thread has a column of a prepared row. Grid: [row / BLOCK_THREADS][height].
#define WINDOW_COLUMNS 0
#include "cost.cuh"
#include "blend.cuh"

extern "C" __global__ void __launch_bounds__(BLOCK_THREADS)
    compute_features(const u8 *left_pixels, const u8 *right_pixels, const u8 *guide_pixels, const u8 *penalties, int width,
             int height, int row, u32 *p2_down, u32 *p2_up, u32 *p2_across, u32 *base, u32 *match, const u32 *blends,
             int parts) {
    wait_for_launches_before();
    int i = blockIdx.x * BLOCK_THREADS + threadIdx.x, y = blockIdx.y;
    if (i >= row) return;
    Picture left = {left_pixels, width, height}, right = {right_pixels, width, height};
    Picture guide = {guide_pixels, width, height};
    const int x = i - PAD;
    // No path leads from beside the picture into it.
    const bool inside = x >= 0 && x < width;
    if (parts & PART_PENALTIES) {
        auto support = [&](int x, int y) {
            return Blend{blends[(size_t)min(max(y, 0), height - 1) * width + min(max(x, 0), width - 1)]};
        };
        // A path's part of the word: the penalty for the step from the pixel before on it, and the slant.
        auto of_path = [&](int dx, int dy, int slants, int path) {
            u32 part = (u32)penalties[abs(guide.at(x, y) - guide.at(x - dx, y - dy))] << 8 * path;
            if (SURFACE) part |= slant_bits(slant_of(support(x - dx, y - dy), support(x, y)), slants, path);
            return part;
        };
        u32 down = 0, up = 0, across = 0;
        if (inside) {
            const u32 intensity = left.at(x, y) << 8 * INTENSITY;
            // The vertical paths read the intensity elsewhere if its byte has the slants.
            down = of_path(0, 1, SLANTS, P2_VERTICAL) | (SURFACE ? 0 : intensity);
            up = of_path(0, -1, SLANTS, P2_VERTICAL) | (SURFACE ? 0 : intensity);
            if (DIAGONALS) {
                down |= of_path(1, 1, SLANTS, P2_DIAGONAL_FROM_LEFT) | of_path(-1, 1, SLANTS, P2_DIAGONAL_FROM_RIGHT);
                up |= of_path(1, -1, SLANTS, P2_DIAGONAL_FROM_LEFT) | of_path(-1, -1, SLANTS, P2_DIAGONAL_FROM_RIGHT);
            }
            across = intensity | of_path(1, 0, SLANTS_HORIZONTAL, P2_HORIZONTAL_FROM_LEFT) |
                     of_path(-1, 0, SLANTS_HORIZONTAL, P2_HORIZONTAL_FROM_RIGHT);
        }
        size_t at = (size_t)y * row + i;
        p2_down[at] = down;
        p2_up[at] = up;
        p2_across[at] = across;
    }
    if (!(parts & PART_FEATURES)) return;
#if BASE_WORDS > 0
    for (int word = 0; word < BASE_WORDS; word++)
        base[((size_t)y * BASE_WORDS + word) * row + i] = inside ? base_feature(left, x, y, word) : 0;
#endif
    int words = row / COLUMNS;
    if (i < words) {
        for (int plane = 0; plane < PLANES; plane++)
            match[((size_t)y * PLANES + plane) * words + i] =
                match_feature(right, i * COLUMNS - PAD - MIN_DISPARITY, y, plane);
    }
}
