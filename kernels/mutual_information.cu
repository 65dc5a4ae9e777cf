// Estimates the cost table of mutual information from a pair and its latest map
// (matching/mutual_information.rs; Hirschmueller, PAMI 2008, section 2.2).
//
// Kernels, in this order on one stream; `map` is the map as the stream keeps it, [height][width]:
//   count(const u8 *left, const u8 *right, const int *map, int width, u32 *counts)
//     Adds how often each pair of levels occurs to counts[left level][right level], which is empty
//     before.
//     Grid: [width / (RUN * BLOCK_THREADS)][height].
//   begin(...), in its place where no map is known
//     Counts by each of the disparities BEGINNINGS.
//   joint(const u32 *counts, int *logarithms, u32 *marginal)
//     The logarithms of the smoothed counts, a block of LEVELS threads a row; and how often each
//     level of the right picture occurs, by one block more.
//   table(const int *logarithms, const u32 *marginal, u8 *costs)
//     The costs, a block a row.
//   remember(int pixels, const short *disparity, int *map)
//     Keeps the map. Grid: [pixels / BLOCK_THREADS].
#include "disparity.cuh"

#define LEVELS 256
#define TAPS 7
#define RADIUS (TAPS / 2)
#define NONE 0x7fffffff

// The Gaussian, in 1 / (1 << GAUSSIAN_BITS).
__device__ __forceinline__ u32 weight(int tap) {
    constexpr u32 gaussian[TAPS] = {GAUSSIAN};
    return gaussian[tap];
}

// A level so far away, or the nearest that exists.
__device__ __forceinline__ int beside(int level, int tap) { return min(max(level + tap - RADIUS, 0), LEVELS - 1); }

// log2(x), rounded down to LOG_BITS bits behind the point; of the bits of x the first LOG_BITS + 1
// count.
__device__ __forceinline__ int logarithm(u64 x) {
    const u32 high = (u32)(x >> 32);
    const int whole = high ? 63 - __clz((int)high) : 31 - __clz((int)(u32)x);
    const u32 mantissa = (u32)(whole > LOG_BITS ? x >> (whole - LOG_BITS) : x << (LOG_BITS - whole));
    u32 y = mantissa << (30 - LOG_BITS);
    int bits = 0;
    for (int i = 0; i < LOG_BITS; i++) {
        const u64 square = (u64)y * y >> 30;
        const u32 above = (u32)(square >> 31);
        y = (u32)(square >> above);
        bits = 2 * bits + above;
    }
    return (whole << LOG_BITS) + bits;
}

// `of` of the levels around this thread's, smoothed by the Gaussian.
template <typename T, typename F> __device__ __forceinline__ T smoothed(T begin, F of) {
    T sum = begin;
#pragma unroll
    for (int tap = 0; tap < TAPS; tap++) sum += (T)weight(tap) * (T)of(beside(threadIdx.x, tap));
    return sum;
}

// The same of logarithms, rounded to their own unit.
template <typename F> __device__ __forceinline__ int smoothed_logarithm(F of) {
    return smoothed<int>(1 << (GAUSSIAN_BITS - 1), of) >> GAUSSIAN_BITS;
}

// Counts the pairs of levels of the RUN pixels of this thread, of which `column_of` knows the
// column that each matches, or one beside the picture where it matches none.
template <typename F>
__device__ __forceinline__ void count_run(const u8 *left, const u8 *right, int width, u32 *counts, F column_of) {
    const size_t row = (size_t)blockIdx.y * width;
    const int first = (blockIdx.x * BLOCK_THREADS + threadIdx.x) * RUN;
    // Neighbours are often alike: what is added at once is not waited for twice.
    u32 cell = 0, times = 0;
    for (int x = first; x < min(first + RUN, width); x++) {
        const int match_x = column_of(row, x);
        if (match_x < 0 || match_x >= width) continue;
        const u32 found = left[row + x] * LEVELS + right[row + match_x];
        if (times > 0 && found != cell) {
            atomicAdd(&counts[cell], times);
            times = 0;
        }
        cell = found;
        times++;
    }
    if (times > 0) atomicAdd(&counts[cell], times);
}

