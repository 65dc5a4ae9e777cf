// What the blocks of a sweep share and exchange (sweep.cu).
#pragma once
#define WINDOW_COLUMNS (STRIP + 2 * TRADE + 2 * MARGIN)
#include "cost.cuh"
#include "volume.cuh"

#ifndef DIRECTION
#define DIRECTION 0
#endif
#define MAX(a, b) ((a) > (b) ? (a) : (b))
#define MAIN_WARPS (STRIP / PIXELS)
// Warps for each border of the strip: a group of lanes for each column but the one that is only
// received.
#define BORDER_WARPS (DIAGONALS ? (TRADE - 1 + PIXELS - 1) / PIXELS : 0)
#define RIGHT_WARPS (LEFT_RIGHT ? (DH + STRIP - 1 + 31) / 32 : 0)
// With FINISH as many as main warps pick the winners, others match the right picture's pixels, and one
// completes the pixels. The last one loads.
#define PICK_WARPS (FINISH ? MAIN_WARPS : 0)
#define SUPPORT_WARPS (PICK_WARPS + (FINISH ? RIGHT_WARPS + 1 : 0) + 1)
#define THREADS (32 * (MAIN_WARPS + 2 * BORDER_WARPS + SUPPORT_WARPS))
// Rows of windows in shared memory, and rows of stored sums on their way; powers of two.
#define WINDOWS 8
#define AHEAD 4
// Taking the least path cost off in every row only keeps numbers small: a path cost grows by at most
// COST_MAX a row. Where the sum of three stays below 2048, the last integer that half-floats hold, it
// is done once an exchange.
#define LAZY (3 * (255 + TRADE * COST_MAX) <= 2047)
// Columns whose diagonal path vectors a block holds.
#define SLOTS (STRIP + TRADE)
// Words a lane of stored sums: bytes where they fit.
#define SUM_BYTES ((1 + 2 * DIAGONALS) * P2_MAX <= 255)
#define SUM_WORDS (SUM_BYTES ? BYTE_WORDS : R)
#define STORED_WORDS (SUM_WORDS * OTHER_SUMS + 2 * BYTE_WORDS)

// Rows of a launch in their order. With HALVES two sweeps share the picture: each first goes to the
// middle and, in a second launch, on from there. Otherwise one sweep takes all rows.
struct Rows {
    int first, step, count;
    bool resumed;
    __device__ __forceinline__ Rows(int direction, int height) {
        const int middle = height / 2;
        step = direction == 0 ? 1 : -1;
        if (HALVES) {
            first = direction == 0 ? (FINISH ? middle : 0) : (FINISH ? middle - 1 : height - 1);
            count = (direction == 0) != FINISH ? middle : height - middle;
            resumed = FINISH && (direction == 0 ? middle : height - middle) > 0;
        } else {
            first = direction == 0 ? 0 : height - 1;
            count = height;
            resumed = false;
        }
    }
    __device__ __forceinline__ int at(int i) const { return first + step * i; }
};

// Where the result goes: a word a pixel, the disparity in its low half and the number of the winner in
// its high one; and a word for each pixel of the right picture, the least (sum << 10 | candidate).
struct Results {
    u32 *winners;
    u32 *right;
};

// A vector in shared memory: registers 4k .. 4k + 3 of all lanes behind each other, so that 16-byte
// accesses of neighbouring lanes never meet in a bank.
__device__ __forceinline__ void put_chunks(u32 *to, u32 lane, const Vector &a) {
#if R % 4 == 0
#pragma unroll
    for (int k = 0; k < R; k += 4)
        *(uint4 *)(to + (k / 4 * G + lane) * 4) = make_uint4(a.v[k], a.v[k + 1], a.v[k + 2], a.v[k + 3]);
#else
#pragma unroll
    for (int k = 0; k < R; k += 2)
        *(uint2 *)(to + (k / 2 * G + lane) * 2) = make_uint2(a.v[k], a.v[k + 1]);
#endif
}
__device__ __forceinline__ Vector get_chunks(const u32 *from, u32 lane) {
    Vector a;
#if R % 4 == 0
#pragma unroll
    for (int k = 0; k < R; k += 4) {
        uint4 four = *(const uint4 *)(from + (k / 4 * G + lane) * 4);
        a.v[k] = four.x, a.v[k + 1] = four.y, a.v[k + 2] = four.z, a.v[k + 3] = four.w;
    }
#else
#pragma unroll
    for (int k = 0; k < R; k += 2) {
        uint2 two = *(const uint2 *)(from + (k / 2 * G + lane) * 2);
        a.v[k] = two.x, a.v[k + 1] = two.y;
    }
#endif
    return a;
}

