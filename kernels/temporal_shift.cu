// Estimates the shifts of the remembered images against the newest pair, and the coefficients with
// which they add up to its background (matching/temporal/shifts.rs, coefficients.rs). No number
// leaves the device.
//
// Kernels, in this order on one stream; all but the second touch the state:
//   begin(int known, size_t words, int width, int height, int *state)
//     Clears the state if it is not `known` or belongs to another scene.
//   smaller_eyes(left, right, width, height, to_left, to_right)
//     Both views at half the size, smoothed.
//     Grid: [half width / TILE_WIDTH][half height / TILE_HEIGHT][eyes].
//   smaller_remembered(state, width, height, left, right, ...), smaller(...)
//     Both views and the picture remembered last at a quarter of the size, at an eighth, and so on;
//     [eyes, remembered eyes].
//   look(...)
//     The shift of the picture remembered last at one of these sizes.
//     Grid: [width / (TILE_WIDTH)][height / RUN_ROWS][eyes].
//   search(...)
//     The shifts of all remembered pictures at half the size, and the coefficients. Same grid, but
//     that small pictures, which have few blocks, are read by several groups of them, each of which
//     compares them with some of the others:
//     [width / TILE_WIDTH][height / RUN_ROWS][eyes * groups].
//   remember(state, width, height)
//     The pair that is now remembered at half the size, after the kernels of
//     temporal_background.cu. Grid as of smaller.
// Sums over all blocks are completed by the last block of a kernel.
#include "residuals.cuh"
#include "temporal.cuh"

// Sums of a pair of pictures, and of the reference alone, in the order of shifts.rs.
#define SUMS 10
#define OF_REFERENCE 7
#define MONOMIALS ((DEGREE + 1) * (DEGREE + 2) / 2)
#define SHIFT_UNIT 256
#define SHIFT_MAX (127 * SHIFT_UNIT)
#define ONE 16384
// Rows that a thread sums up.
#define RUN (RUN_ROWS / (BLOCK_THREADS / TILE_WIDTH))
static_assert(BLOCK_THREADS % TILE_WIDTH == 0 && RUN * (BLOCK_THREADS / TILE_WIDTH) == RUN_ROWS, "threads have rows");
static_assert(8 * (OF_REFERENCE + SUMS * HISTORY) == EXPECTED_SUM_BYTES, "geometry.rs: shift_sum_bytes");

extern "C" __global__ void __launch_bounds__(BLOCK_THREADS)
    begin(int known, int words_low, int words_high, int width, int height, int *state) {
    wait_for_launches_before();
    const size_t words = (size_t)(u32)words_high << 31 | (u32)words_low;
    const size_t first = (size_t)blockIdx.x * BLOCK_THREADS + threadIdx.x;
    if (!known) {
        for (size_t i = first; i < words; i += (size_t)gridDim.x * BLOCK_THREADS) state[i] = 0;
        return;
    }
    if (first == 0 && (u32)state[PLACE_MOVING] > (u32)(width * height)) {
        state[PLACE_COUNT] = 0;
        state[PLACE_VARIANCES] = state[PLACE_VARIANCES + 1] = 0;
    }
}

// A tile of the picture at half the size, smoothed by 1 2 1 both ways.
__device__ __forceinline__ void make_smaller(const u8 *pixels, int width, int height, u8 *to) {
    __shared__ u8 halves[SMALL_HEIGHT + 2][SMALL_WIDTH + 2];
    const Picture from = {pixels, width, height};
    const int half_width = (width + 1) / 2, half_height = (height + 1) / 2;
    const int left = blockIdx.x * SMALL_WIDTH, top = blockIdx.y * SMALL_HEIGHT;
    for (int i = threadIdx.x; i < (SMALL_HEIGHT + 2) * (SMALL_WIDTH + 2); i += BLOCK_THREADS) {
        const int column = i % (SMALL_WIDTH + 2), row = i / (SMALL_WIDTH + 2);
        const int x = 2 * min(max(left + column - 1, 0), half_width - 1);
        const int y = 2 * min(max(top + row - 1, 0), half_height - 1);
        const int sum = from.at(x, y) + from.at(x + 1, y) + from.at(x, y + 1) + from.at(x + 1, y + 1);
        halves[row][column] = (sum + 2) / 4;
    }
    __syncthreads();
    const int column = threadIdx.x % SMALL_WIDTH, row = threadIdx.x / SMALL_WIDTH;
    const int x = left + column, y = top + row;
    if (x >= half_width || y >= half_height) return;
    int sum = 8;
#pragma unroll
    for (int down = 0; down <= 2; down++)
        sum += (down == 1 ? 2 : 1) * (halves[row + down][column] + 2 * halves[row + down][column + 1] + halves[row + down][column + 2]);
    to[(size_t)y * half_width + x] = sum >> 4;
}
static_assert(SMALL_WIDTH * SMALL_HEIGHT == BLOCK_THREADS, "a thread makes a pixel");

