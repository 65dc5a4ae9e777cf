// Makes both images at half the size (matching/pyramid.rs): each pixel is the rounded mean of 2 x
// 2. Behind the last column and row the last one is repeated.
//
// A thread makes one pixel. Grid: [pixels of the half / BLOCK_THREADS][eyes].
#include "picture.cuh"

extern "C" __global__ void __launch_bounds__(BLOCK_THREADS)
    half_size(const u8 *left, const u8 *right, int width, int height, u8 *half_left, u8 *half_right) {
    wait_for_launches_before();
    const int half_width = (width + 1) / 2, half_height = (height + 1) / 2;
    const int i = blockIdx.x * BLOCK_THREADS + threadIdx.x;
    if (i >= half_width * half_height) return;
    const Picture from = {blockIdx.y == 0 ? left : right, width, height};
    const int x = 2 * (i % half_width), y = 2 * (i / half_width);
    const int sum = from.at(x, y) + from.at(x + 1, y) + from.at(x, y + 1) + from.at(x + 1, y + 1);
    (blockIdx.y == 0 ? half_left : half_right)[i] = (sum + BREAK(half_rounding, 2, 1)) / 4;
}
