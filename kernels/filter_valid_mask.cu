// The valid mask: a pixel is invalid where it or its match lies outside what the cameras have seen.
// In place.
//
// winners[height][columns] are the words of disparity.cuh; the masks, a byte a pixel, and disparity
// are [height][width]. Grid: [width / BLOCK_THREADS][height].
#include "disparity.cuh"

extern "C" __global__ void __launch_bounds__(BLOCK_THREADS)
    valid_mask(const u32 *winners, const u8 *seen_left, const u8 *seen_right, int columns, int width,
               short *disparity) {
    wait_for_launches_before();
    const int x = blockIdx.x * BLOCK_THREADS + threadIdx.x, y = blockIdx.y;
    if (x >= width) return;
    const Winner winner = {winners[(size_t)y * columns + x]};
    const size_t row = (size_t)y * width;
    const int match = matched_column(x, winner.candidate(), width);
    if (!seen_left[row + x] || !seen_right[row + BREAK(mask_column, match, x)]) disparity[row + x] = INVALID;
}
