// Features of the right image for a cost that compares single intensities: words of four
// candidates, d and d + 1 and the same HIGH_HALF further on, so that one word serves two
// registers. Even and odd columns have a plane each. The left image needs no features besides its
// pixels' own words.
#pragma once
#define BASE_WORDS 0
#define PLANES 2
#define COLUMNS 2
#define REACH (PADDED_RANGE - HIGH_HALF)
#define MARGIN 0

__device__ __forceinline__ u32 base_feature(const Picture &, int, int, int) { return 0; }

// `column` is even: the column of the match picture (with MIN_DISPARITY taken off) that plane 0's
// candidate d looks at.
__device__ __forceinline__ u32 match_feature(const Picture &right, int column, int y, int plane) {
    int x = column + plane;
    return right.at(x, y) | right.at(x - 1, y) << 8 | right.at(x - HIGH_HALF, y) << 16 |
           right.at(x - 1 - HIGH_HALF, y) << 24;
}

// The word of a lane's first two registers at window column `x`; those of the next two lie before
// each other.
__device__ __forceinline__ const u32 *match_words(const Window &window, int x, u32 part) {
    return window.match + (x & 1) * window.plane_pitch + (x + REACH) / 2 - part * (REGISTERS / 2);
}
