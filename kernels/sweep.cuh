// What the blocks of a sweep share (sweep.cu).
//
// The engine compiles each of the two launches with (geometry.rs)
//   STRIP, HALO   columns of a block, and of the halo on either side
//   TWO_SWEEPS    1 where two sweeps run at once and meet in the middle
//   DIRECTION     that of a single sweep: 0 down, 1 up
//   DIAGONALS     1 where there are diagonal paths
//   OTHER_SUMS    1 where another sweep stores sums of path deltas
//   SELECT        1 where this launch selects the winners
//   WINDOWS       rows of prepared windows in shared memory, a power of two
//   AHEAD         rows of stored path deltas on their way, a power of two
//   TILES         rows of sums in work: one is written, one becomes keys, one is matched from the right,
//                 one is completed
#pragma once
// Columns beside a strip whose costs are asked for.
#define BORDER (DIAGONALS * HALO)
#define WINDOW_COLUMNS (STRIP + 2 * BORDER + 2 * MARGIN)
#include "cost.cuh"
#include "path_delta.cuh"

#define MAX(a, b) ((a) > (b) ? (a) : (b))
#define MAIN_WARPS (STRIP / WARP_PIXELS)
// Warps for the halo on each side: a group of lanes for each column but the one that is only received.
#define HALO_WARPS (DIAGONALS ? (HALO - 1 + WARP_PIXELS - 1) / WARP_PIXELS : 0)
#define RIGHT_WARPS (LEFT_RIGHT ? (HALF_DISPARITIES + STRIP - 1 + 31) / 32 : 0)
// With SELECT as many as main warps pick the winners, others match the right picture's pixels, and one
// completes the pixels. The last one loads.
#define PICK_WARPS (SELECT ? MAIN_WARPS : 0)
#define SUPPORT_WARPS (PICK_WARPS + (SELECT ? RIGHT_WARPS + 1 : 0) + 1)
#define SWEEP_THREADS (32 * (MAIN_WARPS + 2 * HALO_WARPS + SUPPORT_WARPS))
// Taking the least path cost off in every row only keeps numbers small: a path cost grows by at most
// COST_MAX a row. Where the sum of three stays within what half-floats hold, it is
// done once an exchange.
#define LAZY (3 * (PATH_COST_MAX + HALO * COST_MAX) <= HALF_FLOAT_MAX)
// Columns whose diagonal path vectors a block holds.
#define SLOTS (STRIP + HALO)
// Words a lane of stored sums of path deltas: bytes where they fit.
#define SUM_BYTES ((1 + 2 * DIAGONALS) * P2_MAX <= 255)
#define SUM_WORDS (SUM_BYTES ? BYTE_WORDS : REGISTERS)
static_assert(4 * GROUP * SUM_WORDS == EXPECTED_SUM_BYTES, "geometry.rs: Lanes::sum_bytes");
static_assert(HALO + MARGIN <= BESIDE, "geometry.rs: Prepared::row");
#define STORED_WORDS (SUM_WORDS * OTHER_SUMS + 2 * BYTE_WORDS)

// Rows of a launch in their order. With TWO_SWEEPS two sweeps share the picture: each first goes to the
// middle and, in a second launch, on from there. Otherwise one sweep takes all rows.
struct Rows {
    int first, step, count;
    bool resumed;
    __device__ __forceinline__ Rows(int direction, int height) {
        const int middle = height / 2;
        step = direction == 0 ? 1 : -1;
        if (TWO_SWEEPS) {
            first = direction == 0 ? (SELECT ? middle : 0) : (SELECT ? middle - 1 : height - 1);
            count = (direction == 0) != SELECT ? middle : height - middle;
            resumed = SELECT && (direction == 0 ? middle : height - middle) > 0;
        } else {
            first = direction == 0 ? 0 : height - 1;
            count = height;
            resumed = false;
        }
    }
    __device__ __forceinline__ int at(int i) const { return first + step * i; }
};

