// A convolution of the learned prior (matching/learned.rs) as a product of matrices: rows are cells of the output,
// columns its channels, and what is summed over are the inputs, taps and input channels.
//
// Values are [view][y][x][channel], four channels in a word (engine/learned/device.rs). A warp computes 16 * TILES cells
// and 16 * BLOCKS channels. Column c of the blocks 0 and 1 of 8 columns is channel 2 c and 2 c + 1 of 16, so that a lane
// gets the sums of four channels in a row, a word.
//
// inputs has three numbers of each input: its place in units of UNIT_WORDS, its words of a cell, and how often it is
// doubled. weights have the words of each lane, as it loads them (plan/learned.rs). width and height are the inputs'
// cells, columns and rows those of the output. add is added to the result if it has words.
// Grid: [cells / 16 / TILES / WARPS][channels / 16 / BLOCKS][view].
#include "instructions.cuh"

// Cells of a value that may be doubled. Only all its words may be more than 32 bits count.
struct Value {
    const u32 *words;
    int width, height;
    u32 of_cell;
    int doublings;
    __device__ __forceinline__ const u32 *cell(int x, int y) const {
        return words + (u64)(u32)((y >> doublings) * (width >> doublings) + (x >> doublings)) * of_cell;
    }
    __device__ __forceinline__ size_t view() const {
        return (size_t)(height >> doublings) * (width >> doublings) * of_cell;
    }
};

__device__ __forceinline__ uint2 two_words(const u32 *from) { return *(const uint2 *)from; }

// Cells of a lane.
#define CELLS (2 * TILES)

