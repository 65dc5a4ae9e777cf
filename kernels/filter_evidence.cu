// Invalidates pixels that have no evidence of their own and no support from the evidence around
// them (matching/filter/evidence.rs).
//
// Kernels, in this order on one stream; disparity, evidence and, where CONFIDENCE, confidence are
// [height][width].
//   evidence(const u8 *left, const u32 *threshold, const short *disparity, [const u8 *seen_left,] int width,
//            int height, short *evidence, u8 *occupied)
//     The map of the evidence alone: pixels are weak where the SIDE x SIDE means of 3 x 3 grey
//     levels around them differ too little compared with the noise threshold. occupied is a byte a
//     tile, a bit for each of its parts: 0 if no ray can end there.
//     Grid: [width / TILE_WIDTH][height / TILE_HEIGHT].
//   supported(const short *evidence, const u8 *occupied, [const u8 *seen_left,] int width, int height,
//             short *disparity, u8 *confidence)
//     Keeps known pixels without evidence that are supported, none where STRICT, in place.
//     seen_left (where MASKED) is a byte a pixel. A thread a pixel.
//     Grid: [width / BLOCK_THREADS][height].
#include "picture.cuh"
#include "rays.cuh"

#define RADIUS (SIDE / 2)
#define COLUMNS (TILE_WIDTH + 2 * RADIUS)
#define ROWS (TILE_HEIGHT + 2 * RADIUS)
static_assert(BLOCK_THREADS % TILE_WIDTH == 0, "a thread stays in its column");
// Side of a part of a tile in pixels.
#define PART 16
static_assert(TILE_WIDTH * TILE_HEIGHT == 8 * PART * PART, "a bit a part");
// Returns the bit of the part of its tile in which a pixel lies.
__device__ __forceinline__ u32 part_bit(int x, int y) {
    return 1u << (y % TILE_HEIGHT / PART * (TILE_WIDTH / PART) + x % TILE_WIDTH / PART);
}

extern "C" __global__ void __launch_bounds__(BLOCK_THREADS)
    evidence(const u8 *left_picture, const u32 *threshold, const short *disparity,
#if MASKED
             const u8 *seen_left,
#endif
             int width, int height, short *evidence, u8 *occupied) {
    __shared__ u16 sums[ROWS][COLUMNS];
    __shared__ u32 parts_occupied;
    const Picture from = {left_picture, width, height};
    const int left = blockIdx.x * TILE_WIDTH, top = blockIdx.y * TILE_HEIGHT;
    for (int i = threadIdx.x; i < ROWS * COLUMNS; i += BLOCK_THREADS) {
        const int column = i % COLUMNS, row = i / COLUMNS;
        // Beside the picture is the nearest sum inside.
        const int x = min(max(left + column - RADIUS, 0), width - 1), y = min(max(top + row - RADIUS, 0), height - 1);
        int sum = 0;
#pragma unroll
        for (int down = -1; down <= 1; down++) {
#pragma unroll
            for (int across = -1; across <= 1; across++) sum += from.at(x + across, y + down);
        }
        sums[row][column] = sum;
    }
    if (threadIdx.x == 0) parts_occupied = 0;
    __syncthreads();

    const u32 noise = min(max(*threshold, (u32)THRESHOLD_MIN), (u32)THRESHOLD_MAX);
    const int limit = 9 * (2 * (int)noise - 5);
    const int column = threadIdx.x % TILE_WIDTH, x = left + column;
    u32 parts = 0;
    for (int row = threadIdx.x / TILE_WIDTH; row < TILE_HEIGHT; row += BLOCK_THREADS / TILE_WIDTH) {
        const int y = top + row;
        if (x >= width || y >= height) break;
        int least = 9 * 255, greatest = 0;
#pragma unroll
        for (int down = 0; down < SIDE; down++) {
#pragma unroll
            for (int across = 0; across < SIDE; across++) {
                const int sum = sums[row + down][column + across];
                least = min(least, sum), greatest = max(greatest, sum);
            }
        }
        const size_t at = (size_t)y * width + x;
        const short value = 4 * (greatest - least) < limit ? INVALID : disparity[at];
        evidence[at] = value;
        bool ends_rays = value != INVALID;
#if MASKED
        ends_rays = ends_rays || !seen_left[at];
#endif
        if (ends_rays) parts |= part_bit(x, y);
    }
    // The lanes of a part first, because atomics on one word wait for each other.
#pragma unroll
    for (int step = 1; step < PART; step *= 2) parts |= __shfl_xor_sync(LANES_MASK, parts, step);
    if (threadIdx.x % PART == 0) atomicOr(&parts_occupied, parts);
    __syncthreads();
    if (threadIdx.x == 0) occupied[blockIdx.y * gridDim.x + blockIdx.x] = (u8)parts_occupied;
}

