// Speckle filter: small regions of the map become invalid, in place.
//
// A region is found in two steps (Playne and Hawick, IEEE TPDS 2018; runs of a row as in Hennequin
// et al., DASIP 2018): within a tile in shared memory, then across the borders of tiles. What
// decides is only whether a region reaches SPECKLE_SIZE, so most pixels are settled by the first
// step: those of a region that has that many pixels in its tile already, and those of one that
// touches no other tile. The other steps deal with small pieces at the borders of tiles alone.
//
// Kernels, in this order on one stream; each needs all of the one before it:
//   speckle_label(short *disparity, int width, int height, u32 *labels, u32 *sizes)
//   speckle_merge(const short *disparity, int width, int height, u32 *labels)
//     Grid [ceil(width / TILE_WIDTH)][ceil(height / TILE_HEIGHT)], blocks of 32 x WARPS threads for
//     speckle_label and of 32 x 2 for speckle_merge.
//   speckle_count(int pixels, u32 *labels, u32 *sizes)
//   speckle_remove(short *disparity, int pixels, const u32 *labels, const u32 *sizes)
//     Grid [ceil(pixels / (BLOCK_THREADS * STEPS))]; a thread takes STEPS pixels of width * height.
// disparity, labels and sizes are [height][width], below 2^31 - 1 pixels. labels and sizes need no
// initial values. SPECKLE_SIZE is in pixels, SPECKLE_RANGE in 1/16 px.
//
// The order in which threads meet decides the shapes of the trees of labels, but neither their
// roots, the smallest node of each, nor which sums are large enough: the result is always the same.
#include "disparity.cuh"

// A row of a tile is a warp.
#define TILE_WIDTH 32
#define TILE_HEIGHT 32
// A warp labels ROWS rows.
#define WARPS (TILE_HEIGHT / ROWS)
#define TILE_SIZE (TILE_WIDTH * TILE_HEIGHT)

// The pieces of regions within tiles are the nodes of a forest. A node is named by the index of one
// of its pixels plus one, and the label of that pixel is its parent: a smaller node, itself where
// it is a root, or SETTLED. SETTLED is the root of all regions that are large enough; no label
// belongs to it.
#define SETTLED 0u
// Marks the labels of the other pixels of a piece, which name its node and never change.
#define MEMBER 0x80000000u
// Marks the count of a piece that touches another tile.
#define TOUCHES 0x80000000u

__device__ __forceinline__ bool alike(int a, int b) {
    return a != INVALID && b != INVALID && abs(a - b) <= SPECKLE_RANGE;
}

__device__ __forceinline__ bool large(u32 size) { return size >= BREAK(speckle_size, (u32)(SPECKLE_SIZE), (u32)(SPECKLE_SIZE) + 1); }

// A label that other threads may make smaller meanwhile. In shared memory it is read as atomically
// as it is written; in the device's memory a volatile read does.
template <bool IN_TILE> __device__ __forceinline__ u32 read_label(u32 *label) {
    return IN_TILE ? atomicMin(label, 0xffffffffu) : *(volatile u32 *)label;
}

// The root above a node. Makes the way shorter for those who come later: labels only ever become
// smaller, so a thread that sees an old one merely takes a longer way to the same root.
template <bool IN_TILE> __device__ __forceinline__ u32 find(u32 *labels, u32 node) {
    while (node != SETTLED) {
        u32 parent = read_label<IN_TILE>(labels + node - 1);
        if (parent == node || parent == SETTLED) return parent;
        u32 grandparent = read_label<IN_TILE>(labels + parent - 1);
        if (grandparent == parent) return parent;
        atomicMin(&labels[node - 1], grandparent);
        node = grandparent;
    }
    return SETTLED;
}

// Makes one tree of those of a and b, whatever other threads do to them meanwhile.
template <bool IN_TILE> __device__ __forceinline__ void unite(u32 *labels, u32 a, u32 b) {
    a = find<IN_TILE>(labels, a);
    b = find<IN_TILE>(labels, b);
    while (a != b) {
        if (a < b) {
            u32 smaller = a;
            a = b;
            b = smaller;
        }
        u32 before = atomicMin(&labels[a - 1], b);
        if (before == a) return;
        // Another thread was faster, so a was no root any more: its parent of then, which this
        // label may have replaced, has to be united with b instead.
        a = find<IN_TILE>(labels, before);
        b = find<IN_TILE>(labels, b);
    }
}

