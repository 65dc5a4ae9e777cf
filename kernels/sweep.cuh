// Layout of a sweep's block: its warps, its barriers and its shared memory (aggregate_sweep.cu).
//
// The engine compiles each of the two launches with (geometry.rs)
//   STRIP, HALO   columns of a block, and of the halo on either side
//   TASKS         1 if not all strips are resident at once; blocks then take tasks (row_cursor.cuh)
//   TWO_SWEEPS    1 if two sweeps run at once and meet in the middle
//   DIRECTION     direction of a single sweep: 0 down, 1 up
//   DIAGONALS     1 if there are diagonal paths
//   OTHER_SUMS    1 if another sweep stores sums of path deltas
//   SELECT        1 if this launch selects the winners
//   WINDOWS       rows of prepared windows in shared memory, a power of two
//   AHEAD         rows of stored path deltas prefetched, a power of two; 1: in registers
//   TILES         rows of sums in work: one is written, one becomes keys, one is matched from the right,
//                 one is completed
#pragma once
// Columns on either side of a strip whose costs are computed.
#define BORDER (DIAGONALS * HALO)
#define WINDOW_COLUMNS (STRIP + 2 * BORDER + 2 * MARGIN)
#include "cost.cuh"
#include "path_delta.cuh"
#include "windows.cuh"

#define MAX(a, b) ((a) > (b) ? (a) : (b))
#define MAIN_WARPS (STRIP / WARP_PIXELS)
// Warps for the halo on each side: a group of lanes per column, except the column that is only
// received. With TASKS, a group takes two columns, because a halo column has one path, not three.
#define HALO_GROUPS (TASKS ? HALO / 2 : HALO - 1)
#define HALO_WARPS (DIAGONALS ? (HALO_GROUPS + WARP_PIXELS - 1) / WARP_PIXELS : 0)
// With range windows the right view is matched by SEGMENT columns of a strip and a block at a time.
#define SEGMENT WARP_PIXELS
#define DIAGONALS_OF_BLOCK (SEGMENT + REGISTERS)
#define RIGHT_THREADS (WINDOWED ? GROUP * DIAGONALS_OF_BLOCK : HALF_DISPARITIES + STRIP - 1)
#define RIGHT_WARPS (LEFT_RIGHT ? (RIGHT_THREADS + 31) / 32 : 0)
// With SELECT, as many warps as MAIN_WARPS pick the winners, RIGHT_WARPS match the right view, and
// one completes the pixels. The last warp loads. The main warps of tasks along vertical paths only
// pick the winners themselves: two such blocks fit, and each works while the other waits.
#define PICKS_APART (!TASKS || DIAGONALS)
#define PICK_WARPS (SELECT && PICKS_APART ? MAIN_WARPS : 0)
#define SUPPORT_WARPS (PICK_WARPS + (SELECT ? RIGHT_WARPS + 1 : 0) + 1)
// With TASKS, one more warp takes tasks and fetches their initial path states.
#define SWEEP_THREADS (32 * (MAIN_WARPS + 2 * HALO_WARPS + SUPPORT_WARPS + TASKS))
// Threads of the selecting warps, and of the others, which share the row barrier.
#define SELECT_THREADS (32 * (SUPPORT_WARPS - 1))
#define ROW_THREADS (SWEEP_THREADS - SELECT_THREADS)
// Barriers of a block. FULL tells the selecting warps that a tile's sums are complete; FREE tells
// the main warps that the tile may be overwritten.
#define ROW_BARRIER 1
#define SELECT_BARRIER 2
#define FULL_BARRIER(i) (3 + (u32)(i) % TILES)
#define FREE_BARRIER(i) (3 + TILES + (u32)(i) % TILES)
// Columns whose diagonal path vectors a block holds.
#define SLOTS (STRIP + HALO)
// Words per lane of stored sums of path deltas. Sums are stored as bytes if they fit.
#define SUM_BYTES ((1 + 2 * DIAGONALS) * P2 <= 255)
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
// A column's sums are HALF_DISPARITIES words, padded so that diagonals through the tile stay
// inside or, where these lie in blocks, for the banks.
#define TILE_PITCH (HALF_DISPARITIES + (WINDOWED ? 4 : STRIP))
#define TILE_WORDS (STRIP + STRIP * TILE_PITCH)
#define KEY_WORDS (SELECT ? TILES * TILE_WORDS : 0)
#define BEST_WORDS (SELECT ? 2 * 2 * STRIP : 0)
static_assert(PICKS_APART || TILES <= 2, "the winners of two rows have room");
// With TASKS: the initial path states of the next task, vertical paths first, then both diagonals,
// each vector followed by its least value; then the ring of tasks.
#define STATE_PITCH (HALF_DISPARITIES + 4)
#define BEGIN_STATES (STRIP + DIAGONALS * 2 * SLOTS)
#define TASK_RING 8
#define TASK_WORDS (TASKS ? BEGIN_STATES * STATE_PITCH + TASK_RING : 0)
// With range windows: the path costs of a block that the tile before has not.
#define NOTHING_WORDS (WINDOWED * (HALF_DISPARITIES + ACCESS))
#define SHARED_WORDS                                                                                         \
    (PATH_WORDS + STORED_RING_WORDS + KEY_WORDS + WINDOWS_WORDS + LEAST_WORDS + BEST_WORDS + NOTHING_WORDS + \
     TASK_WORDS)

