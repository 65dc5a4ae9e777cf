// What the blocks of a sweep share and exchange (sweep.cu).
#pragma once
#define WINDOW_COLUMNS (STRIP + 2 * TRADE + 2 * MARGIN)
#include "cost.cuh"
#include "volume.cuh"

#define MAX(a, b) ((a) > (b) ? (a) : (b))
#define MAIN_WARPS (STRIP / PIXELS)
// Warps for each border of the strip: a group of lanes for each column but the one that is only
// received.
#define BORDER_WARPS (DIAGONALS ? (TRADE - 1 + PIXELS - 1) / PIXELS : 0)
#define RIGHT_WARPS (LEFT_RIGHT ? (DH + STRIP - 1 + 31) / 32 : 0)
// The last one loads; with FINISH it also completes the pixels, and those before it pick the winners.
#define SUPPORT_WARPS (FINISH ? MAX(MAIN_WARPS, RIGHT_WARPS + 1) : 1)
#define THREADS (32 * (MAIN_WARPS + 2 * BORDER_WARPS + SUPPORT_WARPS))
// Rows of windows in shared memory, and rows of stored sums on their way; powers of two.
#define WINDOWS 8
#define AHEAD 4
// Columns whose diagonal path vectors a block holds.
#define SLOTS (STRIP + TRADE)
// Words a lane of stored sums: bytes where they fit.
#define SUM_BYTES ((1 + 2 * DIAGONALS) * P2_MAX <= 255)
#define SUM_WORDS (SUM_BYTES ? BYTE_WORDS : R)
#define STORED_WORDS (SUM_WORDS * MEETING + 2 * BYTE_WORDS)

// Rows of a launch in their order.
struct Rows {
    int first, step, count, resumed;
    __device__ __forceinline__ int at(int i) const { return first + step * i; }
};

// Where the result goes: a word a pixel, the disparity in its low half and the number of the winner in
// its high one; and a word for each pixel of the right picture, the least (sum << 10 | candidate).
struct Results {
    u32 *winners;
    u32 *right;
    int uniqueness;
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
// Rows of sums in work: one is written, one has its winners picked, one is completed.
#define TILES 3
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
#pragma unroll
        for (int k = 0; k < R; k += 2) {
            u32 a = (path.v[k] & 0x00ff00ff) | tag, b = (path.v[k + 1] & 0x00ff00ff) | tag;
            asm volatile("st.relaxed.gpu.global.v2.u32 [%0], {%1, %2};" ::"l"(to + (k / 2 * G + lane) * 2), "r"(a), "r"(b) : "memory");
        }
        if (lane == 0)
            asm volatile("st.relaxed.gpu.global.u32 [%0], %1;" ::"l"(to + DH), "r"((least & 0x00ff00ff) | tag) : "memory");
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
                asm volatile("ld.relaxed.gpu.global.u32 %0, [%1];" : "=r"(least) : "l"(words + DH) : "memory");
                missing = (least ^ mark) & 0xff00ff00;
#pragma unroll
                for (int k = 0; k < R; k += 2) {
                    asm volatile("ld.relaxed.gpu.global.v2.u32 {%0, %1}, [%2];"
                                 : "=r"(path.v[k]), "=r"(path.v[k + 1])
                                 : "l"(words + (k / 2 * G + lane) * 2)
                                 : "memory");
                    missing |= ((path.v[k] ^ mark) | (path.v[k + 1] ^ mark)) & 0xff00ff00;
                }
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

// What the other sweep and the horizontal paths have stored, fetched some rows ahead into shared
// memory, where each thread reads only what it has fetched itself.
struct Stored {
    u32 *ring;
    const u32 *meeting, *from_left, *from_right;
    int columns, x, thread;
    u32 lane;
    __device__ __forceinline__ Stored(const Shared &shared, const u32 *meeting, const u32 *from_left,
                                      const u32 *from_right, int columns, int x, int thread, u32 lane)
        : ring(shared.stored), meeting(meeting), from_left(from_left), from_right(from_right),
          columns(columns), x(x), thread(thread), lane(lane) {}
    // Words are kept [row][words / 4][thread][4].
    static constexpr int UNIT = BYTE_WORDS % 4 == 0 ? 4 : BYTE_WORDS % 2 == 0 ? 2 : 1;
    __device__ __forceinline__ u32 *slot(int i, int word) const {
        return ring + (size_t)(i % AHEAD) * STORED_WORDS * MAIN_WARPS * 32 + (word / UNIT * MAIN_WARPS * 32 + thread) * UNIT;
    }
    __device__ __forceinline__ void fetch(const Rows &rows, int i) const {
        if (i < rows.count) {
            const size_t pixel = ((size_t)rows.at(i) * columns + x) * G;
            const u32 *left = from_left + (pixel + lane) * BYTE_WORDS, *right = from_right + (pixel + lane) * BYTE_WORDS;
#pragma unroll
            for (int k = 0; k < BYTE_WORDS; k += UNIT) {
                copy_words<UNIT>(slot(i, k), left + k);
                copy_words<UNIT>(slot(i, BYTE_WORDS + k), right + k);
            }
#if MEETING
#pragma unroll
            for (int k = 0; k < SUM_WORDS; k += UNIT) {
#if SUM_BYTES
                const u32 *sum = meeting + (pixel + lane) * SUM_WORDS + k;
#else
                // As put_chunks lays them out.
                const u32 *sum = meeting + pixel * SUM_WORDS + (R % 4 == 0 ? (k / 4 * G + lane) * 4 + k % 4 : (k / 2 * G + lane) * 2 + k % 2);
#endif
                copy_words<UNIT>(slot(i, 2 * BYTE_WORDS + k), sum);
            }
#endif
        }
        copies_end_group();
    }
    __device__ __forceinline__ void begin(const Rows &rows) const {
        for (int i = 0; i < AHEAD - 1; i++) fetch(rows, i);
    }
    // Adds what is stored for row `i`. A warp that also loads windows has their copies among its own,
    // one a row, but fewer at the start.
    __device__ __forceinline__ void add(const Rows &rows, int i, Vector &sum, bool loads) const {
        fetch(rows, i + AHEAD - 1);
        if (loads) copies_wait<2 * AHEAD - 3>();
        else copies_wait<AHEAD - 1>();
        u32 words[STORED_WORDS];
#pragma unroll
        for (int k = 0; k < STORED_WORDS; k += UNIT) {
            u32 unit[UNIT];
            load_words(slot(i, k), unit);
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
#if MEETING && SUM_BYTES
#pragma unroll
        for (int k = 0; k < BYTE_WORDS; k++) bytes[k] = words[2 * BYTE_WORDS + k];
        add_packed(sum, bytes);
#elif MEETING
#pragma unroll
        for (int j = 0; j < R; j++) sum.v[j] = add2(sum.v[j], words[2 * BYTE_WORDS + j]);
#endif
    }
};
