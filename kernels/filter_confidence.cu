// Computes the confidence of each pixel: the mean of the peaks in the window around it. Pixels
// without a disparity and pixels that are saturated in either view count as 0. Pixels with a
// confidence below CONFIDENCE_MIN become invalid.
//
// A block makes a tile of TILE_WIDTH x TILE_HEIGHT pixels, a thread a pixel. peaks is
// [height][columns]; the images, disparity, filtered and confidence are [height][width].
//
// Grid: [tiles across][tiles down], blocks of TILE_WIDTH x TILE_HEIGHT threads.
#include "disparity.cuh"

#define SIDE (2 * RADIUS + 1)
#define AREA (SIDE * SIDE)
#define TILE_COLUMNS (TILE_WIDTH + 2 * RADIUS)
#define TILE_ROWS (TILE_HEIGHT + 2 * RADIUS)

// True where all 3 x 3 pixels around are at least WHITE and differ by at most ALIKE.
__device__ bool is_saturated(const u8 *picture, int x, int y, int width, int height) {
    if (picture[(size_t)y * width + x] < WHITE) return false;
    int least = 255, greatest = 0;
    for (int down = -1; down <= 1; down++) {
        const u8 *row = picture + (size_t)min(max(y + down, 0), height - 1) * width;
        for (int across = -1; across <= 1; across++) {
            const int grey = row[min(max(x + across, 0), width - 1)];
            least = min(least, grey);
            greatest = max(greatest, grey);
        }
    }
    return least >= WHITE && greatest - least <= ALIKE;
}

extern "C" __global__ void __launch_bounds__(TILE_WIDTH * TILE_HEIGHT)
    confidence(const u8 *left_picture, const u8 *right_picture, const u8 *peaks, const short *disparity,
               int columns, int width, int height, short *filtered, u8 *confidence) {
    const int left = blockIdx.x * TILE_WIDTH, top = blockIdx.y * TILE_HEIGHT;
    __shared__ u8 tile[TILE_ROWS][TILE_COLUMNS];
    __shared__ unsigned short sums[TILE_ROWS][TILE_WIDTH];
    for (int row = threadIdx.y; row < TILE_ROWS; row += TILE_HEIGHT) {
        for (int column = threadIdx.x; column < TILE_COLUMNS; column += TILE_WIDTH) {
            // Beside the picture is what is nearest in it.
            const int x = min(max(left + column - RADIUS, 0), width - 1);
            const int y = min(max(top + row - RADIUS, BREAK(confidence_border, 0, 1)), height - 1);
            const int value = disparity[(size_t)y * width + x];
            // The column that it is matched with: to the nearest pixel, halves upwards.
            const int match = min(max(x - ((value + SUBPIXEL_STEPS / 2) >> SUBPIXEL_BITS), 0), width - 1);
            const bool counts = value != INVALID && !is_saturated(left_picture, x, y, width, height) &&
                                !is_saturated(right_picture, match, y, width, height);
            tile[row][column] = counts ? peaks[(size_t)y * columns + x] : 0;
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
    if (i < pixels && disparity[i] == INVALID) confidence[i] = BREAK(confidence_of_known, 0, 1);
}