extern "C" __global__ void __launch_bounds__(32 * WARPS, 4)
    convolve(const u32 *values, const int *inputs, int count, const u32 *__restrict__ weights, const uint4 *__restrict__ biases, const uint4 *__restrict__ shifts, int kernel, int stride, int dilation, int low, int high, int width, int height, const u32 *add, int add_words, int add_doublings, int columns, int rows, u32 *__restrict__ out, int out_words, int is_wide) {
    wait_for_launches_before();
    const int lane = threadIdx.x % 32, lane_row = lane / 4, lane_word = lane % 4;
    const int cells = columns * rows, first = 16 * TILES * (blockIdx.x * WARPS + threadIdx.x / 32), view = blockIdx.z;
    if (first >= cells) return;
    const int channel = 16 * BLOCKS * blockIdx.y, channels = 16 * BLOCKS * gridDim.y;
    // The cells of the lane; beyond the last one, that again.
    int xs[CELLS], ys[CELLS];
#pragma unroll
    for (int r = 0; r < CELLS; r++) {
        const int cell = min(first + lane_row + 8 * r, cells - 1);
        ys[r] = cell / columns;
        xs[r] = cell - ys[r] * columns;
    }

    int sums[TILES][BLOCKS][2][4];
#pragma unroll
    for (int b = 0; b < BLOCKS; b++) {
        const uint4 bias = biases[(channel + 16 * b) / 4 + lane_word];
#pragma unroll
        for (int r = 0; r < CELLS; r++) {
            int(*const sum)[4] = sums[r / 2][b];
            const int first_column = r % 2 * 2;
            sum[0][first_column] = bias.x, sum[1][first_column] = bias.y;
            sum[0][first_column + 1] = bias.z, sum[1][first_column + 1] = bias.w;
        }
    }
    // Four words of the inputs are added at a time, or eight, of which the lane has two in a row.
    auto add_four = [&](const u32 *cell) {
#pragma unroll
        for (int b = 0; b < BLOCKS; b++) {
            const uint2 two = two_words(weights + 4 * (channel + 16 * b) + 2 * lane);
#pragma unroll
            for (int t = 0; t < TILES; t++) {
                add_products(sums[t][b][0], cell[2 * t], cell[2 * t + 1], two.x);
                add_products(sums[t][b][1], cell[2 * t], cell[2 * t + 1], two.y);
            }
        }
        weights += 4 * channels;
    };
    auto add_eight = [&](const uint2 *cell) {
#pragma unroll
        for (int b = 0; b < BLOCKS; b++) {
            const uint4 four = *(const uint4 *)(weights + 8 * (channel + 16 * b) + 4 * lane);
#pragma unroll
            for (int t = 0; t < TILES; t++) {
                add_products(sums[t][b][0], cell[2 * t], cell[2 * t + 1], make_uint2(four.x, four.y));
                add_products(sums[t][b][1], cell[2 * t], cell[2 * t + 1], make_uint2(four.z, four.w));
            }
        }
        weights += 8 * channels;
    };
    const int taps = kernel * kernel;
    for (int i = 0; i < count; i++) {
        Value from = {values + (size_t)inputs[3 * i] * UNIT_WORDS, width, height, (u32)inputs[3 * i + 1], inputs[3 * i + 2]};
        from.words += view * from.view();
        // The cell that a tap reads, any one outside.
        auto at = [&](int r, int tap, bool &inside) {
            const int right = kernel == 1 ? 0 : tap % 3 - 1, down = kernel == 1 ? 0 : tap / 3 - 1;
            const int x = xs[r] * stride + right * dilation, y = ys[r] * stride + down * BREAK(learned_dilation, dilation, 1);
            inside = (u32)x < (u32)width & (u32)y < (u32)height;
            return from.cell(inside ? x : 0, inside ? y : 0);
        };
        if (from.of_cell == 1) {
            // Planes: a word is a tap, and each lane has one of four.
            for (int tap = lane_word; tap < (taps + 3) / 4 * 4; tap += 4) {
                u32 cell[CELLS];
#pragma unroll
                for (int r = 0; r < CELLS; r++) {
                    bool inside;
                    const u32 *read = at(r, tap, inside);
                    cell[r] = inside && tap < taps ? *read : 0;
                }
                add_four(cell);
            }
            continue;
        }
        for (int tap = 0; tap < taps; tap++) {
            const u32 *read[CELLS];
            bool inside[CELLS];
#pragma unroll
            for (int r = 0; r < CELLS; r++) read[r] = at(r, tap, inside[r]);
            int word = 0;
#pragma unroll(TILES * BLOCKS <= 4 ? 2 : 1)
            for (; word + 8 <= (int)from.of_cell; word += 8) {
                uint2 cell[CELLS];
#pragma unroll
                for (int r = 0; r < CELLS; r++)
                    cell[r] = inside[r] ? two_words(read[r] + word + 2 * lane_word) : make_uint2(0, 0);
                add_eight(cell);
            }
            if (word == (int)from.of_cell) continue;
            u32 cell[CELLS];
#pragma unroll
            for (int r = 0; r < CELLS; r++) cell[r] = inside[r] ? read[r][word + lane_word] : 0;
            add_four(cell);
        }
    }

    uint4 shift[BLOCKS];
#pragma unroll
    for (int b = 0; b < BLOCKS; b++) shift[b] = shifts[(channel + 16 * b) / 4 + lane_word];
    Value added = {add, columns, rows, (u32)add_words, add_doublings};
    added.words += view * added.view();
    out += (size_t)view * cells * out_words;
#pragma unroll
    for (int r = 0; r < CELLS; r++) {
        const int cell = first + lane_row + 8 * r;
        if (cell >= cells) continue;
        const u32 *other = added.cell(xs[r], ys[r]);
        u32 *to = out + (u64)(u32)cell * out_words;
        u32 others[BLOCKS];
#pragma unroll
        for (int b = 0; b < BLOCKS; b++) {
            const int word = (channel + 16 * b) / 4 + lane_word;
            others[b] = word < add_words ? other[word] : 0;
        }
#pragma unroll
        for (int b = 0; b < BLOCKS; b++) {
            const int word = (channel + 16 * b) / 4 + lane_word;
            const u32 by[4] = {shift[b].x, shift[b].y, shift[b].z, shift[b].w};
            int result[4];
#pragma unroll
            for (int k = 0; k < 4; k++) {
                result[k] = min(max(sums[r / 2][b][k % 2][r % 2 * 2 + k / 2] >> by[k], low), high);
                if (add_words > 0) result[k] = min(max(result[k] + (int)(others[b] >> 8 * k & 0xff), BREAK(learned_least, 0, low)), 127);
            }
            if (is_wide)
                *(uint2 *)(to + 2 * word) = make_uint2((result[0] & 0xffff) | result[1] << 16, (result[2] & 0xffff) | result[3] << 16);
            else
                to[word] = (result[0] & 0xff) | (result[1] & 0xff) << 8 | (result[2] & 0xff) << 16 | result[3] << 24;
        }
    }
}