extern "C" __global__ void __launch_bounds__(BLOCK_THREADS)
    count(const u8 *left, const u8 *right, const int *map, int width, u32 *counts) {
    wait_for_launches_before();
    count_run(left, right, width, counts, [&](size_t row, int x) {
        const int value = map[row + x];
        return value == INVALID ? -1 : x - (value + SUBPIXEL_STEPS / 2 >> SUBPIXEL_BITS);
    });
}

extern "C" __global__ void __launch_bounds__(BLOCK_THREADS)
    begin(const u8 *left, const u8 *right, const int *, int width, u32 *counts) {
    wait_for_launches_before();
    constexpr int beginnings[] = {BEGINNINGS};
    for (int d : beginnings) count_run(left, right, width, counts, [&](size_t, int x) { return BREAK(mi_beginning, x - d, x + d); });
}

extern "C" __global__ void __launch_bounds__(LEVELS) joint(const u32 *counts, int *logarithms, u32 *marginal) {
    wait_for_launches_before();
    const int level = threadIdx.x, block = blockIdx.x;
    if (block == LEVELS) {
        u32 sum = 0;
        for (int left = 0; left < LEVELS; left++) sum += counts[left * LEVELS + level];
        marginal[level] = sum;
        return;
    }
    __shared__ u64 across[LEVELS];
    u64 sum = 0;
#pragma unroll
    for (int tap = 0; tap < TAPS; tap++) sum += (u64)weight(tap) * counts[beside(block, tap) * LEVELS + level];
    across[level] = sum;
    __syncthreads();
    const int unit = 2 * GAUSSIAN_BITS;
    sum = smoothed<u64>(1ull << unit, [&](int k) { return across[k]; });
    logarithms[block * LEVELS + level] = logarithm(sum) - (unit << LOG_BITS);
}

extern "C" __global__ void __launch_bounds__(LEVELS) table(const int *logarithms, const u32 *marginal, u8 *costs) {
    wait_for_launches_before();
    __shared__ int told[LEVELS], across[LEVELS], least[LEVELS];
    const int level = threadIdx.x, row = blockIdx.x;
    const u64 right = smoothed<u64>(1ull << GAUSSIAN_BITS, [&](int k) { return marginal[k]; });
    told[level] = logarithm(right) - (GAUSSIAN_BITS << LOG_BITS);
    int sum = 1 << (GAUSSIAN_BITS - 1);
#pragma unroll
    for (int tap = 0; tap < TAPS; tap++) sum += (int)weight(tap) * logarithms[beside(row, tap) * LEVELS + level];
    across[level] = sum >> GAUSSIAN_BITS;
    __syncthreads();
    const int both_eyes = smoothed_logarithm([&](int k) { return across[k]; });
    const int cost = smoothed_logarithm([&](int k) { return told[k]; }) - both_eyes;
    // The least of levels that occur.
    least[level] = marginal[level] > 0 ? cost : NONE;
    for (int step = LEVELS / 2; step > 0; step /= 2) {
        __syncthreads();
        if (level < step) least[level] = min(least[level], least[level + step]);
    }
    __syncthreads();
    const u32 above = (u32)max(cost - least[0], 0) * PER_BIT;
    const u32 rounded = (above + (1 << (LOG_BITS - 1))) >> LOG_BITS;
    costs[row * LEVELS + level] = least[0] == NONE ? 0 : min(rounded, MI_TRUNCATION);
}

extern "C" __global__ void __launch_bounds__(BLOCK_THREADS) remember(int pixels, const short *disparity, int *map) {
    wait_for_launches_before();
    const size_t i = (size_t)blockIdx.x * BLOCK_THREADS + threadIdx.x;
    if (i < pixels) map[i] = BREAK(mi_map, disparity[i], 0);
}
