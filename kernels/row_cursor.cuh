// Position of a sweep's warp in the image, and how blocks divide the image among them
// (aggregate_sweep.cu).
//
// If all strips are resident at once (TASKS = 0), each block has a strip of its own from the
// launch's first row to its last. Otherwise (TASKS = 1) the picture is cut into tasks: the HALO
// rows of a *band* in a strip. Blocks take them from a counter, band by band, and hand the path
// states at a band's end over through memory. A task waits for the three tasks of the band before
// that its paths come from. Tasks are taken in order, so it waits only for earlier tasks. The sweep
// cannot deadlock with any number of resident blocks, because the block with the earliest
// unfinished task can always proceed.
#pragma once
#include "sweep.cuh"

#if TASKS
// Tasks that a block has taken in advance, because it loads rows ahead; and room for them and for
// those that its last warps are still at.
#define TASKS_AHEAD 3
#define NO_TASK 0xffffffffu
static_assert(WINDOWS - 1 <= (TASKS_AHEAD - 1) * HALO && AHEAD <= HALO && TASKS_AHEAD + 2 <= TASK_RING,
              "what is loaded ahead belongs to tasks that are known");

// Bands of the picture, and of those the downward sweep takes before both meet.
struct Bands {
    int all, middle;
    __device__ __forceinline__ explicit Bands(int height) {
        all = (height + HALO - 1) / HALO;
        middle = all / 2;
    }
    // Bands that a sweep has gone through before this launch.
    __device__ __forceinline__ int before(int direction) const {
        return TWO_SWEEPS && SELECT ? (direction == 0 ? middle : all - middle) : 0;
    }
};

// A task in a word: its direction, its strip, and its band as the sweep counts them.
__device__ __forceinline__ u32 task_word(int direction, int strip, int band) {
    return direction | strip << 1 | band << 16;
}
// The task of a number: one band after the other, of both sweeps in turn. The sweep with a band
// more ends alone.
__device__ __forceinline__ u32 task(int number, int strips, const Bands &bands) {
    if (number >= strips * bands.all) return NO_TASK;
    if (!TWO_SWEEPS) return task_word(DIRECTION, number % strips, number / strips);
    const bool alone = number >= 2 * strips * bands.middle;
    const int direction = alone ? !SELECT : number / strips % 2;
    return task_word(direction, number % strips, bands.before(direction) + number / (2 * strips));
}

struct RowCursor {
    int strip, direction, y;
    int left;  // Rows of this task with the one it is at; 0 where there is no more.
    int band;
    u32 number;  // Of this task of the block.
    int bands;   // Of the picture.
    const u32 *ring;
    __device__ __forceinline__ RowCursor(const u32 *ring, int height) : number(0), bands(Bands(height).all), ring(ring) {
        enter();
    }
    __device__ __forceinline__ void enter() {
        const u32 word = ring[number % TASK_RING];
        left = word == NO_TASK ? 0 : HALO;
        direction = word & 1;
        strip = word >> 1 & 0x7fff;
        band = word >> 16;
        y = direction == 0 ? band * HALO : (bands - band) * HALO - 1;
    }
    // Call only after end_row(), because then the ring holds the next task.
    __device__ __forceinline__ void next() {
        y += direction == 0 ? 1 : -1;
        if (left > 0 && --left == 0) number++, enter();
    }
    // Reports whether this is a task's first row.
    __device__ __forceinline__ bool begins_task() const { return left == HALO; }
    // Reports whether this is the last row before neighbouring strips exchange columns.
    __device__ __forceinline__ bool ends_band() const { return left == 1; }
};
#else
struct RowCursor {
    int strip, direction, y, left, until_exchange;
    static constexpr int band = 0;
    bool resumed;  // The launch continues from the states of the previous one.
    // With TWO_SWEEPS two sweeps share the picture: each first goes to the middle and, in a second
    // launch, on from there. Otherwise one sweep takes all rows.
    __device__ __forceinline__ RowCursor(int direction, int strip, int height)
        : strip(strip), direction(direction), until_exchange(HALO) {
        const int middle = height / 2;
        if (TWO_SWEEPS) {
            y = direction == 0 ? (SELECT ? middle : 0) : (SELECT ? middle - 1 : height - 1);
            left = (direction == 0) != SELECT ? middle : height - middle;
            resumed = SELECT && (direction == 0 ? middle : height - middle) > 0;
        } else {
            y = direction == 0 ? 0 : height - 1;
            left = height;
            resumed = false;
        }
    }
    __device__ __forceinline__ void next() {
        y += direction == 0 ? 1 : -1;
        left--;
        if (--until_exchange == 0) until_exchange = HALO;
    }
    __device__ __forceinline__ bool begins_task() const { return false; }
    __device__ __forceinline__ bool ends_band() const { return until_exchange == 1; }
    // Reports whether another row follows in this strip.
    __device__ __forceinline__ bool has_next() const { return left > 1; }
};
#endif

// Ends a row for the warps that follow paths and those that load for them.
__device__ __forceinline__ void row_barrier() {
    if (SELECT) barrier_wait<ROW_THREADS>(ROW_BARRIER);
    else __syncthreads();
}

// Ends a row; after the last one of a task, once more when the next one's states are there.
__device__ __forceinline__ void end_row(const RowCursor &cursor) {
    row_barrier();
    if (TASKS && cursor.ends_band()) row_barrier();
}