// The layout of a block's shared memory.
#define PATH_WORDS (DIAGONALS * 2 * 2 * SLOTS * HALF_DISPARITIES)
#define LEAST_WORDS (DIAGONALS * 2 * 2 * ((SLOTS + 3) / 4 * 4))
#define WINDOWS_WORDS (WINDOWS * ((WINDOW_WORDS + 3) / 4 * 4))
#define STORED_RING_WORDS (SELECT ? AHEAD * STORED_WORDS * MAIN_WARPS * 32 : 0)
// A column's sums are HALF_DISPARITIES words with as much room around them as a diagonal through the tile
// needs.
#define TILE_PITCH (HALF_DISPARITIES + STRIP)
#define TILE_WORDS (STRIP + STRIP * TILE_PITCH)
#define KEY_WORDS (SELECT ? TILES * TILE_WORDS : 0)
#define BEST_WORDS (SELECT ? 2 * 2 * STRIP : 0)
#define SHARED_WORDS (PATH_WORDS + STORED_RING_WORDS + KEY_WORDS + WINDOWS_WORDS + LEAST_WORDS + BEST_WORDS)

struct Shared {
    u32 *paths, *stored, *keys, *windows, *leasts, *bests;
    __device__ __forceinline__ explicit Shared(u32 *words) {
        paths = words;
        stored = paths + PATH_WORDS;
        keys = stored + STORED_RING_WORDS;
        windows = keys + KEY_WORDS;
        leasts = windows + WINDOWS_WORDS;
        bests = leasts + LEAST_WORDS;
    }
    // The sums of row `i` where those of column 0 begin.
    __device__ __forceinline__ u32 *tile(int i) const { return keys + i % TILES * TILE_WORDS + STRIP; }
    // For each column of row `i` its best key and the number of its rivals.
    __device__ __forceinline__ u32 *best(int i) const { return bests + (i & 1) * (2 * STRIP); }
    __device__ __forceinline__ u32 *window(int i) const {
        return windows + i % WINDOWS * ((WINDOW_WORDS + 3) / 4 * 4);
    }
    // Diagonal 0 comes from the left, its slot 0 is column -HALO; diagonal 1 from the right, its slot
    // 0 is column 0.
    __device__ __forceinline__ u32 *vector(int diagonal, int buffer, int slot) const {
        return paths + ((diagonal * 2 + buffer) * SLOTS + slot) * HALF_DISPARITIES;
    }
    __device__ __forceinline__ u32 *least(int diagonal, int buffer, int slot) const {
        return leasts + (diagonal * 2 + buffer) * ((SLOTS + 3) / 4 * 4) + slot;
    }
    __device__ __forceinline__ Vector get(int diagonal, int buffer, int slot, u32 lane, u32 &least_of_it) const {
        least_of_it = *least(diagonal, buffer, slot);
        return get_interleaved(vector(diagonal, buffer, slot), lane);
    }
    __device__ __forceinline__ void put_vector(int diagonal, int buffer, int slot, u32 lane, const Vector &a) const {
        put_interleaved(vector(diagonal, buffer, slot), lane, a);
    }
    __device__ __forceinline__ void put_least(int diagonal, int buffer, int slot, u32 value) const {
        *least(diagonal, buffer, slot) = value;
    }
    __device__ __forceinline__ void put(int diagonal, int buffer, int slot, u32 lane, const Vector &a,
                                        u32 least_of_it) const {
        put_vector(diagonal, buffer, slot, lane, a);
        if (lane == 0) put_least(diagonal, buffer, slot, least_of_it);
    }
};

// The path state of a sweep between the two launches of a frame: [SWEEP_PATHS][columns][HALF_DISPARITIES].
#define SWEEP_PATHS 3
static_assert(4 * SWEEP_PATHS * HALF_DISPARITIES == EXPECTED_STATE_BYTES, "geometry.rs: Lanes::state_bytes");
__device__ __forceinline__ Vector read_state(const u32 *state, int path, int columns, int x, u32 lane) {
    return get_interleaved(state + ((size_t)path * columns + x) * HALF_DISPARITIES, lane);
}
__device__ __forceinline__ void write_state(u32 *state, int path, int columns, int x, u32 lane, const Vector &a) {
    put_interleaved(state + ((size_t)path * columns + x) * HALF_DISPARITIES, lane, a);
}

// Writes a sum of path deltas over the paths of a sweep.
__device__ __forceinline__ void store_sum(u32 *pixel, u32 lane, const Vector &sum) {
#if SUM_BYTES
    u32 words[BYTE_WORDS];
    pack(sum, words);
    store_words(pixel + lane * BYTE_WORDS, words);
#else
    put_interleaved(pixel, lane, sum);
#endif
}
