// Layout of a sweep's block: its warps, its barriers and its shared memory (aggregate_sweep.cu).
//
// The engine compiles each of the two launches with (geometry.rs)
//   STRIP, HALO   columns of a block, and of the halo on either side
//   TASKS         1 where not all strips are resident at once, so that blocks take tasks (row_cursor.cuh)
//   TWO_SWEEPS    1 where two sweeps run at once and meet in the middle
//   DIRECTION     that of a single sweep: 0 down, 1 up
//   DIAGONALS     1 where there are diagonal paths
//   OTHER_SUMS    1 where another sweep stores sums of path deltas
//   SELECT        1 where this launch selects the winners
//   WINDOWS       rows of prepared windows in shared memory, a power of two
//   AHEAD         rows of stored path deltas on their way, a power of two; 1: in registers
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
// Warps for the halo on each side: a group of lanes for each column but the one that is only received; with TASKS
// for two, because a column of the halo has one path where one of the strip has three.
#define HALO_GROUPS (TASKS ? HALO / 2 : HALO - 1)
#define HALO_WARPS (DIAGONALS ? (HALO_GROUPS + WARP_PIXELS - 1) / WARP_PIXELS : 0)
#define RIGHT_WARPS (LEFT_RIGHT ? (HALF_DISPARITIES + STRIP - 1 + 31) / 32 : 0)
// With SELECT as many as main warps pick the winners, others match the right picture's pixels, and one
// completes the pixels. The last one loads.
#define PICK_WARPS (SELECT ? MAIN_WARPS : 0)
#define SUPPORT_WARPS (PICK_WARPS + (SELECT ? RIGHT_WARPS + 1 : 0) + 1)
// With TASKS another warp takes them, and fetches the path states that they begin with.
#define SWEEP_THREADS (32 * (MAIN_WARPS + 2 * HALO_WARPS + SUPPORT_WARPS + TASKS))
// Threads of the warps that select, and of the others, which go from row to row by themselves.
#define SELECT_THREADS (32 * (SUPPORT_WARPS - 1))
#define ROW_THREADS (SWEEP_THREADS - SELECT_THREADS)
// Barriers of a block: for each tile one by which those that select learn that its sums are there, and one by
// which the others learn that it may be written again.
#define ROW_BARRIER 1
#define SELECT_BARRIER 2
#define FULL_BARRIER(i) (3 + (i) % TILES)
#define FREE_BARRIER(i) (3 + TILES + (i) % TILES)
// Taking the least path cost off in every row only keeps numbers small: a path cost grows by at most
// COST_MAX a row. If the sum of three stays within the range of half-floats, it is
// done once a band.
#define LAZY (3 * (PATH_COST_MAX + HALO * COST_MAX) <= HALF_FLOAT_MAX)
// Columns whose diagonal path vectors a block holds.
#define SLOTS (STRIP + HALO)
// Words a lane of stored sums of path deltas: bytes where they fit.
#define SUM_BYTES ((1 + 2 * DIAGONALS) * P2_MAX <= 255)
#define SUM_WORDS (SUM_BYTES ? BYTE_WORDS : REGISTERS)
static_assert(4 * GROUP * SUM_WORDS == EXPECTED_SUM_BYTES, "geometry.rs: VectorLayout::sum_bytes");
static_assert(HALO + MARGIN <= BESIDE, "geometry.rs: Prepared::row");
#define STORED_IN_REGISTERS (AHEAD == 1)
#define STORED_WORDS (SUM_WORDS * OTHER_SUMS + 2 * BYTE_WORDS)

// The layout of a block's shared memory.
#define PATH_WORDS (DIAGONALS * 2 * 2 * SLOTS * HALF_DISPARITIES)
#define LEAST_WORDS (DIAGONALS * 2 * 2 * ((SLOTS + 3) / 4 * 4))
#define WINDOWS_WORDS (WINDOWS * ((WINDOW_WORDS + 3) / 4 * 4))
#define STORED_RING_WORDS (SELECT && !STORED_IN_REGISTERS ? AHEAD * STORED_WORDS * MAIN_WARPS * 32 : 0)
// A column's sums are HALF_DISPARITIES words with as much room around them as a diagonal through the tile
// needs.
#define TILE_PITCH (HALF_DISPARITIES + STRIP)
#define TILE_WORDS (STRIP + STRIP * TILE_PITCH)
#define KEY_WORDS (SELECT ? TILES * TILE_WORDS : 0)
#define BEST_WORDS (SELECT ? 2 * 2 * STRIP : 0)
// With TASKS the path states that the next task begins with: vectors with the least value behind each, of the
// vertical paths and then of both diagonal ones; and the tasks themselves.
#define STATE_PITCH (HALF_DISPARITIES + 4)
#define BEGIN_STATES (STRIP + DIAGONALS * 2 * SLOTS)
#define TASK_RING 8
#define TASK_WORDS (TASKS ? BEGIN_STATES * STATE_PITCH + TASK_RING : 0)
#define SHARED_WORDS \
    (PATH_WORDS + STORED_RING_WORDS + KEY_WORDS + WINDOWS_WORDS + LEAST_WORDS + BEST_WORDS + TASK_WORDS)

struct Shared {
    u32 *paths, *stored, *keys, *windows, *leasts, *bests, *states, *tasks;
    __device__ __forceinline__ explicit Shared(u32 *words) {
        paths = words;
        stored = paths + PATH_WORDS;
        keys = stored + STORED_RING_WORDS;
        windows = keys + KEY_WORDS;
        leasts = windows + WINDOWS_WORDS;
        bests = leasts + LEAST_WORDS;
        states = bests + BEST_WORDS;
        tasks = states + BEGIN_STATES * STATE_PITCH;
    }
    // The state that a task begins with, of column `column` of the strip: path 0 is the vertical one, the others
    // are diagonal, with columns beside the strip.
    __device__ __forceinline__ u32 *state(int path, int column) const {
        return states + (path == 0 ? column : STRIP + (path - 1) * SLOTS + column + (path == 1 ? HALO : 0)) * STATE_PITCH;
    }
    __device__ __forceinline__ Vector begin(int path, int column, u32 lane, u32 &least_of_it) const {
        const u32 *words = state(path, column);
        least_of_it = words[HALF_DISPARITIES];
        return get_interleaved(words, lane);
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

// Path states in memory: those between the two launches of a frame or, with TASKS, those at the end of each band.
// [2 bands in turn with TASKS][2 sweeps][SWEEP_PATHS][columns][STATE_PITCH]: vectors with their least value.
#define SWEEP_PATHS 3
static_assert(4 * SWEEP_PATHS * STATE_PITCH == EXPECTED_STATE_BYTES, "geometry.rs: VectorLayout::state_bytes");
struct States {
    u32 *words;
    int columns;
    __device__ __forceinline__ States(u32 *all, int direction, int band, int columns)
        : words(all + (size_t)(band % 2 * 2 + direction) * SWEEP_PATHS * columns * STATE_PITCH), columns(columns) {}
    __device__ __forceinline__ u32 *at(int path, int x) const {
        return words + ((size_t)path * columns + x) * STATE_PITCH;
    }
    __device__ __forceinline__ Vector read(int path, int x, u32 lane, u32 &least) const {
        least = at(path, x)[HALF_DISPARITIES];
        return get_interleaved(at(path, x), lane);
    }
    __device__ __forceinline__ void write(int path, int x, u32 lane, const Vector &a, u32 least) const {
        put_interleaved(at(path, x), lane, a);
        if (lane == 0) at(path, x)[HALF_DISPARITIES] = least;
    }
};

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
