// Sums costs over windows (matching/block.rs, matching/local.rs): costs of single pixels, or the
// terms that a block measure compares. Without paths the result is the sums S of which
// select_disparities.cu picks the least; with paths they become costs of a byte (volume.cuh).
//
// Running sums: a block goes down TILE_COLUMNS columns for TILE_ROWS rows. A thread holds SHARE of
// a pixel's lanes and PIXELS neighbouring columns, and keeps the sums over the rows of the window
// of its columns. For each row it adds the one below and takes away the one above. Sums of the
// columns next to it come from other threads through shared memory, so the outer EDGE columns on
// either side are summed but not written.
//
// Grid: [width / (TILE_COLUMNS - 2 * EDGE)][height / TILE_ROWS][GROUP / SHARE].
#define WINDOW_COLUMNS 0
#include "cost.cuh"
#include "volume.cuh"

// Words of a register's sum: two halves that fit a word together, a word each, or two words each.
#define PARTS (SQUARED && ZERO_MEAN ? 4 : SQUARED || ZERO_MEAN ? 2 : 1)
#define WORDS (REGISTERS * PARTS)
#define UNIT (WORDS % 4 == 0 ? 4 : 2)
#define ACROSS (WINDOW_WIDTH / 2)
#define DOWN (WINDOW_HEIGHT / 2)
#define EDGE ((ACROSS + PIXELS - 1) / PIXELS * PIXELS)
#define THREADS (TILE_COLUMNS / PIXELS * SHARE)
#define SHARED_WORDS (THREADS * PIXELS * WORDS)
static_assert(THREADS == EXPECTED_THREADS && 4 * SHARED_WORDS == EXPECTED_SHARED_BYTES && EDGE == EXPECTED_EDGE,
              "geometry.rs: WindowTile");

// Sums of a column, or of a window.
struct Sums {
    u32 v[WORDS];
};
__device__ __forceinline__ void add(Sums &to, const Sums &a) {
#pragma unroll
    for (int j = 0; j < WORDS; j++) to.v[j] += a.v[j];
}
__device__ __forceinline__ void subtract(Sums &from, const Sums &a) {
#pragma unroll
    for (int j = 0; j < WORDS; j++) from.v[j] -= a.v[j];
}

// The summed terms of the pixel in column `x`, which is inside, of row `y`.
__device__ __forceinline__ Sums parts_of(const Features &features, int x, int y, u32 lane) {
    const Window window = window_at(features, 0, y);
    Sums parts;
#if ZERO_MEAN
#pragma unroll
    for (int j = 0; j < REGISTERS; j++) {
        const Differences of = differences(window, x, lane, j);
#if SQUARED
        parts.v[4 * j] = of.low * of.low, parts.v[4 * j + 1] = of.high * of.high;
        parts.v[4 * j + 2] = of.low, parts.v[4 * j + 3] = of.high;
#else
        parts.v[2 * j] = abs(of.low), parts.v[2 * j + 1] = abs(of.high);
#endif
    }
#else
    const u32 pixel = features.p2[(size_t)y * features.row + x + PAD];
    const Vector c = cost(window, x, lane, pixel, 0, 0);
#pragma unroll
    for (int j = 0; j < REGISTERS; j++) {
#if SQUARED
        const u32 low = c.v[j] & 0xffff, high = c.v[j] >> 16;
        parts.v[2 * j] = low * low, parts.v[2 * j + 1] = high * high;
#else
        parts.v[j] = c.v[j];
#endif
    }
#endif
    return parts;
}

// The number of 15 bits that a window's total becomes (matching/block.rs, Scale).
__device__ __forceinline__ u32 scaled(u32 total) {
#if SCALE_FACTOR
    total = min(min(total, SCALE_LIMIT) * SCALE_FACTOR >> 16, WINDOW_SUM_MAX);
#endif
    return total;
}

// The sums of both halves of register `j`.
__device__ __forceinline__ u32 sums_of(const Sums &window, int j) {
    u32 low, high;
#if PARTS == 4
    low = window.v[4 * j] * (WINDOW_WIDTH * WINDOW_HEIGHT) - window.v[4 * j + 2] * window.v[4 * j + 2];
    high = window.v[4 * j + 1] * (WINDOW_WIDTH * WINDOW_HEIGHT) - window.v[4 * j + 3] * window.v[4 * j + 3];
#elif PARTS == 2
    low = window.v[2 * j], high = window.v[2 * j + 1];
#else
    low = window.v[j] & 0xffff, high = window.v[j] >> 16;
#endif
    return scaled(low) | scaled(high) << 16;
}

