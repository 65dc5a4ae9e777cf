// What the blocks of a sweep share and exchange (sweep.cu).
#pragma once
#define WINDOW_COLUMNS (STRIP + 2 * TRADE + 2 * MARGIN)
#include "cost.cuh"
#include "volume.cuh"

#ifndef DIRECTION
#define DIRECTION 0
#endif
#define MAX(a, b) ((a) > (b) ? (a) : (b))
#define MAIN_WARPS (STRIP / PIXELS)
// Warps for each border of the strip: a group of lanes for each column but the one that is only
// received.
#define BORDER_WARPS (DIAGONALS ? (TRADE - 1 + PIXELS - 1) / PIXELS : 0)
#define RIGHT_WARPS (LEFT_RIGHT ? (DH + STRIP - 1 + 31) / 32 : 0)
// With FINISH as many as main warps pick the winners, others match the right picture's pixels, and one
// completes the pixels. The last one loads.
#define PICK_WARPS (FINISH ? MAIN_WARPS : 0)
#define SUPPORT_WARPS (PICK_WARPS + (FINISH ? RIGHT_WARPS + 1 : 0) + 1)
#define THREADS (32 * (MAIN_WARPS + 2 * BORDER_WARPS + SUPPORT_WARPS))
// Rows of windows in shared memory, and rows of stored sums on their way; powers of two.
#define WINDOWS 8
#define AHEAD 4
// Taking the least path cost off in every row only keeps numbers small: a path cost grows by at most
// COST_MAX a row. Where the sum of three stays below 2048, the last integer that half-floats hold, it
// is done once an exchange.
#define LAZY (3 * (255 + TRADE * COST_MAX) <= 2047)
// Columns whose diagonal path vectors a block holds.
#define SLOTS (STRIP + TRADE)
// Words a lane of stored sums: bytes where they fit.
#define SUM_BYTES ((1 + 2 * DIAGONALS) * P2_MAX <= 255)
#define SUM_WORDS (SUM_BYTES ? BYTE_WORDS : R)
#define STORED_WORDS (SUM_WORDS * OTHER_SUMS + 2 * BYTE_WORDS)

// Rows of a launch in their order. With HALVES two sweeps share the picture: each first goes to the
// middle and, in a second launch, on from there. Otherwise one sweep takes all rows.
struct Rows {
    int first, step, count;
    bool resumed;
    __device__ __forceinline__ Rows(int direction, int height) {
        const int middle = height / 2;
        step = direction == 0 ? 1 : -1;
        if (HALVES) {
            first = direction == 0 ? (FINISH ? middle : 0) : (FINISH ? middle - 1 : height - 1);
            count = (direction == 0) != FINISH ? middle : height - middle;
            resumed = FINISH && (direction == 0 ? middle : height - middle) > 0;
        } else {
            first = direction == 0 ? 0 : height - 1;
            count = height;
            resumed = false;
        }
    }
    __device__ __forceinline__ int at(int i) const { return first + step * i; }
};

// Where the result goes: a word a pixel, the disparity in its low half and the number of the winner in
// its high one; and a word for each pixel of the right picture, the least (sum << 10 | candidate).
struct Results {
    u32 *winners;
    u32 *right;
};

// A vector in shared memory: registers 4k .. 4k + 3 of all lanes behind each other, so that 16-byte
// accesses of neighbouring lanes never meet in a bank.
__device__ __forceinline__ void put_chunks(u32 *to, u32 lane, const Vector &a) {
#if R % 4 == 0
#pragma unroll
    for (int k = 0; k < R; k += 4)
        *(uint4 *)(to + (k / 4 * G + lane) * 4) = make_uint4(a.v[k], a.v[k + 1], a.v[k + 2], a.v[k + 3]);
#else
#pragma unroll
    for (int k = 0; k < R; k += 2)
        *(uint2 *)(to + (k / 2 * G + lane) * 2) = make_uint2(a.v[k], a.v[k + 1]);
#endif
}
__device__ __forceinline__ Vector get_chunks(const u32 *from, u32 lane) {
    Vector a;
#if R % 4 == 0
#pragma unroll
    for (int k = 0; k < R; k += 4) {
        uint4 four = *(const uint4 *)(from + (k / 4 * G + lane) * 4);
        a.v[k] = four.x, a.v[k + 1] = four.y, a.v[k + 2] = four.z, a.v[k + 3] = four.w;
    }
#else
#pragma unroll
    for (int k = 0; k < R; k += 2) {
        uint2 two = *(const uint2 *)(from + (k / 2 * G + lane) * 2);
        a.v[k] = two.x, a.v[k + 1] = two.y;
    }
#endif
    return a;
}

