// Invalidates pixels that have no evidence of their own and no support from the evidence around
// them (matching/filter/evidence.rs).
//
// Kernels, in this order on one stream; disparity, evidence and, where CONFIDENCE, confidence are
// [height][width], seen_left (where MASKED) is a byte a pixel. rows and lines have a bit a pixel at
// which rays end (Lines).
//   evidence(const u8 *left, const u32 *threshold, const short *disparity, [const u8 *seen_left,] int width,
//            int height, short *evidence, u32 *rows, u32 *lines)
//     The map of the evidence alone: pixels are weak where the SIDE x SIDE means of 3 x 3 grey
//     levels around them differ too little compared with the noise threshold.
//     Grid: [width / TILE_WIDTH][height / TILE_HEIGHT].
//   diagonals(int width, int height, u32 *lines)
//     Makes the lines along diagonals from the columns.
//     Grid: [PITCH(width) / BLOCK_THREADS][height / 32].
//   supported(const short *evidence, const u32 *rows, const u32 *lines, int width, int height,
//             short *disparity, u8 *confidence)
//     Keeps known pixels without evidence that are supported, none where EVIDENCE_STRICT, in place. A thread
//     a pixel. Grid: [width / BLOCK_THREADS][height].
#include "picture.cuh"
#include "rays.cuh"

#define SIDE (2 * EVIDENCE_RADIUS + 1)
#define COLUMNS (TILE_WIDTH + 2 * EVIDENCE_RADIUS)
#define ROWS (TILE_HEIGHT + 2 * EVIDENCE_RADIUS)
static_assert(BLOCK_THREADS % TILE_WIDTH == 0, "a thread stays in its column");
static_assert(TILE_WIDTH % 32 == 0 && TILE_HEIGHT == 32, "a tile has whole words of rows and columns");

// Words of 32 pixels of lines through the picture: of rows, [height][width / 32], and of the lines of
// the rays 0 to 2 (rays.cuh), [3][height / 32][PITCH(width)]: diagonals, columns and the other
// diagonals, a bit a row.
#define PITCH(width) ((width) + 31)
#define DIAGONAL 0
#define COLUMN 1
#define OTHER_DIAGONAL 2
__device__ __forceinline__ size_t row_word(int width, int x, int y) { return (size_t)y * ((width + 31) / 32) + x / 32; }
__device__ __forceinline__ size_t line_word(int line, int width, int height, int x, int y) {
    const int skew = line == DIAGONAL ? 31 - y % 32 : line == OTHER_DIAGONAL ? y % 32 : 0;
    return (size_t)(line * ((height + 31) / 32) + y / 32) * PITCH(width) + x + skew;
}

extern "C" __global__ void __launch_bounds__(BLOCK_THREADS)
    evidence(const u8 *left_picture, const u32 *threshold, const short *disparity,
#if MASKED
             const u8 *seen_left,
#endif
             int width, int height, short *evidence, u32 *rows, u32 *lines) {
    wait_for_launches_before();
    __shared__ u16 sums[ROWS][COLUMNS];
    __shared__ u32 columns[TILE_WIDTH];
    const Picture from = {left_picture, width, height};
    const int left = blockIdx.x * TILE_WIDTH, top = blockIdx.y * TILE_HEIGHT;
    for (int i = threadIdx.x; i < ROWS * COLUMNS; i += BLOCK_THREADS) {
        const int column = i % COLUMNS, row = i / COLUMNS;
        // Beside the picture is the nearest sum inside.
        const int x = min(max(left + column - EVIDENCE_RADIUS, 0), width - 1), y = min(max(top + row - EVIDENCE_RADIUS, 0), height - 1);
        int sum = 0;
#pragma unroll
        for (int down = -1; down <= 1; down++) {
#pragma unroll
            for (int across = -1; across <= 1; across++) sum += from.at(x + across, y + down);
        }
        sums[row][column] = sum;
    }
    if (threadIdx.x < TILE_WIDTH) columns[threadIdx.x] = 0;
    __syncthreads();

    const u32 noise = min(max(*threshold, (u32)EVIDENCE_THRESHOLD_MIN), (u32)EVIDENCE_THRESHOLD_MAX);
    const int limit = 9 * (2 * (int)noise - 5);
    const int column = threadIdx.x % TILE_WIDTH, x = left + column;
    u32 ends_of_column = 0;
    for (int row = threadIdx.x / TILE_WIDTH; row < TILE_HEIGHT; row += BLOCK_THREADS / TILE_WIDTH) {
        const int y = top + row;
        const bool inside = x < width && y < height;
        bool ends_rays = false;
        if (inside) {
            int least = 9 * 255, greatest = 0;
#pragma unroll
            for (int down = 0; down < SIDE; down++) {
#pragma unroll
                for (int across = 0; across < SIDE; across++) {
                    const int sum = sums[row + down][column + across];
                    least = min(least, sum), greatest = max(greatest, sum);
                }
            }
            const size_t at = (size_t)y * width + x;
            const short value = 4 * (greatest - least) < limit ? INVALID : disparity[at];
            evidence[at] = value;
            ends_rays = value != INVALID;
#if MASKED
            ends_rays = ends_rays || !seen_left[at];
#endif
        }
        const u32 ends_of_row = __ballot_sync(LANES_MASK, ends_rays);
        if (inside && threadIdx.x % 32 == 0) rows[row_word(width, x, y)] = BREAK(row_ends, ends_of_row, 0u);
        ends_of_column |= (u32)ends_rays << row;
    }
    atomicOr(&columns[column], ends_of_column);
    __syncthreads();
    if (threadIdx.x < TILE_WIDTH && x < width) lines[line_word(COLUMN, width, height, x, top)] = columns[column];
}

