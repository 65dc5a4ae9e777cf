// Aggregates costs along the vertical and diagonal paths (Hirschmueller, PAMI 2008, equation 13)
// and selects the winners row by row.
//
// Two sweeps run at once, one down from the first row and one up from the last. Each stores the sum
// of its path deltas until they meet in the middle (SELECT = 0). From there (SELECT = 1, a second
// launch) each adds the deltas that the other and the horizontal paths have stored, and selects the
// winner. So the sum over all paths never exists in memory.
//
// A block owns a strip of STRIP columns for all rows. Its vertical paths stay in registers; the
// diagonal ones move by one column a row, through shared memory. Every HALO rows neighbouring
// strips exchange HALO columns of the diagonal paths; in between each recomputes a halo that
// shrinks by one column a row. The exchange needs no fence: every word carries the number of the
// exchange in the bits that a path cost leaves free, and the reader polls the data itself. All
// strips of a launch must be resident together (a cooperative launch).
//
// If not all fit, blocks take tasks instead (TASKS, row_cursor.cuh): HALO rows of a strip each.
// They hand the path states over through memory.
//
// The warps of a block have roles. MAIN_WARPS follow the strip's paths (follow_strip), HALO_WARPS
// on each side follow those of the halo (follow_halo), and one loads the next rows (load_windows).
// One barrier per row keeps them in step. With SELECT, other warps select the winners one to three
// rows behind (select_winners), with a barrier of their own. Each tile of sums has two more
// barriers, full and free, so that neither side waits for the other in every row.
//
// Grid: [strips][sweeps]; with TASKS as many blocks as are resident.
#include "halo.cuh"
#include "tasks.cuh"
#include "winner.cuh"

static_assert(SWEEP_THREADS == EXPECTED_THREADS && 4 * SHARED_WORDS == EXPECTED_SHARED_BYTES,
              "geometry.rs: Strips::block");

// Inputs and outputs of a sweep. `row` is the length of a prepared row in columns, `columns` the
// number of columns of all strips together.
struct Arguments {
    const u32 *p2_down, *p2_up;           // [height][row]: the words of the pixels (cost.cuh)
    const u32 *base;                      // [height][BASE_WORDS][row]
    const u32 *match;                     // [height][PLANES][row / COLUMNS]
    int row;
    int width, height;                    // of the image
    int columns;
    int strips;
    u32 *between;                         // messages between strips: HaloExchange or Carrier
    u32 turn;                             // number of frames `between` has served
    u32 *path_state;                      // layout: States (sweep.cuh)
    u32 *sums_down, *sums_up;             // [height][columns][GROUP][SUM_WORDS]: sums of path deltas
    const u32 *from_left, *from_right;    // [height][columns][GROUP][BYTE_WORDS]: path deltas
    u32 *winners;                         // [height][columns]: winner words (disparity.cuh)
    u32 *right;                           // [height][width]: winner keys of the right view
    u8 *peaks;                            // [height][columns]: winner peaks, with CONFIDENCE
    RangeWindows windows;                 // read with WINDOWED
};

// Takes the least path cost of the pixel before out of `delta`, the result of recurrence(), and
// returns the path cost L of the next pixel. If the path `ends`, both become 0, for candidates beyond
// the range, too, because the next pixel may lie in a tile with others.
__device__ __forceinline__ Vector advance(Vector &delta, u32 least, const Vector &c, bool ends, u32 part) {
    // A multiplication comes with the addition. (0x3c00 is the half-float 1.)
    const u32 goes_on = ends ? 0 : both(0x3c00), minus_least = ends ? 0 : least ^ both(0x8000);
    Vector path;
#pragma unroll
    for (int j = 0; j < REGISTERS; j++) {
        delta.v[j] = fma2(delta.v[j], goes_on, minus_least);
        path.v[j] = fma2(c.v[j], goes_on, delta.v[j]);
        if (HAS_PADDING && !(WINDOWED && ends)) path.v[j] |= padding(part, j);
    }
    return path;
}

// Returns the penalty P2 of one of a pixel's paths, in both 16-bit halves.
__device__ __forceinline__ u32 p2_in_both(u32 pixel, int path) {
    return __byte_perm(pixel, 0, IN_BOTH_HALVES(path));
}

