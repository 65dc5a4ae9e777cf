// The support of a pixel's cost, packed into a word (matching/support.rs). From the lowest bits:
// the weight of each pixel of the window, the weight of each pixel of distance from the expected
// disparity, the number of the expected candidate, and whether one is expected at all. It may lie
// up to PRIOR_REACH beyond the range, because farther away the prior is the same for all candidates.
#pragma once
#include "bytes.cuh"

// The unit of what is counted, as the power of two.
#define BLEND_SHIFT 9
#define PRIOR_SHIFT 6
#define CANDIDATE_SHIFT 18
#define CANDIDATE_BITS 13
#define EXPECTS 0x80000000u

__device__ __forceinline__ u32 blend_word(u32 window, u32 prior, int expected) {
    return window | prior << PRIOR_SHIFT | (u32)(expected + PRIOR_REACH) << CANDIDATE_SHIFT;
}

struct Blend {
    u32 word;
    __device__ __forceinline__ u32 window() const { return word & ((1 << PRIOR_SHIFT) - 1); }
    __device__ __forceinline__ u32 prior() const {
        return word >> PRIOR_SHIFT & ((1 << (CANDIDATE_SHIFT - PRIOR_SHIFT)) - 1);
    }
    __device__ __forceinline__ int expected() const {
        return (int)(word >> CANDIDATE_SHIFT & ((1 << CANDIDATE_BITS) - 1)) - PRIOR_REACH;
    }
};

// The slant of the expected surface between the pixel before on a path and a pixel: the difference
// of their expected candidates if that is 1 or -1, else 0 (matching/prior.rs).
__device__ __forceinline__ int slant_of(Blend before, Blend here) {
    const int step = before.expected() - here.expected();
    return before.word & here.word & EXPECTS && abs(step) == 1 ? BREAK(slant_sign, step, -step) : 0;
}

static_assert(WINDOW_MOST < 1 << PRIOR_SHIFT && PRIOR_MOST < 1 << (CANDIDATE_SHIFT - PRIOR_SHIFT), "the parts of a word");
