// How sure each pixel is: the mean of the peaks around it, in which pixels without a disparity count as 0;
// what is less sure than CONFIDENCE_MIN is invalid.
//
// A block makes a tile of TILE_WIDTH x TILE_HEIGHT pixels. peaks is [height][columns], disparity, filtered
// and confidence are [height][width].
//
// Grid: [tiles across][tiles down], blocks of TILE_WIDTH x TILE_HEIGHT threads.
#include "disparity.cuh"

#define SIDE (2 * RADIUS + 1)
#define AREA (SIDE * SIDE)
#define TILE_COLUMNS (TILE_WIDTH + 2 * RADIUS)
#define TILE_ROWS (TILE_HEIGHT + 2 * RADIUS)

extern "C" __global__ void __launch_bounds__(TILE_WIDTH * TILE_HEIGHT)
    confidence(const u8 *peaks, const short *disparity, int columns, int width, int height, short *filtered,
               u8 *confidence) {
    const int left = blockIdx.x * TILE_WIDTH, top = blockIdx.y * TILE_HEIGHT;
    __shared__ u8 tile[TILE_ROWS][TILE_COLUMNS];
    __shared__ unsigned short sums[TILE_ROWS][TILE_WIDTH];
    for (int row = threadIdx.y; row < TILE_ROWS; row += TILE_HEIGHT) {
        for (int column = threadIdx.x; column < TILE_COLUMNS; column += TILE_WIDTH) {
            // Beside the picture is what is nearest in it.
            const int x = min(max(left + column - RADIUS, 0), width - 1);
            const int y = min(max(top + row - RADIUS, 0), height - 1);
            const bool known = disparity[(size_t)y * width + x] != INVALID;
            tile[row][column] = known ? peaks[(size_t)y * columns + x] : 0;
        }
    }
    __syncthreads();
    for (int row = threadIdx.y; row < TILE_ROWS; row += TILE_HEIGHT) {
        int sum = 0;
#pragma unroll
        for (int i = 0; i < SIDE; i++) sum += tile[row][threadIdx.x + i];
        sums[row][threadIdx.x] = sum;
    }
    __syncthreads();
    const int x = left + threadIdx.x, y = top + threadIdx.y;
    if (x >= width || y >= height) return;
    int sum = AREA / 2;
#pragma unroll
    for (int i = 0; i < SIDE; i++) sum += sums[threadIdx.y + i][threadIdx.x];
    const int mean = max(sum / AREA, 1);
    const size_t i = (size_t)y * width + x;
    confidence[i] = mean;
    filtered[i] = mean < CONFIDENCE_MIN ? INVALID : disparity[i];
}

// Takes the confidence from pixels that have no disparity in the end.
//
// Grid: [pixels / BLOCK_THREADS].
extern "C" __global__ void __launch_bounds__(BLOCK_THREADS)
    confidence_of_known(int pixels, const short *disparity, u8 *confidence) {
    const int i = blockIdx.x * BLOCK_THREADS + threadIdx.x;
    if (i < pixels && disparity[i] == INVALID) confidence[i] = 0;
}
