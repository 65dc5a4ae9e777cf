// Vectors of candidates spread over the lanes of a warp, and the few instructions they need.
//
// A pixel's PADDED_DISPARITIES candidates live in GROUP neighbouring lanes with REGISTERS registers
// each. A register holds two unsigned 16-bit values: in its low half candidate d = lane * REGISTERS
// + j, in its high half d + HALF_DISPARITIES. So the neighbours d - 1 and d + 1 of register j are
// registers j - 1 and j + 1, and only the first and the last register of a lane look at another
// lane.
//
// With range windows (WINDOWED, windows.cuh) a pixel tries only some blocks of the range's candidates.
// Each lane then holds a whole block, whose second half lies in the high halves.
//
// The engine compiles the kernels for one range of disparities (geometry.rs):
//   DISPARITIES   number of candidates
//   GROUP         lanes that share a pixel's candidates
//   REGISTERS     registers of each of them
//   WINDOWED      1 with range windows
//
// Path costs and their sums over eight paths leave the upper bits of a half free: candidates beyond
// the range hold INFINITE there.
#pragma once

#include "bytes.cuh"

// Candidates with padding, and half of them.
#define PADDED_DISPARITIES (2 * GROUP * REGISTERS)
#define HALF_DISPARITIES (GROUP * REGISTERS)
// Candidates from a register's low half to its high one, the candidates of the range with padding, and
// whether any of them is beyond the range.
#if WINDOWED
#define BLOCK_CANDIDATES (2 * REGISTERS)
#define HIGH_HALF REGISTERS
#define PADDED_RANGE ((DISPARITIES + BLOCK_CANDIDATES - 1) / BLOCK_CANDIDATES * BLOCK_CANDIDATES)
#define HAS_PADDING (DISPARITIES < PADDED_RANGE)
#else
#define HIGH_HALF HALF_DISPARITIES
#define PADDED_RANGE PADDED_DISPARITIES
#define HAS_PADDING (DISPARITIES < PADDED_DISPARITIES)
#endif
// Pixels that a warp holds at once.
#define WARP_PIXELS (32 / GROUP)
// Most that a path cost and a sum over eight paths can be, and the last integer that half-float
// arithmetic on its bits keeps exact (instructions.cuh).
#define PATH_COST_MAX 255
#define SUM_MAX (8 * PATH_COST_MAX)
#define HALF_FLOAT_MAX 2047
static_assert(SUM_MAX < HALF_FLOAT_MAX, "sums are exact, and one larger is left to mark what has none");
// A path cost that never wins, in both halves. As the bits of a half-float it is finite, so that
// half-float minima order it as the integer minima do.
#define INFINITE 0x40004000u

// Number of this lane in its group, and of the group in its warp.
__device__ __forceinline__ u32 group_lane() { return threadIdx.x % GROUP; }
__device__ __forceinline__ int warp_group() { return threadIdx.x % 32 / GROUP; }

// A vector of candidates: this lane's share.
struct Vector {
    u32 v[REGISTERS];
};

__device__ __forceinline__ Vector filled(u32 value) {
    Vector a;
#pragma unroll
    for (int j = 0; j < REGISTERS; j++) a.v[j] = value;
    return a;
}

// INFINITE where register j of a lane holds a candidate beyond the range, as a mask to or. The low
// halves of the lane hold the candidates from REGISTERS * `part` on.
__device__ __forceinline__ u32 padding(u32 part, int j) {
    u32 d = part * REGISTERS + j;
    return (d < BREAK(padding, DISPARITIES, DISPARITIES + 1) ? 0u : INFINITE & 0xffffu) |
           (d + HIGH_HALF < DISPARITIES ? 0u : INFINITE & 0xffff0000u);
}

__device__ __forceinline__ u32 from_lane_before(u32 value) {
    u32 lane = threadIdx.x % 32;
    return __shfl_sync(LANES_MASK, value, (lane & ~(GROUP - 1u)) | ((lane - 1u) & (GROUP - 1u)));
}
__device__ __forceinline__ u32 from_lane_behind(u32 value) {
    u32 lane = threadIdx.x % 32;
    return __shfl_sync(LANES_MASK, value, (lane & ~(GROUP - 1u)) | ((lane + 1u) & (GROUP - 1u)));
}

// How the edges of a lane's registers find their neighbours: byte selectors made once or, with range
// windows, what makes INFINITE of a neighbour that the tile does not try.
struct Edges {
    u32 before, behind;
#if WINDOWED
    __device__ __forceinline__ Edges(u32 before, u32 behind) : before(before), behind(behind) {}
#else
    __device__ __forceinline__ explicit Edges(u32 lane) {
        // The candidate before the first is none in the low half; in the high half it is the last
        // one of the low half, which lies in the last lane.
        before = lane == 0 ? B_LOW_A_LOW : A_LOW_A_HIGH;
        behind = lane == GROUP - 1 ? BREAK(last_neighbour, A_HIGH_B_LOW, A_LOW_A_HIGH) : A_LOW_A_HIGH;
    }
#endif
    // The candidates before the first register's, and those behind the last one's.
    __device__ __forceinline__ u32 first(const Vector &a) const {
        const u32 beside = from_lane_before(a.v[REGISTERS - 1]);
#if WINDOWED
        return __byte_perm(beside, a.v[REGISTERS - 1], A_HIGH_B_LOW) | before;
#else
        return __byte_perm(beside, INFINITE, before);
#endif
    }
    __device__ __forceinline__ u32 last(const Vector &a) const {
        const u32 beside = from_lane_behind(a.v[0]);
#if WINDOWED
        return __byte_perm(a.v[0], beside, A_HIGH_B_LOW) | behind;
#else
        return __byte_perm(beside, INFINITE, behind);
#endif
    }
};