extern "C" __global__ void __launch_bounds__(BLOCK_THREADS)
    smaller_eyes(const u8 *left, const u8 *right, int width, int height, u8 *to_left, u8 *to_right) {
    wait_for_launches_before();
    make_smaller(blockIdx.z == 0 ? left : right, width, height, blockIdx.z == 0 ? to_left : to_right);
}

// `width` and `height` are those of the whole pictures; the views are at half the size.
extern "C" __global__ void __launch_bounds__(BLOCK_THREADS)
    smaller_remembered(int *words, int width, int height, const u8 *left, const u8 *right, u8 *to_left, u8 *to_right,
                       u8 *to_remembered_left, u8 *to_remembered_right) {
    wait_for_launches_before();
    const State state = {words, width, height};
    const int eye = blockIdx.z % 2;
    const bool remembered = blockIdx.z >= 2;
    const u8 *from = remembered ? state.half(eye, state.newest()) : eye == 0 ? left : right;
    u8 *to = remembered ? (eye == 0 ? to_remembered_left : to_remembered_right) : eye == 0 ? to_left : to_right;
    make_smaller(from, state.half_width(), state.half_height(), to);
}

extern "C" __global__ void __launch_bounds__(BLOCK_THREADS)
    smaller(const u8 *left, const u8 *right, const u8 *remembered_left, const u8 *remembered_right, int width, int height,
            u8 *to_left, u8 *to_right, u8 *to_remembered_left, u8 *to_remembered_right) {
    wait_for_launches_before();
    const int eye = blockIdx.z % 2;
    const bool remembered = blockIdx.z >= 2;
    const u8 *from = remembered ? (eye == 0 ? remembered_left : remembered_right) : eye == 0 ? left : right;
    u8 *to = remembered ? (eye == 0 ? to_remembered_left : to_remembered_right) : eye == 0 ? to_left : to_right;
    make_smaller(from, width, height, to);
}

extern "C" __global__ void __launch_bounds__(BLOCK_THREADS) remember(int *words, int width, int height) {
    wait_for_launches_before();
    const State state = {words, width, height};
    const int eye = blockIdx.z, slot = state.newest();
    make_smaller(state.picture(eye, slot), width, height, state.half(eye, slot));
}

// A pixel with its doubled gradients across and down, and the steps to the next pixel across and
// down.
struct Around {
    int grey, across, down, to_right, to_below;
    __device__ __forceinline__ static Around of(const u8 *pixels, int width, int x, int y) {
        const u8 *at = pixels + (size_t)y * width + x;
        const int grey = at[0], right = at[1], below = at[width];
        return {grey, right - at[-1], below - at[-width], right - grey, below - grey};
    }
};

// The sum over the lanes of a warp, in its first lane at least.
__device__ __forceinline__ int sum_of_warp(int value) {
#if __CUDA_ARCH__ >= 800
    return __reduce_add_sync(LANES_MASK, value);
#else
#pragma unroll
    for (int step = 16; step > 0; step /= 2) value += (int)__shfl_xor_sync(LANES_MASK, (u32)value, step);
    return value;
#endif
}

__device__ __forceinline__ void add_to_all(u64 *all, int value) { atomicAdd(all, (u64)(i64)value); }

// The pixels of the reference that a thread sums up.
struct Reference {
    Around pixels[RUN];
    bool counts[RUN];
};

// The rows of a thread: the first, and the others `BLOCK_THREADS / TILE_WIDTH` apart.
__device__ __forceinline__ int column_of_thread() { return blockIdx.x * TILE_WIDTH + threadIdx.x % TILE_WIDTH; }
__device__ __forceinline__ int row_of_thread(int i) {
    return blockIdx.y * RUN_ROWS + threadIdx.x / TILE_WIDTH + i * (BLOCK_THREADS / TILE_WIDTH);
}

