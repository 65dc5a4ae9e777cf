// The supported cost of every pixel and candidate, written down once (matching/support.rs):
// C = (own C0 + window S + prior min(|d - expected|, 8) + 256) / 512, where S is the sum of C0 over a window of
// WINDOW_SIDE pixels a side, its pixels clamped into the picture.
//
// A block goes down TILE_COLUMNS columns for TILE_ROWS rows, a group of lanes a column, and keeps the sum over the
// rows of the window of its column. What is beside it comes from the other groups through shared memory; so the
// outer WINDOW_RADIUS columns on either side are only summed.
//
// Grid: [width / (TILE_COLUMNS - 2 * WINDOW_RADIUS)][height / TILE_ROWS].
#define WINDOW_COLUMNS 0
#include "cost.cuh"
#include "blend.cuh"
#include "volume.cuh"

#define WINDOW_RADIUS (WINDOW_SIDE / 2)
#define THREADS (TILE_COLUMNS * GROUP)
// Two buffers of sums in turn need one barrier a row instead of two.
#define BUFFERS (REGISTERS <= 12 ? 2 : 1)
// The costs of the rows of a window, and the sums over them.
#define SHARED_WORDS (WINDOW_SIDE > 1 ? THREADS * (WINDOW_SIDE * BYTE_WORDS + BUFFERS * REGISTERS) : 0)
static_assert(THREADS == EXPECTED_THREADS && 4 * SHARED_WORDS == EXPECTED_SHARED_BYTES, "geometry.rs: CostTile");
static_assert(VOLUME_BESIDE == EXPECTED_VOLUME_BESIDE, "geometry.rs: VOLUME_BESIDE");
// Each half of a sum of parts, which 512 units divide, stays below 2^16.
#define COST_BITS both(0xffffu >> BLEND_SHIFT)

// A thread's words in shared memory.
struct Shared {
    u32 *own, *sums;
    __device__ __forceinline__ explicit Shared(u32 *words)
        : own(words + threadIdx.x * BYTE_WORDS), sums(words + THREADS * WINDOW_SIDE * BYTE_WORDS) {}
    // The costs of a row of the window, which only this thread looks at.
    __device__ __forceinline__ void keep(int slot, const Vector &c) const {
        u32 words[BYTE_WORDS];
        pack(c, words);
#pragma unroll
        for (int k = 0; k < BYTE_WORDS; k++) own[slot * THREADS * BYTE_WORDS + k] = words[k];
    }
    __device__ __forceinline__ Vector kept(int slot) const {
        u32 words[BYTE_WORDS];
        load_words(own + slot * THREADS * BYTE_WORDS, words);
        return unpacked(words);
    }
    __device__ __forceinline__ u32 *sum(int buffer, int thread) const {
        return sums + buffer * (THREADS * REGISTERS) + thread * ACCESS;
    }
    __device__ __forceinline__ void put_sum(int buffer, const Vector &a) const {
#pragma unroll
        for (int k = 0; k < REGISTERS; k += ACCESS) put_access(sum(buffer, threadIdx.x) + k * THREADS, a.v + k);
    }
    // The sum of the column so far to the right.
    __device__ __forceinline__ Vector get_sum(int buffer, int right) const {
        Vector a;
#pragma unroll
        for (int k = 0; k < REGISTERS; k += ACCESS)
            get_access(sum(buffer, threadIdx.x + right * GROUP) + k * THREADS, a.v + k);
        return a;
    }
};

__device__ __forceinline__ void add(Vector &to, const Vector &a) {
#pragma unroll
    for (int j = 0; j < REGISTERS; j++) to.v[j] += a.v[j];
}

// A candidate's number as the bits of a half-float, which may be negative (instructions.cuh).
__device__ __forceinline__ u32 half_float(int number) { return number < 0 ? 0x8000u | -number : number; }

