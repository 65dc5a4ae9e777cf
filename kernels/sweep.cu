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
// A barrier a row keeps the warps of a block in step: MAIN_WARPS for the strip's paths, HALO_WARPS for
// the halo on each side, and the support warps, which load the next rows and, with SELECT, follow one to
// three rows behind with the winners (winner.cuh).
//
// Grid: [strips][sweeps].
#include "halo.cuh"
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
    u32 *halo_buffer;                     // as HaloExchange has it
    u32 turn;                             // frames that the buffer has served
    u32 *path_state;                      // [2 sweeps][SWEEP_PATHS][columns][HALF_DISPARITIES]
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

extern "C" __global__ void __launch_bounds__(SWEEP_THREADS, BLOCKS_PER_SM)
    sweep(const u32 *p2_down, const u32 *p2_up, const u32 *base, const u32 *match, int row, int width, int height,
          int columns, u32 *halo_buffer, u32 turn, u32 *path_state, u32 *sums_down, u32 *sums_up,
          const u32 *from_left, const u32 *from_right, u32 *winners, u32 *right, u8 *peaks) {
    // Taken one by one: with the structure as the only parameter the compiler makes other code.
    const Arguments of = {p2_down, p2_up, base, match, row, width, height, columns, halo_buffer, turn, path_state,
                          sums_down, sums_up, from_left, from_right, winners, right, peaks};
    DYNAMIC_SHARED(uint4, shared_words);
    const Shared shared(reinterpret_cast<u32 *>(shared_words));
    const int direction = TWO_SWEEPS ? blockIdx.y : DIRECTION, strip = blockIdx.x, strips = gridDim.x;
    const Rows rows(direction, height);
    if (rows.count == 0) return;
    const Features features = {direction == 0 ? of.p2_down : of.p2_up, of.base, of.match, of.row};
    // Numbers of exchanges never repeat within memory's reach, and begin above the zeros of new memory.
    const u32 exchanges_before = (of.turn * 2 + SELECT) * (height / HALO + 1) + 1;
    const int first_column = strip * STRIP, window_column = first_column - BORDER - MARGIN;
    const HaloExchange exchange(of.halo_buffer, direction, strip, strips, exchanges_before);
    u32 *own_state = of.path_state + (size_t)direction * SWEEP_PATHS * columns * HALF_DISPARITIES;
    const int warp = threadIdx.x / 32, group = warp_group();
    const u32 lane = group_lane();
    const Edges edges(lane);

    // The first rows' windows.
    for (int i = 0; i < WINDOWS - 1; i++) {
        if (i < rows.count)
            copy_window(shared.window(i), features, window_column, rows.at(i), threadIdx.x, SWEEP_THREADS);
        copies_end_group();
    }
    // The diagonal paths' vectors of the row before the first: those of the launch before, or zeros. A
    // path that begins has L = C, which is what the recurrence makes of a vector of equal values.
    if (DIAGONALS) {
        for (int first = warp * WARP_PIXELS; first < 2 * 2 * SLOTS; first += SWEEP_THREADS / 32 * WARP_PIXELS) {
            // The last groups of a warp may repeat the last vector: all lanes must take part.
            int i = min(first + group, 2 * 2 * SLOTS - 1);
            int diagonal = i / (2 * SLOTS), buffer = i / SLOTS % 2, slot = i % SLOTS;
            int column = first_column + slot - (diagonal == 0 ? HALO : 0);
            Vector path = filled(0);
            if (rows.resumed && column >= 0 && column < columns && buffer == 1)
                path = read_state(own_state, 1 + diagonal, columns, column, lane);
            shared.put(diagonal, buffer, slot, lane, path, least_of(path));
        }
    }
    // Around the sums there is nothing to be found.
    for (int i = threadIdx.x; i < KEY_WORDS; i += SWEEP_THREADS) shared.keys[i] = 0xffffffffu;
    copies_wait<0>();
    __syncthreads();

    if (warp < MAIN_WARPS) {
        const int column = warp * WARP_PIXELS + group, x = first_column + column;
        const bool inside = x < width, partial = first_column + STRIP > width;
        Vector vertical = filled(0);
        if (rows.resumed) vertical = read_state(own_state, 0, columns, x, lane);
        u32 least = least_of(vertical);
#if !SELECT
        u32 *out = (direction == 0 ? of.sums_down : of.sums_up) +
                   ((size_t)rows.first * columns + x) * GROUP * SUM_WORDS;
        const ptrdiff_t out_step = (ptrdiff_t)rows.step * columns * GROUP * SUM_WORDS;
#endif
        int until_exchange = HALO;

        for (int i = 0; i < rows.count; i++) {
            const u32 *window = shared.window(i);
            const u32 pixel = window[BORDER + MARGIN + column];
            const Vector c = cost(window_of(window), BORDER + MARGIN + column, lane, pixel, window_column, width);
            const int before = (i + 1) & 1, now = i & 1;

            const bool exchanges = --until_exchange == 0;
            const bool normalises = exchanges || i + 1 == rows.count || !LAZY;
            Vector sum = recurrence(vertical, add2(least, p2_in_both(pixel, P2_VERTICAL)), edges);
            vertical = advance(sum, c, lane);
            if (normalises) vertical = less(vertical, least, lane);
            u32 leasts = least;
            if (DIAGONALS) {
                u32 least_right, least_left;
                Vector right = shared.get(0, before, column - 1 + HALO, lane, least_right);
                Vector left = shared.get(1, before, column + 1, lane, least_left);
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
                // Right of the picture no path comes in. (The first question is the same for the block.)
                if (partial && !inside) left = filled(0);
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
                if (exchanges && i + 1 < rows.count)
                    exchange.send(i / HALO, column, lane, right, least_right, left, least_left);
            } else {
                least = least_of(vertical);
            }
            if (exchanges) until_exchange = HALO;
#pragma unroll
            for (int j = 0; j < REGISTERS; j++) sum.v[j] = sub2(sum.v[j], leasts);

#if SELECT
            put_sums(shared.tile(i) + column * TILE_PITCH, sum, c, lane);
#else
            store_sum(out, lane, sum);
            out += out_step;
#endif
            if (!SELECT && i + 1 == rows.count) {
                write_state(own_state, 0, columns, x, lane, vertical);
                if (DIAGONALS) {
                    u32 ignored;
                    write_state(own_state, 1, columns, x, lane, shared.get(0, now, column + HALO, lane, ignored));
                    write_state(own_state, 2, columns, x, lane, shared.get(1, now, column, lane, ignored));
                }
            }
            __syncthreads();
        }
    } else if (warp < MAIN_WARPS + 2 * HALO_WARPS) {
        // The columns left of the strip, whose paths come from the left, and those right of it; 0 is the
        // column next to the strip.
        const int side = (warp - MAIN_WARPS) / MAX(1, HALO_WARPS);
        const int first = (warp - MAIN_WARPS) % MAX(1, HALO_WARPS) * WARP_PIXELS, distance = first + group;
        const bool neighbour = side == 0 ? strip > 0 : strip + 1 < strips;
        const int at = min(distance, HALO - 2), slot = side == 0 ? HALO - 1 - at : STRIP + at;
        const int window_x = BORDER + MARGIN + (side == 0 ? -1 - at : STRIP + at);
        const bool empty = first_column + window_x - BORDER - MARGIN >= width;
        const u32 p2 = side == 0 ? IN_BOTH_HALVES(P2_DIAGONAL_FROM_LEFT) : IN_BOTH_HALVES(P2_DIAGONAL_FROM_RIGHT);
        int halo = HALO;
        for (int i = 0; i < rows.count; i++) {
            const int before = (i + 1) & 1, now = i & 1;
            halo--;  // Columns to recompute in this row.
            if (neighbour && first < halo) {
                const u32 *window = shared.window(i);
                const u32 pixel = window[window_x];
                const Vector c = cost(window_of(window), window_x, lane, pixel, window_column, width);
                u32 least;
                Vector path = shared.get(side, before, side == 0 ? slot - 1 : slot + 1, lane, least);
                path = recurrence(path, add2(least, __byte_perm(pixel, 0, p2)), edges);
                path = advance(path, c, lane);
                if (!LAZY) path = less(path, least, lane);
                if (empty) path = filled(0);
                least = least_of(path);
                if (distance < halo) shared.put(side, now, slot, lane, path, least);
            }
            if (halo == 0) {
                halo = HALO;
                if (neighbour && i + 1 < rows.count)
                    exchange.receive(shared, i / HALO, side, now, distance, lane);
            }
            __syncthreads();
        }
    } else {
        const int support = warp - MAIN_WARPS - 2 * HALO_WARPS;
        const bool loads = support == SUPPORT_WARPS - 1;
#if SELECT
        const bool picks = support < PICK_WARPS, completes = support == SUPPORT_WARPS - 2;
        const int column = support * WARP_PIXELS + group, thread = support * 32 + threadIdx.x % 32;
        StoredDeltas stored(shared, rows, direction == 0 ? of.sums_up : of.sums_down, of.from_left, of.from_right,
                            columns, first_column + column, thread, lane);
        if (picks) stored.begin();
        Picked picked = {filled(0), 0};
#endif
        for (int i = 0; i < rows.count + (SELECT ? 3 : 0); i++) {
            if (loads) {
                int next = i + WINDOWS - 1;
                if (next < rows.count)
                    copy_window(shared.window(next), features, window_column, rows.at(next), threadIdx.x % 32, 32);
                copies_end_group();
                // The next row's window must be there.
                copies_wait<WINDOWS - 2>();
            }
#if SELECT
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
                if (i >= 3) complete(shared, i - 3, first_column, width, rows.at(i - 3), columns, of.winners, of.peaks);
            }
#if LEFT_RIGHT
            else if (i >= 2 && i - 2 < rows.count) {
                match_right(shared, i - 2, thread - PICK_WARPS * 32, first_column, width, rows.at(i - 2), of.right);
            }
#endif
#endif
            if (i < rows.count) __syncthreads();
#if SELECT
            // The last rows, when the other warps have ended.
            else barrier_of_some<32 * SUPPORT_WARPS>();
#endif
        }
    }
}