// The layout of a block's shared memory.
#define PATH_WORDS (DIAGONALS * 2 * 2 * SLOTS * DH)
#define LEAST_WORDS (DIAGONALS * 2 * 2 * ((SLOTS + 3) / 4 * 4))
#define WINDOWS_WORDS (WINDOWS * ((WINDOW_WORDS + 3) / 4 * 4))
#define STORED_RING_WORDS (FINISH ? AHEAD * STORED_WORDS * MAIN_WARPS * 32 : 0)
// Rows of sums in work: one is written, one becomes keys, one is matched from the right, one is
// completed.
#define TILES 4
// A column's sums are DH words with as much room around them as a diagonal through the tile needs.
#define TILE_PITCH (DH + STRIP)
#define TILE_WORDS (STRIP + STRIP * TILE_PITCH)
#define KEY_WORDS (FINISH ? TILES * TILE_WORDS : 0)
#define BEST_WORDS (FINISH ? 2 * 2 * STRIP : 0)
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
    // Diagonal 0 comes from the left, its slot 0 is column -TRADE; diagonal 1 from the right, its slot
    // 0 is column 0.
    __device__ __forceinline__ u32 *vector(int diagonal, int buffer, int slot) const {
        return paths + ((diagonal * 2 + buffer) * SLOTS + slot) * DH;
    }
    __device__ __forceinline__ u32 *least(int diagonal, int buffer, int slot) const {
        return leasts + (diagonal * 2 + buffer) * ((SLOTS + 3) / 4 * 4) + slot;
    }
    __device__ __forceinline__ Vector get(int diagonal, int buffer, int slot, u32 lane, u32 &least_of_it) const {
        least_of_it = *least(diagonal, buffer, slot);
        return get_chunks(vector(diagonal, buffer, slot), lane);
    }
    __device__ __forceinline__ void put_vector(int diagonal, int buffer, int slot, u32 lane, const Vector &a) const {
        put_chunks(vector(diagonal, buffer, slot), lane, a);
    }
    __device__ __forceinline__ void put_least(int diagonal, int buffer, int slot, u32 value) const {
        *least(diagonal, buffer, slot) = value;
    }
    __device__ __forceinline__ void put(int diagonal, int buffer, int slot, u32 lane, const Vector &a, u32 least_of_it) const {
        put_vector(diagonal, buffer, slot, lane, a);
        if (lane == 0) put_least(diagonal, buffer, slot, least_of_it);
    }
};

// Path vectors between the two launches of a frame: [sweep][path][columns][DH words].
__device__ __forceinline__ Vector read_state(const u32 *state, int path, int columns, int x, u32 lane) {
    return get_chunks(state + ((size_t)path * columns + x) * DH, lane);
}
__device__ __forceinline__ void write_state(u32 *state, int path, int columns, int x, u32 lane, const Vector &a) {
    put_chunks(state + ((size_t)path * columns + x) * DH, lane, a);
}

// Writes a sum of L - C over the paths of a sweep.
__device__ __forceinline__ void store_sum(u32 *pixel, u32 lane, const Vector &sum) {
#if SUM_BYTES
    u32 words[BYTE_WORDS];
    pack(sum, words);
    store_words(pixel + lane * BYTE_WORDS, words);
#else
    put_chunks(pixel, lane, sum);
#endif
}
