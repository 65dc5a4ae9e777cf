// Vectors of candidates spread over the lanes of a warp, and the few instructions they need.
//
// A pixel's DP = 2 * G * R candidates live in G neighbouring lanes with R registers each. A register
// holds two unsigned 16-bit values: in its low half candidate d = lane * R + j, in its high half
// d + DP / 2. So the neighbours d - 1 and d + 1 of register j are registers j - 1 and j + 1, and only
// the first and the last register of a lane look at another lane. G, R are compile-time constants:
// the engine compiles the kernels for one range of disparities.
//
// Path costs are at most 255 and their sums over eight paths at most 2040, so the upper bits of a half
// are free: candidates beyond the range hold INFINITE there.
#pragma once

#include "instructions.cuh"

// Candidates with padding, and half of them.
#define DP (2 * G * R)
#define DH (G * R)
// Pixels that a warp holds at once.
#define PIXELS (32 / G)
// A path cost that never wins, in both halves. As the bits of a half-float it is finite, so that
// half-float minima order it as the integer minima do.
#define INFINITE 0x40004000u

// Lane of the pixel that this lane works for.
__device__ __forceinline__ u32 group_lane() { return threadIdx.x % G; }

// A vector of candidates: this lane's share.
struct Vector {
    u32 v[R];
};

__device__ __forceinline__ Vector filled(u32 value) {
    Vector a;
#pragma unroll
    for (int j = 0; j < R; j++) a.v[j] = value;
    return a;
}

// INFINITE where register j of this lane holds a candidate beyond the range, as a mask to or.
__device__ __forceinline__ u32 padding(u32 lane, int j) {
    u32 d = lane * R + j;
    return (d < D ? 0u : INFINITE & 0xffffu) | (d + DH < D ? 0u : INFINITE & 0xffff0000u);
}

// How the edges of a lane's registers find their neighbours: byte selectors made once.
struct Edges {
    u32 before, behind;
    __device__ __forceinline__ explicit Edges(u32 lane) {
        // The candidate before the first is none in the low half; in the high half it is the last one
        // of the low half, which lies in the last lane.
        before = lane == 0 ? 0x1054u : 0x3210u;
        behind = lane == G - 1 ? 0x5432u : 0x3210u;
    }
};

__device__ __forceinline__ u32 from_lane_before(u32 value) {
    u32 lane = threadIdx.x % 32;
    return __shfl_sync(LANES_MASK, value, (lane & ~(G - 1u)) | ((lane - 1u) & (G - 1u)));
}
__device__ __forceinline__ u32 from_lane_behind(u32 value) {
    u32 lane = threadIdx.x % 32;
    return __shfl_sync(LANES_MASK, value, (lane & ~(G - 1u)) | ((lane + 1u) & (G - 1u)));
}

// min(L(d), L(d-1) + P1, L(d+1) + P1, least + P2) of the pixel before on a path, for every candidate:
// what the path adds to the cost, still with the least path cost in it (Hirschmueller, PAMI 2008,
// equation 13). `least_p2` is least + P2 in both halves.
__device__ __forceinline__ Vector recurrence(const Vector &before, u32 least_p2, const Edges &edges) {
    u32 first = __byte_perm(from_lane_before(before.v[R - 1]), INFINITE, edges.before);
    u32 last = __byte_perm(from_lane_behind(before.v[0]), INFINITE, edges.behind);
    Vector best;
#pragma unroll
    for (int j = 0; j < R; j++) {
        u32 neighbours = min2(j > 0 ? before.v[j - 1] : first, j < R - 1 ? before.v[j + 1] : last);
        best.v[j] = min3(before.v[j], add2(neighbours, both(P1)), least_p2);
    }
    return best;
}

// Least value of this lane's registers, half by half.
__device__ __forceinline__ u32 least_of_registers(const Vector &a) {
    u32 least = a.v[0];
#pragma unroll
    for (int j = 1; j + 1 < R; j += 2) least = min3(least, a.v[j], a.v[j + 1]);
    if (R % 2 == 0) least = min2(least, a.v[R - 1]);
    return least;
}

// The lesser of the two halves, in both halves.
__device__ __forceinline__ u32 lesser_half(u32 a) { return min2(a, __byte_perm(a, 0, 0x1032)); }

// Least of the lanes of a pixel, half by half.
__device__ __forceinline__ u32 least_of_lanes(u32 a) {
#pragma unroll
    for (int step = 1; step < G; step *= 2) a = min2(a, __shfl_xor_sync(LANES_MASK, a, step));
    return a;
}

// Least candidate of a pixel, in both halves.
__device__ __forceinline__ u32 least_of(const Vector &a) {
    return least_of_lanes(lesser_half(least_of_registers(a)));
}
