// Selects the winner of each pixel from the sums of a row in shared memory (winner takes all), with
// uniqueness, sub-pixel refinement and the winners of the right image's pixels.
//
// A row's keys are a sum and a number that tells equal sums apart, so a minimum of 16-bit values
// finds the smallest sum and, among equals, the smallest disparity.
#pragma once
#include "disparity.cuh"
#include "stored_deltas.cuh"

// A key of a row of sums in shared memory is the sum, NO_SUM for a candidate beyond the range or a
// pixel beyond the image, times KEY_NUMBERS plus a number.
#define KEY_NUMBERS 32
static_assert(STRIP <= KEY_NUMBERS && REGISTERS <= KEY_NUMBERS, "geometry.rs: STRIP_MAX");
static_assert(SUM_MAX < NO_SUM && NO_SUM * KEY_NUMBERS + KEY_NUMBERS <= 1 << 16, "a key is a half");
// The number of paths as a half-float, in both halves.
#define PATHS_HALF_FLOAT both(PATHS == 8 ? 0x4800u : PATHS == 5 ? 0x4500u : 0x4400u)

#if SELECT
// The range windows that a selecting warp needs in its row, read again when it enters other tiles.
struct TilesOfRow {
#if WINDOWED
    int strip = -1, row = -1;
    Blocks blocks = {};
    u32 segments[STRIP / SEGMENT] = {};  // The block of a lane in each segment of the strip.

    __device__ __forceinline__ bool is_new(const RowCursor &cursor) {
        if (cursor.strip == strip && cursor.y / WINDOW_TILE == row) return false;
        strip = cursor.strip, row = cursor.y / WINDOW_TILE;
        return true;
    }
    __device__ __forceinline__ void enter(const RangeWindows &windows, const RowCursor &cursor, int column) {
        if (is_new(cursor)) blocks = windows.of(strip * STRIP + column, cursor.y);
    }
    __device__ __forceinline__ void enter_segments(const RangeWindows &windows, const RowCursor &cursor, u32 lane) {
        if (!is_new(cursor)) return;
#pragma unroll
        for (int i = 0; i < STRIP / SEGMENT; i++)
            segments[i] = windows.of(strip * STRIP + i * SEGMENT, cursor.y).of(lane % GROUP);
    }
    __device__ __forceinline__ u32 part(u32 lane) const { return 2 * blocks.of(lane); }
#else
    __device__ __forceinline__ void enter(const RangeWindows &, const RowCursor &, int) {}
    __device__ __forceinline__ void enter_segments(const RangeWindows &, const RowCursor &, u32) {}
    __device__ __forceinline__ u32 part(u32 lane) const { return lane; }
#endif
};

__device__ __forceinline__ void put_tile(u32 *tile, const Vector &a, u32 lane) {
#pragma unroll
    for (int k = 0; k < REGISTERS; k += ACCESS) put_words<ACCESS>(tile + lane * REGISTERS + k, a.v + k);
}
__device__ __forceinline__ Vector get_tile(const u32 *tile, u32 lane) {
    Vector a;
#pragma unroll
    for (int k = 0; k < REGISTERS; k += ACCESS) get_words<ACCESS>(tile + lane * REGISTERS + k, a.v + k);
    return a;
}

// This sweep's part of S: its own path deltas and the cost of all paths.
__device__ __forceinline__ Vector part_of_sum(const Vector &sum, const Vector &c) {
    Vector s;
#pragma unroll
    for (int j = 0; j < REGISTERS; j++) s.v[j] = fma2(c.v[j], PATHS_HALF_FLOAT, sum.v[j]);
    return s;
}

// State of a pixel's lanes between two steps of selecting its winner: the sums, the least key of
// this lane's registers, and the part of the candidates that they are.
struct Picked {
    Vector sum;
    u32 least, part;
};

