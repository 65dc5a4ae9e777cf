// Writes the volume of supported costs (matching/support.rs), for every pixel and candidate C =
// (own C0 + window S + prior min(|d - expected|, 8) + 256) / 512, where S is the sum of the cost C0
// of single pixels over a window of WINDOW_SIDE pixels a side, clamped into the image.
//
// Running sums: a block goes down TILE_COLUMNS columns for TILE_ROWS rows. A group of lanes has
// PIXELS neighbouring columns, which look at nearly the same columns of the right image, and keeps
// the sums over the rows of the window of its columns. Sums of the columns next to it come from
// other groups through shared memory, so the outer EDGE columns on either side are summed but not
// written. With range windows a block has SEGMENTS tiles beside each other, with edges of their own.
//
// Grid: [width / (SEGMENTS * (TILE_COLUMNS - 2 * EDGE))][height / TILE_ROWS].
#define WINDOW_COLUMNS 0
#include "cost.cuh"
#include "blend.cuh"
#include "volume.cuh"
#include "windows.cuh"

#define WINDOW_RADIUS (WINDOW_SIDE / 2)
#define EDGE ((WINDOW_RADIUS + PIXELS - 1) / PIXELS * PIXELS)
#define SEGMENT_THREADS (TILE_COLUMNS / PIXELS * GROUP)
#define THREADS (SEGMENTS * SEGMENT_THREADS)
static_assert(!WINDOWED || (TILE_COLUMNS - 2 * EDGE == WINDOW_TILE && TILE_ROWS == WINDOW_TILE), "a tile's blocks");
// The costs of the rows of a window, and the sums over them.
#define SHARED_WORDS (WINDOW_SIDE > 1 ? THREADS * PIXELS * (WINDOW_SIDE * BYTE_WORDS + REGISTERS) : 0)
static_assert(THREADS == EXPECTED_THREADS && 4 * SHARED_WORDS == EXPECTED_SHARED_BYTES && EDGE == EXPECTED_EDGE,
              "geometry.rs: CostTile");
static_assert(VOLUME_BESIDE == EXPECTED_VOLUME_BESIDE, "geometry.rs: VOLUME_BESIDE");
// Each half of a sum of parts, which 512 units divide, stays below 2^16.
#define COST_BITS (0x01010101u * (0xffu >> (BLEND_SHIFT - 8)))
// Blocks of a multiprocessor: with fewer registers a thread spills.
#define BLOCKS ((REGISTERS <= 8 ? 1024 : 512) / THREADS)

// A thread's words in shared memory.
struct Shared {
    u32 *own, *sums;
    __device__ __forceinline__ explicit Shared(u32 *words)
        : own(words + threadIdx.x * BYTE_WORDS), sums(words + THREADS * PIXELS * WINDOW_SIDE * BYTE_WORDS) {}
    // The cost of a pixel of a row of the window, which only this thread looks at.
    __device__ __forceinline__ u32 *cost(int slot, int pixel) const {
        return own + (slot * PIXELS + pixel) * (THREADS * BYTE_WORDS);
    }
    __device__ __forceinline__ void keep(int slot, int pixel, const Vector &c) const {
        u32 words[BYTE_WORDS];
        pack(c, words);
#pragma unroll
        for (int k = 0; k < BYTE_WORDS; k++) cost(slot, pixel)[k] = words[k];
    }
    __device__ __forceinline__ Vector kept(int slot, int pixel) const {
        u32 words[BYTE_WORDS];
        load_words(cost(slot, pixel), words);
        return unpacked(words);
    }
    // The sum over the rows of a column of the group that is so far to the right.
    __device__ __forceinline__ u32 *sum(int pixel, int right) const {
        return sums + pixel * (THREADS * REGISTERS) + ((int)threadIdx.x + right * GROUP) * ACCESS;
    }
    __device__ __forceinline__ void put_sum(int pixel, const Vector &a) const {
#pragma unroll
        for (int k = 0; k < REGISTERS; k += ACCESS) put_words<ACCESS>(sum(pixel, 0) + k * THREADS, a.v + k);
    }
    // That of a column, counted from this group's first.
    __device__ __forceinline__ Vector get_sum(int column) const {
        const int right = (column + EDGE) / PIXELS - EDGE / PIXELS, pixel = (column + EDGE) % PIXELS;
        Vector a;
#pragma unroll
        for (int k = 0; k < REGISTERS; k += ACCESS) get_words<ACCESS>(sum(pixel, right) + k * THREADS, a.v + k);
        return a;
    }
};