// Shared memory: the sums of the columns, [pixel][WORDS / UNIT][thread][UNIT].
struct Shared {
    u32 *words;
    __device__ __forceinline__ u32 *at(int pixel, int right) const {
        return words + pixel * (THREADS * WORDS) + ((int)threadIdx.x + right * SHARE) * UNIT;
    }
    __device__ __forceinline__ void put(int pixel, const Sums &a) const {
#pragma unroll
        for (int k = 0; k < WORDS; k += UNIT) put_words<UNIT>(at(pixel, 0) + k * THREADS, a.v + k);
    }
    // Those of a column, counted from this thread's first.
    __device__ __forceinline__ Sums get(int column) const {
        const int right = (column + EDGE) / PIXELS - EDGE / PIXELS, pixel = (column + EDGE) % PIXELS;
        Sums a;
#pragma unroll
        for (int k = 0; k < WORDS; k += UNIT) get_words<UNIT>(at(pixel, right) + k * THREADS, a.v + k);
        return a;
    }
};

extern "C" __global__ void __launch_bounds__(THREADS)
    aggregate_windows(const u32 *p2, const u32 *base, const u32 *match, int row, int width, int height, u32 *to) {
    wait_for_launches_before();
    DYNAMIC_SHARED(uint4, shared_words);
    const Shared shared = {reinterpret_cast<u32 *>(shared_words)};
    const Features features = {p2, base, match, row};
    const u32 lane = blockIdx.z * SHARE + threadIdx.x % SHARE;
    const int column = threadIdx.x / SHARE * PIXELS;
    const int x = (int)blockIdx.x * (TILE_COLUMNS - 2 * EDGE) - EDGE + column;
    const bool stores = column >= EDGE && column < TILE_COLUMNS - EDGE;
    const int first = blockIdx.y * TILE_ROWS, end = min(first + TILE_ROWS, height);

    Sums columns[PIXELS];
#pragma unroll
    for (int p = 0; p < PIXELS; p++)
#pragma unroll
        for (int j = 0; j < WORDS; j++) columns[p].v[j] = 0;
    // The window's pixels outside the picture are the nearest inside.
    auto parts = [&](int p, int y) {
        return parts_of(features, min(max(x + p, BREAK(window_border, 0, 1)), width - 1), min(max(y, 0), height - 1), lane);
    };
    for (int y = first - DOWN; y < first + DOWN; y++)
#pragma unroll
        for (int p = 0; p < PIXELS; p++) add(columns[p], parts(p, y));

    for (int y = first; y < end; y++) {
#pragma unroll
        for (int p = 0; p < PIXELS; p++) {
            add(columns[p], parts(p, y + DOWN));
            shared.put(p, columns[p]);
        }
        __syncthreads();
        if (stores) {
            Sums window = shared.get(-ACROSS);
#pragma unroll
            for (int c = 1 - ACROSS; c <= ACROSS; c++) add(window, shared.get(c));
#pragma unroll
            for (int p = 0; p < PIXELS; p++) {
                if (p > 0) {
                    add(window, shared.get(p + ACROSS));
                    subtract(window, shared.get(p - ACROSS - 1));
                }
                if (x + p >= width) break;
                Vector sums;
#pragma unroll
                for (int j = 0; j < REGISTERS; j++) sums.v[j] = sums_of(window, j);
#if LOCAL
                put_interleaved(to + ((size_t)y * width + x + p) * HALF_DISPARITIES, lane, sums);
#else
                u32 words[BYTE_WORDS];
#pragma unroll
                for (int j = 0; j < REGISTERS; j++) {
                    const u32 rounded = sums.v[j] + BREAK(byte_rounding, both(1 << (BYTE_SHIFT - 1)), 0u);
                    const u32 low = min((rounded & 0xffff) >> BYTE_SHIFT, BLOCK_TRUNCATION);
                    const u32 high = min(rounded >> (16 + BYTE_SHIFT), BLOCK_TRUNCATION);
                    sums.v[j] = low | high << 16;
                }
                pack(sums, words);
                store_words(to + volume_pixel(row, x + p, y) + lane * BYTE_WORDS, words);
#endif
            }
        }
        __syncthreads();
#pragma unroll
        for (int p = 0; p < PIXELS; p++) subtract(columns[p], parts(p, y - DOWN));
    }
}
