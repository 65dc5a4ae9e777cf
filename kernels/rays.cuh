// Rays that leave a pixel of a map in eight directions (matching/filter/rays.rs).
#pragma once
#include "disparity.cuh"

// Rays are numbered row by row around the pixel; ray 7 - k leads the opposite way of ray k.
#define RAY_LEFT 3
#define RAY_RIGHT 4
#define RAY_UP 1
__device__ __forceinline__ int ray_dx(int k) { return (k + (k > RAY_LEFT)) % 3 - 1; }
__device__ __forceinline__ int ray_dy(int k) { return (k + (k > RAY_LEFT)) / 3 - 1; }

// Follows the rays of pixel (x, y) that have their bit in `open`, all at once, so that their loads
// overlap, for at most `reach` steps. `visit(k, at, x, y, distance)` receives a pixel of ray k and
// returns the number of steps to the next pixel to visit, or 0 to end the ray. Rays also end at the
// border and where the left camera has seen nothing: seen_left holds a byte a pixel, where MASKED.
template <typename Visit>
__device__ __forceinline__ void follow_rays(u32 open, int x, int y, int width, int height, int reach,
                                            const u8 *seen_left, Visit visit) {
    int distances[8];
#pragma unroll
    for (int k = 0; k < 8; k++) distances[k] = 1;
    while (open) {
#pragma unroll
        for (int k = 0; k < 8; k++) {
            if (!(open >> k & 1)) continue;
            const int distance = distances[k];
            const int ray_x = x + distance * ray_dx(k), ray_y = y + distance * ray_dy(k);
            int steps = 0;
            if (distance <= reach && ray_x >= 0 && ray_x < width && ray_y >= 0 && ray_y < height) {
                const size_t at = (size_t)ray_y * width + ray_x;
                steps = visit(k, at, ray_x, ray_y, distance);
#if MASKED
                if (!seen_left[at]) steps = 0;
#endif
            }
            distances[k] += steps;
            if (!steps) open &= ~(1u << k);
        }
    }
}
