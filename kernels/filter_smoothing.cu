// Exponential smoothing in time, with a guard for motion (smoothing.rs). In place.
//
// state and disparity are [pixels]; state is in 1/256 of the map's unit, NEVER for a pixel whose
// disparity was never known, and holds anything where it is not `known`. SMOOTHING_WEIGHT is in
// 1/256, SMOOTHING_GUARD in 1/16 px. Grid: [pixels / BLOCK_THREADS].
#include "disparity.cuh"

#define STATE_UNIT 256
#define NEVER (-2147483647 - 1)

extern "C" __global__ void __launch_bounds__(BLOCK_THREADS)
    smoothing(int pixels, int known, int *state, short *disparity) {
    wait_for_launches_before();
    const size_t i = (size_t)blockIdx.x * BLOCK_THREADS + threadIdx.x;
    if (i >= pixels) return;
    const int value = disparity[i];
    if (value == INVALID) {
        if (!known) state[i] = NEVER;
        return;
    }
    const int newest = value * STATE_UNIT;
    const int before = BREAK(smoothing_state, known, 0) ? state[i] : NEVER;
    // Where there is nothing before, the difference is not used.
    const int step = before == NEVER ? 0 : newest - before;
    const bool moved = before == NEVER || abs(step) > SMOOTHING_GUARD * STATE_UNIT;
    const int smoothed = moved ? newest : before + ((SMOOTHING_WEIGHT * step + 128) >> 8);
    state[i] = smoothed;
    const int rounded = (smoothed + STATE_UNIT / 2) >> 8;
    const int least = MIN_DISPARITY * SUBPIXEL_STEPS;
    const int most = (MIN_DISPARITY + DISPARITIES - 1) * SUBPIXEL_STEPS;
    disparity[i] = (short)min(max(rounded, least), most);
}