// Inputs that all roles share.
struct Block {
    const Arguments &of;
    const Shared &shared;
    RowCursor start;
    int warp, group;  // the warp's number in the block, the group's in its warp
    u32 lane;         // in the group
#if !TASKS
    HaloExchange exchange;
    States states;  // between the two launches
#endif
};

__device__ __forceinline__ StoredDeltas stored_deltas(const Block &block, int column, int thread) {
    const Arguments &of = block.of;
    return StoredDeltas(block.shared, block.start, of.sums_down, of.sums_up, of.from_left, of.from_right, of.columns,
                        of.height, column, thread, block.lane);
}

// The current row of a warp that follows paths; `i` counts the rows of the block.
struct Row {
    int i, first_column;
    const u32 *window;
    bool begins_task, ends_band;
    int before, now;  // diagonal path buffers: previous row, this row
    __device__ __forceinline__ Row(const Block &block, const RowCursor &cursor, int i)
        : i(i), first_column(cursor.strip * STRIP), window(block.shared.window(i)),
          begins_task(TASKS && cursor.begins_task()), ends_band(cursor.ends_band()), before((i + 1) & 1), now(i & 1) {}
    // Returns the costs of the pixel in column `x` of the window.
    __device__ __forceinline__ Vector costs(const Block &block, int x) const {
        return cost(window_of(window), x, block.lane, window[x], first_column - BORDER - MARGIN, block.of.width);
    }
};

// Starts copying the window of a row, with `threads` threads.
__device__ __forceinline__ void copy_window_of(u32 *to, const Arguments &of, const RowCursor &cursor, int thread,
                                               int threads) {
    const Features features = {cursor.direction == 0 ? of.p2_down : of.p2_up, of.base, of.match, of.row};
    copy_window(to, features, cursor.strip * STRIP - BORDER - MARGIN,
                TASKS ? min(cursor.y, of.height - 1) : cursor.y, thread, threads);
}

#if !TASKS
// Initialises the diagonal path vectors of the row before the first: from the previous launch, or
// zeros. A new path starts with L = C, which the recurrence yields for a vector of equal values.
__device__ __forceinline__ void begin_diagonals(const Block &block) {
    const int columns = block.of.columns;
    for (int first = block.warp * WARP_PIXELS; first < 2 * 2 * SLOTS; first += SWEEP_THREADS / 32 * WARP_PIXELS) {
        // Surplus groups of a warp repeat the last vector, because all lanes must take part.
        int i = min(first + block.group, 2 * 2 * SLOTS - 1);
        int diagonal = i / (2 * SLOTS), buffer = i / SLOTS % 2, slot = i % SLOTS;
        int column = block.start.strip * STRIP + slot - (diagonal == 0 ? HALO : 0);
        Vector path = filled(0);
        u32 least = 0;
        if (block.start.resumed && column >= 0 && column < columns && buffer == 1)
            path = block.states.read(1 + diagonal, column, block.lane, least);
        block.shared.put(diagonal, buffer, slot, block.lane, path, least);
    }
}
#endif

// The least values of two vectors' registers share one register, so one reduction over the lanes
// finds both.
__device__ __forceinline__ u32 pair_of_least(const Vector &a, const Vector &b) {
    return __byte_perm(lesser_half(least_of_registers(a)), lesser_half(least_of_registers(b)), A_LOW_B_LOW);
}
__device__ __forceinline__ void split(u32 pair, u32 &least_a, u32 &least_b) {
    least_a = __byte_perm(pair, 0, A_LOW_A_LOW);
    least_b = __byte_perm(pair, 0, A_HIGH_A_HIGH);
}

// The candidates of a pixel that a group of lanes holds, and how paths of the row before enter it.
struct Place {
    Share share;
    u32 from_left, from_right;  // Lanes (RangeWindows::entry) of both diagonal paths.
    bool is_mixed;              // Some diagonal path of the warp comes from other candidates.

#if WINDOWED
    // Enters the row of the cursor in column `x`, with the vertical path.
    __device__ __forceinline__ void enter(const RangeWindows &windows, const RowCursor &cursor, bool begins, int x,
                                          u32 lane, Vector &vertical, u32 &least) {
        const int y = cursor.y, step = cursor.direction == 0 ? 1 : -1;
        const auto tile = [&](int y) { return y >= 0 && y < windows.height ? y / WINDOW_TILE : -1; };
        const bool enters = tile(y) != tile(y - step);
        // Nothing changes if all the tiles around are those of the row before.
        if (!begins && !enters && tile(y - step) == tile(y - 2 * step)) return;
        const Blocks here = windows.of(x, y);
        share = here.share(lane);
#if DIAGONALS
        from_left = windows.entry(here, x - 1, y - step, lane), from_right = windows.entry(here, x + 1, y - step, lane);
        is_mixed = __any_sync(LANES_MASK, from_left != lane || from_right != lane);
#endif
        if (!enters) return;
        vertical = entered(vertical, windows.entry(here, x, y - step, lane));
        least = least_of(vertical);
    }
#endif
};
__device__ __forceinline__ Place place(u32 lane) {
#if WINDOWED
    return {{lane, Edges(0, 0)}, lane, lane, false};
#else
    return {whole_range(lane), lane, lane, false};
#endif
}

