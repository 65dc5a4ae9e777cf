// Census descriptors of a picture's pixels.
#pragma once
#ifndef CENSUS_SYMMETRIC
#define CENSUS_SYMMETRIC 0
#endif
// The pixels of the window in their order, without the centre; of opposite pairs only the first ones.
#define CENSUS_BITS (CENSUS_SYMMETRIC ? CENSUS_WIDTH * CENSUS_HEIGHT / 2 : CENSUS_WIDTH * CENSUS_HEIGHT - 1)
#define CENSUS_WORDS ((CENSUS_BITS + 31) / 32)

// Bits 32 * word and up of the descriptor of pixel (x, y), which lies in the picture.
template <class P> __device__ __forceinline__ u32 census(const P &picture, int x, int y, int word) {
    const int middle = CENSUS_WIDTH * CENSUS_HEIGHT / 2, centre = picture.at(x, y);
    u32 bits = 0;
    for (int bit = 32 * word; bit < CENSUS_BITS && bit < 32 * word + 32; bit++) {
        const int i = bit < middle ? bit : bit + 1;
        const int dx = i % CENSUS_WIDTH - CENSUS_WIDTH / 2, dy = i / CENSUS_WIDTH - CENSUS_HEIGHT / 2;
        const int value = picture.at(x + dx, y + dy);
        const bool set = CENSUS_SYMMETRIC ? value > picture.at(x - dx, y - dy) : value < centre;
        bits |= (u32)set << bit % 32;
    }
    return bits;
}
