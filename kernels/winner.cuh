// The winner of a pixel, its uniqueness and its place between two candidates, and the winners of the
// right picture's pixels, from the sums of a row in shared memory.
//
// A key is a sum (at most 2040) times 32 plus a number below 32 that tells equal sums apart, so a
// minimum of 16-bit values finds the smallest sum and, among equals, the smallest disparity.
#pragma once
#include "stored.cuh"

// Disparity of a pixel that has none.
#define INVALID (-32768)
// Sum in a key of a candidate beyond the range or of a pixel beyond the picture.
#define NO_SUM 2047u

#if FINISH
__device__ __forceinline__ void put_tile(u32 *tile, const Vector &a, u32 lane) {
#if R % 4 == 0
#pragma unroll
    for (int k = 0; k < R; k += 4)
        *(uint4 *)(tile + lane * R + k) = make_uint4(a.v[k], a.v[k + 1], a.v[k + 2], a.v[k + 3]);
#else
#pragma unroll
    for (int k = 0; k < R; k += 2) *(uint2 *)(tile + lane * R + k) = make_uint2(a.v[k], a.v[k + 1]);
#endif
}
__device__ __forceinline__ Vector get_tile(const u32 *tile, u32 lane) {
    Vector a;
#if R % 4 == 0
#pragma unroll
    for (int k = 0; k < R; k += 4) {
        uint4 four = *(const uint4 *)(tile + lane * R + k);
        a.v[k] = four.x, a.v[k + 1] = four.y, a.v[k + 2] = four.z, a.v[k + 3] = four.w;
    }
#else
#pragma unroll
    for (int k = 0; k < R; k += 2) {
        uint2 two = *(const uint2 *)(tile + lane * R + k);
        a.v[k] = two.x, a.v[k + 1] = two.y;
    }
#endif
    return a;
}

#if UNIQUENESS
// A rival's sum s makes the winner's sum b ambiguous where s * (100 - UNIQUENESS) < b * 100: the first
// sum that does not, at most NO_SUM.
__device__ __forceinline__ u32 ambiguous_below(u32 b) {
    return min((b * 100 + 99 - UNIQUENESS) / (100 - UNIQUENESS), NO_SUM);
}
#endif

// What this sweep knows of S: its own paths' L - C and the cost of all paths.
__device__ __forceinline__ void put_sums(u32 *tile, const Vector &sum, const Vector &c, u32 lane) {
    Vector s;
#pragma unroll
    for (int j = 0; j < R; j++) s.v[j] = fma2(c.v[j], PATHS == 8 ? 0x48004800u : PATHS == 5 ? 0x45004500u : 0x44004400u, sum.v[j]);
    put_tile(tile, s, lane);
}

// What a pixel's lanes keep of a row from one step of picking its winner to the next: the sums, and the
// least key of this lane's registers.
struct Picked {
    Vector sum;
    u32 least;
};

// Row `i`, first step: completes the sums of a column with what is stored and leaves them as keys.
__device__ __forceinline__ Picked pick(const Shared &shared, Stored &stored, int i, int column, int first_column,
                                       int width, u32 lane) {
    u32 *tile = shared.tile(i) + column * TILE_PITCH;
    Picked picked = {get_tile(tile, lane), 0xffffffffu};
    Vector &sum = picked.sum;
    stored.add(i, sum);
    // In registers a key's number is that of the register, in shared memory that of the column.
    Vector keys;
#pragma unroll
    for (int j = 0; j < R; j += 2) {
        u32 beyond[2] = {0, 0};
        if (D < DP) {
            beyond[0] = (padding(lane, j) >> 14) * 0xffffu;
            beyond[1] = (padding(lane, j + 1) >> 14) * 0xffffu;
        }
        keys.v[j] = (sum.v[j] * 32 + both(column)) | beyond[0];
        keys.v[j + 1] = (sum.v[j + 1] * 32 + both(column)) | beyond[1];
        picked.least = min3_full(picked.least, (sum.v[j] * 32 + both(j)) | beyond[0],
                                 (sum.v[j + 1] * 32 + both(j + 1)) | beyond[1]);
    }
    if (first_column + STRIP > width && first_column + column >= width) keys = filled(0xffffffffu);
    put_tile(tile, keys, lane);
    return picked;
}