// First step of row `i`: adds the stored deltas to this sweep's part of a column's sums and stores
// them as keys.
__device__ __forceinline__ Picked pick(u32 *tile, const Vector &own, StoredDeltas &stored, int i, int column,
                                       int first_column, int width, u32 part, u32 lane) {
    Picked picked = {own, 0xffffffffu, part};
    Vector &sum = picked.sum;
    stored.add(i, sum);
    // A key's tie-breaking number is the register in registers, and the column in shared memory. Columns beside the
    // picture have none that wins.
    const bool inside = first_column + column < width;
    const u32 factor = inside ? KEY_NUMBERS : 0, number = inside ? both(column) : 0xffffffffu;
    Vector keys;
#pragma unroll
    for (int j = 0; j < REGISTERS; j += 2) {
        u32 beyond[2] = {0, 0};
        if (HAS_PADDING) {
            beyond[0] = (padding(part, j) >> 14) * 0xffffu;
            beyond[1] = (padding(part, j + 1) >> 14) * 0xffffu;
        }
        keys.v[j] = (sum.v[j] * factor + number) | beyond[0];
        keys.v[j + 1] = (sum.v[j + 1] * factor + number) | beyond[1];
        picked.least = min3_full(picked.least, (sum.v[j] * KEY_NUMBERS + both(j)) | beyond[0],
                                 (sum.v[j + 1] * KEY_NUMBERS + both(BREAK(tie, j + 1, j))) | beyond[1]);
    }
    put_tile(tile, keys, lane);
    return picked;
}

// Second step of row `i`: finds the winner's key (disparity.cuh) and the number of candidates that
// make it ambiguous, or with CONFIDENCE the sum of the best rival. It runs one row later, so that
// the first step of the next row hides the latency of its shuffles.
__device__ __forceinline__ void compare(const Shared &shared, const Picked &picked, int i, int column, u32 lane) {
    const u32 low = picked.least & 0xffff, high = picked.least >> 16;
    const u32 part = picked.part, first = part * REGISTERS;
    u32 best = min(winner_key(low / KEY_NUMBERS, first + low % KEY_NUMBERS),
                   winner_key(high / KEY_NUMBERS, HIGH_HALF + first + high % KEY_NUMBERS));
#pragma unroll
    for (int step = 1; step < GROUP; step *= 2) best = min(best, __shfl_xor_sync(LANES_MASK, best, step));
    u32 rivals = 0;
#if CONFIDENCE
    // The winner and its neighbours are no rivals. `before`: number of the candidate before the winner,
    // counted from this lane's first register.
    const int before = key_candidate(best) - 1 - (int)first;
    rivals = 0xffffffffu;
#pragma unroll
    for (int j = 0; j < REGISTERS; j += 2) {
        u32 other[2];
#pragma unroll
        for (int k = 0; k < 2; k++) {
            const u32 near_low = (u32)(j + k - before) <= BREAK(near_rival, 2u, 1u) ? 0xffffu : 0;
            const u32 near_high = (u32)(j + k + HIGH_HALF - before) <= 2 ? 0xffff0000u : 0;
            other[k] = picked.sum.v[j + k] | near_low | near_high;
            if (HAS_PADDING) other[k] |= (padding(part, j + k) >> 14) * 0xffffu;
        }
        rivals = min3_full(rivals, other[0], other[1]);
    }
    rivals = min(rivals & 0xffff, rivals >> 16);
#pragma unroll
    for (int step = 1; step < GROUP; step *= 2) rivals = min(rivals, __shfl_xor_sync(LANES_MASK, rivals, step));
#elif UNIQUENESS
    // Bit 15 of a half says whether the sum is within the limit.
    const u32 limits = both(ambiguous_below(key_sum(best))) + 0x7fff7fffu;
#pragma unroll
    for (int j = 0; j < REGISTERS; j += 2) {
        u32 a = limits - picked.sum.v[j], b = limits - picked.sum.v[j + 1];
        if (HAS_PADDING) a &= ~(padding(part, j) << 1), b &= ~(padding(part, j + 1) << 1);
        rivals |= signs(a, b) & 0x01010101u << j / 2;
    }
    rivals = __popc(rivals);
#pragma unroll
    for (int step = 1; step < GROUP; step *= 2) rivals += __shfl_xor_sync(LANES_MASK, rivals, step);
#endif
    if (lane == 0) *(uint2 *)(shared.best(i) + 2 * column) = make_uint2(best, rivals);
}

