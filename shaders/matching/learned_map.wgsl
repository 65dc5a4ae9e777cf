// The disparity and the confidence of each cell of the network (`decode` of matching/learned.rs), and the map of the
// half-size images (matching/learned/map.rs).

struct Head {
    // Number of cells.
    columns: u32,
    rows: u32,
    // Place of the logits in the memory of all values, and their words a cell.
    first: u32,
    words: u32,
    candidates: u32,
    reach: u32,
    // Entries of the table.
    entries: u32,
    threshold: i32,
    // Half-size pixels of a cell.
    cell: i32,
    // Size of the map.
    width: u32,
    height: u32,
}

// Two logits in a word.
@group(0) @binding(0) var<storage, read> memory: array<u32>;
// Weight of a candidate by how much its logit is below the best.
@group(0) @binding(1) var<storage, read> table: array<u32>;
@group(0) @binding(2) var<uniform> head: Head;
// Disparity in 1/16 of a candidate, in the upper half the confidence.
@group(0) @binding(3) var<storage, read_write> cells: array<u32>;
@group(0) @binding(4) var<storage, read_write> map: array<i32>;

fn logit(cell: u32, k: u32) -> i32 {
    let word = memory[head.first + cell * head.words + k / 2u];
    return extractBits(bitcast<i32>(word), 16u * (k & 1u), 16u);
}

@compute @workgroup_size(256)
fn decode(@builtin(global_invocation_id) id: vec3<u32>) {
    let cell = linear(id);
    if (cell >= head.columns * head.rows) {
        return;
    }
    var best = 0u;
    var largest = logit(cell, 0u);
    for (var k = 1u; k < head.candidates; k++) {
        let value = logit(cell, k);
        if (value > largest) {
            best = k;
            largest = value;
        }
    }
    var total = 0u;
    var moment = 0u;
    let first = max(best, head.reach) - head.reach;
    for (var k = first; k < min(best + head.reach + 1u, head.candidates); k++) {
        let weight = table[min(u32(largest - logit(cell, k)), head.entries - 1u)];
        total += weight;
        moment += weight * k;
    }
    let disparity = (32u * moment + total) / (2u * total);
    cells[cell] = disparity | (bitcast<u32>(logit(cell, head.candidates)) << 16u);
}

fn is_sure(word: u32) -> bool {
    return (bitcast<i32>(word) >> 16u) >= head.threshold;
}

// The cells on either side of a pixel along one axis, and the weight of the second in 1/(2 cell).
fn between(at: u32, cells: u32) -> vec3<u32> {
    let cell = u32(head.cell);
    let place = 2u * at + 1u + cell;
    let second = place / (2u * cell);
    return vec3<u32>(min(max(second, 1u) - 1u, cells - 1u), min(second, cells - 1u), place % (2u * cell));
}

@compute @workgroup_size(256)
fn interpolate(@builtin(global_invocation_id) id: vec3<u32>) {
    let i = linear(id);
    if (i >= head.width * head.height) {
        return;
    }
    let x = i % head.width;
    let y = i / head.width;
    let across = between(x, head.columns);
    let down = between(y, head.rows);
    let at = min(vec2<u32>(x, y) / u32(head.cell), vec2<u32>(head.columns, head.rows) - 1u);
    let own = cells[at.y * head.columns + at.x];
    let weights_across = vec2<i32>(2 * head.cell - i32(across.z), i32(across.z));
    let weights_down = vec2<i32>(2 * head.cell - i32(down.z), i32(down.z));
    var sum = 0;
    var are_sure = true;
    for (var k = 0u; k < 4u; k++) {
        let word = cells[down[k / 2u] * head.columns + across[k % 2u]];
        are_sure = are_sure && is_sure(word);
        sum += i32(word & 0xffffu) * weights_down[k / 2u] * weights_across[k % 2u];
    }
    var value = INVALID;
    if (is_sure(own) && are_sure) {
        value = (sum + 2 * head.cell) / (4 * head.cell);
    } else if (is_sure(own)) {
        value = i32(own & 0xffffu) * head.cell;
    }
    // As 16 bits hold it.
    map[i] = extractBits(value, 0u, 16u);
}