__device__ __forceinline__ void add(Vector &to, const Vector &a) {
#pragma unroll
    for (int j = 0; j < REGISTERS; j++) to.v[j] += a.v[j];
}
__device__ __forceinline__ void subtract(Vector &from, const Vector &a) {
#pragma unroll
    for (int j = 0; j < REGISTERS; j++) from.v[j] -= a.v[j];
}

// A candidate's number as the bits of a half-float, which may be negative (instructions.cuh).
__device__ __forceinline__ u32 half_float(int number) { return number < 0 ? 0x8000u | -number : number; }

// The supported costs, packed.
__device__ __forceinline__ void supported(const Vector &own, const Vector &sum, Blend blend, u32 part,
                                          u32 (&words)[BYTE_WORDS]) {
    const u32 window = blend.window(), rest = (1 << BLEND_SHIFT) - WINDOW_SIDE * WINDOW_SIDE * window;
    Vector c;
#pragma unroll
    for (int j = 0; j < REGISTERS; j++) {
        c.v[j] = own.v[j] * rest + BREAK(blend_rounding, both(1 << (BLEND_SHIFT - 1)), 0u);
        if (WINDOW_SIDE > 1) c.v[j] += sum.v[j] * window;
    }
#if PRIOR
    const u32 prior = blend.prior(), expected = both(half_float(blend.expected()));
    const u32 first = sub2(both(part * REGISTERS) + (HIGH_HALF << 16), expected);
#pragma unroll
    for (int j = 0; j < REGISTERS; j++) c.v[j] += least_magnitude(add2(first, both(j)), both(PRIOR_REACH)) * prior;
#endif
#pragma unroll
    // The upper bytes of the halves of two registers.
    for (int k = 0; k < BYTE_WORDS; k++)
        words[k] = __byte_perm(c.v[2 * k], c.v[2 * k + 1], A_ODD_B_ODD) >> (BLEND_SHIFT - 8) & COST_BITS;
}

// Blends a cost with its window sum by the same weight at every pixel. Without a window the cost
// passes unchanged: it may be as large as a byte, and its parts then larger than half a register.
__device__ __forceinline__ void all_alike(const Vector &own, const Vector &sum, u32 part, u32 (&words)[BYTE_WORDS]) {
    if (WINDOW_SIDE > 1) supported(own, sum, {blend_word(WINDOW_MOST, 0, 0)}, part, words);
    else pack(own, words);
}

