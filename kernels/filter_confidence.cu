// Computes the confidence of each pixel: five levels describe its surroundings, and a learnt model
// turns them into a probability (src/core/matching/confidence.rs). The peaks of pixels without a disparity
// and of pixels that are saturated in either view count as 0; a pixel whose own peak is 0 has
// LEAST_CONFIDENCE. Pixels with a confidence below CONFIDENCE_MIN become invalid.
//
// A block makes a tile of TILE x TILE pixels, a thread a pixel. peaks is [height][columns]; the
// images, disparity, filtered and confidence are [height][width]. model holds LEVELS tables of
// STEPS x STEPS signed bytes, then the confidence by their sum.
//
// Grid: [tiles across][tiles down], blocks of TILE x TILE threads.
#include "disparity.cuh"

#define AREA ((2 * NEAR_RADIUS + 1) * (2 * NEAR_RADIUS + 1))
#define FAR_AREA ((2 * FAR_RADIUS + 1) * (2 * FAR_RADIUS + 1))
#define AROUND (TILE + 2 * FAR_RADIUS)

// True where all 3 x 3 pixels around are at least WHITE and differ by at most WHITE_ALIKE.
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
    return least >= WHITE && greatest - least <= WHITE_ALIKE;
}

extern "C" __global__ void __launch_bounds__(TILE * TILE)
    confidence(const u8 *left_picture, const u8 *right_picture, const u8 *peaks, const short *disparity,
               const u8 *model, int columns, int width, int height, short *filtered, u8 *confidence) {
    wait_for_launches_before();
    const int left = blockIdx.x * TILE, top = blockIdx.y * TILE;
    __shared__ short values[AROUND][AROUND];
    __shared__ u8 tile[AROUND][AROUND];
    // Sums and extremes over the part of a row that lies in the window of a pixel.
    __shared__ unsigned short near[AROUND][TILE], far[AROUND][TILE];
    __shared__ u8 unknown[AROUND][TILE];
    __shared__ short least[AROUND][TILE], greatest[AROUND][TILE];
    for (int row = threadIdx.y; row < AROUND; row += TILE) {
        for (int column = threadIdx.x; column < AROUND; column += TILE) {
            // Beside the picture is what is nearest in it.
            const int x = min(max(left + column - FAR_RADIUS, 0), width - 1);
            const int y = min(max(top + row - FAR_RADIUS, BREAK(confidence_border, 0, 1)), height - 1);
            const int value = disparity[(size_t)y * width + x];
            // The column that it is matched with: to the nearest pixel, halves upwards.
            const int match = min(max(x - ((value + SUBPIXEL_STEPS / 2) >> SUBPIXEL_BITS), 0), width - 1);
            const bool counts = value != INVALID && !is_saturated(left_picture, x, y, width, height) &&
                                !is_saturated(right_picture, match, y, width, height);
            values[row][column] = value;
            tile[row][column] = counts ? peaks[(size_t)y * columns + x] : 0;
        }
    }
    __syncthreads();
    for (int row = threadIdx.y; row < AROUND; row += TILE) {
        int sum = 0, count = 0, low = 32767, high = INVALID;
        for (int i = 0; i <= 2 * FAR_RADIUS; i++) {
            const int value = values[row][threadIdx.x + i];
            sum += tile[row][threadIdx.x + i];
            count += value == INVALID;
            low = value == INVALID ? low : min(low, value);
            high = max(high, value);
        }
        far[row][threadIdx.x] = sum;
        unknown[row][threadIdx.x] = count;
        least[row][threadIdx.x] = low;
        greatest[row][threadIdx.x] = high;
        sum = 0;
        for (int i = FAR_RADIUS - NEAR_RADIUS; i <= FAR_RADIUS + NEAR_RADIUS; i++) sum += tile[row][threadIdx.x + i];
        near[row][threadIdx.x] = sum;
    }
    __syncthreads();
    const int x = left + threadIdx.x, y = top + threadIdx.y;
    if (x >= width || y >= height) return;
    const int value = values[threadIdx.y + FAR_RADIUS][threadIdx.x + FAR_RADIUS];
    int sure = value == INVALID ? 0 : LEAST_CONFIDENCE;
    if (value != INVALID && tile[threadIdx.y + FAR_RADIUS][threadIdx.x + FAR_RADIUS] > 0) {
        int near_sum = AREA / 2, far_sum = 0, count = 0, low = 32767, high = INVALID;
        for (int i = 0; i <= 2 * FAR_RADIUS; i++) {
            const int row = threadIdx.y + i;
            far_sum += far[row][threadIdx.x];
            count += unknown[row][threadIdx.x];
            low = min(low, least[row][threadIdx.x]);
            high = max(high, greatest[row][threadIdx.x]);
        }
        for (int i = FAR_RADIUS - NEAR_RADIUS; i <= FAR_RADIUS + NEAR_RADIUS; i++) near_sum += near[threadIdx.y + i][threadIdx.x];
        const int levels[LEVELS] = {
            near_sum / AREA >> 4,
            far_sum / FAR_AREA >> 4,
            32 - __clz(count),
            min((high - value) >> 3, STEPS - 1),
            min((value - low) >> 3, STEPS - 1),
        };
        int sum = BREAK(confidence_sum, 128, 120);
#pragma unroll
        for (int first = 0; first < LEVELS; first++) {
            const int second = levels[(first + 1) % LEVELS];
            sum += (signed char)model[(first * STEPS + levels[first]) * STEPS + second];
        }
        sure = model[LEVELS * STEPS * STEPS + min(max(sum, 0), 255)];
    }
    const size_t i = (size_t)y * width + x;
    confidence[i] = sure;
    filtered[i] = sure < CONFIDENCE_MIN ? INVALID : value;
}

// Takes the confidence from pixels that have no disparity in the end.
//
// Grid: [pixels / BLOCK_THREADS].
extern "C" __global__ void __launch_bounds__(BLOCK_THREADS)
    confidence_of_known(int pixels, const short *disparity, u8 *confidence) {
    wait_for_launches_before();
    const int i = blockIdx.x * BLOCK_THREADS + threadIdx.x;
    if (i < pixels && disparity[i] == INVALID) confidence[i] = BREAK(confidence_of_known, 0, 1);
}
