// The left-right check: a pixel is invalid where the right picture's best match disagrees with its
// winner by more than LEFT_RIGHT_LIMIT pixels.
//
// winners[height][columns] are the words of disparity.cuh, right[height][width] the keys of the right
// picture's winners, disparity is [height][width]. Grid: [width / BLOCK_THREADS][height].
#include "disparity.cuh"

extern "C" __global__ void __launch_bounds__(BLOCK_THREADS)
    left_right(const u32 *winners, const u32 *right, int columns, int width, short *disparity) {
    const int x = blockIdx.x * BLOCK_THREADS + threadIdx.x, y = blockIdx.y;
    if (x >= width) return;
    const Winner winner = {winners[(size_t)y * columns + x]};
    const u32 key = right[(size_t)y * width + matched_column(x, winner.candidate(), width)];
    const bool agrees = key != NO_WINNER && abs(key_candidate(key) - winner.candidate()) <= LEFT_RIGHT_LIMIT;
    disparity[(size_t)y * width + x] = agrees ? winner.disparity() : INVALID;
}
