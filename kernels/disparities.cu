// The disparities of the winners, as the map that filters and outputs take: for pairs whose winners
// nothing checks (left_right.cu does it on its way).
//
// winners[height][columns] are the words of disparity.cuh, disparity is [height][width].
// Grid: [width / BLOCK_THREADS][height].
#include "disparity.cuh"

extern "C" __global__ void __launch_bounds__(BLOCK_THREADS)
    disparities(const u32 *winners, int columns, int width, short *disparity) {
    const int x = blockIdx.x * BLOCK_THREADS + threadIdx.x, y = blockIdx.y;
    if (x >= width) return;
    const Winner winner = {winners[(size_t)y * columns + x]};
    disparity[(size_t)y * width + x] = winner.disparity();
}