// First column of the run of linked pixels that holds column x; bit x of `links` is set where the
// pixel is linked with the one to its left.
__device__ __forceinline__ u32 run_start(u32 links, u32 x) { return 31 - __clz(~links & (0xffffffffu >> (31 - x))); }

// Labels the pieces of regions within a tile and settles what can be settled there.
extern "C" __global__ void __launch_bounds__(32 * WARPS)
    speckle_label(short *disparity, int width, int height, u32 *labels, u32 *sizes) {
    wait_for_launches_before();
    // Nodes of the tile and the sizes of the pieces; only the first pixels of runs have them.
    __shared__ u32 nodes[TILE_SIZE];
    __shared__ u32 counts[TILE_SIZE];
    // The last row of each warp, for the next one.
    __shared__ short last_values[WARPS][TILE_WIDTH];
    __shared__ u32 last_links[WARPS];

    const int left = blockIdx.x * TILE_WIDTH, top = blockIdx.y * TILE_HEIGHT;
    const int lane = threadIdx.x, warp = threadIdx.y;
    const int x = left + lane;

    int values[ROWS];
#pragma unroll
    for (int k = 0; k < ROWS; k++) {
        int y = top + warp * ROWS + k;
        values[k] = x < width && y < height ? disparity[(size_t)y * width + x] : INVALID;
    }
    u32 links[ROWS];
#pragma unroll
    for (int k = 0; k < ROWS; k++) {
        int before = __shfl_up_sync(LANES_MASK, values[k], 1);
        links[k] = __ballot_sync(LANES_MASK, lane > 0 && alike(before, values[k]));
        if (!(links[k] >> lane & 1)) {
            int at = (warp * ROWS + k) * TILE_WIDTH + lane;
            nodes[at] = at + 1;
            counts[at] = 0;
        }
    }
    last_values[warp][lane] = (short)values[ROWS - 1];
    if (lane == 0) last_links[warp] = links[ROWS - 1];
    __syncthreads();

    // Nothing is above the first row of the tile.
    int above = warp > 0 ? last_values[warp - 1][lane] : INVALID;
    u32 links_above = warp > 0 ? last_links[warp - 1] : 0;
#pragma unroll
    for (int k = 0; k < ROWS; k++) {
        u32 upward = __ballot_sync(LANES_MASK, alike(above, values[k]));
        // One link between two runs is enough: the first of those side by side.
        u32 needed = upward & ~(upward << 1 & links[k] & links_above);
        if (needed >> lane & 1) {
            int row = (warp * ROWS + k) * TILE_WIDTH;
            unite<true>(nodes, row + run_start(links[k], lane) + 1, row - TILE_WIDTH + run_start(links_above, lane) + 1);
        }
        above = values[k];
        links_above = links[k];
    }
    __syncthreads();

#pragma unroll
    for (int k = 0; k < ROWS; k++) {
        if (values[k] != INVALID && !(links[k] >> lane & 1)) {
            int row = warp * ROWS + k, at = row * TILE_WIDTH + lane;
            u32 root = find<true>(nodes, at + 1);
            // So that the pixels of the run find their root with one look.
            atomicMin(&nodes[at], root);
            // Pixels up to the next one without a link.
            int length = __ffs(~(links[k] >> lane >> 1));
            atomicAdd(&counts[root - 1], (u32)length);
            bool touches = (lane == 0 && left > 0) || (lane + length == TILE_WIDTH && left + TILE_WIDTH < width) ||
                           (row == 0 && top > 0) || (row == TILE_HEIGHT - 1 && top + TILE_HEIGHT < height);
            if (touches) atomicOr(&counts[root - 1], TOUCHES);
        }
    }
    __syncthreads();

#pragma unroll
    for (int k = 0; k < ROWS; k++) {
        int row = warp * ROWS + k, y = top + row;
        if (x >= width || y >= height) continue;
        size_t at = (size_t)y * width + x;
        u32 label = SETTLED;
        if (values[k] != INVALID) {
            u32 root = nodes[row * TILE_WIDTH + run_start(links[k], lane)] - 1;
            u32 count = counts[root];
            u32 size = count & ~TOUCHES;
            if (!large(size)) {
                if (count & TOUCHES) {
                    u32 root_x = root % TILE_WIDTH, root_y = root / TILE_WIDTH;
                    u32 root_at = (u32)(top + root_y) * (u32)width + (u32)left + root_x;
                    label = root_at + 1;
                    if (root_at == at)
                        sizes[at] = size;
                    else
                        label |= MEMBER;
                } else {
                    // No other block looks at it, as it has no neighbours of its kind there.
                    disparity[at] = INVALID;
                }
            }
        }
        labels[at] = label;
    }
}