// Steps after which ray k leaves the tile or the part of this size in which (x, y) lies.
__device__ __forceinline__ int steps_out_of(int width, int height, int k, int x, int y) {
    const int column = x % width, row = y % height, never = width + height;
    const int across = ray_dx(k) > 0 ? width - column : ray_dx(k) < 0 ? column + 1 : never;
    const int down = ray_dy(k) > 0 ? height - row : ray_dy(k) < 0 ? row + 1 : never;
    return min(across, down);
}

// True where a disparity lies on the line between the ends of two opposite rays, as many steps
// away.
__device__ __forceinline__ bool is_between(int own, int a, int to_a, int b, int to_b) {
    const int apart = to_a + to_b;
    const int off = abs((own - a) * apart - (b - a) * to_a);
    return a != INVALID && b != INVALID && off <= max(SUBPIXEL_STEPS, abs(own) >> DEVIATION_SHIFT) * apart;
}

extern "C" __global__ void __launch_bounds__(BLOCK_THREADS)
    supported(const short *evidence, const u8 *occupied,
#if MASKED
              const u8 *seen_left,
#endif
              int width, int height, short *disparity, u8 *confidence) {
    const int x = blockIdx.x * BLOCK_THREADS + threadIdx.x, y = blockIdx.y;
    if (x >= width) return;
    const size_t here = (size_t)y * width + x;
    const int own = disparity[here];
    if (own == INVALID || evidence[here] != INVALID) return;
    bool stays = false;
#if !STRICT
#if !MASKED
    const u8 *seen_left = nullptr;
#endif
    int values[8], steps[8];
#pragma unroll
    for (int k = 0; k < 8; k++) values[k] = INVALID, steps[k] = 0;
    const int tiles_across = (width + TILE_WIDTH - 1) / TILE_WIDTH;
    const auto visit = [&](int k, size_t at, int ray_x, int ray_y, int distance) {
        // Even surfaces are crossed tile by tile or part by part.
        const u32 parts = occupied[ray_y / TILE_HEIGHT * tiles_across + ray_x / TILE_WIDTH];
        if (!parts) return steps_out_of(TILE_WIDTH, TILE_HEIGHT, k, ray_x, ray_y);
        if (!(parts & part_bit(ray_x, ray_y))) return steps_out_of(PART, PART, k, ray_x, ray_y);
        values[k] = evidence[at];
        steps[k] = distance;
        return values[k] == INVALID ? 1 : 0;
    };
    follow_rays(0xff, x, y, width, height, REACH, seen_left, visit);
#pragma unroll
    for (int k = 0; k < 4; k++)
        stays = stays || is_between(own, values[k], steps[k], values[7 - k], steps[7 - k]);
#endif
    if (!stays) disparity[here] = INVALID;
#if CONFIDENCE
    confidence[here] = stays ? BREAK(evidence_stays, LEAST_CONFIDENCE, LEAST_CONFIDENCE + 1) : 0;
#endif
}