// Row `i`, second step: the winner's (sum << 10 | candidate), and how many candidates are good enough
// to make it ambiguous. A step of its own, a row later, because the lanes wait for each other most of
// its time, which the first step of the next row fills.
__device__ __forceinline__ void compare(const Shared &shared, const Picked &picked, int i, int column, u32 lane) {
    const u32 low = picked.least & 0xffff, high = picked.least >> 16;
    u32 best = min((low >> 5) << 10 | (lane * R + (low & 31)), (high >> 5) << 10 | (DH + lane * R + (high & 31)));
#pragma unroll
    for (int step = 1; step < G; step *= 2) best = min(best, __shfl_xor_sync(LANES_MASK, best, step));
    u32 rivals = 0;
#if UNIQUENESS
    // Bit 15 of a half says whether the sum is within the limit.
    const u32 limits = both(ambiguous_below(best >> 10)) + 0x7fff7fffu;
#pragma unroll
    for (int j = 0; j < R; j += 2) {
        u32 a = limits - picked.sum.v[j], b = limits - picked.sum.v[j + 1];
        if (D < DP) a &= ~(padding(lane, j) << 1), b &= ~(padding(lane, j + 1) << 1);
        rivals |= signs(a, b) & 0x01010101u << j / 2;
    }
    rivals = __popc(rivals);
#pragma unroll
    for (int step = 1; step < G; step *= 2) rivals += __shfl_xor_sync(LANES_MASK, rivals, step);
#endif
    if (lane == 0) *(uint2 *)(shared.best(i) + 2 * column) = make_uint2(best, rivals);
}

// Row `i`, third step, one thread a column: uniqueness and the place between the candidates.
__device__ __forceinline__ void complete(const Shared &shared, int i, int first_column, int width, int y,
                                         int columns, const Results &results) {
    const int column = threadIdx.x % 32, x = first_column + column;
    if (column >= STRIP || x >= width) return;
    const uint2 word = *(const uint2 *)(shared.best(i) + 2 * column);
    const u32 *tile = shared.tile(i) + column * TILE_PITCH;
    const int winner = word.x & 1023, b = word.x >> 10;
    auto sum_at = [&](int d) -> int {
        if (d < 0 || d >= D) return NO_SUM;
        u32 pair = tile[d % DH];
        return (d < DH ? pair & 0xffff : pair >> 16) >> 5;
    };
    const int a = sum_at(winner - 1), c = sum_at(winner + 1);
    int disparity = (D_MIN + winner) * 16;
#if SUBPIXEL
    const int den = a + c - 2 * b;
    // |a - c| <= den, so 32 den more make the numerator positive and the division a floor.
    if (winner > 0 && winner + 1 < D && den != 0) disparity += (16 * (a - c) + 33 * den) / (2 * den) - 16;
#endif
#if UNIQUENESS
    // The winner and its neighbours are no rivals.
    const int limit = (int)ambiguous_below(b) - 1;
    if ((int)word.y > (b <= limit) + (a <= limit) + (c <= limit)) disparity = INVALID;
#endif
    results.winners[(size_t)y * columns + x] = (disparity & 0xffff) | winner << 16;
}

#if LEFT_RIGHT
// Row `i`, one thread for each diagonal of its keys: candidate r of column c looks at right column
// x + c - D_MIN - r, so a diagonal is one right column, and the high halves are the one DH before it.
__device__ __forceinline__ void match_right(const Shared &shared, int i, int thread, int first_column,
                                            int width, int y, const Results &results) {
    const u32 *tile = shared.tile(i);
    u32 least = 0xffffffffu;
    // Candidate c - (STRIP - 1) + thread of column c; outside a column's candidates there are none.
    const u32 *diagonal = tile - (STRIP - 1) + min(thread, DH + STRIP - 1);
#pragma unroll
    for (int c = 0; c < STRIP; c += 2)
        least = min3_full(least, diagonal[c * (TILE_PITCH + 1)], diagonal[(c + 1) * (TILE_PITCH + 1)]);
#pragma unroll
    for (int half = 0; half < 2; half++) {
        u32 key = half == 0 ? least & 0xffff : least >> 16;
        int r = (int)(key & 31) - (STRIP - 1) + thread;
        int x = first_column + STRIP - 1 - thread - D_MIN - half * DH;
        if (key >> 5 != NO_SUM && x >= 0 && x < width)
            atomicMin(results.right + (size_t)y * width + x, (key >> 5) << 10 | (r + half * DH));
    }
}
#endif

#endif
