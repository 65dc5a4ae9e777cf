// Selects winners from the sums of the whole image, as aggregate_paths.cu and aggregate_windows.cu
// leave them: winner takes all, with uniqueness and sub-pixel refinement.
//
// Sums are [height][width][HALF_DISPARITIES]: words of two 16-bit halves, interleaved (lanes.cuh).
#define WINDOW_COLUMNS 0
#include "cost.cuh"
#include "disparity.cuh"

__device__ __forceinline__ u32 sum_of(const u32 *sums, int d) {
    const int r = d % HALF_DISPARITIES;
    const u32 pair = sums[interleaved(r / REGISTERS, r % REGISTERS)];
    return d < HALF_DISPARITIES ? pair & 0xffff : pair >> 16;
}

// The right columns that the pixels of a segment look at, and where the key of one of them lies:
// neighbouring lanes are REGISTERS candidates apart, and a gap after every eighth key keeps them
// out of each other's banks.
#define KEYS (SEGMENT + DISPARITIES)
__device__ __forceinline__ int key_at(int column) { return column + column / 8; }

// The winner of every pixel, words[height][width] (disparity.cuh), with CONFIDENCE its peak,
// peaks[height][width], and with LEFT_RIGHT the key of the winner of every pixel of the right
// picture, right[height][width], which holds NO_WINNER before. A group of lanes has a pixel, a
// block SEGMENT of them in a row.
//
// Grid: [width / SEGMENT][height].
extern "C" __global__ void __launch_bounds__(32 * WARPS)
    select_disparities(const u32 *all_sums, int width, int height, u32 *words, u8 *peaks, u32 *right) {
    wait_for_launches_before();
#if LEFT_RIGHT
    __shared__ u32 keys[KEYS + KEYS / 8 + 1];
    for (int i = threadIdx.x; i < KEYS; i += 32 * WARPS) keys[key_at(i)] = NO_WINNER;
    __syncthreads();
#endif
    const u32 lane = group_lane();
    const int y = blockIdx.y, first = blockIdx.x * SEGMENT;
    for (int at = 0; at < SEGMENT; at += WARPS * WARP_PIXELS) {
        const int column = at + threadIdx.x / 32 * WARP_PIXELS + warp_group(), x = first + column;
        // Lanes go together; those beyond the picture repeat its last pixel and write nothing.
        const bool stores = x < width;
        const size_t pixel = (size_t)y * width + min(x, width - 1);
        const u32 *sums = all_sums + pixel * HALF_DISPARITIES;
        const Vector sum = get_interleaved(sums, lane);
        u32 best = NO_WINNER;
#pragma unroll
        for (int j = 0; j < REGISTERS; j++) {
#pragma unroll
            for (int half = 0; half < 2; half++) {
                const int d = lane * REGISTERS + j + half * HALF_DISPARITIES;
                if (d >= DISPARITIES) continue;
                const u32 key = winner_key(half ? sum.v[j] >> 16 : sum.v[j] & 0xffff, d);
                best = min(best, key);
#if LEFT_RIGHT
                if (stores) atomicMin(keys + key_at(column + DISPARITIES - BREAK(right_key, 1, 0) - d), key);
#endif
            }
        }
#pragma unroll
        for (int step = 1; step < GROUP; step *= 2) best = min(best, __shfl_xor_sync(LANES_MASK, best, step));
        const int winner = key_candidate(best), b = key_sum(best);
        int disparity = (MIN_DISPARITY + winner) * SUBPIXEL_STEPS;
#if SUBPIXEL
        if (winner > 0 && winner + 1 < DISPARITIES)
            disparity += refine_subpixel(sum_of(sums, winner - 1), b, sum_of(sums, winner + 1), true);
#endif
#if UNIQUENESS || CONFIDENCE
        u32 rival = NO_RIVAL;
#pragma unroll
        for (int j = 0; j < REGISTERS; j++) {
            const int d = lane * REGISTERS + j;
            if (d < DISPARITIES && abs(d - winner) > 1) rival = min(rival, sum.v[j] & 0xffff);
            const int e = d + HALF_DISPARITIES;
            if (e < DISPARITIES && abs(e - winner) > 1) rival = min(rival, sum.v[j] >> 16);
        }
#pragma unroll
        for (int step = 1; step < GROUP; step *= 2) rival = min(rival, __shfl_xor_sync(LANES_MASK, rival, step));
#endif
#if UNIQUENESS
        if (rival < ambiguous_below(b)) disparity = INVALID;
#endif
#if CONFIDENCE
        if (lane == 0 && stores) peaks[pixel] = peak_of(b, rival);
#endif
        if (lane == 0 && stores) words[pixel] = winner_word(disparity, winner);
    }
#if LEFT_RIGHT
    __syncthreads();
    // Key 0 is that of the largest candidate of the first column.
    const int first_right = first - MIN_DISPARITY - (DISPARITIES - 1);
    for (int i = threadIdx.x; i < KEYS; i += 32 * WARPS) {
        const int x = first_right + i;
        const u32 key = keys[key_at(i)];
        if (key != NO_WINNER && x >= BREAK(right_border, 0, 4) && x < width) atomicMin(right + (size_t)y * width + x, key);
    }
#endif
}