// Reads the pixels of the reference and, if requested, adds their own sums.
template <typename F>
__device__ __forceinline__ Reference read_reference(const u8 *pixels, int width, int height, int margin, F counts, u64 *all) {
    Reference reference;
    int sums[OF_REFERENCE] = {};
    const int x = column_of_thread();
#pragma unroll
    for (int i = 0; i < RUN; i++) {
        const int y = row_of_thread(i);
        const bool inside = x >= 1 + margin && x < width - 1 - margin && y >= 1 + margin && y < height - 1 - margin;
        reference.counts[i] = false;
        reference.pixels[i] = {};
        if (!inside) continue;
        const Around a = Around::of(pixels, width, x, y);
        if (!counts(x, y, a)) continue;
        reference.counts[i] = true;
        reference.pixels[i] = a;
        sums[0] += 1, sums[1] += a.grey, sums[2] += a.across, sums[3] += a.down;
        // Of no more than 2 * 255 * 255 a pixel, the sums of a warp stay far below 2^31.
        sums[4] += a.to_right * a.to_right, sums[5] += a.to_below * a.to_below, sums[6] += 2 * a.across * a.down;
    }
#pragma unroll
    for (int i = 0; i < OF_REFERENCE; i++) {
        const int sum = sum_of_warp(sums[i]);
        if (all && threadIdx.x % 32 == 0 && sum != 0) add_to_all(&all[i], sum);
    }
    return reference;
}

// Adds the sums of the reference with another image moved by whole pixels. `sums` are in shared
// memory.
__device__ __forceinline__ void add_other(const Reference &reference, const u8 *pixels, int width, int offset_x, int offset_y, int *sums) {
    int own[SUMS] = {};
    const int x = column_of_thread() - offset_x;
#pragma unroll
    for (int i = 0; i < RUN; i++) {
        if (!reference.counts[i]) continue;
        const Around a = reference.pixels[i], b = Around::of(pixels, width, x, row_of_thread(i) - offset_y);
        own[0] += a.across * b.grey - BREAK(shift_sign, b.across, -b.across) * a.grey;
        own[1] += a.down * b.grey - b.down * a.grey;
        own[2] += a.to_right * b.to_right;
        own[3] += a.to_below * b.to_below;
        own[4] += a.across * b.down + a.down * b.across;
        own[5] += a.across * b.across;
        own[6] += a.down * b.down;
        own[7] += b.grey;
        own[8] += b.across;
        own[9] += b.down;
    }
#pragma unroll
    for (int i = 0; i < SUMS; i++) {
        const int sum = sum_of_warp(own[i]);
        if (threadIdx.x % 32 == 0 && sum != 0) atomicAdd(&sums[i], sum);
    }
}

// Arithmetic in double precision, every operation rounded by itself.
__device__ __forceinline__ double times(double a, double b) { return __dmul_rn(a, b); }
__device__ __forceinline__ double plus(double a, double b) { return __dadd_rn(a, b); }
__device__ __forceinline__ double minus(double a, double b) { return __dadd_rn(a, -b); }
__device__ __forceinline__ double over(double a, double b) { return __ddiv_rn(a, b); }

struct Shift {
    int x, y;
    bool known, lost;
};

__device__ __forceinline__ int whole_pixels(int by) { return (by + SHIFT_UNIT / 2) >> 8; }
__device__ __forceinline__ int held(int by) { return min(max(by, -SHIFT_MAX), SHIFT_MAX); }

// The smaller eigenvalue of the equations' matrix.
__device__ __forceinline__ double eigenvalue_of(double u, double w, double v) {
    const double difference = minus(u, w), twice = times(2.0, v);
    const double root = __dsqrt_rn(plus(times(difference, difference), times(twice, twice)));
    return times(0.5, minus(plus(u, w), root));
}

