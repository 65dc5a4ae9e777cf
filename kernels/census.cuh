// Census descriptors of a picture's pixels.
#pragma once
// The bits are the pixels of the window in their order, without the centre; of opposite pairs only
// the first ones.
#define CENSUS_WORDS ((CENSUS_BITS + 31) / 32)

// The window around a pixel that lies far enough from the border, which spares the clamping.
struct Inside {
    const u8 *pixel;
    ptrdiff_t width;  // As wide as an address, so that a row's pixels share one.
    __device__ __forceinline__ int at(int dx, int dy) const { return pixel[dy * width + dx]; }
};
// The window around any pixel.
struct Anywhere {
    const Picture &picture;
    int x, y;
    __device__ __forceinline__ int at(int dx, int dy) const { return picture.at(x + dx, y + dy); }
};

template <class Around> __device__ __forceinline__ u32 census_bits(const Around &around, int word) {
    const int middle = CENSUS_WIDTH * CENSUS_HEIGHT / 2, centre = around.at(0, 0);
    u32 bits = 0;
#pragma unroll
    for (int bit = 32 * word; bit < CENSUS_BITS && bit < 32 * word + 32; bit++) {
        const int i = bit < middle ? bit : bit + 1;
        const int dx = i % CENSUS_WIDTH - CENSUS_WIDTH / 2, dy = i / CENSUS_WIDTH - CENSUS_HEIGHT / 2;
        const int value = around.at(dx, dy);
        const int difference = CENSUS_SYMMETRIC ? around.at(-dx, -dy) - value : value - BREAK(census_equal, centre, centre + 1);
        bits = bits << 1 | (u32)difference >> 31;
    }
    return bits;
}

// Bits 32 * word and up of the descriptor of pixel (x, y), which lies in the picture.
__device__ __forceinline__ u32 census(const Picture &picture, int x, int y, int word) {
    const int rx = CENSUS_WIDTH / 2, ry = CENSUS_HEIGHT / 2;
    if (x >= rx && x + rx < picture.width && y >= ry && y + ry < picture.height)
        return census_bits(Inside{picture.pixels + (size_t)y * picture.width + x, picture.width}, word);
    return census_bits(Anywhere{picture, x, y}, word);
}
