// The vertical and the diagonal paths, and where their sums meet, the winner.
//
// Two sweeps run at once, one down from the first row and one up from the last. Each stores the sum of
// its path deltas until they meet in the middle (SELECT = 0); from there (SELECT = 1, a second launch)
// each adds what the other and the horizontal paths have stored and picks the winner, so that the sum
// over all paths never exists in memory.
//
// A block owns a strip of STRIP columns for all rows. Its vertical paths stay in registers; the
// diagonal ones move by one column a row, through shared memory. Every HALO rows neighbouring strips
// exchange HALO columns of the diagonal paths; in between each recomputes a halo that shrinks by one
// column a row. The exchange needs no fence: every word carries the number of the exchange in the bits
// that a path cost leaves free, and the reader polls the data itself. All strips of a launch must be
// resident together (a cooperative launch).
//
// Where they cannot be, blocks take tasks instead, HALO rows of a strip each, and hand the path states over
// through memory (TASKS, row_cursor.cuh).
//
// A barrier a row keeps warps of a block in step: MAIN_WARPS for the strip's paths, HALO_WARPS for the halo on
// each side, and the one that loads the next rows. With SELECT others follow one to three rows behind with the
// winners (winner.cuh), with a barrier of their own; both know by two more which tiles of sums are full and
// which are free, so that neither waits for the other row by row.
//
// Grid: [strips][sweeps]; with TASKS as many blocks as are resident.
#include "halo.cuh"
#include "tasks.cuh"
#include "winner.cuh"

static_assert(SWEEP_THREADS == EXPECTED_THREADS && 4 * SHARED_WORDS == EXPECTED_SHARED_BYTES,
              "geometry.rs: Strips::block");

// What a sweep reads and writes. `row` and `columns` are lengths of rows: of the prepared ones, and of
// those of all strips together.
struct Arguments {
    const u32 *p2_down, *p2_up;           // [height][row]: the words of the pixels (cost.cuh)
    const u32 *base;                      // [height][BASE_WORDS][row]
    const u32 *match;                     // [height][PLANES][row / COLUMNS]
    int row;
    int width, height;                    // of the picture
    int columns;
    int strips;
    u32 *between;                         // what strips tell each other: as HaloExchange has it, or Carrier
    u32 turn;                             // frames that the buffer has served
    u32 *path_state;                      // as States has it
    u32 *sums_down, *sums_up;             // [height][columns][GROUP][SUM_WORDS]: sums of path deltas
    const u32 *from_left, *from_right;    // [height][columns][GROUP][BYTE_WORDS]: path deltas
    u32 *winners;                         // [height][columns]: words of winners (disparity.cuh)
    u32 *right;                           // [height][width]: keys of the right picture's winners
    u8 *peaks;                            // [height][columns]: how far the winners stand out, with CONFIDENCE
};

// L of the next pixel, but for the least path cost before it, which less() takes off. `delta` is what
// recurrence() gives.
__device__ __forceinline__ Vector advance(const Vector &delta, const Vector &c, u32 lane) {
    Vector path;
#pragma unroll
    for (int j = 0; j < REGISTERS; j++) {
        path.v[j] = add2(delta.v[j], c.v[j]);
        if (DISPARITIES < PADDED_DISPARITIES) path.v[j] |= padding(lane, j);
    }
    return path;
}

__device__ __forceinline__ Vector less(Vector a, u32 b, u32 lane) {
#pragma unroll
    for (int j = 0; j < REGISTERS; j++) {
        a.v[j] = sub2(a.v[j], b);
        if (DISPARITIES < PADDED_DISPARITIES) a.v[j] |= padding(lane, j);
    }
    return a;
}

// The penalty P2 of one of a pixel's paths, in both halves.
__device__ __forceinline__ u32 p2_in_both(u32 pixel, int path) {
    return __byte_perm(pixel, 0, IN_BOTH_HALVES(path));
}

// Starts copying the window of a row, with `threads` threads.
__device__ __forceinline__ void copy_window_of(u32 *to, const Arguments &of, const RowCursor &cursor, int thread, int threads) {
    const Features features = {cursor.direction == 0 ? of.p2_down : of.p2_up, of.base, of.match, of.row};
    copy_window(to, features, cursor.strip * STRIP - BORDER - MARGIN, TASKS ? min(cursor.y, of.height - 1) : cursor.y, thread,
                threads);
}

