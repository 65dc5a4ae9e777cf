// The mean of the truncated absolute difference over a square window of WINDOW_WIDTH pixels a side,
// rounded. Window pixels outside the left picture are replaced by the nearest inside; each looks up
// its own match column.
//
// A word (two, from a side of 5) holds a column of the window, a byte a row.
#pragma once
#define RADIUS_AD (WINDOW_WIDTH / 2)
#define COLUMN_WORDS (WINDOW_WIDTH <= 3 ? 1 : 2)
#define BASE_WORDS COLUMN_WORDS
#define PLANES COLUMN_WORDS
#define COLUMNS 1
#define REACH PADDED_RANGE
#define MARGIN RADIUS_AD
#define AREA (WINDOW_WIDTH * WINDOW_WIDTH)

__device__ __forceinline__ u32 window_column(const Picture &picture, int x, int y, int word) {
    u32 bytes = 0;
    for (int row = 4 * word; row < min(4 * word + 4, WINDOW_WIDTH); row++)
        bytes |= picture.at(x, y - RADIUS_AD + row) << 8 * (row % 4);
    return bytes;
}
__device__ __forceinline__ u32 base_feature(const Picture &left, int x, int y, int word) {
    return window_column(left, x, y, word);
}
__device__ __forceinline__ u32 match_feature(const Picture &right, int column, int y, int plane) {
    return window_column(right, column, y, plane);
}

// The lesser of each byte and AD_TRUNCATION: where the byte is greater the sum with 255 -
// AD_TRUNCATION overflows.
__device__ __forceinline__ u32 truncated(u32 bytes) {
    return AD_TRUNCATION == 255 ? bytes : __vminu4(bytes, AD_TRUNCATION * 0x01010101u);
}

// `first` is the picture's column that the window's column 0 shows.
__device__ __forceinline__ Vector cost(const Window &window, int x, u32 part, u32, int first, int width) {
    u32 low[REGISTERS], high[REGISTERS];
#pragma unroll
    for (int j = 0; j < REGISTERS; j++) low[j] = high[j] = BREAK(ad_rounding, AREA / 2, 0);
    for (int dx = -RADIUS_AD; dx <= RADIUS_AD; dx++) {
        const int column = min(max(first + x + dx, 0), width - 1) - first;
        const u32 *match = window.match + column + REACH - part * REGISTERS;
#pragma unroll
        for (int word = 0; word < COLUMN_WORDS; word++) {
            const u32 base = window.base[word * window.base_pitch + column];
#pragma unroll
            for (int j = 0; j < REGISTERS; j++) {
                const u32 *at = match + word * window.plane_pitch - j;
                low[j] = __dp4a(truncated(__vabsdiffu4(base, at[0])), 0x01010101u, low[j]);
                high[j] = __dp4a(truncated(__vabsdiffu4(base, at[-HIGH_HALF])), 0x01010101u, high[j]);
            }
        }
    }
    Vector c;
#pragma unroll
    for (int j = 0; j < REGISTERS; j++) c.v[j] = low[j] / AREA | high[j] / AREA << 16;
    return c;
}