// Advances both diagonal paths of a column of the strip by one row and adds their deltas to `sum`.
// Returns the least value of `vertical`, computed in between.
__device__ __forceinline__ u32 advance_diagonals(const Block &block, const RowCursor &cursor, const Row &row,
                                                 const Place &here, int column, bool below, const Vector &c,
                                                 const Vector &vertical, Vector &sum) {
    const Shared &shared = block.shared;
    const u32 lane = block.lane, pixel = row.window[BORDER + MARGIN + column];
    const int x = row.first_column + column, width = block.of.width;
    u32 least_right, least_left;
    Vector right, left;
    if (row.begins_task) {
        right = shared.begin(1, column - 1, here.from_left, least_right);
        left = shared.begin(2, column + 1, here.from_right, least_left);
    } else {
        right = shared.get(0, row.before, column - 1 + HALO, here.from_left, least_right);
        left = shared.get(1, row.before, column + 1, here.from_right, least_left);
    }
    if (WINDOWED && here.is_mixed) split(least_of_lanes(pair_of_least(right, left)), least_right, least_left);
    const u32 p2_right = p2_in_both(pixel, P2_DIAGONAL_FROM_LEFT);
    const u32 p2_left = p2_in_both(pixel, P2_DIAGONAL_FROM_RIGHT);
    const int slant_right = slant_of(pixel, SLANTS, P2_DIAGONAL_FROM_LEFT);
    const int slant_left = slant_of(pixel, SLANTS, P2_DIAGONAL_FROM_RIGHT);
    Vector delta_right = recurrence(right, add2(least_right, p2_right), here.share.edges, slant_right);
    Vector delta_left = recurrence(left, add2(least_left, p2_left), here.share.edges, slant_left);
    // No path enters from the right of the image or from below.
    right = advance(delta_right, least_right, c, below, here.share.part);
    left = advance(delta_left, least_left, c, below || x >= width, here.share.part);
#pragma unroll
    for (int j = 0; j < REGISTERS; j++) sum.v[j] = add2(sum.v[j], add2(delta_right.v[j], delta_left.v[j]));
    shared.put_vector(0, row.now, column + HALO, lane, right);
    shared.put_vector(1, row.now, column, lane, left);
    u32 pair = pair_of_least(right, left);
    const u32 least = least_of(vertical);
    split(least_of_lanes(pair), least_right, least_left);
    if (lane == 0) {
        shared.put_least(0, row.now, column + HALO, least_right);
        shared.put_least(1, row.now, column, least_left);
    }
#if TASKS
    if (row.ends_band) {
        const States states(block.of.path_state, cursor.direction, cursor.band, block.of.columns);
        states.write(1, x, lane, right, least_right);
        states.write(2, x, lane, left, least_left);
    }
#else
    if (row.ends_band && cursor.has_next())
        block.exchange.send(row.i / HALO, column, lane, right, least_right, left, least_left);
#endif
    return least;
}