// Returns the shift estimated from the sums, where the other picture was moved by the whole pixels
// of `begin`; if it is unknown, whether the picture is lost.
__device__ __forceinline__ Shift solve(const u64 *of_reference, const u64 *of_both, Shift begin, u32 variance) {
    Shift unknown = {begin.x, begin.y, false, false};
    auto a = [&](int i) { return (double)(i64)of_reference[i]; };
    auto b = [&](int i) { return (double)(i64)of_both[i]; };
    const double count = a(0);
    if (count == 0.0) return unknown;
    double noise = over((double)variance, 256.0);
    noise = noise < 0.25 ? 0.25 : noise;
    double pixels = times(2.0, __dsqrt_rn(count));
    pixels = pixels < 800.0 ? 800.0 : pixels;
    const double least = times(noise, pixels), nothing = times(plus(times(0.03, noise), 1.0), count);
    const double own = eigenvalue_of(minus(a(4), nothing), minus(a(5), nothing), times(0.125, a(6)));
    unknown.lost = variance > 0 && own >= times(2.0, least);

    const double mean_a = over(a(1), count), mean_b = over(b(7), count);
    auto against = [&](int axis) {
        const double of_means = minus(times(mean_b, a(2 + axis)), times(mean_a, b(8 + axis)));
        return times(0.25, minus(b(axis), of_means));
    };
    const double q = against(0), p = against(1), u = b(2), w = b(3), v = times(0.125, b(4));
    const double determinant = minus(times(u, w), times(v, v));
    if (!(eigenvalue_of(u, w, v) >= least && u > 0.0 && w > 0.0 && determinant > 0.0)) return unknown;
    double rest[2] = {over(minus(times(q, w), times(p, v)), determinant), over(minus(times(p, u), times(q, v)), determinant)};
    int by[2];
    for (int axis = 0; axis < 2; axis++) {
        const double weaker = over(times(0.25, b(5 + axis)), axis == 0 ? u : w);
        double c = over(minus(1.0, weaker), 3.0);
        c = c < 0.0 ? 0.0 : c > 0.08 ? 0.08 : c;
        double square = times(rest[axis], rest[axis]);
        square = square < 0.5 ? square : 0.5;
        rest[axis] = over(rest[axis], plus(minus(1.0, c), times(times(4.0, c), square)));
        if (!(rest[axis] <= 2.0 && rest[axis] >= -2.0)) return unknown;
        const int rounded = __double2int_rd(plus(times(rest[axis], (double)SHIFT_UNIT), 0.5));
        by[axis] = held(whole_pixels(axis == 0 ? begin.x : begin.y) * SHIFT_UNIT + rounded);
    }
    return {by[0], by[1], true, false};
}

__device__ __forceinline__ u32 variance_of_both(const int *words) {
    return ((u32)words[PLACE_VARIANCES] + (u32)words[PLACE_VARIANCES + 1]) / 2;
}

// `coarser` is the shift at half this size, where there is one. `all` are the sums of all blocks,
// which become 0 again.
extern "C" __global__ void __launch_bounds__(BLOCK_THREADS)
    look(const int *words, const u8 *left, const u8 *right, const u8 *remembered_left, const u8 *remembered_right, int width,
         int height, int has_coarser, const int *coarser, u64 *all, u32 *ticket, int *result) {
    wait_for_launches_before();
    if (words[PLACE_COUNT] == 0) return;
    __shared__ int sums[SUMS];
    const Shift begin = {has_coarser ? 2 * coarser[0] : 0, has_coarser ? 2 * coarser[1] : 0, false, false};
    const int offset_x = whole_pixels(begin.x), offset_y = whole_pixels(begin.y);
    const int margin = max(abs(offset_x), abs(offset_y));
    if (threadIdx.x < SUMS) sums[threadIdx.x] = 0;
    __syncthreads();
    auto every = [](int, int, const Around &) { return true; };
    const Reference reference = read_reference(blockIdx.z == 0 ? left : right, width, height, margin, every, all);
    add_other(reference, blockIdx.z == 0 ? remembered_left : remembered_right, width, offset_x, offset_y, sums);
    __syncthreads();
    if (threadIdx.x < SUMS) add_to_all(&all[OF_REFERENCE + threadIdx.x], sums[threadIdx.x]);
    if (!is_last_block(ticket, gridDim.x * gridDim.y * gridDim.z)) return;
    if (threadIdx.x == 0) {
        const Shift shift = solve(all, all + OF_REFERENCE, begin, variance_of_both(words));
        result[0] = shift.x, result[1] = shift.y;
    }
    __syncthreads();
    if (threadIdx.x < OF_REFERENCE + SUMS) all[threadIdx.x] = 0;
}

