// Rays that leave a pixel of a map in eight directions (matching/filter/rays.rs).
#pragma once
#include "disparity.cuh"

// Rays are numbered row by row around the pixel; ray 7 - k leads the opposite way of ray k.
#define RAY_LEFT 3
#define RAY_RIGHT 4
__device__ __forceinline__ int ray_dx(int k) { return (k + (k > RAY_LEFT)) % 3 - 1; }
__device__ __forceinline__ int ray_dy(int k) { return (k + (k > RAY_LEFT)) / 3 - 1; }

// Follows the rays of pixel (x, y) that have their bit in `open`, all at once and step by step, so that their
// loads overlap, for at most `reach` steps. `visit(k, at, distance)` is told each pixel of ray k and returns
// whether the ray ends there. Rays also end at the border and where the left camera has seen nothing:
// seen_left holds a byte a pixel, where MASKED.
template <typename Visit>
__device__ __forceinline__ void follow_rays(u32 open, int x, int y, int width, int height, int reach,
                                            const u8 *seen_left, Visit visit) {
    for (int distance = 1; distance <= reach && open; distance++) {
#pragma unroll
        for (int k = 0; k < 8; k++) {
            if (!(open >> k & 1)) continue;
            const int ray_x = x + distance * ray_dx(k), ray_y = y + distance * ray_dy(k);
            if (ray_x < 0 || ray_x >= width || ray_y < 0 || ray_y >= height) {
                open &= ~(1u << k);
                continue;
            }
            const size_t at = (size_t)ray_y * width + ray_x;
            if (visit(k, at, distance)) open &= ~(1u << k);
#if MASKED
            if (!seen_left[at]) open &= ~(1u << k);
#endif
        }
    }
}
