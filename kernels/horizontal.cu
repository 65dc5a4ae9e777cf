// The two horizontal paths. Every row is two chains of its own, one from the left and one from the
// right; a warp follows PIXELS of them, rows that lie below each other, and writes L - C as bytes
// (volume.cuh). Nothing is shared between warps.
//
// Its lanes may share a pixel's candidates out differently from those of the sweeps (G, R): a volume
// lies the same way in memory as long as the padded number of candidates is the same.
//
// Grid: [rows / (PIXELS * WARPS)][2 directions].
#define WARPS 2
// Columns that are loaded at a time; a power of two.
#define CHUNK 32
#define WINDOW_COLUMNS (CHUNK + 2 * MARGIN)
#include "cost.cuh"
#include "volume.cuh"

template <bool LEFTWARDS>
__device__ __forceinline__ void follow(const Features &features, int width, int height, int columns,
                                       u32 *volume, u32 *windows) {
    const int warp = threadIdx.x / 32, group = threadIdx.x % 32 / G;
    const u32 lane = group_lane();
    const int first_row = (blockIdx.x * WARPS + warp) * PIXELS;
    if (first_row >= height) return;
    // Two windows for each of a warp's rows: one in use, the other on its way.
    u32 *own = windows + (size_t)warp * 2 * PIXELS * WINDOW_WORDS;
    // Groups without a row of their own repeat the last one, and write the same.
    const int y = min(first_row + group, height - 1);
    const int chunks = (width + CHUNK - 1) / CHUNK;
    u32 *out = volume + (((size_t)y * columns + (LEFTWARDS ? chunks * CHUNK - 1 : 0)) * G + lane) * BYTE_WORDS;

    auto load = [&](int n) {
        if (n < chunks) {
            int chunk = LEFTWARDS ? chunks - 1 - n : n;
            for (int row = 0; row < PIXELS; row++)
                copy_window(own + ((n & 1) * PIXELS + row) * WINDOW_WORDS, features, chunk * CHUNK - MARGIN,
                            min(first_row + row, height - 1), threadIdx.x % 32, 32);
        }
        copies_end_group();
    };

    const Edges edges(lane);
    Vector path = filled(0);
    u32 least = 0;
    load(0);
    for (int n = 0; n < chunks; n++) {
        load(n + 1);
        copies_wait<1>();
        __syncwarp();
        const int chunk = LEFTWARDS ? chunks - 1 - n : n;
        const u32 *words_in = own + ((n & 1) * PIXELS + group) * WINDOW_WORDS;
        const Window window = window_of(words_in);
        auto step = [&](int column, const Vector &c) {
            const u32 penalty = __byte_perm(words_in[MARGIN + column], 0, LEFTWARDS ? 0x4242u : 0x4141u);
            Vector best = recurrence(path, add2(least, penalty), edges);
#pragma unroll
            for (int j = 0; j < R; j++) {
                best.v[j] = sub2(best.v[j], least);
                path.v[j] = add2(best.v[j], c.v[j]);
                if (D < DP) path.v[j] |= padding(lane, j);
            }
            u32 words[BYTE_WORDS];
            pack(best, words);
            store_words(out + (LEFTWARDS ? column - (CHUNK - 1) : column) * G * BYTE_WORDS, words);
            least = least_of(path);
        };
        auto cost_of = [&](int column) {
            return cost(window, MARGIN + column, lane, words_in[MARGIN + column], chunk * CHUNK - MARGIN, width);
        };
        const int inside = width - chunk * CHUNK;
        if (inside >= CHUNK) {
            // The next pixel's cost is computed while this one's lanes wait for each other.
            Vector next = cost_of(LEFTWARDS ? CHUNK - 1 : 0);
#pragma unroll 4
            for (int i = 0; i < CHUNK; i++) {
                const int column = LEFTWARDS ? CHUNK - 1 - i : i;
                const Vector c = next;
                next = cost_of(LEFTWARDS ? max(column - 1, 0) : min(column + 1, CHUNK - 1));
                step(column, c);
            }
        } else {
            for (int i = 0; i < inside; i++) {
                const int column = LEFTWARDS ? inside - 1 - i : i;
                step(column, cost_of(column));
            }
        }
        out += (LEFTWARDS ? -CHUNK : CHUNK) * G * BYTE_WORDS;
        __syncwarp();
    }
}

extern "C" __global__ void __launch_bounds__(32 * WARPS)
    horizontal(const u32 *steps, const u32 *base, const u32 *match, int row, int width, int height, int columns,
               u32 *from_left, u32 *from_right) {
    DYNAMIC_SHARED(u32, windows);
    const Features features = {steps, base, match, row};
    if (blockIdx.y == 0) follow<false>(features, width, height, columns, from_left, windows);
    else follow<true>(features, width, height, columns, from_right, windows);
}