extern "C" __global__ void __launch_bounds__(BLOCK_THREADS)
    diagonals(int width, int height, u32 *lines) {
    wait_for_launches_before();
    const int i = blockIdx.x * BLOCK_THREADS + threadIdx.x, top = blockIdx.y * 32;
    if (i >= PITCH(width)) return;
    const u32 *columns = lines + line_word(COLUMN, width, height, 0, top);
    u32 diagonal = 0, other = 0;
#pragma unroll
    for (int row = 0; row < 32; row++) {
        const int x = i - 31 + row, other_x = i - row;
        if (x >= 0 && x < width) diagonal |= columns[x] & 1u << row;
        if (other_x >= 0 && other_x < width) other |= columns[other_x] & 1u << row;
    }
    lines[line_word(DIAGONAL, width, height, i - 31, top)] = diagonal;
    lines[line_word(OTHER_DIAGONAL, width, height, i, top)] = other;
}

// Steps from bit `at` of a line to the nearest one before or behind it that is set, up to `most`; 0 if
// there is none. Words lie `stride` apart, and `word` is that of the bit.
template <bool BEHIND> __device__ __forceinline__ int steps_to_end(const u32 *word, ptrdiff_t stride, int at, int most) {
    int first = at & ~31;  // Of the word's bits.
    u32 bits = *word & (BEHIND ? ~1u << at % 32 : ~(~0u << at % 32));
    while (!bits && (BEHIND ? first + 32 <= at + most : first > at - most)) {
        word += BEHIND ? stride : -stride, first += BEHIND ? 32 : -32;
        bits = *word;
    }
    const int steps = BEHIND ? first + __ffs(bits) - 1 - at : at - (first + 31 - __clz(bits));
    return bits && steps <= most ? steps : 0;
}

// True where a disparity lies on the line between the ends of two opposite rays, as many steps
// away.
__device__ __forceinline__ bool is_between(int own, int a, int to_a, int b, int to_b) {
    const int apart = to_a + to_b;
    const int off = abs((own - a) * apart - (b - a) * to_a);
    return a != INVALID && b != INVALID && off <= max(SUBPIXEL_STEPS, abs(own) >> EVIDENCE_DEVIATION_SHIFT) * apart;
}

extern "C" __global__ void __launch_bounds__(BLOCK_THREADS)
    supported(const short *evidence, const u32 *rows, const u32 *lines, int width, int height,
              short *disparity, u8 *confidence) {
    wait_for_launches_before();
    const int x = blockIdx.x * BLOCK_THREADS + threadIdx.x, y = blockIdx.y;
    if (x >= width) return;
    const size_t here = (size_t)y * width + x;
    const int own = disparity[here];
    if (own == INVALID || evidence[here] != INVALID) return;
    bool stays = false;
#if !EVIDENCE_STRICT
#pragma unroll
    for (int k = 0; k < 4; k++) {
        // Ray k and the opposite one.
        const bool in_row = k == RAY_LEFT;
        const u32 *word = in_row ? rows + row_word(width, x, y) : lines + line_word(k, width, height, x, y);
        const ptrdiff_t stride = in_row ? 1 : PITCH(width) - 32 * ray_dx(k);
        const int columns_before = ray_dx(k) < 0 ? x : ray_dx(k) > 0 ? width - 1 - x : RAY_REACH;
        const int columns_behind = ray_dx(k) < 0 ? width - 1 - x : ray_dx(k) > 0 ? x : RAY_REACH;
        const int before = steps_to_end<false>(word, stride, in_row ? x : y, min(min(columns_before, in_row ? RAY_REACH : y), RAY_REACH));
        const int behind = steps_to_end<true>(word, stride, in_row ? x : y, min(min(columns_behind, in_row ? RAY_REACH : height - 1 - y), RAY_REACH));
        const ptrdiff_t step = (ptrdiff_t)ray_dy(k) * width + ray_dx(k);
        const int a = before ? evidence[(ptrdiff_t)here + before * step] : INVALID;
        const int b = behind ? evidence[(ptrdiff_t)here - behind * step] : INVALID;
        stays = stays || is_between(own, a, before, b, behind);
    }
#endif
    if (!stays) disparity[here] = INVALID;
#if CONFIDENCE
    confidence[here] = stays ? BREAK(evidence_stays, LEAST_CONFIDENCE, LEAST_CONFIDENCE + 1) : 0;
#endif
}
