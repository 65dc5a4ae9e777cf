// The vertical and the diagonal paths, and where their sums meet, the winner.
//
// Two sweeps run at once, one down from the first row and one up from the last. Each stores the sum of
// its paths' L - C (FINISH = 0) until they meet in the middle; from there (FINISH = 1, a second launch)
// each adds what the other and the horizontal paths have stored and picks the winner, so that the sum
// over all paths never exists in memory.
//
// A block owns a strip of STRIP columns for all rows. Its vertical paths stay in registers; the
// diagonal ones move by one column a row, through shared memory. Every TRADE rows neighbouring strips
// exchange the border columns of the diagonal paths; in between each recomputes a border that shrinks
// by one column a row. The exchange needs no fence: every word carries the number of the exchange in
// the bits that a path cost leaves free, and the reader polls the data itself. All strips of a launch
// must be resident together (a cooperative launch).
//
// A barrier a row keeps the warps of a block in step: MAIN_WARPS for the strip's paths, BORDER_WARPS
// for each border, and the support warps, which load the next rows and, with FINISH, follow one
// to three rows behind with the winners (winner.cuh).
//
// Grid: [strips][sweeps].
#include "exchange.cuh"
#include "winner.cuh"

// The engine launches with these.
#ifdef EXPECTED_THREADS
static_assert(THREADS == EXPECTED_THREADS && 4 * (SHARED_WORDS) == EXPECTED_SHARED_BYTES, "geometry.rs");
#endif

// L of the next pixel, but for the least path cost before it, which less() takes off.
__device__ __forceinline__ Vector advance(const Vector &best, const Vector &c, u32 lane) {
    Vector path;
#pragma unroll
    for (int j = 0; j < R; j++) {
        path.v[j] = add2(best.v[j], c.v[j]);
        if (D < DP) path.v[j] |= padding(lane, j);
    }
    return path;
}

__device__ __forceinline__ Vector less(Vector a, u32 b, u32 lane) {
#pragma unroll
    for (int j = 0; j < R; j++) {
        a.v[j] = sub2(a.v[j], b);
        if (D < DP) a.v[j] |= padding(lane, j);
    }
    return a;
}

extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS_PER_SM)
    sweep(const u32 *steps_down, const u32 *steps_up, const u32 *base, const u32 *match, int row, int width,
          int height, int columns, u32 *outbox, u32 turn, u32 *state, u32 *sums_down, u32 *sums_up,
          const u32 *from_left, const u32 *from_right, u32 *winners, u32 *right) {
    DYNAMIC_SHARED(uint4, shared_words);
    const Shared shared(reinterpret_cast<u32 *>(shared_words));
    const int direction = HALVES ? blockIdx.y : DIRECTION, strip = blockIdx.x, strips = gridDim.x;
    const Rows rows(direction, height);
    if (rows.count == 0) return;
    const Features features = {direction == 0 ? steps_down : steps_up, base, match, row};
    // Numbers of exchanges never repeat within memory's reach, and begin above the zeros of new memory.
    const u32 exchanges_before = (turn * 2 + FINISH) * (height / TRADE + 1) + 1;
    const int first_column = strip * STRIP, window_column = first_column - TRADE - MARGIN;
    const Exchange exchange(outbox, direction, strip, strips, exchanges_before);
    u32 *own_state = state + (size_t)direction * 3 * columns * DH;
    const int warp = threadIdx.x / 32, group = threadIdx.x % 32 / G;
    const u32 lane = group_lane();
    const Edges edges(lane);

    // The first rows' windows.
    for (int i = 0; i < WINDOWS - 1; i++) {
        if (i < rows.count)
            copy_window(shared.window(i), features, window_column, rows.at(i), threadIdx.x, THREADS);
        copies_end_group();
    }
    // The diagonal paths' vectors of the row before the first: those of the launch before, or zeros. A
    // path that begins has L = C, which is what the recurrence makes of a vector of equal values.
    if (DIAGONALS) {
        for (int first = warp * PIXELS; first < 2 * 2 * SLOTS; first += THREADS / 32 * PIXELS) {
            // The last groups of a warp may repeat the last vector: all lanes must take part.
            int i = min(first + group, 2 * 2 * SLOTS - 1);
            int diagonal = i / (2 * SLOTS), buffer = i / SLOTS % 2, slot = i % SLOTS;
            int column = first_column + slot - (diagonal == 0 ? TRADE : 0);
            Vector path = filled(0);
            if (rows.resumed && column >= 0 && column < columns && buffer == 1)
                path = read_state(own_state, 1 + diagonal, columns, column, lane);
            shared.put(diagonal, buffer, slot, lane, path, least_of(path));
        }
    }
    // Around the sums there is nothing to be found.
    for (int i = threadIdx.x; i < KEY_WORDS; i += THREADS) shared.keys[i] = 0xffffffffu;
    copies_wait<0>();
    __syncthreads();

    if (warp < MAIN_WARPS) {
        const int column = warp * PIXELS + group, x = first_column + column;
        const bool inside = x < width, partial = first_column + STRIP > width;
        Vector vertical = filled(0);
        if (rows.resumed) vertical = read_state(own_state, 0, columns, x, lane);
        u32 least = least_of(vertical);
#if !FINISH
        u32 *out = (direction == 0 ? sums_down : sums_up) + ((size_t)rows.first * columns + x) * G * SUM_WORDS;
        const ptrdiff_t out_step = (ptrdiff_t)rows.step * columns * G * SUM_WORDS;
#endif
        int until_exchange = TRADE;

        for (int i = 0; i < rows.count; i++) {
            const u32 *window = shared.window(i);
            const u32 steps = window[TRADE + MARGIN + column];
            const Vector c = cost(window_of(window), TRADE + MARGIN + column, lane, steps, window_column, width);
            const int before = (i + 1) & 1, now = i & 1;

            const bool exchanges = --until_exchange == 0;
            const bool normalises = exchanges || i + 1 == rows.count || !LAZY;
            Vector sum = recurrence(vertical, add2(least, __byte_perm(steps, 0, 0x4141)), edges);
            vertical = advance(sum, c, lane);
            if (normalises) vertical = less(vertical, least, lane);
            u32 leasts = least;
            if (DIAGONALS) {
                u32 least_right, least_left;
                Vector right = shared.get(0, before, column - 1 + TRADE, lane, least_right);
                Vector left = shared.get(1, before, column + 1, lane, least_left);
                const Vector best_right = recurrence(right, add2(least_right, __byte_perm(steps, 0, 0x4242)), edges);
                const Vector best_left = recurrence(left, add2(least_left, __byte_perm(steps, 0, 0x4343)), edges);
                right = advance(best_right, c, lane);
                left = advance(best_left, c, lane);
#pragma unroll
                for (int j = 0; j < R; j++) sum.v[j] = add2(sum.v[j], add2(best_right.v[j], best_left.v[j]));
                leasts = add2(leasts, add2(least_right, least_left));
                if (normalises) {
                    right = less(right, least_right, lane);
                    left = less(left, least_left, lane);
                }
                // Right of the picture no path comes in. (The first question is the same for the block.)
                if (partial && !inside) left = filled(0);
                shared.put_vector(0, now, column + TRADE, lane, right);
                shared.put_vector(1, now, column, lane, left);
                // Two of the least values travel through the lanes as one register.
                u32 pair = __byte_perm(lesser_half(least_of_registers(right)),
                                       lesser_half(least_of_registers(left)), 0x5410);
                least = least_of(vertical);
                pair = least_of_lanes(pair);
                least_right = __byte_perm(pair, 0, 0x1010);
                least_left = __byte_perm(pair, 0, 0x3232);
                if (lane == 0) {
                    shared.put_least(0, now, column + TRADE, least_right);
                    shared.put_least(1, now, column, least_left);
                }
                if (exchanges && i + 1 < rows.count)
                    exchange.send(i / TRADE, column, lane, right, least_right, left, least_left);
            } else {
                least = least_of(vertical);
            }
            if (exchanges) until_exchange = TRADE;
#pragma unroll
            for (int j = 0; j < R; j++) sum.v[j] = sub2(sum.v[j], leasts);

#if FINISH
            put_sums(shared.tile(i) + column * TILE_PITCH, sum, c, lane);
#else
            store_sum(out, lane, sum);
            out += out_step;
#endif
            if (!FINISH && i + 1 == rows.count) {
                write_state(own_state, 0, columns, x, lane, vertical);
                if (DIAGONALS) {
                    u32 ignored;
                    write_state(own_state, 1, columns, x, lane, shared.get(0, now, column + TRADE, lane, ignored));
                    write_state(own_state, 2, columns, x, lane, shared.get(1, now, column, lane, ignored));
                }
            }
            __syncthreads();
        }
    } else if (warp < MAIN_WARPS + 2 * BORDER_WARPS) {
        // The columns left of the strip, whose paths come from the left, and those right of it; 0 is the
        // column next to the strip.
        const int side = (warp - MAIN_WARPS) / MAX(1, BORDER_WARPS);
        const int first = (warp - MAIN_WARPS) % MAX(1, BORDER_WARPS) * PIXELS, distance = first + group;
        const bool neighbour = side == 0 ? strip > 0 : strip + 1 < strips;
        const int at = min(distance, TRADE - 2), slot = side == 0 ? TRADE - 1 - at : STRIP + at;
        const int window_x = TRADE + MARGIN + (side == 0 ? -1 - at : STRIP + at);
        const bool empty = first_column + window_x - TRADE - MARGIN >= width;
        const u32 penalty = side == 0 ? 0x4242u : 0x4343u;
        int border = TRADE;
        for (int i = 0; i < rows.count; i++) {
            const int before = (i + 1) & 1, now = i & 1;
            border--;  // Columns to recompute in this row.
            if (neighbour && first < border) {
                const u32 *window = shared.window(i);
                const u32 steps = window[window_x];
                const Vector c = cost(window_of(window), window_x, lane, steps, window_column, width);
                u32 least;
                Vector path = shared.get(side, before, side == 0 ? slot - 1 : slot + 1, lane, least);
                path = recurrence(path, add2(least, __byte_perm(steps, 0, penalty)), edges);
                path = advance(path, c, lane);
                if (!LAZY) path = less(path, least, lane);
                if (empty) path = filled(0);
                least = least_of(path);
                if (distance < border) shared.put(side, now, slot, lane, path, least);
            }
            if (border == 0) {
                border = TRADE;
                if (neighbour && i + 1 < rows.count)
                    exchange.receive(shared, i / TRADE, side, now, distance, lane);
            }
            __syncthreads();
        }
    } else {
        const int support = warp - MAIN_WARPS - 2 * BORDER_WARPS;
        const bool loads = support == SUPPORT_WARPS - 1;
#if FINISH
        const Results results = {winners, right};
        const bool picks = support < PICK_WARPS, completes = support == SUPPORT_WARPS - 2;
        const int column = support * PIXELS + group, thread = support * 32 + threadIdx.x % 32;
        Stored stored(shared, rows, direction == 0 ? sums_up : sums_down, from_left, from_right, columns,
                      first_column + column, thread, lane);
        if (picks) stored.begin();
        Picked picked = {filled(0), 0};
#endif
        for (int i = 0; i < rows.count + (FINISH ? 3 : 0); i++) {
            if (loads) {
                int next = i + WINDOWS - 1;
                if (next < rows.count)
                    copy_window(shared.window(next), features, window_column, rows.at(next), threadIdx.x % 32, 32);
                copies_end_group();
                // The next row's window must be there.
                copies_wait<WINDOWS - 2>();
            }
#if FINISH
            else if (picks) {
                if (i >= 1 && i <= rows.count) {
                    // Together, so that one fills the waiting of the other; nobody looks at what
                    // becomes of the row before the first.
                    const Picked before = picked;
                    picked = pick(shared, stored, i - 1, column, first_column, width, lane);
                    compare(shared, before, i - 2, column, lane);
                } else if (i == rows.count + 1) {
                    compare(shared, picked, i - 2, column, lane);
                }
            } else if (completes) {
                if (i >= 3) complete(shared, i - 3, first_column, width, rows.at(i - 3), columns, results);
            }
#if LEFT_RIGHT
            else if (i >= 2 && i - 2 < rows.count) {
                match_right(shared, i - 2, thread - PICK_WARPS * 32, first_column, width, rows.at(i - 2), results);
            }
#endif
#endif
            if (i < rows.count) __syncthreads();
#if FINISH
            // The last rows, when the other warps have ended.
            else barrier_of_some<32 * SUPPORT_WARPS>();
#endif
        }
    }
}
