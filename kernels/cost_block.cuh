// The terms that block measures sum over a window (matching/block.rs), for aggregate_windows.cu:
// the intensity of a pixel, or without SQUARED the number of pixels of the window times the
// intensity, minus the sum of the window.
//
// A word of the right image holds candidates d and d + HIGH_HALF as signed 16-bit numbers.
#pragma once
#define BASE_WORDS 1
#define PLANES 1
#define COLUMNS 1
#define REACH PADDED_RANGE
#define MARGIN 0

__device__ __forceinline__ u32 compared(const Picture &picture, int column, int y) {
    const int x = min(max(column, 0), picture.width - 1);
    int value = picture.at(x, y);
#if !SQUARED
    value *= WINDOW_WIDTH * WINDOW_HEIGHT;
    for (int down = -(WINDOW_HEIGHT / 2); down <= WINDOW_HEIGHT / 2; down++)
        for (int across = -(WINDOW_WIDTH / 2); across <= WINDOW_WIDTH / 2; across++)
            value -= picture.at(BREAK(zero_mean, x + across, x), y + down);
#endif
    return value & 0xffff;
}
__device__ __forceinline__ u32 base_feature(const Picture &left, int x, int y, int) {
    return compared(left, x, y) * 0x10001u;
}
__device__ __forceinline__ u32 match_feature(const Picture &right, int column, int y, int) {
    return compared(right, column, y) | compared(right, column - HIGH_HALF, y) << 16;
}

// The differences of register `j`: of its low half and of its high one.
struct Differences {
    int low, high;
};
__device__ __forceinline__ Differences differences(const Window &window, int x, u32 part, int j) {
    const u32 left = window.base[x], right = window.match[x + REACH - part * REGISTERS - j];
    return {(short)(left & 0xffff) - (short)(right & 0xffff), (short)(left >> 16) - (short)(right >> 16)};
}
