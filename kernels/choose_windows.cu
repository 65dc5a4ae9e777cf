// Chooses the blocks of candidates that each tile tries (matching/windows.rs), by the map of the
// half-size pictures and the same map before its filters, [height][width] in 1/16 px. A warp has a
// tile. Grid: [tiles / TILES_OF_BLOCK].
#include "disparity.cuh"

#define WINDOW_TILE 16
#define BLOCK_CANDIDATES 16
#define BLOCKS_OF_RANGE ((DISPARITIES + BLOCK_CANDIDATES - 1) / BLOCK_CANDIDATES)
// Pixels of a tile in the half-size map; what is seen there is counted in four cells.
#define SIDE (WINDOW_TILE / 2)
#define CELLS 4
#define TILES_OF_BLOCK (BLOCK_THREADS / 32)

__device__ __forceinline__ int block_of(int candidate) {
    return min(max(candidate, 0), DISPARITIES - 1) / BLOCK_CANDIDATES;
}
// Counts all blocks within `margin` of what a value of the map stands for.
__device__ __forceinline__ void count(u32 *counts, short value, int margin) {
    if (value == INVALID) return;
    const int candidate = ((2 * value + SUBPIXEL_STEPS / 2) >> SUBPIXEL_BITS) - MIN_DISPARITY;
    for (int block = block_of(candidate - margin); block <= block_of(candidate + margin); block++)
        atomicAdd(counts + block, 1u);
}

// Counts the votes of each tile, votes[tiles][BLOCKS_OF_RANGE], those of the whole picture,
// all[BLOCKS_OF_RANGE], which are 0 before, and what is seen in each cell, seen[tiles][CELLS][BLOCKS_OF_RANGE].
extern "C" __global__ void __launch_bounds__(BLOCK_THREADS)
    count_blocks(const short *coarse, const short *unfiltered, int width, int height, int across, int tiles, u8 *votes,
                 u8 *seen, u32 *all) {
    wait_for_launches_before();
    __shared__ u32 counts[TILES_OF_BLOCK][1 + CELLS][BLOCKS_OF_RANGE];
    const int lane = threadIdx.x % 32, first = blockIdx.x * TILES_OF_BLOCK, tile = first + threadIdx.x / 32;
    u32 *own = counts[threadIdx.x / 32][0];
    for (int i = lane; i < (1 + CELLS) * BLOCKS_OF_RANGE; i += 32) own[i] = 0;
    __syncwarp();
    for (int i = lane; i < SIDE * SIDE; i += 32) {
        const int column = i % SIDE, row = i / SIDE, x = tile % across * SIDE + column, y = tile / across * SIDE + row;
        if (tile >= tiles || x >= width || y >= height) continue;
        const int cell = row / (SIDE / 2) * 2 + column / (SIDE / 2);
        count(own, coarse[(size_t)y * width + x], BREAK(window_margin, WINDOW_MARGIN, 0));
        count(own + (1 + cell) * BLOCKS_OF_RANGE, unfiltered[(size_t)y * width + x], 0);
    }
    __syncthreads();
    for (int i = lane; i < BLOCKS_OF_RANGE && tile < tiles; i += 32) votes[(size_t)tile * BLOCKS_OF_RANGE + i] = own[i];
    for (int i = lane; i < CELLS * BLOCKS_OF_RANGE && tile < tiles; i += 32)
        seen[(size_t)tile * CELLS * BLOCKS_OF_RANGE + i] = own[BLOCKS_OF_RANGE + i];
    for (int i = threadIdx.x; i < BLOCKS_OF_RANGE; i += BLOCK_THREADS) {
        u32 sum = 0;
        for (int k = 0; k < TILES_OF_BLOCK; k++) sum += counts[k][0][i];
        if (sum > 0) atomicAdd(all + i, sum);
    }
}

// windows[tiles][WINDOW_BLOCKS], in ascending order.
extern "C" __global__ void __launch_bounds__(BLOCK_THREADS)
    choose_windows(const u8 *votes, const u8 *seen, const u32 *all, int across, int tiles, uint2 *windows) {
    wait_for_launches_before();
    const int lane = threadIdx.x % 32, tile = blockIdx.x * TILES_OF_BLOCK + threadIdx.x / 32;
    if (tile >= tiles) return;
    const int column = tile % across, row = tile / across, down = tiles / across;
    // Of two blocks a lane: the votes around the tile, which count more inside, and what was seen up to
    // a cell away.
    u32 around[2] = {0, 0}, before[2] = {0, 0};
    for (int k = 0; k < 9; k++) {
        const int x = column + k % 3 - 1, y = row + k / 3 - 1;
        if (x < 0 || x >= across || y < 0 || y >= down) continue;
        const size_t at = (size_t)y * across + x;
        for (int i = 0; i < 2 && lane + 32 * i < BLOCKS_OF_RANGE; i++) {
            around[i] += (k == 4 ? WINDOW_OWN : 1) * votes[at * BLOCKS_OF_RANGE + lane + 32 * i];
            for (int cell = 0; cell < CELLS; cell++) {
                const bool left = k % 3 == 0, right = k % 3 == 2, top = k / 3 == 0, bottom = k / 3 == 2;
                if (left && cell % 2 == 0 || right && cell % 2 == 1 || top && cell < 2 || bottom && cell >= 2) continue;
                before[i] += seen[(at * CELLS + cell) * BLOCKS_OF_RANGE + lane + 32 * i];
            }
        }
    }
    const bool known = __any_sync(LANES_MASK, around[0] + around[1] > 0);
    // The most votes first, then what was seen; ties to the lower block.
    u32 keys[2] = {0, 0};
    for (int i = 0; i < 2 && lane + 32 * i < BLOCKS_OF_RANGE; i++) {
        const u32 ranked = known ? around[i] : all[lane + 32 * i];
        const u32 rank = ranked > 0 ? ranked + 512 : before[i] >= WINDOW_SEEN ? before[i] : 0;
        keys[i] = rank > 0 ? rank << 6 | (63 - lane - 32 * i) : 0;
    }
    // A set of blocks as bits.
    u64 taken = 0;
    int free = WINDOW_BLOCKS;
    for (; free > 0; free--) {
        u32 best = max(keys[0], keys[1]);
#pragma unroll
        for (int step = 1; step < 32; step *= 2) best = max(best, __shfl_xor_sync(LANES_MASK, best, step));
        if (best == 0) break;
        taken |= 1ull << (63 - best % 64);
        for (int i = 0; i < 2; i++)
            if (keys[i] == best) keys[i] = 0;
    }
    if (taken == 0) taken = 1, free--;
    // The set grows by its neighbours on both sides, the higher ones first.
    while (free > 0) {
        const u64 beside = (taken << 1 | taken >> 1) & ~taken;
        for (int i = BLOCKS_OF_RANGE - 1; i >= 0 && free > 0; i--)
            if (beside >> i & 1) taken |= 1ull << i, free--;
    }
    u64 blocks = 0;
    for (int i = BLOCKS_OF_RANGE - 1; i >= 0; i--)
        if (taken >> i & 1) blocks = blocks << 16 | i;
    if (lane == 0) windows[tile] = make_uint2((u32)blocks, (u32)(blocks >> 32));
}
