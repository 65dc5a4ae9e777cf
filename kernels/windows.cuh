// Range windows (matching/windows.rs): of a wide range, the pixels of a tile try GROUP blocks of
// candidates, a lane each. A path that enters a tile goes on with the blocks that both tiles try.
#pragma once
#include "lanes.cuh"

#define WINDOW_TILE 16
// A lane that no block is in. A path cost that a tile has not counts as the largest.
#define NOWHERE ((u32)GROUP)

// A lane's share of a pixel's candidates: its low halves hold those from REGISTERS * `part` on.
struct Share {
    u32 part;
    Edges edges;
};

#if WINDOWED
static_assert(GROUP == 4, "two words have the blocks of a tile");

// The blocks of a tile, in ascending order.
struct Blocks {
    uint2 words;
    __device__ __forceinline__ u32 of(u32 lane) const {
        const u32 pair = lane & 2 ? words.y : words.x;
        return lane & 1 ? pair >> 16 : pair & 0xffff;
    }
    // The lane of a block, or NOWHERE.
    __device__ __forceinline__ u32 lane_of(u32 block) const {
        u32 found = NOWHERE;
#pragma unroll
        for (u32 i = 0; i < GROUP; i++)
            if (of(i) == block) found = i;
        return found;
    }
    __device__ __forceinline__ Share share(u32 lane) const {
        const u32 own = of(lane);
        const bool before = lane > 0 && of(lane - 1) + 1 == own, behind = lane < GROUP - 1 && own + 1 == of(lane + 1);
        return {2 * own, Edges(before ? 0 : INFINITE & 0xffff, behind ? 0 : INFINITE & 0xffff0000)};
    }
};
#else
__device__ __forceinline__ Share whole_range(u32 lane) { return {lane, Edges(lane)}; }
#endif

// The blocks of the tiles, [tiles down][tiles across][GROUP], of a picture.
struct RangeWindows {
    const u16 *blocks;
    int width, height;

#if WINDOWED
    // The blocks of the tile of a pixel, or of the nearest pixel inside.
    __device__ __forceinline__ Blocks of(int x, int y) const {
        const int across = (width + WINDOW_TILE - 1) / WINDOW_TILE;
        x = min(max(x, 0), width - 1) / WINDOW_TILE, y = min(max(y, 0), height - 1) / WINDOW_TILE;
        return {*(const uint2 *)(blocks + GROUP * (y * across + x))};
    }
    // The lane from which a path goes on in this one, in a tile of `here`. A path that begins brings
    // equal values for all.
    __device__ __forceinline__ u32 entry(const Blocks &here, int from_x, int from_y, u32 lane) const {
        const bool inside = from_x >= 0 && from_x < width && from_y >= 0 && from_y < height;
        return inside ? BREAK(entry, of(from_x, from_y).lane_of(here.of(lane)), lane) : lane;
    }
    __device__ __forceinline__ u32 part(int x, int y, u32 lane) const { return 2 * of(x, y).of(lane); }
#else
    __device__ __forceinline__ u32 part(int, int, u32 lane) const { return lane; }
#endif
};

#if WINDOWED
// Path costs of the pixel before on a path that enters a tile, from these lanes.
__device__ __forceinline__ Vector entered(const Vector &before, u32 entry) {
    const u32 from = (threadIdx.x % 32 & ~(GROUP - 1u)) | (entry % GROUP);
    Vector path;
#pragma unroll
    for (int j = 0; j < REGISTERS; j++) {
        const u32 value = __shfl_sync(LANES_MASK, before.v[j], from);
        path.v[j] = entry == NOWHERE ? both(PATH_COST_MAX) : value;
    }
    return path;
}
#endif