// The layout of a block's shared memory.
#define PATH_WORDS (DIAGONALS * 2 * 2 * SLOTS * DH)
#define LEAST_WORDS (DIAGONALS * 2 * 2 * ((SLOTS + 3) / 4 * 4))
#define WINDOWS_WORDS (WINDOWS * ((WINDOW_WORDS + 3) / 4 * 4))
#define STORED_RING_WORDS (FINISH ? AHEAD * STORED_WORDS * MAIN_WARPS * 32 : 0)
// Rows of sums in work: one is written, one becomes keys, one is matched from the right, one is
// completed.
#define TILES 4
// A column's sums are DH words with as much room around them as a diagonal through the tile needs.
#define TILE_PITCH (DH + STRIP)
#define TILE_WORDS (STRIP + STRIP * TILE_PITCH)
#define KEY_WORDS (FINISH ? TILES * TILE_WORDS : 0)
#define BEST_WORDS (FINISH ? 2 * 2 * STRIP : 0)
#define SHARED_WORDS (PATH_WORDS + STORED_RING_WORDS + KEY_WORDS + WINDOWS_WORDS + LEAST_WORDS + BEST_WORDS)

struct Shared {
    u32 *paths, *stored, *keys, *windows, *leasts, *bests;
    __device__ __forceinline__ explicit Shared(u32 *words) {
        paths = words;
        stored = paths + PATH_WORDS;
        keys = stored + STORED_RING_WORDS;
        windows = keys + KEY_WORDS;
        leasts = windows + WINDOWS_WORDS;
        bests = leasts + LEAST_WORDS;
    }
    // The sums of row `i` where those of column 0 begin.
    __device__ __forceinline__ u32 *tile(int i) const { return keys + i % TILES * TILE_WORDS + STRIP; }
    // For each column of row `i` its best key and the number of its rivals.
    __device__ __forceinline__ u32 *best(int i) const { return bests + (i & 1) * (2 * STRIP); }
    __device__ __forceinline__ u32 *window(int i) const {
        return windows + i % WINDOWS * ((WINDOW_WORDS + 3) / 4 * 4);
    }
    // Diagonal 0 comes from the left, its slot 0 is column -TRADE; diagonal 1 from the right, its slot
    // 0 is column 0.
    __device__ __forceinline__ u32 *vector(int diagonal, int buffer, int slot) const {
        return paths + ((diagonal * 2 + buffer) * SLOTS + slot) * DH;
    }
    __device__ __forceinline__ u32 *least(int diagonal, int buffer, int slot) const {
        return leasts + (diagonal * 2 + buffer) * ((SLOTS + 3) / 4 * 4) + slot;
    }
    __device__ __forceinline__ Vector get(int diagonal, int buffer, int slot, u32 lane, u32 &least_of_it) const {
        least_of_it = *least(diagonal, buffer, slot);
        return get_chunks(vector(diagonal, buffer, slot), lane);
    }
    __device__ __forceinline__ void put_vector(int diagonal, int buffer, int slot, u32 lane, const Vector &a) const {
        put_chunks(vector(diagonal, buffer, slot), lane, a);
    }
    __device__ __forceinline__ void put_least(int diagonal, int buffer, int slot, u32 value) const {
        *least(diagonal, buffer, slot) = value;
    }
    __device__ __forceinline__ void put(int diagonal, int buffer, int slot, u32 lane, const Vector &a, u32 least_of_it) const {
        put_vector(diagonal, buffer, slot, lane, a);
        if (lane == 0) put_least(diagonal, buffer, slot, least_of_it);
    }
};

// Path vectors between the two launches of a frame: [sweep][path][columns][DH words].
__device__ __forceinline__ Vector read_state(const u32 *state, int path, int columns, int x, u32 lane) {
    return get_chunks(state + ((size_t)path * columns + x) * DH, lane);
}
__device__ __forceinline__ void write_state(u32 *state, int path, int columns, int x, u32 lane, const Vector &a) {
    put_chunks(state + ((size_t)path * columns + x) * DH, lane, a);
}

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

// Writes a sum of L - C over the paths of a sweep.
__device__ __forceinline__ void store_sum(u32 *pixel, u32 lane, const Vector &sum) {
#if SUM_BYTES
    u32 words[BYTE_WORDS];
    pack(sum, words);
    store_words(pixel + lane * BYTE_WORDS, words);
#else
    put_chunks(pixel, lane, sum);
#endif
}

