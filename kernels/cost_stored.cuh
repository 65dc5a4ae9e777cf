// The cost as compute_costs.cu or aggregate_windows.cu has stored it. A column's words are
// contiguous.
#pragma once
#include "volume.cuh"
#define STORED 1
#define BASE_WORDS (GROUP * BYTE_WORDS)
#define PLANES 0
#define COLUMNS 1
#define REACH 0
#define MARGIN 0

__device__ __forceinline__ Vector cost(const Window &window, int x, u32 lane, u32, int, int) {
    u32 words[BYTE_WORDS];
    load_words(window.base + x * BASE_WORDS + lane * BYTE_WORDS, words);
    return unpacked(words);
}
