// The learned prior (matching/learned.rs) without its convolutions: planes of the images, comparison of the views,
// disparities of cells, and the prior map. Values are as in learned_convolution.cu.
#include "instructions.cuh"

// Inputs of the first convolution, four bytes a pixel; the images' last column and row are repeated up to width and
// height. Grid: [pixels / BLOCK_THREADS][view].
extern "C" __global__ void __launch_bounds__(BLOCK_THREADS)
    planes(const u8 *left, const u8 *right, int image_width, int image_height, int width, int height, u32 *out) {
    wait_for_launches_before();
    const int i = blockIdx.x * BLOCK_THREADS + threadIdx.x;
    if (i >= width * height) return;
    const u8 *from = blockIdx.y == 0 ? left : right;
    const int y = i / width, x = i - y * width;
    int columns[3], around[3][3], total = 4;
#pragma unroll
    for (int k = 0; k < 3; k++) columns[k] = min(max(x + k - 1, 0), image_width - 1);
#pragma unroll
    for (int k = 0; k < 9; k++) {
        const u8 *row = from + min(max(y + k / 3 - 1, 0), image_height - 1) * image_width;
        around[k / 3][k % 3] = row[columns[k % 3]];
        total += around[k / 3][k % 3];
    }
    auto limited = [](int value) { return (u32)min(max(64 + value, 0), 127); };
    const int centre = around[1][1];
    const u32 across = limited(around[1][2] - around[1][0]), down = limited(around[2][1] - around[0][1]);
    const u32 detail = limited(4 * (centre - total / BREAK(learned_mean, 9, 8)));
    out[(size_t)blockIdx.y * width * height + i] = centre >> 1 | across << 8 | down << 16 | detail << 24;
}

// Compares the features of a left cell with those of right cells, in groups of channels: channel g * candidates + d is
// the sum over group g for the right cell x - d. A thread computes a word. Grid: [words of a row / BLOCK_THREADS][height].
extern "C" __global__ void __launch_bounds__(BLOCK_THREADS)
    correlate(const u32 *features, int words, int doublings, int width, int height, int channels, int groups, int candidates, int shift, u32 *out, int out_words) {
    wait_for_launches_before();
    const u32 i = blockIdx.x * BLOCK_THREADS + threadIdx.x;
    const int y = blockIdx.y, x = i / out_words, word = i - x * out_words;
    if (x >= width) return;
    const size_t row = (size_t)(y >> doublings) * (width >> doublings);
    const u32 *left = features + (row + (x >> doublings)) * words;
    const u32 *right = features + ((size_t)(height >> doublings) * (width >> doublings) + row) * words;
    u32 result = 0;
    int group = 4 * word / candidates, d = 4 * word - group * candidates;
    for (int k = 0; k < 4 && group < groups; k++, d++) {
        if (d == candidates) group++, d = 0;
        if (d > x || group == groups) continue;
        const u32 *other = right + (size_t)(x - BREAK(learned_candidate, d, d / 2) >> doublings) * words;
        // Words at the ends of a group have channels of its neighbours, too.
        const int first = group * channels, end = first + channels;
        int sum = 0;
        for (int at = first / 4; 4 * at < end; at++) {
            const u32 own = ~0u << 8 * max(first - 4 * at, 0) & ~0u >> 8 * max(4 * at + 4 - end, 0);
            sum = __dp4a((int)(left[at] & own), (int)other[at], sum);
        }
        result |= (u32)min(max(sum >> shift, 0), 127) << 8 * k;
    }
    out[(size_t)y * width * out_words + i] = result;
}

// The disparity of each cell in 1/16 of a candidate and, in the upper half of the word, its confidence: the mean of the
// best candidate and its neighbours, weighted by the table. Grid: [cells / BLOCK_THREADS].
extern "C" __global__ void __launch_bounds__(BLOCK_THREADS)
    decode(const u32 *head, int words, int cells, int candidates, int reach, const u8 *table, int entries, u32 *prediction) {
    wait_for_launches_before();
    const int i = blockIdx.x * BLOCK_THREADS + threadIdx.x;
    if (i >= cells) return;
    const short *logits = (const short *)(head + (size_t)i * words);
    int best = 0;
    for (int k = 1; k < candidates; k++)
        if (logits[k] > logits[best]) best = k;
    u32 total = 0, moment = 0;
    for (int k = max(best - reach, 0); k < min(best + reach + 1, candidates); k++) {
        const u32 weight = table[min(logits[best] - logits[k], entries - 1)];
        total += weight;
        moment += weight * k;
    }
    prediction[i] = (32 * moment + BREAK(learned_rounding, total, 0)) / (2 * total) | (u32)logits[candidates] << 16;
}

// Spreads the prediction over the pixels of the half-size images (matching/learned/map.rs). A cell has cell x cell of
// them, width x height are the cells; unknown marks a pixel without a disparity. Grid: [pixels / BLOCK_THREADS].
extern "C" __global__ void __launch_bounds__(BLOCK_THREADS)
    prior_map(const u32 *prediction, int width, int height, int cell, int threshold, int columns, int rows, int unknown, short *map) {
    wait_for_launches_before();
    const int i = blockIdx.x * BLOCK_THREADS + threadIdx.x;
    if (i >= columns * rows) return;
    const int y = i / columns, x = i - y * columns;
    bool all = true;
    auto at = [&](int column, int row) -> u32 {
        const u32 word = prediction[min(row, height - 1) * width + min(column, width - 1)];
        all &= (int)word >> 16 >= threshold;
        return word & 0xffff;
    };
    const u32 own = at(x / cell, y / cell);
    if (!all) {
        map[i] = unknown;
        return;
    }
    // The cells on either side, by their centres, and the weight of the second in 1 / (2 cell).
    const int right = 2 * x + 1 + cell, below = 2 * y + 1 + cell;
    const int xs = right / (2 * cell), ys = below / (2 * cell);
    auto of_row = [&](int row) {
        const int weight = right % (2 * cell);
        return (2 * cell - weight) * at(max(xs - 1, 0), row) + weight * at(BREAK(learned_neighbour, xs, max(xs - 1, 0)), row);
    };
    const int weight = below % (2 * cell);
    // 32 bits hold it, because the map's disparities have 16 bits.
    const u32 sum = (2 * cell - weight) * of_row(max(ys - 1, 0)) + weight * of_row(ys);
    map[i] = all ? (sum + 2 * cell) / (4 * cell) : own * cell;
}