extern "C" __global__ void __launch_bounds__(SWEEP_THREADS, BLOCKS_PER_SM)
    aggregate_sweep(const u32 *p2_down, const u32 *p2_up, const u32 *base, const u32 *match, int row, int width, int height,
          int columns, int strips, u32 *between, u32 turn, u32 *path_state, u32 *sums_down, u32 *sums_up,
          const u32 *from_left, const u32 *from_right, u32 *winners, u32 *right, u8 *peaks) {
    // Taken one by one: with the structure as the only parameter the compiler makes other code.
    const Arguments of = {p2_down, p2_up, base, match, row, width, height, columns, strips, between, turn, path_state,
                          sums_down, sums_up, from_left, from_right, winners, right, peaks};
    DYNAMIC_SHARED(uint4, shared_words);
    const Shared shared(reinterpret_cast<u32 *>(shared_words));
    const int warp = threadIdx.x / 32, group = warp_group();
    const u32 lane = group_lane();
    const Edges edges(lane);
#if TASKS
    const bool carries = warp == SWEEP_THREADS / 32 - 1;
    const Carrier carrier = {shared, between, path_state, strips, height, columns, threadIdx.x % 32};
    if (carries)
        for (int number = 0; number < TASKS_AHEAD; number++) carrier.take(number);
    __syncthreads();
    const RowCursor start(shared.tasks, height);
#else
    const RowCursor start(TWO_SWEEPS ? blockIdx.y : DIRECTION, blockIdx.x, height);
    // Numbers of exchanges never repeat within memory's reach, and begin above the zeros of new memory.
    const u32 exchanges_before = (of.turn * 2 + SELECT) * (height / HALO + 1) + 1;
    const HaloExchange exchange(of.between, start.direction, start.strip, strips, exchanges_before);
#endif
    if (start.left == 0) return;

    // The first rows' windows.
    RowCursor ahead = start;
    for (int i = 0; i < WINDOWS - 1; i++, ahead.next()) {
        if (ahead.left > 0) copy_window_of(shared.window(i), of, ahead, threadIdx.x, SWEEP_THREADS);
        copies_end_group();
    }
#if TASKS
    if (carries) carrier.wait(start);
#else
    const States states(of.path_state, start.direction, 0, columns);
    // The diagonal paths' vectors of the row before the first: those of the launch before, or zeros. A
    // path that begins has L = C, which is what the recurrence makes of a vector of equal values.
    if (DIAGONALS) {
        for (int first = warp * WARP_PIXELS; first < 2 * 2 * SLOTS; first += SWEEP_THREADS / 32 * WARP_PIXELS) {
            // The last groups of a warp may repeat the last vector: all lanes must take part.
            int i = min(first + group, 2 * 2 * SLOTS - 1);
            int diagonal = i / (2 * SLOTS), buffer = i / SLOTS % 2, slot = i % SLOTS;
            int column = start.strip * STRIP + slot - (diagonal == 0 ? HALO : 0);
            Vector path = filled(0);
            u32 least = 0;
            if (start.resumed && column >= 0 && column < columns && buffer == 1)
                path = states.read(1 + diagonal, column, lane, least);
            shared.put(diagonal, buffer, slot, lane, path, least);
        }
    }
#endif
    // Around the sums there is nothing to be found.
    for (int i = threadIdx.x; i < KEY_WORDS; i += SWEEP_THREADS) shared.keys[i] = 0xffffffffu;
    copies_wait<0>();
    __syncthreads();

    if (warp < MAIN_WARPS) {
        const int column = warp * WARP_PIXELS + group;
        Vector vertical = filled(0);
        u32 least = 0;
#if !TASKS
        if (start.resumed) vertical = states.read(0, start.strip * STRIP + column, lane, least);
#endif
        RowCursor cursor = start;
#if !SELECT
        // Where the row's sums go, and the way from row to row.
        u32 *out = nullptr;
        ptrdiff_t out_step = 0;
        auto enter = [&] {
            out = (cursor.direction == 0 ? of.sums_down : of.sums_up) +
                  ((ptrdiff_t)cursor.y * columns + cursor.strip * STRIP + column) * GROUP * SUM_WORDS;
            out_step = (ptrdiff_t)(cursor.direction == 0 ? 1 : -1) * columns * GROUP * SUM_WORDS;
        };
        if (!TASKS) enter();
#endif
        for (int i = 0; cursor.left > 0; i++) {
            const int first_column = cursor.strip * STRIP, x = first_column + column;
            // The picture ends beside this strip's last column, or above this row.
            const bool partial = first_column + STRIP > width, below = TASKS && cursor.y >= height;
#if !SELECT
            if (TASKS && cursor.begins_task()) enter();
#endif
            const u32 *window = shared.window(i);
            const u32 pixel = window[BORDER + MARGIN + column];
            const Vector c = cost(window_of(window), BORDER + MARGIN + column, lane, pixel,
                                  first_column - BORDER - MARGIN, width);
            const int before = (i + 1) & 1, now = i & 1;

            const bool exchanges = cursor.ends_band();
            const bool normalises = exchanges || cursor.left == 1 || !LAZY;
            // Whether the states go to memory, for who goes on from here.
            const bool hands_over = TASKS && exchanges;
            if (TASKS && cursor.begins_task()) vertical = shared.begin(0, column, lane, least);
            Vector sum = recurrence(vertical, add2(least, p2_in_both(pixel, P2_VERTICAL)), edges);
            vertical = advance(sum, c, lane);
            if (normalises) vertical = less(vertical, least, lane);
            if (below) vertical = filled(0);
            u32 leasts = least;
            if (DIAGONALS) {
                u32 least_right, least_left;
                Vector right, left;
                if (TASKS && cursor.begins_task()) {
                    right = shared.begin(1, column - 1, lane, least_right);
                    left = shared.begin(2, column + 1, lane, least_left);
                } else {
                    right = shared.get(0, before, column - 1 + HALO, lane, least_right);
                    left = shared.get(1, before, column + 1, lane, least_left);
                }
                const u32 p2_right = p2_in_both(pixel, P2_DIAGONAL_FROM_LEFT);
                const u32 p2_left = p2_in_both(pixel, P2_DIAGONAL_FROM_RIGHT);
                const Vector delta_right = recurrence(right, add2(least_right, p2_right), edges);
                const Vector delta_left = recurrence(left, add2(least_left, p2_left), edges);
                right = advance(delta_right, c, lane);
                left = advance(delta_left, c, lane);
#pragma unroll
                for (int j = 0; j < REGISTERS; j++) sum.v[j] = add2(sum.v[j], add2(delta_right.v[j], delta_left.v[j]));
                leasts = add2(leasts, add2(least_right, least_left));
                if (normalises) {
                    right = less(right, least_right, lane);
                    left = less(left, least_left, lane);
                }
                // Right of the picture no path comes in, nor from below. (The first questions are the same for the
                // block.)
                if (below) right = filled(0);
                if (below || (partial && x >= width)) left = filled(0);
                shared.put_vector(0, now, column + HALO, lane, right);
                shared.put_vector(1, now, column, lane, left);
                // Two of the least values travel through the lanes as one register.
                u32 pair = __byte_perm(lesser_half(least_of_registers(right)),
                                       lesser_half(least_of_registers(left)), A_LOW_B_LOW);
                least = least_of(vertical);
                pair = least_of_lanes(pair);
                least_right = __byte_perm(pair, 0, A_LOW_A_LOW);
                least_left = __byte_perm(pair, 0, A_HIGH_A_HIGH);
                if (lane == 0) {
                    shared.put_least(0, now, column + HALO, least_right);
                    shared.put_least(1, now, column, least_left);
                }
#if !TASKS
                if (exchanges && cursor.has_next())
                    exchange.send(i / HALO, column, lane, right, least_right, left, least_left);
#endif
                if (hands_over) {
                    const States states(of.path_state, cursor.direction, cursor.band, columns);
                    states.write(1, x, lane, right, least_right);
                    states.write(2, x, lane, left, least_left);
                }
            } else {
                least = least_of(vertical);
            }
            if (hands_over)
                States(of.path_state, cursor.direction, cursor.band, columns).write(0, x, lane, vertical, least);
#pragma unroll
            for (int j = 0; j < REGISTERS; j++) sum.v[j] = sub2(sum.v[j], leasts);

#if SELECT
            if (i >= TILES) barrier_wait<32 * (MAIN_WARPS + 1)>(FREE_BARRIER(i));
            put_sums(shared.tile(i) + column * TILE_PITCH, sum, c, lane);
            barrier_come<32 * MAIN_WARPS + SELECT_THREADS>(FULL_BARRIER(i));
#else
            if (!below) store_sum(out, lane, sum);
            out += out_step;
#endif
            end_row(cursor);
            cursor.next();
        }
#if !TASKS && !SELECT
        // For the other launch.
        states.write(0, start.strip * STRIP + column, lane, vertical, least);
        if (DIAGONALS) {
            const int last = (start.left - 1) & 1, x = start.strip * STRIP + column;
            u32 least_right, least_left;
            const Vector right = shared.get(0, last, column + HALO, lane, least_right);
            const Vector left = shared.get(1, last, column, lane, least_left);
            states.write(1, x, lane, right, least_right);
            states.write(2, x, lane, left, least_left);
        }
#endif
    } else if (warp < MAIN_WARPS + 2 * HALO_WARPS) {
        // The columns left of the strip, whose paths come from the left, and those right of it; 0 is the
        // column next to the strip.
        const int side = (warp - MAIN_WARPS) / MAX(1, HALO_WARPS);
        const int group_of_side = (warp - MAIN_WARPS) % MAX(1, HALO_WARPS) * WARP_PIXELS + group;
        const u32 p2 = side == 0 ? IN_BOTH_HALVES(P2_DIAGONAL_FROM_LEFT) : IN_BOTH_HALVES(P2_DIAGONAL_FROM_RIGHT);
        RowCursor cursor = start;
        int halo = HALO;
        for (int i = 0; cursor.left > 0; i++) {
            // With TASKS strips come and go, and what lies beside the picture is made anew.
            const bool neighbour = TASKS || (side == 0 ? cursor.strip > 0 : cursor.strip + 1 < strips);
            const int before = (i + 1) & 1, now = i & 1;
            halo--;  // Columns to recompute in this row.
            for (int distance = group_of_side; neighbour && distance - group < halo;
                 distance += HALO_WARPS * WARP_PIXELS) {
                // Groups beyond the last column repeat it.
                const int at = min(distance, HALO - 2), slot = side == 0 ? HALO - 1 - at : STRIP + at;
                const int beside = side == 0 ? -1 - at : STRIP + at;
                const int first_column = cursor.strip * STRIP, x = first_column + beside;
                const int window_x = BORDER + MARGIN + beside;
                const bool empty = x >= width || (TASKS && (x < 0 || cursor.y >= height));
                const u32 *window = shared.window(i);
                const u32 pixel = window[window_x];
                const Vector c =
                    cost(window_of(window), window_x, lane, pixel, first_column - BORDER - MARGIN, width);
                u32 least;
                Vector path;
                if (TASKS && cursor.begins_task())
                    path = shared.begin(1 + side, side == 0 ? beside - 1 : beside + 1, lane, least);
                else
                    path = shared.get(side, before, side == 0 ? slot - 1 : slot + 1, lane, least);
                path = recurrence(path, add2(least, __byte_perm(pixel, 0, p2)), edges);
                path = advance(path, c, lane);
                if (!LAZY) path = less(path, least, lane);
                if (empty) path = filled(0);
                least = least_of(path);
                if (distance < halo) shared.put(side, now, slot, lane, path, least);
                if (HALO_WARPS * WARP_PIXELS >= HALO - 1) break;
            }
            if (halo == 0) {
                halo = HALO;
#if !TASKS
                if (neighbour && cursor.has_next()) exchange.receive(shared, i / HALO, side, now, group_of_side, lane);
#endif
            }
            end_row(cursor);
            cursor.next();
        }
    }
#if TASKS
    else if (carries) carrier.run(start);
#endif
    else {
        const int support = warp - MAIN_WARPS - 2 * HALO_WARPS;
        if (support == SUPPORT_WARPS - 1) {
            RowCursor cursor = start;
            for (int i = 0; cursor.left > 0; i++, ahead.next()) {
                if (ahead.left > 0) copy_window_of(shared.window(i + WINDOWS - 1), of, ahead, threadIdx.x % 32, 32);
                copies_end_group();
                // The next row's window must be there.
                copies_wait<WINDOWS - 2>();
                end_row(cursor);
                cursor.next();
            }
            return;
        }
#if SELECT
        // The row whose sums come next, and the one this warp is at.
        RowCursor cursor = start, own = start;
        const bool picks = support < PICK_WARPS, completes = support == SUPPORT_WARPS - 2;
        const int column = support * WARP_PIXELS + group, thread = support * 32 + threadIdx.x % 32;
        StoredDeltas stored(shared, start, of.sums_down, of.sums_up, of.from_left, of.from_right, columns, height,
                            column, thread, lane);
        if (picks) stored.begin();
        Picked picked = {filled(0), 0};
        int rest = 2;  // Rounds after the last row's sums have come.
        for (int i = 1; cursor.left > 0 || rest-- > 0; i++) {
            if (cursor.left > 0) {
                barrier_wait<32 * MAIN_WARPS + SELECT_THREADS>(FULL_BARRIER(i - 1));
                cursor.next();
            }
            if (picks) {
                if (own.left > 0) {
                    // Together, so that one fills the waiting of the other; nobody looks at what
                    // becomes of the row before the first.
                    const Picked before = picked;
                    picked = pick(shared, stored, i - 1, column, own.strip * STRIP, width, lane);
                    compare(shared, before, i - 2, column, lane);
                    own.next();
                } else if (rest == 1) {
                    compare(shared, picked, i - 2, column, lane);
                }
            } else if (completes) {
                if (i >= 3 && own.left > 0) {
                    if (!TASKS || own.y < height)
                        complete(shared, i - 3, own.strip * STRIP, width, own.y, columns, of.winners, of.peaks);
                    own.next();
                }
            }
#if LEFT_RIGHT
            else if (i >= 2 && own.left > 0) {
                if (!TASKS || own.y < height)
                    match_right(shared, i - 2, thread - PICK_WARPS * 32, own.strip * STRIP, width, own.y, of.right);
                own.next();
            }
#endif
            barrier_wait<SELECT_THREADS>(SELECT_BARRIER);
            if (completes && i >= 3) barrier_come<32 * (MAIN_WARPS + 1)>(FREE_BARRIER(i - 3));
        }
#endif
    }
}
