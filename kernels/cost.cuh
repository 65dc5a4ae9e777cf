// The matching cost C(p, d) as the aggregation sees it: a vector of candidates on request.
//
// `compute_features.cu` prepares both pictures once: for each row of the left picture BASE_WORDS
// words per column plus the word of the pixel (below), and for each row of the right one PLANES
// planes of words. In this layout the candidates of a pixel are contiguous and no column needs
// clamping. The aggregation keeps a window of a few columns of both in shared memory and asks for
// the cost of one of its pixels. Supported costs are computed in advance into a volume instead
// (compute_costs.cu), and the window is one of that volume (cost_stored.cuh).
//
// A cost computes the candidates of a part (windows.cuh); a stored one reads those of a lane.
//
// A cost is one header that defines
//   BASE_WORDS   words a column of the left picture
//   PLANES       planes of the right picture
//   COLUMNS      columns that one word of a plane covers
//   REACH        columns left of a pixel that its candidates look at
//   MARGIN       columns beside a pixel that its cost looks at
//   base_feature(left, x, y, word), match_feature(right, column, y, plane), cost(window, ...)
#pragma once
#include "lanes.cuh"
#include "picture.cuh"

// The word of a pixel of the left picture: its intensity and the penalties P2 of three paths, a
// byte each; those of the downward or upward paths, or those of the horizontal ones.
#define INTENSITY 0
#define P2_VERTICAL 1
#define P2_DIAGONAL_FROM_LEFT 2
#define P2_DIAGONAL_FROM_RIGHT 3
#define P2_HORIZONTAL_FROM_LEFT 1
#define P2_HORIZONTAL_FROM_RIGHT 2
// If paths follow an expected surface (SURFACE), costs are stored, so that nobody needs the
// intensity with P2 of the downward or upward paths. Its byte, or the last one of the horizontal
// paths, then holds the slants, two bits a path.
#define SLANTS INTENSITY
#define SLANTS_HORIZONTAL 3
__device__ __forceinline__ u32 slant_bits(int slant, int byte, int path) {
    return (u32)(slant & 3) << (8 * byte + 2 * (path - 1));
}
__device__ __forceinline__ int slant_of(u32 pixel, int byte, int path) {
    return SURFACE ? (int)(pixel << (30 - 8 * byte - 2 * (path - 1))) >> 30 : 0;
}

// Column x of the left picture is column x + PAD of the prepared rows: room for the halo of the
// first strip (BESIDE columns) and for all candidates of its pixels.
#define PAD (PADDED_RANGE + BESIDE)
// A window on the prepared rows in shared memory: WINDOW_COLUMNS columns of the left image, and
// the columns of the right one that their candidates compare with.
#define WINDOW_PLANE_WORDS ((WINDOW_COLUMNS + REACH) / COLUMNS)
// The planes' distance is chosen so that the lanes of a warp read different banks.
#define WINDOW_PLANE_PITCH ((WINDOW_PLANE_WORDS + 31) / 32 * 32 + (REGISTERS > WARP_PIXELS ? WARP_PIXELS / 2 : 16))
#define WINDOW_BASE WINDOW_COLUMNS
#define WINDOW_MATCH (WINDOW_COLUMNS * (1 + BASE_WORDS))
#define WINDOW_WORDS (WINDOW_MATCH + PLANES * WINDOW_PLANE_PITCH)

// The prepared rows around a pixel, in shared or global memory: column 0 of `base`, and the column
// of `match` that the largest candidate of column 0 compares with.
struct Window {
    const u32 *base, *match;
    int base_pitch, plane_pitch;
};

#include COST_HEADER
#ifndef STORED
#define STORED 0
#endif
#ifndef LOOKS_UP
#define LOOKS_UP 0
#endif

static_assert(BASE_WORDS == EXPECTED_BASE_WORDS && PLANES == EXPECTED_PLANES && COLUMNS == EXPECTED_COLUMNS &&
                  REACH == EXPECTED_REACH && MARGIN == EXPECTED_MARGIN,
              "geometry.rs: Prepared");

// Pointers to the prepared rows of both images.
struct Features {
    const u32 *p2;     // [height][row]: the words of the pixels, with the penalties of these paths
    const u32 *base;   // [height][BASE_WORDS][row], or the volume of costs, or the table where the cost LOOKS_UP
    const u32 *match;  // [height][PLANES][row / COLUMNS]
    int row;           // columns of a prepared row, with PAD columns left of the picture
};

// The window in shared memory that `copy_window` has filled.
__device__ __forceinline__ Window window_of(const u32 *words) {
    return {words + WINDOW_BASE, words + WINDOW_MATCH, WINDOW_COLUMNS, WINDOW_PLANE_PITCH};
}

// The window on row `y` in place, whose column 0 is `column`, which is even.
__device__ __forceinline__ Window window_at(const Features &from, int column, int y) {
#if STORED
    return {from.base + volume_pixel(from.row, column, y), nullptr, 0, 0};
#else
    int words = from.row / COLUMNS;
    return {LOOKS_UP ? from.base : from.base + ((u32)y * BASE_WORDS * from.row + column + PAD),
            from.match + ((u32)y * PLANES * words + (column + PAD - REACH) / COLUMNS), from.row, words};
#endif
}

// Starts copying the window whose first column is `column` of row `y` to shared memory, with
// `threads` threads.
__device__ __forceinline__ void copy_window(u32 *to, const Features &from, int column, int y, int thread, int threads) {
    const u32 *p2 = from.p2 + (size_t)y * from.row + column + PAD;
    for (int i = thread; i < WINDOW_COLUMNS; i += threads) copy4(to + i, p2 + i);
    const Window window = window_at(from, column, y);
#if STORED
    // Columns lie behind each other.
    for (int i = 4 * thread; i < WINDOW_COLUMNS * BASE_WORDS; i += 4 * threads)
        copy16(to + WINDOW_BASE + i, window.base + i);
#else
#pragma unroll
    for (int word = 0; word < BASE_WORDS; word++)
        for (int i = thread; i < WINDOW_COLUMNS; i += threads)
            copy4(to + WINDOW_BASE + word * WINDOW_COLUMNS + i, window.base + word * window.base_pitch + i);
#pragma unroll
    for (int plane = 0; plane < PLANES; plane++)
        for (int i = thread; i < WINDOW_PLANE_WORDS; i += threads)
            copy4(to + WINDOW_MATCH + plane * WINDOW_PLANE_PITCH + i, window.match + plane * window.plane_pitch + i);
#endif
}
