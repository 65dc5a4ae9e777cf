// The warp that takes tasks for its block (row_cursor.cuh) and fetches the path states that they begin with.
#pragma once
#include "row_cursor.cuh"

#if TASKS
// Counters that all blocks share, zeros before a frame: for each launch the tasks that are taken, and for
// each strip of both sweeps the bands that are done.
#define PROGRESS_COUNTERS 2
struct Carrier {
    const Shared &shared;
    u32 *counters, *path_state;
    int strips, height, columns;
    u32 lane;

    // The next task, as number `number` of this block.
    __device__ __forceinline__ void take(u32 number) const {
        if (lane == 0)
            shared.tasks[number % TASK_RING] = task(atomicAdd(counters + SELECT, 1u), strips, Bands(height));
    }
    __device__ __forceinline__ u32 *done(int direction) const {
        return counters + PROGRESS_COUNTERS + direction * strips;
    }
    // Whether the tasks of the band before are done that this one's paths come from.
    __device__ __forceinline__ bool ready(const RowCursor &task) const {
        const int beside = (int)lane - 1, strip = task.strip + beside;
        const bool needed = lane < 3 && (DIAGONALS || beside == 0) && strip >= 0 && strip < strips;
        const bool waits = needed && load_acquire(done(task.direction) + strip) < BREAK(task_before, (u32)task.band, 0u);
        const bool all = !__any_sync(LANES_MASK, waits);
        __syncwarp();  // What they have written is seen by all lanes.
        return all;
    }
    // Starts copying the states that a task begins with. A path that begins has L = C, which is what the recurrence
    // makes of a vector of equal values.
    __device__ __forceinline__ void fetch(const RowCursor &task) const {
        const States before(path_state, task.direction, BREAK(states_of_band, task.band - 1 + 2, task.band), columns);
#pragma unroll
        for (int path = 0; path < (DIAGONALS ? SWEEP_PATHS : 1); path++) {
            const int first = path == 1 ? -HALO : 0, count = path == 0 ? STRIP : SLOTS;
            for (int i = lane; i < count * (STATE_PITCH / 4); i += 32) {
                const int column = first + i / (STATE_PITCH / 4), word = i % (STATE_PITCH / 4) * 4;
                const int x = task.strip * STRIP + column;
                u32 *to = shared.state(path, column) + word;
                if (task.band > 0 && x >= 0 && x < columns) copy16_fresh(to, before.at(path, x) + word);
                else *(uint4 *)to = make_uint4(0, 0, 0, 0);
            }
        }
    }
    // Tells the others that a task is done, whose last row the whole block has ended.
    __device__ __forceinline__ void finish(const RowCursor &task) const {
        if (lane == 0) store_release(done(task.direction) + task.strip, task.band + 1);
    }
    // Waits until a task may begin, and for what it begins with.
    __device__ __forceinline__ void wait(const RowCursor &task) const {
        while (!ready(task)) {}
        fetch(task);
        copies_end_group();
        copies_wait<0>();
    }
    // Row by row beside the other warps.
    __device__ __forceinline__ void run(RowCursor cursor) const {
        u32 taken = TASKS_AHEAD;
        bool fetched = false;
        for (; cursor.left > 0; cursor.next()) {
            if (cursor.begins_task()) {
                take(taken++);
                fetched = false;
            }
            RowCursor following = cursor;
            following.number++;
            following.enter();
            // What the task began with is read in its first row.
            if (!fetched && !cursor.begins_task() && following.left > 0 && ready(following)) {
                fetch(following);
                copies_end_group();
                fetched = true;
            }
            if (!cursor.ends_band()) {
                row_barrier();
                continue;
            }
            copies_wait<0>();
            row_barrier();
            finish(cursor);
            if (!fetched && following.left > 0) wait(following);
            row_barrier();
        }
    }
};
#endif
