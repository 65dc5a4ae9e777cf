// The path deltas that a sweep adds to its own.
#pragma once
#include "sweep.cuh"

// The path deltas that the other sweep and the horizontal paths have stored for a column, fetched some
// rows ahead into shared memory, where each thread reads only what it has fetched itself.
struct StoredDeltas {
    // Words are kept [row][words / UNIT][thread][UNIT].
    static constexpr int UNIT = BYTE_WORDS % 4 == 0 ? 4 : BYTE_WORDS % 2 == 0 ? 2 : 1;
    static constexpr int PITCH = MAIN_WARPS * 32 * UNIT;
    u32 *ring;
    const u32 *other_sums, *from_left, *from_right;
    ptrdiff_t step;  // Words from a row of a byte volume to the next.
    int left;        // Rows that are still to be fetched.
    int next;        // Where in the ring the next one goes.

    __device__ __forceinline__ StoredDeltas(const Shared &shared, const Rows &rows, const u32 *sums,
                                            const u32 *volume_left, const u32 *volume_right, int columns,
                                            int x, int thread, u32 lane) {
        const size_t pixel = ((size_t)rows.first * columns + x) * GROUP;
        ring = shared.stored + thread * UNIT;
        from_left = volume_left + (pixel + lane) * BYTE_WORDS;
        from_right = volume_right + (pixel + lane) * BYTE_WORDS;
        // Sums that are no bytes lie as put_interleaved leaves them.
        other_sums = sums + (SUM_BYTES ? (pixel + lane) * BYTE_WORDS : pixel * REGISTERS + interleaved(lane, 0));
        step = (ptrdiff_t)rows.step * columns * GROUP * BYTE_WORDS;
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
                const int at = SUM_BYTES ? k : interleaved(0, k);
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
        for (int j = 0; j < REGISTERS; j++) sum.v[j] = add2(sum.v[j], words[2 * BYTE_WORDS + j]);
#endif
    }
};
