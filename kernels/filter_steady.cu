// Suppresses flicker: where the left image stands still, the map keeps its disparities against
// others (matching/filter/steady.rs). In place.
//
// The state is a header, the disparity of each pixel in 1/256 of the map's unit, and what else is
// remembered of each (Memory). Kernels, in this order on one stream, both of which touch the state:
//   compare(left, known, state, ...)
//     The left picture beside its mean of the last frames, and the limits of its noise.
//   steady(left, known, state, ...)
//     The map. Grid of both: [width / TILE_WIDTH][height / TILE_HEIGHT].
#include "disparity.cuh"
#include "residuals.cuh"

#define STATE_UNIT 256
#define GUARD (SUBPIXEL_STEPS * STATE_UNIT)
#define FOLLOW 2
#define SPREAD 37u
#define STEADY_VARIANCE_MIN 256u
#define SURE 204
#define HELD 1

// The state of a pixel besides its disparity.
struct Memory {
    int grey, seen, against;
    bool shown;
    __device__ __forceinline__ static Memory of(int number) {
        return {number & 0xfff, number >> 13 & 0xff, number >> 21 & 0xff, (number >> 12 & 1) != 0};
    }
    __device__ __forceinline__ int number() const { return grey | (shown ? 1 : 0) << 12 | seen << 13 | against << 21; }
};

extern "C" __global__ void __launch_bounds__(BLOCK_THREADS)
    compare(const u8 *left, int width, int height, int known, const int *state, short *residuals, u32 *magnitudes,
            u32 *ticket, Limits *limits) {
    wait_for_launches_before();
    __shared__ Magnitudes counted;
    counted.clear();
    __syncthreads();
    const Picture from = {left, width, height};
    const int *memories = state + STEADY_HEADER + (size_t)width * height;
    for_pixels_of_tile(width, height, [&](int x, int y, size_t at) {
        const int residual = known ? left[at] * RESIDUAL_UNIT - Memory::of(memories[at]).grey : 0;
        residuals[at] = residual;
        counted.count(residual);
        counted.respond(from, x, y);
    });
    __syncthreads();
    counted.add_to(magnitudes);
    if (!is_last_block(ticket, gridDim.x * gridDim.y)) return;
    const u32 variance = max(variance_of(magnitudes, SPREAD), STEADY_VARIANCE_MIN);
    if (threadIdx.x == 0) *limits = Limits::of(variance, SPREAD);
}

extern "C" __global__ void __launch_bounds__(BLOCK_THREADS)
    steady(const u8 *left, int width, int height, int known, int *state, const short *residuals, const Limits *limits,
           u32 *moving, u32 *ticket, short *disparity, u8 *confidence) {
    wait_for_launches_before();
    __shared__ ResidualTile tile;
    tile.load(residuals, width, height);
    __syncthreads();
    const size_t pixels = (size_t)width * height;
    const bool rig_moves = known && 4ll * state[0] > (long long)pixels;
    int *disparities = state + STEADY_HEADER, *memories = disparities + pixels;
    const Limits of_picture = *limits;
    u32 own = 0;
    for_pixels_of_tile(width, height, [&](int x, int y, size_t at) {
        const bool moves = tile.evidence(x, y, of_picture) >= 1.0f;
        own += moves;
        Memory memory = Memory::of(known ? memories[at] : 0);
        int before = known ? disparities[at] : 0;
        const int newest_grey = left[at] * RESIDUAL_UNIT;
        memory.grey = !known || moves ? newest_grey : memory.grey + ((newest_grey - memory.grey + (1 << (FOLLOW - 1))) >> FOLLOW);

        const bool anew = !known || rig_moves || moves;
        const int value = disparity[at];
        const bool is_known = value != INVALID;
        const int newest = value * STATE_UNIT, step = newest - before;
        const bool agrees = !anew && is_known == memory.shown && (!is_known || abs(step) <= GUARD);
#if CONFIDENCE
        const int sure = confidence[at];
        const int counts = is_known && sure >= SURE ? 2 : 1;
#else
        const int sure = 255, counts = 1;
#endif
        const int against = memory.against + counts;
        const bool resists = !anew && against <= min(memory.seen, STRENGTH) - BREAK(steady_strength, 0, 1);
        bool held = false;
        if (agrees) {
            if (is_known) {
                const int later = 512 * (sure + 1) / (256 * (STRENGTH + 1));
                const int weight = max(max(later, 256 / (memory.seen + 1)), 1);
                before += (weight * step + BREAK(steady_rounding, 128, 0)) >> 8;
            }
            memory.seen = min(memory.seen + 1, 255);
            memory.against = 0;
        } else if (resists) {
            memory.against = against;
            held = memory.shown;
        } else {
            if (is_known) before = newest;
            memory.shown = is_known;
            memory.seen = 1;
            memory.against = 0;
        }
        const int rounded = (before + STATE_UNIT / 2) >> 8;
        const int least = MIN_DISPARITY * SUBPIXEL_STEPS;
        const int most = (MIN_DISPARITY + DISPARITIES - 1) * SUBPIXEL_STEPS;
        disparity[at] = memory.shown ? (short)min(max(rounded, least), most) : (short)INVALID;
        disparities[at] = before;
        memories[at] = memory.number();
#if CONFIDENCE
        confidence[at] = !memory.shown ? 0 : held ? HELD : max(sure, HELD + 1);
#endif
    });
    add_counts(own, moving);
    if (!is_last_block(ticket, gridDim.x * gridDim.y) || threadIdx.x != 0) return;
    state[0] = (int)*moving;
    for (int i = 1; i < STEADY_HEADER; i++) state[i] = 0;
    *moving = 0;
}