// What the other sweep and the horizontal paths have stored for a column, fetched some rows ahead into
// shared memory, where each thread reads only what it has fetched itself.
struct Stored {
    // Words are kept [row][words / UNIT][thread][UNIT].
    static constexpr int UNIT = BYTE_WORDS % 4 == 0 ? 4 : BYTE_WORDS % 2 == 0 ? 2 : 1;
    static constexpr int PITCH = MAIN_WARPS * 32 * UNIT;
    u32 *ring;
    const u32 *other_sums, *from_left, *from_right;
    ptrdiff_t step;  // Words from a row of a byte volume to the next.
    int left;        // Rows that are still to be fetched.
    int next;        // Where in the ring the next one goes.

    __device__ __forceinline__ Stored(const Shared &shared, const Rows &rows, const u32 *sums, const u32 *volume_left,
                                      const u32 *volume_right, int columns, int x, int thread, u32 lane) {
        const size_t pixel = ((size_t)rows.first * columns + x) * G;
        ring = shared.stored + thread * UNIT;
        from_left = volume_left + (pixel + lane) * BYTE_WORDS;
        from_right = volume_right + (pixel + lane) * BYTE_WORDS;
        // Sums that are no bytes lie as put_chunks leaves them.
        other_sums = sums + (SUM_BYTES ? (pixel + lane) * BYTE_WORDS : pixel * R + lane * (R % 4 == 0 ? 4 : 2));
        step = (ptrdiff_t)rows.step * columns * G * BYTE_WORDS;
        left = rows.count;
        next = 0;
    }
    __device__ __forceinline__ void fetch() {
        if (left > 0) {
            u32 *to = ring + next * (STORED_WORDS / UNIT * PITCH);
#pragma unroll
            for (int k = 0; k < BYTE_WORDS; k += UNIT) {
                copy_words<UNIT>(to + k / UNIT * PITCH, from_left + k);
                copy_words<UNIT>(to + (BYTE_WORDS + k) / UNIT * PITCH, from_right + k);
            }
#if OTHER_SUMS
#pragma unroll
            for (int k = 0; k < SUM_WORDS; k += UNIT) {
                const int chunk = R % 4 == 0 ? 4 : 2;
                const int at = SUM_BYTES ? k : k / chunk * G * chunk + k % chunk;
                copy_words<UNIT>(to + (2 * BYTE_WORDS + k) / UNIT * PITCH, other_sums + at);
            }
            other_sums += step * (SUM_WORDS / BYTE_WORDS);
#endif
            from_left += step;
            from_right += step;
            left--;
        }
        next = (next + 1) % AHEAD;
        copies_end_group();
    }
    __device__ __forceinline__ void begin() {
        for (int i = 0; i < AHEAD - 1; i++) fetch();
    }
    // Adds what is stored for row `i`.
    __device__ __forceinline__ void add(int i, Vector &sum) {
        fetch();
        copies_wait<AHEAD - 1>();
        const u32 *from = ring + i % AHEAD * (STORED_WORDS / UNIT * PITCH);
        u32 words[STORED_WORDS];
#pragma unroll
        for (int k = 0; k < STORED_WORDS; k += UNIT) {
            u32 unit[UNIT];
            load_words(from + k / UNIT * PITCH, unit);
#pragma unroll
            for (int n = 0; n < UNIT; n++) words[k + n] = unit[n];
        }
        u32 bytes[BYTE_WORDS];
#if 2 * P2_MAX <= 255
        // Both horizontal paths together still fit bytes.
#pragma unroll
        for (int k = 0; k < BYTE_WORDS; k++) bytes[k] = words[k] + words[BYTE_WORDS + k];
        add_packed(sum, bytes);
#else
#pragma unroll
        for (int k = 0; k < BYTE_WORDS; k++) bytes[k] = words[k];
        add_packed(sum, bytes);
#pragma unroll
        for (int k = 0; k < BYTE_WORDS; k++) bytes[k] = words[BYTE_WORDS + k];
        add_packed(sum, bytes);
#endif
#if OTHER_SUMS && SUM_BYTES
#pragma unroll
        for (int k = 0; k < BYTE_WORDS; k++) bytes[k] = words[2 * BYTE_WORDS + k];
        add_packed(sum, bytes);
#elif OTHER_SUMS
#pragma unroll
        for (int j = 0; j < R; j++) sum.v[j] = add2(sum.v[j], words[2 * BYTE_WORDS + j]);
#endif
    }
};
