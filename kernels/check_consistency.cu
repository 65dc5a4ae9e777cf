// Makes the disparity map of the winners. With LEFT_RIGHT a pixel is invalid where the best
// match of the right picture's pixel disagrees with its winner by more than LEFT_RIGHT_LIMIT pixels.
//
// winners[height][columns] are the words of disparity.cuh, right[height][width] the keys of the
// right picture's winners, disparity is [height][width] in 1/16 px. A thread has a pixel.
// Grid: [width / BLOCK_THREADS][height].
#include "disparity.cuh"

extern "C" __global__ void __launch_bounds__(BLOCK_THREADS)
    check_consistency(const u32 *winners, const u32 *right, int columns, int width, short *disparity) {
    wait_for_launches_before();
    const int x = blockIdx.x * BLOCK_THREADS + threadIdx.x, y = blockIdx.y;
    if (x >= width) return;
    const Winner winner = {winners[(size_t)y * columns + x]};
    bool agrees = true;
#if LEFT_RIGHT
    const u32 key = right[(size_t)y * width + matched_column(x, winner.candidate(), width)];
    agrees = key != NO_WINNER && abs(key_candidate(key) - winner.candidate()) <= BREAK(left_right_limit, LEFT_RIGHT_LIMIT, LEFT_RIGHT_LIMIT + 1);
#endif
    disparity[(size_t)y * width + x] = agrees ? winner.disparity() : INVALID;
}
