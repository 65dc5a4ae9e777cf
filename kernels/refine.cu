// Left-right check, pixels outside the sensors, and median: what becomes of the winners (refine.rs).
//
// A block makes a tile of TILE_WIDTH x TILE_HEIGHT pixels; a thread two pixels side by side, as the
// halves of a register.
//
// Grid: [tiles across][tiles down], blocks of 32 x TILE_HEIGHT threads.
#include "lanes.cuh"

#define INVALID (-32768)
#define RADIUS (MEDIAN / 2)
#define TILE_WIDTH 64
#define TILE_HEIGHT 8
// Columns of the tile with its border, rounded up so that rows begin with a whole word.
#define TILE_COLUMNS (TILE_WIDTH + 2 * RADIUS)
#define WINDOW_SIDE (2 * RADIUS + 1)
#define WINDOW_SIZE (WINDOW_SIDE * WINDOW_SIDE)

// What becomes of the winners: winners[height][columns], the right picture's keys right[height][width],
// and, a byte a pixel, what either camera has seen of its rectified picture, which is read only where
// there are unseen pixels.
struct Winners {
    const u32 *winners, *right;
    const u8 *seen_left, *seen_right;
    int width, columns;

    // The disparity of a pixel, INVALID where the right picture's best match disagrees with its
    // winner, or where it or its match lies outside a sensor.
    __device__ __forceinline__ short checked(int x, int y) const {
        u32 word = winners[(size_t)y * columns + x];
        short disparity = (short)(word & 0xffff);
#if LEFT_RIGHT || MASKED
        int winner = word >> 16;
        int match_x = min(max(x - D_MIN - winner, 0), width - 1);
        size_t match = (size_t)y * width + match_x;
#endif
#if LEFT_RIGHT
        u32 key = right[match];
        // A right pixel that no left one can match holds the initial value.
        if (key == 0xffffffffu || abs((int)(key & 1023) - winner) > LEFT_RIGHT_LIMIT) disparity = INVALID;
#endif
#if MASKED
        if (!seen_left[(size_t)y * width + x] || !seen_right[match]) disparity = INVALID;
#endif
        return disparity;
    }
};

__device__ __forceinline__ void sort2(u32 &a, u32 &b) {
    u32 least = __vmins2(a, b);
    b = __vmaxs2(a, b);
    a = least;
}

// The median of the values, half by half, which it disorders: forgetful selection. Of one more than
// half of the values the smallest and the largest cannot be the median, so they give way to one that
// is new.
__device__ __forceinline__ u32 median(u32 (&values)[WINDOW_SIZE]) {
    constexpr int KEPT = WINDOW_SIZE / 2 + 2, LAST = KEPT - 1;
#pragma unroll
    for (int first = 0; first <= KEPT - 3; first++) {
        // values[first .. LAST] are kept: pairs first, so that the smaller ones are in the lower half;
        // then the smallest of those goes to the front and the largest of the others to the end.
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
    refine(const u32 *winners, const u32 *right, const u8 *seen_left, const u8 *seen_right, int width, int height,
           int columns, short *disparity) {
    const Winners from = {winners, right, seen_left, seen_right, width, columns};
    const int left = blockIdx.x * TILE_WIDTH, top = blockIdx.y * TILE_HEIGHT;
#if RADIUS == 0
    for (int i = 0; i < 2; i++) {
        int x = left + threadIdx.x + 32 * i, y = top + threadIdx.y;
        if (x < width && y < height)
            disparity[(size_t)y * width + x] = from.checked(x, y);
    }
#else
    __shared__ __align__(4) short tile[TILE_HEIGHT + 2 * RADIUS][TILE_COLUMNS];
    for (int row = threadIdx.y; row < TILE_HEIGHT + 2 * RADIUS; row += TILE_HEIGHT) {
        for (int column = threadIdx.x; column < TILE_COLUMNS; column += 32) {
            int x = left + column - RADIUS, y = top + row - RADIUS;
            bool inside = x >= 0 && x < width && y >= 0 && y < height;
            tile[row][column] = inside ? from.checked(x, y) : INVALID;
        }
    }
    __syncthreads();

    // The windows of two pixels: the first in the low halves, the second in the high ones.
    u32 values[WINDOW_SIZE];
    u32 any_invalid = 0;
#pragma unroll
    for (int row = 0; row < WINDOW_SIDE; row++) {
        const u32 *words = (const u32 *)&tile[threadIdx.y + row][2 * threadIdx.x];
        u32 pairs[RADIUS + 1];
#pragma unroll
        for (int k = 0; k <= RADIUS; k++) pairs[k] = words[k];
#pragma unroll
        for (int column = 0; column < WINDOW_SIDE; column++)
            values[row * WINDOW_SIDE + column] = column % 2 == 0 ? pairs[column / 2] : __byte_perm(pairs[column / 2], pairs[column / 2 + 1], 0x5432);
    }
    u32 centre = values[WINDOW_SIZE / 2];
#pragma unroll
    for (int k = 0; k < WINDOW_SIZE; k++) any_invalid |= __vcmpeq2(values[k], both(0x8000));
    if (any_invalid) {
        // Of n valid values the one of rank (n - 1) / 2 is wanted, so as many of the invalid ones as
        // bring it into the middle of all count as smallest, the rest as largest.
        u32 invalid = 0;
#pragma unroll
        for (int k = 0; k < WINDOW_SIZE; k++) invalid += __vcmpeq2(values[k], both(0x8000)) & 0x00010001u;
        // WINDOW_SIZE / 2 - (n - 1) / 2 with n = WINDOW_SIZE - invalid, which is (invalid + 1) / 2.
        u32 low = (invalid + 0x00010001u) >> 1 & 0x00ff00ffu;
#pragma unroll
        for (int k = 0; k < WINDOW_SIZE; k++) {
            u32 is_invalid = __vcmpeq2(values[k], both(0x8000));
            u32 is_low = is_invalid & ~__vcmpeq2(low, 0);
            low -= is_low & 0x00010001u;
            // INVALID is the smallest value already.
            values[k] = (values[k] & ~(is_invalid & ~is_low)) | (both(0x7fff) & is_invalid & ~is_low);
        }
    }
    u32 result = median(values);
    u32 centre_invalid = __vcmpeq2(centre, both(0x8000));
    result = (result & ~centre_invalid) | (both(0x8000) & centre_invalid);
    int x = left + 2 * threadIdx.x, y = top + threadIdx.y;
    if (y < height) {
        short *out = disparity + (size_t)y * width + x;
        if (x < width) out[0] = (short)(result & 0xffff);
        if (x + 1 < width) out[1] = (short)(result >> 16);
    }
#endif
}