__device__ __forceinline__ Vector supported(const Vector &own, const Vector &sum, Blend blend, u32 lane) {
    const u32 window = blend.window(), rest = (1 << BLEND_SHIFT) - WINDOW_SIDE * WINDOW_SIDE * window;
    Vector c;
#pragma unroll
    for (int j = 0; j < REGISTERS; j++) {
        c.v[j] = own.v[j] * rest + both(1 << (BLEND_SHIFT - 1));
        if (WINDOW_SIDE > 1) c.v[j] += sum.v[j] * window;
    }
#if PRIOR_STRENGTH
    const u32 prior = blend.prior(), expected = both(half_float(blend.expected()));
#pragma unroll
    for (int j = 0; j < REGISTERS; j++) {
        const u32 candidates = both(lane * REGISTERS + j) + (HALF_DISPARITIES << 16);
        c.v[j] += least_magnitude(sub2(candidates, expected), both(PRIOR_REACH)) * prior;
    }
#endif
#pragma unroll
    for (int j = 0; j < REGISTERS; j++) c.v[j] = c.v[j] >> BLEND_SHIFT & COST_BITS;
    return c;
}

extern "C" __global__ void __launch_bounds__(THREADS)
    cost_volume(const u32 *p2, const u32 *base, const u32 *match, int row, int width, int height,
                const u32 *blends, u32 *volume) {
    DYNAMIC_SHARED(uint4, shared_words);
    const Shared shared(reinterpret_cast<u32 *>(shared_words));
    const Features features = {p2, base, match, row};
    const u32 lane = group_lane();
    const int column = threadIdx.x / GROUP;
    const int x = blockIdx.x * (TILE_COLUMNS - 2 * WINDOW_RADIUS) - WINDOW_RADIUS + column;
    const int inside = min(max(x, 0), width - 1);
    const int first = blockIdx.y * TILE_ROWS, end = min(first + TILE_ROWS, height);
    const bool stores = column >= WINDOW_RADIUS && column < TILE_COLUMNS - WINDOW_RADIUS && x < width;
    auto cost_of_row = [&](int y) {
        y = min(max(y, 0), height - 1);
        const u32 pixel = p2[(size_t)y * row + inside + PAD];
        return cost(window_at(features, 0, y), inside, lane, pixel, 0, width);
    };

    Vector rows = filled(0);
    for (int i = 0; i < WINDOW_SIDE - 1; i++) {
        const Vector c = cost_of_row(first - WINDOW_RADIUS + i);
        shared.keep(i, c);
        add(rows, c);
    }
    for (int y = first; y < end; y++) {
        Vector own = cost_of_row(y + WINDOW_RADIUS), sum = filled(0);
#if WINDOW_SIDE > 1
        const int i = y - first, buffer = i % BUFFERS;
        shared.keep((i + WINDOW_SIDE - 1) % WINDOW_SIDE, own);
        add(rows, own);
        shared.put_sum(buffer, rows);
        __syncthreads();
        sum = rows;
        if (stores) {
#pragma unroll
            for (int right = 1; right <= WINDOW_RADIUS; right++) {
                add(sum, shared.get_sum(buffer, right));
                add(sum, shared.get_sum(buffer, -right));
            }
        }
        own = shared.kept((i + WINDOW_RADIUS) % WINDOW_SIDE);
        const Vector oldest = shared.kept(i % WINDOW_SIDE);
#pragma unroll
        for (int j = 0; j < REGISTERS; j++) rows.v[j] -= oldest.v[j];
        if (BUFFERS == 1) __syncthreads();
#endif
        if (stores) {
#if BLENDS
            const Blend blend = {blends[(size_t)y * width + x]};
#else
            const Blend blend = {blend_word(WINDOW_MOST, 0, 0)};
#endif
            u32 words[BYTE_WORDS];
            pack(supported(own, sum, blend, lane), words);
            store_words(volume + volume_pixel(row, x, y) + lane * BYTE_WORDS, words);
        }
    }
}