// Third step of row `i`, one thread per column: uniqueness, sub-pixel refinement and the peak.
__device__ __forceinline__ void complete(const Shared &shared, int i, int first_column, int width, int y,
                                         int columns, u32 *winners, u8 *peaks, const TilesOfRow &tiles) {
    const int column = threadIdx.x % 32, x = first_column + column;
    if (column >= STRIP || x >= width) return;
    const uint2 word = *(const uint2 *)(shared.best(i) + 2 * column);
    const u32 *tile = shared.tile(i) + column * TILE_PITCH;
    const int winner = key_candidate(word.x), b = key_sum(word.x);
    auto sum_at = [&](int d) -> int {
        if (d < 0 || d >= DISPARITIES) return NO_SUM;
#if WINDOWED
        const u32 lane = tiles.blocks.lane_of(d / BLOCK_CANDIDATES);
        if (lane == NOWHERE) return NO_SUM;
        const u32 pair = tile[lane * REGISTERS + d % REGISTERS];
        const bool low = d % BLOCK_CANDIDATES < HIGH_HALF;
#else
        const u32 pair = tile[d % HALF_DISPARITIES];
        const bool low = d < HALF_DISPARITIES;
#endif
        return (low ? pair & 0xffff : pair >> 16) / KEY_NUMBERS;
    };
    const int a = sum_at(winner - 1), c = sum_at(winner + 1);
    int disparity = (MIN_DISPARITY + winner) * SUBPIXEL_STEPS;
#if SUBPIXEL
    disparity += refine_subpixel(a, b, c, a != NO_SUM && c != NO_SUM);
#endif
#if CONFIDENCE
    peaks[(size_t)y * columns + x] = peak_of(b, word.y);
#endif
#if UNIQUENESS && CONFIDENCE
    if (word.y < ambiguous_below(b)) disparity = INVALID;
#elif UNIQUENESS
    // The winner and its neighbours are no rivals.
    const int limit = (int)ambiguous_below(b) - 1;
    if ((int)word.y > (b <= limit) + (a <= limit) + (c <= limit)) disparity = INVALID;
#endif
    winners[(size_t)y * columns + x] = winner_word(disparity, winner);
}

#if LEFT_RIGHT
// Matches the right view in row `i`, one thread per diagonal of keys: candidate r of column c looks
// at right column x + c - MIN_DISPARITY - r, so a diagonal is one right column, and the high halves
// are the one HALF_DISPARITIES before it. With range windows, by segments and blocks.
__device__ __forceinline__ void match_right(const Shared &shared, int i, int thread, int first_column,
                                            int width, int y, u32 *right, const TilesOfRow &tiles) {
    const u32 *tile = shared.tile(i);
#if WINDOWED
    if (thread >= RIGHT_THREADS) return;
    const int lane = thread / DIAGONALS_OF_BLOCK;
    // The register that the diagonal meets in the segment's first column; others of it lie outside.
    const int begin = thread % DIAGONALS_OF_BLOCK - (SEGMENT - 1);
#pragma unroll
    for (int segment = 0; segment < STRIP; segment += SEGMENT) {
        const int first = tiles.segments[segment / SEGMENT] * BLOCK_CANDIDATES + begin;
        auto key_of = [&](int c) {
            const bool inside = begin + c >= 0 && begin + c < REGISTERS;
            return inside ? tile[(segment + c) * TILE_PITCH + lane * REGISTERS + begin + c] : 0xffffffffu;
        };
        u32 least = 0xffffffffu;
#pragma unroll
        for (int c = 0; c < SEGMENT; c += 2) least = min3_full(least, key_of(c), key_of(c + 1));
#pragma unroll
        for (int half = 0; half < 2; half++) {
            const u32 key = half == 0 ? least & 0xffff : least >> 16;
            const int r = (int)(key % KEY_NUMBERS) - segment + first + half * HIGH_HALF;
            const int x = first_column + segment - first - half * HIGH_HALF - MIN_DISPARITY;
            if (key / KEY_NUMBERS != NO_SUM && x >= BREAK(right_segment, 0, 4) && x < width)
                atomicMin(right + (size_t)y * width + x, winner_key(key / KEY_NUMBERS, r));
        }
    }
#else
    u32 least = 0xffffffffu;
    // Candidate c - (STRIP - 1) + thread of column c; the padding around a column holds no
    // candidates.
    const u32 *diagonal = tile - (STRIP - 1) + min(thread, HALF_DISPARITIES + STRIP - 1);
#pragma unroll
    for (int c = 0; c < STRIP; c += 2)
        least = min3_full(least, diagonal[c * (TILE_PITCH + 1)], diagonal[(c + 1) * (TILE_PITCH + 1)]);
#pragma unroll
    for (int half = 0; half < 2; half++) {
        u32 key = half == 0 ? least & 0xffff : least >> 16;
        int r = (int)(key % KEY_NUMBERS) - BREAK(right_candidate, STRIP - 1, STRIP - 3) + thread;
        int x = first_column + STRIP - 1 - thread - MIN_DISPARITY - half * HALF_DISPARITIES;
        if (key / KEY_NUMBERS != NO_SUM && x >= 0 && x < width)
            atomicMin(right + (size_t)y * width + x,
                      winner_key(key / KEY_NUMBERS, r + half * HALF_DISPARITIES));
    }
#endif
}
#endif

#endif