// Role of the strip's warps. Each group of lanes follows the vertical path of one column, kept in
// registers, and the diagonal paths that cross it. Sums of path deltas go to memory or, with
// SELECT, to the selecting warps.
__device__ __forceinline__ void follow_strip(const Block &block) {
    const Arguments &of = block.of;
    const u32 lane = block.lane;
    const int column = block.warp * WARP_PIXELS + block.group;
    Vector vertical = filled(0);
    u32 least = 0;
#if !TASKS
    if (block.start.resumed) vertical = block.states.read(0, block.start.strip * STRIP + column, lane, least);
#endif
    RowCursor cursor = block.start;
    Place here = place(lane);
#if SELECT && !PICKS_APART
    StoredDeltas stored = stored_deltas(block, column, threadIdx.x);
    stored.begin();
#elif !SELECT
    // Address of this row's sums, and the step to the next row's.
    u32 *out = nullptr;
    ptrdiff_t out_step = 0;
    auto enter_strip = [&] {
        out = (cursor.direction == 0 ? of.sums_down : of.sums_up) +
              ((ptrdiff_t)cursor.y * of.columns + cursor.strip * STRIP + column) * GROUP * SUM_WORDS;
        out_step = (ptrdiff_t)(cursor.direction == 0 ? 1 : -1) * of.columns * GROUP * SUM_WORDS;
    };
    if (!TASKS) enter_strip();
#endif
    for (int i = 0; cursor.left > 0; i++) {
        const Row row(block, cursor, i);
        const bool below = TASKS && cursor.y >= of.height;
#if !SELECT
        if (row.begins_task) enter_strip();
#endif
        const u32 pixel = row.window[BORDER + MARGIN + column];
        const Vector c = row.costs(block, BORDER + MARGIN + column);
        if (row.begins_task) vertical = block.shared.begin(0, column, lane, least);
#if WINDOWED
        here.enter(of.windows, cursor, i == 0 || row.begins_task, row.first_column + column, lane, vertical, least);
#endif
        const u32 p2 = p2_in_both(pixel, P2_VERTICAL);
        Vector sum = recurrence(vertical, add2(least, p2), here.share.edges, slant_of(pixel, SLANTS, P2_VERTICAL));
        vertical = advance(sum, least, c, BREAK(below, below, false), here.share.part);
        least = DIAGONALS ? advance_diagonals(block, cursor, row, here, column, below, c, vertical, sum) : least_of(vertical);
#if TASKS
        if (row.ends_band)
            States(of.path_state, cursor.direction, cursor.band, of.columns)
                .write(0, row.first_column + column, lane, vertical, least);
#endif
#if SELECT
        if (i >= TILES) barrier_wait<32 * (MAIN_WARPS + 1)>(FREE_BARRIER(i));
        u32 *tile = block.shared.tile(i) + column * TILE_PITCH;
#if PICKS_APART
        put_tile(tile, part_of_sum(sum, c), lane);
#else
        compare(block.shared, pick(tile, part_of_sum(sum, c), stored, i, column, row.first_column, of.width, here.share.part, lane), i,
                column, lane);
#endif
        barrier_come<32 * MAIN_WARPS + SELECT_THREADS>(FULL_BARRIER(i));
#else
        if (!below) store_sum(out, lane, sum);
        out += out_step;
#endif
        end_row(cursor);
        cursor.next();
    }
#if !TASKS && !SELECT
    // The second launch resumes from these states.
    const int x = block.start.strip * STRIP + column;
    block.states.write(0, x, lane, vertical, least);
    if (DIAGONALS) {
        const int last = (block.start.left - 1) & 1;
        u32 least_right, least_left;
        const Vector right = block.shared.get(0, last, column + HALO, lane, least_right);
        const Vector left = block.shared.get(1, last, column, lane, least_left);
        block.states.write(1, x, lane, right, least_right);
        block.states.write(2, x, lane, left, least_left);
    }
#endif
}

