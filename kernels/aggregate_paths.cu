// Aggregates costs along all path directions at once (Hirschmueller, PAMI 2008), for images, ranges and
// paths that the sweeps cannot take. Each path adds its costs L to the sums of the whole image, which
// are zero before; select_disparities.cu then picks the winners.
//
// Sums are [height][width][HALF_DISPARITIES]: words of two 16-bit halves, interleaved (lanes.cuh).
// A group of lanes follows a path.
#define WINDOW_COLUMNS 0
#include "cost.cuh"
#include "blend.cuh"

// A block's paths have one direction (dx, dy), up to two pixels either way; STEPS are those of all.
// Paths begin where the pixel before lies outside: in the first |dy| rows in sight and, below those,
// in the first |dx| columns. The table of penalties says P2 by the step of brightness in the guide;
// `blends` is read with SURFACE.
//
// Grid: [paths of a direction / (WARP_PIXELS * WARPS)][directions].
extern "C" __global__ void __launch_bounds__(32 * WARPS)
    aggregate_paths(const u32 *p2, const u32 *base, const u32 *match, int row, int width, int height, const u8 *guide_pixels,
          const u8 *penalties, const u32 *blends, u64 *sums) {
    wait_for_launches_before();
    constexpr signed char steps[] = {STEPS};
    const int dx = steps[2 * blockIdx.y], dy = steps[2 * blockIdx.y + 1];
    const u32 lane = group_lane();
    const int group = (blockIdx.x * WARPS + threadIdx.x / 32) * WARP_PIXELS + warp_group();
    const Features features = {p2, base, match, row};
    const Picture guide = {guide_pixels, width, height};
    const int rows = min(BREAK(path_starts, abs(dy), 1), height), columns = min(abs(dx), width);
    const int starts = rows * width + columns * (height - rows);
    const int beside = group - rows * width;
    int x = beside < 0 ? group % width : beside % max(columns, 1);
    int y = beside < 0 ? group / width : rows + beside / max(columns, 1);
    if (dx < 0) x = width - 1 - x;
    if (dy < 0) y = height - 1 - y;
    const Edges edges(lane);
    Vector path = filled(0);
    u32 least = 0;
    // All lanes of a warp go on until the last of its paths has ended.
    while (true) {
        const bool inside = group < starts && x >= 0 && x < width && y >= 0 && y < height;
        if (!__any_sync(LANES_MASK, inside)) break;
        const int at_x = inside ? x : 0, at_y = inside ? y : 0;
        const u32 pixel = p2[(size_t)at_y * row + at_x + PAD];
        const Vector c = cost(window_at(features, 0, at_y), at_x, lane, pixel, 0, width);
        const u32 penalty = both(penalties[abs(guide.at(at_x, at_y) - guide.at(at_x - dx, at_y - dy))]);
        int slant = 0;
#if SURFACE
        const int before_x = min(max(at_x - dx, 0), width - 1), before_y = min(max(at_y - dy, 0), height - 1);
        slant = slant_of(Blend{blends[(size_t)before_y * width + before_x]}, Blend{blends[(size_t)at_y * width + at_x]});
#endif
        Vector delta = recurrence(path, add2(least, penalty), edges, slant);
#pragma unroll
        for (int j = 0; j < REGISTERS; j++) path.v[j] = add2(sub2(delta.v[j], least), c.v[j]);
        u64 *sum = sums + ((size_t)at_y * width + at_x) * (HALF_DISPARITIES / 2);
#pragma unroll
        for (int j = 0; j < REGISTERS; j += 2)
            // Two words at once: no half of a sum overflows.
            if (inside) atomicAdd(sum + interleaved(lane, j) / 2, path.v[j] | (u64)path.v[j + 1] << 32);
        if (HAS_PADDING) {
#pragma unroll
            for (int j = 0; j < REGISTERS; j++) path.v[j] |= padding(lane, j);
        }
        least = least_of(path);
        x += dx, y += dy;
    }
}
