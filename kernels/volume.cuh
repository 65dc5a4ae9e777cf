// The volume of stored costs: [height][columns][GROUP lanes][BYTE_WORDS] (packed.cuh). Columns on
// either side of the image leave room for the halos of the first and the last strip; nobody fills
// them.
#pragma once
#include "packed.cuh"

#define VOLUME_BESIDE 8
// Columns of the volume that belongs to prepared rows of so many columns (cost.cuh).
#define VOLUME_COLUMNS(row) ((row) - PAD - BESIDE + 2 * VOLUME_BESIDE)

// Returns the index of the first word of pixel (x, y).
__device__ __forceinline__ size_t volume_pixel(int row, int x, int y) {
    return ((size_t)y * VOLUME_COLUMNS(row) + x + VOLUME_BESIDE) * (GROUP * BYTE_WORDS);
}
