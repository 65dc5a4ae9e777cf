// A picture of 8-bit intensities; columns and rows outside are the nearest inside.
#pragma once
#include "instructions.cuh"

struct Picture {
    const u8 *pixels;
    int width, height;
    __device__ __forceinline__ int at(int x, int y) const {
        x = min(max(x, 0), width - 1);
        y = min(max(y, 0), height - 1);
        return pixels[(size_t)y * width + x];
    }
};
