// Reads the path deltas that the other sweep and the horizontal paths have stored, for a sweep that
// adds them to its own.
#pragma once
#include "row_cursor.cuh"

// The path deltas that the other sweep and the horizontal paths have stored for a column, fetched
// some rows ahead into shared memory, where each thread reads only what it has fetched itself, or,
// where that is short, one row ahead into registers.
struct StoredDeltas {
    // Words are kept [row][words / UNIT][thread][UNIT].
    static constexpr int UNIT = BYTE_WORDS % 4 == 0 ? 4 : BYTE_WORDS % 2 == 0 ? 2 : 1;
    static constexpr int PITCH = MAIN_WARPS * 32 * UNIT;
    u32 *ring;
    u32 words[STORED_WORDS];  // A row's.
    const u32 *sums_down, *sums_up, *volume_left, *volume_right;
    const u32 *other_sums, *from_left, *from_right;  // The next row's.
    ptrdiff_t step;  // Words from a row of a byte volume to the next.
    int columns, height, column;
    u32 lane;
    RowCursor cursor;         // The row that is fetched next,
    int next;        // and where in the ring it goes.

    __device__ __forceinline__ StoredDeltas(const Shared &shared, const RowCursor &start, const u32 *sums_down,
                                            const u32 *sums_up, const u32 *volume_left, const u32 *volume_right,
                                            int columns, int height, int column, int thread, u32 lane)
        : ring(shared.stored + thread * UNIT), sums_down(sums_down), sums_up(sums_up), volume_left(volume_left),
          volume_right(volume_right), columns(columns), height(height), column(column), lane(lane), cursor(start),
          next(0) {
        enter();
    }
    __device__ __forceinline__ void enter() {
        const ptrdiff_t pixel = ((ptrdiff_t)cursor.y * columns + cursor.strip * STRIP + column) * GROUP;
        from_left = volume_left + (pixel + lane) * BYTE_WORDS;
        from_right = volume_right + (pixel + lane) * BYTE_WORDS;
        // Sums that are no bytes lie as put_interleaved leaves them.
        other_sums = (cursor.direction == 0 ? sums_up : sums_down) +
                     (SUM_BYTES ? (pixel + lane) * BYTE_WORDS : pixel * REGISTERS + interleaved(lane, 0));
        step = (ptrdiff_t)(cursor.direction == 0 ? 1 : -1) * columns * GROUP * BYTE_WORDS;
    }
    __device__ __forceinline__ void fetch() {
        if (cursor.left > 0) {
            if (TASKS && cursor.begins_task()) enter();
            fetch_row();
            from_left += step;
            from_right += step;
            if (OTHER_SUMS) other_sums += BREAK(other_sums, step, -step) * (SUM_WORDS / BYTE_WORDS);
            cursor.next();
        }
        next = (next + 1) % AHEAD;
        copies_end_group();
    }
    __device__ __forceinline__ void fetch_row() {
        if (TASKS && cursor.y >= height) return;
#pragma unroll
        for (int k = 0; k < BYTE_WORDS; k += UNIT) {
            fetch_unit(k, from_left + k);
            fetch_unit(BYTE_WORDS + k, from_right + k);
        }
#if OTHER_SUMS
#pragma unroll
        for (int k = 0; k < SUM_WORDS; k += UNIT)
            fetch_unit(2 * BYTE_WORDS + k, other_sums + (SUM_BYTES ? k : interleaved(0, k)));
#endif
    }
    // Fetches the words of a row from number `at`.
    __device__ __forceinline__ void fetch_unit(int at, const u32 *from) {
#if STORED_IN_REGISTERS
        get_words<UNIT>(from, words + at);
#else
        copy_words<UNIT>(ring + (next * (STORED_WORDS / UNIT) + at / UNIT) * PITCH, from);
#endif
    }
    __device__ __forceinline__ void begin() {
        for (int i = 0; i < (STORED_IN_REGISTERS ? 1 : AHEAD - 1); i++) fetch();
    }
    // Adds what is stored for row `i`.
    __device__ __forceinline__ void add(int i, Vector &sum) {
#if !STORED_IN_REGISTERS
        fetch();
        copies_wait<AHEAD - 1>();
        const u32 *from = ring + i % AHEAD * (STORED_WORDS / UNIT * PITCH);
#pragma unroll
        for (int k = 0; k < STORED_WORDS; k += UNIT) get_words<UNIT>(from + k / UNIT * PITCH, words + k);
#endif
#pragma unroll
        for (int k = 0; k < BYTE_WORDS; k++) {
            const u32 left = words[k], right = words[BYTE_WORDS + k];
            // Sums of even bytes overflow into those of odd ones, which are subtracted again.
            u32 all = left + right, odd = 2 * P2 <= 255 ? odd_bytes(all) : odd_bytes(left) + odd_bytes(right);
#if OTHER_SUMS && SUM_BYTES
            all += words[2 * BYTE_WORDS + k];
            odd += odd_bytes(words[2 * BYTE_WORDS + k]);
#endif
            sum.v[2 * k] = add2(sum.v[2 * k], all - (odd << 8));
            sum.v[2 * k + 1] = add2(sum.v[2 * k + 1], odd);
        }
#if OTHER_SUMS && !SUM_BYTES
#pragma unroll
        for (int j = 0; j < REGISTERS; j++) sum.v[j] = add2(sum.v[j], words[2 * BYTE_WORDS + j]);
#endif
        if (STORED_IN_REGISTERS) fetch();
    }
};
