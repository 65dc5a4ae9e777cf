// Residuals of a picture: how large they are, and where they are more than noise
// (matching/temporal/background.rs).
#pragma once
#include "noise.cuh"
#include "picture.cuh"

// Units of a residual per grey level, and the largest that counts.
#define RESIDUAL_UNIT 16
#define RESIDUAL_MAX 1023
#define RESIDUALS (RESIDUAL_MAX + 1)
#define VARIANCE_MIN 64u
static_assert(4 * (RESIDUALS + RESPONSES) == EXPECTED_MAGNITUDE_BYTES, "geometry.rs: MAGNITUDE_BYTES");

// Counts of a block, before they are added to those of all blocks.
struct Magnitudes {
    u32 residuals[RESIDUALS];
    u32 responses[RESPONSES];

    __device__ __forceinline__ void clear() {
        for (int i = threadIdx.x; i < RESIDUALS; i += BLOCK_THREADS) residuals[i] = 0;
        for (int i = threadIdx.x; i < RESPONSES; i += BLOCK_THREADS) responses[i] = 0;
    }
    __device__ __forceinline__ void count(int residual) { atomicAdd(&residuals[min(abs(residual), RESIDUAL_MAX)], 1u); }
    __device__ __forceinline__ void respond(const Picture &from, int x, int y) {
        const u8 *at = from.pixels + (size_t)y * from.width + x;
        count_response(responses, at, from.width, x, y, from.width, from.height);
    }
    __device__ __forceinline__ void add_to(u32 *all) {
        for (int i = threadIdx.x; i < RESIDUALS; i += BLOCK_THREADS)
            if (residuals[i] > 0) atomicAdd(&all[i], residuals[i]);
        for (int i = threadIdx.x; i < RESPONSES; i += BLOCK_THREADS)
            if (responses[i] > 0) atomicAdd(&all[RESIDUALS + i], responses[i]);
    }
};

// Calls `of` with x, y, and the place in the picture of each of this thread's pixels of the block's
// tile.
template <typename F> __device__ __forceinline__ void for_pixels_of_tile(int width, int height, F of) {
    const int x = blockIdx.x * TILE_WIDTH + threadIdx.x % TILE_WIDTH;
    for (int row = threadIdx.x / TILE_WIDTH; row < TILE_HEIGHT; row += BLOCK_THREADS / TILE_WIDTH) {
        const int y = blockIdx.y * TILE_HEIGHT + row;
        if (x >= width || y >= height) break;
        of(x, y, (size_t)y * width + x);
    }
}

// Adds the counts of a block's threads to `all`.
__device__ __forceinline__ void add_counts(u32 own, u32 *all) {
    __shared__ u32 of_block;
    if (threadIdx.x == 0) of_block = 0;
    __syncthreads();
    if (own > 0) atomicAdd(&of_block, own);
    __syncthreads();
    if (threadIdx.x == 0 && of_block > 0) atomicAdd(all, of_block);
}

// Whether this block is the last of `blocks` to come here; what the others wrote before is then
// there to be read. The ticket is 0 again for the next frame.
__device__ __forceinline__ bool is_last_block(u32 *ticket, u32 blocks) {
    __shared__ bool last;
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) {
        last = atomicAdd(ticket, 1u) == blocks - 1;
        if (last) *ticket = 0;
    }
    __syncthreads();
    __threadfence();
    return last;
}

// The least magnitude that with all smaller ones makes up more than 30 %, 0 where there are none;
// `histogram` becomes empty. For all threads of a block.
__device__ __forceinline__ u32 quantile_of(u32 *histogram, int len) {
    __shared__ u32 sums[BLOCK_THREADS];
    __shared__ u32 quantile;
    const int share = (len + BLOCK_THREADS - 1) / BLOCK_THREADS, first = min((int)threadIdx.x * share, len);
    const int end = min(first + share, len);
    u32 own = 0;
    for (int i = first; i < end; i++) own += histogram[i];
    sums[threadIdx.x] = own;
    if (threadIdx.x == 0) quantile = 0;
    __syncthreads();
    u64 below = 0, all = 0;
    for (int i = 0; i < BLOCK_THREADS; i++) {
        if (i < (int)threadIdx.x) below += sums[i];
        all += sums[i];
    }
    for (int i = first; i < end; i++) {
        const u64 with = below + histogram[i];
        if (10 * below <= 3 * all && 10 * with > BREAK(residual_quantile, 3, 4) * all) quantile = i;
        below = with;
        histogram[i] = 0;
    }
    __syncthreads();
    const u32 found = quantile;
    __syncthreads();
    return found;
}