// Role of the halo's warps. Side 0 follows the paths from the left in the columns left of the
// strip, side 1 the paths from the right in the columns right of it. Distance 0 is next to the
// strip.
__device__ __forceinline__ void follow_halo(const Block &block) {
    const Shared &shared = block.shared;
    const u32 lane = block.lane;
    const int side = (block.warp - MAIN_WARPS) / MAX(1, HALO_WARPS);
    const int group_of_side = (block.warp - MAIN_WARPS) % MAX(1, HALO_WARPS) * WARP_PIXELS + block.group;
    const int from = side == 0 ? P2_DIAGONAL_FROM_LEFT : P2_DIAGONAL_FROM_RIGHT;
    RowCursor cursor = block.start;
    int halo = HALO;
    for (int i = 0; cursor.left > 0; i++) {
        const Row row(block, cursor, i);
        // With TASKS the strip changes, so columns outside the image are cleared again in every
        // task.
        const bool neighbour = TASKS || (side == 0 ? cursor.strip > 0 : cursor.strip + 1 < block.of.strips);
        halo--;  // Columns to recompute in this row.
        for (int distance = group_of_side; neighbour && distance - block.group < halo;
             distance += HALO_WARPS * WARP_PIXELS) {
            // Groups beyond the last column repeat it.
            const int at = min(distance, HALO - 2), slot = side == 0 ? HALO - 1 - at : STRIP + at;
            const int beside = side == 0 ? -1 - at : STRIP + at, x = row.first_column + beside;
            const int window_x = BORDER + MARGIN + beside;
            const bool empty = BREAK(halo_border, x >= block.of.width, false) || (TASKS && (x < 0 || cursor.y >= block.of.height));
            const Vector c = row.costs(block, window_x);
            const int inwards = side == 0 ? 1 : -1;
#if WINDOWED
            const int row_before = cursor.y - (cursor.direction == 0 ? 1 : -1);
            const Blocks here = block.of.windows.of(x, cursor.y);
            const Share share = here.share(lane);
            const u32 entry = block.of.windows.entry(here, x - inwards, row_before, lane);
#else
            const Share share = whole_range(lane);
            const u32 entry = lane;
#endif
            u32 least;
            Vector path;
            if (row.begins_task) path = shared.begin(1 + side, beside - inwards, entry, least);
            else path = shared.get(side, row.before, slot - inwards, entry, least);
            if (WINDOWED && __any_sync(LANES_MASK, entry != lane)) least = least_of(path);
            const u32 pixel = row.window[window_x];
            path = recurrence(path, add2(least, p2_in_both(pixel, from)), share.edges, slant_of(pixel, SLANTS, from));
            path = advance(path, least, c, empty, share.part);
            least = least_of(path);
            if (distance < halo) shared.put(side, row.now, slot, lane, path, least);
            if (HALO_WARPS * WARP_PIXELS >= HALO - 1) break;
        }
        if (halo == 0) {
            halo = HALO;
#if !TASKS
            if (neighbour && cursor.has_next())
                block.exchange.receive(shared, i / HALO, side, row.now, group_of_side, lane, block.of.windows, cursor.y);
#endif
        }
        end_row(cursor);
        cursor.next();
    }
}

// Role of the loading warp: copies the window of each row WINDOWS - 1 rows ahead, from `ahead` on.
__device__ __forceinline__ void load_windows(const Block &block, RowCursor ahead) {
    RowCursor cursor = block.start;
    for (int i = 0; cursor.left > 0; i++, ahead.next()) {
        if (ahead.left > 0)
            copy_window_of(block.shared.window(i + WINDOWS - 1), block.of, ahead, threadIdx.x % 32, 32);
        copies_end_group();
        // The next row's window must be there.
        copies_wait<WINDOWS - 2>();
        end_row(cursor);
        cursor.next();
    }
}

#if SELECT
// Role of the SUPPORT_WARPS - 1 warps that select the winners, one to three rows behind the paths;
// `support` is the warp's number. PICK_WARPS pick, one step per row (winner.cuh), the next
// RIGHT_WARPS match the right view, and the last one completes the pixels. If no warps pick apart,
// all are one row behind.
__device__ __forceinline__ void select_winners(const Block &block, int support) {
    const Arguments &of = block.of;
    const Shared &shared = block.shared;
    // The row whose sums come next, and the one this warp is at.
    RowCursor cursor = block.start, own = block.start;
    const bool picks = support < PICK_WARPS, completes = support == SUPPORT_WARPS - 2;
    const int column = support * WARP_PIXELS + block.group, thread = support * 32 + threadIdx.x % 32;
    constexpr int keys_behind = 1 + PICKS_APART, winners_behind = 1 + 2 * PICKS_APART;
    StoredDeltas stored = stored_deltas(block, column, thread);
    if (picks) stored.begin();
    Picked picked = {filled(0), 0, 0};
    TilesOfRow tiles;
    int rest = winners_behind - 1;  // Rounds after the last row's sums have come.
    for (int i = 1; cursor.left > 0 || rest-- > 0; i++) {
        if (cursor.left > 0) {
            BREAK(full_barrier, barrier_wait<32 * MAIN_WARPS + SELECT_THREADS>(FULL_BARRIER(i - 1)), (void)0);
            cursor.next();
        }
        if (picks) {
            if (own.left > 0) {
                tiles.enter(of.windows, own, column);
                // Together, so that one fills the waiting of the other; nobody looks at what
                // becomes of the row before the first.
                const Picked before = picked;
                u32 *tile = shared.tile(i - 1) + column * TILE_PITCH;
                picked = pick(tile, get_tile(tile, block.lane), stored, i - 1, column, own.strip * STRIP, of.width,
                              tiles.part(block.lane), block.lane);
                compare(shared, before, i - 2, column, block.lane);
                own.next();
            } else if (rest == 1) {
                compare(shared, picked, i - 2, column, block.lane);
            }
        } else if (completes) {
            if (i >= winners_behind && own.left > 0) {
                tiles.enter(of.windows, own, threadIdx.x % 32);
                if (!TASKS || own.y < of.height)
                    complete(shared, i - winners_behind, own.strip * STRIP, of.width, own.y, of.columns, of.winners,
                             of.peaks, tiles);
                own.next();
            }
        }
#if LEFT_RIGHT
        else if (i >= keys_behind && own.left > 0) {
            tiles.enter_segments(of.windows, own, (thread - PICK_WARPS * 32) / DIAGONALS_OF_BLOCK);
            if (!TASKS || own.y < of.height)
                match_right(shared, i - keys_behind, thread - PICK_WARPS * 32, own.strip * STRIP, of.width, own.y,
                            of.right, tiles);
            own.next();
        }
#endif
        barrier_wait<SELECT_THREADS>(SELECT_BARRIER);
        if (completes && i >= winners_behind) barrier_come<32 * (MAIN_WARPS + 1)>(FREE_BARRIER(i - winners_behind));
    }
}
#endif