// The monomials of a shift in pixels, up to DEGREE.
__device__ __forceinline__ void monomials(int rest_x, int rest_y, double *phi) {
    const double x = over((double)rest_x, (double)SHIFT_UNIT), y = over((double)rest_y, (double)SHIFT_UNIT);
    const double xx = times(x, x), xy = times(x, y), yy = times(y, y);
    const double every[10] = {1.0, x, y, xx, xy, yy, times(xx, x), times(xx, y), times(yy, x), times(yy, y)};
#pragma unroll
    for (int i = 0; i < MONOMIALS; i++) phi[i] = every[i];
}

// Returns the weight of a remembered image with this shift.
__device__ __forceinline__ double weight_of(Shift shift) {
    if (shift.lost) return 0.0;
    const double x = over((double)shift.x, (double)SHIFT_UNIT), y = over((double)shift.y, (double)SHIFT_UNIT);
    const double near = over(1.0, plus(1.0, times(0.5, plus(times(x, x), times(y, y)))));
    const double square = times(near, near);
    return times(square, square);
}

// Solves matrix z = (1, 0, 0, ...) for the lower half of a symmetric, positive matrix.
__device__ __forceinline__ void solve_system(double (*matrix)[MONOMIALS], double *z) {
    for (int k = 0; k < MONOMIALS; k++)
        for (int i = k; i < MONOMIALS; i++) {
            double value = matrix[i][k];
            for (int j = 0; j < k; j++) value = minus(value, times(times(matrix[i][j], matrix[k][j]), matrix[j][j]));
            matrix[i][k] = i == k ? value : over(value, matrix[k][k]);
        }
    z[0] = 1.0;
    for (int i = 1; i < MONOMIALS; i++) {
        z[i] = 0.0;
        for (int j = 0; j < i; j++) z[i] = minus(z[i], times(matrix[i][j], z[j]));
    }
    for (int i = 0; i < MONOMIALS; i++) z[i] = over(z[i], matrix[i][i]);
    for (int i = MONOMIALS - 1; i >= 0; i--)
        for (int j = i + 1; j < MONOMIALS; j++) z[i] = minus(z[i], times(matrix[j][i], z[j]));
}

