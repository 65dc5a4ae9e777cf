// Chooses the blocks of candidates that each tile tries, by the map of the half-size images and the same map before its
// filters (matching/windows.rs). Counts are bytes, four blocks in a word.

@group(0) @binding(0) var<storage, read> map: array<i32>;
// By tile, or by quarter of a tile.
@group(0) @binding(1) var<storage, read_write> counted: array<u32>;
// Of all tiles.
@group(0) @binding(2) var<storage, read_write> total: array<atomic<u32>>;
@group(0) @binding(3) var<storage, read> votes: array<u32>;
@group(0) @binding(4) var<storage, read> seen: array<u32>;
@group(0) @binding(5) var<storage, read> votes_of_all: array<u32>;
@group(0) @binding(6) var<storage, read_write> windows: array<vec2<u32>>;

const WINDOWS_DOWN: u32 = (HEIGHT + WINDOW_TILE - 1u) / WINDOW_TILE;
// Side of a tile in the half-size map.
const SIDE: u32 = WINDOW_TILE / 2u;
const BLOCKS: u32 = (DISPARITIES + BLOCK_CANDIDATES - 1u) / BLOCK_CANDIDATES;
const BLOCK_WORDS: u32 = (BLOCKS + 3u) / 4u;

var<workgroup> counts: array<atomic<u32>, 16u * BLOCK_WORDS>;

fn block_of(candidate: i32) -> u32 {
    return clamped(candidate, DISPARITIES) / BLOCK_CANDIDATES;
}

// Counts what the pixels of a tile stand for, in `parts` x `parts` parts of it: all blocks within `margin`.
fn count(tile: u32, local: u32, parts: u32, margin: i32) {
    for (var i = local; i < 16u * BLOCK_WORDS; i += SIDE * SIDE) {
        atomicStore(&counts[i], 0u);
    }
    workgroupBarrier();
    let place = vec2<u32>(local % SIDE, local / SIDE);
    let pixel = vec2<u32>(tile % WINDOWS_ACROSS, tile / WINDOWS_ACROSS) * SIDE + place;
    let size = vec2<u32>((WIDTH + 1u) / 2u, (HEIGHT + 1u) / 2u);
    if (tile < WINDOWS_ACROSS * WINDOWS_DOWN && all(pixel < size)) {
        let value = map[pixel.y * size.x + pixel.x];
        if (value != INVALID) {
            let part = place * parts / SIDE;
            let candidate = ((2 * value + 8) >> 4u) - MIN_DISPARITY;
            for (var i = block_of(candidate - margin); i <= block_of(candidate + margin); i++) {
                atomicAdd(&counts[(part.y * parts + part.x) * 4u * BLOCK_WORDS + i], 1u);
            }
        }
    }
    workgroupBarrier();
    for (var i = local; i < parts * parts * BLOCK_WORDS && tile < WINDOWS_ACROSS * WINDOWS_DOWN; i += SIDE * SIDE) {
        var word = 0u;
        for (var k = 0u; k < 4u; k++) {
            word |= atomicLoad(&counts[4u * i + k]) << (8u * k);
        }
        counted[tile * parts * parts * BLOCK_WORDS + i] = word;
    }
    for (var i = local; i < parts * parts * 4u * BLOCK_WORDS; i += SIDE * SIDE) {
        let number = atomicLoad(&counts[i]);
        if (number > 0u) {
            atomicAdd(&total[i % (4u * BLOCK_WORDS)], number);
        }
    }
}

@compute @workgroup_size(SIDE * SIDE)
fn count_votes(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) local: u32) {
    count(group.y * 65535u + group.x, local, 1u, WINDOW_MARGIN);
}

@compute @workgroup_size(SIDE * SIDE)
fn count_seen(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) local: u32) {
    count(group.y * 65535u + group.x, local, 2u, 0);
}

@compute @workgroup_size(32)
fn choose(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) local: u32) {
    let tile = (group.y * 65535u + group.x) * 32u + local;
    if (tile >= WINDOWS_ACROSS * WINDOWS_DOWN) {
        return;
    }
    let column = i32(tile % WINDOWS_ACROSS);
    let row = i32(tile / WINDOWS_ACROSS);
    // Votes of the tile and those around it, and pixels that are seen up to a quarter of a tile away.
    var around: array<u32, BLOCKS>;
    var before: array<u32, BLOCKS>;
    var known = false;
    for (var i = 0; i < 9; i++) {
        let x = column + i % 3 - 1;
        let y = row + i / 3 - 1;
        if (x >= 0 && y >= 0 && x < i32(WINDOWS_ACROSS) && y < i32(WINDOWS_DOWN)) {
            let at = (u32(y) * WINDOWS_ACROSS + u32(x)) * BLOCK_WORDS;
            for (var k = 0u; k < BLOCKS; k++) {
                let count = byte_of(votes[at + k / 4u], k);
                around[k] += count * select(1u, WINDOW_OWN, i == 4);
                known = known || count > 0u;
            }
        }
    }
    for (var i = 0; i < 16; i++) {
        let x = 2 * column + i % 4 - 1;
        let y = 2 * row + i / 4 - 1;
        if (x >= 0 && y >= 0 && x < 2 * i32(WINDOWS_ACROSS) && y < 2 * i32(WINDOWS_DOWN)) {
            let at = 4u * (u32(y / 2) * WINDOWS_ACROSS + u32(x / 2)) + u32(2 * (y % 2) + x % 2);
            for (var k = 0u; k < BLOCKS; k++) {
                before[k] += byte_of(seen[at * BLOCK_WORDS + k / 4u], k);
            }
        }
    }
    // The most votes first, then what was seen; ties to the lower block.
    var taken: array<bool, BLOCKS>;
    var free: u32 = WINDOW_BLOCKS;
    for (; free > 0u; free--) {
        var best = 0u;
        var most = 0u;
        for (var k = 0u; k < BLOCKS; k++) {
            let votes = select(votes_of_all[k], around[k], known);
            let rank = select(select(0u, before[k], before[k] >= WINDOW_SEEN), votes + 1024u, votes > 0u);
            if (rank > most && !taken[k]) {
                most = rank;
                best = k;
            }
        }
        if (most == 0u) {
            break;
        }
        taken[best] = true;
    }
    if (free == WINDOW_BLOCKS) {
        taken[0] = true;
        free--;
    }
    // The set grows by its neighbours on both sides, the higher ones first.
    while (free > 0u) {
        let before_it = taken;
        for (var k = BLOCKS; k > 0u; k--) {
            let i = k - 1u;
            let beside = i > 0u && before_it[max(i, 1u) - 1u] || k < BLOCKS && before_it[min(k, BLOCKS - 1u)];
            if (beside && !before_it[i] && free > 0u) {
                taken[i] = true;
                free--;
            }
        }
    }
    var blocks = vec2<u32>(0u);
    var number = 0u;
    for (var k = 0u; k < BLOCKS; k++) {
        if (taken[k]) {
            let bits = k << (16u * (number & 1u));
            blocks |= select(vec2<u32>(bits, 0u), vec2<u32>(0u, bits), number >= 2u);
            number++;
        }
    }
    windows[tile] = blocks;
}