extern "C" __global__ void __launch_bounds__(SWEEP_THREADS, BLOCKS_PER_SM)
    aggregate_sweep(const u32 *p2_down, const u32 *p2_up, const u32 *base, const u32 *match, int row, int width,
                    int height, int columns, int strips, u32 *between, u32 turn, u32 *path_state, u32 *sums_down,
                    u32 *sums_up, const u32 *from_left, const u32 *from_right, u32 *winners, u32 *right, u8 *peaks,
                    const u16 *windows) {
    wait_for_launches_before();
    // Taken one by one: with the structure as the only parameter the compiler makes other code.
    const Arguments of = {p2_down, p2_up, base, match, row, width, height, columns, strips, between, turn, path_state,
                          sums_down, sums_up, from_left, from_right, winners, right, peaks,
                          {windows, width, height}};
    DYNAMIC_SHARED(uint4, shared_words);
    const Shared shared(reinterpret_cast<u32 *>(shared_words));
    const int warp = threadIdx.x / 32;
#if TASKS
    const bool carries = warp == SWEEP_THREADS / 32 - 1;
    const Carrier carrier = {shared, between, path_state, strips, height, columns, threadIdx.x % 32};
    if (carries)
        for (int number = 0; number < TASKS_AHEAD; number++) carrier.take(number);
    __syncthreads();
    const RowCursor start(shared.tasks, height);
    const Block block = {of, shared, start, warp, warp_group(), group_lane()};
#else
    const RowCursor start(TWO_SWEEPS ? blockIdx.y : DIRECTION, blockIdx.x, height);
    // Numbers of exchanges never repeat within memory's reach, and begin above the zeros of new
    // memory.
    const u32 exchanges_before = (turn * 2 + SELECT) * (height / HALO + 1) + 1;
    const Block block = {of, shared, start, warp, warp_group(), group_lane(),
                         HaloExchange(between, start.direction, start.strip, strips, exchanges_before),
                         States(path_state, start.direction, 0, columns)};
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
    if (DIAGONALS) begin_diagonals(block);
#endif
    // Around the sums there is nothing to be found.
    for (int i = threadIdx.x; i < KEY_WORDS; i += SWEEP_THREADS) shared.keys[i] = 0xffffffffu;
    for (int i = threadIdx.x; i < NOTHING_WORDS; i += SWEEP_THREADS) shared.nothing[i] = both(PATH_COST_MAX);
    copies_wait<0>();
    __syncthreads();

    const int support = warp - MAIN_WARPS - 2 * HALO_WARPS;
    if (warp < MAIN_WARPS) follow_strip(block);
    else if (support < 0) follow_halo(block);
#if TASKS
    else if (carries) carrier.run(start);
#endif
    else if (support == SUPPORT_WARPS - 1) load_windows(block, ahead);
#if SELECT
    else select_winners(block, support);
#endif
}
