// Measures the texture of an image and compares it with its noise (matching/texture.rs).
//
// Kernels, in this order on one stream:
//   texture(const u8 *pixels, int width, int height, u8 *ranges, u32 *histogram)
//     The range of grey levels in the 5 x 5 pixels around each, and the histogram of the responses
//     of the noise filter, added to earlier counts.
//     Grid: [width / TILE_WIDTH][height / TILE_HEIGHT].
//   threshold(u32 *histogram, u32 given, u32 *threshold)
//     The noise threshold, which is the given one of a tile or, where that is 0, that of the
//     quantile; the histogram becomes empty for the next frame. One block of THRESHOLD_THREADS
//     threads, each of which takes two of the responses.
#include "noise.cuh"
#include "picture.cuh"

#define RADIUS 2
// The responses, and one that there is not: an even number.
#define HISTOGRAM (RESPONSES + 1)
#define WARPS (THRESHOLD_THREADS / 32)
static_assert(2 * THRESHOLD_THREADS >= HISTOGRAM && WARPS <= 32, "every response has a thread");
static_assert(BLOCK_THREADS % TILE_WIDTH == 0, "a thread stays in its column");
static_assert(4 * HISTOGRAM == EXPECTED_HISTOGRAM_BYTES, "geometry.rs: HISTOGRAM_BYTES");

extern "C" __global__ void __launch_bounds__(BLOCK_THREADS)
    texture(const u8 *pixels, int width, int height, u8 *ranges, u32 *histogram) {
    wait_for_launches_before();
    __shared__ u8 tile[TILE_HEIGHT + 2 * RADIUS][TILE_WIDTH + 2 * RADIUS];
    __shared__ u32 counts[HISTOGRAM];
    const Picture from = {pixels, width, height};
    const int left = blockIdx.x * TILE_WIDTH, top = blockIdx.y * TILE_HEIGHT;
    for (int i = threadIdx.x; i < HISTOGRAM; i += BLOCK_THREADS) counts[i] = 0;
    for (int i = threadIdx.x; i < (TILE_HEIGHT + 2 * RADIUS) * (TILE_WIDTH + 2 * RADIUS); i += BLOCK_THREADS) {
        const int column = i % (TILE_WIDTH + 2 * RADIUS), row = i / (TILE_WIDTH + 2 * RADIUS);
        tile[row][column] = from.at(left + column - RADIUS, top + row - RADIUS);
    }
    __syncthreads();

    const int column = threadIdx.x % TILE_WIDTH, x = left + column;
    for (int row = threadIdx.x / TILE_WIDTH; row < TILE_HEIGHT; row += BLOCK_THREADS / TILE_WIDTH) {
        const int y = top + row;
        if (x >= width || y >= height) break;
        int least = 255, greatest = 0;
#pragma unroll
        for (int down = 0; down <= 2 * RADIUS; down++) {
#pragma unroll
            for (int across = 0; across <= 2 * RADIUS; across++) {
                const int grey = tile[row + down][column + across];
                least = min(least, grey), greatest = max(greatest, grey);
            }
        }
        ranges[(size_t)y * width + x] = greatest - least;

        count_response(counts, &tile[row + RADIUS][column + RADIUS], TILE_WIDTH + 2 * RADIUS, x, y, width, height);
    }
    __syncthreads();
    for (int i = threadIdx.x; i < HISTOGRAM; i += BLOCK_THREADS)
        if (counts[i] > 0) atomicAdd(&histogram[i], counts[i]);
}

// The sum over the lanes up to this one.
__device__ __forceinline__ u32 sum_of_lanes(u32 value) {
#pragma unroll
    for (int step = 1; step < 32; step *= 2) {
        const u32 before = __shfl_up_sync(LANES_MASK, (int)value, step);
        if (threadIdx.x % 32 >= step) value += before;
    }
    return value;
}

extern "C" __global__ void __launch_bounds__(THRESHOLD_THREADS)
    threshold(u32 *histogram, u32 given, u32 *result) {
    wait_for_launches_before();
    __shared__ u32 of_warps[32];
    __shared__ u32 quantile;
    const int first = 2 * threadIdx.x, warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    u32 counts[2] = {0, 0};
    if (first < HISTOGRAM) {
        counts[0] = histogram[first], counts[1] = histogram[first + 1];
        histogram[first] = histogram[first + 1] = BREAK(histogram_cleared, 0, 1000);
    }
    if (threadIdx.x == 0) quantile = 0;
    u32 below = sum_of_lanes(counts[0] + counts[1]);
    if (lane == 31) of_warps[warp] = below;
    __syncthreads();
    if (warp == 0) of_warps[lane] = sum_of_lanes(lane < WARPS ? of_warps[lane] : 0);
    __syncthreads();
    below += (warp > 0 ? of_warps[warp - 1] : 0) - counts[0] - counts[1];
    // The first response that with all smaller ones makes up more than 30 %.
    const u64 limit = (u64)BREAK(noise_quantile, 3, 2) * of_warps[WARPS - 1];
#pragma unroll
    for (int i = 0; i < 2; i++) {
        if ((u64)10 * below <= limit && (u64)10 * (below + counts[i]) > limit) quantile = first + i;
        below += counts[i];
    }
    __syncthreads();
    if (threadIdx.x == 0) *result = BREAK(given_noise, given != 0, false) ? given : 4 + ((443 * quantile + 128) >> 8);
}
