// Smooths an image by the binomial 1 2 1 along rows and columns, rounded (matching/pyramid.rs).
//
// Grid: [width / BLOCK_THREADS][height].
#include "picture.cuh"

extern "C" __global__ void __launch_bounds__(BLOCK_THREADS)
    smoothed(const u8 *pixels, int width, int height, u8 *result) {
    wait_for_launches_before();
    const int x = blockIdx.x * BLOCK_THREADS + threadIdx.x, y = blockIdx.y;
    if (x >= width) return;
    const Picture from = {pixels, width, height};
    int sum = 8;
#pragma unroll
    for (int down = -1; down <= 1; down++)
        sum += BREAK(guide_weight, 2 - abs(down), 1 + abs(down)) * (from.at(x - 1, y + down) + 2 * from.at(x, y + down) + from.at(x + 1, y + down));
    result[(size_t)y * width + x] = sum >> 4;
}
