// Subtracts the background from a pair, decides which pixels move, and writes the state of the
// stream (matching/temporal/background.rs).
//
// Kernels, in this order on one stream, between those of temporal_shift.cu; all touch the state:
//   subtract(left, right, ...)
//     The residuals of both views and the limits of their noise; for a first pair the noise alone.
//     Grid: [width / TILE_WIDTH][height / TILE_HEIGHT][views].
//   decide(left, right, ...)
//     Whether each pixel moves, and the pixels that are matched, handed out and remembered. Same
//     grid.
#include "residuals.cuh"
#include "temporal.cuh"

#define COEFFICIENT_SHIFT 10

// `coefficients` as temporal_shift.cu left them. `magnitudes` are histograms for each view, which
// become empty again.
extern "C" __global__ void __launch_bounds__(BLOCK_THREADS)
    subtract(int *words, const u8 *left, const u8 *right, int width, int height, const int *coefficients, short *residuals,
             u32 *magnitudes, u32 *tickets, Limits *limits, u32 *variances) {
    wait_for_launches_before();
    const State state = {words, width, height};
    const int count = state.count(), eye = blockIdx.z;
    __shared__ Magnitudes counted;
    __shared__ int of_slots[3 * HISTORY];
    counted.clear();
    for (int i = threadIdx.x; i < 3 * count; i += BLOCK_THREADS) of_slots[i] = coefficients[i];
    __syncthreads();
    const Picture from = {eye == 0 ? left : right, width, height};
    short *to = residuals + (size_t)eye * width * height;
    const int x = blockIdx.x * TILE_WIDTH + threadIdx.x % TILE_WIDTH;
    // A thread's rows, all of which wait for one picture at a time.
    constexpr int STEP = BLOCK_THREADS / TILE_WIDTH, ROWS = TILE_HEIGHT / STEP;
    const int first = blockIdx.y * TILE_HEIGHT + threadIdx.x / TILE_WIDTH;
    int sums[ROWS] = {};
    const u8 *picture = state.picture(eye, 0);
    for (int slot = 0; slot < count; slot++, picture += 4 * state.picture_words()) {
        const Picture remembered = {picture, width, height};
        const int coefficient = of_slots[3 * slot];
        const int column = x - BREAK(background_shift, of_slots[3 * slot + 1], of_slots[3 * slot + 1] - 1), row = first - of_slots[3 * slot + 2];
#pragma unroll
        for (int i = 0; i < ROWS; i++) sums[i] += coefficient * remembered.at(column, row + i * STEP);
    }
#pragma unroll
    for (int i = 0; i < ROWS; i++) {
        const int y = first + i * STEP;
        if (x >= width || y >= height) continue;
        counted.respond(from, x, y);
        if (count == 0) continue;
        const int background = (sums[i] + (1 << (COEFFICIENT_SHIFT - 1))) >> COEFFICIENT_SHIFT;
        const int residual = from.at(x, y) * RESIDUAL_UNIT - min(max(background, 0), 255 * RESIDUAL_UNIT);
        to[(size_t)y * width + x] = residual;
        counted.count(residual);
    }
    __syncthreads();
    u32 *all = magnitudes + (size_t)eye * (RESIDUALS + RESPONSES);
    counted.add_to(all);
    if (!is_last_block(&tickets[eye], gridDim.x * gridDim.y)) return;
    const u32 spread = count > 0 ? coefficients[3 * HISTORY] : 0, variance = variance_of(all, spread);
    if (threadIdx.x == 0) {
        limits[eye] = Limits::of(variance, spread);
        variances[eye] = variance;
    }
}

// The pixels `denoised` of both views where DENOISE, else the left picture `whitened`. `report`
// gets the header.
extern "C" __global__ void __launch_bounds__(BLOCK_THREADS)
    decide(int *words, const u8 *left, const u8 *right, int width, int height, const short *residuals, const Limits *limits,
           const u32 *variances, u32 *moving, u32 *ticket, u8 *denoised_left, u8 *denoised_right, u16 *whitened, int *report) {
    wait_for_launches_before();
    const State state = {words, width, height};
    const int count = state.count(), eye = blockIdx.z, slot = state.next_slot();
    __shared__ ResidualTile tile;
    const u8 *from = eye == 0 ? left : right;
    if (count > 0) tile.load(residuals + (size_t)eye * width * height, width, height);
    __syncthreads();
    const Limits of_eye = count > 0 ? limits[eye] : Limits{};
    u8 *ages = state.ages(eye), *stored = state.picture(eye, slot);
    u32 own = 0;
    for_pixels_of_tile(width, height, [&](int x, int y, size_t at) {
        const int pixel = from[at];
        int residual = 0, weight = 256;
        bool moves = false;
        if (count > 0) {
            residual = tile.at(x, y);
            const float evidence = tile.evidence(x, y, of_eye);
            weight = of_eye.weight(evidence);
            moves = evidence >= 1.0f;
        }
        own += moves;
        const int age = moves ? min(ages[at] + 1, 255) : 0;
        ages[at] = age;
        const int background = pixel * RESIDUAL_UNIT - residual;
        stored[at] = age == 0 || age > HISTORY ? pixel : (background + RESIDUAL_UNIT / 2) >> 4;
#if DENOISE
        (eye == 0 ? denoised_left : denoised_right)[at] = (256 * background + residual * weight + 128 * RESIDUAL_UNIT) >> 12;
#else
        if (eye == 0) whitened[at] = (32768 + BREAK(whitened, 8, 4) * residual) | (moves ? 1 : 0);
#endif
    });
    add_counts(own, moving);
    if (!is_last_block(ticket, gridDim.x * gridDim.y * gridDim.z) || threadIdx.x != 0) return;

    // The header for the next pair (layout.rs: Header::end).
    if (count == 0) {
        words[PLACE_FRAME_SHIFT] = words[PLACE_FRAME_SHIFT + 1] = words[PLACE_FRAME_SHIFT_KNOWN] = 0;
        words[PLACE_SPREAD] = 0;
    }
    const u32 scale = 256 + (u32)words[PLACE_SPREAD];
    for (int i = 0; i < 2; i++) words[PLACE_VARIANCES + i] = (int)(variances[i] * 256 / scale);
    words[PLACE_NEWEST] = slot;
    words[PLACE_COUNT] = max(count, slot + 1);
    words[PLACE_MOVING] = (int)*moving;
    *moving = 0;
    words[STATE_HEADER + 2 * slot] = words[STATE_HEADER + 2 * slot + 1] = 0;
    for (int i = 0; i < STATE_HEADER; i++) report[i] = words[i];
}