// Lets the path costs of the pixel before on a path hold for the next one on a surface with this slant,
// 1 or -1: those of candidate d + slant hold for d, too (matching/aggregation.rs).
__device__ __forceinline__ Vector extended(const Vector &before, int slant, const Edges &edges) {
    const u32 first = edges.first(before), last = edges.last(before);
    Vector path;
#pragma unroll
    for (int j = 0; j < REGISTERS; j++) {
        u32 lower = j > 0 ? before.v[j - 1] : first, upper = j < REGISTERS - 1 ? before.v[j + 1] : last;
        path.v[j] = slant == 0 ? before.v[j] : min2(before.v[j], slant > 0 ? upper : lower);
    }
    return path;
}

// min(L(d), L(d-1) + P1, L(d+1) + P1, least + P2) of the pixel before on a path, for every
// candidate: the path delta L - C, still with the least path cost in it (Hirschmueller, PAMI 2008,
// equation 13). `least_p2` is least + P2 in both halves; `slant` is that of the expected surface.
__device__ __forceinline__ Vector recurrence(Vector before, u32 least_p2, const Edges &edges, int slant) {
    if (SURFACE && __any_sync(LANES_MASK, slant != 0)) before = extended(before, slant, edges);
    const u32 first = edges.first(before), last = edges.last(before);
    Vector best;
#pragma unroll
    for (int j = 0; j < REGISTERS; j++) {
        u32 neighbours = min2(j > 0 ? before.v[j - 1] : first, j < REGISTERS - 1 ? before.v[j + 1] : last);
        best.v[j] = min3(before.v[j], add2(neighbours, both(BREAK(p1, P1, P1 + 1))), least_p2);
    }
    return best;
}

// Least value of this lane's registers, half by half.
__device__ __forceinline__ u32 least_of_registers(const Vector &a) {
    u32 least = a.v[0];
#pragma unroll
    for (int j = 1; j + 1 < REGISTERS; j += 2) least = min3(least, a.v[j], a.v[j + 1]);
    if (REGISTERS % 2 == 0) least = min2(least, a.v[REGISTERS - 1]);
    return least;
}

// The lesser of the two halves, in both halves.
__device__ __forceinline__ u32 lesser_half(u32 a) { return min2(a, __byte_perm(a, 0, A_HIGH_A_LOW)); }

// Least of the lanes of a pixel, half by half.
__device__ __forceinline__ u32 least_of_lanes(u32 a) {
#pragma unroll
    for (int step = 1; step < GROUP; step *= 2) a = min2(a, __shfl_xor_sync(LANES_MASK, a, step));
    return a;
}

// Least candidate of a pixel, in both halves.
__device__ __forceinline__ u32 least_of(const Vector &a) {
    return least_of_lanes(lesser_half(least_of_registers(a)));
}

// N words that lie behind each other, aligned to their size up to 16 bytes, which few accesses take.
template <int N> struct alignas(N % 4 == 0 ? 16 : N % 2 == 0 ? 8 : 4) Words {
    u32 of[N];
};
template <int N> __device__ __forceinline__ void put_words(u32 *to, const u32 *words) {
    Words<N> all;
#pragma unroll
    for (int k = 0; k < N; k++) all.of[k] = words[k];
    *(Words<N> *)to = all;
}
template <int N> __device__ __forceinline__ void get_words(const u32 *from, u32 *words) {
    const Words<N> all = *(const Words<N> *)from;
#pragma unroll
    for (int k = 0; k < N; k++) words[k] = all.of[k];
}

// Registers that one access of shared memory takes: 16 bytes, or 8.
#define ACCESS (REGISTERS % 4 == 0 ? 4 : 2)

// Returns the place of register j of a lane in the HALF_DISPARITIES words of a vector: ACCESS
// registers of all lanes behind each other, so that accesses of neighbouring lanes never meet in a
// bank.
__device__ __forceinline__ u32 interleaved(u32 lane, int j) {
    return (j / ACCESS * GROUP + lane) * ACCESS + j % ACCESS;
}
__device__ __forceinline__ void put_interleaved(u32 *to, u32 lane, const Vector &a) {
#pragma unroll
    for (int k = 0; k < REGISTERS; k += ACCESS) put_words<ACCESS>(to + interleaved(lane, k), a.v + k);
}
__device__ __forceinline__ Vector get_interleaved(const u32 *from, u32 lane) {
    Vector a;
#pragma unroll
    for (int k = 0; k < REGISTERS; k += ACCESS) get_words<ACCESS>(from + interleaved(lane, k), a.v + k);
    return a;
}