// The costs of a row of this thread's pixels, which begin in column `x`; `row` is that of the
// picture.
struct Costs {
    Vector of[PIXELS];
    // `inside` says that no column of the block lies beside the picture.
    __device__ __forceinline__ Costs(const Features &features, int x, int row, int width, int height, u32 part,
                                     bool inside) {
        const int y = min(max(row, 0), height - 1);
        const u32 *words = features.p2 + ((u32)y * features.row + PAD);
        if (inside) {
            // A window begins at an even column, at which one of several pixels always does.
            const int begin = PIXELS % 2 ? x & ~1 : x, first = x - begin;
            Window window = window_at(features, begin, y);
            // So that words of neighbouring pixels are read together.
            if (COLUMNS == 1) window.match = (const u32 *)__builtin_assume_aligned(window.match, 4 * PIXELS);
#pragma unroll
            for (int p = 0; p < PIXELS; p++) of[p] = cost(window, first + p, part, words[x + p], begin, width);
        } else {
            const Window window = window_at(features, 0, y);
#pragma unroll
            for (int p = 0; p < PIXELS; p++) {
                const int column = min(max(x + p, 0), width - 1);
                of[p] = cost(window, column, part, words[column], 0, width);
            }
        }
    }
};

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS)
    compute_costs(const u32 *p2, const u32 *base, const u32 *match, int row, int width, int height,
                const u32 *blends, const u16 *windows, u32 *volume) {
    wait_for_launches_before();
    DYNAMIC_SHARED(uint4, shared_words);
    const Shared shared(reinterpret_cast<u32 *>(shared_words));
    const Features features = {p2, base, match, row};
    const u32 lane = group_lane();
    const int segment = SEGMENTS > 1 ? threadIdx.x / SEGMENT_THREADS : 0;
    const int column = (threadIdx.x - segment * SEGMENT_THREADS) / GROUP * PIXELS;
    const int first_column = (blockIdx.x * SEGMENTS + segment) * (TILE_COLUMNS - 2 * EDGE) - EDGE, x = first_column + column;
    const bool inside = first_column >= 0 && first_column + TILE_COLUMNS <= width;
    const bool stores = column >= EDGE && column < TILE_COLUMNS - EDGE;
    const int first = blockIdx.y * TILE_ROWS, end = min(first + TILE_ROWS, height);
    const u32 part = RangeWindows{windows, width, height}.part(first_column + EDGE, first, lane);

    Vector rows[PIXELS];
#pragma unroll
    for (int p = 0; p < PIXELS; p++) rows[p] = filled(0);
    for (int i = 0; i < WINDOW_SIDE - 1; i++) {
        const Costs costs(features, x, BREAK(window_row, first - WINDOW_RADIUS + i, first + i), width, height, part, inside);
#pragma unroll
        for (int p = 0; p < PIXELS; p++) {
            shared.keep(i, p, costs.of[p]);
            add(rows[p], costs.of[p]);
        }
    }
    for (int y = first; y < end; y++) {
        const Costs costs(features, x, y + WINDOW_RADIUS, width, height, part, inside);
#if WINDOW_SIDE > 1
        const u32 i = y - first;
        Vector beside[2 * WINDOW_RADIUS];
#pragma unroll
        for (int p = 0; p < PIXELS; p++) {
            shared.keep((i + WINDOW_SIDE - 1) % WINDOW_SIDE, p, costs.of[p]);
            add(rows[p], costs.of[p]);
            shared.put_sum(p, rows[p]);
        }
        __syncthreads();
#pragma unroll
        for (int k = 0; k < WINDOW_RADIUS; k++) {
            beside[k] = stores ? shared.get_sum(k - WINDOW_RADIUS) : filled(0);
            beside[WINDOW_RADIUS + k] = stores ? shared.get_sum(PIXELS + k) : filled(0);
        }
        BREAK(volume_barrier, __syncthreads(), (void)0);
        auto sum_of_rows = [&](int c) {
            return c < 0 ? beside[c + WINDOW_RADIUS] : c < PIXELS ? rows[c] : beside[c - PIXELS + WINDOW_RADIUS];
        };
        Vector sum = filled(0);
#pragma unroll
        for (int c = -WINDOW_RADIUS; c < WINDOW_RADIUS; c++) add(sum, sum_of_rows(c));
#endif
#pragma unroll
        for (int p = 0; p < PIXELS; p++) {
#if WINDOW_SIDE > 1
            const Vector own = shared.kept((i + WINDOW_RADIUS) % WINDOW_SIDE, p);
            add(sum, sum_of_rows(p + WINDOW_RADIUS));
            if (p > 0) subtract(sum, sum_of_rows(p - WINDOW_RADIUS - 1));
#else
            const Vector own = costs.of[p], sum = filled(0);
#endif
            if (stores && x + p < width) {
                u32 words[BYTE_WORDS];
#if BLENDS
                supported(own, sum, {blends[(size_t)y * width + x + p]}, part, words);
#else
                all_alike(own, sum, part, words);
#endif
                store_words(volume + volume_pixel(row, x + p, y) + lane * BYTE_WORDS, words);
            }
        }
#if WINDOW_SIDE > 1
#pragma unroll
        for (int p = 0; p < PIXELS; p++) subtract(rows[p], shared.kept(i % WINDOW_SIDE, p));
#endif
    }
}
