// The median over a square window of MEDIAN pixels a side: of the valid values, the lower one of
// two in the middle. Invalid pixels stay invalid; those outside the picture do not count.
//
// A block makes a tile of TILE_WIDTH x TILE_HEIGHT pixels; a thread two pixels side by side, as the
// halves of a register. disparity and filtered are [height][width].
//
// Grid: [tiles across][tiles down], blocks of TILE_WIDTH / 2 x TILE_HEIGHT threads.
#include "bytes.cuh"
#include "disparity.cuh"

#define MEDIAN (2 * MEDIAN_RADIUS + 1)
static_assert(MEDIAN_RADIUS > 0 && TILE_WIDTH == 64, "a row of a tile is a warp");
// Columns of the tile with its border; even, so that rows begin with a whole word.
#define TILE_COLUMNS (TILE_WIDTH + 2 * MEDIAN_RADIUS)
#define WINDOW_SIZE (MEDIAN * MEDIAN)
// The smallest value and the largest one, in both halves.
#define INVALID_HALVES both(0x8000u)
#define LARGEST_HALVES both(0x7fffu)

__device__ __forceinline__ void sort2(u32 &a, u32 &b) {
    u32 least = __vmins2(a, b);
    b = __vmaxs2(a, b);
    a = least;
}

// The median of the values, half by half, which it disorders: forgetful selection. Of one more than
// half of the values the smallest and the largest cannot be the median, so they give way to one
// that is new.
__device__ __forceinline__ u32 median_of(u32 (&values)[WINDOW_SIZE]) {
    constexpr int KEPT = WINDOW_SIZE / 2 + 2, LAST = KEPT - 1;
#pragma unroll
    for (int first = 0; first <= KEPT - 3; first++) {
        // values[first .. LAST] are kept: pairs first, so that the smaller ones are in the lower
        // half; then the smallest of those goes to the front and the largest of the others to the
        // end.
#pragma unroll
        for (int k = 0; k < (KEPT - first) / 2; k++) sort2(values[first + k], values[LAST - k]);
#pragma unroll
        for (int k = first + 1; k <= (first + LAST) / 2; k++) sort2(values[first], values[k]);
#pragma unroll
        for (int k = (first + LAST + 1) / 2; k < LAST; k++) sort2(values[k], values[LAST]);
        if (first < KEPT - 3) values[LAST] = values[KEPT + first];
    }
    return values[LAST - 1];
}

extern "C" __global__ void __launch_bounds__(32 * TILE_HEIGHT)
    median(const short *disparity, int width, int height, short *filtered) {
    wait_for_launches_before();
    const int left = blockIdx.x * TILE_WIDTH, top = blockIdx.y * TILE_HEIGHT;
    __shared__ __align__(4) short tile[TILE_HEIGHT + 2 * MEDIAN_RADIUS][TILE_COLUMNS];
    for (int row = threadIdx.y; row < TILE_HEIGHT + 2 * MEDIAN_RADIUS; row += TILE_HEIGHT) {
        for (int column = threadIdx.x; column < TILE_COLUMNS; column += 32) {
            int x = left + column - MEDIAN_RADIUS, y = top + row - MEDIAN_RADIUS;
            bool inside = x >= 0 && x < width && y >= 0 && y < height;
            tile[row][column] = inside ? disparity[(size_t)y * width + x] : INVALID;
        }
    }
    __syncthreads();

    // The windows of two pixels: the first in the low halves, the second in the high ones.
    u32 values[WINDOW_SIZE];
    u32 any_invalid = 0;
#pragma unroll
    for (int row = 0; row < MEDIAN; row++) {
        const u32 *words = (const u32 *)&tile[threadIdx.y + row][2 * threadIdx.x];
        u32 pairs[MEDIAN_RADIUS + 1];
#pragma unroll
        for (int k = 0; k <= MEDIAN_RADIUS; k++) pairs[k] = words[k];
#pragma unroll
        for (int column = 0; column < MEDIAN; column++)
            values[row * MEDIAN + column] =
                column % 2 == 0 ? pairs[column / 2]
                                : __byte_perm(pairs[column / 2], pairs[column / 2 + 1], A_HIGH_B_LOW);
    }
    u32 centre = values[WINDOW_SIZE / 2];
#pragma unroll
    for (int k = 0; k < WINDOW_SIZE; k++) any_invalid |= __vcmpeq2(values[k], INVALID_HALVES);
    if (any_invalid) {
        // Of n valid values the one of rank (n - 1) / 2 is wanted, so as many of the invalid ones
        // as bring it into the middle of all count as smallest, the rest as largest.
        u32 invalid = 0;
#pragma unroll
        for (int k = 0; k < WINDOW_SIZE; k++) invalid += __vcmpeq2(values[k], INVALID_HALVES) & 0x00010001u;
        // WINDOW_SIZE / 2 - (n - 1) / 2 with n = WINDOW_SIZE - invalid, which is (invalid + 1) / 2.
        u32 low = (invalid + BREAK(median_of_valid, 0x00010001u, 0u)) >> 1 & 0x00ff00ffu;
#pragma unroll
        for (int k = 0; k < WINDOW_SIZE; k++) {
            u32 is_invalid = __vcmpeq2(values[k], INVALID_HALVES);
            u32 is_low = is_invalid & ~__vcmpeq2(low, 0);
            low -= is_low & 0x00010001u;
            // INVALID is the smallest value already.
            values[k] = (values[k] & ~(is_invalid & ~is_low)) | (LARGEST_HALVES & is_invalid & ~is_low);
        }
    }
    u32 result = median_of(values);
    u32 centre_invalid = __vcmpeq2(centre, INVALID_HALVES);
    result = (result & ~centre_invalid) | (INVALID_HALVES & centre_invalid);
    int x = left + 2 * threadIdx.x, y = top + threadIdx.y;
    if (y < height) {
        short *out = filtered + (size_t)y * width + x;
        if (x < width) out[0] = (short)(result & 0xffff);
        if (x + 1 < width) out[1] = (short)(result >> 16);
    }
}
