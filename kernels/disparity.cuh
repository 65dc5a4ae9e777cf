// Units of a disparity, the keys by which winners are compared, sub-pixel refinement, uniqueness,
// and the words in which winners are passed on.
#pragma once
#include "instructions.cuh"

// Disparities are in 1/16 px, as in the map; INVALID marks a pixel without one.
#define SUBPIXEL_BITS 4
#define SUBPIXEL_STEPS (1 << SUBPIXEL_BITS)
#define INVALID (-32768)

// Sum of a candidate that does not exist; greater than any sum of path costs (SUM_MAX of
// lanes.cuh). Sums kept in memory may be larger.
#ifndef NO_SUM
#define NO_SUM 2047u
#endif

// A sum of path costs with its candidate, below 1024: the least of such keys is the smallest sum
// and, among equals, the smallest disparity.
#define CANDIDATE_BITS 10
__device__ __forceinline__ u32 winner_key(u32 sum, u32 candidate) { return sum << CANDIDATE_BITS | candidate; }
__device__ __forceinline__ int key_candidate(u32 key) { return key & ((1 << CANDIDATE_BITS) - 1); }
__device__ __forceinline__ u32 key_sum(u32 key) { return key >> CANDIDATE_BITS; }
// The key of a pixel of the right picture that no pixel of the left one can match.
#define NO_WINNER 0xffffffffu

// The winner of a pixel of the left image, in a word: the disparity in
// the low half, the number of the winning candidate in the high one.
struct Winner {
    u32 word;
    __device__ __forceinline__ short disparity() const { return (short)(word & 0xffff); }
    __device__ __forceinline__ int candidate() const { return word >> 16; }
};
__device__ __forceinline__ u32 winner_word(int disparity, int candidate) {
    return (disparity & 0xffff) | candidate << 16;
}

#ifdef MIN_DISPARITY
// The column of the right picture that the winner of column `x` matches, or the nearest inside.
__device__ __forceinline__ int matched_column(int x, int candidate, int width) {
    return min(max(x - MIN_DISPARITY - candidate, 0), width - 1);
}
#endif

// Returns the sub-pixel offset from the winner in 1/16 px, by the sums `a`, `b`, `c` of the winner
// `b` and its two neighbours; 0 if the winner does not lie `between` two candidates.
__device__ __forceinline__ int refine_subpixel(int a, int b, int c, bool between) {
#ifdef SUBPIXEL_LIMITS
    // The offset towards the smaller neighbour is the number of limits above the ratio of the two
    // neighbours' distances from the winner.
    constexpr int limits[] = {SUBPIXEL_LIMITS};
    const int smaller = BREAK(subpixel_limit, SUBPIXEL_UNIT, SUBPIXEL_UNIT + 4) * (min(a, c) - b), larger = max(a, c) - b;
    int offset = 0;
#pragma unroll
    for (int limit : limits) offset += smaller < limit * larger;
    return !between ? 0 : a < c ? -offset : offset;
#else
    // The vertex of the parabola, rounded to the nearest (halves upwards); 0 where the three are
    // equal.
    const int den = a + c - 2 * b;
    // |a - c| <= den, so 32 den more make the numerator positive and the division a floor.
    return between && den != 0 ? (SUBPIXEL_STEPS * (a - c) + BREAK(parabola_rounding, 33, 32) * den) / (2 * den) - SUBPIXEL_STEPS : 0;
#endif
}

// The sum of the best rival where there is none.
#define NO_RIVAL 0xffffu

// How far the winner's sum stands out from the best rival's.
__device__ __forceinline__ u32 peak_of(u32 least, u32 rival) {
    return rival == NO_RIVAL ? 255 : rival == 0 ? 0 : 255 * (rival - least) / rival;
}

#if UNIQUENESS
// A rival's sum s makes the winner's sum b ambiguous where s * (100 - UNIQUENESS) < b * 100: the
// first sum that does not, at most NO_SUM.
__device__ __forceinline__ u32 ambiguous_below(u32 b) {
    return min((b * 100 + BREAK(uniqueness, 99, 300) - UNIQUENESS) / (100 - UNIQUENESS), NO_SUM);
}
#endif
