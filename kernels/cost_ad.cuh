// Truncated absolute difference of intensities: min(|I_left(x, y) - I_right(x - d, y)|,
// AD_TRUNCATION).
#pragma once
#include "four_candidates.cuh"

// The costs of window column `x`; `pixel` is its word (cost.cuh).
__device__ __forceinline__ Vector cost(const Window &window, int x, u32 part, u32 pixel, int, int) {
    const u32 *match = match_words(window, x, part);
    u32 intensity = __byte_perm(pixel, 0, IN_ALL_BYTES(INTENSITY));
    Vector c;
#pragma unroll
    for (int k = 0; k < REGISTERS / 2; k++) {
        // One difference of bytes serves two registers.
        u32 difference = __vabsdiffu4(match[-k], intensity);
        c.v[2 * k] = __byte_perm(difference, 0, EVEN_BYTES);
        c.v[2 * k + 1] = __byte_perm(difference, 0, ODD_BYTES);
    }
    if (AD_TRUNCATION < 255) {
#pragma unroll
        for (int j = 0; j < REGISTERS; j++) c.v[j] = min2(c.v[j], both(AD_TRUNCATION));
    }
    return c;
}
