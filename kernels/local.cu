// Local matching: the candidate of least cost, without aggregation. It serves to try the engine.
//
// DISPARITIES, MIN_DISPARITY, TRUNCATION: the candidates and the cost.

#include "common.cuh"

// Writes the number of this turn, for `winner` to see that it ran before.
extern "C" __global__ void stamp(u32 *marks, u32 turn) { marks[threadIdx.x] = turn; }

// The disparity of every pixel in sixteenths; INVALID where `stamp` has not run.
extern "C" __global__ void winner(const u8 *left, const u8 *right, const u32 *marks, i16 *disparity, u32 pitch,
                                  int width, int height, u32 turn) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y;
    if (x >= width || y >= height) return;
    int best = 0, least = 256;
    for (int k = 0; k < DISPARITIES; k++) {
        int match = min(max(x - MIN_DISPARITY - k, 0), width - 1);
        int cost = min(abs(int(left[y * pitch + x]) - int(right[y * pitch + match])), TRUNCATION);
        if (cost < least) least = cost, best = k;
    }
    bool stamped = marks[threadIdx.x % 32] == turn;
    disparity[y * width + x] = stamped ? i16((MIN_DISPARITY + best) * 16) : INVALID;
}
