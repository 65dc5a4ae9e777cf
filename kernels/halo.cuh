// Exchange of halos: columns of neighbouring strips from which diagonal paths enter a strip.
#pragma once
#include "sweep.cuh"

// The exchange of halo columns between neighbouring strips through a buffer in memory,
// [2 sweeps][strips][2 sides][2 alternating slots][HALO columns][HALO_COLUMN_WORDS].
// A word holds two path costs of one byte each, interleaved with the two bytes of the exchange's
// number (the tag). A column's vector is followed by its least value and three unused words.
#define PATH_COST_BITS 0x00ff00ffu  // of PATH_COST_MAX in both halves
#define HALO_COLUMN_WORDS (HALF_DISPARITIES + 4)
#define HALO_WORDS (HALO * HALO_COLUMN_WORDS)
static_assert(4 * 2 * 2 * HALO_WORDS == EXPECTED_HALO_BYTES, "geometry.rs: Strips::halo_bytes");
struct HaloExchange {
    u32 *buffer;
    int strip, strips;
    u32 before;
    __device__ __forceinline__ HaloExchange(u32 *all, int direction, int strip, int strips, u32 before)
        : buffer(all + (size_t)direction * strips * 4 * HALO_WORDS), strip(strip), strips(strips), before(before) {}
    // Returns the columns that strip `from` sends to its right (side 0) or left (side 1) neighbour.
    __device__ __forceinline__ u32 *columns(int from, int side, u32 number) const {
        return buffer + ((size_t)(from * 2 + side) * 2 + (number & 1)) * HALO_WORDS;
    }
    __device__ __forceinline__ static u32 tag(u32 number) { return (number & 0xff) << 8 | (number & 0xff00) << 16; }

    __device__ __forceinline__ static void write(u32 *to, u32 lane, u32 tag, const Vector &path, u32 least) {
        Vector marked;
#pragma unroll
        for (int j = 0; j < REGISTERS; j++) marked.v[j] = (path.v[j] & PATH_COST_BITS) | tag;
#pragma unroll
        for (int k = 0; k < REGISTERS; k += ACCESS)
            store_relaxed<ACCESS>(to + interleaved(lane, k), marked.v + k);
        const u32 marked_least = (least & PATH_COST_BITS) | tag;
        if (lane == 0) store_relaxed<1>(to + HALF_DISPARITIES, &marked_least);
    }
    __device__ __forceinline__ void send(int n, int column, u32 lane, const Vector &right, u32 least_right,
                                         const Vector &left, u32 least_left) const {
        const u32 number = before + n, mark = tag(number);
        if (strip + 1 < strips && column >= STRIP - HALO)
            write(columns(strip, 0, number) + (column - (STRIP - HALO)) * HALO_COLUMN_WORDS, lane, mark, right,
                  least_right);
        if (strip > 0 && column < HALO)
            write(columns(strip, 1, number) + column * HALO_COLUMN_WORDS, lane, mark, left, least_left);
    }
    // Waits for the columns of the neighbour on `side` and stores them next to the strip.
    __device__ __forceinline__ void receive(const Shared &shared, int n, int side, int buffer, int group, u32 lane,
                                            const RangeWindows &windows, int y) const {
        const u32 number = before + n, mark = tag(number);
        const u32 *from = side == 0 ? columns(strip - 1, 0, number) : columns(strip + 1, 1, number);
        for (int column = group; column - group % WARP_PIXELS < HALO; column += HALO_WARPS * WARP_PIXELS) {
            const u32 *words = from + min(column, HALO - 1) * HALO_COLUMN_WORDS;
            const int received = strip * STRIP + (side == 0 ? column - HALO : STRIP + column);
            Vector path;
            u32 least, missing;
            do {
                load_relaxed<1>(words + HALF_DISPARITIES, &least);
                missing = (least ^ mark) & ~PATH_COST_BITS;
#pragma unroll
                for (int k = 0; k < REGISTERS; k += ACCESS)
                    load_relaxed<ACCESS>(words + interleaved(lane, k), path.v + k);
#pragma unroll
                for (int j = 0; j < REGISTERS; j++) missing |= (path.v[j] ^ mark) & ~PATH_COST_BITS;
            } while (missing);
#pragma unroll
            for (int j = 0; j < REGISTERS; j++) {
                path.v[j] &= 0x00ff00ff;
                if (HAS_PADDING && !(WINDOWED && received >= windows.width))
                    path.v[j] |= padding(windows.part(received, y, lane), j);
            }
            if (column < HALO)
                shared.put(side, buffer, side == 0 ? column : STRIP + column, lane, BREAK(halo_received, path, filled(0)), least & PATH_COST_BITS);
        }
    }
};
