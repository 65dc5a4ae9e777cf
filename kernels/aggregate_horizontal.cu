// Aggregates costs along the two horizontal paths (Hirschmueller, PAMI 2008, equation 13). Every
// row has a path from the left and one from the right. A warp follows WARP_PIXELS of them, in
// adjacent rows, and writes their path deltas as bytes (path_delta.cuh). Warps share nothing.
//
// GROUP and REGISTERS may differ from those of the sweeps: a volume has the same layout in memory
// as long as the padded number of candidates is the same.
//
// Grid: [rows / (WARP_PIXELS * WARPS)][2 directions]. CHUNK columns, a power of two, are loaded at
// a time.
#define WINDOW_COLUMNS (CHUNK + 2 * MARGIN)
#include "cost.cuh"
#include "path_delta.cuh"
#include "windows.cuh"

// Windows of a block: two for each of a warp's rows.
#define SHARED_WORDS (WARPS * 2 * WARP_PIXELS * WINDOW_WORDS)
static_assert(4 * SHARED_WORDS == EXPECTED_SHARED_BYTES, "geometry.rs: Prepared::horizontal_bytes");
static_assert(MARGIN <= BESIDE, "geometry.rs: Prepared::row");

template <bool LEFTWARDS>
__device__ __forceinline__ void follow(const Features &features, int width, int height, int columns,
                                       u32 *volume, RangeWindows tiles, u32 *windows) {
    const int warp = threadIdx.x / 32, group = warp_group();
    const u32 lane = group_lane();
    const int first_row = (blockIdx.x * WARPS + warp) * WARP_PIXELS;
    if (first_row >= height) return;
    // One window of a row is in use, the other on its way.
    u32 *own = windows + (size_t)warp * 2 * WARP_PIXELS * WINDOW_WORDS;
    // Groups without a row of their own repeat the last one, and write the same.
    const int y = min(first_row + group, height - 1);
    const int chunks = (width + CHUNK - 1) / CHUNK;
    u32 *out = volume + (((size_t)y * columns + (LEFTWARDS ? chunks * CHUNK - 1 : 0)) * GROUP + lane) * BYTE_WORDS;

    auto load = [&](int n) {
        if (n < chunks) {
            int chunk = LEFTWARDS ? chunks - 1 - n : n;
            for (int row = 0; row < WARP_PIXELS; row++)
                copy_window(own + ((n & 1) * WARP_PIXELS + row) * WINDOW_WORDS, features, chunk * CHUNK - MARGIN,
                            min(first_row + row, height - 1), threadIdx.x % 32, 32);
        }
        copies_end_group();
    };

#if WINDOWED
    static_assert(WINDOW_TILE % CHUNK == 0, "a chunk lies in a tile");
    // The blocks of this tile and, fetched in advance, of the next one.
    Blocks blocks = tiles.of(LEFTWARDS ? (chunks - 1) * CHUNK : 0, y), next_blocks = blocks;
    Share share = blocks.share(lane);
#else
    const Share share = whole_range(lane);
#endif
    Vector path = filled(0);
    u32 least = 0;
    load(0);
    for (int n = 0; n < chunks; n++) {
        load(n + 1);
        copies_wait<1>();
        __syncwarp();
        const int chunk = LEFTWARDS ? chunks - 1 - n : n;
        const u32 *words_in = own + ((n & 1) * WARP_PIXELS + group) * WINDOW_WORDS;
        const Window window = window_of(words_in);
#if WINDOWED
        if (n > 0 && (chunk + LEFTWARDS) * CHUNK % WINDOW_TILE == 0) {
            share = next_blocks.share(lane);
            path = entered(path, BREAK(entry_across, blocks.lane_of(next_blocks.of(lane)), lane));
            least = least_of(path);
            blocks = next_blocks;
        }
        next_blocks = tiles.of(chunk * CHUNK + (LEFTWARDS ? -WINDOW_TILE : WINDOW_TILE), y);
#endif
        auto step = [&](int column, const Vector &c) {
            const int p2 = LEFTWARDS ? BREAK(p2_leftwards, P2_HORIZONTAL_FROM_RIGHT, P2_HORIZONTAL_FROM_LEFT) : P2_HORIZONTAL_FROM_LEFT;
            const u32 pixel = words_in[MARGIN + column], penalty = __byte_perm(pixel, 0, IN_BOTH_HALVES(p2));
            const int slant = slant_of(pixel, SLANTS_HORIZONTAL, p2);
            Vector delta = recurrence(path, add2(least, penalty), share.edges, slant);
#pragma unroll
            for (int j = 0; j < REGISTERS; j++) {
                delta.v[j] = sub2(delta.v[j], least);
                path.v[j] = add2(delta.v[j], c.v[j]);
                if (HAS_PADDING) path.v[j] |= padding(share.part, j);
            }
            u32 words[BYTE_WORDS];
            pack(delta, words);
            store_words(out + (LEFTWARDS ? column - (CHUNK - 1) : column) * GROUP * BYTE_WORDS, words);
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
        out += (LEFTWARDS ? -CHUNK : CHUNK) * GROUP * BYTE_WORDS;
        __syncwarp();
    }
}

extern "C" __global__ void __launch_bounds__(32 * WARPS)
    aggregate_horizontal(const u32 *p2, const u32 *base, const u32 *match, int row, int width, int height, int columns,
               u32 *from_left, u32 *from_right, const u16 *windows_of_tiles) {
    wait_for_launches_before();
    DYNAMIC_SHARED(uint4, shared_words);
    u32 *windows = reinterpret_cast<u32 *>(shared_words);
    const Features features = {p2, base, match, row};
    const RangeWindows tiles = {windows_of_tiles, width, height};
    if (blockIdx.y == 0) follow<false>(features, width, height, columns, from_left, tiles, windows);
    else follow<true>(features, width, height, columns, from_right, tiles, windows);
}