struct Shared {
    u32 *paths, *stored, *keys, *windows, *leasts, *bests, *nothing, *states, *tasks;
    __device__ __forceinline__ explicit Shared(u32 *words) {
        paths = words;
        stored = paths + PATH_WORDS;
        keys = stored + STORED_RING_WORDS;
        windows = keys + KEY_WORDS;
        leasts = windows + WINDOWS_WORDS;
        bests = leasts + LEAST_WORDS;
        nothing = bests + BEST_WORDS;
        states = nothing + NOTHING_WORDS;
        tasks = states + BEGIN_STATES * STATE_PITCH;
    }
    // Returns a task's initial state in column `column` of the strip. Path 0 is vertical; the
    // others are diagonal and include columns of the halo.
    __device__ __forceinline__ u32 *state(int path, int column) const {
        return states + (path == 0 ? column : STRIP + (path - 1) * SLOTS + column + (path == 1 ? HALO : 0)) * STATE_PITCH;
    }
    // The vector that a path brings into a column, in these lanes.
    __device__ __forceinline__ Vector entering(const u32 *words, u32 entry) const {
        return get_interleaved(WINDOWED && entry == NOWHERE ? nothing : words, entry);
    }
    __device__ __forceinline__ Vector begin(int path, int column, u32 entry, u32 &least_of_it) const {
        const u32 *words = state(path, column);
        least_of_it = words[HALF_DISPARITIES];
        return entering(words, entry);
    }
    // Returns the sums of row `i`, at column 0.
    __device__ __forceinline__ u32 *tile(u32 i) const { return keys + i % TILES * TILE_WORDS + STRIP; }
    // Returns the best key and the number of rivals of each column of row `i`.
    __device__ __forceinline__ u32 *best(u32 i) const { return bests + (i & 1) * (2 * STRIP); }
    __device__ __forceinline__ u32 *window(u32 i) const {
        return windows + i % WINDOWS * ((WINDOW_WORDS + 3) / 4 * 4);
    }
    // Diagonal 0 comes from the left, its slot 0 is column -HALO; diagonal 1 from the right, its
    // slot 0 is column 0.
    __device__ __forceinline__ u32 *vector(int diagonal, int buffer, int slot) const {
        return paths + ((diagonal * 2 + buffer) * SLOTS + slot) * HALF_DISPARITIES;
    }
    __device__ __forceinline__ u32 *least(int diagonal, int buffer, int slot) const {
        return leasts + (diagonal * 2 + buffer) * ((SLOTS + 3) / 4 * 4) + slot;
    }
    __device__ __forceinline__ Vector get(int diagonal, int buffer, int slot, u32 entry, u32 &least_of_it) const {
        least_of_it = *least(diagonal, buffer, slot);
        return entering(vector(diagonal, buffer, slot), entry);
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

// Path states in memory, kept between the two launches of a frame or, with TASKS, at the end of
// each band: [2 alternating bands with TASKS][2 sweeps][SWEEP_PATHS][columns][STATE_PITCH]. Each
// state is a vector followed by its least value.
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

// Stores the sum of path deltas over all paths of a sweep.
__device__ __forceinline__ void store_sum(u32 *pixel, u32 lane, const Vector &sum) {
#if SUM_BYTES
    u32 words[BYTE_WORDS];
    pack(sum, words);
    store_words(pixel + lane * BYTE_WORDS, words);
#else
    put_interleaved(pixel, lane, sum);
#endif
}
