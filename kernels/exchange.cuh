// The border columns that neighbouring strips of a sweep exchange.
#pragma once
#include "sweep.cuh"

// The exchange of border columns between neighbouring strips, in two slots in turn. A word is
// two path costs of a byte each with the low and the high byte of the exchange's number beside them;
// behind a column's vector stand its least value and three words that are not used.
#define BOX_CHUNK (R % 4 == 0 ? 4 : 2)
#define BOX_COLUMN_WORDS (DH + 4)
#define BOX_WORDS (TRADE * BOX_COLUMN_WORDS)
struct Exchange {
    u32 *boxes;
    int strip, strips;
    u32 before;
    __device__ __forceinline__ Exchange(u32 *all, int direction, int strip, int strips, u32 before)
        : boxes(all + (size_t)direction * strips * 4 * BOX_WORDS), strip(strip), strips(strips), before(before) {}
    // The box of `from` for its right (side 0) or left (side 1) neighbour.
    __device__ __forceinline__ u32 *box(int from, int side, u32 number) const {
        return boxes + ((size_t)(from * 2 + side) * 2 + (number & 1)) * BOX_WORDS;
    }
    __device__ __forceinline__ static u32 tag(u32 number) { return (number & 0xff) << 8 | (number & 0xff00) << 16; }

    __device__ __forceinline__ static void write(u32 *to, u32 lane, u32 tag, const Vector &path, u32 least) {
        Vector marked;
#pragma unroll
        for (int j = 0; j < R; j++) marked.v[j] = (path.v[j] & 0x00ff00ff) | tag;
#pragma unroll
        for (int k = 0; k < R; k += BOX_CHUNK)
            store_relaxed<BOX_CHUNK>(to + (k / BOX_CHUNK * G + lane) * BOX_CHUNK, marked.v + k);
        const u32 marked_least = (least & 0x00ff00ff) | tag;
        if (lane == 0) store_relaxed<1>(to + DH, &marked_least);
    }
    __device__ __forceinline__ void send(int n, int column, u32 lane, const Vector &right, u32 least_right,
                                         const Vector &left, u32 least_left) const {
        const u32 number = before + n, mark = tag(number);
        if (strip + 1 < strips && column >= STRIP - TRADE)
            write(box(strip, 0, number) + (column - (STRIP - TRADE)) * BOX_COLUMN_WORDS, lane, mark, right, least_right);
        if (strip > 0 && column < TRADE)
            write(box(strip, 1, number) + column * BOX_COLUMN_WORDS, lane, mark, left, least_left);
    }
    // Waits for the columns of the neighbour on `side` and puts them beside the strip.
    __device__ __forceinline__ void receive(const Shared &shared, int n, int side, int buffer, int group, u32 lane) const {
        const u32 number = before + n, mark = tag(number);
        const u32 *from = side == 0 ? box(strip - 1, 0, number) : box(strip + 1, 1, number);
        for (int column = group; column - group % PIXELS < TRADE; column += BORDER_WARPS * PIXELS) {
            const u32 *words = from + min(column, TRADE - 1) * BOX_COLUMN_WORDS;
            Vector path;
            u32 least, missing;
            do {
                load_relaxed<1>(words + DH, &least);
                missing = (least ^ mark) & 0xff00ff00;
#pragma unroll
                for (int k = 0; k < R; k += BOX_CHUNK)
                    load_relaxed<BOX_CHUNK>(words + (k / BOX_CHUNK * G + lane) * BOX_CHUNK, path.v + k);
#pragma unroll
                for (int j = 0; j < R; j++) missing |= (path.v[j] ^ mark) & 0xff00ff00;
            } while (missing);
#pragma unroll
            for (int j = 0; j < R; j++) {
                path.v[j] &= 0x00ff00ff;
                if (D < DP) path.v[j] |= padding(lane, j);
            }
            if (column < TRADE)
                shared.put(side, buffer, side == 0 ? column : STRIP + column, lane, path, least & 0x00ff00ff);
        }
    }
};