// The variance of the noise of residuals of a background of this spread, in 1/256 squared grey
// levels. Where that is 0 there are no residuals, and the picture alone tells.
__device__ __forceinline__ u32 variance_of(u32 *magnitudes, u32 spread) {
    u32 half_steps = 2 * (spread == 0 ? RESIDUAL_MAX : quantile_of(magnitudes, RESIDUALS)) + 1;
    const u32 by_residuals = half_steps * half_steps * 431 >> 8;
    half_steps = 2 * quantile_of(magnitudes + RESIDUALS, RESPONSES) + 1;
    const u64 by_picture = (u64)(half_steps * half_steps * 12) * (256 + spread) >> 8;
    const u32 least = by_picture < by_residuals ? (u32)by_picture : by_residuals;
    return max(least, VARIANCE_MIN);
}

// The factors by which sums of residuals are judged. Every operation is rounded by itself, as on
// the processor.
struct Limits {
    float of_sum, of_wide_sum, of_squares;
    int least_weight;

    __device__ __forceinline__ static Limits of(u32 variance, u32 spread) {
        auto factor = [&](float moves) { return __fdiv_rn(1.0f, __fmul_rn(moves, (float)variance)); };
        const u32 all = 256 + spread;
        return {factor(144.0f), factor(400.0f), factor(40.0f), (int)((256 * spread + all / 2) / all)};
    }

    // Evidence of motion in the sums; a value of 1 or more means motion.
    __device__ __forceinline__ float evidence(int sum, int wide_sum, int squares) const {
        const float s = (float)sum, t = (float)wide_sum;
        const float by_sum = __fmul_rn(__fmul_rn(s, s), of_sum);
        const float by_wide_sum = __fmul_rn(__fmul_rn(t, t), of_wide_sum);
        const float by_squares = __fadd_rn(__fmul_rn((float)squares, of_squares), -0.625f);
        const float by_sums = by_sum > by_wide_sum ? by_sum : by_wide_sum;
        return by_sums > by_squares ? by_sums : by_squares;
    }

    // The weight of the picture against its background, in 1/256.
    __device__ __forceinline__ int weight(float evidence) const {
        const float above = __fadd_rn(__fmul_rn(2.0f, evidence), -1.0f);
        const float part = above < 0.0f ? 0.0f : above > 1.0f ? 1.0f : above;
        return least_weight + (int)__fmul_rn(part, (float)(256 - least_weight));
    }
};

// Pixels around a tile that its windows reach.
#define REACH 2

// The residuals of a tile and its surroundings; 0 outside the image.
struct ResidualTile {
    short values[TILE_HEIGHT + 2 * REACH][TILE_WIDTH + 2 * REACH];

    __device__ __forceinline__ void load(const short *residuals, int width, int height) {
        const int left = blockIdx.x * TILE_WIDTH - REACH, top = blockIdx.y * TILE_HEIGHT - REACH;
        for (int i = threadIdx.x; i < (TILE_HEIGHT + 2 * REACH) * (TILE_WIDTH + 2 * REACH); i += BLOCK_THREADS) {
            const int column = i % (TILE_WIDTH + 2 * REACH), row = i / (TILE_WIDTH + 2 * REACH);
            const int x = left + column, y = top + row;
            const bool inside = x >= 0 && x < width && y >= 0 && y < height;
            values[row][column] = inside ? residuals[(size_t)y * width + x] : (short)0;
        }
    }

    __device__ __forceinline__ int at(int x, int y) const {
        return values[y - (int)blockIdx.y * TILE_HEIGHT + REACH][x - (int)blockIdx.x * TILE_WIDTH + REACH];
    }

    // The evidence at a pixel of the tile.
    __device__ __forceinline__ float evidence(int x, int y, const Limits &limits) const {
        const int column = x - blockIdx.x * TILE_WIDTH, row = y - blockIdx.y * TILE_HEIGHT;
        int sum = 0, wide_sum = 0, squares = 0;
#pragma unroll
        for (int down = 0; down <= 2 * REACH; down++) {
#pragma unroll
            for (int across = 0; across <= 2 * REACH; across++) {
                const int e = values[row + down][column + across];
                const int counted = min(max(e, -RESIDUAL_MAX), RESIDUAL_MAX);
                wide_sum += e;
                squares += counted * counted;
                if (down >= 1 && down <= 3 && across >= 1 && across <= 3) sum += e;
            }
        }
        return limits.evidence(sum, wide_sum, squares);
    }
};
