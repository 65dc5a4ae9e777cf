// Warp role that takes tasks for its block (row_cursor.cuh) and fetches their initial path states.
#pragma once
#include "row_cursor.cuh"

#if TASKS
// Counters shared by all blocks, zero before each frame: tasks taken, per launch, and bands done,
// per strip of both sweeps.
#define PROGRESS_COUNTERS 2
struct Carrier {
    const Shared &shared;
    u32 *counters, *path_state;
    int strips, height, columns;
    u32 lane;

    // Takes the next task and stores it as number `number` of this block.
    __device__ __forceinline__ void take(u32 number) const {
        if (lane == 0)
            shared.tasks[number % TASK_RING] = task(atomicAdd(counters + SELECT, 1u), strips, Bands(height));
    }
    __device__ __forceinline__ u32 *done(int direction) const {
        return counters + PROGRESS_COUNTERS + direction * strips;
    }
    // Reports whether the tasks of the previous band that this task's paths come from are done.
    __device__ __forceinline__ bool ready(const RowCursor &task) const {
        const int beside = (int)lane - 1, strip = task.strip + beside;
        const bool needed = lane < 3 && (DIAGONALS || beside == 0) && strip >= 0 && strip < strips;
        const bool waits = needed && load_acquire(done(task.direction) + strip) < BREAK(task_before, (u32)task.band, 0u);
        const bool all = !__any_sync(LANES_MASK, waits);
        __syncwarp();  // Makes the writes acquired above visible to all lanes.
        return all;
    }
    // Starts copying the initial path states of a task. A new path starts with L = C, which the
    // recurrence yields for a vector of equal values.
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
    // Publishes that a task is done. The whole block must have ended its last row.
    __device__ __forceinline__ void finish(const RowCursor &task) const {
        if (lane == 0) store_release(done(task.direction) + task.strip, task.band + 1);
    }
    // Waits until a task may begin and its initial states have arrived.
    __device__ __forceinline__ void wait(const RowCursor &task) const {
        while (!ready(task)) {}
        fetch(task);
        copies_end_group();
        copies_wait<0>();
    }
    // Runs in step with the other warps, one row at a time.
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
            // The state buffer is free only after the current task's first row has read it.
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