// `newest` is the shift of the picture remembered last at a quarter of the size, where that was
// looked at. `result` gets for each slot the coefficient and the offsets, and behind all of them
// the spread. Where all pictures are lost, none are remembered any more, and the pair is as the
// first of a stream.
extern "C" __global__ void __launch_bounds__(BLOCK_THREADS)
    search(int *words, int whole_width, int whole_height, const u8 *left, const u8 *right, int has_newest, const int *newest,
           u64 *all, u32 *ticket, int *result) {
    wait_for_launches_before();
    const State state = {words, whole_width, whole_height};
    const int count = state.count(), width = state.half_width(), height = state.half_height();
    const int eye = blockIdx.z % 2, group = blockIdx.z / 2, groups = gridDim.z / 2;
    if (count == 0) return;
    __shared__ int sums[HISTORY][SUMS];
    __shared__ Shift shifts[HISTORY];
    __shared__ u32 margin;
    const int slot = threadIdx.x;
    if (slot == 0) margin = 0;
    for (int i = threadIdx.x; i < HISTORY * SUMS; i += BLOCK_THREADS) sums[0][i] = 0;
    __syncthreads();
    if (slot < count) {
        // In pixels of pictures of half the size.
        auto begin = [&](int axis) {
            const int of_newest = has_newest ? 4 * newest[axis] : 0;
            return held(words[STATE_HEADER + 2 * slot + axis] + of_newest) >> 1;
        };
        const Shift at = shifts[slot] = {begin(0), begin(1), false, false};
        atomicMax(&margin, (u32)max(abs(whole_pixels(at.x)), abs(whole_pixels(at.y))));
    }
    __syncthreads();
    const u8 *ages = state.ages(eye);
    // Pixels that moved before, or move now, are no evidence of the rig's motion: a pixel and its
    // counterpart in the newest remembered image may differ by little more than the smaller of their
    // gradients.
    const Shift at = shifts[state.newest()];
    const u8 *remembered = state.half(eye, state.newest());
    const int offset_x = whole_pixels(at.x), offset_y = whole_pixels(at.y);
    const int tolerance = 4 + __double2int_rd(__dsqrt_rn((double)(variance_of_both(words) / 256)));
    auto still = [&](int x, int y, const Around &a) {
        const Around b = Around::of(remembered, width, x - offset_x, y - offset_y);
        const int slope = min(abs(a.across) + abs(a.down), abs(b.across) + abs(b.down));
        if (abs(a.grey - b.grey) > tolerance + slope) return false;
        const u8 *above = ages + (size_t)2 * y * whole_width;
        const u8 *below = ages + (size_t)min(2 * y + 1, whole_height - 1) * whole_width;
        const int first = 2 * x, second = min(2 * x + 1, whole_width - 1);
        return (above[first] | above[second] | below[first] | below[second]) == 0;
    };
    u64 *of_reference = group == 0 ? all : nullptr;
    const Reference reference = read_reference(eye == 0 ? left : right, width, height, (int)margin, still, of_reference);
    for (int i = group; i < count; i += groups)
        add_other(reference, state.half(eye, i), width, whole_pixels(shifts[i].x), whole_pixels(shifts[i].y), sums[i]);
    __syncthreads();
    for (int i = threadIdx.x; i < count * SUMS; i += BLOCK_THREADS)
        if (sums[0][i] != 0) add_to_all(&all[OF_REFERENCE + i], sums[0][i]);
    if (!is_last_block(ticket, gridDim.x * gridDim.y * gridDim.z)) return;

    __shared__ double phi[HISTORY][MONOMIALS], matrix[MONOMIALS][MONOMIALS], z[MONOMIALS], values[HISTORY], of_all;
    __shared__ double weights[HISTORY];
    __shared__ int coefficients[HISTORY];
    __shared__ bool kept;
    if (slot == 0) kept = false;
    __syncthreads();
    if (slot < count) {
        Shift shift = solve(all, all + OF_REFERENCE + slot * SUMS, shifts[slot], variance_of_both(words));
        shift.x *= 2, shift.y *= 2;
        const int offset_x = whole_pixels(shift.x), offset_y = whole_pixels(shift.y);
        monomials(shift.x - offset_x * SHIFT_UNIT, shift.y - offset_y * SHIFT_UNIT, phi[slot]);
        weights[slot] = weight_of(shift);
        words[STATE_HEADER + 2 * slot] = shift.x, words[STATE_HEADER + 2 * slot + 1] = shift.y;
        result[3 * slot + 1] = offset_x, result[3 * slot + 2] = offset_y;
        if (slot == state.newest()) {
            words[PLACE_FRAME_SHIFT] = shift.x, words[PLACE_FRAME_SHIFT + 1] = shift.y;
            words[PLACE_FRAME_SHIFT_KNOWN] = shift.known;
        }
        if (BREAK(lost_pictures, !shift.lost, true)) kept = true;
    }
    __syncthreads();
    for (int i = threadIdx.x; i < OF_REFERENCE + SUMS * count; i += BLOCK_THREADS) all[i] = 0;
    if (!kept) {
        if (slot == 0) words[PLACE_COUNT] = 0;
        return;
    }
    if (threadIdx.x < MONOMIALS * MONOMIALS) {
        const int i = threadIdx.x / MONOMIALS, k = threadIdx.x % MONOMIALS;
        double sum = i == k ? 0.1 : 0.0;
        for (int j = 0; j < count; j++) sum = plus(sum, times(times(phi[j][i], phi[j][k]), weights[j]));
        matrix[i][k] = sum;
    }
    __syncthreads();
    if (threadIdx.x == 0) solve_system(matrix, z);
    __syncthreads();
    if (slot < count) {
        double value = 0.0;
        for (int i = 0; i < MONOMIALS; i++) value = plus(value, times(phi[slot][i], z[i]));
        values[slot] = times(value, weights[slot]);
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        of_all = 0.0;
        for (int j = 0; j < count; j++) of_all = plus(of_all, values[j]);
    }
    __syncthreads();
    if (slot < count) coefficients[slot] = __double2int_rd(plus(times(over(values[slot], of_all), (double)ONE), 0.5));
    __syncthreads();
    if (threadIdx.x != 0) return;
    int missing = ONE;
    for (int j = 0; j < count; j++) missing -= coefficients[j];
    // Rounded down, also where it is negative.
    auto part = [&](int j) { return (missing * j - (missing < 0 ? count - 1 : 0)) / count; };
    i64 squares = 0;
    for (int j = 0; j < count; j++) {
        const int value = coefficients[j] + part(j + 1) - part(j);
        result[3 * j] = value;
        squares += (i64)value * value;
    }
    result[3 * HISTORY] = (int)(squares >> 20);
    words[PLACE_SPREAD] = (int)(squares >> 20);
}