// Unites the pieces on both sides of a tile's upper border (first warp) and left border (second).
extern "C" __global__ void __launch_bounds__(64)
    speckle_merge(const short *disparity, int width, int height, u32 *labels) {
    wait_for_launches_before();
    const int lane = threadIdx.x;
    const bool is_left = threadIdx.y == 1;
    const int x = blockIdx.x * TILE_WIDTH + (is_left ? 0 : lane);
    const int y = blockIdx.y * TILE_HEIGHT + (is_left ? lane : 0);
    bool linked = false;
    u32 here = SETTLED, there = SETTLED;
    if (x < width && y < height && (is_left ? x : y) > 0) {
        size_t at = (size_t)y * width + x;
        size_t beyond = at - (is_left ? 1 : width);
        // A label may change meanwhile if its pixel names a node, to another node of the same tree.
        volatile const u32 *seen = labels;
        here = seen[at] & ~MEMBER;
        there = seen[beyond] & ~MEMBER;
        linked = here != there && alike(disparity[at], disparity[beyond]);
    }
    // Runs along the border need one link.
    u32 here_before = __shfl_up_sync(LANES_MASK, here, 1);
    u32 there_before = __shfl_up_sync(LANES_MASK, there, 1);
    u32 linked_before = __ballot_sync(LANES_MASK, linked) << 1;
    bool repeated = (linked_before >> lane & 1) && here == here_before && there == there_before;
    if (linked && !repeated) unite<false>(labels, here, there);
}

// Adds the sizes of the pieces to those of the roots, and lets every piece name its root.
extern "C" __global__ void __launch_bounds__(BLOCK_THREADS) speckle_count(int pixels, u32 *labels, u32 *sizes) {
    wait_for_launches_before();
    const u32 first = blockIdx.x * (BLOCK_THREADS * STEPS) + threadIdx.x;
    volatile const u32 *seen = labels, *sums = sizes;
    u32 read[STEPS];
#pragma unroll
    for (int k = 0; k < STEPS; k++) {
        u32 at = first + k * BLOCK_THREADS;
        read[k] = at < (u32)pixels ? seen[at] : SETTLED;
    }
#pragma unroll
    for (int k = 0; k < STEPS; k++) {
        u32 at = first + k * BLOCK_THREADS;
        if (read[k] == SETTLED || (read[k] & MEMBER) || read[k] == at + 1) continue;
        u32 root = find<false>(labels, read[k]);
        labels[at] = root;
        // A sum only grows, so one that is large already needs no more; this keeps the pieces of a
        // wide region from queueing for one word.
        if (root != SETTLED && !large(sums[root - 1])) atomicAdd(&sizes[root - 1], sizes[at]);
    }
}

// Invalidates the pixels of regions that are still too small.
extern "C" __global__ void __launch_bounds__(BLOCK_THREADS)
    speckle_remove(short *disparity, int pixels, const u32 *labels, const u32 *sizes) {
    wait_for_launches_before();
    const u32 first = blockIdx.x * (BLOCK_THREADS * STEPS) + threadIdx.x;
    u32 read[STEPS];
#pragma unroll
    for (int k = 0; k < STEPS; k++) {
        u32 at = first + k * BLOCK_THREADS;
        read[k] = at < (u32)pixels ? labels[at] : SETTLED;
    }
#pragma unroll
    for (int k = 0; k < STEPS; k++) {
        if (read[k] == SETTLED) continue;
        // A member names its piece, and a piece its root; a root names itself.
        u32 root = labels[(read[k] & ~MEMBER) - 1];
        if (root != SETTLED && !large(sizes[root - 1])) disparity[first + k * BLOCK_THREADS] = INVALID;
    }
}
